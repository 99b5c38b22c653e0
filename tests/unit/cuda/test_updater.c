// Parameters on GPUs (cuda/updater.c): every step has the bits of the same step on the host, for
// any GPUs and towers. The test computes the host's step from complete arrays with optim/rule.h.
// Nearly every row lists all rules, so that kernels differ only by the number of replicas.
// label: native, label: long
#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/updater.h"
#include "optim/settings.h"
#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"
#include "support/cards.h"
#include "support/cuda_double/cases.h"

enum { MOST_CARDS = 3, MOST_TOWERS = 8, ARRAYS = 2 + BEL_RULE_MAX_SLOTS };

// --- Rows ----------------------------------------------------------------------------------------

typedef enum which {
    SGD,
    MOMENTUM,
    NESTEROV,
    ADAM,
    ADAGRAD,
    RMSPROP,
    RMSPROP_CENTERED,
    RMSPROP_MOMENTUM,
    RMSPROP_BOTH,
    ADAMW,
    FTRL,
    LAMB,
    LARS,
    ADADELTA,
    WHICH_COUNT
} which;

#define RATED(number) .kind = BEL_OPTIMIZER_##number, .learning_rate = 0.05, .weight_decay = 0.01
static const bel_optimizer optimizers[] = {
    [SGD] = {RATED(SGD)},
    [MOMENTUM] = {RATED(MOMENTUM)},
    [NESTEROV] = {RATED(MOMENTUM), .nesterov = true},
    [ADAM] = {RATED(ADAM)},
    [ADAGRAD] = {RATED(ADAGRAD)},
    [RMSPROP] = {RATED(RMSPROP)},
    [RMSPROP_CENTERED] = {RATED(RMSPROP), .rmsprop_centered = true},
    [RMSPROP_MOMENTUM] = {RATED(RMSPROP), .rmsprop_momentum = 0.8},
    [RMSPROP_BOTH] = {RATED(RMSPROP), .rmsprop_centered = true, .rmsprop_momentum = 0.8},
    [ADAMW] = {RATED(ADAMW)},
    [FTRL] = {RATED(FTRL), .ftrl_l1 = 0.5, .ftrl_l2 = 0.1, .ftrl_l2_shrinkage = 0.02},
    [LAMB] = {RATED(LAMB)},
    [LARS] = {RATED(LARS)},
    [ADADELTA] = {RATED(ADADELTA)},
};

typedef struct row {
    which first, second; // optimizers of groups 0 and 1
    int replicas, towers, cards;
    bool uneven, clips, averages, norms;
    bool alone;    // lists no other rules
    int variables; // how many of the first ones; 0: all
} row;

static const struct {
    int elements;
    bel_variable_kind kind;
    int group;
} variables[] = {{1, BEL_VARIABLE_TRAINABLE, 0},    {3, BEL_VARIABLE_TRAINABLE, 1},
                 {5, BEL_VARIABLE_STATE_MEAN, 0},   {16, BEL_VARIABLE_TRAINABLE, 0},
                 {4095, BEL_VARIABLE_TRAINABLE, 1}, {4097, BEL_VARIABLE_STATE_SUM, 0},
                 {18, BEL_VARIABLE_FROZEN, 0},      {4096, BEL_VARIABLE_TRAINABLE, 0},
                 {21, BEL_VARIABLE_STATE_FIRST, 0}, {4097, BEL_VARIABLE_TRAINABLE, 1},
                 {10000, BEL_VARIABLE_TRAINABLE, 0}};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

// --- Parts of a row ------------------------------------------------------------------------------

// Values, averages and slots, each as large as the space.
typedef union arrays {
    float *all[ARRAYS];
    struct {
        float *values, *averages, *slots[BEL_RULE_MAX_SLOTS];
    };
} arrays;

typedef struct trial {
    const row *row;
    bel_layout *layout;
    int64_t size;
    bel_optimizer optimizers[2 + WHICH_COUNT];
    bel_rule_groups groups;
    bel_update_piece *pieces;
    int piece_count, slot_count;
    bool norms, trusts;
    bel_assignment *assignment;
    bel_weight weights[BEL_UPDATER_REPLICAS]; // weights in a step
    float joins[2 * BEL_UPDATER_REPLICAS];
    bel_update_step step;
    arrays expected, host;
    float *gradients[BEL_UPDATER_REPLICAS], *directions, *scratch;
    double *squares, *got_squares;
    float factors[VARIABLES];
    bel_device *towers[MOST_TOWERS];
    void *streams[MOST_TOWERS];
    bel_updater *updater;
} trial;

static const bel_cuda_device *card_of(const trial *t, int tower)
{
    return (const bel_cuda_device *)t->towers[tower];
}

static float *floats(int64_t count)
{
    return bel_xcalloc((size_t)count, sizeof(float));
}

// Numbers of very different sizes, so that any other order of addition changes the bits.
static void fill(float *out, int64_t count, uint32_t seed, bool positive)
{
    uint32_t words[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0) bel_rng_block((bel_rng_key){{3, seed}}, 0, (uint64_t)i, words);
        uint32_t word = words[i % 4];
        float number = (float)(word % 20011) / 10005.0f - 1.0f;
        number = ldexpf(number, (int)(word >> 16) % 9 - 5);
        out[i] = positive ? fabsf(number) : number;
    }
}

static bel_layout *make_layout(int count)
{
    bel_layout_variable made[VARIABLES];
    for (int v = 0; v < count; v++)
        made[v] = (bel_layout_variable){.name = bel_strf("v%d", v),
                                        .shape = BEL_SHAPE(variables[v].elements),
                                        .kind = variables[v].kind};
    bel_layout *layout = bel_layout_create(made, count, 1);
    for (int v = 0; v < count; v++)
        bel_free(made[v].name);
    return layout;
}

static int kind_of(bel_variable_kind kind)
{
    return kind == BEL_VARIABLE_TRAINABLE    ? BEL_UPDATE_RULE
           : kind == BEL_VARIABLE_STATE_MEAN ? BEL_UPDATE_MEAN
           : kind == BEL_VARIABLE_STATE_SUM  ? BEL_UPDATE_ADD
                                             : BEL_UPDATE_FIRST;
}

static void make_pieces(trial *t)
{
    const bel_layout *layout = t->layout;
    t->pieces = bel_xcalloc((size_t)layout->grain_count, sizeof *t->pieces);
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (variable->kind == BEL_VARIABLE_FROZEN) continue;
        for (int64_t at = 0; at < variable->elements; at += BEL_GRAIN) {
            int64_t left = variable->elements - at;
            t->pieces[t->piece_count++] =
                (bel_update_piece){.offset = variable->offset + at,
                                   .grain = variable->first_grain + at / BEL_GRAIN,
                                   .count = (int32_t)(left < BEL_GRAIN ? left : BEL_GRAIN),
                                   .kind = kind_of(variable->kind),
                                   .group = variables[v].group,
                                   .variable = v};
        }
    }
}

static void make_groups(trial *t)
{
    const row *r = t->row;
    t->groups.count = 2 + (r->alone ? 0 : WHICH_COUNT);
    t->groups.items = bel_xcalloc((size_t)t->groups.count, sizeof *t->groups.items);
    for (int g = 0; g < t->groups.count; g++) {
        bel_optimizer *optimizer = &t->optimizers[g];
        *optimizer = optimizers[g == 0 ? r->first : g == 1 ? r->second : (which)(g - 2)];
        if (r->clips) optimizer->clip_value = 0.25;
        optimizer->moving_average_decay = 0.9;
        optimizer->moving_average_ramp = true;
        BEL_ASSERT_OK(bel_optimizer_check(optimizer));
        const bel_rule *rule = bel_rule_get(optimizer);
        t->groups.items[g] = (bel_rule_group){.optimizer = optimizer,
                                              .rule = rule,
                                              .lr_factor = g == 1 ? 0.75 : 1,
                                              .decay_factor = 1};
        if (g > 1) continue;
        if (rule->slot_count > t->slot_count) t->slot_count = rule->slot_count;
        t->trusts = t->trusts || rule->trusts;
    }
    t->norms = t->trusts || r->norms;
}

static int array_count(const trial *t)
{
    return 2 + t->slot_count;
}

static void make_arrays(trial *t)
{
    for (int i = 0; i < array_count(t); i++) {
        if (i == 1 && !t->row->averages) continue;
        t->expected.all[i] = floats(t->size);
        t->host.all[i] = floats(t->size);
    }
    for (int r = 0; r < t->row->replicas; r++)
        t->gradients[r] = floats(t->size);
    t->directions = floats(t->size);
    t->scratch = floats(t->size * (t->assignment->depth + 1));
    t->squares = bel_xcalloc((size_t)(4 * t->layout->grain_count), sizeof *t->squares);
    t->got_squares = t->squares + 2 * t->layout->grain_count;
}

static trial *make_trial(const row *of)
{
    trial *t = bel_xcalloc(1, sizeof *t);
    t->row = of;
    t->layout = make_layout(of->variables == 0 ? VARIABLES : of->variables);
    t->size = t->layout->size;
    t->assignment = bel_assignment_create_apart(&of->replicas, 1);
    make_pieces(t);
    make_groups(t);
    make_arrays(t);
    int cards;
    BEL_ASSERT_OK(bel_cuda_count(&cards));
    for (int i = 0; i < of->towers; i++)
        BEL_ASSERT_OK(bel_cuda_device_get(i % of->cards % cards, &t->towers[i]));
    return t;
}

static void destroy_trial(trial *t)
{
    for (int i = 0; i < ARRAYS; i++) {
        bel_free(t->expected.all[i]);
        bel_free(t->host.all[i]);
    }
    for (int r = 0; r < t->row->replicas; r++)
        bel_free(t->gradients[r]);
    bel_free(t->directions);
    bel_free(t->scratch);
    bel_free(t->squares);
    bel_free(t->pieces);
    bel_rule_groups_deinit(&t->groups);
    bel_layout_destroy(t->layout);
    bel_assignment_destroy(t->assignment);
    bel_free(t);
}

static bel_status *create_updater(trial *t)
{
    return bel_cuda_updater_create(t->towers, t->row->towers, t->row->replicas, t->size,
                                   &t->updater);
}

static bel_status *plan_updates(trial *t)
{
    bel_update_plan plan = {.pieces = t->pieces,
                            .piece_count = t->piece_count,
                            .groups = &t->groups,
                            .variable_count = t->layout->variable_count,
                            .grain_count = t->layout->grain_count,
                            .norms = t->norms,
                            .trusts = t->trusts,
                            .values = t->host.values,
                            .averages = t->host.averages,
                            .slot_count = t->slot_count};
    memcpy(plan.slots, t->host.slots, sizeof plan.slots);
    return t->updater->ops->plan(t->updater, &plan);
}

// --- The same step on the host -------------------------------------------------------------------

// The sums over all replicas that count; NULL: no replica counts.
static const float *sum_of(const trial *t, bool once)
{
    const float *inputs[BEL_UPDATER_REPLICAS];
    bel_weight weights[BEL_UPDATER_REPLICAS];
    for (int r = 0; r < t->row->replicas; r++) {
        inputs[r] = (t->step.counts >> r & 1) != 0 ? t->gradients[r] : NULL;
        weights[r] = once ? bel_weight_once(t->weights[r]) : t->weights[r];
    }
    return bel_assignment_sum(t->assignment, inputs, weights, t->size, t->scratch);
}

static void expect_state(const trial *t, const bel_layout_variable *variable)
{
    int64_t from = variable->offset;
    int first = 0;
    while ((t->step.counts >> first & 1) == 0)
        first++;
    const float *sum = sum_of(t, variable->kind == BEL_VARIABLE_STATE_SUM);
    for (int64_t i = from; i < from + variable->elements; i++) {
        float *value = &t->expected.values[i];
        switch (kind_of(variable->kind)) {
        case BEL_UPDATE_MEAN: *value = sum[i] * t->step.scale; break;
        case BEL_UPDATE_ADD: *value += sum[i]; break;
        default: *value = t->gradients[first][i];
        }
    }
}

static void slots_at(const trial *t, int64_t offset, float *out[BEL_RULE_MAX_SLOTS])
{
    for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
        out[k] = t->expected.slots[k] != NULL ? t->expected.slots[k] + offset : NULL;
}

static void take_squares(const trial *t, const bel_layout_variable *variable)
{
    for (int64_t at = 0; at < variable->elements; at += BEL_GRAIN) {
        int64_t left = variable->elements - at, n = left < BEL_GRAIN ? left : BEL_GRAIN;
        double *out = t->squares + variable->first_grain + at / BEL_GRAIN;
        int64_t offset = variable->offset + at;
        out[0] = bel_rule_sum_square(t->directions + offset, n);
        if (t->trusts)
            out[t->layout->grain_count] = bel_rule_sum_square(t->expected.values + offset, n);
    }
}

// Computes states, directions and squares.
static void expect_directions(trial *t)
{
    if (t->step.counts == 0) return;
    const float *sum = sum_of(t, false);
    for (int v = 0; v < t->layout->variable_count; v++) {
        const bel_layout_variable *variable = &t->layout->variables[v];
        const bel_rule_group *group = &t->groups.items[variables[v].group];
        int64_t from = variable->offset, n = variable->elements;
        if (variable->kind != BEL_VARIABLE_TRAINABLE) continue;
        float *direction = t->directions + from, *slots[BEL_RULE_MAX_SLOTS];
        slots_at(t, from, slots);
        bel_rule_scale(&group->numbers, sum + from, t->step.of_gradient, direction, n);
        if (group->rule->prepares)
            bel_rule_prepare(&group->numbers, direction, t->expected.values + from, direction,
                             slots, n);
        take_squares(t, variable);
    }
    for (int v = 0; v < t->layout->variable_count; v++) { // states use the same scratch
        const bel_layout_variable *variable = &t->layout->variables[v];
        if (variable->kind != BEL_VARIABLE_TRAINABLE && variable->kind != BEL_VARIABLE_FROZEN)
            expect_state(t, variable);
    }
}

static void expect_update(trial *t)
{
    for (int v = 0; v < t->layout->variable_count && t->step.counts != 0; v++) {
        const bel_layout_variable *variable = &t->layout->variables[v];
        if (variable->kind != BEL_VARIABLE_TRAINABLE) continue;
        int64_t from = variable->offset, n = variable->elements;
        float *values = t->expected.values + from, *slots[BEL_RULE_MAX_SLOTS];
        slots_at(t, from, slots);
        bel_rule_apply(&t->groups.items[variables[v].group].numbers, t->directions + from,
                       t->factors[v], values, values, slots, n);
        if (t->row->averages)
            bel_rule_average(values, t->step.average_rest, t->expected.averages + from, n);
    }
}

// --- Steps ---------------------------------------------------------------------------------------

static uint64_t address(const float *on_card)
{
    return (uint64_t)(uintptr_t)on_card;
}

static void send_gradients(const trial *t, uint32_t seed)
{
    for (int r = 0; r < t->row->replicas; r++) {
        int tower = r % t->row->towers;
        const bel_cuda_device *card = card_of(t, tower);
        void *stream = t->streams[tower];
        for (int v = 0; v < t->layout->variable_count; v++)
            fill(t->gradients[r] + t->layout->variables[v].offset, variables[v].elements,
                 seed + (uint32_t)(100 * r + v), false);
        BEL_ASSERT_OK(bel_cuda_enter(card));
        uint64_t to = address(t->updater->ops->gradients(t->updater, r));
        size_t bytes = (size_t)t->size * sizeof(float);
        assert_int_equal(card->api->copy_in(to, t->gradients[r], bytes, stream), 0);
        assert_int_equal(card->api->stream_finish(stream), 0);
    }
}

// Replicas that count in steps 0 to 3: all; all but every third, including replica 1; no replica;
// all but every third, including replica 0.
static bool counts(int number, int replicas, int r)
{
    if (number == 0 || (number == 3 && replicas == 1)) return true;
    return number != 2 && r % 3 != (number == 1 ? 1 : 0);
}

static void begin_step(trial *t, int number)
{
    static const int64_t examples[] = {64, 31, 64, 5, 7, 64, 64, 1};
    bel_update_step *step = &t->step;
    int64_t runs = number, replicas = 0;
    *step = (bel_update_step){.joins = t->joins, .factors = t->factors};
    for (int r = 0; r < t->row->replicas; r++) {
        bool taken = counts(number, t->row->replicas, r);
        int64_t n = t->row->uneven ? examples[r % 8] : 64;
        t->weights[r] = taken ? (bel_weight){1, n} : (bel_weight){0, 0};
        step->counts |= (uint64_t)taken << r;
        replicas += taken;
    }
    bel_assignment_joins(t->weights, t->row->replicas, t->joins);
    step->scale = replicas > 0 ? (float)(1.0 / (double)replicas) : 0;
    step->of_gradient = number == 3 ? 1 : step->scale;
    step->average_rest = bel_rule_average_rest(&t->optimizers[0], number);
    bel_rule_groups_begin(&t->groups, &runs, &runs);
    for (int v = 0; v < VARIABLES; v++)
        t->factors[v] = 1;
}

static double total(const trial *t, int v, int64_t behind)
{
    const bel_layout_variable *variable = &t->layout->variables[v];
    double sum = 0;
    for (int64_t g = 0; g < bel_grains_of(variable->elements); g++)
        sum += t->squares[variable->first_grain + g + behind];
    return sum;
}

// Sets the trust factors of rules that have them, and some others than 1 for the rest.
static void make_factors(trial *t)
{
    for (int v = 0; v < t->layout->variable_count; v++) {
        const bel_rule_group *group = &t->groups.items[variables[v].group];
        t->factors[v] = 1.0f / (float)(1 + v % 3);
        if (group->rule->trusts)
            t->factors[v] = bel_rule_trust(&group->numbers, total(t, v, t->layout->grain_count),
                                           total(t, v, 0));
    }
}

static void check_squares(const trial *t)
{
    int64_t grains = t->layout->grain_count;
    for (int i = 0; i < t->piece_count; i++) {
        const bel_update_piece *piece = &t->pieces[i];
        if (piece->kind != BEL_UPDATE_RULE) continue;
        for (int64_t g = piece->grain; g < grains * (t->trusts ? 2 : 1); g += grains)
            if (memcmp(&t->got_squares[g], &t->squares[g], sizeof *t->squares) != 0)
                fail_msg("squares of grain %d: %.17g, expected %.17g", (int)g, t->got_squares[g],
                         t->squares[g]);
    }
}

static void run_step(trial *t)
{
    const bel_updater_ops *ops = t->updater->ops;
    expect_directions(t);
    if (t->norms) {
        BEL_ASSERT_OK(ops->direct(t->updater, &t->step, t->got_squares));
        if (t->step.counts != 0) check_squares(t);
        make_factors(t);
        BEL_ASSERT_OK(ops->follow(t->updater, &t->step));
    } else {
        BEL_ASSERT_OK(ops->update(t->updater, &t->step));
    }
    expect_update(t);
}

// --- Comparison ----------------------------------------------------------------------------------

static void check_same(const float *got, const float *expected, int64_t count, const char *what,
                       int which_one)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0)
            fail_msg("%s %d, element %d: %.9g, expected %.9g", what, which_one, (int)i,
                     (double)got[i], (double)expected[i]);
}

// Checks the values as each tower's programs read them.
static void check_values(const trial *t)
{
    float *got = floats(t->size);
    for (int i = 0; i < t->row->towers; i++) {
        const bel_cuda_device *card = card_of(t, i);
        uint64_t from = address(t->updater->ops->values(t->updater, i));
        BEL_ASSERT_OK(bel_cuda_enter(card));
        size_t bytes = (size_t)t->size * sizeof *got;
        assert_int_equal(card->api->copy_out(got, from, bytes, t->streams[i]), 0);
        assert_int_equal(card->api->stream_finish(t->streams[i]), 0);
        check_same(got, t->expected.values, t->size, "values of tower", i);
    }
    bel_free(got);
}

// Overwrites the host's pieces first, so that the saved values must come from the GPUs.
static void check_saved(const trial *t)
{
    for (int i = 0; i < array_count(t); i++)
        for (int p = 0; p < t->piece_count && t->host.all[i] != NULL; p++)
            memset(t->host.all[i] + t->pieces[p].offset, 0xff,
                   (size_t)t->pieces[p].count * sizeof(float));
    BEL_ASSERT_OK(t->updater->ops->save(t->updater));
    for (int i = 0; i < array_count(t); i++)
        if (t->host.all[i] != NULL)
            check_same(t->host.all[i], t->expected.all[i], t->size, "saved array", i);
}

// Slots are not negative, as some rules take their roots.
static void load_anew(trial *t, uint32_t seed)
{
    for (int i = 0; i < array_count(t); i++) {
        if (t->host.all[i] == NULL) continue;
        fill(t->expected.all[i], t->size, seed + (uint32_t)i, i >= 2);
        memcpy(t->host.all[i], t->expected.all[i], (size_t)t->size * sizeof(float));
    }
    BEL_ASSERT_OK(t->updater->ops->load(t->updater));
}

// Checks the gradients before the first program.
static void check_zeros(const trial *t)
{
    float *got = floats(t->size), *zeros = floats(t->size);
    for (int r = 0; r < t->row->replicas; r++) {
        int tower = r % t->row->towers;
        const bel_cuda_device *card = card_of(t, tower);
        BEL_ASSERT_OK(bel_cuda_enter(card));
        uint64_t from = address(t->updater->ops->gradients(t->updater, r));
        size_t bytes = (size_t)t->size * sizeof *got;
        assert_int_equal(card->api->copy_out(got, from, bytes, t->streams[tower]), 0);
        assert_int_equal(card->api->stream_finish(t->streams[tower]), 0);
        check_same(got, zeros, t->size, "gradients", r);
    }
    bel_free(got);
    bel_free(zeros);
}

static void make_streams(trial *t, bool makes)
{
    for (int i = 0; i < t->row->towers; i++) {
        const bel_cuda_device *card = card_of(t, i);
        BEL_ASSERT_OK(bel_cuda_enter(card));
        int error = makes ? card->api->stream_create(&t->streams[i], BEL_CUDA_STREAM_NON_BLOCKING)
                          : card->api->stream_destroy(t->streams[i]);
        assert_int_equal(error, 0);
    }
}

// Runs three steps, the last one without a replica that counts, and a checkpoint. Then it plans
// again, restores other values, runs a step and saves again.
static void run_row(const row *of)
{
    trial *t = make_trial(of);
    BEL_ASSERT_OK(create_updater(t));
    make_streams(t, true);
    check_zeros(t);
    BEL_ASSERT_OK(plan_updates(t));
    load_anew(t, 1);
    for (int number = 0; number < 4; number++) {
        begin_step(t, number);
        send_gradients(t, (uint32_t)(10000 * (number + 1)));
        run_step(t);
        check_values(t);
        if (number < 2) continue;
        check_saved(t);
        if (number == 3) break;
        t->updater->ops->forget(t->updater);
        BEL_ASSERT_OK(plan_updates(t));
        load_anew(t, 11);
    }
    make_streams(t, false);
    t->updater->ops->destroy(t->updater);
    destroy_trial(t);
}

static void run_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("row %d: optimizers %d and %d, %d replicas, %d towers on %d GPUs\n", (int)i,
               rows[i].first, rows[i].second, rows[i].replicas, rows[i].towers, rows[i].cards);
        run_row(&rows[i]);
    }
}
#define RUN_ROWS(rows) run_rows(rows, sizeof(rows) / sizeof *(rows))

// --- Tests ---------------------------------------------------------------------------------------

// Every rule in one pass, on each number of GPUs.
static void test_rules(void **state)
{
    (void)state;
    static const row rows[] = {
        {SGD, MOMENTUM, 3, 3, 3, .uneven = true},
        {NESTEROV, ADAM, 3, 2, 2, .averages = true, .clips = true},
        {ADAGRAD, RMSPROP, 3, 1, 1, .uneven = true, .clips = true},
        {RMSPROP_CENTERED, RMSPROP_MOMENTUM, 3, 3, 3, .averages = true},
        {RMSPROP_BOTH, ADAMW, 3, 2, 2, .uneven = true, .averages = true, .clips = true},
        {FTRL, ADADELTA, 3, 3, 3, .uneven = true},
        {ADAMW, FTRL, 3, 1, 1, .averages = true, .clips = true},
        {MOMENTUM, RMSPROP_BOTH, 3, 2, 1, .uneven = true, .averages = true},
        {ADADELTA, NESTEROV, 3, 3, 2, .clips = true},
        {ADAM, ADAGRAD, 3, 3, 3, .alone = true},
    };
    RUN_ROWS(rows);
}

// With norms, and with trust factors for rules that have them.
static void test_two_passes(void **state)
{
    (void)state;
    static const row rows[] = {
        {LAMB, LARS, 3, 3, 3, .uneven = true, .averages = true},
        {LARS, RMSPROP_BOTH, 3, 2, 2, .clips = true, .averages = true},
        {ADAM, LAMB, 3, 1, 1, .uneven = true, .clips = true},
        {SGD, FTRL, 3, 3, 2, .norms = true, .uneven = true},
        {MOMENTUM, ADADELTA, 3, 3, 3, .norms = true, .averages = true, .clips = true},
    };
    RUN_ROWS(rows);
}

// The tree over replicas, on any towers.
static void test_replicas(void **state)
{
    (void)state;
    static const row rows[] = {
        {SGD, ADAM, 1, 1, 1, .averages = true},
        {LAMB, LARS, 1, 3, 3, .averages = true}, // towers without a replica
        {ADAM, SGD, 2, 2, 2, .uneven = true},
        {LAMB, MOMENTUM, 2, 2, 1, .clips = true},
        {RMSPROP, SGD, 2, 3, 3, .uneven = true},
        {SGD, ADAM, 5, 1, 1, .uneven = true},
        {LAMB, SGD, 5, 2, 2, .uneven = true},
        {ADAGRAD, SGD, 5, 3, 3, .uneven = false},
        {MOMENTUM, ADAM, 7, 2, 2, .uneven = true, .variables = 5}, // joined twice at the end
        {SGD, FTRL, 8, 3, 3, .uneven = true},
        {ADAM, LARS, 8, 2, 2, .averages = true},
        {MOMENTUM, SGD, 8, 4, 2, .uneven = true, .clips = true},
        {SGD, SGD, 64, 8, 3, .uneven = true, .alone = true, .variables = 3},
    };
    RUN_ROWS(rows);
}

// GPUs without variables to update, and plans without slots.
static void test_few_variables(void **state)
{
    (void)state;
    static const row rows[] = {
        {ADAM, ADAM, 3, 3, 3, .averages = true, .variables = 1},
        {LAMB, LARS, 3, 3, 3, .uneven = true, .variables = 2},
        {SGD, SGD, 2, 2, 2, .averages = true, .alone = true, .variables = 3},
    };
    RUN_ROWS(rows);
}

// Changes one element after another on every GPU: the error names the GPU that differs and no
// other.
static void test_compare(void **state)
{
    (void)state;
    static const row three = {SGD, ADAM, 3, 3, 3, .alone = true};
    int cards = 0;
    BEL_ASSERT_OK(bel_cuda_count(&cards));
    if (cards < three.cards) skip(); // real GPUs, which several towers would share
    trial *t = make_trial(&three);
    BEL_ASSERT_OK(create_updater(t));
    make_streams(t, true);
    BEL_ASSERT_OK(plan_updates(t));
    load_anew(t, 1);
    BEL_ASSERT_OK(t->updater->ops->compare(t->updater));
    for (int i = 0; i < three.towers; i++) {
        const bel_cuda_device *card = card_of(t, i);
        char named[64];
        (void)snprintf(named, sizeof named, "cuda:%d has other parameters than cuda:%d", i,
                       i == 0 ? 1 : 0);
        for (int64_t at = 0; at < t->size; at += t->size / 5 - 1) {
            uint64_t there = address(t->updater->ops->values(t->updater, i)) + 4 * (uint64_t)at;
            float kept = t->host.values[at], other = nextafterf(kept, 9);
            BEL_ASSERT_OK(bel_cuda_enter(card));
            assert_int_equal(card->api->copy_in(there, &other, sizeof other, t->streams[i]), 0);
            assert_int_equal(card->api->stream_finish(t->streams[i]), 0);
            BEL_ASSERT_FAILS(t->updater->ops->compare(t->updater), BEL_DATA_LOSS, named);
            BEL_ASSERT_OK(bel_cuda_enter(card));
            assert_int_equal(card->api->copy_in(there, &kept, sizeof kept, t->streams[i]), 0);
            assert_int_equal(card->api->stream_finish(t->streams[i]), 0);
            BEL_ASSERT_OK(t->updater->ops->compare(t->updater));
        }
    }
    make_streams(t, false);
    t->updater->ops->destroy(t->updater);
    destroy_trial(t);
}

static void test_too_many_replicas(void **state)
{
    (void)state;
    bel_device *card;
    bel_updater *updater = NULL;
    BEL_ASSERT_OK(bel_cuda_device_get(0, &card));
    BEL_ASSERT_FAILS(bel_cuda_updater_create(&card, 1, 65, 16, &updater), BEL_INVALID_ARGUMENT,
                     "65 replicas");
    assert_null(updater);
}

// --- In separate processes -----------------------------------------------------------------------

// Kernels stay loaded until the process ends, so this unloads them explicitly.
static void unload_kernels(void)
{
    for (int i = 0; i < MOST_CARDS; i++) {
        bel_device *device;
        BEL_ASSERT_OK(bel_cuda_device_get(i, &device));
        const bel_cuda_device *card = (const bel_cuda_device *)device;
        BEL_ASSERT_OK(bel_cuda_enter(card));
        for (const bel_cuda_module *m = card->modules; m != NULL; m = m->next)
            assert_int_equal(card->api->module_unload(m->handle), 0);
        assert_int_equal(atomic_load(&card->taken), 0);
    }
}

static const row small = {LAMB,          SGD,           3, 3, 3, .uneven = true, .averages = true,
                          .alone = true, .variables = 5};

static void live(void)
{
    if (freopen("/dev/null", "w", stdout) == NULL) exit(2);
    run_row(&small);
    unload_kernels();
}

// The call that runs out of memory; 0: memory suffices.
enum { CREATES = 1, PLANS };
static int fails_at(trial *t)
{
    int failed = CREATES;
    bel_status *status = create_updater(t);
    if (status == NULL) {
        failed = PLANS;
        status = plan_updates(t);
        t->updater->ops->destroy(t->updater);
    }
    if (status == NULL) return 0;
    BEL_ASSERT_FAILS(status, BEL_RESOURCE_EXHAUSTED, " need ");
    return failed;
}

// Tries every limit on each GPU in turn, from no memory to more than enough.
static void run_out_by_limit(void)
{
    int seen[3] = {0};
    for (int i = 0; i < MOST_CARDS; i++) {
        for (size_t limit = 512;; limit += 4096) {
            trial *t = make_trial(&small);
            atomic_store(&t->towers[i]->memory_limit, limit);
            int failed = fails_at(t);
            atomic_store(&t->towers[i]->memory_limit, 0);
            destroy_trial(t);
            seen[failed]++;
            if (failed == 0) break;
        }
    }
    NEED(seen[0] == MOST_CARDS && seen[CREATES] > 0 && seen[PLANS] > 0);
    unload_kernels();
}

static void fail_to_create(void)
{
    trial *t = make_trial(&small);
    NEED(fails_at(t) == CREATES);
    destroy_trial(t);
    unload_kernels();
}

static void fail_to_plan(void)
{
    trial *t = make_trial(&small);
    NEED(fails_at(t) == PLANS);
    destroy_trial(t);
    unload_kernels();
}

// Must run before all other tests, as the children open CUDA themselves.
static void test_memory(void **state)
{
    (void)state;
    if (getenv("BELFRY_TEST_CARD") != NULL) skip(); // needs the stand-in
    expect_fine_with(live, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL});
    expect_fine_with(run_out_by_limit, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL});
    expect_fine_with(fail_to_create,
                     (const char *[]){"CUDA_DOUBLE_LEAKS=1", "CUDA_DOUBLE_MEMORY=30000", NULL});
    expect_fine_with(fail_to_plan,
                     (const char *[]){"CUDA_DOUBLE_LEAKS=1", "CUDA_DOUBLE_MEMORY=60000", NULL});
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_two_passes),    cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_few_variables), cmocka_unit_test(test_too_many_replicas),
        cmocka_unit_test(test_compare),
    };
    if (!bel_cuda_is_built()) {
        fprintf(stderr, "this Belfry was built without CUDA\n");
        return 77;
    }
    bel_use_cards();
    setenv("CUDA_DOUBLE_DEVICES", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
