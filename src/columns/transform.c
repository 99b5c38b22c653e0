// Transformation of cells, one loop over the rows of a block for each kind of column. Numbers are
// scaled in double and rounded once, so that large ones (years, ids, seconds) lose nothing to F32
// before the mean is subtracted. A category's value outside the vocabulary sets all elements to 0,
// and all such values share one row of a table. A missing value is a separate value only if
// training had one.
//
// Loops over numbers contain no calls, so that the compiler vectorizes them. Hashes and look-ups
// work cell by cell.
#include "columns/transform.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/real.h"
#include "belfry/graph.h"
#include "columns/cell_number.h"
#include "columns/date.h"
#include "tokens/encoder.h"

// Texts whose hashes represent an unknown and a missing value. No cell contains a zero byte, so no
// cell has these texts.
static const char unknown_text[] = "\0unknown", missing_text[] = "\0missing";

bel_columns_block bel_columns_block_from(const bel_columns *columns, const bel_columns_block *rows,
                                         int64_t first)
{
    const ptrdiff_t at = (ptrdiff_t)first;
    bool several = columns->label_count > 1;
    bel_columns_block from = *rows;
    if (from.x != NULL) from.x += at * columns->x_width;
    if (from.ids != NULL) from.ids += at * columns->id_count;
    if (from.lists != NULL) from.lists += at * columns->list_count * columns->list_most;
    if (columns->tokens >= 0) {
        from.tokens += at * columns->items[columns->tokens].most;
        from.lengths += at;
    }
    if (from.class_number != NULL) from.class_number += several ? at * columns->label_count : at;
    if (from.number != NULL) from.number += at;
    if (from.weight != NULL) from.weight += at;
    if (from.crossed != NULL) from.crossed += at * columns->count;
    return from;
}

void bel_columns_begin(const bel_columns *columns, const bel_columns_block *rows, int count)
{
    size_t elements = (size_t)count * (size_t)columns->x_width;
    if (elements > 0) memset(rows->x, 0, elements * sizeof *rows->x);
    for (int i = 0; i < count * columns->list_count * columns->list_most; i++)
        rows->lists[i] = BEL_NO_ID;
}

// Lowest row of a set. Loop: for (bel_row_bits left = rows; left != 0; left &= left - 1).
static int lowest(bel_row_bits rows)
{
    return __builtin_ctz(rows);
}

// --- Numbers -------------------------------------------------------------------------------------

static int bucket_of(const bel_column *column, double value)
{
    int low = 0, high = column->bound_count; // number of bounds that are at most `value`
    while (low < high) {
        int middle = (low + high) / 2;
        if (column->bounds[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Scales each value, without clipping.
static void transform_scale(const bel_column *column, const double *values, int count, double *out)
{
    const double mean = column->mean, deviation = column->deviation;
    const double low = column->low, range = column->high - column->low;
    switch (column->scale) {
    case BEL_SCALE_STANDARD:
        for (int i = 0; i < count; i++)
            out[i] = (values[i] - mean) / deviation;
        break;
    case BEL_SCALE_MIN_MAX:
        for (int i = 0; i < count; i++)
            out[i] = (values[i] - low) / range;
        break;
    case BEL_SCALE_LOG:
        for (int i = 0; i < count; i++) {
            double logarithm = copysign(bel_real_log(1 + fabs(values[i])), values[i]);
            out[i] = (logarithm - mean) / deviation;
        }
        break;
    default: memcpy(out, values, (size_t)count * sizeof *out);
    }
}

// fmin(fmax(number, -most), most) without a call, except that NaN becomes -most.
static inline double clipped(double number, double most)
{
    number = number > -most ? number : -most;
    return number < most ? number : most;
}

static double most_of(const bel_column *column)
{
    return column->clip > 0 ? column->clip : (double)INFINITY;
}

bel_row_bits bel_columns_put_numbers(const bel_columns *columns, const bel_column *column,
                                     const double *values, bel_row_bits missing, int count,
                                     const bel_columns_block *rows)
{
    const ptrdiff_t stride = columns->x_width;
    float *x = rows->x + column->x_place;
    if (missing != 0 && column->indicator) {
        for (bel_row_bits left = missing; left != 0; left &= left - 1)
            x[lowest(left) * stride + column->x_width - 1] = 1;
    }
    if (column->scale == BEL_SCALE_BUCKETS) {
        for (int i = 0; i < count; i++)
            x[i * stride + bucket_of(column, values[i])] = 1;
        return 0;
    }
    double scaled[BEL_COLUMNS_BLOCK];
    float numbers[BEL_COLUMNS_BLOCK];
    const double most = most_of(column);
    bel_row_bits wrong = 0;
    transform_scale(column, values, count, scaled);
    for (int i = 0; i < count; i++)
        numbers[i] = (float)clipped(scaled[i], most);
    for (int i = 0; i < count; i++)
        x[i * stride] = numbers[i];
    for (int i = 0; i < count && column->clip == 0; i++) // with a clip all are finite
        wrong |= (bel_row_bits)!isfinite(numbers[i]) << i;
    return wrong;
}

bool bel_columns_read_number(const bel_columns *columns, const bel_column *column, bel_cell cell,
                             double *out_value, bool *out_missing)
{
    *out_missing = bel_column_is_missing(columns, column, cell.text, cell.length);
    *out_value = column->fill;
    if (*out_missing) return column->missing != BEL_MISSING_ERROR;
    return bel_column_read_number(columns, column, cell.text, cell.length, out_value);
}

static bel_row_bits put_numbers(const bel_columns *columns, const bel_column *column,
                                const bel_cell *cells, bel_row_bits live, int count,
                                const bel_columns_block *rows)
{
    double values[BEL_COLUMNS_BLOCK] = {0};
    bel_row_bits missing = 0, wrong = 0;
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        int i = lowest(left);
        bool none;
        bool good = bel_columns_read_number(columns, column, cells[i], &values[i], &none);
        missing |= (bel_row_bits)(good && none) << i;
        wrong |= (bel_row_bits)!good << i;
    }
    return wrong | (live & bel_columns_put_numbers(columns, column, values, missing, count, rows));
}

// --- Categories, lists, texts --------------------------------------------------------------------

uint64_t bel_columns_category_hash(const bel_column *column, int value)
{
    if (value < 0) return bel_column_hash(column, unknown_text, sizeof unknown_text);
    if (value == column->value_count)
        return bel_column_hash(column, missing_text, sizeof missing_text);
    return bel_column_hash(column, column->values[value], strlen(column->values[value]));
}

static bool is_missing(const bel_columns *columns, const bel_column *column, bel_cell cell)
{
    return bel_column_is_missing(columns, column, cell.text, cell.length);
}

// Sets the ids of a category or hash and the elements of a category.
static void put_categories(const bel_columns *columns, const bel_column *column,
                           const bel_cell *cells, bel_row_bits live, const bel_columns_block *rows)
{
    const bool listed = column->kind == BEL_COLUMN_CATEGORY;
    const ptrdiff_t number = column - columns->items;
    bel_category_cells seen = {0};
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        const ptrdiff_t i = lowest(left);
        const bel_cell cell = cells[i];
        bool none = is_missing(columns, column, cell);
        int value = !listed || none ? -1 : bel_column_value(column, cell.text, cell.length);
        seen.cells += listed && !none;
        seen.unknown += listed && !none && value < 0;
        bool named = none && (!listed || column->missing_value); // as missing
        if (named) value = column->value_count;
        if (column->id_place >= 0 || column->crossed) {
            uint64_t hash = listed || named ? bel_columns_category_hash(column, value)
                                            : bel_column_hash(column, cell.text, cell.length);
            if (column->id_place >= 0)
                rows->ids[i * columns->id_count + column->id_place] = (int64_t)hash;
            if (column->crossed) rows->crossed[i * columns->count + number] = hash;
        }
        if (column->x_place >= 0 && value >= 0)
            rows->x[i * columns->x_width + column->x_place + value] = 1;
    }
    if (rows->seen == NULL) return;
    rows->seen[number].cells += seen.cells;
    rows->seen[number].unknown += seen.unknown;
}

// False: more values than the list has room for.
static bool put_list(const bel_column *column, bel_cell cell, int64_t *ids)
{
    const char *text = cell.text, *end = text + cell.length;
    int count = 0;
    while (text < end) {
        const char *stop = memchr(text, column->separator, (size_t)(end - text));
        const char *from = text, *to = stop == NULL ? end : stop;
        while (from < to && *from == ' ')
            from++;
        while (to > from && to[-1] == ' ')
            to--;
        if (to > from && count == column->most) return false;
        if (to > from) ids[count++] = (int64_t)bel_column_hash(column, from, (size_t)(to - from));
        text = stop == NULL ? end : stop + 1;
    }
    return true;
}

// True for bytes of words: ASCII letters and digits, and all bytes above ASCII.
static bool in_word(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Hash of a word that ignores the case of ASCII letters.
static uint64_t word_hash(const bel_column *column, const char *text, size_t length)
{
    enum { LONGEST = 64 };
    char lower[LONGEST];
    if (length > LONGEST) length = LONGEST; // longer words count by their beginning
    for (size_t i = 0; i < length; i++)
        lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    return bel_column_hash(column, lower, length);
}

// Writes the ids of a text: for each word the word's id, then those of the n-grams that end with
// it, n at most column->grams. Omits ids that do not fit.
static void put_text(const bel_column *column, bel_cell cell, int64_t *ids)
{
    const char *text = cell.text;
    const size_t length = cell.length;
    uint64_t last[BEL_TEXT_MOST_GRAMS] = {0}; // hashes of the words before, newest first
    int count = 0, words = 0;
    for (size_t i = 0; i < length && count < column->most;) {
        size_t from = i;
        while (i < length && in_word((unsigned char)text[i]))
            i++;
        if (i == from) {
            i++;
            continue;
        }
        uint64_t hash = word_hash(column, text + from, i - from), grown = hash;
        ids[count++] = (int64_t)hash;
        for (int g = 1; g < column->grams && g <= words && count < column->most; g++) {
            uint64_t pair[2] = {last[g - 1], grown};
            grown = bel_hash128_of(pair, sizeof pair, column->seed).low;
            ids[count++] = (int64_t)grown;
        }
        memmove(last + 1, last, sizeof last - sizeof last[0]);
        last[0] = hash;
        words++;
    }
}

// Writes the ids of lists or texts.
static bel_row_bits put_several(const bel_columns *columns, const bel_column *column,
                                const bel_cell *cells, bel_row_bits live,
                                const bel_columns_block *rows)
{
    bel_row_bits wrong = 0;
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        const int i = lowest(left);
        const ptrdiff_t list = (ptrdiff_t)i * columns->list_count + column->list_place;
        int64_t *ids = rows->lists + list * columns->list_most;
        if (is_missing(columns, column, cells[i])) continue;
        if (column->kind == BEL_COLUMN_TEXT) {
            put_text(column, cells[i], ids);
        } else {
            wrong |= (bel_row_bits)!put_list(column, cells[i], ids) << i;
        }
    }
    return wrong;
}

// --- Tokens --------------------------------------------------------------------------------------

// Writes the first tokens of texts, and zeros after them. A text is what its cell holds: no text
// means a missing value. Wrong: the tokenizer is not set, or lacks a character before the cut.
static bel_row_bits put_tokens(const bel_columns *columns, const bel_column *column,
                               const bel_cell *cells, bel_row_bits live,
                               const bel_columns_block *rows)
{
    const size_t most = (size_t)column->most;
    bel_encoder *encoder = bel_encoder_create(columns->tokenizer);
    bel_token_list list = {0};
    bel_category_cells seen = {0};
    bel_row_bits wrong = 0;
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        const int i = lowest(left);
        int64_t *tokens = rows->tokens + (ptrdiff_t)i * column->most;
        list.count = 0;
        bel_status *status =
            columns->tokenizer == NULL
                ? BEL_ERR(BEL_FAILED_PRECONDITION, "no tokenizer")
                : bel_encoder_encode(encoder, cells[i].text, cells[i].length, most, &list);
        bool stops = status != NULL, cut = list.count > most || (stops && list.count == most);
        wrong |= (bel_row_bits)(stops && !cut) << i;
        bel_status_ignore(status); // bel_columns_expected makes it again
        size_t kept = list.count < most ? list.count : most;
        for (size_t t = 0; t < most; t++)
            tokens[t] = t < kept ? list.items[t] : 0;
        rows->lengths[i] = (int64_t)kept;
        seen.cells++;
        seen.unknown += cut;
        seen.empty += list.count == 0;
    }
    bel_free(list.items);
    bel_encoder_destroy(encoder);
    if (rows->seen == NULL) return wrong;
    bel_category_cells *all = &rows->seen[column - columns->items];
    *all = (bel_category_cells){all->cells + seen.cells, all->unknown + seen.unknown,
                                all->empty + seen.empty};
    return wrong;
}

// --- Dates ---------------------------------------------------------------------------------------

static void put_date(const bel_column *column, const bel_date *date, float *x)
{
    if ((column->parts & BEL_DATE_TIME) != 0) {
        double time = ((double)date->seconds - column->mean) / column->deviation;
        *x++ = (float)clipped(time, most_of(column));
    }
    if ((column->parts & BEL_DATE_SEASON) != 0) {
        const double turn = 6.283185307179586;
        *x++ = (float)bel_real_sin(turn * date->season);
        *x++ = (float)bel_real_cos(turn * date->season);
    }
    if ((column->parts & BEL_DATE_MONTH) != 0) {
        x[date->month] = 1;
        x += 12;
    }
    if ((column->parts & BEL_DATE_WEEKDAY) != 0) {
        x[date->weekday] = 1;
        x += 7;
    }
    if ((column->parts & BEL_DATE_HOUR) != 0) x[date->hour] = 1;
}

static bel_row_bits put_dates(const bel_columns *columns, const bel_column *column,
                              const bel_cell *cells, bel_row_bits live,
                              const bel_columns_block *rows)
{
    bel_row_bits wrong = 0;
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        const int i = lowest(left);
        float *x = rows->x + (ptrdiff_t)i * columns->x_width + column->x_place;
        bel_date date;
        if (is_missing(columns, column, cells[i])) {
            if (column->indicator) x[column->x_width - 1] = 1;
        } else if (bel_date_parse(cells[i].text, cells[i].length, column->day_first, &date)) {
            put_date(column, &date, x);
        } else {
            wrong |= (bel_row_bits)1 << i;
        }
    }
    return wrong;
}

// --- The label, and how much it counts -----------------------------------------------------------

// A class may have the text of a missing value if the description names it as a class.
static bool put_label(const bel_columns *columns, const bel_column *column, bel_cell cell, int i,
                      const bel_columns_block *rows)
{
    if (column->label == BEL_LABEL_CLASSES) {
        int number = bel_column_value(column, cell.text, cell.length);
        ptrdiff_t of_row = columns->label_count > 1 ? columns->label_count : 1;
        rows->class_number[i * of_row + column->label_place] = number;
        return number >= 0;
    }
    double value;
    if (is_missing(columns, column, cell) ||
        !bel_column_read_number(columns, column, cell.text, cell.length, &value))
        return false;
    rows->number[i] = value;
    return isfinite(value);
}

static bool put_weight(const bel_columns *columns, bel_cell cell, float *out_weight)
{
    double value;
    bool good =
        bel_cell_number_read(columns->decimal, cell.text, cell.length, &value) && value >= 0;
    if (good) *out_weight = (float)value;
    return good && isfinite(*out_weight);
}

static bel_row_bits put_beside(const bel_columns *columns, const bel_column *column,
                               const bel_cell *cells, bel_row_bits live,
                               const bel_columns_block *rows)
{
    bel_row_bits wrong = 0;
    for (bel_row_bits left = live; left != 0; left &= left - 1) {
        const int i = lowest(left);
        bool good = column->kind == BEL_COLUMN_LABEL
                        ? put_label(columns, column, cells[i], i, rows)
                        : put_weight(columns, cells[i], &rows->weight[i]);
        wrong |= (bel_row_bits)!good << i;
    }
    return wrong;
}

// --- All kinds -----------------------------------------------------------------------------------

bel_row_bits bel_columns_put(const bel_columns *columns, const bel_column *column,
                             const bel_cell *cells, bel_row_bits live,
                             const bel_columns_block *rows)
{
    if (live == 0) return 0;
    const int count = BEL_COLUMNS_BLOCK - __builtin_clz(live);
    switch (column->kind) {
    case BEL_COLUMN_NUMBER: return put_numbers(columns, column, cells, live, count, rows);
    case BEL_COLUMN_DATE: return put_dates(columns, column, cells, live, rows);
    case BEL_COLUMN_LABEL:
    case BEL_COLUMN_WEIGHT: return put_beside(columns, column, cells, live, rows);
    case BEL_COLUMN_CATEGORY:
    case BEL_COLUMN_HASH: put_categories(columns, column, cells, live, rows); return 0;
    case BEL_COLUMN_LIST:
    case BEL_COLUMN_TEXT: return put_several(columns, column, cells, live, rows);
    case BEL_COLUMN_TOKENS: return put_tokens(columns, column, cells, live, rows);
    default: return 0;
    }
}

void bel_columns_end(const bel_columns *columns, const bel_columns_block *rows, int count)
{
    for (int c = 0; c < columns->count && columns->id_count > 0; c++) {
        const bel_column *column = &columns->items[c];
        if (column->kind != BEL_COLUMN_CROSS) continue;
        const size_t bytes = (size_t)column->of_count * sizeof(uint64_t);
        for (ptrdiff_t i = 0; i < count; i++) {
            uint64_t hashes[BEL_CROSS_MOST];
            for (int of = 0; of < column->of_count; of++)
                hashes[of] = rows->crossed[i * columns->count + column->of_places[of]];
            rows->ids[i * columns->id_count + column->id_place] =
                (int64_t)bel_hash128_of(hashes, bytes, column->seed).low;
        }
    }
}

// --- Cells that are wrong ------------------------------------------------------------------------

static void expect_class(const bel_column *column, char expected[BEL_COLUMN_EXPECTED])
{
    enum { SHOWN = 4 };
    size_t length = (size_t)bel_snprintf(expected, BEL_COLUMN_EXPECTED, "a class, one of");
    for (int i = 0; i < column->value_count && i < SHOWN; i++)
        length += (size_t)bel_snprintf(expected + length, BEL_COLUMN_EXPECTED - length,
                                       " \"%.40s\"", column->values[i]);
    if (column->value_count > SHOWN)
        bel_snprintf(expected + length, BEL_COLUMN_EXPECTED - length, " … (%d)",
                     column->value_count);
}

// Writes what the tokenizer lacks.
static void expect_tokens(const bel_columns *columns, const bel_column *column, bel_cell cell,
                          char expected[BEL_COLUMN_EXPECTED])
{
    bel_token_list list = {0};
    bel_encoder *encoder = bel_encoder_create(columns->tokenizer);
    bel_status *status =
        bel_encoder_encode(encoder, cell.text, cell.length, (size_t)column->most, &list);
    bel_snprintf(expected, BEL_COLUMN_EXPECTED, "a text that the tokenizer can encode (%s)",
                 status != NULL ? bel_status_message(status) : "it can");
    bel_status_ignore(status); // written
    bel_encoder_destroy(encoder);
    bel_free(list.items);
}

const char *bel_columns_expected(const bel_columns *columns, const bel_column *column,
                                 bel_cell cell, char text[BEL_COLUMN_EXPECTED])
{
    double value;
    bool none;
    const char *what = "a number";
    if (column->kind == BEL_COLUMN_NUMBER &&
        bel_columns_read_number(columns, column, cell, &value, &none))
        what = "a number that fits f32 when it is scaled";
    if (column->kind == BEL_COLUMN_DATE) what = "a date";
    if (column->kind == BEL_COLUMN_TOKENS)
        what = "a tokenizer for its texts (bel_columns_set_tokenizer)";
    if (column->kind == BEL_COLUMN_WEIGHT) what = "a weight of 0 or more";
    if (column->kind == BEL_COLUMN_TOKENS && columns->tokenizer != NULL) {
        expect_tokens(columns, column, cell, text);
    } else if (column->kind == BEL_COLUMN_LIST) {
        bel_snprintf(text, BEL_COLUMN_EXPECTED, "at most %d values with '%c' between them",
                     column->most, column->separator);
    } else if (column->kind == BEL_COLUMN_LABEL && column->label == BEL_LABEL_CLASSES) {
        expect_class(column, text);
    } else {
        bel_snprintf(text, BEL_COLUMN_EXPECTED, "%s", what);
    }
    return text;
}
