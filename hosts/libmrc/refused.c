/* Functions of libibverbs that must exist, and have nothing to do here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "internal.h"

/* They are called through declarations of others, and no argument is looked at. */
#define NO_POINTER(name)          \
    MT_EXPORT void *name(void) {  \
        return mt_null(EOPNOTSUPP); \
    }
#define NO_NUMBER(name)        \
    MT_EXPORT int name(void) { \
        errno = EOPNOTSUPP;    \
        return EOPNOTSUPP;     \
    }

NO_POINTER(ibv_create_ah)
NO_POINTER(ibv_create_ah_from_wc)
NO_POINTER(ibv_create_srq)
NO_POINTER(ibv_import_device)
NO_POINTER(ibv_import_mr)
NO_POINTER(ibv_import_pd)
NO_POINTER(ibv_qp_to_qp_ex)
NO_POINTER(ibv_reg_dmabuf_mr)
NO_NUMBER(ibv_attach_mcast)
NO_NUMBER(ibv_destroy_ah)
NO_NUMBER(ibv_destroy_srq)
NO_NUMBER(ibv_detach_mcast)
NO_NUMBER(ibv_init_ah_from_wc)
NO_NUMBER(ibv_modify_srq)
NO_NUMBER(ibv_query_ece)
NO_NUMBER(ibv_query_srq)
NO_NUMBER(ibv_rereg_mr)
NO_NUMBER(ibv_resize_cq)
NO_NUMBER(ibv_resolve_eth_l2_from_gid)
NO_NUMBER(ibv_set_ece)

MT_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access) {
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

MT_EXPORT const char *ibv_get_sysfs_path(void) { return "/sys"; }

/* The number of bytes without the line's end, or -1. */
MT_EXPORT int ibv_read_sysfs_file(const char *folder, const char *file, char *text, size_t size) {
    char path[1024];
    if (size == 0 || snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) {
        return mt_fail(EINVAL);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size);
    if (fd >= 0) {
        close(fd);
    }
    if (length > 0 && text[length - 1] == '\n') {
        text[--length] = 0;
    } else if (length >= 0 && (size_t)length < size) {
        text[length] = 0;
    }
    return (int)length;
}

/* Not libibverbs's but libmlx5's: programs link them, and this device is none of its. */
#define WEAK __attribute__((weak))

MT_EXPORT WEAK bool mlx5dv_is_supported(struct ibv_device *device) {
    (void)device;
    return false;
}

MT_EXPORT WEAK int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t length) {
    (void)context;
    (void)path;
    (void)length;
    return ENODEV;
}

MT_EXPORT WEAK void *mlx5dv_reg_dmabuf_mr(void) { return mt_null(EOPNOTSUPP); }
