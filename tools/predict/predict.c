// Verb predict: one line an example, in the order of the files.
//   text: class,p0,p1,…      json: {"example":0,"class":3,"values":[…]}
// The class is the index of the largest value. A prediction of one element has no class. Named
// outputs follow: in text as more numbers, with a header that names all columns, and in JSON under
// their names. answers.h documents the form for a model that was trained on described columns.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "ops/kernels/elements.h"
#include "predict/answers.h"
#include "predict/predict_table.h"
#include "predict/rank_lines.h"
#include "setup/held_out.h"
#include "setup/setup.h"

typedef struct writer {
    bel_str line; // reused
    bool json;
    double threshold;           // decides between two classes
    const char *const *outputs; // names of the outputs to write, in this order
    size_t output_count;        // 0: all
    bool begun;                 // keys checked, header written if it belongs to this part
    bool is_first;              // this is the first part of the input
    int64_t *rows;              // row numbers of held out examples; NULL: no row numbers
    bel_rank_lines *ranks;      // destination of the lines; NULL: stdout
} writer;

// Nine digits represent every F32, seventeen every F64. JSON has no NaN.
static void append_number(writer *w, const bel_tensor *row, int64_t i)
{
    char text[BEL_F32_TEXT];
    double value = bel_element_get(row, i);
    if (row->dtype == BEL_DTYPE_I64) {
        bel_str_printf(&w->line, "%lld", (long long)((const int64_t *)row->data)[i]);
    } else if (w->json && !isfinite(value)) {
        bel_str_puts(&w->line, "null");
    } else if (row->dtype == BEL_DTYPE_F32) {
        bel_str_append(&w->line, text, bel_format_f32((float)value, text));
    } else {
        bel_str_printf(&w->line, "%.17g", value); // 32-bit integers are exact in it
    }
}

// Appends the elements, in JSON as a list under `key`.
static void append_row(writer *w, const bel_tensor *row, const char *key, bool more)
{
    int64_t count = bel_shape_elements(&row->shape);
    if (more) bel_str_puts(&w->line, ",");
    if (w->json) {
        bel_json_write_string(&w->line, key);
        bel_str_puts(&w->line, ":[");
    }
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) bel_str_puts(&w->line, ",");
        append_number(w, row, i);
    }
    if (w->json) bel_str_puts(&w->line, "]");
}

// True if the row is the prediction without a name.
static bool is_main(const bel_row *row)
{
    return strcmp(row->name, "predictions") == 0;
}

// Appends an output. The unnamed prediction has a class if it has several elements.
static void predict_append(writer *w, const bel_row *row, bool more)
{
    bool main = is_main(row);
    int64_t count = bel_shape_elements(&row->value.shape);
    if (main && count > 1) {
        bel_str_printf(&w->line, "%s%s%lld", more ? "," : "", w->json ? "\"class\":" : "",
                       (long long)bel_element_class(&row->value, w->threshold));
        more = true;
    }
    append_row(w, &row->value, main ? "values" : row->name, more);
}

static bel_status *unknown(const char *wanted, const bel_row *rows, int count)
{
    bel_str names = {0};
    for (int i = 0; i < count; i++)
        bel_str_printf(&names, "%s%s", i > 0 ? ", " : "", rows[i].name);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "--outputs: the model has no prediction \"%s\"; it has %s",
                wanted, names.text);
    bel_str_deinit(&names);
    return status;
}

// Checks that every name of a JSON object occurs once.
static bel_status *check_keys(const writer *w, const bel_row *rows, int count)
{
    static const char *const own[] = {"example", "class", "values"};
    for (size_t a = 0; a < w->output_count; a++)
        for (size_t b = 0; b < a; b++)
            if (strcmp(w->outputs[a], w->outputs[b]) == 0) {
                return BEL_ERR(BEL_INVALID_ARGUMENT, "--outputs: \"%s\" is named twice",
                               w->outputs[a]);
            }
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++)
        for (int i = 0; i < count; i++)
            if (strcmp(rows[i].name, own[k]) == 0) {
                return BEL_ERR(BEL_INVALID_ARGUMENT,
                               "--json: the prediction \"%s\" has the name of a member that each "
                               "line has anyway; another name is needed, or text",
                               own[k]);
            }
    return NULL;
}

// Finds the row of the `o`th output to write.
static bel_status *find_row(const writer *w, const bel_row *rows, int count, int o,
                            const bel_row **out_row)
{
    if (w->output_count == 0) {
        *out_row = &rows[o];
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].name, w->outputs[o]) != 0) continue;
        *out_row = &rows[i];
        return NULL;
    }
    return unknown(w->outputs[o], rows, count);
}

static int shown_count(const writer *w, int count)
{
    return w->output_count > 0 ? (int)w->output_count : count;
}

static bel_status *write_text(writer *w)
{
    return w->ranks != NULL ? bel_rank_lines_write(w->ranks, w->line.text)
                            : bel_results_write(w->line.text);
}

// Appends "name", or "name_0,name_1,…" for several elements.
static void append_columns(bel_str *line, const char *name, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char *column = count > 1 ? bel_strf("%s_%lld", name, (long long)i) : bel_xstrdup(name);
        bel_str_puts(line, line->length > 0 ? "," : "");
        bel_answer_field(line, column);
        bel_free(column);
    }
}

// Writes a header only if an output to write has a name.
static bel_status *write_header(writer *w, const bel_row *rows, int count)
{
    bool named = false;
    w->line.length = 0;
    if (w->rows != NULL) bel_str_puts(&w->line, "row");
    for (int o = 0; o < shown_count(w, count); o++) {
        const bel_row *row;
        BEL_TRY(find_row(w, rows, count, o, &row));
        int64_t elements = bel_shape_elements(&row->value.shape);
        named = named || !is_main(row);
        if (is_main(row) && elements > 1) append_columns(&w->line, "class", 1);
        append_columns(&w->line, is_main(row) ? "values" : row->name, elements);
    }
    bel_str_puts(&w->line, "\n");
    return named ? write_text(w) : NULL;
}

static bel_status *predict_begin(writer *w, const bel_row *rows, int count)
{
    if (w->begun) return NULL;
    w->begun = true;
    if (w->json) return check_keys(w, rows, count);
    return w->is_first ? write_header(w, rows, count) : NULL;
}

static bel_status *write_line(void *user, int64_t example, const bel_row *rows, int count)
{
    writer *w = user;
    BEL_TRY(predict_begin(w, rows, count));
    w->line.length = 0;
    bel_str_puts(&w->line, "");
    if (w->json) bel_str_printf(&w->line, "{\"example\":%lld", (long long)example);
    if (w->rows != NULL)
        bel_str_printf(&w->line, w->json ? ",\"row\":%lld" : "%lld,", (long long)w->rows[example]);
    for (int o = 0; o < shown_count(w, count); o++) {
        const bel_row *row;
        BEL_TRY(find_row(w, rows, count, o, &row));
        predict_append(w, row, w->json || o > 0);
    }
    bel_str_puts(&w->line, w->json ? "}\n" : "\n");
    return write_text(w);
}

bel_status *bel_verb_predict(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    bel_setup *setup;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    writer w = {.json = bel_options_bool(options, "json"), .threshold = setup->threshold};
    w.outputs = bel_options_list(options, "outputs", &w.output_count);
    w.is_first = bel_estimator_config(setup->estimator)->predict_part == 0;
    const char *part = bel_options_string(options, "part");
    bool among_ranks = part != NULL && strcmp(part, BEL_PART_OF_RANKS) == 0;
    bel_status *status = among_ranks ? bel_rank_lines_create(&w.ranks) : NULL;
    bool rows = setup->training != NULL && !setup->input.reads_tokens; // contexts are neighbors
    if (status == NULL && rows) status = bel_held_out_rows(setup, &w.rows);
    if (status == NULL && setup->columns != NULL) {
        status = bel_predict_table(options, setup, w.rows, w.ranks);
    } else if (status == NULL) {
        status = bel_predict(setup->estimator, setup->input_fn, setup->input_user,
                             setup->checkpoint, write_line, &w);
    }
    if (status == NULL && among_ranks) status = bel_rank_lines_finish(w.ranks);
    bel_rank_lines_destroy(w.ranks, status);
    bel_str_deinit(&w.line);
    bel_free(w.rows);
    bel_setup_destroy(setup);
    return status;
}
