/* The interface of NCCL's network plugins, versions 6 to 9, as far as the driver and the stand-in need it. Declarations
 * of our own: the order of the functions is the same in all four, and what differs between them is said. */
#ifndef NCCL_NET_H
#define NCCL_NET_H

#include <stddef.h>
#include <stdint.h>

enum { NCCL_SUCCESS = 0, NCCL_SYSTEM_ERROR = 2, NCCL_INTERNAL_ERROR = 3, NCCL_REMOTE_ERROR = 6 };
enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };
enum { NCCL_HANDLE_BYTES = 128, NCCL_POINTER_HOST = 1, NCCL_MOST_RECEIVES = 8 };

typedef void (*nccl_log)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

/* Version 9. 6 and 7 lack both of the numbers that are marked, 8 the second. */
struct nccl_properties {
    const char *name;
    const char *pci_path;
    uint64_t guid;
    int pointers;
    int registration_is_global; /* from 8 on */
    int force_flush;            /* from 9 on */
    int speed;
    int port;
    float latency;
    int most_comms;
    int most_receives;
    int offload_type;
    int offload_version;
    int virtual_devices[5];
    size_t most_bytes[2];
};

/* Version 9. All functions return a result. */
struct nccl_net {
    const char *name;
    int (*init)(nccl_log log);
    int (*devices)(int *count);
    int (*get_properties)(int device, struct nccl_properties *properties);
    int (*listen)(int device, void *handle, void **listener);
    int (*connect)(int device, void *handle, void **sender, void **offload); /* `offload` from 7 on */
    int (*accept)(void *listener, void **receiver, void **offload);          /* the same */
    int (*reg_mr)(void *comm, void *data, size_t size, int type, void **mr); /* int before 8 */
    int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd, void **mr);
    int (*dereg_mr)(void *comm, void *mr);
    int (*isend)(void *sender, void *data, size_t size, int tag, void *mr, void **request); /* int before 9 */
    int (*irecv)(void *receiver, int count, void **data, size_t *sizes, int *tags, void **mrs,
                 void **request); /* int * before 9 */
    int (*iflush)(void *receiver, int count, void **data, int *sizes, void **mrs, void **request);
    int (*test)(void *request, int *done, int *sizes);
    int (*close_send)(void *sender);
    int (*close_recv)(void *receiver);
    int (*close_listen)(void *listener);
    void *get_device_mr, *irecv_consumed; /* from 7 on */
    void *make_virtual_device;            /* from 9 on */
};

#endif
