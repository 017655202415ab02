// SPDX-License-Identifier: Apache-2.0
/* What a port does to a packet that the kernel's queues cannot: mark, trim, count, lose by rule, and keep the time of a
   link without credit. Compiled with PLAIN it does so for packets without encapsulation.

   port_egress runs before the shaper of every switch port, port_ingress as a packet comes in there; nic_egress and
   nic_ingress are theirs at the ports of hosts. The layouts of the maps stand once more in port_maps.py; the loader
   compares sizes, a unit test the constants.

   Time: a shaper lets the first packets after a pause go at once, and hands every packet on when its sending begins.
   So at each port the program reckons when the last bit would leave a link without credit, and this time travels with
   the packet, in ticks: over the cable in skb->hash, which nothing else reads on a cable, and within a switch in
   skb->mark. It is this moment that travels, and never how far off it is: a CPU may be taken away between two looks at
   the clock, and a packet that seemed later for it would be overtaken by the next. A host moves the kernel's time stamp
   of arrival to it. */
#include <linux/pkt_cls.h>
#ifdef PLAIN
#include "plain_packets.h"
#else
#include "mrc_packets.h"
#endif

#define FIRST_IFINDEX 1000
#define CLASS_HIGH 0x10010 /* HTB class 1:10 */
#define CLASS_LOW 0x10020  /* HTB class 1:20 */
#define STAB_OVERHEAD 1    /* what the shaper adds to every packet */
#define COST_SHIFT 20
#define TICK_SHIFT 6 /* 64 ns: 32 bits of them wrap after 275 s */
#define SECOND_NS 1000000000ULL
#define RETRIES 4

#define RULES 8
#define ALWAYS 0xFFFFFFFF

enum verdict { PASSED, CHANGED, TRIMMED_HERE, DROPPED, VERDICTS };
enum port_flag { LAST_HOP = 1 };
enum action { DROP = 1, CORRUPT = 2 };
enum match { BY_UPLINK = 1, BY_SOURCE = 2, BY_DESTINATION = 4, DATA_ONLY = 8, OF_HOSTS = 16 };

struct port {
	__u64 ns_per_byte; /* times 2^COST_SHIFT */
	__s64 ecn_low_ns, ecn_high_ns; /* below 0: an empty queue is above them */
	__u64 trim_ns, drop_ns;
	__u64 flags;
	__u64 delay_ns; /* what another qdisc of the port adds (netem) */
	__u64 late_ns;  /* what comes in so much after its last bit has left a link is late */
};

struct queue {
	__u64 free_at_ns;      /* when the bytes let in so far will have left */
	__u64 high_free_at_ns; /* when those of the high class alone will: data lets them pass */
	__u64 data_ns;         /* what the last packet took that waits for all */
	/* The wire is idle in between, before a packet let in that is far ahead of it. What comes later and is less far
	   ahead was on the wire first, and goes there. The last such gap is enough: leads differ by a few packets. */
	__u64 gap_from_ns, gap_to_ns;
	__u64 most_wait_ns; /* the longest that a packet met at this rate */
	__u64 most_bytes;   /* and at earlier rates: written from outside */
};

/* CHANGED is "marked" at egress and "corrupted" at ingress. Bytes are those on arrival, before trimming. */
struct counts {
	__u64 packets[CLASSES][VERDICTS];
	__u64 bytes[CLASSES][VERDICTS];
};

struct lateness {
	__u64 packets, most_ns;
	__u64 last_ns; /* of the last packet that waits for all; the reader sets it to 0 */
};

struct rule {
	__u32 action, probability, match, uplink, source, destination;
	__u64 hits;
};

struct rules {
	__u64 active; /* bit k: rule[k] holds */
	struct rule rule[RULES];
};

/* How a switch chooses a port for a packet that comes in by this one, and what is known of this one as such a port. */
struct choice {
	__u32 first, ports;          /* the key of the first of the ports to choose from, and how many; 0: it hashes */
	__u32 following, unused;     /* the key of the one after this */
	__u64 band_ns[3];            /* upper ends of all bands but the last */
	__u64 every_ns;              /* how often its queue is looked at */
	__u64 live;                  /* its link has carrier */
	__u64 seen_at_ns, seen_ns;   /* when that was last, and what waited */
};

#define PORT_ARRAY(name, entry)                    \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);            \
		__type(key, __u32);                \
		__type(value, struct entry);       \
	} name SEC(".maps")

/* By ifindex - FIRST_IFINDEX; the loader makes them as long as the fabric has interfaces. */
PORT_ARRAY(ports, port);
PORT_ARRAY(queues, queue);
PORT_ARRAY(egress_counts, counts);
PORT_ARRAY(ingress_counts, counts);
PORT_ARRAY(latenesses, lateness);
PORT_ARRAY(port_rules, rules);
PORT_ARRAY(choices, choice);

static __always_inline void count(struct counts *counts, enum class class, enum verdict verdict, __u32 length)
{
	__sync_fetch_and_add(&counts->packets[class & 3][verdict & 3], 1);
	__sync_fetch_and_add(&counts->bytes[class & 3][verdict & 3], length);
}

/* By how much a moment in ticks is ahead of a time of the clock; 0 if it is past. */
static __always_inline __u64 lead_ns_of(__u32 moment, __u64 now_ns)
{
	__s32 ticks = moment - (__u32)(now_ns >> TICK_SHIFT);

	return ticks > 0 ? (__u64)ticks << TICK_SHIFT : 0;
}

/* By how much a packet within a switch is ahead. What a switch itself sends has no mark. */
static __always_inline __u64 lead_ns_within(const struct __sk_buff *skb, __u64 now_ns)
{
	return skb->mark ? lead_ns_of(skb->mark, now_ns) : 0;
}

#ifdef PLAIN
#include "adaptive.h"
#endif

static __always_inline struct arrival look_at(const struct __sk_buff *skb, const struct headers *h)
{
	__u64 now_ns = bpf_ktime_get_ns(), lead_ns = lead_ns_within(skb, now_ns);
	struct arrival a = {
		.at_ns = now_ns + lead_ns,
		.lead_ns = lead_ns,
		.length = skb->len,
		.high = is_high(skb, h),
	};

	look_into(h, &a);
	return a;
}

static __always_inline bool goes_first(const struct arrival *a)
{
	return a->high || (a->class == TRIMMED && settings.trimmed_first);
}

static __always_inline bool in_ramp(const struct port *port, __s64 backlog_ns, __u32 dice)
{
	if (backlog_ns <= port->ecn_low_ns)
		return false;
	if (backlog_ns >= port->ecn_high_ns)
		return true;
	return (dice >> 16) * (port->ecn_high_ns - port->ecn_low_ns) < (backlog_ns - port->ecn_low_ns) << 16;
}

static __always_inline enum verdict judge(const struct port *port, const struct arrival *a, __u64 backlog_ns, __u32 dice)
{
	if (goes_first(a))
		return PASSED;
	if (backlog_ns > port->drop_ns)
		return DROPPED;
	if (a->bare && backlog_ns > port->trim_ns)
		return TRIMMED_HERE;
	return a->ect && in_ramp(port, backlog_ns, dice) ? CHANGED : PASSED;
}

static __always_inline __u64 cost_ns(const struct port *port, __u32 length)
{
	return (length * port->ns_per_byte) >> COST_SHIFT;
}

/* What admission to a port's queue comes to. */
struct admission {
	enum verdict verdict;
	__u64 leaves_at_ns; /* its last bit, on a link without credit */
	__u64 wait_ns;      /* for all that was let in before */
};

/* Keep the time in which the wire stays idle before a packet that comes to an empty queue, ahead of the clock. */
static __always_inline void leave_gap(struct queue *queue, __u64 old, const struct arrival *a)
{
	__u64 now = a->at_ns - a->lead_ns;

	if (old >= a->at_ns || !a->lead_ns)
		return;
	*(volatile __u64 *)&queue->gap_from_ns = old > now ? old : now;
	*(volatile __u64 *)&queue->gap_to_ns = a->at_ns;
}

/* Judge by the virtual queue, and put into it what goes on. */
static __always_inline struct admission admit(const struct port *port, struct queue *queue, const struct arrival *a)
{
	__u32 dice = bpf_get_prandom_u32(), length;
	__u64 old, start, gap_from, gap_to, cost = 0;
	struct admission result = {};
	bool in_gap;

	for (int i = 0; i < RETRIES; i++) {
		gap_from = *(volatile __u64 *)&queue->gap_from_ns;
		gap_to = *(volatile __u64 *)&queue->gap_to_ns;
		in_gap = gap_from < gap_to && a->at_ns < gap_to;
		old = in_gap ? gap_from : *(volatile __u64 *)&queue->free_at_ns;
		start = old > a->at_ns ? old : a->at_ns;
		result.wait_ns = start - a->at_ns;
		result.verdict = judge(port, a, result.wait_ns, dice);
		if (result.verdict == DROPPED)
			return result;
		length = result.verdict == TRIMMED_HERE ? a->bare : a->length;
		cost = cost_ns(port, length + STAB_OVERHEAD);
		result.leaves_at_ns = start + cost;
		if (!in_gap) {
			if (__sync_val_compare_and_swap(&queue->free_at_ns, old, result.leaves_at_ns) != old)
				continue;
			leave_gap(queue, old, a);
			return result;
		}
		if (__sync_val_compare_and_swap(&queue->gap_from_ns, old, result.leaves_at_ns) != old)
			continue;
		if (result.leaves_at_ns > gap_to) /* what the gap has no room for makes all later ones wait */
			__sync_fetch_and_add(&queue->free_at_ns, result.leaves_at_ns - gap_to);
		return result;
	}
	/* Others came first every time, so the queue was busy a moment ago. */
	result.leaves_at_ns = __sync_fetch_and_add(&queue->free_at_ns, cost) + cost;
	return result;
}

/* Put into the virtual queue what nobody judges. */
static __always_inline __u64 charge(struct queue *queue, __u64 at_ns, __u64 cost)
{
	__u64 old, start;

	for (int i = 0; i < RETRIES; i++) {
		old = *(volatile __u64 *)&queue->free_at_ns;
		start = old > at_ns ? old : at_ns;
		if (__sync_val_compare_and_swap(&queue->free_at_ns, old, start + cost) == old)
			return start + cost;
	}
	return __sync_fetch_and_add(&queue->free_at_ns, cost) + cost;
}

/* When a packet leaves that waits for its like, and for the rest of the data packet that is being sent: what waits
   behind that are whole ones, so the rest is what is left of all that was let in. HTB makes it wait for neither.

   It waits for its like as the kernel has them: the header of a trimmed packet may be far ahead of its wire, and a
   control packet behind it is not. Two at once on two CPUs may take the same place; such packets are short. */
static __always_inline __u64 pass_data(struct queue *queue, __u64 at_ns, __u64 lead_ns, __u64 wait_ns, __u64 cost)
{
	__u64 free_at_ns = *(volatile __u64 *)&queue->high_free_at_ns, now = at_ns - lead_ns;
	__u64 data_ns = *(volatile __u64 *)&queue->data_ns;
	__u64 rest_ends_ns = at_ns + (data_ns ? wait_ns % data_ns : 0);

	if (free_at_ns < now)
		free_at_ns = now;
	*(volatile __u64 *)&queue->high_free_at_ns = free_at_ns + cost;
	free_at_ns += lead_ns;
	return (free_at_ns > rest_ends_ns ? free_at_ns : rest_ends_ns) + cost;
}

static __always_inline void send_along(struct __sk_buff *skb, __u64 leaves_at_ns)
{
	bpf_set_hash(skb, leaves_at_ns >> TICK_SHIFT);
}

SEC("tc")
int port_egress(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex - FIRST_IFINDEX;
	struct port *port = bpf_map_lookup_elem(&ports, &key);
	struct queue *queue = bpf_map_lookup_elem(&queues, &key);
	struct counts *counts = bpf_map_lookup_elem(&egress_counts, &key);
	struct headers *h = headers_of(skb);
	struct admission admission;
	enum verdict verdict;
	struct arrival a;
	__u64 cost;
	bool high;

	if (!port || !queue || !counts)
		return TC_ACT_SHOT; /* an interface nobody planned */
	a = look_at(skb, h);
	admission = admit(port, queue, &a);
	verdict = admission.verdict;
	if (admission.wait_ns > *(volatile __u64 *)&queue->most_wait_ns)
		*(volatile __u64 *)&queue->most_wait_ns = admission.wait_ns;
	if (verdict == CHANGED && h)
		mark(h);
	if (verdict == TRIMMED_HERE && trim(skb, a.bare, port->flags & LAST_HOP))
		verdict = DROPPED;
	count(counts, a.class, verdict, a.length);
	if (verdict == DROPPED)
		return TC_ACT_SHOT;
	high = goes_first(&a) || (verdict == TRIMMED_HERE && settings.trimmed_first);
	cost = cost_ns(port, skb->len + STAB_OVERHEAD);
	if (high)
		admission.leaves_at_ns = pass_data(queue, a.at_ns, a.lead_ns, admission.wait_ns, cost);
	else
		queue->data_ns = cost;
	send_along(skb, admission.leaves_at_ns);
	skb->priority = high ? CLASS_HIGH : CLASS_LOW;
	return TC_ACT_OK;
}

/* A NIC holds back and drops nothing; its shaper has no size table. */
SEC("tc")
int nic_egress(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex - FIRST_IFINDEX;
	struct port *port = bpf_map_lookup_elem(&ports, &key);
	struct queue *queue = bpf_map_lookup_elem(&queues, &key);
	bool high = is_high(skb, headers_of(skb));
	__u64 at_ns, cost, leaves_at_ns;

	if (!port || !queue)
		return TC_ACT_SHOT;
	at_ns = bpf_ktime_get_ns() + port->delay_ns;
	cost = cost_ns(port, skb->len);
	leaves_at_ns = charge(queue, at_ns, cost);
	if (high)
		leaves_at_ns = pass_data(queue, at_ns, port->delay_ns, leaves_at_ns - cost - at_ns, cost);
	else
		queue->data_ns = cost;
	send_along(skb, leaves_at_ns);
	skb->priority = high ? CLASS_HIGH : CLASS_LOW;
	return TC_ACT_OK;
}

/* Not what neighbours say to each other, by link-local addresses or the DSCP of BGP and BFD. Told by the first bytes,
   as a packet of a host may be shorter than the headers of its transport. */
static __always_inline bool is_of_hosts(const struct __sk_buff *skb)
{
	__u8 protocol[2], source[2];

	if (bpf_skb_load_bytes(skb, 12, protocol, sizeof(protocol)) || get16(protocol) != ETH_P_IPV6 ||
	    bpf_skb_load_bytes(skb, 14 + 8, source, sizeof(source)))
		return false;
	return !is_routing(skb) && get16(source) && (get16(source) & 0xFFC0) != 0xFE80;
}

static __always_inline bool matches(const struct rule *rule, const struct traits *t)
{
	if (rule->match & DATA_ONLY && t->class != DATA)
		return false;
	if (rule->match & OF_HOSTS && !t->of_hosts)
		return false;
	if (rule->match & (BY_UPLINK | BY_SOURCE | BY_DESTINATION) && !t->addressed)
		return false;
	return (!(rule->match & BY_UPLINK) || t->uplink == rule->uplink) &&
	       (!(rule->match & BY_SOURCE) || t->source == rule->source) &&
	       (!(rule->match & BY_DESTINATION) || t->destination == rule->destination);
}

/* The first rule that drops the packet ends it; of those that corrupt one is enough. */
static __always_inline enum verdict fate_by(struct rules *rules, const struct traits *t)
{
	enum verdict verdict = PASSED;

	for (int i = 0; i < RULES; i++) {
		struct rule *rule = &rules->rule[i];

		if (!(rules->active >> i & 1) || !matches(rule, t))
			continue;
		if (rule->action == CORRUPT && (!t->payload_bytes || verdict == CHANGED))
			continue;
		if (rule->probability != ALWAYS && bpf_get_prandom_u32() >= rule->probability)
			continue;
		__sync_fetch_and_add(&rule->hits, 1);
		if (rule->action == DROP)
			return DROPPED;
		verdict = CHANGED;
	}
	return verdict;
}

static __always_inline int flip_one_bit(struct __sk_buff *skb, __u32 at, __u32 bytes)
{
	__u32 dice = bpf_get_prandom_u32();
	__u8 byte;

	at += (dice >> 3) % bytes;
	if (bpf_skb_load_bytes(skb, at, &byte, 1))
		return -1;
	byte ^= 1 << (dice & 7);
	return bpf_skb_store_bytes(skb, at, &byte, 1, 0);
}

/* Rules and counts, the same at every port. */
static __always_inline int take_in(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex - FIRST_IFINDEX;
	struct rules *rules = bpf_map_lookup_elem(&port_rules, &key);
	struct counts *counts = bpf_map_lookup_elem(&ingress_counts, &key);
	enum verdict verdict = PASSED;
	struct traits t;

	if (!rules || !counts)
		return TC_ACT_SHOT;
	t = traits_of(headers_of(skb), skb->len);
	if (rules->active) {
		t.of_hosts = is_of_hosts(skb);
		verdict = fate_by(rules, &t);
	}
	if (verdict == CHANGED && flip_one_bit(skb, t.payload_at, t.payload_bytes))
		verdict = DROPPED;
	count(counts, t.class, verdict, skb->len);
	return verdict == DROPPED ? TC_ACT_SHOT : TC_ACT_OK;
}

/* Count a packet that the shaper before this port, or the kernel, kept longer than its wire: packets of a link come
   from one CPU at a time. */
static __always_inline void note_lateness(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex - FIRST_IFINDEX;
	struct port *port = bpf_map_lookup_elem(&ports, &key);
	struct lateness *lateness;
	__s32 ticks = (__u32)(bpf_ktime_get_ns() >> TICK_SHIFT) - skb->hash;
	__u64 late_ns = ticks > 0 ? (__u64)ticks << TICK_SHIFT : 0;

	if (!port || !skb->hash)
		return;
	lateness = bpf_map_lookup_elem(&latenesses, &key);
	if (!lateness)
		return;
	if (!is_high(skb, headers_of(skb)))
		*(volatile __u64 *)&lateness->last_ns = late_ns;
	if (late_ns <= port->late_ns)
		return;
	lateness->packets++;
	if (late_ns > lateness->most_ns)
		lateness->most_ns = late_ns;
}

SEC("tc")
int port_ingress(struct __sk_buff *skb)
{
	note_lateness(skb);
	skb->mark = skb->hash;
	skb->tstamp = 0; /* when TCP meant to send it; a host adds its lead to times of arrival only */
#ifdef PLAIN
	/* A switch chooses the path by what is on the wire, neither by a time nor by what the sender's kernel knows. */
	bpf_set_hash_invalid(skb);
	choose_port(skb);
#endif
	return take_in(skb);
}

/* How long ago the kernel stamped a packet: its CPU may have been busy since. The stamp is of the wall clock, which
   programs cannot read; TAI differs from it by whole seconds. */
static __always_inline __u64 age_ns(const struct __sk_buff *skb)
{
	__u64 age_ns = (bpf_ktime_get_tai_ns() - skb->tstamp) % SECOND_NS;

	return age_ns < SECOND_NS / 2 ? age_ns : 0;
}

SEC("tc")
int nic_ingress(struct __sk_buff *skb)
{
	note_lateness(skb);
	/* The kernel stamps packets only where a socket asks for it. */
	if (skb->tstamp)
		skb->tstamp += lead_ns_of(skb->hash, bpf_ktime_get_ns() - age_ns(skb));
	return take_in(skb);
}

char _license[] SEC("license") = "Apache-2.0";
