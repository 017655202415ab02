/* States and attributes of queue pairs. */
#include <errno.h>

#include "internal.h"

enum {
    NEEDED_FOR_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    NEEDED_FOR_RTS = IBV_QP_SQ_PSN,
    MOST_TIMEOUT = 24,
    MOST_LINEAR = 7,
    MOST_EXP = 25,
    PSN_AND_QPN = 0xffffff,
};

static bool may_follow(enum ibv_qp_state from, enum ibv_qp_state to) {
    switch (to) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR:
        return true;
    case IBV_QPS_INIT:
        return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
    case IBV_QPS_RTR:
        return from == IBV_QPS_INIT || from == IBV_QPS_RTR;
    case IBV_QPS_RTS:
        return from == IBV_QPS_RTR || from == IBV_QPS_RTS;
    default:
        return false;
    }
}

static int check_state(const struct mrc_qp *qp, const struct ibv_qp_attr *attr, int mask) {
    enum ibv_qp_state from = qp->shadow.state;
    if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from) {
        return EINVAL;
    }
    if (!(mask & IBV_QP_STATE)) {
        return 0;
    }
    int needed = attr->qp_state == from            ? 0
                 : attr->qp_state == IBV_QPS_RTR ? NEEDED_FOR_RTR
                 : attr->qp_state == IBV_QPS_RTS ? NEEDED_FOR_RTS
                                                 : 0;
    return may_follow(from, attr->qp_state) && (mask & needed) == needed ? 0 : EINVAL;
}

/* What the API calls unsupported is not looked at: programs set it all the same. */
static int check_verbs(const struct ibv_qp_attr *attr, int mask) {
    if (mask & IBV_QP_AV && !attr->ah_attr.is_global) {
        mt_say("ibv_modify_qp: the address needs a GID (is_global)");
        return EINVAL;
    }
    bool fits = !(mask & IBV_QP_PATH_MTU) || (attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096);
    return fits ? 0 : EINVAL;
}

static int check_mrc(const struct mrc_qp *qp, const struct mrc_qp_attr *attr, int mask) {
    const struct mt_hello_reply *most = &mt_connection_of(qp->shadow.context)->hello;
    if (mask && !attr) {
        return EINVAL;
    }
    bool fits = (!(mask & MRC_QP_TIMEOUT) || attr->timeout <= MOST_TIMEOUT) &&
                (!(mask & MRC_QP_RETRY_CNT) ||
                 (attr->retry.linear_cnt <= MOST_LINEAR && attr->retry.exp_cnt <= MOST_EXP)) &&
                (!(mask & MRC_QP_MPR) || attr->mpr.mpr <= most->mpr) &&
                (!(mask & MRC_QP_MAX_WIMM) || attr->wimm.max_wimm <= most->max_wimm) &&
                (!(mask & MRC_QP_CAP) || attr->cap <= 7) &&
                (!(mask & MRC_QP_HINT) || !attr->qp_hint ||
                 attr->qp_hint->context == mt_context_of(qp->shadow.context));
    return fits ? 0 : EINVAL;
}

static void keep_verbs(struct ibv_qp_attr *kept, const struct ibv_qp_attr *attr, int mask) {
#define KEEP(bit, field) kept->field = mask & (bit) ? attr->field : kept->field
    KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    KEEP(IBV_QP_PKEY_INDEX, pkey_index);
    KEEP(IBV_QP_PORT, port_num);
    KEEP(IBV_QP_QKEY, qkey);
    KEEP(IBV_QP_AV, ah_attr);
    KEEP(IBV_QP_PATH_MTU, path_mtu);
    KEEP(IBV_QP_TIMEOUT, timeout);
    KEEP(IBV_QP_RETRY_CNT, retry_cnt);
    KEEP(IBV_QP_RNR_RETRY, rnr_retry);
    KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    KEEP(IBV_QP_RQ_PSN, rq_psn);
    KEEP(IBV_QP_SQ_PSN, sq_psn);
    KEEP(IBV_QP_DEST_QPN, dest_qp_num);
}

static void keep_mrc(struct mrc_qp_attr *kept, const struct mrc_qp_attr *attr, int mask) {
    if (mask & MRC_QP_VENDOR_CFG) {
        memcpy(kept->vendor_cfg, attr->vendor_cfg, sizeof kept->vendor_cfg);
    }
    KEEP(MRC_QP_MAX_WIMM, wimm.max_wimm);
    KEEP(MRC_QP_MAX_WIMM_DEST, wimm.max_wimm_dest);
    KEEP(MRC_QP_MPR, mpr.mpr);
    KEEP(MRC_QP_MPR_DEST, mpr.mpr_dest);
    KEEP(MRC_QP_TIMEOUT, timeout);
    KEEP(MRC_QP_EV_PROFILE_ID, profile.ev_profile_id);
    KEEP(MRC_QP_CC_PROFILE_ID, profile.cc_profile_id);
    KEEP(MRC_QP_HINT, qp_hint);
    KEEP(MRC_QP_RETRY_CNT, retry);
    KEEP(MRC_QP_CAP, cap);
#undef KEEP
}

static uint32_t given(int mask) {
    static const struct {
        int ours, theirs;
    } bits[] = {
        {MRC_QP_TIMEOUT, MT_GIVEN_TIMEOUT},   {MRC_QP_RETRY_CNT, MT_GIVEN_RETRY},
        {MRC_QP_MPR, MT_GIVEN_MPR},           {MRC_QP_MPR_DEST, MT_GIVEN_MPR_DEST},
        {MRC_QP_MAX_WIMM, MT_GIVEN_MAX_WIMM}, {MRC_QP_MAX_WIMM_DEST, MT_GIVEN_MAX_WIMM_DEST},
        {MRC_QP_CAP, MT_GIVEN_CAP},
    };
    uint32_t all = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        all |= mask & bits[i].ours ? (uint32_t)bits[i].theirs : 0;
    }
    return all;
}

static union mt_record request_for(const struct mrc_qp *qp, enum ibv_qp_state state, const struct ibv_qp_attr *attr,
                                   const struct mrc_qp_attr *mrc, int mrc_mask) {
    union mt_record made = {.modify_qp = {.kind = MT_MODIFY_QP,
                                          .qpn = qp->shadow.qp_num,
                                          .state = state,
                                          .dest_qpn = attr->dest_qp_num & PSN_AND_QPN,
                                          .rq_psn = attr->rq_psn & PSN_AND_QPN,
                                          .sq_psn = attr->sq_psn & PSN_AND_QPN,
                                          .path_mtu = attr->path_mtu ? 128U << attr->path_mtu : 0,
                                          .given = given(mrc_mask),
                                          .max_wimm = mrc->wimm.max_wimm,
                                          .max_wimm_dest = mrc->wimm.max_wimm_dest,
                                          .timeout = mrc->timeout,
                                          .linear = mrc->retry.linear_cnt,
                                          .exp = mrc->retry.exp_cnt,
                                          .mpr = mrc->mpr.mpr,
                                          .mpr_dest = mrc->mpr.mpr_dest,
                                          .cap = (uint8_t)mrc->cap}};
    memcpy(made.modify_qp.dgid, attr->ah_attr.grh.dgid.raw, sizeof made.modify_qp.dgid);
    return made;
}

static void change_hint(const struct mrc_qp_hint *from, struct mrc_qp_hint *to) {
    if (from) {
        ((struct mrc_qp_hint *)from)->users--;
    }
    if (to) {
        to->users++;
    }
}

/* The daemon has taken it. */
static void become(struct mrc_qp *qp, enum ibv_qp_state state, bool changes) {
    if (changes && state == IBV_QPS_ERR) {
        mt_break_qp(qp, IBV_WC_WR_FLUSH_ERR);
    } else if (changes && state == IBV_QPS_RESET) {
        mt_clear_qp(qp);
    }
    /* An error that came before the answer is the newer state, unless this leaves it. */
    if (qp->shadow.state != IBV_QPS_ERR || state == IBV_QPS_RESET) {
        qp->shadow.state = changes ? state : qp->shadow.state;
    }
}

static int modify(struct mrc_qp *qp, const struct ibv_qp_attr *attr, int mask, const struct mrc_qp_attr *mrc_attr,
                  int mrc_mask) {
    struct ibv_qp_attr wanted = qp->attr;
    struct mrc_qp_attr wanted_mrc = qp->mrc_attr;
    keep_verbs(&wanted, attr, mask);
    keep_mrc(&wanted_mrc, mrc_attr, mrc_mask);
    bool changes = mask & IBV_QP_STATE;
    enum ibv_qp_state state = changes ? attr->qp_state : qp->shadow.state;
    bool is_told = changes || (mrc_mask && (state == IBV_QPS_RTR || state == IBV_QPS_RTS));
    union mt_record request = request_for(qp, state, &wanted, &wanted_mrc, qp->mrc_given | mrc_mask);
    int error = is_told ? mt_request(mt_connection_of(qp->shadow.context), &request, NULL) : 0;
    if (error == 0) {
        change_hint(qp->mrc_attr.qp_hint, wanted_mrc.qp_hint);
        qp->attr = wanted;
        qp->mrc_attr = wanted_mrc;
        qp->mrc_given |= mrc_mask;
        become(qp, state, changes);
    }
    return error;
}

int mt_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int mask, struct mrc_qp_attr *mrc_attr, int mrc_mask) {
    mt_lock();
    int error = mt_usable(mt_connection_of(qp->shadow.context));
    if (!error && mask && !attr) {
        error = EINVAL;
    }
    error = error ? error : check_state(qp, attr, mask);
    error = error ? error : check_verbs(attr, mask);
    error = error ? error : check_mrc(qp, mrc_attr, mrc_mask);
    error = error ? error : modify(qp, attr, mask, mrc_attr, mrc_mask);
    mt_unlock();
    return mt_error(error);
}

int mt_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, struct mrc_qp_attr *mrc_attr) {
    mt_lock();
    struct mt_connection *connection = mt_connection_of(qp->shadow.context);
    int error = mt_usable(connection);
    if (!error) {
        mt_drain(connection);
    }
    if (!error && attr) {
        *attr = qp->attr;
        attr->qp_state = attr->cur_qp_state = qp->shadow.state;
        attr->cap = qp->cap;
    }
    if (!error && mrc_attr) {
        *mrc_attr = qp->mrc_attr;
    }
    mt_unlock();
    return mt_error(error);
}
