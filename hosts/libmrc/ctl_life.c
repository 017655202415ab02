/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_profiles.h"

#include <errno.h>

#define STATE 1
#define CUR_STATE 2

/* By where a profile is and where it shall go. */
static const bool step[3][3] = {
    [MRC_CTL_PROFILE_INIT] = {[MRC_CTL_PROFILE_INIT] = true, [MRC_CTL_PROFILE_OFFLINE] = true},
    [MRC_CTL_PROFILE_OFFLINE] = {true, true, true},
    [MRC_CTL_PROFILE_ONLINE] = {[MRC_CTL_PROFILE_OFFLINE] = true, [MRC_CTL_PROFILE_ONLINE] = true},
};

int ctl_life(enum mrc_ctl_profile_state now, enum mrc_ctl_profile_state wanted, enum mrc_ctl_profile_state asserted,
             int mask, enum mrc_ctl_profile_state *next)
{
    if (mask & CUR_STATE && asserted != now)
        return EINVAL;
    *next = mask & STATE ? wanted : now;
    return (unsigned)*next <= MRC_CTL_PROFILE_ONLINE && step[now][*next] ? 0 : EINVAL;
}

void *ctl_place(const void *table, size_t bytes, uint64_t id)
{
    struct ctl_head *unused = NULL;

    for (int slot = 0; slot < CTL_MOST_PROFILES; slot++) {
        struct ctl_head *head = (struct ctl_head *)((char *)table + slot * bytes);
        if (head->state == MRC_CTL_PROFILE_INIT)
            unused = unused ? unused : head;
        else if (head->id == id)
            return head;
    }
    return unused;
}
