// Indexing of a file's rows in parts, on several threads. Whether a line feed ends a row or is
// inside quotes depends on all text before it. So each part after the first begins with a guess:
// its first line feed ends a row. The parts are joined in their order. If the part before ends
// elsewhere, the guess was wrong, and the part is read again from there. So the index, and the
// first error, are those of one pass over the file.
//
// A part with a fault keeps the fault's place. Its error needs the line, so it is made when all
// rows before it are numbered.
#include "input/table/csv_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "input/table/csv_row.h"
#include "input/table/csv_scan.h"

enum { AT_ONCE = 1024, PARTS_A_THREAD = 4 };

// Parts are read in waves of one slot each, which bounds the memory.
typedef struct part {
    const char *begin, *limit; // rows that begin in between
    const char *next;          // the first row after the part; or the row with a fault
    bool fault;
    int64_t *rows; // offsets
    bool *numbers; // a row is plain numbers (csv_scan.h)
    size_t count, capacity, numbers_capacity;
    size_t *tall; // rows with line breaks in them, by their place in `rows`
    int64_t *breaks;
    size_t tall_count, tall_capacity, breaks_capacity;
} part;

typedef struct indexing {
    bel_csv_file *file;
    const bel_csv_label *label; // NULL: rows may be bad
    part *parts;
    const char *wave; // start of the first part of the wave
    size_t part_bytes;
} indexing;

// --- A part --------------------------------------------------------------------------------------

static void note_row(part *p, const bel_csv_file *file, bool numbers)
{
    p->rows = bel_xgrow(p->rows, &p->capacity, p->count + 1, sizeof *p->rows);
    p->numbers = bel_xgrow(p->numbers, &p->numbers_capacity, p->count + 1, sizeof *p->numbers);
    p->rows[p->count] = p->next - file->text;
    p->numbers[p->count++] = numbers;
}

// Passes consecutive plain rows from p->next on. False: one of them has a wrong label. `crosses`:
// the first row ends after the part; otherwise rows that do are left.
static bool pass_plain_rows(const indexing *in, part *p, bool crosses)
{
    const bel_csv_file *file = in->file;
    const bel_csv_scan scan = {file->delimiter, in->label == NULL ? -1 : file->column_count - 1};
    const char *stop = crosses ? file->end : p->limit;
    const size_t most = crosses ? 1 : AT_ONCE;
    bool labeled = in->label != NULL && in->label->column >= 0;
    bel_csv_scanned rows[AT_ONCE];
    for (size_t got = most; got == most && p->next < p->limit;) {
        const char *first = p->next;
        got = bel_csv_scan_rows(&scan, first, stop, most, rows);
        for (size_t i = 0; i < got; i++) {
            const char *end = first + rows[i].end;
            if (labeled && !bel_csv_row_label_fits(file, p->next, end, in->label)) return false;
            note_row(p, file, rows[i].numbers);
            p->next = end + 1;
        }
    }
    return true;
}

static void note_tall(part *p, int64_t breaks)
{
    size_t needed = p->tall_count + 1;
    p->tall = bel_xgrow(p->tall, &p->tall_capacity, needed, sizeof *p->tall);
    p->breaks = bel_xgrow(p->breaks, &p->breaks_capacity, needed, sizeof *p->breaks);
    p->tall[p->tall_count] = p->count - 1;
    p->breaks[p->tall_count++] = breaks;
}

static void pass_part(const indexing *in, part *p, const char *begin)
{
    p->begin = p->next = begin;
    p->count = p->tall_count = 0;
    p->fault = false;
    while (p->next < p->limit) {
        const size_t before = p->count;
        bool crosses = memchr(p->next, '\n', (size_t)(p->limit - p->next)) == NULL;
        p->fault = !pass_plain_rows(in, p, crosses);
        if (p->fault) return;
        if (p->count > before) continue;
        bel_csv_look look = bel_csv_row_look(in->file, p->next, in->label);
        p->fault = look.fault != BEL_CSV_NO_FAULT;
        if (p->fault) return;
        note_row(p, in->file, false);
        if (look.breaks > 0) note_tall(p, look.breaks);
        p->next = look.next;
    }
}

// Runs on any thread. A part without a line feed stays empty.
static void guess_part(void *argument, int64_t number)
{
    const indexing *in = argument;
    part *p = &in->parts[number];
    const char *begin = in->wave + (size_t)number * in->part_bytes, *end = in->file->end;
    p->limit = (size_t)(end - begin) < in->part_bytes ? end : begin + in->part_bytes;
    if (number > 0) {
        begin = memchr(begin - 1, '\n', (size_t)(p->limit - (begin - 1)));
        begin = begin == NULL ? p->limit : begin + 1;
    }
    pass_part(in, p, begin);
}

// --- All parts -----------------------------------------------------------------------------------

static bel_status *append_numbers(bel_csv_file *file, const part *p)
{
    size_t row = file->row_starts.count;
    for (size_t i = 0; i < p->count; i++, row++) {
        if (row % 64 == 0) BEL_TRY(bel_number_list_append(&file->numbers, 0));
        uint64_t bits = (uint64_t)file->numbers.items[row / 64];
        file->numbers.items[row / 64] = (int64_t)(bits | (uint64_t)p->numbers[i] << row % 64);
    }
    return NULL;
}

static bel_status *csv_index_append(bel_csv_file *file, const part *p, bool with_numbers)
{
    int64_t before = (int64_t)file->row_starts.count;
    if (with_numbers) BEL_TRY(append_numbers(file, p));
    BEL_TRY(bel_offset_list_append(&file->row_starts, p->rows, p->count));
    for (size_t i = 0; i < p->tall_count; i++) {
        const bel_number_list *tall = &file->tall_breaks;
        int64_t breaks = tall->count > 0 ? tall->items[tall->count - 1] : 0;
        BEL_TRY(bel_number_list_append(&file->tall_rows, before + (int64_t)p->tall[i] + 1));
        BEL_TRY(bel_number_list_append(&file->tall_breaks, breaks + p->breaks[i]));
    }
    return NULL;
}

// Adds the part's rows from *row on, and moves *row to the first row after the part.
static bel_status *merge_part(const indexing *in, part *p, const char **row)
{
    if (*row >= p->limit) return NULL; // a row of earlier parts covers it
    if (p->begin != *row) pass_part(in, p, *row);
    BEL_TRY_CTX(csv_index_append(in->file, p, in->label != NULL), "%s", in->file->path);
    *row = p->next;
    if (!p->fault) return NULL;
    bel_csv_look look = bel_csv_row_look(in->file, p->next, in->label);
    if (look.fault != BEL_CSV_NO_FAULT)
        return bel_csv_row_error(in->file, p->next, in->label, &look);
    return BEL_ERR(BEL_DATA_LOSS, "%s: changed while it was opened", in->file->path);
}

// Reserves memory for all rows of the file, assuming that they are as long as those so far.
static void csv_index_reserve(bel_csv_file *file, const char *row)
{
    enum { FEW = 1 << 16 };
    double through = (double)(row - file->rows), all = (double)(file->end - file->rows);
    double rows = (double)file->row_starts.count;
    if (rows < FEW || through <= 0) return;
    size_t expected = (size_t)(rows * all / through * 1.02);
    bel_status_ignore(bel_offset_list_reserve(&file->row_starts, expected)); // it grows later
}

static bel_status *indexing_run(indexing *in, const char *row, bel_team *team, int slots)
{
    bel_csv_file *file = in->file;
    while (row < file->end) {
        in->wave = row;
        size_t left = (size_t)(file->end - row), parts = (left - 1) / in->part_bytes + 1;
        int count = parts < (size_t)slots ? (int)parts : slots;
        bool first = row == file->rows;
        bel_team_run(team, guess_part, in, count);
        for (int i = 0; i < count; i++)
            BEL_TRY(merge_part(in, &in->parts[i], &row));
        if (first) csv_index_reserve(file, row);
    }
    return NULL;
}

static bel_status *index_rows(bel_csv_file *file, const char *row, const bel_csv_label *label,
                              bool keep_bad, size_t part_bytes, int threads)
{
    size_t parts = (size_t)(file->end - row) / part_bytes + 1;
    if (parts < (size_t)threads) threads = (int)parts;
    bel_team *team = bel_team_create_some(threads);
    threads = bel_team_size(team);
    int slots = threads > 1 ? threads * PARTS_A_THREAD : 1; // one thread never guesses
    indexing in = {.file = file, .label = keep_bad ? NULL : label, .part_bytes = part_bytes};
    in.parts = bel_xcalloc((size_t)slots, sizeof *in.parts);
    bel_status *status = indexing_run(&in, row, team, slots);
    for (int i = 0; i < slots; i++) {
        bel_free(in.parts[i].rows);
        bel_free(in.parts[i].numbers);
        bel_free(in.parts[i].tall);
        bel_free(in.parts[i].breaks);
    }
    bel_free(in.parts);
    bel_team_destroy(team);
    return status;
}

bel_status *bel_csv_file_index_parts(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                                     size_t part_bytes, int threads)
{
    return index_rows(file, file->rows, label, keep_bad, part_bytes, threads);
}

bel_status *bel_csv_file_index_from(bel_csv_file *file, const char *row, const bel_csv_label *label,
                                    bool keep_bad)
{
    enum { PART = 512 << 10, ALONE = 8 << 20 }; // reading less is faster than starting threads
    bool small = file->end - row < ALONE;
    return index_rows(file, row, label, keep_bad, PART, small ? 1 : bel_available_cores());
}

bel_status *bel_csv_file_index(bel_csv_file *file, const bel_csv_label *label, bool keep_bad)
{
    return bel_csv_file_index_from(file, file->rows, label, keep_bad);
}
