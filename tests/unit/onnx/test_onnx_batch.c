// Models closed at one example and bound to a batch: each row equals the closed model's result for
// that row. If a node mixes examples in an unsupported way, the model is refused and the node is
// named.
#include <math.h>

#include "base/alloc.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_text.h"

enum { ROWS = 3 };

static bel_status *build(const bel_onnx_model *model, bool open, bel_graph *graph, bel_value **y)
{
    const bel_onnx_port *port = bel_onnx_input(model, 0);
    bel_shape shape = port->shape;
    if (open) shape.dims[0] = -1;
    bel_onnx_binding binding = {.name = "x"};
    binding.value = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
    bel_onnx_options options = {.bindings = &binding, .binding_count = 1};
    BEL_TRY(bel_onnx_build(model, graph, &options, y));
    return bel_graph_verify(graph);
}

static void check_case(const text_model *c)
{
    static float x[TEXT_MOST], together[TEXT_MOST], alone[TEXT_MOST];
    bel_onnx_model *model = read_text_model(c, 17);
    bel_graph *open = bel_graph_create(), *closed = bel_graph_create();
    bel_value *y, *one;
    print_message("%s\n", c->name);
    BEL_ASSERT_OK(build(model, true, open, &y));
    BEL_ASSERT_OK(build(model, false, closed, &one));
    bel_shape shape = bel_onnx_input(model, 0)->shape;
    int64_t width = bel_shape_elements(&shape);
    for (int64_t i = 0; i < ROWS * width; i++)
        x[i] = (float)((i * 37 + i / 5) % 23) / 7 - 1;
    shape.dims[0] *= ROWS;
    int64_t all = run_text_graph(open, y, x, shape, together), each = 0;
    for (int row = 0; row < ROWS; row++) {
        each = run_text_graph(closed, one, x + row * width, bel_onnx_input(model, 0)->shape, alone);
        for (int64_t i = 0; i < each; i++) // products and sums may round differently
            assert_true(fabsf(together[row * each + i] - alone[i]) <=
                        2e-6F * (1 + fabsf(alone[i])));
    }
    assert_int_equal(all, ROWS * each);
    assert_true(bel_value_shape(y).dims[0] < 0);
    bel_graph_destroy(open);
    bel_graph_destroy(closed);
    bel_onnx_destroy(model);
}

static const text_model cases[] = {
    {"divided by the largest of all", "1 4", "m = ReduceMax x; keepdims=1\ny = Div x m"},
    {"by a scalar of all", "1 4", "m = ReduceSum x; keepdims=0\ny = Div x m"},
    {"running sums over examples", "1 4", "y = CumSum x i0"},
    {"softmax over examples", "1 4", "y = Softmax x; axis=0"},
    {"turned, softmax, turned", "1 4",
     "t = Transpose x; perm=1,0\ns = Softmax t; axis=-1\ny = Transpose s; perm=1,0"},
    {"old softmax of all", "1 2 3", "y = Softmax x; axis=0"},
    {"image", "1 2 6 6",
     "a = Conv x w3x2x3x3 w3; pads=1,1,1,1\nb = Relu a\nc = MaxPool b; kernel_shape=2,2 "
     "strides=2,2\n"
     "d = Reshape c i1,-1\ny = Gemm d w27x4 w4"},
    {"image flattened to its numbers", "1 2 6 6",
     "a = Conv x w3x2x3x3 w3; pads=1,1,1,1\nb = GlobalAveragePool a\nc = Reshape b i1,3\n"
     "y = Gemm c w3x4 w1x4"},
    {"attention", "1 5 8",
     "q0 = MatMul x w8x8\nk0 = MatMul x w8x8_k\nv0 = MatMul x w8x8_v\nq1 = Reshape q0 i1,5,2,4\n"
     "k1 = Reshape k0 i1,5,2,4\nv1 = Reshape v0 i1,5,2,4\nq = Transpose q1; perm=0,2,1,3\n"
     "k = Transpose k1; perm=0,2,3,1\nv = Transpose v1; perm=0,2,1,3\ns = MatMul q k\n"
     "p = Softmax s; axis=-1\na = MatMul p v\nb = Transpose a; perm=0,2,1,3\n"
     "c = Reshape b i1,5,8\nd = Add c x\ny = LayerNormalization d w8 w8_b"},
    {"attention with time first", "1 5 8",
     "t = Transpose x; perm=1,0,2\nq0 = MatMul t w8x8\nq1 = Reshape q0 i5,2,4\n"
     "q = Transpose q1; perm=1,0,2\nk = Transpose q1; perm=1,2,0\ns = MatMul q k\n"
     "p = Softmax s; axis=-1\na = MatMul p q\nb = Transpose a; perm=1,0,2\nc = Reshape b i5,8\n"
     "d = Gemm c w8x8_o w8; transB=1\ne = Reshape d i5,1,8\nf = Add e t\ny = Transpose f; "
     "perm=1,0,2"},
    {"a token before all", "1 5 4", "a = Concat w1x1x4 x; axis=1\nb = Add a w1x6x4\ny = Relu b"},
    {"rows after each other", "1 3 4",
     "a = Reshape x i3,4\nb = Concat a w2x4; axis=0\nc = Pad b i1,0,0,0\nd = Slice c i1 i5 i0\n"
     "y = Gather d i2,0; axis=0"},
    {"a table", "1 4", "a = ArgMax x; axis=1 keepdims=0\ny = Gather w4x3 a; axis=0"},
    {"the largest over examples", "1 4", "y = ArgMax x; axis=0"},
    {"places of each", "1 4", "v1 = TopK x i2; axis=1\ny = Add v1 w2"},
    {"products of rows", "1 3 4", "a = Squeeze x i0\nt = Transpose a; perm=1,0\ny = MatMul a t"},
    {"product with both turned", "1 3 4", "a = Reshape x i4,3\ny = Gemm a a; transB=1"},
    {"product with the first turned", "1 3 4", "a = Reshape x i3,4\ny = Gemm a w3x2 w2; transA=1"},
    {"norm of all", "1 3 4", "y = LayerNormalization x w1x3x4; axis=0"},
    {"frames as a batch", "1 3 2 5 5",
     "a = Reshape x i3,2,5,5\nb = Conv a w2x2x3x3\nc = InstanceNormalization b w2 w2_b\n"
     "y = Reshape c i1,-1"},
    {"spread over rows", "1 4", "a = Expand x i3,4\ny = Mul a w3x1"},
    {"a lower rank", "1 4", "m = ReduceMean x; keepdims=0 axes=0,0\na = Add w2x3x4 m\ny = Relu a"},
    {"GRU with time first", "1 5 3",
     "t = Transpose x; perm=1,0,2\ny = GRU t w1x12x3 w1x12x4 w1x24; hidden_size=4"},
    {"two examples", "2 4", "a = Gemm x w4x3 w3\nb = Add a w1x3\ny = Softmax b; axis=1"},
};

static void test_rows_are_those_of_the_closed_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

// --- Refusals ------------------------------------------------------------------------------------

static void assert_refused(const char *dims, const char *nodes, const char *part)
{
    text_model c = {"", dims, nodes};
    bel_onnx_model *model = read_text_model(&c, 17);
    bel_graph *graph = bel_graph_create();
    bel_value *y;
    BEL_ASSERT_FAILS(build(model, true, graph, &y), BEL_UNIMPLEMENTED, part);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
}

static void test_what_mixes_is_named(void **state)
{
    (void)state;
    assert_refused("2 4", "a = Relu x\ny = CumSum a i0",
                   "input \"x\" is closed at 2 in dimension 0, and node 1 \"here\" (CumSum) works");
    assert_refused("2 4", "y = Add x w2x4", "closed at 2 in dimension 0, and node 0");
    assert_refused("2 4", "y = Reshape x i4,2", "(Reshape)");
    assert_refused("1 2 3", "y = BatchNormalization x w2 w2_a w2_b w2_c; training_mode=1",
                   "(BatchNormalization)");
}

// Nodes that no output needs are never refused.
static void test_what_is_not_needed_may_mix(void **state)
{
    (void)state;
    check_case(&(text_model){"not needed", "2 4", "a = CumSum x i0\ny = Relu x"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_those_of_the_closed_model),
        cmocka_unit_test(test_what_mixes_is_named),
        cmocka_unit_test(test_what_is_not_needed_may_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
