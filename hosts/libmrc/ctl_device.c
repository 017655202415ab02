/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, what the device can do, and its ports. */
#include "ctl_calls.h"

#include <errno.h>
#include <string.h>

#define PORT_DISABLED 2 /* `value` in the REPLY to QUERY_PORT */

static const char *algorithms[] = {CTL_ALGORITHM, NULL};

void mrc_ctl_query_version(uint32_t *current, uint32_t *oldest, uint32_t *vendor, uint32_t *vendor_oldest)
{
    if (current)
        *current = CTL_API_VERSION;
    if (oldest)
        *oldest = 0;
    if (vendor)
        *vendor = CTL_VENDOR_API_VERSION;
    if (vendor_oldest)
        *vendor_oldest = 0;
}

static void describe(const struct mt_hello_reply *hello, uint32_t ev_count, struct mrc_ctl_device_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->mrc_ctl_protocol_version = 1;
    attr->ev.ev_max_fmt_profiles = CTL_MOST_PROFILES;
    attr->ev.ev_max_profiles = CTL_MOST_PROFILES;
    attr->ev.ev_max_count = ev_count;
    attr->ev.ev_max_count_profile = ev_count;
    attr->ev.ev_count_align = 1;
    attr->ev.ev_max_width = CTL_EV_BITS;
    attr->ev.ev_fmt_mode_mask = MRC_CTL_EV_FMT_MODE_STEV;
    attr->ev.ev_mode_mask = MRC_CTL_EV_MODE_AUTO;
    attr->cc.cc_max_profiles = CTL_MOST_PROFILES;
    attr->cc.algorithms = algorithms;
    attr->phy_port_mask = hello->planes < 31 ? ((1u << hello->planes) - 1) << 1 : ~1u;
    attr->opt_attr = CTL_OPTIONS;
}

static int query_device(struct ibv_context *context, struct mrc_ctl_device_attr *attr)
{
    struct mt_connection *connection;
    uint8_t worst[CTL_MOST_PATHS];
    int error;

    if (!context || !attr)
        return mt_fail(EINVAL);
    connection = mt_connection_of(context);
    error = ctl_enter(connection);
    if (error)
        return mt_fail(error);
    error = ctl_refresh(connection);
    if (!error)
        describe(&connection->hello, ctl_paths_worst(&ctl_state.paths, worst), attr);
    return ctl_leave(error);
}

int mrc_ctl_query_device(struct ibv_context *context, struct mrc_ctl_device_attr *attr)
{
    return query_device(context, attr);
}

/* Not supported: the transport of the run has no EVs. */
int mrc_ctl_query_device_ex(struct ibv_context *context, struct mrc_context *mrc, struct mrc_ctl_device_attr *attr,
                            int *supported)
{
    int result;

    if (!mrc || !supported)
        return mt_fail(EINVAL);
    result = query_device(context, attr);
    if (result && errno != ENOTSUP)
        return result;
    *supported = !result;
    return 0;
}

/* Sends a request about a port of the device. */
static int ask_port(struct mt_connection *connection, union mt_record *request, union mt_record *reply)
{
    int error = ctl_enter(connection);

    if (error)
        return mt_fail(error);
    if (!request->query_port.port || request->query_port.port > connection->hello.planes)
        return ctl_leave(EINVAL);
    return ctl_leave(mt_request(connection, request, reply));
}

int mrc_ctl_query_port(struct mrc_context *mrc, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
    union mt_record request = {.query_port = {.kind = MT_QUERY_PORT, .port = port}}, reply;

    if (!mrc || !attr || mask & ~MRC_CTL_PORT_ADMIN_STATE)
        return mt_fail(EINVAL);
    if (ask_port(ctl_connection(mrc), &request, &reply))
        return -1;
    if (mask & MRC_CTL_PORT_ADMIN_STATE)
        attr->port_admin_state = reply.reply.value == PORT_DISABLED ? MRC_CTL_PORT_ADMIN_DISABLED
                                                                    : MRC_CTL_PORT_ADMIN_ENABLED;
    return 0;
}

int mrc_ctl_modify_port(struct mrc_context *mrc, uint8_t port, struct mrc_ctl_port_attr *attr, int mask)
{
    union mt_record request = {.modify_port = {.kind = MT_MODIFY_PORT, .port = port}};

    if (!mrc || !attr || mask != MRC_CTL_PORT_ADMIN_STATE)
        return mt_fail(EINVAL);
    if (attr->port_admin_state != MRC_CTL_PORT_ADMIN_ENABLED && attr->port_admin_state != MRC_CTL_PORT_ADMIN_DISABLED)
        return mt_fail(EINVAL);
    request.modify_port.enabled = attr->port_admin_state == MRC_CTL_PORT_ADMIN_ENABLED;
    return ask_port(ctl_connection(mrc), &request, NULL);
}
