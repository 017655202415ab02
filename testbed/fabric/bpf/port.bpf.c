// SPDX-License-Identifier: Apache-2.0
/* What a port does to a packet that the kernel's queues cannot: mark, trim, count, lose by rule, and keep the time of a
   link without credit.

   port_egress runs before the shaper of every switch port, port_ingress as a packet comes in there; nic_egress and
   nic_ingress are theirs at the ports of hosts. The layouts of the maps stand once more in port_maps.py; the loader
   compares sizes, a unit test the constants.

   Time: a shaper lets the first packets after a pause go at once, and hands every packet on when its sending begins.
   So at each port the program reckons when the last bit would leave a link without credit, and this time travels with
   the packet: over the cable in skb->hash, which no other part of this fabric sets or reads, and within a switch as
   its lead in skb->mark, both in ticks. A host adds the lead to the kernel's time stamp of arrival. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FIRST_IFINDEX 1000
#define ROCE_PORT 4791
#define CLASS_HIGH 0x10010 /* HTB class 1:10 */
#define CLASS_LOW 0x10020  /* HTB class 1:20 */
#define STAB_OVERHEAD 1    /* what the shaper adds to every packet */
#define COST_SHIFT 20
#define TICK_SHIFT 6 /* 64 ns: 32 bits of them wrap after 275 s */
#define RETRIES 4

#define DSCP_NO_TRIM 0
#define DSCP_TRIMMABLE 4
#define DSCP_TRIMMABLE_RETX 8
#define DSCP_TRIMMED 12
#define DSCP_TRIMMED_LASTHOP 16
#define DSCP_CONTROL 46
#define ECN_MASK 3
#define ECN_CE 3

#define FIRST_DATA_OPCODE 0xC6
#define LAST_DATA_OPCODE 0xCB
#define OPCODE_LAST_IMM 0xC9
#define OPCODE_ONLY_IMM 0xCB
#define DATA_HEADER_BYTES 36 /* BTH, METH, TSETH, RETH */
#define IMMEDIATE_BYTES 4
#define ICRC_BYTES 4
#define FRAME_HEADER_BYTES (14 + 40 + 40 + 8) /* up to the UDP payload */

#define RULES 8
#define ALWAYS 0xFFFFFFFF

enum class { DATA, TRIMMED, CONTROL, OTHER, CLASSES };
enum verdict { PASSED, CHANGED, TRIMMED_HERE, DROPPED, VERDICTS };
enum port_flag { LAST_HOP = 1 };
enum action { DROP = 1, CORRUPT = 2 };
enum match { BY_UPLINK = 1, BY_SOURCE = 2, BY_DESTINATION = 4, DATA_ONLY = 8 };

struct port {
	__u64 ns_per_byte; /* times 2^COST_SHIFT */
	__u64 ecn_low_ns, ecn_high_ns, trim_ns, drop_ns;
	__u64 flags;
	__u64 delay_ns; /* what another qdisc of the port adds (netem) */
};

struct queue {
	__u64 free_at_ns;      /* when the bytes let in so far will have left */
	__u64 high_free_at_ns; /* when those of the high class alone will: data lets them pass */
};

/* CHANGED is "marked" at egress and "corrupted" at ingress. Bytes are those on arrival, before trimming. */
struct counts {
	__u64 packets[CLASSES][VERDICTS];
	__u64 bytes[CLASSES][VERDICTS];
};

struct rule {
	__u32 action, probability, match, uplink, source, destination;
	__u64 hits;
};

struct rules {
	__u64 active; /* bit k: rule[k] holds */
	struct rule rule[RULES];
};

struct ip6 {
	__u8 word[4]; /* version 4, traffic class 8, flow label 20 */
	__u8 length[2];
	__u8 next, hops;
	__u8 source[16], destination[16];
};

struct headers {
	__u8 ethernet[12], protocol[2];
	struct ip6 outer, inner;
	__u8 source_port[2], destination_port[2], udp_length[2], checksum[2];
	__u8 opcode, rest[11]; /* BTH */
};

_Static_assert(sizeof(struct headers) == FRAME_HEADER_BYTES + 12, "headers lie on the wire without gaps");

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
PORT_ARRAY(port_rules, rules);

/* The headers in linear memory, or NULL for a packet too short to be one of ours. */
static __always_inline struct headers *headers_of(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;

	if (data + sizeof(struct headers) > (void *)(long)skb->data_end) {
		if (skb->len < sizeof(struct headers) || bpf_skb_pull_data(skb, sizeof(struct headers)))
			return NULL;
		data = (void *)(long)skb->data;
		if (data + sizeof(struct headers) > (void *)(long)skb->data_end)
			return NULL;
	}
	return data;
}

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
	if (dscp == DSCP_CONTROL)
		return CONTROL;
	if (dscp == DSCP_TRIMMED || dscp == DSCP_TRIMMED_LASTHOP)
		return TRIMMED;
	return h->inner.next == 17 && get16(h->destination_port) == ROCE_PORT ? DATA : OTHER;
}

static __always_inline bool has_data_opcode(const struct headers *h)
{
	return h->opcode >= FIRST_DATA_OPCODE && h->opcode <= LAST_DATA_OPCODE;
}

/* Length of the frame without its payload. */
static __always_inline __u32 bare_length(const struct headers *h)
{
	bool immediate = h->opcode == OPCODE_LAST_IMM || h->opcode == OPCODE_ONLY_IMM;

	return FRAME_HEADER_BYTES + DATA_HEADER_BYTES + (immediate ? IMMEDIATE_BYTES : 0);
}

static __always_inline void count(struct counts *counts, enum class class, enum verdict verdict, __u32 length)
{
	__sync_fetch_and_add(&counts->packets[class & 3][verdict & 3], 1);
	__sync_fetch_and_add(&counts->bytes[class & 3][verdict & 3], length);
}

/* What egress knows of a packet before it looks at the queue. */
struct arrival {
	__u64 at_ns;   /* its last bit, on links without credit */
	__u64 lead_ns; /* by how much the kernel is ahead of that */
	enum class class;
	__u32 length, bare; /* bare: length when trimmed, 0 when it cannot be */
	bool ect;
};

static __always_inline struct arrival look_at(const struct __sk_buff *skb, const struct headers *h)
{
	__u64 lead_ns = (__u64)skb->mark << TICK_SHIFT;
	__u32 length = skb->len;
	struct arrival a = {
		.at_ns = bpf_ktime_get_ns() + lead_ns,
		.lead_ns = lead_ns,
		.class = class_of(h),
		.length = length,
	};
	__u8 dscp;

	if (encapsulated(h))
		a.ect = traffic_class(&h->outer) & ECN_MASK && traffic_class(&h->inner) & ECN_MASK;
	if (a.class != DATA)
		return a;
	dscp = traffic_class(&h->outer) >> 2;
	/* Without its payload a packet with a UDP checksum would be thrown away by the receiver. */
	if ((dscp == DSCP_TRIMMABLE || dscp == DSCP_TRIMMABLE_RETX) && has_data_opcode(h) && !get16(h->checksum) &&
	    length > bare_length(h))
		a.bare = bare_length(h);
	return a;
}

static __always_inline bool in_ramp(const struct port *port, __u64 backlog_ns, __u32 dice)
{
	if (backlog_ns <= port->ecn_low_ns)
		return false;
	if (backlog_ns >= port->ecn_high_ns)
		return true;
	return (dice >> 16) * (port->ecn_high_ns - port->ecn_low_ns) < (backlog_ns - port->ecn_low_ns) << 16;
}

static __always_inline enum verdict judge(const struct port *port, const struct arrival *a, __u64 backlog_ns, __u32 dice)
{
	if (a->class == CONTROL || a->class == TRIMMED)
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
};

/* Judge by the virtual queue, and put into it what goes on. */
static __always_inline struct admission admit(const struct port *port, struct queue *queue, const struct arrival *a)
{
	__u32 dice = bpf_get_prandom_u32(), length;
	struct admission result = {};
	__u64 old, start, cost = 0;

	for (int i = 0; i < RETRIES; i++) {
		old = *(volatile __u64 *)&queue->free_at_ns;
		start = old > a->at_ns ? old : a->at_ns;
		result.verdict = judge(port, a, start - a->at_ns, dice);
		if (result.verdict == DROPPED)
			return result;
		length = result.verdict == TRIMMED_HERE ? a->bare : a->length;
		cost = cost_ns(port, length + STAB_OVERHEAD);
		result.leaves_at_ns = start + cost;
		if (__sync_val_compare_and_swap(&queue->free_at_ns, old, result.leaves_at_ns) == old)
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

/* When a packet leaves that waits for its like alone. It waits for packets as the kernel has them: the header of a
   trimmed packet may be far ahead of its wire, and a control packet behind it is not. Two at once on two CPUs may take
   the same place; such packets are short. */
static __always_inline __u64 pass_data(struct queue *queue, __u64 at_ns, __u64 lead_ns, __u64 cost)
{
	__u64 free_at_ns = *(volatile __u64 *)&queue->high_free_at_ns, now = at_ns - lead_ns;
	__u64 leaves_at_ns = (free_at_ns > now ? free_at_ns : now) + cost;

	*(volatile __u64 *)&queue->high_free_at_ns = leaves_at_ns;
	return leaves_at_ns + lead_ns;
}

static __always_inline void send_along(struct __sk_buff *skb, __u64 leaves_at_ns)
{
	bpf_set_hash(skb, leaves_at_ns >> TICK_SHIFT);
}

/* By how many ticks the kernel is ahead of the link that a packet came over. */
static __always_inline __u32 lead_of(const struct __sk_buff *skb)
{
	__s32 ticks = skb->hash - (__u32)(bpf_ktime_get_ns() >> TICK_SHIFT);

	return ticks > 0 ? ticks : 0;
}

static __always_inline void mark(struct headers *h)
{
	set_traffic_class(&h->outer, traffic_class(&h->outer) | ECN_CE);
	set_traffic_class(&h->inner, traffic_class(&h->inner) | ECN_CE);
}

static __always_inline int trim(struct __sk_buff *skb, __u32 bare, __u8 dscp)
{
	struct headers *h;

	if (bpf_skb_change_tail(skb, bare, 0))
		return -1;
	h = headers_of(skb);
	if (!h)
		return -1;
	set_traffic_class(&h->outer, dscp << 2 | (traffic_class(&h->outer) & ECN_MASK));
	set_traffic_class(&h->inner, dscp << 2 | (traffic_class(&h->inner) & ECN_MASK));
	put16(h->outer.length, bare - 14 - 40);
	put16(h->inner.length, bare - 14 - 40 - 40);
	put16(h->udp_length, bare - 14 - 40 - 40);
	return 0;
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
	bool high;

	if (!port || !queue || !counts)
		return TC_ACT_SHOT; /* an interface nobody planned */
	a = look_at(skb, h);
	admission = admit(port, queue, &a);
	verdict = admission.verdict;
	if (verdict == CHANGED && h)
		mark(h);
	if (verdict == TRIMMED_HERE &&
	    trim(skb, a.bare, port->flags & LAST_HOP ? DSCP_TRIMMED_LASTHOP : DSCP_TRIMMED))
		verdict = DROPPED;
	count(counts, a.class, verdict, a.length);
	if (verdict == DROPPED)
		return TC_ACT_SHOT;
	high = a.class == CONTROL || a.class == TRIMMED || verdict == TRIMMED_HERE;
	if (high)
		admission.leaves_at_ns = pass_data(queue, a.at_ns, a.lead_ns, cost_ns(port, skb->len + STAB_OVERHEAD));
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
	bool high = class_of(headers_of(skb)) == CONTROL;
	__u64 at_ns, cost, leaves_at_ns;

	if (!port || !queue)
		return TC_ACT_SHOT;
	at_ns = bpf_ktime_get_ns() + port->delay_ns;
	cost = cost_ns(port, skb->len);
	leaves_at_ns = charge(queue, at_ns, cost);
	if (high)
		leaves_at_ns = pass_data(queue, at_ns, port->delay_ns, cost);
	send_along(skb, leaves_at_ns);
	skb->priority = high ? CLASS_HIGH : CLASS_LOW;
	return TC_ACT_OK;
}

/* What ingress knows of a packet: rules are held against it, not against packet memory, which helpers invalidate. */
struct traits {
	enum class class;
	bool encapsulated;
	__u32 uplink, source, destination;
	__u32 payload_at, payload_bytes;
};

static __always_inline struct traits traits_of(const struct headers *h, __u32 length)
{
	struct traits t = {.class = class_of(h)};

	if (!encapsulated(h))
		return t;
	t.encapsulated = true;
	t.uplink = h->inner.word[3];
	t.source = get16(h->inner.source + 6);
	t.destination = get16(h->inner.destination + 6);
	t.payload_at = bare_length(h);
	if (t.class == DATA && has_data_opcode(h) && length > t.payload_at + ICRC_BYTES)
		t.payload_bytes = length - ICRC_BYTES - t.payload_at;
	return t;
}

static __always_inline bool matches(const struct rule *rule, const struct traits *t)
{
	if (rule->match & DATA_ONLY && t->class != DATA)
		return false;
	if (rule->match & (BY_UPLINK | BY_SOURCE | BY_DESTINATION) && !t->encapsulated)
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
	if (rules->active)
		verdict = fate_by(rules, &t);
	if (verdict == CHANGED && flip_one_bit(skb, t.payload_at, t.payload_bytes))
		verdict = DROPPED;
	count(counts, t.class, verdict, skb->len);
	return verdict == DROPPED ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("tc")
int port_ingress(struct __sk_buff *skb)
{
	skb->mark = lead_of(skb);
	skb->tstamp = 0; /* when TCP meant to send it; a host adds its lead to times of arrival only */
	return take_in(skb);
}

SEC("tc")
int nic_ingress(struct __sk_buff *skb)
{
	/* The kernel stamps packets only where a socket asks for it. */
	if (skb->tstamp)
		skb->tstamp += (__u64)lead_of(skb) << TICK_SHIFT;
	return take_in(skb);
}

char _license[] SEC("license") = "Apache-2.0";
