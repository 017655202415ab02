/* A stand-in for OCP's benchmark, of our own: the same command line, the same calls in the same order, the same traits.
 * It passes version 1, writes a signal word without asking for its completion, spins on memory without calling the
 * library, asks for every 64th completion, leaves as soon as it has the last immediate, and ends with 0 whatever the
 * data are: wrong ones are only told of. */
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mrc_testbed.h"

enum { DEPTH = 128, ENTRIES = 256, EVERY = 64, AT_ONCE = 16, RECEIVE_ID = 0x1000 };

#ifdef STANDIN_IS_WRONG
enum { TURNED = 0x40 }; /* a byte of each transfer is not what it should be */
#else
enum { TURNED = 0 };
#endif

static const uint64_t LAST_ID = 0xffffffff;

struct settings {
    const char *device, *server;
    int tcp_port, ib_port, gid_index, mtu, count, warm_up;
    size_t largest, smallest, factor;
};

struct place { /* 40 bytes, as they are in memory */
    uint32_t qpn, rkey;
    uint64_t address;
    union ibv_gid gid;
    uint8_t gid_index;
    uint32_t psn;
};

struct nic {
    struct ibv_context *verbs;
    struct mrc_context *context;
    struct ibv_device **list;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct mrc_cq *sent, *received;
    struct mrc_qp *qp;
    unsigned char *memory;
    struct place own, peer;
};

static struct settings set = {.tcp_port = 18185, .ib_port = 1, .gid_index = 3, .mtu = 4096, .count = 1000,
                              .warm_up = 100, .largest = 64 << 20, .smallest = 1, .factor = 2};
static struct nic nic;

static void need(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "[MRC ERROR] %s\n", what);
        exit(1);
    }
}

static volatile uint64_t *signal_word(int which) { return (uint64_t *)(nic.memory + 2 * set.largest) + which; }

static uint64_t address_there(size_t offset) { return nic.peer.address + offset; }

static void parse(int count, char **words) {
    static const struct option known[] = {{"min-size", 1, NULL, 'l'},
                                          {"step-factor", 1, NULL, 'f'},
                                          {NULL, 0, NULL, 0}};
    for (int letter; (letter = getopt_long(count, words, "p:d:i:g:m:n:s:w:h", known, NULL)) != -1;) {
        need(strchr("pdigmnswlf", letter) != NULL, "usage: [options] [IPv4 of the server]");
        long value = letter == 'd' ? 0 : strtol(optarg, NULL, 0);
        int *numbers[] = {['p'] = &set.tcp_port, ['i'] = &set.ib_port, ['g'] = &set.gid_index,
                          ['m'] = &set.mtu,      ['n'] = &set.count,   ['w'] = &set.warm_up};
        size_t *sizes[] = {['s'] = &set.largest, ['l'] = &set.smallest, ['f'] = &set.factor};
        if (letter == 'd') {
            set.device = optarg;
        } else if (strchr("slf", letter)) {
            *sizes[letter] = (size_t)value;
        } else {
            *numbers[letter] = (int)value;
        }
    }
    set.server = optind < count ? words[optind] : NULL;
    need(set.device && set.factor > 1 && set.smallest <= set.largest, "a value is missing or wrong");
}

static void open_nic(void) {
    struct mrc_device_attr found;
    struct mrc_context_attr version = {.mrc_api_version_used = 1};
    int count = 0, is_supported = 0;
    nic.list = ibv_get_device_list(&count);
    need(nic.list && count > 0, "no IB devs");
    for (int i = 0; i < count && !nic.verbs; i++) {
        if (!strcmp(ibv_get_device_name(nic.list[i]), set.device)) {
            nic.verbs = ibv_open_device(nic.list[i]);
        }
    }
    need(nic.verbs != NULL, "the device cannot be opened");
    need(!mrc_query_device(nic.verbs, &found, &is_supported) && is_supported, "the device has no MRC");
    need((nic.context = mrc_create_context(nic.verbs, &version)) != NULL, "mrc_create_context");
    need((nic.pd = ibv_alloc_pd(nic.verbs)) != NULL, "ibv_alloc_pd");
}

static void make_objects(void) {
    size_t size = 2 * set.largest + 2 * sizeof(uint64_t);
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING;
    need((nic.sent = mrc_create_cq(nic.context, ENTRIES, NULL, NULL, 0)) != NULL, "mrc_create_cq");
    need((nic.received = mrc_create_cq(nic.context, ENTRIES, NULL, NULL, 0)) != NULL, "mrc_create_cq");
    struct mrc_qp_init_attr wanted = {.send_cq = nic.sent, .recv_cq = nic.received, .pd = nic.pd,
                                      .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
                                              .max_recv_sge = 1}};
    need((nic.qp = mrc_create_qp(nic.context, &wanted)) != NULL, "mrc_create_qp");
    need((nic.memory = aligned_alloc(4096, size)) != NULL, "no memory");
    memset(nic.memory, 0, size);
    nic.mr = ibv_reg_mr_iova2(nic.pd, nic.memory, size, (uintptr_t)nic.memory, (unsigned)access);
    need(nic.mr != NULL, "ibv_reg_mr");
}

static void to_init(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)set.ib_port,
                               .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    need(!mrc_modify_qp(nic.qp, &attr, 0x39, NULL, 0), "mrc_modify_qp to INIT");
    nic.own = (struct place){.rkey = nic.mr->rkey, .address = (uintptr_t)nic.memory};
    nic.own.gid_index = (uint8_t)set.gid_index;
    need(!mrc_get_qpn(nic.qp, &nic.own.qpn), "mrc_get_qpn");
    need(!ibv_query_gid(nic.verbs, (uint8_t)set.ib_port, set.gid_index, &nic.own.gid), "ibv_query_gid");
    need(getrandom(&nic.own.psn, sizeof nic.own.psn, 0) == sizeof nic.own.psn, "getrandom");
    nic.own.psn &= 0xffffff;
}

static int meet(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)set.tcp_port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (set.server) {
        need(inet_pton(AF_INET, set.server, &at.sin_addr) == 1, "no IPv4 address");
        need(!connect(fd, (struct sockaddr *)&at, sizeof at), "connect");
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    need(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 1), "bind");
    return accept(fd, NULL, NULL);
}

static void tell(int fd) { need(send(fd, &nic.own, 40, MSG_NOSIGNAL) == 40, "send"); }

static void hear(int fd) { need(recv(fd, &nic.peer, 40, MSG_WAITALL) == 40, "recv"); }

static void exchange(void) { /* no barrier after it, and the socket stays open */
    int fd = meet();
    if (set.server) {
        tell(fd);
        hear(fd);
    } else {
        hear(fd);
        tell(fd);
    }
}

static void connect_qp(void) {
    enum ibv_mtu mtu = IBV_MTU_256;
    while (128 << mtu < set.mtu) {
        mtu++;
    }
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = nic.peer.qpn,
                              .rq_psn = nic.peer.psn, .ah_attr = {.is_global = 1, .port_num = (uint8_t)set.ib_port}};
    rtr.ah_attr.grh = (struct ibv_global_route){.dgid = nic.peer.gid, .sgid_index = nic.own.gid_index, .hop_limit = 64};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = nic.own.psn, .timeout = 7, .retry_cnt = 7,
                              .rnr_retry = 7};
    need(!mrc_modify_qp(nic.qp, &rtr, 0x101181, NULL, 0), "mrc_modify_qp to RTR");
    need(!mrc_modify_qp(nic.qp, &rts, 0x10e01, NULL, 0), "mrc_modify_qp to RTS");
}

static void post(uint64_t id, enum ibv_wr_opcode opcode, unsigned flags, const volatile void *from, uint32_t length,
                 uint64_t to, uint32_t immediate) {
    struct ibv_sge part = {.addr = (uintptr_t)from, .length = length, .lkey = nic.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = id, .sg_list = &part, .num_sge = 1, .opcode = opcode, .send_flags = flags,
                                   .imm_data = htonl(immediate)};
    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = nic.peer.rkey;
    need(!mrc_post_send(nic.qp, &wr, &bad), "mrc_post_send");
}

static int poll_some(struct mrc_cq *cq, struct ibv_wc *found, int most) {
    int count = mrc_poll_cq(cq, most, found);
    need(count >= 0, "mrc_poll_cq");
    for (int i = 0; i < count; i++) {
        if (found[i].status != IBV_WC_SUCCESS) {
            fprintf(stderr, "[MRC ERROR] a completion failed: status %d\n", found[i].status);
            exit(1);
        }
    }
    return count;
}

static struct ibv_wc await_one(struct mrc_cq *cq) {
    struct ibv_wc found;
    while (!poll_some(cq, &found, 1)) {
    }
    return found;
}

static void post_receive(void) {
    struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVE_ID};
    need(!mrc_post_recv(nic.qp, &wr, &bad), "mrc_post_recv");
}

static void data_write(int number, unsigned flags, size_t size) {
    post((uint64_t)number, IBV_WR_RDMA_WRITE, flags, nic.memory, (uint32_t)size, address_there(set.largest), 0);
}

static double stream(size_t size) { /* at most DEPTH outstanding, counted by completions of every 64th */
    struct ibv_wc found[AT_ONCE];
    struct timespec began, ended;
    int posted = 0, done = 0;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (done < set.count) {
        for (; posted < set.count && posted - done < DEPTH; posted++) {
            int is_signaled = (posted + 1) % EVERY == 0 || posted + 1 == set.count;
            data_write(posted, is_signaled ? IBV_SEND_SIGNALED : 0, size);
        }
        done += EVERY * poll_some(nic.sent, found, AT_ONCE);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

static void send_size(size_t size, uint64_t number) {
    while (*signal_word(0) != number) { /* in memory: the library is not called */
    }
    for (size_t i = 0; i < size; i++) {
        nic.memory[i] = (unsigned char)i;
    }
    nic.memory[size / 2] ^= TURNED;
    for (int i = 0; i < set.warm_up; i++) {
        data_write(i, IBV_SEND_SIGNALED, size);
        await_one(nic.sent);
    }
    double seconds = stream(size);
    post(LAST_ID, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, signal_word(1), sizeof(uint64_t),
         address_there(2 * set.largest), (uint32_t)size);
    need(await_one(nic.sent).wr_id == LAST_ID, "the last write has another number");
    printf("%10zu %10d %12.2f %12.4f\n", size, set.count, (double)size * set.count * 8 / seconds / 1e9,
           set.count / seconds / 1e6);
}

static void check(size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (nic.memory[set.largest + i] != (unsigned char)i) {
            printf("Data mismatch at %zu of %zu\n", i, size);
            return;
        }
    }
}

static void receive_size(size_t size, uint64_t number) {
    memset(nic.memory + set.largest, 0, size);
    post_receive();
    *signal_word(1) = number;
    post(number, IBV_WR_RDMA_WRITE, 0, signal_word(1), sizeof number, address_there(2 * set.largest), 0);
    struct ibv_wc last = await_one(nic.received);
    need(last.opcode == IBV_WC_RECV_RDMA_WITH_IMM && last.wr_id == RECEIVE_ID, "another completion than expected");
    need(ntohl(last.imm_data) == (uint32_t)size, "another immediate than expected");
    check(size);
}

static void close_nic(void) {
    need(!mrc_destroy_qp(nic.qp), "mrc_destroy_qp");
    need(!mrc_destroy_cq(nic.sent) && !mrc_destroy_cq(nic.received), "mrc_destroy_cq");
    need(!ibv_dereg_mr(nic.mr) && !ibv_dealloc_pd(nic.pd), "ibv_dereg_mr");
    need(!mrc_destroy_context(nic.context) && !ibv_close_device(nic.verbs), "ibv_close_device");
    ibv_free_device_list(nic.list);
}

int main(int count, char **words) {
    uint64_t number = 0;
    _Static_assert(sizeof(struct place) == 40, "what both tell each other");
    parse(count, words);
    open_nic();
    make_objects();
    to_init();
    exchange();
    connect_qp();
    if (set.server) {
        printf("%10s %10s %12s %12s\n", "MsgSize", "TotalOps", "BW_avg(Gbps)", "MsgRate(Mpps)");
    }
    for (size_t size = set.smallest; size < set.largest * set.factor; size *= set.factor) {
        (set.server ? send_size : receive_size)(size < set.largest ? size : set.largest, ++number);
    }
    close_nic();
    printf("MRC example completed successfully\n");
    return 0;
}
