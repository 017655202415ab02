/* SPDX-License-Identifier: Apache-2.0 */
/* How an EV becomes the bits that stand in packets. Pure functions; they return 0 or an errno. */
#ifndef LIBMRC_CTL_EXPAND_H
#define LIBMRC_CTL_EXPAND_H

#include "mrc_testbed_ctl.h"

#define CTL_MOST_FIELDS 32
#define CTL_EV_BITS 32 /* of our EVs, in packets and in what a controller names them by */

/* Whether these fields can stand in packets as `widths` say. E2BIG: more fields than `widths`, or one that is wider
   than its own. EINVAL: a value outside its field. */
int ctl_fields_fit(const struct mrc_ctl_ev_fmt_field *widths, int width_count, const struct mrc_ctl_ev_field *fields,
                   int field_count);

/* Expands `value`, an EV with as many bits as the masks of `fields` have, into `bits`, most significant bit first.
   Beyond the widths' sum `bits` is zero. As ctl_fields_fit, and EINVAL for a value with more bits. */
int ctl_expand(const struct mrc_ctl_ev_fmt_field *widths, int width_count, const struct mrc_ctl_ev_field *fields,
               int field_count, uint32_t value, uint8_t bits[MRC_CTL_EV_MAX_BYTES]);

#endif
