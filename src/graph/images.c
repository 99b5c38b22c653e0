// Convolutions, pools and the convolution layer. Attributes are written only for given options:
// ops/window.c has the defaults, and a node is compared by its attributes (passes/rewrite.c). Lists
// have no length, so the rank of x determines how many numbers are read. ConvTranspose refuses pads
// beside output_shape or auto_pad, since those compute the pads and one of the two would be
// silently ignored.
#include "base/sized.h"
#include "belfry/ops.h"
#include "graph/attrs.h"
#include "graph/graph.h"

// Returns the number of spatial dimensions of x; 0 after an error.
static int32_t spatial_of(bel_graph *graph, const bel_value *x, const char *what)
{
    bel_shape shape = bel_value_shape(x);
    if (x == NULL || (shape.rank >= 3 && shape.rank <= 4)) return x == NULL ? 0 : shape.rank - 2;
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                   "%s%s: expected x [n, c, w] or [n, c, h, w], got %s", graph->scope, what,
                   bel_shape_text(&shape, text));
    return 0;
}

static bool read_window(bel_graph *graph, const bel_window_options *given, bel_window_options *out)
{
    return bel_graph_ok(graph, bel_sized_take(out, sizeof *out, given, "bel_window_options"));
}

static void put_window(bel_attr_list *attrs, int32_t spatial, const bel_window_options *window)
{
    bel_attr_put_ints(attrs, "strides", spatial, window->strides);
    bel_attr_put_ints(attrs, "pads", 2 * spatial, window->pads);
    bel_attr_put_ints(attrs, "dilations", spatial, window->dilations);
    if (window->auto_pad != BEL_PAD_EXPLICIT) bel_attr_put(attrs, "auto_pad", window->auto_pad);
}

bel_value *bel_conv(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias, int64_t group,
                    const bel_window_options *options)
{
    bel_attr_list attrs = {.count = 0};
    bel_window_options window;
    if (!read_window(graph, options, &window)) return NULL;
    put_window(&attrs, spatial_of(graph, x, "Conv"), &window);
    if (group != 1) bel_attr_put(&attrs, "group", (double)group);
    bel_value *inputs[] = {x, w, bias};
    return bel_graph_add(graph, BEL_OP_CONV, &attrs, inputs, bias == NULL ? 2 : 3);
}

bel_value *bel_conv_transpose(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias,
                              int64_t group, const bel_window_options *options,
                              const int64_t *output_padding, const int64_t *output_shape)
{
    bel_attr_list attrs = {.count = 0};
    int32_t spatial = spatial_of(graph, x, "ConvTranspose");
    bel_window_options window;
    if (!read_window(graph, options, &window)) return NULL;
    if (window.pads != NULL && (output_shape != NULL || window.auto_pad != BEL_PAD_EXPLICIT)) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sConvTranspose: pads cannot be given beside output_shape or auto_pad, "
                       "which compute them",
                       graph->scope);
        return NULL;
    }
    put_window(&attrs, spatial, &window);
    if (group != 1) bel_attr_put(&attrs, "group", (double)group);
    bel_attr_put_ints(&attrs, "output_padding", spatial, output_padding);
    bel_attr_put_ints(&attrs, "output_shape", spatial, output_shape);
    bel_value *inputs[] = {x, w, bias};
    return bel_graph_add(graph, BEL_OP_CONV_TRANSPOSE, &attrs, inputs, bias == NULL ? 2 : 3);
}

bel_value *bel_max_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                        const bel_window_options *options, bool ceil_mode)
{
    bel_attr_list attrs = {.count = 0};
    int32_t spatial = spatial_of(graph, x, "MaxPool");
    bel_window_options window;
    if (!read_window(graph, options, &window)) return NULL;
    bel_attr_put_ints(&attrs, "kernel_shape", spatial, kernel);
    put_window(&attrs, spatial, &window);
    if (ceil_mode) bel_attr_put(&attrs, "ceil_mode", 1);
    return bel_graph_add(graph, BEL_OP_MAX_POOL, &attrs, &x, 1);
}

bel_value *bel_average_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                            const bel_window_options *options, bool ceil_mode,
                            bool count_include_pad)
{
    bel_attr_list attrs = {.count = 0};
    int32_t spatial = spatial_of(graph, x, "AveragePool");
    bel_window_options window;
    if (!read_window(graph, options, &window)) return NULL;
    bel_attr_put_ints(&attrs, "kernel_shape", spatial, kernel);
    put_window(&attrs, spatial, &window);
    if (ceil_mode) bel_attr_put(&attrs, "ceil_mode", 1);
    if (count_include_pad) bel_attr_put(&attrs, "count_include_pad", 1);
    return bel_graph_add(graph, BEL_OP_AVERAGE_POOL, &attrs, &x, 1);
}

bel_value *bel_global_average_pool(bel_graph *graph, bel_value *x)
{
    return bel_graph_add(graph, BEL_OP_GLOBAL_AVERAGE_POOL, NULL, &x, 1);
}

bel_value *bel_conv_2d(bel_graph *graph, bel_value *x, int64_t filters, int64_t size,
                       int64_t stride, bool bias, const char *name)
{
    bel_shape shape = bel_value_shape(x);
    if (x == NULL) return NULL;
    if (shape.rank != 4 || shape.dims[1] < 1 || filters < 1 || size < 1) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "convolution \"%s\" needs an input [n, c, h, w], at least one filter and a "
                       "window, got %s, %lld filters of size %lld",
                       name, bel_shape_text(&shape, text), (long long)filters, (long long)size);
        return NULL;
    }
    bel_shape kernel_shape = BEL_SHAPE(filters, shape.dims[1], size, size);
    bel_shape bias_shape = BEL_SHAPE(filters);
    const int64_t strides[] = {stride, stride};
    const bel_window_options options = {
        .size = sizeof options, .strides = strides, .auto_pad = BEL_PAD_SAME_UPPER};
    bel_graph_push_scope(graph, name);
    bel_value *kernel =
        bel_variable(graph, "kernel", &kernel_shape,
                     (bel_initializer){.kind = BEL_INIT_GLOROT_UNIFORM}, BEL_VARIABLE_TRAINABLE);
    bel_value *offset = NULL;
    if (bias) {
        offset = bel_variable(graph, "bias", &bias_shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                              BEL_VARIABLE_TRAINABLE);
    }
    bel_value *y = bel_conv(graph, x, kernel, offset, 1, &options);
    bel_graph_pop_scope(graph);
    return y;
}
