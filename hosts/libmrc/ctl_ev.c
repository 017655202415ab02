/* SPDX-License-Identifier: Apache-2.0 */
/* EV profiles. All are of mode AUTO: QPs use the EVs that the endpoint has, whichever profile they name. */
#include "ctl_profiles.h"

#include <errno.h>
#include <string.h>

#define KNOWN (MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_CUR_STATE | CONTENTS)
#define CONTENTS (SETTINGS | MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
#define SETTINGS (OFFLINE_ONLY | MRC_CTL_EV_PROFILE_EVENT_MASK)
#define OFFLINE_ONLY (MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT | \
                      MRC_CTL_EV_PROFILE_MIN_ACTIVE)
#define FOR_ONLINE (MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK)

static struct ctl_ev *place_of(const struct ctl_profiles *profiles, uint64_t id)
{
    return ctl_place(profiles->ev, sizeof *profiles->ev, id);
}

static struct ctl_ev present(const struct ctl_profiles *profiles, uint64_t id)
{
    const struct ctl_ev *place = place_of(profiles, id);

    return place && place->head.state != MRC_CTL_PROFILE_INIT ? *place : (struct ctl_ev){.head.id = id};
}

static bool fmt_online(const struct ctl_profiles *profiles, uint64_t id)
{
    const struct ctl_fmt *fmt = ctl_place(profiles->fmt, sizeof *profiles->fmt, id);

    return fmt && fmt->head.state == MRC_CTL_PROFILE_ONLINE;
}

static int check_mode(enum mrc_ctl_ev_mode mode)
{
    if (mode == MRC_CTL_EV_MODE_EXP || mode == MRC_CTL_EV_MODE_GEN)
        return ENOTSUP;
    return mode == MRC_CTL_EV_MODE_AUTO ? 0 : EINVAL;
}

static int check_event_mask(int mask)
{
    return mask & ~(MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD) ? EINVAL : 0;
}

static int check_values(const struct mrc_ctl_ev_profile_attr *attr, int mask, uint32_t ev_count)
{
    int error = mask & MRC_CTL_EV_PROFILE_MODE ? check_mode(attr->ev_mode) : 0;

    if (!error && mask & MRC_CTL_EV_PROFILE_COUNT && attr->ev_count > ev_count)
        error = E2BIG;
    if (!error && mask & MRC_CTL_EV_PROFILE_MIN_ACTIVE && attr->ev_min_active > 1)
        error = attr->ev_min_active > ev_count ? EINVAL : ENOTSUP;
    if (!error && mask & MRC_CTL_EV_PROFILE_EVENT_MASK)
        error = check_event_mask(attr->ev_event_mask);
    return error;
}

static void apply(struct ctl_ev *profile, const struct mrc_ctl_ev_profile_attr *attr, int mask)
{
    profile->given |= mask & SETTINGS;
    if (mask & MRC_CTL_EV_PROFILE_FMT_ID)
        profile->fmt_id = attr->ev_fmt_profile_id;
    if (mask & MRC_CTL_EV_PROFILE_MIN_ACTIVE)
        profile->min_active = attr->ev_min_active;
    if (mask & MRC_CTL_EV_PROFILE_EVENT_MASK)
        profile->event_mask = attr->ev_event_mask;
}

static int check_ops(const struct mrc_ctl_ev_profile_attr *attr, int mask, bool modifies)
{
    enum mrc_ctl_ev_op op = attr->ev_op.op;

    if (mask & MRC_CTL_EV_PROFILE_EV_OP && mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
        return EINVAL;
    if (mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
        return attr->ev_fields_op.op == MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS ? 0 : EINVAL;
    if (!(mask & MRC_CTL_EV_PROFILE_EV_OP))
        return 0;
    if (attr->ev_op.entry_count < 0 || (attr->ev_op.entry_count && !attr->ev_op.entries))
        return EINVAL;
    if (op == MRC_CTL_EV_OP_QUERY_EV_STATE || op == MRC_CTL_EV_OP_QUERY_EV_ARRAY)
        return 0;
    return modifies && op == MRC_CTL_EV_OP_MODIFY_EV_STATE ? 0 : EINVAL;
}

static int get_fields(struct mrc_ctl_ev_profile_attr *attr)
{
    int room = attr->ev_fields_op.field_count;

    attr->ev_fields_op.field_count = CTL_OWN_FIELDS;
    if (room < CTL_OWN_FIELDS)
        return E2BIG;
    if (!attr->ev_fields_op.fields)
        return EINVAL;
    memcpy(attr->ev_fields_op.fields, ctl_own_fields, sizeof ctl_own_fields);
    return 0;
}

/* Whether a call may touch what it does of a profile that will be `next`. */
static int allowed(const struct ctl_ev *profile, enum mrc_ctl_profile_state next, int mask, bool used)
{
    enum mrc_ctl_profile_state now = profile->head.state;

    if (next == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    if (now == MRC_CTL_PROFILE_INIT && next != now && !(mask & MRC_CTL_EV_PROFILE_MODE))
        return EINVAL;
    if (now == MRC_CTL_PROFILE_ONLINE && mask & OFFLINE_ONLY)
        return EINVAL;
    if (next != MRC_CTL_PROFILE_ONLINE && (profile->head.id == CTL_OWN_PROFILE || used))
        return EBUSY;
    return 0;
}

static int check_online(const struct ctl_profiles *profiles, const struct ctl_ev *profile)
{
    if ((profile->given & FOR_ONLINE) != FOR_ONLINE)
        return EINVAL;
    return !(profile->given & MRC_CTL_EV_PROFILE_FMT_ID) || fmt_online(profiles, profile->fmt_id) ? 0 : EINVAL;
}

static int store(struct ctl_profiles *profiles, const struct ctl_ev *profile)
{
    struct ctl_ev *place = place_of(profiles, profile->head.id);

    if (place)
        *place = *profile;
    return place || profile->head.state == MRC_CTL_PROFILE_INIT ? 0 : E2BIG;
}

int ctl_ev_modify(struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask,
                  uint32_t ev_count, bool used)
{
    struct ctl_ev profile = present(profiles, id);
    enum mrc_ctl_profile_state next;
    int error;

    if (mask & ~KNOWN)
        return mask & MRC_CTL_EV_PROFILE_VENDOR_CFG ? ENOTSUP : EINVAL;
    error = ctl_life(profile.head.state, attr->profile_state, attr->cur_profile_state, mask, &next);
    if (!error)
        error = allowed(&profile, next, mask, used);
    if (!error)
        error = check_values(attr, mask, ev_count);
    if (!error)
        error = check_ops(attr, mask, true);
    if (error)
        return error;
    apply(&profile, attr, mask);
    profile.head.state = next;
    if (next == MRC_CTL_PROFILE_ONLINE)
        error = check_online(profiles, &profile);
    if (!error && mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP)
        error = get_fields(attr);
    return error ? error : store(profiles, &profile);
}

static void fill(const struct ctl_ev *profile, struct mrc_ctl_ev_profile_attr *attr, int mask, uint32_t ev_count)
{
    if (mask & MRC_CTL_EV_PROFILE_STATE)
        attr->profile_state = profile->head.state;
    if (mask & MRC_CTL_EV_PROFILE_CUR_STATE)
        attr->cur_profile_state = profile->head.state;
    if (mask & MRC_CTL_EV_PROFILE_MODE)
        attr->ev_mode = MRC_CTL_EV_MODE_AUTO;
    if (mask & MRC_CTL_EV_PROFILE_FMT_ID)
        attr->ev_fmt_profile_id = profile->fmt_id;
    if (mask & MRC_CTL_EV_PROFILE_COUNT)
        attr->ev_count = ev_count;
    if (mask & MRC_CTL_EV_PROFILE_MIN_ACTIVE)
        attr->ev_min_active = profile->min_active;
    if (mask & MRC_CTL_EV_PROFILE_EVENT_MASK)
        attr->ev_event_mask = profile->event_mask;
}

int ctl_ev_query(const struct ctl_profiles *profiles, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask,
                 uint32_t ev_count)
{
    struct ctl_ev profile = present(profiles, id);
    int error;

    if (mask & ~KNOWN)
        return mask & MRC_CTL_EV_PROFILE_VENDOR_CFG ? ENOTSUP : EINVAL;
    if (profile.head.state == MRC_CTL_PROFILE_INIT && mask & CONTENTS)
        return EINVAL;
    error = check_ops(attr, mask, false);
    if (error)
        return error;
    fill(&profile, attr, mask, ev_count);
    return mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP ? get_fields(attr) : 0;
}
