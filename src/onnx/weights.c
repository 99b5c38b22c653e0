// Weights are identified by their use, not by their place in the file. Candidates are initializers
// and the nodes Constant and ConstantOfShape, in f32 and other floats, also through a Cast, a
// Transpose or a product of constants.
//
// Two walks over the nodes. The forward walk finds the values derived from constants. The backward
// walk starts where a derived value meets another: as a factor of a product or convolution, a
// lookup table, a scale or bias. Then the constants that it is derived from are weights. A single
// number is usually an exponent, an epsilon or a divisor, so it counts only as the bias of a
// product. An addend with an element of -10000 or less is a mask. The user's patterns add what the
// rules miss.
#include "onnx/weights.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/kernels/elements.h"

typedef struct fact {
    bel_onnx_role role;
    bool derived;  // derived from constants
    bool computed; // and not only by moving elements
    bool single;   // one number
    bool wanted;   // used as a weight
    bool source;   // a constant of a float type
    bool used;
    const char *maker;        // operator that makes it, or NULL
    const bel_tensor *tensor; // elements of a source or a moved one, or NULL
} fact;

struct bel_onnx_weights {
    const bel_onnx_model *model;
    fact *facts; // by value id
    const char *const *train;
    bool *matched; // by pattern
    int train_count;
};

// --- Operators -----------------------------------------------------------------------------------

enum { ALL = INT32_MAX };

// Inputs that are weights if derived from constants, as bits; statistics.
static const struct {
    const char *op;
    unsigned weights, statistics;
} uses[] = {
    {"MatMul", 3, 0},
    {"Gemm", 7, 0},
    {"Einsum", ALL, 0},
    {"Conv", 6, 0},
    {"ConvTranspose", 6, 0},
    {"Gather", 1, 0},
    {"GatherND", 1, 0},
    {"BatchNormalization", 6, 24},
    {"InstanceNormalization", 6, 0},
    {"GroupNormalization", 6, 0},
    {"LayerNormalization", 6, 0},
    {"RMSNormalization", 2, 0},
    {"PRelu", 2, 0},
    {"LSTM", 14, 0},
    {"GRU", 14, 0},
    {"RNN", 14, 0},
    {"Concat", ALL, 0}, // a token before others
};

// Inputs whose elements appear unchanged in the output.
static const struct {
    const char *op;
    unsigned moved;
} movers[] = {{"Identity", 1}, {"Cast", 1},      {"CastLike", 1}, {"Reshape", 1}, {"Transpose", 1},
              {"Squeeze", 1},  {"Unsqueeze", 1}, {"Flatten", 1},  {"Slice", 1},   {"Split", 1},
              {"Expand", 1},   {"Tile", 1},      {"Concat", ALL}, {"Pad", 1}};

static bool weights_has(unsigned bits, int input)
{
    return bits == ALL || (input < 31 && (bits >> input & 1) != 0);
}

// Belfry's functions have a number after their name.
static bool is_op(const bel_onnx_node *node, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(node->op, name, length) != 0) return false;
    return node->op[length] == '\0' || (node->domain[0] != '\0' && node->op[length] == '_');
}

static unsigned moved_by(const bel_onnx_node *node)
{
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        if (is_op(node, movers[i].op)) return movers[i].moved;
    return 0;
}

static bool is_product(const char *op)
{
    static const char *const products[] = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"};
    for (size_t i = 0; op != NULL && i < sizeof products / sizeof products[0]; i++)
        if (strcmp(products[i], op) == 0) return true;
    return false;
}

// --- Forwards ------------------------------------------------------------------------------------

static bool is_float(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64 || dtype == BEL_DTYPE_F16 ||
           dtype == BEL_DTYPE_BF16;
}

static fact fact_of(const bel_tensor *tensor)
{
    int64_t count = bel_shape_elements(&tensor->shape);
    return (fact){.derived = true,
                  .single = count == 1,
                  .source = is_float(tensor->dtype) && count > 0,
                  .tensor = tensor};
}

// True if the elements mask what they are added to.
static bool masks(const fact *f)
{
    const double hiding = -1e4;
    int64_t count = f->tensor == NULL ? 0 : bel_shape_elements(&f->tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        double element = bel_element_get(f->tensor, i);
        if (!(element > hiding) || isinf(element)) return true;
    }
    return false;
}

static fact fact_of_constant(const bel_onnx_node *node)
{
    fact f = {.derived = true, .source = is_op(node, "ConstantOfShape")};
    if (node->attr_count == 0) return f;
    const bel_onnx_attr *attr = &node->attrs[0];
    if (attr->kind == BEL_ONNX_TENSOR) {
        bool repeated = f.source;
        f = fact_of(&attr->tensor);
        if (repeated) f.single = false;
    } else if (attr->kind == BEL_ONNX_FLOAT || attr->kind == BEL_ONNX_FLOATS) {
        f.source = attr->kind == BEL_ONNX_FLOAT || attr->list_count > 0;
        f.single = attr->kind == BEL_ONNX_FLOAT || attr->list_count == 1;
    }
    return f;
}

static fact fact_of_node(const bel_onnx_weights *w, const bel_onnx_node *node)
{
    if (is_op(node, "Constant")) return fact_of_constant(node);
    unsigned moved = moved_by(node);
    fact f = {.derived = node->input_count > 0, .single = true, .computed = moved == 0};
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] < 0 || (moved != 0 && !weights_has(moved, i))) continue;
        const fact *in = &w->facts[node->inputs[i]];
        f.derived = f.derived && in->derived;
        f.single = f.single && in->single;
        if (moved != 0 && f.tensor == NULL) f.tensor = in->tensor;
        f.computed = f.computed || in->computed;
    }
    if (is_op(node, "ConstantOfShape") && f.derived) return fact_of_constant(node);
    if (is_op(node, "Expand") || is_op(node, "Tile")) f.single = false;
    return f;
}

static void walk_forwards(bel_onnx_weights *w, const bel_onnx_node *nodes, int count)
{
    for (int i = 0; i < count; i++) {
        const bel_onnx_node *node = &nodes[i];
        bool plain = true;
        for (int k = 0; k < node->attr_count; k++) {
            const bel_onnx_subgraph *graph = node->attrs[k].graph;
            plain = plain && graph == NULL;
            if (graph != NULL && graph->refused == NULL)
                walk_forwards(w, graph->nodes, graph->node_count);
        }
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] >= 0) w->facts[node->inputs[k]].used = true;
        fact f = plain ? fact_of_node(w, node) : (fact){.derived = false};
        f.maker = node->op;
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] < 0) continue;
            f.used = w->facts[node->outputs[o]].used;
            w->facts[node->outputs[o]] = f;
        }
    }
}

// --- Backwards -----------------------------------------------------------------------------------

static fact *input_fact(const bel_onnx_weights *w, const bel_onnx_node *node, int input)
{
    return node->inputs[input] < 0 ? NULL : &w->facts[node->inputs[input]];
}

// True for a scale or an addend that is not computed; for one number only as the bias of a product.
static bool is_affine(const bel_onnx_weights *w, const bel_onnx_node *node, int input)
{
    bool sum = is_op(node, "Add") || is_op(node, "Sum");
    const fact *f = input_fact(w, node, input);
    const fact *other = node->input_count == 2 ? input_fact(w, node, 1 - input) : NULL;
    if (sum && (f->computed || masks(f))) return false;
    if (f->single) return sum && other != NULL && is_product(other->maker);
    return sum || is_op(node, "Mul");
}

// Marks derived values where they meet others.
static void mark_uses(bel_onnx_weights *w, const bel_onnx_node *node)
{
    unsigned weights = 0, statistics = 0;
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (!is_op(node, uses[i].op)) continue;
        weights = uses[i].weights;
        statistics = uses[i].statistics;
    }
    for (int i = 0; i < node->input_count; i++) {
        fact *f = input_fact(w, node, i);
        if (f == NULL || !f->derived) continue;
        bool lone = f->single && is_op(node, "Concat"); // not a token
        if ((weights_has(weights, i) && !lone) || is_affine(w, node, i)) f->wanted = true;
        int id = node->inputs[i];
        bool held = id < w->model->initializer_count &&
                    w->model->initializers[id].tensor.dtype == BEL_DTYPE_F32;
        if (weights_has(statistics, i) && held && f->source) f->role = BEL_ONNX_STATISTIC;
    }
}

// Marks the inputs of a wanted derived value. Single numbers beside larger operands are not weights
// here either, nor are exponents and limits.
static void pass_on(bel_onnx_weights *w, const bel_onnx_node *node, const fact *out)
{
    unsigned moved = moved_by(node);
    bool first = moved != 0 || is_op(node, "Pow") || is_op(node, "Clip") || is_op(node, "Gather");
    unsigned bits = moved != 0 ? moved : first ? 1 : ALL;
    for (int i = 0; i < node->input_count; i++) {
        fact *f = input_fact(w, node, i);
        if (f == NULL || !weights_has(bits, i) || (f->single && !out->single)) continue;
        f->wanted = true;
    }
}

static void walk_backwards(bel_onnx_weights *w, const bel_onnx_node *nodes, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        const bel_onnx_node *node = &nodes[i];
        bool derived = false;
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] < 0) continue;
            const fact *out = &w->facts[node->outputs[o]];
            derived = derived || out->derived;
            if (out->derived && out->wanted && !out->source) pass_on(w, node, out);
        }
        if (!derived) mark_uses(w, node);
        for (int k = 0; k < node->attr_count; k++) {
            const bel_onnx_subgraph *graph = node->attrs[k].graph;
            if (graph != NULL && graph->refused == NULL)
                walk_backwards(w, graph->nodes, graph->node_count);
        }
    }
}

// --- All nodes -----------------------------------------------------------------------------------

// Subgraphs keep their constants, because a name may be in several of them.
static bool may_be_variable(const bel_onnx_weights *w, int id)
{
    return w->facts[id].source && w->model->names[id].local == NULL && !w->model->names[id].inner;
}

static bool is_asked_for(bel_onnx_weights *w, int id)
{
    bool asked = false;
    for (int p = 0; p < w->train_count; p++) {
        if (fnmatch(w->train[p], w->model->names[id].text, FNM_NOESCAPE) != 0) continue;
        asked = w->matched[p] = true;
    }
    return asked;
}

bel_onnx_weights *bel_onnx_weights_find(const bel_onnx_model *model, const char *const *train,
                                        int train_count)
{
    bel_onnx_weights *w = bel_xcalloc(1, sizeof *w);
    *w = (bel_onnx_weights){.model = model,
                            .facts = bel_xcalloc((size_t)model->name_count + 1, sizeof *w->facts),
                            .train = train,
                            .train_count = train_count,
                            .matched = bel_xcalloc((size_t)train_count + 1, sizeof *w->matched)};
    for (int id = 0; id < model->name_count; id++) {
        const bel_tensor *tensor = model->names[id].local;
        if (id < model->initializer_count) tensor = &model->initializers[id].tensor;
        if (tensor != NULL) w->facts[id] = fact_of(tensor);
    }
    walk_forwards(w, model->nodes, model->node_count);
    walk_backwards(w, model->nodes, model->node_count);
    for (int id = 0; id < model->name_count; id++) {
        fact *f = &w->facts[id];
        if (!may_be_variable(w, id)) f->role = BEL_ONNX_FIXED;
        if (!may_be_variable(w, id)) continue;
        bool wanted = f->wanted && f->role != BEL_ONNX_STATISTIC;
        if (is_asked_for(w, id) || wanted) f->role = BEL_ONNX_TRAINED;
    }
    return w;
}

void bel_onnx_weights_destroy(bel_onnx_weights *w)
{
    if (w == NULL) return;
    bel_free(w->facts);
    bel_free(w->matched);
    bel_free(w);
}

bel_onnx_role bel_onnx_role_of(const bel_onnx_weights *w, int id)
{
    return w->facts[id].role;
}

bool bel_onnx_weights_matched(const bel_onnx_weights *w, int pattern)
{
    return w->matched[pattern];
}

const char *bel_onnx_weights_next_fixed(const bel_onnx_weights *w, int *at)
{
    while (*at < w->model->name_count) {
        const fact *f = &w->facts[(*at)++];
        if (f->source && f->used && f->role == BEL_ONNX_FIXED) return w->model->names[*at - 1].text;
    }
    return NULL;
}
