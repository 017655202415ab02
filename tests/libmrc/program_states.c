/* States and attributes of QPs. */
#include "support.h"

static int modify(struct mrc_qp *qp, enum ibv_qp_state state, int mask) {
    struct ibv_qp_attr attr = {.qp_state = state, .path_mtu = IBV_MTU_1024, .cur_qp_state = IBV_QPS_RTS};
    attr.ah_attr.is_global = 1;
    return mrc_modify_qp(qp, &attr, mask, NULL, 0);
}

static enum ibv_qp_state state_of(struct mrc_qp *qp) {
    struct ibv_qp_attr attr;
    CHECK(mrc_query_qp(qp, &attr, IBV_QP_STATE, NULL, 0, NULL) == 0);
    CHECK((*(struct ibv_qp **)qp)->state == attr.qp_state);
    return attr.qp_state;
}

void test_states(void) {
    struct world world;
    open_world(&world, 8);
    struct mrc_qp *qp = make_qp(&world);
    CHECK(state_of(qp) == IBV_QPS_RESET);
    CHECK(modify(qp, IBV_QPS_RTR, 0x101181) == EINVAL && modify(qp, IBV_QPS_RTS, 0x10001) == EINVAL);
    CHECK(post_receive(qp, 1) == EINVAL && post_write(&world, qp, 8, 1, 0) == EINVAL);
    to_init(qp);
    CHECK(post_receive(qp, 1) == 0 && post_write(&world, qp, 8, 1, 0) == EINVAL);
    CHECK(modify(qp, IBV_QPS_RTR, 0x100181) == EINVAL); /* without rq_psn */
    CHECK(modify(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL && modify(qp, IBV_QPS_SQD, 1) == EINVAL);
    struct ibv_qp_attr local = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    CHECK(mrc_modify_qp(qp, &local, 0x101181, NULL, 0) == EINVAL); /* without a GID */
    local.path_mtu = (enum ibv_mtu)6;
    local.ah_attr.is_global = 1;
    CHECK(mrc_modify_qp(qp, &local, 0x101181, NULL, 0) == EINVAL);
    CHECK(state_of(qp) == IBV_QPS_INIT);
    to_rtr(&world, qp, 99);
    CHECK(post_write(&world, qp, 8, 1, 0) == EINVAL && modify(qp, IBV_QPS_RTS, 1) == EINVAL);
    to_rts(qp);
    CHECK(state_of(qp) == IBV_QPS_RTS && modify(qp, IBV_QPS_INIT, 1) == EINVAL);
    CHECK(modify(qp, IBV_QPS_ERR, 1) == 0 && state_of(qp) == IBV_QPS_ERR && modify(qp, IBV_QPS_RTS, 0x10001) == EINVAL);
    expect(world.recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
    CHECK(modify(qp, IBV_QPS_RESET, 1) == 0 && state_of(qp) == IBV_QPS_RESET);
    CHECK(mrc_destroy_qp(qp) == 0);
    close_world(&world);
}

static int set(struct mrc_qp *qp, struct mrc_qp_attr attr, int mask) { return mrc_modify_qp(qp, NULL, 0, &attr, mask); }

static void refuse_values(struct mrc_qp *qp) {
    CHECK(set(qp, (struct mrc_qp_attr){.timeout = 25}, MRC_QP_TIMEOUT) == EINVAL);
    CHECK(set(qp, (struct mrc_qp_attr){.retry = {8, 0}}, MRC_QP_RETRY_CNT) == EINVAL);
    CHECK(set(qp, (struct mrc_qp_attr){.retry = {0, 26}}, MRC_QP_RETRY_CNT) == EINVAL);
    CHECK(set(qp, (struct mrc_qp_attr){.mpr = {9, 0}}, MRC_QP_MPR) == EINVAL);
    CHECK(set(qp, (struct mrc_qp_attr){.wimm = {33, 0}}, MRC_QP_MAX_WIMM) == EINVAL);
    CHECK(set(qp, (struct mrc_qp_attr){.cap = 8}, MRC_QP_CAP) == EINVAL);
}

/* The daemon of this test looks at the last MODIFY_QP of either QP. */
void test_attributes(void) {
    struct world world;
    open_world(&world, 8);
    struct mrc_qp *qp = make_qp(&world);
    to_init(qp);
    refuse_values(qp);
    struct mrc_qp_attr given = {.mpr = {4, 3}, .wimm = {16, 8}, .timeout = 20, .retry = {5, 25}, .cap = 3};
    given.profile.ev_profile_id = 77;
    int mask = MRC_QP_MPR | MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_CAP |
               MRC_QP_EV_PROFILE_ID | MRC_QP_VENDOR_CFG;
    given.vendor_cfg[127] = 9;
    CHECK(set(qp, given, mask) == 0);
    to_rtr(&world, qp, 0x123456);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 0xffabcdef};
    CHECK(mrc_modify_qp(qp, &attr, 0x10001, &given, MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT) == 0);
    struct mrc_qp_attr asked;
    struct mrc_qp_init_attr init;
    CHECK(mrc_query_qp(qp, &attr, -1, &asked, -1, &init) == 0);
    CHECK(asked.timeout == 20 && asked.retry.exp_cnt == 25 && asked.mpr.mpr_dest == 3 && asked.vendor_cfg[127] == 9);
    CHECK(asked.profile.ev_profile_id == 77 && attr.dest_qp_num == 0x123456 && attr.rq_psn == 7 && attr.timeout == 0);
    CHECK(init.qp_context == &world && init.cap.max_send_wr == 64 && init.pd == world.pd);
    CHECK(mrc_destroy_qp(qp) == 0);
    close_world(&world);
}
