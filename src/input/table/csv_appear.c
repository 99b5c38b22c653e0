// Files that appear, each whole, with rising names. A thread lists, copies and indexes them, as
// that may take minutes. So readers of other rows do not wait for it. It is the only one that adds
// and closes files, so it reads them without the lock. It compares each listing with the files
// that were read, whether rows are wanted or not.
//
// Only the files between the readers are open: those before the first row that is not passed are
// closed, and few after the last wanted row are opened. The files before keep their number, and a
// hash. So they may be removed, but none may come to them.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/thread.h"
#include "input/files/paths.h"
#include "input/table/csv_growth.h"
#include "input/table/csv_index.h"
#include "store/store.h"

enum { LIST_NS = 100000000, LIST_STORE_NS = 1000000000, FILES_AHEAD = 64 };
enum { BYTES_AHEAD = 512 << 20 }; // in memory, unpacked

// Result of a look: at most one of these errors.
typedef struct found {
    bel_status *lost, *error, *passing;
} found;

// A pattern relative to a folder of data matches paths from the root.
const char *bel_csv_appear_name(const char *pattern, const char *path)
{
    size_t fixed = strcspn(pattern, "*?[");
    while (fixed > 0 && pattern[fixed - 1] != '/')
        fixed--;
    const char *slash = strrchr(path, '/'), *at = path;
    if (fixed > 0 && strncmp(path, pattern, fixed) == 0) return path + fixed;
    if (fixed == 0 && path[0] != '/') return path;
    const char *data = getenv(BEL_DATA_DIR_VARIABLE);
    const size_t size = data != NULL ? strlen(data) : 0;
    if (size > 0 && strncmp(path, data, size) == 0) {
        at += size;
        at += strspn(at, "/");
        if (strncmp(at, pattern, fixed) == 0) return at + fixed;
    }
    return slash != NULL ? slash + 1 : path;
}

bel_status *bel_csv_appear_open(bel_csv_set *set, bel_arena *arena, const char *pattern,
                                char delimiter, const char *const **out_paths)
{
    int count;
    BEL_TRY(bel_paths_match(arena, pattern, out_paths, &count));
    const char *path = (*out_paths)[0];
    BEL_TRY(bel_csv_growth_refuse_objects(path));
    set->pattern = bel_arena_strdup(arena, pattern);
    set->files = bel_xcalloc(1, sizeof *set->files);
    set->first_row = bel_xcalloc(1, sizeof *set->first_row);
    set->count = 1;
    BEL_TRY(bel_csv_file_open(&set->files[0], bel_xstrdup(path), delimiter));
    return NULL;
}

// --- A file --------------------------------------------------------------------------------------

static void close_file(bel_csv_file *file)
{
    char *path = (char *)(uintptr_t)file->path; // made by this file
    bel_csv_file_close(file);
    bel_free(path);
    *file = (bel_csv_file){0};
}

// The end of the first line of a file, which all files share; NULL: it differs. Files may end it in
// other ways, or end with it.
static const char *skip_header(const bel_csv_growth *g, const bel_csv_file *file)
{
    const char *end = file->view.data + file->view.size;
    size_t size = g->header_size;
    if (size == 0) return file->text; // no header
    if (g->header[size - 1] == '\n') size--;
    if (size > 0 && g->header[size - 1] == '\r') size--;
    if ((size_t)(end - file->text) < size || memcmp(file->text, g->header, size) != 0) return NULL;
    const char *at = file->text + size;
    if (at < end && *at == '\r') at++;
    if (at < end && *at++ != '\n') return NULL;
    return at < file->end ? at : file->end;
}

void bel_csv_appear_close(bel_csv_set *set)
{
    for (int i = 0; i < set->count; i++)
        close_file(&set->files[i]);
}

// Opens a file and indexes its rows; `from`: those after the rows of this mark; NULL: all.
static void open_file(const bel_csv_growth *g, const char *path, const bel_csv_mark *from,
                      bel_csv_file *file, found *out_found)
{
    *file = (bel_csv_file){0};
    bel_status *refused = bel_csv_growth_refuse_objects(path);
    if (refused != NULL) {
        out_found->error = refused;
        return;
    }
    file->column_count = g->set->files[0].column_count;
    bel_status *status = bel_csv_file_open(file, bel_xstrdup(path), g->set->files[0].delimiter);
    if (status != NULL && bel_status_code(status) != BEL_DATA_LOSS) {
        out_found->passing = status;
        return;
    }
    if (status == NULL) {
        file->rows = skip_header(g, file);
        if (file->rows == NULL)
            status = BEL_ERR(BEL_DATA_LOSS,
                             "%s: expected the first line that the files before it "
                             "have",
                             path);
    }
    if (status == NULL && from != NULL) {
        bool fits = from->bytes <= file->end - file->view.data &&
                    bel_csv_mark_hash(from, &file->view) == from->hash;
        if (!fits) {
            out_found->lost = BEL_ERR(BEL_DATA_LOSS, "%s: expected the rows of %s, got others",
                                      path, g->from_text);
            return;
        }
        bel_csv_file_begin_at(file, file->view.data + from->bytes, from->lines + 1);
    }
    const char *first = from != NULL ? file->from : file->rows;
    if (status == NULL) status = bel_csv_file_index_from(file, first, &g->label, g->keep_bad);
    out_found->error = status;
}

static bool is_fine(const found *f)
{
    return f->lost == NULL && f->error == NULL && f->passing == NULL;
}

// Describes a whole file after others.
static bel_csv_appeared appeared_of(const bel_csv_growth *g, uint64_t before,
                                    const bel_csv_file *file, int64_t first_row, int64_t next_row)
{
    const char *name = bel_csv_appear_name(g->set->pattern, file->path);
    const uint64_t size = (uint64_t)(file->end - file->view.data);
    const uint64_t its[] = {(uint64_t)(next_row - first_row), size,
                            bel_file_view_ends(&file->view, size, BEL_CSV_MARKED)};
    uint64_t hash = bel_hash64_more(before, name, strlen(name) + 1);
    return (bel_csv_appeared){.first_row = first_row,
                              .hash = bel_hash64_more(hash, its, sizeof its)};
}

// Adds a file whose index begins with row `row`, under the lock. `its` describes the whole file.
static void append_locked(bel_csv_growth *g, const bel_csv_file *file, bel_csv_appeared its,
                          int64_t row)
{
    bel_csv_set *set = g->set;
    const size_t count = (size_t)set->count++;
    set->files = bel_xgrow(set->files, &g->capacity, count + 1, sizeof *set->files);
    set->first_row =
        bel_xgrow(set->first_row, &g->first_rows_capacity, count + 1, sizeof *set->first_row);
    g->appeared = bel_xgrow(g->appeared, &g->appeared_capacity, count + 1, sizeof *g->appeared);
    set->files[count] = *file;
    set->first_row[count] = row;
    g->appeared[count] = its;
    set->row_count = row + (int64_t)file->row_starts.count;
    atomic_store(&g->rows, (long long)set->row_count);
}

// Adds the next file. False: the index begins elsewhere since `begins`.
static bool append_file(bel_csv_growth *g, const bel_csv_file *file, int64_t begins)
{
    const int64_t row = g->set->row_count, next = row + (int64_t)file->row_starts.count;
    const bel_csv_appeared its =
        appeared_of(g, g->appeared[g->set->count - 1].hash, file, row, next);
    pthread_rwlock_wrlock(&g->lock);
    bool same = g->begins == begins;
    if (same) append_locked(g, file, its, row);
    pthread_rwlock_unlock(&g->lock);
    return same;
}

// --- The beginning -------------------------------------------------------------------------------

// Finds the file with the last row of the mark, the first file without a mark.
static bel_status *find_first(const bel_csv_growth *g, const bel_csv_mark *from,
                              const char *const *paths, int count, int *out_number)
{
    int number = 0;
    while (from->name != NULL && number < count &&
           strcmp(bel_csv_appear_name(g->set->pattern, paths[number]), from->name) != 0)
        number++;
    if (number == count)
        return BEL_ERR(BEL_NOT_FOUND, "%s: no file %s, with the last of %lld rows", g->set->pattern,
                       from->name != NULL ? from->name : "to begin with", (long long)from->rows);
    *out_number = number;
    if ((int64_t)number <= from->files_before) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: %d files are before %s, and training has read %lld of them; expected files "
                   "with rising names",
                   g->set->pattern, number, paths[number], (long long)from->files_before);
}

// Replaces the files of the set by the one where the index begins.
static void begin_files(bel_csv_growth *g, const char *const *paths, int count, found *out_found)
{
    bel_csv_set *set = g->set;
    bel_csv_file file = {0};
    int number = 0;
    pthread_mutex_lock(&g->mutex);
    const bel_csv_mark from = g->from;
    const int64_t begins = g->begins;
    pthread_mutex_unlock(&g->mutex);
    bel_status *status = find_first(g, &from, paths, count, &number);
    if (status != NULL) {
        *(bel_status_code(status) == BEL_DATA_LOSS ? &out_found->lost : &out_found->passing) =
            status;
        return;
    }
    atomic_store(&g->reads, true);
    open_file(g, paths[number], from.rows > 0 ? &from : NULL, &file, out_found);
    atomic_store(&g->reads, false);
    if (!is_fine(out_found)) {
        close_file(&file);
        return;
    }
    const int64_t next = from.rows + (int64_t)file.row_starts.count;
    const bel_csv_appeared its = appeared_of(g, from.before, &file, from.rows_before, next);
    const int old = set->count;
    bel_csv_file *files = set->files;
    pthread_mutex_lock(&g->mutex);
    pthread_rwlock_wrlock(&g->lock);
    set->files = NULL;
    g->capacity = 0;
    set->count = 0;
    append_locked(g, &file, its, from.rows);
    g->begun = g->begins == begins; // otherwise the next turn begins elsewhere
    if (!g->begun) atomic_store(&g->rows, 0);
    g->read_files = g->listed_files = from.files_before;
    g->read_hash = from.before;
    g->listed_hash = 0;
    pthread_rwlock_unlock(&g->lock);
    pthread_mutex_unlock(&g->mutex);
    for (int i = 0; i < old; i++)
        close_file(&files[i]);
    bel_free(files);
}

// --- Listings ------------------------------------------------------------------------------------

// Compares the listed files before those of the set with the last listing.
static bel_status *check_read(bel_csv_growth *g, const char *const *paths, int before)
{
    const bel_csv_set *set = g->set;
    uint64_t hash = 1;
    for (int i = 0; i < before; i++)
        hash = bel_hash64_more(hash, paths[i], strlen(paths[i]) + 1);
    bool other = before == g->listed_files && g->listed_hash != 0 && hash != g->listed_hash;
    if (before > g->listed_files || other)
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: a file appeared, or was renamed, after %s was read: %d files are "
                       "before it, expected %lld; expected files with rising names",
                       set->pattern, set->files[0].path, before, (long long)g->listed_files);
    g->listed_files = before;
    g->listed_hash = hash;
    return NULL;
}

// Whether all rows of a file were passed, and a file follows it.
static bool is_passed(const bel_csv_growth *g, int number)
{
    return number + 1 < g->set->count &&
           g->appeared[number + 1].first_row <= (int64_t)atomic_load(&g->passed);
}

// Checks that a listing has the files of the set next to each other. Those that were passed may be
// gone: their rows are still mapped. *out_next: the files after them.
static bel_status *check_listing(bel_csv_growth *g, const char *const *paths, int count,
                                 int *out_next)
{
    const bel_csv_set *set = g->set;
    int at = 0;
    if (g->read_files > 0)
        while (at < count && strcmp(paths[at], set->files[0].path) < 0)
            at++;
    BEL_TRY(check_read(g, paths, at));
    for (int i = 0; i < set->count; i++) {
        const char *known = set->files[i].path;
        int order = at < count ? strcmp(paths[at], known) : 1;
        if (order < 0 || (order == 0 && g->appeared[i].gone))
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: it appeared after %s was read; expected files with rising names",
                           paths[at], set->files[set->count - 1].path);
        if (order == 0) {
            at++;
        } else if (is_passed(g, i)) {
            g->appeared[i].gone = true;
        } else {
            return BEL_ERR(BEL_DATA_LOSS, "%s: it was removed while it was followed", known);
        }
    }
    *out_next = at;
    return NULL;
}

// Checks that files are as they were read: the last one, and some of the others in turn.
static bel_status *check_files(const bel_csv_growth *g, int64_t turn)
{
    const bel_csv_set *set = g->set;
    int end, first = bel_file_view_turn(turn, set->count, &end);
    for (int i = first; i <= end; i++) {
        const int number = i < end ? i : set->count - 1;
        const bel_csv_file *file = &set->files[number];
        if (!bel_path_is_object(file->path) && !is_passed(g, number))
            BEL_TRY(bel_file_view_check_whole(&file->view, file->path));
    }
    return NULL;
}

// Closes the files whose rows were passed. The last one that was passed stays, for the mark.
static void close_passed(bel_csv_growth *g)
{
    bel_csv_set *set = g->set;
    const int64_t passed = (int64_t)atomic_load(&g->passed);
    while (set->count > 1 && g->appeared[1].first_row < passed) {
        bel_csv_file file = set->files[0];
        const bool gone = g->appeared[0].gone;
        pthread_rwlock_wrlock(&g->lock);
        size_t left = (size_t)--set->count;
        g->read_hash = g->appeared[0].hash;
        g->read_files++;
        memmove(set->files, set->files + 1, left * sizeof *set->files);
        memmove(set->first_row, set->first_row + 1, left * sizeof *set->first_row);
        memmove(g->appeared, g->appeared + 1, left * sizeof *g->appeared);
        pthread_rwlock_unlock(&g->lock);
        if (!gone) g->listed_files++;
        g->listed_hash = 0;
        close_file(&file);
    }
}

// Whether files beyond the wanted rows are open that suffice for now.
static bool has_enough(const bel_csv_growth *g)
{
    const bel_csv_set *set = g->set;
    const int64_t wanted = (int64_t)atomic_load(&g->wanted);
    size_t bytes = 0;
    int ahead = 0;
    for (int i = set->count; i-- > 0 && set->first_row[i] >= wanted; ahead++)
        if (!set->files[i].view.mapped) bytes += set->files[i].view.size;
    return ahead >= FILES_AHEAD || bytes >= BYTES_AHEAD;
}

static bool is_ending(bel_csv_growth *g)
{
    pthread_mutex_lock(&g->mutex);
    bool ends = g->ends;
    pthread_mutex_unlock(&g->mutex);
    return ends;
}

// Opens files after those of the set.
static void add_files(bel_csv_growth *g, const char *const *paths, int count, found *out_found)
{
    pthread_mutex_lock(&g->mutex);
    const int64_t begins = g->begins;
    const bool begun = g->begun;
    pthread_mutex_unlock(&g->mutex);
    bel_file_views_begin(paths, count < FILES_AHEAD ? count : FILES_AHEAD);
    for (int i = 0; begun && i < count && !has_enough(g) && !is_ending(g); i++) {
        bel_csv_file file;
        atomic_store(&g->reads, true);
        open_file(g, paths[i], NULL, &file, out_found);
        atomic_store(&g->reads, false);
        bool added = is_fine(out_found) && append_file(g, &file, begins);
        if (!added) {
            close_file(&file);
            return;
        }
    }
}

// An object is compared once more, before the next one is added, as that costs a request.
static bel_status *check_last(const bel_csv_set *set)
{
    const bel_csv_file *last = &set->files[set->count - 1];
    bel_status *status = bel_file_view_check_whole(&last->view, last->path);
    if (bel_status_code(status) != BEL_NOT_FOUND) return status;
    bel_status_ignore(status); // replaced
    return BEL_ERR(BEL_DATA_LOSS, "%s: it was removed while it was followed", last->path);
}

static found look_for_files(bel_csv_growth *g, int64_t turn, bool begun)
{
    bel_csv_set *set = g->set;
    const char *const *paths;
    int count = 0, next = 0;
    found result = {0};
    bel_arena *arena = bel_arena_create();
    bel_status *status = bel_paths_match(arena, set->pattern, &paths, &count);
    if (bel_status_code(status) == BEL_NOT_FOUND) { // all were removed
        bel_status_ignore(status);                  // the missing files are named below
        status = NULL;
    }
    if (status == NULL && !begun) {
        begin_files(g, paths, count, &result);
    } else if (status == NULL) {
        close_passed(g);
        status = check_listing(g, paths, count, &next);
        if (status == NULL) status = check_files(g, turn);
        if (status == NULL && next < count) status = check_last(set);
    }
    if (status != NULL)
        *(bel_status_code(status) == BEL_DATA_LOSS ? &result.lost : &result.passing) = status;
    if (begun && is_fine(&result)) add_files(g, paths + next, count - next, &result);
    bel_arena_destroy(arena);
    return result;
}

// Short patience with a store, since each look tries again and the end waits for this thread.
static void *look_for_files_until_end(void *argument)
{
    enum { PATIENCE_SECS = 10 };
    bel_csv_growth *g = argument;
    const int64_t pause = bel_path_is_object(g->set->pattern) ? LIST_STORE_NS : LIST_NS;
    bel_store_set_patience(PATIENCE_SECS);
    pthread_mutex_lock(&g->mutex);
    while (!g->ends && atomic_load(&g->wanted) == 0) // the first look begins
        (void)bel_cond_wait_until(&g->may_end, &g->mutex, bel_clock_ns() + LIST_STORE_NS);
    for (int64_t turn = 0; !g->ends && g->lost == NULL && g->error == NULL; turn++) {
        const bool begun = g->begun;
        const int64_t begins = g->begins;
        pthread_mutex_unlock(&g->mutex);
        found result = look_for_files(g, turn, begun);
        const int64_t next = bel_clock_ns() + pause;
        pthread_mutex_lock(&g->mutex);
        bel_status_destroy(g->passing);
        g->passing = result.passing;
        g->error = result.error;
        if (result.lost != NULL)
            bel_status_ignore(bel_csv_growth_keep_lost(g, result.lost)); // kept for the readers
        pthread_cond_broadcast(&g->may_read);
        bool early = is_fine(&result) && (!begun || g->begins != begins);
        while (!g->ends && !early && g->begins == begins &&
               bel_cond_wait_until(&g->may_end, &g->mutex, next)) {
        }
    }
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

bel_status *bel_csv_appear_start(bel_csv_growth *g)
{
    g->capacity = g->first_rows_capacity = 1;
    BEL_TRY(bel_thread_start(&g->looker, look_for_files_until_end, g));
    g->looks = true;
    return NULL;
}

bel_status *bel_csv_appear_check_last(bel_csv_growth *g)
{
    const bel_csv_set *set = g->set;
    bel_status *status = NULL;
    pthread_rwlock_rdlock(&g->lock);
    const bel_csv_file *file = &set->files[set->count - 1];
    if (!bel_path_is_object(file->path))
        status = bel_file_view_check_whole(&file->view, file->path);
    pthread_rwlock_unlock(&g->lock);
    return status;
}
