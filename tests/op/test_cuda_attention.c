// Tests of attention whose products a library computes (cuda/library_attention.c), with its
// gradients, near the processor's. They cover small and large heads, calls that are split by
// matrices and by queries, and keys hidden by lengths and causality. Keys hidden by lengths may be
// anything. Each run has the bits of the first one. label: native, label: thorough
#include "cuda/device.h"
#include "graph/attention.h"
#include "op/op_case.h"
#include "runtime/program_inner.h"
#include "support/cards.h"
#include "support/cuda_double/cases.h"

typedef struct shape {
    int64_t n, heads, t, s, d, e;
    bool causal, lengths;
} shape;

static const shape small[] = {
    {3, 2, 5, 6, 4, 3, false, false},   {3, 2, 5, 6, 4, 3, false, true},
    {2, 2, 70, 90, 16, 20, true, true}, {2, 1, 33, 17, 260, 8, true, false},
    {1, 3, 1, 40, 5, 1, false, true},
};
// More scores than a part has: 7 matrices of which 4 run together, and two that are split into
// 1,408 queries and 1,393.
static const shape large[] = {
    {7, 1, 800, 800, 3, 2, false, true},
    {2, 1, 2801, 1500, 2, 3, false, false},
    {2, 1, 2801, 1500, 2, 3, true, true},
};

enum { INPUTS = 4, OUTPUTS = 4 }; // inputs: q, k, v and the factor of y; outputs: y, dq, dk, dv

static bel_device *card;

static void add_input(op_run *run, const char *name, bel_dtype dtype, bel_shape its)
{
    const op_input like = {.kind = 'f', .low = -2, .high = 2.1};
    int i = run->input_count++;
    run->data[i] = (bel_tensor){dtype, its, NULL};
    run->data[i].data = bel_xmalloc(bel_tensor_bytes(&run->data[i]));
    for (int64_t k = 0; dtype == BEL_DTYPE_F32 && k < bel_shape_elements(&its); k++)
        bel_element_set(&run->data[i], k, op_input_element(&like, i, k));
    run->values[i] = bel_input_value(run->graph, name, dtype, &its);
}

// Lengths from 0 to all keys.
static int64_t length_of(const shape *x, int64_t sequence)
{
    return x->n == 1 ? x->s / 2 : x->s * sequence / (x->n - 1);
}

static void create(op_run *run, const shape *x, bel_program_output *outputs)
{
    *run = (op_run){.graph = bel_graph_create(), .context = {.seed = 1}};
    add_input(run, "q", BEL_DTYPE_F32, BEL_SHAPE(x->n, x->heads, x->t, x->d));
    add_input(run, "k", BEL_DTYPE_F32, BEL_SHAPE(x->n, x->heads, x->s, x->d));
    add_input(run, "v", BEL_DTYPE_F32, BEL_SHAPE(x->n, x->heads, x->s, x->e));
    add_input(run, "w", BEL_DTYPE_F32, BEL_SHAPE(x->n, x->heads, x->t, x->e));
    bel_value *lengths = NULL, *gradients[3];
    if (x->lengths) {
        add_input(run, "lengths", BEL_DTYPE_I64, BEL_SHAPE(x->n));
        for (int64_t i = 0; i < x->n; i++)
            bel_element_set(&run->data[INPUTS], i, (double)length_of(x, i));
        lengths = run->values[INPUTS];
    }
    bel_value **in = run->values;
    bel_value *y = bel_attention_fused(run->graph, in[0], in[1], in[2], lengths, x->causal, 0);
    bel_value *loss = bel_reduce_sum(run->graph, bel_mul(run->graph, y, in[3]), NULL, 0, false);
    bel_gradients(run->graph, loss, run->values, 3, gradients);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
    outputs[0] = (bel_program_output){.value = y};
    for (int i = 0; i < 3; i++)
        outputs[1 + i] = (bel_program_output){.value = gradients[i]};
}

// --- On the GPU ----------------------------------------------------------------------------------

typedef struct card_run {
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
} card_run;

static void compile_on(card_run *its, const op_run *run, const bel_program_output *outputs,
                       bel_gpu_math math)
{
    bel_shape shapes[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < run->input_count; i++)
        shapes[i] = run->data[i].shape;
    const bel_program_options made_so = {.threads = 1, .device = card, .gpu_math = math};
    BEL_ASSERT_OK(
        bel_program_compile(run->graph, shapes, outputs, OUTPUTS, &made_so, &its->program));
}

static void begin_on(card_run *its, const op_run *run, const bel_program_output *outputs,
                     bel_gpu_math math)
{
    compile_on(its, run, outputs, math);
    BEL_ASSERT_OK(
        card->ops->allocate(card, bel_program_arena_bytes(its->program), "test", &its->memory));
    BEL_ASSERT_OK(bel_instance_create_on(its->program, &its->memory, &its->instance));
    for (int i = 0; i < run->input_count; i++)
        bel_instance_bind_input(its->instance, i, run->data[i].data);
}

static void run_on(const card_run *its, op_run *run)
{
    BEL_ASSERT_OK(bel_instance_run(its->instance, NULL, &run->context, NULL, NULL));
}

static void end_on(card_run *its)
{
    bel_instance_destroy(its->instance);
    card->ops->release(card, &its->memory);
    bel_program_destroy(its->program);
}

// Whether a library computes both operations.
static bool is_taken(const bel_program *program)
{
    int libraries = 0;
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = program->calls[c].call.params;
        for (int l = 0; l < made->count; l++)
            libraries += made->launches[l].library != NULL;
    }
    return libraries == 2;
}

static double largest(const bel_tensor *x)
{
    double most = 0;
    for (int64_t i = 0; i < bel_shape_elements(&x->shape); i++)
        most = fmax(most, fabs(bel_element_get(x, i)));
    return most;
}

// Checks that errors are at most `unit` times the largest element. Returns the largest error in
// that unit of size.
static double check_near(const shape *x, int output, const bel_tensor *got,
                         const bel_tensor *expected, double unit)
{
    double size = largest(expected), worst = 0;
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        double g = bel_element_get(got, i), e = bel_element_get(expected, i);
        if (!(fabs(g - e) <= unit * size))
            fail_msg("t %lld, output %d, element %lld: library %.9g, processor %.9g of %.9g",
                     (long long)x->t, output, (long long)i, g, e, size);
        worst = fmax(worst, fabs(g - e) / size);
    }
    return worst;
}

// Copies the outputs of a run. check_kept compares another run's with them, bit by bit.
static void keep(const card_run *its, void **kept)
{
    for (int o = 0; o < OUTPUTS; o++) {
        bel_tensor got = bel_instance_output(its->instance, o);
        kept[o] = memcpy(bel_xmalloc(bel_tensor_bytes(&got)), got.data, bel_tensor_bytes(&got));
    }
}

static void check_kept(const card_run *its, void *const *kept)
{
    for (int o = 0; o < OUTPUTS; o++) {
        bel_tensor got = bel_instance_output(its->instance, o);
        assert_memory_equal(got.data, kept[o], bel_tensor_bytes(&got));
    }
}

static void forget(void **kept)
{
    for (int o = 0; o < OUTPUTS; o++)
        bel_free(kept[o]);
}

static void check(const shape *x, bel_gpu_math math, int turns)
{
    static const double units[] = {
        [BEL_GPU_MATH_F32] = 2e-5, [BEL_GPU_MATH_TF32] = 6e-3, [BEL_GPU_MATH_BF16] = 5e-2};
    op_run run;
    card_run its;
    bel_program_output outputs[OUTPUTS];
    create(&run, x, outputs);
    op_run_compile(&run, outputs, OUTPUTS, false);
    op_run_start(&run, 1);
    begin_on(&its, &run, outputs, math);
    assert_true(is_taken(its.program));
    double worst = 0;
    void *first[OUTPUTS] = {NULL};
    for (int turn = 0; turn < turns; turn++) {
        run_on(&its, &run);
        if (turn == 0) keep(&its, first);
        check_kept(&its, first);
        for (int o = 0; o < OUTPUTS; o++) {
            bel_tensor got = bel_instance_output(its.instance, o),
                       expected = bel_instance_output(run.instance, o);
            worst = fmax(worst, check_near(x, o, &got, &expected, units[math]));
        }
    }
    bool rounds = math != BEL_GPU_MATH_F32; // else it is computed in another way
    if (getenv("BELFRY_TEST_CARD") == NULL && rounds != (worst > 1e-5))
        fail_msg("t %lld: off by %g", (long long)x->t, worst);
    forget(first);
    end_on(&its);
    op_run_destroy(&run);
}

static void test_small(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        for (bel_gpu_math math = BEL_GPU_MATH_F32; math <= BEL_GPU_MATH_BF16; math++)
            check(&small[i], math, 3); // one by one, captured, replayed
}

// Runs in a child process without checks of accesses, which take too long for this number of them.
static void run_parts(void)
{
    if (!bel_cards_open(&card)) exit(1);
    check(&large[0], BEL_GPU_MATH_BF16, 1);
    check(&large[1], BEL_GPU_MATH_F32, 2); // one by one, captured
    check(&large[2], BEL_GPU_MATH_TF32, 1);
}

// Runs before all other tests, as children have to open CUDA themselves.
static void test_parts(void **state)
{
    (void)state;
    expect_fine_with(run_parts, (const char *[]){"CUDA_DOUBLE_CHECKS=0", NULL});
}

static void test_open(void **state)
{
    (void)state;
    assert_true(bel_cards_open(&card));
}

// Splits of larger calls: with few queries, into parts of more scores, and none.
static void test_cuts(void **state)
{
    (void)state;
    static const struct {
        shape shape;
        bool taken;
        size_t least, most; // MiB of the program's memory
    } rows[] = {{{1, 1, 3001, 1500, 1, 1, false, false}, true, 16, 40},
                {{1, 1, 8, 524929, 1, 1, false, false}, true, 32, 60},
                {{2048, 1, 2100, 2100, 1, 1, false, false}, true, 200, 500},
                {{300, 1, 16384, 16384, 1, 1, false, false}, false, 0, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        op_run run;
        card_run its;
        bel_program_output outputs[OUTPUTS];
        create(&run, &rows[i].shape, outputs);
        compile_on(&its, &run, outputs, BEL_GPU_MATH_F32);
        size_t bytes = bel_program_arena_bytes(its.program);
        if (is_taken(its.program) != rows[i].taken || bytes < rows[i].least << 20 ||
            bytes > rows[i].most << 20)
            fail_msg("row %d: %s, with %zu bytes", (int)i, rows[i].taken ? "not taken" : "taken",
                     bytes);
        bel_program_destroy(its.program);
        op_run_destroy(&run);
    }
}

// --- Hidden keys ---------------------------------------------------------------------------------

static void hide(op_run *run, const shape *x, double value)
{
    for (int input = 1; input <= 2; input++) {
        int64_t width = input == 1 ? x->d : x->e;
        for (int64_t row = 0; row < x->n * x->heads * x->s; row++) {
            if (row % x->s < length_of(x, row / x->s / x->heads)) continue;
            for (int64_t i = 0; i < width; i++)
                bel_element_set(&run->data[input], row * width + i, value);
        }
    }
}

static void test_hidden(void **state)
{
    (void)state;
    for (bel_gpu_math math = BEL_GPU_MATH_F32; math <= BEL_GPU_MATH_BF16; math++) {
        const shape *x = &small[2];
        op_run run;
        card_run its;
        bel_program_output outputs[OUTPUTS];
        void *kept[OUTPUTS];
        create(&run, x, outputs);
        begin_on(&its, &run, outputs, math);
        hide(&run, x, 1);
        run_on(&its, &run);
        keep(&its, kept);
        hide(&run, x, NAN);
        run_on(&its, &run);
        check_kept(&its, kept);
        forget(kept);
        end_on(&its);
        op_run_destroy(&run);
    }
}

// The errors are the processor's.
static void test_bad_lengths(void **state)
{
    (void)state;
    for (int64_t wrong = -1; wrong <= 91; wrong += 92) {
        op_run run;
        card_run its;
        bel_program_output outputs[OUTPUTS];
        create(&run, &small[2], outputs);
        begin_on(&its, &run, outputs, BEL_GPU_MATH_BF16);
        run_on(&its, &run);
        bel_element_set(&run.data[INPUTS], 1, (double)wrong);
        op_run_compile(&run, outputs, OUTPUTS, false);
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(1, &team));
        bel_status *expected = bel_instance_run(run.instance, team, &run.context, NULL, NULL);
        bel_team_destroy(team);
        assert_non_null(expected);
        for (int turn = 0; turn < 3; turn++)
            BEL_ASSERT_FAILS(bel_instance_run(its.instance, NULL, &run.context, NULL, NULL),
                             bel_status_code(expected), bel_status_message(expected));
        bel_status_destroy(expected);
        end_on(&its);
        op_run_destroy(&run);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_open),
        cmocka_unit_test(test_small),  cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_hidden), cmocka_unit_test(test_bad_lengths),
    };
    if (!bel_cuda_is_built()) {
        fprintf(stderr, "this Belfry was built without CUDA\n");
        return 77;
    }
    bel_use_cards();
    return cmocka_run_group_tests_name("attention by a library", tests, NULL, NULL);
}
