// Check of all cells of a table at opening, in grains on all cores, so that no error shows up in
// the middle of a training. Errors are reported in the order of the rows. Only labels are checked
// if bad rows are left out as they are read, or if the caller does not want to wait (`unchecked`).
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "columns/statistics.h"
#include "input/source/table_source.h"

enum { MOST_ERRORS = 10 };

// Slot of a wave of grains.
typedef struct check_slot {
    bel_columns_block rows; // a block's
    bel_table_block block;
    bel_table_scratch scratch;
    int64_t first, count, unlabeled, unknown; // the grain's
    int64_t *missing;                         // per missing text: unlabeled rows with it
    bool left_out[BEL_GRAIN_ROWS];            // rows whose label is missing or unknown
    bel_status *unknown_error;                // error of the first unknown class
    bel_status *errors[MOST_ERRORS];
    int error_count;
} check_slot;

typedef struct check {
    bel_table_source *source;
    check_slot *slots;
    int slot_count;
    int64_t unlabeled, unknown, *missing; // as in a slot
    bool some;                            // some rows are left out
    bel_number_list rows;                 // if so, the rows that are kept
    bel_category_cells *seen;             // per column
    bel_unknown_cell *unknown_cells;
    bel_status *unknown_error;
    bel_status *errors[MOST_ERRORS];
    int error_count;
    bel_status *status; // memory
} check;

// State of a row's label in a table whose bad rows are left out when they are read. A row that only
// lacks its label is not a bad row.
static bel_label_state check_label(const bel_table_source *source, const bel_csv_file *file,
                                   const char *at, bel_table_scratch *s)
{
    const bel_csv_label none = {.column = -1};
    bel_label_state label = bel_table_source_find_label(source, file, at, s);
    if (label.kind == BEL_FOUND_MISSING) {
        bel_status *bad = bel_csv_file_check_row(file, at, &none);
        if (bad == NULL) return label;
        bel_status_ignore(bad); // reported when it is read; its label's field is unknown
    }
    return (bel_label_state){BEL_FOUND_GOOD, -1};
}

// Adds row `i` of the grain to the slot's findings. The slot takes over the error.
static void take_row(check_slot *slot, int64_t i, bel_label_state label, bel_status *status)
{
    slot->left_out[i] = label.kind != BEL_FOUND_GOOD;
    slot->unlabeled += label.kind == BEL_FOUND_MISSING;
    slot->unknown += label.kind == BEL_FOUND_UNKNOWN;
    if (label.kind == BEL_FOUND_MISSING) slot->missing[label.missing]++;
    if (label.kind == BEL_FOUND_UNKNOWN && slot->unknown == 1) {
        slot->unknown_error = status;
    } else if (label.kind == BEL_FOUND_GOOD && status != NULL && slot->error_count < MOST_ERRORS) {
        slot->errors[slot->error_count++] = status;
    } else {
        bel_status_ignore(status); // counted, or the list is full
    }
}

// Checks a block of rows, from row `first` of the grain on.
static void check_block(const bel_table_source *source, check_slot *slot, int64_t first)
{
    const bel_label_state good = {BEL_FOUND_GOOD, -1};
    const bool labels_only = source->bad != NULL || source->unchecked;
    bel_table_block *block = &slot->block;
    block->known = true;
    for (int i = 0; i < block->count; i++) {
        const int64_t row = slot->first + first + i;
        block->files[i] = bel_csv_set_find(&source->set, row, &block->rows[i]);
        block->known = block->known && bel_csv_set_is_numbers(&source->set, row);
    }
    if (!labels_only) bel_table_source_read_block(source, block, &slot->rows, &slot->scratch);
    for (int i = 0; i < block->count; i++) {
        bel_label_state label = good;
        bel_status *status = NULL;
        if (labels_only) {
            label = check_label(source, block->files[i], block->rows[i], &slot->scratch);
        } else if ((block->wrong >> i & 1) != 0) {
            label = block->labels[i];
            status = block->errors[i];
        }
        take_row(slot, first + i, label, status);
    }
}

static void check_grain(void *user, int number, int64_t first, int64_t count)
{
    check *c = user;
    const bel_table_source *source = c->source;
    check_slot *slot = &c->slots[number];
    slot->first = first;
    slot->count = count;
    slot->unlabeled = slot->unknown = 0;
    memset(slot->missing, 0, (size_t)source->columns->missing.count * sizeof *slot->missing);
    slot->error_count = 0;
    size_t columns = (size_t)source->columns->count;
    memset(slot->rows.seen, 0, columns * sizeof *slot->rows.seen);
    memset(slot->scratch.unknown, 0, columns * sizeof *slot->scratch.unknown);
    for (int64_t i = 0; i < count; i += slot->block.count) {
        int64_t rest = count - i;
        slot->block.count = (int)(rest < BEL_COLUMNS_BLOCK ? rest : BEL_COLUMNS_BLOCK);
        check_block(source, slot, i);
    }
}

// Lists the rows that are kept. The list begins when the first row is left out.
static bel_status *note_rows(check *c, const check_slot *slot)
{
    if (!c->some && slot->unlabeled + slot->unknown == 0) return NULL;
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
        c->seen[i].cells += slot->rows.seen[i].cells;
        c->seen[i].unknown += slot->rows.seen[i].unknown;
        c->seen[i].empty += slot->rows.seen[i].empty;
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
            bel_status_ignore(slot->errors[i]); // the list is full
        }
    }
    slot->error_count = 0;
    c->unlabeled += slot->unlabeled;
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

// Joins the errors into one, each with its place.
static bel_status *gather_errors(check *c)
{
    if (c->error_count == 0) return c->status;
    bel_str text = {0};
    for (int i = 0; i < c->error_count; i++) {
        bel_str_printf(&text, "%s%s", i == 0 ? "" : "; ", bel_status_message(c->errors[i]));
        bel_status_ignore(c->errors[i]); // reported together
    }
    bel_status_ignore(c->status); // the errors matter more
    bel_status *status =
        BEL_ERR(BEL_DATA_LOSS, "%s%s", text.text, c->error_count == MOST_ERRORS ? " …" : "");
    bel_str_deinit(&text);
    return status;
}

// Memory for a block of rows, whose elements are discarded.
static bel_columns_block make_rows(const bel_columns *columns)
{
    const size_t rows = BEL_COLUMNS_BLOCK;
    const size_t lists = (size_t)columns->list_count * (size_t)columns->list_most;
    const size_t tokens = columns->tokens < 0 ? 0 : (size_t)columns->items[columns->tokens].most;
    int64_t *label = bel_xcalloc(rows * ((size_t)columns->label_count + 1), sizeof *label);
    return (bel_columns_block){
        .x = bel_xcalloc(rows * (size_t)columns->x_width + 1, sizeof(float)),
        .ids = bel_xcalloc(rows * (size_t)columns->id_count + 1, sizeof(int64_t)),
        .lists = bel_xcalloc(rows * lists + 1, sizeof(int64_t)),
        .tokens = bel_xcalloc(rows * tokens + 1, sizeof(int64_t)),
        .lengths = bel_xcalloc(rows, sizeof(int64_t)),
        .class_number = label,
        .number = (double *)label,
        .weight = bel_xcalloc(rows, sizeof(float)),
        .seen = bel_xcalloc((size_t)columns->count, sizeof(bel_category_cells))};
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
        slot->rows = make_rows(columns);
        bel_table_scratch_init(c->source, BEL_COLUMNS_BLOCK, &slot->scratch);
        slot->scratch.unknown = bel_xcalloc(count, sizeof *slot->scratch.unknown);
    }
}

static void free_slots(check *c)
{
    for (int i = 0; i < c->slot_count; i++) {
        check_slot *slot = &c->slots[i];
        bel_columns_block *rows = &slot->rows;
        for (int e = 0; e < slot->error_count; e++)
            bel_status_ignore(slot->errors[e]); // from a wave after the tenth error
        bel_status_ignore(slot->unknown_error); // the same
        bel_free(slot->missing);
        bel_free(rows->x);
        bel_free(rows->ids);
        bel_free(rows->lists);
        bel_free(rows->tokens);
        bel_free(rows->lengths);
        bel_free(rows->class_number);
        bel_free(rows->weight);
        bel_free(rows->seen);
        bel_table_scratch_deinit(&slot->scratch);
    }
    bel_free(c->slots);
}

// Reports which texts stood for a missing label, because the table's author may have meant one as a
// class.
static void tell_unlabeled(const check *c)
{
    enum { FEW = 100 }; // one row in FEW is an accident
    const bel_table_source *source = c->source;
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
        source->set.files[0].path, (long long)c->unlabeled, (long long)rows,
        bel_columns_label(source->columns), texts.text,
        named * FEW <= rows ? ""
                            : "; hint: if such a text is a class, list only the texts that mean a "
                              "missing value, as in --missing \"?\"");
    bel_str_deinit(&texts);
}

// Reports the rows that are left out. A model cannot be right about a few rows of other classes.
// Many such rows are an error: they are from another table, or write classes in another way.
static bel_status *tell_left_out(const check *c)
{
    enum { MOST_UNKNOWN = 10 }; // at most one row in MOST_UNKNOWN
    const bel_table_source *source = c->source;
    const char *path = source->set.files[0].path, *label = bel_columns_label(source->columns);
    int64_t rows = source->set.row_count - c->unlabeled;
    if (c->unknown > 0 && c->unknown * MOST_UNKNOWN > rows) {
        return BEL_ERR(BEL_DATA_LOSS, "%s, and %lld more of %lld rows have other classes",
                       bel_status_message(c->unknown_error), (long long)c->unknown - 1,
                       (long long)rows);
    }
    if (c->unlabeled > 0 && c->rows.count == 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: no row has a label \"%s\"", path, label);
    }
    if (c->unlabeled > 0) tell_unlabeled(c);
    if (c->unknown > 0) {
        bel_log_write(BEL_LOG_WARN,
                      "%lld of %lld rows have a class that training did not have, and are left "
                      "out; the first: %s",
                      (long long)c->unknown, (long long)rows, bel_status_message(c->unknown_error));
    }
    return NULL;
}

// Warns of categories most of whose values are new, as they tell the model nothing. Such a column
// is another one, or was written in another way, as 1.0 for 1 or TRUE for True.
static void tell_unknown_values(const check *c)
{
    for (int i = 0; i < c->source->columns->count; i++) {
        const bel_column *column = &c->source->columns->items[i];
        const bel_category_cells *seen = &c->seen[i];
        if (column->value_count == 0 || 2 * seen->unknown <= seen->cells) continue;
        const bel_unknown_cell *first = &c->unknown_cells[i];
        char *got = bel_csv_quote(&first->field);
        bel_status *where = bel_csv_file_error(first->file, first->field.text, "%s", got);
        bel_log_write(BEL_LOG_WARN,
                      "column \"%s\": %lld of %lld values are not among those that training "
                      "distinguished, and count as unknown; the first: %s",
                      column->name, (long long)seen->unknown, (long long)seen->cells,
                      bel_status_message(where));
        bel_status_ignore(where); // reported
        bel_free(got);
    }
}

bel_status *bel_table_source_check(bel_table_source *source)
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
    bool counted = source->bad == NULL && !source->unchecked;
    if (status == NULL && counted) {
        const bel_csv_set *set = &source->set;
        char *name = bel_strf("%s%s", set->files[0].path, set->count > 1 ? ", …" : "");
        bel_table_fields_tell_cut(source->columns, c.seen, name);
        bel_free(name);
    }
    bel_free(c.missing);
    bel_free(c.seen);
    bel_free(c.unknown_cells);
    bel_status_ignore(c.unknown_error); // reported
    if (status == NULL && c.some) bel_csv_set_keep(&source->set, &c.rows);
    bel_number_list_deinit(&c.rows);
    return status;
}
