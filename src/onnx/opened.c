// Models with a closed dimension 0 of inputs that are bound to values with an open one.
//
// Such a file describes the model only for a batch of that size. So it is built unchanged, in a
// separate graph, which batch.c converts for any batch; the error for a node that works across
// examples also names the input. Other models are built directly.
#include <string.h>

#include "base/alloc.h"
#include "onnx/batch.h"
#include "onnx/build.h"

typedef struct opening {
    const bel_onnx_model *model;
    bel_graph *graph, *closed;
    const bel_onnx_options *options;
    bel_onnx_binding *bindings; // by input of the model: values of the closed graph
    bel_value **values;         // by input of the closed graph: its value in the graph
    const bel_onnx_port *first; // the first closed one
    int64_t batch;
} opening;

static const bel_onnx_port *port_of(const bel_onnx_model *model, const char *name)
{
    for (int i = 0; i < model->input_count; i++)
        if (strcmp(model->inputs[i].name, name) == 0) return &model->inputs[i];
    return NULL;
}

static bool is_open(const bel_value *value)
{
    return value != NULL && value->spec.shape.rank > 0 && value->spec.shape.dims[0] < 0;
}

// Finds the closed batch; 0: nothing to open.
static bel_status *find_batch(opening *o)
{
    for (int i = 0; i < o->options->binding_count; i++) {
        const bel_onnx_binding *binding = &o->options->bindings[i];
        const bel_onnx_port *port = port_of(o->model, binding->name);
        bool closed = port != NULL && port->ranked && port->shape.rank > 0 &&
                      port->shape.dims[0] > 0 && is_open(binding->value);
        if (!closed) continue;
        if (o->first == NULL) o->first = port;
        o->batch = o->first->shape.dims[0];
        if (port->shape.dims[0] == o->batch) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "inputs \"%s\" and \"%s\" are closed at %lld and %lld in dimension 0, so "
                       "they have no batch in common",
                       o->first->name, port->name, (long long)o->batch,
                       (long long)port->shape.dims[0]);
    }
    return NULL;
}

// Adds an input to the closed graph for each input of the model, with the file's shape.
static void bind_closed(opening *o)
{
    o->bindings = bel_xcalloc((size_t)o->model->input_count + 1, sizeof *o->bindings);
    o->values = bel_xcalloc((size_t)o->model->input_count + 1, sizeof(bel_value *));
    for (int i = 0; i < o->model->input_count; i++) {
        const bel_onnx_port *port = &o->model->inputs[i];
        bel_onnx_binding binding = {.name = port->name};
        for (int k = 0; k < o->options->binding_count; k++)
            if (strcmp(o->options->bindings[k].name, port->name) == 0)
                binding = o->options->bindings[k];
        bel_value *value = binding.value;
        if (value == NULL) value = bel_input_value(o->graph, port->name, port->dtype, &port->shape);
        bel_shape shape = bel_value_shape(value);
        if (is_open(value)) shape.dims[0] = o->batch;
        binding.value = bel_input_value(o->closed, port->name, bel_value_dtype(value), &shape);
        o->bindings[i] = binding;
        o->values[i] = value;
    }
}

static bel_status *opening_refuse(const opening *o, const bel_node *refused, const size_t *ends)
{
    char label[BEL_ONNX_LABEL];
    int node = 0;
    while (node + 1 < o->model->node_count && ends[node] <= (size_t)refused->index)
        node++;
    return BEL_ERR(BEL_UNIMPLEMENTED,
                   "input \"%s\" is closed at %lld in dimension 0, and %s works across that "
                   "dimension or is not known to keep its rows apart: in a batch of other examples "
                   "they would not be what the file says; hint: export the model with an open "
                   "dimension 0 if its rows do not depend on each other",
                   o->first->name, (long long)o->batch,
                   bel_onnx_node_label(&o->model->nodes[node], label));
}

static void destroy_graph(void *graph)
{
    bel_graph_destroy(graph);
}

static bel_status *build_opened(opening *o, bel_value **out_outputs)
{
    bind_closed(o);
    BEL_TRY(bel_graph_check(o->graph));
    bel_onnx_options options = *o->options;
    options.bindings = o->bindings;
    options.binding_count = o->model->input_count;
    int count = o->model->output_count;
    const bel_node *refused = NULL;
    bel_value **outputs = bel_xcalloc((size_t)count + 1, sizeof(bel_value *));
    size_t *ends = bel_xcalloc((size_t)o->model->node_count + 1, sizeof *ends);
    bel_status *status = bel_onnx_build_as_bound(o->model, o->closed, &options, ends, outputs);
    if (status == NULL) {
        bel_onnx_open_batch(o->closed, o->values, o->batch, o->graph, outputs, count, out_outputs,
                            &refused);
        status = bel_graph_check(o->graph);
    }
    if (status == NULL && refused != NULL) status = opening_refuse(o, refused, ends);
    bel_free(outputs);
    bel_free(ends);
    return status;
}

bel_status *bel_onnx_build(const bel_onnx_model *model, bel_graph *graph,
                           const bel_onnx_options *options, bel_value **out_outputs)
{
    static const bel_onnx_options none = {.bindings = NULL};
    opening o = {.model = model, .graph = graph, .options = options == NULL ? &none : options};
    BEL_TRY(bel_graph_check(graph));
    BEL_TRY(find_batch(&o));
    if (o.first == NULL) return bel_onnx_build_as_bound(model, graph, o.options, NULL, out_outputs);
    o.closed = bel_graph_create();
    bel_graph_attach(graph, o.closed, destroy_graph); // the graph views its constants
    bel_status *status = build_opened(&o, out_outputs);
    bel_free(o.bindings);
    bel_free(o.values);
    return status;
}
