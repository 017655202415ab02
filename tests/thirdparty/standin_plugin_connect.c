/* Connections of the stand-in plugin: TCP between both, then queue pairs. No call waits: NCCL calls again. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "standin_plugin.h"

enum { ACCESS = 0x10000f, TRAFFIC_CLASS = 4, HOP_LIMIT = 255, TIMEOUT = 20, INLINE_BYTES = 64 };
enum { TO_INIT = 0x39, TO_RTR = 0x101181, TO_RTS = 0x10e01 };

static struct comm *make_comm(struct device *device, int fd, bool sends) {
    struct comm *comm = aligned_alloc(SLOT_BYTES, (sizeof *comm + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES);
    if (comm) {
        memset(comm, 0, sizeof *comm);
        comm->device = device;
        comm->fd = fd;
        comm->sends = sends;
        comm->qp_count = standin_variable("NCCL_IB_QPS_PER_CONNECTION", 1);
        comm->stage = sends ? CONNECTING : HEARING;
    }
    return comm;
}

static int make_qp(struct comm *comm, int index) {
    struct mrc_qp_hint_init_attr hint = {.attr = {.num_qps_per_peer = (uint32_t)comm->qp_count, .num_send_peers = 1}};
    struct mrc_qp_init_attr wanted = {.qp_context = &comm->device->fatal_events,
                                      .send_cq = comm->cq,
                                      .recv_cq = comm->cq,
                                      .pd = comm->device->pd,
                                      .cap = {2 * REQUESTS, REQUESTS, 1, 1, 0}};
    wanted.cap.max_inline_data = standin_variable("NCCL_IB_USE_INLINE", 0) ? INLINE_BYTES : 0;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    comm->hints[index] = mrc_create_qp_hint(comm->device->context, &hint);
    NEED(comm->hints[index] != NULL, NCCL_SYSTEM_ERROR);
    comm->qps[index] = mrc_create_qp(comm->device->context, &wanted);
    NEED(comm->qps[index] != NULL, NCCL_SYSTEM_ERROR);
    struct mrc_qp_attr attr = {.qp_hint = comm->hints[index]};
    NEED(!mrc_modify_qp(comm->qps[index], &init, TO_INIT, &attr, MRC_QP_HINT), NCCL_SYSTEM_ERROR);
    NEED(!mrc_get_qpn(comm->qps[index], &comm->own.qpns[index]), NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

static struct ibv_mr *share(struct comm *comm, void *data, size_t size) {
    return ibv_reg_mr_iova2(comm->device->pd, data, size, (uintptr_t)data, ACCESS);
}

int standin_make_objects(struct comm *comm) {
    struct device *device = comm->device;
    int entries = 2 * REQUESTS * comm->qp_count;
    NEED(comm->qp_count >= 1 && comm->qp_count <= MOST_QPS, NCCL_INTERNAL_ERROR);
    NEED(device->pd_users++ || (device->pd = ibv_alloc_pd(device->verbs)), NCCL_SYSTEM_ERROR);
    comm->cq = mrc_create_cq(device->context, entries, &device->fatal_events, NULL, 0);
    comm->flush_cq = ibv_create_cq(device->verbs, entries, &device->fatal_events, NULL, 0); /* empty for ever */
    NEED(comm->cq && comm->flush_cq, NCCL_SYSTEM_ERROR);
    for (int i = 0; i < comm->qp_count; i++) {
        NEED(!make_qp(comm, i), NCCL_SYSTEM_ERROR);
    }
    comm->shared_mr = share(comm, comm->slots, sizeof comm->slots);
    comm->own_mr = share(comm, comm->sizes, sizeof comm->sizes);
    NEED(comm->shared_mr && comm->own_mr, NCCL_SYSTEM_ERROR);
    struct ibv_mr *target = comm->sends ? comm->shared_mr : comm->own_mr;
    comm->own.rkey = target->rkey;
    comm->own.address = (uintptr_t)target->addr;
    comm->own.mtu = device->port.active_mtu;
    comm->own.gid = device->gid;
    return NCCL_SUCCESS;
}

int standin_connect_qps(struct comm *comm) {
    uint32_t mtu = comm->own.mtu < comm->peer.mtu ? comm->own.mtu : comm->peer.mtu;
    struct mrc_qp_attr timeout = {.timeout = TIMEOUT};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .ah_attr = {.is_global = 1, .port_num = 1}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
    rtr.ah_attr.grh = (struct ibv_global_route){.dgid = comm->peer.gid,
                                                .sgid_index = (uint8_t)comm->device->gid_index,
                                                .hop_limit = HOP_LIMIT,
                                                .traffic_class = TRAFFIC_CLASS};
    for (int i = 0; i < comm->qp_count; i++) {
        rtr.dest_qp_num = comm->peer.qpns[i];
        NEED(!mrc_modify_qp(comm->qps[i], &rtr, TO_RTR, NULL, 0), NCCL_SYSTEM_ERROR);
        NEED(!mrc_modify_qp(comm->qps[i], &rts, TO_RTS, &timeout, MRC_QP_TIMEOUT), NCCL_SYSTEM_ERROR);
    }
    return NCCL_SUCCESS;
}

/* Moves what of `size` bytes goes now; `*whole` once all are over. */
static int transfer(struct comm *comm, bool out, void *data, size_t size, bool *whole) {
    char *from = (char *)data + comm->moved;
    size_t left = size - comm->moved;
    ssize_t count = out ? send(comm->fd, from, left, MSG_NOSIGNAL) : recv(comm->fd, from, left, 0);
    NEED(count > 0 || (count < 0 && errno == EAGAIN), NCCL_REMOTE_ERROR);
    comm->moved += count > 0 ? (size_t)count : 0;
    *whole = comm->moved == size;
    comm->moved = *whole ? 0 : comm->moved;
    return NCCL_SUCCESS;
}

static int has_connected(struct comm *comm, bool *whole) {
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int error = 0;
    socklen_t length = sizeof error;
    *whole = !getpeername(comm->fd, (struct sockaddr *)&at, &size);
    NEED(!getsockopt(comm->fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error, NCCL_REMOTE_ERROR);
    return NCCL_SUCCESS;
}

/* The sender tells its facts and hears the receiver's, which is then in RTS already; the word "ready" comes last. */
static int sender_step(struct comm *comm, bool *whole) {
    switch (comm->stage) {
    case CONNECTING:
        return has_connected(comm, whole) || (*whole && standin_make_objects(comm));
    case TELLING:
        return transfer(comm, true, &comm->own, sizeof comm->own, whole);
    case HEARING:
        return transfer(comm, false, &comm->peer, sizeof comm->peer, whole) || (*whole && standin_connect_qps(comm));
    default:
        return transfer(comm, true, &comm->ready, 1, whole);
    }
}

static int receiver_step(struct comm *comm, bool *whole) {
    switch (comm->stage) {
    case HEARING:
        return transfer(comm, false, &comm->peer, sizeof comm->peer, whole) ||
               (*whole && (standin_make_objects(comm) || standin_connect_qps(comm)));
    case TELLING:
        return transfer(comm, true, &comm->own, sizeof comm->own, whole);
    default:
        return transfer(comm, false, &comm->ready, 1, whole);
    }
}

static enum stage after(const struct comm *comm) {
    static const enum stage sender[] = {[CONNECTING] = TELLING, [TELLING] = HEARING, [HEARING] = READY};
    static const enum stage receiver[] = {[HEARING] = TELLING, [TELLING] = READY};
    return (comm->sends ? sender : receiver)[comm->stage];
}

static int go_on(struct comm **pending, void **made) {
    struct comm *comm = *pending;
    for (bool whole = true; whole;) {
        NEED(!(comm->sends ? sender_step : receiver_step)(comm, &whole), NCCL_SYSTEM_ERROR);
        if (whole && comm->stage == READY) {
            *made = comm;
            *pending = NULL;
            return NCCL_SUCCESS;
        }
        comm->stage = whole ? after(comm) : comm->stage;
    }
    return NCCL_SUCCESS;
}

int standin_listen(int device, void *handle, void **listener) {
    struct handle *told = handle;
    struct sockaddr_in at = standin_address;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct listener *made = calloc(1, sizeof *made);
    at.sin_port = 0;
    NEED(made && !bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 1), NCCL_SYSTEM_ERROR);
    NEED(!getsockname(fd, (struct sockaddr *)&at, &size), NCCL_SYSTEM_ERROR);
    *made = (struct listener){.device = &standin_devices[device], .fd = fd};
    *told = (struct handle){.at = at};
    *listener = made;
    return NCCL_SUCCESS;
}

int standin_connect(int device, void *handle, void **sender, void **offload) {
    struct handle *told = handle;
    (void)offload;
    *sender = NULL;
    if (!told->pending) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int error = connect(fd, (struct sockaddr *)&told->at, sizeof told->at) ? errno : 0;
        NEED(!error || error == EINPROGRESS, NCCL_SYSTEM_ERROR);
        told->pending = make_comm(&standin_devices[device], fd, true);
        NEED(told->pending != NULL, NCCL_SYSTEM_ERROR);
    }
    return go_on(&told->pending, sender);
}

int standin_accept(void *given, void **receiver, void **offload) {
    struct listener *listener = given;
    (void)offload;
    *receiver = NULL;
    if (!listener->pending) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        NEED(fd >= 0 || errno == EAGAIN, NCCL_SYSTEM_ERROR);
        listener->pending = fd >= 0 ? make_comm(listener->device, fd, false) : NULL;
    }
    return listener->pending ? go_on(&listener->pending, receiver) : NCCL_SUCCESS;
}

int standin_close_listen(void *given) {
    struct listener *listener = given;
    close(listener->fd);
    free(listener);
    return NCCL_SUCCESS;
}

int standin_close(void *given) { /* neither the MRC context nor the device is closed, ever */
    struct comm *comm = given;
    struct device *device = comm->device;
    for (int i = 0; i < comm->qp_count; i++) {
        NEED(!mrc_destroy_qp(comm->qps[i]) && !mrc_destroy_qp_hint(comm->hints[i]), NCCL_SYSTEM_ERROR);
    }
    NEED(!ibv_dereg_mr(comm->shared_mr) && !ibv_dereg_mr(comm->own_mr), NCCL_SYSTEM_ERROR);
    NEED(!mrc_destroy_cq(comm->cq) && !ibv_destroy_cq(comm->flush_cq), NCCL_SYSTEM_ERROR);
    NEED(--device->pd_users || !ibv_dealloc_pd(device->pd), NCCL_SYSTEM_ERROR);
    close(comm->fd);
    free(comm);
    return NCCL_SUCCESS;
}
