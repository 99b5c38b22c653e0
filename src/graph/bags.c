// Bags of rows, made of public operations, so gradients follow automatically. A bag is the product
// of its weights [1, n] and its rows [n, width], in the ids' order. Places without an id have
// weight 0, whatever `weights` has there. Divisors of 0 are replaced before they are used: the root
// has no gradient at 0, and an unselected number must not be infinite.
#include "belfry/ops.h"
#include "graph/attrs.h"

static bel_value *bags_number(bel_graph *graph, const bel_value *like, double value)
{
    return bel_scalar(graph, bel_value_dtype(like), value);
}

static bel_value *no_id(bel_graph *graph)
{
    int64_t value = BEL_NO_ID;
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = &value};
    return bel_constant(graph, &tensor);
}

// Returns the divisor of a bag, [a…, 1]; NULL: no division.
static bel_value *divisor(bel_graph *graph, bel_value *weights, bel_combiner combiner)
{
    static const int64_t last[] = {-1};
    if (combiner == BEL_COMBINE_SUM) return NULL;
    bool squares = combiner == BEL_COMBINE_SQRTN;
    bel_value *terms = squares ? bel_mul(graph, weights, weights) : weights;
    bel_value *sum = bel_reduce_sum(graph, terms, last, 1, true);
    bel_value *none = bel_equal(graph, sum, bags_number(graph, sum, 0));
    bel_value *some = bel_where(graph, none, bags_number(graph, sum, 1), sum);
    return squares ? bel_sqrt(graph, some) : some;
}

bel_value *bel_combine_rows(bel_graph *graph, bel_value *rows, bel_value *ids, bel_value *weights,
                            bel_combiner combiner)
{
    static const int64_t before_last[] = {-2};
    if (graph->error_code != BEL_OK || rows == NULL || ids == NULL) return NULL;
    bel_shape shape = bel_value_shape(ids), expected = shape, got = bel_value_shape(rows);
    expected.rank++;
    bool fits = shape.rank >= 2 && got.rank == expected.rank && combiner >= BEL_COMBINE_SUM &&
                combiner <= BEL_COMBINE_SQRTN;
    bel_shape of_weights = weights == NULL ? shape : bel_value_shape(weights);
    if (!fits || !bel_shape_equal(&of_weights, &shape)) {
        char texts[3][BEL_SHAPE_TEXT];
        bel_graph_fail(
            graph, BEL_INVALID_ARGUMENT,
            "%sbag: expected ids [a…, n] of rank 2 or more, rows [a…, n, width], weights "
            "of the ids' shape and a bel_combiner, got ids %s, rows %s, weights %s and %d",
            graph->scope, bel_shape_text(&shape, texts[0]), bel_shape_text(&got, texts[1]),
            bel_shape_text(&of_weights, texts[2]), (int)combiner);
        return NULL;
    }
    bel_value *none = bel_equal(graph, ids, no_id(graph));
    bel_value *one = weights == NULL ? bags_number(graph, rows, 1) : weights;
    bel_value *zero = bags_number(graph, rows, 0);
    bel_value *used = bel_where(graph, none, zero, one);
    bel_value *by = divisor(graph, used, combiner);
    bel_value *as_row = bel_unsqueeze(graph, used, before_last, 1);
    bel_value *product = bel_matmul(graph, as_row, rows);
    bel_value *sum = bel_squeeze(graph, product, before_last, 1);
    return by == NULL ? sum : bel_div(graph, sum, by);
}

bel_value *bel_embedding_bag(bel_graph *graph, const char *name, bel_value *ids, bel_value *weights,
                             int64_t width, bel_initializer initializer, bel_combiner combiner)
{
    bel_value *rows = bel_embedding(graph, name, ids, width, initializer);
    return bel_combine_rows(graph, rows, ids, weights, combiner);
}

// A place without an id reads row 0, since its weight is 0.
bel_value *bel_gather_bag(bel_graph *graph, bel_value *data, bel_value *ids, bel_value *weights,
                          bel_combiner combiner)
{
    if (graph->error_code != BEL_OK || data == NULL || ids == NULL) return NULL;
    int64_t first = 0;
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = &first};
    bel_value *none = bel_equal(graph, ids, no_id(graph));
    bel_value *there = bel_where(graph, none, bel_constant(graph, &tensor), ids);
    bel_value *rows = bel_gather(graph, data, there);
    return bel_combine_rows(graph, rows, ids, weights, combiner);
}
