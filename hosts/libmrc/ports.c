/* What can be asked of a device and its ports. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>

#include "internal.h"

enum { WIDTH_4X = 2, SPEED_EDR = 32, PHYSICAL_LINK_UP = 5, PHYSICAL_DISABLED = 3 };
enum { GID_TYPE_ROCE_V2 = 2, SYSFS_TYPE_ROCE_V2 = 1, DEFAULT_PKEY = 0xffff, MOST_OBJECTS = 1 << 20 };

static unsigned active_mtu(const struct mt_hello_reply *hello) {
    unsigned mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && (128U << (mtu + 1)) <= hello->payload_bytes) {
        mtu++;
    }
    return mtu;
}

static int ask_port(struct mt_connection *connection, unsigned port, bool *up) {
    union mt_record request = {.query_port = {.kind = MT_QUERY_PORT, .port = port}}, reply;
    int error = mt_request(connection, &request, &reply);
    *up = !error && reply.reply.value == 1;
    return error;
}

/* Programs know one port, which is up while any plane is. Port 2 and the following are planes of their own. */
static int is_up(struct mt_connection *connection, unsigned port, bool *up) {
    if (port == 0 || port > connection->hello.planes) {
        return EINVAL;
    }
    unsigned last = port == 1 ? connection->hello.planes : port;
    int error = 0;
    for (*up = false; port <= last && !*up && !error; port++) {
        error = ask_port(connection, port, up);
    }
    return error;
}

int mt_port_attr(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr) {
    struct mt_connection *connection = mt_connection_of(context);
    bool up = false;
    mt_lock();
    int error = mt_usable(connection);
    error = error ? error : is_up(connection, port, &up);
    mt_unlock();
    *attr = (struct ibv_port_attr){.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
                                   .max_mtu = IBV_MTU_4096,
                                   .active_mtu = (enum ibv_mtu)active_mtu(&connection->hello),
                                   .gid_tbl_len = MT_MOST_GIDS,
                                   .max_msg_sz = MT_MOST_MESSAGE,
                                   .pkey_tbl_len = 1,
                                   .max_vl_num = 1,
                                   .active_width = WIDTH_4X,
                                   .active_speed = SPEED_EDR,
                                   .phys_state = up ? PHYSICAL_LINK_UP : PHYSICAL_DISABLED,
                                   .link_layer = IBV_LINK_LAYER_ETHERNET};
    return mt_error(error);
}

/* The symbol is for programs from before the last field. */
MT_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr) {
    struct ibv_port_attr whole;
    int error = mt_port_attr(context, port_num, &whole);
    if (error == 0) {
        memcpy(attr, &whole, offsetof(struct ibv_port_attr, port_cap_flags2));
    }
    return error;
}

/* Made of the host's IPv4 address, the end of its GID. */
static uint64_t guid_of(const struct mt_hello_reply *hello) {
    uint32_t address;
    memcpy(&address, hello->gid + 12, sizeof address);
    return htobe64(0x0200004d00000000ULL | ntohl(address));
}

MT_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    mt_lock();
    int error = mt_usable(mt_connection_of(context));
    mt_unlock();
    if (error) {
        return mt_error(error);
    }
    const struct mt_hello_reply *hello = &mt_connection_of(context)->hello;
    *attr = (struct ibv_device_attr){.fw_ver = "0.0.0",
                                     .node_guid = guid_of(hello),
                                     .sys_image_guid = guid_of(hello),
                                     .max_mr_size = UINT64_MAX,
                                     .page_size_cap = 0x1000,
                                     .hw_ver = 1,
                                     .max_qp = (int)hello->max_qp,
                                     .max_qp_wr = (int)hello->max_qp_wr,
                                     .max_sge = 1,
                                     .max_cq = MOST_OBJECTS,
                                     .max_cqe = (int)hello->max_cqe,
                                     .max_mr = (int)hello->max_mr,
                                     .max_pd = MOST_OBJECTS,
                                     .max_pkeys = 1,
                                     .phys_port_cnt = 1};
    return 0;
}

/* 0, or what is wrong with the context, port or index. */
static int check_gid(struct ibv_context *context, uint32_t port, int index) {
    mt_lock();
    int error = mt_usable(mt_connection_of(context));
    mt_unlock();
    bool is_there = port > 0 && port <= mt_connection_of(context)->hello.planes && index >= 0 && index < MT_MOST_GIDS;
    return error || is_there ? error : EINVAL;
}

MT_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid) {
    int error = check_gid(context, port_num, index);
    if (error == 0) {
        memset(gid, 0, sizeof *gid);
        if (index == MT_GID_INDEX) {
            memcpy(gid->raw, mt_connection_of(context)->hello.gid, sizeof gid->raw);
        }
    }
    return mt_fail(error);
}

MT_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, uint16_t *pkey) {
    int error = check_gid(context, port_num, 0);
    if (error == 0 && index == 0) {
        *pkey = DEFAULT_PKEY;
    }
    return mt_fail(error || index == 0 ? error : EINVAL);
}

MT_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, uint16_t pkey) {
    int error = check_gid(context, port_num, 0);
    return mt_fail(error || pkey == DEFAULT_PKEY ? error : ENOENT);
}

/* Zero entries count as absent. */
MT_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                                struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size) {
    int error = check_gid(context, port_num, gid_index < MT_MOST_GIDS ? (int)gid_index : -1);
    if (!error && (flags || entry_size < sizeof *entry)) {
        error = EINVAL;
    }
    if (!error && gid_index != MT_GID_INDEX) {
        error = ENODATA;
    }
    if (error) {
        return mt_error(error);
    }
    *entry = (struct ibv_gid_entry){.gid_index = gid_index, .port_num = port_num, .gid_type = GID_TYPE_ROCE_V2};
    memcpy(entry->gid.raw, mt_connection_of(context)->hello.gid, sizeof entry->gid.raw);
    return 0;
}

/* The number of entries, or a negative errno. */
MT_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                                       uint32_t flags, size_t entry_size) {
    if (max_entries == 0) {
        return -EINVAL;
    }
    int error = _ibv_query_gid_ex(context, 1, MT_GID_INDEX, entries, flags, entry_size);
    return error ? -error : 1;
}

/* Of rdma-core's private functions, but perftest calls it. */
MT_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index, int *type) {
    int error = check_gid(context, port_num, index < MT_MOST_GIDS ? (int)index : -1);
    if (error == 0) {
        *type = SYSFS_TYPE_ROCE_V2;
    }
    return mt_fail(error);
}

MT_EXPORT const char *ibv_get_device_name(struct ibv_device *device) { return device ? device->name : NULL; }

MT_EXPORT int ibv_get_device_index(struct ibv_device *device) { return device ? 0 : -1; }

/* Needs the daemon, so that it is the number that ibv_query_device gives. */
MT_EXPORT uint64_t ibv_get_device_guid(struct ibv_device *device) {
    mt_lock();
    struct mt_connection *connection = device ? mt_connect() : NULL;
    uint64_t guid = connection ? guid_of(&connection->hello) : 0;
    if (connection) {
        mt_release(connection);
    }
    mt_unlock();
    return guid;
}
