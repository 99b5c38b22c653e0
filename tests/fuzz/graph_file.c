// Fuzz target for graphs in ONNX's container (onnx/graph_file.h). A read returns an error or a
// well-formed graph, which is then run once, as when a training is loaded. Shape rules are the
// kernels' only guard, so every graph that they accept must run, however odd.
//
// An input is a model's bytes. Most changes of those only break the container. So an input may also
// be 'm', the number of a model of the corpus, the way to run it, and changes of its nodes in the
// unpacked message: attributes, inputs, operations, new nodes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "onnx.pb-c.h"
#include "onnx/graph_file.h"
#include "onnx/graph_form.h"
#include "ops/kernels/elements.h"
#include "runtime/program.h"

enum { MOST_MODEL = 1 << 16, MOST_CHANGES = 12, MOST_LIST = 10, MOST_DIM = 5 };
enum { MOST_ELEMENTS = 1 << 20, MOST_ARENA = 1 << 28, MOST_NS = 2000000 };

// --- Models --------------------------------------------------------------------------------------

static const char *const models[] = {"linear-training",
                                     "linear-prediction",
                                     "dnn-training",
                                     "dnn-prediction",
                                     "cnn-training",
                                     "cnn-prediction",
                                     "gru-training",
                                     "lstm-training",
                                     "wide_deep-training",
                                     "batch_norm",
                                     "attention_lengths",
                                     "ctc_loss",
                                     "conv_transpose",
                                     "layer_norm",
                                     "group_norm",
                                     "masked_softmax_all",
                                     "sequence_mask",
                                     "top_k",
                                     "slice_steps",
                                     "pad",
                                     "gather",
                                     "gather_elements",
                                     "concat_middle",
                                     "moments_norm",
                                     "reduce_prod_ends",
                                     "matmul_batched",
                                     "where"};
enum { MODEL_COUNT = sizeof models / sizeof models[0] };

static size_t load_model(uint64_t number, uint8_t bytes[MOST_MODEL])
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FUZZ_CORPUS, models[number % MODEL_COUNT]);
    FILE *file = fopen(path, "rbe");
    fuzz_expect(file != NULL, "each of the models in the corpus");
    size_t size = fread(bytes, 1, MOST_MODEL, file);
    (void)fclose(file);
    return size;
}

// --- Changes -------------------------------------------------------------------------------------

typedef struct change {
    fuzz_input *input;
    bel_arena *arena; // owns the message and all additions
    Onnx__GraphProto *graph;
} change;

// Allocator for protobuf-c.
static void *alloc(void *arena, size_t size)
{
    return bel_arena_alloc(arena, size);
}

static void no_free(void *arena, void *pointer)
{
    (void)arena, (void)pointer;
}

static size_t below(change *c, size_t count)
{
    return count == 0 ? 0 : fuzz_take(c->input, 2) % count;
}

// Small numbers first; then numbers that overflow when they are added or multiplied.
static int64_t number(change *c)
{
    static const int64_t edges[] = {
        -1,        0,         1,         2,         3,         4,         5,         6,
        7,         8,         9,         12,        16,        64,        -2,        -3,
        -4,        -9,        100,       1000,      1 << 16,   1 << 20,   INT32_MAX, INT32_MIN,
        INT64_MAX, INT64_MIN, 1LL << 32, 1LL << 40, 1LL << 47, 1LL << 53, -1000000,  INT64_MAX - 1,
    };
    return edges[below(c, sizeof edges / sizeof edges[0])];
}

static const char *attribute_name(change *c)
{
    static const char *const names[] = {"axes",
                                        "keepdims",
                                        "axis",
                                        "alpha",
                                        "beta",
                                        "transA",
                                        "to",
                                        "transB",
                                        "shape",
                                        "perm",
                                        "depth",
                                        "ratio",
                                        "strides",
                                        "pads",
                                        "dilations",
                                        "group",
                                        "auto_pad",
                                        "kernel_shape",
                                        "ceil_mode",
                                        "count_include_pad",
                                        "epsilon",
                                        "momentum",
                                        "hidden_size",
                                        "direction",
                                        "layout",
                                        "first",
                                        "given",
                                        "starts",
                                        "ends",
                                        "steps",
                                        "pads_before",
                                        "pads_behind",
                                        "mode",
                                        "value",
                                        "min",
                                        "max",
                                        "k",
                                        "largest",
                                        "exclusive",
                                        "reverse",
                                        "num_groups",
                                        "output_padding",
                                        "causal",
                                        "scale",
                                        "linear_before_reset",
                                        "output_shape",
                                        "zero_infinity",
                                        "low",
                                        "high",
                                        "select_last_index",
                                        "mean",
                                        "by_sums",
                                        "relu",
                                        "training_mode"};
    return names[below(c, sizeof names / sizeof names[0])];
}

static Onnx__AttributeProto *new_attribute(change *c)
{
    Onnx__AttributeProto *attribute = bel_arena_alloc(c->arena, sizeof *attribute);
    onnx__attribute_proto__init(attribute);
    attribute->name = bel_arena_strdup(c->arena, attribute_name(c));
    return attribute;
}

static void make_whole(change *c, Onnx__AttributeProto *attribute)
{
    attribute->has_type = attribute->has_i = 1;
    attribute->type = 2;
    attribute->i = number(c);
}

static void make_list(change *c, Onnx__AttributeProto *attribute, size_t count)
{
    int64_t *ints = bel_arena_alloc(c->arena, (count + 1) * sizeof *ints);
    for (size_t i = 0; i < count; i++)
        ints[i] = i < attribute->n_ints ? attribute->ints[i] : number(c);
    attribute->has_type = 1;
    attribute->type = 7;
    attribute->ints = ints;
    attribute->n_ints = count;
}

// Makes an F64, the type of numbers that are not integers.
static void make_number(change *c, Onnx__AttributeProto *attribute)
{
    static const double edges[] = {0.5,  -0.0, -1.5,     1e-300,    1e300, -1e300,
                                   1e15, 1.0,  INFINITY, -INFINITY, NAN};
    double value = edges[below(c, sizeof edges / sizeof edges[0])];
    Onnx__TensorProto *tensor = bel_arena_alloc(c->arena, sizeof *tensor);
    onnx__tensor_proto__init(tensor);
    tensor->has_data_type = 1;
    tensor->data_type = 11;
    tensor->n_double_data = 1;
    tensor->double_data = bel_arena_copy(c->arena, &value, sizeof value);
    attribute->has_type = 1;
    attribute->type = 4;
    attribute->t = tensor;
}

static void add_attribute(change *c, Onnx__NodeProto *node)
{
    Onnx__AttributeProto *attribute = new_attribute(c), **list;
    list = bel_arena_alloc(c->arena, (node->n_attribute + 1) * sizeof(Onnx__AttributeProto *));
    if (node->n_attribute > 0)
        memcpy(list, node->attribute, node->n_attribute * sizeof(Onnx__AttributeProto *));
    list[node->n_attribute++] = attribute;
    node->attribute = list;
    switch (below(c, 4)) {
    case 0: make_list(c, attribute, below(c, MOST_LIST)); break;
    case 1: make_number(c, attribute); break;
    default: make_whole(c, attribute);
    }
}

static void change_attribute(change *c, Onnx__NodeProto *node)
{
    if (node->n_attribute == 0) {
        add_attribute(c, node);
        return;
    }
    size_t at = below(c, node->n_attribute);
    Onnx__AttributeProto *attribute = node->attribute[at];
    switch (below(c, 8)) {
    case 0: node->attribute[at] = node->attribute[--node->n_attribute]; break;
    case 1: make_list(c, attribute, below(c, MOST_LIST)); break;
    case 2: make_number(c, attribute); break;
    case 3: make_whole(c, attribute); break;
    default:
        if (attribute->n_ints > 0) {
            attribute->ints[below(c, attribute->n_ints)] = number(c);
        } else {
            make_whole(c, attribute);
        }
    }
}

// Picks an operation that fits these counts of inputs and outputs, if a few tries find one.
static const bel_op_def *some_op(change *c, size_t inputs, size_t outputs)
{
    const bel_op_def *def = NULL;
    for (int tries = 0; tries < 16; tries++) {
        def = bel_op_get((bel_op)below(c, BEL_OP_COUNT));
        if ((def->flags & (BEL_OP_LEAF | BEL_OP_COLLECTIVE)) == 0 &&
            inputs >= (size_t)def->min_inputs && inputs <= (size_t)def->max_inputs &&
            outputs == (size_t)def->output_count)
            break;
    }
    return def;
}

// The name of a value that an earlier node makes.
static char *some_value(change *c, size_t before)
{
    const Onnx__NodeProto *node = c->graph->node[below(c, before)];
    return node->n_output == 0 ? bel_arena_strdup(c->arena, "x")
                               : node->output[below(c, node->n_output)];
}

static void change_inputs(change *c, Onnx__NodeProto *node, size_t at)
{
    size_t i = below(c, node->n_input), j = below(c, node->n_input);
    char **inputs = bel_arena_alloc(c->arena, (node->n_input + 1) * sizeof(char *));
    if (node->n_input > 0) memcpy(inputs, node->input, node->n_input * sizeof(char *));
    node->input = inputs;
    size_t how = below(c, 4);
    if (how == 0) {
        inputs[node->n_input++] = some_value(c, at);
    } else if (node->n_input > 0 && how == 1) {
        node->n_input--;
    } else if (node->n_input > 0 && how == 2) {
        char *kept = inputs[i];
        inputs[i] = inputs[j];
        inputs[j] = kept;
    } else if (node->n_input > 0) {
        inputs[i] = some_value(c, at);
    }
}

// Adds a node of any operation at place `at`, with inputs from nodes before it.
static void add_node(change *c, size_t at)
{
    static const char domain[] = BEL_GRAPH_FILE_DOMAIN;
    const bel_op_def *def =
        bel_op_get((bel_op)(3 + below(c, BEL_OP_COUNT - 3))); // leaves come first
    Onnx__NodeProto *node = bel_arena_alloc(c->arena, sizeof *node), **nodes;
    onnx__node_proto__init(node);
    node->op_type = bel_arena_strdup(c->arena, def->name);
    node->domain = bel_arena_strdup(c->arena, domain);
    node->n_input = (size_t)def->min_inputs;
    node->n_input += below(c, (size_t)(def->max_inputs - def->min_inputs) + 1);
    node->input = bel_arena_alloc(c->arena, (node->n_input + 1) * sizeof(char *));
    bool alike = below(c, 2) == 0; // equal inputs, so that shapes fit
    for (size_t i = 0; i < node->n_input; i++)
        node->input[i] = alike && i > 0 ? node->input[0] : some_value(c, at);
    node->n_output = (size_t)def->output_count;
    node->output = bel_arena_alloc(c->arena, (node->n_output + 1) * sizeof(char *));
    for (size_t o = 0; o < node->n_output; o++) {
        char name[64];
        snprintf(name, sizeof name, "new %zu %zu", c->graph->n_node, o);
        node->output[o] = bel_arena_strdup(c->arena, name);
    }
    node->name = node->output[0];
    for (size_t count = below(c, 4); count > 0; count--)
        add_attribute(c, node);
    nodes = bel_arena_alloc(c->arena, (c->graph->n_node + 1) * sizeof(Onnx__NodeProto *));
    memcpy(nodes, c->graph->node, at * sizeof(Onnx__NodeProto *));
    nodes[at] = node;
    memcpy(nodes + at + 1, c->graph->node + at,
           (c->graph->n_node - at) * sizeof(Onnx__NodeProto *));
    c->graph->node = nodes;
    c->graph->n_node++;
}

static bool is_leaf(const Onnx__NodeProto *node)
{
    return strcmp(node->op_type, BEL_GRAPH_FORM_INPUT) == 0 ||
           strcmp(node->op_type, BEL_GRAPH_FORM_VARIABLE) == 0;
}

static Onnx__NodeProto *some_leaf(change *c)
{
    for (int tries = 0; tries < 16; tries++) {
        Onnx__NodeProto *node = c->graph->node[below(c, c->graph->n_node)];
        if (is_leaf(node)) return node;
    }
    return c->graph->node[0];
}

// Replaces a number or type of a leaf, in all leaves that have it, so that shapes and types still
// fit each other.
static void change_leaves(change *c)
{
    const Onnx__NodeProto *like = some_leaf(c);
    if (like->n_attribute == 0) return;
    const Onnx__AttributeProto *from = like->attribute[below(c, like->n_attribute)];
    bool list = from->n_ints > 0;
    int64_t have = list ? from->ints[below(c, from->n_ints)] : from->i, put = number(c);
    if (!list && put >= 0) put %= 17; // element types
    for (size_t n = 0; n < c->graph->n_node; n++) {
        const Onnx__NodeProto *node = c->graph->node[n];
        for (size_t a = 0; is_leaf(node) && a < node->n_attribute; a++) {
            Onnx__AttributeProto *attribute = node->attribute[a];
            if (strcmp(attribute->name, from->name) != 0) continue;
            if (!list && attribute->i == have) attribute->i = put;
            for (size_t i = 0; list && i < attribute->n_ints; i++)
                if (attribute->ints[i] == have) attribute->ints[i] = put;
        }
    }
}

static void change_once(change *c)
{
    if (c->graph->n_node == 0) return;
    size_t at = below(c, c->graph->n_node), tries = 0;
    while (is_leaf(c->graph->node[at]) && tries++ < 8)
        at = below(c, c->graph->n_node);
    Onnx__NodeProto *node = c->graph->node[at];
    switch (below(c, 14)) {
    case 0: change_inputs(c, node, at); break;
    case 1: add_attribute(c, node); break;
    case 2: change_attribute(c, some_leaf(c)); break;
    case 3:
        node->op_type = bel_arena_strdup(c->arena, some_op(c, node->n_input, node->n_output)->name);
        break;
    case 4:
    case 5:
    case 6:
    case 7: add_node(c, at); break;
    case 8:
    case 9: change_leaves(c); break;
    default: change_attribute(c, node);
    }
}

// Makes the model of these bytes with the input's changes. The caller frees the result.
static uint8_t *change_model(fuzz_input *input, bel_arena *arena, const uint8_t *bytes,
                             size_t *size)
{
    ProtobufCAllocator allocator = {.alloc = alloc, .free = no_free, .allocator_data = arena};
    Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, *size, bytes);
    fuzz_expect(model != NULL && model->graph != NULL, "models in the corpus");
    change c = {.input = input, .arena = arena, .graph = model->graph};
    for (int i = 0; i < MOST_CHANGES && (i == 0 || input->left > 0); i++)
        change_once(&c);
    *size = onnx__model_proto__get_packed_size(model);
    uint8_t *packed = malloc(*size + 1);
    fuzz_expect(packed != NULL, "memory for a model");
    (void)onnx__model_proto__pack(model, packed);
    return packed;
}

// --- Running -------------------------------------------------------------------------------------

// Bits for the way a graph is run.
enum {
    ALL_VALUES = 1, // outputs are all values, not only the results
    EXTERNAL = 2,   // each output has separate memory
    REFERENCE = 4,
    LITTLE_MEMORY = 8,
    SHORT_CHAINS = 16,
    FIXED_VARIABLES = 32,
    NO_REUSE = 64,
};

typedef struct trial {
    unsigned how, content; // content of elements: zeros, ones, or numbers around zero
    bel_graph *graph;
    bel_shape *shapes; // inputs'
    bel_program_output *outputs;
    int output_count;
    bel_program *program;
    bel_tensor *leaves; // inputs, then variables
    void **results;     // by output
} trial;

static void *element_memory(const bel_spec *spec, unsigned content)
{
    bel_tensor tensor = {spec->dtype, spec->shape, NULL};
    int64_t elements = bel_shape_elements(&spec->shape);
    tensor.data = aligned_alloc(64, (bel_tensor_bytes(&tensor) + 64) / 64 * 64);
    fuzz_expect(tensor.data != NULL, "memory for elements");
    for (int64_t i = 0; i < elements; i++)
        bel_element_set(&tensor, i, content < 2 ? content : (double)(i % 7 - 2));
    return tensor.data;
}

// Chooses sizes for open dimensions, the same for the same symbol.
static void close_shapes(trial *t, unsigned size)
{
    const bel_graph *graph = t->graph;
    t->shapes = bel_xcalloc(graph->input_count + 1, sizeof *t->shapes);
    for (size_t i = 0; i < graph->input_count; i++) {
        t->shapes[i] = graph->inputs[i].value->spec.shape;
        for (int32_t d = 0; d < t->shapes[i].rank; d++) {
            int64_t *dim = &t->shapes[i].dims[d];
            if (*dim < 0) *dim = (int64_t)((size + (uint64_t)*dim + 1) % MOST_DIM);
        }
    }
}

// Returns false if the graph is refused, or too large to run in short time.
static bool is_small(const trial *t, bel_spec *specs)
{
    if (!fuzz_is_good(bel_graph_infer(t->graph, t->shapes, specs))) return false;
    int64_t total = 0;
    for (size_t v = 0; v < t->graph->value_count && total <= MOST_ELEMENTS; v++) {
        int64_t elements = bel_shape_elements(&specs[v].shape);
        fuzz_expect(elements >= 0, "closed shapes");
        total += elements;
    }
    return total <= MOST_ELEMENTS;
}

static void choose_outputs(trial *t, bel_value *const *results, int result_count)
{
    bool all = (t->how & ALL_VALUES) != 0;
    t->output_count = all ? (int)t->graph->value_count : result_count;
    t->outputs = bel_xcalloc((size_t)t->output_count + 1, sizeof *t->outputs);
    for (int o = 0; o < t->output_count; o++)
        t->outputs[o] = (bel_program_output){.value = all ? t->graph->values[o] : results[o],
                                             .external = (t->how & EXTERNAL) != 0};
}

static bool compile(trial *t)
{
    const bel_program_options options = {.threads = 1,
                                         .reference = (t->how & REFERENCE) != 0,
                                         .no_reuse = (t->how & NO_REUSE) != 0,
                                         .fast_math = (t->how & SHORT_CHAINS) != 0,
                                         .fixed_variables = (t->how & FIXED_VARIABLES) != 0,
                                         .memory_bytes = (t->how & LITTLE_MEMORY) != 0 ? 8192 : 0};
    return fuzz_is_good(bel_program_compile(t->graph, t->shapes, t->outputs, t->output_count,
                                            &options, &t->program));
}

static bool is_quick(const trial *t)
{
    int64_t ns = 0;
    for (int i = 0; i < bel_program_instruction_count(t->program) && ns < MOST_NS; i++)
        ns += bel_program_line_at(t->program, i).cost_ns;
    return ns < MOST_NS && bel_program_arena_bytes(t->program) <= MOST_ARENA;
}

static void bind(trial *t, bel_instance *instance, const bel_spec *specs)
{
    const bel_graph *graph = t->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const bel_spec *spec = &specs[graph->inputs[i].value->id];
        t->leaves[i].data = element_memory(spec, t->content);
        bel_instance_bind_input(instance, (int)i, t->leaves[i].data);
    }
    for (size_t v = 0; v < graph->variable_count; v++) {
        bel_tensor *leaf = &t->leaves[graph->input_count + v];
        leaf->data = element_memory(&specs[graph->variables[v].value->id], t->content);
        bel_instance_bind_variable(instance, (int)v, leaf->data);
    }
    for (int o = 0; o < t->output_count; o++) {
        if (!t->outputs[o].external) continue;
        t->results[o] = element_memory(&specs[t->outputs[o].value->id], 0);
        bel_instance_bind_output(instance, o, t->results[o]);
    }
}

static void run(trial *t, const bel_spec *specs)
{
    const bel_graph *graph = t->graph;
    size_t leaves = graph->input_count + graph->variable_count;
    bel_run_context context = {.seed = 7, .step = 3};
    bel_team *team;
    size_t bytes = (bel_program_arena_bytes(t->program) + 64) / 64 * 64;
    void *arena = aligned_alloc(64, bytes);
    fuzz_expect(fuzz_is_good(bel_team_create(1, &team)) && arena != NULL, "memory for values");
    memset(arena, 0, bytes);
    bel_instance *instance = bel_instance_create(t->program, arena);
    t->leaves = bel_xcalloc(leaves + 1, sizeof *t->leaves);
    t->results = bel_xcalloc((size_t)t->output_count + 1, sizeof *t->results);
    bind(t, instance, specs);
    (void)fuzz_is_good(bel_instance_run(instance, team, &context, NULL, NULL));
    for (int o = 0; o < t->output_count; o++) {
        bel_tensor output = bel_instance_output(instance, o);
        fuzz_expect(bel_shape_equal(&output.shape, &specs[t->outputs[o].value->id].shape),
                    "results of the shapes that were inferred");
        bel_free(t->results[o]);
    }
    for (size_t i = 0; i < leaves; i++)
        bel_free(t->leaves[i].data);
    bel_free(t->leaves);
    bel_free(t->results);
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    free(arena);
}

// `way`: the bits of `how`, then sizes, then the content of elements.
static void try_graph(bel_graph *graph, bel_value *const *results, int result_count, uint64_t way)
{
    trial t = {.how = way & 127, .content = way >> 12 & 3, .graph = graph};
    bel_spec *specs = bel_xcalloc(graph->value_count + 1, sizeof *specs);
    close_shapes(&t, way >> 8 & 15);
    choose_outputs(&t, results, result_count);
    if (is_small(&t, specs) && compile(&t) && is_quick(&t)) run(&t, specs);
    bel_program_destroy(t.program);
    bel_free(t.outputs);
    bel_free(t.shapes);
    bel_free(specs);
}

static void read_bytes(const uint8_t *data, size_t size, uint64_t way)
{
    bel_onnx_model *model;
    bel_graph *graph;
    if (!fuzz_is_good(bel_onnx_read(data, size, &model))) return;
    int count = bel_onnx_output_count(model);
    bel_value **results = bel_xcalloc((size_t)count + 1, sizeof *results);
    bool good = fuzz_is_good(bel_graph_file_read(model, &graph, results));
    bel_onnx_destroy(model); // the graph does not need it
    if (good) {
        fuzz_expect(fuzz_is_good(bel_graph_verify(graph)), "a graph that is well formed");
        for (int r = 0; r < count; r++)
            fuzz_expect(results[r] != NULL && results[r]->graph == graph, "a value of each output");
        try_graph(graph, results, count, way);
        bel_graph_destroy(graph);
    }
    bel_free(results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[MOST_MODEL];
    if (size == 0 || data[0] != 'm') {
        read_bytes(data, size, size);
        return 0;
    }
    fuzz_input input = {data + 1, size - 1};
    size_t model_size = load_model(fuzz_take(&input, 2), bytes);
    uint64_t way = fuzz_take(&input, 2);
    bel_arena *arena = bel_arena_create();
    uint8_t *changed = change_model(&input, arena, bytes, &model_size);
    bel_arena_destroy(arena);
    read_bytes(changed, model_size, way);
    free(changed);
    return 0;
}
