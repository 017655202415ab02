/* An MRC endpoint in C that speaks contract 1 (docs/contract.md): lines of JSON in, lines of JSON out.
 *
 * It is small and takes the simple way where there is a choice: a window that grows by a packet a round trip and is
 * halved by congestion; losses found by order on a path, by age and by a timer; no reliability probes.
 *
 *     cc -O2 -o endpoint docs/examples/contract/endpoint.c
 *     echo '[{"name": "in C", "program": ["./endpoint"]}]' > list.json && mrc-testbed interop list.json
 *
 * Apache-2.0, as the project.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t ns;
enum { PEERS = 64, PATHS = 64, QPS = 64, RANGE = 1024, PLANES = 8, MAX_PACKET = 9216, CONTROL = 4096 };
enum { FIRST = 0xC6, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM };
enum { ACK = 0xD1, REQUEST = 0xD8, RESPONSE = 0xD9, SACK = 0xDC, NACK = 0xDD, PROBE = 0xDE };
#define RTX 0x20000000u
#define STAMPED 0x10000000u
#define NEVER INT64_MAX
#define PSN 0xFFFFFFu

/* --- JSON: just enough to find a field of an object --- */

static const char *space(const char *p) { while (*p == ' ' || *p == '\t') p++; return p; }

static const char *skip_text(const char *p) {
    for (p++; *p && *p != '"'; p++) if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : p;
}

static const char *skip(const char *p) { /* past one value */
    p = space(p);
    if (*p == '"') return skip_text(p);
    if (*p != '{' && *p != '[') { while (*p && !strchr(",]}", *p)) p++; return p; }
    for (int depth = 0; *p;) {
        if (*p == '"') { p = skip_text(p); continue; }
        if (*p == '{' || *p == '[') depth++;
        if ((*p == '}' || *p == ']') && !--depth) return p + 1;
        p++;
    }
    return p;
}

static const char *get(const char *object, const char *key) { /* the value of a field, or NULL */
    size_t length = strlen(key);
    const char *p = space(object);
    if (*p != '{') return NULL;
    for (p = space(p + 1); *p == '"';) {
        const char *name = p + 1;
        p = space(skip_text(p));
        int found = !strncmp(name, key, length) && name[length] == '"';
        p = space(*p == ':' ? p + 1 : p);
        if (found) return p;
        p = space(skip(p));
        p = space(*p == ',' ? p + 1 : p);
    }
    return NULL;
}

static int64_t number(const char *object, const char *key, int64_t otherwise) {
    const char *p = get(object, key);
    return p && (*p == '-' || (*p >= '0' && *p <= '9')) ? strtoll(p, NULL, 10) : otherwise;
}

static uint64_t address_in(const char *object, const char *key) {
    const char *p = get(object, key);
    return p ? strtoull(p, NULL, 10) : 0;
}

static int is_true(const char *object, const char *key) {
    const char *p = get(object, key);
    return p && *p == 't';
}

static const char *first(const char *list) { /* element of a list, or NULL */
    if (!list || *(list = space(list)) != '[') return NULL;
    list = space(list + 1);
    return *list == ']' ? NULL : list;
}

static const char *following(const char *element) {
    element = space(skip(element));
    return *element == ',' ? space(element + 1) : NULL;
}

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static size_t unhex(const char *text, uint8_t *to, size_t most) { /* `text` begins at its quote */
    size_t n = 0;
    for (text++; n < most && text[0] != '"' && text[0] && text[1] != '"'; text += 2)
        to[n++] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
    return n;
}

/* --- lists of the answer --- */

typedef struct { char *text; size_t used, room; } Out;
static Out sent, placed, events;

static void put(Out *out, const char *text, size_t n) {
    if (out->used + n + 1 > out->room) out->text = realloc(out->text, out->room = 2 * out->room + n + 4096);
    memcpy(out->text + out->used, text, n);
    out->text[out->used += n] = 0;
}

static void puts_(Out *out, const char *text) { put(out, text, strlen(text)); }

static void put_hex(Out *out, const uint8_t *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        char pair[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        put(out, pair, 2);
    }
}

static void clear(Out *out) { put(out, "", 0); out->used = 0; out->text[0] = 0; }

/* --- state --- */

typedef struct { /* a path to a peer */
    int plane, uplink, denied, bad, good_answers;
    uint64_t heard; /* order of the latest packet on it that has arrived */
    ns probe_at;
} Path;

typedef struct { /* a peer: `ports` are those of its planes that are up */
    int known, paths, turn, next_path[PLANES];
    Path path[PATHS];
    uint32_t ports;
    ns told_at;    /* when a Port Status Update goes again */
    int told_id, told;
} Peer;

typedef struct Write {
    struct Write *next;
    uint8_t *data;
    size_t length;
    uint64_t address, begin, end; /* `begin`, `end`: sequence numbers of its first packet and behind its last */
    int64_t wr_id;
    uint32_t immediate, msn, rqmsn;
    int has_immediate;
} Write;

typedef struct { /* a packet under way, at its sequence number modulo RANGE */
    Write *write;
    int state, path; /* state: 0 none, 1 under way, 2 lost, 3 has arrived */
    int again;
    uint64_t order;
    ns at;
} Flight;

typedef struct {
    int used, peer, connected, failed;
    uint32_t qpn, psn, remote_qpn, remote_psn, rkey, remote_rkey, mtu;
    uint64_t base, region_bytes;
    /* sending */
    Write *waiting, *open, **tail;
    uint64_t una, next;
    uint32_t msn, rqmsn, open_wimm, max_wimm;
    int under_way, lost, tries, wait_factor;
    double window;
    ns timer, cut_at;
    Flight flight[RANGE];
    /* receiving */
    uint64_t expected, acked;
    uint8_t came[RANGE], ends[RANGE];
    uint32_t end_msn[RANGE], immediate[RANGE], completed, units;
    int out_of_order, since_sack;
    ns sack_at;
    uint64_t heard_seq;
    uint32_t heard_ev;
    int heard_plane, heard_uplink;
} Qp;

typedef struct { int peer, plane, uplink, class_, size; uint8_t packet[64]; } Control;

static Peer peer[PEERS];
static Qp qp[QPS];
static Control control[CONTROL];
static int control_head, control_count, planes, quiet, stopped, linear_tries, exponential_tries, packets_sent;
static uint32_t up = ~0u, own_port, request_id;
static int dscp_data, dscp_again, dscp_control, dscp_trimmed, dscp_last_hop;
static uint64_t order_of_sending, draw = 1;
static int64_t rate_bps, payload_bytes, mpr, max_wimm;
static ns now, rtt, busy_until[PLANES], rising_at[PLANES];

/* --- packets: all fields are big-endian --- */

static void be(uint8_t *to, int bytes, uint64_t value) { while (bytes--) to[bytes] = (uint8_t)value, value >>= 8; }
static uint64_t of(const uint8_t *from, int bytes) { uint64_t v = 0; while (bytes--) v = v << 8 | *from++; return v; }

static void bth(uint8_t *p, int opcode, uint32_t qpn, uint32_t bits_psn) {
    be(p, 1, (uint64_t)opcode); be(p + 1, 1, 0); be(p + 2, 2, 0xFFFF); be(p + 4, 4, qpn); be(p + 8, 4, bits_psn);
}

static uint32_t ports_up(void) { return up & ((1u << planes) - 1); }

static void emit(int to, int plane, int uplink, int class_, const uint8_t *packet, size_t size) {
    char head[64];
    int n = snprintf(head, sizeof head, "%s[%d,%d,%d,%d,\"", sent.used ? "," : "", to, plane, uplink, class_);
    put(&sent, head, (size_t)n);
    put_hex(&sent, packet, size);
    puts_(&sent, "\"]");
    ns begin = busy_until[plane] > now ? busy_until[plane] : now;
    busy_until[plane] = begin + (ns)(size + 102) * 8000000000LL / rate_bps;
}

static void queue(int to, int plane, int uplink, const uint8_t *packet, int size) {
    if (control_count == CONTROL) return;
    Control *c = &control[(control_head + control_count++) % CONTROL];
    *c = (Control){.peer = to, .plane = plane, .uplink = uplink, .class_ = dscp_control << 2, .size = size};
    memcpy(c->packet, packet, (size_t)size);
}

static int usable_plane(Peer *p, int plane) { return up >> plane & p->ports >> plane & 1; }
static int usable(Peer *p, Path *path) { return usable_plane(p, path->plane) && !path->denied && !path->bad; }

static Path *way_back(Peer *p, int plane, int uplink) { /* that path if its plane has both ports, else any */
    Path *any = NULL;
    for (int i = 0; i < p->paths; i++) {
        Path *path = &p->path[i];
        if (!usable_plane(p, path->plane)) continue;
        if (path->plane == plane && path->uplink == uplink) return path;
        if (!any || (any->bad && !path->bad)) any = path;
    }
    return any;
}

static void send_request(int to, Path *path, int operation, uint32_t id) {
    uint8_t p[32] = {0};
    bth(p, REQUEST, 2, id & 0xFFFF);
    be(p + 13, 1, (uint64_t)operation); be(p + 16, 4, ports_up()); be(p + 26, 2, 0x8001);
    be(p + 24, 2, (uint64_t)(now >> 13));
    queue(to, path->plane, path->uplink, p, 32);
}

static void send_sack(Qp *q, uint64_t seq, int retransmission, int marked) {
    uint8_t p[52] = {0};
    uint64_t bitmap = 0;
    for (int i = 0; i < 64; i++) if (q->came[(q->expected + (uint64_t)i) % RANGE]) bitmap |= 1ull << i;
    uint32_t cack = (uint32_t)(q->remote_psn + q->expected - 1) & PSN;
    bth(p, SACK, q->remote_qpn, cack | (retransmission ? RTX : 0));
    be(p + 12, 2, marked ? 1 << 5 : 0); be(p + 14, 2, (seq - (q->expected - 1)) & 0xFFFF); be(p + 16, 4, q->heard_ev);
    be(p + 20, 2, q->qpn & 0xFFFF); be(p + 22, 2, q->remote_qpn & 0xFFFF);
    be(p + 24, 4, (~ports_up() & ((1u << planes) - 1)) << 24 | cack);
    be(p + 30, 2, 1); be(p + 32, 8, bitmap); be(p + 42, 2, (uint64_t)q->out_of_order); be(p + 44, 4, q->units & PSN);
    Path *path = way_back(&peer[q->peer], q->heard_plane, q->heard_uplink);
    if (path) queue(q->peer, path->plane, path->uplink, p, 52);
    q->since_sack = 0;
    q->sack_at = NEVER;
}

static void send_ack(Qp *q) {
    uint8_t p[20] = {0};
    bth(p, ACK, q->remote_qpn, (uint32_t)(q->remote_psn + q->expected - 1) & PSN);
    be(p + 12, 4, 0x1Fu << 24 | (q->completed & PSN));
    q->acked = q->expected;
    Path *path = way_back(&peer[q->peer], q->heard_plane, q->heard_uplink);
    if (path) queue(q->peer, path->plane, path->uplink, p, 20);
}

static void send_nack(Qp *q, uint32_t bits, int reason) {
    uint8_t p[36] = {0};
    bth(p, NACK, q->remote_qpn, bits & (RTX | PSN));
    be(p + 14, 1, (uint64_t)reason); be(p + 16, 4, q->heard_ev); be(p + 20, 2, q->qpn & 0xFFFF);
    be(p + 22, 2, q->remote_qpn & 0xFFFF); be(p + 24, 4, bits & PSN); be(p + 28, 1, 2 << 4);
    Path *path = way_back(&peer[q->peer], q->heard_plane, q->heard_uplink);
    if (path) queue(q->peer, path->plane, path->uplink, p, 36);
}

/* --- sending data --- */

static void event(const char *name, const char *more, Qp *q, const char *key, int64_t value) {
    char text[160];
    int n = snprintf(text, sizeof text, "%s{\"event\":\"%s\",\"qpn\":%u,\"%s\":%lld%s}", events.used ? "," : "", name,
                     q->qpn, key, (long long)value, more);
    put(&events, text, (size_t)n);
}

static ns timeout_of(Qp *q) { return 4 * rtt * q->wait_factor; }

static void congested(Qp *q) { /* halve the window, once a round trip */
    if (now < q->cut_at + rtt) return;
    q->cut_at = now;
    if ((q->window /= 2) < 2) q->window = 2;
}

static void fail_qp(Qp *q) {
    q->failed = 1;
    q->timer = NEVER;
    event("qp_error", ",\"reason\":\"retries exceeded\"", q, "peer", q->peer);
}

static void lose(Qp *q, uint64_t seq, int blamed) {
    Flight *f = &q->flight[seq % RANGE];
    f->state = 2;
    q->under_way--;
    q->lost++;
    Peer *p = &peer[q->peer];
    Path *path = &p->path[f->path];
    if (!blamed || path->bad || path->denied) return;
    int left = 0; /* a plane keeps one path, whatever is lost on it */
    for (int i = 0; i < p->paths; i++) left += p->path[i].plane == path->plane && usable(p, &p->path[i]);
    if (left < 2) return;
    path->bad = 1;
    path->good_answers = 0;
    path->probe_at = now + 2 * rtt;
}

static void arrived(Qp *q, uint64_t seq) {
    Flight *f = &q->flight[seq % RANGE];
    if (f->state == 1) q->under_way--;
    else if (f->state == 2) q->lost--;
    else return;
    f->state = 3;
    Path *path = &peer[q->peer].path[f->path];
    if (!f->again && f->order > path->heard) path->heard = f->order; /* of one attempt alone it is known */
    q->window += q->window < (double)planes * 6 ? 1 : 1 / q->window;
    if (q->window > 200) q->window = 200;
    q->tries = 0;
    q->wait_factor = 1;
    q->timer = now + timeout_of(q);
}

static void acknowledge(Qp *q, uint64_t end) { /* all below `end` have arrived, and leave */
    if (end > q->next) return;
    for (; q->una < end; q->una++) {
        arrived(q, q->una);
        q->flight[q->una % RANGE].state = 0;
    }
    if (q->una == q->next) q->timer = NEVER;
}

static void complete(Qp *q, uint64_t end) { /* a Transport ACK covers what is below `end` */
    while (q->open && q->open->end <= end) {
        Write *w = q->open;
        event("completed", "", q, "wr_id", w->wr_id);
        q->open_wimm -= (uint32_t)w->has_immediate;
        q->open = w->next;
        free(w->data);
        free(w);
    }
}

static void overtaken(Qp *q) { /* lost: sent on a path before a packet that has arrived, or three round trips ago */
    for (uint64_t s = q->una; s < q->next; s++) {
        Flight *f = &q->flight[s % RANGE];
        ns age = now - f->at;
        uint64_t heard = peer[q->peer].path[f->path].heard;
        if (f->state == 1 && (age > 3 * rtt || (age > rtt && f->order < heard))) lose(q, s, 1);
    }
}

static uint64_t seq_near(uint32_t psn, uint32_t first_psn, uint64_t near) {
    int32_t ahead = (int32_t)((psn - (first_psn + (uint32_t)near)) << 8) >> 8;
    return near + (uint64_t)(int64_t)ahead;
}

static int pick(Peer *p, int avoid) { /* planes in turn, and the paths of a plane in turn; -1: none is free now */
    ns ahead = rtt / 8 + 3 * (payload_bytes + 140) * 8000000000LL / rate_bps;
    for (int tried = 0; tried < planes; tried++) {
        int plane = (p->turn + tried) % planes, found = -1;
        for (int i = 0; i < p->paths; i++) {
            int at = (p->next_path[plane] + i) % p->paths;
            if (p->path[at].plane != plane || !usable(p, &p->path[at])) continue;
            if (found < 0 || found == avoid) found = at;
            if (found != avoid) break;
        }
        if (found < 0) continue;
        if (busy_until[plane] - now > ahead) return -1; /* its turn, and its port is busy */
        p->turn = (plane + 1) % planes;
        p->next_path[plane] = found + 1;
        return found;
    }
    return -1;
}

static void send_data(Qp *q, uint64_t seq, int path, int again) {
    static uint8_t p[MAX_PACKET];
    Flight *f = &q->flight[seq % RANGE];
    Write *w = f->write;
    uint64_t index = seq - w->begin, offset = index * q->mtu, last = seq + 1 == w->end;
    size_t length = w->length - offset < q->mtu ? w->length - offset : q->mtu, pad = -length & 3, at = 32;
    int opcode = last ? (w->has_immediate ? (index ? LAST_IMM : ONLY_IMM) : index ? LAST : ONLY)
                      : index ? MIDDLE : FIRST;
    bth(p, opcode, q->remote_qpn, ((q->psn + (uint32_t)seq) & PSN) | (again ? RTX : 0));
    be(p + 1, 1, pad << 4); be(p + 12, 2, w->rqmsn); be(p + 14, 2, w->msn);
    be(p + 16, 8, w->address + offset); be(p + 24, 4, q->remote_rkey); be(p + 28, 4, w->length);
    if (opcode == LAST_IMM || opcode == ONLY_IMM) { be(p + at, 4, w->immediate); at += 4; }
    memcpy(p + at, w->data + offset, length);
    memset(p + at + length, 0, pad + 4);
    Path *way = &peer[q->peer].path[path];
    *f = (Flight){.write = w, .state = 1, .path = path, .again = f->again | again, .at = now};
    f->order = ++order_of_sending;
    q->under_way++;
    packets_sent++;
    emit(q->peer, way->plane, way->uplink, (again ? dscp_again : dscp_data) << 2 | 2, p, at + length + pad + 4);
    if (q->timer == NEVER) q->timer = now + timeout_of(q);
}

static int send_next(Qp *q) { /* one packet, if there is one and it may go */
    if (!q->connected || q->failed || q->under_way >= (int)q->window) return 0;
    Peer *p = &peer[q->peer];
    for (uint64_t s = q->una; q->lost && s < q->next; s++) {
        Flight *f = &q->flight[s % RANGE];
        if (f->state != 2) continue;
        int path = pick(p, f->path);
        if (path < 0) return 0;
        q->lost--;
        send_data(q, s, path, 1);
        return 1;
    }
    Write *w = q->waiting;
    if (!w || q->next - q->una >= (uint64_t)(mpr * 128) || q->next - q->una >= RANGE) return 0;
    if (w->begin == UINT64_MAX && w->has_immediate && q->open_wimm >= q->max_wimm) return 0;
    int path = pick(p, -1);
    if (path < 0) return 0;
    if (w->begin == UINT64_MAX) {
        uint64_t packets = w->length ? (w->length + q->mtu - 1) / q->mtu : 1;
        w->begin = q->next;
        w->end = q->next + packets;
        w->msn = ++q->msn & 0xFFFF;
        w->rqmsn = q->rqmsn & 0xFFFF;
        if (w->has_immediate) q->rqmsn++, q->open_wimm++;
    }
    q->flight[q->next % RANGE] = (Flight){.write = w};
    send_data(q, q->next++, path, 0);
    if (q->next == w->end) { /* it waits no more; it is open until it is complete */
        q->waiting = w->next;
        w->next = NULL;
        Write **end = &q->open;
        while (*end) end = &(*end)->next;
        *end = w;
        if (!q->waiting) q->tail = &q->waiting;
    }
    return 1;
}

/* --- what comes in --- */

static void on_data(Qp *q, const uint8_t *p, size_t size, int marked) {
    uint32_t bits = (uint32_t)of(p + 8, 4);
    size_t reth = bits & STAMPED ? 20 : 16, at = reth + 16;
    int64_t offset = (int64_t)(seq_near(bits & PSN, q->remote_psn, q->expected) - q->expected);
    if (offset < -32768) return;
    uint64_t seq = q->expected + (uint64_t)offset;
    if (offset < 0 || (offset < RANGE && q->came[seq % RANGE])) {
        send_sack(q, seq, bits & RTX, marked);
        send_ack(q);
        return;
    }
    if (offset >= mpr * 128) { send_nack(q, bits, 0x0B); return; }
    uint64_t address = of(p + reth, 8), length = of(p + reth + 12, 4);
    int has_immediate = p[0] == LAST_IMM || p[0] == ONLY_IMM;
    if (has_immediate) { q->immediate[seq % RANGE] = (uint32_t)of(p + at, 4); at += 4; }
    if (size < at + 4 + (p[1] >> 4 & 3)) return;
    size_t payload = size - 4 - (p[1] >> 4 & 3) - at;
    if (length && payload) {
        if ((uint32_t)of(p + reth + 8, 4) != q->rkey || address < q->base) return;
        if (address - q->base + payload > q->region_bytes) return;
        char head[64];
        int n = snprintf(head, sizeof head, "%s[%u,%llu,\"", placed.used ? "," : "", q->qpn,
                         (unsigned long long)(address - q->base));
        put(&placed, head, (size_t)n);
        put_hex(&placed, p + at, payload);
        puts_(&placed, "\"]");
    }
    q->units += (uint32_t)((payload > 1024 ? payload : 1024) + 255) >> 8;
    q->came[seq % RANGE] = 1;
    q->ends[seq % RANGE] = p[0] >= LAST ? (has_immediate ? 2 : 1) : 0;
    q->end_msn[seq % RANGE] = (uint32_t)of(p + 14, 2);
    q->out_of_order++;
    int whole = 0;
    for (; q->came[q->expected % RANGE]; q->expected++) {
        uint64_t slot = q->expected % RANGE;
        q->came[slot] = 0;
        q->out_of_order--;
        if (!q->ends[slot]) continue;
        whole = 1;
        q->completed = q->end_msn[slot];
        if (q->ends[slot] == 2) event("immediate", "", q, "immediate", q->immediate[slot]);
    }
    q->heard_seq = seq;
    if (++q->since_sack >= 4 || marked || bits & (RTX | 0x80000000u)) send_sack(q, seq, bits & RTX, marked);
    else if (q->sack_at == NEVER) q->sack_at = now + rtt / 4;
    if (whole || q->expected - q->acked >= 64) send_ack(q);
}

static void on_sack(Qp *q, const uint8_t *p) {
    uint32_t cack = (uint32_t)of(p + 8, 4) & PSN;
    uint64_t end = seq_near(cack, q->psn, q->una) + 1, base = end - 1 + (uint64_t)(int16_t)of(p + 30, 2);
    if (end > q->next) return;
    if (end > q->una) acknowledge(q, end);
    uint64_t bitmap = of(p + 32, 8);
    for (uint64_t i = 0; i < 64; i++)
        if (bitmap >> i & 1 && base + i >= q->una && base + i < q->next) arrived(q, base + i);
    if (of(p + 12, 2) >> 5 & 3 || of(p + 44, 1) & 0x7F) congested(q);
    overtaken(q);
}

static void on_nack(Qp *q, const uint8_t *p) {
    uint64_t seq = seq_near((uint32_t)of(p + 8, 4) & PSN, q->psn, q->una);
    congested(q);
    if (seq >= q->una && seq < q->next && q->flight[seq % RANGE].state == 1) lose(q, seq, 0);
}

static void heard_ports(Peer *p, uint32_t mask, int from) {
    uint32_t before = p->ports;
    p->ports = mask;
    for (int i = 0; i < QPS; i++)
        for (uint64_t s = qp[i].una; qp[i].used && qp[i].peer == from && s < qp[i].next; s++) {
            Flight *f = &qp[i].flight[s % RANGE];
            if (f->state == 1 && before & ~mask & 1u << p->path[f->path].plane) lose(&qp[i], s, 0);
        }
}

static void on_request(int from, const uint8_t *p, uint32_t ev, int marked) {
    int operation = p[13] & 3;
    if (operation == 0) heard_ports(&peer[from], (uint32_t)of(p + 16, 4), from);
    uint8_t answer[52] = {0};
    bth(answer, RESPONSE, 2, (uint32_t)of(p + 8, 4) & 0xFFFF);
    be(answer + 13, 1, (uint64_t)operation << 2); be(answer + 16, 4, ev); be(answer + 20, 4, ports_up());
    be(answer + 24, 1, (uint64_t)marked); memcpy(answer + 40, p + 24, 2);
    Path *path = way_back(&peer[from], (int)(ev >> 24), (int)(ev >> 16 & 0xFF));
    if (path) queue(from, path->plane, path->uplink, answer, 52);
}

static void tell_ports(int to) { /* over each plane that is whole, until one is answered */
    Peer *p = &peer[to];
    p->told_id = (int)(++request_id & 0xFFFF);
    p->told = 0;
    p->told_at = now + 4 * rtt;
    for (int plane = 0; plane < planes; plane++)
        for (int i = 0; i < p->paths; i++)
            if (p->path[i].plane == plane && usable(p, &p->path[i])) {
                send_request(to, &p->path[i], 0, (uint32_t)p->told_id);
                break;
            }
}

static void on_response(int from, const uint8_t *p) {
    Peer *who = &peer[from];
    uint32_t ev = (uint32_t)of(p + 16, 4);
    int plane = (int)(ev >> 24);
    if ((p[13] >> 2 & 3) == 0) { if ((int)of(p + 10, 2) == who->told_id) who->told = 1; return; }
    if (plane < planes && rising_at[plane] != NEVER && !(up >> plane & 1)) { /* the port works again */
        rising_at[plane] = NEVER;
        up |= 1u << plane;
        for (int i = 0; i < PEERS; i++) if (peer[i].known) tell_ports(i);
    }
    for (int i = 0; i < who->paths; i++) {
        Path *path = &who->path[i];
        if (path->plane != plane || path->uplink != (int)(ev >> 16 & 0xFF)) continue;
        if (path->bad && ++path->good_answers >= 3) path->bad = 0;
    }
}

static void take_in(const char *row) {
    static uint8_t p[MAX_PACKET];
    int from = (int)strtol(row = first(row), NULL, 10);
    uint32_t ev = (uint32_t)strtoul(row = following(row), NULL, 10);
    int class_ = (int)strtol(row = following(row), NULL, 10), dscp = class_ >> 2, marked = (class_ & 3) == 3;
    size_t size = unhex(following(following(row)), p, sizeof p);
    if (from < 0 || from >= PEERS || !peer[from].known || size < 20 || p[1] & 15) return;
    if (p[0] == REQUEST && size == 32) { on_request(from, p, ev, marked); return; }
    if (p[0] == RESPONSE && size == 52) { on_response(from, p); return; }
    Qp *q = NULL;
    for (int i = 0; i < QPS; i++)
        if (qp[i].used && qp[i].qpn == (uint32_t)of(p + 5, 3) && qp[i].peer == from) q = &qp[i];
    if (!q || !q->connected || q->failed) return;
    q->heard_ev = ev; q->heard_plane = (int)(ev >> 24); q->heard_uplink = (int)(ev >> 16 & 0xFF);
    if (p[0] >= FIRST && p[0] <= ONLY_IMM && (dscp == dscp_trimmed || dscp == dscp_last_hop)) {
        uint64_t seq = seq_near((uint32_t)of(p + 8, 4) & PSN, q->remote_psn, q->expected);
        if (seq >= q->expected && seq - q->expected < RANGE && !q->came[seq % RANGE])
            send_nack(q, (uint32_t)of(p + 8, 4), dscp == dscp_last_hop ? 2 : 1);
    } else if (p[0] >= FIRST && p[0] <= ONLY_IMM && size >= 36) on_data(q, p, size, marked);
    else if (p[0] == ACK && size == 20 && p[12] == 0x1F) {
        uint64_t end = seq_near((uint32_t)of(p + 8, 4) & PSN, q->psn, q->una) + 1;
        if (end <= q->next) { if (end > q->una) acknowledge(q, end); complete(q, end); }
    } else if (p[0] == SACK && size == 52) on_sack(q, p);
    else if (p[0] == NACK && size == 36) on_nack(q, p);
    else if (p[0] == PROBE && size == 32) { send_sack(q, q->heard_seq, 0, 0); send_ack(q); }
}

/* --- time --- */

static void run_timers(void) {
    for (int i = 0; i < QPS; i++) {
        Qp *q = &qp[i];
        if (q->used && q->sack_at <= now) send_sack(q, q->heard_seq, 0, 0);
        if (!q->used || q->failed || q->timer > now) continue;
        if (++q->tries > linear_tries + exponential_tries) { fail_qp(q); continue; }
        if (q->tries > linear_tries) q->wait_factor *= 2;
        for (uint64_t s = q->una; s < q->next; s++) if (q->flight[s % RANGE].state == 1) lose(q, s, q->tries > 1);
        congested(q);
        q->timer = now + timeout_of(q);
    }
    for (int to = 0; to < PEERS; to++) {
        Peer *p = &peer[to];
        for (int i = 0; i < p->paths; i++) {
            Path *path = &p->path[i];
            if (!path->bad || path->probe_at > now || !usable_plane(p, path->plane)) continue;
            send_request(to, path, 1, ++request_id);
            path->probe_at = now + 4 * rtt;
        }
        if (p->known && !p->told && p->told_at <= now) tell_ports(to);
        for (int plane = 0; plane < planes; plane++)
            for (int i = 0; i < p->paths && rising_at[plane] <= now; i++)
                if (p->path[i].plane == plane) { send_request(to, &p->path[i], 1, ++request_id); break; }
    }
    for (int plane = 0; plane < planes; plane++) if (rising_at[plane] <= now) rising_at[plane] = now + rtt;
}

static ns next_time(void) {
    ns next = NEVER;
#define SOONER(t) do { if ((t) < next) next = (t); } while (0)
    for (int i = 0; i < QPS; i++) {
        Qp *q = &qp[i];
        if (!q->used || q->failed) continue;
        SOONER(q->timer); SOONER(q->sack_at);
        if ((q->waiting || q->lost) && q->under_way < (int)q->window) SOONER(now + rtt / 10);
    }
    for (int i = 0; i < PEERS; i++) {
        if (peer[i].known && !peer[i].told) SOONER(peer[i].told_at);
        for (int k = 0; k < peer[i].paths; k++) if (peer[i].path[k].bad) SOONER(peer[i].path[k].probe_at);
    }
    for (int plane = 0; plane < planes; plane++) SOONER(rising_at[plane]);
    return next;
}

/* --- requests --- */

static void configure(const char *r) {
    planes = (int)number(r, "planes", 1); own_port = (uint32_t)number(r, "udp_port", 0);
    rtt = number(r, "rtt_ns", 0); rate_bps = number(r, "port_rate_bps", 1); draw = (uint64_t)number(r, "seed", 1) | 1;
    payload_bytes = number(r, "payload_bytes", 4096); mpr = number(r, "mpr", 8); max_wimm = number(r, "max_wimm", 32);
    linear_tries = (int)number(r, "linear_tries", 7); exponential_tries = (int)number(r, "exponential_tries", 5);
    dscp_data = (int)number(r, "dscp_data", 4); dscp_again = (int)number(r, "dscp_retransmission", 8);
    dscp_control = (int)number(r, "dscp_control", 46); dscp_trimmed = (int)number(r, "dscp_trimmed", 12);
    dscp_last_hop = (int)number(r, "dscp_trimmed_last_hop", 16);
    if (mpr > RANGE / 128) mpr = RANGE / 128;
    for (int i = 0; i < PLANES; i++) rising_at[i] = NEVER;
    for (const char *row = first(get(r, "peers")); row; row = following(row)) {
        int64_t who = number(row, "peer", -1);
        if (who < 0 || who >= PEERS) continue;
        Peer *p = &peer[who];
        *p = (Peer){.known = 1, .ports = ~0u, .told = 1};
        for (const char *path = first(get(row, "paths")); path && p->paths < PATHS; path = following(path)) {
            const char *plane = first(path);
            p->path[p->paths++] = (Path){.plane = atoi(plane), .uplink = atoi(following(plane))};
        }
    }
}

static Qp *find(const char *r) {
    for (int i = 0; i < QPS; i++) if (qp[i].used && qp[i].qpn == number(r, "qpn", -1)) return &qp[i];
    return NULL;
}

static uint32_t random_(void) {
    draw ^= draw << 13; draw ^= draw >> 7; draw ^= draw << 17;
    return (uint32_t)(draw >> 16);
}

static void open_qp(const char *r, int64_t id) {
    int i = 0;
    while (i < QPS && qp[i].used) i++;
    if (i == QPS) { printf("{\"id\":%lld,\"ok\":false,\"error\":\"no QP is left\"}\n", (long long)id); return; }
    Qp *q = &qp[i];
    *q = (Qp){.used = 1, .peer = (int)number(r, "peer", 0), .qpn = (uint32_t)i + 16, .psn = random_() & PSN,
              .rkey = random_(), .base = (uint64_t)(i + 16) << 32,
              .region_bytes = (uint64_t)number(r, "region_bytes", 0),
              .window = planes * 3, .timer = NEVER, .sack_at = NEVER, .wait_factor = 1, .cut_at = -rtt};
    q->tail = &q->waiting;
    printf("{\"id\":%lld,\"ok\":true,\"qp\":{\"ver\":1,\"qpn\":%u,\"psn\":%u,\"mtu\":%lld,\"mpr\":%lld,"
           "\"max_wimm\":%lld,\"planes\":%d,\"port_mask\":%u,"
           "\"regions\":[{\"addr\":%llu,\"len\":%llu,\"rkey\":%u}]}}\n",
           (long long)id, q->qpn, q->psn, (long long)payload_bytes, (long long)mpr, (long long)max_wimm, planes,
           ports_up(), (unsigned long long)q->base, (unsigned long long)q->region_bytes, q->rkey);
}

static void connect_qp(Qp *q, const char *remote) {
    const char *region = first(get(remote, "regions"));
    q->remote_qpn = (uint32_t)number(remote, "qpn", 0); q->remote_psn = (uint32_t)number(remote, "psn", 0);
    q->max_wimm = (uint32_t)number(remote, "max_wimm", 1); q->mtu = (uint32_t)number(remote, "mtu", 1024);
    if (q->mtu > payload_bytes) q->mtu = (uint32_t)payload_bytes;
    if (region) q->remote_rkey = (uint32_t)number(region, "rkey", 0);
    q->connected = 1;
}

static void post(Qp *q, const char *r) {
    Write *w = calloc(1, sizeof *w);
    const char *data = get(r, "data");
    size_t most = strlen(data) / 2;
    w->data = malloc(most + 1);
    w->length = unhex(data, w->data, most);
    w->address = address_in(r, "address"); w->wr_id = number(r, "wr_id", 0); w->begin = UINT64_MAX;
    w->has_immediate = get(r, "immediate") != NULL; w->immediate = (uint32_t)number(r, "immediate", 0);
    *q->tail = w;
    q->tail = &w->next;
}

static void port(int plane, int is_up) {
    if (is_up) { rising_at[plane] = now; return; }
    up &= ~(1u << plane);
    rising_at[plane] = NEVER;
    for (int i = 0; i < QPS; i++)
        for (uint64_t s = qp[i].una; qp[i].used && s < qp[i].next; s++) {
            Flight *f = &qp[i].flight[s % RANGE];
            if (f->state == 1 && peer[qp[i].peer].path[f->path].plane == plane) lose(&qp[i], s, 0);
        }
    for (int i = 0; i < PEERS; i++) if (peer[i].known) tell_ports(i);
}

static void deny(const char *r, int denied) {
    Peer *p = &peer[number(r, "peer", 0) & (PEERS - 1)];
    for (const char *row = first(get(r, "paths")); row; row = following(row))
        for (int i = 0; i < p->paths; i++) {
            const char *plane = first(row);
            Path *path = &p->path[i];
            if (path->plane == atoi(plane) && path->uplink == atoi(following(plane))) path->denied = denied;
        }
}

static void turn(const char *r, int64_t id) {
    int64_t most = number(r, "most", 1), count = 0;
    clear(&sent); clear(&placed);
    for (const char *row = first(get(r, "datagrams")); row; row = following(row)) take_in(row);
    run_timers();
    for (; count < most && control_count && !quiet; control_count--, count++) {
        Control *c = &control[control_head++ % CONTROL];
        if (up >> c->plane & 1 || rising_at[c->plane] != NEVER)
            emit(c->peer, c->plane, c->uplink, c->class_, c->packet, (size_t)c->size);
    }
    for (int more = 1; more && !quiet;) {
        more = 0;
        for (int i = 0; i < QPS && count < most; i++) if (qp[i].used && send_next(&qp[i])) more = 1, count++;
    }
    ns next = next_time();
    printf("{\"id\":%lld,\"ok\":true,\"transmit\":[%s],\"place\":[%s],\"events\":[%s],\"more\":%s,\"timeout_ns\":",
           (long long)id, sent.text, placed.text, events.text, count == most && !quiet ? "true" : "false");
    if (next == NEVER) printf("null}\n"); else printf("%lld}\n", (long long)next);
    clear(&events);
}

static int is(const char *command, const char *word) {
    return !strncmp(command, word, strlen(word)) && command[strlen(word)] == '"';
}

static void answer(const char *r) {
    int64_t id = number(r, "id", 0);
    const char *command = get(r, "cmd"), *c = command && *command == '"' ? command + 1 : "\"";
    Qp *q = find(r);
    now = number(r, "now_ns", now);
    if (is(c, "turn")) { turn(r, id); return; }
    if (is(c, "open_qp")) { open_qp(r, id); return; }
    if (is(c, "stats")) {
        printf("{\"id\":%lld,\"ok\":true,\"counters\":{\"data_sent\":%d}}\n", (long long)id, packets_sent);
        return;
    }
    int known = 1;
    if (is(c, "configure")) configure(r);
    else if (is(c, "connect_qp") && q) connect_qp(q, get(r, "remote"));
    else if (is(c, "write") && q && get(r, "data")) post(q, r);
    else if (is(c, "deny") || is(c, "allow")) deny(r, *c == 'd');
    else if (is(c, "port")) port((int)number(r, "plane", 0) & (PLANES - 1), is_true(r, "up"));
    else if (is(c, "quiet")) quiet = 1;
    else if (is(c, "stop")) stopped = 1;
    else if (is(c, "probe_paths")) {
        int to = (int)number(r, "peer", 0) & (PEERS - 1);
        for (int i = 0; i < peer[to].paths; i++)
            if (!peer[to].path[i].denied) send_request(to, &peer[to].path[i], 1, ++request_id);
    } else known = is(c, "step") || is(c, "base_rtt");
    if (known) printf("{\"id\":%lld,\"ok\":true}\n", (long long)id);
    else printf("{\"id\":%lld,\"ok\":false,\"unsupported\":true,\"error\":\"unknown command\"}\n", (long long)id);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    clear(&sent); clear(&placed); clear(&events);
    printf("{\"contract\":1,\"name\":\"endpoint.c\"}\n");
    fflush(stdout);
    while (!stopped && getline(&line, &room, stdin) > 0) { answer(line); fflush(stdout); }
    free(line);
    return 0;
}
