/* Protection domains and memory regions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

static struct mt_mr *mr_of(struct ibv_mr *mr) { return MT_OUTER(mr, struct mt_mr, shadow); }

MT_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    mt_lock();
    struct mt_connection *connection = mt_connection_of(context);
    int error = mt_usable(connection);
    struct mt_pd *made = error ? NULL : calloc(1, sizeof *made);
    if (made) {
        made->shadow = (struct ibv_pd){.context = context, .handle = ++connection->last_pd};
        mt_own(mt_context_of(context), &made->object, MT_OBJECT_PD, NULL);
    }
    mt_unlock();
    return made ? &made->shadow : mt_null(error ? error : ENOMEM);
}

void mt_free_pd(struct mt_pd *pd) {
    mt_disown(&pd->object);
    free(pd);
}

MT_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd) {
    mt_lock();
    int error = mt_connection_of(pd->context)->forked ? EPERM : mt_pd_of(pd)->users ? EBUSY : 0;
    if (error == 0) {
        mt_free_pd(mt_pd_of(pd));
    }
    mt_unlock();
    return mt_error(error);
}

/* How far from `from` on the mapping of this line goes, if the program may read or also write it, else `from`. */
static uint64_t covered(const char *line, uint64_t from, bool write) {
    uint64_t start, end;
    char rights[5];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, rights) != 3 || from < start || from >= end ||
        rights[0] != 'r' || (write && rights[1] != 'w')) {
        return from;
    }
    return end;
}

/* The daemon cannot tell: through /proc/self/mem it also writes what the program may only read. */
int mt_check_memory(const void *address, size_t length, bool write) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) {
        return errno;
    }
    uint64_t at = (uintptr_t)address, end = at + length;
    char *line = NULL;
    size_t room = 0;
    while (at < end && getline(&line, &room, maps) > 0) {
        at = covered(line, at, write);
    }
    free(line);
    fclose(maps);
    return at < end ? EFAULT : 0;
}

static int check(const struct ibv_pd *pd, const void *address, size_t length, uint64_t iova, unsigned access) {
    if (!pd || length == 0 || (uintptr_t)address + length < length) {
        return EINVAL;
    }
    if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(access & IBV_ACCESS_LOCAL_WRITE)) {
        return EINVAL;
    }
    if (iova != (uintptr_t)address) {
        mt_say("ibv_reg_mr_iova2: only the address itself can be the address on the wire");
        return EINVAL;
    }
    return mt_check_memory(address, length, access & IBV_ACCESS_LOCAL_WRITE);
}

static int add(struct ibv_pd *pd, struct mt_mr *mr, unsigned access) {
    union mt_record request = {.reg_mr = {.kind = MT_REG_MR,
                                          .pd = pd->handle,
                                          .address = (uintptr_t)mr->shadow.addr,
                                          .length = mr->shadow.length,
                                          .access = access}};
    union mt_record reply;
    mt_lock();
    mt_pd_of(pd)->users++;
    int error = mt_request(mt_connection_of(pd->context), &request, &reply);
    if (error) {
        mt_pd_of(pd)->users--;
    } else {
        mr->shadow.handle = mr->shadow.lkey = mr->shadow.rkey = reply.reply.value;
        mt_own(mt_context_of(pd->context), &mr->object, MT_OBJECT_MR, NULL);
    }
    mt_unlock();
    return error;
}

MT_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                          unsigned int access) {
    int error = check(pd, addr, length, iova, access);
    struct mt_mr *made = error ? NULL : calloc(1, sizeof *made);
    if (!made) {
        return mt_null(error ? error : ENOMEM);
    }
    made->shadow = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    error = add(pd, made, access);
    if (error) {
        free(made);
        return mt_null(error);
    }
    return &made->shadow;
}

MT_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

void mt_free_mr(struct mt_mr *mr) {
    mt_pd_of(mr->shadow.pd)->users--;
    mt_disown(&mr->object);
    free(mr);
}

MT_EXPORT int ibv_dereg_mr(struct ibv_mr *mr) {
    union mt_record request = {.dereg_mr = {.kind = MT_DEREG_MR, .key = mr->lkey}};
    mt_lock();
    int error = mt_request(mt_connection_of(mr->context), &request, NULL);
    if (error == 0 || error == EIO) { /* without a daemon there is nothing left to destroy but ours */
        mt_free_mr(mr_of(mr));
        error = 0;
    }
    mt_unlock();
    return mt_error(error);
}
