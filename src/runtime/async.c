// Scheduling with two sets of bits, by urgency of calls. `ready` has the calls at which a stream
// may continue, `open` the calls that have parts left. In large programs, counts say which blocks
// have bits set. A thread without work spins on the sets for a moment and then sleeps. A thread
// that starts a call while another is ready wakes a sleeper.
#include "runtime/async.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/linux_sched.h"

enum { WORD = 64, BLOCK = 16 };
enum { SPINS = 500 };                                  // as a team's helpers (base/thread.c)
enum { ASKED_TO_STOP = 1, FAILED = 2, CANCELLED = 4 }; // troubles

typedef struct call_state {
    bel_future future;
    atomic_int waits; // for calls of other streams, and for its stream to reach it
    int wait_count;   // at the start of a run; 0: it waits only for its stream
    int next;         // in its stream; -1: none
    int rank;         // by urgency
    int64_t part_count;
    atomic_int_fast64_t next_part, parts_left;
} call_state;

// Continuation that ends a call's wait for a call of another stream.
typedef struct waiter {
    bel_continuation continuation;
    bel_async *async;
    int call;
} waiter;

struct bel_async {
    const bel_dag *dag;
    bel_async_calls how;
    call_state *calls;
    waiter *waiters;
    int *heads; // the first call of each stream
    int stream_count;
    int *by_rank;                // calls
    int word_count, block_count; // a block: BLOCK words of both
    atomic_uint_fast64_t *ready, *open;
    atomic_int *filled; // by block: bits that are set, about to be set, or just cleared
    bool alone;         // a second thread would have nothing to do
    atomic_int streams_left;
    atomic_uint trouble;
    atomic_uint alarm; // futex
    atomic_uint sleeping;
};

// --- Sets of calls -------------------------------------------------------------------------------

// Accesses to these sets are atomic with the default, sequentially consistent order. A thread that
// goes to sleep counts itself and then looks for work; one that makes work sets a bit and then
// looks for sleepers (share_work). Only one order of all four operations keeps both from missing
// each other.
static bool has_bit(const atomic_uint_fast64_t *words, int rank)
{
    return (atomic_load(&words[rank / WORD]) >> rank % WORD & 1) != 0;
}

// Counts a bit of a block, before it is set and after it is cleared, so a block with bits set never
// has count 0. The count is not used if there is only one block.
static void count_bit(bel_async *a, int rank, int change)
{
    if (a->block_count > 1) atomic_fetch_add(&a->filled[rank / (WORD * BLOCK)], change);
}

// Sets a bit that is not set.
static void set_bit(bel_async *a, atomic_uint_fast64_t *words, int rank)
{
    count_bit(a, rank, 1);
    atomic_fetch_or(&words[rank / WORD], (uint_fast64_t)1 << rank % WORD);
}

// Clears a bit. False: it was not set, or another thread cleared it.
static bool take_bit(bel_async *a, atomic_uint_fast64_t *words, int rank)
{
    uint_fast64_t bit = (uint_fast64_t)1 << rank % WORD;
    if ((atomic_fetch_and(&words[rank / WORD], ~bit) & bit) == 0) return false;
    count_bit(a, rank, -1);
    return true;
}

// Rank of the most urgent call that is ready or open; -1: none.
static int most_urgent(const bel_async *a)
{
    for (int b = 0; b < a->block_count; b++) {
        if (a->block_count > 1 && atomic_load(&a->filled[b]) == 0) continue;
        int end = (b + 1) * BLOCK < a->word_count ? (b + 1) * BLOCK : a->word_count;
        for (int w = b * BLOCK; w < end; w++) {
            uint_fast64_t bits = atomic_load(&a->ready[w]) | atomic_load(&a->open[w]);
            if (bits != 0) return w * WORD + __builtin_ctzll(bits);
        }
    }
    return -1;
}

// --- Creation ------------------------------------------------------------------------------------

typedef struct ranked {
    int64_t path; // cost of the costliest path to the end, the call included
    int call;
} ranked;

static int more_urgent_first(const void *a, const void *b)
{
    const ranked *p = a, *q = b;
    if (p->path != q->path) return p->path < q->path ? 1 : -1;
    return p->call < q->call ? -1 : 1;
}

// Ranks all calls by the costliest path from each to the end; equal paths in order of calls. Walks
// back over edges and streams, in which every call comes after those that it waits for.
static void rank_calls(bel_async *a)
{
    int count = a->dag->node_count;
    ranked *order = bel_xcalloc((size_t)count, sizeof *order);
    for (int c = count; c-- > 0;) { // path: of the calls after it, so far
        int next = a->calls[c].next;
        if (next >= 0 && order[next].path > order[c].path) order[c].path = order[next].path;
        order[c].path += a->dag->costs[c];
        order[c].call = c;
        for (int e = a->dag->first_edges[c]; e < a->dag->first_edges[c + 1]; e++) {
            ranked *from = &order[a->dag->edges[e].from];
            if (order[c].path > from->path) from->path = order[c].path;
        }
    }
    if (count > 0) qsort(order, (size_t)count, sizeof *order, more_urgent_first);
    for (int r = 0; r < count; r++) {
        a->by_rank[r] = order[r].call;
        a->calls[order[r].call].rank = r;
    }
    bel_free(order);
}

// Chains the calls of each stream. A head waits once, for the run to start, so bel_async_run starts
// it as if a call before it had finished.
static void follow_streams(bel_async *a, const bel_streams *streams)
{
    for (int s = 0; s < streams->count; s++) {
        const int *calls = streams->nodes + streams->items[s].first;
        int count = streams->items[s].count;
        for (int i = 0; i < count; i++)
            a->calls[calls[i]].next = i + 1 < count ? calls[i + 1] : -1;
        if (count == 0) continue;
        a->heads[a->stream_count++] = calls[0];
        a->calls[calls[0]].wait_count = 1;
    }
}

// Decrements the waits of `call`; true when it was the last. Release: this thread's results are
// written before. Acquire: the thread that decrements last, and so may run the call, sees them all.
static bool arrive(bel_async *a, int call)
{
    return atomic_fetch_sub_explicit(&a->calls[call].waits, 1, memory_order_acq_rel) == 1;
}

// Callback of a waiter: runs on the thread that settled the other call, in whatever state.
static void end_wait(void *context, bel_future_state state)
{
    (void)state;
    const waiter *w = context;
    if (arrive(w->async, w->call))
        set_bit(w->async, w->async->ready, w->async->calls[w->call].rank);
}

// Counts the waits of each call: one, with a waiter, for each edge from a call of another stream.
// If there is any, one more counts for the call before it in its stream. Without such edges only
// the stream orders the call, and the count is 0.
static void add_waiters(bel_async *a, const bel_streams *streams)
{
    waiter *w = a->waiters;
    for (int c = 0; c < a->dag->node_count; c++) {
        for (int e = a->dag->first_edges[c]; e < a->dag->first_edges[c + 1]; e++) {
            int from = a->dag->edges[e].from;
            if (streams->stream_of[from] == streams->stream_of[c]) continue;
            if (a->calls[c].wait_count == 0) a->calls[c].wait_count = 1;
            a->calls[c].wait_count++;
            *w = (waiter){.async = a, .call = c, .continuation = {.run = end_wait, .context = w}};
            bel_future_then(&a->calls[from].future, &w->continuation);
            w++;
        }
    }
}

bel_async *bel_async_create(const bel_dag *dag, const bel_streams *streams,
                            const bel_async_calls *calls)
{
    bel_async *a = bel_xcalloc(1, sizeof *a);
    size_t count = (size_t)dag->node_count;
    a->dag = dag;
    a->how = *calls;
    a->how.part_counts = NULL; // copied
    a->calls = bel_xcalloc(count, sizeof *a->calls);
    a->waiters = bel_xcalloc((size_t)dag->first_edges[count], sizeof *a->waiters);
    a->heads = bel_xcalloc((size_t)streams->count, sizeof *a->heads);
    a->by_rank = bel_xcalloc(count, sizeof *a->by_rank);
    a->word_count = (dag->node_count + WORD - 1) / WORD;
    a->ready = bel_xcalloc((size_t)a->word_count, sizeof *a->ready);
    a->open = bel_xcalloc((size_t)a->word_count, sizeof *a->open);
    a->block_count = (a->word_count + BLOCK - 1) / BLOCK;
    a->filled = bel_xcalloc((size_t)a->block_count, sizeof *a->filled);
    follow_streams(a, streams);
    a->alone = a->stream_count <= 1;
    for (size_t c = 0; c < count; c++) {
        a->calls[c].part_count = calls->part_counts[c];
        a->alone = a->alone && calls->part_counts[c] == 1;
    }
    rank_calls(a);
    add_waiters(a, streams);
    return a;
}

void bel_async_destroy(bel_async *async)
{
    if (async == NULL) return;
    bel_free(async->calls);
    bel_free(async->waiters);
    bel_free(async->heads);
    bel_free(async->by_rank);
    bel_free(async->ready);
    bel_free(async->open);
    bel_free(async->filled);
    bel_free(async);
}

bel_future *bel_async_future(bel_async *async, int call)
{
    return &async->calls[call].future;
}

// --- Running -------------------------------------------------------------------------------------

// Wakes a sleeper if a call is ready. A sleeper counts itself before its last look for work, so
// either it saw the call or it is seen here.
static void share_work(bel_async *a)
{
    if (atomic_load(&a->sleeping) == 0 || most_urgent(a) < 0) return;
    atomic_fetch_add(&a->alarm, 1);
    bel_linux_futex_wake_one(&a->alarm);
}

// READY, or the reason to skip the call. A relaxed load is enough: a failed call sets `trouble`
// before it is settled, and the wait that ended since then (arrive) orders that store.
static bel_future_state prospect(const bel_async *a, int call)
{
    unsigned trouble = atomic_load_explicit(&a->trouble, memory_order_relaxed);
    if (trouble == 0) return BEL_FUTURE_READY;
    if ((trouble & ASKED_TO_STOP) != 0) return BEL_FUTURE_CANCELLED;
    for (int e = a->dag->first_edges[call]; e < a->dag->first_edges[call + 1]; e++) {
        const bel_dag_edge *edge = &a->dag->edges[e];
        if (!edge->data) continue;
        if (bel_future_look(&a->calls[edge->from].future) != BEL_FUTURE_READY)
            return BEL_FUTURE_SKIPPED;
    }
    return BEL_FUTURE_READY;
}

// Counts a finished stream. The last one wakes all sleepers, which then see that the run has
// finished.
static void end_stream(bel_async *a)
{
    if (atomic_fetch_sub(&a->streams_left, 1) > 1 || atomic_load(&a->sleeping) == 0) return;
    atomic_fetch_add(&a->alarm, 1);
    bel_linux_futex_wake_all(&a->alarm);
}

// Settles a call. Returns the next one of its stream for this thread; -1: none.
static int async_complete(bel_async *a, int call, bel_future_state state)
{
    if (state == BEL_FUTURE_READY && !a->how.finish(a->how.context, call)) {
        state = BEL_FUTURE_FAILED;
    }
    if (state != BEL_FUTURE_READY) {
        atomic_fetch_or(&a->trouble, state == BEL_FUTURE_CANCELLED ? CANCELLED : FAILED);
    }
    bel_future_settle(&a->calls[call].future, state);
    int next = a->calls[call].next;
    if (next < 0) {
        end_stream(a);
        return -1;
    }
    if (a->alone) return next;
    if (a->calls[next].wait_count > 0 && !arrive(a, next)) return -1;
    int urgent = most_urgent(a);
    if (urgent < 0 || urgent > a->calls[next].rank) return next;
    set_bit(a, a->ready, a->calls[next].rank);
    return -1;
}

// Runs a stream from `call` on, as far as it can.
static void async_follow(bel_async *a, int call)
{
    while (call >= 0) {
        bel_future_state state = prospect(a, call);
        const call_state *c = &a->calls[call];
        if (state == BEL_FUTURE_READY && c->part_count > 1) {
            set_bit(a, a->open, c->rank);
            return;
        }
        if (state == BEL_FUTURE_READY) {
            share_work(a);
            a->how.run(a->how.context, call, 0);
        }
        call = async_complete(a, call, state);
    }
}

// Runs parts of an open call until no part is left. Each thread claims parts one at a time by
// next_part. The thread that claims the last part closes the call; the one that finishes last
// follows the stream.
static void take_parts(bel_async *a, int call)
{
    call_state *c = &a->calls[call];
    for (;;) {
        int64_t part = atomic_fetch_add(&c->next_part, 1);
        if (part >= c->part_count) return;
        if (part == c->part_count - 1) take_bit(a, a->open, c->rank);
        share_work(a);
        a->how.run(a->how.context, call, part);
        if (atomic_fetch_sub(&c->parts_left, 1) == 1) break;
    }
    async_follow(a, async_complete(a, call, BEL_FUTURE_READY));
}

// Spins for a while, as work mostly comes within microseconds, then sleeps. False when the run has
// finished. `seen` is read before the last look, so an alarm in between makes the futex return at
// once.
static bool wait_for_work(bel_async *a)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (most_urgent(a) >= 0) return true;
        if (atomic_load(&a->streams_left) == 0) return false;
        bel_thread_pause();
    }
    unsigned seen = atomic_load(&a->alarm);
    atomic_fetch_add(&a->sleeping, 1);
    if (most_urgent(a) < 0 && atomic_load(&a->streams_left) > 0)
        bel_linux_futex_wait(&a->alarm, seen);
    atomic_fetch_sub(&a->sleeping, 1);
    return true;
}

// Loop of each thread of the team: the most urgent call first. The thread that clears the bit of a
// ready call runs it and follows its stream. An open call gives its parts to several threads. If
// another thread cleared the bit first, the loop looks again.
static void async_work(void *argument, int64_t thread)
{
    (void)thread;
    bel_async *a = argument;
    for (;;) {
        int rank = most_urgent(a);
        if (rank < 0) {
            if (!wait_for_work(a)) return;
        } else if (take_bit(a, a->ready, rank)) {
            async_follow(a, a->by_rank[rank]);
        } else if (has_bit(a->open, rank)) {
            take_parts(a, a->by_rank[rank]);
        }
    }
}

// Resets all counts before a run, while no other thread works. Relaxed stores are enough: starting
// the team orders them before everything that its threads do.
static void async_reset(bel_async *a)
{
    for (int c = 0; c < a->dag->node_count; c++) {
        call_state *call = &a->calls[c];
        bel_future_reset(&call->future);
        if (call->wait_count > 0) {
            atomic_store_explicit(&call->waits, call->wait_count, memory_order_relaxed);
        }
        if (call->part_count == 1) continue;
        atomic_store_explicit(&call->next_part, 0, memory_order_relaxed);
        atomic_store_explicit(&call->parts_left, call->part_count, memory_order_relaxed);
    }
    atomic_store_explicit(&a->streams_left, a->stream_count, memory_order_relaxed);
}

bel_future_state bel_async_run(bel_async *async, bel_team *team)
{
    if (async->stream_count == 0) return BEL_FUTURE_READY;
    async_reset(async);
    if (async->alone) {
        async_follow(async, async->heads[0]);
    } else {
        for (int s = 0; s < async->stream_count; s++) {
            int head = async->heads[s];
            if (arrive(async, head)) set_bit(async, async->ready, async->calls[head].rank);
        }
        bel_team_run(team, async_work, async, bel_team_size(team));
    }
    unsigned trouble = atomic_exchange(&async->trouble, 0);
    if ((trouble & CANCELLED) != 0) return BEL_FUTURE_CANCELLED;
    return (trouble & FAILED) != 0 ? BEL_FUTURE_FAILED : BEL_FUTURE_READY;
}

void bel_async_cancel(bel_async *async)
{
    atomic_fetch_or(&async->trouble, ASKED_TO_STOP);
}
