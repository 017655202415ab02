/* The extended forms of verbs: attributes beyond the plain ones are refused. */
#include <errno.h>

#include "internal.h"

/* How rdma-core's ibv_qp_init_attr_ex begins. */
struct extended_attr {
    struct ibv_qp_init_attr plain; /* comp_mask lies in the last 4 bytes of its room */
    struct ibv_pd *pd;
};

enum { COMP_MASK_AT = 60, HAS_PD = 1 };

_Static_assert(offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(int) == COMP_MASK_AT, "comp_mask follows");
_Static_assert(offsetof(struct extended_attr, pd) == 64, "pd follows");

struct ibv_qp *mt_create_qp_ex(struct ibv_context *context, void *attr) {
    struct extended_attr *extended = attr;
    uint32_t comp_mask;
    memcpy(&comp_mask, (const char *)attr + COMP_MASK_AT, sizeof comp_mask);
    (void)context;
    if (comp_mask != HAS_PD) {
        mt_say("ibv_create_qp_ex: extended attributes are refused (comp_mask 0x%x)", comp_mask);
        return mt_null(EOPNOTSUPP);
    }
    return ibv_create_qp(extended->pd, &extended->plain);
}

void *mt_create_cq_ex(struct ibv_context *context, void *attr) {
    (void)context;
    (void)attr;
    return mt_null(EOPNOTSUPP);
}
