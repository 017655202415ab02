#include "support.h"

void open_world(struct world *world, int cqe) {
    int count;
    *world = (struct world){.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK((world->list = ibv_get_device_list(&count)) && count == 1);
    CHECK((world->verbs = ibv_open_device(world->list[0])));
    CHECK((world->mrc = mrc_create_context(world->verbs, NULL)));
    CHECK((world->pd = ibv_alloc_pd(world->verbs)));
    CHECK((world->memory = calloc(2, HALF)));
    CHECK((world->mr = ibv_reg_mr_iova2(world->pd, world->memory, 2 * HALF, (uintptr_t)world->memory, WRITABLE)));
    CHECK((world->send_cq = mrc_create_cq(world->mrc, cqe, world, NULL, 0)));
    CHECK((world->recv_cq = mrc_create_cq(world->mrc, cqe, world, NULL, 0)));
    CHECK(ibv_query_gid(world->verbs, 1, 3, &world->gid) == 0);
}

void close_world(struct world *world) {
    CHECK(mrc_destroy_cq(world->send_cq) == 0);
    CHECK(mrc_destroy_cq(world->recv_cq) == 0);
    CHECK(ibv_dereg_mr(world->mr) == 0);
    CHECK(ibv_dealloc_pd(world->pd) == 0);
    CHECK(mrc_destroy_context(world->mrc) == 0);
    CHECK(ibv_close_device(world->verbs) == 0);
    ibv_free_device_list(world->list);
    free(world->memory);
}

struct mrc_qp *make_qp(struct world *world) {
    struct mrc_qp_init_attr attr = {.qp_context = world,
                                    .send_cq = world->send_cq,
                                    .recv_cq = world->recv_cq,
                                    .cap = world->cap,
                                    .sq_sig_all = world->sq_sig_all,
                                    .pd = world->pd};
    struct mrc_qp *made = mrc_create_qp(world->mrc, &attr);
    CHECK(made);
    return made;
}

uint32_t number_of(struct mrc_qp *qp) {
    uint32_t qpn;
    CHECK(mrc_get_qpn(qp, &qpn) == 0 && qpn > 0 && qpn < 1 << 24);
    return qpn;
}

void to_init(struct mrc_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = WRITABLE};
    CHECK(mrc_modify_qp(qp, &attr, 0x39, NULL, 0) == 0);
}

void to_rtr(struct world *world, struct mrc_qp *qp, uint32_t peer) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer, .rq_psn = 7};
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = world->gid;
    attr.ah_attr.grh.sgid_index = 3;
    CHECK(mrc_modify_qp(qp, &attr, 0x101181, NULL, 0) == 0);
}

void to_rts(struct mrc_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 7, .retry_cnt = 7, .rnr_retry = 7};
    CHECK(mrc_modify_qp(qp, &attr, 0x10e01, NULL, 0) == 0);
}

struct pair make_pair(struct world *world) {
    struct pair made = {make_qp(world), make_qp(world)};
    to_init(made.from);
    to_init(made.to);
    to_rtr(world, made.from, number_of(made.to));
    to_rtr(world, made.to, number_of(made.from));
    to_rts(made.from);
    to_rts(made.to);
    return made;
}

void destroy_pair(struct pair *pair) {
    CHECK(mrc_destroy_qp(pair->from) == 0);
    CHECK(mrc_destroy_qp(pair->to) == 0);
}

struct ibv_send_wr write_of(struct world *world, struct ibv_sge *sge, uint32_t length, uint64_t wr_id, unsigned flags) {
    *sge = (struct ibv_sge){(uintptr_t)world->memory, length, world->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = 1, .send_flags = flags};
    wr.wr.rdma.remote_addr = (uintptr_t)world->memory + HALF;
    wr.wr.rdma.rkey = world->mr->rkey;
    return wr;
}

int post_write(struct world *world, struct mrc_qp *qp, uint32_t length, uint64_t wr_id, unsigned flags) {
    struct ibv_sge sge;
    struct ibv_send_wr wr = write_of(world, &sge, length, wr_id, flags), *bad;
    return mrc_post_send(qp, &wr, &bad);
}

int post_immediate(struct world *world, struct mrc_qp *qp, uint32_t length, uint64_t wr_id, uint32_t imm_data) {
    struct ibv_sge sge;
    struct ibv_send_wr wr = write_of(world, &sge, length, wr_id, IBV_SEND_SIGNALED), *bad;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = imm_data;
    return mrc_post_send(qp, &wr, &bad);
}

int post_receive(struct mrc_qp *qp, uint64_t wr_id) {
    struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;
    return mrc_post_recv(qp, &wr, &bad);
}

struct ibv_wc next_of(struct mrc_cq *cq) {
    struct ibv_wc wc;
    int got;
    while ((got = mrc_poll_cq(cq, 1, &wc)) == 0) {
    }
    CHECK(got == 1);
    return wc;
}

void expect(struct mrc_cq *cq, uint64_t wr_id, enum ibv_wc_status status) {
    struct ibv_wc wc = next_of(cq);
    if (wc.wr_id != wr_id || wc.status != status) {
        fprintf(stderr, "completion of %lu with status %d, not %lu with %d\n", wc.wr_id, wc.status, wr_id, status);
        exit(1);
    }
}

void trigger(struct world *world, uint8_t port) {
    struct ibv_port_attr attr;
    CHECK(ibv_query_port(world->verbs, port, &attr) == 0);
}
