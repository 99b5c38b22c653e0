// Writes a graph as a model: the nodes that results need, in the order of the graph, each as ONNX's
// operators (write_ops.c) or as a function (write_own.c). The message points to the caller's
// elements and is packed piece by piece into the sink, so that a large model is not copied.
//
// Values are named before nodes are written: inputs, results and variables keep their names; others
// get the name of their node.
#include "onnx/write.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"
#include "onnx/build.h"
#include "onnx/write_inner.h"

typedef struct writer {
    const bel_onnx_source *source;
    bel_arena *arena;
    bel_onnx_emitter emitter;
    bel_onnx_functions functions;
    bool *needed;       // by node
    bool *read;         // by value
    const char **names; // by value; NULL: not named yet
    Onnx__GraphProto graph;
    Onnx__ModelProto model;
} writer;

// --- What is needed ------------------------------------------------------------------------------

static void find_needed(writer *w)
{
    const bel_graph *graph = w->source->graph;
    int count = w->source->result_count;
    bel_value **values = bel_xcalloc((size_t)count + 1, sizeof *values);
    for (int r = 0; r < count; r++) {
        const bel_value *value = w->source->results[r].value;
        values[r] = graph->values[value->id];
        w->read[value->id] = true;
    }
    bel_graph_mark(graph, values, count, w->needed);
    bel_free(values);
    for (size_t n = 0; n < graph->node_count; n++)
        for (int i = 0; w->needed[n] && i < graph->nodes[n]->input_count; i++)
            w->read[graph->nodes[n]->inputs[i]->id] = true;
}

// --- Names ---------------------------------------------------------------------------------------

static bool is_leaf(const bel_value *value)
{
    return (bel_op_get(value->node->op)->flags & BEL_OP_LEAF) != 0;
}

static bel_status *name_results(writer *w)
{
    for (int r = 0; r < w->source->result_count; r++) {
        const bel_onnx_result *result = &w->source->results[r];
        if (bel_names_find(w->emitter.names, result->name) >= 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "two inputs or outputs are called \"%s\"; an exported model needs a "
                           "name for each",
                           result->name);
        }
        const char *name = bel_onnx_new_name(&w->emitter, result->name);
        bool taken = is_leaf(result->value) || w->names[result->value->id] != NULL;
        if (!taken) w->names[result->value->id] = name; // otherwise it gets an Identity
    }
    return NULL;
}

static bel_status *name_values(writer *w)
{
    const bel_graph *graph = w->source->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const bel_graph_input *input = &graph->inputs[i];
        if (w->needed[input->value->node->index])
            w->names[input->value->id] = bel_onnx_new_name(&w->emitter, input->name);
    }
    BEL_TRY(name_results(w));
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_value *value = graph->variables[v].value;
        if (w->needed[value->node->index])
            w->names[value->id] = bel_onnx_new_name(&w->emitter, graph->variables[v].name);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        bool whole = node->op == BEL_OP_TOP_K; // ONNX's has no optional outputs
        for (int o = 0; w->needed[n] && o < node->output_count; o++) {
            const bel_value *value = node->outputs[o];
            if (w->names[value->id] == NULL && (whole || w->read[value->id]))
                w->names[value->id] = bel_onnx_new_name(&w->emitter, node->name);
        }
    }
    return NULL;
}

// --- Ports and elements --------------------------------------------------------------------------

static void add_initializer(writer *w, const char *name, const bel_tensor *tensor,
                            const int64_t *offset)
{
    bel_tensor shown = *tensor;
    if (offset != NULL) shown.data = NULL;
    Onnx__TensorProto *message = bel_onnx_tensor_message(w->arena, name, &shown);
    w->graph.initializer[w->graph.n_initializer++] = message;
    if (offset == NULL) return;
    char at[24], length[24];
    bel_snprintf(at, sizeof at, "%lld", (long long)*offset);
    bel_snprintf(length, sizeof length, "%zu", bel_tensor_bytes(tensor));
    message->has_data_location = true;
    message->data_location = 1; // EXTERNAL
    message->external_data = bel_arena_alloc(w->arena, 3 * sizeof(Onnx__StringStringEntryProto *));
    message->external_data[message->n_external_data++] =
        bel_onnx_entry_message(w->arena, "location", w->source->beside->file);
    message->external_data[message->n_external_data++] =
        bel_onnx_entry_message(w->arena, "offset", at);
    message->external_data[message->n_external_data++] =
        bel_onnx_entry_message(w->arena, "length", length);
}

static void add_variable(writer *w, int v)
{
    const bel_value *value = w->source->graph->variables[v].value;
    const bel_onnx_beside *beside = w->source->beside;
    bel_tensor tensor = {.dtype = value->spec.dtype,
                         .shape = value->spec.shape,
                         .data = (void *)(uintptr_t)w->source->variables[v]}; // packing only reads
    add_initializer(w, w->names[value->id], &tensor, beside == NULL ? NULL : &beside->variables[v]);
}

// --- Nodes ---------------------------------------------------------------------------------------

static bel_status *write_refuse(const writer *w, const bel_node *node)
{
    const bel_op_def *op = bel_op_get(node->op);
    if ((op->flags & BEL_OP_COLLECTIVE) != 0) {
        char text[BEL_COLLECTIVE_TEXT];
        int index = bel_collective_read(node->op, &node->attrs).index;
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "%s: %s: what replicas exchange cannot be exported; hint: leave it out of "
                       "the model function's graph of predictions",
                       node->name, bel_graph_collective_text(w->source->graph, index, text));
    }
    if ((op->flags & BEL_OP_RANDOM) != 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "%s (%s): random numbers cannot be exported; hint: leave them out of the "
                       "model function's graph of predictions",
                       node->name, op->name);
    }
    bool later = op->domain[0] == '\0' &&
                 bel_onnx_rule_of("", op->name, w->source->opset) == NULL &&
                 bel_onnx_rule_of("", op->name, BEL_ONNX_OPSET_HIGHEST) != NULL;
    if (later) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s (%s): opset %d lacks it; hint: opset %d has it",
                       node->name, op->name, w->source->opset, BEL_ONNX_OPSET_HIGHEST);
    }
    return BEL_ERR(BEL_UNIMPLEMENTED,
                   "%s (%s): there is no form of it in ONNX, as it is made for training",
                   node->name, op->name);
}

static bel_status *write_node(writer *w, const bel_node *node)
{
    bool done;
    bel_onnx_writing writing = {.emitter = &w->emitter, .source = w->source, .node = node};
    for (int i = 0; i < node->input_count; i++)
        writing.inputs[i] = w->names[node->inputs[i]->id];
    for (int o = 0; o < node->output_count; o++) {
        writing.outputs[o] = w->names[node->outputs[o]->id];
        if (writing.outputs[o] != NULL) writing.output_count = o + 1;
    }
    BEL_TRY(bel_onnx_write_plain(&writing, &done));
    if (!done) BEL_TRY(bel_onnx_write_own(&writing, &w->functions, &done));
    return done ? NULL : write_refuse(w, node);
}

static bel_status *write_nodes(writer *w)
{
    const bel_graph *graph = w->source->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!w->needed[n]) continue;
        const bel_value *value = node->outputs[0];
        if (node->op == BEL_OP_INPUT) {
            w->graph.input[w->graph.n_input++] =
                bel_onnx_port_message(w->arena, w->names[value->id], &value->spec);
        } else if (node->op == BEL_OP_VARIABLE) {
            add_variable(w, node->leaf);
        } else if (node->op == BEL_OP_CONSTANT) {
            bel_onnx_emit_constant(&w->emitter, w->names[value->id], &node->constant);
        } else {
            BEL_TRY(write_node(w, node));
        }
    }
    return NULL;
}

static void write_results(writer *w)
{
    for (int r = 0; r < w->source->result_count; r++) {
        const bel_onnx_result *result = &w->source->results[r];
        const char *name = w->names[result->value->id];
        if (strcmp(name, result->name) != 0)
            bel_onnx_emit(&w->emitter, "Identity", &name, 1, &result->name, 1);
        w->graph.output[w->graph.n_output++] =
            bel_onnx_port_message(w->arena, result->name, &result->value->spec);
    }
}

// --- Models --------------------------------------------------------------------------------------

static void write_begin(writer *w)
{
    const bel_graph *graph = w->source->graph;
    size_t ports = graph->input_count + 1, results = (size_t)w->source->result_count + 1;
    bel_onnx_begin_model(&w->model, &w->graph, w->arena);
    w->graph.input = bel_arena_alloc(w->arena, ports * sizeof *w->graph.input);
    w->graph.output = bel_arena_alloc(w->arena, results * sizeof *w->graph.output);
    w->graph.initializer = bel_arena_alloc(w->arena, (graph->node_count + graph->table_count + 1) *
                                                         sizeof *w->graph.initializer);
}

static void write_finish(writer *w)
{
    const bel_onnx_source *source = w->source;
    Onnx__ModelProto *model = &w->model;
    w->graph.node = w->emitter.nodes;
    w->graph.n_node = w->emitter.node_count;
    model->functions = w->functions.items;
    model->n_functions = w->functions.count;
    model->opset_import = bel_arena_alloc(w->arena, 2 * sizeof *model->opset_import);
    model->opset_import[model->n_opset_import++] =
        bel_onnx_opset_message(w->arena, "", source->opset);
    if (w->functions.count > 0)
        model->opset_import[model->n_opset_import++] =
            bel_onnx_opset_message(w->arena, BEL_ONNX_OWN_DOMAIN, 1);
    model->metadata_props =
        bel_arena_alloc(w->arena, ((size_t)source->note_count + 1) * sizeof *model->metadata_props);
    for (int i = 0; i < source->note_count; i++) {
        model->metadata_props[model->n_metadata_props++] =
            bel_onnx_entry_message(w->arena, source->notes[i].key, source->notes[i].value);
    }
}

static bel_status *write_model(writer *w, bel_onnx_sink *sink, void *context)
{
    write_begin(w);
    find_needed(w);
    BEL_TRY(name_values(w));
    BEL_TRY(write_nodes(w));
    write_results(w);
    write_finish(w);
    return bel_onnx_pack(&w->model, w->arena, sink, context);
}

bel_status *bel_onnx_write(const bel_onnx_source *source, bel_onnx_sink *sink, void *context)
{
    BEL_TRY(bel_graph_check(source->graph));
    BEL_CHECK(source->graph->lookup_count == 0);
    writer w = {.source = source,
                .arena = bel_arena_create(),
                .needed = bel_xcalloc(source->graph->node_count + 1, sizeof(bool)),
                .read = bel_xcalloc(source->graph->value_count + 1, sizeof(bool)),
                .names = bel_xcalloc(source->graph->value_count + 1, sizeof(char *))};
    bel_onnx_emitter_init(&w.emitter, w.arena);
    bel_status *status = write_model(&w, sink, context);
    bel_onnx_emitter_deinit(&w.emitter);
    bel_onnx_functions_deinit(&w.functions);
    bel_arena_destroy(w.arena);
    bel_free(w.needed);
    bel_free(w.read);
    bel_free(w.names);
    return status;
}
