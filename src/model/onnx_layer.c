// ONNX models in model functions. Every process reads the file on each call of the model function.
// The file's values are the initial values of training. They stay in memory with the graph, and
// only the master uses them (src/master/job/initial_values.c).
#include "belfry/onnx.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/str.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

enum { MOST_OUTPUTS = 64 };

typedef struct adding {
    bel_model_context *context;
    bel_graph *graph;
    const bel_onnx_model *model;
    bel_onnx_use use;
    bel_onnx_binding *bindings; // by input of the model
} adding;

// --- Inputs --------------------------------------------------------------------------------------

static bel_value *fed(const adding *a, const char *name)
{
    for (int f = 0; f < a->use.feed_count; f++)
        if (strcmp(a->use.feeds[f].name, name) == 0) return a->use.feeds[f].value;
    return NULL;
}

static int unnamed_inputs(const adding *a)
{
    int count = 0;
    for (int i = 0; i < bel_onnx_input_count(a->model); i++) {
        const char *name = bel_onnx_input(a->model, i)->name;
        count += fed(a, name) == NULL && !bel_context_has_feature(a->context, name);
    }
    return count;
}

// Elements of an example, without the batch; -1: another dimension is open.
static int64_t elements_of_row(const bel_shape *shape)
{
    bel_shape row = *shape;
    if (row.rank < 1) return -1;
    row.dims[0] = 1;
    return bel_shape_elements(&row);
}

// Converts a feature to the form of the port.
static bel_value *adding_fitted(const adding *a, bel_value *value, const bel_onnx_port *port)
{
    bel_graph *g = a->graph;
    bel_shape have = bel_value_shape(value), want = port->shape;
    if (value == NULL) return NULL;
    if (bel_value_dtype(value) != port->dtype) value = bel_cast(g, value, port->dtype);
    int64_t given = elements_of_row(&have), taken = port->ranked ? elements_of_row(&want) : -1;
    bool same = have.rank == want.rank;
    for (int32_t d = 1; d < have.rank && same; d++)
        same = want.dims[d] < 0 || have.dims[d] == want.dims[d];
    if (!port->ranked || same) return value;
    if (given < 0 || given != taken) {
        char ht[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "input \"%s\" of the ONNX model takes %s, and the feature for it is %s",
                       port->name, bel_shape_text(&want, wt), bel_shape_text(&have, ht));
        return NULL;
    }
    want.dims[0] = -1;
    return bel_reshape(g, value, &want);
}

static bel_status *bind_inputs(const adding *a)
{
    int unnamed = unnamed_inputs(a);
    for (int i = 0; i < bel_onnx_input_count(a->model); i++) {
        const bel_onnx_port *port = bel_onnx_input(a->model, i);
        bel_value *value = fed(a, port->name);
        if (value == NULL && unnamed == 1 && !bel_context_has_feature(a->context, port->name)) {
            value = bel_context_only_feature(a->context);
        } else if (value == NULL) {
            value = bel_context_feature(a->context, port->name);
        }
        a->bindings[i] =
            (bel_onnx_binding){.name = port->name, .value = adding_fitted(a, value, port)};
    }
    return bel_graph_check(a->graph);
}

// --- Variables -----------------------------------------------------------------------------------

enum { MOST_NAMES = 8 };

// A growing list of names, of which the first MOST_NAMES are shown.
typedef struct name_list {
    bel_str text;
    size_t count;
} name_list;

static void list_name(name_list *list, const char *name)
{
    const char *before = list->count == 0 ? "" : ", ";
    if (list->count < MOST_NAMES) bel_str_printf(&list->text, "%s\"%s\"", before, name);
    if (list->count++ == MOST_NAMES) bel_str_puts(&list->text, " …");
}

static const char *listed(const name_list *list)
{
    return list->count > 0 ? list->text.text : "none";
}

// Freezes variables. Patterns match names in the file, without the open scope. `matched`: by
// pattern.
static void freeze_variables(const adding *a, size_t first, bool *matched)
{
    size_t scope = strlen(a->graph->scope);
    for (size_t v = first; v < a->graph->variable_count; v++) {
        bel_graph_variable *variable = &a->graph->variables[v];
        for (int p = 0; p < a->use.freeze_count; p++) {
            if (fnmatch(a->use.freeze[p], variable->name + scope, FNM_NOESCAPE) != 0) continue;
            variable->kind = BEL_VARIABLE_FROZEN;
            matched[p] = true;
        }
    }
}

static bel_status *check_frozen(const adding *a, const bool *matched)
{
    for (int p = 0; p < a->use.freeze_count; p++) {
        if (matched[p]) continue;
        name_list names = {.count = 0};
        for (size_t v = 0; v < a->graph->variable_count; v++)
            list_name(&names, a->graph->variables[v].name);
        bel_status *status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "freeze: \"%s\" matches no variable; there are %s",
                    a->use.freeze[p], listed(&names));
        bel_str_deinit(&names.text);
        return status;
    }
    return NULL;
}

static name_list fixed_constants(const bel_onnx_weights *weights)
{
    name_list names = {.count = 0};
    const char *name;
    for (int at = 0; (name = bel_onnx_weights_next_fixed(weights, &at)) != NULL;)
        list_name(&names, name);
    return names;
}

static bel_status *check_trained(const adding *a, const bel_onnx_weights *weights)
{
    for (int p = 0; p < a->use.train_count; p++) {
        if (bel_onnx_weights_matched(weights, p)) continue;
        name_list names = fixed_constants(weights);
        bel_status *status = BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "train: \"%s\" matches no float constant; those that are no weights by their use: %s",
            a->use.train[p], listed(&names));
        bel_str_deinit(&names.text);
        return status;
    }
    return NULL;
}

// Logs which weights a training changes, and which it leaves.
static void tell_weights(const adding *a, size_t first, const bel_onnx_weights *weights)
{
    name_list trained = {.count = 0}, frozen = trained, fixed = fixed_constants(weights);
    int64_t parameters = 0;
    for (size_t v = first; v < a->graph->variable_count; v++) {
        const bel_graph_variable *variable = &a->graph->variables[v];
        bool is_trained = variable->kind == BEL_VARIABLE_TRAINABLE;
        list_name(is_trained ? &trained : &frozen, variable->name);
        if (is_trained) parameters += bel_shape_elements(&variable->value->spec.shape);
    }
    bel_log_write(trained.count > 0 ? BEL_LOG_INFO : BEL_LOG_WARN,
                  "ONNX model: %zu variables are trained (%lld parameters): %s; frozen: %s; float "
                  "constants that are no weights by their use: %s%s",
                  trained.count, (long long)parameters, listed(&trained), listed(&frozen),
                  listed(&fixed), fixed.count > 0 ? " (--train PATTERN trains them)" : "");
    bel_str_deinit(&trained.text);
    bel_str_deinit(&frozen.text);
    bel_str_deinit(&fixed.text);
}

static bel_status *adding_build(const adding *a, bel_value **outputs)
{
    size_t first = a->graph->variable_count;
    bel_onnx_weights *weights = bel_onnx_weights_find(a->model, a->use.train, a->use.train_count);
    const bel_onnx_options options = {.bindings = a->bindings,
                                      .binding_count = bel_onnx_input_count(a->model),
                                      .weights = weights};
    bool *matched = bel_xcalloc((size_t)a->use.freeze_count + 1, sizeof *matched);
    bel_status *status = check_trained(a, weights);
    if (status == NULL) status = bel_onnx_build(a->model, a->graph, &options, outputs);
    if (status == NULL) {
        freeze_variables(a, first, matched);
        status = check_frozen(a, matched);
    }
    if (status == NULL && bel_context_mode(a->context) == BEL_MODE_TRAIN)
        tell_weights(a, first, weights);
    bel_free(matched);
    bel_onnx_weights_destroy(weights);
    return status;
}

// --- Logits --------------------------------------------------------------------------------------

static const bel_value *input_of(const bel_value *value, int input)
{
    return value->node->inputs[input];
}

static bool is_made_by(const bel_value *value, bel_op op)
{
    return value->node->op == op;
}

// z of e^z / sum(e^z) along the last of two dimensions; NULL: another formula.
static bel_value *written_out(const bel_value *value)
{
    if (!is_made_by(value, BEL_OP_DIV) || value->spec.shape.rank != 2) return NULL;
    const bel_value *powers = input_of(value, 0), *sum = input_of(value, 1);
    bool fits = is_made_by(powers, BEL_OP_EXP) && is_made_by(sum, BEL_OP_REDUCE_SUM) &&
                input_of(sum, 0) == powers && sum->spec.shape.rank == 2 &&
                sum->spec.shape.dims[0] == value->spec.shape.dims[0];
    return fits ? powers->node->inputs[0] : NULL;
}

static bool is_known(const bel_value *value)
{
    return is_made_by(value, BEL_OP_CONSTANT) || is_made_by(value, BEL_OP_VARIABLE);
}

// Whether it is 1 over an expression with a power of e, a sigmoid in elementary operations.
static bool is_over_powers(const bel_value *value)
{
    const bel_value *at = NULL;
    if (is_made_by(value, BEL_OP_RECIPROCAL)) at = input_of(value, 0);
    if (is_made_by(value, BEL_OP_DIV)) at = input_of(value, 1);
    if (at == NULL) return false;
    if (is_made_by(at, BEL_OP_ADD)) at = input_of(at, is_known(input_of(at, 0)) ? 1 : 0);
    if (is_made_by(at, BEL_OP_REDUCE_SUM)) at = input_of(at, 0);
    return is_made_by(at, BEL_OP_EXP);
}

static bool are_probabilities(const bel_value *value)
{
    return is_made_by(value, BEL_OP_SOFTMAX) || is_made_by(value, BEL_OP_SIGMOID) ||
           is_made_by(value, BEL_OP_MASKED_SOFTMAX) || is_over_powers(value);
}

// The value whose elements this one has, moved, limited, or changed by a constant; NULL: another
// operation.
static const bel_value *changed_from(const bel_value *value)
{
    switch (value->node->op) {
    case BEL_OP_RESHAPE:
    case BEL_OP_FLATTEN:
    case BEL_OP_SQUEEZE:
    case BEL_OP_UNSQUEEZE:
    case BEL_OP_CAST:
    case BEL_OP_TRANSPOSE:
    case BEL_OP_CLIP:
    case BEL_OP_IDENTITY:
    case BEL_OP_SLICE:
    case BEL_OP_NEG: return input_of(value, 0);
    case BEL_OP_CONCAT: return input_of(value, value->node->input_count - 1);
    case BEL_OP_ADD:
    case BEL_OP_SUB:
    case BEL_OP_MUL:
    case BEL_OP_DIV:
    case BEL_OP_MIN:
    case BEL_OP_MAX:
        if (is_known(input_of(value, 0))) return input_of(value, 1);
        return is_known(input_of(value, 1)) ? input_of(value, 0) : NULL;
    default: return NULL;
    }
}

// Warns of changed probabilities, which are not traced back: a loss takes their softmax.
static void warn_of_probabilities(const bel_value *value)
{
    const bel_value *at = value;
    while (at != NULL && !are_probabilities(at))
        at = changed_from(at);
    if (at == NULL) return;
    bel_log_write(
        BEL_LOG_WARN,
        "an output of the ONNX model is computed from probabilities (%s, then %s); losses "
        "take it for what they take the softmax or sigmoid of; hint: export the model "
        "without that",
        at->node->name, value->node->name);
}

static bel_value *before_activation(bel_value *value)
{
    while (value->node->op == BEL_OP_IDENTITY)
        value = value->node->inputs[0];
    switch (value->node->op) {
    case BEL_OP_SOFTMAX:
    case BEL_OP_LOG_SOFTMAX:
    case BEL_OP_SIGMOID: return value->node->inputs[0];
    case BEL_OP_LOG: // logarithm of a softmax
        if (is_made_by(input_of(value, 0), BEL_OP_SOFTMAX))
            return input_of(value, 0)->node->inputs[0];
        break;
    default: break;
    }
    bel_value *logits = written_out(value);
    if (logits == NULL) warn_of_probabilities(value);
    return logits != NULL ? logits : value;
}

// --- Entry point --------------------------------------------------------------------------------

static void destroy_model(void *model)
{
    bel_onnx_destroy(model);
}

static bel_status *onnx_layer_add(adding *a, bel_value **out_outputs, int capacity)
{
    int count = bel_onnx_output_count(a->model);
    if (count > MOST_OUTPUTS) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "it has %d outputs; expected at most %d", count,
                       MOST_OUTPUTS);
    }
    for (int f = 0; f < a->use.feed_count; f++) {
        bool found = false;
        for (int i = 0; i < bel_onnx_input_count(a->model); i++)
            found = found || strcmp(a->use.feeds[f].name, bel_onnx_input(a->model, i)->name) == 0;
        if (!found) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "the ONNX model has no input \"%s\"",
                           a->use.feeds[f].name);
        }
    }
    BEL_TRY(bind_inputs(a));
    bel_value *outputs[MOST_OUTPUTS];
    BEL_TRY(adding_build(a, outputs));
    for (int o = 0; o < count && o < capacity; o++)
        out_outputs[o] = a->use.logits ? before_activation(outputs[o]) : outputs[o];
    return NULL;
}

int bel_onnx_add(bel_model_context *context, const char *path, const bel_onnx_use *use,
                 bel_value **out_outputs, int capacity)
{
    adding a = {.context = context, .graph = bel_context_graph(context)};
    for (int o = 0; o < capacity; o++)
        out_outputs[o] = NULL;
    if (a.graph->error_code != BEL_OK) return 0;
    bel_onnx_model *model = NULL;
    bel_status *status = bel_sized_take(&a.use, sizeof a.use, use, "bel_onnx_use");
    if (status == NULL) status = bel_onnx_read_file(path, &model);
    bool named = status != NULL; // read errors have the path
    a.model = model;
    if (status == NULL) {
        bel_graph_attach(a.graph, model, destroy_model);
        a.bindings = bel_xcalloc((size_t)bel_onnx_input_count(model) + 1, sizeof *a.bindings);
        status = onnx_layer_add(&a, out_outputs, capacity);
    }
    bel_free(a.bindings);
    if (status == NULL) return bel_onnx_output_count(model);
    bel_graph_fail(a.graph, bel_status_code(status), "%s%s%s", named ? "" : path, named ? "" : ": ",
                   bel_status_message(status));
    bel_status_destroy(status);
    return 0;
}
