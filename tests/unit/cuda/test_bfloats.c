// Values that lie as bfloat16 on a card: which ones are chosen, and that a training step of
// convolutions and a product with them makes what the processor makes, rounded. label: native
#include "runtime/halves.h"

#include <math.h>

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

static int halves_of(const bel_program *program, const char *op)
{
    int count = 0;
    for (int i = 0; i < bel_program_instruction_count(program); i++) {
        bel_program_line line = bel_program_line_at(program, i);
        if (line.half && (op == NULL || strcmp(line.op, op) == 0)) count++;
    }
    return count;
}

// Numbers have 8 bits between the layers, and the gradient of the first one goes through ten and a
// pool, whose windows have equal numbers now and then.
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
        if (halves_of(rounded->program, made[i]) == 0) fail_msg("no %s is rounded", made[i]);
    assert_int_equal(halves_of(rounded->program, "ConvGradWeights"), 0);
    assert_int_equal(halves_of(rounded->program, "SoftmaxCrossEntropyGrad"), 0);
    options.gpu_math = BEL_GPU_MATH_TF32;
    cnn *whole = cnn_create(&options);
    assert_int_equal(halves_of(whole->program, NULL), 0);
    assert_true(bel_program_live_bytes(rounded->program) < bel_program_live_bytes(whole->program));
    cnn_destroy(exact);
    cnn_destroy(rounded);
    cnn_destroy(again);
    cnn_destroy(whole);
}

// What is chosen where products multiply, other operations take what they are given, and one that
// is named `refuses` takes nothing.
static void choose(const bel_graph *g, const bel_value *output, const bel_value *refuses,
                   bool *out_half)
{
    bool needed[64];
    bel_half_operands operands[64];
    assert_true(g->node_count < 64 && g->value_count < 64);
    memset(needed, true, sizeof needed);
    memset(out_half, 0, 64 * sizeof *out_half);
    for (size_t n = 0; n < g->node_count; n++) {
        const bel_node *node = g->nodes[n];
        bool multiplies = node->op == BEL_OP_MATMUL;
        operands[n] = (bel_half_operands){
            .inputs = multiplies ? 3 : 1, .outputs = 1, .multiplies = multiplies};
        bool none = (bel_op_get(node->op)->flags & BEL_OP_LEAF) != 0 || node->outputs[0] == refuses;
        if (none) operands[n] = (bel_half_operands){.inputs = 0};
    }
    const bel_program_output outputs[] = {{.value = g->values[output->id]}};
    bel_choose_halves(g, needed, operands, NULL, outputs, 1, out_half);
}

static void test_choice(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(4, 4);
    bool half[64];
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *before = bel_tanh(g, bel_exp(g, x)); // read by a product
    bel_value *a = bel_matmul(g, before, x), *b = bel_relu(g, a), *c = bel_tanh(g, b);
    bel_value *flat = bel_reshape(g, c, &BEL_SHAPE(16));
    bel_value *last = bel_exp(g, flat), *y = bel_relu(g, last);
    choose(g, y, NULL, half);
    assert_false(half[x->id]);
    assert_false(half[before->node->inputs[0]->id]); // of what was never rounded
    assert_true(half[before->id]);
    assert_true(half[a->id] && half[b->id] && half[c->id]);
    assert_true(half[flat->id] && half[last->id]); // an alias, and what follows it
    assert_false(half[y->id]);                     // an output
    choose(g, y, last, half);                      // which does not read an alias of c so
    assert_true(half[a->id] && half[b->id]);
    assert_false(half[c->id] || half[flat->id] || half[last->id] || half[y->id]);
    choose(g, flat, NULL, half); // an output by another name
    assert_false(half[c->id] || half[flat->id]);
    bel_graph_destroy(g);
}

int main(void)
{
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
