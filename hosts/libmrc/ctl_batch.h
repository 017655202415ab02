/* SPDX-License-Identifier: Apache-2.0 */
/* EV probes of one call, and their answers. Not locked. */
#ifndef LIBMRC_CTL_BATCH_H
#define LIBMRC_CTL_BATCH_H

#include "mrc_testbed_ctl.h"

#include <stdbool.h>

struct ctl_batch {
    uint64_t first_token; /* of `count` in a row: one for each request */
    int count, answered;
    const struct mrc_ctl_ep_req *requests;
    struct mrc_ctl_ep_rsp *answers; /* in order of arrival */
    bool *seen;   /* by request */
    struct ctl_batch *next;
};

/* 0, ENOMEM, EINVAL for a request that cannot be a probe, ENOTSUP for one of another format than STEV. */
int ctl_batch_begin(struct ctl_batch *batch, const struct mrc_ctl_ep_req *requests, int count,
                    struct mrc_ctl_ep_rsp *answers);
void ctl_batch_end(struct ctl_batch *batch);

/* False if it is no answer to any of `batches`, or the second to one request. */
bool ctl_batch_answer(struct ctl_batch *batches, uint64_t token, uint32_t port, uint64_t rtt_ns);

#endif
