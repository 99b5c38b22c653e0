// Race checker: checks every access of a kernel, and of copies and fills, against earlier ones.
//
// A cell is 4 bytes of memory. It keeps the last writer and two readers. Each is an operation, a
// block, a thread and the number of barriers that the block had passed, with a mask of the bytes.
// Two accesses of one operation collide if they are of different blocks, or of one block with no
// barrier between them. Two accesses of different operations collide if the earlier operation is
// not in the later one's vector clock.
//
// A new reader replaces a reader that is ordered before it. Two readers are enough within one
// launch: a writer collides with at least one of them. If three unordered launches read one cell,
// the third is forgotten. If several writers write different bytes of a cell, only the last is
// kept.
//
// Atomic accesses of different threads do not collide. Nor do plain accesses of threads that hold a
// lock. A thread holds a lock from a successful atomicCAS(lock, 0, 1) to the lock's next write.
//
// Shared memory has separate cells, which count only for the block that runs.
// This file is compiled without sanitizers: it runs on the stacks of kernels.
#include "double.h"

#include <stdio.h>
#include <string.h>

#include "kernel_host.h"

enum {
    THREADS = 1024,
    UNDER_LOCK = 1024, // beside the thread's number
    ATOMIC = 2048,
    THREAD_BITS = 12,
    MOST_FAILURES = 1000000,
};

typedef struct record {
    uint32_t operation_mask; // operation * 16 + bytes; 0: unset
    uint32_t block, place;   // place: interval, flags, thread
} record;

struct cell {
    record writer, readers[2];
    uint32_t written; // bytes
};

typedef struct shared_cell {
    uint32_t operation, block;
    cell is;
} shared_cell;

runner running;

size_t shadow_cell_bytes(void)
{
    return sizeof(cell);
}

size_t shadow_shared_bytes(size_t shared_bytes)
{
    return (shared_bytes / 4 + 2) * sizeof(shared_cell);
}

// --- Messages ------------------------------------------------------------------------------------

static void describe_thread(uint32_t block, uint32_t thread, char *out, size_t size)
{
    const unsigned *g = running.op->grid, *b = running.op->block;
    thread %= THREADS;
    snprintf(out, size, "block (%u,%u,%u), thread (%u,%u,%u)", block % g[0], block / g[0] % g[1],
             block / g[0] / g[1], thread % b[0], thread / b[0] % b[1], thread / b[0] / b[1]);
}

void describe_runner(char *out, size_t size)
{
    if (running.op->what != LAUNCH) {
        describe_operation(running.operation, out, size);
        return;
    }
    char thread[128];
    describe_thread(running.block, running.thread, thread, sizeof thread);
    snprintf(out, size, "kernel %s, %s,", kernel_name(running.op->kernel), thread);
}

static const char *verb(bool writes)
{
    return writes ? "writes" : "reads";
}

_Noreturn static void die_outside(uintptr_t address, size_t bytes, bool writes)
{
    char who[256], where[192];
    unsigned long long at = address;
    describe_runner(who, sizeof who);
    device *of = memory_device(address);
    if (of == NULL) die("%s %s host memory 0x%llx", who, verb(writes), at);
    if (of != running.on)
        die("%s %s memory of device %d: 0x%llx", who, verb(writes), of->index, at);
    // If the access begins inside, name the first byte outside.
    const allocation *a = memory_find(of, address, 1);
    if (a != NULL && bytes > 1) address = a->address + a->bytes;
    memory_describe(of, address, where, sizeof where);
    const char *what = strstr(where, "freed") != NULL ? "freed memory" : "outside of allocations";
    die("%s %s %s, 0x%llx: %s", who, verb(writes), what, at, where);
}

static void describe_address(uintptr_t address, char *out, size_t size)
{
    char where[192] = "shared memory";
    if (memory_device(address) != NULL) memory_describe(running.on, address, where, sizeof where);
    snprintf(out, size, "0x%llx (%s)", (unsigned long long)address, where);
}

_Noreturn static void die_unwritten(uintptr_t address)
{
    char who[256], where[256];
    describe_runner(who, sizeof who);
    describe_address(address, where, sizeof where);
    die("%s reads what was never written, %s", who, where);
}

_Noreturn static void die_collision(const record *other, bool other_writes, uintptr_t address,
                                    bool writes)
{
    char who[256], what[256], where[256];
    uint32_t operation = other->operation_mask >> 4;
    describe_address(address, where, sizeof where);
    if (operation == running.operation) {
        describe_runner(who, sizeof who);
        describe_thread(other->block, other->place % (1u << THREAD_BITS), what, sizeof what);
        die("%s %s %s, which %s %s: nothing orders the two", who, verb(writes), where, what,
            verb(other_writes));
    }
    describe_operation(running.operation, who, sizeof who);
    describe_operation(operation, what, sizeof what);
    die("%s %s %s, which %s %s: nothing orders the two", who, verb(writes), where, what,
        verb(other_writes));
}

// --- Cells ---------------------------------------------------------------------------------------

// Whether what was recorded is ordered before the running thread's next access.
static inline bool is_before(const record *r, const record *me)
{
    uint32_t operation = r->operation_mask >> 4, differs = r->place ^ me->place;
    if (operation != me->operation_mask >> 4) return operation_is_before(operation, running.clock);
    return r->block == me->block && (differs % THREADS == 0 || differs >> THREAD_BITS != 0);
}

static inline bool collides(const record *r, const record *me)
{
    if ((r->operation_mask & me->operation_mask & 15) == 0 || is_before(r, me)) return false;
    bool both = (r->place & me->place & (UNDER_LOCK | ATOMIC)) != 0;
    return !(both && r->operation_mask >> 4 == me->operation_mask >> 4);
}

static inline bool is_same_thread(const record *a, const record *b)
{
    return (a->operation_mask ^ b->operation_mask) < 16 && a->block == b->block &&
           a->place == b->place;
}

static inline void note_reader(cell *c, const record *me)
{
    for (int i = 0; i < 2; i++) {
        record *r = &c->readers[i];
        uint32_t mask = me->operation_mask & 15;
        if (is_same_thread(r, me)) {
            r->operation_mask |= mask;
            return;
        }
        if (r->operation_mask == 0 || ((r->operation_mask & 15 & ~mask) == 0 && is_before(r, me))) {
            *r = *me;
            return;
        }
    }
}

static inline void note_writer(cell *c, const record *me)
{
    uint32_t mask = me->operation_mask & 15;
    c->written |= mask;
    if (is_same_thread(&c->writer, me))
        c->writer.operation_mask |= mask;
    else
        c->writer = *me;
    for (int i = 0; i < 2; i++)
        if ((c->readers[i].operation_mask & 15 & ~mask) == 0) c->readers[i] = (record){0, 0, 0};
}

static inline void touch(cell *c, uintptr_t address, const record *me, bool writes)
{
    uint32_t mask = me->operation_mask & 15;
    if (!writes && (c->written & mask) != mask) die_unwritten(address);
    if (collides(&c->writer, me)) die_collision(&c->writer, true, address, writes);
    if (!writes) {
        note_reader(c, me);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (collides(&c->readers[i], me)) die_collision(&c->readers[i], false, address, true);
    note_writer(c, me);
}

// Calls touch for every cell of the range; `shared` are cells of shared memory, or NULL.
static inline void touch_range(uintptr_t base, cell *cells, shared_cell *shared, uintptr_t address,
                               size_t bytes, bool writes, uint32_t flags)
{
    record me = {0, running.block, running.interval << THREAD_BITS | flags | running.thread};
    uintptr_t end = address + bytes;
    while (address < end) {
        uintptr_t cell_end = (address & ~(uintptr_t)3) + 4, stop = end < cell_end ? end : cell_end;
        uint32_t first = address & 3;
        uint32_t mask = ((1u << (stop - address)) - 1) << first;
        me.operation_mask = running.operation << 4 | mask;
        size_t index = (address - base) / 4;
        cell *c;
        if (shared == NULL) {
            c = &cells[index];
        } else {
            shared_cell *s = &shared[index];
            if (s->operation != running.operation || s->block != running.block)
                *s = (shared_cell){.operation = running.operation, .block = running.block};
            c = &s->is;
        }
        touch(c, address, &me, writes);
        address = stop;
    }
}

void shadow_touch(uint64_t address, size_t bytes, bool writes)
{
    if (memory_find(running.on, address, bytes) == NULL) die_outside(address, bytes, writes);
    if (!config.checks) return;
    touch_range((uintptr_t)running.on->base, running.on->cells, NULL, address, bytes, writes, 0);
}

static inline void touch_as(uintptr_t address, size_t bytes, bool writes, uint32_t flags)
{
    const device *d = running.on;
    if (address - (uintptr_t)d->base < d->size) {
        if (memory_find(d, address, bytes) == NULL) die_outside(address, bytes, writes);
        touch_range((uintptr_t)d->base, d->cells, NULL, address, bytes, writes, flags);
        return;
    }
    uintptr_t in_shared = address - running.shared;
    if (in_shared < running.shared_bytes && bytes <= running.shared_bytes - in_shared) {
        touch_range(running.shared & ~(uintptr_t)3, NULL, running.shared_cells, address, bytes,
                    writes, flags);
        return;
    }
    if (address - running.stack < running.stack_bytes) return;
    if (!writes && address - running.arguments < running.argument_bytes) return;
    for (int i = 0; i < running.own_count && !writes; i++)
        if (address - running.own[i][0] < running.own[i][1]) return;
    die_outside(address, bytes, writes);
}

void shadow_access(uintptr_t address, size_t bytes, bool writes)
{
    if (!config.checks || bytes == 0) return;
    uint32_t flags = 0;
    if (running.lock != 0) {
        bool frees = writes && running.lock - address < bytes; // as if by atomicExch
        flags = frees ? ATOMIC : UNDER_LOCK;
        if (frees) running.lock = 0;
    }
    touch_as(address, bytes, writes, flags);
}

int shadow_atomic(int *at, int what, int a, int b)
{
    static int failures;
    if (config.checks) {
        touch_as((uintptr_t)at, sizeof *at, false, ATOMIC);
        touch_as((uintptr_t)at, sizeof *at, true, ATOMIC);
    }
    int old = *at;
    bool taken = false;
    switch (what) {
    case BEL_HOOK_CAS:
        if (old == a) *at = b;
        taken = old == 0 && a == 0 && b == 1;
        failures = old == a ? 0 : failures + 1;
        break;
    case BEL_HOOK_EXCHANGE: *at = b; break;
    default: die("an unknown atomic operation");
    }
    if (running.lock == (uintptr_t)at) running.lock = 0;
    if (taken) running.lock = (uintptr_t)at;
    if (failures == MOST_FAILURES) { // no other thread runs meanwhile
        char who[256];
        describe_runner(who, sizeof who);
        die("%s waits for ever: %d times atomicCAS found %d", who, failures, old);
    }
    return old;
}
