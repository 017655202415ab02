// The network of testbed/virtual/port.py and scheduler.py in C: ports in a row, their queues, marks, trims and counts,
// and the heap of what is due. For benchmarks/native.py alone, which holds its results against those in Python.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { ROWS = 32, BYTES_AT = 16, DATA = 0, TRIMMED = 4, PASSED = 0, CHANGED = 1, CUT = 2, DROPPED = 3, MOST_HOPS = 8 };

typedef struct {
    int64_t begin_ns, admitted, sent_bytes, free_at_ns;
    int32_t sending, first[2], last[2]; // queues: of data, and of what goes before it
    int64_t out[ROWS], into[ROWS];
} Port;

typedef struct {
    int32_t way[MOST_HOPS], after;
    int16_t hop, hops;
    int32_t size_bytes, row;
    uint8_t high, marked;
} Packet;

typedef struct {
    int64_t t_ns, order;
    int32_t port, packet;
} Due;

static Port *ports;
static Packet *packets;
static Due *heap;
static int64_t now_ns, order, ns_bits, per, mark_ns, trim_ns, drop_ns;
static int32_t packet_count, heap_count, bare_bytes;
static PyObject *arrived;

static int before(const Due *one, const Due *other) {
    return one->t_ns < other->t_ns || (one->t_ns == other->t_ns && one->order < other->order);
}

static void wake(int64_t t_ns, int32_t port, int32_t packet) {
    Due due = {t_ns, order++, port, packet};
    int32_t at = heap_count++;
    for (; at && before(&due, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = due;
}

static Due take_due(void) {
    Due first = heap[0], last = heap[--heap_count];
    int32_t at = 0, child;
    while ((child = 2 * at + 1) < heap_count) {
        if (child + 1 < heap_count && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

static int64_t after_bytes(const Port *port, int64_t bytes) {
    return port->begin_ns + (bytes * ns_bits + per - 1) / per;
}

static int judge(Packet *packet, int64_t waits_ns) {
    if (waits_ns > drop_ns) return DROPPED;
    if (waits_ns > trim_ns && packet->size_bytes > bare_bytes) {
        packet->size_bytes = bare_bytes;
        packet->row = TRIMMED;
        packet->high = 1;
        return CUT;
    }
    if (waits_ns > mark_ns) {
        packet->marked = 1;
        return CHANGED;
    }
    return PASSED;
}

static void offer(int32_t number, int32_t index) {
    Port *port = &ports[number];
    Packet *packet = &packets[index];
    int64_t waits_ns = port->free_at_ns - now_ns;
    int32_t row = packet->row, size_bytes = packet->size_bytes;
    if (waits_ns <= 0) {
        waits_ns = 0;
        port->begin_ns = now_ns;
        port->admitted = port->sent_bytes = 0;
    }
    int verdict = packet->high ? PASSED : judge(packet, waits_ns);
    port->out[row + verdict]++;
    port->out[BYTES_AT + row + verdict] += size_bytes;
    if (verdict == DROPPED) return;
    if (port->sending >= 0) {
        int queue = packet->high;
        packet->after = -1;
        if (port->first[queue] < 0) port->first[queue] = index;
        else packets[port->last[queue]].after = index;
        port->last[queue] = index;
    }
    port->admitted += packet->size_bytes;
    port->free_at_ns = after_bytes(port, port->admitted);
    if (port->sending < 0) {
        port->sending = index;
        port->sent_bytes = port->admitted;
        wake(port->free_at_ns, number, index);
    }
}

static int act(int32_t number, int32_t index) {
    Port *port = &ports[number];
    Packet *packet = &packets[index];
    int queue = port->first[1] >= 0;
    int32_t following = port->first[queue];
    port->sending = following;
    if (following >= 0) {
        port->first[queue] = packets[following].after;
        port->sent_bytes += packets[following].size_bytes;
        wake(after_bytes(port, port->sent_bytes), number, following);
    }
    port->into[packet->row]++;
    port->into[BYTES_AT + packet->row] += packet->size_bytes;
    if (++packet->hop < packet->hops) {
        offer(packet->way[packet->hop], index);
        return 0;
    }
    PyObject *row = Py_BuildValue("(Lii)", (long long)now_ns, index, packet->row * 2 + packet->marked);
    if (!row) return -1;
    int failed = PyList_Append(arrived, row);
    Py_DECREF(row);
    return failed;
}

// begin(ports, packets, ns_bits, per, mark_ns, trim_ns, drop_ns, bare_bytes)
static PyObject *begin(PyObject *self, PyObject *args) {
    int port_count, most;
    long long a, b, c, d, e;
    if (!PyArg_ParseTuple(args, "iiLLLLLi", &port_count, &most, &a, &b, &c, &d, &e, &bare_bytes)) return NULL;
    free(ports), free(packets), free(heap);
    ns_bits = a, per = b, mark_ns = c, trim_ns = d, drop_ns = e;
    now_ns = order = packet_count = heap_count = 0;
    ports = calloc(port_count, sizeof *ports);
    packets = calloc(most, sizeof *packets);
    heap = calloc(port_count + 1, sizeof *heap);
    if (!ports || !packets || !heap) return PyErr_NoMemory();
    for (int i = 0; i < port_count; i++) ports[i].sending = ports[i].first[0] = ports[i].first[1] = -1;
    Py_XSETREF(arrived, PyList_New(0));
    return arrived ? Py_NewRef(Py_None) : NULL;
}

// send(size_bytes, way): offers the next packet now
static PyObject *send_packet(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Packet *packet = &packets[packet_count];
    packet->size_bytes = (int32_t)PyLong_AsLong(args[0]);
    packet->hops = (int16_t)PyTuple_GET_SIZE(args[1]);
    for (int i = 0; i < packet->hops; i++) packet->way[i] = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(args[1], i));
    if (PyErr_Occurred()) return NULL;
    offer(packet->way[0], packet_count++);
    Py_RETURN_NONE;
}

// run_until(t_ns): does all that is due until then; returns what has arrived: (t_ns, packet, row and mark)
static PyObject *run_until(PyObject *self, PyObject *until) {
    int64_t until_ns = PyLong_AsLongLong(until);
    while (heap_count && heap[0].t_ns <= until_ns) {
        Due due = take_due();
        now_ns = due.t_ns;
        if (act(due.port, due.packet)) return NULL;
    }
    now_ns = until_ns;
    PyObject *found = arrived;
    arrived = PyList_New(0);
    return found;
}

// counts(port): its rows, what left and what came in
static PyObject *counts(PyObject *self, PyObject *number) {
    const Port *port = &ports[PyLong_AsLong(number)];
    PyObject *rows = PyList_New(2 * ROWS);
    for (int i = 0; rows && i < 2 * ROWS; i++)
        PyList_SET_ITEM(rows, i, PyLong_FromLongLong(i < ROWS ? port->out[i] : port->into[i - ROWS]));
    return rows;
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_VARARGS, NULL},
    {"send", (PyCFunction)(void (*)(void))send_packet, METH_FASTCALL, NULL},
    {"run_until", run_until, METH_O, NULL},
    {"counts", counts, METH_O, NULL},
    {NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", NULL, -1, methods};

PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
