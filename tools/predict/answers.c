// Predictions as CSV or JSON. A field is quoted if RFC 4180 requires it. Probabilities have nine
// digits, which represent every F32 exactly. The model computes a number's distance from the mean
// label. A predicted number has nine digits of that distance, and so more in all if the mean is
// large.
#include "predict/answers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "input/table/column_names.h"
#include "ops/kernels/elements.h"

void bel_answer_field(bel_str *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        bel_str_puts(out, text);
        return;
    }
    bel_str_puts(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"') bel_str_puts(out, "\"");
        bel_str_append(out, c, 1);
    }
    bel_str_puts(out, "\"");
}

static void put_number(bel_str *out, double value, bool json)
{
    if (json && !isfinite(value)) {
        bel_str_puts(out, "null");
    } else {
        out->length += bel_format_f32((float)value, bel_str_room(out, BEL_F32_TEXT));
    }
}

// Numbers of CSV, each with a comma in front.
static void put_numbers(bel_str *out, const bel_tensor *values, int count)
{
    char *to = bel_str_room(out, (size_t)count * (BEL_F32_TEXT + 1));
    for (int i = 0; i < count; i++) {
        *to++ = ',';
        to += bel_format_f32((float)bel_element_get(values, i), to);
    }
    out->length = (size_t)(to - out->text);
}

static void put_prediction(const bel_answers *answers, double value, bel_str *out)
{
    enum { DIGITS = 9, MOST = 17 };
    char text[40];
    double ratio = fabs(value) / bel_columns_label_deviation(answers->columns);
    int more = ratio > 1 && isfinite(ratio) ? (int)ceil(log10(ratio)) : 0;
    int digits = more < MOST - DIGITS ? DIGITS + more : MOST;
    if (answers->json && !isfinite(value)) {
        bel_str_puts(out, "null");
        return;
    }
    bel_snprintf(text, sizeof text, "%.*g", digits, value);
    bel_str_puts(out, text);
}

// Compares in F32, as an evaluation does.
static bool is_above(const bel_tensor *row, int64_t i, double threshold)
{
    return bel_element_get(row, i) > (double)(float)threshold;
}

static bool has_several(const bel_columns *columns)
{
    return bel_columns_label_kind(columns) == BEL_LABEL_SEVERAL;
}

// Returns the number of classes, or of labels.
static int probability_count(const bel_columns *columns)
{
    return has_several(columns) ? bel_columns_label_count(columns)
                                : bel_columns_class_count(columns);
}

static const char *probability_name(const bel_columns *columns, int i)
{
    return has_several(columns) ? bel_columns_label_at(columns, i) : bel_columns_class(columns, i);
}

// Appends the names of the predicted labels, separated by bars, or as a JSON list.
static void put_chosen(const bel_answers *answers, const bel_tensor *values, int count,
                       bel_str *out)
{
    bel_str names = {0};
    bel_str_puts(&names, "");
    for (int i = 0; i < count; i++) {
        if (!is_above(values, i, answers->threshold)) continue;
        const char *name = bel_columns_label_at(answers->columns, i);
        if (names.length > 0) bel_str_puts(&names, answers->json ? "," : "|");
        if (answers->json) {
            bel_json_write_string(&names, name);
        } else {
            bel_str_puts(&names, name);
        }
    }
    if (answers->json) {
        bel_str_printf(out, "[%s]", names.text);
    } else {
        bel_answer_field(out, names.text);
    }
    bel_str_deinit(&names);
}

void bel_answers_header(const bel_answers *answers, bel_str *out)
{
    if (answers->json) return;
    if (answers->rows != NULL) bel_str_puts(out, "row,");
    for (int i = 0; i < answers->name_count; i++) {
        bel_answer_field(out, answers->names[i]);
        bel_str_puts(out, ",");
    }
    bel_str_puts(out, "prediction");
    for (int i = 0; i < probability_count(answers->columns); i++) {
        char *name = bel_strf("p_%s", probability_name(answers->columns, i));
        bel_str_puts(out, ",");
        bel_answer_field(out, name);
        bel_free(name);
    }
    bel_str_puts(out, "\n");
}

static const char *class_name(const bel_answers *answers, const bel_tensor *prediction)
{
    int class_number = (int)bel_element_class(prediction, answers->threshold);
    return bel_columns_class(answers->columns, class_number);
}

static void put_csv(const bel_answers *answers, int64_t example, const bel_str *cells,
                    const bel_tensor *prediction, int classes, bel_str *out)
{
    if (answers->rows != NULL) bel_str_printf(out, "%lld,", (long long)answers->rows[example]);
    for (int i = 0; i < answers->name_count; i++) {
        bel_answer_field(out, cells[i].text != NULL ? cells[i].text : "");
        bel_str_puts(out, ",");
    }
    if (classes == 0) {
        put_prediction(answers, bel_element_get(prediction, 0), out);
    } else if (has_several(answers->columns)) {
        put_chosen(answers, prediction, classes, out);
    } else {
        bel_answer_field(out, class_name(answers, prediction));
    }
    put_numbers(out, prediction, classes);
}

static void put_json(const bel_answers *answers, int64_t example, const bel_str *cells,
                     const void *prediction, int classes, bel_str *out)
{
    // Holds repaired copies of cells that are not UTF-8.
    bel_arena *arena = answers->name_count > 0 ? bel_arena_create() : NULL;
    bel_str_printf(out, "{\"example\":%lld", (long long)example);
    if (answers->rows != NULL)
        bel_str_printf(out, ",\"row\":%lld", (long long)answers->rows[example]);
    for (int i = 0; i < answers->name_count; i++) {
        bel_str_puts(out, ",");
        bel_json_write_string(out, answers->names[i]);
        bel_str_puts(out, ":");
        bel_json_write_string(
            out, bel_column_name_utf8(cells[i].text != NULL ? cells[i].text : "", arena));
    }
    bel_arena_destroy(arena);
    if (classes == 0) {
        bel_str_puts(out, ",\"prediction\":");
        put_prediction(answers, bel_element_get(prediction, 0), out);
        bel_str_puts(out, "}");
        return;
    }
    if (has_several(answers->columns)) {
        bel_str_puts(out, ",\"labels\":");
        put_chosen(answers, prediction, classes, out);
    } else {
        bel_str_puts(out, ",\"class\":");
        bel_json_write_string(out, class_name(answers, prediction));
    }
    bel_str_puts(out, ",\"probabilities\":{");
    for (int i = 0; i < classes; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, probability_name(answers->columns, i));
        bel_str_puts(out, ":");
        put_number(out, bel_element_get(prediction, i), true);
    }
    bel_str_puts(out, "}}");
}

bel_status *bel_answers_line(const bel_answers *answers, int64_t example, const bel_str *cells,
                             const bel_tensor *prediction, bel_str *out)
{
    int classes = probability_count(answers->columns);
    int64_t wanted = classes > 0 ? classes : 1, got = bel_shape_elements(&prediction->shape);
    if (got != wanted) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the model predicts %lld numbers for an example, and the label \"%s\" asks "
                       "for %lld",
                       (long long)got, bel_columns_label(answers->columns), (long long)wanted);
    }
    if (answers->json) {
        put_json(answers, example, cells, prediction, classes, out);
    } else {
        put_csv(answers, example, cells, prediction, classes, out);
    }
    bel_str_puts(out, "\n");
    return NULL;
}
