/* How work requests end. */
#include <arpa/inet.h>

#include "internal.h"

static unsigned pop(struct mt_ring *ring) {
    unsigned oldest = ring->first;
    ring->first = (ring->first + 1) % ring->capacity;
    ring->count--;
    return oldest;
}

static struct mt_completion completion(struct mrc_qp *qp, uint64_t wr_id, enum ibv_wc_status status) {
    struct mt_completion made = {.qp = qp};
    made.wc.wr_id = wr_id;
    made.wc.status = status;
    made.wc.qp_num = qp->shadow.qp_num;
    made.wc.src_qp = qp->attr.dest_qp_num;
    return made;
}

static void finish_write(struct mrc_qp *qp, enum ibv_wc_status status) {
    const struct mt_write *write = &qp->writes[pop(&qp->sends)];
    if (status == IBV_WC_SUCCESS && !write->signaled) {
        qp->sends.used--;
        return;
    }
    struct mt_completion made = completion(qp, write->wr_id, status);
    made.wc.opcode = IBV_WC_RDMA_WRITE;
    made.wc.byte_len = write->length;
    mt_complete(mt_cq_of(qp->shadow.send_cq), &made);
}

static void flush_receive(struct mrc_qp *qp) {
    struct mt_completion made = completion(qp, qp->receive_ids[pop(&qp->receives)], IBV_WC_WR_FLUSH_ERR);
    made.of_receive = true;
    made.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    mt_complete(mt_cq_of(qp->shadow.recv_cq), &made);
}

/* What the daemon sent before it knew of a change of state does not count. */
static bool is_late(const struct mrc_qp *qp) {
    return qp->shadow.state != IBV_QPS_RTR && qp->shadow.state != IBV_QPS_RTS;
}

bool mt_sent(struct mrc_qp *qp, uint32_t count) {
    if (is_late(qp)) {
        return true;
    }
    if (count > qp->sends.count) {
        return false;
    }
    for (; count > 0; count--) {
        finish_write(qp, IBV_WC_SUCCESS);
    }
    return true;
}

bool mt_received(struct mrc_qp *qp, uint32_t immediate, uint32_t bytes) {
    if (is_late(qp)) {
        return true;
    }
    if (qp->receives.count == 0) {
        return false;
    }
    struct mt_completion made = completion(qp, qp->receive_ids[pop(&qp->receives)], IBV_WC_SUCCESS);
    made.of_receive = true;
    made.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    made.wc.wc_flags = IBV_WC_WITH_IMM;
    made.wc.imm_data = htonl(immediate);
    made.wc.byte_len = bytes;
    mt_complete(mt_cq_of(qp->shadow.recv_cq), &made);
    return true;
}

void mt_break_qp(struct mrc_qp *qp, enum ibv_wc_status status) {
    qp->shadow.state = IBV_QPS_ERR;
    for (; qp->sends.count > 0; status = IBV_WC_WR_FLUSH_ERR) {
        finish_write(qp, status);
    }
    while (qp->receives.count > 0) {
        flush_receive(qp);
    }
}

void mt_clear_qp(struct mrc_qp *qp) {
    mt_forget_completions(mt_cq_of(qp->shadow.send_cq), qp);
    mt_forget_completions(mt_cq_of(qp->shadow.recv_cq), qp);
    qp->sends.count = qp->sends.used = 0;
    qp->receives.count = qp->receives.used = 0;
}
