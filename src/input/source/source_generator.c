// Source of records that user functions make: by number, or sequentially.
//
// A sequential generator only moves forward, so a record is reached by making those before it.
// Several generators are kept, each at some position of an epoch: a read uses the nearest one
// before its record, or begins the epoch again. Threads that read ahead ask for rising numbers, so
// each soon has a generator that only moves forward. Checkpoints hold no generator state: a run
// that resumes in the middle of an epoch passes through the epoch up to there.
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "input/source/packed_record.h"
#include "input/source/record_stream.h"

// A running generator. In use it belongs to one thread.
typedef struct running {
    void *state;
    int64_t epoch, next; // the next record that it makes
    bool in_use;
    bel_arena *arena; // memory of skipped records
    bel_record passed;
} running;

enum { MOST_IDLE = 16, RESTARTS_TOLD = 1000 };

// Mutable state: the generators that are kept.
typedef struct pool {
    pthread_mutex_t mutex;
    running **items;
    size_t count, capacity;
    int64_t begun;
} pool;

typedef struct generator_source {
    bel_source base;
    const bel_generator_description *generator;
    pool *pool; // for sequential generators
} generator_source;

static bel_status *take_stuck(bel_status *status, bel_record *record)
{
    bel_status *stuck = bel_record_take_status(record);
    if (status == NULL) return stuck;
    bel_status_ignore(stuck); // most likely what `status` is about
    return status;
}

// --- By number -----------------------------------------------------------------------------------

static bel_status *function_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                    bel_record *record, bool *out_skip)
{
    (void)cursor;
    (void)out_skip;
    const bel_generator_description *generator = ((const generator_source *)base)->generator;
    bel_status *status = generator->make(generator->user, at.number, record);
    BEL_TRY_CTX(take_stuck(status, record), "generator: record %lld", (long long)at.number);
    return NULL;
}

// --- Sequential ----------------------------------------------------------------------------------

static void running_destroy(const bel_generator_description *generator, running *it)
{
    if (it == NULL) return;
    if (it->state != NULL && generator->steps.end != NULL)
        generator->steps.end(generator->user, it->state);
    bel_record_deinit(&it->passed);
    bel_arena_destroy(it->arena);
    bel_free(it);
}

// The nearest idle generator before the record; NULL: none. Called with the lock held.
static running *find_before(pool *all, bel_position at)
{
    running *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        running *it = all->items[i];
        bool before = !it->in_use && it->epoch == at.epoch && it->next <= at.number;
        if (before && (best == NULL || it->next > best->next)) best = it;
    }
    if (best != NULL) best->in_use = true;
    return best;
}

// Removes the idle generator that has made the fewest records from the list, if there are too many.
// Called with the lock held; the caller frees it without the lock.
static running *take_surplus(pool *all)
{
    size_t idle = 0, worst = all->count;
    for (size_t i = 0; i < all->count; i++) {
        const running *it = all->items[i];
        if (it->in_use) continue;
        idle++;
        const running *now = worst == all->count ? NULL : all->items[worst];
        bool less = now == NULL || it->epoch < now->epoch ||
                    (it->epoch == now->epoch && it->next < now->next);
        if (less) worst = i;
    }
    if (idle <= MOST_IDLE) return NULL;
    running *surplus = all->items[worst];
    all->items[worst] = all->items[--all->count];
    return surplus;
}

static bel_status *generator_source_begin(const generator_source *source, int64_t epoch,
                                          running **out_running)
{
    const bel_generator_description *generator = source->generator;
    running *it = bel_xcalloc(1, sizeof *it);
    it->epoch = epoch;
    it->in_use = true;
    it->arena = bel_arena_create();
    bel_record_init(&it->passed, it->arena);
    bel_status *status = generator->steps.begin(generator->user, epoch, &it->state);
    if (status != NULL) {
        it->state = NULL;
        running_destroy(generator, it);
        return bel_status_wrap(status, __FILE__, __LINE__, "generator: epoch %lld",
                               (long long)epoch);
    }
    pool *all = source->pool;
    pthread_mutex_lock(&all->mutex);
    all->items = bel_xgrow(all->items, &all->capacity, all->count + 1, sizeof(running *));
    all->items[all->count++] = it;
    bool tell = ++all->begun == RESTARTS_TOLD;
    pthread_mutex_unlock(&all->mutex);
    if (tell) {
        bel_log_write(BEL_LOG_WARN,
                      "generator: it was begun %d times, as its records are asked for in another "
                      "order than it makes them; a cache in a file after it would help",
                      RESTARTS_TOLD);
    }
    *out_running = it;
    return NULL;
}

// Makes the next record. *out_end: the epoch ended.
static bel_status *step(const generator_source *source, running *it, bel_record *record,
                        bool *out_end)
{
    const bel_generator_description *generator = source->generator;
    *out_end = false;
    bel_status *status = generator->steps.next(generator->user, it->state, record, out_end);
    BEL_TRY_CTX(take_stuck(status, record), "generator: record %lld of epoch %lld",
                (long long)it->next, (long long)it->epoch);
    if (!*out_end) it->next++;
    return NULL;
}

// Advances to a record, which is the next one or a later one.
static bel_status *go_to(const generator_source *source, running *it, int64_t number,
                         bel_record *record)
{
    bool end = false;
    while (it->next < number && !end) {
        bel_arena_reset(it->arena);
        bel_record_begin(&it->passed, &source->base, it->next);
        BEL_TRY(step(source, it, &it->passed, &end));
    }
    if (!end) BEL_TRY(step(source, it, record, &end));
    if (!end) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "generator: epoch %lld: expected %lld records, but it ended after %lld",
                   (long long)it->epoch, (long long)source->base.record_count, (long long)it->next);
}

static bel_status *generator_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                     bel_record *record, bool *out_skip)
{
    (void)cursor;
    (void)out_skip;
    const generator_source *source = (const generator_source *)base;
    pool *all = source->pool;
    pthread_mutex_lock(&all->mutex);
    running *it = find_before(all, at);
    pthread_mutex_unlock(&all->mutex);
    if (it == NULL) BEL_TRY(generator_source_begin(source, at.epoch, &it));
    bel_status *status = go_to(source, it, at.number, record);
    pthread_mutex_lock(&all->mutex);
    it->in_use = false;
    if (status != NULL) it->next = INT64_MAX; // its next record is unknown
    running *surplus = take_surplus(all);
    pthread_mutex_unlock(&all->mutex);
    running_destroy(source->generator, surplus);
    return status;
}

// --- Source --------------------------------------------------------------------------------------

static void generator_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    (void)base;
    bel_str_printf(out_text, "record %lld", (long long)number);
}

static void generator_describe(const bel_source *base, bel_str *out_text)
{
    (void)base; // the first record is hashed, as functions cannot be compared
    (void)out_text;
}

static void generator_destroy(bel_source *base)
{
    generator_source *source = (generator_source *)base;
    pool *all = source->pool;
    for (size_t i = 0; all != NULL && i < all->count; i++)
        running_destroy(source->generator, all->items[i]);
    if (all != NULL) {
        pthread_mutex_destroy(&all->mutex);
        bel_free(all->items);
        bel_free(all);
    }
    bel_free(source);
}

static const bel_source_kind function_kind = {
    .name = "function",
    .combine = function_combine,
    .origin = generator_origin,
    .describe = generator_describe,
    .destroy = generator_destroy,
};

static const bel_source_kind generator_kind = {
    .name = "generator",
    .combine = generator_combine,
    .origin = generator_origin,
    .describe = generator_describe,
    .destroy = generator_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

// Counts the records of epoch 0 in one pass.
static bel_status *count_records(generator_source *source)
{
    running *it;
    BEL_TRY(generator_source_begin(source, 0, &it));
    bel_status *status = NULL;
    bool end = false;
    while (status == NULL && !end) {
        bel_arena_reset(it->arena);
        bel_record_begin(&it->passed, &source->base, it->next);
        status = step(source, it, &it->passed, &end);
    }
    source->base.record_count = it->next;
    it->next = INT64_MAX; // the epoch ended
    it->in_use = false;
    return status;
}

// Reads the first record, as the data has no other description.
static bel_status *look_at_first(generator_source *source)
{
    if (source->base.record_count == 0) return NULL;
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bool skip = false;
    bel_record_init(&record, arena);
    bel_status *status =
        bel_source_read_record(&source->base, NULL, (bel_position){0, 0}, &record, &skip);
    bel_str bytes = {0};
    if (status == NULL) bel_packed_record_write(&record, &bytes);
    if (status == NULL) source->base.content = bel_hash64(bytes.text, bytes.length);
    bel_str_deinit(&bytes);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    return status;
}

bel_status *bel_source_open_generator(const bel_generator_description *description,
                                      const bel_opening *opening, bel_source **out_source)
{
    generator_source *source = bel_xcalloc(1, sizeof *source);
    bool endless = description->record_count == BEL_REPEAT_FOREVER;
    source->generator = description;
    source->base.kind = description->make != NULL ? &function_kind : &generator_kind;
    source->base.endless = endless;
    source->base.record_count = endless ? INT64_MAX : description->record_count;
    bel_status *status = NULL;
    if (description->make == NULL) {
        source->pool = bel_xcalloc(1, sizeof *source->pool);
        pthread_mutex_init(&source->pool->mutex, NULL);
        if (description->record_count == 0) status = count_records(source);
    }
    if (status == NULL) status = bel_bad_records_pass(opening->bad, look_at_first(source));
    if (status != NULL) {
        generator_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
