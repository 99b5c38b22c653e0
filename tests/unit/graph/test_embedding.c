// Table lookups in graphs: shapes, shared tables, gradients, and refusals.
#include "belfry/ops.h"
#include "graph/graph.h"
#include "support/bel_test.h"

static const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};

static bel_value *ids_of(bel_graph *g, const char *name)
{
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 3);
    return bel_input_value(g, name, BEL_DTYPE_I64, &shape);
}

static void rows_have_the_shape_of_ids_and_the_width(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_value *ids = ids_of(g, "ids"), *others = ids_of(g, "others");
    bel_graph_push_scope(g, "user");
    bel_value *rows = bel_embedding(g, "table", ids, 4, zeros);
    bel_value *more = bel_embedding(g, "table", others, 4, zeros);
    bel_graph_pop_scope(g);
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_shape shape = bel_value_shape(rows), expected = BEL_SHAPE(BEL_DIM_BATCH, 3, 4);
    assert_true(bel_shape_equal(&shape, &expected));
    assert_int_equal(bel_value_dtype(rows), BEL_DTYPE_F32);
    assert_int_equal(g->table_count, 1); // one table, two lookups
    assert_string_equal(g->tables[0].name, "user/table");
    assert_int_equal(g->lookup_count, 2);
    assert_int_equal(g->lookups[1].ids, 1);
    assert_ptr_equal(g->inputs[g->lookups[1].rows].value, more);
    assert_ptr_equal(bel_graph_lookup_of(g, g->lookups[0].rows), &g->lookups[0]);
    assert_null(bel_graph_lookup_of(g, 0));
    bel_value *gradients[2], *wanted[2] = {rows, more};
    bel_value *loss = bel_reduce_sum(g, rows, NULL, 0, false);
    bel_gradients(g, loss, wanted, 2, gradients);
    BEL_ASSERT_OK(bel_graph_check(g));
    assert_non_null(gradients[0]);
    assert_null(gradients[1]); // the loss does not depend on it
    bel_graph_destroy(g);
}

typedef void misuse(bel_graph *g);

static void no_integers(bel_graph *g)
{
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 3);
    bel_embedding(g, "table", bel_input_value(g, "x", BEL_DTYPE_F32, &shape), 4, zeros);
}

static void computed_ids(bel_graph *g)
{
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 3, 1);
    bel_embedding(g, "table", bel_reshape(g, ids_of(g, "ids"), &shape), 4, zeros);
}

static void no_width(bel_graph *g)
{
    bel_embedding(g, "table", ids_of(g, "ids"), 0, zeros);
}

static void glorot(bel_graph *g)
{
    bel_embedding(g, "table", ids_of(g, "ids"), 4,
                  (bel_initializer){.kind = BEL_INIT_GLOROT_UNIFORM});
}

static void variable_named_as_a_table(bel_graph *g)
{
    bel_embedding(g, "table", ids_of(g, "ids"), 4, zeros);
    bel_variable(g, "table", &BEL_SHAPE(4), zeros, BEL_VARIABLE_TRAINABLE);
}

static void two_widths(bel_graph *g)
{
    bel_value *ids = ids_of(g, "ids");
    bel_embedding(g, "table", ids, 4, zeros);
    bel_embedding(g, "table", ids, 5, zeros);
}

static void name_of_a_variable(bel_graph *g)
{
    bel_shape shape = BEL_SHAPE(2);
    bel_variable(g, "table", &shape, zeros, BEL_VARIABLE_TRAINABLE);
    bel_embedding(g, "table", ids_of(g, "ids"), 4, zeros);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    const struct {
        misuse *misuse;
        bel_code code;
        const char *text;
    } cases[] = {
        {no_integers, BEL_INVALID_ARGUMENT, "must be an input of type i64"},
        {computed_ids, BEL_INVALID_ARGUMENT, "must be an input"},
        {no_width, BEL_INVALID_ARGUMENT, "width must be from 1"},
        {glorot, BEL_INVALID_ARGUMENT, "ZEROS, UNIFORM or NORMAL"},
        {two_widths, BEL_INVALID_ARGUMENT, "another width"},
        {name_of_a_variable, BEL_ALREADY_EXISTS, "a variable has this name"},
        {variable_named_as_a_table, BEL_ALREADY_EXISTS, "\"table\": a table has this name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_graph *g = bel_graph_create();
        cases[i].misuse(g);
        BEL_ASSERT_FAILS(bel_graph_check(g), cases[i].code, cases[i].text);
        bel_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_shape_of_ids_and_the_width),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
