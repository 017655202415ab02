// SPDX-License-Identifier: Apache-2.0
/* Packets without encapsulation, where switches choose the path: those of transports over UDP, such as a RoCEv2-like
   reliable connection and MRC over hashed paths, and TCP. */
#pragma once
#include "packets.h"

#define NEXT_TCP 6
#define FRAME_HEADER_BYTES (14 + 40 + 8) /* up to the UDP payload */
#define HOST_PREFIX 0xFD000001

struct headers {
	__u8 ethernet[12], protocol[2];
	struct ip6 ip;
	__u8 source_port[2], destination_port[2];
	union {
		struct {
			__u8 length[2], checksum[2];
			__u8 opcode, rest[11]; /* BTH */
		} udp;
		struct {
			__u8 numbers[8], offset, rest[7];
		} tcp;
	};
};

_Static_assert(sizeof(struct headers) == 14 + 40 + 20, "headers lie on the wire without gaps");

/* The headers in linear memory, or NULL for a packet too short to be of a transport that we know. */
static __always_inline struct headers *headers_of(struct __sk_buff *skb)
{
	return first_bytes(skb, sizeof(struct headers));
}

static __always_inline bool is_roce(const struct headers *h)
{
	return h->ip.next == NEXT_UDP && get16(h->destination_port) == ROCE_PORT;
}

/* A host, and no switch, which has addresses elsewhere (topos/plain.py). */
static __always_inline bool of_host(const __u8 *address)
{
	return ((__u32)get16(address) << 16 | get16(address + 2)) == HOST_PREFIX;
}

/* A TCP segment without payload is control, too. What switches say to each other is neither. */
static __always_inline enum class class_of(const struct headers *h)
{
	if (!h || get16(h->protocol) != ETH_P_IPV6 || !of_host(h->ip.source))
		return OTHER;
	if (is_roce(h) && is_trimmed(traffic_class(&h->ip) >> 2))
		return TRIMMED;
	if (is_roce(h))
		return is_data(traffic_class(&h->ip) >> 2, h->udp.opcode) ? DATA : CONTROL;
	if (h->ip.next == NEXT_TCP)
		return get16(h->ip.length) > h->tcp.offset >> 4 << 2 ? DATA : CONTROL;
	return OTHER;
}

/* Control packets that ask for it, and the switches' own (BGP and BFD). TCP's do not, and wait behind data as they do
   in any network. */
static __always_inline bool is_high(const struct __sk_buff *skb, const struct headers *h)
{
	(void)skb; /* its first headers tell all */
	if (!h || get16(h->protocol) != ETH_P_IPV6)
		return false;
	if (!of_host(h->ip.source))
		return traffic_class(&h->ip) >> 2 == DSCP_ROUTING;
	return class_of(h) == CONTROL && traffic_class(&h->ip) >> 2 == settings.control;
}

static __always_inline void look_into(const struct headers *h, struct arrival *a)
{
	a->class = class_of(h);
	a->ect = h && get16(h->protocol) == ETH_P_IPV6 && traffic_class(&h->ip) & ECN_MASK;
	if (a->class == DATA && is_roce(h))
		a->bare = trimmed_length(traffic_class(&h->ip) >> 2, h->udp.opcode, h->udp.checksum, FRAME_HEADER_BYTES,
					 a->length);
}

/* IPv6 has no header checksum, and those of TCP and UDP do not cover the traffic class. */
static __always_inline void mark(struct headers *h)
{
	set_traffic_class(&h->ip, traffic_class(&h->ip) | ECN_CE);
}

static __always_inline int trim(struct __sk_buff *skb, __u32 bare, bool last_hop)
{
	struct headers *h;

	if (bpf_skb_change_tail(skb, bare, 0))
		return -1;
	h = headers_of(skb);
	if (!h)
		return -1;
	set_traffic_class(&h->ip, trimmed_class(traffic_class(&h->ip), last_hop));
	put16(h->ip.length, bare - 14 - 40);
	put16(h->udp.length, bare - 14 - 40);
	return 0;
}

/* A host by its address in any plane: its group, and its number there (topos/plain.py). */
static __always_inline __u32 host_bits(const __u8 *address)
{
	return get16(address + 6) << 16 | get16(address + 14);
}

/* Corrupted are data over UDP, past their headers: their ICRC is what detects it. A veth
   vouches for the checksum of TCP, so TCP would deliver wrong bytes. */
static __always_inline struct traits traits_of(const struct headers *h, __u32 length)
{
	struct traits t = {.class = class_of(h)};

	if (!h || get16(h->protocol) != ETH_P_IPV6)
		return t;
	t.addressed = of_host(h->ip.source);
	t.source = host_bits(h->ip.source);
	t.destination = host_bits(h->ip.destination);
	if (t.class != DATA || !is_roce(h))
		return t;
	t.payload_at = FRAME_HEADER_BYTES + settings.headers[h->udp.opcode];
	t.payload_bytes = payload_bytes(h->udp.opcode, t.payload_at, length);
	return t;
}
