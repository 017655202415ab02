// SPDX-License-Identifier: Apache-2.0
/* Packets of MRC: IPv6 in IPv6, UDP, BTH. */
#pragma once
#include "packets.h"

#define FRAME_HEADER_BYTES (14 + 40 + 40 + 8) /* up to the UDP payload */

struct headers {
	__u8 ethernet[12], protocol[2];
	struct ip6 outer, inner;
	__u8 source_port[2], destination_port[2], udp_length[2], checksum[2];
	__u8 opcode, rest[11]; /* BTH */
};

_Static_assert(sizeof(struct headers) == FRAME_HEADER_BYTES + 12, "headers lie on the wire without gaps");

static __always_inline struct headers *headers_of(struct __sk_buff *skb)
{
	return first_bytes(skb, sizeof(struct headers));
}

static __always_inline bool encapsulated(const struct headers *h)
{
	return h && get16(h->protocol) == ETH_P_IPV6 && h->outer.next == 41;
}

static __always_inline enum class class_of(const struct headers *h)
{
	__u8 dscp;

	if (!encapsulated(h))
		return OTHER;
	dscp = traffic_class(&h->outer) >> 2;
	if (is_trimmed(dscp))
		return TRIMMED;
	if (h->inner.next == NEXT_UDP && get16(h->destination_port) == ROCE_PORT)
		return is_data(dscp, h->opcode) ? DATA : CONTROL;
	return dscp == settings.control ? CONTROL : OTHER;
}

/* Control packets that ask for it. Hosts send no trimmed packets. */
static __always_inline bool is_high(const struct __sk_buff *skb, const struct headers *h)
{
	if (!encapsulated(h))
		return is_routing(skb);
	return class_of(h) == CONTROL && traffic_class(&h->outer) >> 2 == settings.control;
}

/* Class, ECN and what trimming would leave. */
static __always_inline void look_into(const struct headers *h, struct arrival *a)
{
	a->class = class_of(h);
	if (encapsulated(h))
		a->ect = traffic_class(&h->outer) & ECN_MASK && traffic_class(&h->inner) & ECN_MASK;
	if (a->class == DATA)
		a->bare = trimmed_length(traffic_class(&h->outer) >> 2, h->opcode, h->checksum, FRAME_HEADER_BYTES, a->length);
}

static __always_inline void mark(struct headers *h)
{
	set_traffic_class(&h->outer, traffic_class(&h->outer) | ECN_CE);
	set_traffic_class(&h->inner, traffic_class(&h->inner) | ECN_CE);
}

static __always_inline int trim(struct __sk_buff *skb, __u32 bare, bool last_hop)
{
	struct headers *h;

	if (bpf_skb_change_tail(skb, bare, 0))
		return -1;
	h = headers_of(skb);
	if (!h)
		return -1;
	set_traffic_class(&h->outer, trimmed_class(traffic_class(&h->outer), last_hop));
	set_traffic_class(&h->inner, trimmed_class(traffic_class(&h->inner), last_hop));
	put16(h->outer.length, bare - 14 - 40);
	put16(h->inner.length, bare - 14 - 40 - 40);
	put16(h->udp_length, bare - 14 - 40 - 40);
	return 0;
}

static __always_inline struct traits traits_of(const struct headers *h, __u32 length)
{
	struct traits t = {.class = class_of(h)};

	if (!encapsulated(h))
		return t;
	t.addressed = true;
	t.uplink = h->inner.word[3];
	t.source = get16(h->inner.source + 6);
	t.destination = get16(h->inner.destination + 6);
	t.payload_at = FRAME_HEADER_BYTES + settings.headers[h->opcode];
	if (t.class == DATA)
		t.payload_bytes = payload_bytes(h->opcode, t.payload_at, length);
	return t;
}
