// SPDX-License-Identifier: Apache-2.0
/* Adaptive routing: the port of a switch at which least waits, told to the kernel as a hash. Its rule for next hops gives
   each of n an equal share of all hashes, in their order, so the middle of a share means that next hop. Those without
   carrier have none. Where a packet's route has one next hop the hash means nothing. */
#pragma once

#define BANDS 4 /* of backlogs; one above stands for no carrier */
#define BAND_SHIFT 28

/* The band of what waits at a port, as it was seen last. */
static __always_inline __u32 band_of(struct choice *port, __u32 key, __u64 at_ns)
{
	struct queue *queue = bpf_map_lookup_elem(&queues, &key);
	__u64 free_at_ns, waits_ns;

	if (!queue || !port->live)
		return BANDS;
	if ((__s64)(at_ns - port->seen_at_ns) >= (__s64)port->every_ns) {
		free_at_ns = *(volatile __u64 *)&queue->free_at_ns;
		port->seen_at_ns = at_ns;
		port->seen_ns = free_at_ns > at_ns ? free_at_ns - at_ns : 0;
	}
	waits_ns = port->seen_ns;
	if (waits_ns > port->band_ns[1])
		return waits_ns > port->band_ns[2] ? 3 : 2;
	return waits_ns > port->band_ns[0];
}

/* Data of packet endpoints alone: what TCP sends, and every control packet, is hashed. */
static __always_inline bool is_routed(const struct headers *h)
{
	return class_of(h) == DATA && is_roce(h);
}

/* The draw so far. `next`: the key of the port to look at; `least`: band and a random number of the one that leads;
   `chosen`: its place among the live ones. */
struct draw {
	__u64 at_ns;
	__u32 next, least, chosen, live;
};

static long look_at_port(__u32 number, struct draw *draw)
{
	__u32 key = draw->next, band, score;
	struct choice *port = bpf_map_lookup_elem(&choices, &key);

	(void)number; /* the ports are a ring, whose keys need not follow each other */
	if (!port)
		return 1;
	draw->next = port->following;
	band = band_of(port, key, draw->at_ns);
	if (band == BANDS)
		return 0;
	score = band << BAND_SHIFT | bpf_get_prandom_u32() >> (32 - BAND_SHIFT);
	if (score < draw->least) {
		draw->least = score;
		draw->chosen = draw->live;
	}
	draw->live++;
	return 0;
}

static __always_inline void choose_port(struct __sk_buff *skb)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 key = skb->ifindex - FIRST_IFINDEX;
	struct choice *port = bpf_map_lookup_elem(&choices, &key);
	struct draw draw = {.at_ns = now_ns + lead_ns_within(skb, now_ns), .least = 0xFFFFFFFF};

	if (!port || !port->ports || !is_routed(headers_of(skb)))
		return;
	draw.next = port->first;
	bpf_loop(port->ports, look_at_port, &draw, 0);
	if (draw.live)
		bpf_set_hash(skb, ((2ULL * draw.chosen + 1) << 31) / draw.live);
}
