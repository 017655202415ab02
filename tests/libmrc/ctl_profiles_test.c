/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of profiles, without a daemon. */
#include "ctl_check.h"
#include "ctl_profiles.h"

#include <string.h>

#define EVS 16
#define INIT MRC_CTL_PROFILE_INIT
#define OFFLINE MRC_CTL_PROFILE_OFFLINE
#define ONLINE MRC_CTL_PROFILE_ONLINE
#define NOWHERE ((enum mrc_ctl_profile_state)3)

static struct ctl_profiles profiles;
static struct mrc_ctl_ev_fmt_field halves[] = {{16}, {16}};

static int fmt_step(uint64_t id, enum mrc_ctl_profile_state state, int mask)
{
    struct mrc_ctl_ev_fmt_profile_attr attr = {
        .profile_state = state,
        .ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV,
        .ev_fmt_op = {.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, .fmt_fields = halves, .fmt_field_count = 2},
    };

    return ctl_fmt_modify(&profiles, id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE | mask);
}

static enum mrc_ctl_profile_state fmt_state(uint64_t id)
{
    struct mrc_ctl_ev_fmt_profile_attr attr = {.profile_state = NOWHERE};

    EQUAL(ctl_fmt_query(&profiles, id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
    return attr.profile_state;
}

static int fmt_fields(struct mrc_ctl_ev_fmt_field *fields, int count)
{
    struct mrc_ctl_ev_fmt_profile_attr attr = {
        .ev_fmt_op = {.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, .fmt_fields = fields, .fmt_field_count = count}};

    return ctl_fmt_modify(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_OP);
}

static void lives(void)
{
    static const int good[3][3] = {{1, 1, 0}, {1, 1, 1}, {0, 1, 1}};
    enum mrc_ctl_profile_state next;

    for (int now = INIT; now < 3; now++)
        for (int to = INIT; to < 3; to++) {
            int error = ctl_life(now, to, INIT, MRC_CTL_EV_PROFILE_STATE, &next);
            EQUAL(error, good[now][to] ? 0 : EINVAL);
            EQUAL(ctl_life(now, to, now, MRC_CTL_EV_PROFILE_CUR_STATE, &next), 0);
            EQUAL(next, now);
            if (to != now)
                EQUAL(ctl_life(now, to, to, MRC_CTL_EV_PROFILE_CUR_STATE, &next), EINVAL);
        }
    EQUAL(ctl_life(OFFLINE, NOWHERE, INIT, MRC_CTL_EV_PROFILE_STATE, &next), EINVAL);
    EQUAL(ctl_life(OFFLINE, (enum mrc_ctl_profile_state)-1, INIT, MRC_CTL_EV_PROFILE_STATE, &next), EINVAL);
}

static void format_lives(void)
{
    EQUAL(fmt_state(7), INIT);
    EQUAL(fmt_step(7, ONLINE, MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);
    EQUAL(fmt_step(7, OFFLINE, 0), EINVAL); /* without a mode */
    EQUAL(fmt_step(7, INIT, MRC_CTL_EV_FMT_PROFILE_MODE), EINVAL);
    EQUAL(fmt_state(7), INIT);
    EQUAL(fmt_step(7, OFFLINE, MRC_CTL_EV_FMT_PROFILE_MODE), 0);
    EQUAL(fmt_step(7, ONLINE, 0), EINVAL); /* without fields */
    EQUAL(fmt_state(7), OFFLINE);
    EQUAL(fmt_step(7, ONLINE, MRC_CTL_EV_FMT_PROFILE_OP), 0);
    EQUAL(fmt_step(7, ONLINE, MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);
    EQUAL(fmt_step(7, OFFLINE, MRC_CTL_EV_FMT_PROFILE_MODE), EINVAL);
    EQUAL(fmt_step(7, INIT, 0), EINVAL);
    EQUAL(fmt_step(7, OFFLINE, 0), 0);
    EQUAL(fmt_step(7, ONLINE, 0), 0); /* the fields are still there */
    EQUAL(fmt_step(7, OFFLINE, 0), 0);
    EQUAL(fmt_step(7, INIT, 0), 0);
    EQUAL(fmt_step(7, OFFLINE, MRC_CTL_EV_FMT_PROFILE_MODE), 0);
    EQUAL(fmt_step(7, ONLINE, 0), EINVAL); /* INIT has forgotten them */
}

static void format_fields_and_masks(void)
{
    struct mrc_ctl_ev_fmt_field wide[] = {{16}, {17}}, empty[] = {{0}}, room[4], many[33];
    struct mrc_ctl_ev_fmt_profile_attr attr = {.ev_fmt_op = {.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS}};

    memset(many, 1, sizeof many);
    EQUAL(fmt_fields(wide, 2), E2BIG);
    EQUAL(fmt_fields(many, 33), E2BIG);
    EQUAL(fmt_fields(many, 32), 0);
    EQUAL(fmt_fields(empty, 1), EINVAL);
    EQUAL(fmt_fields(NULL, 1), EINVAL);
    EQUAL(fmt_fields(halves, 0), EINVAL);
    EQUAL(fmt_fields(halves, -1), EINVAL);
    EQUAL(fmt_fields(halves, 2), 0);
    attr.ev_fmt_op.fmt_field_count = 1;
    attr.ev_fmt_op.fmt_fields = room;
    EQUAL(ctl_fmt_query(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_OP), E2BIG);
    EQUAL(attr.ev_fmt_op.fmt_field_count, 2);
    attr.ev_fmt_op.fmt_field_count = 4;
    EQUAL(ctl_fmt_query(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_OP | MRC_CTL_EV_FMT_PROFILE_MODE), 0);
    EQUAL(attr.ev_fmt_op.fmt_field_count, 2);
    EQUAL(room[1].width, 16);
    EQUAL(attr.ev_fmt_mode, MRC_CTL_EV_FMT_MODE_STEV);
    attr.ev_fmt_op.fmt_fields = NULL;
    EQUAL(ctl_fmt_query(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);
    attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
    EQUAL(ctl_fmt_query(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_OP), EINVAL);
    EQUAL(ctl_fmt_query(&profiles, 99, &attr, MRC_CTL_EV_FMT_PROFILE_MODE), EINVAL);
    EQUAL(ctl_fmt_query(&profiles, 7, &attr, 0x10), EINVAL);
    EQUAL(ctl_fmt_modify(&profiles, 7, &attr, MRC_CTL_EV_FMT_VENDOR_CFG), ENOTSUP);
    attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6;
    EQUAL(ctl_fmt_modify(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_MODE), ENOTSUP);
    attr.ev_fmt_mode = 3;
    EQUAL(ctl_fmt_modify(&profiles, 7, &attr, MRC_CTL_EV_FMT_PROFILE_MODE), EINVAL);
}

static struct mrc_ctl_ev_profile_attr ev_attr(enum mrc_ctl_profile_state state)
{
    return (struct mrc_ctl_ev_profile_attr){
        .profile_state = state,
        .ev_mode = MRC_CTL_EV_MODE_AUTO,
        .ev_fmt_profile_id = 7,
        .ev_count = EVS,
        .ev_min_active = 1,
        .ev_event_mask = MRC_CTL_EV_ASSUMED_BAD,
    };
}

static int ev_step(enum mrc_ctl_profile_state state, int mask)
{
    struct mrc_ctl_ev_profile_attr attr = ev_attr(state);

    return ctl_ev_modify(&profiles, 9, &attr, MRC_CTL_EV_PROFILE_STATE | mask, EVS, false);
}

/* Format 7 is OFFLINE with fields when it begins. */
static void ev_lives(void)
{
    const int for_online = MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK;
    struct mrc_ctl_ev_profile_attr attr = ev_attr(OFFLINE);

    EQUAL(ev_step(OFFLINE, 0), EINVAL);
    EQUAL(ev_step(OFFLINE, MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT), 0);
    EQUAL(ev_step(ONLINE, MRC_CTL_EV_PROFILE_MIN_ACTIVE), EINVAL);
    EQUAL(ev_step(ONLINE, for_online), EINVAL); /* the format is not */
    EQUAL(fmt_step(7, ONLINE, 0), 0);
    EQUAL(ev_step(ONLINE, for_online), 0);
    EQUAL(fmt_step(7, OFFLINE, 0), EBUSY);
    EQUAL(ev_step(ONLINE, MRC_CTL_EV_PROFILE_MIN_ACTIVE), EINVAL);
    EQUAL(ev_step(ONLINE, MRC_CTL_EV_PROFILE_EVENT_MASK), 0);
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, MRC_CTL_EV_PROFILE_STATE, EVS, true), EBUSY);
    EQUAL(ev_step(OFFLINE, 0), 0);
    EQUAL(fmt_step(7, OFFLINE, 0), 0);
    EQUAL(ev_step(INIT, MRC_CTL_EV_PROFILE_EVENT_MASK), EINVAL);
    EQUAL(ev_step(INIT, 0), 0);
}

static void ev_values(void)
{
    struct mrc_ctl_ev_profile_attr attr = ev_attr(OFFLINE);
    const int start = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE;

    attr.ev_mode = MRC_CTL_EV_MODE_EXP;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start, EVS, false), ENOTSUP);
    attr.ev_mode = MRC_CTL_EV_MODE_GEN;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start, EVS, false), ENOTSUP);
    attr.ev_mode = 0;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start, EVS, false), EINVAL);
    attr = ev_attr(OFFLINE);
    attr.ev_count = EVS + 1;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | MRC_CTL_EV_PROFILE_COUNT, EVS, false), E2BIG);
    attr.ev_min_active = 2;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | MRC_CTL_EV_PROFILE_MIN_ACTIVE, EVS, false), ENOTSUP);
    attr.ev_min_active = EVS + 1;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | MRC_CTL_EV_PROFILE_MIN_ACTIVE, EVS, false), EINVAL);
    attr.ev_event_mask = MRC_CTL_EV_DENIED;
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | MRC_CTL_EV_PROFILE_EVENT_MASK, EVS, false), EINVAL);
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | MRC_CTL_EV_PROFILE_VENDOR_CFG, EVS, false), ENOTSUP);
    EQUAL(ctl_ev_modify(&profiles, 9, &attr, start | 0x200, EVS, false), EINVAL);
    EQUAL(ctl_ev_query(&profiles, 9, &attr, MRC_CTL_EV_PROFILE_STATE, EVS), 0);
    EQUAL(attr.profile_state, INIT); /* none of them did anything */
    EQUAL(ctl_ev_query(&profiles, 9, &attr, MRC_CTL_EV_PROFILE_MODE, EVS), EINVAL);
}

static int own_op(enum mrc_ctl_ev_op op, int count, bool modify)
{
    struct mrc_ctl_ev_op_entry entry = {.state = MRC_CTL_EV_DENIED};
    struct mrc_ctl_ev_profile_attr attr = {.ev_op = {.op = op, .entries = &entry, .entry_count = count}};
    int mask = MRC_CTL_EV_PROFILE_EV_OP;

    return modify ? ctl_ev_modify(&profiles, 0, &attr, mask, EVS, false) : ctl_ev_query(&profiles, 0, &attr, mask, EVS);
}

static void own_profile(void)
{
    struct mrc_ctl_ev_field fields[4];
    struct mrc_ctl_ev_profile_attr attr = {.ev_fields_op = {.op = MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS, .fields = fields}};
    const int all = 0x7f;

    EQUAL(ctl_ev_query(&profiles, 0, &attr, all, EVS), 0);
    EQUAL(attr.profile_state, ONLINE);
    EQUAL(attr.cur_profile_state, ONLINE);
    EQUAL(attr.ev_mode, MRC_CTL_EV_MODE_AUTO);
    EQUAL(attr.ev_count, EVS);
    EQUAL(attr.ev_event_mask, 3);
    EQUAL(ctl_ev_query(&profiles, 0, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP, EVS), E2BIG);
    EQUAL(attr.ev_fields_op.field_count, 4);
    EQUAL(ctl_ev_query(&profiles, 0, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP, EVS), 0);
    EQUAL(fields[2].mask, 0xff);
    EQUAL(ctl_ev_query(&profiles, 0, &attr, 0x180, EVS), EINVAL); /* both operations */
    attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
    EQUAL(ctl_ev_modify(&profiles, 0, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP, EVS, false), EINVAL);
    attr.profile_state = OFFLINE;
    EQUAL(ctl_ev_modify(&profiles, 0, &attr, MRC_CTL_EV_PROFILE_STATE, EVS, false), EBUSY);
    EQUAL(fmt_step(0, OFFLINE, 0), EBUSY);
    EQUAL(own_op(MRC_CTL_EV_OP_MODIFY_EV_STATE, 1, true), 0);
    EQUAL(own_op(MRC_CTL_EV_OP_MODIFY_EV_STATE, 1, false), EINVAL);
    EQUAL(own_op(MRC_CTL_EV_OP_REPLACE_EV, 1, true), EINVAL);
    EQUAL(own_op(MRC_CTL_EV_OP_QUERY_EV_STATE, 1, true), 0);
    EQUAL(own_op(MRC_CTL_EV_OP_QUERY_EV_ARRAY, 1, false), 0);
    EQUAL(own_op(MRC_CTL_EV_OP_QUERY_EV_ARRAY, -1, false), EINVAL);
    EQUAL(own_op((enum mrc_ctl_ev_op)4, 1, true), EINVAL);
}

static int cc_step(uint64_t id, enum mrc_ctl_profile_state state, const char *algorithm, int mask, bool used)
{
    struct mrc_ctl_cc_nscc_cfg constants = {.max_cwnd = 1};
    struct mrc_ctl_cc_profile_attr attr = {
        .profile_state = state, .algorithm = algorithm, .cc_config = &constants};

    return ctl_cc_modify(&profiles, id, &attr, MRC_CTL_CC_PROFILE_STATE | mask, used);
}

static void cc_lives(void)
{
    struct mrc_ctl_cc_profile_attr attr = {.algorithm = NULL};

    EQUAL(ctl_cc_query(&profiles, 0, &attr, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM), 0);
    EQUAL(attr.profile_state, ONLINE);
    CHECK(!strcmp(attr.algorithm, "uet-1.0-nscc"));
    EQUAL(ctl_cc_query(&profiles, 0, &attr, MRC_CTL_CC_PROFILE_CONFIG), ENOTSUP);
    EQUAL(cc_step(0, ONLINE, NULL, MRC_CTL_CC_PROFILE_CONFIG, false), ENOTSUP);
    EQUAL(cc_step(0, OFFLINE, NULL, 0, false), EBUSY);
    EQUAL(cc_step(5, OFFLINE, "uet-1.0-nscc", 0, false), EINVAL);
    EQUAL(cc_step(5, OFFLINE, "cubic", MRC_CTL_CC_PROFILE_ALGORITHM, false), EINVAL);
    EQUAL(cc_step(5, OFFLINE, "uet-1.0-nscc", MRC_CTL_CC_PROFILE_ALGORITHM, false), 0);
    EQUAL(cc_step(5, OFFLINE, NULL, MRC_CTL_CC_PROFILE_ALGORITHM, false), 0);
    EQUAL(cc_step(5, ONLINE, NULL, 0, false), EINVAL);
    EQUAL(cc_step(5, ONLINE, NULL, MRC_CTL_CC_PROFILE_CONFIG, false), ENOTSUP);
    EQUAL(cc_step(5, INIT, NULL, 0, true), EBUSY);
    EQUAL(cc_step(5, INIT, NULL, 0, false), 0);
    EQUAL(cc_step(5, OFFLINE, NULL, MRC_CTL_CC_PROFILE_VENDOR_CFG, false), ENOTSUP);
}

static void room_for_sixteen(void)
{
    const int mode = MRC_CTL_EV_FMT_PROFILE_MODE;

    for (uint64_t id = 100; id < 114; id++)
        EQUAL(fmt_step(id, OFFLINE, mode), 0);
    EQUAL(fmt_step(UINT64_MAX, OFFLINE, mode), E2BIG); /* 0, 7 and fourteen are there */
    EQUAL(fmt_step(UINT64_MAX, INIT, 0), 0);
    EQUAL(fmt_step(103, INIT, 0), 0);
    EQUAL(fmt_step(UINT64_MAX, OFFLINE, mode), 0);
    EQUAL(fmt_state(103), INIT);
    EQUAL(fmt_state(113), OFFLINE);
}

static void evs_in_memory(void)
{
    const uint32_t value = 0x0305c350;
    struct mrc_ctl_ev ev;

    ctl_ev_write(&ev, 0x305);
    EQUAL(ev.port, 4);
    EQUAL(ctl_ev_path(&ev), 0x305);
    memcpy(ev.val, &value, sizeof value);
    EQUAL(ctl_ev_path(&ev), 0x305); /* the UDP source port does not count */
    ev.port = 0;
    EQUAL(ctl_ev_path(&ev), 0x305);
    ev.port = 3;
    EQUAL(ctl_ev_path(&ev), -1);
    ev.port = 4;
    ev.val[31] = 1;
    EQUAL(ctl_ev_path(&ev), -1);
    ctl_ev_write(&ev, 0xfff);
    EQUAL(ev.port, 16);
    EQUAL(ctl_ev_path(&ev), 0xfff);
    ev.val[3] |= 0x10; /* bit 28 */
    EQUAL(ctl_ev_path(&ev), -1);
}

int main(void)
{
    ctl_profiles_begin(&profiles);
    lives();
    format_lives();
    format_fields_and_masks();
    ev_lives();
    ev_values();
    own_profile();
    cc_lives();
    room_for_sixteen();
    evs_in_memory();
    return 0;
}
