/* Queue pairs: their making and their end. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static struct mrc_qp **bucket(struct mt_connection *connection, uint32_t qpn) {
    return &connection->qps[qpn % MT_QP_BUCKETS];
}

struct mrc_qp *mt_find_qp(struct mt_connection *connection, uint32_t qpn) {
    struct mrc_qp *qp = *bucket(connection, qpn);
    while (qp && qp->shadow.qp_num != qpn) {
        qp = qp->next;
    }
    return qp;
}

static void use(struct mrc_qp *qp, int change) {
    mt_cq_of(qp->shadow.send_cq)->users += (unsigned)change;
    mt_cq_of(qp->shadow.recv_cq)->users += (unsigned)change;
    mt_pd_of(qp->shadow.pd)->users += (unsigned)change;
}

static void free_memory(struct mrc_qp *qp) {
    free(qp->writes);
    free(qp->receive_ids);
    free(qp->inline_data);
    free(qp);
}

static struct mrc_qp *allocate(const struct ibv_qp_cap *cap) {
    struct mrc_qp *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    made->sends.capacity = cap->max_send_wr;
    made->receives.capacity = cap->max_recv_wr;
    made->writes = calloc(cap->max_send_wr + 1U, sizeof *made->writes);
    made->receive_ids = calloc(cap->max_recv_wr + 1U, sizeof *made->receive_ids);
    made->inline_data = cap->max_inline_data ? calloc(cap->max_send_wr + 1U, MT_INLINE_BYTES) : NULL;
    if (!made->writes || !made->receive_ids || (cap->max_inline_data && !made->inline_data)) {
        free_memory(made);
        return NULL;
    }
    return made;
}

static struct mrc_qp *make_qp(struct ibv_context *context, const struct mrc_qp_init_attr *attr) {
    struct mrc_qp *made = allocate(&attr->cap);
    if (!made) {
        return NULL;
    }
    made->verbs = &made->shadow;
    made->cap = attr->cap;
    made->sq_sig_all = attr->sq_sig_all != 0;
    made->protocol_version = attr->protocol_version;
    made->shadow.context = context;
    made->shadow.qp_context = attr->qp_context;
    made->shadow.pd = attr->pd;
    made->shadow.send_cq = &attr->send_cq->shadow;
    made->shadow.recv_cq = &attr->recv_cq->shadow;
    made->shadow.qp_type = IBV_QPT_RC;
    pthread_mutex_init(&made->shadow.mutex, NULL);
    pthread_cond_init(&made->shadow.cond, NULL);
    return made;
}

static int check(const struct ibv_context *context, const struct mrc_qp_init_attr *attr) {
    if (!attr->pd || !attr->send_cq || !attr->recv_cq || attr->pd->context != context ||
        attr->send_cq->shadow.context != context || attr->recv_cq->shadow.context != context || attr->send_cq->ctl ||
        attr->recv_cq->ctl) {
        return EINVAL;
    }
    const struct ibv_qp_cap *cap = &attr->cap;
    uint32_t most = mt_context_of((struct ibv_context *)context)->connection->hello.max_qp_wr;
    if (cap->max_send_wr > most || cap->max_recv_wr > most || cap->max_send_sge > 1 || cap->max_recv_sge > 1 ||
        cap->max_inline_data > MT_INLINE_BYTES) {
        mt_say("a QP has at most %u requests of each kind, 1 SGE and %d inline bytes", most, MT_INLINE_BYTES);
        return EINVAL;
    }
    return 0;
}

/* Gives it a number. */
static int announce(struct mt_connection *connection, struct mrc_qp *qp) {
    union mt_record request = {.create_qp = {.kind = MT_CREATE_QP,
                                             .pd = qp->shadow.pd->handle,
                                             .max_send_wr = qp->cap.max_send_wr,
                                             .max_recv_wr = qp->cap.max_recv_wr}};
    union mt_record reply;
    int error = mt_request(connection, &request, &reply);
    if (error == 0) {
        struct mrc_qp **place = bucket(connection, reply.reply.value);
        qp->shadow.qp_num = qp->shadow.handle = reply.reply.value;
        qp->next = *place;
        *place = qp;
    }
    return error;
}

static int add(struct ibv_context *context, struct mrc_context *owner, struct mrc_qp *qp) {
    use(qp, 1);
    int error = announce(mt_connection_of(context), qp);
    if (error) {
        use(qp, -1);
        free_memory(qp);
        return error;
    }
    mt_own(mt_context_of(context), &qp->object, MT_OBJECT_QP, owner);
    return 0;
}

struct mrc_qp *mt_create_qp(struct ibv_context *context, struct mrc_context *owner, struct mrc_qp_init_attr *attr) {
    mt_lock();
    struct mrc_qp *made = NULL;
    int error = mt_usable(mt_connection_of(context));
    error = error ? error : check(context, attr);
    if (!error) {
        made = make_qp(context, attr);
        error = made ? add(context, owner, made) : ENOMEM;
    }
    mt_unlock();
    return error ? mt_null(error) : made;
}

void mt_free_qp(struct mrc_qp *qp) {
    struct mrc_qp **place = bucket(mt_connection_of(qp->shadow.context), qp->shadow.qp_num);
    while (*place != qp) {
        place = &(*place)->next;
    }
    *place = qp->next;
    mt_clear_qp(qp);
    mt_drop_events(mt_context_of(qp->shadow.context), &qp->object);
    use(qp, -1);
    if (qp->mrc_attr.qp_hint) {
        qp->mrc_attr.qp_hint->users--;
    }
    mt_disown(&qp->object);
    pthread_mutex_destroy(&qp->shadow.mutex);
    pthread_cond_destroy(&qp->shadow.cond);
    free_memory(qp);
}

int mt_destroy_qp(struct mrc_qp *qp) {
    mt_lock();
    union mt_record request = {.destroy_qp = {.kind = MT_DESTROY_QP, .qpn = qp->shadow.qp_num}};
    int error = mt_request(mt_connection_of(qp->shadow.context), &request, NULL);
    if (error == 0 || error == EIO) { /* without a daemon there is nothing left to destroy but ours */
        mt_settle_qp(qp);
        mt_free_qp(qp);
        error = 0;
    }
    mt_unlock();
    return mt_error(error);
}
