// Tests of every row of cases.def on a GPU: exact arithmetic gives the bits of the CPU, in f32 and
// in f64; the libraries' fast arithmetic is near them. The GPU is a stand-in (support/cuda_double),
// or with BELFRY_TEST_CARD=1 a real one. An operation without GPU kernels must report its name and
// the node's before anything runs. label: native, label: thorough
#include "cuda/device.h"
#include "op/op_case.h"
#include "runtime/program_inner.h"
#include "support/cards.h"

static op_case cases[] = {
#define CASE(name, op, inputs, attrs, tolerance) {#name, BEL_OP_##op, inputs, attrs, tolerance},
#include "op/cases.def"
#undef CASE
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

static bel_device *card;
enum { TURNS = 3 }; // one by one, captured as a graph, replayed

// An operation on the GPU.
typedef struct card_run {
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
} card_run;

static bel_status *compile(card_run *on_card, const op_run *run, bel_gpu_math math,
                           const bel_program_output *outputs, int output_count)
{
    bel_shape shapes[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < run->input_count; i++)
        shapes[i] = run->data[i].shape;
    bel_program_options options = {.threads = 1, .device = card, .gpu_math = math};
    return bel_program_compile(run->graph, shapes, outputs, output_count, &options,
                               &on_card->program);
}

static void begin(card_run *on_card, const op_run *run)
{
    BEL_ASSERT_OK(card->ops->allocate(card, bel_program_arena_bytes(on_card->program), "test",
                                      &on_card->memory));
    BEL_ASSERT_OK(bel_instance_create_on(on_card->program, &on_card->memory, &on_card->instance));
    for (int i = 0; i < run->input_count; i++)
        bel_instance_bind_input(on_card->instance, i, run->data[i].data);
}

static void end(card_run *on_card)
{
    bel_instance_destroy(on_card->instance);
    card->ops->release(card, &on_card->memory);
    bel_program_destroy(on_card->program);
}

static void check_same(const op_case *row, const bel_tensor *got, const bel_tensor *expected,
                       int output)
{
    assert_true(bel_shape_equal(&got->shape, &expected->shape));
    if (memcmp(got->data, expected->data, bel_tensor_bytes(expected)) == 0) return;
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        double g = bel_element_get(got, i), e = bel_element_get(expected, i);
        if (g != e && !(isnan(g) && isnan(e)))
            fail_msg("%s: output %d, element %lld: GPU %.17g, CPU %.17g", row->name, output,
                     (long long)i, g, e);
    }
}

// Checks a row, and returns whether the operation runs on GPUs.
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
    card_run on_card;
    bel_status *status = compile(&on_card, &run, BEL_GPU_MATH_EXACT, outputs, count);
    if (status != NULL) {
        if (bel_status_code(status) != BEL_UNIMPLEMENTED)
            fail_msg("%s: %s", row->name, bel_status_message(status));
        assert_non_null(strstr(bel_status_message(status), bel_op_get(row->op)->name));
        bel_status_destroy(status);
        op_run_destroy(&run);
        return false;
    }
    begin(&on_card, &run);
    for (int turn = 0; turn < TURNS; turn++) {
        BEL_ASSERT_OK(bel_instance_run(on_card.instance, NULL, &run.context, NULL, NULL));
        for (int o = 0; o < count; o++) {
            bel_tensor got = bel_instance_output(on_card.instance, o);
            bel_tensor expected = bel_instance_output(run.instance, o);
            check_same(row, &got, &expected, o);
        }
    }
    end(&on_card);
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

static bool is_real_card(void)
{
    return getenv("BELFRY_TEST_CARD") != NULL;
}

// --- Fast arithmetic -----------------------------------------------------------------------------

static bool is_fast(bel_op op)
{
    return op == BEL_OP_MATMUL || op == BEL_OP_MATMUL_FLAT || op == BEL_OP_GEMM ||
           op == BEL_OP_CONV || op == BEL_OP_CONV_GRAD_INPUT || op == BEL_OP_CONV_GRAD_WEIGHTS ||
           op == BEL_OP_CONV_TRANSPOSE;
}

// Whether a library computes the product.
static bool is_taken(const bel_program *program)
{
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = program->calls[c].call.params;
        for (int l = 0; l < made->count; l++)
            if (made->launches[l].library != NULL) return true;
    }
    return false;
}

// Rows that Belfry computes itself: products with an added column, number or multiple of a row,
// products whose stacks are broadcast other than as one matrix for all, and empty products.
static const char *const not_taken[] = {"gemm_scaled",
                                        "gemm_scaled_transposed",
                                        "gemm_c_column",
                                        "gemm_c_square",
                                        "gemm_c_scalar",
                                        "gemm_column_tiles",
                                        "matmul_batched_broadcast",
                                        "matmul_batched_transposed",
                                        "matmul_batched_empty"};

static bool may_stay(const op_case *row)
{
    for (size_t i = 0; i < sizeof not_taken / sizeof not_taken[0]; i++)
        if (strcmp(not_taken[i], row->name) == 0) return true;
    return false;
}

static void check_near(const op_case *row, const bel_tensor *got, const bel_tensor *expected,
                       const bel_tensor *sizes, double unit, double *worst)
{
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        double g = bel_element_get(got, i), e = bel_element_get(expected, i);
        double off = fabs(g - e), size = fabs(bel_element_get(sizes, i));
        if (!(off <= unit * size))
            fail_msg("%s: element %lld: library %.9g, exact %.9g, products of %.9g together",
                     row->name, (long long)i, g, e, size);
        if (size > 0) *worst = fmax(*worst, off / size);
    }
}

// Element i of a result may be off by the rounding of the factors of all its products. The same
// operation on absolute values bounds it. On the stand-in, rounded factors must give a difference,
// else the product is computed in another way.
static void test_fast_row(void **state)
{
    static const double units[] = {[BEL_GPU_MATH_F32] = 0x1p-16,
                                   [BEL_GPU_MATH_TF32] = 0x1.1p-10,
                                   [BEL_GPU_MATH_BF16] = 0x1.4p-7};
    const op_case *row = *state;
    op_run exact, sizes;
    int count = op_run_create(&exact, row, false);
    op_run_start(&exact, 1);
    op_run_create(&sizes, row, false);
    for (int i = 0; i < sizes.input_count; i++)
        for (int64_t e = 0; e < bel_shape_elements(&sizes.data[i].shape); e++)
            bel_element_set(&sizes.data[i], e, fabs(bel_element_get(&sizes.data[i], e)));
    op_run_start(&sizes, 1);
    bel_tensor expected = bel_instance_output(exact.instance, 0),
               size = bel_instance_output(sizes.instance, 0);
    bel_program_output output = {.value = exact.y};
    assert_int_equal(count, 1);
    for (bel_gpu_math math = BEL_GPU_MATH_F32; math <= BEL_GPU_MATH_BF16; math++) {
        card_run on_card;
        double worst = 0;
        BEL_ASSERT_OK(compile(&on_card, &exact, math, &output, 1));
        begin(&on_card, &exact);
        bool taken = is_taken(on_card.program);
        if (taken == may_stay(row))
            fail_msg("%s: %s by a library", row->name, taken ? "made" : "not made");
        for (int turn = 0; turn < TURNS; turn++) {
            BEL_ASSERT_OK(bel_instance_run(on_card.instance, NULL, &exact.context, NULL, NULL));
            bel_tensor got = bel_instance_output(on_card.instance, 0);
            check_near(row, &got, &expected, &size, units[math], &worst);
        }
        bool rounds = math != BEL_GPU_MATH_F32 && taken;
        if (!is_real_card() && rounds != (worst > 0x1p-20))
            fail_msg("%s: off by %g", row->name, worst);
        end(&on_card);
    }
    op_run_destroy(&exact);
    op_run_destroy(&sizes);
}

// Every operation with CPU kernels has GPU kernels. (Replicas compute collectives, not towers.)
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

// Rows that are large for the tiles of f32 kernels. The plain f64 kernels and the libraries'
// stand-ins have no tiles, and need half a minute for some of them.
static bool is_large(const op_case *row)
{
    enum { MOST_ELEMENTS = 20000 };
    op_input inputs[BEL_OP_MAX_INPUTS];
    int64_t elements = 0;
    for (int i = op_parse_inputs(row->inputs, inputs) - 1; i >= 0; i--)
        elements += bel_shape_elements(&inputs[i].shape);
    return elements > MOST_ELEMENTS;
}

int main(void)
{
    static struct CMUnitTest tests[3 * CASE_COUNT + 1];
    int count = 0;
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    for (int i = 0; i < CASE_COUNT; i++) {
        tests[count++] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = test_row, .initial_state = &cases[i]};
        if (!is_real_card() && (is_large(&cases[i]) || bel_test_spares(i))) continue;
        if (is_fast(cases[i].op))
            tests[count++] = (struct CMUnitTest){
                .name = cases[i].name, .test_func = test_fast_row, .initial_state = &cases[i]};
        if (strpbrk(cases[i].inputs, "fq") == NULL) continue;
        tests[count++] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = test_row_f64, .initial_state = &cases[i]};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_every_op_runs);
    return _cmocka_run_group_tests("rows on a GPU", tests, (size_t)count, NULL, NULL) != 0;
}
