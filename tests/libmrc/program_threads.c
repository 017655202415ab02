/* Threads, processes, and how polling waits. */
#include <sys/wait.h>
#include <time.h>

#include "support.h"

enum { THREADS = 64, WRITES = 40 };

/* Plain verbs, through the functions that rdma-core's inline ones call. */
void test_verbs(void) {
    struct world world;
    struct ibv_sge sge;
    struct ibv_wc wc;
    open_world(&world, 8);
    struct ibv_cq *cq = ibv_create_cq(world.verbs, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .qp_context = &world};
    init.cap = world.cap;
    struct ibv_qp *qp = ibv_create_qp(world.pd, &init);
    CHECK(cq && qp && qp->qp_context == &world && qp->state == IBV_QPS_RESET && qp->context == world.verbs);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    CHECK(ibv_modify_qp(qp, &attr, 0x39) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num};
    attr.ah_attr.is_global = 1;
    CHECK(ibv_modify_qp(qp, &attr, 0x129181) == 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(qp, &attr, 0x12e01) == 0);
    struct ibv_recv_wr receive = {.wr_id = 3}, *bad_receive;
    struct ibv_send_wr wr = write_of(&world, &sge, 8, 4, IBV_SEND_SIGNALED), *bad;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    CHECK(ibv_post_recv(qp, &receive, &bad_receive) == 0 && ibv_post_send(qp, &wr, &bad) == 0);
    for (int left = 2; left > 0;) {
        int got = ibv_poll_cq(cq, 1, &wc);
        CHECK(got >= 0 && (got == 0 || wc.status == IBV_WC_SUCCESS));
        left -= got;
    }
    CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS && init.send_cq == cq);
    CHECK(strcmp(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded") == 0);
    CHECK(ibv_event_type_str((enum ibv_event_type)99) && ibv_node_type_str(IBV_NODE_UNKNOWN));
    CHECK(ibv_port_state_str(IBV_PORT_ACTIVE) && ibv_fork_init() == 0);
    CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
    close_world(&world);
}

static int child_result(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void be_child(struct world *world, struct pair *pair) {
    struct ibv_wc wc;
    struct ibv_async_event event;
    struct ibv_port_attr port;
    struct world own;
    CHECK(post_write(world, pair->from, 8, 1, 0) == EPERM && post_receive(pair->to, 1) == EPERM);
    CHECK_FAILS(mrc_poll_cq(world->send_cq, 1, &wc), EPERM);
    CHECK_FAILS(ibv_get_async_event(world->verbs, &event), EPERM);
    CHECK(ibv_query_port(world->verbs, 1, &port) == EPERM && mrc_destroy_qp(pair->from) == EPERM);
    CHECK(ibv_dereg_mr(world->mr) == EPERM && mrc_destroy_cq(world->send_cq) == EPERM);
    CHECK_NULL(ibv_alloc_pd(world->verbs), EPERM);
    CHECK_FAILS(ibv_close_device(world->verbs), EPERM);
    open_world(&own, 8);
    struct pair new_pair = make_pair(&own);
    CHECK(post_write(&own, new_pair.from, 8, 5, IBV_SEND_SIGNALED) == 0);
    expect(own.send_cq, 5, IBV_WC_SUCCESS);
    destroy_pair(&new_pair);
    close_world(&own);
    _exit(0);
}

void test_fork(void) {
    struct world world;
    open_world(&world, 8);
    struct pair pair = make_pair(&world);
    pid_t child = fork();
    if (child == 0) {
        be_child(&world, &pair);
    }
    CHECK(child > 0 && child_result(child) == 0);
    CHECK(post_write(&world, pair.from, 8, 1, IBV_SEND_SIGNALED) == 0);
    expect(world.send_cq, 1, IBV_WC_SUCCESS);
    destroy_pair(&pair);
    close_world(&world);
}

/* The child lives longer than its parent, and holds nothing open: the daemon sees the parent's end. */
void test_fork_alone(void) {
    struct world world;
    open_world(&world, 8);
    if (fork() == 0) {
        pause();
    }
    puts("ready");
    fflush(stdout);
    pause();
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Prints the number of empty polls for each millisecond. */
void test_waits(void) {
    struct world world;
    struct ibv_wc wc;
    open_world(&world, 8);
    double start = seconds();
    long polls = 0;
    for (; polls < 3200; polls++) {
        CHECK(mrc_poll_cq(world.send_cq, 1, &wc) == 0);
    }
    printf("%.3f\n", (double)polls / ((seconds() - start) * 1e3));
    close_world(&world);
}

struct worker {
    pthread_t thread;
    struct world *world;
    struct pair pair;
    int number;
    struct mrc_cq *cq;
};

/* Each its own CQ and QPs, all one connection. */
static void *work(void *argument) {
    struct worker *me = argument;
    struct world mine = *me->world;
    mine.send_cq = me->cq = mrc_create_cq(mine.mrc, WRITES, NULL, NULL, 0);
    CHECK(mine.send_cq);
    me->pair = make_pair(&mine);
    for (uint64_t i = 0; i < WRITES; i++) {
        CHECK(post_write(&mine, me->pair.from, 0, i, IBV_SEND_SIGNALED) == 0);
        if (i % 4 == 3) {
            for (uint64_t j = i - 3; j <= i; j++) {
                expect(mine.send_cq, j, IBV_WC_SUCCESS);
            }
        }
    }
    destroy_pair(&me->pair);
    CHECK(mrc_destroy_cq(mine.send_cq) == 0);
    return NULL;
}

void test_threads(void) {
    struct world world;
    struct worker workers[THREADS];
    open_world(&world, 8);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.world = &world, .number = i};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }
    close_world(&world);
}

static int done;

static void *post_and_poll(void *argument) {
    struct worker *me = argument;
    struct ibv_wc wc[4];
    for (int posted = 0; __atomic_load_n(&done, __ATOMIC_RELAXED) < THREADS * WRITES;) {
        int error = posted < WRITES ? post_write(me->world, me->pair.from, 0, 1, IBV_SEND_SIGNALED) : ENOMEM;
        CHECK(error == 0 || error == ENOMEM);
        posted += error == 0;
        int got = mrc_poll_cq(me->world->send_cq, 4, wc);
        CHECK(got >= 0);
        __atomic_add_fetch(&done, got, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* All of them one QP, one CQ. */
void test_shared(void) {
    struct world world;
    struct worker workers[THREADS];
    open_world(&world, 64);
    struct pair pair = make_pair(&world);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.world = &world, .pair = pair};
        CHECK(pthread_create(&workers[i].thread, NULL, post_and_poll, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }
    CHECK(done == THREADS * WRITES);
    destroy_pair(&pair);
    close_world(&world);
}

enum { FLOOD = 1000 };

static void *poll_flood(void *argument) {
    struct world *world = argument;
    for (uint64_t i = 0; i < FLOOD; i++) {
        expect(world->send_cq, i, IBV_WC_SUCCESS);
    }
    return NULL;
}

/* The daemon of this test does not read for a while: the socket fills, and posting waits for it. */
void test_flood(void) {
    struct world world;
    pthread_t thread;
    open_world(&world, FLOOD);
    world.cap.max_send_wr = 1024;
    struct pair pair = make_pair(&world);
    CHECK(pthread_create(&thread, NULL, poll_flood, &world) == 0);
    for (uint64_t i = 0; i < FLOOD; i++) {
        CHECK(post_write(&world, pair.from, 8, i, IBV_SEND_SIGNALED) == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    destroy_pair(&pair);
    close_world(&world);
}

static void expect_closed_by_exec(void) {
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++) {
        int flags = fcntl(fd, F_GETFD);
        CHECK(flags < 0 || flags & FD_CLOEXEC);
    }
}

/* The whole device, closed and opened again. */
void test_again(void) {
    for (int i = 0; i < 5; i++) {
        struct world world;
        struct mrc_comp_channel *channel;
        open_world(&world, 8);
        CHECK(mrc_create_comp_channel(world.mrc, &channel) == 0 && mrc_destroy_comp_channel(channel) == 0);
        expect_closed_by_exec();
        struct pair pair = make_pair(&world);
        CHECK(post_write(&world, pair.from, 8, 5, IBV_SEND_SIGNALED) == 0);
        expect(world.send_cq, 5, IBV_WC_SUCCESS);
        destroy_pair(&pair);
        close_world(&world);
    }
}
