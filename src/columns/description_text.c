// Writer of a description as YAML. Each column is one line with its most important keys first, so
// that a description can be edited by hand and compared by eye. Numbers have all the digits that
// bring the same bits back. description_read.c must read this text back to the same text: its hash
// is part of the data's fingerprint, and checkpoints keep it.
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "columns/description.h"

const char *const bel_column_kind_names[BEL_COLUMN_KINDS] = {
    "number", "category", "hash", "list",   "text",  "tokens",
    "date",   "cross",    "key",  "weight", "label", "ignore"};
const char *const bel_column_scale_names[BEL_SCALES] = {"standard", "min_max", "log", "buckets",
                                                        "none"};
const char *const bel_column_missing_names[BEL_MISSINGS] = {"mean", "median", "constant", "error"};
const char *const bel_date_part_names[BEL_DATE_PARTS] = {"time", "season", "month", "weekday",
                                                         "hour"};

// Writes the fewest digits that bring the same bits back.
static void put_double(bel_str *out, const char *before, double value)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        bel_snprintf(text, sizeof text, "%.*g", digits, value);
        if (bel_strtod(text, NULL) == value) break;
    }
    bel_str_printf(out, "%s%s", before, text);
}

// Finds characters that YAML reads as line breaks, marks or nothing: unescaped, they would come
// back as others, or not at all.
static bool is_escaped(const unsigned char *text, int bytes, unsigned *out_code)
{
    if (bytes == 1) {
        *out_code = text[0];
        return text[0] == 0x7F;
    }
    if (bytes == 2) {
        *out_code = (text[0] & 0x1FU) << 6 | (text[1] & 0x3FU);
        return *out_code < 0xA0;
    }
    if (bytes != 3) return false;
    *out_code = (text[0] & 0x0FU) << 12 | (text[1] & 0x3FU) << 6 | (text[2] & 0x3FU);
    return *out_code == 0x2028 || *out_code == 0x2029 || *out_code == 0xFEFF || *out_code >= 0xFFFE;
}

// Writes a quoted text, which JSON and YAML read alike.
static void put_text(bel_str *out, const char *text)
{
    bel_str quoted = {0};
    unsigned code;
    bel_json_write_string(&quoted, text);
    for (const char *at = quoted.text; *at != '\0';) {
        int bytes = bel_utf8_bytes(at);
        if (is_escaped((const unsigned char *)at, bytes, &code)) {
            bel_str_printf(out, "\\u%04x", code);
        } else {
            bel_str_append(out, at, (size_t)bytes);
        }
        at += bytes;
    }
    bel_str_deinit(&quoted);
}

static void put_list(bel_str *out, const char *key, const char *const *texts, int count)
{
    bel_str_printf(out, ", %s: [", key);
    for (int i = 0; i < count; i++) {
        if (i > 0) bel_str_puts(out, ", ");
        put_text(out, texts[i]);
    }
    bel_str_puts(out, "]");
}

static void put_moments(bel_str *out, const bel_column *column)
{
    put_double(out, ", mean: ", column->mean);
    put_double(out, ", deviation: ", column->deviation);
}

static void put_doubles(bel_str *out, const char *key, const double *numbers, int count)
{
    bel_str_printf(out, ", %s: [", key);
    for (int i = 0; i < count; i++)
        put_double(out, i > 0 ? ", " : "", numbers[i]);
    bel_str_puts(out, "]");
}

// Writes the unit and the thousands separator of numbers.
static void put_dress(bel_str *out, const bel_column *column)
{
    if (column->unit != NULL) {
        bel_str_puts(out, ", unit: ");
        put_text(out, column->unit);
    }
    if (column->thousands == '\0') return;
    bel_str_puts(out, ", thousands: ");
    put_text(out, (char[]){column->thousands, '\0'});
}

static void put_number(bel_str *out, const bel_column *column)
{
    bel_str_printf(out, ", scale: %s", bel_column_scale_names[column->scale]);
    put_moments(out, column);
    put_double(out, ", low: ", column->low);
    put_double(out, ", high: ", column->high);
    put_dress(out, column);
    bel_str_printf(out, ", missing: %s", bel_column_missing_names[column->missing]);
    if (column->absent.count > 0)
        put_list(out, "missing_texts", column->absent.texts, column->absent.count);
    put_double(out, ", fill: ", column->fill);
    bel_str_printf(out, ", indicator: %s", column->indicator ? "true" : "false");
    if (column->clip > 0) put_double(out, ", clip: ", column->clip);
    if (column->bound_count == 0) return;
    put_doubles(out, "bounds", column->bounds, column->bound_count);
}

static void put_date(bel_str *out, const bel_column *column)
{
    bool first = true;
    bel_str_puts(out, ", parts: [");
    for (int p = 0; p < BEL_DATE_PARTS; p++) {
        if ((column->parts >> p & 1) == 0) continue;
        bel_str_printf(out, "%s%s", first ? "" : ", ", bel_date_part_names[p]);
        first = false;
    }
    bel_str_puts(out, "]");
    if (column->day_first) bel_str_puts(out, ", day_first: true");
    if (column->absent.count > 0)
        put_list(out, "missing_texts", column->absent.texts, column->absent.count);
    put_moments(out, column);
    bel_str_printf(out, ", indicator: %s", column->indicator ? "true" : "false");
    if (column->clip > 0) put_double(out, ", clip: ", column->clip);
}

static void put_category(bel_str *out, const bel_column *column)
{
    bel_str_printf(out, ", as: %s", column->embedded ? "embedding" : "one_hot");
    if (column->missing_value) bel_str_puts(out, ", missing: value");
    put_list(out, "values", column->values, column->value_count);
}

static void put_label(bel_str *out, const bel_column *column)
{
    if (column->label == BEL_LABEL_CLASSES) {
        put_list(out, "classes", column->values, column->value_count);
        if (column->rows != NULL) put_doubles(out, "rows", column->rows, column->row_count);
    } else {
        put_moments(out, column);
        put_double(out, ", low: ", column->low);
        put_dress(out, column);
    }
}

static void put_column(bel_str *out, const bel_column *column)
{
    bel_str_puts(out, "  - {name: ");
    put_text(out, column->name);
    bel_str_printf(out, ", kind: %s", bel_column_kind_names[column->kind]);
    switch (column->kind) {
    case BEL_COLUMN_NUMBER: put_number(out, column); break;
    case BEL_COLUMN_CATEGORY: put_category(out, column); break;
    case BEL_COLUMN_LIST:
        bel_str_puts(out, ", separator: ");
        put_text(out, (char[]){column->separator, '\0'});
        bel_str_printf(out, ", most: %d", column->most);
        break;
    case BEL_COLUMN_TEXT:
        bel_str_printf(out, ", most: %d, grams: %d", column->most, column->grams);
        break;
    case BEL_COLUMN_TOKENS: bel_str_printf(out, ", most: %d", column->most); break;
    case BEL_COLUMN_DATE: put_date(out, column); break;
    case BEL_COLUMN_CROSS: put_list(out, "of", column->of, column->of_count); break;
    case BEL_COLUMN_LABEL: put_label(out, column); break;
    case BEL_COLUMN_WEIGHT: put_double(out, ", mean: ", column->mean); break;
    default: break;
    }
    if (column->note != NULL) {
        bel_str_puts(out, ", note: ");
        put_text(out, column->note);
    }
    if (column->warning != NULL) {
        bel_str_puts(out, ", warning: ");
        put_text(out, column->warning);
    }
    bel_str_puts(out, "}\n");
}

char *bel_columns_write(const bel_columns *columns)
{
    bel_str out = {0};
    bel_str_puts(&out, "# What the columns of a table are, and what becomes of them.\ndelimiter: ");
    put_text(&out, (char[]){columns->delimiter, '\0'});
    if (columns->decimal == ',') bel_str_puts(&out, "\ndecimal: \",\"");
    bel_str_printf(&out, "\nheader: %s\nmissing: [", columns->header ? "true" : "false");
    for (int i = 0; i < columns->missing.count; i++) {
        if (i > 0) bel_str_puts(&out, ", ");
        put_text(&out, columns->missing.texts[i]);
    }
    bel_str_printf(&out, "]\nrows: %lld\ncolumns:\n", (long long)columns->rows);
    for (int i = 0; i < columns->count; i++)
        put_column(&out, &columns->items[i]);
    return out.text;
}
