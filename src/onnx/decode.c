// Models: names become numbers, and everything that the rest of the room relies on is checked here.
// Initializers are numbered first, so value i is initializer i; then inputs, then what nodes make.
// A value must be made before it is used, so the order of nodes is known to be topological and no
// later code looks for circles. A subgraph is read where its node stands, down to MOST_DEPTH; a
// name of its own is "3\1name" among all names, 3 being the number of the subgraph, and is looked
// for from the inside out. Texts and lists stay in protobuf-c's messages, which the model owns.
// Named symbols count down from -1, dimensions without a name from -2^19, and so many of either at
// most, so the two never meet.
#include "onnx/decode.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/number.h"
#include "base/str.h"
#include "onnx/names.h"

enum { OPSET_NEWEST = 21, NAMELESS_SYMBOL = -(1 << 19), MOST_DEPTH = 8, SCOPE_MARK = '\1' };

// The subgraph that is being read, and those around it.
typedef struct scope {
    int number, depth;
    const struct scope *outer; // NULL: the model's graph
} scope;

// Elements of an initializer of a subgraph, by the number of its name.
typedef struct local_tensor {
    int id;
    const bel_tensor *tensor;
} local_tensor;

typedef struct decoder {
    const Onnx__ModelProto *message;
    bel_onnx_model *model;
    bel_names *values, *symbols; // values by name; symbols of open dimensions
    bool *made;                  // by value id
    size_t made_capacity;
    int64_t nameless; // open dimensions without a name
    bel_budget *budget;
    const bel_onnx_bytes *raw; // of initializers, left out of the message; NULL: none is
    size_t raw_count;
    const scope *scope; // NULL: the model's graph
    int scope_count;
    local_tensor *locals;
    size_t local_count, local_capacity;
} decoder;

// --- Small things --------------------------------------------------------------------------------

static const char *text_of(const char *text)
{
    return text == NULL ? "" : text;
}

const char *bel_onnx_node_label(const bel_onnx_node *node, char label[BEL_ONNX_LABEL])
{
    const char *dot = node->domain[0] == '\0' ? "" : ".";
    bel_snprintf(label, BEL_ONNX_LABEL, "node %d \"%.48s\" (%.40s%s%.40s)", node->index, node->name,
                 node->domain, dot, node->op);
    return label;
}

static const char *scoped(decoder *d, const scope *in, const char *text)
{
    if (in == NULL) return text;
    char *name = bel_strf("%d%c%s", in->number, SCOPE_MARK, text);
    const char *kept = bel_arena_strdup(d->model->arena, name);
    bel_free(name);
    return kept;
}

// The number of a value that was made before, in this graph or one around it; -1: there is none.
static int find_value(decoder *d, const char *text)
{
    for (const scope *in = d->scope;; in = in->outer) {
        int id = bel_names_find(d->values, scoped(d, in, text));
        if (id >= 0 && d->made[id]) return id;
        if (in == NULL) return -1;
    }
}

// The number of a value's name in this graph.
static int value_id(decoder *d, const char *text)
{
    bool added;
    int id = bel_names_add(d->values, scoped(d, d->scope, text), &added);
    if (added) {
        d->made = bel_xgrow(d->made, &d->made_capacity, (size_t)id + 1, sizeof *d->made);
        d->made[id] = false;
    }
    return id;
}

// Marks a value as made; false when it was before.
static bool make(decoder *d, int id)
{
    bool first = !d->made[id];
    d->made[id] = true;
    return first;
}

static bel_status *check_count(size_t count, const char *what)
{
    if (count <= INT_MAX / 2) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "%zu %s are too many", count, what);
}

// --- Opsets --------------------------------------------------------------------------------------

static const char *plain_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

// The version of a domain; 0: the model does not import it.
static int64_t version_of(const decoder *d, const char *domain)
{
    for (size_t i = 0; i < d->message->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *opset = d->message->opset_import[i];
        if (strcmp(plain_domain(opset->domain), domain) == 0) return opset->version;
    }
    return d->message->n_opset_import == 0 && domain[0] == '\0' ? 1 : 0;
}

static bel_status *check_opset(const decoder *d)
{
    int64_t version = version_of(d, "");
    if (version >= 0 && version <= OPSET_NEWEST) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "the model is of opset %lld, expected 1 to %d",
                   (long long)version, OPSET_NEWEST);
}

// --- Inputs, outputs, initializers ---------------------------------------------------------------

// The symbol of an open dimension: the same for the same name, one of its own without a name.
static int64_t symbol_of(decoder *d, const char *name)
{
    if (name == NULL || name[0] == '\0') return NAMELESS_SYMBOL - d->nameless++;
    bool added;
    return -1 - bel_names_add(d->symbols, name, &added);
}

// Name, type and shape of an input or output; a model may leave the shape out.
static bel_status *decode_port(decoder *d, const Onnx__ValueInfoProto *from,
                               bel_onnx_port *out_port)
{
    bel_onnx_port port = {.name = text_of(from->name)};
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

static bel_onnx_source source_of(const decoder *d)
{
    return (bel_onnx_source){.arena = d->model->arena, .files = d->model->files};
}

// The first values to be numbered: value i is initializer i.
static bel_status *decode_initializers(decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    if (graph->n_sparse_initializer > 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "sparse initializers are not read");
    }
    BEL_TRY(check_count(graph->n_initializer, "initializers"));
    if (d->raw != NULL && d->raw_count != graph->n_initializer) {
        return BEL_ERR(BEL_DATA_LOSS, "the graph stands in several parts that do not fit together");
    }
    model->initializers =
        bel_arena_alloc(model->arena, graph->n_initializer * sizeof *model->initializers);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *from = graph->initializer[i];
        bel_onnx_initializer_entry *entry = &model->initializers[i];
        entry->name = text_of(from->name);
        bel_onnx_source source = source_of(d);
        if (d->raw != NULL) source.raw = d->raw[i];
        BEL_TRY_CTX(bel_onnx_decode_tensor(from, &source, &entry->tensor), "initializer \"%s\"",
                    entry->name);
        if (entry->name[0] == '\0' || !make(d, value_id(d, entry->name))) {
            return BEL_ERR(BEL_DATA_LOSS, "initializer \"%s\" has no name or stands twice",
                           entry->name);
        }
        model->initializer_count++;
    }
    return NULL;
}

// Up to IR version 3 initializers are listed among the inputs, too; they are passed over here.
static bel_status *decode_inputs(decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    BEL_TRY(check_count(graph->n_input, "inputs"));
    model->inputs = bel_arena_alloc(model->arena, graph->n_input * sizeof *model->inputs);
    model->input_ids = bel_arena_alloc(model->arena, graph->n_input * sizeof *model->input_ids);
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = text_of(graph->input[i]->name);
        int id = value_id(d, name);
        if (id < model->initializer_count) continue; // initializers came first
        bel_onnx_port *port = &model->inputs[model->input_count];
        BEL_TRY_CTX(decode_port(d, graph->input[i], port), "input \"%s\"", name);
        if (name[0] == '\0' || !make(d, id)) {
            return BEL_ERR(BEL_DATA_LOSS, "input \"%s\" has no name or stands twice", name);
        }
        model->input_ids[model->input_count++] = id;
    }
    if (bel_names_count(d->symbols) >= -NAMELESS_SYMBOL || d->nameless >= -NAMELESS_SYMBOL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "more than %d open dimensions", -NAMELESS_SYMBOL);
    }
    return NULL;
}

static bel_status *decode_outputs(decoder *d, const Onnx__GraphProto *graph)
{
    bel_onnx_model *model = d->model;
    BEL_TRY(check_count(graph->n_output, "outputs"));
    model->outputs = bel_arena_alloc(model->arena, graph->n_output * sizeof *model->outputs);
    model->output_ids = bel_arena_alloc(model->arena, graph->n_output * sizeof *model->output_ids);
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = text_of(graph->output[i]->name);
        BEL_TRY_CTX(decode_port(d, graph->output[i], &model->outputs[i]), "output \"%s\"", name);
        int id = bel_names_find(d->values, name);
        if (id < 0 || !d->made[id]) {
            return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" is made by no node", name);
        }
        model->output_ids[i] = id;
        model->output_count++;
    }
    return NULL;
}

// --- Nodes ---------------------------------------------------------------------------------------

static bel_status *decode_subgraph(decoder *d, ProtobufCBinaryData bytes,
                                   const bel_onnx_subgraph **out_graph);

static const char *attr_type_name(int32_t type)
{
    switch (type) {
    case 10: return "a list of subgraphs";
    case 9: return "a list of tensors";
    case 11:
    case 12: return "a sparse tensor";
    default: return "an unknown type";
    }
}

static const char *decode_text(decoder *d, ProtobufCBinaryData from)
{
    char *text = bel_arena_alloc(d->model->arena, from.len + 1);
    if (from.len > 0) memcpy(text, from.data, from.len);
    return text;
}

static bel_status *decode_attr(decoder *d, const Onnx__AttributeProto *from, bel_onnx_attr *out)
{
    bel_onnx_source source;
    *out = (bel_onnx_attr){.name = text_of(from->name), .kind = (bel_onnx_kind)from->type};
    switch (from->type) {
    case BEL_ONNX_FLOAT: out->number = from->f; return NULL;
    case BEL_ONNX_INT: out->integer = from->i; return NULL;
    case BEL_ONNX_STRING: out->text = decode_text(d, from->s); return NULL;
    case BEL_ONNX_STRINGS:
        out->texts = bel_arena_alloc(d->model->arena, from->n_strings * sizeof *out->texts);
        for (size_t i = 0; i < from->n_strings; i++)
            out->texts[i] = decode_text(d, from->strings[i]);
        out->list_count = from->n_strings;
        return NULL;
    case BEL_ONNX_TENSOR:
        if (from->t == NULL) return BEL_ERR(BEL_DATA_LOSS, "there is no tensor in it");
        source = source_of(d);
        return bel_onnx_decode_tensor(from->t, &source, &out->tensor);
    case BEL_ONNX_GRAPH: return decode_subgraph(d, from->g, &out->graph);
    case BEL_ONNX_FLOATS:
        out->numbers = from->floats;
        out->list_count = from->n_floats;
        return NULL;
    case BEL_ONNX_INTS:
        out->integers = from->ints;
        out->list_count = from->n_ints;
        return NULL;
    default:
        return BEL_ERR(
            BEL_UNIMPLEMENTED,
            "%s; Belfry reads numbers, texts, tensors, subgraphs and lists of numbers or texts",
            attr_type_name(from->type));
    }
}

static bel_status *decode_attrs(decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    BEL_TRY(check_count(from->n_attribute, "attributes"));
    bel_onnx_attr *attrs = bel_arena_alloc(d->model->arena, from->n_attribute * sizeof *attrs);
    for (size_t i = 0; i < from->n_attribute; i++) {
        BEL_TRY_CTX(decode_attr(d, from->attribute[i], &attrs[i]), "attribute \"%s\"",
                    text_of(from->attribute[i]->name));
    }
    node->attrs = attrs;
    node->attr_count = (int)from->n_attribute;
    return NULL;
}

// Inputs must be made by what came before, outputs by nobody; "" is one that is left out (-1).
static bel_status *decode_node(decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    int64_t version = version_of(d, node->domain);
    if (version < 1 || version > INT_MAX) {
        return BEL_ERR(BEL_DATA_LOSS, "the model imports no opset of its domain \"%s\"",
                       node->domain);
    }
    node->version = (int)version;
    BEL_TRY(check_count(from->n_input, "inputs"));
    BEL_TRY(check_count(from->n_output, "outputs"));
    int *inputs = bel_arena_alloc(d->model->arena, from->n_input * sizeof *inputs);
    int *outputs = bel_arena_alloc(d->model->arena, from->n_output * sizeof *outputs);
    for (size_t i = 0; i < from->n_input; i++) {
        bool left_out = from->input[i][0] == '\0';
        inputs[i] = left_out ? -1 : find_value(d, from->input[i]);
        if (!left_out && inputs[i] < 0) {
            return BEL_ERR(BEL_DATA_LOSS, "its input \"%s\" is made by no node before it",
                           from->input[i]);
        }
    }
    BEL_TRY(decode_attrs(d, from, node)); // subgraphs do not see the outputs
    for (size_t i = 0; i < from->n_output; i++) {
        bool left_out = from->output[i][0] == '\0';
        outputs[i] = left_out ? -1 : value_id(d, from->output[i]);
        if (!left_out && !make(d, outputs[i])) {
            return BEL_ERR(BEL_DATA_LOSS, "its output \"%s\" is made a second time",
                           from->output[i]);
        }
    }
    node->inputs = inputs;
    node->outputs = outputs;
    node->input_count = (int)from->n_input;
    node->output_count = (int)from->n_output;
    return NULL;
}

static bel_status *decode_nodes(decoder *d, const Onnx__GraphProto *graph,
                                bel_onnx_node **out_nodes)
{
    BEL_TRY(check_count(graph->n_node, "nodes"));
    bel_onnx_node *nodes = bel_arena_alloc(d->model->arena, graph->n_node * sizeof *nodes);
    *out_nodes = nodes;
    for (int i = 0; i < (int)graph->n_node; i++) {
        const Onnx__NodeProto *from = graph->node[i];
        bel_onnx_node *node = &nodes[i];
        *node = (bel_onnx_node){.name = text_of(from->name),
                                .op = text_of(from->op_type),
                                .domain = plain_domain(from->domain),
                                .index = i};
        char label[BEL_ONNX_LABEL];
        BEL_TRY_CTX(decode_node(d, from, node), "%s", bel_onnx_node_label(node, label));
    }
    return NULL;
}

// --- Subgraphs -----------------------------------------------------------------------------------

static bel_status *decode_locals(decoder *d, const Onnx__GraphProto *graph)
{
    if (graph->n_sparse_initializer > 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "sparse initializers are not read");
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = text_of(graph->initializer[i]->name);
        bel_tensor *tensor = bel_arena_alloc(d->model->arena, sizeof *tensor);
        bel_onnx_source source = source_of(d);
        BEL_TRY_CTX(bel_onnx_decode_tensor(graph->initializer[i], &source, tensor),
                    "initializer \"%s\"", name);
        int id = value_id(d, name);
        if (name[0] == '\0' || !make(d, id)) {
            return BEL_ERR(BEL_DATA_LOSS, "initializer \"%s\" has no name or stands twice", name);
        }
        d->locals = bel_xgrow(d->locals, &d->local_capacity, d->local_count + 1, sizeof *d->locals);
        d->locals[d->local_count++] = (local_tensor){id, tensor};
    }
    return NULL;
}

// Outputs may be values of graphs around it.
static bel_status *read_subgraph(decoder *d, const Onnx__GraphProto *graph, bel_onnx_subgraph *out)
{
    BEL_TRY(check_count(graph->n_input, "inputs"));
    BEL_TRY(check_count(graph->n_output, "outputs"));
    BEL_TRY(decode_locals(d, graph));
    for (size_t i = 0; i < graph->n_input; i++)
        make(d, value_id(d, text_of(graph->input[i]->name)));
    BEL_TRY(decode_nodes(d, graph, &out->nodes));
    int *ids = bel_arena_alloc(d->model->arena, graph->n_output * sizeof *ids);
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = text_of(graph->output[i]->name);
        ids[i] = find_value(d, name);
        if (ids[i] < 0) return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" is made by no node", name);
    }
    out->output_ids = ids;
    out->node_count = (int)graph->n_node;
    out->input_count = (int)graph->n_input;
    out->output_count = (int)graph->n_output;
    return NULL;
}

// Its message counts for the budget of the whole file.
static bel_status *unpack_subgraph(decoder *d, ProtobufCBinaryData bytes, bel_onnx_subgraph *out)
{
    bel_onnx_model *model = d->model;
    if (d->scope != NULL && d->scope->depth >= MOST_DEPTH) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "subgraphs inside each other, more than %d", MOST_DEPTH);
    }
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, d->budget};
    Onnx__GraphProto *graph = onnx__graph_proto__unpack(&allocator, bytes.len, bytes.data);
    if (graph == NULL) return BEL_ERR(BEL_DATA_LOSS, "this is no subgraph, or it is too large");
    model->parts =
        bel_xgrow(model->parts, &model->part_capacity, model->part_count + 1, sizeof *model->parts);
    model->parts[model->part_count++] = graph;
    scope inside = {.number = ++d->scope_count,
                    .depth = d->scope == NULL ? 1 : d->scope->depth + 1,
                    .outer = d->scope};
    d->scope = &inside;
    bel_status *status = read_subgraph(d, graph, out);
    d->scope = inside.outer;
    return status;
}

static bel_status *decode_subgraph(decoder *d, ProtobufCBinaryData bytes,
                                   const bel_onnx_subgraph **out_graph)
{
    bel_onnx_model *model = d->model;
    bel_onnx_subgraph *graph = bel_arena_alloc(model->arena, sizeof *graph);
    model->subgraphs = bel_xgrow(model->subgraphs, &model->subgraph_capacity,
                                 model->subgraph_count + 1, sizeof *model->subgraphs);
    model->subgraphs[model->subgraph_count++] = graph;
    graph->refused = unpack_subgraph(d, bytes, graph);
    *out_graph = graph;
    return NULL;
}

// --- Models --------------------------------------------------------------------------------------

static const char *plain_name(const char *text)
{
    const char *mark = strrchr(text, SCOPE_MARK);
    return mark == NULL ? text : mark + 1;
}

// Tells what each name is.
static void list_names(decoder *d)
{
    bel_onnx_model *model = d->model;
    model->name_count = bel_names_count(d->values);
    model->names = bel_arena_alloc(model->arena, (size_t)model->name_count * sizeof *model->names);
    for (int i = 0; i < model->name_count; i++) {
        const char *text = bel_names_text(d->values, i), *plain = plain_name(text);
        model->names[i] = (bel_onnx_name){plain, -1, -1, NULL, plain != text};
    }
    for (int i = 0; i < model->initializer_count; i++)
        model->names[i].initializer = i;
    for (int i = 0; i < model->input_count; i++)
        model->names[model->input_ids[i]].input = i;
    for (size_t i = 0; i < d->local_count; i++)
        model->names[d->locals[i].id].local = d->locals[i].tensor;
}

static bel_status *decode_model(decoder *d)
{
    const Onnx__GraphProto *graph = d->message->graph;
    if (graph == NULL) return BEL_ERR(BEL_DATA_LOSS, "the model has no graph");
    BEL_TRY(check_opset(d));
    BEL_TRY(decode_initializers(d, graph));
    BEL_TRY(decode_inputs(d, graph));
    BEL_TRY(decode_nodes(d, graph, &d->model->nodes));
    d->model->node_count = (int)graph->n_node;
    BEL_TRY(decode_outputs(d, graph));
    list_names(d);
    return NULL;
}

// A model whose message is `bytes`, with what was left out of it. `files` becomes the model's, also
// after an error.
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
    decoder d = {.message = message,
                 .model = model,
                 .budget = &budget,
                 .raw = raw,
                 .raw_count = raw_count,
                 .values = bel_names_create(),
                 .symbols = bel_names_create()};
    bel_status *status = decode_model(&d);
    bel_names_destroy(d.values);
    bel_names_destroy(d.symbols);
    bel_free(d.made);
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
    return text_of(((const Onnx__ModelProto *)model->message)->producer_name);
}
