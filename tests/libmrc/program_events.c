/* Completion channels and asynchronous events. */
#include "support.h"

static bool is_readable(int fd, int milliseconds) {
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    return poll(&waiting, 1, milliseconds) == 1;
}

struct channel_world {
    struct world world;
    struct mrc_comp_channel *channel;
    struct mrc_cq *first_cq, *first_recv_cq;
    int fd;
};

static void open_channel(struct channel_world *all) {
    open_world(&all->world, 16);
    CHECK(mrc_create_comp_channel(all->world.mrc, &all->channel) == 0);
    CHECK(mrc_get_comp_channel_fd(all->channel, &all->fd) == 0);
    all->first_cq = all->world.send_cq;
    all->first_recv_cq = all->world.recv_cq;
    CHECK((all->world.send_cq = mrc_create_cq(all->world.mrc, 16, "sent", all->channel, 0)));
    CHECK((all->world.recv_cq = mrc_create_cq(all->world.mrc, 16, "received", all->channel, 0)));
}

static void close_channel(struct channel_world *all) {
    CHECK(mrc_destroy_cq(all->world.send_cq) == 0 && mrc_destroy_cq(all->world.recv_cq) == 0);
    CHECK(mrc_destroy_comp_channel(all->channel) == 0);
    all->world.send_cq = all->first_cq;
    all->world.recv_cq = all->first_recv_cq;
    close_world(&all->world);
}

static void expect_event(struct channel_world *all, const char *name) {
    struct mrc_cq *cq;
    void *context;
    CHECK(mrc_get_cq_event(all->channel, &cq, &context) == 0 && strcmp(context, name) == 0);
    mrc_ack_cq_events(cq, 1);
}

void test_channel(void) {
    struct channel_world all;
    struct mrc_cq *cq;
    void *context;
    open_channel(&all);
    struct pair pair = make_pair(&all.world);
    CHECK(mrc_req_notify_cq(all.world.send_cq, 0) == 0 && mrc_req_notify_cq(all.world.recv_cq, 0) == 0);
    CHECK(post_receive(pair.to, 1) == 0 && post_receive(pair.to, 1) == 0);
    CHECK(!is_readable(all.fd, 0));
    CHECK(post_immediate(&all.world, pair.from, 8, 2, 0) == 0); /* nobody polls: the library does */
    expect_event(&all, "received");
    expect_event(&all, "sent");
    CHECK(post_immediate(&all.world, pair.from, 8, 2, 0) == 0);
    CHECK(!is_readable(all.fd, 50)); /* not armed again */
    CHECK(fcntl(all.fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK_FAILS(mrc_get_cq_event(all.channel, &cq, &context), EAGAIN);
    CHECK(mrc_req_notify_cq(all.world.send_cq, 0) == 0);
    CHECK(post_write(&all.world, pair.from, 8, 3, IBV_SEND_SIGNALED) == 0 && is_readable(all.fd, 10000));
    destroy_pair(&pair); /* its event is still there */
    expect_event(&all, "sent");
    CHECK(!is_readable(all.fd, 0));
    close_channel(&all);
}

/* An event that nobody fetched goes with its CQ. */
void test_reader(void) {
    struct channel_world all;
    open_channel(&all);
    struct pair pair = make_pair(&all.world);
    CHECK(mrc_req_notify_cq(all.world.send_cq, 0) == 0);
    CHECK(post_write(&all.world, pair.from, 8, 3, IBV_SEND_SIGNALED) == 0 && is_readable(all.fd, 10000));
    destroy_pair(&pair);
    CHECK(mrc_destroy_cq(all.world.send_cq) == 0);
    CHECK(!is_readable(all.fd, 0));
    CHECK((all.world.send_cq = mrc_create_cq(all.world.mrc, 16, "sent", all.channel, 0)));
    close_channel(&all);
}

void test_solicited(void) {
    struct channel_world all;
    open_channel(&all);
    struct pair pair = make_pair(&all.world);
    CHECK(mrc_req_notify_cq(all.world.send_cq, 1) == 0);
    CHECK(post_write(&all.world, pair.from, 8, 3, IBV_SEND_SIGNALED) == 0);
    expect(all.world.send_cq, 3, IBV_WC_SUCCESS);
    CHECK(!is_readable(all.fd, 50));
    CHECK(mrc_req_notify_cq(all.world.recv_cq, 1) == 0 && post_receive(pair.to, 4) == 0);
    CHECK(post_immediate(&all.world, pair.from, 8, 5, 0) == 0);
    expect_event(&all, "received");
    destroy_pair(&pair);
    close_channel(&all);
}

static void *acknowledge(void *cq) {
    usleep(100000);
    mrc_ack_cq_events(cq, 1);
    return NULL;
}

/* A CQ stays until its events are acknowledged. */
void test_unacknowledged(void) {
    struct channel_world all;
    struct mrc_cq *cq;
    void *context;
    pthread_t thread;
    open_channel(&all);
    struct pair pair = make_pair(&all.world);
    CHECK(mrc_req_notify_cq(all.world.send_cq, 0) == 0);
    CHECK(post_write(&all.world, pair.from, 8, 3, IBV_SEND_SIGNALED) == 0);
    CHECK(mrc_get_cq_event(all.channel, &cq, &context) == 0);
    destroy_pair(&pair);
    CHECK(pthread_create(&thread, NULL, acknowledge, cq) == 0);
    CHECK(mrc_destroy_cq(cq) == 0);
    pthread_join(thread, NULL);
    CHECK((all.world.send_cq = mrc_create_cq(all.world.mrc, 16, "sent", all.channel, 0)));
    close_channel(&all);
}

/* For port 3 the daemon says PORT_ERR, for port 4 that the newest QP has a fatal error. */
void test_async(void) {
    struct world world;
    struct ibv_async_event event;
    struct mrc_async_event mrc_event;
    open_world(&world, 8);
    struct mrc_qp *qp = make_qp(&world);
    int fd = world.verbs->async_fd;
    CHECK(!is_readable(fd, 0));
    trigger(&world, 3);
    CHECK(is_readable(fd, 10000));
    CHECK(ibv_get_async_event(world.verbs, &event) == 0 && event.event_type == IBV_EVENT_PORT_ERR);
    CHECK(event.element.port_num == 3);
    ibv_ack_async_event(&event);
    trigger(&world, 4);
    CHECK(mrc_get_async_event(world.mrc, &mrc_event) == 0 && mrc_event.event_type == IBV_EVENT_QP_FATAL);
    CHECK(mrc_event.element.qp == qp && (*(struct ibv_qp **)qp)->qp_context == &world);
    mrc_ack_async_event(&mrc_event);
    trigger(&world, 4);
    CHECK(ibv_get_async_event(world.verbs, &event) == 0 && event.element.qp == *(struct ibv_qp **)qp);
    ibv_ack_async_event(&event);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK_FAILS(ibv_get_async_event(world.verbs, &event), EAGAIN);
    trigger(&world, 4);
    CHECK(mrc_destroy_qp(qp) == 0); /* with an event that nobody has fetched */
    CHECK_FAILS(ibv_get_async_event(world.verbs, &event), EAGAIN);
    close_world(&world);
}

static void *wait_for_event(void *verbs) {
    struct ibv_async_event event;
    int got = ibv_get_async_event(verbs, &event);
    return (void *)(intptr_t)(got == 0 ? 1000 + (int)event.event_type : errno);
}

static intptr_t join(pthread_t thread) {
    void *result;
    CHECK(pthread_join(thread, &result) == 0);
    return (intptr_t)result;
}

/* Two contexts: both hear of a port, one of its own QP; a thread that waits in a context that is closed comes back. */
void test_contexts(void) {
    struct world world;
    struct ibv_async_event event;
    pthread_t first, second;
    open_world(&world, 8);
    struct ibv_context *other = ibv_open_device(world.list[0]);
    CHECK(other && other != world.verbs);
    CHECK(pthread_create(&first, NULL, wait_for_event, world.verbs) == 0);
    CHECK(pthread_create(&second, NULL, wait_for_event, other) == 0);
    trigger(&world, 3);
    CHECK(join(first) == 1000 + IBV_EVENT_PORT_ERR && join(second) == 1000 + IBV_EVENT_PORT_ERR);
    struct mrc_qp *qp = make_qp(&world);
    CHECK(pthread_create(&second, NULL, wait_for_event, other) == 0);
    trigger(&world, 4);
    CHECK(ibv_get_async_event(world.verbs, &event) == 0 && event.event_type == IBV_EVENT_QP_FATAL);
    ibv_ack_async_event(&event);
    usleep(20000);
    CHECK(ibv_close_device(other) == 0);
    CHECK(join(second) == EBADF);
    CHECK(mrc_destroy_qp(qp) == 0);
    close_world(&world);
}
