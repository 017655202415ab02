/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller functions share: the tables of this process, guarded by the mutex of the library, and the checks
   that each call begins with. */
#ifndef LIBMRC_CTL_CALLS_H
#define LIBMRC_CTL_CALLS_H

#include "ctl_batch.h"
#include "ctl_paths.h"
#include "ctl_profiles.h"
#include "ctl_queue.h"
#include "internal.h"

#define CTL_API_VERSION 0x01000001u
#define CTL_VENDOR_API_VERSION 0x01000000u
#define CTL_OPTIONS (MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE | MRC_CTL_OPT_CAP_EV_EVENT | \
                     MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT | MRC_CTL_OPT_CAP_EP_OP_EV_PROBE)

/* A CQ of EV events: what `ctl` of its mrc_cq points to. */
struct ctl_ev_cq {
    struct ctl_ev_cq *next;
    struct mrc_cq *cq;
    struct mt_connection *connection;
    struct ctl_queue queue;
    size_t event_bytes;
};

struct ctl_state {
    struct ctl_profiles profiles;
    struct ctl_paths paths;
    struct mt_connection *paths_of; /* whose daemon `paths` is from */
    struct ctl_ev_cq *ev_cqs;
    struct ctl_batch *batches;
};

extern struct ctl_state ctl_state;

/* 0 with the mutex held; EPERM without CAP_NET_ADMIN and in the child of a fork, EIO without a daemon. */
int ctl_enter(const struct mt_connection *connection);
/* Gives up the mutex; 0, or -1 with errno = error. */
int ctl_leave(int error);

/* Forgets what another connection's daemon has said. */
void ctl_use_paths_of(struct mt_connection *connection);

/* Has the daemon say the states of all EVs into `paths`. 0 or errno. Gives up the mutex meanwhile. */
int ctl_refresh(struct mt_connection *connection);

/* An EV_STATE record: an event where it is a change that a profile watches. */
void ctl_on_ev_state(struct mt_connection *connection, const struct mt_ev_state *record);
void ctl_on_cq_destroyed(struct mrc_cq *cq);
void ctl_on_probed(struct mt_connection *connection, const struct mt_probed *record);

static inline struct mt_connection *ctl_connection(const struct mrc_context *mrc)
{
    return mt_connection_of(mrc->verbs);
}

#endif
