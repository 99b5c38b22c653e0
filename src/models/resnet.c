// Model "resnet": a residual network for small images (He et al. 2015, "Deep residual learning for
// image recognition", section 4.2; 6 · blocks + 2 layers).
//
//   x [n, c, h, w] ── conv 3×3, norm, relu ── 3 stages of `blocks` blocks, with width, 2 · width
//   and 4 · width filters; the 2nd and 3rd stage halve the image ── mean over the image ── dense
//   "logits"
//
//   block: x ── conv "a", norm, relu ── conv "b", norm ── + ── relu
//          └────────── where shapes differ: conv "short", norm ──────┘
//
// Loss: mean softmax cross-entropy. Metric: accuracy. The moving statistics of the norms are state
// (bel_batch_norm). Parameters: image_shape (see bel_part_images), blocks (3), width (16),
// batch_norm ("local", "merged" or "sync": bel_batch_statistics), class_count (10), and those of
// the optimizer (bel_context_optimizer).
#include "models/parts.h"

#include <stdio.h>
#include <string.h>

typedef struct layers {
    bel_graph *graph;
    bool training;
    bel_batch_statistics statistics;
} layers;

static bel_batch_statistics statistics_of(bel_model_context *context)
{
    static const char *const names[] = {"local", "merged", "sync"};
    const char *wanted = bel_context_param(context, "batch_norm", names[0]);
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(names[i], wanted) == 0) return (bel_batch_statistics)i;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter batch_norm must be local, merged or sync, got \"%s\"", wanted);
    return BEL_STATISTICS_LOCAL;
}

static bel_value *conv_norm(const layers *l, bel_value *x, int64_t filters, int64_t size,
                            int64_t stride, const char *name)
{
    bel_value *y = bel_conv_2d(l->graph, x, filters, size, stride, false, name);
    const bel_batch_norm_options options = {
        .size = sizeof options, .training = l->training, .name = name, .statistics = l->statistics};
    return bel_batch_norm_with(l->graph, y, &options);
}

static bel_value *block(const layers *l, bel_value *x, int64_t filters, int64_t stride)
{
    bel_graph *g = l->graph;
    bel_value *y = bel_relu(g, conv_norm(l, x, filters, 3, stride, "a"));
    y = conv_norm(l, y, filters, 3, 1, "b");
    bool same = stride == 1 && bel_value_shape(x).dims[1] == filters;
    return bel_relu(g, bel_add(g, y, same ? x : conv_norm(l, x, filters, 1, stride, "short")));
}

bel_status *bel_resnet_model(bel_model_context *context, bel_estimator_spec *spec)
{
    layers l = {bel_context_graph(context), bel_context_mode(context) == BEL_MODE_TRAIN,
                statistics_of(context)};
    int64_t blocks = bel_part_whole(context, "blocks", 3, 1, 100);
    int64_t width = bel_part_whole(context, "width", 16, 1, 1 << 14);
    bel_value *h = bel_relu(l.graph, conv_norm(&l, bel_part_images(context), width, 3, 1, "first"));
    for (int stage = 0; stage < 3; stage++) {
        for (int b = 0; b < blocks; b++) {
            char name[32];
            snprintf(name, sizeof name, "block_%d_%d", stage, b);
            bel_graph_push_scope(l.graph, name);
            h = block(&l, h, width << stage, stage > 0 && b == 0 ? 2 : 1);
            bel_graph_pop_scope(l.graph);
        }
    }
    int64_t outputs = bel_part_outputs(context);
    bel_value *means = bel_flatten(l.graph, bel_global_average_pool(l.graph, h), 1),
              *penalty = NULL;
    bel_part_finish(context, spec, bel_part_dense(context, means, outputs, "logits", &penalty),
                    penalty);
    return NULL;
}
