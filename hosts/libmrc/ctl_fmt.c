/* SPDX-License-Identifier: Apache-2.0 */
/* EV format profiles. Fields may be any that fill the 32 bits of STEV at most. */
#include "ctl_profiles.h"

#include <errno.h>
#include <string.h>

#define KNOWN (MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE | MRC_CTL_EV_FMT_PROFILE_MODE | \
               MRC_CTL_EV_FMT_PROFILE_OP)
#define CONTENTS (MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP)

static struct ctl_fmt *place_of(const struct ctl_profiles *profiles, uint64_t id)
{
    return ctl_place(profiles->fmt, sizeof *profiles->fmt, id);
}

static struct ctl_fmt present(const struct ctl_profiles *profiles, uint64_t id)
{
    const struct ctl_fmt *place = place_of(profiles, id);

    return place && place->head.state != MRC_CTL_PROFILE_INIT ? *place : (struct ctl_fmt){.head.id = id};
}

static int store(struct ctl_profiles *profiles, const struct ctl_fmt *profile)
{
    struct ctl_fmt *place = place_of(profiles, profile->head.id);

    if (place)
        *place = *profile;
    return place || profile->head.state == MRC_CTL_PROFILE_INIT ? 0 : E2BIG;
}

static bool carries_online(const struct ctl_profiles *profiles, uint64_t id)
{
    for (int slot = 0; slot < CTL_MOST_PROFILES; slot++) {
        const struct ctl_ev *ev = &profiles->ev[slot];
        if (ev->head.state == MRC_CTL_PROFILE_ONLINE && ev->given & MRC_CTL_EV_PROFILE_FMT_ID && ev->fmt_id == id)
            return true;
    }
    return false;
}

static int set_mode(struct ctl_fmt *profile, enum mrc_ctl_ev_fmt_mode mode)
{
    if (mode == MRC_CTL_EV_FMT_MODE_SRV6 || mode == MRC_CTL_EV_FMT_MODE_UDP)
        return ENOTSUP;
    if (mode != MRC_CTL_EV_FMT_MODE_STEV)
        return EINVAL;
    profile->mode = mode;
    return 0;
}

static int set_fields(struct ctl_fmt *profile, const struct mrc_ctl_ev_fmt_field *fields, int count)
{
    int bits = 0;

    if (!fields || count <= 0)
        return EINVAL;
    if (count > CTL_MOST_FIELDS)
        return E2BIG;
    for (int index = 0; index < count; index++) {
        if (!fields[index].width)
            return EINVAL;
        bits += fields[index].width;
    }
    if (bits > CTL_EV_BITS)
        return E2BIG;
    memcpy(profile->fields, fields, count * sizeof *fields);
    profile->field_count = count;
    return 0;
}

static int get_fields(const struct ctl_fmt *profile, struct mrc_ctl_ev_fmt_field *fields, int *count)
{
    int room = *count;

    *count = profile->field_count;
    if (room < profile->field_count)
        return E2BIG;
    if (profile->field_count && !fields)
        return EINVAL;
    memcpy(fields, profile->fields, profile->field_count * sizeof *fields);
    return 0;
}

static int apply(struct ctl_fmt *profile, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
    int error = 0;

    if (mask & MRC_CTL_EV_FMT_PROFILE_MODE)
        error = set_mode(profile, attr->ev_fmt_mode);
    if (error || !(mask & MRC_CTL_EV_FMT_PROFILE_OP))
        return error;
    if (attr->ev_fmt_op.op == MRC_CTL_EV_FMT_OP_MODIFY_FIELDS)
        return set_fields(profile, attr->ev_fmt_op.fmt_fields, attr->ev_fmt_op.fmt_field_count);
    if (attr->ev_fmt_op.op == MRC_CTL_EV_FMT_OP_QUERY_FIELDS)
        return get_fields(profile, attr->ev_fmt_op.fmt_fields, &attr->ev_fmt_op.fmt_field_count);
    return EINVAL;
}

/* Whether a call may touch what it does of a profile that will be `next`. */
static int allowed(const struct ctl_fmt *profile, enum mrc_ctl_profile_state next,
                   const struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
    bool fields = mask & MRC_CTL_EV_FMT_PROFILE_OP && attr->ev_fmt_op.op == MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;

    if (profile->head.state == MRC_CTL_PROFILE_ONLINE && (mask & MRC_CTL_EV_FMT_PROFILE_MODE || fields))
        return EINVAL;
    if (next == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    if (profile->head.state == MRC_CTL_PROFILE_INIT && next != MRC_CTL_PROFILE_INIT &&
        !(mask & MRC_CTL_EV_FMT_PROFILE_MODE))
        return EINVAL;
    return 0;
}

int ctl_fmt_modify(struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
    struct ctl_fmt profile = present(profiles, id);
    enum mrc_ctl_profile_state next;
    int error;

    if (mask & ~KNOWN)
        return mask & MRC_CTL_EV_FMT_VENDOR_CFG ? ENOTSUP : EINVAL;
    error = ctl_life(profile.head.state, attr->profile_state, attr->cur_profile_state, mask, &next);
    if (!error)
        error = allowed(&profile, next, attr, mask);
    if (!error && next != MRC_CTL_PROFILE_ONLINE && carries_online(profiles, id))
        error = EBUSY;
    if (!error)
        error = apply(&profile, attr, mask);
    if (!error && next == MRC_CTL_PROFILE_ONLINE && !profile.field_count)
        error = EINVAL;
    if (error)
        return error;
    profile.head.state = next;
    return store(profiles, &profile);
}

int ctl_fmt_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask)
{
    struct ctl_fmt profile = present(profiles, id);

    if (mask & ~KNOWN)
        return mask & MRC_CTL_EV_FMT_VENDOR_CFG ? ENOTSUP : EINVAL;
    if (profile.head.state == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    if (mask & MRC_CTL_EV_FMT_PROFILE_OP && attr->ev_fmt_op.op != MRC_CTL_EV_FMT_OP_QUERY_FIELDS)
        return EINVAL;
    if (mask & MRC_CTL_EV_FMT_PROFILE_STATE)
        attr->profile_state = profile.head.state;
    if (mask & MRC_CTL_EV_FMT_PROFILE_CUR_STATE)
        attr->cur_profile_state = profile.head.state;
    if (mask & MRC_CTL_EV_FMT_PROFILE_MODE)
        attr->ev_fmt_mode = profile.mode;
    return mask & MRC_CTL_EV_FMT_PROFILE_OP ?
                   get_fields(&profile, attr->ev_fmt_op.fmt_fields, &attr->ev_fmt_op.fmt_field_count) : 0;
}
