/* What the files of this library share. One mutex guards all of it.
 *
 * A connection is to the daemon of the program's host, one in a process: every device context shares it. It is drained
 * by whichever thread polls, waits for a reply or waits for an event. Functions whose comment says "locked" are called
 * with the mutex held; those of them that wait give it up meanwhile. */
#ifndef MT_INTERNAL_H
#define MT_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include "messages.h"
#include "mrc_testbed.h"

/* What programs call. All else is hidden, but where libmrc.so takes it from libibverbs.so.1. */
#define MT_EXPORT __attribute__((visibility("default")))
#ifdef MT_TWO_LIBRARIES
#pragma GCC visibility push(default)
#endif

enum { MT_MOST_GIDS = 4, MT_MOST_MESSAGE = 1 << 30, MT_QP_BUCKETS = 256, MT_REPLY_SECONDS = 30 };

struct mt_waiter {
    struct mt_waiter *next;
    uint64_t token;
    bool done;
    union mt_record *reply;
};

struct mt_connection {
    struct mt_connection *next; /* of this process */
    int fd;
    int async_fd;   /* the daemon adds 1 for each ASYNC */
    int async_owed; /* ASYNC records taken, less what was read of async_fd */
    unsigned references;
    bool dead;
    bool forked;    /* made by the parent of this process */
    bool listening; /* a thread is in poll(), and drains then */
    bool has_reader; /* a thread of this library, that frees the connection if nobody refers to it any more */
    pthread_cond_t news; /* something was drained */
    uint64_t last_token;
    struct mt_waiter *waiters;
    struct mt_context *contexts;
    struct mrc_qp *qps[MT_QP_BUCKETS];
    uint32_t last_pd;
    struct mt_hello_reply hello; /* what the device can do */
};

/* The whole of what `ibv_context` is the last member of: programs and other libraries reach ops through it. */
struct mt_verbs_context {
    int (*query_port)(struct ibv_context *, uint8_t port, struct ibv_port_attr *, size_t bytes);
    void *_unused_1[24];
    void *(*create_cq_ex)(struct ibv_context *, void *attr);
    void *_unused_26[7];
    struct ibv_qp *(*create_qp_ex)(struct ibv_context *, void *attr);
    void *_unused_34[5];
    size_t sz;
    struct ibv_context context;
};

_Static_assert(sizeof(struct ibv_context_ops) == 256, "32 functions");

enum mt_object_kind { MT_OBJECT_QP, MT_OBJECT_CQ, MT_OBJECT_CHANNEL, MT_OBJECT_HINT, MT_OBJECT_MR, MT_OBJECT_PD };

/* What a device context owns, first in each of its objects, so that closing it can clean up. */
struct mt_object {
    struct mt_object *next, **place;
    enum mt_object_kind kind;
    struct mrc_context *owner; /* or NULL: made through plain verbs */
};

struct mt_event {
    struct mt_event *next;
    struct mt_object *object; /* a QP or CQ, or NULL */
    enum ibv_event_type type;
    int port;
};

struct mt_context {
    struct mt_context *next; /* of the connection */
    struct mt_connection *connection;
    struct mt_object *objects;
    struct mt_event *events, **last_event;
    int event_fd; /* as many as there are events */
    int waiting;  /* threads in ibv_get_async_event */
    bool closed;
    struct mt_verbs_context verbs; /* async_fd: an epoll of event_fd, the connection's async_fd and its end */
};

struct mrc_context {
    struct ibv_context *verbs;
    uint32_t api_version; /* 0: the newest */
};

/* The first members of QPs, CQs and channels are pointers: programs read `ibv_qp *` and `ibv_cq *` there. */
struct mrc_comp_channel {
    struct ibv_comp_channel *verbs;
    struct mt_object object;
    struct mrc_cq *first, **last; /* CQs with an event that nobody has fetched */
    struct ibv_comp_channel shadow;
};

struct mt_completion {
    struct ibv_wc wc;
    struct mrc_qp *qp;
    bool of_receive;
};

enum mt_armed { MT_NOT_ARMED, MT_ARMED_SOLICITED, MT_ARMED };

struct mrc_cq {
    struct ibv_cq *verbs;
    struct mt_object object;
    unsigned users; /* QPs */
    struct mt_completion *ring;
    unsigned capacity, first, count;
    bool overflowed;
    enum mt_armed armed;
    struct mrc_cq *next_event; /* in its channel's list; */
    unsigned events_waiting;   /* in it while not 0 */
    uint32_t events_fetched, async_fetched;
    void *ctl; /* of hosts/libmrc/ctl*.c: the CQ is one of EV events */
    struct ibv_cq shadow;
};

struct mrc_qp_hint {
    struct mt_object object;
    struct mt_context *context;
    unsigned users;
    struct mrc_qp_hint_attr attr;
};

struct mt_pd {
    struct mt_object object;
    unsigned users; /* MRs and QPs */
    struct ibv_pd shadow;
};

struct mt_mr {
    struct mt_object object;
    struct ibv_mr shadow;
};

struct mt_write {
    uint64_t wr_id;
    uint32_t length;
    bool signaled;
};

struct mt_ring {
    unsigned capacity, first, count;
    unsigned used; /* `count`, and completions that nobody has polled */
};

struct mrc_qp {
    struct ibv_qp *verbs;
    struct mt_object object;
    struct mrc_qp *next; /* in its bucket */
    struct mt_ring sends, receives;
    struct mt_write *writes;
    uint64_t *receive_ids;
    uint8_t *inline_data; /* MT_INLINE_BYTES for each of `writes` */
    struct ibv_qp_cap cap;
    bool sq_sig_all;
    bool refused_opcode; /* said so on stderr */
    uint32_t protocol_version;
    uint32_t events_fetched;
    struct ibv_qp_attr attr;
    struct mrc_qp_attr mrc_attr;
    int mrc_given; /* bits of mrc_qp_attr_mask */
    struct ibv_qp shadow;
};

#define MT_OUTER(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

static inline struct mt_context *mt_context_of(struct ibv_context *context) {
    return MT_OUTER(context, struct mt_context, verbs.context);
}

static inline struct mt_connection *mt_connection_of(struct ibv_context *context) {
    return mt_context_of(context)->connection;
}

static inline struct mrc_qp *mt_qp_of(struct ibv_qp *qp) { return MT_OUTER(qp, struct mrc_qp, shadow); }
static inline struct mrc_cq *mt_cq_of(struct ibv_cq *cq) { return MT_OUTER(cq, struct mrc_cq, shadow); }
static inline struct mt_pd *mt_pd_of(struct ibv_pd *pd) { return MT_OUTER(pd, struct mt_pd, shadow); }
static inline struct mrc_comp_channel *mt_channel_of(struct ibv_comp_channel *channel) {
    return MT_OUTER(channel, struct mrc_comp_channel, shadow);
}

/* lock.c */
void mt_lock(void);
void mt_unlock(void);
/* errno = error; 0 without an error, else -1. */
int mt_fail(int error);
/* errno = error, if it is one; error. */
int mt_error(int error);
/* Gives up the mutex until `condition` is signaled or it is later than `until` (NULL: no end) by the condition's clock.
 * Locked. */
int mt_wait_on(pthread_cond_t *condition, const struct timespec *until);
/* errno = error; NULL. */
void *mt_null(int error);
/* One line on stderr: "mrc-testbed: DEVICE: TEXT". */
void mt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *mt_device_name(void);

/* connection.c */
/* The connection of this process with one reference more; made if there is none. NULL with errno. Locked. */
struct mt_connection *mt_connect(void);
void mt_release(struct mt_connection *connection);
/* Starts the thread that drains the connection while nobody polls. 0 or errno. Locked. */
int mt_start_reader(struct mt_connection *connection);
/* 0, EPERM in a child of the process that connected, EIO when the daemon is gone. Locked. */
int mt_usable(const struct mt_connection *connection);
/* No more of this daemon: flushes and tells everybody, once. Locked. */
void mt_died(struct mt_connection *connection);

/* wire.c */
/* Sends 1 to MT_MOST_POSTS records in one datagram; waits while the daemon is behind, giving up the mutex. 0 or errno.
 * Locked. */
int mt_send(struct mt_connection *connection, const union mt_record *records, unsigned count);
/* The same if it need not wait, else EAGAIN. */
int mt_send_now(struct mt_connection *connection, const union mt_record *records, unsigned count);
void mt_wait_to_send(struct mt_connection *connection);
/* A token that no request of the connection has had: for records that are sent without waiting. Locked. */
uint64_t mt_new_token(struct mt_connection *connection);
/* Gives the request a token, sends it and waits for its REPLY; other records are dispatched meanwhile. Gives up the
 * mutex. 0 or errno: EPERM, EIO, or the `error` of the REPLY, whose text goes to stderr. `reply` may be NULL.
 * Locked. */
int mt_request(struct mt_connection *connection, union mt_record *request, union mt_record *reply);
/* Takes all records that have arrived. Locked. */
void mt_drain(struct mt_connection *connection);
/* Waits until records arrive, any thread has drained some, or the time is over (-1: no end), and drains. Gives up the
 * mutex. Locked. */
void mt_wait(struct mt_connection *connection, int milliseconds);

/* news.c */
/* What one record of the daemon changes. False: no record that a daemon may send. Locked. */
bool mt_dispatch(struct mt_connection *connection, const union mt_record *record);

/* Called with the mutex held for records that only the controller functions know. Set once; members may be NULL. */
struct mt_ctl_hooks {
    void (*on_ev_state)(struct mt_connection *connection, const struct mt_ev_state *record);
    void (*on_probed)(struct mt_connection *connection, const struct mt_probed *record);
    void (*on_died)(struct mt_connection *connection);
    void (*on_cq_destroyed)(struct mrc_cq *cq); /* one whose `ctl` is not NULL */
};
void mt_set_ctl_hooks(const struct mt_ctl_hooks *hooks);
void mt_ctl_died(struct mt_connection *connection);
void mt_ctl_cq_destroyed(struct mrc_cq *cq);

/* objects.c */
void mt_own(struct mt_context *context, struct mt_object *object, enum mt_object_kind kind, struct mrc_context *owner);
void mt_disown(struct mt_object *object);
/* Destroys what the context has, or only what `owner` has, if that is not NULL. Locked. */
void mt_destroy_objects(struct mt_context *context, struct mrc_context *owner);
/* Nobody uses it. Locked. */
void mt_free_hint(struct mrc_qp_hint *hint);

/* channel.c */
struct mrc_comp_channel *mt_create_channel(struct ibv_context *context, struct mrc_context *owner);
void mt_free_channel(struct mrc_comp_channel *channel);
int mt_destroy_channel(struct mrc_comp_channel *channel);
int mt_get_cq_event(struct mrc_comp_channel *channel, struct mrc_cq **cq);
void mt_ack_cq_events(struct mrc_cq *cq, unsigned count);
/* The CQ has something new: an event, if it is armed. Locked. */
void mt_notify(struct mrc_cq *cq, bool solicited);
/* Of a CQ that goes: its events leave the channel. Locked. */
void mt_forget_cq_events(struct mrc_cq *cq);
/* Wakes who waits for an event of a dead device. Locked. */
void mt_wake_channel(struct mrc_comp_channel *channel);

/* cq.c */
struct mrc_cq *mt_create_cq(struct ibv_context *context, struct mrc_context *owner, int cqe, void *cq_context,
                            struct mrc_comp_channel *channel, int comp_vector);
void mt_free_cq(struct mrc_cq *cq);
int mt_destroy_cq(struct mrc_cq *cq);
int mt_poll_cq(struct mrc_cq *cq, int count, struct ibv_wc *wc);
int mt_req_notify_cq(struct mrc_cq *cq, int solicited_only);
/* Locked. */
void mt_complete(struct mrc_cq *cq, const struct mt_completion *completion);
void mt_forget_completions(struct mrc_cq *cq, const struct mrc_qp *qp);

/* qp.c */
struct mrc_qp *mt_create_qp(struct ibv_context *context, struct mrc_context *owner, struct mrc_qp_init_attr *attr);
/* Takes it from the CQs and frees it, without a word to the daemon. Locked. */
void mt_free_qp(struct mrc_qp *qp);
int mt_destroy_qp(struct mrc_qp *qp);
struct mrc_qp *mt_find_qp(struct mt_connection *connection, uint32_t qpn);

/* modify.c */
int mt_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, int mask, struct mrc_qp_attr *mrc_attr, int mrc_mask);
int mt_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *attr, struct mrc_qp_attr *mrc_attr);

/* post.c */
int mt_post_send(struct mrc_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int mt_post_recv(struct mrc_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* finish.c: how work requests end. Locked. */
/* False: the QP had not that many. */
bool mt_sent(struct mrc_qp *qp, uint32_t count);
bool mt_received(struct mrc_qp *qp, uint32_t immediate, uint32_t bytes);
/* To state ERROR: the oldest write ends with `status`, all else is flushed. */
void mt_break_qp(struct mrc_qp *qp, enum ibv_wc_status status);
/* Forgets all that is outstanding, without completions. */
void mt_clear_qp(struct mrc_qp *qp);

/* memory.c */
void mt_free_pd(struct mt_pd *pd);
void mt_free_mr(struct mt_mr *mr);
/* 0, or EFAULT where the program may not read these bytes, or not write them. */
int mt_check_memory(const void *address, size_t length, bool write);

/* async.c */
/* `object`: the QP or CQ, or NULL. Locked. */
void mt_raise(struct mt_context *context, enum ibv_event_type type, struct mt_object *object, int port);
int mt_get_event(struct mt_context *context, struct mt_event *event);
void mt_ack_event(enum ibv_event_type type, void *qp_or_cq);
bool mt_is_of_qp(enum ibv_event_type type);
/* Waits until all fetched events of it are acknowledged. Gives up the mutex. Locked. */
void mt_settle_qp(struct mrc_qp *qp);
void mt_settle_cq(struct mrc_cq *cq);
/* Something was acknowledged: threads that wait in the two above look again. Locked. */
void mt_wake_destroyers(void);
/* Drops what nobody has fetched of an object that goes. Locked. */
void mt_drop_events(struct mt_context *context, const struct mt_object *object);

/* device.c, ports.c */
/* Of one that is closed, when no thread waits in it. Locked. */
void mt_free_context(struct mt_context *context);
int mt_port_attr(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);

/* extended.c: what ibv_create_qp_ex and ibv_create_cq_ex of rdma-core reach. */
struct ibv_qp *mt_create_qp_ex(struct ibv_context *context, void *attr);
void *mt_create_cq_ex(struct ibv_context *context, void *attr);

#ifdef MT_TWO_LIBRARIES
#pragma GCC visibility pop
#endif

#endif
