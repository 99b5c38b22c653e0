// Weights are small, with both signs, so that numbers neither grow nor vanish over many layers.
#include "support/onnx_models.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/tensor.h"
#include "unit/onnx/onnx_bytes.h"

typedef struct maker {
    bel_str graph;
    uint64_t state;
    int count; // number of values named so far
    char last[16];
} maker;

// --- Parts ---------------------------------------------------------------------------------------

static float next_number(maker *m) // in [-1, 1)
{
    m->state = m->state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)((int64_t)(m->state >> 40) - (1 << 23)) / (float)(1 << 23);
}

// An initializer of numbers around `middle`, at most `range` from it.
static const char *weights(maker *m, char name[16], bel_shape shape, float middle, float range)
{
    int64_t count = bel_shape_elements(&shape);
    float *numbers = bel_xcalloc((size_t)count + 1, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = middle + range * next_number(m);
    bel_snprintf(name, 16, "w%d", m->count++);
    bel_str part =
        make_tensor(name, 1, shape.dims, shape.rank, numbers, (size_t)count * sizeof *numbers);
    put_part(&m->graph, GRAPH_INITIALIZER, &part);
    bel_free(numbers);
    return name;
}

static const char *int_list(maker *m, char name[16], int64_t count, const int64_t *numbers)
{
    bel_snprintf(name, 16, "i%d", m->count++);
    bel_str part = make_tensor(name, 7, &count, 1, numbers, (size_t)count * sizeof *numbers);
    put_part(&m->graph, GRAPH_INITIALIZER, &part);
    return name;
}

static void put_ints(bel_str *attrs, const char *name, int count, const int64_t *numbers)
{
    bel_str attr = {.text = NULL};
    put_text(&attr, 1, name);
    for (int i = 0; i < count; i++)
        put_int(&attr, 8, numbers[i]);
    put_int(&attr, 20, 7);
    put_part(attrs, 5, &attr);
}

// If a node repeats a name, the last one counts; so each node gets a unique name.
static void put_node(maker *m, const char *op, const char *inputs, const char *output,
                     bel_str *attrs)
{
    char name[32];
    bel_snprintf(name, sizeof name, "%s_%s", op, output);
    bel_str part = make_node(op, inputs, output, attrs);
    put_text(&part, 3, name);
    put_part(&m->graph, GRAPH_NODE, &part);
}

// Adds a node of the last value and others. Its output becomes the last value.
static const char *add(maker *m, const char *op, const char *others, bel_str *attrs)
{
    char inputs[96];
    bel_snprintf(inputs, sizeof inputs, "%s%s%s", m->last, others[0] != '\0' ? " " : "", others);
    bel_snprintf(m->last, sizeof m->last, "v%d", m->count++);
    put_node(m, op, inputs, m->last, attrs);
    return m->last;
}

static void begin(maker *m, const char *dims)
{
    *m = (maker){.state = 1, .last = "x"};
    bel_str part = make_port("x", 1, dims);
    put_part(&m->graph, GRAPH_INPUT, &part);
}

static bel_str end(maker *m, const char *dims)
{
    bel_str part = make_port(m->last, 1, dims);
    put_part(&m->graph, GRAPH_OUTPUT, &part);
    return make_model(&m->graph, 17);
}

static void dense(maker *m, int64_t in, int64_t out, bool relu)
{
    char w[16], b[16], both[40];
    weights(m, w, BEL_SHAPE(in, out), 0, 1.7F / sqrtf((float)in));
    weights(m, b, BEL_SHAPE(out), 0, 0.1F);
    bel_snprintf(both, sizeof both, "%s %s", w, b);
    add(m, "Gemm", both, NULL);
    if (relu) add(m, "Relu", "", NULL);
}

static void conv(maker *m, int64_t in, int64_t out, int64_t size, int64_t stride, bool bias)
{
    char w[16], b[16], names[40];
    int64_t pad = size / 2;
    weights(m, w, BEL_SHAPE(out, in, size, size), 0, 1.7F / sqrtf((float)(in * size * size)));
    bel_snprintf(names, sizeof names, "%s", w);
    if (bias) bel_snprintf(names, sizeof names, "%s %s", w, weights(m, b, BEL_SHAPE(out), 0, 0.1F));
    bel_str attrs = {.text = NULL};
    put_ints(&attrs, "kernel_shape", 2, (int64_t[]){size, size});
    put_ints(&attrs, "strides", 2, (int64_t[]){stride, stride});
    put_ints(&attrs, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    add(m, "Conv", names, &attrs);
}

static void normalize(maker *m, int64_t channels)
{
    char scale[16], bias[16], mean[16], variance[16], names[80];
    weights(m, scale, BEL_SHAPE(channels), 1, 0.1F);
    weights(m, bias, BEL_SHAPE(channels), 0, 0.1F);
    weights(m, mean, BEL_SHAPE(channels), 0, 0.1F);
    weights(m, variance, BEL_SHAPE(channels), 1, 0.1F);
    bel_snprintf(names, sizeof names, "%s %s %s %s", scale, bias, mean, variance);
    add(m, "BatchNormalization", names, NULL);
}

static void pool(maker *m)
{
    bel_str attrs = {.text = NULL};
    put_ints(&attrs, "kernel_shape", 2, (int64_t[]){2, 2});
    put_ints(&attrs, "strides", 2, (int64_t[]){2, 2});
    add(m, "MaxPool", "", &attrs);
}

// --- Models --------------------------------------------------------------------------------------

static bel_str linear(bool unknown)
{
    static const float w[] = {1, 2, 3, 4, 5, 6}, b[] = {10, -100};
    maker m;
    begin(&m, "batch 3");
    bel_str part = make_tensor("w", 1, (int64_t[]){3, 2}, 2, w, sizeof w);
    put_part(&m.graph, GRAPH_INITIALIZER, &part);
    part = make_tensor("b", 1, (int64_t[]){2}, 1, b, sizeof b);
    put_part(&m.graph, GRAPH_INITIALIZER, &part);
    put_node(&m, "Gemm", "x w b", "y", NULL);
    put_node(&m, "Relu", "y", "z", NULL);
    if (unknown) {
        put_node(&m, "NoSuchOperator", "z", "more", NULL);
        put_node(&m, "Relu", "more", "last", NULL);
    }
    part = make_port("y", 1, "batch 2");
    put_part(&m.graph, GRAPH_OUTPUT, &part);
    bel_snprintf(m.last, sizeof m.last, "%s", unknown ? "last" : "z");
    return end(&m, "batch 2");
}

// x [1, 3] divided by its largest element.
static bel_str closed(void)
{
    maker m;
    begin(&m, "1 3");
    put_node(&m, "ReduceMax", "x", "most", NULL);
    add(&m, "Div", "most", NULL);
    dense(&m, 3, 2, false);
    return end(&m, "1 2");
}

static bel_str running(void)
{
    maker m;
    char axis[16];
    const int64_t first = 0;
    begin(&m, "4 3");
    add(&m, "CumSum", int_list(&m, axis, 1, &first), NULL);
    dense(&m, 3, 2, false);
    return end(&m, "4 2");
}

// A dense layer and its probabilities: 0: none; 1: Exp over its sum; 2: Softmax and a factor.
static bel_str head(int kind)
{
    maker m;
    char powers[16], number[16];
    begin(&m, "batch 3");
    dense(&m, 3, 2, false);
    if (kind == 1) {
        bel_snprintf(powers, sizeof powers, "%s", add(&m, "Exp", "", NULL));
        const char *sum = add(&m, "ReduceSum", int_list(&m, number, 1, (int64_t[]){1}), NULL);
        bel_snprintf(number, sizeof number, "%s", sum);
        bel_snprintf(m.last, sizeof m.last, "%s", powers);
        add(&m, "Div", number, NULL);
    }
    if (kind == 2) {
        add(&m, "Softmax", "", NULL);
        add(&m, "Mul", weights(&m, number, (bel_shape){0}, 0.5F, 0), NULL);
    }
    return end(&m, "batch 2");
}

static bel_str layers(const char *dims, int count, int64_t width, bool plain)
{
    maker m;
    char w[16];
    begin(&m, dims);
    for (int i = 0; i < count; i++) {
        if (plain) {
            float range = 1.7F / sqrtf((float)width);
            add(&m, "MatMul", weights(&m, w, BEL_SHAPE(width, width), 0, range), NULL);
        } else {
            dense(&m, width, width, true);
        }
    }
    return end(&m, dims);
}

static bel_str mlp(void)
{
    maker m;
    begin(&m, "batch 784");
    dense(&m, 784, 128, true);
    dense(&m, 128, 10, false);
    return end(&m, "batch 10");
}

static bel_str lenet(void)
{
    maker m;
    begin(&m, "batch 1 28 28");
    conv(&m, 1, 6, 5, 1, true);
    add(&m, "Relu", "", NULL);
    pool(&m);
    conv(&m, 6, 16, 5, 1, true);
    add(&m, "Relu", "", NULL);
    pool(&m);
    add(&m, "Flatten", "", NULL);
    dense(&m, 16 * 7 * 7, 120, true);
    dense(&m, 120, 84, true);
    dense(&m, 84, 10, false);
    return end(&m, "batch 10");
}

// Two convolutions beside a shortcut, which is a convolution of size 1 if the shape changes.
static void residual(maker *m, int64_t in, int64_t out, int64_t stride)
{
    char begun[16], main_way[16];
    bel_snprintf(begun, sizeof begun, "%s", m->last);
    conv(m, in, out, 3, stride, false);
    normalize(m, out);
    add(m, "Relu", "", NULL);
    conv(m, out, out, 3, 1, false);
    normalize(m, out);
    bel_snprintf(main_way, sizeof main_way, "%s", m->last);
    bel_snprintf(m->last, sizeof m->last, "%s", begun);
    if (in != out) {
        conv(m, in, out, 1, stride, false);
        normalize(m, out);
    }
    add(m, "Add", main_way, NULL);
    add(m, "Relu", "", NULL);
}

static bel_str resnet20(void)
{
    maker m;
    begin(&m, "batch 3 32 32");
    conv(&m, 3, 16, 3, 1, false);
    normalize(&m, 16);
    add(&m, "Relu", "", NULL);
    int64_t channels = 16;
    for (int stage = 0; stage < 3; stage++)
        for (int block = 0; block < 3; block++) {
            bool changes = stage > 0 && block == 0;
            residual(&m, channels, changes ? 2 * channels : channels, changes ? 2 : 1);
            if (changes) channels *= 2;
        }
    add(&m, "GlobalAveragePool", "", NULL);
    add(&m, "Flatten", "", NULL);
    dense(&m, channels, 10, false);
    return end(&m, "batch 10");
}

enum { HEADS = 4, WIDTH = 128, TIME = 64, HIDDEN = 512 };

// x · w + b on the last dimension.
static void linear_on_last(maker *m, int64_t in, int64_t out)
{
    char w[16], b[16];
    add(m, "MatMul", weights(m, w, BEL_SHAPE(in, out), 0, 1.7F / sqrtf((float)in)), NULL);
    add(m, "Add", weights(m, b, BEL_SHAPE(out), 0, 0.1F), NULL);
}

static void layer_norm(maker *m)
{
    char scale[16], bias[16], names[40];
    weights(m, scale, BEL_SHAPE(WIDTH), 1, 0.1F);
    weights(m, bias, BEL_SHAPE(WIDTH), 0, 0.1F);
    bel_snprintf(names, sizeof names, "%s %s", scale, bias);
    add(m, "LayerNormalization", names, NULL);
}

// Splits rows by head: [batch, time, width] to [batch, heads, time, width / heads]. With
// `turned` it swaps the last two dimensions.
static const char *head_rows(maker *m, const char *from, bool turned, char name[16])
{
    char shape[16];
    bel_str attrs = {.text = NULL};
    bel_snprintf(m->last, sizeof m->last, "%s", from);
    linear_on_last(m, WIDTH, WIDTH);
    add(m, "Reshape", int_list(m, shape, 4, (int64_t[]){0, TIME, HEADS, WIDTH / HEADS}), NULL);
    put_ints(&attrs, "perm", 4,
             turned ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
    add(m, "Transpose", "", &attrs);
    bel_snprintf(name, 16, "%s", m->last);
    return name;
}

static void attention(maker *m)
{
    char begun[16], q[16], k[16], v[16], scale[16], shape[16];
    layer_norm(m);
    bel_snprintf(begun, sizeof begun, "%s", m->last);
    head_rows(m, begun, false, v);
    head_rows(m, begun, true, k);
    head_rows(m, begun, false, q);
    add(m, "MatMul", k, NULL);
    add(m, "Mul", weights(m, scale, (bel_shape){0}, 1 / sqrtf((float)(WIDTH / HEADS)), 0), NULL);
    bel_str attrs = make_int_attr("axis", -1);
    add(m, "Softmax", "", &attrs);
    add(m, "MatMul", v, NULL);
    attrs = (bel_str){.text = NULL};
    put_ints(&attrs, "perm", 4, (int64_t[]){0, 2, 1, 3});
    add(m, "Transpose", "", &attrs);
    add(m, "Reshape", int_list(m, shape, 3, (int64_t[]){0, TIME, WIDTH}), NULL);
    linear_on_last(m, WIDTH, WIDTH);
}

// x / 2 · (1 + erf(x / sqrt 2)), as exporters write it.
static void gelu(maker *m)
{
    char begun[16], number[16];
    bel_snprintf(begun, sizeof begun, "%s", m->last);
    add(m, "Mul", weights(m, number, (bel_shape){0}, 0.70710678F, 0), NULL);
    add(m, "Erf", "", NULL);
    add(m, "Add", weights(m, number, (bel_shape){0}, 1, 0), NULL);
    add(m, "Mul", begun, NULL);
    add(m, "Mul", weights(m, number, (bel_shape){0}, 0.5F, 0), NULL);
}

static bel_str transformer(void)
{
    maker m;
    char begun[16];
    begin(&m, "batch 64 128");
    attention(&m);
    add(&m, "Add", "x", NULL);
    bel_snprintf(begun, sizeof begun, "%s", m.last);
    layer_norm(&m);
    linear_on_last(&m, WIDTH, HIDDEN);
    gelu(&m);
    linear_on_last(&m, HIDDEN, WIDTH);
    add(&m, "Add", begun, NULL);
    return end(&m, "batch 64 128");
}

// Two classes of a large id, distinguished by its last digit.
static bel_str ids(void)
{
    maker m = {.state = 1, .last = "x"};
    char first[16];
    bel_str part = make_port("x", 7, "batch 1"), attrs = make_int_attr("to", 1);
    put_part(&m.graph, GRAPH_INPUT, &part);
    add(&m, "Sub", int_list(&m, first, 1, (int64_t[]){20000000}), NULL);
    add(&m, "Cast", "", &attrs);
    dense(&m, 1, 2, false);
    return end(&m, "batch 2");
}

static const char *const names[] = {
    "linear",      "unknown", "chain",   "products", "tiny_mlp",    "mlp",    "lenet", "resnet20",
    "transformer", "closed",  "running", "logits",   "written_out", "scaled", "ids",   NULL};

const char *bel_onnx_model_name(int index)
{
    return names[index];
}

bel_str bel_onnx_model_make(const char *name)
{
    int index = 0;
    while (names[index] != NULL && strcmp(names[index], name) != 0)
        index++;
    switch (index) {
    case 0: return linear(false);
    case 1: return linear(true);
    case 2: return layers("1 8", 20, 8, false);
    case 3: return layers("1 8", 20, 8, true);
    case 4: return layers("1 16", 16, 16, false);
    case 5: return mlp();
    case 6: return lenet();
    case 7: return resnet20();
    case 8: return transformer();
    case 9: return closed();
    case 10: return running();
    case 11:
    case 12:
    case 13: return head(index - 11);
    case 14: return ids();
    default: return (bel_str){.text = NULL};
    }
}
