// SPDX-License-Identifier: Apache-2.0
/* The delay line of kernel protocols: holds what NFQUEUE hands over at a host's ports until each packet would have
   arrived, half of T after the kernel's time stamp. It is what hosts/delay.py is for the daemons.

   kernel_delay ONE_WAY_NS TICK_NS CONTROL_FD NETLINK_FD...

   The packets stay in the kernel; what comes here is a number and a time stamp. Each NETLINK_FD serves the queues of
   one host, two a port: packets of one queue are let go in the order in which they came, by one verdict for all that are
   due. Letting go runs the receiving protocol in this process: its CPU time is TCP's receive path too.

   Queues of odd numbers wait twice as long. They are for echo requests, whose answers do not wait: ping takes the time
   of an answer from the kernel's stamp, which is older than any wait here.

   No packet is let go early. The process sleeps until the first is due, but wakes once a tick at most, so that a packet
   is late by a tick at most while the machine keeps time. What has not been read yet cannot be due before ONE_WAY_NS
   after the last reading.

   On CONTROL_FD one byte asks: 'b' begins the figures anew, 's' gets them as a line of JSON. Its end ends the process. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
#define BATCH 64
#define MESSAGE_BYTES 1024
#define MOST_QUEUES 128 /* of a host */
#define MOST_HOSTS 1024
#define LATE_STEP_NS 20000
#define LATE_STEPS 10000
#define NEVER INT64_MAX
#define READINGS 3

struct packet {
	uint32_t id;
	int64_t due_ns;
};

/* What waits in one queue, oldest first, in a ring whose size is a power of two. */
struct line {
	struct packet *ring;
	uint32_t size, first, count;
};

struct host {
	int fd;
	struct line lines[MOST_QUEUES];
};

struct verdict {
	struct nlmsghdr header;
	struct nfgenmsg family;
	struct nlattr attribute;
	struct nfqnl_msg_verdict_hdr verdict;
};

_Static_assert(sizeof(struct verdict) == 32, "the message lies in memory without gaps");

static int64_t one_way_ns, tick_ns;
static struct host *hosts;
static int host_count;
static uint32_t queues; /* that any host has been seen to have */
static uint64_t received, released, unstamped, wakeups, held;
static uint64_t late[LATE_STEPS];
static int64_t late_max_ns;

static void fail(const char *what)
{
	fprintf(stderr, "kernel_delay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* CLOCK_MONOTONIC less wall clock. Losing the CPU between two readings makes it too small, never too large, and packets
   would go early by it (hosts/stamps.py). */
static int64_t clocks_apart_ns(void)
{
	int64_t largest_ns = INT64_MIN;

	for (int i = 0; i < READINGS; i++) {
		int64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
		int64_t apart_ns = monotonic_ns - clock_ns(CLOCK_REALTIME);

		if (apart_ns > largest_ns)
			largest_ns = apart_ns;
	}
	return largest_ns;
}

static struct packet *at(const struct line *line, uint32_t index)
{
	return &line->ring[(line->first + index) & (line->size - 1)];
}

static void grow(struct line *line)
{
	uint32_t size = line->size ? 2 * line->size : 256;
	struct packet *ring = malloc(size * sizeof(*ring));

	if (!ring)
		fail("no memory");
	for (uint32_t i = 0; i < line->count; i++)
		ring[i] = *at(line, i);
	free(line->ring);
	line->ring = ring;
	line->size = size;
	line->first = 0;
}

static void hold(struct line *line, uint32_t id, int64_t due_ns)
{
	if (line->count == line->size)
		grow(line);
	*at(line, line->count++) = (struct packet){id, due_ns};
	received++;
	held++;
}

/* `since_boot_ns`: what to add to a time stamp, which is wall time, to get CLOCK_MONOTONIC. */
static void take(struct host *host, const struct nlmsghdr *message, int64_t now_ns, int64_t since_boot_ns)
{
	const struct nfgenmsg *family = NLMSG_DATA(message);
	const char *next = (const char *)(family + 1), *end = (const char *)message + message->nlmsg_len;
	const struct nfqnl_msg_packet_hdr *packet = NULL;
	const struct nfqnl_msg_packet_timestamp *stamp = NULL;
	uint32_t queue;
	int64_t arrived_ns = now_ns;

	if (message->nlmsg_type == NLMSG_ERROR) {
		errno = -((const struct nlmsgerr *)NLMSG_DATA(message))->error;
		fail("the kernel refused a verdict");
	}
	if (message->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
		return;
	while (end - next >= (long)sizeof(struct nlattr)) {
		const struct nlattr *attribute = (const struct nlattr *)next;

		if (attribute->nla_len < sizeof(*attribute))
			break;
		if ((attribute->nla_type & NLA_TYPE_MASK) == NFQA_PACKET_HDR)
			packet = (const void *)(attribute + 1);
		if ((attribute->nla_type & NLA_TYPE_MASK) == NFQA_TIMESTAMP)
			stamp = (const void *)(attribute + 1);
		next += NLA_ALIGN(attribute->nla_len);
	}
	queue = ntohs(family->res_id);
	if (!packet || queue >= MOST_QUEUES) {
		errno = EPROTO;
		fail("a packet without a number, or of a queue that is not ours");
	}
	if (queue >= queues)
		queues = queue + 1;
	if (stamp) {
		struct nfqnl_msg_packet_timestamp copy;

		memcpy(&copy, stamp, sizeof(copy)); /* attributes lie at multiples of 4 */
		arrived_ns = be64toh(copy.sec) * SECOND_NS + be64toh(copy.usec) * 1000 + since_boot_ns;
	} else {
		unstamped++;
	}
	hold(&host->lines[queue], ntohl(packet->packet_id), arrived_ns + (queue & 1 ? 2 : 1) * one_way_ns);
}

static char buffers[BATCH][MESSAGE_BYTES] __attribute__((aligned(8)));
static struct iovec vectors[BATCH];
static struct mmsghdr messages[BATCH];

static void prepare_reading(void)
{
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){buffers[i], MESSAGE_BYTES};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
	}
}

/* All that the kernel has for a host. */
static void read_all(struct host *host)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), since_boot_ns = clocks_apart_ns();
	int count;

	do {
		count = recvmmsg(host->fd, messages, BATCH, MSG_DONTWAIT, NULL);
		if (count < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			fail("cannot read a queue");
		}
		for (int i = 0; i < count; i++)
			take(host, (const struct nlmsghdr *)buffers[i], now_ns, since_boot_ns);
	} while (count == BATCH);
}

static void record_late(int64_t late_ns)
{
	int64_t step = late_ns / LATE_STEP_NS;

	late[step < LATE_STEPS ? step : LATE_STEPS - 1]++;
	if (late_ns > late_max_ns)
		late_max_ns = late_ns;
}

/* Take what is due from the line; returns whether there was any, and the number of the last. */
static bool drain(struct line *line, int64_t now_ns, uint32_t *last)
{
	bool any = false;

	while (line->count && at(line, 0)->due_ns <= now_ns) {
		*last = at(line, 0)->id;
		record_late(now_ns - at(line, 0)->due_ns);
		line->first = (line->first + 1) & (line->size - 1);
		line->count--;
		released++;
		held--;
		any = true;
	}
	return any;
}

static void let_go(struct host *host, int64_t now_ns)
{
	struct verdict verdicts[MOST_QUEUES];
	size_t count = 0;
	uint32_t last;

	for (uint32_t queue = 0; queue < queues; queue++) {
		if (!host->lines[queue].count || !drain(&host->lines[queue], now_ns, &last))
			continue;
		verdicts[count++] = (struct verdict){
			.header = {sizeof(struct verdict), NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_VERDICT_BATCH,
				   NLM_F_REQUEST, 0, 0},
			.family = {0, NFNETLINK_V0, htons(queue)},
			.attribute = {sizeof(struct nlattr) + sizeof(struct nfqnl_msg_verdict_hdr),
				      NFQA_VERDICT_HDR},
			.verdict = {htonl(NF_ACCEPT), htonl(last)},
		};
	}
	if (count && send(host->fd, verdicts, count * sizeof(*verdicts), 0) < 0)
		fail("cannot give a verdict");
}

static int64_t first_due_ns(void)
{
	int64_t first = NEVER;

	for (int i = 0; i < host_count; i++)
		for (uint32_t queue = 0; queue < queues; queue++) {
			const struct line *line = &hosts[i].lines[queue];

			if (line->count && at(line, 0)->due_ns < first)
				first = at(line, 0)->due_ns;
		}
	return first;
}

static int64_t late_ns_at(double share)
{
	uint64_t all = 0, seen = 0;

	for (int i = 0; i < LATE_STEPS; i++)
		all += late[i];
	for (int i = 0; i < LATE_STEPS; i++) {
		seen += late[i];
		if (all && seen >= share * all)
			return (i + 1LL) * LATE_STEP_NS < late_max_ns ? (i + 1LL) * LATE_STEP_NS : late_max_ns;
	}
	return 0;
}

static void begin_figures(void)
{
	received = released = unstamped = wakeups = 0;
	memset(late, 0, sizeof(late));
	late_max_ns = 0;
}

static void report(int control)
{
	char text[512];
	int length = snprintf(text, sizeof(text),
			      "{\"received\":%llu,\"released\":%llu,\"held\":%llu,\"unstamped\":%llu,\"wakeups\":%llu,"
			      "\"p50_ns\":%lld,\"p99_ns\":%lld,\"max_ns\":%lld,\"cpu_ns\":%lld}\n",
			      (unsigned long long)received, (unsigned long long)released, (unsigned long long)held,
			      (unsigned long long)unstamped, (unsigned long long)wakeups, (long long)late_ns_at(0.5),
			      (long long)late_ns_at(0.99), (long long)late_max_ns,
			      (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));

	if (send(control, text, length, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void answer(int control)
{
	char asked;

	if (read(control, &asked, 1) != 1)
		exit(0);
	if (asked == 'b')
		begin_figures();
	if (asked == 's')
		report(control);
}

/* Sleep until then, or until a packet comes where none is held; requests are answered meanwhile. */
static void rest(struct pollfd *polled, int64_t until_ns)
{
	int64_t left_ns;

	while ((left_ns = until_ns - clock_ns(CLOCK_MONOTONIC)) > 0) {
		struct timespec left = {left_ns / SECOND_NS, left_ns % SECOND_NS};
		int count = ppoll(polled, held ? 1 : 1 + host_count, held ? &left : NULL, NULL);

		if (count < 0 && errno != EINTR)
			fail("cannot wait");
		if (count > 0 && polled[0].revents) {
			answer(polled[0].fd);
			count--;
		}
		if (count > 0)
			return;
	}
}

int main(int argc, char **argv)
{
	static struct pollfd polled[1 + MOST_HOSTS];

	if (argc < 5 || argc - 4 > MOST_HOSTS) {
		fprintf(stderr, "usage: kernel_delay ONE_WAY_NS TICK_NS CONTROL_FD NETLINK_FD...\n");
		return 2;
	}
	one_way_ns = atoll(argv[1]);
	tick_ns = atoll(argv[2]);
	polled[0] = (struct pollfd){.fd = atoi(argv[3]), .events = POLLIN};
	host_count = argc - 4;
	hosts = calloc(host_count, sizeof(*hosts));
	if (!hosts)
		fail("no memory");
	for (int i = 0; i < host_count; i++) {
		hosts[i].fd = atoi(argv[4 + i]);
		polled[1 + i] = (struct pollfd){.fd = hosts[i].fd, .events = POLLIN};
	}
	prepare_reading();
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	for (;;) {
		int64_t woken_ns = clock_ns(CLOCK_MONOTONIC), wake_ns;

		wakeups++;
		if (poll(&polled[1], host_count, 0) > 0)
			for (int i = 0; i < host_count; i++)
				if (polled[1 + i].revents)
					read_all(&hosts[i]);
		for (int i = 0; i < host_count; i++)
			let_go(&hosts[i], clock_ns(CLOCK_MONOTONIC));
		wake_ns = first_due_ns();
		if (wake_ns > woken_ns + one_way_ns) /* what has come since may be due then */
			wake_ns = woken_ns + one_way_ns;
		rest(polled, wake_ns > woken_ns + tick_ns ? wake_ns : woken_ns + tick_ns);
	}
}
