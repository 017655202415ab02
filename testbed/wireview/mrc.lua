-- Wireshark dissector for MRC (Multipath Reliable Connection) as mrc-testbed sends it: UDP port 4791, or any other by
-- the look of it. Load: wireshark -X lua_script:mrc.lua. Runs in Lua 5.2 and 5.4, so it uses no bit operators.
-- EV: version 4 bits, plane 4, uplink 8 (the number of a way through the plane: over two tiers that of the T0's
-- uplink), UDP source port 16; the upper half travels in the IPv6 flow label.

-- Linked into the plugins and named by -X too, it is loaded twice, and Wireshark takes a protocol once.
if _G.mrc_testbed_dissector then return end
_G.mrc_testbed_dissector = true

local mrc = Proto("mrc", "Multipath Reliable Connection")

local OPCODES = {
  [0xC6] = "WRITE_FIRST", [0xC7] = "WRITE_MIDDLE", [0xC8] = "WRITE_LAST", [0xC9] = "WRITE_LAST_IMM",
  [0xCA] = "WRITE_ONLY", [0xCB] = "WRITE_ONLY_IMM", [0xD1] = "TRANSPORT_ACK", [0xD8] = "ENDPOINT_REQUEST",
  [0xD9] = "ENDPOINT_RESPONSE", [0xDC] = "SACK", [0xDD] = "NACK", [0xDE] = "PROBE",
}
local REASONS = {
  [0x01] = "TRIMMED", [0x02] = "TRIMMED_LASTHOP", [0x06] = "NO_BITMAP", [0x07] = "NO_PKT_BUFFER",
  [0x0A] = "NO_RESOURCE", [0x0B] = "PSN_OOR_WINDOW", [0x19] = "UNEXP_EVENT",
}
local MARKS = { [0] = "NONE", [1] = "SKIP_ONCE", [2] = "ALWAYS_SKIP" }
local OPERATIONS = { [0] = "PORT_STATUS", [1] = "EV_PROBE" }
local SYNDROMES = {
  [0x1F] = "ACK", [0x61] = "NAK_INVALID_REQUEST", [0x62] = "NAK_REMOTE_ACCESS", [0x63] = "NAK_REMOTE_OPERATION",
}
local FIXED_SIZE = { [0xD1] = 20, [0xD8] = 32, [0xD9] = 52, [0xDC] = 52, [0xDD] = 36, [0xDE] = 32 }
local PSNS = 2 ^ 24
local BTH, METH, TSETH, RETH, ICRC = 12, 4, 4, 16, 4

local F = {
  from = ProtoField.string("mrc.from", "From host"),
  to = ProtoField.string("mrc.to", "To host"),
  path = ProtoField.string("mrc.path", "Still to go"),
  ev = ProtoField.uint32("mrc.ev", "EV of this packet", base.HEX),
  ev_plane = ProtoField.uint8("mrc.ev.plane", "Plane"),
  ev_uplink = ProtoField.uint8("mrc.ev.uplink", "Number of the way (T0 uplink)"),
  opcode = ProtoField.uint8("mrc.opcode", "Opcode", base.HEX, OPCODES),
  se = ProtoField.bool("mrc.se", "Solicited event", 8, nil, 0x80),
  migration = ProtoField.bool("mrc.migration", "Migration", 8, nil, 0x40),
  pad = ProtoField.uint8("mrc.pad", "Pad count", base.DEC, nil, 0x30),
  version = ProtoField.uint8("mrc.version", "Transport version", base.DEC, nil, 0x0F),
  pkey = ProtoField.uint16("mrc.pkey", "P_Key", base.HEX),
  qp = ProtoField.uint24("mrc.qp", "Destination QP", base.HEX),
  ack_request = ProtoField.bool("mrc.ack_request", "Acknowledge request", 8, nil, 0x80),
  rtx = ProtoField.bool("mrc.rtx", "Retransmission", 8, nil, 0x20),
  ts = ProtoField.bool("mrc.ts", "Timestamp present", 8, nil, 0x10),
  psn = ProtoField.uint24("mrc.psn", "PSN"),
  rqmsn = ProtoField.uint16("mrc.rqmsn", "RQMSN (messages with immediate)"),
  message = ProtoField.uint24("mrc.message", "Message (MSN)"),
  timestamp = ProtoField.uint16("mrc.timestamp", "Timestamp"),
  tsr = ProtoField.bool("mrc.tsr", "Timestamp unit is the sender's own", 16, nil, 0x8000),
  ftype = ProtoField.uint16("mrc.ftype", "Field type", base.DEC, nil, 0x000F),
  address = ProtoField.uint64("mrc.address", "Remote address", base.HEX),
  rkey = ProtoField.uint32("mrc.rkey", "Remote key", base.HEX),
  length = ProtoField.uint32("mrc.length", "Length of the whole write"),
  immediate = ProtoField.uint32("mrc.immediate", "Immediate", base.HEX),
  payload = ProtoField.bytes("mrc.payload", "Payload"),
  padding = ProtoField.bytes("mrc.padding", "Padding"),
  icrc = ProtoField.uint32("mrc.icrc", "ICRC (0: off)", base.HEX),
  trimmed = ProtoField.bool("mrc.trimmed", "Trimmed by a switch"),
  missing = ProtoField.uint32("mrc.trimmed.bytes", "Bytes trimmed away"),
  of_ev = ProtoField.uint32("mrc.of_ev", "EV of the packet this is about", base.HEX),
  of_plane = ProtoField.uint8("mrc.of_ev.plane", "Plane"),
  of_uplink = ProtoField.uint8("mrc.of_ev.uplink", "Number of the way (T0 uplink)"),
  mark = ProtoField.uint16("mrc.sack.mark", "Mark (m)", base.DEC, MARKS, 0x0060),
  probe_answer = ProtoField.bool("mrc.sack.probe_answer", "Answers a probe", 16, nil, 0x0002),
  trigger_offset = ProtoField.int16("mrc.sack.trigger_offset", "Triggering PSN - cack"),
  trigger = ProtoField.uint24("mrc.sack.trigger", "Triggering PSN"),
  spdcid = ProtoField.uint16("mrc.spdcid", "SPDCID", base.HEX),
  dpdcid = ProtoField.uint16("mrc.dpdcid", "DPDCID", base.HEX),
  ports_down = ProtoField.uint8("mrc.sack.ports_down", "Ports down (mask)", base.HEX),
  cack = ProtoField.uint24("mrc.sack.cack", "Cumulative PSN (inclusive)"),
  cc_type = ProtoField.uint8("mrc.cc_type", "Congestion control type", base.DEC, nil, 0xF0),
  mpr = ProtoField.uint8("mrc.sack.mpr", "MPR / 128 PSNs"),
  sack_offset = ProtoField.int16("mrc.sack.offset", "Bitmap starts at cack +"),
  bitmap = ProtoField.uint64("mrc.sack.bitmap", "Bitmap", base.HEX),
  received = ProtoField.string("mrc.sack.received", "Received beyond cack"),
  ooo = ProtoField.uint16("mrc.sack.out_of_order", "Out of order", base.DEC, nil, 0x7FFF),
  restore = ProtoField.bool("mrc.sack.restore_cwnd", "Restore window", 8, nil, 0x80),
  penalty = ProtoField.uint8("mrc.sack.penalty", "Window penalty", base.DEC, nil, 0x7F),
  received_units = ProtoField.uint24("mrc.sack.received_units", "Bytes received / 256"),
  reason = ProtoField.uint8("mrc.nack.reason", "Reason", base.HEX, REASONS),
  vendor = ProtoField.uint8("mrc.vendor", "Vendor code", base.HEX),
  nack_psn = ProtoField.uint24("mrc.nack.psn", "PSN refused"),
  probe_id = ProtoField.uint16("mrc.probe.id", "Probe id"),
  op = ProtoField.uint8("mrc.endpoint.op", "Operation", base.DEC, OPERATIONS),
  request_id = ProtoField.uint16("mrc.endpoint.request_id", "Request id", base.HEX),
  port_mask = ProtoField.uint32("mrc.endpoint.ports_up", "Ports up (mask)", base.HEX),
  endpoint_mark = ProtoField.uint8("mrc.endpoint.mark", "Mark (m)", base.DEC, MARKS),
  syndrome = ProtoField.uint8("mrc.ack.syndrome", "Syndrome", base.HEX, SYNDROMES),
}
mrc.fields = F

local E = {
  short = ProtoExpert.new("mrc.short", "Shorter than its headers", expert.group.MALFORMED, expert.severity.ERROR),
  retransmission = ProtoExpert.new("mrc.is_rtx", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE),
  trimmed = ProtoExpert.new("mrc.is_trimmed", "Trimmed", expert.group.SEQUENCE, expert.severity.WARN),
  nack = ProtoExpert.new("mrc.is_nack", "Refused packet", expert.group.SEQUENCE, expert.severity.WARN),
}
mrc.experts = E

local ipv6_src, ipv6_dst = Field.new("ipv6.src"), Field.new("ipv6.dst")
local ipv6_flow, udp_length = Field.new("ipv6.flow"), Field.new("udp.length")
local ipv6_dscp = Field.new("ipv6.tclass.dscp")
local DSCP_TRIMMED = { [12] = true, [16] = true }

local function last(field)
  local all = { field() }
  return all[#all]
end

-- What a packet's addresses say ------------------------------------------------------------------------------------

-- h3 for an address of ours (fd00:0:0:3::/64), else the address as Wireshark writes it.
local function host_name(info)
  local range = info.range
  if range(0, 2):uint() == 0xFD00 and range(2, 4):uint() == 0 then
    return string.format("h%d", range(6, 2):uint())
  end
  return tostring(info)
end

-- uSID: tier 4 bits (1 to 4: T0 to T3, 13 port of the last T0), plane 4, index 8.
local function usid_name(range)
  local tier, plane, index = range:bitfield(0, 4), range:bitfield(4, 4), range:bitfield(8, 8)
  if tier == 13 then return string.format("down%d", index) end
  if tier >= 1 and tier <= 4 then return string.format("p%d-t%d-%d", plane, tier - 1, index) end
  return string.format("%04x", range:uint())
end

-- "p1-t0-1 down0": the uSIDs an address of the block fcbb:bb00::/32 still lists; nil for any other address.
local function still_to_go(range)
  if range(0, 4):uint() ~= 0xFCBBBB00 then return nil end
  local names = {}
  for at = 4, 14, 2 do
    if range(at, 2):uint() == 0 then break end
    names[#names + 1] = usid_name(range(at, 2))
  end
  return table.concat(names, " ")
end

local function ev_text(plane, uplink) return string.format("%d/%d", plane, uplink) end

-- Adds hosts, path and EV of the packet; returns the EV as text, and the path.
local function add_surroundings(pinfo, tree)
  local flow, src, dst = last(ipv6_flow), last(ipv6_src), last(ipv6_dst)
  if flow == nil then return "?", nil end
  tree:add(F.from, host_name(src)):set_generated()
  tree:add(F.to, host_name(dst)):set_generated()
  local path = still_to_go(({ ipv6_dst() })[1].range)
  if path then tree:add(F.path, path):set_generated() end
  local label = flow.value
  local plane, uplink = math.floor(label / 256) % 16, label % 256
  local ev = tree:add(F.ev, (label % 65536) * 65536 + pinfo.src_port)
  ev:set_generated()
  ev:append_text("  " .. ev_text(plane, uplink))
  ev:add(F.ev_plane, plane):set_generated()
  ev:add(F.ev_uplink, uplink):set_generated()
  return ev_text(plane, uplink), path
end

-- One function a header, each returning what the Info column says ---------------------------------------------------

local function add_of_ev(tree, range)
  local plane, uplink = range:bitfield(4, 4), range:bitfield(8, 8)
  local item = tree:add(F.of_ev, range)
  item:append_text("  " .. ev_text(plane, uplink))
  item:add(F.of_plane, range(0, 1), plane)
  item:add(F.of_uplink, range(1, 1))
  return ev_text(plane, uplink)
end

local function add_timestamp(tree, range)
  tree:add(F.timestamp, range(0, 2))
  tree:add(F.tsr, range(2, 2))
  tree:add(F.ftype, range(2, 2))
end

-- Runs of set bits, bit 0 being the last one on the wire, twice: as PSNs "67-70 72", and counted from cack "+2..5 +7".
local function received_ranges(range, cack, offset)
  local psns, offsets, begin = {}, {}, nil
  for bit = 0, 64 do
    local set = bit < 64 and range(7 - math.floor(bit / 8), 1):bitfield(7 - bit % 8, 1) == 1
    if set and not begin then begin = bit end
    if begin and not set then
      local low, high = offset + begin, offset + bit - 1
      local first, last_one = (cack + low) % PSNS, (cack + high) % PSNS
      psns[#psns + 1] = string.format(low == high and "%d" or "%d-%d", first, last_one)
      offsets[#offsets + 1] = string.format(low == high and " %+d" or " %+d..%d", low, high)
      begin = nil
    end
  end
  return table.concat(psns, " "), table.concat(offsets)
end

local function add_sack(tvb, tree)
  tree:add(F.mark, tvb(12, 2))
  tree:add(F.probe_answer, tvb(12, 2))
  local cack, about = tvb(25, 3):uint(), nil
  local ev = add_of_ev(tree, tvb(16, 4))
  if tvb(12, 2):bitfield(14, 1) == 1 then
    tree:add(F.probe_id, tvb(14, 2))
    about = string.format("probe %d", tvb(14, 2):uint())
  else
    local trigger = (cack + tvb(14, 2):int()) % PSNS
    tree:add(F.trigger_offset, tvb(14, 2))
    tree:add(F.trigger, tvb(14, 2), trigger):set_generated()
    about = string.format("for PSN %d on %s", trigger, ev)
  end
  tree:add(F.spdcid, tvb(20, 2))
  tree:add(F.dpdcid, tvb(22, 2))
  tree:add(F.ports_down, tvb(24, 1))
  tree:add(F.cack, tvb(25, 3))
  tree:add(F.cc_type, tvb(28, 1))
  tree:add(F.mpr, tvb(29, 1))
  tree:add(F.sack_offset, tvb(30, 2))
  tree:add(F.bitmap, tvb(32, 8))
  local received, beyond = received_ranges(tvb(32, 8), cack, tvb(30, 2):int())
  tree:add(F.received, tvb(32, 8), received):set_generated()
  tree:add(F.timestamp, tvb(40, 2))
  tree:add(F.ooo, tvb(42, 2))
  tree:add(F.restore, tvb(44, 1))
  tree:add(F.penalty, tvb(44, 1))
  tree:add(F.received_units, tvb(45, 3))
  local mark = tvb(12, 2):bitfield(9, 2)
  return string.format("cack %d%s %s%s", cack, beyond, about, mark == 0 and "" or " " .. (MARKS[mark] or "?"))
end

local function add_nack(tvb, tree)
  tree:add(F.reason, tvb(14, 1))
  tree:add(F.vendor, tvb(15, 1))
  local ev = add_of_ev(tree, tvb(16, 4))
  tree:add(F.spdcid, tvb(20, 2))
  tree:add(F.dpdcid, tvb(22, 2))
  tree:add(F.nack_psn, tvb(25, 3))
  tree:add(F.cc_type, tvb(28, 1))
  tree:add(F.timestamp, tvb(30, 2))
  tree:add_proto_expert_info(E.nack)
  local reason = REASONS[tvb(14, 1):uint()] or string.format("reason 0x%02x", tvb(14, 1):uint())
  return string.format("PSN %d %s on %s", tvb(25, 3):uint(), reason, ev)
end

local function add_probe(tvb, tree)
  tree:add(F.vendor, tvb(15, 1))
  tree:add(F.probe_id, tvb(16, 2))
  tree:add(F.spdcid, tvb(20, 2))
  tree:add(F.dpdcid, tvb(22, 2))
  add_timestamp(tree, tvb(24, 4))
  return string.format("probe %d", tvb(16, 2):uint())
end

local function endpoint_text(op, tvb)
  return string.format("%s id %d", OPERATIONS[op] or "op " .. op, tvb(10, 2):uint())
end

local function add_request(tvb, tree)
  local op = tvb(13, 1):bitfield(6, 2)
  tree:add(F.op, tvb(13, 1), op)
  tree:add(F.request_id, tvb(10, 2))
  tree:add(F.vendor, tvb(15, 1))
  tree:add(F.port_mask, tvb(16, 4))
  add_timestamp(tree, tvb(24, 4))
  return endpoint_text(op, tvb)
end

local function add_response(tvb, tree)
  local op = tvb(13, 1):bitfield(4, 2)
  tree:add(F.op, tvb(13, 1), op)
  tree:add(F.request_id, tvb(10, 2))
  local ev = add_of_ev(tree, tvb(16, 4))
  tree:add(F.port_mask, tvb(20, 4))
  tree:add(F.endpoint_mark, tvb(24, 1))
  tree:add(F.timestamp, tvb(40, 2))
  return endpoint_text(op, tvb) .. " for " .. ev
end

local function add_ack(tvb, tree)
  tree:add(F.syndrome, tvb(12, 1))
  tree:add(F.message, tvb(13, 3))
  local syndrome = tvb(12, 1):uint()
  return string.format("PSN %d %s msg %d", tvb(9, 3):uint(), SYNDROMES[syndrome] or syndrome, tvb(13, 3):uint())
end

local CONTROL = {
  [0xD1] = add_ack, [0xD8] = add_request, [0xD9] = add_response, [0xDC] = add_sack, [0xDD] = add_nack,
  [0xDE] = add_probe,
}

-- A TSETH is there when the BTH says so. Needs a whole BTH.
local function has_timestamp(tvb) return tvb(8, 1):bitfield(3, 1) == 1 end

local function data_headers(tvb) return BTH + METH + (has_timestamp(tvb) and TSETH or 0) + RETH end

-- A switch that trims may shorten the outer length alone: what UDP claims more than is there.
local function trimmed_bytes(tvb)
  local length = last(udp_length)
  return length and math.max(0, length.value - 8 - tvb:reported_len()) or 0
end

-- Or all lengths, as ours do: then the DSCP says it.
local function says_trimmed()
  local dscp = ipv6_dscp()
  return dscp and DSCP_TRIMMED[dscp.value]
end

-- What must be there of a data packet: a switch may cut within RETH, and leave what a NACK is made of.
local function least_data(tvb)
  return data_headers(tvb) - (says_trimmed() and RETH or 0)
end

local function add_payload(tvb, tree, start, pad)
  local stop = tvb:reported_len() - ICRC - pad
  if stop > start and tvb:len() > start then
    tree:add(F.payload, tvb(start, math.min(stop, tvb:len()) - start))
  end
  if tvb:len() < tvb:reported_len() or stop < start then return end
  if pad > 0 then tree:add(F.padding, tvb(stop, pad)) end
  tree:add(F.icrc, tvb(stop + pad, ICRC))
end

local function add_data(tvb, tree, opcode)
  tree:add(F.rqmsn, tvb(12, 2))
  tree:add(F.message, tvb(14, 2))
  if has_timestamp(tvb) then add_timestamp(tree, tvb(16, 4)) end
  local start = data_headers(tvb)
  if tvb:len() < start then
    tree:add(F.trimmed, true):set_generated()
    tree:add_proto_expert_info(E.trimmed)
    return string.format("PSN %d msg %d TRIMMED", tvb(9, 3):uint(), tvb(14, 2):uint())
  end
  tree:add(F.address, tvb(start - 16, 8))
  tree:add(F.rkey, tvb(start - 8, 4))
  tree:add(F.length, tvb(start - 4, 4))
  local text = string.format("PSN %d msg %d", tvb(9, 3):uint(), tvb(14, 2):uint())
  if (opcode == 0xC9 or opcode == 0xCB) and tvb:len() >= start + 4 then
    tree:add(F.immediate, tvb(start, 4))
    text = text .. string.format(" imm 0x%x", tvb(start, 4):uint())
    start = start + 4
  end
  local missing = trimmed_bytes(tvb)
  local trimmed = missing > 0 or says_trimmed()
  tree:add(F.trimmed, trimmed):set_generated()
  if not trimmed then
    add_payload(tvb, tree, start, tvb(1, 1):bitfield(2, 2))
    return text
  end
  if missing > 0 then tree:add(F.missing, missing):set_generated() end
  tree:add_proto_expert_info(E.trimmed)
  return text .. " TRIMMED"
end

local function add_bth(tvb, tree)
  tree:add(F.opcode, tvb(0, 1))
  for _, field in ipairs({ F.se, F.migration, F.pad, F.version }) do tree:add(field, tvb(1, 1)) end
  tree:add(F.pkey, tvb(2, 2))
  tree:add(F.qp, tvb(5, 3))
  for _, field in ipairs({ F.ack_request, F.rtx, F.ts }) do tree:add(field, tvb(8, 1)) end
  tree:add(F.psn, tvb(9, 3))
end

-- The dissector -----------------------------------------------------------------------------------------------------

local ports = DissectorTable.get("udp.port")
local roce = ports:get_dissector(4791)

function mrc.dissector(tvb, pinfo, root)
  local opcode = tvb:len() > 0 and tvb(0, 1):uint() or 0
  local name = OPCODES[opcode]
  if not name then return roce and roce:call(tvb, pinfo, root) or 0 end
  pinfo.cols.protocol = "MRC"
  local tree = root:add(mrc, tvb())
  if tvb:len() < BTH or tvb:len() < (FIXED_SIZE[opcode] and FIXED_SIZE[opcode] - ICRC or least_data(tvb)) then
    tree:add_proto_expert_info(E.short)
    pinfo.cols.info = name .. " cut short"
    return tvb:len()
  end
  local ev, path = add_surroundings(pinfo, tree)
  add_bth(tvb, tree)
  local text = CONTROL[opcode] and CONTROL[opcode](tvb, tree) or add_data(tvb, tree, opcode)
  if CONTROL[opcode] and tvb:len() >= FIXED_SIZE[opcode] then tree:add(F.icrc, tvb(FIXED_SIZE[opcode] - ICRC, ICRC)) end
  local rtx = tvb(8, 1):bitfield(2, 1) == 1
  if rtx and not CONTROL[opcode] then tree:add_proto_expert_info(E.retransmission) end
  tree:append_text(", " .. name .. " " .. text)
  pinfo.cols.info = string.format("%s %s%s  EV %s%s", name, text, rtx and " RTX" or "", ev, path and "  > " .. path or "")
  return tvb:len()
end

ports:add(4791, mrc)

-- On any other port: a known opcode, version 0, the one P_Key, and the length that goes with the opcode.
mrc:register_heuristic("udp", function(tvb, pinfo, root)
  if tvb:len() < BTH + ICRC or not OPCODES[tvb(0, 1):uint()] then return false end
  if tvb(1, 1):bitfield(4, 4) ~= 0 or tvb(2, 2):uint() ~= 0xFFFF then return false end
  local fixed = FIXED_SIZE[tvb(0, 1):uint()]
  if fixed and tvb:reported_len() ~= fixed or not fixed and tvb:reported_len() < least_data(tvb) then return false end
  mrc.dissector(tvb, pinfo, root)
  return true
end)
