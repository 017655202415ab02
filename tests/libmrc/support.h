/* What the tests of the verbs library share: a device with one CQ of each kind, one region, and QPs joined in pairs. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mrc_testbed.h"

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);         \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)
#define CHECK_FAILS(call, error) CHECK((errno = 0, (call)) == -1 && errno == (error))
#define CHECK_NULL(call, error) CHECK((errno = 0, (call)) == NULL && errno == (error))

enum { HALF = 65536, WRITABLE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

struct world {
    struct ibv_device **list;
    struct ibv_context *verbs;
    struct mrc_context *mrc;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    uint8_t *memory; /* sent from the first half, received in the second */
    struct mrc_cq *send_cq, *recv_cq;
    struct ibv_qp_cap cap; /* of QPs */
    int sq_sig_all;
    union ibv_gid gid;
};

struct pair {
    struct mrc_qp *from, *to;
};

void open_world(struct world *world, int cqe);
void close_world(struct world *world);
struct mrc_qp *make_qp(struct world *world);
uint32_t number_of(struct mrc_qp *qp);
void to_init(struct mrc_qp *qp);
void to_rtr(struct world *world, struct mrc_qp *qp, uint32_t peer);
void to_rts(struct mrc_qp *qp);
struct pair make_pair(struct world *world);
void destroy_pair(struct pair *pair);
/* A write of `length` bytes from the region's start to the start of its second half. */
struct ibv_send_wr write_of(struct world *world, struct ibv_sge *sge, uint32_t length, uint64_t wr_id, unsigned flags);
int post_write(struct world *world, struct mrc_qp *qp, uint32_t length, uint64_t wr_id, unsigned flags);
int post_immediate(struct world *world, struct mrc_qp *qp, uint32_t length, uint64_t wr_id, uint32_t imm_data);
int post_receive(struct mrc_qp *qp, uint64_t wr_id);
/* Polls until there is a completion. */
struct ibv_wc next_of(struct mrc_cq *cq);
void expect(struct mrc_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Has the daemon of the test do what it does for this port. */
void trigger(struct world *world, uint8_t port);

typedef void test_function(void);
test_function test_device, test_absent, test_objects, test_refusals, test_nulls, test_states, test_attributes,
    test_ports, test_write, test_chain, test_unsignaled, test_inline,
    test_room, test_receives, test_many, test_overflow,
    test_destroy, test_left, test_broken, test_channel, test_solicited, test_unacknowledged, test_async, test_verbs,
    test_fork, test_fork_alone, test_waits, test_threads, test_shared, test_life, test_reader, test_contexts,
    test_opcodes, test_again, test_closing, test_flood;

#endif
