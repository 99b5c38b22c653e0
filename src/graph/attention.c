// Attention in its two forms, and the multi-head layer. Only shapes, lengths and causality select
// the form, never threads or the processor, because the two round differently. The limits were
// measured (bench/README.md). In both forms elements hidden by lengths have no effect, even if they
// are NaN: the composed one clears keys and values first, since 0 times NaN is NaN, and the layer
// clears its inputs and, in self-attention, its result. The layer makes its variables in the order
// query, key, value, output, which is their order in the graph.
#include "graph/attention.h"

#include <math.h>

#include "base/number.h"
#include "graph/attrs.h"
#include "ops/kernels/attention.h"

bel_value *bel_sequence_mask(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t axis)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_value *inputs[] = {x, lengths};
    return bel_graph_add(graph, BEL_OP_SEQUENCE_MASK, &attrs, inputs, 2);
}

bel_value *bel_masked_softmax(bel_graph *graph, bel_value *x, bel_value *mask, bel_value *lengths,
                              bool causal)
{
    bel_attr_list attrs = {.count = 0};
    bel_value *inputs[3] = {x};
    int count = 1;
    if (mask != NULL) inputs[count++] = mask;
    if (lengths != NULL) inputs[count++] = lengths;
    bel_attr_put(&attrs, "causal", causal);
    return bel_graph_add(graph, BEL_OP_MASKED_SOFTMAX, &attrs, inputs, count);
}

bel_value *bel_attention_fused(bel_graph *graph, bel_value *query, bel_value *key, bel_value *value,
                               bel_value *lengths, bool causal, double scale)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "causal", causal);
    if (scale > 0) bel_attr_put(&attrs, "scale", scale);
    bel_value *inputs[] = {query, key, value, lengths};
    return bel_graph_add(graph, BEL_OP_ATTENTION, &attrs, inputs, lengths != NULL ? 4 : 3);
}

bel_value *bel_attention_composed(bel_graph *graph, bel_value *query, bel_value *key,
                                  bel_value *value, bel_value *mask, bel_value *lengths,
                                  bool causal, double scale)
{
    if (lengths != NULL) { // else a hidden NaN, times 0, would be NaN
        key = bel_sequence_mask(graph, key, lengths, 2);
        value = bel_sequence_mask(graph, value, lengths, 2);
    }
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "transB", 1);
    bel_attr_put(&attrs, "alpha",
                 scale > 0 ? scale : 1 / sqrt((double)bel_value_shape(query).dims[3]));
    bel_value *inputs[] = {query, key};
    bel_value *scores = bel_graph_add(graph, BEL_OP_MATMUL, &attrs, inputs, 2);
    bel_value *weights = mask != NULL || lengths != NULL || causal
                             ? bel_masked_softmax(graph, scores, mask, lengths, causal)
                             : bel_softmax(graph, scores);
    return bel_matmul(graph, weights, value);
}

static bool is_stack(const bel_value *value)
{
    return bel_value_shape(value).rank == 4;
}

// Returns true if all are stacks of the same number of matrices; the composed form also broadcasts.
static bool have_one_stack(const bel_value *query, const bel_value *key, const bel_value *value)
{
    bel_shape q = bel_value_shape(query), k = bel_value_shape(key), v = bel_value_shape(value);
    return q.dims[0] == k.dims[0] && q.dims[0] == v.dims[0] && q.dims[1] == k.dims[1] &&
           q.dims[1] == v.dims[1];
}

// Returns true for the fused operation. It skips keys hidden by lengths or causality and keeps no
// scores, but computes them twice. It therefore pays with lengths, from 64 keys on if it is causal,
// and otherwise from 256 keys on (bench/README.md); an open number of keys is assumed to be large.
// This holds on processors, and with exact arithmetic on GPUs: with fast arithmetic GPUs also
// multiply hidden keys.
static bool is_fused(const bel_value *query, const bel_value *key, const bel_value *value,
                     const bel_value *mask, const bel_value *lengths, bool causal)
{
    int64_t d = bel_value_shape(query).dims[3];
    int64_t s = bel_value_shape(value).dims[2], e = bel_value_shape(value).dims[3];
    if (mask != NULL || !have_one_stack(query, key, value)) return false;
    if (d > BEL_ATTENTION_MOST_WIDTH || e > BEL_ATTENTION_MOST_WIDTH) return false;
    return lengths != NULL || s < 0 || s >= (causal ? 64 : 256);
}

bel_value *bel_attention(bel_graph *graph, bel_value *query, bel_value *key, bel_value *value,
                         bel_value *mask, bel_value *lengths, bool causal, double scale)
{
    if (query == NULL || key == NULL || value == NULL) return NULL;
    if (!is_stack(query) || !is_stack(key) || !is_stack(value) ||
        bel_value_shape(query).dims[3] < 1) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sattention: expected query, key and value [n, heads, t, d], got ranks %d, "
                       "%d and %d",
                       graph->scope, (int)bel_value_shape(query).rank,
                       (int)bel_value_shape(key).rank, (int)bel_value_shape(value).rank);
        return NULL;
    }
    return is_fused(query, key, value, mask, lengths, causal)
               ? bel_attention_fused(graph, query, key, value, lengths, causal, scale)
               : bel_attention_composed(graph, query, key, value, mask, lengths, causal, scale);
}

// --- One more token ------------------------------------------------------------------------------

// Weight of a token's own value beside those of kept ones. L, the fused operation's second output,
// is the logarithm of the sum of powers over the kept keys. With s the score of the own key, the
// weight is e^s / (e^L + e^s); without kept keys it is 1.
static bel_value *own_weight(bel_graph *graph, bel_value *score, bel_value *sums,
                             bel_value *lengths)
{
    const bel_dtype dtype = bel_value_dtype(score);
    const bel_shape one = BEL_SHAPE(-1, 1, 1, 1);
    bel_value *weight = bel_sigmoid(graph, bel_sub(graph, score, sums));
    bel_value *count = bel_cast(graph, bel_reshape(graph, lengths, &one), dtype);
    bel_value *some = bel_greater(graph, count, bel_scalar(graph, dtype, 0));
    return bel_where(graph, some, weight, bel_scalar(graph, dtype, 1));
}

static bool may_equal(int64_t a, int64_t b)
{
    return a == b || a < 0 || b < 0; // negative: known when the step runs
}

// Checks a token's key or value [n, kv_heads, 1, width]. Other shapes would broadcast.
static bool check_own(bel_graph *graph, const char *name, const bel_value *own, int64_t n,
                      int64_t kv_heads, int64_t width)
{
    bel_shape shape = bel_value_shape(own), wanted = BEL_SHAPE(n, kv_heads, 1, width);
    bool fits = shape.rank == 4;
    for (int i = 0; i < 4 && fits; i++)
        fits = i == 0 ? may_equal(shape.dims[0], n) : shape.dims[i] == wanted.dims[i];
    if (fits) return true;
    char got[BEL_SHAPE_TEXT], expected[BEL_SHAPE_TEXT];
    bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                   "%sattention_step: expected %s [n, kv_heads, 1, width] of shape %s, got %s",
                   graph->scope, name, bel_shape_text(&wanted, expected),
                   bel_shape_text(&shape, got));
    return false;
}

// Heads that share keys are the queries of one head.
bel_value *bel_attention_step(bel_graph *graph, bel_value *query, bel_value *keys,
                              bel_value *values, bel_value *lengths, bel_value *own_key,
                              bel_value *own_value, double scale)
{
    bel_shape q = bel_value_shape(query), k = bel_value_shape(keys), v = bel_value_shape(values);
    if (query == NULL || keys == NULL || values == NULL || lengths == NULL) return NULL;
    if (own_key == NULL || own_value == NULL) return NULL;
    bool fits = q.rank == 4 && k.rank == 4 && v.rank == 4 && q.dims[2] == 1 && q.dims[3] > 0 &&
                k.dims[1] > 0 && q.dims[1] % k.dims[1] == 0;
    if (!fits) {
        char qt[BEL_SHAPE_TEXT], kt[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sattention_step: expected a query [n, heads, 1, d] and keys [n, kv_heads, "
                       "s, d], where kv_heads divides heads, got %s and %s",
                       graph->scope, bel_shape_text(&q, qt), bel_shape_text(&k, kt));
        return NULL;
    }
    if (!check_own(graph, "own_key", own_key, q.dims[0], k.dims[1], q.dims[3]) ||
        !check_own(graph, "own_value", own_value, q.dims[0], k.dims[1], v.dims[3]))
        return NULL;
    const int64_t last = -1, swap[] = {0, 1, 3, 2};
    const bel_shape grouped = BEL_SHAPE(-1, k.dims[1], q.dims[1] / k.dims[1], q.dims[3]);
    const bel_shape result = BEL_SHAPE(-1, q.dims[1], 1, v.dims[3]);
    const double factor = scale > 0 ? scale : 1 / sqrt((double)q.dims[3]);
    bel_value *x = bel_reshape(graph, query, &grouped);
    bel_value *kept = bel_attention_fused(graph, x, keys, values, lengths, false, factor);
    if (kept == NULL) return NULL;
    bel_value *score = bel_matmul(graph, x, bel_transpose(graph, own_key, swap));
    score = bel_mul(graph, score, bel_scalar(graph, bel_value_dtype(query), factor));
    bel_value *sums = bel_unsqueeze(graph, kept->node->outputs[1], &last, 1);
    bel_value *weight = own_weight(graph, score, sums, lengths);
    bel_value *y = bel_add(graph, kept, bel_mul(graph, weight, bel_sub(graph, own_value, kept)));
    return bel_reshape(graph, y, &result);
}

// --- Layer ---------------------------------------------------------------------------------------

static const int64_t swap_heads[] = {0, 2, 1, 3}; // [n, t, heads, d] and [n, heads, t, d]

static bel_value *attention_variable(bel_graph *graph, const char *part, const char *what,
                                     const bel_shape *shape, bel_init_kind kind)
{
    char name[32];
    bel_snprintf(name, sizeof name, "%s_%s", part, what);
    return bel_variable(graph, name, shape, (bel_initializer){.kind = kind},
                        BEL_VARIABLE_TRAINABLE);
}

// x [n, t, in] · name_kernel [in, width] + name_bias [width].
static bel_value *project(bel_graph *graph, bel_value *x, int64_t width, const char *name)
{
    bel_shape kernel = BEL_SHAPE(bel_value_shape(x).dims[2], width), bias = BEL_SHAPE(width);
    bel_value *k = attention_variable(graph, name, "kernel", &kernel, BEL_INIT_GLOROT_UNIFORM);
    bel_value *b = attention_variable(graph, name, "bias", &bias, BEL_INIT_ZEROS);
    return bel_add(graph, bel_matmul(graph, x, k), b);
}

static bel_value *project_heads(bel_graph *graph, bel_value *x, int64_t width, int64_t heads,
                                const char *name)
{
    bel_shape split = BEL_SHAPE(0, 0, heads, width / heads);
    bel_value *y = bel_reshape(graph, project(graph, x, width, name), &split);
    return bel_transpose(graph, y, swap_heads);
}

bel_value *bel_multi_head_attention(bel_graph *graph, bel_value *query, bel_value *context,
                                    bel_value *lengths, int64_t heads, bool causal,
                                    const char *name)
{
    bool self = context == NULL;
    if (self) context = query;
    bel_shape q = bel_value_shape(query), c = bel_value_shape(context);
    if (query == NULL) return NULL;
    int64_t width = q.rank == 3 ? q.dims[2] : 0;
    if (width < 1 || c.rank != 3 || c.dims[2] < 1 || heads < 1 || width % heads != 0) {
        char qt[BEL_SHAPE_TEXT], ct[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "attention layer \"%s\" needs inputs [n, t, width] and a number of heads "
                       "that divides the width, got %s, %s and %lld heads",
                       name, bel_shape_text(&q, qt), bel_shape_text(&c, ct), (long long)heads);
        return NULL;
    }
    bel_graph_push_scope(graph, name);
    if (lengths != NULL) context = bel_sequence_mask(graph, context, lengths, 1);
    if (self) query = context;
    bel_value *heads_of[3]; // in this order, the order of the variables
    heads_of[0] = project_heads(graph, query, width, heads, "query");
    heads_of[1] = project_heads(graph, context, width, heads, "key");
    heads_of[2] = project_heads(graph, context, width, heads, "value");
    bel_value *y =
        bel_attention(graph, heads_of[0], heads_of[1], heads_of[2], NULL, lengths, causal, 0);
    bel_shape joined = BEL_SHAPE(0, 0, width);
    y = bel_reshape(graph, bel_transpose(graph, y, swap_heads), &joined);
    y = project(graph, y, width, "output");
    if (self && lengths != NULL) y = bel_sequence_mask(graph, y, lengths, 1);
    bel_graph_pop_scope(graph);
    return y;
}
