/* Asynchronous events, a queue a device context. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;

void mt_wake_destroyers(void) { pthread_cond_broadcast(&acknowledged); }

bool mt_is_of_qp(enum ibv_event_type type) {
    const int last_wqe_reached = 16;
    return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) || (int)type == last_wqe_reached;
}

void mt_raise(struct mt_context *context, enum ibv_event_type type, struct mt_object *object, int port) {
    struct mt_event *made = malloc(sizeof *made);
    uint64_t one = 1;
    if (!made || write(context->event_fd, &one, sizeof one) < 0) {
        mt_say("an asynchronous event is lost: %s", strerror(errno));
        free(made);
        return;
    }
    *made = (struct mt_event){.object = object, .type = type, .port = port};
    *context->last_event = made;
    context->last_event = &made->next;
}

/* Takes the event at `place` from the queue. */
static void unlink_event(struct mt_context *context, struct mt_event **place) {
    uint64_t one;
    struct mt_event *gone = *place;
    *place = gone->next;
    if (!*place) {
        context->last_event = place;
    }
    free(gone);
    if (read(context->event_fd, &one, sizeof one) < 0) {
        mt_say("the count of asynchronous events is wrong: %s", strerror(errno));
    }
}

static void count_fetched(const struct mt_event *event) {
    if (event->object && event->type == IBV_EVENT_CQ_ERR) {
        MT_OUTER(event->object, struct mrc_cq, object)->async_fetched++;
    } else if (event->object) {
        MT_OUTER(event->object, struct mrc_qp, object)->events_fetched++;
    }
}

/* The daemon's count may be ahead of its records for a moment: nothing is there, and poll() would return at once. */
static void wait_for_event(struct mt_context *context, bool has_just_been_woken) {
    struct pollfd waiting = {.fd = context->verbs.context.async_fd, .events = POLLIN};
    mt_unlock();
    if (has_just_been_woken) {
        poll(NULL, 0, 1);
    }
    poll(&waiting, 1, -1);
    mt_lock();
}

static int await_event(struct mt_context *context) {
    for (bool woken = false;; woken = true) {
        mt_drain(context->connection);
        if (context->events) {
            return 0;
        }
        int error = context->closed ? EBADF : mt_usable(context->connection);
        if (error) {
            return error;
        }
        if (fcntl(context->verbs.context.async_fd, F_GETFL) & O_NONBLOCK) {
            return EAGAIN;
        }
        wait_for_event(context, woken);
    }
}

int mt_get_event(struct mt_context *context, struct mt_event *event) {
    mt_lock();
    context->waiting++;
    int error = context->connection->forked ? EPERM : await_event(context);
    if (error == 0) {
        *event = *context->events;
        count_fetched(event);
        unlink_event(context, &context->events);
    }
    context->waiting--;
    if (context->closed && context->waiting == 0) {
        mt_free_context(context);
    }
    mt_unlock();
    return mt_fail(error);
}

void mt_ack_event(enum ibv_event_type type, void *qp_or_cq) {
    mt_lock();
    if (type == IBV_EVENT_CQ_ERR) {
        ((struct ibv_cq *)qp_or_cq)->async_events_completed++;
    } else if (mt_is_of_qp(type)) {
        ((struct ibv_qp *)qp_or_cq)->events_completed++;
    }
    mt_wake_destroyers();
    mt_unlock();
}

void mt_drop_events(struct mt_context *context, const struct mt_object *object) {
    struct mt_event **place = &context->events;
    while (*place) {
        if (!object || (*place)->object == object) {
            unlink_event(context, place);
        } else {
            place = &(*place)->next;
        }
    }
}

void mt_settle_qp(struct mrc_qp *qp) {
    while (qp->events_fetched != qp->shadow.events_completed) {
        mt_wait_on(&acknowledged, NULL);
    }
}

void mt_settle_cq(struct mrc_cq *cq) {
    while (cq->events_fetched != cq->shadow.comp_events_completed ||
           cq->async_fetched != cq->shadow.async_events_completed) {
        mt_wait_on(&acknowledged, NULL);
    }
}
