// Reads batches ahead with a ring of slots. Index i of the order uses slot i mod slot_count. A
// thread claims the next index, reads its block without the lock and marks the slot ready; the
// consumer takes the slots in order. A slot is free again once the consumer has asked for the batch
// `held` further on:
//
//   released ≤ taken ≤ next   indexes below `released` are free, [released, taken) is in the
//   next − released ≤ limit   consumer's hands, [taken, next) is being read or ready
//
// Slots do not own batches, which hold the memory: an index gets one when it is claimed and returns
// it when it is released, so the number of batches is the maximum ever in use at once. With
// automatic depth the limit doubles if the consumer finds nothing ready although all slots were
// ready since the limit last rose: then readers are fast enough, and a larger stock would have
// helped.
//
// Threads that have filled all slots rest until half of them are free: waking one for each batch
// would slow a step down more than the reading does.
//
// One thread at a time asks the order, without the lock, index after index. With a depth of 0 there
// is no thread: bel_prefetch_take reads.
#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/thread.h"
#include "input/batch/batch.h"
#include "input/batch/opened.h"

enum {
    STALL_SECONDS = 30,
    LOOK_MS = 20,
    AUTO_DEPTH = 4,
    AUTO_MOST = 64,
    AUTO_MOST_BYTES = 256 << 20
};

typedef struct store {
    bel_batch *batch;
    size_t bytes; // its bytes as of its last reading
} store;

typedef struct slot {
    store *store;       // NULL: free
    bel_status *status; // owned until taken
    bool ready;
} slot;

struct bel_prefetch {
    const bel_input *input;
    bel_block_order *order;
    void *context;
    slot *slots;
    int64_t slot_count;
    bel_input_reader reader;
    int held; // batches that the consumer may hold
    bel_batch_watch watch;
    bel_prefetch_cancelled *cancelled; // NULL: never
    const void *cancelled_context;
    bool automatic;
    pthread_t *threads;
    int thread_count;

    pthread_mutex_t mutex; // guards the fields below, the slots and the stores' bytes
    pthread_cond_t may_claim;
    pthread_cond_t may_take;
    store *stores; // slot_count items
    store **spare; // stores without a slot: the first spare_count items
    int64_t spare_count;
    int64_t limit;    // slots that may be in use
    int64_t ready;    // batches that wait for the consumer
    bool was_full;    // all slots were ready since the limit last rose
    size_t bytes;     // bytes of all stores
    int64_t next;     // the next index to claim
    int64_t taken;    // the next index to give out
    int64_t released; // the first index whose slot is not free
    int64_t end;      // the order's length, INT64_MAX: unknown
    bool asking;      // a thread is asking the order
    bool resting;     // all slots were full, and half of them are not yet free
    bool stop;
};

static slot *slot_of(const bel_prefetch *prefetch, int64_t index)
{
    return &prefetch->slots[index % prefetch->slot_count];
}

// Whether threads must pause reading. Updates `resting`.
static bool rests(bel_prefetch *prefetch)
{
    int64_t free = prefetch->limit - (prefetch->next - prefetch->released);
    if (free == 0) prefetch->resting = true;
    if (2 * free >= prefetch->limit - prefetch->held) prefetch->resting = false;
    return prefetch->resting;
}

// Gives a batch to the slot of a claimed index. Called with the lock held.
static void take_store(bel_prefetch *prefetch, slot *to)
{
    to->store = prefetch->spare[--prefetch->spare_count];
    if (to->store->batch != NULL) return;
    to->store->batch = bel_batch_create(prefetch->input);
    to->store->batch->memory->watch = prefetch->watch;
}

// Takes back the batches that the consumer has finished with, as it asks for one more. Called with
// the lock held.
static void prefetch_release(bel_prefetch *prefetch)
{
    for (; prefetch->released <= prefetch->taken - prefetch->held; prefetch->released++) {
        slot *done = slot_of(prefetch, prefetch->released);
        prefetch->spare[prefetch->spare_count++] = done->store;
        done->store = NULL;
    }
}

// Raises the limit after the consumer found nothing ready. Called with the lock held.
static void prefetch_deepen(bel_prefetch *prefetch)
{
    int64_t depth = prefetch->limit - prefetch->held;
    int64_t most = prefetch->slot_count - prefetch->held;
    if (!prefetch->automatic || !prefetch->was_full || depth == most) return;
    depth = 2 * depth < most ? 2 * depth : most;
    size_t one = 0; // the largest batch so far
    for (int64_t i = 0; i < prefetch->slot_count; i++)
        if (prefetch->stores[i].bytes > one) one = prefetch->stores[i].bytes;
    prefetch->was_full = false;
    if (one > AUTO_MOST_BYTES / (size_t)(depth + prefetch->held)) return;
    prefetch->limit = depth + prefetch->held;
    prefetch->resting = false;
}

static bool prefetch_ends(int64_t block)
{
    return block < 0 && block != BEL_BLOCK_EMPTY;
}

// Waits for an index to read and for its block; false: nothing more to do. Called, and returns,
// with the lock held. The wait has no deadline, since bel_prefetch_stop always ends it.
static bool claim(bel_prefetch *prefetch, int64_t *out_index, int64_t *out_block)
{
    while (!prefetch->stop && prefetch->next < prefetch->end &&
           (prefetch->asking || rests(prefetch)))
        pthread_cond_wait(&prefetch->may_claim, &prefetch->mutex);
    if (prefetch->stop || prefetch->next >= prefetch->end) return false;

    int64_t index = prefetch->next++;
    take_store(prefetch, slot_of(prefetch, index));
    prefetch->asking = true;
    pthread_mutex_unlock(&prefetch->mutex);
    int64_t block = prefetch->order(prefetch->context, index);
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->asking = false;
    bool over = prefetch_ends(block);
    if (over) {
        prefetch->end = index;
        pthread_cond_signal(&prefetch->may_take);
    }
    pthread_cond_broadcast(&prefetch->may_claim);
    *out_index = index;
    *out_block = block;
    return !over;
}

void bel_prefetch_cancel_by(bel_prefetch *prefetch, bel_prefetch_cancelled *cancelled,
                            const void *context)
{
    prefetch->cancelled = cancelled;
    prefetch->cancelled_context = context;
}

static bel_status *read_block(const bel_prefetch *prefetch, int64_t block, bel_batch *batch)
{
    if (block != BEL_BLOCK_EMPTY) return bel_input_read(prefetch->input, block, batch);
    batch->block = block;
    batch->position_count = 0;
    bel_batch_set_count(batch, 0);
    return NULL;
}

// Looks whether a growing file has the records of a block. An error that stays is left to the
// reading of the block; after another one, such as a failed stat, the file is looked at again.
static bool has_records(const bel_prefetch *prefetch, int64_t block)
{
    int64_t missing;
    if (block < 0) return true;
    bel_status *status = bel_input_look(prefetch->input, block, &missing);
    bel_code code = bel_status_code(status);
    bool reads = status == NULL ? missing == 0 : bel_input_error_stays(code);
    bel_status_ignore(status); // see above
    return reads;
}

// Waits until the records of a growing file are there. The master begins a step when it has seen
// them. So readers wait here only for blocks of later steps, or until this host sees what the
// master saw; the consumer limits that (await_limit). False: reading ends first.
static bool await_records(bel_prefetch *prefetch, int64_t block)
{
    bool stop = false;
    while (!stop && !has_records(prefetch, block)) {
        int64_t deadline = bel_clock_ns() + LOOK_MS * INT64_C(1000000);
        pthread_mutex_lock(&prefetch->mutex);
        while (!prefetch->stop && bel_clock_ns() < deadline)
            (void)bel_cond_wait_until(&prefetch->may_claim, &prefetch->mutex, deadline);
        stop = prefetch->stop;
        pthread_mutex_unlock(&prefetch->mutex);
    }
    return !stop;
}

// Limits the consumer's wait since `begun` for records of a growing file. NULL: it may wait on. It
// asks only for blocks whose records the master has seen.
static bel_status *await_limit(const bel_prefetch *prefetch, int64_t begun)
{
    enum { SPARE_SECS = 60 }; // a network file system may know a file's size of a minute ago
    if (prefetch->cancelled != NULL && prefetch->cancelled(prefetch->cancelled_context))
        return BEL_ERR(BEL_CANCELLED, "training is ending");
    double waited = (double)(bel_clock_awake_ns() - begun) * 1e-9;
    if (waited < bel_input_follow_secs(prefetch->input) + SPARE_SECS) return NULL;
    return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                   "%s: the master has seen rows that are not here after %.0f s; hint: the hosts "
                   "of a job share the file that it follows",
                   bel_input_followed(prefetch->input), waited);
}

// Waits for the records of a block that the consumer reads itself.
static bel_status *await_now(const bel_prefetch *prefetch, int64_t block)
{
    const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000L};
    for (int64_t begun = bel_clock_awake_ns(); !has_records(prefetch, block);) {
        BEL_TRY(await_limit(prefetch, begun));
        (void)nanosleep(&nap, NULL);
    }
    return NULL;
}

// A slot belongs to its reader from claim until `ready`, then to the consumer until it is released:
// so batches are read and used without the lock.
static void *reader_main(void *argument)
{
    bel_prefetch *prefetch = argument;
    int64_t index, block;
    bel_linux_give_way();
    pthread_mutex_lock(&prefetch->mutex);
    while (claim(prefetch, &index, &block)) {
        slot *mine = slot_of(prefetch, index);
        store *its = mine->store;
        pthread_mutex_unlock(&prefetch->mutex);
        bool there = await_records(prefetch, block);
        bel_status *status = there ? read_block(prefetch, block, its->batch) : NULL;
        size_t bytes = bel_batch_bytes(its->batch);
        pthread_mutex_lock(&prefetch->mutex);
        prefetch->bytes += bytes - its->bytes;
        its->bytes = bytes;
        mine->status = status;
        mine->ready = true;
        if (++prefetch->ready >= prefetch->limit - prefetch->held) prefetch->was_full = true;
        pthread_cond_signal(&prefetch->may_take);
    }
    pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

// Whether several threads may read if the dataset does not say so: they call no function of the
// user's, and no record requires passing through an epoch.
static bool is_read_by_any(const bel_description *description)
{
    bel_source_tag kind = description->source.kind;
    bool any = kind == BEL_SOURCE_CSV || kind == BEL_SOURCE_IDX || kind == BEL_SOURCE_MEMORY ||
               kind == BEL_SOURCE_MEMORY_TABLE;
    for (size_t i = 0; i < description->stage_count; i++)
        any = any && description->stages[i].kind != BEL_STAGE_SLIDE;
    return any && description->map_count == 0;
}

bel_status *bel_prefetch_start(const bel_input *input, bel_block_order *order, void *context,
                               int held, const bel_batch_watch *watch, int threads,
                               bel_prefetch **out_prefetch)
{
    int thread_count = input->description.prefetch_thread_count;
    int depth = input->description.prefetch_depth;
    bool automatic = depth == BEL_PREFETCH_AUTO;
    if (thread_count == BEL_PREFETCH_AUTO) {
        thread_count = is_read_by_any(&input->description) ? threads : 1;
        if (!automatic && thread_count > depth) thread_count = depth;
    }
    if (automatic) depth = AUTO_DEPTH;
    if (depth == 0) thread_count = 0;
    if (depth < thread_count) depth = thread_count; // otherwise some would be idle
    int most = automatic && depth < AUTO_MOST ? AUTO_MOST : depth;
    bel_prefetch *prefetch = bel_xcalloc(1, sizeof *prefetch);
    *prefetch = (bel_prefetch){
        .input = input,
        .order = order,
        .context = context,
        .watch = watch != NULL ? *watch : (bel_batch_watch){.note = NULL},
        .slot_count = (int64_t)most + held,
        .held = held,
        .limit = (int64_t)depth + held,
        .automatic = automatic,
        .end = INT64_MAX,
    };
    bel_input_join(input, &prefetch->reader);
    pthread_mutex_init(&prefetch->mutex, NULL);
    bel_cond_init(&prefetch->may_claim);
    bel_cond_init(&prefetch->may_take);
    prefetch->slots = bel_xcalloc((size_t)prefetch->slot_count, sizeof *prefetch->slots);
    prefetch->stores = bel_xcalloc((size_t)prefetch->slot_count, sizeof *prefetch->stores);
    prefetch->spare = bel_xcalloc((size_t)prefetch->slot_count, sizeof *prefetch->spare);
    while (prefetch->spare_count < prefetch->slot_count) { // the first one is on top
        prefetch->spare[prefetch->spare_count] =
            &prefetch->stores[prefetch->slot_count - 1 - prefetch->spare_count];
        prefetch->spare_count++;
    }
    prefetch->threads = bel_xcalloc((size_t)thread_count, sizeof *prefetch->threads);
    for (int i = 0; i < thread_count; i++) {
        bel_status *status = bel_thread_start(&prefetch->threads[i], reader_main, prefetch);
        if (status != NULL) {
            bel_prefetch_stop(prefetch);
            return status;
        }
        prefetch->thread_count++;
    }
    bel_log_write(BEL_LOG_DEBUG, "prefetch of %d batches by %d threads", depth, thread_count);
    *out_prefetch = prefetch;
    return NULL;
}

// Waits until batch `taken` is ready or the order ended before it. Called with the lock held. A
// batch that does not come is logged, as only the user can tell whether a map or a file system is
// stuck. Only the wait for a growing file can fail.
static bel_status *wait_for_batch(bel_prefetch *prefetch)
{
    const int64_t second = 1000000000, start = bel_clock_ns(), begun = bel_clock_awake_ns();
    const bool grows = bel_input_follow_secs(prefetch->input) > 0;
    int64_t stalled_seconds = 0, looked = start;
    while (!slot_of(prefetch, prefetch->taken)->ready && prefetch->taken < prefetch->end) {
        int64_t stalled = start + (stalled_seconds + STALL_SECONDS) * second;
        int64_t deadline = grows && looked + second / 2 < stalled ? looked + second / 2 : stalled;
        if (bel_cond_wait_until(&prefetch->may_take, &prefetch->mutex, deadline)) continue;
        looked = bel_clock_ns();
        if (grows) BEL_TRY(await_limit(prefetch, begun));
        if (looked < stalled) continue;
        stalled_seconds += STALL_SECONDS;
        pthread_mutex_unlock(&prefetch->mutex);
        bel_log_write(BEL_LOG_WARN,
                      "input: waiting for a batch since %lld s; is a map function or a file stuck?",
                      (long long)stalled_seconds);
        pthread_mutex_lock(&prefetch->mutex);
    }
    return NULL;
}

// Depth 0: reads a batch on the calling thread, into one slot per held batch.
static bel_status *read_now(bel_prefetch *prefetch, const bel_batch **out_batch)
{
    slot *next = slot_of(prefetch, prefetch->next);
    if (next->store == NULL) take_store(prefetch, next);
    store *own = next->store;
    bel_batch *batch = own->batch;
    int64_t block = prefetch->next < prefetch->end
                        ? prefetch->order(prefetch->context, prefetch->next)
                        : BEL_BLOCK_END;
    if (prefetch_ends(block)) {
        prefetch->end = prefetch->next;
        *out_batch = NULL;
        return NULL;
    }
    prefetch->next++;
    BEL_TRY(await_now(prefetch, block));
    bel_status *status = read_block(prefetch, block, batch);
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->bytes = own->bytes = bel_batch_bytes(batch);
    pthread_mutex_unlock(&prefetch->mutex);
    if (status == NULL) *out_batch = batch;
    return status;
}

// Blocks come in order, so those before a batch that was read are passed.
static void pass_batch(bel_prefetch *prefetch, const bel_batch *batch)
{
    if (batch == NULL) return;
    bel_input_pass(prefetch->input, &prefetch->reader,
                   batch->block >= 0 ? batch->block : INT64_MAX);
}

bel_status *bel_prefetch_take(bel_prefetch *prefetch, const bel_batch **out_batch)
{
    if (prefetch->thread_count == 0) {
        BEL_TRY(read_now(prefetch, out_batch));
        pass_batch(prefetch, *out_batch);
        return NULL;
    }
    pthread_mutex_lock(&prefetch->mutex);
    prefetch_release(prefetch);
    if (prefetch->ready == 0) prefetch_deepen(prefetch);
    if (!rests(prefetch)) pthread_cond_broadcast(&prefetch->may_claim);
    const bel_batch *batch = NULL;
    bel_status *status = wait_for_batch(prefetch);
    if (status == NULL && prefetch->taken < prefetch->end) {
        slot *taken = slot_of(prefetch, prefetch->taken++);
        prefetch->ready--;
        batch = taken->store->batch;
        status = taken->status;
        taken->status = NULL;
        taken->ready = false;
    }
    pthread_mutex_unlock(&prefetch->mutex);
    BEL_TRY(status);
    pass_batch(prefetch, batch);
    *out_batch = batch;
    return NULL;
}

const bel_batch *bel_prefetch_peek(bel_prefetch *prefetch)
{
    if (prefetch->thread_count == 0) return NULL;
    pthread_mutex_lock(&prefetch->mutex);
    const slot *next = slot_of(prefetch, prefetch->taken);
    bool there = prefetch->taken < prefetch->next && next->ready && next->status == NULL;
    const bel_batch *batch = there ? next->store->batch : NULL;
    pthread_mutex_unlock(&prefetch->mutex);
    return batch;
}

int64_t bel_prefetch_bytes(bel_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->mutex);
    size_t bytes = prefetch->bytes;
    pthread_mutex_unlock(&prefetch->mutex);
    return (int64_t)bytes;
}

int bel_prefetch_depth(bel_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->mutex);
    int64_t limit = prefetch->limit;
    pthread_mutex_unlock(&prefetch->mutex);
    return (int)(limit - prefetch->held);
}

int bel_prefetch_threads(const bel_prefetch *prefetch)
{
    return prefetch->thread_count;
}

void bel_prefetch_stop(bel_prefetch *prefetch)
{
    if (prefetch == NULL) return;
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->stop = true;
    pthread_cond_broadcast(&prefetch->may_claim);
    pthread_mutex_unlock(&prefetch->mutex);
    for (int i = 0; i < prefetch->thread_count; i++)
        pthread_join(prefetch->threads[i], NULL);
    bel_input_leave(prefetch->input, &prefetch->reader);
    for (int64_t i = 0; i < prefetch->slot_count; i++) {
        bel_status_destroy(prefetch->slots[i].status);
        bel_batch_destroy(prefetch->stores[i].batch);
    }
    bel_free(prefetch->spare);
    bel_free(prefetch->stores);
    bel_free(prefetch->threads);
    bel_free(prefetch->slots);
    pthread_cond_destroy(&prefetch->may_claim);
    pthread_cond_destroy(&prefetch->may_take);
    pthread_mutex_destroy(&prefetch->mutex);
    bel_free(prefetch);
}
