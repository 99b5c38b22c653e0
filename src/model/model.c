// The model context and the checks of a spec. Mistakes of a model function stick to the graph, so
// that it need not check each call. They are reported after it has returned, before the spec is
// checked. Shapes of the spec are checked here, since the code that runs it later reads scalars and
// rows unchecked.
//
// Labels are no features: a model cannot request them by name, and PREDICT has none. A requested
// parameter is marked, so that training can warn of unread ones. The graph's first inputs are the
// batch's fields in order; those added by the function are rows of tables.
#include "model/model.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "estimator/estimator_inner.h"
#include "model/metrics.h"
#include "optim/settings.h"

struct bel_model_context {
    bel_graph *graph;
    bel_mode mode;
    const bel_estimator *estimator;
    const bel_input *input;
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
    return bel_input_batch_size(context->input);
}

// Rows of tables are inputs of the graph, but no fields.
static bool is_label(const bel_model_context *context, const char *name)
{
    int field = bel_input_find_field(context->input, name);
    return field >= 0 && bel_input_field_is_label(context->input, field);
}

// Fails with a list of the features, or the labels; rows of tables are neither.
static void fail_with_fields(bel_model_context *context, bool labels, const char *what)
{
    bel_str names = {0};
    for (int f = 0; f < bel_input_field_count(context->input); f++) {
        if (bel_input_field_is_label(context->input, f) != labels) continue;
        bel_str_printf(&names, "%s\"%s\"", names.length > 0 ? ", " : "",
                       bel_input_field_name(context->input, f));
    }
    bel_graph_fail(context->graph, BEL_INVALID_ARGUMENT, "%s; %s of the input: %s", what,
                   labels ? "labels" : "features", names.length > 0 ? names.text : "none");
    bel_str_deinit(&names);
}

// NULL in PREDICT, where labels are no inputs of the graph.
bel_value *bel_context_labels(bel_model_context *context)
{
    return bel_graph_find_input(context->graph, BEL_LABEL_FIELD);
}

bel_value *bel_context_label(bel_model_context *context, const char *name)
{
    char what[160];
    if (is_label(context, name)) return bel_graph_find_input(context->graph, name);
    if (context->mode == BEL_MODE_PREDICT) return NULL;
    bel_snprintf(what, sizeof what, "there is no label \"%s\"", name);
    fail_with_fields(context, true, what);
    return NULL;
}

bool bel_context_has_label(const bel_model_context *context, const char *name)
{
    return is_label(context, name) && bel_graph_find_input(context->graph, name) != NULL;
}

bool bel_context_has_feature(const bel_model_context *context, const char *name)
{
    return !is_label(context, name) && bel_graph_find_input(context->graph, name) != NULL;
}

bel_value *bel_context_feature(bel_model_context *context, const char *name)
{
    bel_value *value = is_label(context, name) ? NULL : bel_graph_find_input(context->graph, name);
    if (value == NULL) {
        char what[160];
        bel_snprintf(what, sizeof what, "there is no feature \"%s\"", name);
        fail_with_fields(context, false, what);
    }
    return value;
}

bel_value *bel_context_only_feature(bel_model_context *context)
{
    int only = -1, count = 0;
    for (int f = 0; f < bel_input_field_count(context->input); f++) {
        if (bel_input_field_is_label(context->input, f)) continue;
        only = f;
        count++;
    }
    if (count == 1)
        return bel_graph_find_input(context->graph, bel_input_field_name(context->input, only));
    fail_with_fields(context, false, "the model takes exactly one feature");
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
    return bel_graph_ok(context->graph, status) ? value : otherwise;
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
                           "parameter %s must be a list of at most %d integers such as "
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

void bel_context_optimizer(bel_model_context *context, bel_optimizer *out_optimizer)
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
    if (!bel_graph_ok(context->graph, bel_sized_check(out_optimizer, "bel_optimizer"))) return;
    if (!bel_sized_is_zero(&optimizer, out_optimizer->size, sizeof optimizer)) {
        bel_graph_fail(context->graph, BEL_FAILED_PRECONDITION,
                       "the parameters set fields of bel_optimizer that this program was compiled "
                       "without");
    }
    bel_sized_give(out_optimizer, &optimizer, sizeof optimizer);
}

// --- Building ------------------------------------------------------------------------------------

// Adds an input of the graph for each field, in order; returns their number.
static size_t add_inputs(bel_model_context *context, const bel_input *input, int *fields)
{
    size_t used = 0;
    for (int f = 0; f < bel_input_field_count(input); f++) {
        const char *name = bel_input_field_name(input, f);
        bool label = bel_input_field_is_label(input, f);
        if (label && context->mode == BEL_MODE_PREDICT) continue;
        bel_dtype dtype;
        bel_shape shape;
        bel_input_field_spec(input, f, &dtype, &shape);
        bel_input_value(context->graph, name, dtype, &shape);
        fields[used++] = f;
    }
    return used;
}

// Inputs that the model function added, after those of the batch, must be rows of tables: others
// would have no source.
static bel_status *add_lookups(bel_built *built, size_t batch_inputs)
{
    const bel_graph *graph = built->graph;
    built->fields = bel_xrealloc(built->fields, (graph->input_count + 1) * sizeof *built->fields);
    for (size_t i = batch_inputs; i < graph->input_count; i++) {
        built->fields[i] = -1;
        if (bel_graph_lookup_of(graph, (int)i) != NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "nothing feeds the input \"%s\", which the model function has added; hint: "
                       "take the fields of the batch from the context's features",
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

// Checks that the first dimension is the batch, with a row for each example.
static bel_status *check_rows(const bel_output *output)
{
    bel_shape shape = bel_value_shape(output->value);
    if (output->value != NULL && shape.rank > 0 && shape.dims[0] == BEL_DIM_BATCH) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s must be [batch, …], a row for each example, got %s; hint: is the "
                   "batch the first dimension all the way?",
                   output->name, output->value == NULL ? "nothing" : bel_shape_text(&shape, text));
}

static bel_status *check_predictions(const bel_estimator_spec *spec)
{
    if (spec->predictions == NULL && spec->output_count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the model function must set predictions [batch, …] in PREDICT");
    }
    const bel_output predictions = {BEL_PREDICTIONS, spec->predictions};
    if (spec->predictions != NULL) BEL_TRY(check_rows(&predictions));
    for (int i = 0; i < spec->output_count; i++)
        BEL_TRY(check_rows(&spec->outputs[i]));
    return NULL;
}

// Checks a custom metric: an evaluation reads its sums unchecked. The other metrics are made here.
static bel_status *check_own_metric(const bel_metric *metric)
{
    bel_shape shape = bel_value_shape(metric->sum);
    bool closed = bel_shape_elements(&shape) >= 0;
    bool is_float = metric->sum != NULL && bel_value_dtype(metric->sum) == BEL_DTYPE_F32;
    if (closed && is_float && metric->result != NULL) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "the model function's %s must have a sum f32 of a closed shape and a function "
                   "for its result, got %s%s",
                   metric->name, metric->sum == NULL ? "nothing" : bel_shape_text(&shape, text),
                   metric->result == NULL ? " and no function" : "");
}

// `images` describes the number of images; "": no images.
static bel_status *misfit(const bel_summary *summary, const char *expected, const char *images)
{
    bel_shape shape = bel_value_shape(summary->value);
    char text[BEL_SHAPE_TEXT];
    if (summary->value == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "summary \"%s\" must be %s, got nothing",
                       summary->name, expected);
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "summary \"%s\" must be %s, got %s%s %s", summary->name,
                   expected, images, bel_dtype_name(bel_value_dtype(summary->value)),
                   bel_shape_text(&shape, text));
}

static bel_status *check_image(const bel_summary *summary)
{
    enum { MOST_IMAGES = 64 };
    bel_shape shape = bel_value_shape(summary->value);
    bel_dtype dtype = bel_value_dtype(summary->value);
    bool kind = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_U8;
    bool colors =
        shape.rank == 4 && (shape.dims[1] == 1 || shape.dims[1] == 3 || shape.dims[1] == 4);
    bool some = summary->most >= 1 && summary->most <= MOST_IMAGES;
    if (summary->value != NULL && kind && colors && some) return NULL;
    char images[24];
    bel_snprintf(images, sizeof images, "%d of ", summary->most);
    return misfit(summary, "f32 or u8 [batch, 1, 3 or 4, h, w] with 1 to 64 images", images);
}

bel_status *bel_summary_check(const bel_summary *summary)
{
    bool f32 = summary->value != NULL && bel_value_dtype(summary->value) == BEL_DTYPE_F32;
    if (summary->kind == BEL_SUMMARY_IMAGE) return check_image(summary);
    if (summary->kind == BEL_SUMMARY_HISTOGRAM) return f32 ? NULL : misfit(summary, "f32", "");
    bool scalar = f32 && bel_value_shape(summary->value).rank == 0;
    return scalar ? NULL : misfit(summary, "a scalar f32", "");
}

// Checks the required parts of each mode, and ignores others.
static bel_status *check_spec(const bel_estimator_spec *spec, bel_mode mode)
{
    if (mode == BEL_MODE_PREDICT) return check_predictions(spec);
    BEL_TRY(check_scalar(spec->loss, mode == BEL_MODE_TRAIN ? "loss in TRAIN" : "loss in EVAL"));
    if (spec->loss_weight != NULL) BEL_TRY(check_scalar(spec->loss_weight, "loss_weight"));
    for (int i = 0; i < spec->metric_count; i++)
        if (spec->metrics[i].kind == BEL_METRIC_OWN) BEL_TRY(check_own_metric(&spec->metrics[i]));
    return NULL;
}

static bel_status *take_optimizers(bel_built *built, int function)
{
    const bel_estimator_spec *spec = &built->functions[function].spec;
    bel_optimizers *optimizers = &built->optimizers[function];
    if (!spec->has_optimizer) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "expected the model function to set an optimizer for all variables in TRAIN, "
            "got none");
    }
    *optimizers = spec->optimizers;
    BEL_TRY(bel_optimizers_check(optimizers));
    const bel_optimizer *first = &built->optimizers->main;
    bool same_averages = optimizers->main.moving_average_decay == first->moving_average_decay &&
                         optimizers->main.moving_average_ramp == first->moving_average_ramp;
    if (same_averages && optimizers->main.mean_by_contributors == first->mean_by_contributors)
        return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: all step functions must set it alike, as it is that of all parameters",
                   same_averages ? "mean_by_contributors" : "moving_average_decay");
}

static bel_status *check_returns(const bel_estimator_spec *spec, bool in_loop)
{
    for (int i = 0; i < spec->return_count && in_loop; i++) {
        const bel_return *returned = &spec->returns[i];
        bel_shape shape = bel_value_shape(returned->value);
        if (returned->value != NULL && bel_value_dtype(returned->value) == BEL_DTYPE_F32 &&
            bel_shape_elements(&shape) >= 0)
            continue;
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(
            BEL_INVALID_ARGUMENT, "returned value \"%s\" must be f32 of a closed shape, got %s %s",
            returned->name,
            returned->value == NULL ? "nothing" : bel_dtype_name(bel_value_dtype(returned->value)),
            returned->value == NULL ? "" : bel_shape_text(&shape, text));
    }
    return NULL;
}

// Replicas of a step that can exchange values within it (belfry/collective.h): all replicas, or, if
// reports on older versions count, those whose gradients are averaged first.
static int exchanging_replicas(const bel_estimator *estimator, bel_mode mode,
                               const bel_counting *counting)
{
    if (mode != BEL_MODE_TRAIN) return 1;
    return bel_counting_takes_stale(counting) ? bel_estimator_towers(estimator, 0)
                                              : estimator->replica_count;
}

// Moves the assignments of the last called function from the graph to the function, so that the
// next one can assign the same state variables.
static void take_assigned(bel_graph *graph, bel_built_function *function)
{
    function->assigned_count = graph->variable_count;
    function->assigned = bel_xcalloc(graph->variable_count, sizeof(bel_value *));
    for (size_t v = 0; v < graph->variable_count; v++) {
        function->assigned[v] = graph->variables[v].assigned;
        graph->variables[v].assigned = NULL;
    }
}

// Reports the function's error first, then the graph's sticky error, then missing parts of the
// spec.
static bel_status *call_function(bel_model_context *context, bel_model_fn *fn,
                                 bel_estimator_spec *spec)
{
    bel_status *status = fn(context, spec), *error = spec->error;
    spec->error = NULL;
    if (status == NULL) status = bel_graph_check(context->graph);
    if (status == NULL) return error != NULL ? error : check_spec(spec, context->mode);
    bel_status_destroy(error);
    return status;
}

static bel_status *call_step_function(bel_model_context *context, bel_built *built, int f,
                                      const bel_step_function *from, bool in_loop)
{
    bel_built_function *function = &built->functions[f];
    *function = (bel_built_function){.name = from->name, .variables = from->variables};
    if (from->name != NULL) function->loss_name = bel_strf("%s/loss", from->name);
    bel_status *status = call_function(context, from->fn, &function->spec);
    if (status == NULL) status = check_returns(&function->spec, in_loop);
    if (status == NULL) status = take_optimizers(built, f);
    take_assigned(built->graph, function);
    if (status == NULL || from->name == NULL) return status;
    return bel_status_wrap(status, __FILE__, __LINE__, "step function \"%s\"", from->name);
}

static bel_status *check_loop(const bel_loop *loop)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (loop->function_count < 1 || loop->function_count > BEL_MAX_LOOP_FUNCTIONS ||
        loop->functions == NULL || loop->run == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a loop must have `run`, and from 1 to %d step functions, got %d",
                       BEL_MAX_LOOP_FUNCTIONS, loop->function_count);
    }
    if (loop->state_bytes > 0 && loop->state == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the loop's state_bytes is set, but state is not");
    for (int f = 0; f < loop->function_count; f++) {
        const char *name = loop->functions[f].name;
        bool good = name != NULL && name[0] != '\0' && name[strspn(name, plain)] == '\0' &&
                    loop->functions[f].fn != NULL;
        for (int other = 0; other < f && good; other++)
            good = strcmp(name, loop->functions[other].name) != 0;
        if (good) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "step function %d must have a function, and a unique name of letters, "
                       "digits, _ and -, got \"%s\"",
                       f, name != NULL ? name : "");
    }
    return NULL;
}

// Calls the model function, or the step functions one after another into the same graph.
static bel_status *build_steps(bel_model_context *context, bel_built *built, const bel_loop *loop)
{
    const bel_step_function only = {.fn = context->estimator->model_fn};
    const bel_step_function *functions = loop != NULL ? loop->functions : &only;
    built->function_count = loop != NULL ? loop->function_count : 1;
    size_t count = (size_t)built->function_count;
    built->functions = bel_xcalloc(count, sizeof *built->functions);
    built->optimizers = bel_xcalloc(count, sizeof *built->optimizers);
    for (int f = 0; f < built->function_count; f++)
        BEL_TRY(call_step_function(context, built, f, &functions[f], loop != NULL));
    built->spec = built->functions->spec;
    return NULL;
}

// A model function that forgets to ask for the mode evaluates a model with random gaps. Evaluations
// may build it again and again, so one line must do.
static void warn_of_dropout(const bel_built *built)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    for (size_t n = 0; n < built->graph->node_count; n++) {
        const bel_node *node = built->graph->nodes[n];
        if (node->op != BEL_OP_DROPOUT || bel_attr_number(&node->attrs, "ratio", 0) == 0) continue;
        if (atomic_flag_test_and_set(&warned)) return;
        bel_log_write(BEL_LOG_WARN,
                      "model function in %s: %s drops elements, as in training; use it "
                      "only if the context's mode is TRAIN",
                      mode_names[built->mode], node->name);
        return;
    }
}

bel_status *bel_model_build(const bel_estimator *estimator, bel_mode mode, const bel_loop *loop,
                            const bel_input *input, int kept_replicas, bel_built **out_built)
{
    bel_counting counting;
    BEL_TRY(bel_estimator_counting(estimator, &counting));
    if (loop != NULL) BEL_TRY(check_loop(loop));
    bel_built *built = bel_xcalloc(1, sizeof *built);
    built->mode = mode;
    built->graph = bel_graph_create();
    built->graph->replica_count = exchanging_replicas(estimator, mode, &counting);
    built->graph->kept_replicas = kept_replicas;
    built->fields = bel_xcalloc((size_t)bel_input_field_count(input), sizeof *built->fields);
    bel_model_context context = {
        .graph = built->graph, .mode = mode, .estimator = estimator, .input = input};
    size_t batch_inputs = add_inputs(&context, input, built->fields);
    bel_status *status = mode == BEL_MODE_TRAIN
                             ? build_steps(&context, built, loop)
                             : call_function(&context, estimator->model_fn, &built->spec);
    if (status == NULL) status = add_lookups(built, batch_inputs);
    if (status != NULL) {
        bel_built_destroy(built);
        return bel_status_wrap(status, __FILE__, __LINE__, "model function in %s",
                               mode_names[mode]);
    }
    if (mode != BEL_MODE_TRAIN) warn_of_dropout(built);
    *out_built = built;
    return NULL;
}

// Matches with fnmatch; spaces around a pattern belong to it.
bool bel_step_function_names(const char *patterns, const char *name)
{
    for (const char *rest = patterns; rest != NULL;) {
        const char *comma = strchr(rest, ',');
        char *pattern = bel_xstrndup(rest, comma != NULL ? (size_t)(comma - rest) : strlen(rest));
        bool matches = fnmatch(pattern, name, FNM_NOESCAPE) == 0;
        bel_free(pattern);
        if (matches) return true;
        rest = comma != NULL ? comma + 1 : NULL;
    }
    return patterns == NULL;
}

void bel_built_destroy(bel_built *built)
{
    if (built == NULL) return;
    for (int f = 0; f < built->function_count; f++) {
        bel_free(built->functions[f].loss_name);
        bel_free(built->functions[f].assigned);
    }
    bel_free(built->functions);
    bel_free(built->optimizers);
    bel_graph_destroy(built->graph);
    bel_free(built->fields);
    bel_free(built);
}
