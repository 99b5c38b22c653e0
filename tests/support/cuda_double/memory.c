// Memory of devices, and the driver's knowledge of host memory.
//
// A device's memory is a range of addresses that is accessible only while operations of the device
// run. Host code that follows such an address crashes at once. An allocation has separate pages,
// with a free page after it. It begins at a multiple of 256, mostly not at one of 512 or more, and
// is filled with 0xA5. Addresses are reused only after REUSED_AFTER bytes of others, so freed
// memory is long known as freed; access to a larger range takes longer to change. System calls are
// direct, as the sanitizers' interceptors would make shadows for the whole range.
//
// This file is compiled without sanitizers, as checks of kernels run on stacks that they do not
// know.
#include "double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGNMENT = 256, REUSED_AFTER = 64 << 20 };

static void *map(size_t bytes, int access)
{
    long at =
        syscall(SYS_mmap, NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == -1) die("cannot map %zu bytes", bytes);
    void *memory = (void *)(uintptr_t)at;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

// Zeros the memory. Whole pages are returned to the system, and are zeros when touched again.
static void clear(char *memory, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)memory, end = begin + bytes;
    uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    if (first >= last) {
        memset(memory, 0, bytes);
        return;
    }
    memset(memory, 0, first - begin);
    madvise(memory + (first - begin), last - first, MADV_DONTNEED);
    memset(memory + (last - begin), 0, end - last);
}

// --- The range -----------------------------------------------------------------------------------

void memory_begin(device *d)
{
    if (d->base == NULL) {
        size_t size = 8 * config.memory;
        if (size < (size_t)1 << 30) size = (size_t)1 << 30;
        d->size = size / PAGE * PAGE;
        d->base = map(d->size, PROT_NONE);
        d->owners = map(d->size / PAGE * sizeof *d->owners, PROT_READ | PROT_WRITE);
        if (config.checks)
            d->cells = map(d->size / 4 * shadow_cell_bytes(), PROT_READ | PROT_WRITE);
    }
    d->used = 0;
    d->cursor = 1; // page 0, before the first allocation, is the device's too
}

static void protect(device *d, size_t bytes, int access)
{
    if (syscall(SYS_mprotect, d->base, bytes, access) != 0)
        die("cannot change access to the memory of device %d", d->index);
}

// Opens only pages that were ever allocated, as opening the rest would take time.
void memory_open(device *d)
{
    if (d->open >= d->top) return;
    protect(d, d->top, PROT_READ | PROT_WRITE);
    d->open = d->top;
}

void memory_close(void)
{
    for (int i = 0; i < MOST_DEVICES; i++) {
        device *d = &devices[i];
        if (d->open > 0) protect(d, d->open, PROT_NONE);
        d->open = 0;
    }
}

device *memory_device(uint64_t address)
{
    for (int i = 0; i < MOST_DEVICES; i++) {
        device *d = &devices[i];
        if (d->base != NULL && address - (uintptr_t)d->base < d->size) return d;
    }
    return NULL;
}

// --- Allocations ---------------------------------------------------------------------------------

static allocation *owner_of(const device *d, size_t page)
{
    uint32_t owner = d->owners[page];
    return owner == 0 ? NULL : &d->allocations[owner - 1];
}

// The first page from `from` on with `pages` free pages, or SIZE_MAX.
static size_t find_free(const device *d, size_t from, size_t pages)
{
    size_t count = d->size / PAGE, run = 0;
    for (size_t page = from; page < count; page++) {
        const allocation *a = owner_of(d, page);
        run = a != NULL && a->alive ? 0 : run + 1;
        if (run == pages) return page + 1 - pages;
    }
    return SIZE_MAX;
}

static uint64_t allocate(device *d, size_t bytes)
{
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (room < bytes || d->used > config.memory || room > config.memory - d->used) return 0;
    size_t skip = d->allocation_count % (PAGE / ALIGNMENT) * ALIGNMENT;
    size_t pages = (skip + room + PAGE - 1) / PAGE + 1; // the last one stays free
    if (d->cursor * PAGE > REUSED_AFTER) d->cursor = 1;
    size_t page = find_free(d, d->cursor, pages);
    if (page == SIZE_MAX) page = find_free(d, 1, pages);
    if (page == SIZE_MAX) return 0;
    d->cursor = page + pages;
    if (d->cursor * PAGE > d->top) d->top = d->cursor * PAGE;
    d->used += room;
    if (d->allocation_count == d->allocation_capacity) {
        d->allocation_capacity = d->allocation_capacity * 2 + 64;
        d->allocations = grow(d->allocations, d->allocation_capacity * sizeof *d->allocations);
    }
    uint64_t address = (uintptr_t)d->base + page * PAGE + skip;
    d->allocations[d->allocation_count++] = (allocation){address, bytes, true};
    for (size_t i = 0; i < pages; i++) // the free one, too: no other allocation may use it
        d->owners[page + i] = d->allocation_count;
    memory_open(d);
    memset(d->base + page * PAGE + skip, 0xA5, bytes);
    return address;
}

static void release(device *d, allocation *a)
{
    size_t offset = a->address - (uintptr_t)d->base;
    a->alive = false;
    d->used -= (a->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memory_open(d);
    clear(d->base + offset, a->bytes);
    if (config.checks) {
        size_t first = offset / 4, last = (offset + a->bytes + 3) / 4;
        clear((char *)d->cells + first * shadow_cell_bytes(), (last - first) * shadow_cell_bytes());
    }
}

void memory_end(device *d)
{
    for (uint32_t i = 0; i < d->allocation_count; i++)
        if (d->allocations[i].alive) release(d, &d->allocations[i]);
}

const allocation *memory_find(const device *d, uint64_t address, size_t bytes)
{
    uint64_t offset = address - (uintptr_t)d->base;
    if (d->base == NULL || offset >= d->size) return NULL;
    const allocation *a = owner_of(d, offset / PAGE);
    if (a == NULL || !a->alive || address < a->address) return NULL;
    uint64_t before = address - a->address;
    return before <= a->bytes && bytes <= a->bytes - before ? a : NULL;
}

// The allocation at the address, dead or alive, or else the nearest one close by.
static const allocation *nearest(const device *d, uint64_t address)
{
    size_t page = (address - (uintptr_t)d->base) / PAGE, back = 0;
    const allocation *a = owner_of(d, page), *other = NULL;
    if (a == NULL && page + 1 < d->size / PAGE) a = owner_of(d, page + 1);
    if (a != NULL && address >= a->address) return a;
    while (other == NULL && back < page && back < 256)
        other = owner_of(d, page - ++back);
    if (a == NULL || other == NULL) return a != NULL ? a : other;
    return address - other->address - other->bytes < a->address - address ? other : a;
}

void memory_describe(const device *d, uint64_t address, char *out, size_t size)
{
    const allocation *a = nearest(d, address);
    if (a == NULL) {
        snprintf(out, size, "far from every allocation");
        return;
    }
    const char *freed = a->alive ? "" : "freed ";
    unsigned long long at = a->address;
    if (address < a->address)
        snprintf(out, size, "%llu bytes before the %sallocation of %zu bytes at 0x%llx",
                 at - (unsigned long long)address, freed, a->bytes, at);
    else if (address < a->address + a->bytes)
        snprintf(out, size, "byte %llu of the %sallocation of %zu bytes at 0x%llx",
                 (unsigned long long)address - at, freed, a->bytes, at);
    else
        snprintf(out, size, "%llu bytes after the end of the %sallocation of %zu bytes at 0x%llx",
                 (unsigned long long)address - at - a->bytes, freed, a->bytes, at);
}

int memory_alive(const device *d)
{
    int count = 0;
    for (uint32_t i = 0; i < d->allocation_count; i++)
        if (d->allocations[i].alive) count++;
    return count;
}

API(cuMemGetInfo_v2, (size_t * out_free, size_t *out_total))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    *out_total = config.memory;
    *out_free = config.memory - d->used;
    return leave(SUCCESS);
}

API(cuMemAlloc_v2, (uint64_t * out_address, size_t bytes))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (bytes == 0) return leave(ERROR_INVALID_VALUE);
    uint64_t address = allocate(d, bytes);
    if (address == 0) return leave(ERROR_OUT_OF_MEMORY);
    *out_address = address;
    return leave(SUCCESS);
}

// Whether a copy or a fill touches the allocation. A kernel's accesses are checked when it runs.
static bool touches_allocation(const work *w, const void *context)
{
    const allocation *a = context;
    bool copies = w->what == COPY_WITHIN || w->what == COPY_BETWEEN;
    bool reads = w->what == COPY_OUT || copies;
    bool writes = w->what == COPY_IN || copies || w->what == FILL;
    return (reads && w->from - a->address < a->bytes) || (writes && w->to - a->address < a->bytes);
}

API(cuMemFree_v2, (uint64_t address))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (address == 0) return leave(SUCCESS);
    device *of = memory_device(address);
    if (of != NULL && of != d)
        die("cuMemFree: 0x%llx is memory of device %d, the current context is of device %d",
            (unsigned long long)address, of->index, d->index);
    const allocation *a = memory_find(d, address, 0);
    if (a == NULL || a->address != address)
        die("cuMemFree: 0x%llx is not the begin of an allocation", (unsigned long long)address);
    if (any_pending(touches_allocation, a))
        die("cuMemFree: operations that touch the memory at 0x%llx are not done",
            (unsigned long long)address);
    release(d, &d->allocations[a - d->allocations]);
    return leave(SUCCESS);
}

// --- Memory of the host --------------------------------------------------------------------------

// Host ranges that the driver may copy from and to at any time.
typedef struct range {
    uintptr_t at;
    size_t bytes;
    bool allocated; // else it was registered
} range;

static range *ranges;
static size_t range_count;

bool host_is_registered(const void *memory, size_t bytes)
{
    uintptr_t at = (uintptr_t)memory;
    for (size_t i = 0; i < range_count; i++) {
        uintptr_t before = at - ranges[i].at;
        if (before < ranges[i].bytes && bytes <= ranges[i].bytes - before) return true;
    }
    return false;
}

static void add_range(const void *memory, size_t bytes, bool allocated)
{
    ranges = grow(ranges, (range_count + 1) * sizeof *ranges);
    ranges[range_count++] = (range){(uintptr_t)memory, bytes, allocated};
}

static bool touches_range(const work *w, const void *context)
{
    const range *r = context;
    uintptr_t to = (uintptr_t)w->host_to, from = (uintptr_t)w->host_from;
    return (w->what == COPY_OUT && to - r->at < r->bytes) ||
           (w->what == COPY_IN && !w->owns_host_from && from - r->at < r->bytes);
}

// Ends the process if a pending copy would touch the range. Returns false if it is unknown.
static bool remove_range(const void *memory, bool allocated, const char *call)
{
    for (size_t i = 0; i < range_count; i++) {
        if (ranges[i].at != (uintptr_t)memory || ranges[i].allocated != allocated) continue;
        if (any_pending(touches_range, &ranges[i]))
            die("%s: copies from or to the memory at %p are not done", call, memory);
        ranges[i] = ranges[--range_count];
        return true;
    }
    return false;
}

API(cuMemHostAlloc, (void **out_memory, size_t bytes, unsigned flags))
{
    (void)flags;
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (bytes == 0) return leave(ERROR_INVALID_VALUE);
    void *memory;
    if (posix_memalign(&memory, PAGE, bytes) != 0) return leave(ERROR_OUT_OF_MEMORY);
    memset(memory, 0xA5, bytes);
    add_range(memory, bytes, true);
    *out_memory = memory;
    return leave(SUCCESS);
}

API(cuMemFreeHost, (void *memory))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (!remove_range(memory, true, __func__)) return leave(ERROR_INVALID_VALUE);
    free(memory);
    return leave(SUCCESS);
}

// Whether the process may write all of the memory, or with `reads` read it.
static bool may_touch(const void *memory, size_t bytes, bool reads)
{
    uintptr_t at = (uintptr_t)memory, end = at + bytes;
    unsigned long long from, to;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && at < end && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%llx-%llx %7s", &from, &to, rights) == 3 && from <= at && at < to &&
            rights[reads ? 0 : 1] != '-')
            at = (uintptr_t)to;
    if (maps != NULL) fclose(maps);
    return at >= end;
}

API(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))
{
    enum { READ_ONLY = 8 };
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (memory == NULL || bytes == 0) return leave(ERROR_INVALID_VALUE);
    if (!may_touch(memory, bytes, (flags & READ_ONLY) != 0)) return leave(ERROR_INVALID_VALUE);
    uintptr_t at = (uintptr_t)memory;
    for (size_t i = 0; i < range_count; i++)
        if (at < ranges[i].at + ranges[i].bytes && ranges[i].at < at + bytes)
            return leave(ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    add_range(memory, bytes, false);
    return leave(SUCCESS);
}

API(cuMemHostUnregister, (void *memory))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (capture_forbids()) return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return leave(remove_range(memory, false, __func__) ? SUCCESS : ERROR_INVALID_VALUE);
}
