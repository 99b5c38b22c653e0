// Models "gru" and "lstm": classifiers of padded sequences.
//
//   x [n, t, d], length [n] ── recurrent layer "rnn_0" ── … ── last state [n, units] ── dense
//   "logits" ──> [n, classes] ── softmax
//
// x is the feature "x", or columns [n, t·d] with parameter sequence_width = d. Feature "length"
// (I64) is the number of valid steps of each sequence; without it all are valid. Loss: mean softmax
// cross-entropy (+ l2 · half the sum of squares of "logits/kernel"). Metric: accuracy. Parameters:
// recurrent_units ("128"), sequence_width, class_count (10), l2 (0), and those of the optimizer
// (bel_context_optimizer).
#include "models/parts.h"

#include <stdio.h>

typedef bel_value *layer_fn(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t units,
                            const char *name, bel_value **out_last);

// The feature as [n, t, d], or a sticky error.
static bel_value *sequences(bel_model_context *context)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_feature(context, "x");
    bel_shape shape = bel_value_shape(x);
    bool is_float = bel_value_dtype(x) == BEL_DTYPE_F32;
    if (x == NULL || (shape.rank == 3 && is_float)) return x;
    int64_t width = bel_part_whole(context, "sequence_width", 1, 1, 1 << 20);
    if (shape.rank == 2 && is_float && shape.dims[1] > 0 && shape.dims[1] % width == 0) {
        bel_shape steps = BEL_SHAPE(-1, shape.dims[1] / width, width);
        return bel_reshape(g, x, &steps);
    }
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                   "the model takes sequences f32 [batch, steps, numbers], or [batch, columns] "
                   "where columns are a multiple of sequence_width %lld, got %s %s",
                   (long long)width, bel_dtype_name(bel_value_dtype(x)),
                   bel_shape_text(&shape, text));
    return NULL;
}

static bel_value *lengths_of(bel_model_context *context)
{
    if (!bel_context_has_feature(context, BEL_LENGTH_FIELD)) return NULL;
    return bel_context_feature(context, BEL_LENGTH_FIELD);
}

static bel_status *recurrent_model(bel_model_context *context, bel_estimator_spec *spec,
                                   layer_fn *layer)
{
    int64_t units[BEL_PART_MAX_LAYERS];
    int count = bel_part_layers(context, "recurrent_units", "128", 1 << 14, units);
    bel_value *x = sequences(context), *lengths = lengths_of(context), *penalty = NULL, *last;
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "rnn_%d", i);
        x = layer(bel_context_graph(context), x, lengths, units[i], name, &last);
    }
    if (count == 0) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter recurrent_units: at least one layer");
        last = NULL;
    }
    int64_t outputs = bel_part_outputs(context);
    bel_value *logits = bel_part_dense(context, last, outputs, "logits", &penalty);
    bel_part_finish(context, spec, logits, penalty);
    return NULL;
}

bel_status *bel_gru_model(bel_model_context *context, bel_estimator_spec *spec)
{
    return recurrent_model(context, spec, bel_gru);
}

bel_status *bel_lstm_model(bel_model_context *context, bel_estimator_spec *spec)
{
    return recurrent_model(context, spec, bel_lstm);
}
