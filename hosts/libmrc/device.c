/* Devices and their contexts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

enum { PORT_ATTR_BYTES = 52 };

/* One a process: programs keep pointers to it after they have freed the list. */
static struct ibv_device the_device;

/* What ibv_get_device_list returns lies behind the reference that it holds. */
struct device_list {
    struct mt_connection *connection;
    struct ibv_device *devices[2];
};

static void name_device(void) {
    the_device.node_type = IBV_NODE_CA;
    the_device.transport_type = IBV_TRANSPORT_IB;
    snprintf(the_device.name, sizeof the_device.name, "%s", mt_device_name());
    snprintf(the_device.dev_name, sizeof the_device.dev_name, "uverbs0");
    snprintf(the_device.dev_path, sizeof the_device.dev_path, "/sys/class/infiniband_verbs/uverbs0");
    snprintf(the_device.ibdev_path, sizeof the_device.ibdev_path, "/sys/class/infiniband/%.63s", the_device.name);
}

MT_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices) {
    struct device_list *list = calloc(1, sizeof *list);
    if (num_devices) {
        *num_devices = 0;
    }
    if (!list) {
        return mt_null(ENOMEM);
    }
    mt_lock();
    list->connection = mt_connect();
    if (list->connection) {
        name_device();
        list->devices[0] = &the_device;
    }
    mt_unlock();
    if (num_devices) {
        *num_devices = list->connection != NULL;
    }
    return list->devices;
}

MT_EXPORT void ibv_free_device_list(struct ibv_device **list) {
    if (!list) {
        return;
    }
    struct device_list *whole = MT_OUTER(list, struct device_list, devices);
    mt_lock();
    if (whole->connection) {
        mt_release(whole->connection);
    }
    mt_unlock();
    free(whole);
}

static int watch(int epoll, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* async_fd is readable while an event waits here or at the daemon, and when the daemon has gone. */
static bool open_descriptors(struct mt_context *context) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    context->verbs.context.async_fd = epoll;
    context->event_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
    return epoll >= 0 && context->event_fd >= 0 && watch(epoll, context->event_fd, EPOLLIN) == 0 &&
           watch(epoll, context->connection->async_fd, EPOLLIN) == 0 && watch(epoll, context->connection->fd, 0) == 0;
}

static void close_descriptors(const struct mt_context *context) {
    if (context->verbs.context.async_fd >= 0) {
        close(context->verbs.context.async_fd);
    }
    if (context->event_fd >= 0) {
        close(context->event_fd);
    }
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t bytes) {
    struct ibv_port_attr whole;
    int error = mt_port_attr(context, port, &whole);
    if (error == 0) {
        memset(attr, 0, bytes);
        memcpy(attr, &whole, bytes < PORT_ATTR_BYTES ? bytes : PORT_ATTR_BYTES);
    }
    return error;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) { return mt_poll_cq(mt_cq_of(cq), count, wc); }

static int req_notify_cq(struct ibv_cq *cq, int solicited) { return mt_req_notify_cq(mt_cq_of(cq), solicited); }

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    return mt_post_send(mt_qp_of(qp), wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return mt_post_recv(mt_qp_of(qp), wr, bad);
}

static void fill_context(struct mt_context *context) {
    struct ibv_context *verbs = &context->verbs.context;
    verbs->device = &the_device;
    verbs->cmd_fd = -1;
    verbs->num_comp_vectors = 1;
    pthread_mutex_init(&verbs->mutex, NULL);
    verbs->abi_compat = (void *)(intptr_t)-1;
    verbs->ops.poll_cq = poll_cq;
    verbs->ops.req_notify_cq = req_notify_cq;
    verbs->ops.post_send = post_send;
    verbs->ops.post_recv = post_recv;
    context->verbs.sz = sizeof context->verbs;
    context->verbs.query_port = query_port;
    context->verbs.create_qp_ex = mt_create_qp_ex;
    context->verbs.create_cq_ex = mt_create_cq_ex;
}

static struct mt_context *make_context(struct mt_connection *connection) {
    struct mt_context *made = calloc(1, sizeof *made);
    if (!made) {
        return mt_null(ENOMEM);
    }
    made->connection = connection;
    made->last_event = &made->events;
    if (!open_descriptors(made)) {
        int error = errno;
        close_descriptors(made);
        free(made);
        return mt_null(error);
    }
    fill_context(made);
    made->next = connection->contexts;
    connection->contexts = made;
    return made;
}

MT_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device) {
    if (device != &the_device) {
        return mt_null(ENODEV);
    }
    mt_lock();
    struct mt_connection *connection = mt_connect();
    struct mt_context *made = connection ? make_context(connection) : NULL;
    if (connection && !made) {
        mt_release(connection);
    }
    mt_unlock();
    return made ? &made->verbs.context : NULL;
}

void mt_free_context(struct mt_context *context) {
    struct mt_connection *connection = context->connection;
    mt_drop_events(context, NULL);
    close_descriptors(context);
    pthread_mutex_destroy(&context->verbs.context.mutex);
    free(context);
    mt_release(connection);
}

static void unlink_context(struct mt_context *context) {
    struct mt_context **place = &context->connection->contexts;
    while (*place != context) {
        place = &(*place)->next;
    }
    *place = context->next;
}

/* A thread in ibv_get_async_event leaves it with EBADF, and the last one frees the context. */
MT_EXPORT int ibv_close_device(struct ibv_context *context) {
    struct mt_context *whole = mt_context_of(context);
    uint64_t one = 1;
    mt_lock();
    int error = whole->connection->forked ? EPERM : 0;
    if (error == 0) {
        mt_destroy_objects(whole, NULL);
        unlink_context(whole);
        whole->closed = true;
        if (whole->waiting == 0) {
            mt_free_context(whole);
        } else if (write(whole->event_fd, &one, sizeof one) < 0) {
            error = errno;
        }
    }
    mt_unlock();
    return mt_fail(error);
}
