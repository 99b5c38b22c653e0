// Values stored as bf16 on a GPU: which ones are chosen. Also checks that a training step with
// convolutions and a product gives the processor's results, rounded. label: native, label: long
#include "runtime/bf16_values.h"

#include <math.h>
#include <stdlib.h>

#include "passes/passes.h"
#include "support/cards.h"
#include "unit/runtime/test_cnn.h"

static bel_device *card;

static void run(cnn *m)
{
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(m->instance, team, &context, NULL, NULL));
    bel_team_destroy(team);
    bel_tensor loss = bel_instance_output(m->instance, 0);
    m->results[0][0] = *(const float *)loss.data;
}

static double distance(const float *a, const float *b, int64_t count)
{
    double off = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        off += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(off) / sqrt(size);
}

static int bf16_of(const bel_program *program, const char *op)
{
    int count = 0;
    for (int i = 0; i < bel_program_instruction_count(program); i++) {
        bel_program_line line = bel_program_line_at(program, i);
        if (line.bf16 && (op == NULL || strcmp(line.op, op) == 0)) count++;
    }
    return count;
}

// Numbers have 8 bits between the layers. The first layer's gradient passes through ten layers and
// a pool, whose windows sometimes hold equal numbers.
static void test_a_step(void **state)
{
    (void)state;
    bel_program_options options = {.device = card, .gpu_math = BEL_GPU_MATH_BF16};
    cnn *exact = cnn_create(NULL), *rounded = cnn_create(&options), *again = cnn_create(&options);
    run(exact);
    run(rounded);
    run(again);
    for (int o = 0; o < exact->output_count; o++) {
        bel_shape shape = bel_value_shape(exact->outputs[o].value);
        int64_t count = bel_shape_elements(&shape);
        double off = distance(rounded->results[o], exact->results[o], count);
        if (!(off < 0.4)) fail_msg("output %d is off by %g", o, off);
        assert_memory_equal(rounded->results[o], again->results[o], (size_t)count * sizeof(float));
    }
    static const char *const made[] = {"Conv", "BatchNormalization", "ConvGradInput",
                                       "BatchNormGrad", "Relu"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (bf16_of(rounded->program, made[i]) == 0) fail_msg("no %s is rounded", made[i]);
    assert_int_equal(bf16_of(rounded->program, "ConvGradWeights"), 0);
    assert_int_equal(bf16_of(rounded->program, "SoftmaxCrossEntropyGrad"), 0);
    options.gpu_math = BEL_GPU_MATH_TF32;
    cnn *whole = cnn_create(&options);
    assert_int_equal(bf16_of(whole->program, NULL), 0);
    assert_true(bel_program_live_bytes(rounded->program) < bel_program_live_bytes(whole->program));
    cnn_destroy(exact);
    cnn_destroy(rounded);
    cnn_destroy(again);
    cnn_destroy(whole);
}

// --- Integers ------------------------------------------------------------------------------------

// Integers up to 256 are bf16 numbers, and their sums are exact in any order. So a GPU must give
// the processor's bits for every element.
enum { WHOLE_MOST = 24 };

typedef struct whole {
    bel_graph *graph;
    bel_program_output outputs[WHOLE_MOST];
    float *variables[WHOLE_MOST], *results[WHOLE_MOST];
    bel_shape shape; // shape of the input
    float *x;
    int output_count;
} whole;
typedef bel_value *whole_layers(bel_graph *g, bel_value *x);

// Two convolutions with a residual connection, a pool with overlapping windows, a padded
// convolution of step 2, and a product with a bias.
static bel_value *convolutions(bel_graph *g, bel_value *x)
{
    static const int64_t two[] = {2, 2}, three[] = {3, 3};
    bel_window_options halving = {.size = sizeof halving, .strides = two};
    bel_value *h = bel_relu(g, bel_conv_2d(g, x, 6, 3, 1, true, "first"));
    h = bel_relu(g, bel_add(g, h, bel_conv_2d(g, h, 6, 3, 1, true, "second")));
    h = bel_max_pool(g, h, three, &halving, false);
    h = bel_relu(g, bel_conv_2d(g, h, 5, 3, 2, true, "third"));
    return bel_dense(g, bel_flatten(g, h, 1), 3, "top");
}

// Products large enough to be worth bf16 copies of their factors.
static bel_value *products(bel_graph *g, bel_value *x)
{
    enum { UNITS = 1296 };
    return bel_dense(g, bel_relu(g, bel_dense(g, x, UNITS, "first")), UNITS, "second");
}

static void put_out(whole *w, bel_value *value)
{
    bel_shape shape = bel_value_shape(value);
    w->results[w->output_count] = bel_xcalloc((size_t)bel_shape_elements(&shape), sizeof(float));
    w->outputs[w->output_count++] = (bel_program_output){.value = value, .external = true};
}

static void whole_create(whole *w, whole_layers *layers, bel_shape shape)
{
    int64_t inputs = bel_shape_elements(&shape);
    *w = (whole){.graph = bel_graph_create(),
                 .shape = shape,
                 .x = bel_xcalloc((size_t)inputs, sizeof(float))};
    bel_graph *g = w->graph;
    bel_value *y = layers(g, bel_input_value(g, "x", BEL_DTYPE_F32, &shape));
    bel_value *wanted[WHOLE_MOST], *gradients[WHOLE_MOST];
    int count = (int)g->variable_count;
    for (int v = 0; v < count; v++)
        wanted[v] = g->variables[v].value;
    bel_gradients(g, bel_reduce_sum(g, y, NULL, 0, false), wanted, count, gradients);
    BEL_ASSERT_OK(bel_graph_check(g));
    put_out(w, y);
    for (int v = 0; v < count; v++)
        put_out(w, gradients[v]);
    for (int v = 0; v < count; v++) {
        int64_t elements = bel_shape_elements(&g->variables[v].value->spec.shape);
        w->variables[v] = bel_xcalloc((size_t)elements, sizeof(float));
        for (int64_t i = 0; i < elements; i++) { // one in eight is not 0
            int64_t draw = (i * 7919 + v * 101) % 31 % 16;
            w->variables[v][i] = draw == 0 ? 1.0f : draw == 1 ? -1.0f : 0.0f;
        }
    }
    for (int64_t i = 0; i < inputs; i++)
        w->x[i] = (float)(i * 6271 % 1999 % 5 - 2);
}

static int64_t elements_of(const whole *w, int output)
{
    bel_shape shape = bel_value_shape(w->outputs[output].value);
    return bel_shape_elements(&shape);
}

// Writes the results of the program with these options to `w->results`. Returns the number of
// rounded values, and their memory in `*out_live`.
static int whole_run(whole *w, const bel_program_options *options, size_t *out_live)
{
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
    bel_run_context context = {.seed = 1};
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    BEL_ASSERT_OK(
        bel_program_compile(w->graph, &w->shape, w->outputs, w->output_count, options, &program));
    BEL_ASSERT_OK(bel_program_allocate(program, &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    bel_instance_bind_input(instance, 0, w->x);
    for (size_t v = 0; v < w->graph->variable_count; v++)
        bel_instance_bind_variable(instance, (int)v, w->variables[v]);
    for (int o = 0; o < w->output_count; o++)
        bel_instance_bind_output(instance, o, w->results[o]);
    for (int turn = 0; turn < 2; turn++) { // launched one by one, then as a graph
        for (int o = 0; o < w->output_count; o++)
            memset(w->results[o], 0xff, (size_t)elements_of(w, o) * sizeof(float));
        BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    }
    int count = bf16_of(program, NULL);
    *out_live = bel_program_live_bytes(program);
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_program_release(program, &memory);
    bel_program_destroy(program);
    return count;
}

// The least memory with which the program compiles, in steps of `bytes` / 20. It differs between
// libraries, whose convolutions need different workspaces.
static size_t least_memory(const whole *w, bel_program_options options, size_t bytes)
{
    for (size_t part = 1; part < 20; part++) {
        bel_program *program;
        options.memory_bytes = bytes / 20 * part;
        bel_status *status = bel_program_compile(w->graph, &w->shape, w->outputs, w->output_count,
                                                 &options, &program);
        if (status == NULL) {
            bel_program_destroy(program);
            return options.memory_bytes;
        }
        bel_status_ignore(status);
    }
    return 0; // no limit
}

static void whole_destroy(whole *w)
{
    for (int i = 0; i < WHOLE_MOST; i++) {
        bel_free(w->variables[i]);
        bel_free(w->results[i]);
    }
    bel_free(w->x);
    bel_graph_destroy(w->graph);
}

// Expects at least `least` rounded values; `again`: some values can be computed twice.
static void check_whole(whole_layers *layers, bel_shape shape, int least, bool again)
{
    whole expected, got;
    bel_program_options ways[] = {
        {.gpu_math = BEL_GPU_MATH_BF16},
        {.gpu_math = BEL_GPU_MATH_BF16, .fixed_variables = true},
        {.gpu_math = BEL_GPU_MATH_BF16, .memory_bytes = 1}, // replaced by a part of the first's
        {.gpu_math = BEL_GPU_MATH_BF16, .passes_off = BEL_PASSES_ALL},
        {.gpu_math = BEL_GPU_MATH_TF32},
    };
    whole_create(&expected, layers, shape);
    whole_create(&got, layers, shape);
    size_t first = 0, live;
    (void)whole_run(&expected, NULL, &live);
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        if (ways[way].memory_bytes > 0 && !again) continue;
        ways[way].device = card;
        bool limited = ways[way].memory_bytes > 0;
        if (limited) ways[way].memory_bytes = least_memory(&got, ways[way], first);
        int count = whole_run(&got, &ways[way], &live);
        if (way == 0) first = live;
        bool rounds = ways[way].gpu_math == BEL_GPU_MATH_BF16;
        assert_true(rounds ? count >= least : count == 0);
        assert_true(!limited || live < first || getenv("BELFRY_TEST_CARD") != NULL);
        for (int o = 0; o < got.output_count; o++) {
            bool other = false;
            for (int64_t i = 0; i < elements_of(&got, o); i++) {
                float a = got.results[o][i], b = expected.results[o][i];
                if (!(a == b))
                    fail_msg("way %d, output %d, element %lld: %g for %g", (int)way, o,
                             (long long)i, (double)a, (double)b);
                other = other || b != 0;
            }
            assert_true(other);
        }
    }
    whole_destroy(&expected);
    whole_destroy(&got);
}

static void test_whole_numbers(void **state)
{
    (void)state;
    check_whole(convolutions, BEL_SHAPE(3, 2, 9, 7), 9, true);
}

// Needs a real GPU: the stand-in would multiply for hours.
static void test_large_products(void **state)
{
    (void)state;
    if (getenv("BELFRY_TEST_CARD") == NULL) skip();
    check_whole(products, BEL_SHAPE(1296, 1296), 5, false);
}

// Number of rounded values of two layers, for `rows` examples of `inputs` numbers.
static int bf16_of_layers(int64_t rows, int64_t inputs, int64_t units)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(rows, inputs);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *y = bel_dense(g, bel_relu(g, bel_dense(g, x, units, "first")), 2, "second");
    const bel_program_output output = {.value = y};
    const bel_program_options options = {.device = card, .gpu_math = BEL_GPU_MATH_BF16};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(g, &shape, &output, 1, &options, &program));
    int count = bf16_of(program, NULL);
    bel_program_destroy(program);
    bel_graph_destroy(g);
    return count;
}

// Copies pay off for many multiplications or many results, but not if the factors are most of the
// data.
static void test_what_is_worth_copies(void **state)
{
    (void)state;
    assert_int_equal(bf16_of_layers(256, 1000, 1000), 0);
    assert_true(bf16_of_layers(2560, 1000, 1000) > 0);
    assert_int_equal(bf16_of_layers(8192, 16, 900), 0);
    assert_true(bf16_of_layers(8192, 16, 1000) > 0);
    assert_int_equal(bf16_of_layers(2100000, 1000, 1), 0);
}

// Chooses values for a graph in which products multiply and other operations accept the dtype they
// are given. The operation that makes `refuses` accepts no bf16.
static void choose(const bel_graph *g, const bel_value *output, const bel_value *refuses,
                   bool *out_bf16)
{
    bool needed[64];
    bel_bf16_operands operands[64];
    assert_true(g->node_count < 64 && g->value_count < 64);
    memset(needed, true, sizeof needed);
    memset(out_bf16, 0, 64 * sizeof *out_bf16);
    for (size_t n = 0; n < g->node_count; n++) {
        const bel_node *node = g->nodes[n];
        bool multiplies = node->op == BEL_OP_MATMUL;
        operands[n] = (bel_bf16_operands){
            .inputs = multiplies ? 3 : 1, .outputs = 1, .multiplies = multiplies};
        bool none = (bel_op_get(node->op)->flags & BEL_OP_LEAF) != 0 || node->outputs[0] == refuses;
        if (none) operands[n] = (bel_bf16_operands){.inputs = 0};
    }
    const bel_program_output outputs[] = {{.value = g->values[output->id]}};
    bel_choose_bf16(g, needed, operands, NULL, outputs, 1, out_bf16);
}

static void test_choice(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(4, 4);
    bool bf16[64];
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *before = bel_tanh(g, bel_exp(g, x)); // a product reads it
    bel_value *a = bel_matmul(g, before, x), *b = bel_relu(g, a), *c = bel_tanh(g, b);
    bel_value *flat = bel_reshape(g, c, &BEL_SHAPE(16));
    bel_value *last = bel_exp(g, flat), *y = bel_relu(g, last);
    choose(g, y, NULL, bf16);
    assert_false(bf16[x->id]);
    assert_false(bf16[before->node->inputs[0]->id]); // made from values that were never rounded
    assert_true(bf16[before->id]);
    assert_true(bf16[a->id] && bf16[b->id] && bf16[c->id]);
    assert_true(bf16[flat->id] && bf16[last->id]); // an alias, and the value after it
    assert_false(bf16[y->id]);                     // an output
    choose(g, y, last, bf16);                      // it does not read an alias of c as bf16
    assert_true(bf16[a->id] && bf16[b->id]);
    assert_false(bf16[c->id] || bf16[flat->id] || bf16[last->id] || bf16[y->id]);
    choose(g, flat, NULL, bf16); // an output under another name
    assert_false(bf16[c->id] || bf16[flat->id]);
    bel_graph_destroy(g);
}

int main(void)
{
    bel_use_cards();
    if (!bel_cards_open(&card)) return 1;
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step),         cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_large_products), cmocka_unit_test(test_what_is_worth_copies),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
