/* Work requests and their completions. */
#include <arpa/inet.h>

#include "support.h"

void test_write(void) {
    struct world world;
    open_world(&world, 8);
    struct pair pair = make_pair(&world);
    memcpy(world.memory, "written", 8);
    CHECK(post_write(&world, pair.from, 8, 5, IBV_SEND_SIGNALED) == 0);
    struct ibv_wc wc = next_of(world.send_cq);
    CHECK(wc.wr_id == 5 && wc.status == 0 && wc.opcode == IBV_WC_RDMA_WRITE && wc.qp_num == number_of(pair.from));
    CHECK(memcmp(world.memory + HALF, "written", 8) == 0);
    CHECK(post_receive(pair.to, 6) == 0);
    world.memory[100] = 44;
    CHECK(post_immediate(&world, pair.from, 101, 7, 0x01020304) == 0);
    wc = next_of(world.recv_cq);
    CHECK(wc.wr_id == 6 && wc.status == 0 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 101);
    CHECK(wc.imm_data == 0x01020304 && wc.wc_flags == IBV_WC_WITH_IMM && wc.qp_num == number_of(pair.to));
    CHECK(wc.src_qp == number_of(pair.from) && world.memory[HALF + 100] == 44);
    expect(world.send_cq, 7, IBV_WC_SUCCESS);
    struct ibv_send_wr empty = {.wr_id = 8, .send_flags = IBV_SEND_SIGNALED}, *bad;
    CHECK(mrc_post_send(pair.from, &empty, &bad) == 0);
    expect(world.send_cq, 8, IBV_WC_SUCCESS);
    CHECK(mrc_poll_cq(world.send_cq, 1, &wc) == 0);
    destroy_pair(&pair);
    close_world(&world);
}

enum { CHAIN = 50 };

void test_chain(void) {
    struct world world;
    struct ibv_sge sge[CHAIN];
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    struct ibv_wc wc[CHAIN];
    open_world(&world, CHAIN);
    struct pair pair = make_pair(&world);
    for (int i = 0; i < CHAIN; i++) {
        wr[i] = write_of(&world, &sge[i], 1, (uint64_t)i, i % 10 == 9 ? IBV_SEND_SIGNALED : 0);
        sge[i].addr += (uint64_t)i;
        wr[i].wr.rdma.remote_addr += (uint64_t)i;
        wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
        world.memory[i] = (uint8_t)(i + 1);
    }
    CHECK(mrc_post_send(pair.from, wr, &bad) == 0 && bad == NULL);
    for (int i = 9; i < CHAIN; i += 10) {
        expect(world.send_cq, (uint64_t)i, IBV_WC_SUCCESS);
    }
    CHECK(memcmp(world.memory, world.memory + HALF, CHAIN) == 0);
    wr[40].opcode = IBV_WR_SEND;
    CHECK(mrc_post_send(pair.from, wr, &bad) == EINVAL && bad == &wr[40]);
    for (int i = 9; i < 40; i += 10) {
        expect(world.send_cq, (uint64_t)i, IBV_WC_SUCCESS);
    }
    CHECK(mrc_poll_cq(world.send_cq, CHAIN, wc) == 0);
    struct ibv_recv_wr receives[CHAIN + 20], *bad_receive = NULL;
    for (int i = 0; i < CHAIN + 20; i++) {
        receives[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)i, .next = i + 1 < CHAIN + 20 ? &receives[i + 1] : NULL};
    }
    CHECK(mrc_post_recv(pair.to, receives, &bad_receive) == ENOMEM && bad_receive == &receives[64]);
    destroy_pair(&pair);
    close_world(&world);
}

void test_unsignaled(void) {
    struct world world;
    open_world(&world, 8);
    struct pair pair = make_pair(&world);
    for (int i = 0; i < 500; i++) { /* nobody polls: what has ended leaves its place */
        int error;
        while ((error = post_write(&world, pair.from, 8, 1, 0)) == ENOMEM) {
        }
        CHECK(error == 0);
    }
    while (post_write(&world, pair.from, 8, 2, IBV_SEND_SIGNALED) == ENOMEM) {
    }
    expect(world.send_cq, 2, IBV_WC_SUCCESS);
    destroy_pair(&pair);
    world.sq_sig_all = 1;
    pair = make_pair(&world);
    CHECK(post_write(&world, pair.from, 8, 3, 0) == 0);
    expect(world.send_cq, 3, IBV_WC_SUCCESS);
    destroy_pair(&pair);
    close_world(&world);
}

/* The daemon reads late. */
void test_inline(void) {
    struct world world;
    struct ibv_sge sge;
    open_world(&world, 16);
    world.cap.max_inline_data = 256;
    struct pair pair = make_pair(&world);
    for (int i = 0; i < 10; i++) {
        uint8_t local[256];
        memset(local, i + 1, sizeof local);
        struct ibv_send_wr wr = write_of(&world, &sge, 256, (uint64_t)i, IBV_SEND_SIGNALED | IBV_SEND_INLINE), *bad;
        sge = (struct ibv_sge){(uintptr_t)local, 256, 0};
        wr.wr.rdma.remote_addr += (uint64_t)i * 256;
        CHECK(mrc_post_send(pair.from, &wr, &bad) == 0);
        memset(local, 0xee, sizeof local);
    }
    for (int i = 0; i < 10; i++) {
        expect(world.send_cq, (uint64_t)i, IBV_WC_SUCCESS);
        CHECK(world.memory[HALF + i * 256] == i + 1 && world.memory[HALF + i * 256 + 255] == i + 1);
    }
    CHECK(post_write(&world, pair.from, 257, 1, IBV_SEND_INLINE) == EINVAL);
    CHECK(post_write(&world, pair.from, 0, 11, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0);
    expect(world.send_cq, 11, IBV_WC_SUCCESS);
    destroy_pair(&pair);
    close_world(&world);
}

/* A place in the queue is free when its completion has been polled. */
void test_room(void) {
    struct world world;
    struct ibv_wc wc[64];
    open_world(&world, 64);
    struct pair pair = make_pair(&world);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 64; i++) {
            CHECK(post_write(&world, pair.from, 8, i, IBV_SEND_SIGNALED) == 0);
        }
        CHECK(post_write(&world, pair.from, 8, 99, 0) == ENOMEM);
        for (uint64_t i = 0; i < 64; i++) {
            expect(world.send_cq, i, IBV_WC_SUCCESS);
        }
        CHECK(mrc_poll_cq(world.send_cq, 64, wc) == 0);
    }
    CHECK(post_write(&world, pair.from, 1U << 31, 1, 0) == EINVAL);
    CHECK(post_write(&world, pair.from, 8, 1, 1 << 20) == EINVAL);
    destroy_pair(&pair);
    close_world(&world);
}

void test_receives(void) {
    struct world world;
    open_world(&world, 64);
    struct pair pair = make_pair(&world);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(post_receive(pair.to, 100 + i) == 0);
    }
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(post_immediate(&world, pair.from, i, i, htonl(i)) == 0);
    }
    for (uint32_t i = 0; i < 10; i++) {
        struct ibv_wc wc = next_of(world.recv_cq);
        CHECK(wc.wr_id == 100 + i && wc.byte_len == i && ntohl(wc.imm_data) == i);
        expect(world.send_cq, i, IBV_WC_SUCCESS);
    }
    CHECK(post_immediate(&world, pair.from, 8, 11, 0) == 0);
    expect(world.send_cq, 11, IBV_WC_REM_OP_ERR);
    destroy_pair(&pair);
    close_world(&world);
}

enum { PAIRS = 100 };

void test_many(void) {
    struct world world;
    struct pair pairs[PAIRS];
    open_world(&world, PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = make_pair(&world);
        CHECK(post_receive(pairs[i].to, (uint64_t)i) == 0);
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK(post_immediate(&world, pairs[i].from, 4, (uint64_t)i, (uint32_t)i) == 0);
    }
    for (int i = 0; i < PAIRS; i++) {
        struct ibv_wc wc = next_of(world.recv_cq);
        CHECK(wc.wr_id == wc.imm_data && wc.qp_num == number_of(pairs[wc.wr_id].to));
        expect(world.send_cq, (uint64_t)i, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < PAIRS; i++) {
        destroy_pair(&pairs[i]);
    }
    close_world(&world);
}

/* Every opcode but the two writes. */
void test_opcodes(void) {
    struct world world;
    struct ibv_sge sge;
    open_world(&world, 8);
    struct pair pair = make_pair(&world);
    for (int opcode = IBV_WR_SEND; opcode < 20; opcode++) {
        struct ibv_send_wr wr = write_of(&world, &sge, 8, 1, 0), *bad = NULL;
        wr.opcode = (enum ibv_wr_opcode)opcode;
        CHECK(mrc_post_send(pair.from, &wr, &bad) == EINVAL && bad == &wr);
    }
    destroy_pair(&pair);
    close_world(&world);
}
