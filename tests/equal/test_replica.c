// Tests of a loop of the program's: steps of several functions by hand, returned values, the same
// bits however replicas are assigned and wherever the loop resumes, ends and errors. label: threads
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { EXAMPLES = 26, BATCH = 2, WIDTH = 3, REPLICAS = 4 };

static float examples[EXAMPLES][WIDTH];

static int fill_examples(void **state)
{
    (void)state;
    for (int i = 0; i < EXAMPLES; i++)
        for (int j = 0; j < WIDTH; j++)
            examples[i][j] = sinf((float)(7 * i + 3 * j + 1));
    return 0;
}

// `user`: number of epochs; 0: without an end.
static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    const bel_memory_field field = {"x", {BEL_DTYPE_F32, BEL_SHAPE(EXAMPLES, WIDTH), examples}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_repeat(*out_dataset, *(int *)user > 0 ? *(int *)user : BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

static void assert_close(double got, double expected, double tolerance)
{
    assert_true(fabs(got - expected) <= tolerance);
}

// --- Functions -----------------------------------------------------------------------------------

static bel_value *variable(bel_graph *g, const char *name)
{
    return bel_variable(g, name, &BEL_SHAPE(WIDTH), (bel_initializer){.kind = BEL_INIT_ZEROS},
                        BEL_VARIABLE_TRAINABLE);
}

// Returns a loss whose gradient by each element of `name` is `slope`.
static bel_value *plain(bel_graph *g, const char *name, double slope)
{
    return bel_mul(g, bel_reduce_sum(g, variable(g, name), NULL, 0, false),
                   bel_scalar(g, BEL_DTYPE_F32, slope));
}

static bel_status *first_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_loss_set(spec, bel_add(g, plain(g, "a/w", 1), plain(g, "both/w", 2)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_MOMENTUM,
                                       .learning_rate = 0.5,
                                       .momentum = 0.5,
                                       .weight_decay = 0.25});
    return NULL;
}

static bel_status *second_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context);
    bel_value *mean = bel_reduce_mean(g, x, NULL, 0, false);
    bel_value *loss = bel_add(g, plain(g, "b/w", 3), plain(g, "both/w", 1));
    bel_loss_set(spec, bel_add(g, bel_add(g, loss, plain(g, "a/w", 100)), // not in its pattern
                               bel_mul(g, mean, bel_scalar(g, BEL_DTYPE_F32, 0))));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.125});
    bel_return_add(context, spec, "mean", mean, BEL_RETURN_MEAN);
    bel_return_add(context, spec, "sum", bel_reduce_sum(g, x, (const int64_t[]){0}, 1, false),
                   BEL_RETURN_SUM);
    bel_return_add(context, spec, "each", mean, BEL_RETURN_REPLICAS);
    return NULL;
}

enum { FIRST, SECOND };
static const bel_step_function both[] = {{"first", first_fn, NULL},
                                         {"second", second_fn, "b/*,both/*"}};

// --- Running -------------------------------------------------------------------------------------

// Assignment of replicas to workers and towers.
typedef struct deal {
    int workers, shards, towers;
    int turns; // in all workers together
    bel_aggregation mode;
    int scaled; // replicas of a step, by which rates are scaled; 0: not scaled
} deal;

static const deal alone = {1, 1, 1, 0, BEL_AGGREGATE_SYNC, 0};

typedef struct run {
    char *folder;
    bel_result result;
} run;

static bel_status *train_in(const char *folder, const bel_loop *loop, deal d, int epochs,
                            int64_t max_steps, int64_t save_steps, bel_result *out)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    out->size = sizeof *out;
    config.model_dir = folder;
    config.num_workers = d.workers;
    config.parameter_server_count = d.shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_gpus = d.towers;
    config.replicas_to_aggregate = d.turns;
    config.mode = d.mode;
    if (d.scaled > 0) config.scale_learning_rate = BEL_SCALE_LINEAR;
    config.save_checkpoints_steps = save_steps;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(first_fn, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = input,
                                 .input_user = &epochs,
                                 .max_steps = max_steps,
                                 .loop = loop};
    bel_status *status = bel_train(estimator, &spec, out);
    bel_estimator_destroy(estimator);
    return status;
}

static bel_status *train(const bel_loop *loop, deal d, int epochs, int64_t max_steps, run *out)
{
    static int count;
    out->folder = bel_strf("%s/%d", bel_test_own_folder(), count++);
    return train_in(out->folder, loop, d, epochs, max_steps, 0, &out->result);
}

static float read_one(const run *r, const char *name)
{
    float values[WIDTH];
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(r->folder, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, values, sizeof values));
    bel_checkpoint_close(checkpoint);
    assert_true(values[0] == values[1] && values[1] == values[2]);
    return values[0];
}

// --- Steps by hand -------------------------------------------------------------------------------

static bel_status *pattern(void *user, bel_replicator *replicator)
{
    for (const char *c = user; *c != '\0'; c++)
        BEL_TRY(bel_replicator_run(replicator, *c == '1' ? FIRST : SECOND, NULL));
    return NULL;
}

// Momentum for `first` with decay; Adam for `second`, whose steps are the learning rate, as all
// gradients are equal. Each has separate slots and a separate count, also for `both`.
static void check_by_hand(const char *steps, deal d)
{
    char *pattern_steps = bel_xstrdup(steps);
    const bel_loop loop = {.size = sizeof loop,
                           .functions = both,
                           .function_count = 2,
                           .run = pattern,
                           .user = pattern_steps};
    run r;
    BEL_ASSERT_OK(train(&loop, d, 0, 0, &r));
    assert_int_equal(r.result.global_step, (int64_t)strlen(steps));
    double a = 0, b = 0, shared = 0, sum_a = 0, sum_shared = 0, scale = d.scaled > 0 ? d.scaled : 1;
    for (const char *c = steps; *c != '\0'; c++) {
        if (*c == '1') {
            sum_a = 0.5 * sum_a + (1 + 0.25 * a);
            sum_shared = 0.5 * sum_shared + (2 + 0.25 * shared);
            a -= scale * 0.5 * sum_a;
            shared -= scale * 0.5 * sum_shared;
        } else {
            b -= scale * 0.125;
            shared -= scale * 0.125;
        }
    }
    assert_close(read_one(&r, "a/w"), a, 1e-5);
    assert_close(read_one(&r, "b/w"), b, 1e-5);
    assert_close(read_one(&r, "both/w"), shared, 1e-5);
    bel_free(r.folder);
    bel_free(pattern_steps);
}

// Rates unscaled, and scaled: by towers of all workers, by turns, by the workers that count.
static void test_by_hand(void **state)
{
    (void)state;
    static const deal deals[] = {{1, 1, 1, 0, BEL_AGGREGATE_SYNC, 0},
                                 {2, 1, 2, 0, BEL_AGGREGATE_SYNC, 4},
                                 {1, 1, 1, 3, BEL_AGGREGATE_SYNC, 3},
                                 {3, 2, 1, 2, BEL_AGGREGATE_SYNC, 2}};
    for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++)
        check_by_hand("1121222111", deals[d]);
}

// These gradients do not depend on when they were computed. So the result is the same as long as
// all steps run in the order of the requests, each from reports of its function.
static void test_modes_by_hand(void **state)
{
    (void)state;
    static const deal deals[] = {
        {3, 1, 1, 0, BEL_AGGREGATE_ASYNC, 0},   {4, 2, 1, 0, BEL_AGGREGATE_ASYNC, 0},
        {2, 3, 2, 0, BEL_AGGREGATE_ASYNC, 0},   {3, 2, 1, 2, BEL_AGGREGATE_ASYNC, 0},
        {3, 1, 1, 3, BEL_AGGREGATE_ASYNC, 0},   {3, 1, 1, 0, BEL_AGGREGATE_BOUNDED, 0},
        {3, 2, 1, 2, BEL_AGGREGATE_BOUNDED, 0}, {3, 1, 1, 2, BEL_AGGREGATE_SYNC, 0},
        {4, 3, 1, 1, BEL_AGGREGATE_SYNC, 0},
    };
    static const char *const patterns[] = {"1121222111", "12121212121212121212121212", "2221",
                                           "1111111111111111111111112"};
    for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++)
        for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
            check_by_hand(patterns[p], deals[d]);
}

// Variables that a function does not name keep their bits, even if it is the only function and
// decays weights.
static bel_status *decaying_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *other = bel_variable(g, "c/w", &BEL_SHAPE(WIDTH),
                                    (bel_initializer){.kind = BEL_INIT_CONSTANT, .value = 1},
                                    BEL_VARIABLE_TRAINABLE);
    bel_loss_set(spec, bel_add(g, plain(g, "a/w", 1), bel_reduce_sum(g, other, NULL, 0, false)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = 0.5,
                                       .weight_decay = 0.25});
    return NULL;
}

static void test_names(void **state)
{
    (void)state;
    static char steps[] = "11";
    bel_step_function only = {"only", decaying_fn, "a/*"};
    const bel_loop loop = {.size = sizeof loop,
                           .functions = &only,
                           .function_count = 1,
                           .run = pattern,
                           .user = steps};
    run r;
    BEL_ASSERT_OK(train(&loop, alone, 0, 0, &r));
    assert_true(read_one(&r, "c/w") == 1);
    assert_close((double)read_one(&r, "a/w"), -0.9375, 1e-6); // -0.5, then -0.5 (1 - 0.125)
    bel_free(r.folder);
    only.variables = "a/*,d/*";
    BEL_ASSERT_FAILS(train(&loop, alone, 0, 0, &r), BEL_INVALID_ARGUMENT,
                     "no trainable variable or table matches \"d/*\"");
    bel_free(r.folder);
}

// --- Returned values -----------------------------------------------------------------------------

typedef struct returned {
    deal deal;
    int steps;
    double means[64], sums[64][WIDTH], each[64][REPLICAS];
} returned;

static bel_status *take_returned(void *user, bel_replicator *replicator)
{
    returned *out = user;
    for (out->steps = 0;; out->steps++) {
        const bel_step_result *result;
        BEL_TRY(bel_replicator_run(replicator, FIRST, NULL));
        BEL_TRY(bel_replicator_run(replicator, SECOND, &result));
        assert_int_equal(result->step, 2 * out->steps + 2);
        assert_int_equal(bel_replicator_step(replicator), result->step);
        int64_t count;
        out->means[out->steps] = *bel_step_result_find(result, "mean", &count);
        assert_int_equal(count, 1);
        memcpy(out->sums[out->steps], bel_step_result_find(result, "sum", &count),
               sizeof out->sums[0]);
        assert_int_equal(count, WIDTH);
        memcpy(out->each[out->steps], bel_step_result_find(result, "each", &count),
               sizeof out->each[0]);
        assert_int_equal(count, REPLICAS);
        assert_null(bel_step_result_find(result, "other", NULL));
    }
}

// The last step has 2 of 8 examples, so three replicas have none. The input's end ends training.
static void test_returned_values(void **state)
{
    (void)state;
    static const deal deals[] = {
        {1, 1, 4, 0, BEL_AGGREGATE_SYNC, 0},        {2, 2, 2, 0, BEL_AGGREGATE_SYNC, 0},
        {4, 1, 1, 0, BEL_AGGREGATE_SYNC, 0},        {1, 1, 1, REPLICAS, BEL_AGGREGATE_SYNC, 0},
        {2, 3, 1, REPLICAS, BEL_AGGREGATE_SYNC, 0},
    };
    for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++) {
        returned got = {.deal = deals[d]};
        const bel_loop loop = {.size = sizeof loop,
                               .functions = both,
                               .function_count = 2,
                               .run = take_returned,
                               .user = &got};
        run r;
        BEL_ASSERT_OK(train(&loop, deals[d], 1, 0, &r));
        assert_int_equal(r.result.global_step, 4);
        assert_int_equal(got.steps, 2);
        for (int step = 0; step < 2; step++) {
            int first = (2 * step + 1) * REPLICAS * BATCH, count = step == 0 ? 8 : 2;
            double sum = 0;
            for (int j = 0; j < WIDTH; j++) {
                double column = 0;
                for (int i = first; i < first + count; i++)
                    column += examples[i][j];
                assert_close(got.sums[step][j], column, 1e-5);
                sum += column;
            }
            assert_close(got.means[step], sum / (count * WIDTH), 1e-5);
            for (int k = 0; k < REPLICAS; k++) {
                double own = 0;
                for (int i = k * BATCH; i < (k + 1) * BATCH && i < count; i++)
                    for (int j = 0; j < WIDTH; j++)
                        own += (double)examples[first + i][j] / (BATCH * WIDTH);
                assert_close(got.each[step][k], own, 1e-5);
            }
        }
        bel_free(r.folder);
    }
}

// --- The same bits -------------------------------------------------------------------------------

// The loop's memory, which decides the next step.
typedef struct memory {
    int64_t seconds, firsts; // seconds made, and firsts still to be made
    double means;
} memory;

typedef struct course {
    memory memory;
    int64_t end;
    int begun; // number of times that the loop began
} course;

static bel_status *depend(void *user, bel_replicator *replicator)
{
    course *c = user;
    c->begun++;
    while (bel_replicator_step(replicator) < c->end) {
        if (c->memory.firsts > 0) {
            BEL_TRY(bel_replicator_run(replicator, FIRST, NULL));
            c->memory.firsts--;
            continue;
        }
        const bel_step_result *result;
        BEL_TRY(bel_replicator_run(replicator, SECOND, &result));
        c->memory.means += *bel_step_result_find(result, "mean", NULL);
        c->memory.seconds++;
        c->memory.firsts = c->memory.seconds % 3 + (c->memory.means > 0);
    }
    return NULL;
}

static bel_loop loop_of(course *c)
{
    return (bel_loop){.size = sizeof(bel_loop),
                      .functions = both,
                      .function_count = 2,
                      .run = depend,
                      .user = c,
                      .state = &c->memory,
                      .state_bytes = sizeof c->memory};
}

static void test_deals(void **state)
{
    (void)state;
    static const deal deals[] = {
        {1, 1, 4, 0, BEL_AGGREGATE_SYNC, 0},        {2, 1, 2, 0, BEL_AGGREGATE_SYNC, 0},
        {4, 3, 1, 0, BEL_AGGREGATE_SYNC, 0},        {1, 2, 1, REPLICAS, BEL_AGGREGATE_SYNC, 0},
        {2, 2, 1, REPLICAS, BEL_AGGREGATE_SYNC, 0}, {1, 2, 4, 0, BEL_AGGREGATE_ASYNC, 0},
        {1, 1, 4, 0, BEL_AGGREGATE_BOUNDED, 0},
    };
    run reference = {0};
    for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++) {
        course c = {.end = 40};
        const bel_loop loop = loop_of(&c);
        run r;
        BEL_ASSERT_OK(train(&loop, deals[d], 0, 0, &r));
        assert_int_equal(r.result.global_step, 40);
        if (d == 0) reference = r;
        assert_string_equal(r.result.digest, reference.result.digest);
        if (d > 0) bel_free(r.folder);
    }
    bel_free(reference.folder);
}

// Checkpoints in a sequence of steps have the loop's memory of their version.
static void test_goes_on(void **state)
{
    (void)state;
    course whole = {.end = 60};
    const bel_loop loop = loop_of(&whole);
    run reference;
    BEL_ASSERT_OK(train(&loop, (deal){2, 2, 2, 0, BEL_AGGREGATE_SYNC, 0}, 0, 0, &reference));
    for (int64_t every = 1; every <= 7; every += 3) {
        char *folder = bel_strf("%s/every-%lld", bel_test_own_folder(), (long long)every);
        bel_result result = {.size = sizeof result};
        for (int64_t end = 13; end < 80; end += 16) {
            course c = {.end = 60, .memory = {.seconds = 77}}; // the checkpoint's replaces it
            if (end == 13) c.memory = (memory){0};
            const bel_loop part = loop_of(&c);
            // max_steps ends the loop in its middle: its next call reports it, and it returns.
            BEL_ASSERT_OK(train_in(folder, &part, (deal){1, 1, 4, 0, BEL_AGGREGATE_SYNC, 0}, 0,
                                   end < 60 ? end : 0, every, &result));
            assert_int_equal(result.global_step, end < 60 ? end : 60);
            assert_int_equal(c.begun, 1);
        }
        assert_string_equal(result.digest, reference.result.digest);
        bel_free(folder);
    }
    bel_free(reference.folder);
}

// The loop asks for a stop in its middle, while later steps are under way.
typedef struct stopped {
    course course;
    int64_t stop_at;
} stopped;

static bel_status *stop(void *user, bel_replicator *replicator)
{
    stopped *s = user;
    int64_t end = s->course.end;
    s->course.end = s->stop_at;
    BEL_TRY(depend(&s->course, replicator));
    s->course.end = end;
    if (s->stop_at < end) bel_request_stop();
    bel_status *status = depend(&s->course, replicator);
    if (s->stop_at < end) assert_int_equal(bel_status_code(status), BEL_CANCELLED);
    return status;
}

static void test_stops(void **state)
{
    (void)state;
    char *folder = bel_strf("%s/stops", bel_test_own_folder());
    const deal d = {2, 1, 2, 0, BEL_AGGREGATE_SYNC, 0};
    course whole = {.end = 50};
    const bel_loop reference_loop = loop_of(&whole);
    run reference;
    BEL_ASSERT_OK(train(&reference_loop, d, 0, 0, &reference));
    bel_result result = {.size = sizeof result};
    for (int64_t at = 10; at <= 60; at += 10) {
        stopped s = {.course = {.end = 50}, .stop_at = at < 50 ? at : 50};
        const bel_loop loop = {.size = sizeof loop,
                               .functions = both,
                               .function_count = 2,
                               .run = stop,
                               .user = &s,
                               .state = &s.course.memory,
                               .state_bytes = sizeof s.course.memory};
        BEL_ASSERT_OK(train_in(folder, &loop, d, 0, 0, 0, &result));
        assert_int_equal(result.interrupted, at < 50);
        if (at >= 50) assert_int_equal(result.global_step, 50); // else some steps were not made yet
    }
    assert_string_equal(result.digest, reference.result.digest);
    bel_free(reference.folder);
    bel_free(folder);
}

// A single function, run as bel_train does.
static bel_status *plain_loop(void *user, bel_replicator *replicator)
{
    while (bel_replicator_step(replicator) < *(const int64_t *)user)
        BEL_TRY(bel_replicator_run(replicator, 0, NULL));
    return NULL;
}

static void test_like_bel_train(void **state)
{
    (void)state;
    static const bel_aggregation modes[] = {BEL_AGGREGATE_SYNC, BEL_AGGREGATE_ASYNC,
                                            BEL_AGGREGATE_BOUNDED, 0};
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        int64_t end = 25;
        const bel_step_function only = {"only", first_fn, NULL};
        const bel_loop loop = {.size = sizeof loop,
                               .functions = &only,
                               .function_count = 1,
                               .run = plain_loop,
                               .user = &end};
        const deal d = {2, 2, 2, 0, modes[m], 0};
        run own, built_in;
        BEL_ASSERT_OK(train(&loop, d, 0, 0, &own));
        BEL_ASSERT_OK(train(NULL, d, 0, end, &built_in));
        assert_int_equal(own.result.global_step, end);
        if (m == 0) assert_string_equal(own.result.digest, built_in.result.digest);
        bel_free(own.folder);
        bel_free(built_in.folder);
    }
}

// The model function is evaluated beside the loop, which does not wait for it.
static void test_evaluations(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.num_gpus = 2;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(first_fn, &config, NULL, 0, &estimator));
    course c = {.end = 12};
    const bel_loop loop = loop_of(&c);
    int forever = 0, once = 1;
    bel_result result = {.size = sizeof result},
               evaluated = {.size = sizeof evaluated, .global_step = -1};
    const bel_train_spec train_spec = {
        .size = sizeof train_spec, .input_fn = input, .input_user = &forever, .loop = &loop};
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = input,
                                .input_user = &once,
                                .every_steps = 5,
                                .out_result = &evaluated};
    BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &train_spec, &eval, 1, &result));
    assert_int_equal(result.global_step, 12);
    assert_int_equal(evaluated.global_step, 12);
    assert_int_equal(evaluated.examples, EXAMPLES);
    run r = {.folder = (char *)(uintptr_t)config.model_dir};
    float a = read_one(&r, "a/w"), shared = read_one(&r, "both/w");
    assert_close(result.loss, WIDTH * ((double)a + 2 * (double)shared), 1e-5);
    bel_estimator_destroy(estimator);
}

// --- Pipelines -----------------------------------------------------------------------------------

// Pipeline p has records p + 0, p + 0.25, …, so a value identifies its pipeline.
static bel_status *pipeline(void *user, const bel_input_context *context, bel_dataset **out_dataset)
{
    enum { MOST = REPLICAS, RECORDS = 8 };
    static float records[MOST][RECORDS];
    assert_int_equal(context->replicas, REPLICAS);
    assert_int_equal(context->pipelines, *(const int *)user);
    for (int i = 0; i < RECORDS; i++)
        records[context->pipeline][i] = (float)context->pipeline + 0.0625f * (float)i;
    const bel_memory_field field = {
        "x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, 1), records[context->pipeline]}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    return NULL;
}

typedef struct pipelines {
    bel_input_mode mode;
    int count;
    double each[2][REPLICAS];
} pipelines;

static bel_status *pipeline_input(void *user, const bel_estimator *estimator, bel_mode mode,
                                  bel_dataset **out_dataset)
{
    (void)mode;
    pipelines *p = user;
    int64_t batch;
    BEL_ASSERT_FAILS(bel_batch_per_replica(estimator, 10, &batch), BEL_INVALID_ARGUMENT,
                     "multiple of the 4 replicas, got 10");
    BEL_TRY(bel_batch_per_replica(estimator, (int64_t)REPLICAS * BATCH, &batch));
    assert_int_equal(batch, BATCH);
    BEL_TRY(bel_input_pipelines(estimator, p->mode, pipeline, &p->count, batch, out_dataset));
    bel_dataset_batch(*out_dataset, batch);
    return NULL;
}

static bel_status *mean_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_loss_set(spec, plain(g, "a/w", 1));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = 1});
    bel_value *mean = bel_reduce_mean(g, bel_context_only_feature(context), NULL, 0, false);
    bel_return_add(context, spec, "each", mean, BEL_RETURN_REPLICAS);
    return NULL;
}

static bel_status *two_steps(void *user, bel_replicator *replicator)
{
    pipelines *p = user;
    for (int i = 0; i < 2; i++) {
        const bel_step_result *result;
        BEL_TRY(bel_replicator_run(replicator, 0, &result));
        memcpy(p->each[i], bel_step_result_find(result, "each", NULL), sizeof p->each[i]);
    }
    return NULL;
}

static bel_status *train_pipelines(pipelines *p, deal d, const int *towers_of)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_strf("%s/%d-%d", bel_test_own_folder(), (int)p->mode, d.workers);
    config.num_workers = d.workers;
    config.num_gpus = d.towers;
    config.towers_of = towers_of;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(mean_fn, &config, NULL, 0, &estimator));
    const bel_step_function function = {"mean", mean_fn, NULL};
    const bel_loop loop = {.size = sizeof loop,
                           .functions = &function,
                           .function_count = 1,
                           .run = two_steps,
                           .user = p};
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = pipeline_input, .input_user = p, .loop = &loop};
    bel_status *status = bel_train(estimator, &spec, NULL);
    bel_estimator_destroy(estimator);
    bel_free((char *)(uintptr_t)config.model_dir);
    return status;
}

static void test_pipelines(void **state)
{
    (void)state;
    static const struct {
        bel_input_mode mode;
        deal deal;
        int count;
        double first[REPLICAS], second[REPLICAS]; // means of two records
    } cases[] = {
        {BEL_INPUT_SINGLE, {1, 1, 4, 0, 0, 0}, 1, {0.03125, 0.15625, 0.28125, 0.40625}, {0}},
        {BEL_INPUT_PER_REPLICA,
         {2, 1, 2, 0, 0, 0},
         4,
         {0.03125, 1.03125, 2.03125, 3.03125},
         {0.15625, 1.15625, 2.15625, 3.15625}},
        {BEL_INPUT_PER_WORKER,
         {2, 1, 2, 0, 0, 0},
         2,
         {0.03125, 0.15625, 1.03125, 1.15625},
         {0.28125, 0.40625, 1.28125, 1.40625}},
        {BEL_INPUT_PER_WORKER,
         {4, 1, 1, 0, 0, 0},
         4,
         {0.03125, 1.03125, 2.03125, 3.03125},
         {0.15625, 1.15625, 2.15625, 3.15625}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pipelines p = {.mode = cases[i].mode, .count = cases[i].count};
        BEL_ASSERT_OK(train_pipelines(&p, cases[i].deal, NULL));
        assert_memory_equal(p.each[0], cases[i].first, sizeof p.each[0]);
        assert_memory_equal(p.each[1], cases[i].second, sizeof p.each[1]);
    }
    pipelines uneven = {.mode = BEL_INPUT_PER_WORKER, .count = 3};
    BEL_ASSERT_FAILS(train_pipelines(&uneven, (deal){3, 1, 1, 0, 0, 0}, (const int[]){1, 2, 1}),
                     BEL_INVALID_ARGUMENT, "worker 1 has 2 of 4");
}

// --- Ends and errors -----------------------------------------------------------------------------

static bel_status *fails(void *user, bel_replicator *replicator)
{
    BEL_TRY(bel_replicator_run(replicator, FIRST, NULL));
    bel_status *status = bel_replicator_run(replicator, 2, NULL);
    BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, "there is no step function 2");
    return BEL_ERR(BEL_ABORTED, "%s", (const char *)user);
}

static bel_status *says_nothing(void *user, bel_replicator *replicator)
{
    (void)user, (void)replicator;
    return NULL;
}

static void test_ends(void **state)
{
    (void)state;
    run r;
    static char words[] = "the reward is gone";
    bel_loop loop = {
        .size = sizeof loop, .functions = both, .function_count = 2, .run = fails, .user = words};
    BEL_ASSERT_FAILS(train(&loop, alone, 0, 0, &r), BEL_ABORTED, words);
    bel_free(r.folder);
    loop.run = says_nothing;
    BEL_ASSERT_OK(train(&loop, alone, 0, 0, &r));
    assert_int_equal(r.result.global_step, 0);
    bel_free(r.folder);
}

static bel_status *idle_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_loss_set(spec, plain(g, "other/w", 1));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = 1});
    return NULL;
}

static bel_status *open_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_return_add(context, spec, "x", bel_context_only_feature(context), BEL_RETURN_SUM);
    return first_fn(context, spec);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        bel_step_function functions[2];
        const char *words;
    } cases[] = {
        {{{"a", first_fn, NULL}, {"a", second_fn, NULL}}, "a unique name"},
        {{{"a", first_fn, NULL}, {"b c", second_fn, NULL}}, "letters"},
        {{{"a", first_fn, NULL}, {"b", NULL, NULL}}, "must have a function"},
        {{{"a", first_fn, NULL}, {"b", idle_fn, "a/*"}}, "depends on no trainable variable"},
        {{{"a", first_fn, NULL}, {"b", idle_fn, "b/*"}}, "no trainable variable or table matches"},
        {{{"a", first_fn, NULL}, {"b", open_fn, NULL}}, "closed shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static char steps[] = "1";
        const bel_loop loop = {.size = sizeof loop,
                               .functions = cases[i].functions,
                               .function_count = 2,
                               .run = pattern,
                               .user = steps};
        run r;
        bel_status *status = train(&loop, alone, 0, 0, &r);
        assert_non_null(status);
        assert_non_null(strstr(bel_status_message(status), cases[i].words));
        bel_status_destroy(status);
        bel_free(r.folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_by_hand),

        BEL_TEST_IN_FOLDER(test_modes_by_hand),
        BEL_TEST_IN_FOLDER(test_names),
        BEL_TEST_IN_FOLDER(test_returned_values),
        BEL_TEST_IN_FOLDER(test_deals),
        BEL_TEST_IN_FOLDER(test_goes_on),
        BEL_TEST_IN_FOLDER(test_like_bel_train),
        BEL_TEST_IN_FOLDER(test_ends),
        BEL_TEST_IN_FOLDER(test_refused),
        BEL_TEST_IN_FOLDER(test_stops),
        BEL_TEST_IN_FOLDER(test_pipelines),
        BEL_TEST_IN_FOLDER(test_evaluations),
    };
    return cmocka_run_group_tests(tests, fill_examples, NULL);
}
