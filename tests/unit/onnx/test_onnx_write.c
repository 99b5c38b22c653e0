// Writer of ONNX models. Each case writes a graph, reads it again and runs it beside the original:
// every output must have the same bits. With BELFRY_ONNX_KEEP=FOLDER the files stay for
// tests/onnx/onnxruntime.mjs, which compares another runtime's results.
#include "onnx/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "belfry/collective.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "ops/recurrent.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { BATCH = 3, MOST_OUTPUTS = 4, MOST_INPUTS = 5 };

typedef struct model {
    bel_graph *graph;
    const float **variables;
    bel_value *outputs[MOST_OUTPUTS];
    int output_count;
} model;

// --- Elements ------------------------------------------------------------------------------------

// Numbers in [-1, 1) computed from the index and the name; lengths and ids are small.
static void fill(const bel_tensor *tensor, unsigned from)
{
    int64_t count = bel_shape_elements(&tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        unsigned hash = ((unsigned)i + 1) * 2654435761u ^ from * 40503u;
        double value = (double)(hash >> 8 & 0xffff) / 32768 - 1;
        if (tensor->dtype == BEL_DTYPE_F32) ((float *)tensor->data)[i] = (float)value;
        if (tensor->dtype == BEL_DTYPE_F64) ((double *)tensor->data)[i] = value;
        if (tensor->dtype == BEL_DTYPE_I64) ((int64_t *)tensor->data)[i] = hash >> 8 & 3;
        if (tensor->dtype == BEL_DTYPE_BOOL) ((bool *)tensor->data)[i] = (hash >> 8 & 1) != 0;
    }
}

static void fill_variables(model *m)
{
    m->variables = bel_xcalloc(m->graph->variable_count + 1, sizeof *m->variables);
    for (size_t v = 0; v < m->graph->variable_count; v++) {
        bel_tensor tensor = {.dtype = BEL_DTYPE_F32,
                             .shape = m->graph->variables[v].value->spec.shape};
        float *elements = bel_xcalloc((size_t)bel_shape_elements(&tensor.shape), sizeof *elements);
        tensor.data = elements;
        fill(&tensor, (unsigned)v + 7);
        bool positive = strstr(m->graph->variables[v].name, "variance") != NULL;
        for (int64_t i = 0; positive && i < bel_shape_elements(&tensor.shape); i++)
            elements[i] = fabsf(elements[i]) + 0.5F;
        m->variables[v] = elements;
    }
}

static void end(model *m)
{
    for (size_t v = 0; m->variables != NULL && v < m->graph->variable_count; v++)
        bel_free((void *)(uintptr_t)m->variables[v]);
    bel_free(m->variables);
    bel_graph_destroy(m->graph);
}

// --- Running -------------------------------------------------------------------------------------

// Copies the outputs; free their data.
static void run(const model *m, bel_tensor *inputs, bel_tensor *out_outputs)
{
    bel_shape shapes[MOST_INPUTS];
    bel_program_output outputs[MOST_OUTPUTS] = {{0}};
    for (size_t i = 0; i < m->graph->input_count; i++)
        shapes[i] = inputs[i].shape;
    for (int o = 0; o < m->output_count; o++)
        outputs[o].value = m->outputs[o];
    bel_program_options options = {.threads = 1, .fixed_variables = true};
    bel_program *program;
    bel_team *team;
    void *arena;
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, shapes, outputs, m->output_count, &options, &program));
    size_t bytes = bel_program_arena_bytes(program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "arena", &arena));
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    for (size_t i = 0; i < m->graph->input_count; i++)
        bel_instance_bind_input(instance, (int)i, inputs[i].data);
    for (size_t v = 0; v < m->graph->variable_count; v++)
        bel_instance_bind_variable(instance, (int)v, m->variables[v]);
    bel_run_context context = {.seed = 1, .step = 12};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    for (int o = 0; o < m->output_count; o++) {
        out_outputs[o] = bel_instance_output(instance, o);
        size_t size = bel_tensor_bytes(&out_outputs[o]);
        out_outputs[o].data = memcpy(bel_xcalloc(size + 1, 1), out_outputs[o].data, size);
    }
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
}

// --- Writing -------------------------------------------------------------------------------------

static void take(void *context, const void *bytes, size_t count)
{
    bel_str_append(context, bytes, count);
}

static bel_status *write_model(const model *m, int opset, bel_str *out_bytes)
{
    static const char *const names[] = {"y", "y1", "y2", "y3"};
    static const bel_onnx_note notes[] = {{"step", "12"}};
    bel_onnx_result results[MOST_OUTPUTS];
    for (int o = 0; o < m->output_count; o++)
        results[o] = (bel_onnx_result){names[o], m->outputs[o]};
    bel_onnx_source source = {.graph = m->graph,
                              .results = results,
                              .result_count = m->output_count,
                              .variables = m->variables,
                              .step = 12,
                              .opset = opset,
                              .notes = notes,
                              .note_count = 1};
    return bel_onnx_write(&source, take, out_bytes);
}

// Keeps the files for another runtime: NAME.onnx, and the elements of inputs and outputs.
static void keep(const char *name, const bel_str *bytes, const bel_graph *graph,
                 const bel_tensor *inputs, const bel_tensor *outputs, int output_count)
{
    const char *folder = getenv("BELFRY_ONNX_KEEP");
    if (folder == NULL) return;
    bel_str list = {0};
    for (int i = 0; i < (int)graph->input_count + output_count; i++) {
        bool is_input = i < (int)graph->input_count;
        const bel_tensor *t = is_input ? &inputs[i] : &outputs[i - (int)graph->input_count];
        char shape[BEL_SHAPE_TEXT];
        bel_str_printf(&list, "%s %s %s %s\n", is_input ? "in" : "out",
                       is_input ? graph->inputs[i].name : "-", bel_dtype_name(t->dtype),
                       bel_shape_text(&t->shape, shape));
        char *path = bel_strf("%s/%s.%d", folder, name, i);
        BEL_ASSERT_OK(bel_file_write_atomic(path, t->data, bel_tensor_bytes(t)));
        bel_free(path);
    }
    char *path = bel_strf("%s/%s.txt", folder, name);
    BEL_ASSERT_OK(bel_file_write_atomic(path, list.text, list.length));
    bel_free(path);
    path = bel_strf("%s/%s.onnx", folder, name);
    BEL_ASSERT_OK(bel_file_write_atomic(path, bytes->text, bytes->length));
    bel_free(path);
    bel_str_deinit(&list);
}

static void read_model(const bel_str *bytes, model *out)
{
    bel_onnx_model *read;
    *out = (model){.graph = bel_graph_create()};
    BEL_ASSERT_OK(bel_onnx_read(bytes->text, bytes->length, &read));
    out->output_count = bel_onnx_output_count(read);
    BEL_ASSERT_OK(bel_onnx_build(read, out->graph, NULL, out->outputs));
    bel_onnx_destroy(read);
}

static void assert_same_results(const char *name, model *m, int opset)
{
    bel_str bytes = {0};
    model again;
    bel_tensor inputs[MOST_INPUTS], want[MOST_OUTPUTS], got[MOST_OUTPUTS];
    BEL_ASSERT_OK(bel_graph_check(m->graph));
    fill_variables(m);
    for (size_t i = 0; i < m->graph->input_count; i++) {
        inputs[i] = (bel_tensor){m->graph->inputs[i].value->spec.dtype,
                                 m->graph->inputs[i].value->spec.shape, NULL};
        for (int32_t d = 0; d < inputs[i].shape.rank; d++)
            if (inputs[i].shape.dims[d] < 0) inputs[i].shape.dims[d] = BATCH;
        inputs[i].data = bel_xcalloc(bel_tensor_bytes(&inputs[i]) + 1, 1);
        fill(&inputs[i], (unsigned)i);
    }
    BEL_ASSERT_OK(write_model(m, opset, &bytes));
    read_model(&bytes, &again);
    assert_int_equal(again.graph->input_count, m->graph->input_count);
    for (size_t i = 0; i < m->graph->input_count; i++)
        assert_string_equal(again.graph->inputs[i].name, m->graph->inputs[i].name);
    run(m, inputs, want);
    run(&again, inputs, got);
    keep(name, &bytes, m->graph, inputs, want, m->output_count);
    for (int o = 0; o < m->output_count; o++) {
        if (!bel_shape_equal(&want[o].shape, &got[o].shape) || want[o].dtype != got[o].dtype)
            fail_msg("%s: output %d has another shape or type", name, o);
        if (memcmp(want[o].data, got[o].data, bel_tensor_bytes(&want[o])) != 0)
            fail_msg("%s: output %d has other bits", name, o);
        bel_free(want[o].data);
        bel_free(got[o].data);
    }
    for (size_t i = 0; i < m->graph->input_count; i++)
        bel_free(inputs[i].data);
    bel_str_deinit(&bytes);
    end(&again);
    end(m);
}

// --- Cases ---------------------------------------------------------------------------------------

#define X(...) bel_input_value(g, "x", BEL_DTYPE_F32, &BEL_SHAPE(__VA_ARGS__))
#define IN(name, type, ...) bel_input_value(g, name, BEL_DTYPE_##type, &BEL_SHAPE(__VA_ARGS__))
#define INTS(...) ((const int64_t[]){__VA_ARGS__})
#define LENGTHS() IN("lengths", I64, -1)

static bel_value *variable(bel_graph *g, const char *name, bel_shape shape)
{
    return bel_variable(g, name, &shape, (bel_initializer){BEL_INIT_ZEROS, 0},
                        BEL_VARIABLE_TRAINABLE);
}

// A case sets its outputs and returns their number.
typedef int case_fn(bel_graph *g, bel_value **y);

#define CASE(name, ...)                                                                            \
    static int name(bel_graph *g, bel_value **y)                                                   \
    {                                                                                              \
        y[0] = __VA_ARGS__;                                                                        \
        return 1;                                                                                  \
    }

CASE(dense, bel_softmax(g, bel_dense(g, bel_relu(g, bel_dense(g, X(-1, 6), 5, "a")), 4, "b")))
CASE(gemm, bel_gemm(g, X(-1, 6), variable(g, "w", BEL_SHAPE(4, 6)), variable(g, "c", BEL_SHAPE(4)),
                    0.3, 1.7, false, true))
CASE(gelu, bel_gelu(g, X(-1, 5)))
CASE(gelu_tanh, bel_gelu_tanh(g, X(-1, 5)))
CASE(silu, bel_silu(g, X(-1, 5)))
CASE(gelu_f64, bel_gelu(g, IN("x", F64, -1, 5)))
CASE(curves, bel_leaky_relu(g, bel_elu(g, bel_hard_sigmoid(g, X(-1, 5), 0.3, 0.4), 1.3), 0.1))
CASE(clip, bel_clip(g, X(-1, 5), -0.25, 0.3))
CASE(clip_above, bel_clip(g, X(-1, 5), -INFINITY, 0.3))
CASE(softplus, bel_softplus(g, bel_abs(g, bel_neg(g, X(-1, 5)))))
CASE(rest, bel_graph_add(g, BEL_OP_REMAINDER, NULL,
                         (bel_value *[]){X(-1, 5), bel_scalar(g, BEL_DTYPE_F32, 0.3)}, 2))
CASE(means, bel_reduce_mean(g, X(-1, 4, 5), INTS(1), 1, false))
CASE(sums, bel_reduce_sum(g, X(-1, 4, 5), INTS(2), 1, true))
CASE(sum_of_all, bel_reduce_sum(g, X(-1, 4, 5), NULL, 0, false))
CASE(largest, bel_reduce_max(g, X(-1, 4, 5), INTS(1, 2), 2, false))
CASE(squares, bel_reduce_sum_square(g, X(-1, 4), INTS(1), 1, true))
CASE(log_sum, bel_reduce_log_sum_exp(g, X(-1, 4), INTS(1), 1, false))
CASE(arg_max, bel_arg_max(g, X(-1, 7), 1))
CASE(cum_sum, bel_cum_sum(g, X(-1, 7), 1, true, true))
CASE(one_hot, bel_one_hot(g, IN("ids", I64, -1, 2), 4))
CASE(cast, bel_cast(g, bel_cast(g, X(-1, 4), BEL_DTYPE_F64), BEL_DTYPE_F32))
CASE(reshape, bel_reshape(g, X(-1, 12), &BEL_SHAPE(-1, 3, 4)))
CASE(copied, bel_reshape(g, X(-1, 3, 4), &BEL_SHAPE(0, 4, 3)))
CASE(transpose, bel_transpose(g, X(-1, 3, 4), INTS(0, 2, 1)))
CASE(squeeze, bel_squeeze(g, bel_unsqueeze(g, X(-1, 3), INTS(1, 2), 2), INTS(1), 1))
CASE(slice, bel_slice(g, X(-1, 9), INTS(1), INTS(1), INTS(8), INTS(3), 1))
CASE(pad, bel_pad(g, X(2, 4), INTS(0, 1), INTS(1, 2), BEL_PAD_CONSTANT, 0.5))
CASE(pad_edge, bel_pad(g, X(2, 4), INTS(0, 1), INTS(1, 2), BEL_PAD_REFLECT, 0))
CASE(expand, bel_expand(g, X(2, 1, 4), &BEL_SHAPE(2, 3, 4)))
CASE(concat, bel_concat(g, (bel_value *[]){X(-1, 2), IN("z", F32, -1, 3)}, 2, 1))
CASE(gather, bel_gather(g, variable(g, "rows", BEL_SHAPE(4, 5)), IN("ids", I64, -1, 2)))
CASE(elements, bel_gather_elements(g, X(-1, 4), IN("ids", I64, -1, 2), 1))
CASE(global_step, bel_add(g, X(-1, 2), bel_cast(g, bel_global_step(g), BEL_DTYPE_F32)))
CASE(matmul, bel_matmul(g, X(-1, 2, 3), variable(g, "w", BEL_SHAPE(3, 4))))
CASE(conv, bel_relu(g, bel_conv_2d(g, X(-1, 2, 7, 7), 3, 3, 2, true, "c")))
CASE(pools, bel_global_average_pool(
                g, bel_max_pool(g, bel_conv_2d(g, X(-1, 1, 8, 8), 3, 5, 1, false, "c"), INTS(2, 2),
                                &(bel_window_options){.size = sizeof(bel_window_options),
                                                      .strides = INTS(2, 2)},
                                false)))
CASE(average, bel_average_pool(g, X(-1, 2, 7, 6), INTS(3, 2),
                               &(bel_window_options){.size = sizeof(bel_window_options),
                                                     .pads = INTS(1, 0, 1, 1)},
                               true, true))
CASE(transposed,
     bel_conv_transpose(g, X(-1, 2, 4, 4), variable(g, "w", BEL_SHAPE(2, 3, 3, 3)), NULL, 1,
                        &(bel_window_options){.size = sizeof(bel_window_options),
                                              .strides = INTS(2, 2)},
                        INTS(1, 1), NULL))
CASE(batch_norm, bel_batch_norm(g, X(-1, 3, 4, 4), false, "bn"))
CASE(layer_norm, bel_layer_norm(g, X(-1, 3, 8), "ln"))
CASE(group_norm, bel_group_norm(g, X(-1, 6, 4, 4), 3, "gn"))
CASE(group_norm_flat, bel_group_norm(g, X(-1, 6), 2, "gn"))
CASE(gru, bel_gru(g, X(-1, 4, 5), NULL, 6, "rnn", NULL))
CASE(lstm, bel_lstm(g, X(-1, 4, 5), LENGTHS(), 6, "rnn", NULL))
CASE(mask, bel_sequence_mask(g, X(-1, 2, 4, 3), LENGTHS(), 2))
CASE(masked, bel_masked_softmax(g, X(-1, 2, 4, 4), IN("mask", BOOL, 4, 4), LENGTHS(), true))
CASE(masked_all, bel_masked_softmax(g, X(-1, 4, 4), NULL, LENGTHS(), false))
CASE(attention, bel_multi_head_attention(g, X(-1, 4, 6), NULL, LENGTHS(), 2, true, "mha"))
CASE(attention_open, bel_multi_head_attention(g, X(2, 4, 6), NULL, NULL, 2, false, "mha"))

static int where(bel_graph *g, bel_value **y)
{
    bel_value *x = X(-1, 4), *zero = bel_scalar(g, BEL_DTYPE_F32, 0);
    y[0] = bel_where(g, bel_greater(g, x, zero), x, bel_scalar(g, BEL_DTYPE_F32, 0.5));
    return 1;
}

static int top_k(bel_graph *g, bel_value **y)
{
    y[0] = bel_top_k(g, X(-1, 7), 3, 1, false, &y[1]);
    return 2;
}

static int last_states(bel_graph *g, bel_value **y)
{
    bel_value *x = X(-1, 4, 5), *lengths = LENGTHS();
    bel_gru(g, x, lengths, 6, "gru", &y[0]);
    bel_lstm(g, x, NULL, 6, "lstm", &y[1]);
    return 2;
}

static bel_value *attr_op(bel_graph *g, bel_op op, const bel_attr_list *attrs, bel_value **in,
                          int count)
{
    return bel_graph_add(g, op, attrs, in, count);
}

// First states, with and without lengths, with the batch first or not, in both directions.
static int first_states(bel_graph *g, bel_value **y)
{
    enum { T = 4, IN = 5, H = 6, BOTH = 2 };
    bel_value *x = X(-1, T, IN), *h = IN("h", F32, -1, BOTH, H), *c = IN("c", F32, -1, BOTH, H);
    const bel_attr_list lstm = {
        .count = 4,
        .items = {{.name = "hidden_size", .number = H},
                  {.name = "layout", .number = 1},
                  {.name = "direction", .number = BEL_RECURRENT_BOTH},
                  {.name = "first", .number = BEL_RECURRENT_FIRST_H | BEL_RECURRENT_FIRST_C}}};
    bel_attr_list gru = lstm;
    gru.items[3].number = BEL_RECURRENT_FIRST_H;
    bel_value *weights[6];
    for (int i = 0; i < 2; i++) {
        int64_t gates = i == 0 ? 4 : 3;
        char name[3][8];
        for (int k = 0; k < 3; k++)
            snprintf(name[k], sizeof name[k], "w%d", 3 * i + k);
        weights[3 * i] = variable(g, name[0], BEL_SHAPE(BOTH, gates * H, IN));
        weights[3 * i + 1] = variable(g, name[1], BEL_SHAPE(BOTH, gates * H, H));
        weights[3 * i + 2] = variable(g, name[2], BEL_SHAPE(BOTH, 2 * gates * H));
    }
    bel_value *of_lstm[] = {x, weights[0], weights[1], weights[2], h, c};
    bel_value *of_gru[] = {x, weights[3], weights[4], weights[5], LENGTHS(), h};
    y[0] = attr_op(g, BEL_OP_LSTM, &lstm, of_lstm, 6);
    y[1] = bel_graph_output(y[0], 2);
    y[2] = attr_op(g, BEL_OP_GRU, &gru, of_gru, 6);
    y[3] = bel_graph_output(y[2], 1);
    return 4;
}

static int last_of_equals(bel_graph *g, bel_value **y)
{
    const bel_attr_list attrs = {
        .count = 2,
        .items = {{.name = "axis", .number = 1}, {.name = "select_last_index", .number = 1}}};
    bel_value *x = bel_round(g, X(-1, 9));
    y[0] = attr_op(g, BEL_OP_ARG_MAX, &attrs, &x, 1);
    y[1] = bel_arg_max(g, x, 1);
    return 2;
}

static int indices_alone(bel_graph *g, bel_value **y)
{
    (void)bel_top_k(g, X(-1, 7), 3, 1, true, &y[0]);
    return 1;
}

static int no_index(bel_graph *g, bel_value **y)
{
    int64_t two = 2;
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = &two};
    bel_value *ids = bel_sub(g, IN("ids", I64, -1, 3), bel_constant(g, &tensor)); // -2 … 1
    y[0] = bel_one_hot(g, ids, 2);
    return 1;
}

// An input as an output, and one value as two outputs.
static int twice(bel_graph *g, bel_value **y)
{
    y[0] = X(-1, 3);
    y[1] = y[2] = bel_exp(g, y[0]);
    return 3;
}

// Three function bodies for one operation.
static int variants(bel_graph *g, bel_value **y)
{
    bel_value *x = X(-1, 6, 4);
    y[0] = bel_group_norm(g, bel_group_norm(g, x, 2, "a"), 2, "b");
    y[1] = bel_group_norm(g, x, 3, "c");
    y[2] = bel_group_norm(g, bel_reshape(g, x, &BEL_SHAPE(-1, 6, 2, 2)), 3, "d");
    return 3;
}

static int bags(bel_graph *g, bel_value **y)
{
    bel_value *ids = IN("ids", I64, -1, 3), *data = variable(g, "rows", BEL_SHAPE(4, 5));
    y[0] = bel_gather_bag(g, data, ids, NULL, BEL_COMBINE_SQRTN);
    return 1;
}

static const struct {
    const char *name;
    case_fn *build;
} cases[] = {
#define C(name)                                                                                    \
    {                                                                                              \
#name, name                                                                                \
    }
    C(dense),
    C(gemm),
    C(gelu),
    C(gelu_tanh),
    C(silu),
    C(gelu_f64),
    C(curves),
    C(clip),
    C(clip_above),
    C(softplus),
    C(rest),
    C(means),
    C(sums),
    C(sum_of_all),
    C(largest),
    C(squares),
    C(log_sum),
    C(arg_max),
    C(cum_sum),
    C(one_hot),
    C(cast),
    C(where),
    C(reshape),
    C(copied),
    C(transpose),
    C(squeeze),
    C(slice),
    C(pad),
    C(pad_edge),
    C(expand),
    C(concat),
    C(gather),
    C(elements),
    C(global_step),
    C(matmul),
    C(conv),
    C(pools),
    C(average),
    C(transposed),
    C(batch_norm),
    C(layer_norm),
    C(group_norm),
    C(group_norm_flat),
    C(gru),
    C(lstm),
    C(mask),
    C(masked),
    C(masked_all),
    C(attention),
    C(attention_open),
    C(top_k),
    C(last_states),
    C(twice),
    C(variants),
    C(bags),
    C(first_states),
    C(last_of_equals),
    C(indices_alone),
    C(no_index),
};

static void test_what_is_written_computes_the_same_bits(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        model m = {.graph = bel_graph_create()};
        m.output_count = cases[c].build(m.graph, m.outputs);
        assert_same_results(cases[c].name, &m, 17);
    }
}

static void test_older_opsets(void **state)
{
    (void)state;
    for (int opset = BEL_ONNX_OPSET_LOWEST; opset < 17; opset++) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            if (strcmp(cases[c].name, "layer_norm") == 0) continue;
            model m = {.graph = bel_graph_create()};
            m.output_count = cases[c].build(m.graph, m.outputs);
            char name[64];
            snprintf(name, sizeof name, "%s_%d", cases[c].name, opset);
            assert_same_results(name, &m, opset);
        }
    }
}

// --- Refusals ------------------------------------------------------------------------------------

static void assert_refused(bel_graph *g, bel_value *y, int opset, bel_code code, const char *part)
{
    model m = {.graph = g, .outputs = {y}, .output_count = 1};
    bel_str bytes = {0};
    BEL_ASSERT_OK(bel_graph_check(g));
    fill_variables(&m);
    BEL_ASSERT_FAILS(write_model(&m, opset, &bytes), code, part);
    assert_int_equal(bytes.length, 0);
    end(&m);
}

static void test_refusals(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    g->replica_count = 2;
    assert_refused(g, bel_all_reduce(g, X(-1, 2), BEL_REDUCE_SUM), 17, BEL_UNIMPLEMENTED,
                   "test_onnx_write.c:");
    g = bel_graph_create();
    assert_refused(g, bel_dropout(g, X(-1, 2), 0.5), 17, BEL_UNIMPLEMENTED, "random numbers");
    g = bel_graph_create();
    bel_value *x = X(-1, 2), *gradient;
    bel_gradients(g, bel_mean(g, bel_tanh(g, x)), &x, 1, &gradient);
    assert_refused(g, gradient, 17, BEL_UNIMPLEMENTED, "made for training");
    g = bel_graph_create();
    assert_refused(g, bel_layer_norm(g, X(-1, 3), "ln"), 16, BEL_UNIMPLEMENTED, "opset 17");
    g = bel_graph_create();
    bel_value *named = bel_input_value(g, "y", BEL_DTYPE_F32, &BEL_SHAPE(-1, 2));
    assert_refused(g, bel_exp(g, named), 17, BEL_INVALID_ARGUMENT, "\"y\"");
}

// A function's attributes come from a file and are checked like those of other operators.
static void test_an_own_operation_with_bad_attributes_is_refused(void **state)
{
    (void)state;
    model m = {.graph = bel_graph_create()};
    bel_graph *g = m.graph;
    bel_onnx_model *read;
    bel_value *out[1];
    m.outputs[m.output_count++] = bel_group_norm(g, X(-1, 6, 2, 2), 3, "gn");
    fill_variables(&m);
    bel_str bytes = {0};
    BEL_ASSERT_OK(write_model(&m, 17, &bytes));
    char *at = NULL;
    for (size_t i = 0; i + 10 < bytes.length; i++) // the attribute's value: field 3, varint
        if (memcmp(bytes.text + i, "num_groups", 10) == 0 && bytes.text[i + 10] == 0x18)
            at = bytes.text + i + 11;
    assert_non_null(at);
    for (char groups = 0; groups < 6; groups += 4) { // neither divides 6
        *at = groups;
        bel_graph *again = bel_graph_create();
        BEL_ASSERT_OK(bel_onnx_read(bytes.text, bytes.length, &read));
        BEL_ASSERT_FAILS(bel_onnx_build(read, again, NULL, out), BEL_INVALID_ARGUMENT,
                         "GroupNormalization");
        bel_onnx_destroy(read);
        bel_graph_destroy(again);
    }
    bel_str_deinit(&bytes);
    end(&m);
}

// Offset of the elements in the model; -1: absent.
static int64_t place_of(const bel_str *bytes, const float *elements, size_t size)
{
    for (size_t i = 0; i + size <= bytes->length; i++)
        if (memcmp(bytes->text + i, elements, size) == 0) return (int64_t)i;
    return -1;
}

// Sizes around those at which a protobuf length needs one more byte, small ones between large ones,
// and names of many lengths.
static void test_large_elements_begin_at_lines(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1024, 3, 4081, 4093, 1500, 1023, 1025, 16380};
    enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 7 };
    for (int count = 1; count <= MOST; count++) {
        for (int64_t more = 0; more < 20; more++) {
            model m = {.graph = bel_graph_create()};
            bel_value *parts[MOST];
            int64_t all = 0;
            for (int v = 0; v < count; v++) {
                char name[64];
                int64_t size = sizes[(v + more) % SIZES] + more;
                snprintf(name, sizeof name, "%.*s%d", (int)(v * more % 50),
                         "a_variable_of_a_name_that_is_as_long_as_it_has_to_be", v);
                parts[v] = variable(m.graph, name, BEL_SHAPE(size));
                all += size;
            }
            bel_value *joined = bel_concat(m.graph, parts, count, 0);
            bel_graph *g = m.graph;
            m.outputs[m.output_count++] = bel_add(g, X(-1, all), joined);
            fill_variables(&m);
            bel_str bytes = {0};
            BEL_ASSERT_OK(write_model(&m, 17, &bytes));
            for (int v = 0; v < count; v++) {
                size_t size = (size_t)(sizes[(v + more) % SIZES] + more) * sizeof(float);
                int64_t place = place_of(&bytes, m.variables[v], size);
                assert_true(place >= 0);
                if (size >= 4096) assert_int_equal(place % BEL_GRAPH_CONSTANT_ALIGNMENT, 0);
            }
            bel_str_deinit(&bytes);
            end(&m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_elements_begin_at_lines),
        cmocka_unit_test(test_what_is_written_computes_the_same_bits),
        cmocka_unit_test(test_older_opsets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_an_own_operation_with_bad_attributes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
