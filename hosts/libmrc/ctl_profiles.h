/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles that a controller has made, and their lives: tables alone, nothing of the daemon. All functions return 0
   or an errno, and change nothing if they fail. Not locked.

   A profile whose number nobody has used is in INIT, and takes no place. Of each kind number 0 is ONLINE from the
   beginning and cannot be taken down: it is what the endpoint does by itself, and what QPs use that name no other. */
#ifndef LIBMRC_CTL_PROFILES_H
#define LIBMRC_CTL_PROFILES_H

#include "ctl_expand.h"

#include <stdbool.h>
#include <stddef.h>

#define CTL_MOST_PROFILES 16 /* of each kind */
#define CTL_OWN_PROFILE 0
#define CTL_ALGORITHM "uet-1.0-nscc"

struct ctl_head {
    uint64_t id;
    enum mrc_ctl_profile_state state;
};

struct ctl_fmt {
    struct ctl_head head;
    enum mrc_ctl_ev_fmt_mode mode;
    struct mrc_ctl_ev_fmt_field fields[CTL_MOST_FIELDS];
    int field_count;
};

struct ctl_ev {
    struct ctl_head head;
    uint64_t fmt_id;
    int given; /* which attributes have been, by their mask bits */
    uint32_t min_active;
    int event_mask;
};

struct ctl_cc {
    struct ctl_head head;
    const char *algorithm;
};

struct ctl_profiles {
    struct ctl_fmt fmt[CTL_MOST_PROFILES];
    struct ctl_ev ev[CTL_MOST_PROFILES];
    struct ctl_cc cc[CTL_MOST_PROFILES];
};

/* What is there before any controller. */
void ctl_profiles_begin(struct ctl_profiles *profiles);

/* The state after a call whose mask has STATE (1) or CUR_STATE (2). EINVAL: it is not where CUR_STATE says, or STATE
   is more than a step away. */
int ctl_life(enum mrc_ctl_profile_state now, enum mrc_ctl_profile_state wanted, enum mrc_ctl_profile_state asserted,
             int mask, enum mrc_ctl_profile_state *next);

/* Where profile `id` of `table` is, whose members of `bytes` each begin with their head; if it is nowhere, a place in
   INIT that it may have; NULL if none is free. */
void *ctl_place(const void *table, size_t bytes, uint64_t id);

int ctl_fmt_modify(struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask);
int ctl_fmt_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask);

/* Without the EVs' states, which are the daemon's: the caller sees to EV_OP, of which these check only that the
   profile can have it. `ev_count`: EVs of the endpoint. `used`: a QP names the profile. */
int ctl_ev_modify(struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask,
                  uint32_t ev_count, bool used);
int ctl_ev_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask,
                 uint32_t ev_count);

int ctl_cc_modify(struct ctl_profiles *profiles, uint64_t id, const struct mrc_ctl_cc_profile_attr *attr, int mask,
                  bool used);
int ctl_cc_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask);

/* The fields of the endpoint's own EVs: nothing, plane, uplink, and the UDP source port, which is each QP's. */
#define CTL_OWN_FIELDS 4
extern const struct mrc_ctl_ev_field ctl_own_fields[CTL_OWN_FIELDS];

/* The EV that the endpoint knows as `path`, plane x 256 + uplink: written with UDP source port 0, read whatever that
   is. ctl_ev_path: -1 if there can be no such EV. */
void ctl_ev_write(struct mrc_ctl_ev *ev, uint32_t path);
int ctl_ev_path(const struct mrc_ctl_ev *ev);

#endif
