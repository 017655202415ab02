/* SPDX-License-Identifier: Apache-2.0 */
/* Holds mrc_testbed_ctl.h to the layout that programs built with a vendor's header use. It has no code. */
#include "mrc_testbed_ctl.h"

#include <stddef.h>

#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)

SIZE(mrc_ctl_device_attr, 72);
AT(mrc_ctl_device_attr, ev.ev_max_fmt_profiles, 4);
AT(mrc_ctl_device_attr, ev.ev_max_profiles, 8);
AT(mrc_ctl_device_attr, ev.ev_max_count, 12);
AT(mrc_ctl_device_attr, ev.ev_free_count, 16);
AT(mrc_ctl_device_attr, ev.ev_max_count_profile, 20);
AT(mrc_ctl_device_attr, ev.ev_count_align, 24);
AT(mrc_ctl_device_attr, ev.ev_max_width, 28);
AT(mrc_ctl_device_attr, ev.ev_fmt_mode_mask, 32);
AT(mrc_ctl_device_attr, ev.ev_mode_mask, 36);
AT(mrc_ctl_device_attr, ev.ev_op_max_entries, 40);
AT(mrc_ctl_device_attr, cc.cc_max_profiles, 48);
AT(mrc_ctl_device_attr, cc.algorithms, 56);
AT(mrc_ctl_device_attr, phy_port_mask, 64);
AT(mrc_ctl_device_attr, opt_attr, 68);

SIZE(mrc_ctl_port_attr, 4);
SIZE(mrc_ctl_ev_fmt_field, 1);
SIZE(mrc_ctl_ev_fmt_profile_attr, 168);
AT(mrc_ctl_ev_fmt_profile_attr, cur_profile_state, 4);
AT(mrc_ctl_ev_fmt_profile_attr, ev_fmt_mode, 8);
AT(mrc_ctl_ev_fmt_profile_attr, ev_fmt_op.op, 16);
AT(mrc_ctl_ev_fmt_profile_attr, ev_fmt_op.fmt_fields, 24);
AT(mrc_ctl_ev_fmt_profile_attr, ev_fmt_op.fmt_field_count, 32);
AT(mrc_ctl_ev_fmt_profile_attr, vendor_cfg, 40);

SIZE(mrc_ctl_ev, 33);
AT(mrc_ctl_ev, port, 32);
SIZE(mrc_ctl_ev_field, 20);
AT(mrc_ctl_ev_field, init_val, 4);
AT(mrc_ctl_ev_field, min_val, 8);
AT(mrc_ctl_ev_field, max_val, 12);
AT(mrc_ctl_ev_field, mask, 16);
SIZE(mrc_ctl_ev_op_entry, 76);
AT(mrc_ctl_ev_op_entry, ev_new, 33);
AT(mrc_ctl_ev_op_entry, state, 68);
AT(mrc_ctl_ev_op_entry, flags, 72);

SIZE(mrc_ctl_ev_profile_attr, 216);
AT(mrc_ctl_ev_profile_attr, cur_profile_state, 4);
AT(mrc_ctl_ev_profile_attr, ev_mode, 8);
AT(mrc_ctl_ev_profile_attr, ev_fmt_profile_id, 16);
AT(mrc_ctl_ev_profile_attr, ev_count, 24);
AT(mrc_ctl_ev_profile_attr, ev_min_active, 28);
AT(mrc_ctl_ev_profile_attr, ev_event_mask, 32);
AT(mrc_ctl_ev_profile_attr, ev_op.op, 40);
AT(mrc_ctl_ev_profile_attr, ev_op.entries, 48);
AT(mrc_ctl_ev_profile_attr, ev_op.entry_count, 56);
AT(mrc_ctl_ev_profile_attr, ev_fields_op.op, 64);
AT(mrc_ctl_ev_profile_attr, ev_fields_op.fields, 72);
AT(mrc_ctl_ev_profile_attr, ev_fields_op.field_count, 80);
AT(mrc_ctl_ev_profile_attr, vendor_cfg, 88);

SIZE(mrc_ctl_cc_profile_attr, 152);
AT(mrc_ctl_cc_profile_attr, cur_profile_state, 4);
AT(mrc_ctl_cc_profile_attr, algorithm, 8);
AT(mrc_ctl_cc_profile_attr, cc_config, 16);
AT(mrc_ctl_cc_profile_attr, vendor_cfg, 24);

SIZE(mrc_ctl_cc_nscc_cfg, 52);
AT(mrc_ctl_cc_nscc_cfg, adjust_bytes_threshold, 4);
AT(mrc_ctl_cc_nscc_cfg, adjust_period_threshold, 8);
AT(mrc_ctl_cc_nscc_cfg, base_rtt, 12);
AT(mrc_ctl_cc_nscc_cfg, eta, 16);
AT(mrc_ctl_cc_nscc_cfg, fi, 20);
AT(mrc_ctl_cc_nscc_cfg, fi_scale, 24);
AT(mrc_ctl_cc_nscc_cfg, gamma, 28);
AT(mrc_ctl_cc_nscc_cfg, max_md_jump, 32);
AT(mrc_ctl_cc_nscc_cfg, max_cwnd, 36);
AT(mrc_ctl_cc_nscc_cfg, qa_gate, 40);
AT(mrc_ctl_cc_nscc_cfg, qa_threshold, 44);
AT(mrc_ctl_cc_nscc_cfg, target_delay, 48);

SIZE(mrc_ctl_ev_event, 56);
AT(mrc_ctl_ev_event, ev, 8);
AT(mrc_ctl_ev_event, drop_count, 44);
AT(mrc_ctl_ev_event, state, 48);

SIZE(mrc_ctl_ep_req, 88);
AT(mrc_ctl_ep_req, sgid, 8);
AT(mrc_ctl_ep_req, dgid, 24);
AT(mrc_ctl_ep_req, ev_fmt_mode, 40);
AT(mrc_ctl_ep_req, req_ev, 44);
AT(mrc_ctl_ep_req, op.port_status_update.port_status, 80);
SIZE(mrc_ctl_ep_rsp, 12);
AT(mrc_ctl_ep_rsp, port, 2);
AT(mrc_ctl_ep_rsp, rtt, 4);
AT(mrc_ctl_ep_rsp, adj_svc_time, 8);
