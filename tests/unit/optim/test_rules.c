// Update rules over five steps, against scalar double arithmetic written out here from the formulae
// of belfry/optimizer.h. Also against numbers that PyTorch computed in double (oracle.txt).
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/real.h"
#include "optim/rule.h"
#include "optim/settings.h"
#include "support/bel_test.h"

enum { COUNT = 37, STEPS = 5, REPLICAS = 3 };

typedef struct model {
    double p[COUNT], m[COUNT], v[COUNT], c[COUNT];
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
    if (o->kind != BEL_OPTIMIZER_ADAMW) g += o->weight_decay * e->p[i];
    switch (o->kind) {
    case BEL_OPTIMIZER_SGD: e->p[i] -= a * g; break;
    case BEL_OPTIMIZER_MOMENTUM:
        e->m[i] = o->momentum * e->m[i] + g;
        e->p[i] -= a * (o->nesterov ? g + o->momentum * e->m[i] : e->m[i]);
        break;
    case BEL_OPTIMIZER_ADAMW: e->p[i] -= a * o->weight_decay * e->p[i]; // fallthrough
    case BEL_OPTIMIZER_ADAM:
        e->m[i] = o->beta1 * e->m[i] + (1 - o->beta1) * g;
        e->v[i] = o->beta2 * e->v[i] + (1 - o->beta2) * g * g;
        e->p[i] -= a * (e->m[i] / (1 - pow(o->beta1, t))) /
                   (sqrt(e->v[i] / (1 - pow(o->beta2, t))) + o->epsilon);
        break;
    case BEL_OPTIMIZER_ADAGRAD:
        e->m[i] += g * g;
        e->p[i] -= a * g / (sqrt(e->m[i]) + o->epsilon);
        break;
    case BEL_OPTIMIZER_RMSPROP: {
        double d = o->rmsprop_decay;
        e->v[i] = d * e->v[i] + (1 - d) * g * g;
        e->c[i] = o->rmsprop_centered ? d * e->c[i] + (1 - d) * g : 0;
        g /= sqrt(e->v[i] - e->c[i] * e->c[i]) + o->epsilon;
        e->m[i] = o->rmsprop_momentum * e->m[i] + g;
        e->p[i] -= a * e->m[i];
        break;
    }
    case BEL_OPTIMIZER_ADADELTA: {
        double d = o->adadelta_decay;
        e->v[i] = d * e->v[i] + (1 - d) * g * g;
        double u = g * sqrt(e->m[i] + o->epsilon) / sqrt(e->v[i] + o->epsilon);
        e->m[i] = d * e->m[i] + (1 - d) * u * u;
        e->p[i] -= a * u;
        break;
    }
    case BEL_OPTIMIZER_FTRL: {
        double old = pow(e->m[i], -o->learning_rate_power);
        e->m[i] += g * g;
        double new = pow(e->m[i], -o->learning_rate_power);
        e->v[i] += g + 2 * o->ftrl_l2_shrinkage * e->p[i] - (new - old) / a * e->p[i];
        double over = fmax(fabs(e->v[i]) - o->ftrl_l1, 0);
        e->p[i] = -copysign(over, e->v[i]) / (new / a + 2 * o->ftrl_l2);
        break;
    }
    case BEL_OPTIMIZER_LAMB:
    case BEL_OPTIMIZER_LARS: // see expected_trusting
    case BEL_OPTIMIZER_COUNT: fail();
    }
}

static double norm(const double *x)
{
    double square = 0;
    for (int i = 0; i < COUNT; i++)
        square += x[i] * x[i];
    return sqrt(square);
}

// One step of a complete variable, as in the papers.
static void expected_trusting(const bel_optimizer *o, int step, model *e)
{
    double t = step + 1, a = o->learning_rate, w = o->weight_decay, r[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double g = gradient_sum(i, step) / REPLICAS;
        if (o->clip_value > 0) g = fmax(-o->clip_value, fmin(o->clip_value, g));
        r[i] = g;
        if (o->kind == BEL_OPTIMIZER_LARS) continue;
        e->m[i] = o->beta1 * e->m[i] + (1 - o->beta1) * g;
        e->v[i] = o->beta2 * e->v[i] + (1 - o->beta2) * g * g;
        r[i] = e->m[i] / (1 - pow(o->beta1, t)) /
               (sqrt(e->v[i] / (1 - pow(o->beta2, t))) + o->epsilon);
        r[i] += w * e->p[i];
    }
    double p_norm = norm(e->p), r_norm = norm(r);
    for (int i = 0; i < COUNT; i++) {
        if (o->kind == BEL_OPTIMIZER_LAMB) {
            e->p[i] -= a * p_norm / r_norm * r[i];
        } else {
            double local = o->lars_trust * p_norm / (r_norm + w * p_norm);
            e->m[i] = o->momentum * e->m[i] + a * local * (r[i] + w * e->p[i]);
            e->p[i] -= e->m[i];
        }
    }
}

// Sets the slots to their values before the first step, one slot after another.
static void start_slots(const bel_optimizer *o, float slots[BEL_RULE_MAX_SLOTS][COUNT],
                        float *pointers[BEL_RULE_MAX_SLOTS])
{
    for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++) {
        pointers[k] = slots[k];
        for (int i = 0; i < COUNT; i++)
            slots[k][i] = bel_rule_slot_start(o, k);
    }
}

// At each level, new values in the gradient's array and in the values' have the bits of those in a
// separate one, and so have the slots.
static void check_in_place(const bel_rule_step *step, const float *gradient, float factor,
                           const float *values, float *const *slots)
{
    static const bel_rule_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_rule_kernels)};
    enum { SEPARATE, VALUES, GRADIENT, PLACES };
    float first[1 + BEL_RULE_MAX_SLOTS][COUNT];
    for (int level = 0; level < BEL_ISA_COUNT; level++) {
        char lacks[BEL_ISA_TEXT];
        if (bel_isa_lacks((bel_isa)level, lacks)[0] != '\0') continue;
        for (int place = 0; place < PLACES; place++) {
            float g[COUNT], p[COUNT], other[COUNT], got[1 + BEL_RULE_MAX_SLOTS][COUNT];
            float *of[BEL_RULE_MAX_SLOTS];
            float *new_values = place == SEPARATE ? other : place == VALUES ? p : g;
            memcpy(g, gradient, sizeof g);
            memcpy(p, values, sizeof p);
            for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
                of[k] = memcpy(got[1 + k], slots[k], sizeof got[1 + k]);
            levels[level]->apply[step->kind](step, g, factor, p, new_values, of, COUNT);
            memcpy(got[0], new_values, sizeof got[0]);
            if (level == 0 && place == SEPARATE) memcpy(first, got, sizeof first);
            assert_memory_equal(got, first, sizeof first);
        }
    }
}

// At each level, the kernel of two gradients has the bits of an addition, a scaling and a plain
// kernel.
static void check_sum(const bel_rule_step *step, const float *sum, const float *values,
                      float *const *slots)
{
    static const bel_rule_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_rule_kernels)};
    const float scale = (float)(1.0 / REPLICAS);
    for (int level = 0; level < BEL_ISA_COUNT; level++) {
        char lacks[BEL_ISA_TEXT];
        if (bel_isa_lacks((bel_isa)level, lacks)[0] != '\0') continue;
        float left[COUNT], right[COUNT], g[COUNT], *of[BEL_RULE_MAX_SLOTS];
        float want[1 + BEL_RULE_MAX_SLOTS][COUNT], got[1 + BEL_RULE_MAX_SLOTS][COUNT];
        for (int i = 0; i < COUNT; i++) {
            left[i] = sum[i] * 0.3f;
            right[i] = i % 3 == 0 ? -left[i] : sum[i] * 0.7f;
            g[i] = left[i] + right[i];
        }
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
            of[k] = memcpy(want[1 + k], slots[k], sizeof want[1 + k]);
        levels[level]->scale(g, scale, step->clip_value, g, COUNT);
        levels[level]->apply[step->kind](step, g, 1.0f, values, want[0], of, COUNT);
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
            of[k] = memcpy(got[1 + k], slots[k], sizeof got[1 + k]);
        levels[level]->apply_sum[step->kind](step, left, right, scale, values, got[0], of, COUNT);
        assert_memory_equal(got, want, sizeof want);
        memcpy(got[0], values, sizeof got[0]);
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
            of[k] = memcpy(got[1 + k], slots[k], sizeof got[1 + k]);
        levels[level]->apply_sum[step->kind](step, left, right, scale, got[0], got[0], of, COUNT);
        assert_memory_equal(got, want, sizeof want);
    }
}

static void check_rule(bel_optimizer optimizer)
{
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    static model expected;
    float p[COUNT], kept[BEL_RULE_MAX_SLOTS][COUNT], sum[COUNT], gradient[COUNT];
    float *slots[BEL_RULE_MAX_SLOTS];
    start_slots(&optimizer, kept, slots);
    memset(&expected, 0, sizeof expected);
    for (int i = 0; i < COUNT; i++)
        expected.p[i] = p[i] = (float)i / 16.0f - 1.0f;
    for (int i = 0; i < COUNT && bel_rule_get(&optimizer)->accumulates; i++)
        expected.m[i] = optimizer.initial_accumulator;
    for (int step = 0; step < STEPS; step++) {
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        const bel_rule *rule = bel_rule_get(&optimizer);
        for (int i = 0; i < COUNT; i++) {
            sum[i] = (float)gradient_sum(i, step);
            if (!rule->trusts) expected_step(&optimizer, step, &expected, i);
        }
        if (rule->trusts) expected_trusting(&optimizer, step, &expected);
        bel_rule_scale(&numbers, sum, (float)(1.0 / REPLICAS), gradient, COUNT);
        if (rule->prepares) bel_rule_prepare(&numbers, gradient, p, gradient, slots, COUNT);
        float factor = !rule->trusts ? 1.0f
                                     : bel_rule_trust(&numbers, bel_rule_sum_square(p, COUNT),
                                                      bel_rule_sum_square(gradient, COUNT));
        check_in_place(&numbers, gradient, factor, p, slots);
        check_sum(&numbers, sum, p, slots);
        bel_rule_apply(&numbers, gradient, factor, p, p, slots, COUNT);
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
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADAMW, .learning_rate = 0.01});
    check_rule((bel_optimizer){
        .kind = BEL_OPTIMIZER_ADAMW, .learning_rate = 0.05, .beta1 = 0.8, .weight_decay = 0.5});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.1});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADAGRAD,
                               .learning_rate = 0.5,
                               .initial_accumulator = 2,
                               .epsilon = 0.01,
                               .weight_decay = 0.1});
    for (int i = 0; i < 4; i++) { // with and without each part
        check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_RMSPROP,
                                   .learning_rate = 0.05,
                                   .rmsprop_decay = 0.7,
                                   .rmsprop_momentum = i % 2 == 1 ? 0.5 : 0,
                                   .rmsprop_centered = i >= 2,
                                   .epsilon = 0.01,
                                   .weight_decay = 0.1});
    }
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_RMSPROP, .learning_rate = 0.01});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADADELTA, .learning_rate = 1});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_ADADELTA,
                               .learning_rate = 0.5,
                               .adadelta_decay = 0.7,
                               .epsilon = 0.01,
                               .weight_decay = 0.1});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_LAMB, .learning_rate = 0.01});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_LAMB,
                               .learning_rate = 0.05,
                               .beta1 = 0.5,
                               .beta2 = 0.9,
                               .epsilon = 0.01,
                               .weight_decay = 0.1});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_LARS, .learning_rate = 2});
    check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_LARS,
                               .learning_rate = 0.5,
                               .momentum = 0.5,
                               .lars_trust = 0.25,
                               .weight_decay = 0.1});
    static const double powers[] = {0, -1, -0.25, -0.7, -0.001}; // 0: the default
    for (int i = 0; i < 5; i++) {
        check_rule((bel_optimizer){
            .kind = BEL_OPTIMIZER_FTRL, .learning_rate = 0.1, .learning_rate_power = powers[i]});
        check_rule((bel_optimizer){.kind = BEL_OPTIMIZER_FTRL,
                                   .learning_rate = 0.5,
                                   .learning_rate_power = powers[i],
                                   .initial_accumulator = 2,
                                   .ftrl_l1 = 0.2,
                                   .ftrl_l2 = 0.1,
                                   .ftrl_l2_shrinkage = 0.05,
                                   .weight_decay = 0.01});
    }
}

// Decays near 1: 1 - decay must not suffer from the rounding of the decay. Compares the move of a
// parameter, so that the parameter's digits do not matter.
static void check_slow(bel_optimizer optimizer)
{
    enum { LONG = 300 };
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    static model expected;
    float kept[BEL_RULE_MAX_SLOTS][COUNT] = {{0}}, p[COUNT], gradient[COUNT];
    float *slots[BEL_RULE_MAX_SLOTS] = {kept[0], kept[1], kept[2]};
    memset(&expected, 0, sizeof expected);
    for (int step = 0; step < LONG; step++) {
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        for (int i = 0; i < COUNT; i++) {
            p[i] = 0;
            expected.p[i] = 0;
            gradient[i] = (float)(gradient_sum(i, step) / REPLICAS);
            expected_step(&optimizer, step, &expected, i);
        }
        bel_rule_apply(&numbers, gradient, 1.0f, p, p, slots, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double scale = fabs(expected.p[i]) + 0.01 * optimizer.learning_rate;
            if (fabs((double)p[i] - expected.p[i]) < 1e-4 * scale) continue;
            fail_msg("step %d, element %d: moved by %.9g, expected %.9g", step, i, (double)p[i],
                     expected.p[i]);
        }
    }
}

static void test_slow_decays(void **state)
{
    (void)state;
    check_slow((bel_optimizer){
        .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999999});
    check_slow((bel_optimizer){
        .kind = BEL_OPTIMIZER_ADAMW, .learning_rate = 1, .beta1 = 0.9999, .beta2 = 0.999999});
    check_slow((bel_optimizer){
        .kind = BEL_OPTIMIZER_RMSPROP, .learning_rate = 1, .rmsprop_decay = 0.999999});
}

// After the gradients end, slots decay to 0 and never become subnormal.
static void check_end(const char *name, bel_optimizer optimizer)
{
    enum { LONG = 4000 };
    optimizer.learning_rate = 1e-3;
    optimizer.beta1 = optimizer.beta2 = 0.9;
    optimizer.momentum = optimizer.rmsprop_decay = optimizer.adadelta_decay = 0.9;
    optimizer.epsilon = 1e-8;
    float p[COUNT], kept[BEL_RULE_MAX_SLOTS][COUNT], gradient[COUNT], average[COUNT];
    float *slots[BEL_RULE_MAX_SLOTS];
    start_slots(&optimizer, kept, slots);
    for (int i = 0; i < COUNT; i++) {
        p[i] = 0;
        gradient[i] = average[i] = (float)(i + 1) / 64.0f;
    }
    for (int step = 0; step < LONG; step++) {
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        if (bel_rule_get(&optimizer)->prepares)
            bel_rule_prepare(&numbers, gradient, p, gradient, slots, COUNT);
        bel_rule_apply(&numbers, gradient, 1.0f, p, p, slots, COUNT);
        memset(gradient, 0, sizeof gradient);
        memset(p, 0, sizeof p);
        bel_rule_average(p, 0.1f, average, COUNT);
        for (int i = 0; i < COUNT; i++) {
            assert_int_not_equal(fpclassify(average[i]), FP_SUBNORMAL);
            for (int k = 0; k < bel_rule_get(&optimizer)->slot_count; k++)
                if (fpclassify(kept[k][i]) == FP_SUBNORMAL)
                    fail_msg("%s, step %d: slot %d is %g", name, step, k, (double)kept[k][i]);
        }
    }
    for (int k = 0; k < bel_rule_get(&optimizer)->slot_count; k++)
        for (int i = 0; i < COUNT; i++)
            if (kept[k][i] != 0) fail_msg("%s: slot %d ends as %g", name, k, (double)kept[k][i]);
    for (int i = 0; i < COUNT; i++)
        assert_true(average[i] == 0);
}

static void test_ends(void **state)
{
    (void)state;
    check_end("momentum", (bel_optimizer){.kind = BEL_OPTIMIZER_MOMENTUM});
    check_end("nesterov", (bel_optimizer){.kind = BEL_OPTIMIZER_MOMENTUM, .nesterov = true});
    check_end("adam", (bel_optimizer){.kind = BEL_OPTIMIZER_ADAM});
    check_end("adamw", (bel_optimizer){.kind = BEL_OPTIMIZER_ADAMW});
    check_end("lamb", (bel_optimizer){.kind = BEL_OPTIMIZER_LAMB});
    check_end("lars", (bel_optimizer){.kind = BEL_OPTIMIZER_LARS});
    check_end("adadelta", (bel_optimizer){.kind = BEL_OPTIMIZER_ADADELTA});
    check_end("rmsprop", (bel_optimizer){.kind = BEL_OPTIMIZER_RMSPROP,
                                         .rmsprop_centered = true,
                                         .rmsprop_momentum = 0.9});
}

// --- Against stored numbers ----------------------------------------------------------------------

// Runs a rule over the unchanged gradients and compares with the values of a line.
static void check_stored(const char *name, bel_optimizer optimizer, char *values)
{
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    float p[COUNT], kept[BEL_RULE_MAX_SLOTS][COUNT], gradient[COUNT];
    float *slots[BEL_RULE_MAX_SLOTS];
    start_slots(&optimizer, kept, slots);
    for (int i = 0; i < COUNT; i++)
        p[i] = (float)i / 16.0f - 1.0f;
    for (int step = 0; step < STEPS; step++) {
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        for (int i = 0; i < COUNT; i++)
            gradient[i] = (float)gradient_sum(i, step);
        bel_rule_apply(&numbers, gradient, 1.0f, p, p, slots, COUNT);
    }
    for (int i = 0; i < COUNT; i++) {
        char *end;
        double want = strtod(values, &end);
        assert_ptr_not_equal(end, values);
        values = end;
        if (fabs((double)p[i] - want) > 3e-6 * fmax(1, fabs(want)))
            fail_msg("%s, element %d: got %.9g, expected %.9g", name, i, (double)p[i], want);
    }
    assert_int_equal(*values, '\n');
}

static void test_stored(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bel_optimizer optimizer;
    } rows[] = {
        {"sgd", {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1, .weight_decay = 0.01}},
        {"nesterov",
         {.kind = BEL_OPTIMIZER_MOMENTUM,
          .learning_rate = 0.05,
          .momentum = 0.5,
          .nesterov = true}},
        {"adam",
         {.kind = BEL_OPTIMIZER_ADAM,
          .learning_rate = 0.1,
          .beta1 = 0.5,
          .beta2 = 0.9,
          .epsilon = 0.01,
          .weight_decay = 0.1}},
        {"adagrad",
         {.kind = BEL_OPTIMIZER_ADAGRAD,
          .learning_rate = 0.5,
          .initial_accumulator = 2,
          .epsilon = 0.01,
          .weight_decay = 0.1}},
        {"rmsprop",
         {.kind = BEL_OPTIMIZER_RMSPROP,
          .learning_rate = 0.05,
          .rmsprop_decay = 0.7,
          .epsilon = 0.01}},
        {"rmsprop_full",
         {.kind = BEL_OPTIMIZER_RMSPROP,
          .learning_rate = 0.05,
          .rmsprop_decay = 0.7,
          .rmsprop_momentum = 0.5,
          .rmsprop_centered = true,
          .epsilon = 0.01,
          .weight_decay = 0.1}},
        {"adadelta",
         {.kind = BEL_OPTIMIZER_ADADELTA,
          .learning_rate = 0.5,
          .adadelta_decay = 0.7,
          .epsilon = 0.01,
          .weight_decay = 0.1}},
        {"adamw",
         {.kind = BEL_OPTIMIZER_ADAMW,
          .learning_rate = 0.1,
          .beta1 = 0.5,
          .beta2 = 0.9,
          .epsilon = 0.01,
          .weight_decay = 0.3}},
    };
    char *oracle;
    size_t size;
    BEL_ASSERT_OK(bel_file_read("tests/unit/optim/oracle.txt", &oracle, &size));
    char *line = oracle;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) { // lines in the same order
        size_t length = strlen(rows[i].name);
        if (strncmp(line, rows[i].name, length) != 0 || line[length] != ' ')
            fail_msg("oracle.txt lacks the line \"%s\": run oracle.py", rows[i].name);
        check_stored(rows[i].name, rows[i].optimizer, line + length);
        line = strchr(line, '\n') + 1;
    }
    bel_free(oracle);
}

static void test_clip_value(void **state)
{
    (void)state;
    for (int kind = BEL_OPTIMIZER_SGD; kind < BEL_OPTIMIZER_COUNT; kind++) {
        check_rule((bel_optimizer){
            .kind = (bel_optimizer_kind)kind, .learning_rate = 0.1, .clip_value = 0.25});
    }
    bel_rule_step numbers = {.clip_value = 0.5f};
    float sums[] = {-9.0f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 9.0f, INFINITY}, out[8];
    static const float expected[] = {-0.5f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.5f, 0.5f};
    bel_rule_scale(&numbers, sums, 1.0f, out, 8);
    assert_memory_equal(out, expected, sizeof expected);
}

// A variable's factors have the effect of an optimizer with the multiplied rate and decay.
static void test_scaled(void **state)
{
    (void)state;
    for (int kind = 0; kind < BEL_OPTIMIZER_COUNT; kind++) {
        bel_optimizer o = {
            .kind = (bel_optimizer_kind)kind, .learning_rate = 0.3, .weight_decay = 0.1};
        BEL_ASSERT_OK(bel_optimizer_check(&o));
        bel_rule_step got = bel_rule_begin_scaled(&o, 3, 3, 0.7, 0.2),
                      plain = bel_rule_begin(&o, 3);
        o.learning_rate *= 0.7;
        o.weight_decay *= 0.2;
        bel_rule_step want = bel_rule_begin(&o, 3);
        assert_true(got.rate == want.rate && got.rate != plain.rate);
        assert_true(got.weight_decay == want.weight_decay && got.shrink == want.shrink);
        assert_true(got.root == want.root);
    }
    bel_optimizer o = {.kind = BEL_OPTIMIZER_ADAMW, .learning_rate = 0.3, .weight_decay = 0.1};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    bel_rule_step numbers = bel_rule_begin_scaled(&o, 0, 0, 0, 1); // only the slots change
    float gradient = 4.0f, value = 2.0f, m = 0, v = 0;
    bel_rule_apply(&numbers, &gradient, 1.0f, &value, &value, (float *[BEL_RULE_MAX_SLOTS]){&m, &v},
                   1);
    assert_true(value == 2.0f && m > 0 && v > 0);
}

// A schedule counts steps; corrections of bias count updates, of which a step may have several.
static void test_updates_in_a_step(void **state)
{
    (void)state;
    bel_optimizer o = {
        .kind = BEL_OPTIMIZER_ADAM,
        .learning_rate = 0.3,
        .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL, .decay_steps = 10, .decay_rate = 0.5}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    bel_rule_step got = bel_rule_begin_scaled(&o, 3, 14, 1, 1);
    double rate = bel_optimizer_rate(&o, 3);
    assert_true(got.rate == (float)(rate / (1 - bel_real_pow(0.9, 15))));
    assert_true(got.root == bel_rule_begin(&o, 14).root);
    assert_true(got.rate != bel_rule_begin(&o, 3).rate && got.rate != bel_rule_begin(&o, 14).rate);
}

// If a norm is 0, the trust ratio is 1.
static void test_trust(void **state)
{
    (void)state;
    bel_rule_step step = {.kind = BEL_OPTIMIZER_LAMB, .trust = 0.5, .weight_decay = 0.25f};
    assert_true(bel_rule_trust(&step, 0, 4) == 1 && bel_rule_trust(&step, 4, 0) == 1);
    assert_true(bel_rule_trust(&step, 4, 16) == 0.5f);
    step.kind = BEL_OPTIMIZER_LARS;
    assert_true(bel_rule_trust(&step, 0, 4) == 1 && bel_rule_trust(&step, 4, 0) == 1);
    assert_true(bel_rule_trust(&step, 4, 2.25) == 0.5f * 2 / (1.5f + 0.25f * 2));
}

// TensorFlow's formula in double, with and without num_updates.
static void test_average(void **state)
{
    (void)state;
    for (int ramp = 0; ramp < 2; ramp++) {
        bel_optimizer o = {
            .learning_rate = 1, .moving_average_decay = 0.15, .moving_average_ramp = ramp == 1};
        BEL_ASSERT_OK(bel_optimizer_check(&o));
        assert_int_equal(bel_rule_kept(&o), 1);
        float values[COUNT], averages[COUNT];
        double expected[COUNT];
        for (int i = 0; i < COUNT; i++)
            expected[i] = averages[i] = (float)i / 16.0f - 1.0f;
        for (int step = 0; step < STEPS; step++) {
            double d = ramp == 1 ? fmin(0.15, (1.0 + step) / (10.0 + step)) : 0.15;
            assert_true(ramp == 0 || (d < 0.15) == (step == 0)); // both sides of the minimum
            for (int i = 0; i < COUNT; i++) {
                values[i] = (float)gradient_sum(i, step);
                expected[i] = d * expected[i] + (1 - d) * gradient_sum(i, step);
            }
            bel_rule_average(values, bel_rule_average_rest(&o, step), averages, COUNT);
            for (int i = 0; i < COUNT; i++)
                assert_true(fabs((double)averages[i] - expected[i]) < 1e-6);
        }
    }
}

// The factor from norm clipping scales the gradient before the decay is added.
static void test_factor(void **state)
{
    (void)state;
    bel_optimizer optimizer = {.learning_rate = 0.5, .weight_decay = 0.25};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    bel_rule_step numbers = bel_rule_begin(&optimizer, 0);
    float gradient = 4.0f, value = 2.0f, next;
    bel_rule_apply(&numbers, &gradient, 0.5f, &value, &next, (float *[BEL_RULE_MAX_SLOTS]){NULL},
                   1);
    assert_true(next == 2.0f - 0.5f * (4.0f * 0.5f + 0.25f * 2.0f));
    assert_true(value == 2.0f); // the old value stays
}

// If the L1 pull outweighs the gradients, the values are exactly zero.
static void test_ftrl_zeros(void **state)
{
    (void)state;
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_FTRL, .learning_rate = 0.1, .ftrl_l1 = 2};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    bel_rule_step numbers = bel_rule_begin(&optimizer, 0);
    float gradient[] = {1.0f, -2.0f, 0.0f, 3.0f}, p[4] = {0}, s[] = {1, 1, 1, 1}, z[4] = {0};
    bel_rule_apply(&numbers, gradient, 1.0f, p, p, (float *[BEL_RULE_MAX_SLOTS]){s, z}, 4);
    assert_true(p[0] == 0 && p[1] == 0 && p[2] == 0);
    assert_true(p[3] < 0);
}

static void test_slots(void **state)
{
    (void)state;
    assert_int_equal(bel_rule_get(&(bel_optimizer){.kind = BEL_OPTIMIZER_SGD})->slot_count, 0);
    assert_int_equal(bel_rule_get(&(bel_optimizer){.kind = BEL_OPTIMIZER_MOMENTUM})->slot_count, 1);
    const bel_rule *adam = bel_rule_get(&(bel_optimizer){.kind = BEL_OPTIMIZER_ADAM});
    assert_int_equal(adam->slot_count, 2);
    assert_string_equal(adam->name, "adam");
    assert_string_equal(adam->slots[0], "m");
    assert_string_equal(adam->slots[1], "v");
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_ADAGRAD, .initial_accumulator = 0.5};
    assert_int_equal(bel_rule_get(&optimizer)->slot_count, 1);
    assert_string_equal(bel_rule_get(&optimizer)->slots[0], "accumulator");
    assert_true(bel_rule_slot_start(&optimizer, 0) == 0.5f);
    optimizer.kind = BEL_OPTIMIZER_ADAM;
    assert_true(bel_rule_slot_start(&optimizer, 0) == 0.0f);
    optimizer.kind = BEL_OPTIMIZER_FTRL;
    assert_string_equal(bel_rule_get(&optimizer)->slots[1], "linear");
    assert_true(bel_rule_slot_start(&optimizer, 0) == 0.5f);
    assert_true(bel_rule_slot_start(&optimizer, 1) == 0.0f);
    optimizer = (bel_optimizer){.kind = BEL_OPTIMIZER_RMSPROP};
    assert_int_equal(bel_rule_get(&optimizer)->slot_count, 1);
    optimizer.rmsprop_momentum = 0.5;
    assert_string_equal(bel_rule_get(&optimizer)->slots[1], "m");
    optimizer.rmsprop_centered = true;
    assert_int_equal(bel_rule_get(&optimizer)->slot_count, 3);
    assert_string_equal(bel_rule_get(&optimizer)->slots[1], "c");
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
        cmocka_unit_test(test_stored),     cmocka_unit_test(test_ftrl_zeros),
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_slow_decays),
        cmocka_unit_test(test_clip_value), cmocka_unit_test(test_factor),
        cmocka_unit_test(test_slots),      cmocka_unit_test(test_sum_square),
        cmocka_unit_test(test_scaled),     cmocka_unit_test(test_updates_in_a_step),
        cmocka_unit_test(test_average),    cmocka_unit_test(test_trust),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
