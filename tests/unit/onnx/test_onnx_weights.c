// Choice of the constants of a model that are trained: by their use, wherever an exporter put them.
#include "base/alloc.h"
#include "base/str.h"
#include "graph/graph.h"
#include "unit/onnx/onnx_text.h"

// `expected` lists the graph's variables in order, frozen ones with "!", then "|" and the remaining
// constants.
typedef struct weights_case {
    text_model model;
    const char *expected;
} weights_case;

typedef struct built {
    bel_onnx_model *model;
    bel_graph *graph;
    bel_onnx_weights *weights;
} built;

static built build(const text_model *text, const char *const *train, int train_count)
{
    built b = {.model = read_text_model(text, 17), .graph = bel_graph_create()};
    b.weights = bel_onnx_weights_find(b.model, train, train_count);
    bel_onnx_options options = {.weights = b.weights};
    bel_value *y;
    BEL_ASSERT_OK(bel_onnx_build(b.model, b.graph, &options, &y));
    return b;
}

static void end(built *b)
{
    bel_onnx_weights_destroy(b->weights);
    bel_graph_destroy(b->graph);
    bel_onnx_destroy(b->model);
}

static void assert_weights(const built *b, const char *expected)
{
    bel_str got = {.text = NULL};
    const char *name;
    for (size_t v = 0; v < b->graph->variable_count; v++) {
        const bel_graph_variable *variable = &b->graph->variables[v];
        bool frozen = variable->kind == BEL_VARIABLE_FROZEN;
        bel_str_printf(&got, "%s%s ", variable->name, frozen ? "!" : "");
    }
    bel_str_puts(&got, "|");
    for (int at = 0; (name = bel_onnx_weights_next_fixed(b->weights, &at)) != NULL;)
        bel_str_printf(&got, " %s", name);
    assert_string_equal(got.text, expected);
    bel_str_deinit(&got);
}

static const weights_case cases[] = {
    {{"initializers", "b 3", "a = MatMul x w3x4\nb = Add a w4\ny = Relu b"}, "w3x4 w4 |"},
    {{"nodes Constant", "b 3", "a = MatMul x c3x4\nb = Add a c4\ny = Relu b"}, "c3x4 c4 |"},
    {{"another type", "b 3", "k = Cast d3x4; to=1\ny = MatMul x k"}, "d3x4 |"},
    {{"ConstantOfShape", "b 4", "o = ConstantOfShape i4\ny = Add x o"}, "o |"},
    {{"turned and reshaped", "b 3",
      "t = Transpose w4x3; perm=1,0\nr = Reshape c12 i3,4\nk = Add t r\ny = MatMul x t"},
     "w4x3 | c12"},
    {{"norm written out", "b 4",
      "q = Pow x s2\nm = ReduceMean q; keepdims=1 axes=1,1\na = Add m s1\nr = Sqrt a\n"
      "z = Div x r\ne = Mul z w4\nf = Add e w4_b\ng = Div f s3\ny = Mul g w1"},
     "w4 w4_b | s2 s1 s3 w1"},
    {{"a bias of one", "b 4", "a = MatMul x w4x1\ny = Add a w1"}, "w4x1 w1 |"},
    {{"a mask", "b 4", "a = Add x n4\ny = Gemm a w4x2 w2"}, "w4x2 w2 | n4"},
    {{"standardized inputs", "b 4", "a = Sub x w4\nb = Div a w4_d\ny = MatMul b w4x2"},
     "w4x2 | w4 w4_d"},
    {{"statistics", "b 4 2 2", "y = BatchNormalization x w4 w4_b w4_m w4_v"},
     "w4 w4_b w4_m! w4_v! |"},
    {{"weights of a norm", "b 4",
      "q = ReduceL2 w4x3; keepdims=1 axes=0,0\nu = Div w4x3 q\nv = Mul u w1x3\ny = MatMul x v"},
     "w4x3 w1x3 |"},
    {{"a scale that is computed", "b 4", "g = Add w4 s1\ny = Mul x g"}, "w4 | s1"},
    {{"a token", "1 4", "a = Concat w1x4 x; axis=0\nb = Mul a s2\ny = Relu b"}, "w1x4 | s2"},
};

static void test_weights_are_known_by_their_use(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("%s\n", cases[i].model.name);
        built b = build(&cases[i].model, NULL, 0);
        assert_weights(&b, cases[i].expected);
        end(&b);
    }
}

static void test_patterns_add_to_them(void **state)
{
    (void)state;
    static const char *const train[] = {"s*", "none"};
    built b = build(&(text_model){"", "b 4", "a = Mul x s2\ny = Div a w4"}, train, 2);
    assert_weights(&b, "s2 | w4");
    assert_true(bel_onnx_weights_matched(b.weights, 0));
    assert_false(bel_onnx_weights_matched(b.weights, 1));
    end(&b);
}

// Variables start with the file's elements as f32. A Cast to f32 reads the variable itself.
static void test_elements_are_those_of_the_file(void **state)
{
    (void)state;
    built b = build(&(text_model){"", "b 3", "k = Cast d3x4; to=1\na = MatMul x k\ny = Add a c4"},
                    NULL, 0);
    const bel_graph_variable *variables = b.graph->variables;
    for (int i = 0; i < 12; i++)
        assert_true(variables[0].elements[i] == (float)text_element("d3x4", i));
    for (int i = 0; i < 4; i++)
        assert_true(variables[1].elements[i] == (float)text_element("c4", i));
    for (size_t n = 0; n < b.graph->node_count; n++)
        if (b.graph->nodes[n]->op == BEL_OP_MATMUL)
            assert_ptr_equal(bel_alias_root(b.graph->nodes[n]->inputs[1]), variables[0].value);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_known_by_their_use),
        cmocka_unit_test(test_patterns_add_to_them),
        cmocka_unit_test(test_elements_are_those_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
