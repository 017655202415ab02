/* The MRC application API. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

enum { OLDEST_API = 0, WIRE_PROTOCOL = 1, MPR_RESOLUTION = 1, MOST_HINTS = 1 << 16 };

static void store(uint32_t *where, uint32_t value) {
    if (where) {
        *where = value;
    }
}

void mrc_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor_current,
                                 uint32_t *vendor_oldest) {
    store(current, MRC_API_VERSION);
    store(oldest, OLDEST_API);
    store(vendor_current, MRC_VENDOR_API_VERSION);
    store(vendor_oldest, OLDEST_API);
}

static uint8_t as_byte(uint32_t value) { return value > UINT8_MAX ? UINT8_MAX : (uint8_t)value; }

int mrc_query_device(struct ibv_context *context, struct mrc_device_attr *attr, int *supported) {
    if (!context || !attr || !supported) {
        return mt_fail(EINVAL);
    }
    mt_lock();
    int error = mt_usable(mt_connection_of(context));
    mt_unlock();
    if (error) {
        return mt_fail(error);
    }
    const struct mt_hello_reply *hello = &mt_connection_of(context)->hello;
    *attr = (struct mrc_device_attr){.mrc_protocol_version = WIRE_PROTOCOL,
                                     .wimm_attr = {hello->max_wimm, hello->max_wimm},
                                     .mpr_attr = {as_byte(hello->mpr), MPR_RESOLUTION},
                                     .qp_attr = {MOST_HINTS},
                                     .cap = MRC_DEVICE_CAP_TRIM_NACK};
    *supported = 1;
    return 0;
}

int mrc_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_device_attr *attr,
                                  int *supported) {
    return mrc ? mrc_query_device(context, attr, supported) : mt_fail(EINVAL);
}

static bool is_known(const struct mrc_context_attr *attr) {
    return !attr || (attr->mrc_api_version_used <= MRC_API_VERSION &&
                     attr->mrc_vendor_api_version_used <= MRC_VENDOR_API_VERSION);
}

struct mrc_context *mrc_create_context(struct ibv_context *context, struct mrc_context_attr *attr) {
    if (!context || !is_known(attr)) {
        return mt_null(EINVAL);
    }
    mt_lock();
    int error = mt_usable(mt_connection_of(context));
    struct mrc_context *made = error ? NULL : calloc(1, sizeof *made);
    if (made) {
        made->verbs = context;
        made->api_version = attr ? attr->mrc_api_version_used : 0;
    }
    mt_unlock();
    return made ? made : mt_null(error ? error : ENOMEM);
}

int mrc_destroy_context(struct mrc_context *context) {
    if (!context) {
        return mt_fail(EINVAL);
    }
    mt_lock();
    int error = mt_connection_of(context->verbs)->forked ? EPERM : 0;
    if (error == 0) {
        mt_destroy_objects(mt_context_of(context->verbs), context);
        free(context);
    }
    mt_unlock();
    return mt_fail(error);
}

int mrc_create_comp_channel(struct mrc_context *context, struct mrc_comp_channel **channel) {
    if (!context || !channel) {
        return mt_error(EINVAL);
    }
    *channel = mt_create_channel(context->verbs, context);
    return *channel ? 0 : errno;
}

int mrc_get_comp_channel_fd(struct mrc_comp_channel *channel, int *fd) {
    if (!channel || !fd) {
        return mt_fail(EINVAL);
    }
    *fd = channel->shadow.fd;
    return 0;
}

int mrc_destroy_comp_channel(struct mrc_comp_channel *channel) {
    return channel ? mt_destroy_channel(channel) : mt_error(EINVAL);
}

struct mrc_cq *mrc_create_cq(struct mrc_context *context, int cqe, void *cq_context,
                                       struct mrc_comp_channel *channel, int comp_vector) {
    return context ? mt_create_cq(context->verbs, context, cqe, cq_context, channel, comp_vector) : mt_null(EINVAL);
}

int mrc_poll_cq(struct mrc_cq *cq, int num_entries, struct ibv_wc *wc) {
    return cq && (wc || num_entries <= 0) ? mt_poll_cq(cq, num_entries, wc) : mt_fail(EINVAL);
}

int mrc_req_notify_cq(struct mrc_cq *cq, int solicited_only) {
    return cq ? mt_req_notify_cq(cq, solicited_only) : mt_error(EINVAL);
}

int mrc_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **cq, void **cq_context) {
    if (!channel || !cq) {
        return mt_fail(EINVAL);
    }
    int failed = mt_get_cq_event(channel, cq);
    if (!failed && cq_context) {
        *cq_context = (*cq)->shadow.cq_context;
    }
    return failed;
}

void mrc_ack_cq_events(struct mrc_cq *cq, unsigned int nevents) {
    if (cq) {
        mt_ack_cq_events(cq, nevents);
    }
}

int mrc_destroy_cq(struct mrc_cq *cq) { return cq ? mt_destroy_cq(cq) : mt_error(EINVAL); }

struct mrc_qp *mrc_create_qp(struct mrc_context *context, struct mrc_qp_init_attr *attr) {
    return context && attr ? mt_create_qp(context->verbs, context, attr) : mt_null(EINVAL);
}

int mrc_destroy_qp(struct mrc_qp *qp) { return qp ? mt_destroy_qp(qp) : mt_error(EINVAL); }

int mrc_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct mrc_qp_attr *mrc_attr,
                            int mrc_attr_mask) {
    return qp ? mt_modify_qp(qp, attr, attr_mask, mrc_attr, mrc_attr_mask) : mt_error(EINVAL);
}

int mrc_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct mrc_qp_attr *mrc_attr,
                           int mrc_attr_mask, struct mrc_qp_init_attr *init_attr) {
    if (!qp || (attr_mask && !attr) || (mrc_attr_mask && !mrc_attr)) {
        return mt_error(EINVAL);
    }
    int error = mt_query_qp(qp, attr, mrc_attr);
    if (!error && init_attr) {
        *init_attr = (struct mrc_qp_init_attr){.qp_context = qp->shadow.qp_context,
                                               .send_cq = mt_cq_of(qp->shadow.send_cq),
                                               .recv_cq = mt_cq_of(qp->shadow.recv_cq),
                                               .cap = qp->cap,
                                               .sq_sig_all = qp->sq_sig_all,
                                               .pd = qp->shadow.pd,
                                               .protocol_version = qp->protocol_version};
    }
    return error;
}

int mrc_get_qpn(struct mrc_qp *qp, uint32_t *qpn) {
    if (!qp || !qpn) {
        return mt_fail(EINVAL);
    }
    *qpn = qp->shadow.qp_num;
    return 0;
}

int mrc_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr) {
    return qp ? mt_post_send(qp, wr, bad_wr) : mt_error(EINVAL);
}

int mrc_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) {
    return qp ? mt_post_recv(qp, wr, bad_wr) : mt_error(EINVAL);
}

int mrc_get_async_event(struct mrc_context *context, struct mrc_async_event *event) {
    struct mt_event fetched;
    if (!context || !event) {
        return mt_fail(EINVAL);
    }
    if (mt_get_event(mt_context_of(context->verbs), &fetched) != 0) {
        return -1;
    }
    *event = (struct mrc_async_event){.event_type = fetched.type};
    if (!fetched.object) {
        event->element.port_num = fetched.port;
    } else if (fetched.type == IBV_EVENT_CQ_ERR) {
        event->element.cq = MT_OUTER(fetched.object, struct mrc_cq, object);
    } else {
        event->element.qp = MT_OUTER(fetched.object, struct mrc_qp, object);
    }
    return 0;
}

void mrc_ack_async_event(struct mrc_async_event *event) {
    if (!event) {
        return;
    }
    bool is_of_cq = event->event_type == IBV_EVENT_CQ_ERR;
    bool is_of_qp = mt_is_of_qp(event->event_type);
    void *element = is_of_cq   ? (void *)event->element.cq->verbs
                    : is_of_qp ? (void *)event->element.qp->verbs
                               : NULL;
    mt_ack_event(event->event_type, element);
}
