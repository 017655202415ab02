/* The connection to the daemon of the host: its making, its end, and fork(). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

enum { HELLO_SECONDS = 10 };

static struct mt_connection *connections;
static bool handles_fork;

static void before_fork(void) { mt_lock(); }

static void in_parent(void) { mt_unlock(); }

/* The child closes its copies: with them open, the daemon would not see the end of the parent. */
static void in_child(void) {
    for (struct mt_connection *each = connections; each; each = each->next) {
        each->forked = true;
        close(each->fd);
        close(each->async_fd);
        each->fd = each->async_fd = -1;
    }
    mt_unlock();
}

static void handle_fork(void) {
    if (!handles_fork) {
        handles_fork = pthread_atfork(before_fork, in_parent, in_child) == 0;
    }
}

static bool socket_address(struct sockaddr_un *address, socklen_t *length) {
    const char *name = getenv("MRC_TESTBED_SOCKET");
    size_t size = name ? strlen(name) : 0;
    if (size == 0 || size >= sizeof address->sun_path) {
        return false;
    }
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, size);
    bool abstract = name[0] == '@';
    if (abstract) {
        address->sun_path[0] = 0;
    }
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (abstract ? 0 : 1));
    return true;
}

static int open_socket(void) {
    struct sockaddr_un address;
    socklen_t length;
    if (!socket_address(&address, &length)) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval most = {.tv_sec = HELLO_SECONDS};
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) != 0 ||
                    connect(fd, (struct sockaddr *)&address, length) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_hello(int fd, const int given[2]) {
    union mt_record record = {.hello = {.kind = MT_HELLO, .version = MT_VERSION, .token = 1}};
    record.hello.pid = (uint32_t)getpid();
    strncpy(record.hello.name, program_invocation_short_name, sizeof record.hello.name - 1);
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec part = {&record, sizeof record};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(header), given, 2 * sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == sizeof record;
}

static int arrived(int fd, int milliseconds) {
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        ready = poll(&waiting, 1, milliseconds);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

/* The first datagram may be nothing but the answer to HELLO. */
static bool take_hello(struct mt_connection *connection) {
    union mt_record record;
    if (arrived(connection->fd, HELLO_SECONDS * 1000) <= 0 ||
        recv(connection->fd, &record, sizeof record, MSG_TRUNC | MSG_DONTWAIT) != sizeof record ||
        record.kind != MT_REPLY || record.token != 1) {
        mt_say("the daemon does not answer HELLO as it should");
        return false;
    }
    if (record.reply.error) {
        mt_say("%.*s", MT_TEXT_BYTES, record.reply.text[0] ? record.reply.text : "the daemon refuses this program");
        return false;
    }
    connection->hello = record.hello_reply;
    return true;
}

static bool greet(struct mt_connection *connection) {
    int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    connection->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
    bool taken = memory >= 0 && connection->async_fd >= 0 &&
                 send_hello(connection->fd, (int[]){memory, connection->async_fd}) && take_hello(connection);
    if (memory >= 0) {
        close(memory);
    }
    return taken;
}

static void free_connection(struct mt_connection *connection) {
    if (connection->fd >= 0) {
        close(connection->fd);
    }
    if (connection->async_fd >= 0) {
        close(connection->async_fd);
    }
    pthread_cond_destroy(&connection->news);
    free(connection);
}

static void init_condition(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct mt_connection *make_connection(void) {
    int fd = open_socket();
    struct mt_connection *made = fd < 0 ? NULL : calloc(1, sizeof *made);
    if (!made) {
        if (fd >= 0) {
            close(fd);
        }
        return mt_null(fd < 0 ? ENOSYS : ENOMEM);
    }
    *made = (struct mt_connection){.next = connections, .fd = fd, .async_fd = -1, .references = 1, .last_token = 1};
    init_condition(&made->news);
    if (!greet(made)) {
        free_connection(made);
        return mt_null(ENOSYS);
    }
    handle_fork();
    connections = made;
    return made;
}

struct mt_connection *mt_connect(void) {
    for (struct mt_connection *each = connections; each; each = each->next) {
        if (!each->dead && !each->forked) {
            each->references++;
            return each;
        }
    }
    return make_connection();
}

void mt_release(struct mt_connection *connection) {
    if (--connection->references > 0) {
        return;
    }
    struct mt_connection **place = &connections;
    while (*place != connection) {
        place = &(*place)->next;
    }
    *place = connection->next;
    connection->dead = true;
    if (connection->has_reader && !connection->forked) {
        shutdown(connection->fd, SHUT_RDWR);
        pthread_cond_broadcast(&connection->news);
    } else {
        free_connection(connection);
    }
}

int mt_usable(const struct mt_connection *connection) {
    if (connection->forked) {
        return EPERM;
    }
    return connection->dead ? EIO : 0;
}

static void end_context(struct mt_context *context) {
    struct mt_connection *connection = context->connection;
    epoll_ctl(context->verbs.context.async_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    epoll_ctl(context->verbs.context.async_fd, EPOLL_CTL_DEL, connection->async_fd, NULL);
    mt_raise(context, IBV_EVENT_DEVICE_FATAL, NULL, 0);
    for (struct mt_object *object = context->objects; object; object = object->next) {
        if (object->kind == MT_OBJECT_CHANNEL) {
            mt_wake_channel(MT_OUTER(object, struct mrc_comp_channel, object));
        }
    }
}

void mt_died(struct mt_connection *connection) {
    if (connection->dead) {
        return;
    }
    mt_say("the daemon of this host is gone, and so is the device");
    connection->dead = true;
    shutdown(connection->fd, SHUT_RDWR);
    for (unsigned bucket = 0; bucket < MT_QP_BUCKETS; bucket++) {
        for (struct mrc_qp *qp = connection->qps[bucket]; qp; qp = qp->next) {
            mt_break_qp(qp, IBV_WC_WR_FLUSH_ERR);
        }
    }
    for (struct mt_context *context = connection->contexts; context; context = context->next) {
        end_context(context);
    }
    mt_ctl_died(connection);
    pthread_cond_broadcast(&connection->news);
}

static void *read_on(void *argument) {
    struct mt_connection *connection = argument;
    mt_lock();
    while (!connection->dead) {
        mt_wait(connection, -1);
    }
    connection->has_reader = false;
    if (connection->references == 0) {
        free_connection(connection);
    }
    mt_unlock();
    return NULL;
}

int mt_start_reader(struct mt_connection *connection) {
    if (connection->has_reader) {
        return 0;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, read_on, connection);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        connection->has_reader = true;
        pthread_detach(thread);
    }
    return error;
}
