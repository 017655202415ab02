/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_paths.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

void ctl_paths_end(struct ctl_paths *paths)
{
    free(paths->slots);
    *paths = (struct ctl_paths){0};
}

/* FNV-1a. */
static uint32_t hash(const uint8_t dgid[16], uint32_t path)
{
    uint32_t value = 2166136261u;

    for (int byte = 0; byte < 16; byte++)
        value = (value ^ dgid[byte]) * 16777619u;
    return (value ^ path) * 16777619u;
}

static struct ctl_path *slot_of(const struct ctl_paths *paths, const uint8_t dgid[16], uint32_t path)
{
    for (uint32_t at = hash(dgid, path);; at++) {
        struct ctl_path *slot = &paths->slots[at & (paths->slot_count - 1)];
        if (!slot->state || (slot->path == path && !memcmp(slot->dgid, dgid, 16)))
            return slot;
    }
}

/* False: no memory. */
static bool make_room(struct ctl_paths *paths)
{
    struct ctl_paths wider = {.slot_count = paths->slot_count ? paths->slot_count * 2 : FIRST_SLOTS};

    if (paths->used < paths->slot_count / 2)
        return true;
    wider.slots = calloc(wider.slot_count, sizeof *wider.slots);
    if (!wider.slots)
        return false;
    for (uint32_t at = 0; at < paths->slot_count; at++) {
        const struct ctl_path *old = &paths->slots[at];
        if (old->state)
            *slot_of(&wider, old->dgid, old->path) = *old;
    }
    wider.used = paths->used;
    ctl_paths_end(paths);
    *paths = wider;
    return true;
}

static bool is_state(uint32_t state)
{
    return state == MRC_CTL_EV_GOOD || state == MRC_CTL_EV_ASSUMED_BAD || state == MRC_CTL_EV_DENIED;
}

bool ctl_paths_note(struct ctl_paths *paths, const uint8_t dgid[16], uint32_t path, uint32_t state)
{
    struct ctl_path *slot;
    uint32_t before;

    if (path >= CTL_MOST_PATHS || !is_state(state) || !make_room(paths))
        return false;
    slot = slot_of(paths, dgid, path);
    before = slot->state ? slot->state : MRC_CTL_EV_GOOD;
    paths->used += !slot->state;
    *slot = (struct ctl_path){.path = path, .state = state};
    memcpy(slot->dgid, dgid, sizeof slot->dgid);
    return before != state;
}

uint32_t ctl_paths_worst(const struct ctl_paths *paths, uint8_t worst[CTL_MOST_PATHS])
{
    uint32_t count = 0;

    memset(worst, 0, CTL_MOST_PATHS);
    for (uint32_t at = 0; at < paths->slot_count; at++) {
        const struct ctl_path *slot = &paths->slots[at];
        if (!slot->state)
            continue;
        count += !worst[slot->path];
        if (slot->state > worst[slot->path])
            worst[slot->path] = slot->state;
    }
    return count;
}
