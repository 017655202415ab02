/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_batch.h"

#include "ctl_profiles.h"

#include <errno.h>
#include <stdlib.h>

static int check(const struct mrc_ctl_ep_req *request)
{
    if (request->ev_fmt_mode == MRC_CTL_EV_FMT_MODE_SRV6 || request->ev_fmt_mode == MRC_CTL_EV_FMT_MODE_UDP)
        return ENOTSUP;
    if (request->ev_fmt_mode != MRC_CTL_EV_FMT_MODE_STEV)
        return EINVAL;
    return ctl_ev_path(&request->req_ev) < 0 ? EINVAL : 0;
}

int ctl_batch_begin(struct ctl_batch *batch, const struct mrc_ctl_ep_req *requests, int count,
                    struct mrc_ctl_ep_rsp *answers)
{
    for (int index = 0; index < count; index++) {
        int error = check(&requests[index]);
        if (error)
            return error;
    }
    *batch = (struct ctl_batch){.count = count, .requests = requests, .answers = answers};
    batch->seen = calloc(count ? count : 1, sizeof *batch->seen);
    return batch->seen ? 0 : ENOMEM;
}

void ctl_batch_end(struct ctl_batch *batch)
{
    free(batch->seen);
    batch->seen = NULL;
}

static struct ctl_batch *batch_of(struct ctl_batch *batches, uint64_t token)
{
    while (batches && token - batches->first_token >= (uint64_t)batches->count)
        batches = batches->next;
    return batches;
}

bool ctl_batch_answer(struct ctl_batch *batches, uint64_t token, uint32_t port, uint64_t rtt_ns)
{
    struct ctl_batch *batch = batch_of(batches, token);
    uint64_t index;

    if (!batch)
        return false;
    index = token - batch->first_token;
    if (batch->seen[index])
        return false;
    batch->seen[index] = true;
    batch->answers[batch->answered++] = (struct mrc_ctl_ep_rsp){
        .req_id = batch->requests[index].req_id,
        .port = port,
        .rtt = rtt_ns < UINT32_MAX ? rtt_ns : UINT32_MAX,
    };
    return true;
}
