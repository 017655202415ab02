/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_expand.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static uint32_t low_bits(uint32_t count)
{
    return count >= 32 ? UINT32_MAX : (1u << count) - 1;
}

static int field_fits(const struct mrc_ctl_ev_field *field, uint32_t room)
{
    if (field->width > room || field->width > 32)
        return E2BIG;
    if (!field->width || (field->init_val | field->mask) & ~low_bits(field->width))
        return EINVAL;
    if (field->min_val > field->max_val || field->max_val & ~low_bits(__builtin_popcount(field->mask)))
        return EINVAL;
    return 0;
}

static int bits_in_masks(const struct mrc_ctl_ev_field *fields, int count)
{
    int bits = 0;

    for (int index = 0; index < count; index++)
        bits += __builtin_popcount(fields[index].mask);
    return bits;
}

int ctl_fields_fit(const struct mrc_ctl_ev_fmt_field *widths, int width_count, const struct mrc_ctl_ev_field *fields,
                   int field_count)
{
    if (field_count <= 0)
        return EINVAL;
    if (field_count > width_count)
        return E2BIG;
    for (int index = 0; index < field_count; index++) {
        int error = field_fits(&fields[index], widths[index].width);
        if (error)
            return error;
    }
    return bits_in_masks(fields, field_count) > CTL_EV_BITS ? E2BIG : 0;
}

/* The field's value: `value` gives one bit for each of the mask's, from bit *unused - 1 downwards. */
static uint32_t overlaid(const struct mrc_ctl_ev_field *field, uint32_t value, int *unused)
{
    uint32_t result = field->init_val & ~field->mask;

    for (int bit = 31; bit >= 0; bit--)
        if (field->mask >> bit & 1)
            result |= (value >> --*unused & 1) << bit;
    return result;
}

static void append(uint8_t *bits, int *filled, uint32_t value, int width)
{
    for (int bit = width - 1; bit >= 0; bit--, ++*filled)
        if (bit < 32 && value >> bit & 1)
            bits[*filled / 8] |= 0x80 >> *filled % 8;
}

static bool fit_into_ev(const struct mrc_ctl_ev_fmt_field *widths, int count)
{
    int bits = 0;

    for (int index = 0; index < count; index++)
        bits += widths[index].width;
    return bits <= MRC_CTL_EV_MAX_BYTES * 8;
}

int ctl_expand(const struct mrc_ctl_ev_fmt_field *widths, int width_count, const struct mrc_ctl_ev_field *fields,
               int field_count, uint32_t value, uint8_t bits[MRC_CTL_EV_MAX_BYTES])
{
    int filled = 0, unused, error;

    memset(bits, 0, MRC_CTL_EV_MAX_BYTES);
    error = ctl_fields_fit(widths, width_count, fields, field_count);
    if (error)
        return error;
    if (!fit_into_ev(widths, width_count))
        return E2BIG;
    unused = bits_in_masks(fields, field_count);
    if (value & ~low_bits(unused))
        return EINVAL;
    for (int index = 0; index < field_count; index++)
        append(bits, &filled, overlaid(&fields[index], value, &unused), widths[index].width);
    return 0;
}
