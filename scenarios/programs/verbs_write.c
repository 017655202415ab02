/* A program for MRC NICs, with the calls that all of them make. Memory is registered, a queue pair is connected, and
 * one host writes into the memory of the other, which finds every byte right or ends with an error.
 *
 *     cc -o verbs_write verbs_write.c -I"$MRC_TESTBED_INCLUDE" -L"$MRC_TESTBED_LIBS" -lmrc -l:libibverbs.so.1
 *     ./verbs_write              waits for a peer and is written to
 *     ./verbs_write h0-mgmt      writes
 */
#include <arpa/inet.h>
#include <mrc_testbed.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEPS = 40, WRITES = 16, BYTES = 64 << 10, SIZE = WRITES * BYTES, PORT = 18515, GID = 3 };

struct place { uint32_t qpn, psn, rkey; uint64_t address; union ibv_gid gid; };

static unsigned char memory[SIZE];
static struct mrc_cq *sent, *received;
static struct mrc_qp *qp;
static struct ibv_mr *mr;
static struct place peer;

static void need(int good, const char *what) {
    if (good) return;
    perror(what);
    exit(1);
}

static int meet(const char *host) { /* the socket over which both tell each other where to write */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (!host) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        need(!bind(fd, (void *)&at, sizeof at) && !listen(fd, 1), "bind");
        return accept(fd, NULL, NULL);
    }
    struct hostent *found = gethostbyname(host);
    need(found != NULL, host);
    memcpy(&at.sin_addr, found->h_addr_list[0], 4);
    for (int tries = 0; connect(fd, (void *)&at, sizeof at); tries++) {
        need(tries < 100, "connect");
        usleep(100000);
    }
    return fd;
}

static struct ibv_wc next(struct mrc_cq *cq) { /* wait for one completion, and for a good one */
    struct ibv_wc wc;
    while (!mrc_poll_cq(cq, 1, &wc)) continue;
    if (wc.status) {
        fprintf(stderr, "the queue pair failed: %s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc;
}

static void write_all(int step, uint32_t length, int writes) { /* a chain with one completion, and an immediate */
    struct ibv_sge part[WRITES];
    struct ibv_send_wr chain[WRITES], *bad;
    for (int i = 0; i < writes; i++) {
        part[i] = (struct ibv_sge){(uintptr_t)memory + i * length, length, mr->lkey};
        chain[i] = (struct ibv_send_wr){.wr_id = i, .sg_list = &part[i], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                        .next = i + 1 < writes ? &chain[i + 1] : NULL};
        chain[i].wr.rdma.remote_addr = peer.address + i * length;
        chain[i].wr.rdma.rkey = peer.rkey;
    }
    chain[writes - 1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    chain[writes - 1].imm_data = htonl(step);
    chain[writes - 1].send_flags = IBV_SEND_SIGNALED;
    need(!mrc_post_send(qp, chain, &bad), "mrc_post_send");
}

static void receive(void) {
    struct ibv_recv_wr *bad;
    need(!mrc_post_recv(qp, &(struct ibv_recv_wr){.wr_id = 1}, &bad), "mrc_post_recv");
}

static unsigned char right(int step, uint32_t at) { return (at * 2654435761u >> 13) + step * 7; }

static void open_nic(struct place *own) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "no RDMA device");
    struct ibv_context *verbs = ibv_open_device(list[0]);
    struct mrc_context *context = mrc_create_context(verbs, NULL);
    struct ibv_pd *pd = ibv_alloc_pd(verbs);
    need(context && pd, "device");
    mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    sent = mrc_create_cq(context, 64, NULL, NULL, 0);
    received = mrc_create_cq(context, 64, NULL, NULL, 0);
    struct mrc_qp_init_attr wanted = {.send_cq = sent, .recv_cq = received, .pd = pd, .cap = {WRITES, 4, 1, 1, 0}};
    need(mr && sent && received && (qp = mrc_create_qp(context, &wanted)), "queue pair");
    *own = (struct place){.psn = getpid() & 0xffffff, .rkey = mr->rkey, .address = (uintptr_t)memory};
    mrc_get_qpn(qp, &own->qpn);
    need(!ibv_query_gid(verbs, 1, GID, &own->gid), "ibv_query_gid");
}

static void connect_qp(const struct place *own) {
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer.qpn,
                              .rq_psn = peer.psn, .ah_attr = {.is_global = 1, .port_num = 1}};
    rtr.ah_attr.grh = (struct ibv_global_route){.dgid = peer.gid, .sgid_index = GID, .hop_limit = 255};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = own->psn};
    int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    need(!mrc_modify_qp(qp, &init, to_init, NULL, 0) && !mrc_modify_qp(qp, &rtr, to_rtr, NULL, 0) &&
             !mrc_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, 0),
         "mrc_modify_qp");
}

int main(int argc, char **argv) {
    struct place own;
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_nic(&own);
    int writes = argc > 1, fd = meet(writes ? argv[1] : NULL);
    need(write(fd, &own, sizeof own) == sizeof own && read(fd, &peer, sizeof peer) == sizeof peer, "exchange");
    connect_qp(&own);
    puts("ready");
    for (int step = 0; step < STEPS; step++) {
        char ready = 'r';
        receive();
        need(write(fd, &ready, 1) == 1 && read(fd, &ready, 1) == 1, "the peer has ended");
        if (writes) {
            for (uint32_t at = 0; at < SIZE; at++) memory[at] = right(step, at);
            write_all(step, BYTES, WRITES);
            next(sent);
            need(ntohl(next(received).imm_data) == (uint32_t)step, "the peer's answer"); /* it has seen them */
        } else {
            need(ntohl(next(received).imm_data) == (uint32_t)step, "the immediate");
            for (uint32_t at = 0; at < SIZE; at++) need(memory[at] == right(step, at), "a byte is wrong");
            write_all(step, 0, 1);
            next(sent);
        }
        printf("step %d done\n", step);
    }
    mrc_destroy_qp(qp);
    return 0;
}
