/// Custom model: a classifier with a residual block, in a shared object that `belfry` loads.
///
/// ```
/// x [n, in] ── dense "entry", relu ──> h ──┬── dense "block/a", relu, dense "block/b" ──┐
///                                          └────────────────────────────────────────────(+)── relu
/// ── dense "logits" ──> [n, classes] ── softmax ──> predictions
/// ```
///
/// This code checks no errors: the first failing call sticks to the graph, later calls do nothing,
/// and the trainer reports it with the name of the operation.
#include <belfry/belfry.h>

/// h [n, units] -> relu(h + dense(relu(dense(h)))), the same shape.
static bel_value *residual_block(bel_graph *g, bel_value *h, int64_t units, const char *name)
{
    bel_graph_push_scope(g, name);
    bel_value *a = bel_relu(g, bel_dense(g, h, units, "a"));
    bel_value *b = bel_dense(g, a, units, "b");
    bel_graph_pop_scope(g);
    return bel_relu(g, bel_add(g, h, b));
}

static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);

    // Parameters: `--param units=64` on the command line. Flags such as --learning_rate and
    // --class_count are parameters too, if they are given; these are the values otherwise.
    int64_t units = (int64_t)bel_context_param_number(context, "units", 32);
    int64_t classes = (int64_t)bel_context_param_number(context, "class_count", 10);
    double rate = bel_context_param_number(context, "learning_rate", 0.01);
    if (units < 1 || classes < 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected units >= 1 and class_count >= 2");
    }

    bel_value *x = bel_context_only_feature(context);
    bel_value *h = bel_relu(g, bel_dense(g, x, units, "entry"));
    h = residual_block(g, h, units, "block");
    bel_value *logits = bel_dense(g, h, classes, "logits");
    bel_predictions_set(spec, bel_softmax(g, logits));

    // In PREDICT there are no labels, and neither loss nor metrics are needed.
    bel_value *labels = bel_context_labels(context);
    if (labels != NULL) {
        bel_value *losses = bel_softmax_cross_entropy(g, logits, labels); // [n]
        bel_loss_set(spec, bel_mean(g, losses));
        bel_metric_accuracy(context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
    }
    const bel_optimizer adam = {
        .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = rate};
    bel_optimizer_use(spec, NULL, &adam);
    return NULL;
}

BEL_PACKAGE(.name = "my_model", .description = "a residual classifier", .model_fn = model_fn)
