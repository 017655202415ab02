/* Hints about a QP's traffic: nothing here makes use of them, so they are kept and given back. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

enum {
    KNOWN = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS | MRC_QP_HINT_NUM_REMOTE_RECV_PEERS |
            MRC_QP_HINT_VENDOR_CFG,
};

struct mrc_qp_hint *mrc_create_qp_hint(struct mrc_context *context, struct mrc_qp_hint_init_attr *attr) {
    if (!context || !attr) {
        return mt_null(EINVAL);
    }
    mt_lock();
    int error = mt_usable(mt_connection_of(context->verbs));
    struct mrc_qp_hint *made = error ? NULL : calloc(1, sizeof *made);
    if (made) {
        made->context = mt_context_of(context->verbs);
        made->attr = attr->attr;
        mt_own(made->context, &made->object, MT_OBJECT_HINT, context);
    }
    mt_unlock();
    return made ? made : mt_null(error ? error : ENOMEM);
}

int mrc_destroy_qp_hint(struct mrc_qp_hint *hint) {
    if (!hint) {
        return mt_fail(EINVAL);
    }
    mt_lock();
    int error = hint->context->connection->forked ? EPERM : hint->users ? EBUSY : 0;
    if (error == 0) {
        mt_free_hint(hint);
    }
    mt_unlock();
    return mt_fail(error);
}

static void copy(struct mrc_qp_hint_attr *to, const struct mrc_qp_hint_attr *from, int mask) {
    if (mask & MRC_QP_HINT_NUM_QPS_PER_PEER) {
        to->num_qps_per_peer = from->num_qps_per_peer;
    }
    if (mask & MRC_QP_HINT_NUM_SEND_PEERS) {
        to->num_send_peers = from->num_send_peers;
    }
    if (mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) {
        to->num_remote_recv_peers = from->num_remote_recv_peers;
    }
    if (mask & MRC_QP_HINT_VENDOR_CFG) {
        memcpy(to->vendor_cfg, from->vendor_cfg, sizeof to->vendor_cfg);
    }
}

static int check(const struct mrc_qp_hint *hint, const struct mrc_qp_hint_attr *attr, int mask) {
    if (!hint || !attr || mask & ~KNOWN) {
        return EINVAL;
    }
    return mt_usable(hint->context->connection);
}

int mrc_query_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int attr_mask) {
    mt_lock();
    int error = check(hint, attr, attr_mask);
    if (error == 0) {
        copy(attr, &hint->attr, attr_mask);
    }
    mt_unlock();
    return mt_fail(error);
}

int mrc_modify_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int attr_mask) {
    mt_lock();
    int error = check(hint, attr, attr_mask);
    if (error == 0) {
        copy(&hint->attr, attr, attr_mask);
    }
    mt_unlock();
    return mt_fail(error);
}
