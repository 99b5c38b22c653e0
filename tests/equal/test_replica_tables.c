// Tests of a loop with several step functions over tables of rows: one function updates a table,
// the other function another one, and both a third, each with separate slots. The bits are the same
// however replicas are assigned and wherever the loop resumes. The numbers are those of dense
// variables.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"
#include "support/bel_test.h"

enum { RECORDS = 96, FIELDS = 2, KEYS = 30, WIDTH = 3, BATCH = 4, REPLICAS = 4 };
enum { FIRST, SECOND };
static const char *const tables[] = {"both", "first", "second"};
enum { TABLES = sizeof tables / sizeof tables[0] };

static int64_t ids[RECORDS][FIELDS];
static float targets[RECORDS][1];

static int fill_records(void **state)
{
    (void)state;
    for (int i = 0; i < RECORDS; i++) {
        for (int f = 0; f < FIELDS; f++)
            ids[i][f] = (i * 7919 + f * 104729) % 1009 % KEYS;
        targets[i][0] = sinf((float)i);
    }
    return 0;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field fields[] = {{"ids", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS, FIELDS), ids}},
                                       {"target", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, 1), targets}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// --- Step functions ------------------------------------------------------------------------------

// Returns the sums of the examples' rows, [n, 1]. With "kind" dense the table is a variable of KEYS
// rows.
static bel_value *look_up(bel_model_context *context, const char *name)
{
    bel_graph *g = bel_context_graph(context);
    bool dense = strcmp(bel_context_param(context, "kind", "sparse"), "dense") == 0;
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *i = bel_context_feature(context, "ids"), *rows;
    if (dense) {
        bel_value *all =
            bel_variable(g, name, &BEL_SHAPE(KEYS, WIDTH), zeros, BEL_VARIABLE_TRAINABLE);
        rows = bel_gather(g, all, i);
    } else {
        rows = bel_embedding(g, name, i, WIDTH, zeros);
    }
    bel_value *flat = bel_reshape(g, rows, &BEL_SHAPE(BEL_DIM_BATCH, FIELDS * WIDTH));
    return bel_reduce_sum(g, flat, (const int64_t[]){1}, 1, true);
}

static bel_value *loss_of(bel_model_context *context, bel_value *sum, double times)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *target =
        bel_mul(g, bel_context_feature(context, "target"), bel_scalar(g, BEL_DTYPE_F32, times));
    bel_value *error = bel_sub(g, sum, target);
    return bel_mean(g, bel_mul(g, error, error));
}

static bel_status *first_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *sum = bel_add(g, look_up(context, "both"), look_up(context, "first"));
    bel_loss_set(spec, loss_of(context, sum, 1));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_ADAGRAD,
                                       .learning_rate = 0.1});
    return NULL;
}

// Reads "first", too, but does not name it.
static bel_status *second_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *sum = bel_add(g, look_up(context, "both"), look_up(context, "first"));
    bel_loss_set(spec, loss_of(context, bel_add(g, sum, look_up(context, "second")), 3));
    const char *kind = bel_context_param(context, "optimizer", "adagrad");
    bool lazy = strcmp(kind, "adam") == 0;
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = lazy ? BEL_OPTIMIZER_ADAM : BEL_OPTIMIZER_ADAGRAD,
                                       .learning_rate = 0.05,
                                       .mean_by_contributors = strcmp(kind, "contributors") == 0});
    return NULL;
}

static const bel_step_function functions[] = {{"one", first_fn, NULL},
                                              {"two", second_fn, "second,both"}};

typedef struct course {
    const char *pattern;
    int64_t end;
} course;

static bel_status *follow(void *user, bel_replicator *replicator)
{
    const course *c = user;
    while (bel_replicator_step(replicator) < c->end) {
        size_t at = (size_t)bel_replicator_step(replicator) % strlen(c->pattern);
        BEL_TRY(bel_replicator_run(replicator, c->pattern[at] == '1' ? FIRST : SECOND, NULL));
    }
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

typedef struct deal {
    int workers, shards, towers;
    int turns; // in all workers together
    bel_aggregation mode;
} deal;

static const deal alone = {1, 1, 4, 0, BEL_AGGREGATE_SYNC};

static bel_status *train(const char *folder, deal d, course c, const char *name, const char *value,
                         bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_workers = d.workers;
    config.parameter_server_count = d.shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_gpus = d.towers;
    config.replicas_to_aggregate = d.turns;
    config.mode = d.mode;
    config.save_checkpoints_steps = 3;
    config.report = false;
    const bel_param params[] = {{name, value}};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(first_fn, &config, params, 1, &estimator));
    const bel_loop loop = {.size = sizeof loop,
                           .functions = functions,
                           .function_count = 2,
                           .run = follow,
                           .user = &c};
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .loop = &loop};
    bel_status *status = bel_train(estimator, &spec, out_result);
    bel_estimator_destroy(estimator);
    return status;
}

static char *folder_of(int number)
{
    return bel_strf("%s/%d", bel_test_own_folder(), number);
}

static bel_status *keep_row(void *context, int64_t n, const int64_t *keys,
                            const float *const *columns)
{
    float(*rows)[WIDTH] = context;
    for (int64_t i = 0; i < n; i++)
        memcpy(rows[keys[i]], columns[0] + i * WIDTH, WIDTH * sizeof(float));
    return NULL;
}

// Reads rows by key; zeros for absent ones.
static void read_rows(const char *folder, const char *table, float out[KEYS][WIDTH])
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_any(folder, &reader));
    memset(out, 0, KEYS * sizeof out[0]);
    const bel_ckpt_row_sink sink = {.take = keep_row, .context = out};
    BEL_ASSERT_OK(bel_ckpt_read_rows(reader, table, WIDTH, &sink));
    bel_ckpt_close(reader);
}

// --- Tests ---------------------------------------------------------------------------------------

static const char *const optimizers[] = {"adagrad", "adam"}; // second function's

static void same_bits(void **state)
{
    (void)state;
    static const deal deals[] = {
        {2, 1, 2, 0, BEL_AGGREGATE_SYNC},        {4, 3, 1, 0, BEL_AGGREGATE_SYNC},
        {1, 2, 1, REPLICAS, BEL_AGGREGATE_SYNC}, {2, 2, 1, REPLICAS, BEL_AGGREGATE_SYNC},
        {1, 3, 4, 0, BEL_AGGREGATE_ASYNC},       {1, 1, 4, 0, BEL_AGGREGATE_BOUNDED}};
    for (size_t o = 0; o < 2; o++) {
        bel_result expected = {.size = sizeof expected}, got = {.size = sizeof got};
        char *folder = folder_of(0);
        BEL_ASSERT_OK(
            train(folder, alone, (course){"1122212", 40}, "optimizer", optimizers[o], &expected));
        bel_test_remove_folder(folder);
        for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++) {
            folder = folder_of(1);
            BEL_ASSERT_OK(
                train(folder, deals[d], (course){"1122212", 40}, "optimizer", optimizers[o], &got));
            assert_int_equal(got.global_step, 40);
            assert_string_equal(got.digest, expected.digest);
            bel_test_remove_folder(folder);
        }
    }
}

// Resumes from checkpoints after steps of either function, on the same number of shards and on
// others.
static void goes_on(void **state)
{
    (void)state;
    static const deal deals[] = {{2, 3, 2, 0, BEL_AGGREGATE_SYNC},
                                 {1, 2, 4, 0, BEL_AGGREGATE_SYNC}};
    for (size_t o = 0; o < 2; o++) {
        bel_result expected = {.size = sizeof expected}, got = {.size = sizeof got};
        char *folder = folder_of(0);
        BEL_ASSERT_OK(
            train(folder, alone, (course){"1122212", 30}, "optimizer", optimizers[o], &expected));
        bel_test_remove_folder(folder);
        folder = folder_of(1);
        for (int64_t end = 5; end <= 30; end += 5)
            BEL_ASSERT_OK(train(folder, deals[end % 2], (course){"1122212", end}, "optimizer",
                                optimizers[o], &got));
        assert_string_equal(got.digest, expected.digest);
        bel_test_remove_folder(folder);
    }
}

// Adagrad leaves elements without a gradient unchanged, so the gathered variable gets the same.
static void numbers_of_dense_variables(void **state)
{
    (void)state;
    char *sparse = folder_of(0), *dense = folder_of(1);
    const deal d = {2, 2, 2, 0, BEL_AGGREGATE_SYNC};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(train(sparse, d, (course){"1122212", 40}, "kind", "sparse", &result));
    BEL_ASSERT_OK(train(dense, d, (course){"1122212", 40}, "kind", "dense", &result));
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(dense, &checkpoint));
    for (int t = 0; t < TABLES; t++) {
        float got[KEYS][WIDTH], expected[KEYS][WIDTH];
        read_rows(sparse, tables[t], got);
        BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, tables[t], expected, sizeof expected));
        double moved = 0;
        for (int i = 0; i < KEYS * WIDTH; i++) {
            moved += fabs((double)(&expected[0][0])[i]);
            assert_true(fabs((double)((&got[0][0])[i] - (&expected[0][0])[i])) < 1e-5);
        }
        assert_true(moved > 1);
    }
    bel_checkpoint_close(checkpoint);
    bel_test_remove_folder(sparse);
    bel_test_remove_folder(dense);
}

// A table has no row if the pattern skips its function.
static void others_keep_their_rows(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    for (int f = 0; f < 2; f++) {
        char *folder = folder_of(f);
        BEL_ASSERT_OK(train(folder, (deal){2, 2, 2, 0, BEL_AGGREGATE_SYNC},
                            (course){f == FIRST ? "1" : "2", 7}, "kind", "sparse", &result));
        for (int t = 0; t < TABLES; t++) {
            float rows[KEYS][WIDTH], sum = 0;
            read_rows(folder, tables[t], rows);
            for (int i = 0; i < KEYS * WIDTH; i++)
                sum += fabsf((&rows[0][0])[i]);
            bool updated = t == 0 || t == (f == FIRST ? 1 : 2);
            assert_int_equal(sum > 0, updated);
        }
        bel_test_remove_folder(folder);
    }
}

// With a ledger rows are read while others are updated.
static void every_mode_makes_the_steps(void **state)
{
    (void)state;
    static const deal deals[] = {{3, 2, 1, 0, BEL_AGGREGATE_ASYNC},
                                 {3, 1, 1, 2, BEL_AGGREGATE_ASYNC},
                                 {3, 2, 1, 0, BEL_AGGREGATE_BOUNDED},
                                 {3, 3, 1, 2, BEL_AGGREGATE_SYNC}};
    for (size_t d = 0; d < sizeof deals / sizeof deals[0]; d++) {
        char *folder = folder_of((int)d);
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(train(folder, deals[d], (course){"1122212", 60}, "kind", "sparse", &result));
        assert_int_equal(result.global_step, 60);
        assert_true(result.loss < 5); // targets are up to 3, and rows move by at most 0.1
        bel_test_remove_folder(folder);
    }
}

static void means_are_taken_alike(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    char *folder = folder_of(0);
    BEL_ASSERT_FAILS(train(folder, alone, (course){"1", 1}, "optimizer", "contributors", &result),
                     BEL_INVALID_ARGUMENT, "mean_by_contributors: all step functions");
    bel_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(same_bits),
        BEL_TEST_IN_FOLDER(goes_on),
        BEL_TEST_IN_FOLDER(numbers_of_dense_variables),
        BEL_TEST_IN_FOLDER(others_keep_their_rows),
        BEL_TEST_IN_FOLDER(every_mode_makes_the_steps),
        BEL_TEST_IN_FOLDER(means_are_taken_alike),
    };
    return cmocka_run_group_tests(tests, fill_records, NULL);
}
