/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ctl_queue_begin(struct ctl_queue *queue, uint32_t capacity)
{
    *queue = (struct ctl_queue){.events = calloc(capacity, sizeof *queue->events), .capacity = capacity};
    return queue->events ? 0 : ENOMEM;
}

void ctl_queue_end(struct ctl_queue *queue)
{
    free(queue->events);
    *queue = (struct ctl_queue){0};
}

bool ctl_queue_put(struct ctl_queue *queue, const struct mrc_ctl_ev_event *event)
{
    struct mrc_ctl_ev_event *place;

    if (queue->count == queue->capacity) {
        if (queue->lost < UINT32_MAX)
            queue->lost++;
        return false;
    }
    place = &queue->events[(queue->first + queue->count++) % queue->capacity];
    *place = *event;
    place->drop_count = queue->lost;
    queue->lost = 0;
    return true;
}

int ctl_queue_take(struct ctl_queue *queue, int most, void *events, size_t bytes)
{
    int taken = 0;

    for (; taken < most && queue->count; taken++, queue->count--) {
        memcpy((char *)events + taken * bytes, &queue->events[queue->first], bytes);
        queue->first = (queue->first + 1) % queue->capacity;
    }
    return taken;
}
