/* Messages of the stand-in plugin: the receiver writes what may be sent into the sender's memory, which is read there,
 * and the sender answers with a chain of writes whose last one has an immediate. */
#include <unistd.h>

#include "standin_plugin.h"

enum { ACCESS = 0x10000f, ALIGNED = 128, POLLED = 4 };

int standin_reg_mr(void *given, void *data, size_t size, int type, void **mr) { /* by whole pages */
    struct comm *comm = given;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data & -page;
    uintptr_t end = ((uintptr_t)data + size + page - 1) & -page;
    NEED(type == NCCL_POINTER_HOST, NCCL_INTERNAL_ERROR);
    *mr = ibv_reg_mr_iova2(comm->device->pd, (void *)first, end - first, first, ACCESS);
    NEED(*mr != NULL, NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

int standin_dereg_mr(void *comm, void *mr) {
    (void)comm;
    NEED(!ibv_dereg_mr(mr), NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

static struct request *take_request(struct comm *comm, int count) {
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = &comm->requests[i];
        if (!request->in_use) {
            *request = (struct request){.comm = comm, .in_use = true, .group = comm->head, .count = count};
            return request;
        }
    }
    return NULL;
}

static uint64_t number_of(const struct request *request) { return (uint64_t)(request - request->comm->requests); }

/* "Clear to send". Only one of 64 asks for its completion. */
static int write_slot(struct comm *comm, struct request *request) {
    struct slot *slots = comm->slots[comm->head % REQUESTS];
    uint32_t length = (uint32_t)(SLOT_BYTES * request->count);
    struct ibv_sge part = {(uintptr_t)slots, length, comm->shared_mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = number_of(request), .sg_list = &part, .num_sge = 1};
    bool is_signaled = comm->head % REQUESTS == 0;
    bool goes_inline = standin_variable("NCCL_IB_USE_INLINE", 0) && request->count == 1;
    wr.send_flags = (is_signaled ? IBV_SEND_SIGNALED : 0) | (goes_inline ? IBV_SEND_INLINE : 0);
    wr.wr.rdma.remote_addr = comm->peer.address + comm->head % REQUESTS * sizeof comm->slots[0];
    wr.wr.rdma.rkey = comm->peer.rkey;
    request->pending += is_signaled;
    NEED(!mrc_post_send(comm->qps[comm->head % (uint64_t)comm->qp_count], &wr, &bad), NCCL_SYSTEM_ERROR);
    comm->head++;
    return NCCL_SUCCESS;
}

int standin_irecv(void *given, int count, void **data, size_t *sizes, int *tags, void **mrs, void **request) {
    struct comm *comm = given;
    struct request *made = take_request(comm, count);
    *request = made;
    NEED(!atomic_load(&comm->device->fatal_events) && count <= NCCL_MOST_RECEIVES, NCCL_SYSTEM_ERROR);
    for (int i = 0; made && i < comm->qp_count; i++) {
        struct ibv_recv_wr *bad, wr = {.wr_id = number_of(made)};
        NEED(!mrc_post_recv(comm->qps[i], &wr, &bad), NCCL_SYSTEM_ERROR);
        made->pending++;
    }
    for (int i = 0; made && i < count; i++) {
        const struct ibv_mr *mr = mrs[i];
        comm->slots[comm->head % REQUESTS][i] = (struct slot){.address = (uintptr_t)data[i],
                                                              .rkey = mr->rkey,
                                                              .count = (uint32_t)count,
                                                              .tag = tags[i],
                                                              .size = (uint32_t)sizes[i],
                                                              .number = comm->head + 1};
    }
    return made ? write_slot(comm, made) : NCCL_SUCCESS;
}

/* A chain of one queue pair: its part of each message of the group, an immediate at the end. */
static int send_part(struct comm *comm, int index, const volatile struct slot *slots, int count) {
    struct ibv_sge parts[NCCL_MOST_RECEIVES + 1];
    struct ibv_send_wr chain[NCCL_MOST_RECEIVES + 1] = {0}, *bad, *last = &chain[count - 1];
    uint64_t ids = 0;
    for (int i = 0; i < count; i++) {
        uint64_t size = comm->group[i]->size;
        uint64_t share = (size / (uint64_t)comm->qp_count + ALIGNED - 1) / ALIGNED * ALIGNED;
        uint64_t offset = share * (uint64_t)index < size ? share * (uint64_t)index : size;
        uint64_t length = index == comm->qp_count - 1 || size - offset < share ? size - offset : share;
        parts[i] = (struct ibv_sge){(uintptr_t)comm->group_data[i] + offset, (uint32_t)length, comm->group_keys[i]};
        chain[i] = (struct ibv_send_wr){.sg_list = &parts[i], .num_sge = length > 0, .next = &chain[i + 1]};
        chain[i].wr.rdma.remote_addr = slots[i].address + offset;
        chain[i].wr.rdma.rkey = slots[i].rkey;
        ids |= number_of(comm->group[i]) << 8 * i;
    }
    if (count > 1) { /* sizes go to a place of their own */
        int *sizes = comm->sizes[comm->head % REQUESTS];
        parts[count] = (struct ibv_sge){(uintptr_t)sizes, (uint32_t)(count * (int)sizeof *sizes), comm->own_mr->lkey};
        last = &chain[count];
        *last = (struct ibv_send_wr){.sg_list = &parts[count], .num_sge = 1};
        last->wr.rdma.remote_addr = comm->peer.address + comm->head % REQUESTS * sizeof comm->sizes[0];
        last->wr.rdma.rkey = comm->peer.rkey;
    }
    last->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    last->imm_data = count == 1 ? (uint32_t)comm->group[0]->size : 0; /* in the host's order */
    last->send_flags = IBV_SEND_SIGNALED;
    last->wr_id = ids;
    last->next = NULL;
    return mrc_post_send(comm->qps[index], chain, &bad);
}

static int send_group(struct comm *comm, const volatile struct slot *slots, int count) {
    for (int i = 0; i < count; i++) {
        comm->group[i]->pending = comm->qp_count;
        comm->group[i]->count = count;
        comm->sizes[comm->head % REQUESTS][i] = (int)comm->group[i]->size;
    }
    for (int i = 0; i < comm->qp_count; i++) {
        NEED(!send_part(comm, i, slots, count), NCCL_SYSTEM_ERROR);
    }
    memset(comm->group, 0, sizeof comm->group);
    comm->head++;
    return NCCL_SUCCESS;
}

static bool is_whole(const struct comm *comm, int count) {
    int asked = 0;
    for (int i = 0; i < count; i++) {
        asked += comm->group[i] != NULL;
    }
    return asked == count;
}

int standin_isend(void *given, void *data, size_t size, int tag, void *mr, void **request) {
    struct comm *comm = given;
    const volatile struct slot *slots = comm->slots[comm->head % REQUESTS]; /* another process writes there */
    *request = NULL;
    NEED(!atomic_load(&comm->device->fatal_events), NCCL_SYSTEM_ERROR);
    if (slots[0].number != comm->head + 1) {
        return NCCL_SUCCESS;
    }
    atomic_thread_fence(memory_order_acquire);
    int count = (int)slots[0].count, at = 0;
    for (int i = 1; i < count; i++) {
        while (slots[i].number != comm->head + 1) {
        }
    }
    while (at < count && (comm->group[at] || slots[at].tag != tag)) {
        at++;
    }
    struct request *made = at < count ? take_request(comm, 1) : NULL;
    if (!made) {
        return NCCL_SUCCESS;
    }
    NEED(size <= slots[at].size && slots[at].rkey, NCCL_INTERNAL_ERROR);
    made->size = size;
    made->pending = 1; /* until the group is whole */
    comm->group[at] = *request = made;
    comm->group_data[at] = data;
    comm->group_keys[at] = ((const struct ibv_mr *)mr)->lkey;
    return is_whole(comm, count) ? send_group(comm, slots, count) : NCCL_SUCCESS;
}

static int note(struct comm *comm, const struct ibv_wc *wc) {
    if (wc->status != IBV_WC_SUCCESS) {
        WARN("status %d, opcode %d, vendor_err %u", wc->status, wc->opcode, wc->vendor_err);
        return NCCL_REMOTE_ERROR;
    }
    int count = comm->sends ? comm->requests[wc->wr_id & 0xff].count : 1;
    for (int i = 0; i < count; i++) {
        comm->requests[wc->wr_id >> 8 * i & 0xff].pending--;
    }
    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && comm->requests[wc->wr_id].count == 1) {
        comm->requests[wc->wr_id].size = wc->imm_data;
    }
    return NCCL_SUCCESS;
}

static int take_completions(struct comm *comm) {
    struct ibv_wc found[POLLED];
    int count = POLLED;
    while (count == POLLED) {
        count = mrc_poll_cq(comm->cq, POLLED, found);
        NEED(count >= 0, NCCL_SYSTEM_ERROR);
        for (int i = 0; i < count; i++) {
            NEED(!note(comm, &found[i]), NCCL_REMOTE_ERROR);
        }
    }
    return NCCL_SUCCESS;
}

int standin_test(void *given, int *done, int *sizes) {
    struct request *request = given;
    struct comm *comm = request->comm;
    NEED(!atomic_load(&comm->device->fatal_events), NCCL_SYSTEM_ERROR);
    *done = 0;
    if (request->pending) {
        NEED(!take_completions(comm), NCCL_REMOTE_ERROR);
    }
    if (request->pending) {
        return NCCL_SUCCESS;
    }
    for (int i = 0; !comm->sends && i < request->count; i++) { /* of several, the sizes were written */
        sizes[i] = request->count == 1 ? (int)request->size : comm->sizes[request->group % REQUESTS][i];
    }
    request->in_use = false;
    *done = 1;
    return NCCL_SUCCESS;
}
