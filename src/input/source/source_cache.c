// Cache of the records of a dataset: in memory, each when it is first read, up to a limit; or in a
// file, all when the dataset is opened. The cache holds epoch 0, so a shuffle inside would be lost,
// and is refused.
//
// In memory any number of threads may find a record missing and make it. The first to store it
// wins, and the others drop theirs, which are equal. When the limit is reached, records that are
// not stored are made on each read.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "input/files/cache_file.h"
#include "input/source/packed_record.h"
#include "input/source/record_stream.h"

typedef struct kept_record {
    size_t size;
    char bytes[];
} kept_record;

// Mutable state of a cache in memory; all of it is atomic.
typedef struct memory_cache {
    _Atomic(kept_record *) *places; // pages
    size_t place_bytes;
    int64_t most_bytes; // 0: no limit
    atomic_llong held_bytes;
    atomic_bool told_full;
} memory_cache;

typedef struct cache_source {
    bel_source base;
    const bel_cache_description *cache;
    bel_cache_file file;  // used with a path
    memory_cache *memory; // used without a path
} cache_source;

// --- Memory --------------------------------------------------------------------------------------

// Keeps the record unless there is no room.
static void memory_cache_keep(memory_cache *memory, int64_t number, const bel_record *record)
{
    int64_t limit = memory->most_bytes;
    if (limit > 0 && atomic_load(&memory->held_bytes) >= limit) return;
    bel_str bytes = {0};
    bel_packed_record_write(record, &bytes);
    int64_t size = (int64_t)(sizeof(kept_record) + bytes.length);
    int64_t held = atomic_fetch_add(&memory->held_bytes, size) + size;
    if (limit > 0 && held > limit) {
        if (!atomic_exchange(&memory->told_full, true)) {
            char text[32];
            bel_log_write(BEL_LOG_INFO,
                          "cache: its %s are full; other records are made whenever they are read",
                          bel_bytes_text((uint64_t)limit, text));
        }
    } else {
        kept_record *made = bel_xmalloc((size_t)size), *nobody = NULL;
        made->size = bytes.length;
        memcpy(made->bytes, bytes.text, bytes.length);
        if (!atomic_compare_exchange_strong(&memory->places[number], &nobody, made)) {
            bel_free(made); // another thread stored it first
            atomic_fetch_sub(&memory->held_bytes, size);
        }
    }
    bel_str_deinit(&bytes);
}

static bel_status *read_through(const cache_source *source, bel_cursor *cursor, int64_t number,
                                bel_record *record, bool *out_skip)
{
    const kept_record *kept = atomic_load(&source->memory->places[number]);
    if (kept != NULL) {
        bel_record_begin(record, &source->base, number);
        return bel_packed_record_read(kept->bytes, kept->size, record, out_skip);
    }
    BEL_TRY(bel_record_stream_read(source->base.inner[0], cursor->inner[0], 0, number, record,
                                   out_skip));
    memory_cache_keep(source->memory, number, *out_skip ? NULL : record);
    return NULL;
}

static void memory_cache_destroy(memory_cache *memory)
{
    if (memory == NULL) return;
    for (size_t i = 0; i < memory->place_bytes / sizeof *memory->places; i++)
        bel_free(atomic_load(&memory->places[i]));
    bel_pages_destroy(memory->places, memory->place_bytes);
    bel_free(memory);
}

// --- Source --------------------------------------------------------------------------------------

static bel_status *cache_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                 bel_record *record, bool *out_skip)
{
    const cache_source *source = (const cache_source *)base;
    if (source->memory != NULL) return read_through(source, cursor, at.number, record, out_skip);
    const char *data;
    size_t size;
    BEL_TRY(bel_cache_file_get(&source->file, at.number, &data, &size));
    bel_record_begin(record, base, at.number);
    return bel_packed_record_read(data, size, record, out_skip);
}

static void cache_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const char *path = ((const cache_source *)base)->cache->path;
    bel_str_printf(out_text, "%s: record %lld", path == NULL ? "cache" : path, (long long)number);
}

static bel_status *cache_check(const bel_source *base, int64_t block)
{
    (void)block;
    const cache_source *source = (const cache_source *)base;
    // A removed file is still mapped; the next process that needs it makes it again.
    if (source->cache->path == NULL || !bel_file_exists(source->file.path)) return NULL;
    return bel_file_view_check(&source->file.view, source->file.path);
}

// The cache's path and limit are not described, as they do not change the records.
static void cache_describe(const bel_source *base, bel_str *out_text)
{
    (void)base;
    (void)out_text;
}

static void cache_destroy(bel_source *base)
{
    cache_source *source = (cache_source *)base;
    memory_cache_destroy(source->memory);
    bel_cache_file_close(&source->file);
    bel_free(source);
}

static const bel_source_kind cache_kind = {
    .name = "cache",
    .check = cache_check,
    .combine = cache_combine,
    .origin = cache_origin,
    .describe = cache_describe,
    .destroy = cache_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

typedef struct making {
    const bel_record_stream *stream;
    bel_cursor *cursor;
    bel_record record;
} making;

static bel_status *make_record(void *context, int64_t number, bel_str *out)
{
    making *m = context;
    bool skip;
    bel_arena_reset(m->record.arena);
    bel_status *status = bel_record_stream_read(m->stream, m->cursor, 0, number, &m->record, &skip);
    if (status == NULL) {
        bel_packed_record_write(skip ? NULL : &m->record, out);
        return NULL;
    }
    // The error is stored, so that each reader counts the bad record: its limit may be lower.
    bel_packed_record_write_error(status, out);
    return bel_bad_records_pass(m->stream->bad, status);
}

static bel_status *open_file(cache_source *source)
{
    const bel_record_stream *inner = source->base.inner[0];
    bel_str text = {0};
    bel_record_stream_describe(inner, 0, &text);
    uint64_t key = bel_hash64(text.text, text.length);
    bel_str_deinit(&text);
    bel_arena *arena = bel_arena_create();
    making m = {.stream = inner, .cursor = bel_cursor_create(inner)};
    bel_record_init(&m.record, arena);
    bel_status *status = bel_cache_file_open(&source->file, source->cache->path, key,
                                             source->base.record_count, make_record, &m);
    bel_record_deinit(&m.record);
    bel_cursor_destroy(m.cursor);
    bel_arena_destroy(arena);
    return status;
}

static bel_status *cache_source_prepare(cache_source *source)
{
    if (source->base.inner[0]->positions.endless) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cache: the dataset is repeated forever; repeat what comes out instead");
    }
    if (source->cache->path != NULL) return open_file(source);
    size_t bytes = ((size_t)source->base.record_count + 1) * sizeof(_Atomic(kept_record *));
    void *places;
    BEL_TRY(bel_pages_create(bytes, false, "a cache of records", &places));
    source->memory = bel_xcalloc(1, sizeof *source->memory);
    source->memory->places = places;
    source->memory->place_bytes = bytes;
    source->memory->most_bytes = source->cache->most_bytes;
    return NULL;
}

bel_status *bel_source_open_cache(const bel_source_description *description,
                                  bel_record_stream **inner, bel_source **out_source)
{
    cache_source *source = bel_xcalloc(1, sizeof *source);
    source->cache = &description->cache;
    source->base = (bel_source){
        .kind = &cache_kind,
        .inner = inner,
        .inner_count = 1,
        .record_count = inner[0]->positions.length,
        .names = inner[0]->source->names,
    };
    if (inner[0]->known) {
        source->base.fields = inner[0]->fields;
        source->base.field_count = inner[0]->field_count;
    }
    bel_status *status = cache_source_prepare(source);
    if (status != NULL) {
        cache_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
