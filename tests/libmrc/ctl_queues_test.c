/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of EV events, the states of EVs, and the answers to probes, without a daemon. */
#include "ctl_batch.h"
#include "ctl_check.h"
#include "ctl_paths.h"
#include "ctl_profiles.h"
#include "ctl_queue.h"

#include <string.h>

static bool put(struct ctl_queue *queue, uint64_t number)
{
    return ctl_queue_put(queue, &(struct mrc_ctl_ev_event){.profile_id = number, .state = MRC_CTL_EV_GOOD});
}

static void losses_are_counted_where_they_were(void)
{
    struct mrc_ctl_ev_event events[4];
    struct ctl_queue queue;

    EQUAL(ctl_queue_begin(&queue, 2), 0);
    CHECK(put(&queue, 1) && put(&queue, 2) && !put(&queue, 3) && !put(&queue, 4));
    EQUAL(ctl_queue_take(&queue, 1, events, sizeof *events), 1);
    CHECK(put(&queue, 5) && !put(&queue, 6));
    EQUAL(events[0].profile_id, 1);
    EQUAL(ctl_queue_take(&queue, 4, events, sizeof *events), 2);
    EQUAL(events[0].profile_id, 2);
    EQUAL(events[0].drop_count, 0);
    EQUAL(events[1].profile_id, 5);
    EQUAL(events[1].drop_count, 2);
    CHECK(put(&queue, 7) && put(&queue, 8));
    EQUAL(ctl_queue_take(&queue, 4, events, sizeof *events), 2);
    EQUAL(events[0].drop_count, 1);
    EQUAL(events[1].drop_count, 0);
    EQUAL(ctl_queue_take(&queue, 4, events, sizeof *events), 0);
    ctl_queue_end(&queue);
}

/* Whatever is put and taken, what comes out and what is lost add up. */
static void random_traffic_adds_up(unsigned seed)
{
    struct mrc_ctl_ev_event events[8];
    struct ctl_queue queue;
    uint64_t number = 0, last = 0;

    srandom(seed);
    EQUAL(ctl_queue_begin(&queue, 1 + random() % 7), 0);
    for (int turn = 0; turn < 2000; turn++) {
        int taken = 0;
        if (random() % 3)
            put(&queue, ++number);
        else
            taken = ctl_queue_take(&queue, random() % 9, events, sizeof *events);
        for (int index = 0; index < taken; index++) {
            EQUAL(events[index].profile_id, last + events[index].drop_count + 1);
            last = events[index].profile_id;
        }
    }
    ctl_queue_end(&queue);
}

static void old_programs_get_shorter_events(void)
{
    unsigned char memory[3 * CTL_OLD_EVENT_BYTES + 1];
    struct mrc_ctl_ev_event second;
    struct ctl_queue queue;

    memset(memory, 0xee, sizeof memory);
    EQUAL(ctl_queue_begin(&queue, 3), 0);
    CHECK(put(&queue, 1) && put(&queue, 2) && put(&queue, 3));
    EQUAL(ctl_queue_take(&queue, 3, memory, CTL_OLD_EVENT_BYTES), 3);
    memcpy(&second, memory + CTL_OLD_EVENT_BYTES, CTL_OLD_EVENT_BYTES);
    EQUAL(second.profile_id, 2);
    EQUAL(memory[sizeof memory - 1], 0xee);
    ctl_queue_end(&queue);
}

static void changes_are_told_from_repetitions(void)
{
    const uint8_t one[16] = {1}, two[16] = {2};
    uint8_t worst[CTL_MOST_PATHS];
    struct ctl_paths paths = {0};

    EQUAL(ctl_paths_worst(&paths, worst), 0);
    CHECK(!ctl_paths_note(&paths, one, 0x101, MRC_CTL_EV_GOOD));
    CHECK(ctl_paths_note(&paths, one, 0x101, MRC_CTL_EV_ASSUMED_BAD));
    CHECK(!ctl_paths_note(&paths, one, 0x101, MRC_CTL_EV_ASSUMED_BAD));
    CHECK(ctl_paths_note(&paths, two, 0x101, MRC_CTL_EV_DENIED));
    CHECK(!ctl_paths_note(&paths, one, CTL_MOST_PATHS, MRC_CTL_EV_DENIED));
    CHECK(!ctl_paths_note(&paths, one, 0x101, 0));
    CHECK(!ctl_paths_note(&paths, one, 0x101, 3));
    CHECK(!ctl_paths_note(&paths, one, 0x102, MRC_CTL_EV_GOOD));
    EQUAL(ctl_paths_worst(&paths, worst), 2);
    EQUAL(worst[0x101], MRC_CTL_EV_DENIED);
    EQUAL(worst[0x102], MRC_CTL_EV_GOOD);
    EQUAL(worst[0x103], 0);
    CHECK(ctl_paths_note(&paths, two, 0x101, MRC_CTL_EV_GOOD));
    ctl_paths_worst(&paths, worst);
    EQUAL(worst[0x101], MRC_CTL_EV_ASSUMED_BAD);
    ctl_paths_end(&paths);
}

static void many_peers(void)
{
    uint8_t worst[CTL_MOST_PATHS];
    struct ctl_paths paths = {0};

    for (int peer = 0; peer < 64; peer++)
        for (uint32_t path = 0; path < 64; path++) {
            uint8_t dgid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = peer};
            CHECK(!ctl_paths_note(&paths, dgid, path, MRC_CTL_EV_GOOD));
            CHECK(ctl_paths_note(&paths, dgid, path, MRC_CTL_EV_ASSUMED_BAD));
            CHECK(!ctl_paths_note(&paths, dgid, path, MRC_CTL_EV_ASSUMED_BAD));
        }
    EQUAL(paths.used, 64 * 64);
    EQUAL(ctl_paths_worst(&paths, worst), 64);
    ctl_paths_end(&paths);
}

static struct mrc_ctl_ep_req request(uint16_t id, uint32_t path)
{
    struct mrc_ctl_ep_req made = {.req_id = id, .ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV};

    ctl_ev_write(&made.req_ev, path);
    return made;
}

static void answers_find_their_batch(void)
{
    struct mrc_ctl_ep_req first[] = {request(7, 1), request(8, 2)}, second[] = {request(7, 3)};
    struct mrc_ctl_ep_rsp of_first[2], of_second[1];
    struct ctl_batch one, two;

    EQUAL(ctl_batch_begin(&one, first, 2, of_first), 0);
    EQUAL(ctl_batch_begin(&two, second, 1, of_second), 0);
    one.first_token = 40;
    two.first_token = 42;
    two.next = &one;
    CHECK(!ctl_batch_answer(&two, 39, 1, 5));
    CHECK(!ctl_batch_answer(&two, 43, 1, 5));
    CHECK(ctl_batch_answer(&two, 41, 3, 1000));
    CHECK(!ctl_batch_answer(&two, 41, 3, 1000)); /* again */
    CHECK(ctl_batch_answer(&two, 42, 1, UINT64_MAX));
    CHECK(ctl_batch_answer(&two, 40, 2, 2000));
    EQUAL(one.answered, 2);
    EQUAL(of_first[0].req_id, 8); /* as they arrived */
    EQUAL(of_first[0].port, 3);
    EQUAL(of_first[0].rtt, 1000);
    EQUAL(of_first[1].req_id, 7);
    EQUAL(of_first[1].adj_svc_time, 0);
    EQUAL(of_second[0].req_id, 7);
    EQUAL(of_second[0].rtt, UINT32_MAX);
    CHECK(!ctl_batch_answer(NULL, 40, 2, 2000));
    ctl_batch_end(&one);
    ctl_batch_end(&two);
}

static void requests_are_checked(void)
{
    struct mrc_ctl_ep_req made = request(1, 2);
    struct mrc_ctl_ep_rsp answer;
    struct ctl_batch batch;

    made.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6;
    EQUAL(ctl_batch_begin(&batch, &made, 1, &answer), ENOTSUP);
    made.ev_fmt_mode = 0;
    EQUAL(ctl_batch_begin(&batch, &made, 1, &answer), EINVAL);
    made = request(1, 2);
    made.req_ev.port = 9;
    EQUAL(ctl_batch_begin(&batch, &made, 1, &answer), EINVAL);
    EQUAL(ctl_batch_begin(&batch, NULL, 0, NULL), 0);
    ctl_batch_end(&batch);
}

int main(void)
{
    losses_are_counted_where_they_were();
    for (unsigned seed = 0; seed < 20; seed++)
        random_traffic_adds_up(seed);
    old_programs_get_shorter_events();
    changes_are_told_from_repetitions();
    many_peers();
    answers_find_their_batch();
    requests_are_checked();
    return 0;
}
