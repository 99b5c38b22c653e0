// The index of a file's rows, made of parts of the file on several threads. Whether a line feed
// ends a row or is inside quotes depends on all text before it, so a part but the first begins with
// a guess: that its first line feed ends a row. The parts are put together in their order. If the
// part before ends elsewhere, the guess was wrong, and the part is looked at once more from there.
// So the index, and the first error, are those of one pass over the file.
//
// A part with a fault keeps where it is; its error is made when all rows before it are numbered.
#include "input/csv_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "input/csv_row.h"
#include "input/csv_scan.h"

enum { AT_ONCE = 1024, PARTS_A_THREAD = 4 };

// Parts are looked at in waves of one slot each, so that memory is that of a wave.
typedef struct part {
    const char *begin, *limit; // rows that begin in between
    const char *next;          // the first row that begins behind; or the row with a fault
    bool fault;
    int64_t *rows; // offsets
    size_t count, capacity;
    size_t *tall; // rows with line breaks in them, by their place in `rows`
    int64_t *breaks;
    size_t tall_count, tall_capacity, breaks_capacity;
} part;

typedef struct indexing {
    bel_csv_file *file;
    const bel_csv_label *label; // NULL: rows may be bad
    part *parts;
    const char *wave; // where the first part of the wave begins
    size_t part_bytes;
} indexing;

// --- A part --------------------------------------------------------------------------------------

// Plain rows, as many as follow one another. False: a label among them is wrong.
static bool pass_plain_rows(const indexing *in, part *p)
{
    const bel_csv_file *file = in->file;
    const bel_csv_scan scan = {file->delimiter, in->label == NULL ? -1 : file->column_count - 1};
    bool labelled = in->label != NULL && in->label->column >= 0;
    int64_t ends[AT_ONCE];
    for (size_t got = AT_ONCE; got == AT_ONCE;) {
        const char *first = p->next;
        got = bel_csv_scan_rows(&scan, first, p->limit, AT_ONCE, ends);
        p->rows = bel_xgrow(p->rows, &p->capacity, p->count + got, sizeof *p->rows);
        for (size_t i = 0; i < got; i++) {
            const char *end = first + ends[i];
            if (labelled && !bel_csv_row_label_fits(file, p->next, end, in->label)) return false;
            p->rows[p->count++] = p->next - file->text;
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
        p->fault = !pass_plain_rows(in, p);
        if (p->fault || p->next >= p->limit) return;
        bel_csv_look look = bel_csv_row_look(in->file, p->next, in->label);
        p->fault = look.fault != BEL_CSV_NO_FAULT;
        if (p->fault) return;
        p->rows = bel_xgrow(p->rows, &p->capacity, p->count + 1, sizeof *p->rows);
        p->rows[p->count++] = p->next - in->file->text;
        if (look.breaks > 0) note_tall(p, look.breaks);
        p->next = look.next;
    }
}

// On any thread. A part without a line feed has nothing to begin with.
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

static bel_status *append(bel_csv_file *file, const part *p)
{
    int64_t before = (int64_t)file->row_starts.count;
    BEL_TRY(bel_offset_list_append(&file->row_starts, p->rows, p->count));
    for (size_t i = 0; i < p->tall_count; i++) {
        const bel_number_list *tall = &file->tall_breaks;
        int64_t breaks = tall->count > 0 ? tall->items[tall->count - 1] : 0;
        BEL_TRY(bel_number_list_append(&file->tall_rows, before + (int64_t)p->tall[i] + 1));
        BEL_TRY(bel_number_list_append(&file->tall_breaks, breaks + p->breaks[i]));
    }
    return NULL;
}

// The part's rows, the first of which begins at *row; then *row is the first one behind it.
static bel_status *merge_part(const indexing *in, part *p, const char **row)
{
    if (*row >= p->limit) return NULL; // a row of earlier parts covers it
    if (p->begin != *row) pass_part(in, p, *row);
    BEL_TRY_CTX(append(in->file, p), "%s", in->file->path);
    *row = p->next;
    if (!p->fault) return NULL;
    bel_csv_look look = bel_csv_row_look(in->file, p->next, in->label);
    return bel_csv_row_error(in->file, p->next, in->label, &look);
}

// Room for as many rows as there will be where they stay as long as they were.
static bel_status *reserve(bel_csv_file *file, const char *row)
{
    enum { FEW = 1 << 16 };
    double through = (double)(row - file->rows), all = (double)(file->end - file->rows);
    double rows = (double)file->row_starts.count;
    if (rows < FEW || through <= 0) return NULL;
    BEL_TRY_CTX(bel_offset_list_reserve(&file->row_starts, (size_t)(rows * all / through * 1.02)),
                "%s", file->path);
    return NULL;
}

static bel_status *run(indexing *in, bel_team *team, int slots)
{
    bel_csv_file *file = in->file;
    const char *row = file->rows;
    while (row < file->end) {
        in->wave = row;
        size_t left = (size_t)(file->end - row), parts = (left - 1) / in->part_bytes + 1;
        int count = parts < (size_t)slots ? (int)parts : slots;
        bool first = row == file->rows;
        bel_team_run(team, guess_part, in, count);
        for (int i = 0; i < count; i++)
            BEL_TRY(merge_part(in, &in->parts[i], &row));
        if (first) BEL_TRY(reserve(file, row));
    }
    return NULL;
}

bel_status *bel_csv_file_index_parts(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                                     size_t part_bytes, int threads)
{
    size_t parts = (size_t)(file->end - file->rows) / part_bytes + 1;
    if (parts < (size_t)threads) threads = (int)parts;
    bel_team *team = bel_team_create_some(threads);
    threads = bel_team_size(team);
    int slots = threads > 1 ? threads * PARTS_A_THREAD : 1; // one thread never guesses
    indexing in = {.file = file, .label = keep_bad ? NULL : label, .part_bytes = part_bytes};
    in.parts = bel_xcalloc((size_t)slots, sizeof *in.parts);
    bel_status *status = run(&in, team, slots);
    for (int i = 0; i < slots; i++) {
        bel_free(in.parts[i].rows);
        bel_free(in.parts[i].tall);
        bel_free(in.parts[i].breaks);
    }
    bel_free(in.parts);
    bel_team_destroy(team);
    return status;
}

bel_status *bel_csv_file_index(bel_csv_file *file, const bel_csv_label *label, bool keep_bad)
{
    enum { PART = 512 << 10, ALONE = 8 << 20 }; // a small file is through before threads are there
    bool small = file->end - file->rows < ALONE;
    return bel_csv_file_index_parts(file, label, keep_bad, PART, small ? 1 : bel_available_cores());
}
