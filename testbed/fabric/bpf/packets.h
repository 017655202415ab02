// SPDX-License-Identifier: Apache-2.0
/* What the port program knows of any packet. mrc_packets.h and plain_packets.h say how to find it out; the program is
   compiled once with each. */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define NEXT_UDP 17
#define ROCE_PORT 4791
#define DSCP_ROUTING 48 /* CS6: network control (RFC 4594, 3.2) */
#define ECN_MASK 3
#define ECN_CE 3
#define ICRC_BYTES 4
#define OPCODES 256

/* What operator and transport choose. port_program.py writes it before the program is loaded, so the verifier knows
   it. */
struct settings {
	__u64 data_dscps; /* that data may have, a bit each */
	__u8 control, data, retransmission, trimmed, trimmed_last_hop; /* DSCPs */
	__u8 trimmed_first; /* trimmed packets go before data; else they wait with them */
	__u16 trim_bytes;   /* of a frame that was trimmed; 0: all its headers */
	__u8 by_opcode;     /* data are packets with one of these opcodes; else their DSCP alone tells */
	__u8 trims;         /* the payload of data may be cut off */
	__u8 headers[OPCODES]; /* by opcode: bytes of a data packet's headers behind UDP; 0: none of these */
};

const volatile struct settings settings = {};

enum class { DATA, TRIMMED, CONTROL, OTHER, CLASSES };

struct ip6 {
	__u8 word[4]; /* version 4, traffic class 8, flow label 20 */
	__u8 length[2];
	__u8 next, hops;
	__u8 source[16], destination[16];
};

/* What egress knows of a packet before it looks at the queue. */
struct arrival {
	__u64 at_ns;   /* its last bit, on links without credit */
	__u64 lead_ns; /* by how much the kernel is ahead of that */
	enum class class;
	__u32 length, bare; /* bare: length when trimmed, 0 when it cannot be */
	bool ect;
	bool high; /* it goes before data, and is neither marked nor dropped */
};

/* What ingress knows of a packet: rules are held against it, not against packet memory, which helpers invalidate. */
struct traits {
	enum class class;
	bool addressed; /* its headers say which hosts it is of */
	bool of_hosts;  /* it is not what switches say to each other */
	__u32 uplink, source, destination;
	__u32 payload_at, payload_bytes;
};

static __always_inline __u16 get16(const __u8 *at)
{
	return at[0] << 8 | at[1];
}

static __always_inline void put16(__u8 *at, __u16 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static __always_inline __u8 traffic_class(const struct ip6 *ip)
{
	return ip->word[0] << 4 | ip->word[1] >> 4;
}

static __always_inline void set_traffic_class(struct ip6 *ip, __u8 value)
{
	ip->word[0] = (ip->word[0] & 0xF0) | value >> 4;
	ip->word[1] = (ip->word[1] & 0x0F) | value << 4;
}

/* What switches say to each other by BGP and BFD. It may be shorter than the headers of a transport. */
static __always_inline bool is_routing(const struct __sk_buff *skb)
{
	__u8 start[4]; /* protocol, and of IPv6 the version and traffic class */

	if (bpf_skb_load_bytes(skb, 12, start, sizeof(start)))
		return false;
	return get16(start) == ETH_P_IPV6 && (get16(start + 2) >> 4 & 0xFF) >> 2 == DSCP_ROUTING;
}

static __always_inline bool is_trimmed(__u8 dscp)
{
	return dscp == settings.trimmed || dscp == settings.trimmed_last_hop;
}

/* Of a packet of the transport. */
static __always_inline bool is_data(__u8 dscp, __u8 opcode)
{
	return settings.data_dscps >> dscp & 1 && (!settings.by_opcode || settings.headers[opcode]);
}

/* How many bytes that rules may corrupt begin at `at`: all but the ICRC. */
static __always_inline __u32 payload_bytes(__u8 opcode, __u32 at, __u32 length)
{
	return settings.headers[opcode] && length > at + ICRC_BYTES ? length - ICRC_BYTES - at : 0;
}

/* The class and DSCP of a packet that is trimmed here. */
static __always_inline __u8 trimmed_class(__u8 before, bool last_hop)
{
	return (last_hop ? settings.trimmed_last_hop : settings.trimmed) << 2 | (before & ECN_MASK);
}

/* Length of the frame when trimmed; 0 if the packet cannot be trimmed. Without its payload one with a UDP
   checksum would be thrown away by the receiver. */
static __always_inline __u32 trimmed_length(__u8 dscp, __u8 opcode, const __u8 *checksum, __u32 headers, __u32 length)
{
	__u32 bare = settings.trim_bytes ? settings.trim_bytes : headers + settings.headers[opcode];
	bool allowed = settings.trims && (dscp == settings.data || dscp == settings.retransmission);

	return allowed && settings.headers[opcode] && !get16(checksum) && length > bare ? bare : 0;
}

/* The first bytes of a packet in linear memory, or NULL for one that has no so many. */
static __always_inline void *first_bytes(struct __sk_buff *skb, __u32 bytes)
{
	void *data = (void *)(long)skb->data;

	if (data + bytes > (void *)(long)skb->data_end) {
		if (skb->len < bytes || bpf_skb_pull_data(skb, bytes))
			return NULL;
		data = (void *)(long)skb->data;
		if (data + bytes > (void *)(long)skb->data_end)
			return NULL;
	}
	return data;
}
