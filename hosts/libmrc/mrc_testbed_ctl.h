/* SPDX-License-Identifier: Apache-2.0 */
/* The controller functions of libmrc, declared for programs that are built without a vendor's mrc_ctl.h. Names, values
   and layouts are those of API 1.0.1; docs/libmrc.md says what this library does with them.

   All need CAP_NET_ADMIN (EPERM without), except mrc_ctl_query_version. Unless said otherwise they return 0, or -1 with
   errno. Attributes that `mask` does not name are neither read nor written. */
#ifndef MRC_TESTBED_CTL_H
#define MRC_TESTBED_CTL_H

#include "mrc_testbed.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define MRC_CTL_EV_MAX_BYTES 32
#define MRC_CTL_MAX_VENDOR_CFG_SIZE 128

/* What the device can do: bits of opt_attr. */
enum mrc_ctl_attr_opt {
    MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE = 0x01,
    MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE = 0x02,
    MRC_CTL_OPT_CAP_EV_EVENT = 0x04,
    MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE = 0x08,
    MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT = 0x10,
    MRC_CTL_OPT_CAP_EP_OP_EV_PROBE = 0x20,
};

/* The life of every profile: a step up or down at a time. */
enum mrc_ctl_profile_state { MRC_CTL_PROFILE_INIT = 0, MRC_CTL_PROFILE_OFFLINE = 1, MRC_CTL_PROFILE_ONLINE = 2 };

enum mrc_ctl_port_admin_state { MRC_CTL_PORT_ADMIN_DISABLED = 0, MRC_CTL_PORT_ADMIN_ENABLED = 1 };
enum mrc_ctl_port_attr_mask { MRC_CTL_PORT_ADMIN_STATE = 1 };

enum mrc_ctl_ev_fmt_mode { MRC_CTL_EV_FMT_MODE_STEV = 1, MRC_CTL_EV_FMT_MODE_SRV6 = 2, MRC_CTL_EV_FMT_MODE_UDP = 4 };
enum mrc_ctl_ev_fmt_op { MRC_CTL_EV_FMT_OP_MODIFY_FIELDS = 0, MRC_CTL_EV_FMT_OP_QUERY_FIELDS = 1 };

enum mrc_ctl_ev_fmt_profile_attr_mask {
    MRC_CTL_EV_FMT_PROFILE_STATE = 0x1,
    MRC_CTL_EV_FMT_PROFILE_CUR_STATE = 0x2,
    MRC_CTL_EV_FMT_PROFILE_MODE = 0x4,
    MRC_CTL_EV_FMT_PROFILE_OP = 0x8,
    MRC_CTL_EV_FMT_VENDOR_CFG = (int)0x80000000,
};

enum mrc_ctl_ev_state {
    MRC_CTL_EV_GOOD = 1,
    MRC_CTL_EV_ASSUMED_BAD = 2,
    MRC_CTL_EV_DENIED = 4,
    MRC_CTL_EV_UNKNOWN = (int)0x80000000,
};

enum mrc_ctl_ev_mode { MRC_CTL_EV_MODE_AUTO = 1, MRC_CTL_EV_MODE_EXP = 2, MRC_CTL_EV_MODE_GEN = 4 };

enum mrc_ctl_ev_op {
    MRC_CTL_EV_OP_REPLACE_EV = 0,
    MRC_CTL_EV_OP_MODIFY_EV_STATE = 1,
    MRC_CTL_EV_OP_QUERY_EV_STATE = 2,
    MRC_CTL_EV_OP_QUERY_EV_ARRAY = 3,
};

enum mrc_ctl_ev_fields_op { MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS = 0, MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS = 1 };
enum mrc_ctl_ev_op_flags { MRC_CTL_EV_OP_F_ALL_COPIES = 1 };

enum mrc_ctl_ev_profile_attr_mask {
    MRC_CTL_EV_PROFILE_STATE = 0x001,
    MRC_CTL_EV_PROFILE_CUR_STATE = 0x002,
    MRC_CTL_EV_PROFILE_MODE = 0x004,
    MRC_CTL_EV_PROFILE_FMT_ID = 0x008,
    MRC_CTL_EV_PROFILE_COUNT = 0x010,
    MRC_CTL_EV_PROFILE_MIN_ACTIVE = 0x020,
    MRC_CTL_EV_PROFILE_EVENT_MASK = 0x040,
    MRC_CTL_EV_PROFILE_EV_OP = 0x080,
    MRC_CTL_EV_PROFILE_EV_FIELDS_OP = 0x100,
    MRC_CTL_EV_PROFILE_VENDOR_CFG = (int)0x80000000,
};

enum mrc_ctl_cc_profile_attr_mask {
    MRC_CTL_CC_PROFILE_STATE = 0x1,
    MRC_CTL_CC_PROFILE_CUR_STATE = 0x2,
    MRC_CTL_CC_PROFILE_ALGORITHM = 0x4,
    MRC_CTL_CC_PROFILE_CONFIG = 0x8,
    MRC_CTL_CC_PROFILE_VENDOR_CFG = (int)0x80000000,
};

enum mrc_ctl_ep_op_type { MRC_CTL_EP_OP_EV_PROBE = 0, MRC_CTL_EP_OP_PORT_STATUS_UPDATE = 1 };

struct mrc_ctl_device_attr {
    uint32_t mrc_ctl_protocol_version; /* bit N - 1: version N */
    struct {
        uint32_t ev_max_fmt_profiles, ev_max_profiles;
        uint32_t ev_max_count, ev_free_count, ev_max_count_profile;
        uint32_t ev_count_align;
        uint32_t ev_max_width; /* bits */
        uint32_t ev_fmt_mode_mask, ev_mode_mask;
        uint32_t ev_op_max_entries; /* 0: any number */
    } ev;
    struct {
        uint32_t cc_max_profiles;
        const char **algorithms; /* ends with NULL; the library's own */
    } cc;
    uint32_t phy_port_mask; /* bit N: port N, from 1 */
    uint32_t opt_attr;
};

struct mrc_ctl_port_attr {
    enum mrc_ctl_port_admin_state port_admin_state;
};

struct mrc_ctl_ev_fmt_field {
    uint8_t width; /* bits */
};

struct mrc_ctl_ev_fmt_profile_attr {
    enum mrc_ctl_profile_state profile_state, cur_profile_state;
    enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
    struct {
        enum mrc_ctl_ev_fmt_op op;
        struct mrc_ctl_ev_fmt_field *fmt_fields;
        int fmt_field_count; /* of a query: in, room; out, how many there are */
    } ev_fmt_op;
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* Here an EV is a number of 32 bits in the machine's byte order in the first four bytes of `val`: plane in bits 27:24,
   uplink in 23:16, UDP source port in 15:0. Port 0: not said. */
typedef uint8_t mrc_ctl_ev_t[MRC_CTL_EV_MAX_BYTES];

struct mrc_ctl_ev {
    mrc_ctl_ev_t val;
    uint8_t port; /* from 1 */
};

struct mrc_ctl_ev_field {
    uint32_t width, init_val, min_val, max_val, mask;
};

struct mrc_ctl_ev_op_entry {
    struct mrc_ctl_ev ev, ev_new;
    enum mrc_ctl_ev_state state;
    uint32_t flags;
};

struct mrc_ctl_ev_profile_attr {
    enum mrc_ctl_profile_state profile_state, cur_profile_state;
    enum mrc_ctl_ev_mode ev_mode;
    uint64_t ev_fmt_profile_id;
    uint32_t ev_count, ev_min_active;
    int ev_event_mask; /* GOOD and ASSUMED_BAD */
    struct {
        enum mrc_ctl_ev_op op;
        struct mrc_ctl_ev_op_entry *entries;
        int entry_count;
    } ev_op;
    struct {
        enum mrc_ctl_ev_fields_op op;
        struct mrc_ctl_ev_field *fields;
        int field_count;
    } ev_fields_op;
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

struct mrc_ctl_cc_profile_attr {
    enum mrc_ctl_profile_state profile_state, cur_profile_state;
    const char *algorithm; /* NULL: none */
    const void *cc_config; /* struct mrc_ctl_cc_nscc_cfg for uet-1.0-nscc */
    uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* Times in ns, windows and thresholds in bytes. */
struct mrc_ctl_cc_nscc_cfg {
    uint8_t disable_qa;
    uint32_t adjust_bytes_threshold, adjust_period_threshold, base_rtt;
    float eta, fi, fi_scale, gamma, max_md_jump;
    uint32_t max_cwnd;
    uint8_t qa_gate;
    uint32_t qa_threshold, target_delay;
};

/* `state` is there from API 1.0.1 on: a program that creates its context with an older version, but not 0, gets events
   of 48 bytes without it, and has to read them as such. */
struct mrc_ctl_ev_event {
    uint64_t profile_id;
    struct mrc_ctl_ev ev;
    uint32_t drop_count; /* events lost between the one before and this one */
    enum mrc_ctl_ev_state state;
};

struct mrc_ctl_ep_req {
    uint16_t req_id;
    union ibv_gid sgid, dgid;
    enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
    struct mrc_ctl_ev req_ev;
    union {
        struct {
            uint32_t port_status;
        } port_status_update;
    } op;
};

struct mrc_ctl_ep_rsp {
    uint16_t req_id;
    uint8_t port;
    unsigned int rtt; /* ns */
    uint8_t adj_svc_time;
};

void mrc_ctl_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest);
int mrc_ctl_query_device(struct ibv_context *context, struct mrc_ctl_device_attr *attr);
int mrc_ctl_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_ctl_device_attr *attr,
                            int *supported);

int mrc_ctl_query_port(struct mrc_context *mrc, uint8_t port, struct mrc_ctl_port_attr *attr, int mask);
int mrc_ctl_modify_port(struct mrc_context *mrc, uint8_t port, struct mrc_ctl_port_attr *attr, int mask);

int mrc_ctl_query_ev_fmt_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                 int mask);
int mrc_ctl_modify_ev_fmt_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr,
                                  int mask);
int mrc_ctl_query_ev_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask);
int mrc_ctl_modify_ev_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask);
int mrc_ctl_query_cc_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask);
int mrc_ctl_modify_cc_profile(struct mrc_context *mrc, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask);

/* A CQ that holds EV events alone; destroyed by mrc_destroy_cq. NULL with errno. */
struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *mrc, int cqe, void *cq_context,
                                          struct mrc_comp_channel *channel, int comp_vector);
/* Number of events taken, or minus an errno. */
int mrc_ctl_poll_ev_event(struct mrc_cq *cq, int count, struct mrc_ctl_ev_event *events);

/* Sends all requests and waits for their answers, `timeout_ns` at most: then -1 with ETIMEDOUT. `answers` has room for
   `count`; *answered says how many came, in that case too. */
int mrc_ctl_ep_batch_send_wait(struct mrc_context *mrc, uint8_t traffic_class, enum mrc_ctl_ep_op_type op,
                               struct mrc_ctl_ep_req *requests, int count, uint32_t timeout_ns,
                               struct mrc_ctl_ep_rsp *answers, int *answered);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
