// Random small graphs of operations that are easy to feed. Only the fuzzer includes this file.
#ifndef BELFRY_TESTS_UNIT_PASSES_RANDOM_GRAPH_H
#define BELFRY_TESTS_UNIT_PASSES_RANDOM_GRAPH_H

#include "base/rng.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "ops/families.h"

enum { POOL = 64, MOST_ELEMENTS = 3000 };

typedef struct random_graph {
    bel_graph *graph;
    bel_rng_key key;
    uint64_t drawn;
    bel_value *pool[POOL]; // F32
    int pool_count;
} random_graph;

// Returns a random number in [0, below).
static int64_t draw(random_graph *g, int64_t below)
{
    uint32_t words[4];
    bel_rng_block(g->key, 0, g->drawn++, words);
    return (int64_t)(words[0] % (uint32_t)below);
}

static bel_value *draw_value(random_graph *g)
{
    // Prefers newer values, which makes chains.
    int64_t back =
        draw(g, 2) == 0 ? draw(g, g->pool_count < 4 ? g->pool_count : 4) : draw(g, g->pool_count);
    return g->pool[g->pool_count - 1 - back];
}

static bool fits(const bel_shape *shape)
{
    int64_t elements = bel_shape_elements(shape);
    return elements >= 0 && elements <= MOST_ELEMENTS;
}

static void put(random_graph *g, bel_value *value)
{
    if (value == NULL || g->pool_count == POOL || value->spec.dtype != BEL_DTYPE_F32) return;
    if (fits(&value->spec.shape)) g->pool[g->pool_count++] = value;
}

static bel_value *draw_constant(random_graph *g, const bel_shape *shape)
{
    static const float numbers[] = {0, -0.0f, 1, -1, 0.5f, 2, 1, 3, 0.1f, -7};
    float elements[MOST_ELEMENTS];
    bool one = draw(g, 2) == 0;
    float number = numbers[draw(g, 10)];
    for (int64_t i = 0; i < bel_shape_elements(shape); i++)
        elements[i] = one ? number : numbers[draw(g, 10)];
    return bel_constant(g->graph, &(bel_tensor){BEL_DTYPE_F32, *shape, elements});
}

// Returns a value that broadcasts with x: a scalar, a row, or a value of the pool.
static bel_value *draw_other(random_graph *g, bel_value *x)
{
    bel_shape shape = bel_value_shape(x), both;
    switch (draw(g, 6)) {
    case 0: return bel_scalar(g->graph, BEL_DTYPE_F32, (double)draw(g, 3) - 1);
    case 1: return draw_constant(g, &shape);
    case 2:
        if (shape.rank > 0) {
            bel_shape row = BEL_SHAPE(shape.dims[shape.rank - 1]);
            return draw_constant(g, &row);
        }
        return x;
    default: break;
    }
    for (int tries = 0; tries < 8; tries++) {
        bel_value *y = draw_value(g);
        bel_shape other = bel_value_shape(y);
        bel_status *status = bel_broadcast_shapes(&shape, &other, &both);
        bool good = status == NULL && fits(&both);
        bel_status_ignore(status); // the caller tries another one
        if (good) return y;
    }
    return x;
}

// --- Kinds of steps ------------------------------------------------------------------------------

static void step_binary(random_graph *g)
{
    static bel_value *(*const functions[])(bel_graph *, bel_value *, bel_value *) = {
        bel_add, bel_sub, bel_mul, bel_div, bel_max, bel_min, bel_add, bel_mul};
    bel_value *x = draw_value(g), *y = draw_other(g, x);
    bool swap = draw(g, 3) == 0;
    put(g, functions[draw(g, 8)](g->graph, swap ? y : x, swap ? x : y));
}

static bel_value *unary(random_graph *g, int64_t kind, bel_value *x)
{
    static bel_value *(*const functions[])(bel_graph *, bel_value *) = {
        bel_neg,       bel_exp,  bel_abs,      bel_relu,     bel_sigmoid,
        bel_tanh,      bel_gelu, bel_softplus, bel_silu,     bel_sqrt,
        bel_gelu_tanh, bel_erf,  bel_sin,      bel_identity, bel_neg};
    if (kind < 15) return functions[kind](g->graph, x);
    if (kind == 15) return bel_leaky_relu(g->graph, x, 0.1);
    return kind == 16 ? bel_clip(g->graph, x, -1, 2) : bel_elu(g->graph, x, 0.5);
}

static void step_unary(random_graph *g)
{
    put(g, unary(g, draw(g, 18), draw_value(g)));
}

static void step_shape(random_graph *g)
{
    bel_value *x = draw_value(g);
    bel_shape shape = bel_value_shape(x), flat = BEL_SHAPE(bel_shape_elements(&shape));
    int64_t axis = 0, permutation[BEL_MAX_RANK];
    for (int32_t d = 0; d < shape.rank; d++)
        permutation[d] = shape.rank - 1 - d;
    switch (draw(g, 6)) {
    case 0: put(g, bel_reshape(g->graph, x, &flat)); break;
    case 1:
        if (shape.rank < 4) put(g, bel_unsqueeze(g->graph, x, &axis, 1));
        break;
    case 2: put(g, bel_squeeze(g->graph, x, NULL, 0)); break;
    case 3: put(g, bel_flatten(g->graph, x, shape.rank > 0 ? draw(g, shape.rank + 1) : 0)); break;
    default: put(g, bel_transpose(g->graph, x, permutation)); break;
    }
}

static void step_part(random_graph *g)
{
    bel_value *x = draw_value(g);
    bel_shape shape = bel_value_shape(x);
    if (shape.rank == 0) return;
    int64_t axis = draw(g, shape.rank), size = shape.dims[axis];
    int64_t before[BEL_MAX_RANK] = {0}, behind[BEL_MAX_RANK] = {0};
    int64_t start = draw(g, 3) == 0 && size > 1 ? 1 : 0, end = INT64_MAX, step = 1;
    switch (draw(g, 4)) {
    case 0: put(g, bel_slice(g->graph, x, &axis, &start, &end, &step, 1)); break;
    case 1:
        start = -1, end = INT64_MIN, step = -1;
        put(g, bel_slice(g->graph, x, &axis, &start, &end, &step, 1));
        break;
    case 2:
        before[axis] = draw(g, 2), behind[axis] = draw(g, 2);
        put(g, bel_pad(g->graph, x, before, behind, BEL_PAD_CONSTANT, 0.25));
        break;
    default: put(g, bel_expand(g->graph, x, &shape)); break;
    }
}

// Concatenates parts that all pass through the same functions, with different constants.
static void step_concat(random_graph *g)
{
    enum { MOST = 12 };
    bel_value *x = draw_value(g), *parts[MOST];
    bel_shape shape = bel_value_shape(x);
    if (shape.rank == 0) return;
    int count = 1 + (int)draw(g, MOST), layers = (int)draw(g, 4);
    bool joined = draw(g, 2) == 0; // from one tensor
    int64_t axis = draw(g, shape.rank), kinds[4];
    for (int l = 0; l < 4; l++)
        kinds[l] = draw(g, 8);
    bel_shape one = BEL_SHAPE(1), row = BEL_SHAPE(shape.dims[shape.rank - 1]);
    for (int i = 0; i < count; i++) {
        parts[i] = joined ? x : bel_mul(g->graph, x, draw_other(g, x));
        bel_shape made = bel_value_shape(parts[i]);
        if (!bel_shape_equal(&made, &shape)) parts[i] = x;
        for (int l = 0; l < layers; l++) {
            bel_value *c = draw_constant(g, draw(g, 2) == 0 ? &one : &row);
            switch (kinds[l]) {
            case 0: parts[i] = bel_sub(g->graph, parts[i], c); break;
            case 1: parts[i] = bel_div(g->graph, parts[i], c); break;
            case 2: parts[i] = bel_mul(g->graph, c, parts[i]); break;
            case 3: parts[i] = bel_sub(g->graph, c, parts[i]); break;
            case 4: parts[i] = bel_pow(g->graph, parts[i], c); break;
            default: parts[i] = unary(g, kinds[l] * 2, parts[i]); break;
            }
        }
    }
    put(g, bel_concat(g->graph, parts, count, axis));
}

static void step_reduce(random_graph *g)
{
    static bel_value *(*const functions[])(bel_graph *, bel_value *, const int64_t *, int, bool) = {
        bel_reduce_sum, bel_reduce_mean, bel_reduce_max, bel_reduce_l2, bel_reduce_sum_square};
    bel_value *x = draw_value(g);
    bel_shape shape = bel_value_shape(x);
    if (bel_shape_elements(&shape) == 0) return;
    int64_t axis = shape.rank > 0 ? draw(g, shape.rank) : 0;
    bool all = shape.rank == 0 || draw(g, 3) == 0;
    put(g, functions[draw(g, 5)](g->graph, x, &axis, all ? 0 : 1, draw(g, 2) == 0));
}

static void step_product(random_graph *g)
{
    bel_value *x = draw_value(g);
    bel_shape shape = bel_value_shape(x);
    if (shape.rank < 2) return;
    bel_shape square = BEL_SHAPE(shape.dims[shape.rank - 1], 1 + draw(g, 5));
    if (!fits(&square)) return;
    bel_value *w = draw(g, 2) == 0 ? draw_constant(g, &square) : NULL;
    char name[32];
    snprintf(name, sizeof name, "w%lld_%lld", (long long)square.dims[0], (long long)square.dims[1]);
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    if (w == NULL && square.dims[0] > 0)
        w = bel_variable(g->graph, name, &square, zeros, BEL_VARIABLE_TRAINABLE);
    if (w == NULL) return;
    bel_value *product = bel_matmul(g->graph, x, draw(g, 3) == 0 ? bel_neg(g->graph, w) : w);
    put(g, draw(g, 2) == 0 ? bel_relu(g->graph, product) : product);
}

static void step_odd(random_graph *g)
{
    bel_value *x = draw_value(g), *y = draw_other(g, x), *z, *halves[2];
    bel_shape shape = bel_value_shape(x);
    int64_t axis = shape.rank > 0 ? draw(g, shape.rank) : 0;
    bool some = shape.rank > 0 && bel_shape_elements(&shape) > 0;
    int64_t rows[] = {0, 0};
    bel_tensor indices = {BEL_DTYPE_I64, BEL_SHAPE(2), rows};
    switch (draw(g, 10)) {
    case 0: put(g, bel_where(g->graph, bel_greater(g->graph, x, y), x, y)); break;
    case 1:
        z = bel_cast(g->graph, x, draw(g, 2) == 0 ? BEL_DTYPE_F64 : BEL_DTYPE_F32);
        z = bel_mul(g->graph, z, bel_scalar(g->graph, bel_value_dtype(z), 1));
        put(g, bel_cast(g->graph, z, BEL_DTYPE_F32));
        break;
    case 2: put(g, bel_dropout(g->graph, x, 0.3)); break;
    case 3:
        if (some) put(g, bel_softmax(g->graph, x));
        break;
    case 4:
        if (some) put(g, bel_log_softmax(g->graph, x));
        break;
    case 5:
        if (some) put(g, bel_cum_sum(g->graph, x, axis, false, false));
        break;
    case 6:
        if (some) put(g, bel_gather_axis(g->graph, x, bel_constant(g->graph, &indices), axis));
        break;
    case 7:
        if (some) put(g, bel_top_k(g->graph, x, 1, axis, true, NULL));
        break;
    case 8:
        if (!some || shape.dims[axis] < 2) break;
        bel_split(g->graph, x, axis, NULL, 2, halves);
        put(g, halves[0]);
        put(g, halves[1]);
        break;
    default: put(g, draw_constant(g, &shape)); break;
    }
}

static void step_image(random_graph *g)
{
    bel_value *x = draw_value(g);
    bel_shape shape = bel_value_shape(x);
    int64_t kernel[] = {2, 2};
    char name[32];
    snprintf(name, sizeof name, "image%d", (int)g->graph->node_count);
    if (shape.rank != 4 || shape.dims[2] < 2 || shape.dims[3] < 2 || shape.dims[1] < 1 ||
        shape.dims[0] < 1)
        return;
    switch (draw(g, 4)) {
    case 0: put(g, bel_conv_2d(g->graph, x, 1 + draw(g, 9), 3, 1, true, name)); break;
    case 1: put(g, bel_max_pool(g->graph, x, kernel, NULL, false)); break;
    case 2: put(g, bel_average_pool(g->graph, x, kernel, NULL, false, false)); break;
    default: put(g, bel_batch_norm(g->graph, x, draw(g, 2) == 0, name)); break;
    }
}

// Starts a graph with inputs x [3, 4], y [4], images [2, 3, 5, 5] and variables v [4], u [3, 4].
static void random_graph_start(random_graph *g, uint64_t seed)
{
    bel_shape matrix = BEL_SHAPE(3, 4), row = BEL_SHAPE(4), images = BEL_SHAPE(2, 3, 5, 5);
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    *g = (random_graph){.graph = bel_graph_create(), .key = bel_rng_key_make(seed, "graphs", 0)};
    put(g, bel_input_value(g->graph, "images", BEL_DTYPE_F32, &images));
    put(g, bel_input_value(g->graph, "y", BEL_DTYPE_F32, &row));
    put(g, bel_variable(g->graph, "v", &row, zeros, BEL_VARIABLE_TRAINABLE));
    put(g, bel_variable(g->graph, "u", &matrix, zeros, BEL_VARIABLE_TRAINABLE));
    put(g, bel_input_value(g->graph, "x", BEL_DTYPE_F32, &matrix));
}

static void random_graph_grow(random_graph *g)
{
    static void (*const steps[])(random_graph *) = {
        step_binary, step_binary, step_binary, step_unary,   step_unary, step_shape,
        step_part,   step_concat, step_reduce, step_product, step_odd,   step_image};
    int count = 3 + (int)draw(g, 20);
    for (int i = 0; i < count && g->graph->error_code == BEL_OK; i++)
        steps[draw(g, 12)](g);
    // Computes the same value twice, so that passes can share it.
    bel_value *x = draw_value(g);
    if (draw(g, 2) == 0) put(g, bel_add(g->graph, bel_tanh(g->graph, x), bel_tanh(g->graph, x)));
}

#endif
