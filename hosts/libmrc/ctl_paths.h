/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon has said of the EVs to each peer. Not locked. */
#ifndef LIBMRC_CTL_PATHS_H
#define LIBMRC_CTL_PATHS_H

#include "mrc_testbed_ctl.h"

#include <stdbool.h>

#define CTL_MOST_PATHS 4096 /* plane x 256 + uplink, planes below 16 */

struct ctl_path {
    uint8_t dgid[16];
    uint16_t path;
    uint8_t state; /* of mrc_ctl_ev_state; 0: an empty slot */
};

struct ctl_paths {
    struct ctl_path *slots;
    uint32_t slot_count, used; /* slots: a power of two, or none */
};

void ctl_paths_end(struct ctl_paths *paths);

/* Keeps the state of an EV. True if it is another than before; the first one is, unless it is GOOD. Ignores what
   cannot be an EV or a state, and everything when there is no memory. */
bool ctl_paths_note(struct ctl_paths *paths, const uint8_t dgid[16], uint32_t path, uint32_t state);

/* The worst state of each EV over the peers, 0 where there is no EV. Returns how many there are. */
uint32_t ctl_paths_worst(const struct ctl_paths *paths, uint8_t worst[CTL_MOST_PATHS]);

#endif
