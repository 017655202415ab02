/* What a device context owns, so that closing it leaves nothing. */
#include <stdlib.h>

#include "internal.h"

void mt_own(struct mt_context *context, struct mt_object *object, enum mt_object_kind kind, struct mrc_context *owner) {
    *object = (struct mt_object){.next = context->objects, .place = &context->objects, .kind = kind, .owner = owner};
    if (object->next) {
        object->next->place = &object->next;
    }
    context->objects = object;
}

void mt_disown(struct mt_object *object) {
    *object->place = object->next;
    if (object->next) {
        object->next->place = object->place;
    }
}

void mt_free_hint(struct mrc_qp_hint *hint) {
    mt_disown(&hint->object);
    free(hint);
}

/* The daemon is told, and its answer is not waited for. */
static void tell(struct mt_context *context, enum mt_kind kind, uint32_t number) {
    union mt_record record = {.kind = kind, .first = number, .token = mt_new_token(context->connection)};
    mt_send(context->connection, &record, 1);
}

static void destroy_qp(struct mt_context *context, struct mrc_qp *qp) {
    uint32_t qpn = qp->shadow.qp_num;
    mt_free_qp(qp);
    tell(context, MT_DESTROY_QP, qpn);
}

static void destroy_mr(struct mt_context *context, struct mt_mr *mr) {
    uint32_t key = mr->shadow.lkey;
    mt_free_mr(mr);
    tell(context, MT_DEREG_MR, key);
}

static void destroy(struct mt_context *context, struct mt_object *object) {
    switch (object->kind) {
    case MT_OBJECT_QP:
        destroy_qp(context, MT_OUTER(object, struct mrc_qp, object));
        break;
    case MT_OBJECT_CQ:
        mt_free_cq(MT_OUTER(object, struct mrc_cq, object));
        break;
    case MT_OBJECT_CHANNEL:
        mt_free_channel(MT_OUTER(object, struct mrc_comp_channel, object));
        break;
    case MT_OBJECT_HINT:
        mt_free_hint(MT_OUTER(object, struct mrc_qp_hint, object));
        break;
    case MT_OBJECT_MR:
        destroy_mr(context, MT_OUTER(object, struct mt_mr, object));
        break;
    case MT_OBJECT_PD:
        mt_free_pd(MT_OUTER(object, struct mt_pd, object));
        break;
    }
}

static struct mt_object *find(struct mt_context *context, enum mt_object_kind kind, const struct mrc_context *owner) {
    for (struct mt_object *object = context->objects; object; object = object->next) {
        if (object->kind == kind && (!owner || object->owner == owner)) {
            return object;
        }
    }
    return NULL;
}

/* In the order of the kinds: nothing goes before what uses it. */
void mt_destroy_objects(struct mt_context *context, struct mrc_context *owner) {
    for (enum mt_object_kind kind = MT_OBJECT_QP; kind <= MT_OBJECT_PD; kind++) {
        struct mt_object *object;
        while ((object = find(context, kind, owner))) {
            destroy(context, object);
        }
    }
}
