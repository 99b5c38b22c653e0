// Subgraphs, and sizes of open dimensions: the cases resolved while a graph is built, and refusals.
#include "base/alloc.h"
#include "base/str.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_bytes.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static void put(bel_str *graph, int field, bel_str part)
{
    put_part(graph, field, &part);
}

// Builds a model over x [n, 4] and returns the shape of its output y.
static bel_status *build(bel_str *graph, bel_shape *out_shape)
{
    put(graph, GRAPH_INPUT, make_port("x", FLOAT, "n 4"));
    put(graph, GRAPH_OUTPUT, make_port("y", FLOAT, ""));
    bel_str bytes = make_model(graph, 17);
    bel_onnx_model *model;
    bel_status *status = bel_onnx_read(bytes.text, bytes.length, &model);
    bel_str_deinit(&bytes);
    BEL_TRY(status);
    bel_graph *built = bel_graph_create();
    bel_value *y = NULL;
    status = bel_onnx_build(model, built, NULL, &y);
    if (status == NULL) status = bel_graph_verify(built);
    if (status == NULL) *out_shape = bel_value_shape(y);
    bel_graph_destroy(built);
    bel_onnx_destroy(model);
    return status;
}

static void put_ints(bel_str *graph, const char *name, const int64_t *ints, int64_t count)
{
    put(graph, GRAPH_INITIALIZER,
        make_tensor(name, INT64, &count, 1, ints, (size_t)count * sizeof *ints));
}

// --- Subgraphs -----------------------------------------------------------------------------------

// Makes a graph of one node, whose output is "out".
static bel_str branch(const char *op, const char *inputs, bel_str *attrs)
{
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_NODE, make_node(op, inputs, "out", attrs));
    put(&graph, GRAPH_OUTPUT, make_port("out", FLOAT, ""));
    return graph;
}

static void put_if(bel_str *graph, bool condition, bel_str then_branch, bel_str else_branch)
{
    bel_str attrs = {.text = NULL};
    char byte = condition;
    add_graph_attr(&attrs, "then_branch", &then_branch);
    add_graph_attr(&attrs, "else_branch", &else_branch);
    put(graph, GRAPH_INITIALIZER, make_tensor("condition", BOOL, NULL, 0, &byte, 1));
    put(graph, GRAPH_NODE, make_node("If", "condition", "y", &attrs));
}

// Both branches make a value "out" and read "x" from outside. Only the branch taken must consist of
// supported operators.
static void test_branches(void **state)
{
    (void)state;
    const int64_t six[] = {2, -1};
    for (int taken = 0; taken < 2; taken++) {
        bel_str graph = {.text = NULL};
        bel_shape y;
        bel_str good = branch("Reshape", "x six", NULL), bad = branch("NoSuchOperator", "x", NULL);
        put_ints(&graph, "six", six, 2);
        put_if(&graph, taken != 0, taken ? good : bad, taken ? bad : good);
        BEL_ASSERT_OK(build(&graph, &y));
        assert_true(y.rank == 2 && y.dims[0] == 2 && y.dims[1] < -1); // 2 n elements
    }
}

static void test_refused_branches(void **state)
{
    (void)state;
    bel_shape y;
    bel_str graph = {.text = NULL};
    put_if(&graph, true, branch("NoSuchOperator", "x", NULL), branch("Relu", "x", NULL));
    BEL_ASSERT_FAILS(build(&graph, &y), BEL_UNIMPLEMENTED, "(If): then_branch: node 0");

    graph = (bel_str){.text = NULL};
    put_if(&graph, false, branch("Relu", "x", NULL), branch("Relu", "nothing", NULL));
    BEL_ASSERT_FAILS(build(&graph, &y), BEL_DATA_LOSS, "\"nothing\" is made by no node");

    graph = (bel_str){.text = NULL}; // a branch's values are unknown outside
    put_if(&graph, false, branch("Relu", "x", NULL), branch("Relu", "x", NULL));
    put(&graph, GRAPH_NODE, make_node("Relu", "out", "z", NULL));
    BEL_ASSERT_FAILS(build(&graph, &y), BEL_DATA_LOSS, "\"out\" is made by no node");

    graph = (bel_str){.text = NULL}; // the node's outputs are unknown inside
    put_if(&graph, false, branch("Relu", "x", NULL), branch("Relu", "y", NULL));
    BEL_ASSERT_FAILS(build(&graph, &y), BEL_DATA_LOSS, "\"y\" is made by no node");

    graph = (bel_str){.text = NULL};
    bel_str attrs = {.text = NULL}, inside = branch("Relu", "x", NULL);
    add_graph_attr(&attrs, "then_branch", &inside);
    put(&graph, GRAPH_NODE, make_node("If", "flag", "y", &attrs));
    put(&graph, GRAPH_INPUT, make_port("flag", BOOL, ""));
    BEL_ASSERT_FAILS(build(&graph, &y), BEL_FAILED_PRECONDITION, "\"flag\" must be known");
}

// Builds If inside If, `depth` levels deep.
static bel_status *build_nested(int depth)
{
    bel_str graph = {.text = NULL}, inside = branch("Relu", "x", NULL);
    bel_shape y;
    for (int i = 1; i < depth; i++) {
        bel_str attrs = {.text = NULL};
        add_graph_attr(&attrs, "then_branch", &inside);
        inside = branch("If", "condition", &attrs);
    }
    put_if(&graph, true, inside, branch("Relu", "x", NULL));
    return build(&graph, &y);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    BEL_ASSERT_OK(build_nested(8));
    BEL_ASSERT_FAILS(build_nested(9), BEL_UNIMPLEMENTED, "subgraphs inside each other");
    BEL_ASSERT_FAILS(build_nested(3000), BEL_UNIMPLEMENTED, "subgraphs inside each other");
}

// --- Sizes ---------------------------------------------------------------------------------------

// Builds nodes of y = op(x, sizes derived from the batch). Each row names an operator and its
// inputs.
static bel_status *build_sizes(const char *const (*nodes)[3], int count, bel_shape *out_shape)
{
    static const int64_t zero[] = {0}, two[] = {2}, four[] = {4}, minus[] = {-1}, seven[] = {7};
    bel_str graph = {.text = NULL};
    put_ints(&graph, "zero", zero, 1);
    put_ints(&graph, "two", two, 1);
    put_ints(&graph, "four", four, 1);
    put_ints(&graph, "seven", seven, 1);
    put_ints(&graph, "minus", minus, 1);
    put(&graph, GRAPH_NODE, make_node("Shape", "x", "shape", NULL));
    put(&graph, GRAPH_NODE, make_node("Gather", "shape zero", "n", NULL));
    for (int i = 0; i < count; i++) {
        bel_str axis = make_int_attr("axis", 0);
        bool concat = strcmp(nodes[i][0], "Concat") == 0;
        if (!concat) bel_str_deinit(&axis);
        put(&graph, GRAPH_NODE,
            make_node(nodes[i][0], nodes[i][1], nodes[i][2], concat ? &axis : NULL));
    }
    return build(&graph, out_shape);
}

static void test_sizes_become_dimensions(void **state)
{
    (void)state;
    bel_shape y;
    static const char *const twice[][3] = {
        {"Mul", "n two", "m"}, {"Concat", "m two", "t"}, {"Reshape", "x t", "y"}};
    BEL_ASSERT_OK(build_sizes(twice, 3, &y));
    assert_true(y.rank == 2 && y.dims[0] < -1 && y.dims[1] == 2);
    static const char *const back[][3] = {{"Mul", "n two", "m"},     {"Concat", "m minus", "t"},
                                          {"Reshape", "x t", "z"},   {"Sub", "m n", "k"},
                                          {"Concat", "k four", "u"}, {"Reshape", "z u", "y"}};
    BEL_ASSERT_OK(build_sizes(back, 6, &y));
    assert_true(y.rank == 2 && y.dims[0] == -1 && y.dims[1] == 4);
    static const char *const closed[][3] = {{"Div", "n n", "one"},
                                            {"Sub", "n n", "none"},
                                            {"Add", "one none", "t"},
                                            {"Concat", "t n four", "u"},
                                            {"Reshape", "x u", "y"}};
    BEL_ASSERT_OK(build_sizes(closed, 5, &y));
    assert_true(y.rank == 3 && y.dims[0] == 1 && y.dims[1] == -1 && y.dims[2] == 4);
}

static void test_sizes_that_are_refused(void **state)
{
    (void)state;
    bel_shape y;
    static const char *const unequal[][3] = {{"Concat", "n two", "t"}, {"Reshape", "x t", "y"}};
    BEL_ASSERT_FAILS(build_sizes(unequal, 2, &y), BEL_INVALID_ARGUMENT, "element counts differ");
    static const char *const square[][3] = {
        {"Mul", "n n", "m"}, {"Concat", "m two", "t"}, {"Reshape", "x t", "y"}};
    BEL_ASSERT_FAILS(build_sizes(square, 3, &y), BEL_INVALID_ARGUMENT, "element counts differ");
    static const char *const cube[][3] = {{"Mul", "n n", "m"},
                                          {"Mul", "m n", "k"},
                                          {"Concat", "k minus", "t"},
                                          {"Reshape", "x t", "y"}};
    BEL_ASSERT_FAILS(build_sizes(cube, 4, &y), BEL_UNIMPLEMENTED, "no product of a number");
    static const char *const half[][3] = {
        {"Div", "n two", "m"}, {"Concat", "m minus", "t"}, {"Reshape", "x t", "y"}};
    BEL_ASSERT_FAILS(build_sizes(half, 3, &y), BEL_UNIMPLEMENTED, "no product of a number");
    static const char *const sum[][3] = {
        {"Add", "n seven", "m"}, {"Concat", "m minus", "t"}, {"Reshape", "x t", "y"}};
    BEL_ASSERT_FAILS(build_sizes(sum, 3, &y), BEL_UNIMPLEMENTED, "no product of a number");
    static const char *const negative[][3] = {{"Mul", "n minus", "m"}, {"Expand", "x m", "y"}};
    BEL_ASSERT_FAILS(build_sizes(negative, 2, &y), BEL_INVALID_ARGUMENT, "dimension 0 of a shape");
    static const char *const value[][3] = {{"CumSum", "n zero", "y"}};
    BEL_ASSERT_FAILS(build_sizes(value, 1, &y), BEL_UNIMPLEMENTED, "size of an open dimension");
    static const char *const axis[][3] = {{"Squeeze", "x n", "y"}};
    BEL_ASSERT_FAILS(build_sizes(axis, 1, &y), BEL_FAILED_PRECONDITION, "\"n\" must be known");
    static const char *const itself[][3] = {{"Identity", "n", "y"}};
    BEL_ASSERT_FAILS(build_sizes(itself, 1, &y), BEL_UNIMPLEMENTED, "\"y\" is computed from");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches), cmocka_unit_test(test_refused_branches),
        cmocka_unit_test(test_depth_is_bounded), cmocka_unit_test(test_sizes_become_dimensions),
        cmocka_unit_test(test_sizes_that_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
