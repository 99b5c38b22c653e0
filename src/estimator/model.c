// The model context and the checks of a spec. Mistakes of a model function stick to the graph,
// so that it may be written without a check at each call; they are reported when it has returned,
// before the spec is checked. What the spec promises is checked by shape here, since the code that
// runs it later reads scalars and rows unchecked.
//
// Labels are no feature: a model cannot ask for them by name, and in PREDICT they are not there. A
// parameter that was asked for is marked, so that training can warn of those that are never read.
// The graph's first inputs are the batch's fields in order; those added by the function are rows of
// tables.
#include "estimator/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "estimator/estimator_inner.h"
#include "optim/settings.h"

struct bel_model_context {
    bel_graph *graph;
    bel_mode mode;
    const bel_estimator *estimator;
    int64_t batch_size;
    bel_value *labels;
};

static const char *const mode_names[] = {"TRAIN", "EVAL", "PREDICT"};

bel_graph *bel_context_graph(bel_model_context *context)
{
    return context->graph;
}

bel_mode bel_context_mode(const bel_model_context *context)
{
    return context->mode;
}

const bel_estimator *bel_context_estimator(const bel_model_context *context)
{
    return context->estimator;
}

int64_t bel_context_batch_size(const bel_model_context *context)
{
    return context->batch_size;
}

bel_value *bel_context_labels(bel_model_context *context)
{
    return context->labels;
}

static bool is_label(const char *name)
{
    return strcmp(name, BEL_LABEL_FIELD) == 0;
}

// The error names the features that there are; labels and rows of tables are none.
static void fail_with_features(bel_model_context *context, const char *what)
{
    bel_str names = {0};
    for (size_t i = 0; i < context->graph->input_count; i++) {
        const char *name = context->graph->inputs[i].name;
        if (is_label(name) || bel_graph_lookup_of(context->graph, (int)i) != NULL) continue;
        bel_str_printf(&names, "%s\"%s\"", names.length > 0 ? ", " : "", name);
    }
    bel_graph_fail(context->graph, BEL_INVALID_ARGUMENT, "%s; features of the input: %s", what,
                   names.length > 0 ? names.text : "none");
    bel_str_deinit(&names);
}

bool bel_context_has_feature(const bel_model_context *context, const char *name)
{
    return !is_label(name) && bel_graph_find_input(context->graph, name) != NULL;
}

bel_value *bel_context_feature(bel_model_context *context, const char *name)
{
    bel_value *value = is_label(name) ? NULL : bel_graph_find_input(context->graph, name);
    if (value == NULL) {
        char what[160];
        bel_snprintf(what, sizeof what, "there is no feature \"%s\"", name);
        fail_with_features(context, what);
    }
    return value;
}

bel_value *bel_context_only_feature(bel_model_context *context)
{
    bel_value *only = NULL;
    int count = 0;
    for (size_t i = 0; i < context->graph->input_count; i++) {
        if (is_label(context->graph->inputs[i].name)) continue;
        only = context->graph->inputs[i].value;
        count++;
    }
    if (count == 1) return only;
    fail_with_features(context, "the model takes exactly one feature");
    return NULL;
}

const char *bel_context_param(const bel_model_context *context, const char *name,
                              const char *otherwise)
{
    return bel_estimator_param(context->estimator, name, otherwise);
}

double bel_context_param_number(bel_model_context *context, const char *name, double otherwise)
{
    double value = otherwise;
    bel_status *status = bel_estimator_param_number(context->estimator, name, otherwise, &value);
    if (status == NULL) return value;
    bel_graph_fail(context->graph, bel_status_code(status), "%s", bel_status_message(status));
    bel_status_destroy(status);
    return otherwise;
}

int bel_context_param_list(bel_model_context *context, const char *name, const char *otherwise,
                           int64_t *out_numbers, int capacity)
{
    const char *text = bel_context_param(context, name, otherwise), *rest = text;
    int count = 0;
    for (; *rest != '\0'; count++) {
        size_t length = strcspn(rest, ",");
        if (count == capacity || !bel_parse_i64(rest, length, &out_numbers[count])) {
            bel_graph_fail(context->graph, BEL_INVALID_ARGUMENT,
                           "parameter %s must be a list of at most %d whole numbers such as "
                           "512,256, got \"%s\"",
                           name, capacity, text);
            return 0;
        }
        rest += length + (rest[length] == ',');
    }
    return count;
}

int bel_context_param_numbers(bel_model_context *context, const char *name, const char *otherwise,
                              double *out_numbers, int capacity)
{
    const char *text = bel_context_param(context, name, otherwise), *rest = text;
    int count = 0;
    for (; *rest != '\0'; count++) {
        size_t length = strcspn(rest, ",");
        if (count == capacity || !bel_parse_f64(rest, length, &out_numbers[count])) {
            bel_graph_fail(context->graph, BEL_INVALID_ARGUMENT,
                           "parameter %s must be a list of at most %d numbers such as 0.1,0.01, "
                           "got \"%s\"",
                           name, capacity, text);
            return 0;
        }
        rest += length + (rest[length] == ',');
    }
    return count;
}

bel_optimizer bel_context_optimizer(bel_model_context *context)
{
    bel_optimizer optimizer = {0};
    const char *name, *otherwise;
    for (size_t i = 0; (name = bel_optimizer_setting(i, &otherwise)) != NULL; i++) {
        const char *text = bel_context_param(context, name, otherwise);
        bel_status *status = bel_optimizer_set(&optimizer, name, text);
        if (status == NULL) continue;
        bel_graph_fail(context->graph, bel_status_code(status), "parameter %s",
                       bel_status_message(status));
        bel_status_destroy(status);
    }
    return optimizer;
}

// --- Building ------------------------------------------------------------------------------------

// An input of the graph for each field, in their order; returns how many.
static size_t add_inputs(bel_model_context *context, const bel_input *input, int *fields)
{
    size_t used = 0;
    for (int f = 0; f < bel_input_field_count(input); f++) {
        const char *name = bel_input_field_name(input, f);
        if (is_label(name) && context->mode == BEL_MODE_PREDICT) continue;
        bel_dtype dtype;
        bel_shape shape;
        bel_input_field_spec(input, f, &dtype, &shape);
        bel_value *value = bel_input_value(context->graph, name, dtype, &shape);
        if (is_label(name)) context->labels = value;
        fields[used++] = f;
    }
    return used;
}

// Inputs that the model function has added, behind those of the batch, must be rows of tables:
// nothing would feed others.
static bel_status *add_lookups(bel_built *built, size_t batch_inputs)
{
    const bel_graph *graph = built->graph;
    built->fields = bel_xrealloc(built->fields, (graph->input_count + 1) * sizeof *built->fields);
    for (size_t i = batch_inputs; i < graph->input_count; i++) {
        built->fields[i] = -1;
        if (bel_graph_lookup_of(graph, (int)i) != NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "nothing feeds the input \"%s\", which the model function has added; hint: "
                       "bel_context_feature gives the fields of the batch",
                       graph->inputs[i].name);
    }
    return NULL;
}

static bel_status *check_scalar(const bel_value *value, const char *what)
{
    bel_shape shape = bel_value_shape(value);
    if (value != NULL && shape.rank == 0 && bel_value_dtype(value) == BEL_DTYPE_F32) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "the model function's %s must be a scalar f32, got %s",
                   what, value == NULL ? "nothing" : bel_shape_text(&shape, text));
}

// A row for each example: the batch must be the first dimension.
static bel_status *check_predictions(const bel_value *predictions)
{
    if (predictions == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the model function must set predictions [batch, …] in PREDICT");
    }
    bel_shape shape = bel_value_shape(predictions);
    if (shape.rank > 0 && shape.dims[0] == BEL_DIM_BATCH) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "predictions must be [batch, …], a row for each example, got %s; hint: is the "
                   "batch the first dimension all the way?",
                   bel_shape_text(&shape, text));
}

// An evaluation reads sums and weights unchecked, as the floats that the functions for metrics
// make; they are checked here, as they may be made by hand.
static bel_status *check_metric(const bel_metric *metric)
{
    if (metric->kind != BEL_METRIC_AUC) {
        BEL_TRY(check_scalar(metric->sum, metric->name));
        return check_scalar(metric->weight, metric->name);
    }
    bel_shape shape = bel_value_shape(metric->sum);
    bool fits = metric->sum != NULL && bel_value_dtype(metric->sum) == BEL_DTYPE_F32 &&
                shape.rank == 2 && shape.dims[0] == 3 && metric->weight == NULL;
    if (fits) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "the model function's %s must have a sum f32 [3, n] and no weight, got %s",
                   metric->name, metric->sum == NULL ? "nothing" : bel_shape_text(&shape, text));
}

// What each mode must have, and nothing of the others.
static bel_status *check_spec(bel_estimator_spec *spec, bel_mode mode)
{
    if (mode == BEL_MODE_PREDICT) return check_predictions(spec->predictions);
    BEL_TRY(check_scalar(spec->loss, mode == BEL_MODE_TRAIN ? "loss in TRAIN" : "loss in EVAL"));
    if (spec->loss_weight != NULL) BEL_TRY(check_scalar(spec->loss_weight, "loss_weight"));
    if (spec->metric_count < 0 || spec->metric_count > BEL_MAX_METRICS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the model function's metric_count must be from 0 to %d, got %d",
                       BEL_MAX_METRICS, spec->metric_count);
    }
    for (int i = 0; i < spec->metric_count; i++)
        BEL_TRY(check_metric(&spec->metrics[i]));
    if (mode == BEL_MODE_TRAIN) BEL_TRY(bel_optimizer_check(&spec->optimizer));
    return NULL;
}

// The function's own error first, then what stuck to the graph, then what the spec lacks.
bel_status *bel_model_build(const bel_estimator *estimator, bel_mode mode, const bel_input *input,
                            bel_built **out_built)
{
    bel_built *built = bel_xcalloc(1, sizeof *built);
    built->mode = mode;
    built->graph = bel_graph_create();
    built->fields = bel_xcalloc((size_t)bel_input_field_count(input), sizeof *built->fields);
    bel_model_context context = {.graph = built->graph,
                                 .mode = mode,
                                 .estimator = estimator,
                                 .batch_size = bel_input_batch_size(input)};
    size_t batch_inputs = add_inputs(&context, input, built->fields);
    bel_status *status = estimator->model_fn(&context, &built->spec);
    if (status == NULL) status = bel_graph_check(built->graph);
    if (status == NULL) status = add_lookups(built, batch_inputs);
    if (status == NULL) status = check_spec(&built->spec, mode);
    if (status != NULL) {
        bel_built_destroy(built);
        return bel_status_wrap(status, __FILE__, __LINE__, "model function in %s",
                               mode_names[mode]);
    }
    *out_built = built;
    return NULL;
}

void bel_built_destroy(bel_built *built)
{
    if (built == NULL) return;
    bel_graph_destroy(built->graph);
    bel_free(built->fields);
    bel_free(built);
}
