// The packets of a turn in one call of the kernel each way: recvmmsg and sendmmsg, which Python's `socket` lacks; and
// the sleep between turns, without the objects that `select` and `ctypes` make for it.
//
// Called by hosts/batched.py, which keeps the books, hosts/turns.py and hosts/udp.py. The sockets do not block, and one
// thread of a daemon uses them. Numbers of options are those of linux/in6.h and asm-generic/socket.h.

#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { MOST = 32, FLOWINFO = 11, TIMESTAMPNS = 64, ADDRESS_BYTES = 16, LABEL = 0xfffff };
enum { SECOND_NS = 1000000000, MOST_READY = 8 };

static struct mmsghdr messages[MOST];
static struct iovec parts[MOST];
static struct sockaddr_in6 names[MOST];
static union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(2 * sizeof(int64_t))];
} control[MOST];

// Message `i`, of `size` bytes at `start`, with room for `control_bytes` of ancillary data.
static struct msghdr *prepare(Py_ssize_t i, void *start, size_t size, size_t control_bytes) {
    struct msghdr *header = &messages[i].msg_hdr;
    parts[i] = (struct iovec){start, size};
    *header = (struct msghdr){&names[i], sizeof names[i], &parts[i], 1, control[i].bytes, control_bytes, 0};
    return header;
}

// What the kernel says beside a packet: flow information, 0 if it says none, and its time stamp in ns, likewise.
static void read_control(struct msghdr *header, uint32_t *word, long long *stamp_ns) {
    for (struct cmsghdr *each = CMSG_FIRSTHDR(header); each; each = CMSG_NXTHDR(header, each)) {
        if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == FLOWINFO) {
            memcpy(word, CMSG_DATA(each), sizeof *word);
            *word = ntohl(*word);
        } else if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == TIMESTAMPNS) {
            int64_t seconds_ns[2];
            memcpy(seconds_ns, CMSG_DATA(each), sizeof seconds_ns);
            *stamp_ns = seconds_ns[0] * SECOND_NS + seconds_ns[1];
        }
    }
}

// Packet `i` as a tuple: payload, host of the sender (or its address, if `peers` has none), flow label, source port,
// traffic class, time stamp.
static PyObject *datagram(Py_ssize_t i, PyObject *buffer, PyObject *peers, Py_ssize_t key_bytes) {
    uint32_t word = 0;
    long long stamp_ns = 0;
    char key[ADDRESS_BYTES + sizeof names[i].sin6_port];
    read_control(&messages[i].msg_hdr, &word, &stamp_ns);
    memcpy(key, &names[i].sin6_addr, ADDRESS_BYTES);
    memcpy(key + ADDRESS_BYTES, &names[i].sin6_port, sizeof names[i].sin6_port);
    PyObject *source = PyBytes_FromStringAndSize(key, key_bytes);
    PyObject *host = source ? PyDict_GetItemWithError(peers, source) : NULL;
    if (source && !host && !PyErr_Occurred())
        host = PyBytes_FromStringAndSize(key, ADDRESS_BYTES);
    else
        Py_XINCREF(host);
    Py_XDECREF(source);
    PyObject *end = host ? PyLong_FromLong(messages[i].msg_len) : NULL;
    PyObject *range = end ? PySlice_New(NULL, end, NULL) : NULL;
    PyObject *payload = range ? PyObject_GetItem(buffer, range) : NULL;
    Py_XDECREF(end);
    Py_XDECREF(range);
    if (!payload) {
        Py_XDECREF(host);
        return NULL;
    }
    return Py_BuildValue("(NNIiIL)", payload, host, (unsigned)(word & LABEL), (int)ntohs(names[i].sin6_port),
                         (unsigned)(word >> 20 & 0xff), stamp_ns);
}

// receive(descriptor, buffers, peers, key_bytes): what is there, as far as there are buffers; [] if nothing is.
static PyObject *receive(PyObject *self, PyObject *arguments) {
    int descriptor;
    Py_ssize_t key_bytes, ready = 0;
    PyObject *buffers, *peers;
    Py_buffer views[MOST];
    if (!PyArg_ParseTuple(arguments, "iO!O!n", &descriptor, &PyList_Type, &buffers, &PyDict_Type, &peers, &key_bytes))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(buffers);
    if (count > MOST || key_bytes < ADDRESS_BYTES || key_bytes > ADDRESS_BYTES + 2)
        return PyErr_Format(PyExc_ValueError, "at most %d buffers, and keys of 16 or 18 bytes", MOST);
    while (ready < count && !PyObject_GetBuffer(PyList_GET_ITEM(buffers, ready), &views[ready], PyBUF_WRITABLE)) {
        prepare(ready, views[ready].buf, views[ready].len, sizeof control[ready].bytes);
        ready++;
    }
    int received = ready == count ? recvmmsg(descriptor, messages, count, MSG_DONTWAIT, NULL) : 0;
    int reason = errno;
    while (ready)
        PyBuffer_Release(&views[--ready]);
    if (PyErr_Occurred())
        return NULL;
    errno = reason;
    if (received < 0 && reason != EAGAIN)
        return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *found = PyList_New(received < 0 ? 0 : received);
    for (Py_ssize_t i = 0; found && i < received; i++) {
        PyObject *one = datagram(i, PyList_GET_ITEM(buffers, i), peers, key_bytes);
        if (!one) {
            Py_CLEAR(found);
            break;
        }
        PyList_SET_ITEM(found, i, one);
    }
    return found;
}

// Message `i` from (size, (address, port, flow label, scope), traffic class), where that address may be the second of a
// pair (source port, address). Returns 0 with an exception set if it is none.
static int address(Py_ssize_t i, PyObject *packet, char *start, Py_ssize_t room, int usual_class) {
    Py_ssize_t size;
    PyObject *where;
    const char *text;
    int port, class;
    unsigned label, scope;
    if (!PyArg_ParseTuple(packet, "nO!i", &size, &PyTuple_Type, &where, &class))
        return 0;
    if (PyTuple_GET_SIZE(where) == 2)
        where = PyTuple_GET_ITEM(where, 1);
    if (!PyArg_ParseTuple(where, "siII", &text, &port, &label, &scope))
        return 0;
    names[i] = (struct sockaddr_in6){AF_INET6, htons(port), htonl(label), IN6ADDR_ANY_INIT, scope};
    if (size < 0 || size > room || inet_pton(AF_INET6, text, &names[i].sin6_addr) != 1) {
        PyErr_Format(PyExc_ValueError, "no packet of %zd bytes to %s", size, text);
        return 0;
    }
    struct msghdr *header = prepare(i, start, size, class == usual_class ? 0 : CMSG_SPACE(sizeof class));
    if (class != usual_class) {
        struct cmsghdr *said = CMSG_FIRSTHDR(header);
        *said = (struct cmsghdr){CMSG_LEN(sizeof class), IPPROTO_IPV6, IPV6_TCLASS};
        memcpy(CMSG_DATA(said), &class, sizeof class);
    }
    return 1;
}

// send(descriptor, room, stride, packets, start, end, usual_class): packet k lies at k x stride in `room`. Returns how
// many went out from `start` on; if that one does not, its error number, negative.
static PyObject *send_packets(PyObject *self, PyObject *arguments) {
    int descriptor, usual_class, sent = -1;
    Py_ssize_t stride, start, end;
    PyObject *packets;
    Py_buffer room;
    if (!PyArg_ParseTuple(arguments, "iy*nO!nni", &descriptor, &room, &stride, &PyList_Type, &packets, &start, &end,
                          &usual_class))
        return NULL;
    if (start < 0 || end <= start || end - start > MOST || end > PyList_GET_SIZE(packets) || end * stride > room.len)
        PyErr_Format(PyExc_ValueError, "at most %d packets, each with its room", MOST);
    for (Py_ssize_t i = start; i < end && !PyErr_Occurred(); i++)
        address(i - start, PyList_GET_ITEM(packets, i), (char *)room.buf + i * stride, stride, usual_class);
    if (!PyErr_Occurred())
        sent = sendmmsg(descriptor, messages, end - start, 0);
    int reason = errno;
    PyBuffer_Release(&room);
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(sent < 0 ? -reason : sent);
}

// wait(descriptor of an epoll, most milliseconds): the descriptors that are ready, none after that time; -1: wait for
// one. A signal, or having been stopped, ends no wait: a turn for nothing would arm the timer before it tells how late
// it was.
static PyObject *wait_for(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    struct epoll_event events[MOST_READY];
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "wait takes 2 arguments");
    int descriptor = PyLong_AsLong(arguments[0]), most_ms = PyLong_AsLong(arguments[1]);
    if (PyErr_Occurred())
        return NULL;
    int ready;
    do {
        Py_BEGIN_ALLOW_THREADS // those of plugins
        ready = epoll_wait(descriptor, events, MOST_READY, most_ms);
        Py_END_ALLOW_THREADS
        if (ready < 0 && errno != EINTR)
            return PyErr_SetFromErrno(PyExc_OSError);
        if (PyErr_CheckSignals())
            return NULL;
    } while (ready < 0);
    PyObject *found = PyTuple_New(ready);
    for (int i = 0; found && i < ready; i++)
        PyTuple_SET_ITEM(found, i, PyLong_FromLong(events[i].data.fd));
    return found;
}

// arm(descriptor of a timer, ns): it fires at this time of its clock.
static PyObject *arm(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "arm takes 2 arguments");
    int descriptor = PyLong_AsLong(arguments[0]);
    long long at_ns = PyLong_AsLongLong(arguments[1]);
    if (PyErr_Occurred())
        return NULL;
    struct itimerspec when = {.it_value = {at_ns / SECOND_NS, at_ns % SECOND_NS}};
    if (timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, NULL))
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"receive", receive, METH_VARARGS, NULL},
    {"send", send_packets, METH_VARARGS, NULL},
    {"wait", (PyCFunction)(void (*)(void))wait_for, METH_FASTCALL, NULL},
    {"arm", (PyCFunction)(void (*)(void))arm, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "batches", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_batches(void) { return PyModule_Create(&module); }
