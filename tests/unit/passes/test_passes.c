// Each pass separately: the operations that remain with and without it, and equal bits. Graphs that
// passes must not change, and the prologue of programs.
#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/ops.h"
#include "passes/passes.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { ROWS = 6, COLUMNS = 5, WIDE_ROWS = 90, WIDE = 700 };

static const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};

static bel_value *number(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F32, value);
}

static bel_value *row(bel_graph *g, int64_t count)
{
    float elements[WIDE];
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)(i % 7) - 2.5f;
    return bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(count), elements});
}

static bel_value *weights(bel_graph *g)
{
    bel_shape shape = BEL_SHAPE(COLUMNS, COLUMNS);
    return bel_variable(g, "w", &shape, zeros, BEL_VARIABLE_TRAINABLE);
}

// --- Running -------------------------------------------------------------------------------------

typedef struct running {
    bel_program *program;
    bel_instance *instance;
    void *arena;
} running;

static float *numbers(int64_t count, int start)
{
    float *made = bel_xcalloc((size_t)count + 1, sizeof *made);
    for (int64_t i = 0; i < count; i++)
        made[i] = i % 11 == 3 ? -0.0f : (float)((i + start) * 7919 % 2003) / 700.0f - 1.0f;
    return made;
}

static bel_status *compile(bel_graph *g, bel_value *y, const bel_program_options *options,
                           running *r)
{
    bel_shape shapes[2];
    bel_program_output output = {.value = y};
    for (size_t i = 0; i < g->input_count; i++)
        shapes[i] = bel_value_shape(g->inputs[i].value);
    return bel_program_compile(g, shapes, &output, 1, options, &r->program);
}

static void start(bel_graph *g, bel_value *y, const bel_program_options *options, running *r)
{
    BEL_ASSERT_OK(compile(g, y, options, r));
    size_t bytes = bel_program_arena_bytes(r->program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "arena", &r->arena));
    memset(r->arena, 0xff, bytes);
    r->instance = bel_instance_create(r->program, r->arena);
}

static bel_status *run(running *r, int threads)
{
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    bel_run_context context = {.seed = 1, .step = 4};
    bel_status *status = bel_instance_run(r->instance, team, &context, NULL, NULL);
    bel_team_destroy(team);
    return status;
}

static void stop(running *r)
{
    bel_instance_destroy(r->instance);
    bel_pages_destroy(r->arena, bel_program_arena_bytes(r->program) + 64);
    bel_program_destroy(r->program);
}

static void check_same_bits(bel_graph *g, bel_value *y)
{
    const bel_program_options plain_options = {.passes_off = BEL_PASSES_ALL};
    running plain, made;
    float *data[2], *w = numbers(COLUMNS * COLUMNS, 3);
    start(g, y, &plain_options, &plain);
    start(g, y, NULL, &made);
    for (size_t i = 0; i < g->input_count; i++) {
        bel_shape shape = bel_value_shape(g->inputs[i].value);
        data[i] = numbers(bel_shape_elements(&shape), (int)i);
        bel_instance_bind_input(plain.instance, (int)i, data[i]);
        bel_instance_bind_input(made.instance, (int)i, data[i]);
    }
    for (size_t v = 0; v < g->variable_count; v++) {
        bel_instance_bind_variable(plain.instance, (int)v, w);
        bel_instance_bind_variable(made.instance, (int)v, w);
    }
    BEL_ASSERT_OK(run(&plain, 1));
    BEL_ASSERT_OK(run(&made, 3));
    bel_tensor expected = bel_instance_output(plain.instance, 0);
    bel_tensor got = bel_instance_output(made.instance, 0);
    assert_true(bel_shape_equal(&expected.shape, &got.shape));
    assert_memory_equal(expected.data, got.data, bel_tensor_bytes(&got));
    for (size_t i = 0; i < g->input_count; i++)
        bel_free(data[i]);
    bel_free(w);
    stop(&plain);
    stop(&made);
}

// Number of operations that remain without the passes of `off`.
static int operations(bel_graph *g, bel_value *y, unsigned off)
{
    bel_shape shapes[2];
    for (size_t i = 0; i < g->input_count; i++)
        shapes[i] = bel_value_shape(g->inputs[i].value);
    bel_rewritten made;
    BEL_ASSERT_OK(bel_passes_run(g, shapes, &y, 1, off, false, &made));
    BEL_ASSERT_OK(bel_graph_verify(made.graph));
    assert_int_equal(made.graph->input_count, g->input_count);
    assert_int_equal(made.graph->variable_count, g->variable_count);
    bel_str text = {0};
    int count = bel_graph_dump(made.graph, NULL, &made.values[y->id], 1, &text);
    bel_str_deinit(&text);
    bel_rewritten_deinit(&made);
    return count;
}

// --- Operations that each pass removes -----------------------------------------------------------

typedef bel_value *build_fn(bel_graph *g, bel_value *x); // x [ROWS, COLUMNS]

static bel_value *ones(bel_graph *g, bel_value *x)
{
    x = bel_mul(g, bel_div(g, x, number(g, 1)), number(g, 1));
    x = bel_mul(g, number(g, 1), bel_sub(g, x, number(g, 0)));
    return bel_add(g, x, number(g, -0.0));
}

static bel_value *zero_is_added(bel_graph *g, bel_value *x) // -0 + 0 is 0
{
    return bel_sub(g, number(g, 0), bel_add(g, x, number(g, 0)));
}

static bel_value *a_row_of_ones(bel_graph *g, bel_value *x) // turns a scalar into a matrix
{
    bel_shape scalar = bel_shape_scalar(), one = BEL_SHAPE(1, 1);
    float element = 1;
    x = bel_reduce_sum(g, x, NULL, 0, false);
    x = bel_reshape(g, x, &scalar);
    return bel_mul(g, x, bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, one, &element}));
}

static bel_value *reshapes(bel_graph *g, bel_value *x)
{
    bel_shape flat = BEL_SHAPE(-1), three = BEL_SHAPE(2, 3, COLUMNS), back = BEL_SHAPE(0, COLUMNS);
    x = bel_reshape(g, bel_unsqueeze(g, bel_reshape(g, x, &flat), (int64_t[]){0}, 1), &three);
    x = bel_reshape(g, bel_flatten(g, bel_squeeze(g, x, NULL, 0), 2), &back);
    return bel_identity(g, x);
}

static bel_value *turns(bel_graph *g, bel_value *x)
{
    const int64_t swap[] = {1, 0};
    x = bel_neg(g, bel_neg(g, bel_transpose(g, bel_transpose(g, x, swap), swap)));
    return bel_transpose(g, x, (int64_t[]){0, 1});
}

static bel_value *rotations(bel_graph *g, bel_value *x) // two Transposes as one
{
    bel_shape three = BEL_SHAPE(2, 3, COLUMNS);
    const int64_t rotate[] = {1, 2, 0};
    return bel_transpose(g, bel_transpose(g, bel_reshape(g, x, &three), rotate), rotate);
}

static bel_value *wholes(bel_graph *g, bel_value *x)
{
    bel_shape shape = bel_value_shape(x);
    const int64_t axis = 1, start = 0, end = INT64_MAX, none[] = {0, 0};
    x = bel_pad(g, bel_slice(g, x, &axis, &start, &end, NULL, 1), none, none, BEL_PAD_EDGE, 0);
    return bel_expand(g, bel_cast(g, bel_concat(g, &x, 1, 0), BEL_DTYPE_F32), &shape);
}

static bel_value *repeated(bel_graph *g, bel_value *x) // a scalar that needs no repetition
{
    bel_shape shape = bel_value_shape(x);
    bel_value *sum = bel_reduce_sum(g, x, NULL, 0, false);
    return bel_sub(g, bel_expand(g, sum, &shape), x);
}

static bel_value *backwards(bel_graph *g, bel_value *x) // a slice of the same shape
{
    const int64_t axis = 0, start = -1, end = INT64_MIN, step = -1;
    return bel_slice(g, x, &axis, &start, &end, &step, 1);
}

static bel_value *shifts(bel_graph *g, bel_value *x) // a Pad of the same shape
{
    const int64_t before[] = {1, 0}, behind[] = {-1, 0};
    return bel_pad(g, x, before, behind, BEL_PAD_CONSTANT, 0.5);
}

static bel_value *constants(bel_graph *g, bel_value *x)
{
    bel_value *c = bel_exp(g, bel_add(g, row(g, COLUMNS), number(g, 2)));
    return bel_add(g, x, bel_div(g, c, bel_reduce_sum(g, c, NULL, 0, false)));
}

static bel_value *mean_gradient(bel_graph *g, bel_value *x) // counts elements
{
    bel_value *loss = bel_mean(g, bel_mul(g, x, x)), *gradient;
    bel_gradients(g, loss, &x, 1, &gradient);
    return gradient;
}

static bel_value *large_constant(bel_graph *g, bel_value *x)
{
    bel_shape large = BEL_SHAPE(200, ROWS, 200);
    bel_value *c = bel_expand(g, number(g, 3), &large);
    return bel_add(g, bel_reduce_sum(g, x, NULL, 0, false), bel_reduce_sum(g, c, NULL, 0, false));
}

static bel_value *twice(bel_graph *g, bel_value *x)
{
    bel_value *a = bel_tanh(g, bel_mul(g, x, number(g, 3)));
    bel_value *b = bel_tanh(g, bel_mul(g, x, number(g, 3)));
    return bel_matmul(g, a, bel_transpose(g, b, (int64_t[]){1, 0}));
}

static bel_value *two_dropouts(bel_graph *g, bel_value *x)
{
    return bel_sub(g, bel_dropout(g, x, 0.5), bel_dropout(g, x, 0.5));
}

static bel_value *other_attributes(bel_graph *g, bel_value *x)
{
    return bel_matmul(g, bel_clip(g, x, 0, 1),
                      bel_transpose(g, bel_clip(g, x, 0, 2), (int64_t[]){1, 0}));
}

// `parts` columns, each normalized by separate numbers, the first one by 0 and 1.
static bel_value *columns(bel_graph *g, bel_value *x)
{
    enum { PARTS = 18 };
    bel_value *parts[PARTS];
    for (int64_t i = 0; i < PARTS; i++) {
        int64_t axis = 1, from = i % COLUMNS, to = from + 1;
        bel_value *column = bel_slice(g, x, &axis, &from, &to, NULL, 1);
        column = bel_sub(g, column, number(g, 0.5 * (double)i));
        parts[i] = bel_relu(g, bel_div(g, column, number(g, 1 + (double)i)));
    }
    return bel_concat(g, parts, PARTS, 1);
}

// Parts joined along the rows: their constants cannot be joined to one row.
static bel_value *below_each_other(bel_graph *g, bel_value *x)
{
    bel_value *parts[] = {bel_mul(g, x, number(g, 2)), bel_mul(g, x, number(g, 3))};
    return bel_concat(g, parts, 2, 0);
}

static bel_value *common_number(bel_graph *g, bel_value *x)
{
    bel_value *parts[] = {bel_sub(g, number(g, 2), bel_exp(g, x)),
                          bel_sub(g, number(g, 2), bel_sqrt(g, x))};
    return bel_concat(g, parts, 2, 0);
}

static bel_value *part_needed_elsewhere(bel_graph *g, bel_value *x)
{
    bel_value *a = bel_exp(g, x), *b = bel_exp(g, bel_cum_sum(g, x, 0, false, false));
    bel_value *joined = bel_concat(g, (bel_value *[]){a, b}, 2, 0);
    return bel_matmul(g, joined, bel_transpose(g, a, (int64_t[]){1, 0}));
}

static bel_value *chain(bel_graph *g, bel_value *x)
{
    bel_value *y = bel_mul(g, bel_sub(g, number(g, 1), x), number(g, 0.3));
    y = bel_elu(g, bel_add(g, y, bel_tanh(g, y)), 0.7);
    return bel_sigmoid(g, bel_max(g, y, x));
}

static bel_value *needed_inside(bel_graph *g, bel_value *x) // by a reduction
{
    bel_value *y = bel_exp(g, bel_neg(g, x));
    return bel_div(g, bel_tanh(g, y), bel_reduce_sum(g, y, NULL, 0, false));
}

static bel_value *without_kernel(bel_graph *g, bel_value *x)
{
    return bel_sin(g, bel_neg(g, bel_sin(g, x)));
}

static bel_value *wide_rows(bel_graph *g, bel_value *x)
{
    (void)x;
    bel_shape shape = BEL_SHAPE(WIDE_ROWS, WIDE);
    bel_value *wide = bel_input_value(g, "wide", BEL_DTYPE_F32, &shape);
    wide = bel_div(g, bel_sub(g, wide, row(g, WIDE)), number(g, 3));
    return bel_relu(g, bel_add(g, wide, row(g, WIDE)));
}

static bel_value *short_rows(bel_graph *g, bel_value *x)
{
    (void)x;
    bel_shape shape = BEL_SHAPE(WIDE * WIDE_ROWS / 7, 7);
    bel_value *tall = bel_input_value(g, "tall", BEL_DTYPE_F32, &shape);
    return bel_tanh(g, bel_add(g, bel_exp(g, tall), row(g, 7)));
}

static bel_value *relu_of_product(bel_graph *g, bel_value *x)
{
    return bel_relu(g, bel_matmul(g, x, weights(g)));
}

static bel_value *product_needed_elsewhere(bel_graph *g, bel_value *x)
{
    bel_value *product = bel_matmul(g, x, weights(g));
    return bel_add(g, bel_relu(g, product), product);
}

static const struct {
    const char *name;
    build_fn *build;
    bel_pass pass;
    int with, without; // operations that remain with all passes, and without this one
} cases[] = {
    {"x * 1", ones, BEL_PASS_SIMPLIFY, 0, 1},
    {"x + 0", zero_is_added, BEL_PASS_SIMPLIFY, 1, 1},
    {"another shape", a_row_of_ones, BEL_PASS_SIMPLIFY, 2, 3},
    {"Reshape", reshapes, BEL_PASS_SIMPLIFY, 0, 7},
    {"Transpose", turns, BEL_PASS_SIMPLIFY, 0, 4},
    {"two Transposes", rotations, BEL_PASS_SIMPLIFY, 2, 3},
    {"the whole", wholes, BEL_PASS_SIMPLIFY, 0, 5},
    {"a repeated scalar", repeated, BEL_PASS_SIMPLIFY, 2, 3},
    {"Slice backwards", backwards, BEL_PASS_SIMPLIFY, 1, 1},
    {"Pad that shifts", shifts, BEL_PASS_SIMPLIFY, 1, 1},
    {"constants", constants, BEL_PASS_FOLD, 1, 4},
    {"count of elements", mean_gradient, BEL_PASS_FOLD, 1, 3},
    {"a large constant", large_constant, BEL_PASS_FOLD, 4, 4},
    {"the same twice", twice, BEL_PASS_SAME, 3, 4},
    {"two dropouts", two_dropouts, BEL_PASS_SAME, 3, 3},
    {"other attributes", other_attributes, BEL_PASS_SAME, 4, 4},
    {"columns", columns, BEL_PASS_CONCAT, 11, 26},
    {"below each other", below_each_other, BEL_PASS_CONCAT, 3, 3},
    {"a common number", common_number, BEL_PASS_CONCAT, 4, 3},
    {"a part needed elsewhere", part_needed_elsewhere, BEL_PASS_CONCAT, 6, 6},
    {"Relu of a product", relu_of_product, BEL_PASS_JOIN, 1, 2},
    {"a product needed elsewhere", product_needed_elsewhere, BEL_PASS_JOIN, 2, 2},
    {"chain", chain, BEL_PASS_FUSE, 1, 7},
    {"needed inside", needed_inside, BEL_PASS_FUSE, 3, 5},
    {"without a kernel", without_kernel, BEL_PASS_FUSE, 3, 3},
    {"wide rows", wide_rows, BEL_PASS_FUSE, 1, 4},
    {"short rows", short_rows, BEL_PASS_FUSE, 1, 3},
};

static void test_each_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_graph *g = bel_graph_create();
        bel_shape shape = BEL_SHAPE(ROWS, COLUMNS);
        bel_value *y = cases[i].build(g, bel_input_value(g, "x", BEL_DTYPE_F32, &shape));
        BEL_ASSERT_OK(bel_graph_check(g));
        int with = operations(g, y, 0), without = operations(g, y, 1u << cases[i].pass);
        if (with != cases[i].with || without != cases[i].without) {
            fail_msg("%s: %d operations with %s and %d without, not %d and %d", cases[i].name, with,
                     bel_pass_name(cases[i].pass), without, cases[i].with, cases[i].without);
        }
        check_same_bits(g, y);
        bel_graph_destroy(g);
    }
}

// --- Unchanged graphs ----------------------------------------------------------------------------

// An index out of range is an error of the run, not of the compilation.
static void test_bad_index(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    int64_t nine = 9;
    bel_tensor index = {BEL_DTYPE_I64, BEL_SHAPE(1), &nine};
    bel_value *y = bel_gather(g, row(g, COLUMNS), bel_constant(g, &index));
    running r;
    start(g, y, NULL, &r);
    BEL_ASSERT_FAILS(run(&r, 1), BEL_OUT_OF_RANGE, "9 is out of range [0, 5)");
    stop(&r);
    bel_graph_destroy(g);
}

static void test_errors(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape open = BEL_SHAPE(BEL_DIM_BATCH, COLUMNS);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &open);
    running r;
    BEL_ASSERT_FAILS(compile(g, bel_relu(g, x), NULL, &r), BEL_INVALID_ARGUMENT,
                     "input \"x\" has an open dimension");
    bel_graph_destroy(g);
}

static void test_dump(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(ROWS, COLUMNS);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape), *indices;
    bel_value *w = weights(g); // first: C leaves the order of arguments open
    bel_top_k(g, bel_matmul(g, bel_exp(g, bel_neg(g, x)), w), 2, 1, true, &indices);
    bel_rewritten made;
    BEL_ASSERT_OK(bel_passes_run(g, &shape, &indices, 1, 0, false, &made));
    bel_str text = {0};
    assert_int_equal(bel_graph_dump(made.graph, NULL, &made.values[indices->id], 1, &text), 3);
    assert_string_equal(text.text, "x = Input : f32 [6, 5]\n"
                                   "w = Variable : f32 [5, 5]\n"
                                   "Exp_3 = Fused {steps=Neg+Exp}(x) : f32 [6, 5]\n"
                                   "MatMul_4 = MatMul(Exp_3, w) : f32 [6, 5]\n"
                                   "TopK_5 = TopK {k=2, axis=1, largest=1}(MatMul_4) : f32 [6, 2], "
                                   "i64 [6, 2]\n");
    bel_str_deinit(&text);
    bel_rewritten_deinit(&made);
    bel_graph_destroy(g);
}

// --- The prologue --------------------------------------------------------------------------------

typedef struct fixed {
    bel_graph *graph;
    bel_value *y;
    float *x, *first, *second;
} fixed;

// x · (w' · w' + 1): the sum and the Transpose depend only on w.
static fixed fixed_create(void)
{
    fixed f = {.graph = bel_graph_create(),
               .x = numbers(ROWS * COLUMNS, 1),
               .first = numbers(COLUMNS * COLUMNS, 2),
               .second = numbers(COLUMNS * COLUMNS, 9)};
    bel_graph *g = f.graph;
    bel_shape shape = BEL_SHAPE(ROWS, COLUMNS);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *w = bel_transpose(g, weights(g), (int64_t[]){1, 0});
    f.y = bel_matmul(g, x, bel_add(g, bel_matmul(g, w, w), number(g, 1)));
    return f;
}

static void fixed_destroy(fixed *f)
{
    bel_free(f->x);
    bel_free(f->first);
    bel_free(f->second);
    bel_graph_destroy(f->graph);
}

static void expect(const fixed *f, const float *w, running *r)
{
    const bel_program_options plain_options = {.passes_off = BEL_PASSES_ALL};
    running plain;
    start(f->graph, f->y, &plain_options, &plain);
    bel_instance_bind_input(plain.instance, 0, f->x);
    bel_instance_bind_variable(plain.instance, 0, w);
    BEL_ASSERT_OK(run(&plain, 1));
    bel_tensor expected = bel_instance_output(plain.instance, 0);
    bel_tensor got = bel_instance_output(r->instance, 0);
    assert_memory_equal(expected.data, got.data, bel_tensor_bytes(&got));
    stop(&plain);
}

static void test_prologue(void **state)
{
    (void)state;
    const bel_program_options options = {.fixed_variables = true};
    fixed f = fixed_create();
    running r;
    start(f.graph, f.y, &options, &r);
    assert_int_equal(bel_program_instruction_count(r.program), 4);
    assert_int_equal(bel_program_prologue_count(r.program), 3);
    bel_instance_bind_input(r.instance, 0, f.x);
    bel_instance_bind_variable(r.instance, 0, f.first);
    for (int i = 0; i < 3; i++) {
        memset(r.arena, 0xff, bel_program_arena_bytes(r.program)); // another program's bytes
        f.x[i] += 1;
        BEL_ASSERT_OK(run(&r, 1));
        expect(&f, f.first, &r);
        bel_instance_bind_variable(r.instance, 0, f.first); // the same variable
    }
    float kept = f.first[0];
    f.first[0] = NAN; // not read again
    BEL_ASSERT_OK(run(&r, 1));
    f.first[0] = kept;
    expect(&f, f.first, &r);
    bel_instance_bind_variable(r.instance, 0, f.second);
    BEL_ASSERT_OK(run(&r, 1));
    expect(&f, f.second, &r);
    stop(&r);
    fixed_destroy(&f);
}

static void test_no_prologue(void **state)
{
    (void)state;
    const bel_program_options training = {.threads = 1};
    const bel_program_options off = {.fixed_variables = true, .passes_off = 1u << BEL_PASS_HOIST};
    fixed f = fixed_create();
    running r;
    start(f.graph, f.y, &training, &r);
    assert_int_equal(bel_program_prologue_count(r.program), 0);
    bel_instance_bind_input(r.instance, 0, f.x);
    bel_instance_bind_variable(r.instance, 0, f.first);
    BEL_ASSERT_OK(run(&r, 1));
    memcpy(f.first, f.second, COLUMNS * COLUMNS * sizeof(float)); // an update in place
    BEL_ASSERT_OK(run(&r, 1));
    expect(&f, f.second, &r);
    stop(&r);
    start(f.graph, f.y, &off, &r);
    assert_int_equal(bel_program_prologue_count(r.program), 0);
    stop(&r);
    fixed_destroy(&f);
}

// Every run writes outputs in outside memory, even if they depend only on variables. Every run also
// computes results that would take too much memory.
static void test_prologue_limits(void **state)
{
    (void)state;
    const bel_program_options options = {.fixed_variables = true};
    fixed f = fixed_create();
    bel_shape shape = BEL_SHAPE(ROWS, COLUMNS), large = BEL_SHAPE(200000, COLUMNS, COLUMNS);
    bel_value *w = f.graph->variables[0].value, *x = f.graph->inputs[0].value;
    bel_program_output output = {.value = bel_exp(f.graph, w), .external = true};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(f.graph, &shape, &output, 1, &options, &program));
    assert_int_equal(bel_program_prologue_count(program), 0);
    bel_program_destroy(program);
    bel_value *wide = bel_expand(f.graph, w, &large);
    output.value = bel_mul(f.graph, wide, bel_reduce_sum(f.graph, x, NULL, 0, false));
    output.external = false;
    BEL_ASSERT_OK(bel_program_compile(f.graph, &shape, &output, 1, &options, &program));
    assert_int_equal(bel_program_prologue_count(program), 0);
    bel_program_destroy(program);
    fixed_destroy(&f);
}

// --- Chunks --------------------------------------------------------------------------------------

enum { CHUNKED_ROWS = 700, CHUNKED_CLASSES = 30001, CHUNKED_WIDTH = 3 };

// Runs the program and returns copies of its outputs, and the bytes that it needs for values.
static size_t run_chunked(bel_graph *g, bel_value *const *outputs, int count, unsigned off,
                          void *const *data, float *w, int threads, float **out_copies)
{
    const bel_program_options options = {.passes_off = off, .threads = threads};
    bel_program_output wanted[3];
    bel_shape shapes[2];
    running r;
    for (int i = 0; i < count; i++)
        wanted[i] = (bel_program_output){.value = outputs[i]};
    for (size_t i = 0; i < g->input_count; i++)
        shapes[i] = bel_value_shape(g->inputs[i].value);
    BEL_ASSERT_OK(bel_program_compile(g, shapes, wanted, count, &options, &r.program));
    size_t bytes = bel_program_arena_bytes(r.program);
    BEL_ASSERT_OK(bel_pages_create(bytes + 64, false, "arena", &r.arena));
    r.instance = bel_instance_create(r.program, r.arena);
    for (int i = 0; i < 2; i++)
        bel_instance_bind_input(r.instance, i, data[i]);
    bel_instance_bind_variable(r.instance, 0, w);
    BEL_ASSERT_OK(run(&r, threads));
    for (int i = 0; i < count; i++) {
        bel_tensor output = bel_instance_output(r.instance, i);
        out_copies[i] = bel_xcalloc(1, bel_tensor_bytes(&output));
        memcpy(out_copies[i], output.data, bel_tensor_bytes(&output));
    }
    stop(&r);
    return bytes;
}

// Losses and gradients by chunks have the bits of those at once, for both orders of w, and need
// less memory.
static void check_chunks(bool turned, bool trains, bool weighted)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(CHUNKED_ROWS, CHUNKED_WIDTH), rows = BEL_SHAPE(CHUNKED_ROWS);
    bel_shape kernel = turned ? BEL_SHAPE(CHUNKED_CLASSES, CHUNKED_WIDTH)
                              : BEL_SHAPE(CHUNKED_WIDTH, CHUNKED_CLASSES);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *labels = bel_input_value(g, "labels", BEL_DTYPE_I64, &rows);
    bel_value *w = bel_variable(g, "w", &kernel, zeros, BEL_VARIABLE_TRAINABLE);
    bel_value *logits = bel_gemm(g, bel_exp(g, x), w, NULL, 1, 0, false, turned);
    bel_value *losses = bel_softmax_cross_entropy(g, logits, labels), *values[2] = {x, w};
    bel_value *outputs[3] = {losses};
    if (weighted)
        losses = bel_mul(g, losses, bel_exp(g, losses)); // their gradient needs all losses
    if (trains) bel_gradients(g, bel_mean(g, losses), values, 2, outputs + 1);
    int count = trains ? 3 : 1;
    int64_t sizes[3] = {CHUNKED_ROWS, CHUNKED_ROWS * CHUNKED_WIDTH,
                        CHUNKED_CLASSES * CHUNKED_WIDTH};
    BEL_ASSERT_OK(bel_graph_check(g));
    int64_t *names = bel_xcalloc(CHUNKED_ROWS, sizeof *names);
    for (int64_t i = 0; i < CHUNKED_ROWS; i++)
        names[i] = i * 7919 % CHUNKED_CLASSES;
    float *at_once[3], *chunked[3], *weight = numbers(sizes[2], 5);
    void *data[2] = {numbers(sizes[1], 2), names};
    size_t whole = run_chunked(g, outputs, count, 1u << BEL_PASS_CHUNK, data, weight, 1, at_once);
    size_t parts = run_chunked(g, outputs, count, 0, data, weight, 3, chunked);
    if (!weighted) assert_true(trains ? parts < whole : 2 * parts < whole + whole / 2);
    for (int i = 0; i < count; i++) {
        assert_memory_equal(at_once[i], chunked[i], (size_t)sizes[i] * sizeof(float));
        bel_free(at_once[i]);
        bel_free(chunked[i]);
    }
    bel_free(weight);
    bel_free(data[0]);
    bel_free(names);
    bel_graph_destroy(g);
}

static void test_chunks(void **state)
{
    (void)state;
    check_chunks(true, true, false);
    check_chunks(false, true, false);
    check_chunks(true, false, false);
    check_chunks(true, true, true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pass),       cmocka_unit_test(test_bad_index),
        cmocka_unit_test(test_errors),          cmocka_unit_test(test_dump),
        cmocka_unit_test(test_prologue),        cmocka_unit_test(test_no_prologue),
        cmocka_unit_test(test_prologue_limits), cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
