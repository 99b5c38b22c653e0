// Every row of cases.def on a card: the bits of the CPU, in f32 and in f64. Here a stand-in plays
// the card (support/cuda_double); with BELFRY_TEST_CARD=1 it is a real one. An operation without
// kernels for cards must say so by its name and the node's, before anything runs.
// label: native
#include "cuda/cuda.h"
#include "op/op_case.h"
#include "runtime/device.h"
#include "support/cards.h"

static op_case cases[] = {
#define CASE(name, op, inputs, attrs, tolerance) {#name, BEL_OP_##op, inputs, attrs, tolerance},
#include "op/cases.def"
#undef CASE
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

static bel_device *card;

static bel_status *compile_on(op_run *run, bel_device *device, const bel_program_output *outputs,
                              int output_count, bel_program **out_program)
{
    bel_shape shapes[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < run->input_count; i++)
        shapes[i] = run->data[i].shape;
    bel_program_options options = {.threads = 1, .device = device};
    return bel_program_compile(run->graph, shapes, outputs, output_count, &options, out_program);
}

static void check_same(const op_case *row, const bel_tensor *got, const bel_tensor *expected,
                       int output)
{
    assert_true(bel_shape_equal(&got->shape, &expected->shape));
    if (memcmp(got->data, expected->data, bel_tensor_bytes(expected)) == 0) return;
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        double g = bel_element_get(got, i), e = bel_element_get(expected, i);
        if (g != e && !(isnan(g) && isnan(e)))
            fail_msg("%s: output %d, element %lld: card %.17g, CPU %.17g", row->name, output,
                     (long long)i, g, e);
    }
}

// Says whether the operation runs on cards.
static bool check_row(const op_case *row, bel_dtype dtype)
{
    op_run run;
    op_run_build(&run, row, dtype);
    int count = bel_op_get(row->op)->output_count;
    bel_program_output outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < count; i++)
        outputs[i] = (bel_program_output){.value = run.y->node->outputs[i]};
    op_run_compile(&run, outputs, count, false);
    op_run_start(&run, 1);
    bel_program *program;
    bel_status *status = compile_on(&run, card, outputs, count, &program);
    if (status != NULL) {
        if (bel_status_code(status) != BEL_UNIMPLEMENTED)
            fail_msg("%s: %s", row->name, bel_status_message(status));
        assert_non_null(strstr(bel_status_message(status), bel_op_get(row->op)->name));
        bel_status_destroy(status);
        op_run_destroy(&run);
        return false;
    }
    bel_device_memory memory;
    bel_instance *instance;
    BEL_ASSERT_OK(card->ops->allocate(card, bel_program_arena_bytes(program), "test", &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    for (int i = 0; i < run.input_count; i++)
        bel_instance_bind_input(instance, i, run.data[i].data);
    for (int turn = 0; turn < 3; turn++) { // one by one, captured as a graph, replayed
        BEL_ASSERT_OK(bel_instance_run(instance, NULL, &run.context, NULL, NULL));
        for (int o = 0; o < count; o++) {
            bel_tensor got = bel_instance_output(instance, o);
            bel_tensor expected = bel_instance_output(run.instance, o);
            check_same(row, &got, &expected, o);
        }
    }
    bel_instance_destroy(instance);
    card->ops->release(card, &memory);
    bel_program_destroy(program);
    op_run_destroy(&run);
    return true;
}

static void test_row(void **state)
{
    const op_case *row = *state;
    if (!check_row(row, BEL_DTYPE_F32)) skip();
}

static void test_row_f64(void **state)
{
    const op_case *row = *state;
    if (!check_row(row, BEL_DTYPE_F64)) skip();
}

// What has kernels for the CPU has some for cards. (Replicas compute collectives, not towers.)
static void test_every_op_runs(void **state)
{
    (void)state;
    static const bool families[BEL_OP_COUNT] = {
#define FAMILY(id, family) [BEL_OP_##id] = true,
#include "cuda/families.def"
#undef FAMILY
    };
    for (int op = 0; op < BEL_OP_COUNT; op++) {
        const bel_op_def *def = bel_op_get((bel_op)op);
        bool none = (def->flags & (BEL_OP_LEAF | BEL_OP_ALIAS | BEL_OP_COLLECTIVE)) != 0;
        if (families[op] == none)
            fail_msg("%s: a row of families.def is missing, or one too many", def->name);
    }
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[2 * CASE_COUNT + 1];
    int count = 0;
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    for (int i = 0; i < CASE_COUNT; i++) {
        if (argc > 1 && strstr(cases[i].name, argv[1]) == NULL) continue; // by hand
        tests[count++] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = test_row, .initial_state = &cases[i]};
        if (strpbrk(cases[i].inputs, "fq") == NULL) continue;
        tests[count++] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = test_row_f64, .initial_state = &cases[i]};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_every_op_runs);
    return _cmocka_run_group_tests("rows on a card", tests, (size_t)count, NULL, NULL) != 0;
}
