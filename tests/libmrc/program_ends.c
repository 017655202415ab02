/* Errors, overflow, destruction with work outstanding. */
#include "support.h"

void test_overflow(void) {
    struct world world;
    struct ibv_wc wc[8];
    struct ibv_async_event event;
    open_world(&world, 4);
    struct pair pair = make_pair(&world);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK(post_write(&world, pair.from, 8, i, IBV_SEND_SIGNALED) == 0);
    }
    trigger(&world, 1); /* its answer comes after the completions */
    CHECK(ibv_get_async_event(world.verbs, &event) == 0 && event.event_type == IBV_EVENT_CQ_ERR);
    CHECK(event.element.cq->cq_context == &world);
    ibv_ack_async_event(&event);
    CHECK(mrc_poll_cq(world.send_cq, 8, wc) == 4 && wc[3].wr_id == 3);
    CHECK_FAILS(mrc_poll_cq(world.send_cq, 8, wc), EIO);
    destroy_pair(&pair);
    close_world(&world);
}

/* The daemon is slow: all is outstanding when its QP goes, and what has completed leaves the CQ. */
void test_destroy(void) {
    struct world world;
    struct ibv_wc wc[64];
    open_world(&world, 64);
    struct pair first = make_pair(&world), second = make_pair(&world);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(post_write(&world, first.from, 8, i, IBV_SEND_SIGNALED) == 0);
        CHECK(post_write(&world, second.from, 8, 100 + i, IBV_SEND_SIGNALED) == 0);
    }
    CHECK(post_receive(first.to, 1) == 0);
    destroy_pair(&first);
    for (uint64_t i = 0; i < 10; i++) {
        expect(world.send_cq, 100 + i, IBV_WC_SUCCESS);
    }
    CHECK(mrc_poll_cq(world.send_cq, 64, wc) == 0);
    for (uint64_t i = 0; i < 5; i++) {
        CHECK(post_write(&world, second.from, 8, i, IBV_SEND_SIGNALED) == 0);
    }
    expect(world.send_cq, 0, IBV_WC_SUCCESS);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    CHECK(mrc_modify_qp(second.from, &error, IBV_QP_STATE, NULL, 0) == 0); /* flushed, and then gone */
    destroy_pair(&second);
    CHECK(mrc_poll_cq(world.send_cq, 64, wc) == 0);
    close_world(&world);
}

/* Closing takes all that is left, also what is in use. */
void test_left(void) {
    struct world world;
    struct mrc_comp_channel *channel;
    open_world(&world, 8);
    struct pair pair = make_pair(&world);
    CHECK(mrc_create_comp_channel(world.mrc, &channel) == 0);
    CHECK(mrc_create_cq(world.mrc, 8, NULL, channel, 0));
    struct mrc_qp_hint_init_attr init = {.attr = {1, 1, 1, {0}}};
    CHECK(mrc_create_qp_hint(world.mrc, &init));
    CHECK(post_write(&world, pair.from, 8, 1, IBV_SEND_SIGNALED) == 0);
    CHECK(mrc_destroy_context(world.mrc) == 0);
    struct ibv_qp_init_attr plain = {.send_cq = ibv_create_cq(world.verbs, 1, NULL, NULL, 0), .qp_type = IBV_QPT_RC};
    plain.recv_cq = plain.send_cq;
    CHECK(plain.send_cq && ibv_create_qp(world.pd, &plain));
    CHECK(ibv_close_device(world.verbs) == 0);
    ibv_free_device_list(world.list);
    free(world.memory);
}

static void fail_with_wrong_key(struct world *world, struct mrc_qp *qp) {
    struct ibv_sge sge;
    struct ibv_send_wr wr = write_of(world, &sge, 8, 1, 0), *bad;
    wr.wr.rdma.rkey ^= 0xff00;
    CHECK(mrc_post_send(qp, &wr, &bad) == 0);
}

void test_broken(void) {
    struct world world;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    open_world(&world, 64);
    struct pair pair = make_pair(&world);
    CHECK(post_receive(pair.from, 50) == 0 && post_receive(pair.from, 51) == 0);
    fail_with_wrong_key(&world, pair.from); /* not signaled: an error is a completion all the same */
    for (uint64_t i = 2; i < 6; i++) {
        CHECK(post_write(&world, pair.from, 8, i, 0) == 0);
    }
    expect(world.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 2; i < 6; i++) {
        expect(world.send_cq, i, IBV_WC_WR_FLUSH_ERR);
    }
    expect(world.recv_cq, 50, IBV_WC_WR_FLUSH_ERR);
    expect(world.recv_cq, 51, IBV_WC_WR_FLUSH_ERR);
    CHECK(post_write(&world, pair.from, 8, 9, 0) == 0 && post_receive(pair.from, 10) == 0);
    expect(world.send_cq, 9, IBV_WC_WR_FLUSH_ERR);
    expect(world.recv_cq, 10, IBV_WC_WR_FLUSH_ERR);
    CHECK(mrc_modify_qp(pair.from, &reset, IBV_QP_STATE, NULL, 0) == 0);
    to_init(pair.from);
    to_rtr(&world, pair.from, number_of(pair.to));
    to_rts(pair.from);
    CHECK(post_write(&world, pair.from, 8, 12, IBV_SEND_SIGNALED) == 0);
    expect(world.send_cq, 12, IBV_WC_SUCCESS);
    destroy_pair(&pair);
    close_world(&world);
}

/* 0: goes on; else the program ends as one does that checks its calls. */
#define ENDS_IF(condition) \
    if (condition) {       \
        exit(3);           \
    }

static void live(struct ibv_context *verbs) {
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    uint8_t *memory = calloc(1, 4096);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, 4096, WRITABLE) : NULL;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(verbs);
    struct ibv_cq *cq = channel ? ibv_create_cq(verbs, 64, NULL, channel, 0) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    init.cap = (struct ibv_qp_cap){8, 8, 1, 1, 0};
    struct ibv_qp *qp = mr && cq ? ibv_create_qp(pd, &init) : NULL;
    ENDS_IF(!qp);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    ENDS_IF(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num};
    attr.ah_attr.is_global = 1;
    ENDS_IF(ibv_modify_qp(qp, &attr, 0x101181));
    attr.qp_state = IBV_QPS_RTS;
    ENDS_IF(ibv_modify_qp(qp, &attr, 0x10001));
    struct ibv_recv_wr receive = {.wr_id = 9}, *bad_receive;
    ENDS_IF(ibv_post_recv(qp, &receive, &bad_receive));
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    for (uint64_t i = 0; i < 6; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        wr.wr.rdma.remote_addr = (uintptr_t)memory + 2048;
        wr.wr.rdma.rkey = mr->rkey;
        ENDS_IF(ibv_req_notify_cq(cq, 0) || ibv_post_send(qp, &wr, &bad));
        struct ibv_cq *ready;
        void *context;
        ENDS_IF(ibv_get_cq_event(channel, &ready, &context));
        ibv_ack_cq_events(ready, 1);
        int got;
        while ((got = ibv_poll_cq(cq, 1, &wc)) == 0) {
        }
        ENDS_IF(got < 0 || wc.status != IBV_WC_SUCCESS);
    }
    ENDS_IF(ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel));
    ENDS_IF(ibv_dereg_mr(mr) || ibv_dealloc_pd(pd));
    free(memory);
}

/* A whole life, with a daemon that may go, or talk nonsense, at any record. Ends with 0 or 3, and ends. */
void test_life(void) {
    int count;
    struct ibv_port_attr port;
    struct ibv_device **list = ibv_get_device_list(&count);
    ENDS_IF(!list || count == 0);
    struct ibv_context *verbs = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ENDS_IF(!verbs || ibv_query_port(verbs, 1, &port));
    live(verbs);
    ENDS_IF(ibv_close_device(verbs));
}

static void *await_completion(void *channel) {
    struct mrc_cq *cq;
    int failed = mrc_get_cq_event(channel, &cq, NULL);
    return (void *)(intptr_t)(failed ? errno : 0);
}

static void *await_event(void *verbs) {
    struct ibv_async_event event;
    int failed = ibv_get_async_event(verbs, &event);
    return (void *)(intptr_t)(failed ? errno : 1000 + (int)event.event_type);
}

struct waiters {
    struct ibv_context *verbs;
    struct mrc_comp_channel *channel;
    pthread_t of_completion, of_event;
};

static void start_waiters(struct waiters *waiters, struct world *world) {
    CHECK((waiters->verbs = ibv_open_device(world->list[0])));
    CHECK(mrc_create_comp_channel(world->mrc, &waiters->channel) == 0);
    CHECK(pthread_create(&waiters->of_completion, NULL, await_completion, waiters->channel) == 0);
    CHECK(pthread_create(&waiters->of_event, NULL, await_event, waiters->verbs) == 0);
    usleep(20000);
}

static void end_waiters(struct waiters *waiters) {
    void *completion, *event;
    CHECK(pthread_join(waiters->of_completion, &completion) == 0 && completion == (void *)EIO);
    CHECK(pthread_join(waiters->of_event, &event) == 0 && event == (void *)(1000 + IBV_EVENT_DEVICE_FATAL));
    CHECK(mrc_destroy_comp_channel(waiters->channel) == 0 && ibv_close_device(waiters->verbs) == 0);
}

/* The daemon goes when the program asks for port 4, while two threads wait in the library. */
void test_closing(void) {
    struct world world;
    struct waiters waiters;
    struct ibv_port_attr port;
    struct ibv_wc wc;
    struct ibv_async_event event;
    open_world(&world, 64);
    start_waiters(&waiters, &world);
    struct pair pair = make_pair(&world);
    CHECK(post_receive(pair.to, 1) == 0);
    CHECK(post_write(&world, pair.from, 8, 2, 0) == 0 && post_write(&world, pair.from, 8, 3, 0) == 0);
    CHECK(ibv_query_port(world.verbs, 4, &port) == EIO);
    expect(world.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    expect(world.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    expect(world.recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
    CHECK_FAILS(mrc_poll_cq(world.send_cq, 1, &wc), EIO);
    struct pollfd waiting = {.fd = world.verbs->async_fd, .events = POLLIN};
    CHECK(poll(&waiting, 1, 5000) == 1);
    CHECK(ibv_get_async_event(world.verbs, &event) == 0 && event.event_type == IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
    CHECK_FAILS(ibv_get_async_event(world.verbs, &event), EIO);
    CHECK(poll(&waiting, 1, 0) == 0);
    CHECK(post_write(&world, pair.from, 8, 2, 0) == EIO && post_receive(pair.to, 1) == EIO);
    CHECK_NULL(ibv_alloc_pd(world.verbs), EIO);
    CHECK_NULL(mrc_create_cq(world.mrc, 1, NULL, NULL, 0), EIO);
    CHECK(mrc_req_notify_cq(world.send_cq, 0) == EIO);
    end_waiters(&waiters);
    destroy_pair(&pair);
    close_world(&world);
}
