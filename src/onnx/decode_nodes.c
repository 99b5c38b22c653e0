// Decoder of nodes and their contents: attributes, subgraphs, and bodies of the model's functions.
// A call of such a function is replaced by its body, whose nodes see only its parameters; an
// attribute of the body may refer to one of the call. Nested function calls could expand a small
// file enormously, so their nodes are counted.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "onnx/build.h"
#include "onnx/decode_inner.h"

enum { MOST_INLINED = 1 << 18 }; // all nodes of functions' bodies together

typedef struct node_list {
    bel_onnx_node *items;
    size_t count, capacity;
} node_list;

bel_onnx_source bel_decode_source(const bel_decoder *d)
{
    return (bel_onnx_source){.arena = d->model->arena, .files = d->model->files};
}

// --- Attributes ----------------------------------------------------------------------------------

static bel_status *decode_subgraph(bel_decoder *d, ProtobufCBinaryData bytes,
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

static const char *decode_text(bel_decoder *d, ProtobufCBinaryData from)
{
    char *text = bel_arena_alloc(d->model->arena, from.len + 1);
    if (from.len > 0) memcpy(text, from.data, from.len);
    return text;
}

static bel_status *decode_attr(bel_decoder *d, const Onnx__AttributeProto *from, bel_onnx_attr *out)
{
    bel_onnx_source source;
    *out = (bel_onnx_attr){.name = bel_decode_text(from->name), .kind = (bel_onnx_kind)from->type};
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
        source = bel_decode_source(d);
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

// Returns the call whose body is being decoded, or NULL.
static const bel_decode_call *nearest_call(const bel_decoder *d)
{
    const bel_decode_scope *in = d->scope;
    while (in != NULL && in->call == NULL)
        in = in->outer;
    return in == NULL ? NULL : in->call;
}

// Resolves an attribute that a body takes from the call: the call's value, or the function's
// default. *out_given is false if neither exists.
static bel_status *decode_reference(bel_decoder *d, const Onnx__AttributeProto *from,
                                    bel_onnx_attr *out, bool *out_given)
{
    const bel_decode_call *call = nearest_call(d);
    *out_given = true;
    for (int i = 0; call != NULL && i < call->attr_count; i++) {
        if (strcmp(call->attrs[i].name, from->ref_attr_name) != 0) continue;
        *out = call->attrs[i];
        out->name = bel_decode_text(from->name);
        return NULL;
    }
    for (size_t i = 0; call != NULL && i < call->function->n_attribute_proto; i++) {
        const Onnx__AttributeProto *other = call->function->attribute_proto[i];
        if (strcmp(bel_decode_text(other->name), from->ref_attr_name) != 0) continue;
        BEL_TRY(decode_attr(d, other, out));
        out->name = bel_decode_text(from->name);
        return NULL;
    }
    *out_given = false;
    return NULL;
}

static bel_status *decode_attrs(bel_decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    BEL_TRY(bel_decode_count(from->n_attribute, "attributes"));
    bel_onnx_attr *attrs = bel_arena_alloc(d->model->arena, from->n_attribute * sizeof *attrs);
    int count = 0;
    for (size_t i = 0; i < from->n_attribute; i++) {
        const Onnx__AttributeProto *attr = from->attribute[i];
        bool refers = bel_decode_text(attr->ref_attr_name)[0] != '\0', given = true;
        bel_status *status = refers ? decode_reference(d, attr, &attrs[count], &given)
                                    : decode_attr(d, attr, &attrs[count]);
        BEL_TRY_CTX(status, "attribute \"%s\"", bel_decode_text(attr->name));
        count += given;
    }
    node->attrs = attrs;
    node->attr_count = count;
    return NULL;
}

// --- Nodes ---------------------------------------------------------------------------------------

// Inputs must be made earlier; "" is an omitted input (-1).
static bel_status *decode_inputs(bel_decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    BEL_TRY(bel_decode_count(from->n_input, "inputs"));
    int *inputs = bel_arena_alloc(d->model->arena, from->n_input * sizeof *inputs);
    for (size_t i = 0; i < from->n_input; i++) {
        inputs[i] = -1;
        if (from->input[i][0] == '\0') continue;
        if (!bel_decode_find(d, from->input[i], &inputs[i])) {
            return BEL_ERR(
                BEL_DATA_LOSS, "its input \"%s\" is made by no node before it%s", from->input[i],
                d->message->graph->n_sparse_initializer > 0 ? "; sparse initializers are not read"
                                                            : "");
        }
        if (inputs[i] >= 0) BEL_TRY(bel_decode_usable(d, inputs[i]));
    }
    node->inputs = inputs;
    node->input_count = (int)from->n_input;
    return NULL;
}

// Checks that each value is made once.
static bel_status *decode_outputs(bel_decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    BEL_TRY(bel_decode_count(from->n_output, "outputs"));
    int *outputs = bel_arena_alloc(d->model->arena, from->n_output * sizeof *outputs);
    for (size_t i = 0; i < from->n_output; i++) {
        outputs[i] = from->output[i][0] == '\0' ? -1 : bel_decode_id(d, from->output[i]);
        if (outputs[i] >= 0 && !bel_decode_make(d, outputs[i])) {
            return BEL_ERR(BEL_DATA_LOSS, "its output \"%s\" is made a second time",
                           from->output[i]);
        }
    }
    node->outputs = outputs;
    node->output_count = (int)from->n_output;
    return NULL;
}

static bel_status *decode_node(bel_decoder *d, const Onnx__NodeProto *from, bel_onnx_node *node)
{
    int64_t version = bel_decode_version(d, node->domain);
    if (version < 1 || version > INT_MAX) {
        return BEL_ERR(BEL_DATA_LOSS, "the model imports no opset of its domain \"%s\"",
                       node->domain);
    }
    node->version = (int)version;
    BEL_TRY(decode_inputs(d, from, node));
    BEL_TRY(decode_attrs(d, from, node)); // subgraphs do not see the outputs
    return decode_outputs(d, from, node);
}

// --- Functions -----------------------------------------------------------------------------------

static char *function_key(const char *domain, const char *name, const char *overload)
{
    return bel_strf("%s\n%s\n%s", bel_decode_domain(domain), bel_decode_text(name),
                    bel_decode_text(overload));
}

static void index_functions(bel_decoder *d)
{
    for (size_t i = 0; i < d->message->n_functions; i++) {
        const Onnx__FunctionProto *f = d->message->functions[i];
        char *key = function_key(f->domain, f->name, f->overload);
        bool added;
        (void)bel_names_add(d->functions, bel_arena_strdup(d->model->arena, key), &added);
        if (!added) { // numbers must equal message indices; the first of a name counts
            char *other = bel_strf("\n%zu", i);
            (void)bel_names_add(d->functions, bel_arena_strdup(d->model->arena, other), &added);
            bel_free(other);
        }
        bel_free(key);
    }
}

// Returns the function that a node calls, or NULL. Belfry's functions are operations here.
static const Onnx__FunctionProto *function_of(bel_decoder *d, const Onnx__NodeProto *from)
{
    if (d->message->n_functions == 0) return NULL;
    const char *domain = bel_decode_domain(from->domain);
    if (strcmp(domain, BEL_ONNX_OWN_DOMAIN) == 0) return NULL;
    if (bel_names_count(d->functions) == 0) index_functions(d);
    char *key = function_key(domain, from->op_type, from->overload);
    int number = bel_names_find(d->functions, key);
    bel_free(key);
    return number < 0 ? NULL : d->message->functions[number];
}

// Returns the call's label in names of values, unique per call.
static const char *label_of(bel_decoder *d, const bel_onnx_node *call, int number)
{
    bool added = false;
    const char *label = call->name;
    if (label[0] != '\0') (void)bel_names_add(d->labels, label, &added);
    if (added) return label;
    char *own = bel_strf("%s_%d", label[0] != '\0' ? label : call->op, number);
    label = bel_arena_strdup(d->model->arena, own);
    bel_free(own);
    return label;
}

static bel_status *decode_into(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                               const bel_onnx_node *call, node_list *list);

static void add_identity(bel_decoder *d, const bel_onnx_node *call, int from, int to,
                         node_list *list)
{
    int *ids = bel_arena_alloc(d->model->arena, 2 * sizeof *ids);
    ids[0] = from;
    ids[1] = to;
    list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (bel_onnx_node){.name = call->name,
                                                 .op = "Identity",
                                                 .domain = "",
                                                 .index = call->index,
                                                 .version = 1,
                                                 .inputs = ids,
                                                 .outputs = ids + 1,
                                                 .input_count = 1,
                                                 .output_count = 1};
}

// The outputs of the body are the call's. An output may also be an unchanged parameter.
static bel_status *bind_parameters(bel_decoder *d, const Onnx__FunctionProto *f,
                                   const bel_onnx_node *call, const int *outputs, node_list *list)
{
    if ((size_t)call->input_count > f->n_input || (size_t)call->output_count > f->n_output) {
        return BEL_ERR(BEL_DATA_LOSS, "its function has %zu inputs and %zu outputs", f->n_input,
                       f->n_output);
    }
    for (size_t i = 0; i < f->n_input; i++)
        bel_decode_alias(d, f->input[i], i < (size_t)call->input_count ? call->inputs[i] : -1,
                         true);
    for (int i = 0; i < call->output_count; i++) {
        int from;
        if (outputs[i] < 0) continue;
        if (bel_decode_find(d, f->output[i], &from)) {
            if (from < 0 || !bel_decode_make(d, outputs[i]))
                return BEL_ERR(BEL_DATA_LOSS, "its output %d is a parameter without value", i);
            add_identity(d, call, from, outputs[i], list);
        } else {
            bel_decode_alias(d, f->output[i], outputs[i], false);
        }
    }
    return NULL;
}

static bel_status *inline_body(bel_decoder *d, const Onnx__FunctionProto *f,
                               const bel_onnx_node *call, const int *outputs, node_list *list)
{
    BEL_TRY(bind_parameters(d, f, call, outputs, list));
    BEL_TRY(decode_into(d, f->node, f->n_node, call, list));
    for (int i = 0; i < call->output_count; i++) {
        if (outputs[i] < 0 || d->states[outputs[i]].made) continue;
        return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" of its function is made by no node",
                       f->output[i]);
    }
    return NULL;
}

static bel_status *inline_call(bel_decoder *d, const Onnx__FunctionProto *f,
                               const Onnx__NodeProto *from, bel_onnx_node *node, node_list *list)
{
    int depth = d->scope == NULL ? 1 : d->scope->depth + 1;
    if (depth > BEL_DECODE_MOST_DEPTH) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "functions inside each other, more than %d",
                       BEL_DECODE_MOST_DEPTH);
    }
    BEL_TRY(decode_inputs(d, from, node));
    BEL_TRY(decode_attrs(d, from, node));
    BEL_TRY(bel_decode_count(from->n_output, "outputs"));
    int *outputs = bel_arena_alloc(d->model->arena, from->n_output * sizeof *outputs);
    for (size_t i = 0; i < from->n_output; i++) {
        outputs[i] = from->output[i][0] == '\0' ? -1 : bel_decode_id(d, from->output[i]);
        if (outputs[i] < 0 || !d->states[outputs[i]].made) continue;
        return BEL_ERR(BEL_DATA_LOSS, "its output \"%s\" is made a second time", from->output[i]);
    }
    node->output_count = (int)from->n_output;
    const bel_decode_call call = {f, node->attrs, node->attr_count};
    bel_decode_scope inside = {
        .number = ++d->scope_count, .depth = depth, .outer = d->scope, .call = &call};
    inside.label = label_of(d, node, inside.number);
    d->scope = &inside;
    bel_status *status = inline_body(d, f, node, outputs, list);
    d->scope = inside.outer;
    return status;
}

// --- Lists of nodes ------------------------------------------------------------------------------

// Nodes of a body have the call's place in the file.
static bel_status *decode_one(bel_decoder *d, const Onnx__NodeProto *from, int index,
                              const bel_onnx_node *call, node_list *list)
{
    bel_onnx_node node = {.name = bel_decode_text(from->name),
                          .op = bel_decode_text(from->op_type),
                          .domain = bel_decode_domain(from->domain),
                          .index = call != NULL ? call->index : index};
    const Onnx__FunctionProto *f = function_of(d, from);
    char label[BEL_ONNX_LABEL];
    if (call != NULL && ++d->inlined > MOST_INLINED) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "functions make more than %d nodes", MOST_INLINED);
    }
    bel_status *status =
        f != NULL ? inline_call(d, f, from, &node, list) : decode_node(d, from, &node);
    BEL_TRY_CTX(status, "%s", bel_onnx_node_label(&node, label));
    if (f != NULL) return NULL;
    list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = node;
    return NULL;
}

// `call`: the call whose body this is; NULL: not a body.
static bel_status *decode_into(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                               const bel_onnx_node *call, node_list *list)
{
    int *order = NULL;
    BEL_TRY(bel_decode_count(count, "nodes"));
    BEL_TRY(bel_decode_order(d, nodes, count, &order));
    bel_status *status = NULL;
    for (int i = 0; i < (int)count && status == NULL; i++) {
        int index = order == NULL ? i : order[i];
        status = decode_one(d, nodes[index], index, call, list);
    }
    bel_free(order);
    return status;
}

bel_status *bel_decode_nodes(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             bel_onnx_node **out_nodes, int *out_count)
{
    node_list list = {.count = 0};
    bel_status *status = decode_into(d, nodes, count, NULL, &list);
    if (status == NULL) status = bel_decode_count(list.count, "nodes");
    if (status == NULL) {
        *out_nodes = bel_arena_alloc(d->model->arena, (list.count + 1) * sizeof **out_nodes);
        if (list.count > 0) memcpy(*out_nodes, list.items, list.count * sizeof *list.items);
        *out_count = (int)list.count;
    }
    bel_free(list.items);
    return status;
}

// --- Subgraphs -----------------------------------------------------------------------------------

static bel_status *decode_locals(bel_decoder *d, const Onnx__GraphProto *graph)
{
    if (graph->n_sparse_initializer > 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "sparse initializers are not read");
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = bel_decode_text(graph->initializer[i]->name);
        bel_tensor *tensor = bel_arena_alloc(d->model->arena, sizeof *tensor);
        bel_onnx_source source = bel_decode_source(d);
        BEL_TRY_CTX(bel_onnx_decode_tensor(graph->initializer[i], &source, tensor),
                    "initializer \"%s\"", name);
        int id = bel_decode_id(d, name);
        if (name[0] == '\0' || !bel_decode_make(d, id)) {
            return BEL_ERR(BEL_DATA_LOSS, "initializer \"%s\" has no name or stands twice", name);
        }
        d->locals = bel_xgrow(d->locals, &d->local_capacity, d->local_count + 1, sizeof *d->locals);
        d->locals[d->local_count++] = (bel_decode_local){id, tensor};
    }
    return NULL;
}

// Outputs may be values of outer graphs.
static bel_status *read_subgraph(bel_decoder *d, const Onnx__GraphProto *graph,
                                 bel_onnx_subgraph *out)
{
    BEL_TRY(bel_decode_count(graph->n_input, "inputs"));
    BEL_TRY(bel_decode_count(graph->n_output, "outputs"));
    BEL_TRY(decode_locals(d, graph));
    for (size_t i = 0; i < graph->n_input; i++)
        (void)bel_decode_make(d, bel_decode_id(d, bel_decode_text(graph->input[i]->name)));
    BEL_TRY(bel_decode_nodes(d, graph->node, graph->n_node, &out->nodes, &out->node_count));
    int *ids = bel_arena_alloc(d->model->arena, graph->n_output * sizeof *ids);
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = bel_decode_text(graph->output[i]->name);
        if (!bel_decode_find(d, name, &ids[i]) || ids[i] < 0)
            return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" is made by no node", name);
    }
    out->output_ids = ids;
    out->input_count = (int)graph->n_input;
    out->output_count = (int)graph->n_output;
    return NULL;
}

// Its message counts towards the budget of the whole file.
static bel_status *unpack_subgraph(bel_decoder *d, ProtobufCBinaryData bytes,
                                   bel_onnx_subgraph *out)
{
    bel_onnx_model *model = d->model;
    if (d->scope != NULL && d->scope->depth >= BEL_DECODE_MOST_DEPTH) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "subgraphs inside each other, more than %d",
                       BEL_DECODE_MOST_DEPTH);
    }
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, d->budget};
    Onnx__GraphProto *graph = onnx__graph_proto__unpack(&allocator, bytes.len, bytes.data);
    if (graph == NULL) return BEL_ERR(BEL_DATA_LOSS, "this is no subgraph, or it is too large");
    model->parts =
        bel_xgrow(model->parts, &model->part_capacity, model->part_count + 1, sizeof *model->parts);
    model->parts[model->part_count++] = graph;
    bel_decode_scope inside = {.number = ++d->scope_count,
                               .depth = d->scope == NULL ? 1 : d->scope->depth + 1,
                               .outer = d->scope};
    d->scope = &inside;
    bel_status *status = read_subgraph(d, graph, out);
    d->scope = inside.outer;
    return status;
}

static bel_status *decode_subgraph(bel_decoder *d, ProtobufCBinaryData bytes,
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
