// Numbers are scaled in double and rounded once, so that large ones (years, ids, seconds) lose
// nothing to F32 before their mean is taken away. Of a category that is not in the vocabulary all
// elements are 0, and its row of a table is one that all such values share; a missing value is
// a value of its own only where training had one.
#include "columns/transform.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/real.h"
#include "belfry/graph.h"
#include "columns/cell_number.h"
#include "columns/date.h"

// Texts whose hash stands for a value that is not known, and for a missing one: no cell has a zero
// byte in it.
static const char unknown[] = "\0unknown", missing[] = "\0missing";

void bel_columns_row_begin(const bel_columns *columns, const bel_columns_row *row)
{
    if (columns->x_width > 0) memset(row->x, 0, (size_t)columns->x_width * sizeof *row->x);
    for (int i = 0; i < columns->list_count * columns->list_most; i++)
        row->lists[i] = BEL_NO_ID;
}

// --- Numbers -------------------------------------------------------------------------------------

static int bucket_of(const bel_column *column, double value)
{
    int low = 0, high = column->bound_count; // how many bounds are at most `value`
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

static double scaled(const bel_column *column, double value)
{
    switch (column->scale) {
    case BEL_SCALE_STANDARD: return (value - column->mean) / column->deviation;
    case BEL_SCALE_MIN_MAX: return (value - column->low) / (column->high - column->low);
    case BEL_SCALE_LOG: {
        double logarithm = copysign(bel_real_log(1 + fabs(value)), value);
        return (logarithm - column->mean) / column->deviation;
    }
    default: return value;
    }
}

static double clipped(const bel_column *column, double number)
{
    return column->clip > 0 ? fmin(fmax(number, -column->clip), column->clip) : number;
}

bool bel_columns_row_put_number(const bel_column *column, double value, const bel_columns_row *row)
{
    float *x = row->x + column->x_place;
    if (column->scale == BEL_SCALE_BUCKETS) {
        x[bucket_of(column, value)] = 1;
        return true;
    }
    double number = scaled(column, value);
    x[0] = (float)clipped(column, number);
    return isfinite(x[0]);
}

// Says what a cell is not; false, for who returns it.
static bool expect(char expected[BEL_COLUMN_EXPECTED], const char *what)
{
    bel_snprintf(expected, BEL_COLUMN_EXPECTED, "%s", what);
    return false;
}

static bool put_number(const bel_columns *columns, const bel_column *column, bool is_missing,
                       const char *text, size_t length, const bel_columns_row *row,
                       char expected[BEL_COLUMN_EXPECTED])
{
    double value = column->fill;
    bool good = is_missing ? column->missing != BEL_MISSING_ERROR
                           : bel_column_read_number(columns, column, text, length, &value);
    if (!good) return expect(expected, "a number");
    if (is_missing && column->indicator) row->x[column->x_place + column->x_width - 1] = 1;
    if (bel_columns_row_put_number(column, value, row)) return true;
    return expect(expected, "a number that fits f32 when it is scaled");
}

// --- Categories, lists, texts --------------------------------------------------------------------

static void put_id(const bel_column *column, uint64_t hash, const bel_columns_row *row, int number)
{
    if (column->id_place >= 0) row->ids[column->id_place] = (int64_t)hash;
    if (column->crossed) row->crossed[number] = hash;
}

uint64_t bel_columns_category_hash(const bel_column *column, int value)
{
    if (value < 0) return bel_column_hash(column, unknown, sizeof unknown);
    if (value == column->value_count) return bel_column_hash(column, missing, sizeof missing);
    return bel_column_hash(column, column->values[value], strlen(column->values[value]));
}

static void put_category(const bel_column *column, bool is_missing, const char *text, size_t length,
                         const bel_columns_row *row, int number)
{
    bool listed = column->kind == BEL_COLUMN_CATEGORY;
    int value = !listed || is_missing ? -1 : bel_column_value(column, text, length);
    if (row->seen != NULL && listed && !is_missing) {
        row->seen[number].cells++;
        row->seen[number].unknown += value < 0;
    }
    bool named = is_missing && (!listed || column->missing_value); // as missing
    if (named) value = column->value_count;
    uint64_t hash = listed || named ? bel_columns_category_hash(column, value)
                                    : bel_column_hash(column, text, length);
    put_id(column, hash, row, number);
    if (column->x_place < 0) return;
    if (value >= 0) row->x[column->x_place + value] = 1;
}

static bool put_list(const bel_columns *columns, const bel_column *column, const char *text,
                     size_t length, const bel_columns_row *row, char expected[BEL_COLUMN_EXPECTED])
{
    int64_t *ids = row->lists + (ptrdiff_t)column->list_place * columns->list_most;
    const char *end = text + length;
    int count = 0;
    while (text < end) {
        const char *stop = memchr(text, column->separator, (size_t)(end - text));
        const char *from = text, *to = stop == NULL ? end : stop;
        while (from < to && *from == ' ')
            from++;
        while (to > from && to[-1] == ' ')
            to--;
        if (to > from && count == column->most) {
            bel_snprintf(expected, BEL_COLUMN_EXPECTED, "at most %d values with '%c' between them",
                         column->most, column->separator);
            return false;
        }
        if (to > from) ids[count++] = (int64_t)bel_column_hash(column, from, (size_t)(to - from));
        text = stop == NULL ? end : stop + 1;
    }
    return true;
}

// Letters and digits of ASCII and all that lies above it make words.
static bool in_word(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The hash of a word, without case of ASCII.
static uint64_t word_hash(const bel_column *column, const char *text, size_t length)
{
    enum { LONGEST = 64 };
    char lower[LONGEST];
    if (length > LONGEST) length = LONGEST; // what is longer is told apart by its beginning
    for (size_t i = 0; i < length; i++)
        lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    return bel_column_hash(column, lower, length);
}

// Single words, then with each word those that end with it, up to so many in a row; what is more
// than there is room for is left out.
static void put_text(const bel_columns *columns, const bel_column *column, const char *text,
                     size_t length, const bel_columns_row *row)
{
    int64_t *ids = row->lists + (ptrdiff_t)column->list_place * columns->list_most;
    uint64_t last[BEL_TEXT_MOST_GRAMS] = {0}; // of the words before, the newest first
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

// --- Dates ---------------------------------------------------------------------------------------

static bool put_date(const bel_column *column, bool is_missing, const char *text, size_t length,
                     const bel_columns_row *row, char expected[BEL_COLUMN_EXPECTED])
{
    float *x = row->x + column->x_place;
    if (is_missing) {
        if (column->indicator) x[column->x_width - 1] = 1;
        return true;
    }
    bel_date date;
    if (!bel_date_parse(text, length, column->day_first, &date)) return expect(expected, "a date");
    if ((column->parts & BEL_DATE_TIME) != 0)
        *x++ = (float)clipped(column, ((double)date.seconds - column->mean) / column->deviation);
    if ((column->parts & BEL_DATE_SEASON) != 0) {
        const double turn = 6.283185307179586;
        *x++ = (float)bel_real_sin(turn * date.season);
        *x++ = (float)bel_real_cos(turn * date.season);
    }
    if ((column->parts & BEL_DATE_MONTH) != 0) {
        x[date.month] = 1;
        x += 12;
    }
    if ((column->parts & BEL_DATE_WEEKDAY) != 0) {
        x[date.weekday] = 1;
        x += 7;
    }
    if ((column->parts & BEL_DATE_HOUR) != 0) x[date.hour] = 1;
    return true;
}

// --- The label, and how much it counts -----------------------------------------------------------

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

// A class may have the text of a missing value, where somebody wrote so.
static bool put_label(const bel_columns *columns, const bel_column *column, bool is_missing,
                      const char *text, size_t length, const bel_columns_row *row,
                      char expected[BEL_COLUMN_EXPECTED])
{
    if (column->label == BEL_LABEL_CLASSES) {
        int number = bel_column_value(column, text, length);
        if (number < 0) expect_class(column, expected);
        row->class_number[column->label_place] = number;
        return number >= 0;
    }
    double value;
    if (is_missing || !bel_column_read_number(columns, column, text, length, &value))
        return expect(expected, "a number");
    *row->number = value;
    return isfinite(value) || expect(expected, "a number");
}

static bool put_weight(const bel_columns *columns, const char *text, size_t length,
                       const bel_columns_row *row, char expected[BEL_COLUMN_EXPECTED])
{
    double value;
    bool good = bel_cell_number_read(columns->decimal, text, length, &value) && value >= 0;
    if (good) *row->weight = (float)value;
    return (good && isfinite(*row->weight)) || expect(expected, "a weight of 0 or more");
}

bool bel_columns_row_put(const bel_columns *columns, const bel_column *column, const char *text,
                         size_t length, const bel_columns_row *row,
                         char expected[BEL_COLUMN_EXPECTED])
{
    bool is_missing = bel_column_is_missing(columns, column, text, length);
    int number = (int)(column - columns->items);
    switch (column->kind) {
    case BEL_COLUMN_NUMBER:
        return put_number(columns, column, is_missing, text, length, row, expected);
    case BEL_COLUMN_DATE: return put_date(column, is_missing, text, length, row, expected);
    case BEL_COLUMN_LABEL:
        return put_label(columns, column, is_missing, text, length, row, expected);
    case BEL_COLUMN_WEIGHT: return put_weight(columns, text, length, row, expected);
    case BEL_COLUMN_CATEGORY:
    case BEL_COLUMN_HASH: put_category(column, is_missing, text, length, row, number); return true;
    case BEL_COLUMN_LIST:
        return is_missing || put_list(columns, column, text, length, row, expected);
    case BEL_COLUMN_TEXT:
        if (!is_missing) put_text(columns, column, text, length, row);
        return true;
    default: return true;
    }
}

void bel_columns_row_end(const bel_columns *columns, const bel_columns_row *row)
{
    for (int i = 0; i < columns->count && columns->id_count > 0; i++) {
        const bel_column *column = &columns->items[i];
        if (column->kind != BEL_COLUMN_CROSS) continue;
        uint64_t hashes[BEL_CROSS_MOST];
        for (int c = 0; c < column->of_count; c++)
            hashes[c] = row->crossed[column->of_places[c]];
        size_t bytes = (size_t)column->of_count * sizeof hashes[0];
        row->ids[column->id_place] = (int64_t)bel_hash128_of(hashes, bytes, column->seed).low;
    }
}
