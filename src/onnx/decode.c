// Model decoder: names become numbers, and everything that the other files rely on is checked here.
// Initializers are numbered first, so value i is initializer i; then inputs, then outputs of nodes.
// A value must be made before its use, so the order of nodes is known to be topological, and no
// later code looks for cycles. An initializer that Belfry cannot read is an error only if something
// uses it. Texts and lists stay in protobuf-c's messages, which the model owns. Symbols with names
// count down from -1, dimensions without a name from -2^19. There are fewer than 2^19 of each, so
// the two ranges never meet.
#include "onnx/decode_inner.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"

enum { OPSET_NEWEST = 24, NAMELESS_SYMBOL = -(1 << 19) };

// --- Opsets --------------------------------------------------------------------------------------

static bel_status *check_opset(const bel_decoder *d)
{
    int64_t version = bel_decode_version(d, "");
    if (version >= 0 && version <= OPSET_NEWEST) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "the model is of opset %lld, expected 1 to %d",
                   (long long)version, OPSET_NEWEST);
}

// --- Inputs, outputs, initializers ---------------------------------------------------------------

// Returns the symbol of an open dimension: the same for the same name, a new one without a name.
static int64_t symbol_of(bel_decoder *d, const char *name)
{
    if (name == NULL || name[0] == '\0') return NAMELESS_SYMBOL - d->nameless++;
    bool added;
    return -1 - bel_names_add(d->symbols, name, &added);
}

// Decodes name, type and shape of an input or output; a model may omit the shape.
static bel_status *decode_port(bel_decoder *d, const Onnx__ValueInfoProto *from,
                               bel_onnx_port *out_port)
{
    bel_onnx_port port = {.name = bel_decode_text(from->name)};
    const Onnx__TypeProto__Tensor *type = from->type == NULL ? NULL : from->type->tensor_type;
    if (type == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "it is no tensor (a sequence, map or optional value)");
    }
    BEL_TRY(bel_onnx_dtype(type->elem_type, &port.dtype));
    if (type->shape != NULL) {
        if (type->shape->n_dim > BEL_MAX_RANK) {
            return BEL_ERR(BEL_UNIMPLEMENTED, "%zu dimensions are more than %d", type->shape->n_dim,
                           BEL_MAX_RANK);
        }
        port.ranked = true;
        port.shape.rank = (int32_t)type->shape->n_dim;
        for (int32_t i = 0; i < port.shape.rank; i++) {
            const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[i];
            bool open = !dim->has_dim_value || dim->dim_value < 0;
            port.shape.dims[i] = open ? symbol_of(d, dim->dim_param) : dim->dim_value;
        }
    }
    *out_port = port;
    return NULL;
}

// Initializers are the first values to be numbered: value i is initializer i.
static bel_status *decode_initializers(bel_decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    BEL_TRY(bel_decode_count(graph->n_initializer, "initializers"));
    if (d->raw != NULL && d->raw_count != graph->n_initializer) {
        return BEL_ERR(BEL_DATA_LOSS, "the graph is in several parts that do not fit together");
    }
    model->initializers =
        bel_arena_alloc(model->arena, graph->n_initializer * sizeof *model->initializers);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *from = graph->initializer[i];
        bel_onnx_initializer_entry *entry = &model->initializers[i];
        entry->name = bel_decode_text(from->name);
        bel_onnx_source source = bel_decode_source(d);
        if (d->raw != NULL) source.raw = d->raw[i];
        bel_status *status = bel_onnx_decode_tensor(from, &source, &entry->tensor);
        if (bel_status_code(status) == BEL_UNIMPLEMENTED) { // reported where something needs it
            entry->tensor = (bel_tensor){.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(0)};
            entry->refused = status;
            status = NULL;
        }
        model->initializer_count++;
        BEL_TRY_CTX(status, "initializer \"%s\"", entry->name);
        if (entry->name[0] == '\0' || !bel_decode_make(d, bel_decode_id(d, entry->name))) {
            return BEL_ERR(BEL_DATA_LOSS, "initializer \"%s\" has no name or stands twice",
                           entry->name);
        }
    }
    return NULL;
}

// Up to IR version 3 initializers are also listed among the inputs; skips them.
static bel_status *decode_inputs(bel_decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    BEL_TRY(bel_decode_count(graph->n_input, "inputs"));
    model->inputs = bel_arena_alloc(model->arena, graph->n_input * sizeof *model->inputs);
    model->input_ids = bel_arena_alloc(model->arena, graph->n_input * sizeof *model->input_ids);
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = bel_decode_text(graph->input[i]->name);
        int id = bel_decode_id(d, name);
        if (id < model->initializer_count) continue; // initializers came first
        bel_onnx_port *port = &model->inputs[model->input_count];
        BEL_TRY_CTX(decode_port(d, graph->input[i], port), "input \"%s\"", name);
        if (name[0] == '\0' || !bel_decode_make(d, id)) {
            return BEL_ERR(BEL_DATA_LOSS, "input \"%s\" has no name or stands twice", name);
        }
        model->input_ids[model->input_count++] = id;
    }
    if (bel_names_count(d->symbols) >= -NAMELESS_SYMBOL || d->nameless >= -NAMELESS_SYMBOL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "more than %d open dimensions", -NAMELESS_SYMBOL);
    }
    return NULL;
}

static bel_status *decode_outputs(bel_decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    BEL_TRY(bel_decode_count(graph->n_output, "outputs"));
    model->outputs = bel_arena_alloc(model->arena, graph->n_output * sizeof *model->outputs);
    model->output_ids = bel_arena_alloc(model->arena, graph->n_output * sizeof *model->output_ids);
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = bel_decode_text(graph->output[i]->name);
        BEL_TRY_CTX(decode_port(d, graph->output[i], &model->outputs[i]), "output \"%s\"", name);
        int id;
        if (!bel_decode_find(d, name, &id)) {
            return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" is made by no node", name);
        }
        BEL_TRY(bel_decode_usable(d, id));
        model->output_ids[i] = id;
        model->output_count++;
    }
    return NULL;
}

// --- Models --------------------------------------------------------------------------------------

// Sets the kind of each name.
static void list_names(bel_decoder *d)
{
    bel_onnx_model *model = d->model;
    model->name_count = bel_names_count(d->values);
    model->names = bel_arena_alloc(model->arena, (size_t)model->name_count * sizeof *model->names);
    for (int i = 0; i < model->name_count; i++) {
        bool inner;
        const char *plain = bel_decode_plain_name(bel_names_text(d->values, i), &inner);
        model->names[i] = (bel_onnx_name){plain, -1, -1, NULL, inner};
    }
    for (int i = 0; i < model->initializer_count; i++)
        model->names[i].initializer = i;
    for (int i = 0; i < model->input_count; i++)
        model->names[model->input_ids[i]].input = i;
    for (size_t i = 0; i < d->local_count; i++)
        model->names[d->locals[i].id].local = d->locals[i].tensor;
}

static bel_status *decode_model(bel_decoder *d)
{
    const Onnx__GraphProto *graph = d->message->graph;
    if (graph == NULL) return BEL_ERR(BEL_DATA_LOSS, "the model has no graph");
    BEL_TRY(check_opset(d));
    BEL_TRY(decode_initializers(d, graph));
    BEL_TRY(decode_inputs(d, graph));
    BEL_TRY(
        bel_decode_nodes(d, graph->node, graph->n_node, &d->model->nodes, &d->model->node_count));
    BEL_TRY(decode_outputs(d, graph));
    list_names(d);
    return NULL;
}

// Reads a model whose message is `bytes`, with the raw data removed from it. The model takes
// ownership of `files`, also after an error.
static bel_status *read_message(const void *bytes, size_t size, const bel_onnx_bytes *raw,
                                size_t raw_count, bel_onnx_files *files, bel_onnx_model **out_model)
{
    bel_budget budget = bel_budget_of(size);
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    Onnx__ModelProto *message = onnx__model_proto__unpack(&allocator, size, bytes);
    if (message == NULL) bel_onnx_files_close(files);
    if (message == NULL && budget.is_spent) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "this is no ONNX model: its parts need more memory than %zu bytes can stand "
                       "for",
                       size);
    }
    if (message == NULL) return BEL_ERR(BEL_DATA_LOSS, "this is no ONNX model, or it is cut off");
    bel_onnx_model *model = bel_xcalloc(1, sizeof *model);
    model->arena = bel_arena_create();
    model->message = message;
    model->files = files;
    bel_decoder d = {.message = message,
                     .model = model,
                     .budget = &budget,
                     .raw = raw,
                     .raw_count = raw_count,
                     .values = bel_names_create(),
                     .functions = bel_names_create(),
                     .labels = bel_names_create(),
                     .symbols = bel_names_create()};
    bel_status *status = decode_model(&d);
    bel_names_destroy(d.values);
    bel_names_destroy(d.symbols);
    bel_names_destroy(d.functions);
    bel_names_destroy(d.labels);
    bel_free(d.states);
    bel_free(d.locals);
    if (status != NULL) {
        bel_onnx_destroy(model);
        return status;
    }
    *out_model = model;
    return NULL;
}

bel_status *bel_onnx_read(const void *bytes, size_t size, bel_onnx_model **out_model)
{
    return read_message(bytes, size, NULL, 0, NULL, out_model);
}

bel_status *bel_onnx_read_file(const char *path, bel_onnx_model **out_model)
{
    bel_onnx_files *files;
    BEL_TRY(bel_onnx_files_open(path, &files));
    bel_onnx_bytes all = bel_onnx_files_model(files), *raw = NULL;
    bel_str message = {.text = NULL};
    size_t raw_count = 0;
    bool spared = bel_onnx_spare(all, &message, &raw, &raw_count);
    bel_status *status =
        spared ? read_message(message.text, message.length, raw, raw_count, files, out_model)
               : read_message(all.data, all.size, NULL, 0, files, out_model);
    bel_str_deinit(&message);
    bel_free(raw);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", path);
}

void bel_onnx_destroy(bel_onnx_model *model)
{
    if (model == NULL) return;
    ProtobufCAllocator allocator = {NULL, bel_budget_give, NULL};
    for (size_t i = 0; i < model->subgraph_count; i++)
        bel_status_destroy(model->subgraphs[i]->refused);
    for (int i = 0; i < model->initializer_count; i++)
        bel_status_destroy(model->initializers[i].refused);
    for (size_t i = 0; i < model->part_count; i++)
        onnx__graph_proto__free_unpacked(model->parts[i], &allocator);
    bel_free(model->subgraphs);
    bel_free(model->parts);
    onnx__model_proto__free_unpacked(model->message, &allocator);
    bel_onnx_files_close(model->files);
    bel_arena_destroy(model->arena);
    bel_free(model);
}

const char *bel_onnx_producer(const bel_onnx_model *model)
{
    return bel_decode_text(((const Onnx__ModelProto *)model->message)->producer_name);
}
