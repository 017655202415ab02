/* Completion channels: the events of armed CQs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/* The channel's descriptor counts the events in its list, so it is readable as long as there is one. */
static void count_up(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) {
        mt_say("a completion event is lost: %s", strerror(errno));
    }
}

static void count_down(int fd) {
    uint64_t one;
    if (read(fd, &one, sizeof one) < 0) {
        mt_say("a completion event is missing: %s", strerror(errno));
    }
}

static struct mrc_comp_channel *make_channel(struct ibv_context *context) {
    struct mrc_comp_channel *made = calloc(1, sizeof *made);
    int fd = made ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;
    if (fd < 0) {
        int error = made ? errno : ENOMEM;
        free(made);
        return mt_null(error);
    }
    made->verbs = &made->shadow;
    made->last = &made->first;
    made->shadow = (struct ibv_comp_channel){.context = context, .fd = fd};
    return made;
}

struct mrc_comp_channel *mt_create_channel(struct ibv_context *context, struct mrc_context *owner) {
    mt_lock();
    int error = mt_usable(mt_connection_of(context));
    error = error ? error : mt_start_reader(mt_connection_of(context));
    struct mrc_comp_channel *made = error ? mt_null(error) : make_channel(context);
    if (made) {
        mt_own(mt_context_of(context), &made->object, MT_OBJECT_CHANNEL, owner);
    }
    mt_unlock();
    return made;
}

void mt_free_channel(struct mrc_comp_channel *channel) {
    mt_disown(&channel->object);
    close(channel->shadow.fd);
    free(channel);
}

int mt_destroy_channel(struct mrc_comp_channel *channel) {
    mt_lock();
    int error = mt_connection_of(channel->shadow.context)->forked ? EPERM : channel->shadow.refcnt ? EBUSY : 0;
    if (error == 0) {
        mt_free_channel(channel);
    }
    mt_unlock();
    return mt_error(error);
}

void mt_wake_channel(struct mrc_comp_channel *channel) { count_up(channel->shadow.fd); }

void mt_notify(struct mrc_cq *cq, bool solicited) {
    if (cq->armed == MT_NOT_ARMED || (cq->armed == MT_ARMED_SOLICITED && !solicited)) {
        return;
    }
    cq->armed = MT_NOT_ARMED;
    if (!cq->shadow.channel) {
        return;
    }
    struct mrc_comp_channel *channel = mt_channel_of(cq->shadow.channel);
    if (cq->events_waiting++ == 0) {
        cq->next_event = NULL;
        *channel->last = cq;
        channel->last = &cq->next_event;
    }
    count_up(channel->shadow.fd);
}

static void unlink_first(struct mrc_comp_channel *channel) {
    channel->first = channel->first->next_event;
    if (!channel->first) {
        channel->last = &channel->first;
    }
}

/* One event of the CQ that has waited longest; it goes to the end of the list if it has more. */
static struct mrc_cq *fetch(struct mrc_comp_channel *channel) {
    struct mrc_cq *cq = channel->first;
    unlink_first(channel);
    if (--cq->events_waiting > 0) {
        cq->next_event = NULL;
        *channel->last = cq;
        channel->last = &cq->next_event;
    }
    cq->events_fetched++;
    count_down(channel->shadow.fd);
    return cq;
}

static void wait_for_event(struct mrc_comp_channel *channel) {
    struct pollfd waiting = {.fd = channel->shadow.fd, .events = POLLIN};
    mt_unlock();
    poll(&waiting, 1, -1);
    mt_lock();
}

int mt_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **cq) {
    mt_lock();
    struct mt_connection *connection = mt_connection_of(channel->shadow.context);
    int error = 0;
    while (!channel->first && !error) {
        error = mt_usable(connection);
        if (!error && fcntl(channel->shadow.fd, F_GETFL) & O_NONBLOCK) {
            mt_drain(connection);
            error = channel->first ? 0 : EAGAIN;
        } else if (!error) {
            wait_for_event(channel);
        }
    }
    if (channel->first) {
        *cq = fetch(channel);
        error = 0;
    }
    mt_unlock();
    return mt_fail(error);
}

void mt_ack_cq_events(struct mrc_cq *cq, unsigned count) {
    mt_lock();
    cq->shadow.comp_events_completed += count;
    mt_wake_destroyers();
    mt_unlock();
}

void mt_forget_cq_events(struct mrc_cq *cq) {
    struct mrc_comp_channel *channel = mt_channel_of(cq->shadow.channel);
    struct mrc_cq **place = &channel->first;
    while (*place && *place != cq) {
        place = &(*place)->next_event;
    }
    if (*place) {
        *place = cq->next_event;
        if (!*place) {
            channel->last = place;
        }
    }
    for (; cq->events_waiting > 0; cq->events_waiting--) {
        count_down(channel->shadow.fd);
    }
}
