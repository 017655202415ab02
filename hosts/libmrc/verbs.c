/* The functions of libibverbs for queues and events. */
#include <errno.h>

#include "internal.h"

static struct ibv_comp_channel *verbs_channel(struct mrc_comp_channel *made) { return made ? &made->shadow : NULL; }

MT_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    return verbs_channel(mt_create_channel(context, NULL));
}

MT_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    return mt_destroy_channel(mt_channel_of(channel));
}

MT_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                       struct ibv_comp_channel *channel, int comp_vector) {
    struct mrc_comp_channel *whole = channel ? mt_channel_of(channel) : NULL;
    struct mrc_cq *made = mt_create_cq(context, NULL, cqe, cq_context, whole, comp_vector);
    return made ? &made->shadow : NULL;
}

MT_EXPORT int ibv_destroy_cq(struct ibv_cq *cq) { return mt_destroy_cq(mt_cq_of(cq)); }

MT_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
    struct mrc_cq *fetched;
    if (mt_get_cq_event(mt_channel_of(channel), &fetched) != 0) {
        return -1;
    }
    *cq = &fetched->shadow;
    *cq_context = fetched->shadow.cq_context;
    return 0;
}

MT_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents) { mt_ack_cq_events(mt_cq_of(cq), nevents); }

static bool is_possible(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
    if (attr->qp_type != IBV_QPT_RC || attr->srq) {
        mt_say("ibv_create_qp: only RC QPs without a shared receive queue become MRC QPs (type %d)", attr->qp_type);
        errno = EOPNOTSUPP;
        return false;
    }
    if (!pd || !attr->send_cq || !attr->recv_cq) {
        errno = EINVAL;
        return false;
    }
    return true;
}

MT_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    if (!is_possible(pd, attr)) {
        return NULL;
    }
    struct mrc_qp_init_attr mrc = {.qp_context = attr->qp_context,
                                   .send_cq = mt_cq_of(attr->send_cq),
                                   .recv_cq = mt_cq_of(attr->recv_cq),
                                   .cap = attr->cap,
                                   .sq_sig_all = attr->sq_sig_all,
                                   .pd = pd};
    struct mrc_qp *made = mt_create_qp(pd->context, NULL, &mrc);
    return made ? &made->shadow : NULL;
}

MT_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask) {
    return mt_modify_qp(mt_qp_of(qp), attr, attr_mask, NULL, 0);
}

MT_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                           struct ibv_qp_init_attr *init_attr) {
    (void)attr_mask; /* all of it is known */
    struct mrc_qp *whole = mt_qp_of(qp);
    int error = mt_query_qp(whole, attr, NULL);
    if (!error && init_attr) {
        *init_attr = (struct ibv_qp_init_attr){.qp_context = qp->qp_context,
                                               .send_cq = qp->send_cq,
                                               .recv_cq = qp->recv_cq,
                                               .cap = whole->cap,
                                               .qp_type = qp->qp_type,
                                               .sq_sig_all = whole->sq_sig_all};
    }
    return error;
}

MT_EXPORT int ibv_destroy_qp(struct ibv_qp *qp) { return mt_destroy_qp(mt_qp_of(qp)); }

MT_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    struct mt_event fetched;
    if (mt_get_event(mt_context_of(context), &fetched) != 0) {
        return -1;
    }
    *event = (struct ibv_async_event){.event_type = fetched.type};
    if (!fetched.object) {
        event->element.port_num = fetched.port;
    } else if (fetched.type == IBV_EVENT_CQ_ERR) {
        event->element.cq = &MT_OUTER(fetched.object, struct mrc_cq, object)->shadow;
    } else {
        event->element.qp = &MT_OUTER(fetched.object, struct mrc_qp, object)->shadow;
    }
    return 0;
}

MT_EXPORT void ibv_ack_async_event(struct ibv_async_event *event) {
    mt_ack_event(event->event_type, event->element.qp);
}

/* fork() is safe: pages that a program registers are not shared in another way than others. */
MT_EXPORT int ibv_fork_init(void) { return 0; }

MT_EXPORT int ibv_is_fork_initialized(void) {
    enum { NOT_NEEDED = 2 };
    return NOT_NEEDED;
}
