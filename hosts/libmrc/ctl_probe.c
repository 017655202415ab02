/* SPDX-License-Identifier: Apache-2.0 */
/* EV probes: a batch is sent, and its answers are waited for. */
#include "ctl_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS 1000000000LL
#define MILLISECOND_NS 1000000LL

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

void ctl_on_probed(struct mt_connection *connection, const struct mt_probed *record)
{
    (void)connection;
    ctl_batch_answer(ctl_state.batches, record->token, record->port, record->rtt_ns);
}

/* From this host, which may go without saying, to another. */
static int check_gids(const struct mt_connection *connection, const struct mrc_ctl_ep_req *requests, int count)
{
    static const uint8_t none[16];

    for (int index = 0; index < count; index++) {
        const uint8_t *from = requests[index].sgid.raw, *to = requests[index].dgid.raw;
        if (memcmp(from, none, sizeof none) && memcmp(from, connection->hello.gid, sizeof none))
            return EINVAL;
        if (!memcmp(to, none, sizeof none) || !memcmp(to, connection->hello.gid, sizeof none))
            return EINVAL;
    }
    return 0;
}

/* The daemon replies to a probe only to refuse it. */
static void expect_refusals(struct mt_connection *connection, const struct ctl_batch *batch, struct mt_waiter *waiters,
                            union mt_record *refusal)
{
    for (int index = 0; index < batch->count; index++) {
        waiters[index] = (struct mt_waiter){
            .next = connection->waiters, .token = batch->first_token + index, .reply = refusal};
        connection->waiters = &waiters[index];
    }
}

static void expect_no_more(struct mt_connection *connection, const struct ctl_batch *batch)
{
    struct mt_waiter **place = &connection->waiters;

    while (*place)
        if ((*place)->token - batch->first_token < (uint64_t)batch->count)
            *place = (*place)->next;
        else
            place = &(*place)->next;
}

static int error_in(const struct mt_reply *refusal)
{
    if (refusal->error && refusal->text[0])
        mt_say("%.*s", MT_TEXT_BYTES, refusal->text);
    return refusal->error;
}

static void write_probe(union mt_record *record, const struct ctl_batch *batch, int index)
{
    const struct mrc_ctl_ep_req *request = &batch->requests[index];

    *record = (union mt_record){.probe = {.kind = MT_PROBE, .ev = ctl_ev_path(&request->req_ev)}};
    record->probe.token = batch->first_token + index;
    memcpy(record->probe.dgid, request->dgid.raw, sizeof record->probe.dgid);
}

static int send_probes(struct mt_connection *connection, const struct ctl_batch *batch)
{
    union mt_record records[MT_MOST_POSTS];
    int error = 0;

    for (int sent = 0; sent < batch->count && !error;) {
        unsigned count = 0;
        while (count < MT_MOST_POSTS && sent < batch->count)
            write_probe(&records[count++], batch, sent++);
        error = mt_send(connection, records, count);
    }
    return error;
}

static int wait_for_answers(struct mt_connection *connection, const struct ctl_batch *batch, uint32_t timeout_ns,
                            const struct mt_reply *refusal)
{
    int64_t deadline = now_ns() + timeout_ns;

    for (;;) {
        int64_t left;
        int error;
        mt_drain(connection);
        if (batch->answered == batch->count)
            return 0;
        error = mt_usable(connection);
        if (!error)
            error = error_in(refusal);
        if (error)
            return error;
        left = deadline - now_ns();
        if (left <= 0)
            return ETIMEDOUT;
        mt_wait(connection, (left + MILLISECOND_NS - 1) / MILLISECOND_NS);
    }
}

static void unlink_batch(const struct ctl_batch *batch)
{
    struct ctl_batch **place = &ctl_state.batches;

    while (*place != batch)
        place = &(*place)->next;
    *place = batch->next;
}

/* Locked. 0 or errno. */
static int exchange(struct mt_connection *connection, struct ctl_batch *batch, uint32_t timeout_ns)
{
    struct mt_waiter *waiters = calloc(batch->count ? batch->count : 1, sizeof *waiters);
    union mt_record refusal = {.reply = {.error = 0}};
    int error;

    if (!waiters)
        return ENOMEM;
    batch->first_token = connection->last_token + 1;
    connection->last_token += batch->count;
    batch->next = ctl_state.batches;
    ctl_state.batches = batch;
    expect_refusals(connection, batch, waiters, &refusal);
    error = send_probes(connection, batch);
    if (!error)
        error = wait_for_answers(connection, batch, timeout_ns, &refusal.reply);
    expect_no_more(connection, batch);
    unlink_batch(batch);
    free(waiters);
    return error;
}

int mrc_ctl_ep_batch_send_wait(struct mrc_context *mrc, uint8_t traffic_class, enum mrc_ctl_ep_op_type op,
                               struct mrc_ctl_ep_req *requests, int count, uint32_t timeout_ns,
                               struct mrc_ctl_ep_rsp *answers, int *answered)
{
    struct mt_connection *connection;
    struct ctl_batch batch;
    int error;

    (void)traffic_class; /* probes go in the class of all probes */
    if (!mrc || !answered || count < 0 || (count && (!requests || !answers)))
        return mt_fail(EINVAL);
    *answered = 0;
    connection = ctl_connection(mrc);
    error = ctl_enter(connection);
    if (error)
        return mt_fail(error);
    if (op != MRC_CTL_EP_OP_EV_PROBE)
        return ctl_leave(op == MRC_CTL_EP_OP_PORT_STATUS_UPDATE ? ENOTSUP : EINVAL);
    error = check_gids(connection, requests, count);
    if (!error)
        error = ctl_batch_begin(&batch, requests, count, answers);
    if (error)
        return ctl_leave(error);
    error = exchange(connection, &batch, timeout_ns);
    *answered = batch.answered;
    ctl_batch_end(&batch);
    return ctl_leave(error);
}
