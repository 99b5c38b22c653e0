// A file that grows. Its bytes stay where they are in memory (file_view.h), so only the index
// changes: one thread extends it, and the readers of rows exclude that by a read lock. The number
// of rows is also an atomic, so that a look at rows that are there takes no lock.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "input/table/csv_index.h"
#include "input/table/csv_set.h"

typedef struct bel_csv_growth {
    pthread_rwlock_t lock; // written to by the thread that extends the index
    atomic_llong rows;
    bel_csv_label label;
    bool keep_bad;
    bel_status *error; // under the lock: the first one, after which nothing is indexed
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
    BEL_TRY(bel_file_view_grow(&file->view, file->path));
    const char *from = file->view.data + file->grown;
    const char *seen = file->view.data + file->view.size;
    if (from < file->rows) from = file->rows;
    const char *end = bel_csv_complete_end(from, seen);
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
    pthread_rwlock_destroy(&g->lock);
    bel_status_destroy(g->error);
    bel_free(g);
}

bel_status *bel_csv_set_follow(bel_csv_set *set, const bel_csv_label *label, bool keep_bad)
{
    bel_csv_file *file = &set->files[0];
    BEL_TRY(bel_csv_file_grow(file, label, keep_bad));
    growth *g = bel_xcalloc(1, sizeof *g);
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

bel_status *bel_csv_set_look(const bel_csv_set *set, int64_t wanted, int64_t *out_rows)
{
    growth *g = set->growth;
    *out_rows = atomic_load(&g->rows);
    if (*out_rows >= wanted) return NULL;
    pthread_rwlock_wrlock(&g->lock);
    if (g->error == NULL) g->error = bel_csv_file_grow(&set->files[0], &g->label, g->keep_bad);
    bel_status *status = g->error != NULL ? again(g->error) : NULL;
    atomic_store(&g->rows, (long long)set->files[0].row_starts.count);
    pthread_rwlock_unlock(&g->lock);
    *out_rows = atomic_load(&g->rows);
    if (*out_rows < wanted) return status;
    bel_status_ignore(status); // these rows were before it
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
