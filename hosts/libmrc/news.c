/* What the daemon's records change. */
#include <errno.h>

#include "internal.h"

static const struct mt_ctl_hooks no_hooks;
static const struct mt_ctl_hooks *hooks = &no_hooks;

void mt_set_ctl_hooks(const struct mt_ctl_hooks *wanted) { hooks = wanted; }

void mt_ctl_died(struct mt_connection *connection) {
    if (hooks->on_died) {
        hooks->on_died(connection);
    }
}

void mt_ctl_cq_destroyed(struct mrc_cq *cq) {
    if (cq->ctl && hooks->on_cq_destroyed) {
        hooks->on_cq_destroyed(cq);
    }
}

/* Nobody may wait for it: controller functions send without waiting. */
static void answer(struct mt_connection *connection, const union mt_record *record) {
    for (struct mt_waiter *waiter = connection->waiters; waiter; waiter = waiter->next) {
        if (waiter->token == record->token && !waiter->done) {
            *waiter->reply = *record;
            waiter->done = true;
        }
    }
}

static void break_qp(struct mrc_qp *qp, const struct mt_qp_error *record) {
    if (!qp || qp->shadow.state == IBV_QPS_RESET) {
        return;
    }
    if (record->text[0]) {
        mt_say("%.*s", MT_TEXT_BYTES, record->text);
    }
    bool known = record->status > IBV_WC_SUCCESS && record->status <= IBV_WC_GENERAL_ERR;
    mt_break_qp(qp, known ? (enum ibv_wc_status)record->status : IBV_WC_GENERAL_ERR);
}

static void raise_everywhere(struct mt_connection *connection, const struct mt_async *record) {
    for (struct mt_context *context = connection->contexts; context; context = context->next) {
        mt_raise(context, (enum ibv_event_type)record->event, NULL, (int)record->element);
    }
}

/* CQs and shared receive queues are nothing that the daemon knows. */
static bool raise_async(struct mt_connection *connection, const struct mt_async *record) {
    enum { SRQ_ERR = 14, SRQ_LIMIT = 15 };
    if (record->event == IBV_EVENT_CQ_ERR || record->event == SRQ_ERR || record->event == SRQ_LIMIT ||
        record->event > IBV_EVENT_GID_CHANGE) {
        return false;
    }
    connection->async_owed++;
    if (!mt_is_of_qp((enum ibv_event_type)record->event)) {
        raise_everywhere(connection, record);
        return true;
    }
    struct mrc_qp *qp = mt_find_qp(connection, record->element);
    if (qp) {
        mt_raise(mt_context_of(qp->shadow.context), (enum ibv_event_type)record->event, &qp->object, 0);
    }
    return true;
}

bool mt_dispatch(struct mt_connection *connection, const union mt_record *record) {
    struct mrc_qp *qp;
    switch (record->kind) {
    case MT_REPLY:
        answer(connection, record);
        return true;
    case MT_SENT:
        qp = mt_find_qp(connection, record->sent.qpn);
        return !qp || mt_sent(qp, record->sent.count);
    case MT_RECEIVED:
        qp = mt_find_qp(connection, record->received.qpn);
        return !qp || mt_received(qp, record->received.immediate, record->received.byte_len);
    case MT_QP_ERROR:
        break_qp(mt_find_qp(connection, record->qp_error.qpn), &record->qp_error);
        return true;
    case MT_ASYNC:
        return raise_async(connection, &record->async);
    case MT_EV_STATE:
        if (hooks->on_ev_state) {
            hooks->on_ev_state(connection, &record->ev_state);
        }
        return true;
    case MT_PROBED:
        if (hooks->on_probed) {
            hooks->on_probed(connection, &record->probed);
        }
        return true;
    default:
        return false;
    }
}
