/* For benchmarks/verbs.py. `idle S`: polls an empty CQ for S seconds and prints the share of a core that it took.
 * `seen N`: posts N writes, one after the other, and prints when the completion of each was seen, in ns. */
#include <arpa/inet.h>
#include <mrc_testbed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void need(int good, const char *what) {
    if (good) return;
    perror(what);
    exit(1);
}

static struct mrc_cq *cq;
static struct mrc_qp *qp;
static struct ibv_mr *mr;
static char memory[4096];

static void open_nic(void) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "no RDMA device");
    struct ibv_context *verbs = ibv_open_device(list[0]);
    struct mrc_context *context = mrc_create_context(verbs, NULL);
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    need(context && pd, "device");
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    cq = mrc_create_cq(context, 64, NULL, NULL, 0);
    struct mrc_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .pd = pd, .cap = {16, 4, 1, 1, 0}};
    need(mr && cq && (qp = mrc_create_qp(context, &wanted)), "queue pair");
}

static void connect_qp(void) { /* to a QP that nobody has */
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = 16,
                              .ah_attr = {.is_global = 1, .port_num = 1}};
    inet_pton(AF_INET6, "::ffff:10.64.0.2", &rtr.ah_attr.grh.dgid);
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
    int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    need(!mrc_modify_qp(qp, &init, IBV_QP_STATE, NULL, 0) && !mrc_modify_qp(qp, &rtr, to_rtr, NULL, 0) &&
             !mrc_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0),
         "mrc_modify_qp");
}

static void idle(double length) {
    struct ibv_wc wc;
    double begin = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (seconds(CLOCK_MONOTONIC) < begin + length) need(!mrc_poll_cq(cq, 1, &wc), "a completion of nothing");
    printf("idle=%.2f\n", 100 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - used) / length);
}

static void seen(int count) {
    struct ibv_wc wc;
    connect_qp();
    for (int i = 0; i < count; i++) {
        struct ibv_sge part = {(uintptr_t)memory, 8, mr->lkey};
        struct ibv_send_wr one = {.sg_list = &part, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
        need(!mrc_post_send(qp, &one, &bad), "mrc_post_send");
        while (!mrc_poll_cq(cq, 1, &wc)) continue;
        need(!wc.status, "completion");
        printf("%.0f\n", seconds(CLOCK_MONOTONIC) * 1e9);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    need(argc == 3, "idle SECONDS, or seen COUNT");
    open_nic();
    if (!strcmp(argv[1], "idle")) idle(atof(argv[2]));
    else seen(atoi(argv[2]));
    return 0;
}
