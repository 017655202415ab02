/* SPDX-License-Identifier: Apache-2.0 */
/* EV events that wait to be polled. A full queue loses new events, and counts them. Not locked. */
#ifndef LIBMRC_CTL_QUEUE_H
#define LIBMRC_CTL_QUEUE_H

#include "mrc_testbed_ctl.h"

#include <stdbool.h>
#include <stddef.h>

#define CTL_OLD_EVENT_BYTES 48 /* below API 1.0.1: without the state */

struct ctl_queue {
    struct mrc_ctl_ev_event *events;
    uint32_t capacity, first, count, lost;
};

/* 0 or ENOMEM. */
int ctl_queue_begin(struct ctl_queue *queue, uint32_t capacity);
void ctl_queue_end(struct ctl_queue *queue);

/* False if it is lost: the next that finds room says in its drop_count how many were. */
bool ctl_queue_put(struct ctl_queue *queue, const struct mrc_ctl_ev_event *event);

/* Takes the oldest, `most` at most, and writes the first `bytes` of each, one after another. Returns how many. */
int ctl_queue_take(struct ctl_queue *queue, int most, void *events, size_t bytes);

#endif
