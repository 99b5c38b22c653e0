// A field is quoted where RFC 4180 wants it. Numbers have the nine digits that hold every F32.
#include "answers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"

static void put_field(bel_str *out, const char *text)
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

static void put_number(bel_str *out, float value, bool json)
{
    char text[BEL_F32_TEXT];
    if (json && !isfinite(value)) {
        bel_str_puts(out, "null");
    } else {
        bel_str_append(out, text, bel_format_f32(value, text));
    }
}

void bel_answers_header(const bel_answers *answers, bel_str *out)
{
    if (answers->json) return;
    for (int i = 0; i < answers->name_count; i++) {
        put_field(out, answers->names[i]);
        bel_str_puts(out, ",");
    }
    bel_str_puts(out, "prediction");
    for (int i = 0; i < bel_columns_class_count(answers->columns); i++) {
        char *name = bel_strf("p_%s", bel_columns_class(answers->columns, i));
        bel_str_puts(out, ",");
        put_field(out, name);
        bel_free(name);
    }
    bel_str_puts(out, "\n");
}

static int largest(const float *values, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (values[i] > values[best]) best = i;
    return best;
}

static void put_csv(const bel_answers *answers, const bel_str *cells, const float *values,
                    int classes, bel_str *out)
{
    for (int i = 0; i < answers->name_count; i++) {
        put_field(out, cells[i].text != NULL ? cells[i].text : "");
        bel_str_puts(out, ",");
    }
    if (classes == 0) {
        put_number(out, values[0], false);
    } else {
        put_field(out, bel_columns_class(answers->columns, largest(values, classes)));
    }
    for (int i = 0; i < classes; i++) {
        bel_str_puts(out, ",");
        put_number(out, values[i], false);
    }
}

static void put_json(const bel_answers *answers, int64_t example, const bel_str *cells,
                     const float *values, int classes, bel_str *out)
{
    bel_str_printf(out, "{\"example\":%lld", (long long)example);
    for (int i = 0; i < answers->name_count; i++) {
        bel_str_puts(out, ",");
        bel_json_write_string(out, answers->names[i]);
        bel_str_puts(out, ":");
        bel_json_write_string(out, cells[i].text != NULL ? cells[i].text : "");
    }
    if (classes == 0) {
        bel_str_puts(out, ",\"prediction\":");
        put_number(out, values[0], true);
        bel_str_puts(out, "}");
        return;
    }
    bel_str_puts(out, ",\"class\":");
    bel_json_write_string(out, bel_columns_class(answers->columns, largest(values, classes)));
    bel_str_puts(out, ",\"probabilities\":{");
    for (int i = 0; i < classes; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, bel_columns_class(answers->columns, i));
        bel_str_puts(out, ":");
        put_number(out, values[i], true);
    }
    bel_str_puts(out, "}}");
}

void bel_answers_line(const bel_answers *answers, int64_t example, const bel_str *cells,
                      const bel_tensor *prediction, bel_str *out)
{
    int classes = bel_columns_class_count(answers->columns);
    const float *values = prediction->data;
    if (answers->json) {
        put_json(answers, example, cells, values, classes, out);
    } else {
        put_csv(answers, cells, values, classes, out);
    }
    bel_str_puts(out, "\n");
}
