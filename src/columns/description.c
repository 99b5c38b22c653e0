// Creation, layout and queries of a description. Elements of "x" are in the order of the columns,
// with a number's indicator directly after it, so a description suffices to tell what element 17
// is. Ids and lists are numbered in the same way. Checkpoints depend on that order: with another
// order the model would be another one.
#include "columns/description.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "columns/cell_number.h"
#include "columns/statistics.h"

// --- Creation ------------------------------------------------------------------------------------

bel_columns *bel_columns_create(void)
{
    static const char *const missing[] = {"",    "NA",   "N/A",  "n/a",  "#N/A", "<NA>", "nan",
                                          "NaN", "null", "NULL", "None", "?",    "."};
    bel_columns *columns = bel_xcalloc(1, sizeof *columns);
    columns->arena = bel_arena_create();
    columns->delimiter = ',';
    columns->decimal = '.';
    columns->header = true;
    columns->missing =
        (bel_missing_texts){.texts = missing, .count = sizeof missing / sizeof missing[0]};
    bel_missing_texts_prepare(&columns->missing, columns->arena);
    columns->label = columns->weight = columns->tokens = -1;
    return columns;
}

void bel_columns_destroy(bel_columns *columns)
{
    if (columns == NULL) return;
    for (int i = 0; i < columns->count; i++)
        bel_index_deinit(&columns->items[i].index);
    bel_index_deinit(&columns->names);
    bel_free(columns->items);
    bel_free(columns->text);
    bel_arena_destroy(columns->arena);
    bel_free(columns);
}

bel_column *bel_columns_add(bel_columns *columns, const char *name, bel_column_kind kind)
{
    size_t capacity = (size_t)columns->count;
    if ((capacity & (capacity - 1)) == 0) { // 0, 1, 2, 4 …: full
        size_t more = capacity == 0 ? 1 : 2 * capacity;
        columns->items = bel_xrealloc(columns->items, more * sizeof *columns->items);
    }
    bel_column *column = &columns->items[columns->count];
    *column = (bel_column){.name = bel_arena_strdup(columns->arena, name),
                           .kind = kind,
                           .mean = kind == BEL_COLUMN_WEIGHT ? 1 : 0,
                           .deviation = 1,
                           .high = 1,
                           .separator = '|',
                           .most = kind == BEL_COLUMN_TOKENS ? 0 : 16,
                           .grams = 1};
    column->seed = bel_hash_name_seed(column->name);
    bel_index_put_text(&columns->names, column->name, columns->count++);
    return column;
}

int bel_columns_find(const bel_columns *columns, const char *name)
{
    size_t at = 0;
    for (int found; (found = bel_index_next_text(&columns->names, name, &at)) >= 0;)
        if (strcmp(columns->items[found].name, name) == 0) return found;
    return -1;
}

bool bel_column_is_feature(const bel_column *column)
{
    return column->kind < BEL_COLUMN_CROSS;
}

// --- Values --------------------------------------------------------------------------------------

uint64_t bel_column_hash(const bel_column *column, const char *text, size_t length)
{
    return (uint64_t)bel_hash_name(text, length, column->seed);
}

static int find_value(const bel_column *column, const char *text, size_t length)
{
    size_t at = 0;
    uint64_t hash = bel_column_hash(column, text, length);
    for (int found; (found = bel_index_next(&column->index, hash, &at)) >= 0;) {
        const char *value = column->values[found];
        if (strlen(value) == length && memcmp(value, text, length) == 0) return found;
    }
    return -1;
}

// Hashes a number's key to a value that no text's hash has. False: the text is no number that may
// be equal to one written in another way.
static bool number_hash(const bel_column *column, const char *text, size_t length,
                        char out_key[BEL_CELL_NUMBER_ROOM], uint64_t *out_hash)
{
    size_t bytes = bel_cell_number_key(column->decimal, text, length, out_key);
    if (bytes == 0 || (!column->all_numbers && strstr(out_key, "e-") != NULL)) return false;
    *out_hash = ~bel_column_hash(column, out_key, bytes);
    return true;
}

int bel_column_value(const bel_column *column, const char *text, size_t length)
{
    char key[BEL_CELL_NUMBER_ROOM], other[BEL_CELL_NUMBER_ROOM];
    uint64_t hash, same;
    size_t at = 0;
    int value = find_value(column, text, length);
    if (value >= 0 || !number_hash(column, text, length, key, &hash)) return value;
    for (int found; (found = bel_index_next(&column->index, hash, &at)) >= 0;) {
        const char *known = column->values[found];
        bool equal =
            number_hash(column, known, strlen(known), other, &same) && strcmp(key, other) == 0;
        if (equal && (value < 0 || found < value)) value = found; // the first of them
    }
    return value;
}

bool bel_column_read_number(const bel_columns *columns, const bel_column *column, const char *text,
                            size_t length, double *out_value)
{
    bel_cell_dressed number;
    if (bel_cell_number_read(columns->decimal, text, length, out_value)) return true;
    if (column->unit == NULL && column->thousands == '\0') return false;
    if (!bel_cell_number_undress(columns->decimal, text, length, &number)) return false;
    bool unit = number.unit == NULL ||
                (column->unit != NULL && strlen(column->unit) == number.unit_length &&
                 memcmp(column->unit, number.unit, number.unit_length) == 0);
    *out_value = number.value;
    return unit && (!number.commas || column->thousands == ',');
}

// --- Missing values ------------------------------------------------------------------------------

static int length_bit(size_t length)
{
    return length < 63 ? (int)length : 63;
}

void bel_missing_texts_prepare(bel_missing_texts *missing, bel_arena *arena)
{
    const bel_missing_texts given = *missing;
    size_t *lengths = bel_arena_alloc(arena, ((size_t)given.count + 1) * sizeof *lengths);
    double *numbers = bel_arena_alloc(arena, ((size_t)given.count + 1) * sizeof *numbers);
    *missing = (bel_missing_texts){
        .texts = given.texts, .count = given.count, .lengths = lengths, .numbers = numbers};
    for (int i = 0; i < given.count; i++) {
        const char *text = given.texts[i];
        const unsigned first = (unsigned char)*text;
        lengths[i] = strlen(text);
        missing->of_length |= (uint64_t)1 << length_bit(lengths[i]);
        missing->of_first[first / 64] |= (uint64_t)1 << first % 64;
        bool number = bel_cell_number_read('.', text, lengths[i], &numbers[i]) ||
                      bel_cell_number_read(',', text, lengths[i], &numbers[i]);
        if (!number) numbers[i] = NAN;
        missing->has_number = missing->has_number || number;
    }
}

static int find_text(const bel_missing_texts *missing, const char *text, size_t length)
{
    if ((missing->of_length >> length_bit(length) & 1) == 0) return -1;
    const unsigned first = length > 0 ? (unsigned char)*text : 0;
    if ((missing->of_first[first / 64] >> first % 64 & 1) == 0) return -1;
    for (int i = 0; i < missing->count; i++) {
        bool same = missing->lengths[i] == length && memcmp(missing->texts[i], text, length) == 0;
        if (same) return i;
    }
    return -1;
}

int bel_missing_texts_find(const bel_missing_texts *missing, char decimal, const char *text,
                           size_t length)
{
    double number;
    int found = find_text(missing, text, length);
    if (found >= 0 || !missing->has_number || bel_column_is_padded(text, length)) return found;
    if (!bel_cell_number_read(decimal, text, length, &number)) return -1;
    for (int i = 0; i < missing->count && found < 0; i++)
        if (missing->numbers[i] == number) found = i;
    return found;
}

bool bel_columns_is_missing(const bel_columns *columns, const char *text, size_t length)
{
    return bel_missing_texts_find(&columns->missing, columns->decimal, text, length) >= 0;
}

bool bel_column_is_missing(const bel_columns *columns, const bel_column *column, const char *text,
                           size_t length)
{
    return bel_columns_is_missing(columns, text, length) ||
           bel_missing_texts_find(&column->absent, columns->decimal, text, length) >= 0;
}

bool bel_column_is_missing_number(const bel_columns *columns, const bel_column *column,
                                  const char *text, size_t length)
{
    return (columns->missing.has_number || column->absent.has_number) &&
           bel_column_is_missing(columns, column, text, length);
}

// --- Finishing -----------------------------------------------------------------------------------

BEL_PRINTF(3, 4)
static bel_status *fault(const bel_column *column, const char *source, const char *format, ...)
{
    va_list args;
    bel_str text = {0};
    char message[512];
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (column->line > 0) {
        bel_str_printf(&text, "%s:%d:%d: ", source, column->line, column->place);
    } else {
        bel_str_printf(&text, "%s: ", source);
    }
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "%scolumn \"%s\": %s", text.text, column->name, message);
    bel_str_deinit(&text);
    return status;
}

static bel_status *index_values(bel_column *column, const char *source)
{
    char key[BEL_CELL_NUMBER_ROOM];
    column->all_numbers = true;
    for (int i = 0; i < column->value_count && column->all_numbers; i++) {
        const char *value = column->values[i];
        column->all_numbers = bel_cell_number_key(column->decimal, value, strlen(value), key) > 0;
    }
    for (int i = 0; i < column->value_count; i++) {
        uint64_t hash;
        size_t length = strlen(column->values[i]);
        if (find_value(column, column->values[i], length) >= 0) {
            return fault(column, source, "the value \"%s\" stands twice", column->values[i]);
        }
        bel_index_put(&column->index, bel_column_hash(column, column->values[i], length), i);
        if (number_hash(column, column->values[i], length, key, &hash))
            bel_index_put(&column->index, hash, i);
    }
    return NULL;
}

static bel_status *check_number(const bel_column *column, const char *source)
{
    bool good = isfinite(column->mean) && isfinite(column->deviation) && column->deviation > 0;
    if (!good) return fault(column, source, "expected a mean and a deviation above 0");
    if (!(column->clip >= 0 && column->clip <= FLT_MAX)) // columns/transform.c relies on it
        return fault(column, source, "expected a clip from 0 to 3.4e38");
    if (column->kind != BEL_COLUMN_NUMBER) return NULL;
    if (!isfinite(column->fill)) return fault(column, source, "expected a fill that is a number");
    if (column->scale == BEL_SCALE_MIN_MAX && !(column->high > column->low)) {
        return fault(column, source, "expected a high above its low");
    }
    if (column->scale == BEL_SCALE_BUCKETS && column->bound_count == 0) {
        return fault(column, source, "expected bounds of its buckets");
    }
    for (int i = 1; i < column->bound_count; i++)
        if (!(column->bounds[i] > column->bounds[i - 1])) {
            return fault(column, source, "expected bounds that rise");
        }
    return NULL;
}

// A cross combines columns whose cells hold one value each.
static bel_status *find_crossed(bel_columns *columns, bel_column *cross, const char *source)
{
    if (cross->of_count < 2 || cross->of_count > BEL_CROSS_MOST) {
        return fault(cross, source, "expected a cross of 2 to %d columns, got %d", BEL_CROSS_MOST,
                     cross->of_count);
    }
    for (int i = 0; i < cross->of_count; i++) {
        int place = bel_columns_find(columns, cross->of[i]);
        bel_column_kind kind = place < 0 ? BEL_COLUMN_KINDS : columns->items[place].kind;
        if (kind != BEL_COLUMN_CATEGORY && kind != BEL_COLUMN_HASH) {
            return fault(cross, source, "expected a category or hash \"%s\" to cross%s",
                         cross->of[i], place < 0 ? ", got no such column" : "");
        }
        columns->items[place].crossed = true;
        cross->of_places[i] = place;
    }
    return NULL;
}

static int width_of(const bel_column *column)
{
    static const int widths[BEL_DATE_PARTS] = {1, 2, 12, 7, 24};
    int width = column->indicator;
    switch (column->kind) {
    case BEL_COLUMN_NUMBER:
        return width + (column->scale == BEL_SCALE_BUCKETS ? column->bound_count + 1 : 1);
    case BEL_COLUMN_CATEGORY:
        return column->embedded ? 0 : column->value_count + column->missing_value;
    case BEL_COLUMN_DATE:
        for (int p = 0; p < BEL_DATE_PARTS; p++)
            if ((column->parts >> p & 1) != 0) width += widths[p];
        return width;
    default: return 0;
    }
}

static bool is_id(const bel_column *column)
{
    return column->kind == BEL_COLUMN_HASH || column->kind == BEL_COLUMN_CROSS ||
           (column->kind == BEL_COLUMN_CATEGORY && column->embedded);
}

static void description_place(bel_columns *columns, bel_column *column)
{
    bool list = column->kind == BEL_COLUMN_LIST || column->kind == BEL_COLUMN_TEXT;
    column->x_width = width_of(column);
    column->x_place = column->x_width > 0 ? columns->x_width : -1;
    column->id_place = is_id(column) ? columns->id_count++ : -1;
    column->list_place = list ? columns->list_count++ : -1;
    columns->x_width += column->x_width;
    if (list && column->most > columns->list_most) columns->list_most = column->most;
}

// Several labels are allowed if each has two classes.
static bel_status *take_its_place(bel_columns *columns, bel_column *column, int i,
                                  const char *source)
{
    if (column->kind == BEL_COLUMN_WEIGHT) {
        if (columns->weight >= 0) {
            return fault(column, source, "\"%s\" is the weight already",
                         columns->items[columns->weight].name);
        }
        columns->weight = i;
    }
    if (column->kind == BEL_COLUMN_TOKENS) {
        if (columns->tokens >= 0) {
            return fault(column, source, "\"%s\" is the column of tokens already",
                         columns->items[columns->tokens].name);
        }
        columns->tokens = i;
    }
    if (column->kind != BEL_COLUMN_LABEL) return NULL;
    if (columns->label < 0) columns->label = i;
    column->label_place = columns->label_count++;
    return NULL;
}

static bel_status *check_labels(const bel_columns *columns, const char *source)
{
    for (int i = 0; i < columns->count && columns->label_count > 1; i++) {
        const bel_column *c = &columns->items[i];
        if (c->kind != BEL_COLUMN_LABEL) continue;
        if (c->label == BEL_LABEL_CLASSES && c->value_count == 2) continue;
        return fault(c, source, "of several labels each has two classes, and \"%s\" %s", c->name,
                     c->label == BEL_LABEL_CLASSES ? "has more" : "is a number");
    }
    return NULL;
}

// A model that reads tokens reads nothing else of a row: another column would silently be without
// effect.
static bel_status *check_tokens(const bel_columns *columns, const char *source)
{
    for (int i = 0; i < columns->count && columns->tokens >= 0; i++) {
        const bel_column *c = &columns->items[i];
        if (i == columns->tokens || !bel_column_is_feature(c)) continue;
        return fault(c, source,
                     "beside the tokens of \"%s\" no column is learned from; hint: kind "
                     "ignore for \"%s\"",
                     columns->items[columns->tokens].name, c->name);
    }
    return NULL;
}

static bel_status *finish_column(bel_columns *columns, int i, const char *source)
{
    bel_column *column = &columns->items[i];
    BEL_TRY(take_its_place(columns, column, i, source));
    bel_missing_texts_prepare(&column->absent, columns->arena);
    bool scaled = column->kind == BEL_COLUMN_NUMBER || column->kind == BEL_COLUMN_DATE ||
                  column->kind == BEL_COLUMN_LABEL;
    if (scaled) BEL_TRY(check_number(column, source));
    if (column->kind == BEL_COLUMN_CROSS) BEL_TRY(find_crossed(columns, column, source));
    column->decimal = columns->decimal;
    BEL_TRY(index_values(column, source));
    if (column->kind == BEL_COLUMN_LABEL && column->label == BEL_LABEL_CLASSES &&
        column->value_count < 2) {
        return fault(column, source, "expected two classes or more, got %d", column->value_count);
    }
    if (column->kind == BEL_COLUMN_WEIGHT && !(column->mean > 0))
        return fault(column, source, "expected weights whose mean is above 0");
    if (column->rows != NULL && column->row_count != column->value_count) {
        return fault(column, source, "expected rows of each of %d classes, got %d numbers",
                     column->value_count, column->row_count);
    }
    description_place(columns, column);
    return NULL;
}

static void write_text(bel_columns *columns)
{
    bel_free(columns->text);
    columns->text = bel_columns_write(columns);
    columns->fingerprint = bel_hash64(columns->text, strlen(columns->text));
}

// The error names the columns that are left out, with the reasons.
static bel_status *nothing_to_learn_from(const bel_columns *columns, const char *source)
{
    enum { SHOWN = 5 };
    bel_str text = {0};
    int count = 0;
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        if (c->kind != BEL_COLUMN_IGNORE || c->note == NULL || ++count > SHOWN) continue;
        bel_str_printf(&text, "; column \"%s\" is left out: %s", c->name, c->note);
    }
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT,
                "%s: expected a column to learn from besides the label, got none%s%s%s", source,
                count > 0 ? text.text : "", count > SHOWN ? " …" : "",
                count > 0 ? "; hint: declare such a column (--numeric, --categorical); "
                            "an array of numbers has all of its columns"
                          : "");
    bel_str_deinit(&text);
    return status;
}

bel_status *bel_columns_finish(bel_columns *columns, const char *source)
{
    for (int i = 0; i < columns->count; i++)
        BEL_TRY(finish_column(columns, i, source));
    BEL_TRY(check_labels(columns, source));
    BEL_TRY(check_tokens(columns, source));
    if (columns->x_width == 0 && columns->id_count == 0 && columns->list_count == 0 &&
        columns->tokens < 0)
        return nothing_to_learn_from(columns, source);
    write_text(columns);
    return NULL;
}

void bel_columns_set_rows(bel_columns *columns, int64_t rows)
{
    columns->rows = rows;
    write_text(columns);
}

void bel_columns_set_warning(bel_columns *columns, int column, const char *warning)
{
    columns->items[column].warning = bel_arena_strdup(columns->arena, warning);
    write_text(columns);
}

void bel_columns_add_missing(bel_columns *columns, const char *const *texts, int count)
{
    bel_missing_texts *missing = &columns->missing;
    size_t all = (size_t)missing->count + (size_t)count;
    const char **longer = bel_arena_alloc(columns->arena, (all + 1) * sizeof *longer);
    for (int i = 0; i < missing->count; i++)
        longer[i] = missing->texts[i];
    for (int i = 0; i < count; i++)
        longer[missing->count + i] = bel_arena_strdup(columns->arena, texts[i]);
    *missing = (bel_missing_texts){.texts = longer, .count = (int)all};
    bel_missing_texts_prepare(missing, columns->arena);
}

// Cells that were looked at before were not tokenized.
bel_status *bel_columns_set_tokenizer(bel_columns *columns, const bel_tokenizer *tokenizer)
{
    if (columns->tokens < 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the columns have no text to make tokens of");
    columns->tokenizer = tokenizer;
    columns->seen_content = 0;
    return NULL;
}

// --- Queries -------------------------------------------------------------------------------------

const char *bel_columns_text(const bel_columns *columns)
{
    return columns->text;
}

static const bel_column *label_of(const bel_columns *columns)
{
    return columns->label < 0 ? NULL : &columns->items[columns->label];
}

bel_label_kind bel_columns_label_kind(const bel_columns *columns)
{
    const bel_column *label = label_of(columns);
    if (columns->label_count > 1) return BEL_LABEL_SEVERAL;
    return label == NULL ? BEL_LABEL_NONE : label->label;
}

int bel_columns_label_count(const bel_columns *columns)
{
    return columns->label_count;
}

static const bel_column *label_at(const bel_columns *columns, int label)
{
    int i = columns->label;
    while (columns->items[i].kind != BEL_COLUMN_LABEL || columns->items[i].label_place != label)
        i++;
    return &columns->items[i];
}

const char *bel_columns_label_at(const bel_columns *columns, int label)
{
    return label_at(columns, label)->name;
}

const char *bel_columns_label(const bel_columns *columns)
{
    const bel_column *label = label_of(columns);
    return label == NULL ? NULL : label->name;
}

int bel_columns_class_count(const bel_columns *columns)
{
    return bel_columns_label_kind(columns) == BEL_LABEL_CLASSES ? label_of(columns)->value_count
                                                                : 0;
}

const char *bel_columns_class(const bel_columns *columns, int number)
{
    return label_of(columns)->values[number];
}

double bel_columns_class_rows(const bel_columns *columns, int number)
{
    const bel_column *label = label_of(columns);
    return label->rows != NULL ? label->rows[number] : 0;
}

double bel_columns_weight_mean(const bel_columns *columns)
{
    return columns->weight >= 0 ? columns->items[columns->weight].mean : 1;
}

double bel_columns_label_low(const bel_columns *columns)
{
    return bel_columns_label_kind(columns) == BEL_LABEL_NUMBER ? label_of(columns)->low : 0;
}

double bel_columns_label_mean(const bel_columns *columns)
{
    return bel_columns_label_kind(columns) == BEL_LABEL_NUMBER ? label_of(columns)->mean : 0;
}

double bel_columns_label_deviation(const bel_columns *columns)
{
    return bel_columns_label_kind(columns) == BEL_LABEL_NUMBER ? label_of(columns)->deviation : 1;
}

const char *bel_columns_feature_name(const bel_columns *columns, int index)
{
    for (int i = 0; i < columns->count; i++)
        if (bel_column_is_feature(&columns->items[i]) && index-- == 0)
            return columns->items[i].name;
    return NULL;
}

int64_t bel_columns_rows(const bel_columns *columns)
{
    return columns->rows;
}
