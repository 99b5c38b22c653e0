// CSV files as a description of columns has them (belfry/columns.h). Each file's columns are found
// by name in its own header, so files may have them in any order, and others beside them. A cell
// goes to its elements by columns/transform.h alone.
//
// When the files are opened every cell is read once, on all cores, so that nothing wrong shows up
// in the middle of a training; rows without a label are left out then, and counted in the log.
// Values of categories that training did not have are counted then, and said where they are most.
// Not a second time where the description was made of the same rows in this process. Where bad rows
// are left out as they are read, labels alone are looked at before.
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/log.h"
#include "belfry/graph.h"
#include "columns/statistics.h"
#include "columns/transform.h"
#include "input/csv_table.h"
#include "input/holdout.h"
#include "input/source.h"

enum { MOST_ERRORS = 10 };

typedef struct table_source {
    bel_source base;
    bel_arena *arena;
    const bel_columns *columns;
    bel_csv_set set;
    int **places; // of each file: the column that each of its fields is; -1: none
    bel_holdout holdout;
    bool unchecked; // cells are read and not looked at before
    bool labelled;  // rows have a label
    int x_field, id_field, list_field, label_field, weight_field; // -1: there is none
    bel_bad_records *bad;
} table_source;

// A cell of a category with a value that is not known; its place is the file's own.
typedef struct unknown_cell {
    const bel_csv_file *file; // NULL: there is none
    bel_csv_field field;
} unknown_cell;

// What reading a row needs beside it; of one thread.
typedef struct scratch {
    uint64_t *crossed;
    bel_csv_spare spare;
    unknown_cell *unknown; // [columns]: the first of each category; NULL: nobody asks
} scratch;

// --- A row ---------------------------------------------------------------------------------------

static bel_status *cell_error(const bel_csv_file *file, const bel_csv_field *field,
                              const bel_column *column, const char *expected)
{
    char *got = bel_csv_quote(field);
    bel_status *status = bel_csv_file_error(file, field->text, "%s \"%s\": expected %s, got %s",
                                            column->kind == BEL_COLUMN_LABEL ? "label" : "column",
                                            column->name, expected, got);
    bel_free(got);
    return status;
}

// What a row's label is.
typedef enum label_kind {
    LABEL_GOOD, // or something else than its row's error
    LABEL_MISSING,
    LABEL_UNKNOWN, // a class that training did not have
} label_kind;

typedef struct label_state {
    label_kind kind;
    int missing; // MISSING: which of the description's texts it is
} label_state;

static label_state judge_label(const table_source *source, const bel_column *column,
                               bel_csv_cell cell)
{
    bool classes = column->label == BEL_LABEL_CLASSES;
    if (classes && bel_column_value(column, cell.text, cell.length) >= 0)
        return (label_state){LABEL_GOOD, -1};
    int missing = bel_missing_texts_find(&source->columns->missing, cell.text, cell.length);
    return (label_state){missing >= 0 ? LABEL_MISSING
                         : classes    ? LABEL_UNKNOWN
                                      : LABEL_GOOD,
                         missing};
}

// The label of the row at `at`; of several a missing one counts, then an unknown one.
static label_state find_label(const table_source *source, const bel_csv_file *file, const char *at,
                              scratch *s)
{
    const int *places = source->places[file - source->set.files];
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    label_state state = {LABEL_GOOD, -1};
    for (int i = 0; i < file->column_count && stop == BEL_CSV_DELIMITER; i++) {
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        const bel_column *column = places[i] < 0 ? NULL : &source->columns->items[places[i]];
        if (column == NULL || column->kind != BEL_COLUMN_LABEL || stop > BEL_CSV_ROW_END) continue;
        label_state one = judge_label(source, column, bel_csv_table_cell(&field, &s->spare));
        if (one.kind == LABEL_MISSING || state.kind == LABEL_GOOD) state = one;
        if (one.kind == LABEL_MISSING) break;
    }
    return state;
}

// Keeps the first cell that was counted as unknown.
static void note_unknown(scratch *s, const bel_csv_file *file, const bel_csv_field *field,
                         int column, const bel_columns_row *row)
{
    if (row->seen[column].unknown == 0 || s->unknown[column].file != NULL) return;
    s->unknown[column] = (unknown_cell){file, *field};
}

// Reads the row at `at`, whose structure was checked. *out_label (NULL: not asked for): that of a
// row that is an error. Where another cell is the error, only whether the label is missing: such
// rows are none to learn from, and often hold sums of the others.
static bel_status *read_row(const table_source *source, const bel_csv_file *file, const char *at,
                            const bel_columns_row *row, scratch *s, label_state *out_label)
{
    const bel_columns *columns = source->columns;
    const int *places = source->places[file - source->set.files];
    const char *begin = at;
    bel_columns_row_begin(columns, row);
    for (int i = 0; i < file->column_count; i++) {
        const bel_column *column = places[i] < 0 ? NULL : &columns->items[places[i]];
        double value;
        const char *stop = NULL;
        if (column != NULL && column->kind == BEL_COLUMN_NUMBER)
            stop = bel_decimal_parse(at, file->end, &value);
        bool bare = stop != NULL && stop < file->end && *stop == file->delimiter &&
                    !bel_csv_table_may_be_other(columns, at, stop) &&
                    !bel_column_is_missing_number(columns, column, at, (size_t)(stop - at));
        if (bare && bel_columns_row_put_number(column, value, row)) {
            at = stop + 1;
            continue;
        }
        bel_csv_field field;
        bel_csv_stop end = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (end > BEL_CSV_ROW_END) { // only when the file was changed behind our back
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(end));
        }
        if (column == NULL) continue;
        char expected[BEL_COLUMN_EXPECTED];
        bel_csv_cell cell = bel_csv_table_cell(&field, &s->spare);
        if (bel_columns_row_put(columns, column, cell.text, cell.length, row, expected)) {
            if (s->unknown != NULL) note_unknown(s, file, &field, places[i], row);
            continue;
        }
        if (out_label != NULL) *out_label = find_label(source, file, begin, s);
        if (out_label != NULL && out_label->kind == LABEL_UNKNOWN &&
            column->kind != BEL_COLUMN_LABEL)
            out_label->kind = LABEL_GOOD;
        return cell_error(file, &field, column, expected);
    }
    bel_columns_row_end(columns, row);
    return NULL;
}

static void *place_of(const table_source *source, const bel_sink *sink, int field)
{
    return field < 0 ? NULL : bel_sink_place(sink, &source->base, field, 0);
}

static bel_columns_row row_of(const table_source *source, const bel_sink *sink)
{
    void *label = place_of(source, sink, source->label_field);
    return (bel_columns_row){.x = place_of(source, sink, source->x_field),
                             .ids = place_of(source, sink, source->id_field),
                             .lists = place_of(source, sink, source->list_field),
                             .class_number = label,
                             .number = label,
                             .weight = place_of(source, sink, source->weight_field)};
}

static bel_status *table_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const table_source *source = (const table_source *)base;
    const bel_csv_label none = {.column = -1};
    const char *at;
    const bel_csv_file *file = bel_csv_set_find(&source->set, number, &at);
    if (source->bad != NULL) BEL_TRY(bel_csv_file_check_row(file, at, &none));
    uint64_t few[64];
    size_t count = (size_t)source->columns->count;
    scratch s = {.crossed = count <= 64 ? few : bel_xcalloc(count, sizeof *s.crossed)};
    bel_columns_row row = row_of(source, sink);
    row.crossed = s.crossed;
    bel_status *status = read_row(source, file, at, &row, &s, NULL);
    if (s.crossed != few) bel_free(s.crossed);
    bel_free(s.spare.text);
    return status;
}

static bel_status *table_check(const bel_source *base, int64_t block)
{
    return bel_csv_set_check(&((const table_source *)base)->set, block);
}

static void table_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const table_source *source = (const table_source *)base;
    bel_csv_set_origin(&source->set, number, out_text);
}

static const char *table_file(const bel_source *base, int64_t number)
{
    const table_source *source = (const table_source *)base;
    const char *at;
    return bel_csv_set_find(&source->set, number, &at)->path;
}

// By the whole text: what changes it, notes among it, makes it another description.
static void table_describe(const bel_source *base, bel_str *out_text)
{
    const table_source *source = (const table_source *)base;
    bel_str_printf(out_text, "columns=%016llx label=%d",
                   (unsigned long long)source->columns->fingerprint, source->labelled);
    bel_holdout_describe(&source->holdout, out_text);
}

static void table_destroy(bel_source *base)
{
    table_source *source = (table_source *)base;
    bel_csv_set_close(&source->set);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind table_kind = {
    .name = "table",
    .check = table_check,
    .read = table_read,
    .origin = table_origin,
    .file = table_file,
    .describe = table_describe,
    .destroy = table_destroy,
};

// --- Columns by name -----------------------------------------------------------------------------

static bool is_read(const table_source *source, const bel_column *column)
{
    bool beside = column->kind == BEL_COLUMN_LABEL || column->kind == BEL_COLUMN_WEIGHT;
    return beside ? source->labelled : bel_column_is_feature(column);
}

static bel_status *missing_columns(const table_source *source, const bel_csv_file *file,
                                   const bool *found, const char *const *names)
{
    bel_str missing = {0}, others = {0};
    for (int c = 0; c < source->columns->count; c++) {
        const bel_column *column = &source->columns->items[c];
        if (found[c] || !is_read(source, column)) continue;
        bel_str_printf(&missing, "%s\"%s\"", missing.length > 0 ? ", " : "", column->name);
    }
    if (missing.length == 0) return NULL;
    for (int i = 0; i < file->column_count; i++)
        if (bel_columns_find(source->columns, names[i]) < 0)
            bel_str_printf(&others, "%s\"%s\"", others.length > 0 ? ", " : "", names[i]);
    bel_status *status = BEL_ERR(
        BEL_INVALID_ARGUMENT, "%s: no column %s, with which the model was trained%s%s%s",
        file->path, missing.text, others.length > 0 ? "; here are, and were not there: " : "",
        others.length > 0 ? others.text : "",
        bel_csv_table_delimiter_hint(names, file->column_count, file->delimiter));
    bel_str_deinit(&missing);
    bel_str_deinit(&others);
    return status;
}

// Of two columns of one name the first counts, as when the description was made.
static bel_status *place_columns(table_source *source, int number)
{
    bel_csv_file *file = &source->set.files[number];
    const bel_columns *columns = source->columns;
    const char *const *names;
    BEL_TRY(bel_csv_table_names(file, columns->header, source->arena, &names));
    size_t bytes = (size_t)file->column_count * sizeof(int);
    int *places = source->places[number] = bel_arena_alloc(source->arena, bytes);
    bool *found = bel_arena_alloc(source->arena, (size_t)columns->count * sizeof *found);
    bel_str others = {0};
    for (int i = 0; i < file->column_count; i++) {
        int c = bel_columns_find(columns, names[i]);
        bool reads = c >= 0 && !found[c] && is_read(source, &columns->items[c]);
        places[i] = reads ? c : -1;
        if (c >= 0) found[c] = true;
        if (c < 0) bel_str_printf(&others, "%s\"%s\"", others.length > 0 ? ", " : "", names[i]);
    }
    if (others.length > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: left out, as the model was not trained with them: %s",
                      file->path, others.text);
    }
    bel_str_deinit(&others);
    return missing_columns(source, file, found, names);
}

static void add_field(table_source *source, bel_source_field *fields, int *place, const char *name,
                      bel_dtype dtype, bel_shape shape)
{
    *place = source->base.field_count++;
    fields[*place] = (bel_source_field){.name = name, .dtype = dtype, .shape = shape};
}

static void make_fields(table_source *source)
{
    enum { MOST = 5 };
    const bel_columns *c = source->columns;
    bel_source_field *fields = bel_arena_alloc(source->arena, MOST * sizeof *fields);
    source->base.fields = fields;
    if (c->x_width > 0)
        add_field(source, fields, &source->x_field, "x", BEL_DTYPE_F32, BEL_SHAPE(c->x_width));
    if (c->id_count > 0)
        add_field(source, fields, &source->id_field, BEL_ID_FIELD, BEL_DTYPE_I64,
                  BEL_SHAPE(c->id_count));
    if (c->list_count > 0)
        add_field(source, fields, &source->list_field, BEL_ID_LIST_FIELD, BEL_DTYPE_I64,
                  BEL_SHAPE(c->list_count, c->list_most));
    if (!source->labelled) return;
    if (c->weight >= 0)
        add_field(source, fields, &source->weight_field, BEL_WEIGHT_FIELD, BEL_DTYPE_F32,
                  bel_shape_scalar());
    bel_label_kind kind = bel_columns_label_kind(c);
    if (c->label >= 0)
        add_field(source, fields, &source->label_field, BEL_LABEL_FIELD,
                  kind == BEL_LABEL_NUMBER ? BEL_DTYPE_F64 : BEL_DTYPE_I64,
                  kind == BEL_LABEL_SEVERAL ? BEL_SHAPE(c->label_count) : bel_shape_scalar());
}

// --- Every cell, once ----------------------------------------------------------------------------

// A slot of a wave of grains.
typedef struct check_slot {
    bel_columns_row row;
    scratch scratch;
    int64_t first, count, unlabelled, unknown; // of the grain
    int64_t *missing;                          // of the unlabelled, those with each text
    bool left_out[BEL_GRAIN_ROWS];             // rows whose label is missing or unknown
    bel_status *unknown_error;                 // of the first of these
    bel_status *errors[MOST_ERRORS];
    int error_count;
} check_slot;

typedef struct check {
    table_source *source;
    check_slot *slots;
    int slot_count;
    int64_t unlabelled, unknown, *missing; // as of a slot
    bool some;                             // rows are left out; then those that are not:
    bel_number_list rows;
    bel_category_cells *seen; // of each column
    unknown_cell *unknown_cells;
    bel_status *unknown_error;
    bel_status *errors[MOST_ERRORS];
    int error_count;
    bel_status *status; // memory
} check;

// Of a table whose bad rows are left out when they are read: a row without a label is none of them.
static label_state check_label(const table_source *source, const bel_csv_file *file, const char *at,
                               scratch *s)
{
    const bel_csv_label none = {.column = -1};
    label_state label = find_label(source, file, at, s);
    if (label.kind == LABEL_MISSING) {
        bel_status *bad = bel_csv_file_check_row(file, at, &none);
        if (bad == NULL) return label;
        bel_status_ignore(bad); // told when it is read; nobody knows which field is its label
    }
    return (label_state){LABEL_GOOD, -1};
}

static void check_grain(void *user, int number, int64_t first, int64_t count)
{
    check *c = user;
    const table_source *source = c->source;
    check_slot *slot = &c->slots[number];
    slot->first = first;
    slot->count = count;
    slot->unlabelled = slot->unknown = 0;
    memset(slot->missing, 0, (size_t)source->columns->missing.count * sizeof *slot->missing);
    slot->error_count = 0;
    size_t columns = (size_t)source->columns->count;
    memset(slot->row.seen, 0, columns * sizeof *slot->row.seen);
    memset(slot->scratch.unknown, 0, columns * sizeof *slot->scratch.unknown);
    for (int64_t i = 0; i < count; i++) {
        const char *at;
        label_state label = {LABEL_GOOD, -1};
        bel_status *status = NULL;
        const bel_csv_file *file = bel_csv_set_find(&source->set, first + i, &at);
        if (source->bad != NULL || source->unchecked) {
            label = check_label(source, file, at, &slot->scratch);
        } else {
            status = read_row(source, file, at, &slot->row, &slot->scratch, &label);
        }
        slot->left_out[i] = label.kind != LABEL_GOOD;
        slot->unlabelled += label.kind == LABEL_MISSING;
        slot->unknown += label.kind == LABEL_UNKNOWN;
        if (label.kind == LABEL_MISSING) slot->missing[label.missing]++;
        if (label.kind == LABEL_UNKNOWN && slot->unknown == 1) {
            slot->unknown_error = status;
        } else if (label.kind == LABEL_GOOD && status != NULL && slot->error_count < MOST_ERRORS) {
            slot->errors[slot->error_count++] = status;
        } else {
            bel_status_ignore(status); // counted, or there are enough
        }
    }
}

// Rows are listed from the first one without a label on.
static bel_status *note_rows(check *c, const check_slot *slot)
{
    if (!c->some && slot->unlabelled + slot->unknown == 0) return NULL;
    for (int64_t row = 0; !c->some && row < slot->first; row++)
        BEL_TRY(bel_number_list_append(&c->rows, row));
    c->some = true;
    for (int64_t i = 0; i < slot->count; i++)
        if (!slot->left_out[i]) BEL_TRY(bel_number_list_append(&c->rows, slot->first + i));
    return NULL;
}

static void merge_categories(check *c, const check_slot *slot)
{
    for (int i = 0; i < c->source->columns->count; i++) {
        c->seen[i].cells += slot->row.seen[i].cells;
        c->seen[i].unknown += slot->row.seen[i].unknown;
        if (c->unknown_cells[i].file == NULL) c->unknown_cells[i] = slot->scratch.unknown[i];
    }
}

static bool merge_grain(void *user, int number)
{
    check *c = user;
    check_slot *slot = &c->slots[number];
    merge_categories(c, slot);
    for (int i = 0; i < slot->error_count; i++) {
        if (c->error_count < MOST_ERRORS) {
            c->errors[c->error_count++] = slot->errors[i];
        } else {
            bel_status_ignore(slot->errors[i]); // there are enough
        }
    }
    slot->error_count = 0;
    c->unlabelled += slot->unlabelled;
    c->unknown += slot->unknown;
    for (int i = 0; i < c->source->columns->missing.count; i++)
        c->missing[i] += slot->missing[i];
    if (c->unknown_error == NULL) {
        c->unknown_error = slot->unknown_error;
    } else {
        bel_status_ignore(slot->unknown_error); // the first one is kept
    }
    slot->unknown_error = NULL;
    if (c->status == NULL) c->status = note_rows(c, slot);
    return c->status == NULL && c->error_count < MOST_ERRORS;
}

// The errors in one, each with its place.
static bel_status *gather_errors(check *c)
{
    if (c->error_count == 0) return c->status;
    bel_str text = {0};
    for (int i = 0; i < c->error_count; i++) {
        bel_str_printf(&text, "%s%s", i == 0 ? "" : "; ", bel_status_message(c->errors[i]));
        bel_status_ignore(c->errors[i]); // told together
    }
    bel_status_ignore(c->status); // less than the errors
    bel_status *status =
        BEL_ERR(BEL_DATA_LOSS, "%s%s", text.text, c->error_count == MOST_ERRORS ? " …" : "");
    bel_str_deinit(&text);
    return status;
}

static void make_slots(check *c, int threads)
{
    const bel_columns *columns = c->source->columns;
    c->slot_count = bel_csv_grain_slots(threads);
    c->slots = bel_xcalloc((size_t)c->slot_count, sizeof *c->slots);
    size_t texts = (size_t)columns->missing.count + 1;
    size_t count = (size_t)columns->count;
    c->missing = bel_xcalloc(texts, sizeof *c->missing);
    c->seen = bel_xcalloc(count, sizeof *c->seen);
    c->unknown_cells = bel_xcalloc(count, sizeof *c->unknown_cells);
    for (int i = 0; i < c->slot_count; i++) {
        check_slot *slot = &c->slots[i];
        slot->missing = bel_xcalloc(texts, sizeof *slot->missing);
        int64_t *label = bel_xcalloc((size_t)columns->label_count + 1, sizeof *label);
        size_t lists = (size_t)columns->list_count * (size_t)columns->list_most;
        slot->row =
            (bel_columns_row){.x = bel_xcalloc((size_t)columns->x_width + 1, sizeof(float)),
                              .ids = bel_xcalloc((size_t)columns->id_count + 1, sizeof(int64_t)),
                              .lists = bel_xcalloc(lists + 1, sizeof(int64_t)),
                              .class_number = label,
                              .number = (double *)label,
                              .weight = bel_xcalloc(1, sizeof(float)),
                              .crossed = bel_xcalloc(count, sizeof(uint64_t)),
                              .seen = bel_xcalloc(count, sizeof(bel_category_cells))};
        slot->scratch.unknown = bel_xcalloc(count, sizeof *slot->scratch.unknown);
    }
}

static void free_slots(check *c)
{
    for (int i = 0; i < c->slot_count; i++) {
        check_slot *slot = &c->slots[i];
        bel_columns_row *row = &slot->row;
        for (int e = 0; e < slot->error_count; e++)
            bel_status_ignore(slot->errors[e]); // of a wave behind the tenth error
        bel_status_ignore(slot->unknown_error); // the same
        bel_free(slot->missing);
        bel_free(row->x);
        bel_free(row->ids);
        bel_free(row->lists);
        bel_free(row->class_number);
        bel_free(row->weight);
        bel_free(row->crossed);
        bel_free(row->seen);
        bel_free(slot->scratch.spare.text);
        bel_free(slot->scratch.unknown);
    }
    bel_free(c->slots);
}

// Which texts stood for a missing label: one of them may be a class to whoever wrote it.
static void tell_unlabelled(const check *c)
{
    enum { FEW = 100 }; // one in so many is an accident
    const table_source *source = c->source;
    const bel_missing_texts *missing = &source->columns->missing;
    int64_t rows = source->set.row_count, named = 0;
    bel_str texts = {0};
    for (int i = 0; i < missing->count; i++) {
        if (c->missing[i] == 0) continue;
        bel_str_printf(&texts, "%s%lld %s%s%s", texts.length > 0 ? ", " : "",
                       (long long)c->missing[i], *missing->texts[i] != '\0' ? "\"" : "empty",
                       missing->texts[i], *missing->texts[i] != '\0' ? "\"" : "");
        if (*missing->texts[i] != '\0') named += c->missing[i];
    }
    bel_log_write(
        BEL_LOG_WARN, "%s: %lld of %lld rows have no label \"%s\", and are left out: %s%s",
        source->set.files[0].path, (long long)c->unlabelled, (long long)rows,
        bel_columns_label(source->columns), texts.text,
        named * FEW <= rows ? ""
                            : "; hint: where such a text is a class, --missing "
                              "lists those that stand for nothing, as in --missing \"?\"");
    bel_str_deinit(&texts);
}

// A few rows of other classes are rows that a model cannot be right about; many are another table,
// or classes that are written in another way.
static bel_status *tell_left_out(const check *c)
{
    enum { MOST_UNKNOWN = 10 }; // a share: one in so many
    const table_source *source = c->source;
    const char *path = source->set.files[0].path, *label = bel_columns_label(source->columns);
    int64_t rows = source->set.row_count - c->unlabelled;
    if (c->unknown > 0 && c->unknown * MOST_UNKNOWN > rows) {
        return BEL_ERR(BEL_DATA_LOSS, "%s, and %lld more of %lld rows have other classes",
                       bel_status_message(c->unknown_error), (long long)c->unknown - 1,
                       (long long)rows);
    }
    if (c->unlabelled > 0 && c->rows.count == 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: no row has a label \"%s\"", path, label);
    }
    if (c->unlabelled > 0) tell_unlabelled(c);
    if (c->unknown > 0) {
        bel_log_write(BEL_LOG_WARN,
                      "%lld of %lld rows have a class that training had not, and are left out; the "
                      "first: %s",
                      (long long)c->unknown, (long long)rows, bel_status_message(c->unknown_error));
    }
    return NULL;
}

// A category most of whose values are new says nothing to the model: it is another column, or one
// that was written in another way, as 1.0 for 1 or TRUE for True.
static void tell_unknown_values(const check *c)
{
    for (int i = 0; i < c->source->columns->count; i++) {
        const bel_column *column = &c->source->columns->items[i];
        const bel_category_cells *seen = &c->seen[i];
        if (column->value_count == 0 || 2 * seen->unknown <= seen->cells) continue;
        const unknown_cell *first = &c->unknown_cells[i];
        char *got = bel_csv_quote(&first->field);
        bel_status *where = bel_csv_file_error(first->file, first->field.text, "%s", got);
        bel_log_write(BEL_LOG_WARN,
                      "column \"%s\": %lld of %lld values are none that training told apart, and "
                      "count as unknown; the first: %s",
                      column->name, (long long)seen->unknown, (long long)seen->cells,
                      bel_status_message(where));
        bel_status_ignore(where); // told
        bel_free(got);
    }
}

static bel_status *check_cells(table_source *source)
{
    check c = {.source = source};
    make_slots(&c, 0);
    bel_status *status = bel_csv_grains_run(&(bel_csv_grains){.row_count = source->set.row_count,
                                                              .gather = check_grain,
                                                              .merge = merge_grain,
                                                              .user = &c});
    if (status == NULL) status = gather_errors(&c);
    free_slots(&c);
    if (status == NULL) status = tell_left_out(&c);
    if (status == NULL) tell_unknown_values(&c);
    bel_free(c.missing);
    bel_free(c.seen);
    bel_free(c.unknown_cells);
    bel_status_ignore(c.unknown_error); // told
    if (status == NULL && c.some) bel_csv_set_keep(&source->set, &c.rows);
    bel_number_list_deinit(&c.rows);
    return status;
}

// --- Opening -------------------------------------------------------------------------------------

static bel_status *hold_out(table_source *source)
{
    int *labels = bel_arena_alloc(source->arena, (size_t)source->set.count * sizeof *labels);
    for (int i = 0; i < source->set.count; i++) {
        labels[i] = -1;
        for (int f = 0; f < source->set.files[i].column_count; f++)
            if (source->places[i][f] >= 0 && source->places[i][f] == source->columns->label)
                labels[i] = f;
    }
    return bel_holdout_apply(&source->holdout, &source->set, labels);
}

// Whether the description was made of these very rows.
static bool was_seen(const table_source *source)
{
    const bel_columns *c = source->columns;
    return c->seen_content != 0 && c->seen_content == source->set.content &&
           bel_holdout_equal(&c->seen_holdout, &source->holdout);
}

static bel_status *open_files(table_source *source, const bel_csv_options *options)
{
    const char *const *paths;
    const bel_csv_label none = {.column = -1};
    bel_csv_set *set = &source->set;
    BEL_TRY(bel_csv_set_open(set, source->arena, options->paths, options->path_count,
                             source->columns->delimiter, &paths));
    source->places = bel_arena_alloc(source->arena, (size_t)set->count * sizeof *source->places);
    for (int i = 0; i < set->count; i++)
        BEL_TRY(place_columns(source, i));
    make_fields(source);
    BEL_TRY(bel_csv_set_index(set, &none, source->bad != NULL));
    BEL_TRY(hold_out(source));
    source->base.size_bytes = set->size_bytes;
    source->base.content = set->content;
    bool lazy = source->bad != NULL || source->unchecked;
    if ((!lazy || source->labelled) && !was_seen(source)) BEL_TRY(check_cells(source));
    source->base.record_count = set->row_count;
    return NULL;
}

bel_status *bel_source_open_table(const bel_csv_options *options, const bel_opening *opening,
                                  bel_source **out_source)
{
    table_source *source = bel_xcalloc(1, sizeof *source);
    source->base.kind = &table_kind;
    source->base.table = options->table;
    source->arena = bel_arena_create();
    source->columns = options->table;
    source->labelled = !options->unlabelled && options->table->label >= 0;
    source->holdout = options->holdout;
    source->bad = opening->bad;
    source->unchecked = options->unchecked;
    source->x_field = source->id_field = source->list_field = -1;
    source->label_field = source->weight_field = -1;
    bel_status *status = open_files(source, options);
    if (status != NULL) {
        table_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
