// Building graphs: sticky errors, scopes, shared variables, open dimensions, verification.
#include "base/number.h"
#include "base/str.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "support/bel_test.h"

static const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};

static bel_value *input(bel_graph *graph, const char *name, bel_shape shape)
{
    return bel_input_value(graph, name, BEL_DTYPE_F32, &shape);
}

static bel_value *variable(bel_graph *graph, const char *name, bel_shape shape)
{
    return bel_variable(graph, name, &shape, zeros, BEL_VARIABLE_TRAINABLE);
}

static void test_sticky_errors(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *a = input(graph, "a", BEL_SHAPE(BEL_DIM_BATCH, 4));
    bel_value *b = input(graph, "b", BEL_SHAPE(5, 3));
    bel_graph_push_scope(graph, "tower");
    bel_graph_push_scope(graph, "layer1");
    bel_value *y = bel_matmul(graph, a, b);
    assert_null(y);
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "tower/layer1/MatMul");
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "[?, 4]");
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "[5, 3]");
    size_t nodes = graph->node_count;
    assert_null(bel_relu(graph, y)); // NULL is accepted
    assert_null(bel_exp(graph, a));  // so are valid values, without effect
    assert_null(bel_dense(graph, y, 0, "later"));
    assert_null(input(graph, "c", BEL_SHAPE(1)));
    assert_null(variable(graph, "w", BEL_SHAPE(1)));
    assert_null(bel_scalar(graph, BEL_DTYPE_F32, 1));
    bel_assign_state(graph, NULL, NULL);
    bel_graph_fail(graph, BEL_ABORTED, "too late");
    bel_value *gradient = a;
    bel_gradients(graph, y, &a, 1, &gradient);
    assert_null(gradient);
    assert_int_equal(graph->node_count, nodes);
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "MatMul"); // the first error
    bel_graph_destroy(graph);
}

static void test_own_errors(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create(), *other = bel_graph_create();
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_graph_fail(graph, BEL_FAILED_PRECONDITION, "needs %d classes", 10);
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_FAILED_PRECONDITION, "needs 10 classes");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    bel_value *foreign = input(other, "x", BEL_SHAPE(3));
    assert_null(bel_add(graph, input(graph, "x", BEL_SHAPE(3)), foreign));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT,
                     "Add: input 1 belongs to another graph");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    assert_null(bel_add(graph, NULL, input(graph, "x", BEL_SHAPE(3))));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "Add: input 0 is missing");
    bel_graph_destroy(graph);
    bel_graph_destroy(other);
}

static void test_leaf_errors(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    input(graph, "x", BEL_SHAPE(3));
    assert_null(input(graph, "x", BEL_SHAPE(3)));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_ALREADY_EXISTS, "an input \"x\"");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    assert_null(variable(graph, "w", BEL_SHAPE(BEL_DIM_BATCH, 3)));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "\"w\" needs a closed");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    assert_null(bel_dense(graph, input(graph, "x", BEL_SHAPE(3)), 5, "top"));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "dense layer \"top\"");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    float number = 1;
    assert_null(bel_constant(graph, &(bel_tensor){.shape = BEL_SHAPE(1, -1), .data = &number}));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "closed shape, got f32 [1, ?]");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    assert_null(bel_scalar(graph, BEL_DTYPE_I64, 3));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "f32 or f64, got i64");
    bel_graph_destroy(graph);
}

static void test_scopes(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_graph_push_scope(graph, "a");
    bel_graph_push_scope(graph, "b");
    bel_value *x = variable(graph, "w", BEL_SHAPE(2));
    assert_string_equal(graph->variables[0].name, "a/b/w");
    bel_graph_pop_scope(graph);
    bel_value *y = bel_neg(graph, x);
    assert_string_equal(y->node->name, "a/Neg_1");
    bel_graph_pop_scope(graph);
    bel_graph_pop_scope(graph); // one pop too many does nothing
    assert_string_equal(bel_neg(graph, x)->node->name, "Neg_2");
    bel_graph_push_scope(graph, "block/0"); // one scope, whatever its name contains
    bel_graph_pop_scope(graph);
    assert_string_equal(bel_neg(graph, x)->node->name, "Neg_3");
    for (int i = 0; i < 300; i++)
        bel_graph_push_scope(graph, "deep");
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "nested too deeply");
    bel_graph_destroy(graph);
}

// A name is never cut, since the cut name could be another variable's.
static void test_long_names(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    char name[BEL_GRAPH_MAX_NAME + 1];
    memset(name, 'w', sizeof name - 1);
    name[BEL_GRAPH_MAX_NAME] = '\0';
    assert_non_null(variable(graph, name + 1, BEL_SHAPE(2)));
    assert_null(variable(graph, name, BEL_SHAPE(2)));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "is longer than 319 bytes");
    bel_graph_destroy(graph);
}

static void test_shared_variables(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *w = variable(graph, "w", BEL_SHAPE(2, 3));
    assert_ptr_equal(variable(graph, "w", BEL_SHAPE(2, 3)), w);
    bel_graph_push_scope(graph, "s");
    assert_ptr_not_equal(variable(graph, "w", BEL_SHAPE(2, 3)), w); // another name: "s/w"
    bel_graph_pop_scope(graph);
    assert_int_equal(graph->variable_count, 2);
    assert_null(variable(graph, "w", BEL_SHAPE(3, 2)));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT,
                     "variable \"w\" has shape [2, 3] and is requested again with shape [3, 2]");
    bel_graph_destroy(graph);
}

static void check_assignment(bel_variable_kind kind, bel_shape shape, const char *part)
{
    bel_graph *graph = bel_graph_create();
    bel_shape own = BEL_SHAPE(3);
    bel_value *mean = bel_variable(graph, "mean", &own, zeros, kind);
    bel_value *value = input(graph, "x", shape);
    bel_assign_state(graph, mean, value);
    if (part == NULL) {
        assert_ptr_equal(graph->variables[0].assigned, value);
        bel_assign_state(graph, mean, value);
        part = "\"mean\" is assigned twice";
    }
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, part);
    bel_graph_destroy(graph);
}

static void test_state(void **state)
{
    (void)state;
    check_assignment(BEL_VARIABLE_STATE_MEAN, BEL_SHAPE(3), NULL);
    check_assignment(BEL_VARIABLE_STATE_SUM, BEL_SHAPE(3), NULL);
    check_assignment(BEL_VARIABLE_STATE_MEAN, BEL_SHAPE(4), "another shape or type");
    check_assignment(BEL_VARIABLE_TRAINABLE, BEL_SHAPE(3), "no state variable");
    check_assignment(BEL_VARIABLE_FROZEN, BEL_SHAPE(3), "no state variable");
}

// The batch dimension stays open through a model and closes when shapes are given.
static void test_open_batch(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *x = input(graph, "x", BEL_SHAPE(BEL_DIM_BATCH, 4));
    bel_value *hidden = bel_relu(graph, bel_dense(graph, x, 3, "hidden"));
    bel_shape flat_shape = BEL_SHAPE(-1);
    bel_value *flat = bel_reshape(graph, bel_dense(graph, hidden, 1, "top"), &flat_shape);
    bel_value *mean = bel_mean(graph, flat);
    BEL_ASSERT_OK(bel_graph_check(graph));
    char text[BEL_SHAPE_TEXT];
    bel_shape shape = bel_value_shape(hidden);
    assert_string_equal(bel_shape_text(&shape, text), "[?, 3]");
    shape = bel_value_shape(flat);
    assert_string_equal(bel_shape_text(&shape, text), "[?]");
    assert_int_equal(bel_value_shape(mean).rank, 0);
    bel_spec specs[64];
    assert_true(graph->value_count <= 64);
    shape = BEL_SHAPE(7, 4);
    BEL_ASSERT_OK(bel_graph_infer(graph, &shape, specs));
    assert_string_equal(bel_shape_text(&specs[flat->id].shape, text), "[7]");
    shape = BEL_SHAPE(7, 5);
    BEL_ASSERT_FAILS(bel_graph_infer(graph, &shape, specs), BEL_INVALID_ARGUMENT, "hidden/Gemm_");
    shape = BEL_SHAPE(BEL_DIM_BATCH, 4);
    BEL_ASSERT_FAILS(bel_graph_infer(graph, &shape, specs), BEL_INVALID_ARGUMENT,
                     "input \"x\" has an open dimension");
    bel_value *other = input(graph, "t", BEL_SHAPE(BEL_DIM_TIME));
    assert_null(bel_add(graph, flat, other)); // two open dimensions that may differ
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "do not broadcast");
    bel_graph_destroy(graph);
}

// Breaks one thing in a valid graph and calls bel_graph_verify.
static void check_broken(int what, const char *part)
{
    bel_graph *graph = bel_graph_create();
    bel_value *x = input(graph, "x", BEL_SHAPE(2, 3));
    bel_value *y = bel_exp(graph, x), *z = bel_add(graph, x, y);
    bel_graph *other = bel_graph_create();
    BEL_ASSERT_OK(bel_graph_verify(graph));
    switch (what) {
    case 0: y->node->inputs[0] = z; break; // a cycle
    case 1: z->node->inputs[1] = NULL; break;
    case 2: z->node->input_count = 1; break;
    case 3: y->node->index = 0; break;
    case 4: z->spec.shape = BEL_SHAPE(3, 2); break;
    case 5: z->spec.dtype = BEL_DTYPE_F64; break;
    case 6: z->node->inputs[1] = input(other, "x", BEL_SHAPE(2, 3)); break;
    default: z->node->output_count = 2; break;
    }
    BEL_ASSERT_FAILS(bel_graph_verify(graph), BEL_INTERNAL, part);
    bel_graph_destroy(graph);
    bel_graph_destroy(other);
}

// Element counts stay far below the point where size products overflow.
static void test_too_many_elements(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    const int64_t side = INT64_C(1) << 25;
    bel_value *column = input(graph, "column", BEL_SHAPE(side, 1));
    bel_value *row = input(graph, "row", BEL_SHAPE(BEL_DIM_BATCH, 1, side / 4));
    assert_non_null(bel_add(graph, column, row)); // 2^48
    assert_null(bel_matmul(graph, column, input(graph, "wide", BEL_SHAPE(1, side))));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT,
                     "MatMul: a result of shape [33554432, 33554432] would have too many elements");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    assert_null(input(graph, "x", BEL_SHAPE(side, side)));
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "input \"x\"");
    bel_graph_destroy(graph);
    graph = bel_graph_create();
    bel_spec specs[1];
    bel_shape many = BEL_SHAPE(side * side);
    input(graph, "x", BEL_SHAPE(BEL_DIM_BATCH));
    BEL_ASSERT_FAILS(bel_graph_infer(graph, &many, specs), BEL_INVALID_ARGUMENT, "input \"x\"");
    bel_tensor nothing = {BEL_DTYPE_F32, BEL_SHAPE(0, INT64_MAX), NULL};
    assert_null(bel_constant(graph, &nothing)); // without the 0 the product would overflow
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, "too many elements");
    bel_graph_destroy(graph);
}

// Too many names to compare each with all others.
static void test_many_names(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    bel_graph *graph = bel_graph_create();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            char name[24];
            bel_snprintf(name, sizeof name, "v%d", i);
            bel_value *value = variable(graph, name, BEL_SHAPE(1));
            assert_non_null(value);
            assert_int_equal(value->node->leaf, i);
            assert_int_equal(bel_graph_find_variable(graph, name), i);
        }
    }
    assert_int_equal(graph->variable_count, COUNT);
    assert_int_equal(bel_graph_find_variable(graph, "v"), -1);
    assert_int_equal(bel_graph_find_table(graph, "v0"), -1);
    bel_graph_destroy(graph);
}

static void test_verify(void **state)
{
    (void)state;
    check_broken(0, "node Exp_1: input 0 is not made before it");
    check_broken(1, "node Add_2: input 1");
    check_broken(2, "node Add_2 is malformed");
    check_broken(3, "node Exp_1 is malformed");
    check_broken(4, "node Add_2: output 0 is not as its rule says");
    check_broken(5, "node Add_2: output 0");
    check_broken(6, "node Add_2: input 1");
    check_broken(7, "node Add_2 is malformed");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sticky_errors),
        cmocka_unit_test(test_own_errors),
        cmocka_unit_test(test_leaf_errors),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_shared_variables),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_open_batch),
        cmocka_unit_test(test_too_many_elements),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
