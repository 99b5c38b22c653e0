// Every function of belfry/ops.h makes the operation of its name, with its inputs in order and its
// attributes under their ONNX names. tests/op checks the results of operations.
#include "belfry/ops.h"
#include "graph/graph.h"
#include "support/bel_test.h"

typedef struct fixture {
    bel_graph *graph;
    bel_value *x, *y, *indices; // f32 [6, 6] twice, i64 [6]
} fixture;

static fixture make_fixture(void)
{
    fixture f = {.graph = bel_graph_create()};
    bel_shape shape = BEL_SHAPE(6, 6), list = BEL_SHAPE(6);
    f.x = bel_input_value(f.graph, "x", BEL_DTYPE_F32, &shape);
    f.y = bel_input_value(f.graph, "y", BEL_DTYPE_F32, &shape);
    f.indices = bel_input_value(f.graph, "indices", BEL_DTYPE_I64, &list);
    return f;
}

static void check(const fixture *f, const bel_value *made, const char *name, const bel_value *first,
                  const bel_value *second)
{
    BEL_ASSERT_OK(bel_graph_check(f->graph));
    assert_non_null(made);
    const bel_node *node = made->node;
    assert_string_equal(bel_op_get(node->op)->name, name);
    assert_ptr_equal(node->inputs[0], first);
    assert_int_equal(node->input_count, second == NULL ? 1 : 2);
    if (second != NULL) assert_ptr_equal(node->inputs[1], second);
}

static void test_two_inputs(void **state)
{
    (void)state;
    static const struct {
        bel_value *(*make)(bel_graph *, bel_value *, bel_value *);
        const char *name;
    } rows[] = {
        {bel_add, "Add"},
        {bel_sub, "Sub"},
        {bel_mul, "Mul"},
        {bel_div, "Div"},
        {bel_max, "Max"},
        {bel_min, "Min"},
        {bel_equal, "Equal"},
        {bel_less, "Less"},
        {bel_greater, "Greater"},
        {bel_greater_or_equal, "GreaterOrEqual"},
        {bel_less_or_equal, "LessOrEqual"},
        {bel_pow, "Pow"},
        {bel_matmul, "MatMul"},
        {bel_sigmoid_cross_entropy, "SigmoidCrossEntropy"},
    };
    fixture f = make_fixture();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&f, rows[i].make(f.graph, f.x, f.y), rows[i].name, f.x, f.y);
    check(&f, bel_gather(f.graph, f.x, f.indices), "Gather", f.x, f.indices);
    check(&f, bel_softmax_cross_entropy(f.graph, f.x, f.indices), "SoftmaxCrossEntropyLoss", f.x,
          f.indices);
    bel_graph_destroy(f.graph);
}

static void test_one_input(void **state)
{
    (void)state;
    static const struct {
        bel_value *(*make)(bel_graph *, bel_value *);
        const char *name;
    } rows[] = {
        {bel_neg, "Neg"},
        {bel_exp, "Exp"},
        {bel_log, "Log"},
        {bel_sqrt, "Sqrt"},
        {bel_abs, "Abs"},
        {bel_relu, "Relu"},
        {bel_tanh, "Tanh"},
        {bel_sigmoid, "Sigmoid"},
        {bel_sign, "Sign"},
        {bel_reciprocal, "Reciprocal"},
        {bel_floor, "Floor"},
        {bel_ceil, "Ceil"},
        {bel_round, "Round"},
        {bel_erf, "Erf"},
        {bel_sin, "Sin"},
        {bel_cos, "Cos"},
        {bel_tan, "Tan"},
        {bel_asin, "Asin"},
        {bel_acos, "Acos"},
        {bel_atan, "Atan"},
        {bel_sinh, "Sinh"},
        {bel_cosh, "Cosh"},
        {bel_asinh, "Asinh"},
        {bel_acosh, "Acosh"},
        {bel_atanh, "Atanh"},
        {bel_gelu, "Gelu"},
        {bel_gelu_tanh, "GeluTanh"},
        {bel_silu, "Silu"},
        {bel_softplus, "Softplus"},
        {bel_is_nan, "IsNaN"},
        {bel_identity, "Identity"},
        {bel_softmax, "Softmax"},
        {bel_log_softmax, "LogSoftmax"},
    };
    fixture f = make_fixture();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&f, rows[i].make(f.graph, f.x), rows[i].name, f.x, NULL);
    bel_graph_destroy(f.graph);
}

static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        bel_value *(*make)(bel_graph *, bel_value *, const int64_t *, int, bool);
        const char *name;
    } rows[] = {
        {bel_reduce_sum, "ReduceSum"}, {bel_reduce_mean, "ReduceMean"},
        {bel_reduce_max, "ReduceMax"}, {bel_reduce_sum_square, "ReduceSumSquare"},
        {bel_reduce_min, "ReduceMin"}, {bel_reduce_prod, "ReduceProd"},
        {bel_reduce_l1, "ReduceL1"},   {bel_reduce_l2, "ReduceL2"},
    };
    static const int64_t axes[] = {1};
    fixture f = make_fixture();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&f, rows[i].make(f.graph, f.x, NULL, 0, false), rows[i].name, f.x, NULL);
        bel_value *kept = rows[i].make(f.graph, f.x, axes, 1, true);
        check(&f, kept, rows[i].name, f.x, NULL);
        bel_shape shape = bel_value_shape(kept), expected = BEL_SHAPE(6, 1);
        assert_true(bel_shape_equal(&shape, &expected));
    }
    assert_null(bel_reduce_sum(f.graph, f.x, axes, BEL_MAX_RANK + 1, false));
    BEL_ASSERT_FAILS(bel_graph_check(f.graph), BEL_INVALID_ARGUMENT, "9 axes are more than the 8");
    bel_graph_destroy(f.graph);
}

// bel_mean equals the reduction without axes, in every attribute.
static void test_mean(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_value *mean = bel_mean(f.graph, f.x);
    bel_value *same = bel_reduce_mean(f.graph, f.x, NULL, 0, false);
    check(&f, mean, "ReduceMean", f.x, NULL);
    assert_int_equal(bel_value_shape(mean).rank, 0);
    assert_true(bel_attrs_equal(&mean->node->attrs, &same->node->attrs));
    assert_null(bel_mean(f.graph, f.indices));
    BEL_ASSERT_FAILS(bel_graph_check(f.graph), BEL_INVALID_ARGUMENT, "ReduceMean");
    bel_graph_destroy(f.graph);
}

static double number(const bel_value *made, const char *name)
{
    return bel_attr_number(&made->node->attrs, name, -99);
}

static void test_attributes(void **state)
{
    (void)state;
    static const int64_t swap[] = {1, 0};
    fixture f = make_fixture();
    bel_value *gemm = bel_gemm(f.graph, f.x, f.y, f.x, 2, 3, true, false);
    assert_int_equal(gemm->node->input_count, 3);
    assert_true(number(gemm, "alpha") == 2 && number(gemm, "beta") == 3);
    assert_true(number(gemm, "transA") == 1 && number(gemm, "transB") == 0);
    gemm = bel_gemm(f.graph, f.x, f.y, NULL, 1, 1, false, true);
    check(&f, gemm, "Gemm", f.x, f.y);
    assert_true(number(gemm, "transA") == 0 && number(gemm, "transB") == 1);
    assert_true(number(bel_cast(f.graph, f.x, BEL_DTYPE_U8), "to") == BEL_DTYPE_U8);
    assert_true(number(bel_arg_max(f.graph, f.x, -1), "axis") == -1);
    assert_true(number(bel_one_hot(f.graph, f.indices, 7), "depth") == 7);
    assert_true(number(bel_dropout(f.graph, f.x, 0.25), "ratio") == 0.25);
    assert_true(number(bel_leaky_relu(f.graph, f.x, 0.1), "alpha") == 0.1);
    assert_true(number(bel_elu(f.graph, f.x, 2), "alpha") == 2);
    assert_true(number(bel_hard_sigmoid(f.graph, f.x, 1, 3), "beta") == 3);
    bel_value *indices, *best = bel_top_k(f.graph, f.x, 2, 0, false, &indices);
    assert_true(number(best, "k") == 2 && number(best, "axis") == 0 &&
                number(best, "largest") == 0);
    assert_ptr_equal(indices, best->node->outputs[1]);
    bel_value *sums = bel_cum_sum(f.graph, f.x, 1, true, false);
    assert_true(number(sums, "exclusive") == 1 && number(sums, "reverse") == 0);
    assert_true(number(bel_arg_min(f.graph, f.x, -1), "axis") == -1);
    bel_value *clipped = bel_clip(f.graph, f.x, -1, 4);
    assert_true(number(clipped, "min") == -1 && number(clipped, "max") == 4);
    bel_value *drawn = bel_random_uniform(f.graph, f.x, -2, 3);
    check(&f, drawn, "RandomUniformLike", f.x, NULL);
    assert_true(number(drawn, "low") == -2 && number(drawn, "high") == 3);
    drawn = bel_random_normal(f.graph, f.x, 1, 2);
    check(&f, drawn, "RandomNormalLike", f.x, NULL);
    assert_true(number(drawn, "mean") == 1 && number(drawn, "scale") == 2);
    bel_value *less = bel_less(f.graph, f.x, f.y), *nan = bel_is_nan(f.graph, f.x);
    check(&f, bel_and(f.graph, less, nan), "And", less, nan);
    check(&f, bel_or(f.graph, less, nan), "Or", less, nan);
    check(&f, bel_xor(f.graph, less, nan), "Xor", less, nan);
    check(&f, bel_not(f.graph, less), "Not", less, NULL);
    bel_shape shape = BEL_SHAPE(4, 9);
    bel_value *reshaped = bel_reshape(f.graph, f.x, &shape);
    assert_true(bel_shape_equal(bel_attr_ints(&reshaped->node->attrs, "shape"), &shape));
    bel_value *turned = bel_transpose(f.graph, f.x, swap);
    assert_int_equal(bel_attr_ints(&turned->node->attrs, "perm")->dims[0], 1);
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    bel_graph_destroy(f.graph);
}

static void assert_shape(const bel_value *value, bel_shape expected)
{
    bel_shape shape = bel_value_shape(value);
    assert_true(bel_shape_equal(&shape, &expected));
}

static void test_shapes(void **state)
{
    (void)state;
    static const int64_t one[] = {1}, two[] = {2}, last[] = {INT64_MAX}, pads[] = {1, 2};
    fixture f = make_fixture();
    bel_value *slice = bel_slice(f.graph, f.x, one, two, last, two, 1);
    check(&f, slice, "Slice", f.x, NULL);
    assert_shape(slice, BEL_SHAPE(6, 2));
    bel_value *padded = bel_pad(f.graph, f.x, pads, NULL, BEL_PAD_REFLECT, 0.5);
    check(&f, padded, "Pad", f.x, NULL);
    assert_true(number(padded, "mode") == BEL_PAD_REFLECT && number(padded, "value") == 0.5);
    assert_shape(padded, BEL_SHAPE(7, 8));
    bel_value *column = bel_unsqueeze(f.graph, f.indices, one, 1);
    check(&f, column, "Unsqueeze", f.indices, NULL);
    check(&f, bel_squeeze(f.graph, column, NULL, 0), "Squeeze", column, NULL);
    bel_shape wide = BEL_SHAPE(1, 3);
    check(&f, bel_expand(f.graph, column, &wide), "Expand", column, NULL);
    check(&f, bel_gather_axis(f.graph, f.x, f.indices, 1), "Gather", f.x, f.indices);
    check(&f, bel_gather_elements(f.graph, f.x, column, 1), "GatherElements", f.x, column);
    bel_value *chosen = bel_where(f.graph, bel_less(f.graph, f.x, f.y), f.x, f.y);
    assert_ptr_equal(chosen->node->inputs[2], f.y);
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    bel_graph_destroy(f.graph);
}

static void test_matmul_of_vectors(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_shape stack = BEL_SHAPE(BEL_DIM_BATCH, 6, 4), list = BEL_SHAPE(6);
    bel_value *v = bel_input_value(f.graph, "v", BEL_DTYPE_F32, &list);
    bel_value *s = bel_input_value(f.graph, "s", BEL_DTYPE_F32, &stack);
    assert_shape(bel_matmul(f.graph, v, v), bel_shape_scalar());
    assert_shape(bel_matmul(f.graph, f.x, v), BEL_SHAPE(6));
    assert_shape(bel_matmul(f.graph, v, s), BEL_SHAPE(BEL_DIM_BATCH, 4));
    assert_shape(bel_matmul(f.graph, f.x, s), BEL_SHAPE(BEL_DIM_BATCH, 6, 4));
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    bel_graph_destroy(f.graph);
}

// Joins the parts of a split, with more parts than an operation may have inputs.
static void test_split_and_concat(void **state)
{
    (void)state;
    enum { PARTS = 13 };
    fixture f = make_fixture();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 37);
    bel_value *parts[PARTS];
    bel_value *x = bel_input_value(f.graph, "wide", BEL_DTYPE_F32, &shape);
    bel_split(f.graph, x, 1, NULL, PARTS, parts);
    assert_shape(parts[0], BEL_SHAPE(BEL_DIM_BATCH, 3));
    assert_shape(parts[PARTS - 1], BEL_SHAPE(BEL_DIM_BATCH, 1));
    bel_value *joined = bel_concat(f.graph, parts, PARTS, 1);
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    assert_shape(joined, shape);
    bel_split(f.graph, x, -1, (const int64_t[]){30, 0, 7}, 3, parts);
    assert_shape(parts[1], BEL_SHAPE(BEL_DIM_BATCH, 0));
    assert_shape(parts[2], BEL_SHAPE(BEL_DIM_BATCH, 7));
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    bel_split(f.graph, x, 1, (const int64_t[]){30, 8}, 2, parts);
    assert_null(parts[0]);
    BEL_ASSERT_FAILS(bel_graph_check(f.graph), BEL_INVALID_ARGUMENT,
                     "Split: axis 1 of [?, 37] cannot be split into these 2 parts");
    bel_graph_destroy(f.graph);
}

static void test_norms(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_shape list = BEL_SHAPE(6);
    bel_value *scale = bel_input_value(f.graph, "scale", BEL_DTYPE_F32, &list);
    bel_value *made[] = {bel_layer_normalization(f.graph, f.x, scale, NULL, 1, 0.5),
                         bel_instance_normalization(f.graph, f.x, scale, scale, 0.5),
                         bel_group_normalization(f.graph, f.x, scale, scale, 3, 0.5)};
    static const char *const names[] = {"LayerNormalization", "InstanceNormalization",
                                        "GroupNormalization"};
    for (int i = 0; i < 3; i++) {
        BEL_ASSERT_OK(bel_graph_check(f.graph));
        assert_string_equal(bel_op_get(made[i]->node->op)->name, names[i]);
        assert_int_equal(made[i]->node->input_count, i == 0 ? 2 : 3);
        assert_true(number(made[i], "epsilon") == 0.5);
    }
    assert_true(number(made[0], "axis") == 1 && number(made[2], "num_groups") == 3);
    bel_value *y = bel_layer_norm(f.graph, bel_group_norm(f.graph, f.x, 2, "first"), "second");
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    assert_shape(y, BEL_SHAPE(6, 6));
    static const char *const variables[] = {"first/scale", "first/bias", "second/scale",
                                            "second/bias"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(f.graph->variables[i].name, variables[i]);
        assert_true(f.graph->variables[i].initializer.value == (i % 2 == 0 ? 1 : 0));
    }
    bel_graph_destroy(f.graph);
}

static void test_sequences(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_value *masked = bel_sequence_mask(f.graph, f.x, f.indices, -1);
    check(&f, masked, "SequenceMask", f.x, f.indices);
    assert_true(number(masked, "axis") == -1);
    bel_value *weights = bel_masked_softmax(f.graph, f.x, NULL, f.indices, true);
    check(&f, weights, "MaskedSoftmax", f.x, f.indices);
    assert_true(number(weights, "causal") == 1);
    weights = bel_masked_softmax(f.graph, f.x, bel_less(f.graph, f.x, f.y), f.indices, false);
    assert_int_equal(weights->node->input_count, 3);
    bel_shape shape = BEL_SHAPE(6, 5, 4), list = BEL_SHAPE(6, 2);
    bel_value *logits = bel_input_value(f.graph, "logits", BEL_DTYPE_F32, &shape);
    bel_value *labels = bel_input_value(f.graph, "labels", BEL_DTYPE_I64, &list);
    bel_value *loss = bel_ctc_loss(f.graph, logits, labels, f.indices, f.indices, true);
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    assert_string_equal(bel_op_get(loss->node->op)->name, "CTCLoss");
    assert_ptr_equal(loss->node->inputs[1], labels);
    assert_true(number(loss, "zero_infinity") == 1);
    assert_shape(loss, BEL_SHAPE(6));
    bel_graph_destroy(f.graph);
}

static void test_conv_transpose(void **state)
{
    (void)state;
    static const int64_t two[] = {2, 2}, one[] = {1, 1}, pads[] = {0, 0, 0, 0}, size[] = {9, 9};
    fixture f = make_fixture();
    bel_shape x_shape = BEL_SHAPE(BEL_DIM_BATCH, 4, 5, 5), w_shape = BEL_SHAPE(4, 3, 3, 3);
    bel_value *x = bel_input_value(f.graph, "image", BEL_DTYPE_F32, &x_shape);
    bel_value *w = bel_input_value(f.graph, "w", BEL_DTYPE_F32, &w_shape);
    bel_window_options options = {.size = sizeof options, .strides = two, .pads = pads};
    bel_value *y = bel_conv_transpose(f.graph, x, w, NULL, 2, &options, one, NULL);
    check(&f, y, "ConvTranspose", x, w);
    assert_true(number(y, "group") == 2);
    assert_shape(y, BEL_SHAPE(BEL_DIM_BATCH, 6, 12, 12));
    y = bel_conv_transpose(
        f.graph, x, w, NULL, 1,
        &(bel_window_options){.size = sizeof(bel_window_options), .strides = two}, NULL, size);
    assert_shape(y, BEL_SHAPE(BEL_DIM_BATCH, 3, 9, 9));
    assert_null(bel_conv_transpose(f.graph, x, w, NULL, 1, &options, NULL, size));
    BEL_ASSERT_FAILS(bel_graph_check(f.graph), BEL_INVALID_ARGUMENT,
                     "ConvTranspose: pads cannot be given beside output_shape or auto_pad");
    bel_graph_destroy(f.graph);
}

static void test_composed(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_value *loss = bel_l2_loss(f.graph, f.x);
    assert_int_equal(bel_value_shape(loss).rank, 0);
    bel_value *y = bel_dense(f.graph, f.x, 3, "top");
    BEL_ASSERT_OK(bel_graph_check(f.graph));
    assert_int_equal(f.graph->variable_count, 2);
    assert_string_equal(f.graph->variables[0].name, "top/kernel");
    assert_string_equal(f.graph->variables[1].name, "top/bias");
    assert_int_equal(f.graph->variables[0].initializer.kind, BEL_INIT_GLOROT_UNIFORM);
    assert_int_equal(f.graph->variables[1].initializer.kind, BEL_INIT_ZEROS);
    bel_shape shape = bel_value_shape(y), expected = BEL_SHAPE(6, 3);
    assert_true(bel_shape_equal(&shape, &expected));
    bel_graph_destroy(f.graph);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_inputs),        cmocka_unit_test(test_one_input),
        cmocka_unit_test(test_reductions),        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_attributes),        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_matmul_of_vectors), cmocka_unit_test(test_split_and_concat),
        cmocka_unit_test(test_composed),          cmocka_unit_test(test_norms),
        cmocka_unit_test(test_sequences),         cmocka_unit_test(test_conv_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
