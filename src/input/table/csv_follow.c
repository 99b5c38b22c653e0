// A file that grows, or files that appear. Readers of rows exclude changes of the index by a read
// lock. The number of rows is also an atomic, so that a look at rows that are there takes no lock.
//
// The index begins where a mark says, after the rows that were learned. It grows when rows are
// wanted that it does not have, some megabytes at a time, and loses the rows that all readers have
// passed. So its memory depends on the rows between them, and not on the size of the file.
//
// One thread at a time looks at the file that grows, under a mutex. All threads that wait for rows
// look often, so a look soon after another one returns what that one has seen. csv_appear.c has the
// thread that looks for files.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/thread.h"
#include "input/files/paths.h"
#include "input/table/csv_growth.h"
#include "input/table/csv_jsonl.h"

enum { LOOK_NS = 10000000 };

// The first line tells logs apart. Rows follow while the file is open, so they cannot.
static uint64_t hash_first_line(const bel_csv_file *file)
{
    const char *end = memchr(file->text, '\n', (size_t)(file->end - file->text));
    size_t length = (size_t)((end != NULL ? end : file->end) - file->text);
    return bel_hash64(file->text, length);
}

bel_status *bel_csv_growth_refuse_objects(const char *path)
{
    if (!bel_csv_is_jsonl(path)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected CSV: a table of JSONL cannot be followed",
                   path);
}

static bel_status *open_one(bel_csv_set *set, bel_arena *arena, const char *path, char delimiter,
                            const char *const **out_paths)
{
    BEL_TRY(bel_csv_growth_refuse_objects(path));
    const char **copy = bel_arena_alloc(arena, sizeof *copy);
    set->files = bel_xcalloc(1, sizeof *set->files);
    set->first_row = bel_xcalloc(1, sizeof *set->first_row);
    set->count = 1;
    BEL_TRY(bel_path_expand_one(arena, path, &copy[0]));
    BEL_TRY(bel_csv_file_open_growing(&set->files[0], copy[0], delimiter));
    *out_paths = copy;
    return NULL;
}

bel_status *bel_csv_set_open_growing(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                                     int path_count, char delimiter, const char *const **out_paths)
{
    if (path_count != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected one path to follow, got %d", path_count);
    bool appear = bel_path_is_pattern(paths[0]);
    set->followed = true;
    BEL_TRY((appear ? bel_csv_appear_open : open_one)(set, arena, paths[0], delimiter, out_paths));
    const char *name = appear ? paths[0] : set->files[0].path;
    set->names = bel_hash64_more(0, name, strlen(name) + 1);
    set->content = hash_first_line(&set->files[0]);
    return NULL;
}

// --- Begin and end -------------------------------------------------------------------------------

static void growth_destroy(bel_csv_growth *g)
{
    if (g == NULL) return;
    pthread_mutex_lock(&g->mutex);
    g->ends = true;
    pthread_cond_broadcast(&g->may_end);
    pthread_mutex_unlock(&g->mutex);
    if (g->looks) pthread_join(g->looker, NULL);
    pthread_cond_destroy(&g->may_end);
    pthread_cond_destroy(&g->may_read);
    pthread_mutex_destroy(&g->mutex);
    pthread_rwlock_destroy(&g->lock);
    bel_status_destroy(g->error);
    bel_status_destroy(g->lost);
    bel_status_destroy(g->passing);
    bel_arena_destroy(g->texts);
    bel_free(g->appeared);
    bel_free(g->header);
    bel_free(g);
}

bel_status *bel_csv_set_follow(bel_csv_set *set, const bel_csv_label *label, bool keep_bad)
{
    bel_csv_growth *g = bel_xcalloc(1, sizeof *g);
    const bel_csv_file *first = &set->files[0];
    pthread_mutex_init(&g->mutex, NULL);
    pthread_rwlock_init(&g->lock, NULL);
    bel_cond_init(&g->may_end);
    bel_cond_init(&g->may_read);
    g->set = set;
    g->texts = bel_arena_create();
    g->label = *label;
    g->keep_bad = keep_bad;
    g->header_size = (size_t)(first->rows - first->text);
    g->header = bel_xmalloc(g->header_size + 1);
    memcpy(g->header, first->text, g->header_size);
    set->growth = g;
    if (set->pattern == NULL) return NULL;
    return bel_csv_appear_start(g);
}

void bel_csv_set_end_growth(bel_csv_set *set)
{
    growth_destroy(set->growth);
    set->growth = NULL;
}

// Reads the mark of rows that training has learned. Without one, others could be taken for them.
static bel_status *read_mark(const bel_csv_set *set, int64_t rows, const char *mark,
                             bel_csv_mark *out_from, bool *out_old)
{
    bool reads = mark != NULL && bel_csv_mark_read(mark, out_from);
    *out_old =
        !reads && mark != NULL && set->pattern == NULL && bel_csv_mark_read_old(mark, out_from);
    if (!reads && !*out_old)
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected a mark of the %lld rows that training has read, got \"%s\"; "
                       "hint: continue with the version that saved them, or begin a new training "
                       "with --warm_start",
                       bel_csv_set_followed(set), (long long)rows, mark != NULL ? mark : "");
    if (out_from->rows != rows || (out_from->name == NULL) != (set->pattern == NULL))
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a mark of %lld rows, got %s",
                       bel_csv_set_followed(set), (long long)rows, mark);
    return NULL;
}

bel_status *bel_csv_set_begin(const bel_csv_set *set, int64_t rows, const char *mark)
{
    bel_csv_growth *g = set->growth;
    bel_csv_mark from = {0};
    bool old = false;
    if (rows > 0) BEL_TRY(read_mark(set, rows, mark, &from, &old));
    pthread_mutex_lock(&g->mutex);
    pthread_rwlock_wrlock(&g->lock);
    g->from_text = rows > 0 ? bel_arena_strdup(g->texts, mark) : NULL;
    if (from.name != NULL) from.name = g->from_text + (from.name - mark);
    g->from = from;
    g->from_old = old;
    g->begun = false;
    g->begins++;
    atomic_store(&g->rows, 0);
    atomic_store(&g->passed, 0);
    atomic_store(&g->wanted, 0);
    pthread_cond_broadcast(&g->may_end);
    pthread_rwlock_unlock(&g->lock);
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

bel_status *bel_csv_growth_again(const bel_status *error)
{
    return BEL_ERR(bel_status_code(error), "%s", bel_status_message(error));
}

bel_status *bel_csv_growth_keep_lost(bel_csv_growth *g, bel_status *status)
{
    if (bel_status_code(status) != BEL_DATA_LOSS || g->lost != NULL) return status;
    g->lost = status;
    return bel_csv_growth_again(status);
}

const char *bel_csv_set_followed(const bel_csv_set *set)
{
    return set->pattern != NULL ? set->pattern : set->files[0].path; // a path does not change
}

// --- A file that grows ---------------------------------------------------------------------------

static bel_status *other_rows(const bel_csv_growth *g)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected the rows of %s, got others",
                   bel_csv_set_followed(g->set), g->from_text);
}

// Compares the file with a mark of an earlier version, and makes one of this version from it. Each
// byte before the end of the rows is read, for the number of lines.
static bel_status *convert_mark(bel_csv_growth *g)
{
    bel_csv_file *file = &g->set->files[0];
    bel_file_view *view = &file->view;
    bel_csv_mark from = g->from;
    BEL_TRY(bel_file_view_move(view, file->path, (uint64_t)from.bytes));
    BEL_TRY(bel_file_view_move(view, file->path, 0));
    const size_t skipped = bel_utf8_mark_bytes(view->data, view->size);
    const char *text = view->data + skipped, *end = text + from.bytes;
    file->text = view->data;
    if ((uint64_t)from.bytes < g->header_size || (uint64_t)from.bytes + skipped > view->size ||
        bel_csv_mark_hash_old(&from, text) != from.hash)
        return other_rows(g);
    if (bel_csv_complete_end(text + g->header_size, end, file->delimiter) != end)
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: an earlier version has saved %s, which end within a row of several "
                       "lines; hint: continue with that version until a later checkpoint",
                       file->path, g->from_text);
    from.bytes += (int64_t)skipped;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        from.lines++;
    from.hash = bel_csv_mark_hash(&from, view);
    g->from = from;
    g->from_old = false;
    return NULL;
}

// Moves to where the index begins, if the file has the rows before it.
static bel_status *begin_locked(bel_csv_growth *g)
{
    bel_csv_set *set = g->set;
    bel_csv_file *file = &set->files[0];
    const bel_csv_mark *from = &g->from;
    if (g->from_old) BEL_TRY(convert_mark(g));
    BEL_TRY(bel_file_view_move(&file->view, file->path, (uint64_t)from->bytes));
    file->text = file->view.data;
    if (g->from_text == NULL) {
        file->text += bel_utf8_mark_bytes(file->view.data, file->view.size);
        file->rows = file->text + g->header_size;
        bel_csv_file_begin_at(file, file->rows, 0);
    } else {
        if (bel_csv_mark_hash(from, &file->view) != from->hash) return other_rows(g);
        file->rows = file->text;
        bel_csv_file_begin_at(file, file->view.data + ((uint64_t)from->bytes - file->view.base),
                              from->lines + 1);
    }
    set->first_row[0] = from->rows;
    g->begun = true;
    g->tried = UINT64_MAX;
    atomic_store(&g->rows, (long long)from->rows);
    return NULL;
}

static bel_status *begin(bel_csv_growth *g)
{
    if (g->begun) return NULL;
    pthread_rwlock_wrlock(&g->lock);
    bel_status *status = begin_locked(g);
    pthread_rwlock_unlock(&g->lock);
    return bel_csv_growth_keep_lost(g, status);
}

// Drops rows that were passed, so that each row is moved about once. `full`: at once, as the window
// has no room.
static void drop_passed(bel_csv_growth *g, bool full)
{
    enum { MOVE_AFTER = 4 << 20 };
    bel_csv_set *set = g->set;
    bel_csv_file *file = &set->files[0];
    const int64_t passed = (int64_t)atomic_load(&g->passed) - set->first_row[0];
    const size_t count = file->row_starts.count;
    size_t gone = passed <= 0 ? 0 : (size_t)passed < count ? (size_t)passed : count;
    gone -= gone % BEL_CSV_DROPPED_ROWS;
    if (!full && (gone == 0 || gone < count - gone)) return;
    pthread_rwlock_wrlock(&g->lock);
    if (gone > 0) bel_csv_file_drop(file, gone);
    set->first_row[0] += (int64_t)gone;
    if (file->from != NULL && file->from - file->view.data > MOVE_AFTER)
        bel_status_ignore(bel_csv_file_move(file)); // a look finds a loss, or it is tried again
    pthread_rwlock_unlock(&g->lock);
}

// Whether the window has bytes that no pass has indexed. A move may also add some.
static bool has_more(const bel_csv_growth *g)
{
    const bel_file_view *view = &g->set->files[0].view;
    return view->base + view->size != g->tried;
}

// Indexes rows until the wanted ones are there.
static bel_status *index_wanted(bel_csv_growth *g, int64_t wanted)
{
    bel_csv_set *set = g->set;
    bel_csv_file *file = &set->files[0];
    while (has_more(g) && (int64_t)atomic_load(&g->rows) < wanted) {
        bool more;
        drop_passed(g, false);
        pthread_rwlock_wrlock(&g->lock);
        g->error = bel_csv_file_grow(file, &g->label, g->keep_bad, &more);
        if (!more) g->tried = file->view.base + file->view.size;
        atomic_store(&g->rows, (long long)set->first_row[0] + (long long)file->row_starts.count);
        pthread_rwlock_unlock(&g->lock);
        if (g->error != NULL) return bel_csv_growth_again(g->error);
    }
    return NULL;
}

// A bad row, and an index without memory, stay. Other errors of the file may pass.
static bel_status *look_at_file(bel_csv_growth *g, int64_t wanted)
{
    bel_csv_file *file = &g->set->files[0];
    if (g->lost != NULL) return bel_csv_growth_again(g->lost);
    BEL_TRY(begin(g));
    if (g->error != NULL) return bel_csv_growth_again(g->error);
    BEL_TRY(index_wanted(g, wanted));
    if (atomic_load(&g->rows) >= wanted) return NULL;
    int64_t now = bel_clock_ns();
    if (g->looked_ns > 0 && now - g->looked_ns < LOOK_NS) return NULL;
    BEL_TRY(bel_csv_growth_keep_lost(g, bel_file_view_grow(&file->view, file->path)));
    g->looked_ns = now; // not after an error, which each call returns
    if (file->view.size == file->view.reserved) drop_passed(g, true);
    if (file->view.size == file->view.reserved && !has_more(g))
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "%s: expected rows of at most %zu bytes since the last checkpoint; hint: "
                       "--save_checkpoints_secs",
                       file->path, file->view.reserved);
    return index_wanted(g, wanted);
}

// --- Looks ---------------------------------------------------------------------------------------

// Waits a moment until the thread has begun.
static bel_status *look_at_files(bel_csv_growth *g)
{
    enum { MOMENT_NS = 1000000000 };
    const int64_t deadline = bel_clock_ns() + MOMENT_NS;
    bool in_time = true;
    if (!g->begun) pthread_cond_broadcast(&g->may_end);
    while (in_time && !g->begun && g->lost == NULL && g->error == NULL && g->passing == NULL)
        in_time = bel_cond_wait_until(&g->may_read, &g->mutex, deadline);
    if (g->lost != NULL) return bel_csv_growth_again(g->lost);
    if (g->error != NULL) return bel_csv_growth_again(g->error);
    if (g->passing != NULL) return bel_csv_growth_again(g->passing);
    if (g->begun) return NULL;
    return BEL_ERR(BEL_UNAVAILABLE, "%s: its files are being read", g->set->pattern);
}

bel_status *bel_csv_set_look(const bel_csv_set *set, int64_t wanted, int64_t *out_rows)
{
    bel_csv_growth *g = set->growth;
    *out_rows = atomic_load(&g->rows);
    if (*out_rows >= wanted) return NULL;
    pthread_mutex_lock(&g->mutex);
    if (atomic_load(&g->wanted) < wanted) atomic_store(&g->wanted, wanted);
    bel_status *status = set->pattern != NULL ? look_at_files(g) : look_at_file(g, wanted);
    pthread_mutex_unlock(&g->mutex);
    *out_rows = atomic_load(&g->rows);
    if (*out_rows < wanted) return status;
    bel_status_ignore(status); // these rows were before it
    return NULL;
}

bool bel_csv_set_reads(const bel_csv_set *set)
{
    bel_csv_growth *g = set->growth;
    if (!atomic_load(&g->reads)) return false;
    pthread_mutex_lock(&g->mutex);
    bool fine = g->passing == NULL; // otherwise it tries again
    pthread_mutex_unlock(&g->mutex);
    return fine;
}

void bel_csv_set_pass(const bel_csv_set *set, int64_t rows)
{
    bel_csv_growth *g = set->growth;
    pthread_mutex_lock(&g->mutex);
    if (g->begun && atomic_load(&g->passed) < rows) atomic_store(&g->passed, rows);
    if (g->begun && set->pattern == NULL) drop_passed(g, false);
    pthread_mutex_unlock(&g->mutex);
}

bel_status *bel_csv_set_check_growth(const bel_csv_set *set)
{
    bel_csv_growth *g = set->growth;
    bel_status *status = set->pattern != NULL ? bel_csv_appear_check_last(g) : NULL;
    pthread_mutex_lock(&g->mutex);
    if (g->lost != NULL) {
        bel_status_ignore(status); // the loss came first
        status = bel_csv_growth_again(g->lost);
    } else {
        const bel_csv_file *file = &set->files[0];
        if (set->pattern == NULL) status = bel_file_view_check(&file->view, file->path);
        status = bel_csv_growth_keep_lost(g, status);
    }
    pthread_mutex_unlock(&g->mutex);
    return status;
}

void bel_csv_set_unfinished(const bel_csv_set *set, bel_str *out_text)
{
    bel_csv_growth *g = set->growth;
    const bel_csv_file *file = &set->files[0];
    if (set->pattern != NULL) return; // each file is whole
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

// The mark of rows whose end is in the index.
static bel_status *make_mark(const bel_csv_set *set, int64_t rows, bel_csv_mark *out_mark)
{
    const bel_csv_growth *g = set->growth;
    const bool appear = set->pattern != NULL;
    size_t number = 0;
    while (appear && (int)number + 1 < set->count && g->appeared[number + 1].first_row < rows)
        number++; // few files are open
    const bel_csv_file *file = &set->files[number];
    const int64_t next = rows - set->first_row[number];
    if (next < 0 || (appear && rows <= g->appeared[number].first_row))
        return BEL_ERR(BEL_DATA_LOSS, "%s: the place of row %lld is no longer known",
                       bel_csv_set_followed(set), (long long)rows);
    const char *end = (size_t)next < file->row_starts.count
                          ? file->text + bel_offset_list_at(&file->row_starts, (size_t)next)
                          : file->end;
    *out_mark = (bel_csv_mark){.rows = rows,
                               .bytes = (int64_t)file->view.base + (end - file->view.data),
                               .lines = bel_csv_file_line(file, end) - 1};
    if (appear) {
        out_mark->name = bel_csv_appear_name(set->pattern, file->path);
        out_mark->rows_before = g->appeared[number].first_row;
        out_mark->files_before = g->read_files + (int64_t)number;
        out_mark->before = number > 0 ? g->appeared[number - 1].hash : g->read_hash;
    }
    out_mark->hash = bel_csv_mark_hash(out_mark, &file->view);
    return NULL;
}

bel_status *bel_csv_set_mark(const bel_csv_set *set, int64_t rows, bel_str *out_text)
{
    bel_csv_mark mark;
    int64_t there;
    BEL_TRY(bel_csv_set_check_growth(set));
    BEL_TRY(bel_csv_set_look(set, rows, &there));
    if (there < rows)
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %lld rows, got only %lld so far",
                       bel_csv_set_followed(set), (long long)rows, (long long)there);
    pthread_rwlock_rdlock(&set->growth->lock);
    bel_status *status = make_mark(set, rows, &mark);
    if (status == NULL) bel_csv_mark_write(&mark, out_text);
    pthread_rwlock_unlock(&set->growth->lock);
    return status;
}

bel_status *bel_csv_set_enter(const bel_csv_set *set, int64_t number)
{
    bel_csv_growth *g = set->growth;
    if (g == NULL) return NULL;
    int64_t rows;
    BEL_TRY(bel_csv_set_look(set, number + 1, &rows));
    pthread_rwlock_rdlock(&g->lock);
    if ((int64_t)atomic_load(&g->rows) > number && number >= set->first_row[0]) return NULL;
    const int64_t first = set->first_row[0];
    pthread_rwlock_unlock(&g->lock);
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected record %lld, got only %lld to %lld so far",
                   bel_csv_set_followed(set), (long long)number, (long long)first,
                   (long long)rows - 1);
}

void bel_csv_set_leave(const bel_csv_set *set)
{
    if (set->growth != NULL) pthread_rwlock_unlock(&set->growth->lock);
}
