/* Devices, objects and their refusals. */
#include <sys/mman.h>

#include "support.h"

int ibv_query_gid_type(struct ibv_context *, uint8_t, unsigned, int *);
int _ibv_query_gid_ex(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t, size_t);
ssize_t _ibv_query_gid_table(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t);
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
struct ibv_srq *ibv_create_srq(struct ibv_pd *, void *);
void *ibv_create_ah(struct ibv_pd *, struct ibv_ah_attr *);
bool mlx5dv_is_supported(struct ibv_device *);

void test_absent(void) {
    int count = 7;
    errno = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && !list[0] && count == 0 && errno == ENOSYS);
    ibv_free_device_list(list);
    CHECK((list = ibv_get_device_list(NULL)) && !list[0]);
    ibv_free_device_list(list);
}

static void check_gids(struct ibv_context *verbs) {
    union ibv_gid gid, zero = {.raw = {0}};
    struct ibv_gid_entry entry;
    int type;
    CHECK(ibv_query_gid(verbs, 1, 0, &gid) == 0 && memcmp(&gid, &zero, 16) == 0);
    CHECK(ibv_query_gid(verbs, 1, 3, &gid) == 0 && gid.raw[10] == 0xff && gid.raw[15] == 1);
    CHECK_FAILS(ibv_query_gid(verbs, 1, 4, &gid), EINVAL);
    CHECK_FAILS(ibv_query_gid(verbs, 0, 3, &gid), EINVAL);
    CHECK_FAILS(ibv_query_gid(verbs, 5, 3, &gid), EINVAL);
    CHECK(_ibv_query_gid_ex(verbs, 1, 3, &entry, 0, sizeof entry) == 0 && entry.gid_type == 2 && entry.gid_index == 3);
    CHECK(memcmp(&entry.gid, &gid, 16) == 0);
    CHECK(_ibv_query_gid_ex(verbs, 1, 0, &entry, 0, sizeof entry) == ENODATA);
    CHECK(_ibv_query_gid_ex(verbs, 1, 99, &entry, 0, sizeof entry) == EINVAL);
    CHECK(_ibv_query_gid_table(verbs, &entry, 1, 0, sizeof entry) == 1);
    CHECK(ibv_query_gid_type(verbs, 1, 3, &type) == 0 && type == 1);
}

void test_device(void) {
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count == 1 && list[0] && !list[1]);
    struct ibv_device *device = list[0];
    CHECK(strcmp(ibv_get_device_name(device), "mlx5_0") == 0 && ibv_get_device_guid(device) != 0);
    CHECK(!mlx5dv_is_supported(device));
    struct ibv_context *verbs = ibv_open_device(device);
    ibv_free_device_list(list);
    CHECK(verbs && strcmp(verbs->device->name, "mlx5_0") == 0 && verbs->num_comp_vectors == 1);
    CHECK_NULL(ibv_open_device(NULL), ENODEV);
    struct ibv_device_attr attr;
    CHECK(ibv_query_device(verbs, &attr) == 0 && attr.phys_port_cnt == 1 && attr.max_qp == 1024 && attr.max_sge == 1);
    CHECK(attr.sys_image_guid == ibv_get_device_guid(device));
    struct mrc_device_attr mrc = {0};
    int supported = 0;
    CHECK(mrc_query_device(verbs, &mrc, &supported) == 0 && supported == 1);
    CHECK(mrc.mrc_protocol_version == 1 && mrc.wimm_attr.max_wimm == 32 && mrc.mpr_attr.max_mpr == 8);
    uint16_t pkey;
    CHECK(ibv_query_pkey(verbs, 1, 0, &pkey) == 0 && pkey == 0xffff);
    check_gids(verbs);
    CHECK(ibv_close_device(verbs) == 0);
    uint32_t versions[4];
    mrc_query_version(&versions[0], &versions[1], &versions[2], &versions[3]);
    CHECK(versions[0] == 0x01000001 && versions[1] == 0 && versions[2] == 0x01000000 && versions[3] == 0);
    mrc_query_version(NULL, NULL, NULL, NULL);
}

/* The port's attributes through the inline function of rdma-core: the function pointer at 0 of verbs_context. */
static int query_whole_port(struct ibv_context *verbs, uint8_t port, struct ibv_port_attr *attr) {
    int (*query)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
    memcpy(&query, (char *)verbs - 320, sizeof query);
    return query(verbs, port, attr, sizeof *attr);
}

/* The daemon of this test says that port 1 is down, and then all of them. */
void test_ports(void) {
    struct world world;
    struct ibv_port_attr attr;
    open_world(&world, 8);
    CHECK(world.verbs->abi_compat == (void *)-1 && *(size_t *)((char *)world.verbs - 8) == 648);
    CHECK(ibv_query_port(world.verbs, 1, &attr) == 0 && attr.state == IBV_PORT_ACTIVE && attr.phys_state == 5);
    CHECK(query_whole_port(world.verbs, 2, &attr) == 0 && attr.state == IBV_PORT_DOWN);
    CHECK(attr.active_mtu == IBV_MTU_2048 && attr.gid_tbl_len == 4 && attr.link_layer == 2 && attr.lid == 0);
    CHECK(attr.max_msg_sz == 1 << 30);
    CHECK(ibv_query_port(world.verbs, 0, &attr) == EINVAL && ibv_query_port(world.verbs, 5, &attr) == EINVAL);
    CHECK(ibv_query_port(world.verbs, 4, &attr) == 0 && attr.state == IBV_PORT_DOWN);
    CHECK(ibv_query_port(world.verbs, 1, &attr) == 0 && attr.state == IBV_PORT_DOWN);
    close_world(&world);
}

void test_objects(void) {
    struct world world;
    open_world(&world, 8);
    struct mrc_comp_channel *channel;
    CHECK(mrc_create_comp_channel(world.mrc, &channel) == 0);
    struct mrc_cq *cq = mrc_create_cq(world.mrc, 4, NULL, channel, 0);
    CHECK(cq && mrc_destroy_comp_channel(channel) == EBUSY);
    CHECK(mrc_destroy_cq(cq) == 0 && mrc_destroy_comp_channel(channel) == 0);
    struct mrc_qp_hint_init_attr init = {.attr = {1, 2, 3, {4}}};
    struct mrc_qp_hint *hint = mrc_create_qp_hint(world.mrc, &init);
    struct mrc_qp *qp = make_qp(&world);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    struct mrc_qp_attr mrc = {.qp_hint = hint};
    CHECK(hint && mrc_modify_qp(qp, &attr, IBV_QP_STATE, &mrc, MRC_QP_HINT) == 0);
    CHECK_FAILS(mrc_destroy_qp_hint(hint), EBUSY);
    CHECK(ibv_dealloc_pd(world.pd) == EBUSY && mrc_destroy_cq(world.send_cq) == EBUSY);
    struct mrc_qp_hint_attr asked;
    CHECK(mrc_query_qp_hint(hint, &asked, 7) == 0 && asked.num_remote_recv_peers == 3);
    CHECK(mrc_modify_qp_hint(hint, &(struct mrc_qp_hint_attr){9, 9, 9, {0}}, MRC_QP_HINT_NUM_SEND_PEERS) == 0);
    CHECK(mrc_query_qp_hint(hint, &asked, 3) == 0 && asked.num_send_peers == 9 && asked.num_qps_per_peer == 1);
    CHECK_FAILS(mrc_query_qp_hint(hint, &asked, 64), EINVAL);
    CHECK(mrc_destroy_qp(qp) == 0 && mrc_destroy_qp_hint(hint) == 0);
    CHECK(ibv_dealloc_pd(world.pd) == EBUSY); /* the region */
    close_world(&world);
}

static void refuse_regions(struct world *world) {
    void *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK_NULL(ibv_reg_mr(world->pd, world->memory, 0, WRITABLE), EINVAL);
    CHECK_NULL(ibv_reg_mr(world->pd, world->memory, 8, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    CHECK_NULL(ibv_reg_mr(world->pd, world->memory, SIZE_MAX, WRITABLE), EINVAL);
    CHECK_NULL(ibv_reg_mr(world->pd, (void *)4096, 8, WRITABLE), EFAULT);
    CHECK_NULL(ibv_reg_mr(world->pd, page, 8, WRITABLE), EFAULT);
    CHECK_NULL(ibv_reg_mr_iova2(world->pd, world->memory, 8, 0, WRITABLE), EINVAL);
    CHECK_NULL(ibv_reg_dmabuf_mr(world->pd, 0, 8, 0, -1, WRITABLE), EOPNOTSUPP);
    struct ibv_mr *read_only = ibv_reg_mr(world->pd, page, 8192, 0);
    CHECK(read_only && read_only->lkey && read_only->lkey == read_only->rkey && ibv_dereg_mr(read_only) == 0);
    munmap((char *)page + 4096, 4096);
    CHECK_NULL(ibv_reg_mr(world->pd, page, 8192, 0), EFAULT);
    munmap(page, 4096);
}

static void refuse_qp(struct world *world, struct ibv_qp_cap cap, struct mrc_cq *send_cq, struct ibv_pd *pd) {
    struct mrc_qp_init_attr attr = {.send_cq = send_cq, .recv_cq = world->recv_cq, .cap = cap, .pd = pd};
    CHECK_NULL(mrc_create_qp(world->mrc, &attr), EINVAL);
}

void test_refusals(void) {
    struct world world;
    open_world(&world, 8);
    refuse_regions(&world);
    CHECK_NULL(mrc_create_cq(world.mrc, 0, NULL, NULL, 0), EINVAL);
    CHECK_NULL(mrc_create_cq(world.mrc, 65537, NULL, NULL, 0), EINVAL);
    CHECK_NULL(mrc_create_cq(world.mrc, 1, NULL, NULL, 1), EINVAL);
    refuse_qp(&world, world.cap, NULL, world.pd);
    refuse_qp(&world, world.cap, world.send_cq, NULL);
    refuse_qp(&world, (struct ibv_qp_cap){.max_send_wr = 1025}, world.send_cq, world.pd);
    refuse_qp(&world, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 2}, world.send_cq, world.pd);
    refuse_qp(&world, (struct ibv_qp_cap){.max_send_wr = 1, .max_inline_data = 257}, world.send_cq, world.pd);
    struct ibv_qp_init_attr datagrams = {.send_cq = *(struct ibv_cq **)world.send_cq,
                                         .recv_cq = *(struct ibv_cq **)world.recv_cq,
                                         .qp_type = IBV_QPT_UD};
    CHECK_NULL(ibv_create_qp(world.pd, &datagrams), EOPNOTSUPP);
    CHECK_NULL(ibv_create_srq(world.pd, NULL), EOPNOTSUPP);
    CHECK_NULL(ibv_create_ah(world.pd, NULL), EOPNOTSUPP);
    struct mrc_context_attr newer = {.mrc_api_version_used = 0x01000002};
    CHECK_NULL(mrc_create_context(world.verbs, &newer), EINVAL);
    for (uint32_t version = 0; version < 2; version++) {
        struct mrc_context_attr older = {.mrc_api_version_used = version};
        struct mrc_context *context = mrc_create_context(world.verbs, &older);
        CHECK(context && mrc_destroy_context(context) == 0);
    }
    close_world(&world);
}

void test_nulls(void) {
    struct world world;
    int number;
    uint32_t qpn;
    struct mrc_device_attr device;
    open_world(&world, 8);
    CHECK_FAILS(mrc_query_device(NULL, &device, &number), EINVAL);
    CHECK_FAILS(mrc_query_device(world.verbs, NULL, &number), EINVAL);
    CHECK_FAILS(mrc_query_device_ex(world.verbs, NULL, &device, &number), EINVAL);
    CHECK_NULL(mrc_create_context(NULL, NULL), EINVAL);
    CHECK_FAILS(mrc_destroy_context(NULL), EINVAL);
    CHECK(mrc_create_comp_channel(world.mrc, NULL) == EINVAL && mrc_destroy_comp_channel(NULL) == EINVAL);
    CHECK_FAILS(mrc_get_comp_channel_fd(NULL, &number), EINVAL);
    CHECK_NULL(mrc_create_cq(NULL, 1, NULL, NULL, 0), EINVAL);
    CHECK_FAILS(mrc_poll_cq(NULL, 1, NULL), EINVAL);
    CHECK(mrc_poll_cq(world.send_cq, 0, NULL) == 0);
    CHECK(mrc_destroy_cq(NULL) == EINVAL && mrc_req_notify_cq(NULL, 0) == EINVAL);
    CHECK_FAILS(mrc_get_cq_event(NULL, NULL, NULL), EINVAL);
    mrc_ack_cq_events(NULL, 1);
    CHECK_NULL(mrc_create_qp_hint(world.mrc, NULL), EINVAL);
    CHECK_FAILS(mrc_destroy_qp_hint(NULL), EINVAL);
    CHECK_FAILS(mrc_modify_qp_hint(NULL, NULL, 0), EINVAL);
    CHECK_NULL(mrc_create_qp(world.mrc, NULL), EINVAL);
    CHECK(mrc_destroy_qp(NULL) == EINVAL && mrc_modify_qp(NULL, NULL, 0, NULL, 0) == EINVAL);
    CHECK(mrc_query_qp(NULL, NULL, 0, NULL, 0, NULL) == EINVAL && mrc_post_send(NULL, NULL, NULL) == EINVAL);
    CHECK(mrc_post_recv(NULL, NULL, NULL) == EINVAL);
    CHECK_FAILS(mrc_get_qpn(NULL, &qpn), EINVAL);
    CHECK_FAILS(mrc_get_async_event(NULL, NULL), EINVAL);
    mrc_ack_async_event(NULL);
    struct mrc_qp *qp = make_qp(&world);
    CHECK(mrc_modify_qp(qp, NULL, IBV_QP_STATE, NULL, 0) == EINVAL);
    CHECK(mrc_modify_qp(qp, NULL, 0, NULL, MRC_QP_MPR) == EINVAL && mrc_post_send(qp, NULL, NULL) == 0);
    CHECK(mrc_destroy_qp(qp) == 0);
    ibv_free_device_list(NULL);
    close_world(&world);
}
