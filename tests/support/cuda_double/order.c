// Operations, their order, and when they run.
//
// An operation follows others: its predecessor in its stream, those that an event stands for, and
// those of a graph. Nothing else orders two operations. No operation runs before a thread waits.
// Then the operations that are ready run, in random order from a seed, until the awaited one is
// done. So every order that a GPU might choose can happen, and a host that reads or writes too
// early is found.
//
// Every operation also has a vector clock: for each lane, the number of operations ordered before
// it. The checks of accesses ask it whether two operations are ordered. The host is one clock: if
// any thread has waited for an operation, it is before all that any thread queues afterwards. The
// stand-in does not see how host threads synchronize with each other, so a stricter rule would
// raise false alarms. It misses an order that exists only because a wait happened to come between.
//
// Vector clocks of ended lanes are kept; a process makes hundreds of them, not millions.
#include "double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PENDING = 10000, MOST_OPERATIONS = (1 << 28) - 1 };

struct task {
    work what;
    unsigned references, waits; // waits: predecessors that are not done
    bool done;
    int64_t done_ns;
    uint32_t operation; // 0: a join, which touches nothing
    vector clock;
    task **successors;
    uint32_t successor_count;
    task *next, *before; // list of all that are not done
};

// Record of an operation, kept as long as the process lives.
typedef struct operation {
    uint32_t component, sequence;
    unsigned stream;
    work_kind what;
    const function *kernel;
} operation;

static operation *operations; // [0] is unused
static uint32_t operation_count = 1, operation_capacity;
static uint32_t component_count;
static vector host; // operations that any host thread has waited for
static task *pending;
static size_t pending_count;
static task **ready;
static size_t ready_count, ready_capacity;

// --- Vector clocks -------------------------------------------------------------------------------

static void vector_reserve(vector *v, uint32_t count)
{
    if (count <= v->count) return;
    v->at = grow(v->at, count * sizeof *v->at);
    memset(v->at + v->count, 0, (count - v->count) * sizeof *v->at);
    v->count = count;
}

void vector_join(vector *into, const vector *from)
{
    vector_reserve(into, from->count);
    for (uint32_t i = 0; i < from->count; i++)
        if (from->at[i] > into->at[i]) into->at[i] = from->at[i];
}

void vector_free(vector *v)
{
    free(v->at);
    *v = (vector){NULL, 0};
}

void host_saw(const vector *clock)
{
    vector_join(&host, clock);
}

bool operation_is_before(uint32_t number, const vector *clock)
{
    const operation *o = &operations[number];
    return o->component < clock->count && clock->at[o->component] >= o->sequence;
}

void describe_operation(uint32_t number, char *out, size_t size)
{
    static const char *const names[] = {"",
                                        "kernel ",
                                        "copy to the device",
                                        "copy to the host",
                                        "copy within the device",
                                        "copy between devices",
                                        "fill"};
    const operation *o = &operations[number];
    snprintf(out, size, "%s%s (operation %u, stream %u)", names[o->what],
             o->kernel != NULL ? kernel_name(o->kernel) : "", number, o->stream);
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// --- Work ----------------------------------------------------------------------------------------

void work_copy(work *to, const work *from)
{
    *to = *from;
    if (from->arguments != NULL) {
        size_t bytes = kernel_argument_bytes(from->kernel);
        to->arguments = grow(NULL, bytes);
        memcpy(to->arguments, from->arguments, bytes);
    }
    if (from->owns_host_from) die("a staged copy in a graph");
}

void work_free(work *w)
{
    free(w->arguments);
    if (w->owns_host_from) free((void *)(uintptr_t)w->host_from);
    w->arguments = NULL;
    w->host_from = NULL;
}

// --- Tasks ---------------------------------------------------------------------------------------

task *task_keep(task *t)
{
    if (t != NULL) t->references++;
    return t;
}

void task_drop(task *t)
{
    if (t == NULL || --t->references > 0) return;
    vector_free(&t->clock);
    free(t);
}

bool task_is_done(const task *t)
{
    return t == NULL || t->done;
}

static void make_ready(task *t)
{
    if (ready_count == ready_capacity) {
        ready_capacity = ready_capacity * 2 + 64;
        ready = grow(ready, ready_capacity * sizeof(task *));
    }
    ready[ready_count++] = t;
}

static void follow(task *t, task *behind)
{
    if (behind == NULL || behind->done) return;
    behind->successors = grow(behind->successors, (behind->successor_count + 1) * sizeof(task *));
    behind->successors[behind->successor_count++] = t;
    t->waits++;
}

static void complete(task *t)
{
    t->done = true;
    t->done_ns = now_ns();
    for (uint32_t i = 0; i < t->successor_count; i++)
        if (--t->successors[i]->waits == 0) make_ready(t->successors[i]);
    free(t->successors);
    t->successors = NULL;
    t->successor_count = 0;
    vector_free(&t->clock);
    work_free(&t->what);
    if (t->before != NULL)
        t->before->next = t->next;
    else
        pending = t->next;
    if (t->next != NULL) t->next->before = t->before;
    pending_count--;
    task_drop(t);
}

// Touches each side as an operation of that side's device. If one device is lost, the running
// one is lost too.
static void copy_between(const work *w)
{
    device *from = memory_device(w->from), *to = memory_device(w->to);
    if (from->lost || to->lost) {
        running.on->lost = true;
        return;
    }
    memory_open(from);
    memory_open(to);
    running.on = from;
    shadow_touch(w->from, w->bytes, false);
    running.on = to;
    shadow_touch(w->to, w->bytes, true);
    memmove((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
    bool flips = to->index == config.flip_device && to->received == config.flip_after;
    if (flips) *(unsigned char *)(uintptr_t)w->to ^= 1;
    to->received++;
}

static void perform(const work *w)
{
    memory_open(w->on);
    switch (w->what) {
    case LAUNCH: kernel_run(w); break;
    case COPY_IN:
        shadow_touch(w->to, w->bytes, true);
        memcpy((void *)(uintptr_t)w->to, w->host_from, w->bytes);
        break;
    case COPY_OUT:
        shadow_touch(w->from, w->bytes, false);
        memcpy(w->host_to, (const void *)(uintptr_t)w->from, w->bytes);
        break;
    case COPY_WITHIN:
        shadow_touch(w->from, w->bytes, false);
        shadow_touch(w->to, w->bytes, true);
        memmove((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
        break;
    case COPY_BETWEEN: copy_between(w); break;
    case FILL:
        shadow_touch(w->to, w->bytes, true);
        memset((void *)(uintptr_t)w->to, w->byte, w->bytes);
        break;
    case JOIN: break;
    }
}

// Executes a task. A lost device skips the work but completes the task, so that no thread
// waits in vain. A hanging device begins an operation that does not end.
static void execute(task *t)
{
    device *d = t->what.on;
    bool hangs =
        t->what.what != JOIN && d->index == config.hang_device && d->executed >= config.hang_after;
    if (hangs) return;
    if (t->what.what != JOIN && !d->lost) {
        if (d->index == config.lose_device && d->executed == config.lose_after) {
            d->lost = true;
        } else {
            running =
                (runner){.op = &t->what, .on = d, .operation = t->operation, .clock = &t->clock};
            perform(&t->what);
            running = (runner){0};
            d->executed++;
        }
    }
    complete(t);
}

// xorshift64*: chooses the next task.
static size_t draw(size_t count)
{
    static uint64_t state;
    if (state == 0) state = (config.seed + 1) * 0x9E3779B97F4A7C15u;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 0x2545F4914F6CDD1Du >> 32) % count);
}

static void run_one(void)
{
    size_t chosen = draw(ready_count);
    task *t = ready[chosen];
    ready[chosen] = ready[--ready_count];
    execute(t);
}

bool task_try(task *t)
{
    task_keep(t);
    while (!t->done && ready_count > 0)
        run_one();
    bool done = t->done;
    task_drop(t);
    if (!done && config.hang_device < 0) die("operations that wait for each other");
    return done;
}

// Blocks the calling host thread if the device hangs; other threads continue.
void task_finish(task *t)
{
    if (task_try(t)) return;
    leave(SUCCESS);
    for (;;)
        pause();
}

int64_t task_done_ns(const task *t)
{
    return t == NULL ? 0 : t->done_ns;
}

bool any_pending(work_test *test, const void *context)
{
    for (const task *t = pending; t != NULL; t = t->next) {
        bool touches = t->what.what != JOIN && !t->what.on->lost; // a lost device touches nothing
        if (touches && test(&t->what, context)) return true;
    }
    return false;
}

// --- Lanes ---------------------------------------------------------------------------------------

void lane_begin(lane *l, unsigned number)
{
    *l = (lane){.component = component_count++, .stream = number};
}

void lane_end(lane *l)
{
    task_drop(l->last);
    l->last = NULL;
    vector_free(&l->clock);
}

static uint32_t count_operation(lane *l, const work *w)
{
    if (operation_count == operation_capacity || operations == NULL) {
        operation_capacity = operation_capacity * 2 + 1024;
        operations = grow(operations, operation_capacity * sizeof *operations);
    }
    if (operation_count == MOST_OPERATIONS) die("more than %d operations", MOST_OPERATIONS);
    operations[operation_count] =
        (operation){l->component, ++l->sequence, l->stream, w->what, w->kernel};
    vector_reserve(&l->clock, l->component + 1);
    l->clock.at[l->component] = l->sequence;
    return operation_count++;
}

// Appends a task to the lane, which then becomes its last one. Takes what the work owns.
static task *append(lane *l, const work *w)
{
    task *t = grow(NULL, sizeof *t);
    *t = (task){.what = *w, .references = 1, .next = pending};
    if (pending != NULL) pending->before = t;
    pending = t;
    pending_count++;
    if (w->what != JOIN) t->operation = count_operation(l, w);
    vector_join(&t->clock, &l->clock);
    t->waits = 1; // until it is linked
    follow(t, l->last);
    task_drop(l->last);
    l->last = task_keep(t);
    return t;
}

static void linked(task *t)
{
    if (--t->waits == 0) make_ready(t);
}

void lane_wait(lane *l, const vector *clock, task *behind)
{
    if (clock != NULL) vector_join(&l->clock, clock);
    if (behind == NULL) return;
    task *t = append(l, &(work){.what = JOIN});
    follow(t, behind);
    linked(t);
}

void lane_append(lane *l, work *w)
{
    vector_join(&l->clock, &host);
    task *t = append(l, w);
    linked(t);
    while (pending_count > MOST_PENDING && ready_count > 0) // a GPU's queue is limited, too
        run_one();
}
