// Verb predict: one line an example, in the order of the files.
//   text: class,p0,p1,…      json: {"example":0,"class":3,"values":[…]}
// The class is the index of the largest value; a prediction of one element has no class.
#include <math.h>

#include "base/str.h"
#include "results.h"
#include "setup.h"
#include "tensor/half.h"
#include "verbs.h"

typedef struct writer {
    bel_str line; // reused
    bool json;
} writer;

// Element i of a prediction; NaN for types without numbers.
static double element(const bel_tensor *row, int64_t i)
{
    switch (row->dtype) {
    case BEL_DTYPE_F32: return ((const float *)row->data)[i];
    case BEL_DTYPE_F64: return ((const double *)row->data)[i];
    case BEL_DTYPE_I32: return ((const int32_t *)row->data)[i];
    case BEL_DTYPE_I64: return (double)((const int64_t *)row->data)[i];
    case BEL_DTYPE_U8:
    case BEL_DTYPE_BOOL: return ((const uint8_t *)row->data)[i];
    case BEL_DTYPE_F16: return bel_half_get(((const uint16_t *)row->data)[i]);
    case BEL_DTYPE_BF16: return bel_bfloat_get(((const uint16_t *)row->data)[i]);
    case BEL_DTYPE_STRING: break;
    }
    return 0;
}

// Nine digits hold every F32; JSON has no NaN.
static void append_number(writer *w, double value)
{
    if (w->json && !isfinite(value)) {
        bel_str_puts(&w->line, "null");
    } else {
        bel_str_printf(&w->line, "%.9g", value);
    }
}

static int64_t largest(const bel_tensor *row, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (element(row, i) > element(row, best)) best = i;
    return best;
}

static bel_status *write_line(void *user, int64_t example, const bel_tensor *row)
{
    writer *w = user;
    int64_t count = bel_shape_elements(&row->shape);
    w->line.length = 0;
    bel_str_puts(&w->line, "");
    if (w->json) bel_str_printf(&w->line, "{\"example\":%lld,", (long long)example);
    if (count > 1) {
        bel_str_printf(&w->line, w->json ? "\"class\":%lld," : "%lld,",
                       (long long)largest(row, count));
    }
    if (w->json) bel_str_puts(&w->line, "\"values\":[");
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) bel_str_puts(&w->line, ",");
        append_number(w, element(row, i));
    }
    bel_str_puts(&w->line, w->json ? "]}\n" : "\n");
    return bel_results_write(w->line.text);
}

bel_status *bel_verb_predict(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    bel_setup *setup;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    writer w = {.json = bel_options_bool(options, "json")};
    bel_status *status = bel_predict(setup->estimator, setup->input_fn, setup->input_user,
                                     setup->checkpoint, write_line, &w);
    bel_str_deinit(&w.line);
    bel_setup_destroy(setup);
    return status;
}
