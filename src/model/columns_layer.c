// Layer that makes numbers of a table's record, so that a model need not know the kinds of columns.
// All ids of a model are in one table: their hashes include their columns, so rows do not collide.
// The order of the parts, x, ids, lists, is that of the weights in checkpoints.
#include "belfry/columns.h"

static bel_value *flat(bel_graph *g, bel_value *rows, int64_t width)
{
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, bel_value_shape(rows).dims[1] * width);
    return bel_reshape(g, rows, &shape);
}

bel_value *bel_columns_layer(bel_model_context *context, int64_t width)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer small = {.kind = BEL_INIT_NORMAL, .value = 0.05};
    bel_value *parts[3];
    int count = 0;
    if (bel_context_has_feature(context, "x")) parts[count++] = bel_context_feature(context, "x");
    if (bel_context_has_feature(context, BEL_ID_FIELD)) {
        bel_value *ids = bel_context_feature(context, BEL_ID_FIELD);
        parts[count++] = flat(g, bel_embedding(g, "columns", ids, width, small), width);
    }
    if (bel_context_has_feature(context, BEL_ID_LIST_FIELD)) {
        bel_value *ids = bel_context_feature(context, BEL_ID_LIST_FIELD);
        bel_value *rows =
            bel_embedding_bag(g, "columns", ids, NULL, width, small, BEL_COMBINE_MEAN);
        parts[count++] = flat(g, rows, width);
    }
    if (count == 0) return bel_context_feature(context, "x"); // reports the missing feature
    return count == 1 ? parts[0] : bel_concat(g, parts, count, 1);
}
