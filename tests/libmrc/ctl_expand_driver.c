/* SPDX-License-Identifier: Apache-2.0 */
/* Expands EVs. A line of stdin: count of format fields, their widths, count of EV fields, each as width init min max
   mask, the value. A line of stdout: the error, and the 32 bytes in hexadecimal. */
#include "ctl_expand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 64

static uint32_t number(void)
{
    uint32_t value;

    if (scanf("%" SCNu32, &value) != 1)
        exit(2);
    return value;
}

static void one(int width_count)
{
    struct mrc_ctl_ev_fmt_field widths[MOST];
    struct mrc_ctl_ev_field fields[MOST];
    uint8_t bits[MRC_CTL_EV_MAX_BYTES];
    int field_count;

    for (int index = 0; index < width_count; index++)
        widths[index].width = number();
    field_count = number();
    for (int index = 0; index < field_count; index++) {
        fields[index].width = number();
        fields[index].init_val = number();
        fields[index].min_val = number();
        fields[index].max_val = number();
        fields[index].mask = number();
    }
    printf("%d ", ctl_expand(widths, width_count, fields, field_count, number(), bits));
    for (int byte = 0; byte < MRC_CTL_EV_MAX_BYTES; byte++)
        printf("%02x", bits[byte]);
    printf("\n");
}

int main(void)
{
    int width_count;

    while (scanf("%d", &width_count) == 1)
        one(width_count);
    return 0;
}
