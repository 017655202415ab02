/* The records between this library and the daemon of the program's host: hosts/verbs/messages.py in C.
 * A test compares the two, so what a field means stands only there. */
#ifndef MT_MESSAGES_H
#define MT_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");

enum {
    MT_VERSION = 1,
    MT_RECORD_BYTES = 128,
    MT_MOST_POSTS = 16,
    MT_MOST_NEWS = 32,
    MT_INLINE_BYTES = 256,
    MT_GID_INDEX = 3,
    MT_TEXT_BYTES = 96,
};

enum mt_kind {
    MT_HELLO = 1,
    MT_REG_MR = 2,
    MT_DEREG_MR = 3,
    MT_CREATE_QP = 4,
    MT_DESTROY_QP = 5,
    MT_MODIFY_QP = 6,
    MT_POST_SEND = 7,
    MT_POST_RECV = 8,
    MT_QUERY_PORT = 9,
    MT_MODIFY_PORT = 10,
    MT_MODIFY_EV = 11,
    MT_QUERY_EVS = 12,
    MT_WATCH_EVS = 13,
    MT_PROBE = 14,
    MT_REPLY = 64,
    MT_SENT = 65,
    MT_RECEIVED = 66,
    MT_QP_ERROR = 67,
    MT_ASYNC = 68,
    MT_EV_STATE = 69,
    MT_PROBED = 70,
};

enum mt_given {
    MT_GIVEN_TIMEOUT = 1,
    MT_GIVEN_RETRY = 2,
    MT_GIVEN_MPR = 4,
    MT_GIVEN_MPR_DEST = 8,
    MT_GIVEN_MAX_WIMM = 16,
    MT_GIVEN_MAX_WIMM_DEST = 32,
    MT_GIVEN_CAP = 64,
};

enum mt_post_flag { MT_POST_IMMEDIATE = 1, MT_POST_INLINE = 2 };

#define MT_PACKED __attribute__((packed))

struct MT_PACKED mt_hello {
    uint32_t kind, version;
    uint64_t token;
    uint32_t pid, reserved;
    char name[32];
};

struct MT_PACKED mt_reg_mr {
    uint32_t kind, pd;
    uint64_t token, address, length;
    uint32_t access;
};

struct MT_PACKED mt_dereg_mr {
    uint32_t kind, key;
    uint64_t token;
};

struct MT_PACKED mt_create_qp {
    uint32_t kind, pd;
    uint64_t token;
    uint32_t max_send_wr, max_recv_wr;
};

struct MT_PACKED mt_destroy_qp {
    uint32_t kind, qpn;
    uint64_t token;
};

struct MT_PACKED mt_modify_qp {
    uint32_t kind, qpn;
    uint64_t token;
    uint32_t state, dest_qpn, rq_psn, sq_psn, path_mtu, given;
    uint8_t dgid[16];
    uint16_t max_wimm, max_wimm_dest;
    uint8_t timeout, linear, exp, mpr, mpr_dest, cap;
};

struct MT_PACKED mt_post_send {
    uint32_t kind, qpn;
    uint64_t address, remote_address;
    uint32_t length, lkey, rkey, immediate, flags;
};

struct MT_PACKED mt_post_recv {
    uint32_t kind, qpn, count;
};

struct MT_PACKED mt_query_port {
    uint32_t kind, port;
    uint64_t token;
};

struct MT_PACKED mt_modify_port {
    uint32_t kind, port;
    uint64_t token;
    uint32_t enabled;
};

struct MT_PACKED mt_modify_ev {
    uint32_t kind, ev;
    uint64_t token;
    uint8_t dgid[16];
    uint32_t denied;
};

struct MT_PACKED mt_query_evs {
    uint32_t kind, reserved;
    uint64_t token;
    uint8_t dgid[16];
};

struct MT_PACKED mt_watch_evs {
    uint32_t kind, on;
    uint64_t token;
};

struct MT_PACKED mt_probe {
    uint32_t kind, ev;
    uint64_t token;
    uint8_t dgid[16];
};

struct MT_PACKED mt_reply {
    uint32_t kind, error;
    uint64_t token;
    uint32_t value, reserved;
    char text[MT_TEXT_BYTES];
};

struct MT_PACKED mt_hello_reply {
    uint32_t kind, error;
    uint64_t token;
    uint32_t host, planes, payload_bytes, port_mask;
    uint64_t rtt_ns;
    uint32_t max_qp, max_qp_wr, max_cqe, max_mr;
    uint16_t max_wimm, mpr;
    uint32_t reserved;
    uint8_t gid[16];
    char name[16];
};

struct MT_PACKED mt_sent {
    uint32_t kind, qpn, count;
};

struct MT_PACKED mt_received {
    uint32_t kind, qpn, immediate, byte_len;
};

struct MT_PACKED mt_qp_error {
    uint32_t kind, qpn, status, reserved;
    char text[MT_TEXT_BYTES];
};

struct MT_PACKED mt_async {
    uint32_t kind, event, element;
};

struct MT_PACKED mt_ev_state {
    uint32_t kind, ev;
    uint8_t dgid[16];
    uint32_t state, port;
};

struct MT_PACKED mt_probed {
    uint32_t kind, ev;
    uint64_t token, rtt_ns;
    uint32_t port;
};

/* Any record. What all requests and replies share: their token, at one place. */
union mt_record {
    uint8_t bytes[MT_RECORD_BYTES];
    struct MT_PACKED {
        uint32_t kind, first;
        uint64_t token;
    };
    struct mt_hello hello;
    struct mt_reg_mr reg_mr;
    struct mt_dereg_mr dereg_mr;
    struct mt_create_qp create_qp;
    struct mt_destroy_qp destroy_qp;
    struct mt_modify_qp modify_qp;
    struct mt_post_send post_send;
    struct mt_post_recv post_recv;
    struct mt_query_port query_port;
    struct mt_modify_port modify_port;
    struct mt_modify_ev modify_ev;
    struct mt_query_evs query_evs;
    struct mt_watch_evs watch_evs;
    struct mt_probe probe;
    struct mt_reply reply;
    struct mt_hello_reply hello_reply;
    struct mt_sent sent;
    struct mt_received received;
    struct mt_qp_error qp_error;
    struct mt_async async;
    struct mt_ev_state ev_state;
    struct mt_probed probed;
};

_Static_assert(sizeof(union mt_record) == MT_RECORD_BYTES, "a record has 128 bytes");
_Static_assert(offsetof(union mt_record, token) == 8, "tokens stand at 8");
_Static_assert(offsetof(struct mt_reg_mr, token) == 8 && offsetof(struct mt_reply, token) == 8, "tokens stand at 8");
_Static_assert(offsetof(struct mt_modify_qp, cap) == 65 && sizeof(struct mt_modify_qp) == 66, "MODIFY_QP");
_Static_assert(sizeof(struct mt_hello_reply) == 96 && sizeof(struct mt_reply) == 120, "REPLY");

#endif
