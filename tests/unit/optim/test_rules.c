// Update rules against scalar double arithmetic, written out here from the formulae of
// belfry/optimizer.h, over five steps.
#include <math.h>

#include "optim/rule.h"
#include "support/bel_test.h"

enum { COUNT = 37, STEPS = 5, REPLICAS = 3 };

typedef struct model {
    double p[COUNT], m[COUNT], v[COUNT];
} model;

// Sum over replicas of the gradient of element i at a step.
static double gradient_sum(int i, int step)
{
    return (double)(float)((double)((i * 7919 + step * 104729) % 2003) / 500.0 - 2.0);
}

// One step of one element, as the header says: scale, clip by value, decay, update.
static void expected_step(const bel_optimizer *o, int step, model *e, int i)
{
    double t = step + 1, a = o->learning_rate, g = gradient_sum(i, step) / REPLICAS;
    if (o->clip_value > 0) g = fmax(-o->clip_value, fmin(o->clip_value, g));
    g += o->weight_decay * e->p[i];
    switch (o->kind) {
    case BEL_OPTIMIZER_SGD: e->p[i] -= a * g; break;
    case BEL_OPTIMIZER_MOMENTUM:
        e->m[i] = o->momentum * e->m[i] + g;
        e->p[i] -= a * (o->nesterov ? g + o->momentum * e->m[i] : e->m[i]);
        break;
    case BEL_OPTIMIZER_ADAM:
        e->m[i] = o->beta1 * e->m[i] + (1 - o->beta1) * g;
        e->v[i] = o->beta2 * e->v[i] + (1 - o->beta2) * g * g;
        e->p[i] -= a * (e->m[i] / (1 - pow(o->beta1, t))) /
                   (sqrt(e->v[i] / (1 - pow(o->beta2, t))) + o->epsilon);
        break;
    }
}

static void check_rule(bel_optimizer optimizer)
{
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    static model expected;
    float p[COUNT], m[COUNT] = {0}, v[COUNT] = {0}, sum[COUNT], gradient[COUNT];
    float *slots[] = {m, v};
    memset(&expected, 0, sizeof expected);
    for (int i = 0; i < COUNT; i++)
        expected.p[i] = p[i] = (float)i / 16.0f - 1.0f;
    for (int step = 0; step < STEPS; step++) {
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        for (int i = 0; i < COUNT; i++) {
            sum[i] = (float)gradient_sum(i, step);
            expected_step(&optimizer, step, &expected, i);
        }
        bel_rule_scale(&numbers, sum, (float)(1.0 / REPLICAS), gradient, COUNT);
        bel_rule_apply(&numbers, gradient, 1.0f, p, p, slots, COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (fabs((double)p[i] - expected.p[i]) > 3e-6 * fmax(1, fabs(expected.p[i]))) {
                fail_msg("step %d, element %d: got %.9g, expected %.9g", step, i, (double)p[i],
                         expected.p[i]);
            }
        }
    }
}

static void test_rules(void **state)
{
    (void)state;
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1});
    check_rule(
        (bel_optimizer){.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1, .weight_decay = 0.01});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1});
    check_rule((bel_optimizer){
        .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.05, .momentum = 0.5, .nesterov = true});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.01});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADAM,
                               .learning_rate = 0.1,
                               .beta1 = 0.5,
                               .beta2 = 0.9,
                               .epsilon = 0.01,
                               .weight_decay = 0.1});
}

static void test_clip_value(void **state)
{
    (void)state;
    for (int kind = BEL_OPTIMIZER_SGD; kind <= BEL_OPTIMIZER_ADAM; kind++) {
        check_rule((bel_optimizer){
            .kind = (bel_optimizer_kind)kind, .learning_rate = 0.1, .clip_value = 0.25});
    }
    bel_rule_step numbers = {.clip_value = 0.5f};
    float sums[] = {-9.0f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 9.0f, INFINITY}, out[8];
    static const float expected[] = {-0.5f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.5f, 0.5f};
    bel_rule_scale(&numbers, sums, 1.0f, out, 8);
    assert_memory_equal(out, expected, sizeof expected);
}

// The factor that norm clipping leaves scales the gradient before the decay is added.
static void test_factor(void **state)
{
    (void)state;
    bel_optimizer optimizer = {.learning_rate = 0.5, .weight_decay = 0.25};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    bel_rule_step numbers = bel_rule_begin(&optimizer, 0);
    float gradient = 4.0f, value = 2.0f, next;
    bel_rule_apply(&numbers, &gradient, 0.5f, &value, &next, NULL, 1);
    assert_true(next == 2.0f - 0.5f * (4.0f * 0.5f + 0.25f * 2.0f));
    assert_true(value == 2.0f); // the old values stay
}

static void test_slots(void **state)
{
    (void)state;
    assert_int_equal(bel_rule_get(BEL_OPTIMIZER_SGD)->slot_count, 0);
    assert_int_equal(bel_rule_get(BEL_OPTIMIZER_MOMENTUM)->slot_count, 1);
    const bel_rule *adam = bel_rule_get(BEL_OPTIMIZER_ADAM);
    assert_int_equal(adam->slot_count, 2);
    assert_string_equal(adam->name, "adam");
    assert_string_equal(adam->slots[0], "m");
    assert_string_equal(adam->slots[1], "v");
}

static void test_sum_square(void **state)
{
    (void)state;
    float values[1000];
    double expected = 0;
    for (int i = 0; i < 1000; i++) {
        values[i] = (float)i * 0.5f; // squares are exact in double, and so is their sum
        expected += (double)i * 0.5 * (double)i * 0.5;
        assert_true(bel_rule_sum_square(values, i + 1) == expected);
    }
    assert_true(bel_rule_sum_square(values, 0) == 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_clip_value),
        cmocka_unit_test(test_factor),     cmocka_unit_test(test_slots),
        cmocka_unit_test(test_sum_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
