// Python's arenas of 1 MiB in pages of 2 MiB. Where Python asks the kernel for each arena, none of them fills a huge
// page, so the kernel gives small ones. Here arenas are cut from chunks that lie on the borders of huge pages.
// Memory is resident only once it is touched: a chunk costs addresses. Where there is none, arenas are as usual.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <sys/mman.h>

#define ARENA ((size_t)1 << 20)
#define PAGE ((size_t)2 << 20)
#define FIRST ((size_t)4 << 20)
#define LARGEST ((size_t)64 << 20)

struct chunk {
    char *at;
    size_t size;
    uint64_t free;  // bit k: arena k is
    struct chunk *next;
};

static struct chunk *chunks, **last = &chunks;
static size_t size_of_next = FIRST;
static PyObjectArenaAllocator usual;

// Addresses on the borders of huge pages; NULL where the machine has none.
static char *reserve(size_t size) {
    char *got = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)got % PAGE;
    if (before)
        munmap(got, before);
    got += before;
    munmap(got + size, PAGE - before);
    if (!madvise(got, size, MADV_HUGEPAGE))
        return got;
    munmap(got, size);
    return NULL;
}

// A chunk after the others, the next one twice as large. Returns 0 where the machine has none.
static int grow(void) {
    struct chunk *chunk = malloc(sizeof *chunk);
    char *at = chunk ? reserve(size_of_next) : NULL;
    if (!at) {
        free(chunk);
        return 0;
    }
    *chunk = (struct chunk){at, size_of_next, UINT64_MAX >> (64 - size_of_next / ARENA), NULL};
    *last = chunk;
    last = &chunk->next;
    if (size_of_next < LARGEST)
        size_of_next *= 2;
    return 1;
}

// The first free arena: early chunks fill up again, late ones empty.
static void *take(void *context, size_t size) {
    if (size == ARENA)
        do
            for (struct chunk *chunk = chunks; chunk; chunk = chunk->next)
                if (chunk->free) {
                    int number = __builtin_ctzll(chunk->free);
                    chunk->free &= chunk->free - 1;
                    return chunk->at + number * ARENA;
                }
        while (grow());
    return usual.alloc(usual.ctx, size);
}

// The kernel has a huge page back when both of its arenas are free.
static void give_back(void *context, void *arena, size_t size) {
    for (struct chunk *chunk = chunks; chunk; chunk = chunk->next) {
        size_t offset = (uintptr_t)arena - (uintptr_t)chunk->at;
        if (offset >= chunk->size)
            continue;
        chunk->free |= (uint64_t)1 << offset / ARENA;
        offset -= offset % PAGE;
        if ((chunk->free >> offset / ARENA & 3) == 3)
            madvise(chunk->at + offset, PAGE, MADV_DONTNEED);
        return;
    }
    usual.free(usual.ctx, arena, size);
}

// use(): from now on arenas are taken here. A second call does nothing.
static PyObject *use(PyObject *self, PyObject *none) {
    if (!usual.alloc) {
        PyObject_GetArenaAllocator(&usual);
        PyObject_SetArenaAllocator(&(PyObjectArenaAllocator){NULL, take, give_back});
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"use", use, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "huge_pages", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_huge_pages(void) { return PyModule_Create(&module); }
