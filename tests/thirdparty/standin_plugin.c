/* Devices of the stand-in plugin. */
#include "standin_plugin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Of libmlx5, which nothing here is linked with: the library below must have it, or the plugin does not load. */
extern bool mlx5dv_is_supported(struct ibv_device *device);
/* Of libibverbs, but not of the headers of programs without GPUs. */
extern struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access);

#ifndef STANDIN_SYS
#define STANDIN_SYS "/sys/class/infiniband"
#endif

nccl_log standin_log;
struct device standin_devices[MOST_DEVICES];
struct sockaddr_in standin_address;

static int device_count;

int standin_variable(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

static int find_address(void) {
    struct ifaddrs *all;
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    NEED(wanted && !getifaddrs(&all), NCCL_SYSTEM_ERROR);
    for (struct ifaddrs *each = all; each; each = each->ifa_next) {
        if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET && !strcmp(each->ifa_name, wanted)) {
            standin_address = *(struct sockaddr_in *)each->ifa_addr;
        }
    }
    freeifaddrs(all);
    NEED(standin_address.sin_family == AF_INET, NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

static void note_fatal(const struct ibv_async_event *event) {
    void *counted = NULL;
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        counted = event->element.qp->qp_context;
        break;
    case IBV_EVENT_CQ_ERR:
        counted = event->element.cq->cq_context;
        break;
    default:
        WARN("asynchronous event: %s", ibv_event_type_str(event->event_type));
    }
    if (counted) {
        WARN("fatal event: %s", ibv_event_type_str(event->event_type));
        atomic_fetch_add((atomic_int *)counted, 1);
    }
}

static void *watch(void *given) { /* for the life of the process */
    struct device *device = given;
    struct ibv_async_event event;
    while (!ibv_get_async_event(device->verbs, &event)) {
        note_fatal(&event);
        if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
            atomic_fetch_add(&device->fatal_events, 1);
        }
        ibv_ack_async_event(&event);
    }
    return NULL;
}

/* The first entry that holds an IPv4 address; it must be the one that the run names. */
static int find_gid(struct device *device) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    device->gid_index = -1;
    for (int i = device->port.gid_tbl_len - 1; i >= 0; i--) {
        union ibv_gid gid;
        NEED(!ibv_query_gid(device->verbs, 1, i, &gid), NCCL_SYSTEM_ERROR);
        if (!memcmp(gid.raw, mapped, sizeof mapped)) {
            device->gid_index = i;
            device->gid = gid;
        }
    }
    NEED(device->gid_index >= 0, NCCL_SYSTEM_ERROR);
    NEED(device->gid_index == standin_variable("NCCL_IB_GID_INDEX", device->gid_index), NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

static int open_port(struct device *device, struct ibv_device *from) {
    char link[PATH_MAX];
    struct mrc_device_attr found;
    struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_VERSION};
    int is_supported = 0;
    pthread_t thread;
    snprintf(link, sizeof link, STANDIN_SYS "/%s/device", ibv_get_device_name(from));
    NEED((device->pci_path = realpath(link, NULL)) != NULL, NCCL_SYSTEM_ERROR);
    NEED(strlen(device->pci_path) > strlen("0000:01:00.0"), NCCL_SYSTEM_ERROR);
    NEED(!mrc_query_device(device->verbs, &found, &is_supported) && is_supported, NCCL_SYSTEM_ERROR);
    NEED((device->context = mrc_create_context(device->verbs, &version)) != NULL, NCCL_SYSTEM_ERROR);
    NEED(!ibv_reg_dmabuf_mr(NULL, 0, 0, 0, -1, 0) && errno == EOPNOTSUPP, NCCL_SYSTEM_ERROR);
    NEED(!find_gid(device), NCCL_SYSTEM_ERROR);
    NEED(!pthread_create(&thread, NULL, watch, device) && !pthread_detach(thread), NCCL_SYSTEM_ERROR);
    return NCCL_SUCCESS;
}

static int open_device(struct ibv_device *from) {
    struct device *device = &standin_devices[device_count];
    struct ibv_device_attr found;
    const char *wanted = getenv("NCCL_IB_HCA");
    if (wanted && strncmp(wanted, from->name, strlen(wanted))) {
        return NCCL_SUCCESS;
    }
    NEED((device->verbs = ibv_open_device(from)) != NULL, NCCL_SYSTEM_ERROR);
    NEED(!mlx5dv_is_supported(from), NCCL_SYSTEM_ERROR);
    NEED(!ibv_query_device(device->verbs, &found), NCCL_SYSTEM_ERROR);
    device->guid = found.sys_image_guid;
    for (uint8_t port = 1; port <= found.phys_port_cnt; port++) {
        NEED(!ibv_query_port(device->verbs, port, &device->port), NCCL_SYSTEM_ERROR);
        if (device->port.state == IBV_PORT_ACTIVE) {
            NEED(!open_port(device, from), NCCL_SYSTEM_ERROR);
            device_count++;
        }
    }
    return NCCL_SUCCESS;
}

int standin_init(nccl_log log) {
    int count = 0, result = NCCL_SUCCESS;
    standin_log = log;
    NEED(!ibv_fork_init() && !find_address(), NCCL_SYSTEM_ERROR);
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; i < count && device_count < MOST_DEVICES && !result; i++) {
        result = open_device(list[i]);
    }
    ibv_free_device_list(list); /* the contexts stay */
    return result;
}

int standin_count(int *count) {
    *count = device_count;
    return NCCL_SUCCESS;
}

int standin_properties(int number, struct nccl_properties *properties) {
    struct device *device = &standin_devices[number];
    *properties = (struct nccl_properties){.name = device->verbs->device->name,
                                           .pci_path = device->pci_path,
                                           .guid = device->guid,
                                           .pointers = NCCL_POINTER_HOST,
                                           .speed = 100000,
                                           .port = 1,
                                           .most_comms = 16,
                                           .most_receives = NCCL_MOST_RECEIVES};
    return NCCL_SUCCESS;
}
