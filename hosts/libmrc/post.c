/* Work requests go to the daemon. A thread that has to wait for room in the socket gives the mutex up, so what it did
 * before is checked again after. */
#include <arpa/inet.h>
#include <errno.h>

#include "internal.h"

enum { KNOWN_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE };

static const char *name_of(enum ibv_wr_opcode opcode) {
    static const char *const names[] = {"RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "RDMA_READ",
                                        "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "LOCAL_INV", "BIND_MW",
                                        "SEND_WITH_INV", "TSO", "DRIVER1"};
    return (unsigned)opcode < sizeof names / sizeof *names ? names[opcode] : "an unknown opcode";
}

static bool takes_opcode(struct mrc_qp *qp, enum ibv_wr_opcode opcode) {
    if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        return true;
    }
    if (!qp->refused_opcode) {
        mt_say("ibv_post_send: %s is refused: MRC has only RDMA_WRITE and RDMA_WRITE_WITH_IMM", name_of(opcode));
    }
    qp->refused_opcode = true;
    return false;
}

static bool is_full(struct mt_connection *connection, const struct mt_ring *ring, unsigned more) {
    if (ring->used + more < ring->capacity) {
        return false;
    }
    mt_drain(connection); /* unsignaled writes may have ended */
    return ring->used + more >= ring->capacity;
}

static uint32_t length_of(const struct ibv_send_wr *wr) { return wr->num_sge ? wr->sg_list->length : 0; }

static int check_send(struct mrc_qp *qp, const struct ibv_send_wr *wr) {
    if (!takes_opcode(qp, wr->opcode) || wr->num_sge < 0 || wr->num_sge > 1 || (wr->num_sge && !wr->sg_list) ||
        wr->send_flags & ~(unsigned)KNOWN_FLAGS || length_of(wr) > MT_MOST_MESSAGE) {
        return EINVAL;
    }
    if (wr->send_flags & IBV_SEND_INLINE && length_of(wr) > qp->cap.max_inline_data) {
        return EINVAL;
    }
    return qp->shadow.state == IBV_QPS_RTS || qp->shadow.state == IBV_QPS_ERR ? 0 : EINVAL;
}

static unsigned slot(const struct mt_ring *ring, unsigned ahead) {
    return (ring->first + ring->count + ahead) % ring->capacity;
}

static uint64_t copy_inline(struct mrc_qp *qp, const struct ibv_send_wr *wr, unsigned ahead) {
    uint8_t *copy = qp->inline_data + (size_t)slot(&qp->sends, ahead) * MT_INLINE_BYTES;
    if (length_of(wr)) {
        memcpy(copy, (const void *)(uintptr_t)wr->sg_list->addr, length_of(wr));
    }
    return (uintptr_t)copy;
}

static void fill(union mt_record *record, struct mrc_qp *qp, const struct ibv_send_wr *wr, unsigned ahead) {
    memset(record, 0, sizeof *record);
    record->post_send = (struct mt_post_send){.kind = MT_POST_SEND,
                                              .qpn = qp->shadow.qp_num,
                                              .remote_address = wr->wr.rdma.remote_addr,
                                              .rkey = wr->wr.rdma.rkey,
                                              .length = length_of(wr)};
    if (wr->num_sge) {
        record->post_send.address = wr->sg_list->addr;
        record->post_send.lkey = wr->sg_list->lkey;
    }
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        record->post_send.flags |= MT_POST_IMMEDIATE;
        record->post_send.immediate = ntohl(wr->imm_data);
    }
    if (wr->send_flags & IBV_SEND_INLINE && qp->inline_data) {
        record->post_send.flags |= MT_POST_INLINE;
        record->post_send.address = copy_inline(qp, wr, ahead);
    }
}

/* As many records as one datagram takes, up to the first request that is refused. */
static int collect(struct mrc_qp *qp, struct ibv_send_wr *wr, union mt_record *records, unsigned *count) {
    struct mt_connection *connection = mt_connection_of(qp->shadow.context);
    int error = mt_usable(connection);
    for (*count = 0; !error && wr && *count < MT_MOST_POSTS; wr = wr->next) {
        error = is_full(connection, &qp->sends, *count) ? ENOMEM : check_send(qp, wr);
        if (!error) {
            fill(&records[*count], qp, wr, *count);
            ++*count;
        }
    }
    return error;
}

static struct ibv_send_wr *take_sends(struct mrc_qp *qp, struct ibv_send_wr *wr, unsigned count) {
    for (; count > 0; count--, wr = wr->next) {
        qp->writes[slot(&qp->sends, 0)] =
            (struct mt_write){.wr_id = wr->wr_id,
                              .length = length_of(wr),
                              .signaled = qp->sq_sig_all || wr->send_flags & IBV_SEND_SIGNALED};
        qp->sends.count++;
        qp->sends.used++;
    }
    return wr;
}

/* Takes some of the list, and returns what remains. A QP in state ERROR takes requests and flushes them. */
static struct ibv_send_wr *post_some(struct mrc_qp *qp, struct ibv_send_wr *wr, int *error) {
    struct mt_connection *connection = mt_connection_of(qp->shadow.context);
    union mt_record records[MT_MOST_POSTS];
    unsigned count;
    *error = collect(qp, wr, records, &count);
    bool is_broken = qp->shadow.state == IBV_QPS_ERR;
    int unsent = count == 0 || is_broken ? 0 : mt_send_now(connection, records, count);
    if (unsent == EAGAIN) {
        *error = 0;
        mt_wait_to_send(connection);
        return wr;
    }
    if (unsent) {
        *error = unsent;
        return wr;
    }
    wr = take_sends(qp, wr, count);
    if (is_broken) {
        mt_break_qp(qp, IBV_WC_WR_FLUSH_ERR);
    }
    return wr;
}

int mt_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    int error = 0;
    mt_lock();
    while (wr && !error) {
        wr = post_some(qp, wr, &error);
    }
    mt_unlock();
    if (error && bad) {
        *bad = wr;
    }
    return mt_error(error);
}

static int check_receive(struct mrc_qp *qp, const struct ibv_recv_wr *wr, unsigned before) {
    struct mt_connection *connection = mt_connection_of(qp->shadow.context);
    int error = mt_usable(connection);
    if (error) {
        return error;
    }
    if (is_full(connection, &qp->receives, before)) {
        return ENOMEM;
    }
    return qp->shadow.state == IBV_QPS_RESET || wr->num_sge < 0 || wr->num_sge > 1 ? EINVAL : 0;
}

static struct ibv_recv_wr *take_receives(struct mrc_qp *qp, struct ibv_recv_wr *wr, unsigned count) {
    for (; count > 0; count--, wr = wr->next) {
        qp->receive_ids[slot(&qp->receives, 0)] = wr->wr_id;
        qp->receives.count++;
        qp->receives.used++;
    }
    if (qp->shadow.state == IBV_QPS_ERR) {
        mt_break_qp(qp, IBV_WC_WR_FLUSH_ERR);
    }
    return wr;
}

/* All that the list has up to the first that is refused, in one record. */
static struct ibv_recv_wr *post_receives(struct mrc_qp *qp, struct ibv_recv_wr *wr, int *error) {
    struct mt_connection *connection = mt_connection_of(qp->shadow.context);
    unsigned count = 0;
    for (struct ibv_recv_wr *each = wr; each && !*error; each = each->next) {
        *error = check_receive(qp, each, count);
        count += !*error;
    }
    union mt_record record = {.post_recv = {.kind = MT_POST_RECV, .qpn = qp->shadow.qp_num, .count = count}};
    bool is_told = count > 0 && qp->shadow.state != IBV_QPS_ERR;
    int unsent = is_told ? mt_send_now(connection, &record, 1) : 0;
    if (unsent) {
        *error = unsent;
        return wr;
    }
    return take_receives(qp, wr, count);
}

int mt_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int error = 0;
    mt_lock();
    while (wr && !error) {
        wr = post_receives(qp, wr, &error);
        if (error == EAGAIN) {
            error = 0;
            mt_wait_to_send(mt_connection_of(qp->shadow.context));
        }
    }
    mt_unlock();
    if (error && bad) {
        *bad = wr;
    }
    return mt_error(error);
}
