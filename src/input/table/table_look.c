// Rows are taken in grains, whose statistics are merged in the order of the rows. Values are
// counted in the columns that the options name, and in those with a text in the first grain. If a
// text comes later in another column, the files are read once more.
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "columns/cell_number.h"
#include "input/table/table_look.h"

// Whether the text of a column's number says no more than the number.
static bool is_plain(const bel_table_look *in, int column, const char *text, size_t length)
{
    const bel_columns *d = in->description;
    return !in->counts[column] && !bel_column_is_padded(text, length) &&
           !bel_cell_number_is_long(text, length) &&
           !(d->missing.has_number && bel_columns_is_missing(d, text, length));
}

// Splits a row, whose structure is known to be good, and reads bare numbers on the way. Each field
// is written to its final place, because a copy would wait for the write before it.
static void split_row(const bel_table_look *in, bel_look_slot *s, const bel_csv_file *file,
                      const int *places, const char *at)
{
    bel_csv_field unused;
    for (int i = 0; i < file->column_count; i++) {
        double value = 0;
        int column = places[i];
        bel_csv_field *field = column < 0 ? &unused : &s->fields[column];
        const char *text = at, *stop = bel_decimal_parse(at, file->end, &value);
        bool number = stop != NULL && stop < file->end && *stop == file->delimiter &&
                      !bel_csv_table_may_be_other(in->description, at, stop);
        if (number) {
            at = stop + 1;
        } else {
            (void)bel_csv_next_field(at, file->end, file->delimiter, field, &at);
        }
        if (column < 0) continue;
        s->is_number[column] = number && is_plain(in, column, text, (size_t)(stop - text));
        s->numbers[column] = value;
        if (!number || s->is_number[column]) continue;
        field->text = text;
        field->length = (size_t)(stop - text);
        field->doubled = false;
    }
}

static bel_cell cell_of(bel_look_slot *s, int column)
{
    bel_cell cell = bel_csv_table_cell(&s->fields[column], &s->spare);
    if (cell.text == s->spare.text && cell.length > 0) // the next one overwrites it
        cell.text = bel_arena_copy(s->arena, cell.text, cell.length);
    return cell;
}

static void take_row(bel_table_look *in, bel_look_slot *s, int64_t row)
{
    for (int c = 0; c < in->count; c++) {
        bel_column_statistics *of = &s->gatherers[c].statistics;
        of->cells++;
        if (s->is_number[c]) {
            bel_column_gatherer_take_number(&s->gatherers[c], s->numbers[c], row);
            continue;
        }
        bel_cell cell = cell_of(s, c);
        if (bel_columns_is_missing(in->description, cell.text, cell.length)) {
            of->missing++;
        } else {
            bel_column_gatherer_take(&s->gatherers[c], cell.text, cell.length, row);
        }
    }
}

static bool lacks_label(const bel_table_look *in, bel_look_slot *s)
{
    for (int c = in->label; c >= 0 && c < in->count; c++) {
        if (in->uses[c] != BEL_GUESS_LABEL || s->is_number[c]) continue;
        bel_cell cell = bel_csv_table_cell(&s->fields[c], &s->spare);
        if (bel_columns_is_missing(in->description, cell.text, cell.length)) return true;
    }
    return false;
}

// Whether a row cannot be split. The reader of the table leaves out such rows.
static bool is_bad(const bel_csv_file *file, const char *row)
{
    const bel_csv_label none = {.column = -1};
    bel_status *status = bel_csv_file_check_row(file, row, &none);
    bool bad = status != NULL;
    bel_status_ignore(status); // reported, and counted, when the row is read
    return bad;
}

// Takes a free counter. One is free, because there is one for each grain that runs at a time.
static bel_look_counter *take_counter(bel_table_look *in)
{
    for (int i = 0;; i = (i + 1) % in->counter_count)
        if (!atomic_exchange(&in->counters[i].taken, true)) return &in->counters[i];
}

static void begin_column(const bel_table_look *in, bel_look_slot *s, bel_look_counter *counts,
                         int c)
{
    bel_value_counts_raise(&counts->values[c], in->totals[c].values.level);
    bel_column_gatherer_begin(&s->gatherers[c], in->counts[c], in->uses[c] == BEL_GUESS_LOG,
                              in->description->decimal);
    s->gatherers[c].statistics.values = counts->values[c];
}

// More than FEW_VALUES values are merged with the grain's statistics, so that all counters soon
// know the level of the sample.
static void end_column(bel_look_slot *s, bel_look_counter *counts, int c)
{
    enum { FEW_VALUES = 8192 };
    bel_column_gatherer *g = &s->gatherers[c];
    bool few = g->statistics.values.count <= FEW_VALUES;
    bel_column_gatherer_end(g);
    counts->values[c] = few ? g->statistics.values : (bel_value_counts){0};
    if (few) g->statistics.values = (bel_value_counts){0};
}

static void table_look_gather(void *user, int number, int64_t first, int64_t count)
{
    bel_table_look *in = user;
    bel_look_slot *s = &in->slots[number];
    bel_look_counter *counts = take_counter(in);
    for (int c = 0; c < in->count; c++)
        begin_column(in, s, counts, c);
    for (int64_t row = first; row < first + count; row++) {
        const char *at;
        const bel_csv_file *file = bel_csv_set_find(&in->set, row, &at);
        if (in->options->skip_bad && is_bad(file, at)) continue;
        split_row(in, s, file, in->places[file - in->set.files], at);
        if (!lacks_label(in, s)) take_row(in, s, row);
    }
    for (int c = 0; c < in->count; c++)
        end_column(s, counts, c);
    atomic_store(&counts->taken, false);
}

static bool table_look_merge(void *user, int number)
{
    bel_table_look *in = user;
    bel_look_slot *s = &in->slots[number];
    for (int c = 0; c < in->count; c++) {
        bel_column_statistics_merge(&in->totals[c], &s->gatherers[c].statistics);
        bel_column_statistics_deinit(&s->gatherers[c].statistics);
    }
    return true;
}

static void merge_counters(bel_table_look *in)
{
    for (int i = 0; i < in->counter_count; i++) {
        for (int c = 0; c < in->count; c++) {
            bel_value_counts *values = &in->counters[i].values[c];
            bel_value_counts_merge(&in->totals[c].values, values);
            bel_free(values->places);
            *values = (bel_value_counts){0};
        }
    }
}

// Gathers rows [0, count) of all files. Values point into the files, or into slots' arenas.
static bel_status *table_look_pass(bel_table_look *in, int64_t count)
{
    for (int c = 0; c < in->count; c++) {
        bel_column_statistics_deinit(&in->totals[c]);
        in->totals[c] = (bel_column_statistics){0};
    }
    bel_status *status =
        bel_csv_grains_run(&(bel_csv_grains){.row_count = count,
                                             .thread_count = in->options->num_threads,
                                             .gather = table_look_gather,
                                             .merge = table_look_merge,
                                             .user = in});
    merge_counters(in);
    return status;
}

static bool wants_values(bel_table_look *in)
{
    bool more = false;
    for (int c = 0; c < in->count; c++) {
        bel_guess_column column = {in->names[c], &in->totals[c]};
        if (in->counts[c] || !bel_guess_needs_values(&column, in->uses[c])) continue;
        more = in->counts[c] = true;
    }
    return more;
}

static bel_status *gather_all(bel_table_look *in)
{
    int64_t rows = in->set.row_count, first = rows < BEL_GRAIN_ROWS ? rows : BEL_GRAIN_ROWS;
    for (int c = 0; c < in->count; c++) {
        bel_guess_column column = {in->names[c], NULL};
        in->counts[c] = bel_guess_needs_values(&column, in->uses[c]);
    }
    BEL_TRY(table_look_pass(in, first));
    bool more = wants_values(in);
    if (more || first < rows) BEL_TRY(table_look_pass(in, rows));
    if (wants_values(in)) BEL_TRY(table_look_pass(in, rows));
    return NULL;
}

// Whether a column's numbers have decimal commas: each cell has one or is an integer, and at least
// one comma can be nothing else.
static bool has_commas(const bel_table_look *in, int c)
{
    const bel_column_statistics *s = &in->totals[c];
    bool read = in->uses[c] != BEL_GUESS_IGNORED && in->uses[c] != BEL_GUESS_KEY &&
                in->uses[c] != BEL_GUESS_CATEGORY;
    return read && s->clear_commas > 0 && s->commas + s->wholes == s->cells - s->missing;
}

static bool are_numbers(const bel_table_look *in, int c)
{
    return in->totals[c].numbers == in->totals[c].cells - in->totals[c].missing;
}

// Also chooses the decimal separator: a comma if a column has decimal commas and no other column
// has numbers that the comma would spoil.
bel_status *bel_table_look_gather(bel_table_look *in)
{
    bel_columns *d = in->description;
    bool comma = false, spoils = false;
    BEL_TRY(gather_all(in));
    for (int c = 0; c < in->count; c++)
        comma = comma || has_commas(in, c);
    if (!comma || d->delimiter == ',' || in->options->decimal != '\0') return NULL;
    int64_t *numbers = bel_arena_alloc(in->arena, (size_t)in->count * sizeof *numbers);
    bool *votes = bel_arena_alloc(in->arena, (size_t)in->count * sizeof *votes);
    for (int c = 0; c < in->count; c++) {
        numbers[c] = in->totals[c].numbers;
        votes[c] = has_commas(in, c);
    }
    d->decimal = ',';
    BEL_TRY(gather_all(in));
    for (int c = 0; c < in->count; c++)
        spoils = spoils || in->totals[c].numbers < numbers[c] || (votes[c] && !are_numbers(in, c));
    if (!spoils) return NULL;
    d->decimal = '.';
    return gather_all(in);
}

// --- Memory --------------------------------------------------------------------------------------

void bel_table_look_make_room(bel_table_look *in)
{
    size_t count = (size_t)in->count;
    in->uses = bel_arena_alloc(in->arena, count * sizeof *in->uses);
    in->counts = bel_arena_alloc(in->arena, count * sizeof *in->counts);
    in->totals = bel_arena_alloc(in->arena, count * sizeof *in->totals);
    int slots = bel_csv_grain_slots(in->options->num_threads);
    in->slots = bel_arena_alloc(in->arena, (size_t)slots * sizeof *in->slots);
    for (in->slot_count = 0; in->slot_count < slots; in->slot_count++) {
        bel_look_slot *s = &in->slots[in->slot_count];
        s->gatherers = bel_xcalloc(count, sizeof *s->gatherers);
        s->fields = bel_xcalloc(count, sizeof *s->fields);
        s->numbers = bel_xcalloc(count, sizeof *s->numbers);
        s->is_number = bel_xcalloc(count, sizeof *s->is_number);
        s->arena = bel_arena_create();
    }
    in->counter_count = bel_csv_grain_threads(in->options->num_threads);
    in->counters = bel_xcalloc((size_t)in->counter_count, sizeof *in->counters);
    for (int i = 0; i < in->counter_count; i++)
        in->counters[i].values = bel_xcalloc(count, sizeof *in->counters[i].values);
}

void bel_table_look_free_room(bel_table_look *in)
{
    for (int i = 0; i < in->slot_count; i++) {
        bel_look_slot *s = &in->slots[i];
        bel_free(s->gatherers);
        bel_free(s->fields);
        bel_free(s->numbers);
        bel_free(s->is_number);
        bel_free(s->spare.text);
        bel_arena_destroy(s->arena);
    }
    for (int i = 0; i < in->counter_count; i++)
        bel_free(in->counters[i].values); // empty after each pass
    bel_free(in->counters);
    for (int c = 0; c < in->count && in->totals != NULL; c++)
        bel_column_statistics_deinit(&in->totals[c]);
}

bel_status *bel_table_look_cell(const bel_table_look *in, int64_t row, int column)
{
    const char *at;
    const bel_csv_file *file = bel_csv_set_find(&in->set, row, &at);
    const int *places = in->places[file - in->set.files];
    bel_csv_field field = {0};
    for (int f = 0; f < file->column_count; f++) {
        (void)bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (places[f] == column) break;
    }
    char *got = bel_csv_quote(&field);
    bel_status *where = bel_csv_file_error(file, field.text, "%s", got);
    bel_free(got);
    return where;
}
