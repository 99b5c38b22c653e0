// Set of CSV files that behaves as one file. A binary search in first_row finds a row's file. Each
// file counts its lines separately, so that messages name the line that an editor shows. Files are
// opened before their columns are known. The caller reads the headers and sets each file's
// column_count before it calls bel_csv_set_index.
#include "input/table/csv_set.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/files/fetch_ahead.h"
#include "input/files/paths.h"
#include "input/table/csv_growth.h"
#include "input/table/csv_jsonl.h"

bel_status *bel_csv_set_open(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                             int path_count, char delimiter, const char *const **out_paths)
{
    int found = 0;
    BEL_TRY(bel_paths_expand(arena, paths, path_count, out_paths, &found));
    bel_file_views_begin(*out_paths, found);
    set->files = bel_arena_alloc(arena, (size_t)found * sizeof *set->files);
    set->first_row = bel_arena_alloc(arena, (size_t)found * sizeof *set->first_row);
    set->count = found;
    uint64_t objects = 0; // bytes of them in memory
    for (int i = 0; i < found; i++) {
        bel_csv_file *file = &set->files[i];
        BEL_TRY(bel_csv_file_open(file, (*out_paths)[i], delimiter));
        if (file->of_objects) objects += file->view.size;
        if (objects > BEL_CSV_JSONL_MOST)
            return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                           "%s: with it the files of JSONL take more than %d MiB of memory; hint: "
                           "write them as CSV, which is read in place",
                           file->path, BEL_CSV_JSONL_MOST >> 20);
        set->names = bel_hash64_more(set->names, file->path, strlen(file->path) + 1);
        set->size_bytes += file->view.size;
        set->content = bel_hash64_more(set->content, file->view.data, file->view.size);
    }
    return NULL;
}

bel_status *bel_csv_set_check_content(const bel_csv_set *set)
{
    uint64_t content = 0;
    for (int i = 0; i < set->count; i++) {
        const bel_csv_file *file = &set->files[i];
        BEL_TRY(bel_file_view_check(&file->view, file->path));
        content = bel_hash64_more(content, file->view.data, file->view.size);
    }
    if (content == set->content) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: it changed while it was read", set->files[0].path);
}

void bel_csv_set_close(bel_csv_set *set)
{
    bel_csv_set_end_growth(set);
    if (set->pattern != NULL) bel_csv_appear_close(set);
    for (int i = 0; i < set->count; i++)
        bel_csv_file_close(&set->files[i]);
    bel_number_list_deinit(&set->kept);
    if (set->followed) {
        bel_free(set->files);
        bel_free(set->first_row);
    }
    set->count = 0;
}

bel_status *bel_csv_set_index(bel_csv_set *set, const bel_csv_label *label, bool keep_bad)
{
    for (int i = 0; i < set->count; i++) {
        bel_csv_file *file = &set->files[i];
        BEL_TRY(bel_csv_file_index(file, label, keep_bad));
        set->first_row[i] = set->row_count;
        set->row_count += (int64_t)file->row_starts.count;
    }
    if (set->row_count > 0) return NULL;
    const bel_csv_file *first = &set->files[0];
    size_t size = (size_t)(first->end - first->text);
    bool ends = memchr(first->text, '\r', size) == NULL || memchr(first->text, '\n', size) != NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected records after the header, got none%s", first->path,
                   ends ? "" : "; its lines end with only CR, expected LF or CR LF");
}

// The files keep the starts of all their rows, since line numbers are counted from them.
void bel_csv_set_keep(bel_csv_set *set, bel_number_list *rows)
{
    for (size_t i = 0; i < rows->count && set->kept.count > 0; i++)
        rows->items[i] = set->kept.items[rows->items[i]];
    bel_number_list_deinit(&set->kept);
    set->kept = *rows;
    set->row_count = (int64_t)rows->count;
    *rows = (bel_number_list){0};
}

// The file of a row. *row becomes the row's number in the file.
static const bel_csv_file *csv_set_find(const bel_csv_set *set, int64_t *row)
{
    if (set->kept.count > 0) *row = set->kept.items[*row];
    size_t file = bel_last_at_most(set->first_row, (size_t)set->count, *row);
    *row -= set->first_row[file];
    return &set->files[file];
}

const bel_csv_file *bel_csv_set_find(const bel_csv_set *set, int64_t number, const char **out_row)
{
    const bel_csv_file *file = csv_set_find(set, &number);
    *out_row = file->text + bel_offset_list_at(&file->row_starts, (size_t)number);
    return file;
}

bool bel_csv_set_is_numbers(const bel_csv_set *set, int64_t number)
{
    const bel_csv_file *file = csv_set_find(set, &number);
    if (file->numbers.count == 0) return false;
    return ((uint64_t)file->numbers.items[number / 64] >> number % 64 & 1) != 0;
}

// Fetches the entry in the list of kept rows, then the row's offset, then its bytes.
void bel_csv_set_ahead(const bel_csv_set *set, int64_t number, int step)
{
    if (step == 0) {
        if (set->kept.count > 0) bel_ahead_fetch(&set->kept.items[number], sizeof number);
        return;
    }
    const bel_csv_file *file = csv_set_find(set, &number);
    bel_ahead_fetch_record(&file->row_starts, (size_t)number, step, file->text,
                           (size_t)(file->end - file->text));
}

bel_status *bel_csv_set_check(const bel_csv_set *set, int64_t block)
{
    if (set->growth != NULL) {
        bel_status *status = bel_csv_set_check_growth(set);
        if (bel_status_code(status) == BEL_DATA_LOSS) return status;
        bel_status_ignore(status); // it may pass: the check before the next checkpoint decides
        return NULL;
    }
    int end, first = bel_file_view_turn(block, set->count, &end);
    for (int i = first; i < end; i++)
        BEL_TRY(bel_file_view_check(&set->files[i].view, set->files[i].path));
    return NULL;
}

void bel_csv_set_origin(const bel_csv_set *set, int64_t number, bel_str *out_text)
{
    const char *row;
    bel_status *absent = bel_csv_set_enter(set, number);
    if (absent != NULL) {
        bel_status_ignore(absent); // the row of a growing file that is not there has no line
        bel_str_printf(out_text, "%s", bel_csv_set_followed(set));
        return;
    }
    const bel_csv_file *file = bel_csv_set_find(set, number, &row);
    bel_str_printf(out_text, "%s:%lld", file->path, (long long)bel_csv_file_line(file, row));
    bel_csv_set_leave(set);
}
