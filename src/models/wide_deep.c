// Model "wide_deep" (Cheng et al. 2016): a classifier of ids and, if there are any, numbers.
//
//   ids      [n, f] ──── rows of table "wide" [n, f, classes], summed over f ────────────┐
//   id_lists [n, l, m] ─ bags of them [n, l, classes], summed over l ───────────────────(+)
//   ids      [n, f] ──── rows of table "deep" [n, f, width] ─┐                           │
//   id_lists [n, l, m] ─ bags of them [n, l, width] ─────────┤                           │
//   x        [n, d] ─────────────────────────────────────────┴ hidden layers ─ "logits" ─┴─ softmax
//
// Table "wide" has weights of single ids, "deep" the features that ids share. An id is any int64.
// Ids of different fields must differ, as those of --id_columns do. A model has ids, or lists of
// them with the feature "id_weights" as weights, or both. Loss, metric and predictions are those of
// "dnn". Parameters: embedding_width (16), id_list_combiner (mean), wide_optimizer ("same": one for
// all) and wide_learning_rate (0.1), and those of "dnn". Tables restrict the optimizer: sgd,
// adagrad, adam, adamw, ftrl.
#include <string.h>

#include "models/parts.h"

enum { MAX_WIDTH = 4096 };

// Inputs of the lookups.
typedef struct looked_up {
    bel_value *ids, *lists, *weights; // NULL: absent
    bel_combiner combiner;
} looked_up;

// A feature of ids of this rank; NULL: absent.
static bel_value *ids_of(bel_model_context *context, const char *name, int32_t rank,
                         const char *expected)
{
    if (!bel_context_has_feature(context, name)) return NULL;
    bel_value *ids = bel_context_feature(context, name);
    bel_shape shape = bel_value_shape(ids);
    if (ids == NULL || (shape.rank == rank && bel_value_dtype(ids) == BEL_DTYPE_I64)) return ids;
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "the model takes a feature \"%s\" i64 %s, got %s %s", name, expected,
                   bel_dtype_name(bel_value_dtype(ids)), bel_shape_text(&shape, text));
    return NULL;
}

static bel_combiner combiner_of(bel_model_context *context)
{
    static const char *const names[] = {"sum", "mean", "sqrtn"}; // in the order of bel_combiner
    const char *name = bel_context_param(context, "id_list_combiner", "mean");
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) return (bel_combiner)i;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "id_list_combiner: expected sum, mean or sqrtn, got \"%s\"", name);
    return BEL_COMBINE_SUM;
}

static bool wants_wide_numbers(bel_model_context *context)
{
    const char *text = bel_context_param(context, "wide_numbers", "false");
    if (strcmp(text, "true") == 0) return true;
    if (strcmp(text, "false") != 0) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter wide_numbers must be true or false, got \"%s\"", text);
    }
    return false;
}

static looked_up look_for_ids(bel_model_context *context)
{
    looked_up found = {.combiner = combiner_of(context)};
    found.lists = ids_of(context, BEL_ID_LIST_FIELD, 3, "[batch, lists, ids]");
    if (bel_context_has_feature(context, BEL_ID_WEIGHT_FIELD))
        found.weights = bel_context_feature(context, BEL_ID_WEIGHT_FIELD);
    found.ids = ids_of(context, BEL_ID_FIELD, 2, "[batch, fields]");
    bool numbers = bel_context_has_feature(context, "x") && wants_wide_numbers(context);
    if (found.ids == NULL && found.lists == NULL && !numbers)
        (void)bel_context_feature(context, BEL_ID_FIELD); // reports the missing feature
    return found;
}

// Rows of a table for all ids and lists: at most two values, [n, f, width] and [n, l, width].
static int look_up(bel_graph *g, const looked_up *from, const char *table, int64_t width,
                   bel_initializer initializer, bel_value *out_rows[2])
{
    int count = 0;
    if (from->ids != NULL)
        out_rows[count++] = bel_embedding(g, table, from->ids, width, initializer);
    if (from->lists != NULL) {
        out_rows[count++] = bel_embedding_bag(g, table, from->lists, from->weights, width,
                                              initializer, from->combiner);
    }
    return count;
}

// Sets a separate optimizer for table "wide": the paper has FTRL there and AdaGrad for the rest.
static void set_wide_optimizer(bel_model_context *context, bel_estimator_spec *spec)
{
    static const struct {
        const char *name;
        bel_optimizer_kind kind;
    } kinds[] = {{"sgd", BEL_OPTIMIZER_SGD},
                 {"adagrad", BEL_OPTIMIZER_ADAGRAD},
                 {"adam", BEL_OPTIMIZER_ADAM},
                 {"adamw", BEL_OPTIMIZER_ADAMW},
                 {"ftrl", BEL_OPTIMIZER_FTRL}};
    const char *wanted = bel_context_param(context, "wide_optimizer", "same");
    double rate = bel_context_param_number(context, "wide_learning_rate", 0.1);
    if (strcmp(wanted, "same") == 0) return;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, wanted) != 0) continue;
        const bel_optimizer own = {
            .size = sizeof own, .kind = kinds[i].kind, .learning_rate = rate};
        bel_optimizer_use(spec, "wide", &own);
        return;
    }
    bel_graph_fail(
        bel_context_graph(context), BEL_INVALID_ARGUMENT,
        "parameter wide_optimizer must be same, sgd, adagrad, adam, adamw or ftrl, got \"%s\"",
        wanted);
}

bel_status *bel_wide_deep_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    const bel_initializer small = {.kind = BEL_INIT_NORMAL, .value = 0.05};
    const int64_t over_fields = 1;
    int64_t width = bel_part_whole(context, "embedding_width", 16, 1, MAX_WIDTH);
    int64_t outputs = bel_part_outputs(context);
    looked_up from = look_for_ids(context);
    bel_value *parts[3], *wide = NULL, *penalty = NULL;
    int count = look_up(g, &from, "deep", width, small, parts);
    for (int i = 0; i < count; i++) {
        bel_shape flat = BEL_SHAPE(BEL_DIM_BATCH, bel_value_shape(parts[i]).dims[1] * width);
        parts[i] = bel_reshape(g, parts[i], &flat);
    }
    if (bel_context_has_feature(context, "x")) parts[count++] = bel_context_feature(context, "x");
    bel_value *rows = count == 1 ? parts[0] : bel_concat(g, parts, count, 1);
    int64_t units[BEL_PART_MAX_LAYERS];
    int layer_count = bel_part_layers(context, "hidden_units", "512,512", 1 << 20, units);
    bel_value *h = bel_part_dense_layers(context, rows, units, layer_count, &penalty);
    bel_value *deep = bel_part_dense(context, h, outputs, "logits", &penalty);
    count = look_up(g, &from, "wide", outputs, zeros, parts);
    for (int i = 0; i < count; i++) {
        bel_value *sum = bel_reduce_sum(g, parts[i], &over_fields, 1, false);
        wide = wide == NULL ? sum : bel_add(g, wide, sum);
    }
    bool numbers = bel_context_has_feature(context, "x") && wants_wide_numbers(context);
    if (numbers) {
        bel_value *x = bel_context_feature(context, "x");
        bel_value *sum = bel_part_dense(context, x, outputs, "wide_numbers", &penalty);
        wide = wide == NULL ? sum : bel_add(g, wide, sum);
    }
    bel_value *logits = wide == NULL ? deep : bel_add(g, wide, deep);
    bel_part_finish(context, spec, logits, penalty);
    set_wide_optimizer(context, spec);
    return NULL;
}
