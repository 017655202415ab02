/* Calls a plugin of NCCL's network interface as NCCL does, with memory of the host, and compares every byte.
 *
 *     nccl_driver PLUGIN [--groups N] [--group N] [--outstanding N] [--port N]                receives
 *     nccl_driver PLUGIN [--groups N] [--group N] [--outstanding N] [--port N] --to HOST      sends
 *
 * Messages of 0 B to 1 MiB go in groups: one of three is received by one call for `group` messages, as far as the
 * plugin takes them together. As many groups as `outstanding` are under way. */
#include <dlfcn.h>
#include <getopt.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nccl_net.h"

enum { NEWEST = 9, OLDEST = 6, MOST = 1 << 20, GUARD = 100, POISON = 0xa5, TRIES = 300 };
enum { MOST_OUTSTANDING = 16, SHOWN = 50 };

static const size_t SIZES[] = {0, 1, 7, 128, 4095, 4097, 65536, 200000, MOST};

struct place {
    unsigned char *data; /* MOST bytes and GUARD more, at an address that is no multiple of a page */
    void *mr;
};

struct group {
    struct place places[NCCL_MOST_RECEIVES];
    void *requests[NCCL_MOST_RECEIVES]; /* of the receiver only the first */
    long first;                         /* the number of its first message */
    int count, asked;
};

static struct nccl_net *net;
static int version, group_size = 4, outstanding = 4;
static const char *port = "18186"; /* where both meet */
static long groups = 120;
static struct group ring[MOST_OUTSTANDING];
static double bytes;

static void need(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "nccl_driver: %s\n", what);
        exit(1);
    }
}

static void ok(int result, const char *call) {
    if (result != NCCL_SUCCESS) {
        fprintf(stderr, "nccl_driver: %s failed with result %d\n", call, result);
        exit(1);
    }
}

static void log_line(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
    va_list given;
    (void)flags;
    if (level > NCCL_LOG_WARN && !getenv("NCCL_DEBUG")) {
        return;
    }
    fprintf(stderr, "%s:%d ", file, line);
    va_start(given, format);
    vfprintf(stderr, format, given);
    va_end(given);
    fputc('\n', stderr);
}

static void load(const char *path) {
    char symbol[32];
    void *library = dlopen(path, RTLD_NOW);
    need(library != NULL, dlerror());
    for (version = NEWEST; version >= OLDEST && !net; version -= !net) {
        snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
        net = dlsym(library, symbol);
    }
    need(net != NULL, "the plugin has none of the versions 6 to 9 of NCCL's network interface");
}

/* What differs between the versions. */

static int do_connect(void *handle, void **comm) {
    void *offload = NULL;
    return version >= 7 ? net->connect(0, handle, comm, &offload)
                        : ((int (*)(int, void *, void **))(void *)net->connect)(0, handle, comm);
}

static int do_accept(void *listener, void **comm) {
    void *offload = NULL;
    return version >= 7 ? net->accept(listener, comm, &offload)
                        : ((int (*)(void *, void **))(void *)net->accept)(listener, comm);
}

static int do_reg_mr(void *comm, struct place *place) {
    const int host = NCCL_POINTER_HOST;
    if (version >= 8) {
        return net->reg_mr(comm, place->data, MOST, host, &place->mr);
    }
    return ((int (*)(void *, void *, int, int, void **))(void *)net->reg_mr)(comm, place->data, MOST, host, &place->mr);
}

static int do_isend(void *comm, struct place *place, size_t size, int tag, void **request) {
    if (version >= 9) {
        return net->isend(comm, place->data, size, tag, place->mr, request);
    }
    return ((int (*)(void *, void *, int, int, void *, void **))(void *)net->isend)(comm, place->data, (int)size, tag,
                                                                                    place->mr, request);
}

static int do_irecv(void *comm, struct group *group, int *tags) {
    void *data[NCCL_MOST_RECEIVES], *mrs[NCCL_MOST_RECEIVES];
    size_t sizes[NCCL_MOST_RECEIVES];
    int small[NCCL_MOST_RECEIVES];
    for (int i = 0; i < group->count; i++) {
        data[i] = group->places[i].data;
        mrs[i] = group->places[i].mr;
        sizes[i] = small[i] = MOST;
    }
    if (version >= 9) {
        return net->irecv(comm, group->count, data, sizes, tags, mrs, group->requests);
    }
    return ((int (*)(void *, int, void **, int *, int *, void **, void **))(void *)net->irecv)(
        comm, group->count, data, small, tags, mrs, group->requests);
}

static int most_receives(const struct nccl_properties *properties) {
    return (&properties->most_receives)[(version >= 8) + (version >= 9) - 2];
}

static void open_device(void) {
    struct nccl_properties found = {0};
    int count = 0, most;
    ok(net->init(log_line), "init");
    ok(net->devices(&count), "devices");
    need(count > 0, "the plugin found no device");
    ok(net->get_properties(0, &found), "getProperties");
    need(found.pointers & NCCL_POINTER_HOST, "the plugin takes no memory of the host");
    most = most_receives(&found);
    need(most >= 1, "the plugin receives nothing");
    group_size = group_size < most ? group_size : most;
    group_size = group_size < NCCL_MOST_RECEIVES ? group_size : NCCL_MOST_RECEIVES;
    printf("plugin %s, version %d, device %s, up to %d receives together\n", net->name, version, found.name, most);
}

static int meet(const char *host) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
    struct addrinfo *at;
    int yes = 1;
    need(!getaddrinfo(host, port, &hints, &at), "no such host");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!host) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        need(!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, 1), "the port is taken");
        return accept(fd, NULL, NULL);
    }
    for (int tries = 0; connect(fd, at->ai_addr, at->ai_addrlen); tries++) {
        need(tries < TRIES, "the receiver does not listen");
        usleep(100000);
    }
    return fd;
}

static void *connect_to(const char *host) {
    static char handle[NCCL_HANDLE_BYTES]; /* the plugin keeps its state there between calls */
    void *comm = NULL, *listener = NULL;
    if (!host) {
        ok(net->listen(0, handle, &listener), "listen");
    }
    int fd = meet(host);
    if (host) {
        need(recv(fd, handle, sizeof handle, MSG_WAITALL) == sizeof handle, "the receiver has ended");
        while (!comm) {
            ok(do_connect(handle, &comm), "connect");
        }
        return comm;
    }
    need(send(fd, handle, sizeof handle, MSG_NOSIGNAL) == sizeof handle, "the sender has ended");
    while (!comm) {
        ok(do_accept(listener, &comm), "accept");
    }
    ok(net->close_listen(listener), "closeListen");
    return comm;
}

static void make_places(void *comm) {
    for (int i = 0; i < outstanding * group_size; i++) {
        struct place *place = &ring[i / group_size].places[i % group_size];
        unsigned char *memory = malloc(MOST + 2 * GUARD);
        need(memory != NULL, "no memory");
        place->data = memory + GUARD;
        ok(do_reg_mr(comm, place), "regMr");
    }
}

static size_t size_of(long number) { return SIZES[number % (long)(sizeof SIZES / sizeof *SIZES)]; }

static unsigned char byte_of(long number, size_t at) { return (unsigned char)((at * 2654435761u >> 11) + number * 37); }

static void check(const unsigned char *data, long number, int size) {
    need(size == (int)size_of(number), "a message has another size than was sent");
    for (size_t at = 0; at < MOST + GUARD; at++) {
        unsigned char right = at < (size_t)size ? byte_of(number, at) : POISON;
        if (data[at] != right) {
            fprintf(stderr, "nccl_driver: Data mismatch in message %ld of %d bytes at %zu\n", number, size, at);
            exit(1);
        }
    }
    bytes += size;
}

static void begin(struct group *group, long number, long first, int sends) {
    group->first = first;
    group->count = number % 3 == 2 ? group_size : 1;
    group->asked = 0;
    memset(group->requests, 0, sizeof group->requests);
    for (int i = 0; i < group->count; i++) {
        memset(group->places[i].data, POISON, MOST + GUARD);
        for (size_t at = 0; sends && at < size_of(first + i); at++) {
            group->places[i].data[at] = byte_of(first + i, at);
        }
    }
}

/* Both return 1 once the plugin has taken the whole group, else they are to be called again. */

static int send_group(void *comm, struct group *group) {
    for (; group->asked < group->count; group->asked++) {
        size_t size = size_of(group->first + group->asked);
        void **request = &group->requests[group->asked];
        ok(do_isend(comm, &group->places[group->asked], size, group->asked, request), "isend");
        if (!*request) {
            return 0;
        }
        bytes += (double)size;
    }
    return 1;
}

static int receive_group(void *comm, struct group *group) {
    int tags[NCCL_MOST_RECEIVES];
    for (int i = 0; i < group->count; i++) {
        tags[i] = i;
    }
    ok(do_irecv(comm, group, tags), "irecv");
    return group->requests[0] != NULL;
}

static int sent(struct group *group) {
    int done = 1, size = 0;
    for (int i = 0; i < group->count && done; i++) {
        if (group->requests[i]) {
            ok(net->test(group->requests[i], &done, &size), "test");
            group->requests[i] = done ? NULL : group->requests[i];
        }
    }
    return done;
}

static int received(struct group *group) {
    int done = 0, sizes[NCCL_MOST_RECEIVES] = {0};
    ok(net->test(group->requests[0], &done, sizes), "test");
    for (int i = 0; done && i < group->count; i++) {
        check(group->places[i].data, group->first + i, sizes[i]);
    }
    return done;
}

static long move(void *comm, int sends) {
    long posted = 0, done = 0, next = 0;
    for (int is_open = 0; done < groups;) {
        struct group *newest = &ring[posted % outstanding];
        if (posted < groups && posted - done < outstanding) {
            if (!is_open) {
                begin(newest, posted, next, sends);
            }
            is_open = !(sends ? send_group(comm, newest) : receive_group(comm, newest));
            next += is_open ? 0 : newest->count;
            posted += !is_open;
        }
        if (done < posted && (sends ? sent : received)(&ring[done % outstanding])) {
            done++;
            if (done % SHOWN == 0) {
                printf("%ld groups of messages done\n", done);
            }
        }
    }
    return next;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static const char *options(int count, char **words) {
    static const struct option known[] = {{"to", 1, NULL, 't'},
                                          {"groups", 1, NULL, 'n'},
                                          {"group", 1, NULL, 'g'},
                                          {"outstanding", 1, NULL, 'o'},
                                          {"port", 1, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
    const char *host = NULL;
    for (int letter; (letter = getopt_long(count, words, "", known, NULL)) != -1;) {
        need(letter != '?', "it takes PLUGIN [--groups N] [--group N] [--outstanding N] [--port N] [--to HOST]");
        host = letter == 't' ? optarg : host;
        port = letter == 'p' ? optarg : port;
        groups = letter == 'n' ? atol(optarg) : groups;
        group_size = letter == 'g' ? atoi(optarg) : group_size;
        outstanding = letter == 'o' ? atoi(optarg) : outstanding;
    }
    need(optind == count - 1, "name one plugin");
    need(groups >= 1 && group_size >= 1 && outstanding >= 1 && outstanding <= MOST_OUTSTANDING, "a number is wrong");
    return host;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *host = options(count, words);
    load(words[optind]);
    open_device();
    void *comm = connect_to(host);
    make_places(comm);
    double began = now();
    long messages = move(comm, host != NULL);
    double seconds = now() - began;
    printf("%s %ld messages, %.1f MB in %.1f s: %.2f MB/s, every byte %s\n", host ? "sent" : "received", messages,
           bytes / 1e6, seconds, bytes / 1e6 / seconds, host ? "taken" : "right");
    for (int i = 0; i < outstanding * group_size; i++) {
        struct place *place = &ring[i / group_size].places[i % group_size];
        ok(net->dereg_mr(comm, place->mr), "deregMr");
    }
    ok((host ? net->close_send : net->close_recv)(comm), "close");
    return 0;
}
