/* What the stand-in plugin exports: version 9 of the interface, or only version 6 with -DSTANDIN_IS_OLD. */
#include "standin_plugin.h"

#define EXPORTED __attribute__((visibility("default")))

#ifdef STANDIN_IS_OLD

static int connect_old(int device, void *handle, void **sender) {
    return standin_connect(device, handle, sender, NULL);
}

static int accept_old(void *listener, void **receiver) { return standin_accept(listener, receiver, NULL); }

static int reg_mr_old(void *comm, void *data, int size, int type, void **mr) {
    return standin_reg_mr(comm, data, (size_t)size, type, mr);
}

static int isend_old(void *comm, void *data, int size, int tag, void *mr, void **request) {
    return standin_isend(comm, data, (size_t)size, tag, mr, request);
}

static int irecv_old(void *comm, int count, void **data, int *sizes, int *tags, void **mrs, void **request) {
    size_t wide[NCCL_MOST_RECEIVES];
    for (int i = 0; i < count; i++) {
        wide[i] = (size_t)sizes[i];
    }
    return standin_irecv(comm, count, data, wide, tags, mrs, request);
}

static int properties_old(int device, struct nccl_properties *properties) { /* the fields after `pointers` are nearer */
    struct nccl_properties found;
    int result = standin_properties(device, &found);
    memcpy(properties, &found, offsetof(struct nccl_properties, registration_is_global));
    memcpy(&properties->registration_is_global, &found.speed, 5 * sizeof(int));
    return result;
}

EXPORTED const struct {
    const char *name;
    int (*init)(nccl_log);
    int (*devices)(int *);
    int (*get_properties)(int, struct nccl_properties *);
    int (*listen)(int, void *, void **);
    int (*connect)(int, void *, void **);
    int (*accept)(void *, void **);
    int (*reg_mr)(void *, void *, int, int, void **);
    void *reg_mr_dmabuf;
    int (*dereg_mr)(void *, void *);
    int (*isend)(void *, void *, int, int, void *, void **);
    int (*irecv)(void *, int, void **, int *, int *, void **, void **);
    void *iflush;
    int (*test)(void *, int *, int *);
    int (*close_send)(void *);
    int (*close_recv)(void *);
    int (*close_listen)(void *);
} ncclNetPlugin_v6 = {"standin",        standin_init,   standin_count,       properties_old,   standin_listen,
                      connect_old,      accept_old,     reg_mr_old,          NULL,             standin_dereg_mr,
                      isend_old,        irecv_old,      NULL,                standin_test,     standin_close,
                      standin_close,    standin_close_listen};

#else

/* Memory of a host needs neither a flush nor a DMA buffer: these functions are not called, and so not there. */
EXPORTED const struct nccl_net ncclNetPlugin_v9 = {
    .name = "standin",
    .init = standin_init,
    .devices = standin_count,
    .get_properties = standin_properties,
    .listen = standin_listen,
    .connect = standin_connect,
    .accept = standin_accept,
    .reg_mr = standin_reg_mr,
    .dereg_mr = standin_dereg_mr,
    .isend = standin_isend,
    .irecv = standin_irecv,
    .test = standin_test,
    .close_send = standin_close,
    .close_recv = standin_close,
    .close_listen = standin_close_listen,
};

#endif
