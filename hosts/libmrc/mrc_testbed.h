/* Declarations of the MRC application API, our own: with them a program can be built without anybody's mrc.h.
 * Names, values and layouts are those that MRC programs use, so a program may include its own mrc.h instead, not both.
 *
 * Functions return 0 or a positive errno ("errno"), 0 or -1 with errno set ("-1"), a pointer or NULL with errno set. */
#ifndef MRC_TESTBED_H
#define MRC_TESTBED_H

#include "verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define MRC_API_VERSION 0x01000001u
#define MRC_VENDOR_API_VERSION 0x01000000u

enum mrc_device_cap { MRC_DEVICE_CAP_TRIM_NACK = 1, MRC_DEVICE_CAP_DYNAMIC_MPR = 2, MRC_DEVICE_CAP_SVC_TIME = 4 };

enum mrc_qp_hint_attr_mask {
    MRC_QP_HINT_NUM_QPS_PER_PEER = 1,
    MRC_QP_HINT_NUM_SEND_PEERS = 2,
    MRC_QP_HINT_NUM_REMOTE_RECV_PEERS = 4,
    MRC_QP_HINT_VENDOR_CFG = (int)0x80000000,
};

enum mrc_qp_attr_mask {
    MRC_QP_MAX_WIMM = 0x1,
    MRC_QP_MAX_WIMM_DEST = 0x2,
    MRC_QP_MPR = 0x4,
    MRC_QP_MPR_DEST = 0x8,
    MRC_QP_TIMEOUT = 0x10,
    MRC_QP_EV_PROFILE_ID = 0x20,
    MRC_QP_CC_PROFILE_ID = 0x40,
    MRC_QP_HINT = 0x80,
    MRC_QP_RETRY_CNT = 0x100,
    MRC_QP_CAP = 0x200,
    MRC_QP_VENDOR_CFG = (int)0x80000000,
};

enum mrc_qp_cap {
    MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED = 1,
    MRC_QP_CAP_DYNAMIC_MPR = 2,
    MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED = 4,
};

struct mrc_context;
struct mrc_qp;
struct mrc_cq;
struct mrc_comp_channel;
struct mrc_qp_hint;

struct mrc_device_attr {
    uint32_t mrc_protocol_version; /* bit map */
    struct {
        uint16_t max_wimm;
        uint16_t max_wimm_dest;
    } wimm_attr;
    struct {
        uint8_t max_mpr; /* in units of 128 PSNs */
        uint8_t mpr_resolution;
    } mpr_attr;
    struct {
        uint32_t max_qp_hint;
    } qp_attr;
    uint32_t cap; /* enum mrc_device_cap */
};

struct mrc_context_attr {
    uint32_t mrc_api_version_used; /* 0: the newest */
    uint32_t mrc_vendor_api_version_used;
};

struct mrc_qp_hint_attr {
    uint32_t num_qps_per_peer;
    uint32_t num_send_peers;
    uint32_t num_remote_recv_peers;
    uint8_t vendor_cfg[128];
};

struct mrc_qp_hint_init_attr {
    struct mrc_qp_hint_attr attr;
};

struct mrc_qp_init_attr {
    void *qp_context;
    struct mrc_cq *send_cq;
    struct mrc_cq *recv_cq;
    struct ibv_qp_cap cap; /* rewritten with what was given */
    int sq_sig_all;
    struct ibv_pd *pd;
    uint64_t send_ops_flags;
    uint32_t protocol_version;
};

struct mrc_qp_attr {
    struct {
        uint8_t mpr;
        uint8_t mpr_dest;
    } mpr;
    struct {
        uint16_t max_wimm;
        uint16_t max_wimm_dest;
    } wimm;
    uint8_t timeout; /* 1.024 us x 2^timeout, at most 24 */
    struct {
        uint64_t ev_profile_id;
        uint64_t cc_profile_id;
    } profile;
    struct {
        uint8_t linear_cnt; /* at most 7 */
        uint8_t exp_cnt;    /* at most 25: for ever */
    } retry;
    struct mrc_qp_hint *qp_hint;
    uint32_t cap; /* enum mrc_qp_cap */
    uint8_t vendor_cfg[128];
};

struct mrc_async_event {
    union {
        struct mrc_cq *cq;
        struct mrc_qp *qp;
        int port_num;
    } element;
    enum ibv_event_type event_type;
};

/* Versions: major << 24 | minor << 16 | sub. Any pointer may be NULL. */
void mrc_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor_current, uint32_t *vendor_oldest);
/* -1 */
int mrc_query_device(struct ibv_context *context, struct mrc_device_attr *attr, int *supported);
int mrc_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_device_attr *attr,
                        int *supported);
/* `attr` may be NULL. */
struct mrc_context *mrc_create_context(struct ibv_context *context, struct mrc_context_attr *attr);
/* -1. Destroys what the context still has. */
int mrc_destroy_context(struct mrc_context *context);

/* errno, but -1 of the second and of mrc_get_cq_event */
int mrc_create_comp_channel(struct mrc_context *context, struct mrc_comp_channel **channel);
int mrc_get_comp_channel_fd(struct mrc_comp_channel *channel, int *fd);
int mrc_destroy_comp_channel(struct mrc_comp_channel *channel);
struct mrc_cq *mrc_create_cq(struct mrc_context *context, int cqe, void *cq_context, struct mrc_comp_channel *channel,
                             int comp_vector);
/* The number of completions, or -1. Waits 1 ms at most, after 32 empty calls of a thread, then after every
 * 8th until there is a completion. */
int mrc_poll_cq(struct mrc_cq *cq, int num_entries, struct ibv_wc *wc);
int mrc_req_notify_cq(struct mrc_cq *cq, int solicited_only);
int mrc_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **cq, void **cq_context);
void mrc_ack_cq_events(struct mrc_cq *cq, unsigned int nevents);
int mrc_destroy_cq(struct mrc_cq *cq);

/* -1 */
struct mrc_qp_hint *mrc_create_qp_hint(struct mrc_context *context, struct mrc_qp_hint_init_attr *attr);
int mrc_destroy_qp_hint(struct mrc_qp_hint *hint);
int mrc_query_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int attr_mask);
int mrc_modify_qp_hint(struct mrc_qp_hint *hint, struct mrc_qp_hint_attr *attr, int attr_mask);

/* errno, but -1 of mrc_get_qpn */
struct mrc_qp *mrc_create_qp(struct mrc_context *context, struct mrc_qp_init_attr *attr);
int mrc_destroy_qp(struct mrc_qp *qp);
int mrc_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct mrc_qp_attr *mrc_attr,
                 int mrc_attr_mask, struct mrc_qp_init_attr *init_attr);
int mrc_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct mrc_qp_attr *mrc_attr,
                  int mrc_attr_mask);
int mrc_get_qpn(struct mrc_qp *qp, uint32_t *qpn);
/* Only writes, with or without immediate. On an error `*bad_wr` is the first request that was not taken. */
int mrc_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* For immediates: their data go where the write says. */
int mrc_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* -1. One queue a device context, whichever API its objects come from. */
int mrc_get_async_event(struct mrc_context *context, struct mrc_async_event *event);
void mrc_ack_async_event(struct mrc_async_event *event);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
