// Functions defined in a model, nodes in any order, newer opsets, and sizes of open dimensions: the
// tests check the numbers computed.
#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "unit/onnx/onnx_text.h"

enum { FUNCTIONS = 25, FLOAT = 1 };

// --- Writing -------------------------------------------------------------------------------------

typedef struct function {
    const char *name, *inputs, *outputs; // names separated by blanks
    bel_str nodes;                       // made by put_call and put_plain
    bel_str defaults;
} function;

static void put_names(bel_str *out, int field, const char *names)
{
    for (const char *at = names; *at != '\0';) {
        size_t length = strcspn(at, " ");
        put_bytes(out, field, at, length);
        at += length;
        at += *at == ' ';
    }
}

static void put_plain(bel_str *out, int field, const char *op, const char *inputs,
                      const char *outputs, bel_str *attrs)
{
    bel_str node = make_node(op, inputs, outputs, attrs);
    put_part(out, field, &node);
}

static void put_call(bel_str *out, int field, const char *op, const char *inputs,
                     const char *outputs, bel_str *attrs)
{
    bel_str node = make_node(op, inputs, outputs, attrs);
    put_text(&node, 7, "local");
    put_part(out, field, &node);
}

// An attribute of floats: a number, or the call's attribute `from`.
static bel_str float_attr(const char *name, float number, const char *from)
{
    bel_str attr = {.text = NULL};
    put_text(&attr, 1, name);
    if (from == NULL) {
        put_varint(&attr, 2 << 3 | 5);
        bel_str_append(&attr, (const char *)&number, sizeof number);
    }
    put_int(&attr, 20, 1);
    if (from != NULL) put_text(&attr, 21, from);
    return attr;
}

static bel_str as_attrs(bel_str attr)
{
    bel_str attrs = {.text = NULL};
    put_part(&attrs, 5, &attr);
    return attrs;
}

static void put_function(bel_str *model, function *f)
{
    bel_str bytes = {.text = NULL};
    put_text(&bytes, 1, f->name);
    put_names(&bytes, 4, f->inputs);
    put_names(&bytes, 5, f->outputs);
    bel_str_append(&bytes, f->nodes.text, f->nodes.length);
    put_text(&bytes, 10, "local");
    if (f->defaults.text != NULL) put_part(&bytes, 11, &f->defaults);
    put_part(model, FUNCTIONS, &bytes);
    bel_str_deinit(&f->nodes);
}

// Makes a model of these nodes over x [2], with output y.
static bel_str model_of(bel_str *graph, int64_t opset)
{
    bel_str part = make_port("x", FLOAT, "2");
    put_part(graph, GRAPH_INPUT, &part);
    part = make_port("y", FLOAT, "");
    put_part(graph, GRAPH_OUTPUT, &part);
    return make_model(graph, opset);
}

// Runs the model for x = [1, 3].
static bel_status *run_bytes(bel_str *bytes, float out[TEXT_MOST])
{
    static const float x[] = {1, 3};
    bel_onnx_model *model;
    bel_status *status = bel_onnx_read(bytes->text, bytes->length, &model);
    bel_str_deinit(bytes);
    BEL_TRY(status);
    bel_graph *graph = bel_graph_create();
    bel_value *y;
    status = bel_onnx_build(model, graph, NULL, &y);
    if (status == NULL) run_text_graph(graph, y, x, BEL_SHAPE(2), out);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
    return status;
}

// --- Functions -----------------------------------------------------------------------------------

// Adds the function Scale(a; factor = 2): a times the factor.
static void put_scale(bel_str *model)
{
    function scale = {"Scale", "a", "out", {.text = NULL}, float_attr("factor", 2, NULL)};
    bel_str attrs = as_attrs(float_attr("value_float", 0, "factor"));
    put_plain(&scale.nodes, 7, "Constant", "", "c", &attrs);
    put_plain(&scale.nodes, 7, "Mul", "a c", "out", NULL);
    put_function(model, &scale);
}

// Each call of Scale has a separate value c, and one call passes its caller's factor.
static void test_functions_become_their_bodies(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    bel_str graph = {.text = NULL};
    bel_str attrs = as_attrs(float_attr("k", 10, NULL));
    put_call(&graph, GRAPH_NODE, "Both", "x", "y", &attrs);
    bel_str bytes = model_of(&graph, 17);
    put_scale(&bytes);
    function both = {"Both", "a", "out", {.text = NULL}, {.text = NULL}};
    attrs = as_attrs(float_attr("factor", 0, "k"));
    put_call(&both.nodes, 7, "Scale", "a", "b", &attrs);
    put_call(&both.nodes, 7, "Scale", "a", "c", NULL);
    put_plain(&both.nodes, 7, "Add", "b c", "out", NULL);
    put_function(&bytes, &both);
    BEL_ASSERT_OK(run_bytes(&bytes, y));
    assert_true(y[0] == 12 && y[1] == 36);
}

// A parameter returned unchanged, an omitted one, an unused output, and a subgraph that reads a
// parameter.
static void test_parameters(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    static const char yes = 1;
    bel_str graph = {.text = NULL};
    put_call(&graph, GRAPH_NODE, "Pass", "x", "- same z", NULL);
    put_plain(&graph, GRAPH_NODE, "Add", "same z", "y", NULL);
    bel_str part = make_tensor("flag", 9, NULL, 0, &yes, 1);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    bel_str bytes = model_of(&graph, 17);
    function pass = {"Pass", "a low", "none a out", {.text = NULL}, {.text = NULL}};
    bel_str inside = {.text = NULL}, other = {.text = NULL}, attrs = {.text = NULL};
    for (int i = 0; i < 2; i++) {
        bel_str *branch = i == 0 ? &inside : &other;
        put_plain(branch, GRAPH_NODE, i == 0 ? "Neg" : "Abs", "a", "r", NULL);
        part = make_port("r", FLOAT, "");
        put_part(branch, GRAPH_OUTPUT, &part);
    }
    add_graph_attr(&attrs, "then_branch", &inside);
    add_graph_attr(&attrs, "else_branch", &other);
    bel_str number = as_attrs(float_attr("value_float", 1, NULL));
    put_plain(&pass.nodes, 7, "Constant", "", "one", &number);
    put_plain(&pass.nodes, 7, "Equal", "one one", "sure", NULL);
    put_plain(&pass.nodes, 7, "If", "sure", "turned", &attrs);
    put_plain(&pass.nodes, 7, "Clip", "turned low", "out", NULL);
    put_plain(&pass.nodes, 7, "Relu", "a", "none", NULL);
    put_function(&bytes, &pass);
    BEL_ASSERT_OK(run_bytes(&bytes, y));
    assert_true(y[0] == 0 && y[1] == 0); // x - x
}

static void test_what_functions_may_not_do(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    bel_str graph = {.text = NULL};
    put_call(&graph, GRAPH_NODE, "Self", "x", "y", NULL);
    bel_str bytes = model_of(&graph, 17);
    function self = {"Self", "a", "out", {.text = NULL}, {.text = NULL}};
    put_call(&self.nodes, 7, "Self", "a", "out", NULL);
    put_function(&bytes, &self);
    BEL_ASSERT_FAILS(run_bytes(&bytes, y), BEL_UNIMPLEMENTED, "functions inside each other");

    graph = (bel_str){.text = NULL}; // a function does not see values around the call
    put_plain(&graph, GRAPH_NODE, "Relu", "x", "outside", NULL);
    put_call(&graph, GRAPH_NODE, "Look", "x", "y", NULL);
    bytes = model_of(&graph, 17);
    function look = {"Look", "a", "out", {.text = NULL}, {.text = NULL}};
    put_plain(&look.nodes, 7, "Add", "a outside", "out", NULL);
    put_function(&bytes, &look);
    BEL_ASSERT_FAILS(run_bytes(&bytes, y), BEL_DATA_LOSS, "\"outside\" is made by no node");

    graph = (bel_str){.text = NULL}; // 40 calls of 40 calls of 40 …
    put_call(&graph, GRAPH_NODE, "f0", "x", "y", NULL);
    bytes = model_of(&graph, 17);
    for (int level = 0; level < 5; level++) {
        char name[8], next[8];
        bel_snprintf(name, sizeof name, "f%d", level);
        bel_snprintf(next, sizeof next, "f%d", level + 1);
        function f = {name, "a", "out", {.text = NULL}, {.text = NULL}};
        for (int i = 0; i < 40 && level < 4; i++)
            put_call(&f.nodes, 7, next, "a", i == 0 ? "out" : "-", NULL);
        if (level == 4) put_plain(&f.nodes, 7, "Relu", "a", "out", NULL);
        put_function(&bytes, &f);
    }
    BEL_ASSERT_FAILS(run_bytes(&bytes, y), BEL_UNIMPLEMENTED, "functions make more than");
}

// --- Order ---------------------------------------------------------------------------------------

static void test_nodes_in_any_order(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    bel_str graph = {.text = NULL};
    put_plain(&graph, GRAPH_NODE, "Add", "c b", "y", NULL);
    put_plain(&graph, GRAPH_NODE, "Mul", "b b", "c", NULL);
    put_plain(&graph, GRAPH_NODE, "Neg", "x", "b", NULL);
    bel_str bytes = model_of(&graph, 17);
    BEL_ASSERT_OK(run_bytes(&bytes, y));
    assert_true(y[0] == 0 && y[1] == 6);

    graph = (bel_str){.text = NULL};
    put_plain(&graph, GRAPH_NODE, "Add", "c x", "y", NULL);
    put_plain(&graph, GRAPH_NODE, "Neg", "y", "c", NULL);
    bytes = model_of(&graph, 17);
    BEL_ASSERT_FAILS(run_bytes(&bytes, y), BEL_DATA_LOSS, "wait for each other in a circle");
}

// --- Newer opsets, sizes -------------------------------------------------------------------------

static void test_newer_opsets(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    bel_str graph = {.text = NULL}, attrs = as_attrs(float_attr("alpha", 2, NULL));
    put_plain(&graph, GRAPH_NODE, "Swish", "x", "s", &attrs);
    put_plain(&graph, GRAPH_NODE, "RMSNormalization", "s x", "y", NULL);
    bel_str bytes = model_of(&graph, 24);
    BEL_ASSERT_OK(run_bytes(&bytes, y));
    double s[2] = {1 / (1 + exp(-2.0)), 3 / (1 + exp(-6.0))};
    double root = sqrt((s[0] * s[0] + s[1] * s[1]) / 2 + 1e-5);
    for (int i = 0; i < 2; i++)
        assert_true(fabs((double)y[i] - s[i] / root * (1 + 2 * i)) < 1e-5);
}

// Attention of opset 23 equals a graph of other operators. Two query heads share one key head, side
// by side in the last dimension, and each query attends to earlier positions.
static void test_attention(void **state)
{
    (void)state;
    static const char *const nodes[] = {
        "k = MatMul x w4x2\nv = MatMul x w4x2_v\n"
        "y = Attention x k v; q_num_heads=2 kv_num_heads=1 is_causal=1",
        "k = MatMul x w4x2\nv = MatMul x w4x2_v\nq0 = Reshape x i0,0,2,2\n"
        "q = Transpose q0; perm=0,2,1,3\nt = Transpose k; perm=0,2,1\nk1 = Unsqueeze t i1\n"
        "v1 = Unsqueeze v i1\na = MatMul q k1\nr = Sqrt s2\nb = Div a r\nc = Trilu b; upper=0\n"
        "m = Trilu n3x3 i1\nd = Add c m\np = Softmax d; axis=-1\nz = MatMul p v1\n"
        "u = Transpose z; perm=0,2,1,3\ny = Reshape u i0,0,4"};
    static float x[TEXT_MOST], y[2][TEXT_MOST];
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i * 5 % 7) / 7;
    for (int i = 0; i < 2; i++) {
        bel_onnx_model *model = read_text_model(&(text_model){"", "n 3 4", nodes[i]}, 23);
        bel_graph *graph = bel_graph_create();
        bel_value *value;
        BEL_ASSERT_OK(bel_onnx_build(model, graph, NULL, &value));
        assert_int_equal(run_text_graph(graph, value, x, BEL_SHAPE(2, 3, 4), y[i]), 24);
        bel_graph_destroy(graph);
        bel_onnx_destroy(model);
    }
    for (int i = 0; i < 24; i++)
        assert_true(fabsf(y[0][i] - y[1][i]) < 1e-6F);
}

// Rows of a table up to the batch's size; integers multiplied; a product of sizes in a shape.
static void test_sizes_of_open_dimensions(void **state)
{
    (void)state;
    static const struct {
        text_model model;
        int64_t rows;
    } cases[] = {
        {{"table", "n 4", "s = Shape x\nn = Gather s i0\nt = Slice w5x4 i0 n i0\ny = Add x t"}, 3},
        {{"product", "n 4", "s = Shape x\np = ReduceProd s; keepdims=1\ny = Reshape x p"}, 3},
    };
    static float x[TEXT_MOST], y[TEXT_MOST];
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        bel_onnx_model *model = read_text_model(&cases[c].model, 17);
        bel_graph *graph = bel_graph_create();
        bel_value *value;
        BEL_ASSERT_OK(bel_onnx_build(model, graph, NULL, &value));
        int64_t count = cases[c].rows * 4;
        for (int64_t i = 0; i < count; i++)
            x[i] = (float)i;
        assert_int_equal(run_text_graph(graph, value, x, BEL_SHAPE(cases[c].rows, 4), y), count);
        for (int64_t i = 0; i < count; i++)
            assert_true(y[i] == x[i] + (c == 0 ? (float)text_element("w5x4", i) : 0));
        bel_graph_destroy(graph);
        bel_onnx_destroy(model);
    }
}

static void test_integers_are_reduced(void **state)
{
    (void)state;
    static float y[TEXT_MOST];
    text_model text = {"", "1",
                       "a = ReduceProd i3,4,5; keepdims=0\nb = ReduceMax i3,4,5; keepdims=1\n"
                       "c = ReduceMin i3,4,5; keepdims=1\nd = Add b c\nz = Add d a\ny = Add z i0"};
    bel_onnx_model *model = read_text_model(&text, 17);
    bel_graph *graph = bel_graph_create();
    bel_value *value;
    BEL_ASSERT_OK(bel_onnx_build(model, graph, NULL, &value));
    static const float x[1] = {0};
    assert_int_equal(run_text_graph(graph, value, x, BEL_SHAPE(1), y), 1);
    assert_true(y[0] == 68);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
}

static void test_an_open_dimension_does_not_broadcast(void **state)
{
    (void)state;
    bel_onnx_model *model = read_text_model(&(text_model){"", "n 3", "y = Add x w2x3"}, 17);
    bel_graph *graph = bel_graph_create();
    bel_value *value;
    BEL_ASSERT_FAILS(bel_onnx_build(model, graph, NULL, &value), BEL_INVALID_ARGUMENT,
                     "an open dimension fits 1 and itself only");
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_become_their_bodies),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_what_functions_may_not_do),
        cmocka_unit_test(test_nodes_in_any_order),
        cmocka_unit_test(test_newer_opsets),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_sizes_of_open_dimensions),
        cmocka_unit_test(test_integers_are_reduced),
        cmocka_unit_test(test_an_open_dimension_does_not_broadcast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
