/* SPDX-License-Identifier: Apache-2.0 */
/* CC profiles. Their constants cannot be set, so no profile of a controller's gets further than OFFLINE. */
#include "ctl_profiles.h"

#include <errno.h>
#include <string.h>

#define KNOWN (MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CUR_STATE | CONTENTS)
#define CONTENTS (MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG)

static struct ctl_cc *place_of(const struct ctl_profiles *profiles, uint64_t id)
{
    return ctl_place(profiles->cc, sizeof *profiles->cc, id);
}

static struct ctl_cc present(const struct ctl_profiles *profiles, uint64_t id)
{
    const struct ctl_cc *place = place_of(profiles, id);

    return place && place->head.state != MRC_CTL_PROFILE_INIT ? *place : (struct ctl_cc){.head.id = id};
}

static int allowed(const struct ctl_cc *profile, enum mrc_ctl_profile_state next, int mask, bool used)
{
    enum mrc_ctl_profile_state now = profile->head.state;

    if (next == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    if (now == MRC_CTL_PROFILE_INIT && next != now && !(mask & MRC_CTL_CC_PROFILE_ALGORITHM))
        return EINVAL;
    if (now == MRC_CTL_PROFILE_ONLINE && mask & MRC_CTL_CC_PROFILE_ALGORITHM)
        return EINVAL;
    if (next != MRC_CTL_PROFILE_ONLINE && (profile->head.id == CTL_OWN_PROFILE || used))
        return EBUSY;
    if (now == MRC_CTL_PROFILE_OFFLINE && next == MRC_CTL_PROFILE_ONLINE && !(mask & MRC_CTL_CC_PROFILE_CONFIG))
        return EINVAL;
    return mask & MRC_CTL_CC_PROFILE_CONFIG ? ENOTSUP : 0;
}

static int set_algorithm(struct ctl_cc *profile, const char *name)
{
    if (name && strcmp(name, CTL_ALGORITHM))
        return EINVAL;
    profile->algorithm = name ? CTL_ALGORITHM : NULL;
    return 0;
}

int ctl_cc_modify(struct ctl_profiles *profiles, uint64_t id, const struct mrc_ctl_cc_profile_attr *attr, int mask,
                  bool used)
{
    struct ctl_cc *place = place_of(profiles, id), profile = present(profiles, id);
    enum mrc_ctl_profile_state next;
    int error;

    if (mask & ~KNOWN)
        return mask & MRC_CTL_CC_PROFILE_VENDOR_CFG ? ENOTSUP : EINVAL;
    error = ctl_life(profile.head.state, attr->profile_state, attr->cur_profile_state, mask, &next);
    if (!error)
        error = allowed(&profile, next, mask, used);
    if (!error && mask & MRC_CTL_CC_PROFILE_ALGORITHM)
        error = set_algorithm(&profile, attr->algorithm);
    if (error)
        return error;
    profile.head.state = next;
    if (place)
        *place = profile;
    return place || next == MRC_CTL_PROFILE_INIT ? 0 : E2BIG;
}

int ctl_cc_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
    struct ctl_cc profile = present(profiles, id);

    if (mask & ~KNOWN)
        return mask & MRC_CTL_CC_PROFILE_VENDOR_CFG ? ENOTSUP : EINVAL;
    if (profile.head.state == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    if (mask & MRC_CTL_CC_PROFILE_CONFIG)
        return ENOTSUP;
    if (mask & MRC_CTL_CC_PROFILE_STATE)
        attr->profile_state = profile.head.state;
    if (mask & MRC_CTL_CC_PROFILE_CUR_STATE)
        attr->cur_profile_state = profile.head.state;
    if (mask & MRC_CTL_CC_PROFILE_ALGORITHM)
        attr->algorithm = profile.algorithm;
    return 0;
}
