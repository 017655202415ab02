/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint's own EVs, and the profiles numbered 0 that stand for them. */
#include "ctl_profiles.h"

#include <string.h>

#define ALL_GIVEN (MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT | \
                   MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK)
#define PATH_BITS 12

static const struct mrc_ctl_ev_fmt_field own_widths[CTL_OWN_FIELDS] = {{4}, {4}, {8}, {16}};
const struct mrc_ctl_ev_field ctl_own_fields[CTL_OWN_FIELDS] = {
    {.width = 4},
    {.width = 4, .max_val = 0xf, .mask = 0xf},
    {.width = 8, .max_val = 0xff, .mask = 0xff},
    {.width = 16},
};

void ctl_ev_write(struct mrc_ctl_ev *ev, uint32_t path)
{
    uint8_t bits[MRC_CTL_EV_MAX_BYTES];
    uint32_t value = 0;

    memset(ev, 0, sizeof *ev);
    if (ctl_expand(own_widths, CTL_OWN_FIELDS, ctl_own_fields, CTL_OWN_FIELDS, path, bits))
        return;
    for (int byte = 0; byte < CTL_EV_BITS / 8; byte++)
        value = value << 8 | bits[byte];
    memcpy(ev->val, &value, sizeof value);
    ev->port = (path >> 8) + 1;
}

int ctl_ev_path(const struct mrc_ctl_ev *ev)
{
    uint32_t value;

    memcpy(&value, ev->val, sizeof value);
    for (int byte = sizeof value; byte < MRC_CTL_EV_MAX_BYTES; byte++)
        if (ev->val[byte])
            return -1;
    if (value >> (16 + PATH_BITS) || (ev->port && ev->port != (value >> 24) + 1))
        return -1;
    return value >> 16;
}

void ctl_profiles_begin(struct ctl_profiles *profiles)
{
    struct ctl_fmt *fmt = &profiles->fmt[0];
    struct ctl_head own = {.id = CTL_OWN_PROFILE, .state = MRC_CTL_PROFILE_ONLINE};

    memset(profiles, 0, sizeof *profiles);
    fmt->head = own;
    fmt->mode = MRC_CTL_EV_FMT_MODE_STEV;
    memcpy(fmt->fields, own_widths, sizeof own_widths);
    fmt->field_count = CTL_OWN_FIELDS;
    profiles->ev[0] = (struct ctl_ev){
        .head = own, .given = ALL_GIVEN, .fmt_id = CTL_OWN_PROFILE, .min_active = 1,
        .event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD};
    profiles->cc[0] = (struct ctl_cc){.head = own, .algorithm = CTL_ALGORITHM};
}
