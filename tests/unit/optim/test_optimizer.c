// Settings of an optimizer: defaults, ranges, schedules.
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "optim/multiplier.h"
#include "optim/optimizers.h"
#include "optim/settings.h"
#include "support/bel_test.h"

static void test_defaults(void **state)
{
    (void)state;
    bel_optimizer optimizer = {.learning_rate = 0.1};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    assert_true(optimizer.momentum == 0.9 && optimizer.beta1 == 0.9 && optimizer.beta2 == 0.999);
    assert_true(optimizer.epsilon == 1e-8 && optimizer.initial_accumulator == 0.1 &&
                optimizer.weight_decay == 0);
    assert_true(optimizer.rmsprop_decay == 0.9 && optimizer.rmsprop_momentum == 0);
    assert_true(optimizer.learning_rate_power == -0.5);
    assert_true(optimizer.clip_value == 0 && optimizer.clip_norm == 0);
}

static const struct {
    bel_optimizer optimizer;
    const char *part;
} refused[] = {
    {{.kind = BEL_OPTIMIZER_COUNT, .learning_rate = 1}, "there is no kind"},
    {{.learning_rate = 0}, "learning_rate must be in (0, 1000000], got 0"},
    {{.learning_rate = -0.5}, "learning_rate must be in (0, 1000000], got -0.5"},
    {{.learning_rate = NAN}, "learning_rate"},
    {{.learning_rate = INFINITY}, "learning_rate"},
    {{.learning_rate = 1, .momentum = 1}, "momentum must be in (0, 1), got 1"},
    {{.learning_rate = 1, .momentum = 0.99999999}, "momentum"}, // 1 as f32
    {{.learning_rate = 1, .momentum = -1}, "momentum"},
    {{.learning_rate = 1, .beta1 = 1.5}, "beta1"},
    {{.learning_rate = 1, .beta2 = -0.1}, "beta2"},
    {{.learning_rate = 1, .epsilon = 2}, "epsilon must be in (0, 1], got 2"},
    {{.learning_rate = 1, .initial_accumulator = -1},
     "initial_accumulator must be in (0, 1000000], got -1"},
    {{.learning_rate = 1, .rmsprop_decay = 1}, "rmsprop_decay must be in (0, 1), got 1"},
    {{.learning_rate = 1, .rmsprop_momentum = -1}, "rmsprop_momentum must be in [0, 1)"},
    {{.learning_rate = 1, .rmsprop_momentum = 1}, "rmsprop_momentum"},
    {{.learning_rate = 1, .learning_rate_power = 0.5},
     "learning_rate_power must be in [-1, 0), got 0.5"},
    {{.learning_rate = 1, .learning_rate_power = -1.5}, "learning_rate_power"},
    {{.learning_rate = 1, .learning_rate_power = NAN}, "learning_rate_power"},
    {{.learning_rate = 1, .ftrl_l1 = -1}, "ftrl_l1 must be in [0, inf), got -1"},
    {{.learning_rate = 1, .ftrl_l2 = -1}, "ftrl_l2 must"},
    {{.kind = BEL_OPTIMIZER_FTRL,
      .learning_rate = 1,
      .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = 9}},
     "ftrl divides by the learning rate"},
    {{.learning_rate = 1, .ftrl_l2_shrinkage = -1}, "ftrl_l2_shrinkage"},
    {{.learning_rate = 1, .initial_accumulator = NAN}, "initial_accumulator"},
    {{.learning_rate = 1, .weight_decay = -1}, "weight_decay must be in [0, 1], got -1"},
    {{.learning_rate = 1, .weight_decay = 2}, "weight_decay"},
    {{.learning_rate = 1, .clip_value = -1}, "clip_value"},
    {{.learning_rate = 1, .clip_norm = NAN}, "clip_norm"},
    {{.learning_rate = 1, .clip_global_norm = -2}, "clip_global_norm"},
    {{.learning_rate = 1, .clip_norm = 1, .clip_global_norm = 1}, "exclude each other"},
    {{.learning_rate = 1, .schedule = {.warmup_steps = -1}}, "warmup_steps"},
    {{.learning_rate = 1, .schedule = {.scale = -2}}, "rate_scale must be in [0, 1000000000]"},
    {{.learning_rate = 1, .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL, .decay_rate = 0.5}},
     "decay_steps must be in [1, inf), got 0"},
    {{.learning_rate = 1, .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL, .decay_steps = 1}},
     "decay_rate must be in (0, 1000000], got 0"},
    {{.learning_rate = 1,
      .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL, .decay_steps = 1, .decay_rate = 1.5}},
     "decay_rate"},
    {{.learning_rate = 1, .schedule = {.kind = (bel_schedule_kind)77}}, "no schedule 77"},
    {{.learning_rate = 1, .schedule = {.kind = BEL_SCHEDULE_COSINE}}, "decay_steps"},
    {{.learning_rate = 1,
      .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = 1, .alpha = 1.5}},
     "alpha must be in [0, 1], got 1.5"},
    {{.learning_rate = 1,
      .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = 1, .alpha = NAN}},
     "alpha"},
    {{.learning_rate = 1,
      .schedule = {.kind = BEL_SCHEDULE_POLYNOMIAL, .decay_steps = 1, .power = 0}},
     "decay_power"},
    {{.learning_rate = 1, .schedule = {.kind = BEL_SCHEDULE_INVERSE_TIME, .decay_steps = 1}},
     "decay_rate must be in (0, 1000000], got 0"},
    {{.learning_rate = 1,
      .schedule =
          {.kind = BEL_SCHEDULE_COSINE_RESTARTS, .decay_steps = 1, .t_mul = 0.5, .m_mul = 1}},
     "t_mul must be in [1, 1000], got 0.5"},
    {{.learning_rate = 1,
      .schedule =
          {.kind = BEL_SCHEDULE_COSINE_RESTARTS, .decay_steps = 1, .t_mul = 1.001, .m_mul = 1}},
     "t_mul must be 1, or at least 1.01"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE}}, "rates[0] of the schedule must be above"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, -1}, .boundaries = {5}}},
     "rates[1] of the schedule must be above 0, got -1"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, 0, 1}, .boundaries = {5, 6}}},
     "rates[2] of the schedule must be above 0, got 0"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, NAN}}}, "rates[1]"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, 2}, .boundaries = {5, 6}}},
     "2 rates need 1 boundaries, but there is boundaries[1] with 6"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, 2}, .boundaries = {-1}}},
     "boundaries[0] is -1"},
    {{.schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .rates = {1, 2, 3}, .boundaries = {5, 5}}},
     "must be at least 0 and rise, but boundaries[1] is 5"},
    {{.learning_rate = 1, .moving_average_decay = 1}, "moving_average_decay must be in [0, 1)"},
    {{.learning_rate = 1, .moving_average_decay = -1}, "moving_average_decay"},
    {{.learning_rate = 1, .lars_trust = -1}, "lars_trust must be in (0, 1000000], got -1"},
    {{.kind = BEL_OPTIMIZER_LAMB, .learning_rate = 1, .clip_norm = 1}, "lamb takes norms itself"},
    {{.kind = BEL_OPTIMIZER_LARS, .learning_rate = 1, .clip_global_norm = 1},
     "lars takes norms itself"},
    {{.learning_rate = 1, .lr_mults = {{"a", -1}}}, "lr_mult of \"a\" must be from 0"},
    {{.learning_rate = 1, .decay_mults = {{"a", 1}, {"b", NAN}}}, "decay_mult of \"b\" must"},
    {{.learning_rate = 1, .lr_mults = {{"a", 1}, {"", 1}, {"c", 1}}},
     "\"c\" comes after an empty pattern"},
    {{.learning_rate = 1, .kind = BEL_OPTIMIZER_FTRL, .lr_mults = {{"a", 0}}},
     "must be above 0 with ftrl"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        bel_optimizer optimizer = refused[i].optimizer;
        BEL_ASSERT_FAILS(bel_optimizer_check(&optimizer), BEL_INVALID_ARGUMENT, refused[i].part);
    }
}

// Rates of the first steps. Warm-up begins at the unscaled rate; with one replica it changes
// nothing.
static void test_scales(void **state)
{
    (void)state;
    static const struct {
        bel_schedule schedule;
        double rates[6];
    } rows[] = {
        {{.scale = 4}, {32, 32, 32, 32, 32, 32}},
        {{.scale = 4, .warmup_steps = 3}, {8, 16, 24, 32, 32, 32}},
        {{.scale = 1, .warmup_steps = 3}, {8, 8, 8, 8, 8, 8}},
        {{.scale = 3, // the decay counts from step 0
          .warmup_steps = 2,
          .kind = BEL_SCHEDULE_EXPONENTIAL,
          .decay_rate = 0.5,
          .decay_steps = 1},
         {8, 8, 6, 3, 1.5, 0.75}},
        {{.scale = 2, .kind = BEL_SCHEDULE_PIECEWISE, .boundaries = {1}, .rates = {4, 1}},
         {8, 8, 2, 2, 2, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bel_optimizer o = {.learning_rate = 8, .schedule = rows[i].schedule};
        for (int step = 0; step < 6; step++)
            assert_true(bel_optimizer_rate(&o, step) == rows[i].rates[step]);
    }
}

static void test_schedules(void **state)
{
    (void)state;
    bel_optimizer o = {.learning_rate = 8};
    assert_true(bel_optimizer_rate(&o, 0) == 8 && bel_optimizer_rate(&o, 1000000) == 8);
    o.schedule.warmup_steps = 4;
    static const double warm[] = {2, 4, 6, 8, 8, 8};
    for (int step = 0; step < 6; step++)
        assert_true(bel_optimizer_rate(&o, step) == warm[step]);
    o.schedule = (bel_schedule){
        .kind = BEL_SCHEDULE_EXPONENTIAL, .decay_rate = 0.25, .decay_steps = 2, .staircase = true};
    static const double stairs[] = {8, 8, 2, 2, 0.5, 0.5};
    for (int step = 0; step < 6; step++)
        assert_true(bel_optimizer_rate(&o, step) == stairs[step]);
    o.schedule.staircase = false;
    static const double smooth[] = {8, 4, 2, 1, 0.5, 0.25};
    for (int step = 0; step < 6; step++)
        assert_true(bel_optimizer_rate(&o, step) == smooth[step]);
    o.schedule.warmup_steps = 2; // both: the decay counts from step 0
    assert_true(bel_optimizer_rate(&o, 0) == 4 && bel_optimizer_rate(&o, 1) == 4);
    assert_true(bel_optimizer_rate(&o, 2) == 2);
}

// The cosines follow from an equilateral and a right triangle.
static void test_cosine(void **state)
{
    (void)state;
    bel_optimizer o = {.learning_rate = 8,
                       .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = 6, .alpha = 0.25}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    const double tilted = sqrt(0.75); // the cosine of pi / 6
    const double expected[] = {8, 5 + 3 * tilted, 6.5, 5, 3.5, 5 - 3 * tilted, 2, 2, 2};
    for (int step = 0; step < 9; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - expected[step]) < 1e-12);
    o.schedule.warmup_steps = 4; // the decay counts from step 0
    assert_true(fabs(bel_optimizer_rate(&o, 0) - 2) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 2) - 6.5 * 0.75) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 4) - 3.5) < 1e-12);
}

// Values known by heart: powers of two, and cosines as above.
static void test_other_schedules(void **state)
{
    (void)state;
    bel_optimizer o = {
        .learning_rate = 8,
        .schedule = {.kind = BEL_SCHEDULE_POLYNOMIAL, .decay_steps = 4, .alpha = 0.25, .power = 2}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    static const double squares[] = {8, 5.375, 3.5, 2.375, 2, 2, 2};
    for (int step = 0; step < 7; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - squares[step]) < 1e-12);
    o.schedule.cycle = true; // over 4 steps, then 8, then 12
    static const double cycles[] = {8, 5.375, 3.5, 2.375, 2, 2 + 6 * 0.140625, 2 + 6 * 0.0625};
    for (int step = 0; step < 7; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - cycles[step]) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 8) - 2) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 9) - (2 + 6 * 0.0625)) < 1e-12);

    o.schedule = (bel_schedule){
        .kind = BEL_SCHEDULE_INVERSE_TIME, .decay_steps = 2, .decay_rate = 3, .staircase = true};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    static const double shares[] = {8, 8, 2, 2, 8.0 / 7, 8.0 / 7};
    for (int step = 0; step < 6; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - shares[step]) < 1e-12);
    o.schedule.staircase = false;
    assert_true(fabs(bel_optimizer_rate(&o, 1) - 3.2) < 1e-12);

    o.schedule =
        (bel_schedule){.kind = BEL_SCHEDULE_NATURAL_EXP, .decay_steps = 2, .decay_rate = log(4)};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    for (int step = 0; step < 6; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - ldexp(8, -step)) < 1e-12);
    o.schedule.staircase = true;
    assert_true(fabs(bel_optimizer_rate(&o, 3) - 2) < 1e-12);
}

// --- Formulas ------------------------------------------------------------------------------------

static bel_optimizer with_formula(const char *formula)
{
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    BEL_ASSERT_OK(bel_optimizer_set(&optimizer, "schedule", "formula"));
    BEL_ASSERT_OK(bel_optimizer_set(&optimizer, "schedule_formula", formula));
    return optimizer;
}

static void test_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *formula;
        double at_0, at_4;
    } rows[] = {
        {"1", 1, 1},
        {"step + 2 * 3", 6, 10},
        {"(step + 2) * 3", 6, 18},
        {"2 ^ 3 ^ 2", 512, 512}, // right to left
        {"10 - 3 - 2", 5, 5},    // left to right
        {"8 / 4 / 2", 1, 1},
        {"5 + -step", 5, 1},  // a sign
        {"5 + -2 ^ 2", 1, 1}, // weaker than a power
        {"2 ^ -1", 0.5, 0.5},
        {"step < 4 ? 8 : 2", 8, 2},
        {"step <= 3 ? 8 : step >= 4 ? 1 : 0", 8, 1},
        {"min(1, (step + 1) / 5)", 0.2, 1},
        {"max(step, 3)", 3, 4},
        {"sqrt(step) + abs(1 - step) + floor(1.75)", 2, 6},
        {"exp(0) + log(1) + sin(0) + cos(0) + tanh(0)", 2, 2},
        {"(1 + cos(pi * step / 4)) / 2", 1, 0},
        {"1.5e2 * .5", 75, 75},
        {"3 - step", 3, 0}, // a negative rate counts as 0
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_optimizer optimizer = with_formula(rows[i].formula);
        BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
        double first = bel_optimizer_rate(&optimizer, 0), later = bel_optimizer_rate(&optimizer, 4);
        if (fabs(first - rows[i].at_0) > 1e-12 || fabs(later - rows[i].at_4) > 1e-12) {
            fail_msg("%s: got %.17g and %.17g", rows[i].formula, first, later);
        }
    }
}

static void test_no_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *formula, *part;
    } rows[] = {
        {"", "schedule formula needs schedule_formula (--schedule_formula)"},
        {" ", "schedule_formula: \" \": expected a number, step, pi, or one of min, max"},
        {"2 *", "got its end"},
        {"2 + x", "got \"x\""},
        {"2 3", "expected an operator, or the end, got \"3\""},
        {"(2", "expected \")\", got its end"},
        {"max(1)", "expected \",\", got \")\""},
        {"sqrt 2", "expected \"(\", got \"2\""},
        {"step ? 1", "expected \":\""},
        {"1 / step", "must be a finite number, but is inf at step 0"},
        {"log(step - 5)", "must be a finite number"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((((1", "less deep"},
        {"------------------------------------------------------------1", "less deep"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_optimizer optimizer = with_formula(rows[i].formula);
        BEL_ASSERT_FAILS(bel_optimizer_check(&optimizer), BEL_INVALID_ARGUMENT, rows[i].part);
    }
    bel_optimizer ftrl = with_formula("1 - step / 10");
    ftrl.kind = BEL_OPTIMIZER_FTRL;
    BEL_ASSERT_FAILS(bel_optimizer_check(&ftrl), BEL_INVALID_ARGUMENT,
                     "above 0 with ftrl, but is 0 at step 10");
    char longest[BEL_FORMULA_BYTES + 1];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    BEL_ASSERT_FAILS(bel_optimizer_set(&ftrl, "schedule_formula", longest), BEL_INVALID_ARGUMENT,
                     "shorter than 256 bytes");
}

// Periods of 2, 4 and 8 steps, each with half the height; then periods of always 2 steps.
static void test_restarts(void **state)
{
    (void)state;
    bel_optimizer o = {.learning_rate = 8,
                       .schedule = {.kind = BEL_SCHEDULE_COSINE_RESTARTS,
                                    .decay_steps = 2,
                                    .alpha = 0.25,
                                    .t_mul = 2,
                                    .m_mul = 0.5}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    const double eighth = sqrt(0.5); // the cosine of pi / 4
    const double grows[] = {8, 5, 5, 3.5 + 1.5 * eighth, 3.5, 3.5 - 1.5 * eighth, 3.5};
    for (int step = 0; step < 7; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - grows[step]) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 10) - 2.75) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, 14) - 2.75) < 1e-12); // the fourth period begins
    o.schedule.t_mul = 1;
    const double even[] = {8, 5, 5, 3.5, 3.5, 2.75, 2.75};
    for (int step = 0; step < 7; step++)
        assert_true(fabs(bel_optimizer_rate(&o, step) - even[step]) < 1e-12);
    assert_true(fabs(bel_optimizer_rate(&o, INT64_MAX / 4) - 2) < 1e-12); // and still ends soon
}

// The example in TensorFlow's documentation of PiecewiseConstantDecay, with earlier boundaries. A
// boundary step still has the rate before it.
static void test_piecewise(void **state)
{
    (void)state;
    bel_optimizer o = {.schedule = {.kind = BEL_SCHEDULE_PIECEWISE,
                                    .boundaries = {3, 5},
                                    .rates = {1, 0.5, 0.125}}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    assert_true(o.learning_rate == 1);
    static const double expected[] = {1, 1, 1, 1, 0.5, 0.5, 0.125, 0.125};
    for (int step = 0; step < 8; step++)
        assert_true(bel_optimizer_rate(&o, step) == expected[step]);
    assert_true(bel_optimizer_rate(&o, INT64_MAX - 1) == 0.125);
    o.schedule.warmup_steps = 8;
    assert_true(bel_optimizer_rate(&o, 5) == 0.5 * 6 / 8);
    o.schedule = (bel_schedule){.kind = BEL_SCHEDULE_PIECEWISE, .rates = {2}};
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    assert_true(bel_optimizer_rate(&o, 0) == 2 && bel_optimizer_rate(&o, 99) == 2);
    o.schedule = (bel_schedule){.kind = BEL_SCHEDULE_PIECEWISE};
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES; i++) {
        o.schedule.rates[i] = i + 1;
        if (i > 0) o.schedule.boundaries[i - 1] = i - 1;
    }
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    for (int step = 0; step < 20; step++)
        assert_true(bel_optimizer_rate(&o, step) == fmin(step + 1, BEL_SCHEDULE_MAX_PIECES));
}

static void test_multipliers(void **state)
{
    (void)state;
    bel_optimizer o = {.learning_rate = 1};
    BEL_ASSERT_OK(bel_multipliers_parse("dense_?/*=0.5,*/bias=0,dense_1/bias=2", o.lr_mults));
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    assert_true(bel_multiplier_get(o.lr_mults, "dense_0/kernel") == 0.5);
    assert_true(bel_multiplier_get(o.lr_mults, "dense_0/deep/kernel") == 0.5);
    assert_true(bel_multiplier_get(o.lr_mults, "dense_0/bias") == 0); // the last match counts
    assert_true(bel_multiplier_get(o.lr_mults, "dense_1/bias") == 2);
    assert_true(bel_multiplier_get(o.lr_mults, "dense_10/kernel") == 1);
    assert_true(bel_multiplier_get(o.lr_mults, "logits/kernel") == 1);
    assert_true(bel_multiplier_get(o.decay_mults, "logits/bias") == 1);
    char text[BEL_MULTIPLIERS_TEXT];
    assert_string_equal(bel_multipliers_text(o.lr_mults, 9, text),
                        "dense_?/*=0.5,*/bias=0,dense_1/bias=2");
    assert_string_equal(bel_multipliers_text(o.decay_mults, 9, text), "");

    static const char *const names[] = {"dense_1/kernel", "dense_1/bias", "logits/bias"};
    BEL_ASSERT_OK(bel_multipliers_check_names(&o, names, 3));
    BEL_ASSERT_FAILS(bel_multipliers_check_names(&o, names + 2, 1), BEL_INVALID_ARGUMENT,
                     "lr_mult: \"dense_?/*\" matches no trainable variable; there are logits/bias");
    BEL_ASSERT_OK(bel_multipliers_parse("dense_1/bais=1", o.decay_mults));
    BEL_ASSERT_FAILS(bel_multipliers_check_names(&o, names, 3), BEL_INVALID_ARGUMENT,
                     "decay_mult: \"dense_1/bais\" matches no trainable variable; did you mean "
                     "\"dense_1/bias\"?");
    BEL_ASSERT_FAILS(bel_multipliers_check_names(&o, names, 0), BEL_INVALID_ARGUMENT, "matches no");

    static const char *const bad[] = {"a", "=1", "a=", "a=x", "a=1,,b=1", "a=1,b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(bel_multipliers_parse(bad[i], o.lr_mults), BEL_INVALID_ARGUMENT,
                         "expected PATTERN=FACTOR, got");
    BEL_ASSERT_FAILS(bel_multipliers_parse("a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,a=1,"
                                           "a=1,a=1,a=1,a=1",
                                           o.lr_mults),
                     BEL_INVALID_ARGUMENT, "at most 16 patterns");
    char longest[BEL_PATTERN_BYTES + 3];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + BEL_PATTERN_BYTES, "=1", 3);
    BEL_ASSERT_FAILS(bel_multipliers_parse(longest, o.lr_mults), BEL_INVALID_ARGUMENT,
                     "shorter than 64 bytes");
    BEL_ASSERT_OK(bel_multipliers_parse(longest + 1, o.lr_mults));
    memset(o.lr_mults[0].pattern, 'a', BEL_PATTERN_BYTES);
    BEL_ASSERT_FAILS(bel_optimizer_check(&o), BEL_INVALID_ARGUMENT, "pattern 0 must be shorter");
    static const char *const no_text[] = {"a,b", "a=b"}; // in a list they would read differently
    for (size_t i = 0; i < sizeof no_text / sizeof no_text[0]; i++) {
        o.lr_mults[0] = (bel_multiplier){.factor = 1};
        memcpy(o.lr_mults[0].pattern, no_text[i], strlen(no_text[i]));
        BEL_ASSERT_FAILS(bel_optimizer_check(&o), BEL_INVALID_ARGUMENT, "neither = nor a comma");
    }
}

// --- Settings as texts ---------------------------------------------------------------------------

static void add_pair(void *context, const char *name, const char *text)
{
    bel_str *all = context;
    bel_str_printf(all, "%s%s: %s", all->length > 0 ? "; " : "", name, text);
}

static void is_listed(const bel_optimizer *optimizer, const char *expected)
{
    bel_str all = {0};
    bel_str_puts(&all, "");
    bel_optimizer_list(optimizer, add_pair, &all);
    assert_string_equal(all.text, expected);
    bel_str_deinit(&all);
}

// Every setting has a text, from which it can be set again.
static void test_settings_come_back(void **state)
{
    (void)state;
    static const char *const settings[][2] = {{"optimizer", "rmsprop"},
                                              {"learning_rate", "0.10000000000000001"},
                                              {"momentum", "0.5"},
                                              {"nesterov", "true"},
                                              {"lars_trust", "0.25"},
                                              {"beta1", "0.125"},
                                              {"beta2", "0.75"},
                                              {"rmsprop_decay", "0.5"},
                                              {"rmsprop_momentum", "0.25"},
                                              {"adadelta_decay", "0.5"},
                                              {"learning_rate_power", "-0.25"},
                                              {"ftrl_l1", "1"},
                                              {"ftrl_l2", "2"},
                                              {"ftrl_l2_shrinkage", "3"},
                                              {"epsilon", "0.5"},
                                              {"initial_accumulator", "4"},
                                              {"rmsprop_centered", "true"},
                                              {"weight_decay", "0.0625"},
                                              {"lr_mult", "dense_0/*=0.5,*/bias=0"},
                                              {"decay_mult", "*=0.10000000000000001"},
                                              {"moving_average_decay", "0.5"},
                                              {"moving_average_ramp", "true"},
                                              {"table_mean", "contributors"},
                                              {"clip_value", "5"},
                                              {"clip_norm", "6"},
                                              {"clip_global_norm", "7"},
                                              {"clip_each_replica", "true"},
                                              {"schedule", "piecewise"},
                                              {"decay_rate", "0.5"},
                                              {"decay_steps", "9007199254740993"},
                                              {"staircase", "true"},
                                              {"alpha", "0.25"},
                                              {"decay_power", "2"},
                                              {"decay_cycle", "true"},
                                              {"t_mul", "3"},
                                              {"m_mul", "0.5"},
                                              {"boundaries", "0,9007199254740993"},
                                              {"rates", "0.5,0.25,0.125"},
                                              {"schedule_formula", "1 + step"},
                                              {"warmup_steps", "8"},
                                              {"rate_scale", "4"}};
    enum { COUNT = sizeof settings / sizeof settings[0] };
    bel_optimizer optimizer = bel_optimizer_default();
    is_listed(&optimizer, "");
    bel_str all = {0};
    for (int i = 0; i < COUNT; i++) {
        const char *otherwise;
        assert_string_equal(bel_optimizer_setting((size_t)i, &otherwise), settings[i][0]);
        BEL_ASSERT_OK(bel_optimizer_set(&optimizer, settings[i][0], otherwise)); // unchanged
        bool together = strcmp(settings[i][0], "rates") == 0;                    // with bounds
        if (!together) is_listed(&optimizer, all.length > 0 ? all.text : "");
        BEL_ASSERT_OK(bel_optimizer_set(&optimizer, settings[i][0], settings[i][1]));
        add_pair(&all, settings[i][0], settings[i][1]);
    }
    is_listed(&optimizer, all.text);
    bel_str_deinit(&all);
    assert_true(optimizer.kind == BEL_OPTIMIZER_RMSPROP && optimizer.learning_rate == 0.1);
    assert_true(optimizer.mean_by_contributors && optimizer.schedule.rates[2] == 0.125);
    const char *otherwise;
    assert_null(bel_optimizer_setting(COUNT, &otherwise));
}

static void test_settings_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"speed", "1", "no setting \"speed\""},
        {"optimizer", "adm",
         "one of sgd, momentum, adam, adagrad, rmsprop, adamw, ftrl, lamb, lars, adadelta"},
        {"table_mean", "", "one of replicas, contributors"},
        {"momentum", "0.9x", "momentum must be a number"},
        {"momentum", "nan", "momentum must be a number"},
        {"momentum", "", "momentum must be a number"},
        {"nesterov", "yes", "nesterov must be true or false"},
        {"warmup_steps", "1.5", "warmup_steps must be an integer"},
        {"boundaries", "1,,2", "boundaries must be integers"},
        {"boundaries", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "boundaries must be at most 15"},
        {"rates", "1;2", "rates must be numbers"},
        {"lr_mult", "dense", "lr_mult"}};
    bel_optimizer optimizer = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(bel_optimizer_set(&optimizer, bad[i][0], bad[i][1]), BEL_INVALID_ARGUMENT,
                         bad[i][2]);
}

// Texts in the checkpoints of all versions: a change here makes older checkpoints differ.
static void test_words_of_a_checkpoint(void **state)
{
    (void)state;
    const struct {
        bel_optimizer optimizer;
        const char *words;
    } rows[] = {
        {{.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1}, "optimizer: sgd; learning_rate: 0.1"},
        {{.kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .nesterov = true},
         "optimizer: momentum nesterov; learning_rate: 0.1; momentum: 0.9"},
        {{.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.001},
         "optimizer: adam; learning_rate: 0.001; adam: beta1 0.9, beta2 0.999, epsilon 1e-08"},
        {{.kind = BEL_OPTIMIZER_LARS, .learning_rate = 1},
         "optimizer: lars; learning_rate: 1; lars: momentum 0.9, trust 0.001"},
        {{.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 1},
         "optimizer: adagrad; learning_rate: 1; adagrad: epsilon 1e-08, initial accumulator 0.1"},
        {{.kind = BEL_OPTIMIZER_RMSPROP, .learning_rate = 1, .rmsprop_centered = true},
         "optimizer: rmsprop; learning_rate: 1; rmsprop: decay 0.9, momentum 0, epsilon 1e-08, "
         "centered"},
        {{.kind = BEL_OPTIMIZER_ADADELTA, .learning_rate = 1},
         "optimizer: adadelta; learning_rate: 1; adadelta: decay 0.95, epsilon 1e-08"},
        {{.kind = BEL_OPTIMIZER_FTRL, .learning_rate = 1, .ftrl_l1 = 0.5},
         "optimizer: ftrl; learning_rate: 1; ftrl: power -0.5, l1 0.5, l2 0, shrinkage 0, initial "
         "accumulator 0.1"},
        {{.kind = BEL_OPTIMIZER_SGD,
          .learning_rate = 1,
          .weight_decay = 0.5,
          .moving_average_decay = 0.5,
          .moving_average_ramp = true,
          .mean_by_contributors = true,
          .clip_value = 2,
          .lr_mults = {{"*/bias", 0.5}},
          .decay_mults = {{"*", 0}},
          .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL,
                       .decay_rate = 0.5,
                       .decay_steps = 10,
                       .staircase = true,
                       .warmup_steps = 3,
                       .scale = 8}},
         "optimizer: sgd; learning_rate: 1; weight_decay: 0.5; lr_mult: */bias=0.5; "
         "decay_mult: *=0; moving_average_decay: 0.5, ramp; table_mean: contributors; "
         "clip_value: 2; schedule: exponential, rate 0.5, steps 10, staircase; warmup_steps: 3; "
         "rate_scale: 8"},
        {{.kind = BEL_OPTIMIZER_SGD,
          .learning_rate = 1,
          .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = 10, .alpha = 0.5}},
         "optimizer: sgd; learning_rate: 1; schedule: cosine, steps 10, alpha 0.5"},
        {{.kind = BEL_OPTIMIZER_SGD,
          .schedule = {.kind = BEL_SCHEDULE_PIECEWISE, .boundaries = {7}, .rates = {0.5, 0.25}}},
         "optimizer: sgd; schedule: piecewise: 0.5 up to step 7, 0.25"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_optimizer optimizer = rows[i].optimizer;
        bel_str all = {0};
        BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
        bel_optimizer_describe(&optimizer, add_pair, &all);
        assert_string_equal(all.text, rows[i].words);
        bel_str_deinit(&all);
    }
}

// --- Several optimizers --------------------------------------------------------------------------

static void take_pair(void *context, const char *name, const char *text)
{
    BEL_ASSERT_OK(bel_optimizers_set(context, name, text));
}

static void add_line(void *context, const char *name, const char *text)
{
    bel_str_printf(context, "%s = %s\n", name, text);
}

// Several optimizers as sent to parameter servers, and as written in a checkpoint.
static void test_several(void **state)
{
    (void)state;
    bel_optimizers all = {
        .main = {.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.5, .moving_average_decay = 0.9},
        .parts = {{"wide*", {.kind = BEL_OPTIMIZER_FTRL, .learning_rate = 0.1}},
                  {"*/bias", {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 2}}},
        .part_count = 2};
    BEL_ASSERT_OK(bel_optimizers_check(&all));
    bel_optimizers back = {.main = bel_optimizer_default()};
    bel_optimizers_list(&all, take_pair, &back);
    BEL_ASSERT_OK(bel_optimizers_check(&back));
    assert_int_equal(back.part_count, 2);
    assert_int_equal(bel_optimizers_find(&back, "deep/kernel")->kind, BEL_OPTIMIZER_ADAM);
    assert_int_equal(bel_optimizers_find(&back, "wide/kernel")->kind, BEL_OPTIMIZER_FTRL);
    assert_int_equal(bel_optimizers_find(&back, "wide/bias")->kind, BEL_OPTIMIZER_SGD);
    assert_true(bel_optimizers_find(&back, "wide/bias")->moving_average_decay == 0.9);
    assert_int_equal(bel_optimizers_kept(&back), 3); // two slots and an average
    bel_str one = {0}, other = {0};
    bel_optimizers_describe(&all, add_line, &one);
    bel_optimizers_describe(&back, add_line, &other);
    assert_string_equal(one.text, other.text);
    assert_non_null(strstr(one.text, "wide*: optimizer = ftrl"));
    bel_str_deinit(&one);
    bel_str_deinit(&other);
    bel_optimizers_scale(&back, 2);
    assert_true(back.main.learning_rate == 1 && back.parts[1].optimizer.learning_rate == 4);
}

// A factor whose pattern matches only variables of another optimizer.
static void test_factors_of_others(void **state)
{
    (void)state;
    static const char *const names[] = {"wide", "deep/kernel", "deep/bias"};
    static const struct {
        const char *main, *part, *text; // NULL: valid
    } rows[] = {
        {"deep/*=0.5,*/bias=0", "wi*=2", NULL},
        {"*=0.5", "*=2", NULL},
        {"wide=0.1", "", "optimizer: lr_mult: \"wide\" matches nothing but what another optimizer"},
        {"", "deep/*=1", "variables \"wide\": optimizer: lr_mult: \"deep/*\" matches nothing but"},
        {"wild=0.1", "", "lr_mult: \"wild\" matches no trainable variable; did you mean \"wide\"?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_optimizers all = {
            .main = {.learning_rate = 1},
            .parts = {{"wide", {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 1}}},
            .part_count = 1};
        BEL_ASSERT_OK(bel_multipliers_parse(rows[i].main, all.main.lr_mults));
        BEL_ASSERT_OK(bel_multipliers_parse(rows[i].part, all.parts[0].optimizer.lr_mults));
        bel_status *status = bel_optimizers_check_names(&all, names, 3);
        if (rows[i].text == NULL) {
            BEL_ASSERT_OK(status);
        } else {
            BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, rows[i].text);
        }
    }
    bel_optimizers both = {.main = {.learning_rate = 1, .decay_mults = {{"deep/bias", 0}}},
                           .parts = {{"deep/*", {.learning_rate = 1}}},
                           .part_count = 1};
    BEL_ASSERT_FAILS(bel_optimizers_check_names(&both, names, 3), BEL_INVALID_ARGUMENT,
                     "decay_mult: \"deep/bias\" matches nothing but");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults),
                                              cmocka_unit_test(test_errors),
                                              cmocka_unit_test(test_scales),
                                              cmocka_unit_test(test_schedules),
                                              cmocka_unit_test(test_cosine),
                                              cmocka_unit_test(test_other_schedules),
                                              cmocka_unit_test(test_restarts),
                                              cmocka_unit_test(test_formulas),
                                              cmocka_unit_test(test_no_formulas),
                                              cmocka_unit_test(test_piecewise),
                                              cmocka_unit_test(test_multipliers),
                                              cmocka_unit_test(test_settings_come_back),
                                              cmocka_unit_test(test_settings_that_are_none),
                                              cmocka_unit_test(test_words_of_a_checkpoint),
                                              cmocka_unit_test(test_several),
                                              cmocka_unit_test(test_factors_of_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
