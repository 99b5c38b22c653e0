// Model "onnx": a graph from another tool, or Belfry's own export, trained further.
//
//   features ── nodes of the file ── its output [n, outputs] ── loss and metrics
//
// The model uses the first output that fits. If a Softmax or a Sigmoid gives that output, it uses
// the input of that node. Parameters: onnx_file (its path), freeze (patterns of variables that are
// not trained, comma-separated), train (patterns of constants that are also trained), class_count,
// objective and its parameters, and those of the optimizer.
#include <string.h>

#include "belfry/onnx.h"
#include "models/parts.h"

enum { MOST_OUTPUTS = 16, MOST_PATTERNS = 64 };

// A parameter's comma-separated list of patterns.
typedef struct pattern_list {
    const char *pieces[MOST_PATTERNS];
    int count;
    char text[4096];
} pattern_list;

// Returns false, after failing the graph, if the list is too long.
static bool read_patterns(bel_model_context *context, const char *name, pattern_list *out)
{
    const char *text = bel_context_param(context, name, "");
    out->count = 0;
    bool fits = strlen(text) < sizeof out->text;
    memcpy(out->text, fits ? text : "", fits ? strlen(text) + 1 : 1);
    for (char *at = out->text; fits && *at != '\0';) {
        char *comma = strchr(at, ',');
        fits = out->count < MOST_PATTERNS;
        if (fits) out->pieces[out->count++] = at;
        if (comma == NULL) break;
        *comma = '\0';
        at = comma + 1;
    }
    if (!fits) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter %s: expected at most %d patterns and 4,095 bytes", name,
                       MOST_PATTERNS);
    }
    return fits;
}

// The output in the form of the objective, f32 [batch, wanted]; NULL: it does not fit. A number may
// lack its dimension, and a single logit z stands for the two logits 0 and z.
static bel_value *onnx_fitted(bel_graph *g, bel_value *output, int64_t wanted)
{
    const int64_t last = 1;
    bel_shape shape = bel_value_shape(output);
    if (bel_value_dtype(output) != BEL_DTYPE_F32) return NULL;
    if (shape.rank == 1 && wanted == 1) return bel_unsqueeze(g, output, &last, 1);
    if (shape.rank != 2) return NULL;
    if (shape.dims[1] == wanted) return output;
    if (shape.dims[1] != 1 || wanted != 2) return NULL;
    bel_value *both[] = {bel_sub(g, output, output), output};
    return bel_concat(g, both, 2, 1);
}

// Standardizes an output: the file's model predicts in the label's units.
static bel_value *standardized(bel_model_context *context, bel_value *output, const char *objective)
{
    bel_graph *g = bel_context_graph(context);
    double mean = bel_context_param_number(context, "label_mean", 0);
    double deviation = bel_context_param_number(context, "label_deviation", 1);
    bel_value *of_mean = bel_scalar(g, BEL_DTYPE_F32, mean);
    if (strcmp(objective, "poisson") == 0 || strcmp(objective, "tweedie") == 0)
        return mean > 0 ? bel_sub(g, output, bel_log(g, of_mean)) : output;
    if (mean == 0 && deviation == 1) return output;
    return bel_div(g, bel_sub(g, output, of_mean), bel_scalar(g, BEL_DTYPE_F32, deviation));
}

static void onnx_fail(bel_graph *g, const char *path, bel_value *output, int64_t wanted)
{
    char text[BEL_SHAPE_TEXT];
    bel_shape shape = bel_value_shape(output);
    bool f32 = bel_value_dtype(output) == BEL_DTYPE_F32;
    bel_graph_fail(
        g, BEL_INVALID_ARGUMENT,
        "%s: the objective takes an output f32 [batch, %lld], and no output is that; the "
        "first one is %s %s; hint: %s",
        path, (long long)wanted, bel_dtype_name(bel_value_dtype(output)),
        bel_shape_text(&shape, text),
        !f32              ? "only models of f32 are trained"
        : shape.rank != 2 ? "an output of two dimensions is needed"
                          : "--class_count or --objective");
}

bel_status *bel_onnx_file_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const char *path = bel_context_param(context, "onnx_file", NULL);
    bel_value *outputs[MOST_OUTPUTS];
    pattern_list freeze, train;
    if (path == NULL) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter onnx_file is missing: the path of the model");
        return NULL;
    }
    if (!read_patterns(context, "freeze", &freeze) || !read_patterns(context, "train", &train))
        return NULL;
    bel_onnx_use use = {.size = sizeof use,
                        .freeze = freeze.pieces,
                        .freeze_count = freeze.count,
                        .logits = true,
                        .train = train.pieces,
                        .train_count = train.count};
    int64_t wanted = bel_part_outputs(context);
    int count = bel_onnx_add(context, path, &use, outputs, MOST_OUTPUTS);
    if (count == 0) return NULL;
    bel_value *fitting = NULL;
    for (int o = 0; o < count && o < MOST_OUTPUTS && fitting == NULL; o++)
        fitting = onnx_fitted(g, outputs[o], wanted);
    if (fitting == NULL) {
        onnx_fail(g, path, outputs[0], wanted);
        return NULL;
    }
    const char *objective = bel_context_param(context, "objective", "classification");
    bool number = wanted == 1 && strcmp(objective, "multi_label") != 0;
    bel_part_finish(context, spec, number ? standardized(context, fitting, objective) : fitting,
                    NULL);
    return NULL;
}
