// ONNX models in model functions. The file is read each time the model function is called, in every
// process; what training begins with are the elements in it, which stay in memory with the graph
// and are looked at by the master alone (src/master/initial_values.c).
#include "belfry/onnx.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
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

// Elements of an example, behind the batch; -1: there is another open dimension.
static int64_t elements_of_row(const bel_shape *shape)
{
    bel_shape row = *shape;
    if (row.rank < 1) return -1;
    row.dims[0] = 1;
    return bel_shape_elements(&row);
}

// A feature as the port takes it.
static bel_value *fitted(const adding *a, bel_value *value, const bel_onnx_port *port)
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
        a->bindings[i] = (bel_onnx_binding){.name = port->name, .value = fitted(a, value, port)};
    }
    return bel_graph_check(a->graph);
}

// --- Variables -----------------------------------------------------------------------------------

static bool is_frozen(const adding *a, const char *name, bool *matched)
{
    bool frozen = false;
    for (int p = 0; p < a->use.freeze_count; p++) {
        if (fnmatch(a->use.freeze[p], name, FNM_NOESCAPE) != 0) continue;
        frozen = matched[p] = true;
    }
    return frozen;
}

// Variables begin with what the file has; those before `first` are others'. `matched`: by pattern.
static void set_variables(const adding *a, int first, bool *matched)
{
    for (int i = 0; i < bel_onnx_initializer_count(a->model); i++) {
        bel_tensor tensor;
        char full[BEL_GRAPH_MAX_NAME];
        const char *name = bel_onnx_initializer(a->model, i, &tensor);
        if (!bel_graph_full_name(a->graph, name, full)) return; // too long: said
        int v = bel_graph_find_variable(a->graph, full);
        if (v < first) continue; // a constant
        bel_graph_variable *variable = &a->graph->variables[v];
        const bel_spec *spec = &variable->value->spec;
        if (tensor.dtype != spec->dtype || !bel_shape_equal(&tensor.shape, &spec->shape)) continue;
        variable->elements = tensor.data;
        if (is_frozen(a, name, matched)) variable->kind = BEL_VARIABLE_FROZEN;
    }
}

static bel_status *check_patterns(const adding *a, const bool *matched)
{
    enum { MOST_NAMES = 8 };
    for (int p = 0; p < a->use.freeze_count; p++) {
        if (matched[p]) continue;
        bel_str names = {0};
        size_t count = a->graph->variable_count;
        for (size_t v = 0; v < count && v < MOST_NAMES; v++)
            bel_str_printf(&names, "%s\"%s\"", v > 0 ? ", " : "", a->graph->variables[v].name);
        bel_status *status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "freeze: \"%s\" matches no variable; there are %s%s",
                    a->use.freeze[p], names.text != NULL ? names.text : "none",
                    count > MOST_NAMES ? " …" : "");
        bel_str_deinit(&names);
        return status;
    }
    return NULL;
}

// What only moves or renames elements.
static bool moves(bel_op op)
{
    return op == BEL_OP_RESHAPE || op == BEL_OP_FLATTEN || op == BEL_OP_SQUEEZE ||
           op == BEL_OP_UNSQUEEZE || op == BEL_OP_CAST || op == BEL_OP_TRANSPOSE ||
           op == BEL_OP_CLIP;
}

// Probabilities that were moved are not looked behind: who trains them gets a softmax of a softmax.
static void warn_of_probabilities(const bel_value *value)
{
    const bel_value *at = value;
    while (moves(at->node->op))
        at = at->node->inputs[0];
    if (at == value || (at->node->op != BEL_OP_SOFTMAX && at->node->op != BEL_OP_SIGMOID)) return;
    bel_log_write(
        BEL_LOG_WARN,
        "an output of the ONNX model is probabilities behind %s; they are taken for "
        "what a loss takes the softmax or sigmoid of; hint: export the model without that",
        value->node->name);
}

static bel_value *before_activation(bel_value *value)
{
    while (value->node->op == BEL_OP_IDENTITY)
        value = value->node->inputs[0];
    warn_of_probabilities(value);
    switch (value->node->op) {
    case BEL_OP_SOFTMAX:
    case BEL_OP_LOG_SOFTMAX:
    case BEL_OP_SIGMOID: return value->node->inputs[0];
    default: return value;
    }
}

// --- Whole ---------------------------------------------------------------------------------------

static void destroy_model(void *model)
{
    bel_onnx_destroy(model);
}

static bel_status *add(adding *a, bel_value **out_outputs, int capacity)
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
    const bel_onnx_options options = {.bindings = a->bindings,
                                      .binding_count = bel_onnx_input_count(a->model),
                                      .variables = true};
    int first = (int)a->graph->variable_count;
    BEL_TRY(bel_onnx_build(a->model, a->graph, &options, outputs));
    bool *matched = bel_xcalloc((size_t)a->use.freeze_count + 1, sizeof *matched);
    set_variables(a, first, matched);
    bel_status *status = check_patterns(a, matched);
    bel_free(matched);
    for (int o = 0; o < count && o < capacity; o++)
        out_outputs[o] = a->use.logits ? before_activation(outputs[o]) : outputs[o];
    return status;
}

int bel_onnx_add(bel_model_context *context, const char *path, const bel_onnx_use *use,
                 bel_value **out_outputs, int capacity)
{
    adding a = {.context = context, .graph = bel_context_graph(context)};
    if (use != NULL) memcpy(&a.use, use, use->size < sizeof a.use ? use->size : sizeof a.use);
    for (int o = 0; o < capacity; o++)
        out_outputs[o] = NULL;
    if (a.graph->error_code != BEL_OK) return 0;
    bel_onnx_model *model = NULL;
    bel_status *status = bel_onnx_read_file(path, &model);
    bool named = status != NULL; // errors of reading say the path
    a.model = model;
    if (status == NULL) {
        bel_graph_attach(a.graph, model, destroy_model);
        a.bindings = bel_xcalloc((size_t)bel_onnx_input_count(model) + 1, sizeof *a.bindings);
        status = add(&a, out_outputs, capacity);
    }
    bel_free(a.bindings);
    if (status == NULL) return bel_onnx_output_count(model);
    bel_graph_fail(a.graph, bel_status_code(status), "%s%s%s", named ? "" : path, named ? "" : ": ",
                   bel_status_message(status));
    bel_status_destroy(status);
    return 0;
}
