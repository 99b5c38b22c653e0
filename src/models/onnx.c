// Model "onnx": a graph that another tool has made, or Belfry's own export, trained further.
//
//   features ── the ONNX model's nodes ── its output [n, outputs] ── loss and metrics of --objective
//
// The first output counts; one that a Softmax or a Sigmoid gives as what went into that.
// Parameters: onnx_file (its path), freeze (patterns of variables that are not trained, with commas
// between), class_count, objective and what that reads, and those of the optimizer.
#include <string.h>

#include "belfry/onnx.h"
#include "models/parts.h"

enum { MOST_OUTPUTS = 16, MOST_PATTERNS = 64 };

// The pieces of a list of texts; the list is written over. -1: there are more than `most`.
static int split(char *list, const char **out_pieces, int most)
{
    int count = 0;
    while (*list != '\0') {
        char *comma = strchr(list, ',');
        if (count == most) return -1;
        out_pieces[count++] = list;
        if (comma == NULL) break;
        *comma = '\0';
        list = comma + 1;
    }
    return count;
}

bel_status *bel_onnx_file_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const char *path = bel_context_param(context, "onnx_file", NULL), *patterns[MOST_PATTERNS];
    const char *freeze = bel_context_param(context, "freeze", "");
    bel_value *outputs[MOST_OUTPUTS];
    char list[4096];
    if (path == NULL || strlen(freeze) >= sizeof list) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT, "%s",
                       path == NULL ? "parameter onnx_file is missing: the path of the model"
                                    : "parameter freeze: expected at most 4,095 bytes");
        return NULL;
    }
    memcpy(list, freeze, strlen(freeze) + 1);
    bel_onnx_use use = {.size = sizeof use, .freeze = patterns, .logits = true};
    use.freeze_count = split(list, patterns, MOST_PATTERNS);
    if (use.freeze_count < 0) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT, "parameter freeze: expected at most %d patterns",
                       MOST_PATTERNS);
        return NULL;
    }
    int64_t wanted = bel_part_outputs(context);
    if (bel_onnx_add(context, path, &use, outputs, MOST_OUTPUTS) == 0) return NULL;
    bel_shape shape = bel_value_shape(outputs[0]);
    bool fits =
        bel_value_dtype(outputs[0]) == BEL_DTYPE_F32 && shape.rank == 2 && shape.dims[1] == wanted;
    if (!fits) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "%s: the objective takes an output f32 [batch, %lld], and the model's first "
                       "one is %s %s; hint: --class_count or --objective",
                       path, (long long)wanted, bel_dtype_name(bel_value_dtype(outputs[0])),
                       bel_shape_text(&shape, text));
        return NULL;
    }
    bel_part_finish(context, spec, outputs[0], NULL);
    return NULL;
}
