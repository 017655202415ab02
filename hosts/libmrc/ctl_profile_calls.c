/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about profiles: the tables answer, the daemon only for states of EVs. */
#include "ctl_calls.h"

#include <errno.h>

#define NEEDS_EVS (MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EV_OP)

/* Whether a QP of this process names the profile, by a bit of mrc_qp_attr_mask. */
static bool is_used(const struct mt_connection *connection, uint64_t id, int bit)
{
    for (int bucket = 0; bucket < MT_QP_BUCKETS; bucket++)
        for (const struct mrc_qp *qp = connection->qps[bucket]; qp; qp = qp->next) {
            uint64_t named = bit == MRC_QP_EV_PROFILE_ID ? qp->mrc_attr.profile.ev_profile_id
                                                         : qp->mrc_attr.profile.cc_profile_id;
            if (qp->mrc_given & bit && named == id)
                return true;
        }
    return false;
}

int mrc_ctl_modify_ev_fmt_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                  int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;

    return error ? mt_fail(error) : ctl_leave(ctl_fmt_modify(&ctl_state.profiles, id, attr, mask));
}

int mrc_ctl_query_ev_fmt_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                 int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;

    return error ? mt_fail(error) : ctl_leave(ctl_fmt_query(&ctl_state.profiles, id, attr, mask));
}

int mrc_ctl_modify_cc_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;
    bool used;

    if (error)
        return mt_fail(error);
    used = is_used(ctl_connection(mrc), id, MRC_QP_CC_PROFILE_ID);
    return ctl_leave(ctl_cc_modify(&ctl_state.profiles, id, attr, mask, used));
}

int mrc_ctl_query_cc_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;

    return error ? mt_fail(error) : ctl_leave(ctl_cc_query(&ctl_state.profiles, id, attr, mask));
}

/* Denies the EV to all peers, or allows it again. */
static int set_state(struct mt_connection *connection, uint32_t path, enum mrc_ctl_ev_state state)
{
    union mt_record request = {.modify_ev = {.kind = MT_MODIFY_EV, .ev = path, .denied = state == MRC_CTL_EV_DENIED}};

    if (state != MRC_CTL_EV_DENIED && state != MRC_CTL_EV_GOOD)
        return EINVAL;
    return mt_request(connection, &request, NULL);
}

static int get_array(struct mrc_ctl_ev_profile_attr *attr, const uint8_t worst[CTL_MOST_PATHS], int count)
{
    struct mrc_ctl_ev_op_entry *entry = attr->ev_op.entries;
    int room = attr->ev_op.entry_count;

    attr->ev_op.entry_count = count;
    if (room < count)
        return E2BIG;
    for (uint32_t path = 0; path < CTL_MOST_PATHS; path++)
        if (worst[path]) {
            ctl_ev_write(&entry->ev, path);
            entry++->state = worst[path];
        }
    return 0;
}

/* The operation of `attr`, entry by entry up to the first that fails. */
static int operate(struct mt_connection *connection, struct mrc_ctl_ev_profile_attr *attr,
                   const uint8_t worst[CTL_MOST_PATHS], int count)
{
    if (attr->ev_op.op == MRC_CTL_EV_OP_QUERY_EV_ARRAY)
        return get_array(attr, worst, count);
    for (int index = 0; index < attr->ev_op.entry_count; index++) {
        struct mrc_ctl_ev_op_entry *entry = &attr->ev_op.entries[index];
        int path = ctl_ev_path(&entry->ev), error = 0;
        if (path < 0 || !worst[path])
            return ENOENT;
        if (attr->ev_op.op == MRC_CTL_EV_OP_QUERY_EV_STATE)
            entry->state = worst[path];
        else
            error = set_state(connection, path, entry->state);
        if (error)
            return error;
    }
    return 0;
}

/* Both calls; one of them also modifies. Locked. */
static int ev_profile(struct mt_connection *connection, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask,
                      bool modify)
{
    uint8_t worst[CTL_MOST_PATHS];
    uint32_t count = 0;
    int error = mask & NEEDS_EVS ? ctl_refresh(connection) : 0;

    if (error)
        return error;
    count = ctl_paths_worst(&ctl_state.paths, worst);
    error = modify ? ctl_ev_modify(&ctl_state.profiles, id, attr, mask, count,
                                   is_used(connection, id, MRC_QP_EV_PROFILE_ID))
                   : ctl_ev_query(&ctl_state.profiles, id, attr, mask, count);
    if (error || !(mask & MRC_CTL_EV_PROFILE_EV_OP))
        return error;
    return operate(connection, attr, worst, count);
}

int mrc_ctl_modify_ev_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;

    return error ? mt_fail(error) : ctl_leave(ev_profile(ctl_connection(mrc), id, attr, mask, true));
}

int mrc_ctl_query_ev_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask)
{
    int error = mrc && attr ? ctl_enter(ctl_connection(mrc)) : EINVAL;

    return error ? mt_fail(error) : ctl_leave(ev_profile(ctl_connection(mrc), id, attr, mask, false));
}
