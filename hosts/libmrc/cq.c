/* Completion queues. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

enum { EMPTY_POLLS_BEFORE_WAIT = 32, EMPTY_POLLS_AFTER_WAIT = 8, WAIT_MS = 1 };

static struct mrc_cq *make_cq(struct ibv_context *context, int cqe, void *cq_context,
                              struct mrc_comp_channel *channel) {
    struct mrc_cq *made = calloc(1, sizeof *made);
    struct mt_completion *ring = calloc((size_t)cqe, sizeof *ring);
    if (!made || !ring) {
        free(made);
        free(ring);
        return mt_null(ENOMEM);
    }
    made->verbs = &made->shadow;
    made->ring = ring;
    made->capacity = (unsigned)cqe;
    made->shadow.context = context;
    made->shadow.cq_context = cq_context;
    made->shadow.cqe = cqe;
    pthread_mutex_init(&made->shadow.mutex, NULL);
    pthread_cond_init(&made->shadow.cond, NULL);
    if (channel) {
        made->shadow.channel = &channel->shadow;
        channel->shadow.refcnt++;
    }
    return made;
}

struct mrc_cq *mt_create_cq(struct ibv_context *context, struct mrc_context *owner, int cqe, void *cq_context,
                            struct mrc_comp_channel *channel, int comp_vector) {
    mt_lock();
    struct mt_connection *connection = mt_connection_of(context);
    int error = mt_usable(connection);
    bool fits = cqe > 0 && (uint32_t)cqe <= connection->hello.max_cqe && comp_vector >= 0 &&
                comp_vector < context->num_comp_vectors && (!channel || channel->shadow.context == context);
    error = error || fits ? error : EINVAL;
    struct mrc_cq *made = error ? mt_null(error) : make_cq(context, cqe, cq_context, channel);
    if (made) {
        mt_own(mt_context_of(context), &made->object, MT_OBJECT_CQ, owner);
    }
    mt_unlock();
    return made;
}

void mt_free_cq(struct mrc_cq *cq) {
    mt_ctl_cq_destroyed(cq);
    mt_drop_events(mt_context_of(cq->shadow.context), &cq->object);
    if (cq->shadow.channel) {
        mt_forget_cq_events(cq);
        cq->shadow.channel->refcnt--;
    }
    mt_disown(&cq->object);
    pthread_mutex_destroy(&cq->shadow.mutex);
    pthread_cond_destroy(&cq->shadow.cond);
    free(cq->ring);
    free(cq);
}

int mt_destroy_cq(struct mrc_cq *cq) {
    mt_lock();
    int error = mt_connection_of(cq->shadow.context)->forked ? EPERM : cq->users ? EBUSY : 0;
    if (error == 0) {
        mt_settle_cq(cq);
        mt_free_cq(cq);
    }
    mt_unlock();
    return mt_error(error);
}

/* The work request leaves its queue: the program knows of it, or never will. */
static void leave(const struct mt_completion *completion) {
    struct mrc_qp *qp = completion->qp;
    (completion->of_receive ? &qp->receives : &qp->sends)->used--;
}

static void overflow(struct mrc_cq *cq) {
    if (cq->overflowed) {
        return;
    }
    cq->overflowed = true;
    mt_say("a CQ of %u entries has overflowed: nothing more will come of it", cq->capacity);
    mt_raise(mt_context_of(cq->shadow.context), IBV_EVENT_CQ_ERR, &cq->object, 0);
    mt_notify(cq, true);
}

void mt_complete(struct mrc_cq *cq, const struct mt_completion *completion) {
    if (cq->overflowed || cq->count == cq->capacity) {
        leave(completion);
        overflow(cq);
        return;
    }
    cq->ring[(cq->first + cq->count++) % cq->capacity] = *completion;
    mt_notify(cq, completion->of_receive || completion->wc.status != IBV_WC_SUCCESS);
}

void mt_forget_completions(struct mrc_cq *cq, const struct mrc_qp *qp) {
    unsigned kept = 0;
    for (unsigned i = 0; i < cq->count; i++) {
        const struct mt_completion *each = &cq->ring[(cq->first + i) % cq->capacity];
        if (each->qp != qp) {
            cq->ring[(cq->first + kept++) % cq->capacity] = *each;
        }
    }
    cq->count = kept;
}

static int fetch(struct mrc_cq *cq, int most, struct ibv_wc *wc) {
    int taken = 0;
    for (; taken < most && cq->count > 0; taken++, cq->count--) {
        const struct mt_completion *oldest = &cq->ring[cq->first];
        cq->first = (cq->first + 1) % cq->capacity;
        wc[taken] = oldest->wc;
        leave(oldest);
    }
    return taken;
}

static bool never_waits(void) {
    static int spins = -1; /* the environment, read once; under the mutex */
    if (spins < 0) {
        const char *how = getenv("MRC_TESTBED_POLL");
        spins = how && strcmp(how, "spin") == 0;
    }
    return spins;
}

/* A program that only polls gets its completion at once and leaves the CPU to others meanwhile. After a wait in which
 * nothing came the next one comes sooner. */
static int fetch_or_wait(struct mrc_cq *cq, int most, struct ibv_wc *wc) {
    static _Thread_local unsigned polls_left = EMPTY_POLLS_BEFORE_WAIT;
    struct mt_connection *connection = mt_connection_of(cq->shadow.context);
    mt_drain(connection);
    int taken = fetch(cq, most, wc);
    if (taken == 0 && --polls_left == 0) {
        if (!never_waits()) {
            mt_wait(connection, WAIT_MS);
            taken = fetch(cq, most, wc);
        }
        polls_left = EMPTY_POLLS_AFTER_WAIT;
    }
    if (taken > 0) {
        polls_left = EMPTY_POLLS_BEFORE_WAIT;
    }
    return taken;
}

int mt_poll_cq(struct mrc_cq *cq, int count, struct ibv_wc *wc) {
    mt_lock();
    int error = mt_usable(mt_connection_of(cq->shadow.context));
    int taken = error == EPERM ? 0 : fetch(cq, count, wc);
    if (taken == 0 && count > 0 && !error) {
        taken = fetch_or_wait(cq, count, wc);
        error = mt_usable(mt_connection_of(cq->shadow.context));
    }
    if (taken == 0 && cq->overflowed && !error) {
        error = EIO;
    }
    mt_unlock();
    return taken > 0 ? taken : mt_fail(error);
}

int mt_req_notify_cq(struct mrc_cq *cq, int solicited_only) {
    mt_lock();
    int error = mt_usable(mt_connection_of(cq->shadow.context));
    enum mt_armed wanted = solicited_only ? MT_ARMED_SOLICITED : MT_ARMED;
    if (!error && wanted > cq->armed) {
        cq->armed = wanted;
    }
    mt_unlock();
    return mt_error(error);
}
