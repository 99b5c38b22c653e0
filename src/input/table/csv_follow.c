// A file that grows. Its bytes stay where they are in memory (file_view.h), so only the index
// changes: one thread extends it, and the readers of rows exclude that by a read lock. The number
// of rows is also an atomic, so that a look at rows that are there takes no lock.
//
// One thread at a time looks at the file itself, under a mutex. All threads that wait for rows look
// often, so a look soon after another one returns what that one has seen.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "input/table/csv_index.h"
#include "input/table/csv_set.h"

enum { LOOK_NS = 10000000 };

typedef struct bel_csv_growth {
    pthread_mutex_t mutex; // guards the file's view and the fields below; taken before the lock
    pthread_rwlock_t lock; // written to by the thread that extends the index
    atomic_llong rows;
    bel_csv_label label;
    bool keep_bad;
    int64_t looked_ns;
    bel_status *error; // the first one that stays, after which nothing is indexed
    bel_status *lost;  // the file is not the one whose rows are indexed: they cannot be read either
} growth;

// The first line tells logs apart. Rows follow while the file is open, so they cannot.
static uint64_t hash_first_line(const bel_csv_file *file)
{
    const char *end = memchr(file->text, '\n', (size_t)(file->end - file->text));
    size_t length = (size_t)((end != NULL ? end : file->end) - file->text);
    return bel_hash64(file->text, length);
}

bel_status *bel_csv_set_open_growing(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                                     int path_count, char delimiter, const char *const **out_paths)
{
    if (path_count != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected one file to follow, got %d", path_count);
    set->files = bel_arena_alloc(arena, sizeof *set->files);
    set->first_row = bel_arena_alloc(arena, sizeof *set->first_row);
    set->count = 1;
    const char **copy = bel_arena_alloc(arena, sizeof *copy);
    copy[0] = bel_arena_strdup(arena, paths[0]);
    bel_csv_file *file = &set->files[0];
    BEL_TRY(bel_csv_file_open_growing(file, copy[0], delimiter));
    set->names = bel_hash64_more(0, file->path, strlen(file->path) + 1);
    set->content = hash_first_line(file);
    *out_paths = copy;
    return NULL;
}

bel_status *bel_csv_file_grow(bel_csv_file *file, const bel_csv_label *label, bool keep_bad)
{
    const char *from = file->view.data + file->grown;
    const char *seen = file->view.data + file->view.size;
    if (from < file->rows) from = file->rows;
    const char *end = bel_csv_complete_end(from, seen, file->delimiter);
    if (end == from) {
        if (seen - from < BEL_CSV_LONGEST_ROW) return NULL;
        return bel_csv_file_error(file, from,
                                  "expected a row of at most %d bytes; hint: is a quote open?",
                                  BEL_CSV_LONGEST_ROW);
    }
    file->end = end;
    file->grown = (size_t)(end - file->view.data);
    return bel_csv_file_index_from(file, from, label, keep_bad);
}

static void growth_destroy(growth *g)
{
    if (g == NULL) return;
    pthread_mutex_destroy(&g->mutex);
    pthread_rwlock_destroy(&g->lock);
    bel_status_destroy(g->error);
    bel_status_destroy(g->lost);
    bel_free(g);
}

bel_status *bel_csv_set_follow(bel_csv_set *set, const bel_csv_label *label, bool keep_bad)
{
    bel_csv_file *file = &set->files[0];
    BEL_TRY(bel_csv_file_grow(file, label, keep_bad));
    growth *g = bel_xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->mutex, NULL);
    pthread_rwlock_init(&g->lock, NULL);
    g->label = *label;
    g->keep_bad = keep_bad;
    atomic_init(&g->rows, (long long)file->row_starts.count);
    set->growth = g;
    return NULL;
}

void bel_csv_set_end_growth(bel_csv_set *set)
{
    growth_destroy(set->growth);
    set->growth = NULL;
}

static bel_status *again(const bel_status *error)
{
    return BEL_ERR(bel_status_code(error), "%s", bel_status_message(error));
}

// Keeps the error if no later look could find the file as it was.
static bel_status *keep_lost(growth *g, bel_status *status)
{
    if (bel_status_code(status) != BEL_DATA_LOSS) return status;
    g->lost = status;
    return again(status);
}

static bel_status *check_locked(const bel_csv_set *set)
{
    growth *g = set->growth;
    const bel_csv_file *file = &set->files[0];
    if (g->lost != NULL) return again(g->lost);
    return keep_lost(g, bel_file_view_check(&file->view, file->path));
}

// A bad row, and an index without memory, stay. Other errors of the file may pass.
static bel_status *look_locked(const bel_csv_set *set)
{
    growth *g = set->growth;
    bel_csv_file *file = &set->files[0];
    if (g->lost != NULL) return again(g->lost);
    if (g->error != NULL) return again(g->error);
    int64_t now = bel_clock_ns();
    if (g->looked_ns > 0 && now - g->looked_ns < LOOK_NS) return NULL;
    size_t size = file->view.size;
    BEL_TRY(keep_lost(g, bel_file_view_grow(&file->view, file->path)));
    g->looked_ns = now; // not after an error, which each call returns
    if (file->view.size == size) return NULL;
    pthread_rwlock_wrlock(&g->lock);
    g->error = bel_csv_file_grow(file, &g->label, g->keep_bad);
    atomic_store(&g->rows, (long long)file->row_starts.count);
    pthread_rwlock_unlock(&g->lock);
    return g->error != NULL ? again(g->error) : NULL;
}

bel_status *bel_csv_set_look(const bel_csv_set *set, int64_t wanted, int64_t *out_rows)
{
    growth *g = set->growth;
    *out_rows = atomic_load(&g->rows);
    if (*out_rows >= wanted) return NULL;
    pthread_mutex_lock(&g->mutex);
    bel_status *status = look_locked(set);
    pthread_mutex_unlock(&g->mutex);
    *out_rows = atomic_load(&g->rows);
    if (*out_rows < wanted) return status;
    bel_status_ignore(status); // these rows were before it
    return NULL;
}

bel_status *bel_csv_set_check_growth(const bel_csv_set *set)
{
    pthread_mutex_lock(&set->growth->mutex);
    bel_status *status = check_locked(set);
    pthread_mutex_unlock(&set->growth->mutex);
    return status;
}

void bel_csv_set_unfinished(const bel_csv_set *set, bel_str *out_text)
{
    growth *g = set->growth;
    const bel_csv_file *file = &set->files[0];
    pthread_mutex_lock(&g->mutex);
    const char *from = file->view.data + file->grown, *seen = file->view.data + file->view.size;
    if (from < file->rows) from = file->rows;
    while (from < seen && (*from == '\n' || *from == '\r'))
        from++;
    if (from < seen)
        bel_str_printf(out_text, "%zu bytes from %s:%lld on are no whole row",
                       (size_t)(seen - from), file->path, (long long)bel_csv_file_line(file, from));
    pthread_mutex_unlock(&g->mutex);
}

bel_status *bel_csv_set_mark(const bel_csv_set *set, int64_t rows, bel_str *out_text)
{
    enum { MARKED = 64 << 10 };
    BEL_TRY(bel_csv_set_check_growth(set));
    BEL_TRY(bel_csv_set_enter(set, rows - 1));
    const bel_csv_file *file = &set->files[0];
    const char *row = file->text + bel_offset_list_at(&file->row_starts, (size_t)(rows - 1));
    const char *line = memchr(row, '\n', (size_t)(file->end - row));
    const char *end = line != NULL ? line + 1 : file->end;
    size_t size = (size_t)(end - file->text), piece = size < MARKED ? size : MARKED;
    uint64_t hash = bel_hash64_more(bel_hash64(file->text, piece), end - piece, piece);
    bel_str_printf(out_text, "%lld rows, %zu bytes, %016llx", (long long)rows, size,
                   (unsigned long long)hash);
    bel_csv_set_leave(set);
    return NULL;
}

bel_status *bel_csv_set_enter(const bel_csv_set *set, int64_t number)
{
    if (set->growth == NULL) return NULL;
    int64_t rows;
    BEL_TRY(bel_csv_set_look(set, number + 1, &rows));
    if (rows <= number)
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected record %lld, got only %lld so far",
                       set->files[0].path, (long long)number, (long long)rows);
    pthread_rwlock_rdlock(&set->growth->lock);
    return NULL;
}

void bel_csv_set_leave(const bel_csv_set *set)
{
    if (set->growth != NULL) pthread_rwlock_unlock(&set->growth->lock);
}
