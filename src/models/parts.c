// Parts of canned models. Parameters arrive as texts. An error of one sticks to the graph and is
// reported by the trainer, so nothing here returns a status. Names are those of flags. Defaults are
// here, both for the command and for other callers. The first name of a list of choices is its
// default. predictions and the optimizer are set in every mode; loss and metrics only with labels.
#include "models/parts.h"

#include "belfry/columns.h"

int64_t bel_part_whole(bel_model_context *context, const char *name, int64_t otherwise, int64_t low,
                       int64_t high)
{
    double number = bel_context_param_number(context, name, (double)otherwise);
    bool inside = number >= (double)low && number <= (double)high; // false for NaN
    if (inside && (double)(int64_t)number == number) return (int64_t)number;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter %s must be an integer from %lld to %lld, got %g", name,
                   (long long)low, (long long)high, number);
    return low;
}

bel_value *bel_part_numbers(bel_model_context *context)
{
    int64_t width = bel_part_whole(context, "embedding_width", 16, 1, 4096);
    bel_value *x = bel_columns_layer(context, width);
    bel_shape shape = bel_value_shape(x);
    if (x == NULL) return NULL;
    if (shape.rank == 2 && shape.dims[1] > 0 && bel_value_dtype(x) == BEL_DTYPE_F32) return x;
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "the model takes a feature f32 [batch, columns], got %s %s",
                   bel_dtype_name(bel_value_dtype(x)), bel_shape_text(&shape, text));
    return NULL;
}
