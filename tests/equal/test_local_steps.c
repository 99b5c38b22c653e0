// Tests of local steps. A step is the mean of the replicas' values and slots after H batches each,
// as computed here from separate trainings of one replica. One replica has the bits of H times as
// many plain steps, with every optimizer. The bits are the same however replicas are assigned to
// workers, towers, threads and shards, over lanes that disturb, and when a run stops and resumes,
// also with another H. label: threads
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "estimator/estimator_inner.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { BATCH = 8 };

typedef struct deal {
    int workers;
    int towers[4];
    int shards, threads;
} deal;

static const deal alone = {1, {1}, 1, 1}, four = {1, {4}, 1, 1};

// Settings of a run that the tests do not vary.
static bel_run_config config_of(const deal *d, int local_steps)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.num_workers = d->workers;
    config.towers_of = d->towers;
    config.parameter_server_count = d->shards;
    config.num_threads = d->threads;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.report = false;
    config.local_steps = local_steps;
    return config;
}

static bel_status *digits_to(const deal *d, const char *name, int local_steps, int64_t steps,
                             bool allow, const bel_param *params, int count, char digest[33])
{
    char *folder = bel_path_join(bel_test_own_folder(), name);
    bel_run_config config = config_of(d, local_steps);
    config.allow_changes = allow;
    bel_result result = {.size = sizeof result};
    bel_status *status =
        bel_test_digits_train(config, folder, BATCH, steps, params, count, false, &result);
    if (status == NULL && digest != NULL) memcpy(digest, result.digest, 33);
    bel_free(folder);
    return status;
}

// --- One replica ---------------------------------------------------------------------------------

enum { OWN_PARAMS = 4, MOST_PARAMS = 2 + OWN_PARAMS };

// Optimizers with all kinds of passes and slots. Dropout shows that batches draw other numbers.
static const bel_param optimizers[][OWN_PARAMS] = {
    {{"optimizer", "sgd"}, {"clip_value", "0.01"}},
    {{"optimizer", "momentum"}, {"clip_global_norm", "0.1"}, {"dropout", "0.3"}},
    {{"optimizer", "adam"}, {"dropout", "0.3"}},
    {{"optimizer", "adamw"}, {"weight_decay", "0.01"}},
    {{"optimizer", "adagrad"}, {"clip_norm", "0.05"}},
    {{"optimizer", "rmsprop"}, {"rmsprop_momentum", "0.5"}, {"learning_rate", "0.001"}},
    {{"optimizer", "ftrl"}, {"learning_rate", "0.05"}},
    {{"optimizer", "lamb"}, {"weight_decay", "0.01"}, {"clip_each_replica", "true"}},
    {{"optimizer", "lars"}, {"weight_decay", "0.01"}},
    {{"optimizer", "adadelta"}, {"clip_each_replica", "true"}, {"clip_norm", "0.5"}},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

static int params_of(int optimizer, bel_param out[MOST_PARAMS])
{
    int count = 0;
    out[count++] = (bel_param){"hidden_units", "16"};
    out[count++] = (bel_param){"class_count", "10"};
    for (int i = 0; i < OWN_PARAMS && optimizers[optimizer][i].name != NULL; i++)
        out[count++] = optimizers[optimizer][i];
    return count;
}

static void test_one_replica(void **state)
{
    (void)state;
    enum { H = 3, STEPS = 4 };
    for (int o = 0; o < OPTIMIZERS; o++) {
        bel_param params[MOST_PARAMS];
        int count = params_of(o, params);
        char plain[33], local[33], name[2][32];
        bel_snprintf(name[0], sizeof name[0], "plain-%d", o);
        bel_snprintf(name[1], sizeof name[1], "local-%d", o);
        BEL_ASSERT_OK(digits_to(&alone, name[0], 1, H * STEPS, false, params, count, plain));
        BEL_ASSERT_OK(digits_to(&alone, name[1], H, STEPS, false, params, count, local));
        if (strcmp(plain, local) != 0) fail_msg("%s", params[2].value);
    }
}

// --- The mean of replicas ------------------------------------------------------------------------

enum { WIDTH = 5, CLASSES = 3, REPLICAS = 3, H = 4, BLOCKS = REPLICAS * H };
enum { ROWS = BLOCKS * BATCH, ELEMENTS = WIDTH * CLASSES };

static float features[ROWS * WIDTH];
static int64_t labels[ROWS];

// Rows of a run, in their order.
typedef struct rows {
    float features[ROWS * WIDTH];
    int64_t labels[ROWS];
    int64_t count;
} rows;

static void fill_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % CLASSES;
        for (int j = 0; j < WIDTH; j++)
            features[i * WIDTH + j] = (float)sin(7 * i + 3 * j + i % CLASSES);
    }
}

static bel_status *give_rows(void *user, const bel_estimator *estimator, bel_mode mode,
                             bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    rows *r = user;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(r->count, WIDTH), r->features}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(r->count), r->labels}},
    };
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

static void add_block(rows *to, int block)
{
    memcpy(to->features + to->count * WIDTH, features + block * BATCH * WIDTH,
           BATCH * WIDTH * sizeof *features);
    memcpy(to->labels + to->count, labels + block * BATCH, BATCH * sizeof *labels);
    to->count += BATCH;
}

// A softmax layer, and a state that follows the mean of its inputs.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context), *y = bel_context_labels(context);
    bel_value *logits = bel_dense(g, x, CLASSES, "out");
    bel_value *seen =
        bel_variable(g, "seen", &BEL_SHAPE(WIDTH), (bel_initializer){.kind = BEL_INIT_ZEROS},
                     BEL_VARIABLE_STATE_MEAN);
    bel_value *mean = bel_reduce_mean(g, x, (const int64_t[]){0}, 1, false);
    bel_value *half = bel_scalar(g, BEL_DTYPE_F32, 0.5);
    bel_assign_state(g, seen, bel_mul(g, half, bel_add(g, seen, mean)));
    bel_predictions_set(spec, logits);
    bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, logits, y)));
    bel_optimizer adam = {.size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.05};
    bel_optimizer_use(spec, NULL, &adam);
    return NULL;
}

static int64_t train_rows(rows *given, const char *name, const deal *d, int local_steps)
{
    char *folder = bel_path_join(bel_test_own_folder(), name);
    bel_run_config config = config_of(d, local_steps);
    config.model_dir = folder;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = give_rows, .input_user = given, .max_steps = H};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &result));
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return result.global_step;
}

static const struct {
    const char *name;
    size_t elements;
} tensors[] = {{"out/kernel", ELEMENTS},
               {"out/bias", CLASSES},
               {"out/kernel/adam/m", ELEMENTS},
               {"out/kernel/adam/v", ELEMENTS},
               {"out/bias/adam/m", CLASSES},
               {"out/bias/adam/v", CLASSES},
               {"seen", WIDTH}};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

typedef float values[TENSORS][ELEMENTS];

static void read_values(const char *name, values out)
{
    char *folder = bel_path_join(bel_test_own_folder(), name);
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(folder, &checkpoint));
    for (int t = 0; t < TENSORS; t++)
        BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, tensors[t].name, out[t],
                                          tensors[t].elements * sizeof(float)));
    bel_checkpoint_close(checkpoint);
    bel_free(folder);
}

// Trains replica r as if it were the only one. `blocks`: those of all replicas.
static void train_replica(int r, int blocks, values out)
{
    rows own = {.count = 0};
    char name[32];
    for (int block = r; block < blocks; block += REPLICAS)
        add_block(&own, block);
    bel_snprintf(name, sizeof name, "replica-%d-%d", r, blocks);
    assert_int_equal(train_rows(&own, name, &alone, 1), own.count / BATCH);
    read_values(name, out);
}

static void train_all(int blocks, const char *name, const deal *d, values out)
{
    rows all = {.count = 0};
    for (int block = 0; block < blocks; block++)
        add_block(&all, block);
    assert_int_equal(train_rows(&all, name, d, H), 1); // one epoch is one step
    read_values(name, out);
}

static void test_mean(void **state)
{
    (void)state;
    static const deal three = {1, {3}, 1, 1}, apart = {3, {1, 1, 1}, 2, 1};
    values of[REPLICAS], got, other;
    fill_rows();
    for (int r = 0; r < REPLICAS; r++)
        train_replica(r, BLOCKS, of[r]);
    train_all(BLOCKS, "together", &three, got);
    train_all(BLOCKS, "apart", &apart, other);
    for (int t = 0; t < TENSORS; t++) {
        for (size_t e = 0; e < tensors[t].elements; e++) {
            float sum = of[0][t][e] + of[1][t][e];
            sum += of[2][t][e];
            float mean = sum * (float)(1.0 / REPLICAS);
            if (got[t][e] != mean || other[t][e] != mean)
                fail_msg("%s, %zu: %g and %g, expected %g", tensors[t].name, e, (double)got[t][e],
                         (double)other[t][e], (double)mean);
        }
    }
}

// The last replica has a batch less, and counts by its examples.
static void test_mean_of_unequal(void **state)
{
    (void)state;
    static const deal three = {2, {2, 1}, 1, 1};
    static const double share[REPLICAS] = {4.0 / 11, 4.0 / 11, 3.0 / 11};
    values of[REPLICAS], got;
    fill_rows();
    for (int r = 0; r < REPLICAS; r++)
        train_replica(r, BLOCKS - 1, of[r]);
    train_all(BLOCKS - 1, "unequal", &three, got);
    for (int t = 0; t < TENSORS; t++) {
        for (size_t e = 0; e < tensors[t].elements; e++) {
            double mean = 0;
            for (int r = 0; r < REPLICAS; r++)
                mean += share[r] * (double)of[r][t][e];
            if (fabs((double)got[t][e] - mean) > 1e-6 * (1 + fabs(mean)))
                fail_msg("%s, %zu: %g, expected %g", tensors[t].name, e, (double)got[t][e], mean);
        }
    }
}

// --- Deals ---------------------------------------------------------------------------------------

static const deal deals[] = {
    {4, {1, 1, 1, 1}, 1, 1}, {2, {2, 2}, 3, 2}, {2, {3, 1}, 2, 1}, {1, {1}, 2, 1}};
enum { DEALS = sizeof deals / sizeof deals[0] };

static void test_deals(void **state)
{
    (void)state;
    enum { STEPS = 12 };
    const bel_param params[] = {{"hidden_units", "96,16"},   {"class_count", "10"},
                                {"dropout", "0.2"},          {"optimizer", "adam"},
                                {"clip_global_norm", "0.3"}, {"moving_average_decay", "0.9"}};
    char expected[33], got[33], name[32];
    BEL_ASSERT_OK(digits_to(&four, "four", 5, STEPS, false, params, 6, expected));
    for (int i = 0; i < DEALS; i++) {
        bool disturbed = i == 2, turns = deals[i].workers == 1;
        bel_snprintf(name, sizeof name, "deal-%d", i);
        char *folder = bel_path_join(bel_test_own_folder(), name);
        bel_run_config config = config_of(&deals[i], 5);
        if (turns) config.replicas_to_aggregate = 4; // one tower plays all replicas
        bel_result result = {.size = sizeof result};
        if (disturbed) bel_fault_set("lane:delay+repeat+reorder");
        BEL_ASSERT_OK(
            bel_test_digits_train(config, folder, BATCH, STEPS, params, 6, false, &result));
        bel_fault_set(NULL);
        assert_string_equal(result.digest, expected);
        bel_free(folder);
    }
    BEL_ASSERT_OK(digits_to(&four, "stopped", 5, STEPS / 3, false, params, 6, got));
    assert_string_not_equal(got, expected);
    BEL_ASSERT_OK(digits_to(&deals[1], "stopped", 5, STEPS, false, params, 6, got));
    assert_string_equal(got, expected);
}

// Checkpoints have the form of those without local steps.
static void test_other_number(void **state)
{
    (void)state;
    const bel_param params[] = {
        {"hidden_units", "16"}, {"class_count", "10"}, {"optimizer", "adam"}};
    char plain[33], mixed[33];
    BEL_ASSERT_OK(digits_to(&alone, "plain", 1, 12, false, params, 3, plain));
    BEL_ASSERT_OK(digits_to(&alone, "mixed", 1, 6, false, params, 3, NULL));
    BEL_ASSERT_FAILS(digits_to(&alone, "mixed", 3, 8, false, params, 3, NULL),
                     BEL_FAILED_PRECONDITION, "local_steps was not set and is 3");
    // Rules count updates from the step, so that Adam's correction of bias begins at update 18.
    BEL_ASSERT_OK(digits_to(&alone, "mixed", 3, 8, true, params, 3, mixed));
    assert_string_not_equal(mixed, plain);
    BEL_ASSERT_OK(digits_to(&alone, "mixed", 1, 9, true, params, 3, mixed));
    const bel_param sgd[] = {{"hidden_units", "16"}, {"class_count", "10"}, {"optimizer", "sgd"}};
    BEL_ASSERT_OK(digits_to(&alone, "sgd", 1, 12, false, sgd, 3, plain));
    BEL_ASSERT_OK(digits_to(&alone, "sgd-mixed", 1, 3, false, sgd, 3, NULL));
    BEL_ASSERT_OK(digits_to(&alone, "sgd-mixed", 3, 5, true, sgd, 3, NULL));
    BEL_ASSERT_OK(digits_to(&alone, "sgd-mixed", 1, 8, true, sgd, 3, mixed));
    assert_string_equal(mixed, plain); // 3 + 2 · 3 + 3 batches, in the order of the input
}

// --- Refusals ------------------------------------------------------------------------------------

static bel_status *add_up(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    BEL_TRY(model(context, spec));
    bel_value *count =
        bel_variable(g, "count", &BEL_SHAPE(1), (bel_initializer){.kind = BEL_INIT_ZEROS},
                     BEL_VARIABLE_STATE_SUM);
    bel_assign_state(g, count, bel_add(g, count, count));
    return NULL;
}

static bel_status *exchange(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    BEL_TRY(model(context, spec));
    bel_value *x = bel_context_only_feature(context);
    bel_value *sum = bel_reduce_sum(g, x, NULL, 0, false);
    bel_loss_set(spec, bel_all_reduce(g, sum, BEL_REDUCE_MEAN));
    return NULL;
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        bel_model_fn *model;
        bel_aggregation mode;
        int aggregate, local_steps;
        bel_average average;
        bel_device_choice update;
        bel_code code;
        const char *text;
    } list[] = {
        {model, BEL_AGGREGATE_SYNC, 0, 0, 0, 0, BEL_INVALID_ARGUMENT, "local_steps"},
        {model, BEL_AGGREGATE_ASYNC, 0, 2, 0, 0, BEL_INVALID_ARGUMENT,
         "local_steps is 2: in modes async and bounded"},
        {model, BEL_AGGREGATE_BOUNDED, 0, 2, 0, 0, BEL_INVALID_ARGUMENT,
         "local_steps is 2: in modes async and bounded"},
        {model, BEL_AGGREGATE_SYNC, 1, 2, 0, 0, BEL_INVALID_ARGUMENT,
         "local_steps is 2: with backup workers"},
        {model, BEL_AGGREGATE_SYNC, 0, 2, BEL_AVERAGE_SUM, 0, BEL_INVALID_ARGUMENT,
         "local_steps is 2: parameters are averaged"},
        {model, BEL_AGGREGATE_SYNC, 0, 2, 0, BEL_DEVICE_CUDA, BEL_INVALID_ARGUMENT,
         "local_steps is 2: replicas are updated in the process's memory"},
        {add_up, BEL_AGGREGATE_SYNC, 0, 2, 0, 0, BEL_UNIMPLEMENTED,
         "local_steps is 2, but variable \"count\" adds up over replicas"},
        {exchange, BEL_AGGREGATE_SYNC, 0, 2, 0, 0, BEL_UNIMPLEMENTED, "exchanges values of all"},
    };
    bel_run_config more = config_of(&(deal){2, {1, 1}, 1, 1}, 2);
    more.model_dir = "unused";
    more.accumulate_steps = 4;
    BEL_ASSERT_FAILS(bel_run_config_check(&more), BEL_INVALID_ARGUMENT,
                     "local_steps is 2: with accumulate_steps");
    more.accumulate_steps = 1;
    more.scale_learning_rate = BEL_SCALE_LINEAR;
    BEL_ASSERT_FAILS(bel_run_config_check(&more), BEL_INVALID_ARGUMENT,
                     "local_steps is 2: scale_learning_rate is for the batch of all replicas");
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        rows all = {.count = 0};
        add_block(&all, 0);
        add_block(&all, 1);
        char *folder = bel_path_join(bel_test_own_folder(), "refused");
        bel_run_config config = config_of(&(deal){2, {1, 1}, 1, 1}, list[i].local_steps);
        config.model_dir = folder;
        config.mode = list[i].mode;
        config.replicas_to_aggregate = list[i].aggregate;
        config.average = list[i].average;
        config.update_device = list[i].update;
        bel_estimator *estimator = NULL;
        bel_status *status = bel_estimator_create(list[i].model, &config, NULL, 0, &estimator);
        const bel_train_spec spec = {
            .size = sizeof spec, .input_fn = give_rows, .input_user = &all, .max_steps = 1};
        if (status == NULL) status = bel_train(estimator, &spec, NULL);
        BEL_ASSERT_FAILS(status, list[i].code, list[i].text);
        bel_estimator_destroy(estimator);
        bel_free(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_one_replica),     BEL_TEST_IN_FOLDER(test_mean),
        BEL_TEST_IN_FOLDER(test_mean_of_unequal), BEL_TEST_IN_FOLDER(test_deals),
        BEL_TEST_IN_FOLDER(test_other_number),    BEL_TEST_IN_FOLDER(test_refused)};
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
