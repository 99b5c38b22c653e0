// Model "wide_deep" (Cheng et al. 2016): a classifier of ids and, if there are any, numbers.
//
//   ids [n, f] ─ rows of table "wide" [n, f, classes], summed over f ─────────────┐
//   ids [n, f] ─ rows of table "deep" [n, f, width] ─┐                            │
//   x   [n, d] ──────────────────────────────────────┴ hidden layers ─ "logits" ─(+)── softmax
//
// Weights for single ids, in "wide", and what ids have in common, in "deep". An id is any int64;
// ids of different fields must differ, as those of --id_columns do. Loss, metric and predictions as
// in "dnn". Parameters: embedding_width (16), wide_optimizer ("same": one for all) and
// wide_learning_rate (0.1), and those of "dnn". Tables restrict the optimizer: sgd, adagrad, adam,
// ftrl.
#include <string.h>

#include "models/parts.h"

enum { MAX_WIDTH = 4096 };

static bel_value *ids_of(bel_model_context *context)
{
    bel_value *ids = bel_context_feature(context, BEL_ID_FIELD);
    bel_shape shape = bel_value_shape(ids);
    if (ids == NULL || (shape.rank == 2 && bel_value_dtype(ids) == BEL_DTYPE_I64)) return ids;
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "the model takes a feature \"" BEL_ID_FIELD "\" i64 [batch, fields], got %s %s",
                   bel_dtype_name(bel_value_dtype(ids)), bel_shape_text(&shape, text));
    return NULL;
}

// An optimizer of its own for table "wide", as the paper has FTRL there and AdaGrad for the rest.
static void set_wide_optimizer(bel_model_context *context, bel_estimator_spec *spec)
{
    static const struct {
        const char *name;
        bel_optimizer_kind kind;
    } kinds[] = {{"sgd", BEL_OPTIMIZER_SGD},
                 {"adagrad", BEL_OPTIMIZER_ADAGRAD},
                 {"adam", BEL_OPTIMIZER_ADAM},
                 {"ftrl", BEL_OPTIMIZER_FTRL}};
    const char *wanted = bel_context_param(context, "wide_optimizer", "same");
    double rate = bel_context_param_number(context, "wide_learning_rate", 0.1);
    if (strcmp(wanted, "same") == 0) return;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, wanted) != 0) continue;
        spec->optimizer_parts[spec->optimizer_part_count++] = (bel_optimizer_part){
            .variables = "wide", .optimizer = {.kind = kinds[i].kind, .learning_rate = rate}};
        return;
    }
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter wide_optimizer must be same, sgd, adagrad, adam or ftrl, got \"%s\"",
                   wanted);
}

bel_status *bel_wide_deep_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    const bel_initializer small = {.kind = BEL_INIT_NORMAL, .value = 0.05};
    const int64_t over_fields = 1;
    int64_t width = bel_part_whole(context, "embedding_width", 16, 1, MAX_WIDTH);
    int64_t classes = bel_part_whole(context, "class_count", 10, 2, BEL_PART_MAX_CLASSES);
    bel_value *ids = ids_of(context), *penalty = NULL;
    bel_shape flat = BEL_SHAPE(BEL_DIM_BATCH, bel_value_shape(ids).dims[1] * width);
    bel_value *rows = bel_reshape(g, bel_embedding(g, "deep", ids, width, small), &flat);
    if (bel_context_has_feature(context, "x")) {
        bel_value *parts[] = {rows, bel_context_feature(context, "x")};
        rows = bel_concat(g, parts, 2, 1);
    }
    int64_t units[BEL_PART_MAX_LAYERS];
    int layer_count = bel_part_layers(context, "hidden_units", "512,512", 1 << 20, units);
    bel_value *h = bel_part_dense_layers(context, rows, units, layer_count, &penalty);
    bel_value *deep = bel_part_dense(context, h, classes, "logits", &penalty);
    bel_value *weights = bel_embedding(g, "wide", ids, classes, zeros);
    bel_value *wide = bel_reduce_sum(g, weights, &over_fields, 1, false);
    bel_part_classify(context, spec, bel_add(g, wide, deep), penalty);
    set_wide_optimizer(context, spec);
    return NULL;
}
