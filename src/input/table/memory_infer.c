// Finds the columns of a table in memory, by the rules for files (csv_infer.c). Rows are taken in
// the same grains, so the same cells give the same description. A number needs no reading. It gets
// a text only where values are counted (classes, ids), or where a number may stand for a missing
// value.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/str.h"
#include "columns/guess.h"
#include "input/table/csv_file.h"
#include "input/table/csv_table.h"
#include "input/table/memory_table.h"

// Statistics of one grain, of all columns.
typedef struct memory_slot {
    bel_column_gatherer *gatherers;
    bel_status *status; // first wrong cell
} memory_slot;

typedef struct memory_look {
    const bel_memory_table *rows;
    const bel_columns_options *options;
    bel_columns *description;
    bel_arena *arena;
    bel_arena **texts; // per slot: texts of numbers, which statistics point to
    bel_guess_use *uses;
    bool *counts; // whether a column's values are counted
    memory_slot *slots;
    int slot_count;
    bel_column_statistics *totals;
    bel_status *status;
} memory_look;

static const char source_name[] = "table in memory";

// --- Gathering -----------------------------------------------------------------------------------

static bel_status *check_cell(const memory_look *in, int c, int64_t row, bool missing)
{
    const bel_memory_column *column = &in->rows->columns[c];
    if (column->numbers != NULL && isinf(bel_memory_number(column, row)))
        return bel_memory_cell_error(column, row, "a finite number");
    bool whole = in->uses[c] == BEL_GUESS_LABEL || in->uses[c] == BEL_GUESS_WEIGHT;
    if (!missing || !whole) return NULL;
    return bel_memory_cell_error(column, row,
                                 in->uses[c] == BEL_GUESS_LABEL ? "a label" : "a weight");
}

static void take_column(memory_look *in, int slot, int c, int64_t first, int64_t count)
{
    const bel_memory_column *column = &in->rows->columns[c];
    const bel_columns *d = in->description;
    bel_column_gatherer *g = &in->slots[slot].gatherers[c];
    bel_status **status = &in->slots[slot].status;
    // A class that is named is one, even if it looks missing.
    const bool named = in->uses[c] == BEL_GUESS_LABEL && in->options->class_count > 0;
    const bool bare = column->numbers != NULL && !in->counts[c] && !d->missing.has_number;
    char room[BEL_MEMORY_CELL];
    for (int64_t i = first; i < first + count && *status == NULL; i++) {
        const int64_t row = bel_memory_row(in->rows, i);
        g->statistics.cells++;
        double value = bare ? bel_memory_number(column, row) : 0;
        bel_cell cell = bare ? (bel_cell){0} : bel_memory_cell(column, row, d->decimal, room);
        bool missing = bare ? isnan(value) : bel_columns_is_missing(d, cell.text, cell.length);
        if (named) missing = cell.length == 0;
        *status = check_cell(in, c, row, missing);
        if (missing) {
            g->statistics.missing++;
        } else if (bare) {
            bel_column_gatherer_take_number(g, value, row);
        } else {
            if (cell.text == room) cell.text = bel_arena_copy(in->texts[slot], room, cell.length);
            bel_column_gatherer_take(g, cell.text, cell.length, row);
        }
    }
}

static void memory_gather(void *user, int slot, int64_t first, int64_t count)
{
    memory_look *in = user;
    for (int c = 0; c < in->rows->column_count; c++) {
        bel_column_gatherer *g = &in->slots[slot].gatherers[c];
        bel_column_gatherer_begin(g, in->counts[c], in->uses[c] == BEL_GUESS_LOG,
                                  in->description->decimal);
        take_column(in, slot, c, first, count);
        bel_column_gatherer_end(g);
    }
}

static bool memory_merge(void *user, int slot)
{
    memory_look *in = user;
    for (int c = 0; c < in->rows->column_count; c++) {
        bel_column_statistics *s = &in->slots[slot].gatherers[c].statistics;
        bel_column_statistics_merge(&in->totals[c], s);
        bel_column_statistics_deinit(s);
    }
    bel_status *status = in->slots[slot].status;
    in->slots[slot].status = NULL;
    if (in->status == NULL) {
        in->status = status;
    } else {
        bel_status_ignore(status); // an earlier row's is reported
    }
    return in->status == NULL;
}

static bel_status *gather_pass(memory_look *in, int64_t count)
{
    for (int c = 0; c < in->rows->column_count; c++) {
        bel_column_statistics_deinit(&in->totals[c]);
        in->totals[c] = (bel_column_statistics){0};
    }
    bel_status *status =
        bel_csv_grains_run(&(bel_csv_grains){.row_count = count,
                                             .thread_count = in->options->num_threads,
                                             .gather = memory_gather,
                                             .merge = memory_merge,
                                             .user = in});
    for (int i = 0; i < in->slot_count; i++) {  // grains after one with an error
        bel_status_ignore(in->slots[i].status); // the first grain's error is returned
        in->slots[i].status = NULL;
        for (int c = 0; c < in->rows->column_count; c++)
            bel_column_statistics_deinit(&in->slots[i].gatherers[c].statistics);
    }
    BEL_TRY(status);
    bel_status *wrong = in->status;
    in->status = NULL;
    return wrong;
}

static bool wants_values(memory_look *in, bool known)
{
    bool more = false;
    for (int c = 0; c < in->rows->column_count; c++) {
        bel_guess_column column = {in->rows->columns[c].name, known ? &in->totals[c] : NULL};
        if (in->counts[c] || !bel_guess_needs_values(&column, in->uses[c])) continue;
        more = in->counts[c] = true;
    }
    return more;
}

// As for files: the first grain tells which columns have texts, whose values are then counted.
static bel_status *gather_all(memory_look *in)
{
    int64_t rows = in->rows->row_count, first = rows < BEL_GRAIN_ROWS ? rows : BEL_GRAIN_ROWS;
    (void)wants_values(in, false);
    BEL_TRY(gather_pass(in, first));
    bool more = wants_values(in, true);
    if (more || first < rows) BEL_TRY(gather_pass(in, rows));
    if (wants_values(in, true)) BEL_TRY(gather_pass(in, rows));
    return NULL;
}

// --- Result --------------------------------------------------------------------------------------

// Names wrong cells of a column of numbers; takes ownership of the rule's error.
static bel_status *name_wrong_cells(const memory_look *in, int column, bel_status *status)
{
    const bel_column_statistics *s = &in->totals[column];
    const bel_memory_column *cells = &in->rows->columns[column];
    bel_str text = {0};
    char room[BEL_MEMORY_CELL];
    for (int i = 0; i < s->other_count; i++) {
        bel_cell cell = bel_memory_cell(cells, s->others[i], '.', room);
        const bel_csv_field field = {.text = cell.text, .length = cell.length};
        char *got = bel_csv_quote(&field);
        bel_str_printf(&text, "%srow %lld: %s", i == 0 ? "" : "; ", (long long)s->others[i], got);
        bel_free(got);
    }
    bel_status *all =
        BEL_ERR(BEL_DATA_LOSS, "%s, but %lld of its cells are not numbers: %s%s",
                bel_status_message(status), (long long)(s->cells - s->missing - s->numbers),
                text.text, s->cells - s->missing - s->numbers > s->other_count ? " …" : "");
    bel_status_ignore(status); // part of the longer message
    bel_str_deinit(&text);
    return all;
}

static bel_status *memory_describe(memory_look *in)
{
    const int count = in->rows->column_count;
    bel_guess_column *columns = bel_arena_alloc(in->arena, (size_t)count * sizeof *columns);
    int wrong = -1;
    for (int c = 0; c < count; c++)
        columns[c] = (bel_guess_column){in->rows->columns[c].name, &in->totals[c]};
    in->description->rows = in->rows->row_count;
    bel_status *status =
        bel_guess(columns, in->uses, count, in->options, source_name, in->description, &wrong);
    if (status != NULL && wrong >= 0) return name_wrong_cells(in, wrong, status);
    BEL_TRY(status);
    BEL_TRY(bel_columns_finish(in->description, source_name));
    return bel_columns_check_text(in->description, source_name);
}

// Takes the options that say how cells are read.
static void take_forms(memory_look *in)
{
    const bel_columns_options *o = in->options;
    bel_columns *d = in->description;
    if (o->decimal == ',') d->decimal = ',';
    if (o->missing == NULL) return;
    const char **missing =
        bel_arena_alloc(d->arena, ((size_t)o->missing_count + 1) * sizeof *missing);
    int count = 0;
    missing[count++] = "";
    for (int i = 0; i < o->missing_count; i++)
        if (*o->missing[i] != '\0') missing[count++] = bel_arena_strdup(d->arena, o->missing[i]);
    d->missing = (bel_missing_texts){.texts = missing, .count = count};
    bel_missing_texts_prepare(&d->missing, d->arena);
}

static void make_room(memory_look *in)
{
    size_t count = (size_t)in->rows->column_count;
    in->uses = bel_arena_alloc(in->arena, count * sizeof *in->uses);
    in->counts = bel_arena_alloc(in->arena, count * sizeof *in->counts);
    in->totals = bel_arena_alloc(in->arena, count * sizeof *in->totals);
    in->slot_count = bel_csv_grain_slots(in->options->num_threads);
    size_t slots = (size_t)in->slot_count;
    in->slots = bel_arena_alloc(in->arena, slots * sizeof *in->slots);
    in->texts = bel_arena_alloc(in->arena, slots * sizeof *in->texts);
    for (size_t i = 0; i < slots; i++) {
        in->slots[i].gatherers = bel_xcalloc(count, sizeof *in->slots[i].gatherers);
        in->texts[i] = bel_arena_create();
    }
}

static void free_room(memory_look *in)
{
    for (int i = 0; i < in->slot_count; i++) {
        bel_free(in->slots[i].gatherers);
        bel_arena_destroy(in->texts[i]);
    }
    for (int c = 0; c < in->rows->column_count && in->totals != NULL; c++)
        bel_column_statistics_deinit(&in->totals[c]);
    bel_arena_destroy(in->arena);
}

static bel_status *memory_infer(memory_look *in)
{
    const int count = in->rows->column_count;
    make_room(in);
    take_forms(in);
    bel_guess_column *named = bel_arena_alloc(in->arena, (size_t)count * sizeof *named);
    for (int c = 0; c < count; c++)
        named[c].name = in->rows->columns[c].name;
    BEL_TRY(bel_guess_uses(named, count, in->options, source_name, in->uses));
    BEL_TRY(gather_all(in));
    return memory_describe(in);
}

bel_status *bel_columns_infer_memory(const bel_memory_table *rows,
                                     const bel_columns_options *options, bel_columns **out_columns)
{
    bel_memory_table table;
    bel_columns_options known;
    BEL_TRY(bel_memory_table_take(rows, &table));
    BEL_TRY(bel_sized_take(&known, sizeof known, options, "bel_columns_options"));
    memory_look in = {.rows = &table,
                      .options = &known,
                      .description = bel_columns_create(),
                      .arena = bel_arena_create()};
    bel_status *status = memory_infer(&in);
    free_room(&in);
    if (status == NULL) {
        *out_columns = in.description;
    } else {
        bel_columns_destroy(in.description);
    }
    return status;
}
