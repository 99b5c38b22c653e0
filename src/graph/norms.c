// Normalisations, and layers with variables for them. The moving mean and variance of
// bel_batch_norm are state variables of kind STATE_MEAN: in training each replica assigns what
// it computed and the job takes the mean over replicas, so they do not depend on who plays which
// replica; in evaluation and prediction they are read only. The layers' epsilon and momentum are
// fixed here: other numbers are other bits for every model that has such a layer.
#include "belfry/ops.h"
#include "graph/attrs.h"

bel_value *bel_batch_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                   bel_value *bias, bel_value *mean, bel_value *variance,
                                   double epsilon, double momentum, bool training,
                                   bel_value **out_mean, bel_value **out_variance)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "epsilon", epsilon);
    bel_attr_put(&attrs, "momentum", momentum);
    bel_attr_put(&attrs, "training_mode", training);
    bel_value *inputs[] = {x, scale, bias, mean, variance};
    bel_value *y = bel_graph_add(graph, BEL_OP_BATCH_NORM, &attrs, inputs, 5);
    if (out_mean != NULL) *out_mean = y == NULL ? NULL : bel_graph_output(y, 1);
    if (out_variance != NULL) *out_variance = y == NULL ? NULL : bel_graph_output(y, 2);
    return y;
}

bel_value *bel_layer_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                   bel_value *bias, int64_t axis, double epsilon)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_attr_put(&attrs, "epsilon", epsilon);
    bel_value *inputs[] = {x, scale, bias};
    return bel_graph_add(graph, BEL_OP_LAYER_NORM, &attrs, inputs, bias == NULL ? 2 : 3);
}

bel_value *bel_instance_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                      bel_value *bias, double epsilon)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "epsilon", epsilon);
    bel_value *inputs[] = {x, scale, bias};
    return bel_graph_add(graph, BEL_OP_INSTANCE_NORM, &attrs, inputs, 3);
}

bel_value *bel_group_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                   bel_value *bias, int64_t groups, double epsilon)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "num_groups", (double)groups);
    bel_attr_put(&attrs, "epsilon", epsilon);
    bel_value *inputs[] = {x, scale, bias};
    return bel_graph_add(graph, BEL_OP_GROUP_NORM, &attrs, inputs, 3);
}

// --- Layers --------------------------------------------------------------------------------------

static const double epsilon = 1e-5;

static bel_value *vector(bel_graph *graph, const char *name, int64_t size, double start,
                         bel_variable_kind kind)
{
    bel_initializer initializer = {.kind = BEL_INIT_CONSTANT, .value = start};
    bel_shape shape = BEL_SHAPE(size);
    return bel_variable(graph, name, &shape, initializer, kind);
}

bel_value *bel_batch_norm(bel_graph *graph, bel_value *x, bool training, const char *name)
{
    bel_shape shape = bel_value_shape(x);
    int64_t channels = shape.rank > 1 ? shape.dims[1] : 0;
    if (x == NULL) return NULL;
    bel_graph_push_scope(graph, name);
    bel_value *scale = vector(graph, "scale", channels, 1, BEL_VARIABLE_TRAINABLE);
    bel_value *bias = vector(graph, "bias", channels, 0, BEL_VARIABLE_TRAINABLE);
    bel_value *mean = vector(graph, "mean", channels, 0, BEL_VARIABLE_STATE_MEAN);
    bel_value *variance = vector(graph, "variance", channels, 1, BEL_VARIABLE_STATE_MEAN);
    bel_value *new_mean, *new_variance;
    bel_value *y = bel_batch_normalization(graph, x, scale, bias, mean, variance, epsilon, 0.9,
                                           training, &new_mean, &new_variance);
    if (training) {
        bel_assign_state(graph, mean, new_mean);
        bel_assign_state(graph, variance, new_variance);
    }
    bel_graph_pop_scope(graph);
    return y;
}

bel_value *bel_layer_norm(bel_graph *graph, bel_value *x, const char *name)
{
    bel_shape shape = bel_value_shape(x);
    int64_t size = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    if (x == NULL) return NULL;
    bel_graph_push_scope(graph, name);
    bel_value *scale = vector(graph, "scale", size, 1, BEL_VARIABLE_TRAINABLE);
    bel_value *bias = vector(graph, "bias", size, 0, BEL_VARIABLE_TRAINABLE);
    bel_value *y = bel_layer_normalization(graph, x, scale, bias, -1, epsilon);
    bel_graph_pop_scope(graph);
    return y;
}

bel_value *bel_group_norm(bel_graph *graph, bel_value *x, int64_t groups, const char *name)
{
    bel_shape shape = bel_value_shape(x);
    int64_t channels = shape.rank > 1 ? shape.dims[1] : 0;
    if (x == NULL) return NULL;
    bel_graph_push_scope(graph, name);
    bel_value *scale = vector(graph, "scale", channels, 1, BEL_VARIABLE_TRAINABLE);
    bel_value *bias = vector(graph, "bias", channels, 0, BEL_VARIABLE_TRAINABLE);
    bel_value *y = bel_group_normalization(graph, x, scale, bias, groups, epsilon);
    bel_graph_pop_scope(graph);
    return y;
}
