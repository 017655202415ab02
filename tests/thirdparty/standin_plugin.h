/* A stand-in for a plugin of NCCL's network interface over the MRC API, of our own: what all its files know. */
#ifndef STANDIN_PLUGIN_H
#define STANDIN_PLUGIN_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mrc_testbed.h"
#include "nccl_net.h"

enum { REQUESTS = 64, MOST_QPS = 4, MOST_DEVICES = 4, SLOT_BYTES = 64 };

#define WARN(...) standin_log(NCCL_LOG_WARN, 0, __FILE__, __LINE__, __VA_ARGS__)

/* Returns from the function with `result` unless `good`, and says where. */
#define NEED(good, result)                     \
    do {                                       \
        if (!(good)) {                         \
            WARN("not so: %s", #good);         \
            return result;                     \
        }                                      \
    } while (0)

struct device {
    struct ibv_context *verbs;
    struct mrc_context *context;
    struct ibv_pd *pd;
    int pd_users;
    char *pci_path;
    uint64_t guid;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int gid_index;
    atomic_int fatal_events; /* QPs and CQs have it as their context, and its thread adds to it */
};

/* "Clear to send": what the receiver writes into the memory of the sender. */
struct slot {
    uint64_t address;
    uint32_t rkey, count;
    int tag;
    uint32_t size;
    uint64_t number; /* of the group, from 1 */
    char unused[SLOT_BYTES - 32];
};

struct facts { /* what both tell each other over TCP */
    uint32_t qpns[MOST_QPS], rkey, mtu;
    uint64_t address; /* the sender's slots, the receiver's sizes */
    union ibv_gid gid;
};

struct request {
    struct comm *comm;
    int pending, count; /* completions that are missing; messages of its group */
    bool in_use;
    uint64_t group, size;
};

enum stage { CONNECTING, TELLING, HEARING, READY };

struct comm {
    struct device *device;
    struct ibv_mr *shared_mr, *own_mr;
    struct mrc_cq *cq;
    struct ibv_cq *flush_cq;
    struct mrc_qp *qps[MOST_QPS];
    struct mrc_qp_hint *hints[MOST_QPS];
    struct facts own, peer;
    int qp_count, fd;
    bool sends;
    enum stage stage;
    size_t moved; /* bytes of the present stage */
    char ready;
    uint64_t head; /* groups so far */
    struct request requests[REQUESTS];
    struct request *group[NCCL_MOST_RECEIVES]; /* of the sender: those of the present group that have been asked for */
    const void *group_data[NCCL_MOST_RECEIVES];
    uint32_t group_keys[NCCL_MOST_RECEIVES];
    struct slot slots[REQUESTS][NCCL_MOST_RECEIVES] __attribute__((aligned(SLOT_BYTES)));
    int sizes[REQUESTS][NCCL_MOST_RECEIVES];
};

struct listener {
    struct device *device;
    int fd;
    struct comm *pending;
};

struct handle { /* in NCCL's 128 bytes; `pending` is for connect, which is called again and again */
    struct sockaddr_in at;
    struct comm *pending;
};

extern nccl_log standin_log;
extern struct device standin_devices[MOST_DEVICES];
extern struct sockaddr_in standin_address;

int standin_variable(const char *name, int usual);

int standin_init(nccl_log log);
int standin_count(int *count);
int standin_properties(int device, struct nccl_properties *properties);

int standin_listen(int device, void *handle, void **listener);
int standin_connect(int device, void *handle, void **sender, void **offload);
int standin_accept(void *listener, void **receiver, void **offload);
int standin_close(void *comm);
int standin_close_listen(void *listener);

int standin_make_objects(struct comm *comm);
int standin_connect_qps(struct comm *comm);

int standin_reg_mr(void *comm, void *data, size_t size, int type, void **mr);
int standin_dereg_mr(void *comm, void *mr);
int standin_isend(void *comm, void *data, size_t size, int tag, void *mr, void **request);
int standin_irecv(void *comm, int count, void **data, size_t *sizes, int *tags, void **mrs, void **request);
int standin_test(void *request, int *done, int *sizes);

#endif
