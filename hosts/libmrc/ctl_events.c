/* SPDX-License-Identifier: Apache-2.0 */
/* CQs of EV events. The daemon tells of changes while a connection has such a CQ. */
#include "ctl_calls.h"

#include <errno.h>
#include <stdlib.h>

#define WITH_STATE 0x01000001u /* API 1.0.1 */

static void link_cq(struct ctl_ev_cq *ev_cq)
{
    ev_cq->next = ctl_state.ev_cqs;
    ctl_state.ev_cqs = ev_cq;
    ev_cq->cq->ctl = ev_cq;
}

static void unlink_cq(struct ctl_ev_cq *ev_cq)
{
    struct ctl_ev_cq **place = &ctl_state.ev_cqs;

    while (*place != ev_cq)
        place = &(*place)->next;
    *place = ev_cq->next;
    ev_cq->cq->ctl = NULL;
}

static bool is_watching(const struct mt_connection *connection)
{
    for (const struct ctl_ev_cq *ev_cq = ctl_state.ev_cqs; ev_cq; ev_cq = ev_cq->next)
        if (ev_cq->connection == connection)
            return true;
    return false;
}

/* What is known before the first CQ is there makes no event: it is what changes are told from. */
static int watch(struct mt_connection *connection)
{
    union mt_record request = {.watch_evs = {.kind = MT_WATCH_EVS, .on = 1}};
    int error;

    if (is_watching(connection))
        return 0;
    error = mt_request(connection, &request, NULL);
    return error ? error : ctl_refresh(connection);
}

/* Without a CQ further records do no harm, so it is no error if this one cannot be sent at once. */
static void watch_no_more(struct mt_connection *connection)
{
    union mt_record record = {.watch_evs = {.kind = MT_WATCH_EVS}};

    if (is_watching(connection) || mt_usable(connection))
        return;
    record.watch_evs.token = mt_new_token(connection);
    (void)mt_send_now(connection, &record, 1);
}

static struct ctl_ev_cq *new_ev_cq(struct mrc_context *mrc, struct mrc_cq *cq)
{
    struct ctl_ev_cq *ev_cq = calloc(1, sizeof *ev_cq);
    bool with_state = !mrc->api_version || mrc->api_version >= WITH_STATE;

    if (!ev_cq || ctl_queue_begin(&ev_cq->queue, cq->capacity)) {
        free(ev_cq);
        return NULL;
    }
    ev_cq->cq = cq;
    ev_cq->connection = ctl_connection(mrc);
    ev_cq->event_bytes = with_state ? sizeof(struct mrc_ctl_ev_event) : CTL_OLD_EVENT_BYTES;
    return ev_cq;
}

static void free_ev_cq(struct ctl_ev_cq *ev_cq)
{
    ctl_queue_end(&ev_cq->queue);
    free(ev_cq);
}

/* Makes the CQ one of events. 0 or errno. */
static int equip(struct mrc_context *mrc, struct mrc_cq *cq)
{
    struct ctl_ev_cq *ev_cq = new_ev_cq(mrc, cq);
    int error;

    if (!ev_cq)
        return ENOMEM;
    mt_lock();
    error = watch(ev_cq->connection);
    if (!error)
        link_cq(ev_cq);
    mt_unlock();
    if (error)
        free_ev_cq(ev_cq);
    return error;
}

struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *mrc, int cqe, void *cq_context,
                                          struct mrc_comp_channel *channel, int comp_vector)
{
    int error = mrc ? ctl_enter(ctl_connection(mrc)) : EINVAL;
    struct mrc_cq *cq;

    if (error)
        return mt_null(error);
    mt_unlock();
    cq = mt_create_cq(mrc->verbs, mrc, cqe, cq_context, channel, comp_vector);
    if (!cq)
        return NULL;
    error = equip(mrc, cq);
    if (!error)
        return cq;
    mt_destroy_cq(cq);
    return mt_null(error);
}

void ctl_on_cq_destroyed(struct mrc_cq *cq)
{
    struct ctl_ev_cq *ev_cq = cq->ctl;
    struct mt_connection *connection = ev_cq->connection;

    unlink_cq(ev_cq);
    free_ev_cq(ev_cq);
    watch_no_more(connection);
}

static void tell(struct mt_connection *connection, const struct mrc_ctl_ev_event *event)
{
    for (struct ctl_ev_cq *ev_cq = ctl_state.ev_cqs; ev_cq; ev_cq = ev_cq->next)
        if (ev_cq->connection == connection && ctl_queue_put(&ev_cq->queue, event))
            mt_notify(ev_cq->cq, false);
}

void ctl_on_ev_state(struct mt_connection *connection, const struct mt_ev_state *record)
{
    struct mrc_ctl_ev_event event = {.state = (enum mrc_ctl_ev_state)record->state};

    ctl_use_paths_of(connection);
    if (!ctl_paths_note(&ctl_state.paths, record->dgid, record->ev, record->state))
        return;
    ctl_ev_write(&event.ev, record->ev);
    for (int slot = 0; slot < CTL_MOST_PROFILES; slot++) {
        const struct ctl_ev *profile = &ctl_state.profiles.ev[slot];
        if (profile->head.state != MRC_CTL_PROFILE_ONLINE || !(profile->event_mask & event.state))
            continue;
        event.profile_id = profile->head.id;
        tell(connection, &event);
    }
}

static int take(struct ctl_ev_cq *ev_cq, int count, struct mrc_ctl_ev_event *events)
{
    int taken;

    mt_lock();
    taken = ctl_queue_take(&ev_cq->queue, count, events, ev_cq->event_bytes);
    mt_unlock();
    return taken;
}

/* Polled without an event it does what any empty CQ does, which is to wait a moment now and then. */
int mrc_ctl_poll_ev_event(struct mrc_cq *cq, int count, struct mrc_ctl_ev_event *events)
{
    struct ibv_wc none;
    int error, taken;

    if (!cq || !cq->ctl || count < 0 || (count && !events))
        return -EINVAL;
    error = ctl_enter(((struct ctl_ev_cq *)cq->ctl)->connection);
    if (error)
        return -error;
    mt_unlock();
    taken = take(cq->ctl, count, events);
    if (taken || !count)
        return taken;
    if (mt_poll_cq(cq, 1, &none) < 0)
        return -errno;
    return take(cq->ctl, count, events);
}
