/* For benchmarks/verbs.py. `idle S`: polls an empty CQ for S seconds and prints the share of a core that it took.
 * `seen N`: posts N writes, one after the other, and prints when the completion of each was seen, in ns.
 * `stream PAIRS S`: h0 writes to h4 in the third slice of S seconds of each three, and prints what is complete. */
#include <arpa/inet.h>
#include <mrc_testbed.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WRITES = 8, BYTES = 64 << 10, CHAINS = 6, PORT = 18515, PATIENCE = 100 };

struct place {
    uint32_t qpn, rkey;
    uint64_t address;
    union ibv_gid gid;
};

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
static char memory[CHAINS * WRITES * BYTES];
static struct ibv_context *verbs;

static void open_nic(void) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "no RDMA device");
    verbs = ibv_open_device(list[0]);
    struct mrc_context *context = mrc_create_context(verbs, NULL);
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    need(context && pd, "device");
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    cq = mrc_create_cq(context, 64, NULL, NULL, 0);
    struct mrc_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .pd = pd, .cap = {CHAINS * WRITES, 4, 1, 1, 0}};
    need(mr && cq && (qp = mrc_create_qp(context, &wanted)), "queue pair");
}

static void connect_qp(const struct place *peer) {
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qpn,
                              .ah_attr = {.is_global = 1, .port_num = 1}};
    rtr.ah_attr.grh.dgid = peer->gid;
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
    struct place nobody = {.qpn = 16};
    inet_pton(AF_INET6, "::ffff:10.64.0.2", &nobody.gid);
    connect_qp(&nobody);
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

static int meet(int sends) { /* h0 and h4, over the management network */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!sends) {
        need(!bind(fd, (void *)&at, sizeof at) && !listen(fd, 1), "bind");
        return accept(fd, NULL, NULL);
    }
    struct hostent *found = gethostbyname("h4-mgmt");
    need(found != NULL, "h4-mgmt");
    memcpy(&at.sin_addr, found->h_addr_list[0], 4);
    for (int tries = 0; connect(fd, (void *)&at, sizeof at); tries++) {
        need(tries < PATIENCE, "connect");
        usleep(50000);
    }
    return fd;
}

static void post_chain(const struct place *peer, int chain) {
    struct ibv_sge part[WRITES];
    struct ibv_send_wr wr[WRITES], *bad;
    for (int i = 0; i < WRITES; i++) {
        uint64_t offset = (uint64_t)(chain * WRITES + i) * BYTES;
        part[i] = (struct ibv_sge){(uintptr_t)memory + offset, BYTES, mr->lkey};
        wr[i] = (struct ibv_send_wr){.sg_list = &part[i], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
        wr[i].next = i + 1 < WRITES ? &wr[i + 1] : NULL;
        wr[i].wr.rdma.remote_addr = peer->address + offset;
        wr[i].wr.rdma.rkey = peer->rkey;
    }
    wr[WRITES - 1].send_flags = IBV_SEND_SIGNALED;
    need(!mrc_post_send(qp, wr, &bad), "mrc_post_send");
}

static double write_until(const struct place *peer, double end, double got) {
    struct ibv_wc wc;
    int under_way = 0, next = 0;
    while (under_way || seconds(CLOCK_MONOTONIC) < end) {
        for (; under_way < CHAINS && seconds(CLOCK_MONOTONIC) < end; under_way++) post_chain(peer, next++ % CHAINS);
        if (!mrc_poll_cq(cq, 1, &wc)) continue;
        need(!wc.status, "completion");
        under_way--;
        printf("got=%.0f\n", got += WRITES * BYTES);
        fflush(stdout);
    }
    return got;
}

static void sleep_until(double at) {
    double left = at - seconds(CLOCK_MONOTONIC);
    if (left > 0) usleep(left * 1e6);
}

static void stream(double began, int pairs, double length) {
    int sends = !strcmp(getenv("MRC_HOST"), "h0"), fd = meet(sends);
    struct place own = {.rkey = mr->rkey, .address = (uintptr_t)memory}, peer;
    mrc_get_qpn(qp, &own.qpn);
    need(!ibv_query_gid(verbs, 1, 3, &own.gid), "ibv_query_gid");
    need(write(fd, &own, sizeof own) == sizeof own && read(fd, &peer, sizeof peer) == sizeof peer, "exchange");
    connect_qp(&peer);
    double got = 0;
    for (int pair = 0; sends && pair < pairs; pair++) {
        sleep_until(began + (3 * pair + 2) * length);
        got = write_until(&peer, began + (3 * pair + 3) * length - 0.3, got);
    }
    sleep_until(began + 3 * pairs * length + 1);
}

int main(int argc, char **argv) {
    double began = seconds(CLOCK_MONOTONIC);
    need(argc >= 3, "idle SECONDS, seen COUNT, stream PAIRS SECONDS");
    open_nic();
    if (argc == 4) stream(began, atoi(argv[2]), atof(argv[3]));
    else if (!strcmp(argv[1], "idle")) idle(atof(argv[2]));
    else seen(atoi(argv[2]));
    return 0;
}
