// Normalizations, and layers with variables for them. The moving mean and variance of
// bel_batch_norm are state variables of kind STATE_MEAN. In training each replica assigns its
// result and the job takes the mean over replicas, so they do not depend on the placement of
// replicas; in evaluation and prediction they are only read. Exchanged values are the same in all
// replicas, and so is their mean, except for rounding unless there are 2, 4, 8 … replicas with
// equally many examples. The layers' default epsilon and momentum are fixed here: other numbers
// change the bits of every model with such a layer.
#include <string.h>

#include "base/sized.h"
#include "belfry/collective.h"
#include "belfry/ops.h"
#include "graph/attrs.h"
#include "graph/graph.h"
#include "tensor/moments.h"

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

// A batch normalization during construction: its settings and variables.
typedef struct batch_norm {
    bel_graph *graph;
    bel_batch_norm_options options;
    bel_value *scale, *bias, *mean, *variance;
} batch_norm;

static bool read_options(bel_graph *graph, const bel_batch_norm_options *given,
                         bel_batch_norm_options *out)
{
    bel_status *status = bel_sized_take(out, sizeof *out, given, "bel_batch_norm_options");
    if (!bel_graph_ok(graph, status)) return false;
    if (out->momentum == 0) out->momentum = 0.9;
    if (out->epsilon == 0) out->epsilon = epsilon;
    const char *wrong = NULL;
    if (!(out->momentum > 0 && out->momentum <= 1)) wrong = "momentum above 0 and at most 1";
    if (!(out->epsilon > 0)) wrong = "epsilon above 0";
    if ((unsigned)out->statistics > BEL_STATISTICS_SYNC) wrong = "valid statistics";
    if (out->name == NULL) wrong = "a name";
    if (wrong == NULL) return true;
    bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "batch norm \"%s\": expected %s",
                   out->name == NULL ? "" : out->name, wrong);
    return false;
}

// Normalizes by this replica's batch only, or by the moving statistics.
static bel_value *norm_alone(const batch_norm *b, bel_value *x)
{
    bel_value *new_mean, *new_variance;
    bel_value *y = bel_batch_normalization(b->graph, x, b->scale, b->bias, b->mean, b->variance,
                                           b->options.epsilon, b->options.momentum,
                                           b->options.training, &new_mean, &new_variance);
    if (b->options.training) {
        bel_assign_state(b->graph, b->mean, new_mean);
        bel_assign_state(b->graph, b->variance, new_variance);
    }
    return y;
}

// Normalizes by moments that replicas exchanged; the moving statistics use these in any case.
static bel_value *norm_together(const batch_norm *b, bel_value *x, const char *file, int line)
{
    bel_graph *graph = b->graph;
    const bel_batch_norm_options *o = &b->options;
    bel_attr_list attrs = {.count = 0};
    if (o->sum_formula) bel_attr_put(&attrs, "by_sums", 1);
    bel_value *own = bel_graph_add(graph, BEL_OP_BATCH_MOMENTS, &attrs, &x, 1);
    if (own == NULL) return NULL;
    bel_collective what = {.op = BEL_OP_ALL_REDUCE, .reduce = BEL_REDUCE_SUM};
    if (!o->sum_formula) what.reduce = (bel_reduce_op)BEL_REDUCE_MOMENTS;
    bel_value *all = bel_graph_add_collective(graph, what, own, file, line);
    if (all == NULL) return NULL;
    bel_attr_list move = attrs;
    bel_attr_put(&move, "momentum", o->momentum);
    bel_value *moved = bel_graph_add(graph, BEL_OP_MOMENTS_MOVE, &move,
                                     (bel_value *[]){b->mean, b->variance, all}, 3);
    if (moved == NULL) return NULL;
    bel_assign_state(graph, b->mean, moved);
    bel_assign_state(graph, b->variance, bel_graph_output(moved, 1));
    bel_attr_put(&attrs, "epsilon", o->epsilon);
    bool sync = o->statistics == BEL_STATISTICS_SYNC;
    int exchange = bel_collective_read(BEL_OP_ALL_REDUCE, &all->node->attrs).index;
    if (sync) bel_attr_put(&attrs, "exchange", exchange);
    bel_value *inputs[] = {x, b->scale, b->bias, sync ? all : own};
    return bel_graph_add(graph, BEL_OP_MOMENTS_NORM, &attrs, inputs, 4);
}

bel_value *bel_batch_norm_at(bel_graph *graph, bel_value *x, const bel_batch_norm_options *options,
                             const char *file, int line)
{
    batch_norm b = {.graph = graph};
    bel_shape shape = bel_value_shape(x);
    int64_t channels = shape.rank > 1 ? shape.dims[1] : 0;
    if (x == NULL || !read_options(graph, options, &b.options)) return NULL;
    bel_graph_push_scope(graph, b.options.name);
    b.scale = vector(graph, "scale", channels, 1, BEL_VARIABLE_TRAINABLE);
    b.bias = vector(graph, "bias", channels, 0, BEL_VARIABLE_TRAINABLE);
    b.mean = vector(graph, "mean", channels, 0, BEL_VARIABLE_STATE_MEAN);
    b.variance = vector(graph, "variance", channels, 1, BEL_VARIABLE_STATE_MEAN);
    bool together = b.options.training && b.options.statistics != BEL_STATISTICS_LOCAL &&
                    bel_replica_count(graph) > 1;
    bel_value *y = together ? norm_together(&b, x, file, line) : norm_alone(&b, x);
    bel_graph_pop_scope(graph);
    return y;
}

bel_value *bel_batch_norm(bel_graph *graph, bel_value *x, bool training, const char *name)
{
    const bel_batch_norm_options options = {
        .size = sizeof options, .training = training, .name = name};
    return bel_batch_norm_with(graph, x, &options);
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
