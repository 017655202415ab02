/* Names of values, in the words that programs know from libibverbs. */
#include "internal.h"

#define NAME_IN(names, value) \
    ((unsigned)(value) < sizeof(names) / sizeof *(names) && (names)[value] ? (names)[value] : "unknown")

MT_EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status) {
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error",
        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
        [IBV_WC_LOC_PROT_ERR] = "local protection error",
        [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
        [IBV_WC_MW_BIND_ERR] = "memory management operation error",
        [IBV_WC_BAD_RESP_ERR] = "bad response error",
        [IBV_WC_LOC_ACCESS_ERR] = "local access error",
        [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
        [IBV_WC_REM_OP_ERR] = "remote operation error",
        [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
        [14] = "local RDD violation error",
        [15] = "remote invalid RD request",
        [16] = "aborted error",
        [17] = "invalid EE context number",
        [18] = "invalid EE context state",
        [IBV_WC_FATAL_ERR] = "fatal error",
        [IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
        [IBV_WC_GENERAL_ERR] = "general error",
    };
    return NAME_IN(names, status);
}

MT_EXPORT const char *ibv_event_type_str(enum ibv_event_type event) {
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ error",
        [IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
        [IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
        [IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
        [IBV_EVENT_COMM_EST] = "communication established",
        [IBV_EVENT_SQ_DRAINED] = "send queue drained",
        [IBV_EVENT_PATH_MIG] = "path migrated",
        [IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
        [IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [11] = "LID change",
        [12] = "P_Key change",
        [13] = "SM change",
        [14] = "SRQ catastrophic error",
        [15] = "SRQ limit reached",
        [16] = "last WQE reached",
        [17] = "client reregistration",
        [IBV_EVENT_GID_CHANGE] = "GID table change",
    };
    return NAME_IN(names, event);
}

MT_EXPORT const char *ibv_node_type_str(enum ibv_node_type node_type) {
    static const char *const names[] = {
        [IBV_NODE_CA] = "InfiniBand channel adapter",
        [IBV_NODE_SWITCH] = "InfiniBand switch",
        [IBV_NODE_ROUTER] = "InfiniBand router",
        [IBV_NODE_RNIC] = "iWARP NIC",
    };
    return NAME_IN(names, node_type);
}

MT_EXPORT const char *ibv_port_state_str(enum ibv_port_state state) {
    static const char *const names[] = {
        [IBV_PORT_NOP] = "no state change (NOP)",
        [IBV_PORT_DOWN] = "PORT_DOWN",
        [IBV_PORT_INIT] = "PORT_INIT",
        [IBV_PORT_ARMED] = "PORT_ARMED",
        [IBV_PORT_ACTIVE] = "PORT_ACTIVE",
        [5] = "PORT_ACTIVE_DEFER",
    };
    return NAME_IN(names, state);
}
