/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_calls.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ctl_state ctl_state;

static const struct mt_ctl_hooks hooks = {
    .on_ev_state = ctl_on_ev_state,
    .on_probed = ctl_on_probed,
    .on_cq_destroyed = ctl_on_cq_destroyed,
};

__attribute__((constructor)) static void begin(void)
{
    ctl_profiles_begin(&ctl_state.profiles);
    mt_set_ctl_hooks(&hooks);
}

static bool may_control(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return !syscall(SYS_capget, &header, data) && data[0].effective >> CAP_NET_ADMIN & 1;
}

int ctl_enter(const struct mt_connection *connection)
{
    int error;

    if (!may_control())
        return EPERM;
    mt_lock();
    error = mt_usable(connection);
    if (error)
        mt_unlock();
    return error;
}

int ctl_leave(int error)
{
    mt_unlock();
    return mt_fail(error);
}

void ctl_use_paths_of(struct mt_connection *connection)
{
    if (ctl_state.paths_of == connection)
        return;
    ctl_paths_end(&ctl_state.paths);
    ctl_state.paths_of = connection;
}

int ctl_refresh(struct mt_connection *connection)
{
    union mt_record request = {.query_evs = {.kind = MT_QUERY_EVS}};

    ctl_use_paths_of(connection);
    return mt_request(connection, &request, NULL);
}
