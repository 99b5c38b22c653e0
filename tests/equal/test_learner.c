// Tests of learners. A training is exported in the middle, and a learner continues with the same
// batches. The learner's saved model must have the digest of the training that continued without
// it. For each of Belfry's models, each optimizer and its settings, threads and batches of other
// sizes. In the reverse direction, a training resumes from a learner's saved model.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"
#include "support/bel_test.h"
#include "support/digits.h"
#include "support/examples.h"

enum { BATCH = 12, FIRST = 3, LAST = 14, BATCHES = RECORDS / BATCH };

// --- Data ----------------------------------------------------------------------------------------

static bel_test_examples data;
// Records in the data, and the last step of trainings.
static int64_t records = RECORDS, last = LAST;

static int make_data(void **state)
{
    (void)state;
    bel_test_examples_make(&data);
    return 0;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator;
    const bool *has_ids = user;
    *out_dataset = bel_test_examples_dataset(&data, records, *has_ids);
    if (mode == BEL_MODE_TRAIN && last == LAST)
        bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// --- Training ------------------------------------------------------------------------------------

typedef struct model {
    const char *name;
    bel_param params[8]; // up to the first without a name
    bool has_ids;
} model;

static bool allow_changes, bf16; // settings of the trainings
static int64_t admit_after, expire_after;
static double expire_below;

static bel_estimator *make_estimator(const model *m, const char *folder, int replicas)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *model_dir = bel_path_join(bel_test_own_folder(), folder);
    config.model_dir = model_dir;
    config.report = false;
    config.num_gpus = replicas;
    config.allow_changes = allow_changes;
    config.table_admit_after = admit_after;
    config.table_expire_after = expire_after;
    config.table_expire_below = expire_below;
    if (bf16) config.precision = BEL_PRECISION_BF16;
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    bel_param all[10] = {{"model", m->name}};
    int count = 1;
    for (int p = 0; p < 8 && m->params[p].name != NULL; p++)
        all[count++] = m->params[p];
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find(m->name)->model_fn, &config, all, count, &estimator));
    bel_free(model_dir);
    return estimator;
}

// Trains up to `steps`, and returns the digest at the end.
static void train(bel_estimator *estimator, const model *m, int64_t steps,
                  char digest[BEL_RESULT_TEXT])
{
    bel_result result = {.size = sizeof result};
    bool has_ids = m->has_ids;
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &has_ids, .max_steps = steps};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &result));
    if (digest != NULL) memcpy(digest, result.digest, BEL_RESULT_TEXT);
}

// Exports a training of FIRST steps. Free the path with bel_free.
static char *export_training(const model *m, const char *folder)
{
    const bel_export_options options = {.size = sizeof options, .training = true};
    char *path = bel_strf("%s/%s.learner", bel_test_own_folder(), folder);
    bel_estimator *estimator = make_estimator(m, folder, 1);
    train(estimator, m, FIRST, NULL);
    BEL_ASSERT_OK(bel_export(estimator, NULL, &options, path));
    bel_estimator_destroy(estimator);
    return path;
}

// Runs a step on its batch, as the training reads it.
static bel_status *step(bel_learner *learner, int64_t step_number, float *out_loss)
{
    int64_t first = step_number % BATCHES * BATCH;
    int64_t n = records - first < BATCH ? records - first : BATCH;
    bel_tensor inputs[4];
    for (int i = 0; i < bel_learner_input_count(learner); i++) {
        const char *name = bel_learner_input_port(learner, i).name;
        if (strcmp(name, "x") == 0) {
            inputs[i] = (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(n, SIZE), data.images[first]};
        } else if (strcmp(name, "ids") == 0) {
            inputs[i] = (bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(n, IDS), data.ids[first]};
        } else if (strcmp(name, "id_lists") == 0) {
            inputs[i] = (bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(n, LISTS, MOST), data.lists[first]};
        } else {
            inputs[i] = (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(n, LISTS, MOST), data.weights[first]};
        }
    }
    const bel_tensor label = {BEL_DTYPE_I64, BEL_SHAPE(n), &data.labels[first]};
    return bel_learner_step(learner, inputs, &label, out_loss);
}

static void learn(const char *path, int threads, int64_t from, int64_t to, const char *into,
                  char digest[BEL_RESULT_TEXT])
{
    const bel_learner_options options = {.size = sizeof options, .threads = threads};
    bel_learner *learner;
    BEL_ASSERT_OK(bel_learner_load(path, &options, &learner));
    assert_int_equal(bel_learner_step_count(learner), from);
    for (int64_t s = from; s < to; s++) {
        float loss;
        BEL_ASSERT_OK(step(learner, s, &loss));
        assert_true(isfinite(loss));
    }
    BEL_ASSERT_OK(bel_learner_save(learner, into, digest));
    bel_learner_destroy(learner);
}

static void assert_same_bits(const model *m, const char *folder)
{
    char want[BEL_RESULT_TEXT], got[BEL_RESULT_TEXT];
    char *path = export_training(m, folder);
    bel_estimator *estimator = make_estimator(m, folder, 1);
    train(estimator, m, last, want);
    for (int threads = 1; threads <= 3; threads += 2) {
        char *into = bel_strf("%s-%d", path, threads);
        learn(path, threads, FIRST, last, into, got);
        assert_string_equal(got, want);
        bel_free(into);
    }
    bel_estimator_destroy(estimator);
    bel_free(path);
}

// --- Tests ---------------------------------------------------------------------------------------

static const model models[] = {
    {"linear", {{"learning_rate", "0.1"}}, false},
    {"dnn", {{"hidden_units", "32,16"}, {"dropout", "0.3"}}, false},
    {"cnn", {{"filters", "4,8"}, {"dense_units", "16"}}, false},
    {"resnet", {{"blocks", "1"}, {"width", "4"}}, false},
    {"resnet", {{"blocks", "1"}, {"width", "4"}, {"batch_norm", "sync"}}, false},
    {"resnet", {{"blocks", "1"}, {"width", "4"}, {"batch_norm", "merged"}}, false},
    {"gru", {{"recurrent_units", "12"}, {"sequence_width", "8"}}, false},
    {"lstm", {{"recurrent_units", "12,7"}, {"sequence_width", "8"}}, false},
    {"wide_deep", {{"hidden_units", "16"}, {"id_list_combiner", "sqrtn"}}, true},
};

static void test_every_model_learns_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        char *folder = bel_strf("%s-%zu", models[m].name, m);
        assert_same_bits(&models[m], folder);
        bel_free(folder);
    }
}

// Every rule, and the additions of settings: slots, norms, averages, schedules, parts.
static const bel_param rules[][5] = {
    {{"optimizer", "sgd"}, {"learning_rate", "0.1"}, {"weight_decay", "0.01"}},
    {{"optimizer", "momentum"}, {"learning_rate", "0.1"}, {"nesterov", "true"}},
    {{"optimizer", "adam"}, {"clip_value", "0.01"}, {"moving_average_decay", "0.9"}},
    {{"optimizer", "adamw"}, {"weight_decay", "0.1"}, {"decay_mult", "*/bias=0"}},
    {{"optimizer", "adagrad"}, {"clip_global_norm", "0.1"}, {"moving_average_decay", "0.5"}},
    {{"optimizer", "rmsprop"}, {"rmsprop_momentum", "0.5"}, {"rmsprop_centered", "true"}},
    {{"optimizer", "adadelta"}, {"clip_norm", "0.05"}, {"learning_rate", "0.5"}},
    {{"optimizer", "ftrl"}, {"ftrl_l1", "0.001"}, {"ftrl_l2", "0.01"}},
    {{"optimizer", "lamb"}, {"clip_value", "0.02"}, {"weight_decay", "0.01"}},
    {{"optimizer", "lars"}, {"learning_rate", "0.5"}, {"clip_value", "0.3"}},
    {{"schedule", "cosine"}, {"decay_steps", "20"}, {"warmup_steps", "6"}},
    {{"lr_mult", "dense_0/*=0.1"}, {"clip_each_replica", "true"}, {"clip_norm", "0.05"}},
};

static void test_every_optimizer_learns_the_same_bits(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        model m = {.name = "dnn", .params = {{"hidden_units", "120,70"}}};
        int count = 1;
        for (int p = 0; p < 5 && rules[r][p].name != NULL; p++)
            m.params[count++] = rules[r][p];
        char *folder = bel_strf("rule-%zu", r);
        assert_same_bits(&m, folder);
        bel_free(folder);
    }
}

static void test_rules_of_tables(void **state)
{
    (void)state;
    static const char *const kinds[] = {"sgd", "adagrad", "adam", "adamw", "ftrl"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const model m = {"wide_deep",
                         {{"hidden_units", "16"}, {"optimizer", kinds[k]}, {"clip_value", "0.05"}},
                         true};
        char *folder = bel_strf("tables-%s", kinds[k]);
        assert_same_bits(&m, folder);
        bel_free(folder);
    }
}

// A learner admits keys and removes rows as the training that it continues. Some ids are named in
// two of four steps.
static void test_life_of_rows(void **state)
{
    (void)state;
    for (int i = 0; i < RECORDS; i++)
        data.ids[i][2] = 9000 + i % (4 * BATCH) * (i / BATCH % 2 + 1);
    admit_after = 2;
    expire_after = 3;
    expire_below = 0.5;
    const model m = {"wide_deep", {{"hidden_units", "16"}, {"optimizer", "adagrad"}}, true};
    assert_same_bits(&m, "life");
    bel_ckpt_reader *reader;
    char *folder = bel_path_join(bel_test_own_folder(), "life");
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    int64_t waiting = 0;
    for (int t = 0; t < bel_ckpt_table_count(reader); t++)
        if (strcmp(bel_ckpt_table_at(reader, t, &waiting).name, "deep/uses") == 0) break;
    assert_true(waiting > 0);
    bel_ckpt_close(reader);
    bel_free(folder);
    admit_after = expire_after = 0;
    expire_below = 0;
    bel_test_examples_make(&data);
}

static void test_the_last_batch_is_smaller(void **state)
{
    (void)state;
    records = RECORDS - 5; // read once, so the last step's batch has 7
    last = BATCHES;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        char *folder = bel_strf("last-%zu", m);
        assert_same_bits(&models[m], folder);
        bel_free(folder);
    }
    records = RECORDS;
    last = LAST;
}

static void test_bf16(void **state)
{
    (void)state;
    bf16 = true;
    for (size_t m = 1; m < 4; m++) {
        char *folder = bel_strf("%s-bf16", models[m].name);
        assert_same_bits(&models[m], folder);
        bel_free(folder);
    }
    bf16 = false;
}

static void test_a_training_goes_on_where_a_learner_ends(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        char want[BEL_RESULT_TEXT], got[BEL_RESULT_TEXT], *folder = bel_strf("on-%zu", m);
        char *path = export_training(&models[m], folder);
        char *into = bel_strf("into-%zu", m);
        char *whole = bel_path_join(bel_test_own_folder(), into);
        bel_estimator *estimator = make_estimator(&models[m], folder, 1);
        train(estimator, &models[m], LAST, want);
        learn(path, 1, FIRST, LAST - 4, whole, got);
        bel_estimator *after = make_estimator(&models[m], into, 1);
        train(after, &models[m], LAST, got);
        assert_string_equal(got, want);
        bel_estimator_destroy(after);
        bel_estimator_destroy(estimator);
        bel_free(whole);
        bel_free(into);
        bel_free(path);
        bel_free(folder);
    }
}

static bel_status *keep_row(void *user, int64_t example, const bel_row *rows, int count)
{
    float(*kept)[CLASSES] = user;
    assert_true(count > 0);
    memcpy(kept[example], rows[0].value.data, sizeof kept[example]);
    return NULL;
}

static void bind(bel_predictor *predictor, const char *name, bel_tensor tensor)
{
    int number = bel_predictor_find_input(predictor, name);
    assert_true(number >= 0);
    BEL_ASSERT_OK(bel_predictor_bind(predictor, number, &tensor));
}

// Compares a learner's predictor with bel_predict of its saved model, before and after more steps.
static void assert_same_predictions(const model *m, const char *folder)
{
    static float want[RECORDS][CLASSES];
    char *path = export_training(m, folder), *into = bel_strf("%s-saved", folder);
    char *whole = bel_path_join(bel_test_own_folder(), into);
    bool has_ids = m->has_ids;
    bel_learner *learner;
    bel_predictor *predictor;
    BEL_ASSERT_OK(bel_learner_load(path, NULL, &learner));
    for (int64_t s = FIRST; s < LAST; s++)
        BEL_ASSERT_OK(step(learner, s, NULL));
    BEL_ASSERT_OK(bel_learner_predictor(learner, 1, &predictor));
    BEL_ASSERT_OK(bel_learner_save(learner, whole, NULL));
    BEL_ASSERT_OK(step(learner, LAST, NULL)); // the predictor has copies
    bel_learner_destroy(learner);
    assert_int_equal(bel_predictor_step(predictor), LAST);
    bel_estimator *estimator = make_estimator(m, into, 1);
    BEL_ASSERT_OK(bel_predict(estimator, input, &has_ids, NULL, keep_row, want));
    for (int64_t first = 0; first < RECORDS; first += BATCH) {
        bind(predictor, "x",
             (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(BATCH, SIZE), data.images[first]});
        if (has_ids) {
            bind(predictor, "ids",
                 (bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(BATCH, IDS), data.ids[first]});
            bind(predictor, "id_lists",
                 (bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(BATCH, LISTS, MOST), data.lists[first]});
            bind(predictor, "id_weights",
                 (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(BATCH, LISTS, MOST), data.weights[first]});
        }
        BEL_ASSERT_OK(bel_predictor_run(predictor));
        bel_tensor got = bel_predictor_output(predictor, 0);
        assert_memory_equal(got.data, want[first], BATCH * sizeof want[0]);
    }
    bel_predictor_destroy(predictor);
    bel_estimator_destroy(estimator);
    bel_free(whole);
    bel_free(into);
    bel_free(path);
}

static void test_predictors_of_a_learner(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        char *folder = bel_strf("predicts-%zu", m);
        assert_same_predictions(&models[m], folder);
        bel_free(folder);
    }
    const model averaged = {
        "dnn", {{"hidden_units", "16"}, {"moving_average_decay", "0.9"}}, false};
    assert_same_predictions(&averaged, "averaged");
}

// Errors in a batch are reported, and nothing has changed.
static void test_errors_leave_the_model_as_it_was(void **state)
{
    (void)state;
    static float huge[BATCH * SIZE], holes[BATCH * SIZE];
    const model m = {"dnn", {{"hidden_units", "16"}, {"optimizer", "momentum"}}, false};
    char before[BEL_RESULT_TEXT], after[BEL_RESULT_TEXT], *path = export_training(&m, "errors");
    char *into = bel_path_join(bel_test_own_folder(), "after");
    int64_t wrong[BATCH] = {3, 10};
    bel_learner *learner;
    const bel_tensor x = {BEL_DTYPE_F32, BEL_SHAPE(BATCH, SIZE), data.images};
    const bel_tensor label = {BEL_DTYPE_I64, BEL_SHAPE(BATCH), data.labels};
    const bel_learner_options many = {.size = sizeof many, .threads = 2000};
    const bel_learner_options unsized = {.threads = 2}, fast = {sizeof fast, .learning_rate = NAN};
    BEL_ASSERT_FAILS(bel_learner_load(path, &many, &learner), BEL_INVALID_ARGUMENT, "threads");
    BEL_ASSERT_FAILS(bel_learner_load(path, &unsized, &learner), BEL_INVALID_ARGUMENT, "sizeof");
    BEL_ASSERT_FAILS(bel_learner_load(path, &fast, &learner), BEL_INVALID_ARGUMENT, "rate");
    BEL_ASSERT_OK(bel_learner_load(path, NULL, &learner));
    assert_int_equal(bel_learner_find_input(learner, "x"), 0);
    assert_int_equal(bel_learner_find_input(learner, "label"), -1);
    assert_int_equal(bel_learner_find_label(learner, "label"), 0);
    assert_int_equal(bel_learner_label_count(learner), 1);
    assert_string_equal(bel_learner_label_port(learner, 0).name, "label");
    BEL_ASSERT_OK(bel_learner_step(learner, &x, &label, NULL));
    BEL_ASSERT_OK(bel_learner_save(learner, into, before));
    const struct {
        bel_tensor x, label;
        bel_code code;
        const char *says;
    } bad[] = {
        {{BEL_DTYPE_F32, BEL_SHAPE(BATCH, 32), data.images}, label, BEL_INVALID_ARGUMENT, "\"x\""},
        {{BEL_DTYPE_F64, BEL_SHAPE(BATCH, SIZE), data.images}, label, BEL_INVALID_ARGUMENT, "f64"},
        {{BEL_DTYPE_F32, BEL_SHAPE(0, SIZE), data.images},
         label,
         BEL_INVALID_ARGUMENT,
         "one example"},
        {{BEL_DTYPE_F32, BEL_SHAPE(5, SIZE), data.images},
         label,
         BEL_INVALID_ARGUMENT,
         "expected 5 in dimension 0"},
        {x, {BEL_DTYPE_I64, BEL_SHAPE(BATCH), NULL}, BEL_INVALID_ARGUMENT, "no elements"},
        {x, {BEL_DTYPE_I64, BEL_SHAPE(BATCH), wrong}, BEL_OUT_OF_RANGE, "10"},
        {{BEL_DTYPE_F32, BEL_SHAPE(BATCH, SIZE), huge}, label, BEL_ABORTED, "loss is not finite"},
        {{BEL_DTYPE_F32, BEL_SHAPE(BATCH, SIZE), holes},
         label,
         BEL_INVALID_ARGUMENT,
         "an element is not finite"},
        {x,
         {BEL_DTYPE_F32, BEL_SHAPE(BATCH), data.labels},
         BEL_INVALID_ARGUMENT,
         "label \"label\""},
    };
    for (int i = 0; i < BATCH * SIZE; i++) {
        huge[i] = 3e38F;
        holes[i] = i == 70 ? NAN : 0.5F; // Relu would turn it into 0
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(bel_learner_step(learner, &bad[i].x, &bad[i].label, NULL), bad[i].code,
                         bad[i].says);
    assert_int_equal(bel_learner_step_count(learner), FIRST + 1);
    BEL_ASSERT_OK(bel_learner_save(learner, into, after));
    assert_string_equal(after, before);
    bel_learner_destroy(learner);
    bel_free(into);
    bel_free(path);
}

// Only `keep` checkpoints stay. The newest one counts, or the named one.
static void test_checkpoints(void **state)
{
    (void)state;
    char *path = export_training(&models[1], "checkpoints"), *first = NULL;
    for (int keep = -1; keep <= 2; keep++) {
        const bel_learner_options options = {.size = sizeof options, .keep_checkpoint_max = keep};
        char *into = bel_strf("%s-%d", path, keep + 1);
        bel_learner *learner;
        int64_t *steps;
        size_t count;
        BEL_ASSERT_OK(bel_learner_load(path, &options, &learner));
        for (int64_t s = FIRST; s < FIRST + 8; s++) {
            BEL_ASSERT_OK(step(learner, s, NULL));
            BEL_ASSERT_OK(bel_learner_save(learner, into, NULL));
        }
        bel_learner_destroy(learner);
        BEL_ASSERT_OK(bel_ckpt_list(into, &steps, &count));
        assert_int_equal(count, keep < 0 ? 8 : keep == 0 ? 5 : (size_t)keep);
        assert_int_equal(steps[count - 1], FIRST + 8);
        bel_free(steps);
        if (keep == -1) {
            first = into;
        } else {
            bel_free(into);
        }
    }
    // a saved checkpoint stays, even with five newer ones
    const bel_learner_options plain = {.size = sizeof plain};
    bel_learner *learner;
    BEL_ASSERT_OK(bel_learner_load(path, &plain, &learner));
    BEL_ASSERT_OK(step(learner, FIRST, NULL));
    BEL_ASSERT_OK(bel_learner_save(learner, first, NULL));
    bel_learner_destroy(learner);
    char *saved = bel_strf("%s/ckpt-%08d", first, FIRST + 1);
    assert_true(bel_file_exists(saved));
    bel_free(saved);
    char *named = bel_strf("%s/ckpt-%08d", first, FIRST + 8);
    const bel_learner_options of_folder = {.size = sizeof of_folder, .checkpoint = first};
    const bel_learner_options of_step = {.size = sizeof of_step, .checkpoint = named};
    BEL_ASSERT_OK(bel_learner_load(path, &of_folder, &learner));
    assert_int_equal(bel_learner_step_count(learner), FIRST + 8);
    bel_learner_destroy(learner);
    BEL_ASSERT_OK(bel_learner_load(path, &of_step, &learner));
    assert_int_equal(bel_learner_step_count(learner), FIRST + 8);
    bel_learner_destroy(learner);
    bel_free(named);
    bel_free(first);
    bel_free(path);
}

// Checkpoints of another training fit the graph, but are refused: other rates, slots.
static void test_another_training(void **state)
{
    (void)state;
    const model ours = {"dnn", {{"hidden_units", "16"}, {"optimizer", "sgd"}}, false};
    const model theirs = {"dnn", {{"hidden_units", "16"}, {"optimizer", "adam"}}, false};
    char *path = export_training(&ours, "ours"), *other = export_training(&theirs, "theirs");
    const bel_learner_options options = {.size = sizeof options, .checkpoint = other};
    bel_learner *learner;
    BEL_ASSERT_FAILS(bel_learner_load(path, &options, &learner), BEL_FAILED_PRECONDITION,
                     "param.optimizer was adam and is sgd");
    bel_free(other);
    // A setting of only one side counts, too.
    const model clipped = {
        "dnn", {{"hidden_units", "16"}, {"optimizer", "sgd"}, {"clip_norm", "0.1"}}, false};
    other = export_training(&clipped, "clipped");
    const bel_learner_options both = {.size = sizeof both, .checkpoint = other};
    BEL_ASSERT_FAILS(bel_learner_load(path, &both, &learner), BEL_FAILED_PRECONDITION,
                     "clip_norm was 0.1 and is not set");
    const bel_learner_options back = {.size = sizeof back, .checkpoint = path};
    BEL_ASSERT_FAILS(bel_learner_load(other, &back, &learner), BEL_FAILED_PRECONDITION,
                     "clip_norm was not set and is 0.1");
    bel_free(other);
    bel_free(path);
}

// Export refuses an estimator whose parameters differ from the checkpoint's.
static void test_export_compares(void **state)
{
    (void)state;
    const model ours = {"dnn", {{"hidden_units", "16"}, {"clip_norm", "0.1"}}, false};
    const model less = {"dnn", {{"hidden_units", "16"}}, false};
    const bel_export_options options = {.size = sizeof options, .training = true};
    char *path = export_training(&ours, "compared"), *other = bel_strf("%s-other", path);
    bel_estimator *estimator = make_estimator(&less, "compared", 1);
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, &options, other), BEL_FAILED_PRECONDITION,
                     "clip_norm was 0.1 and is not set");
    assert_false(bel_file_exists(other));
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, &options, path), BEL_ALREADY_EXISTS, "new folder");
    bel_estimator_destroy(estimator);
    bel_free(other);
    bel_free(path);
}

// The schedule ends with the complete training. After that only an explicit rate changes weights.
static void test_a_rate_of_its_own(void **state)
{
    (void)state;
    const model m = {"linear",
                     {{"optimizer", "sgd"},
                      {"learning_rate", "0.5"},
                      {"schedule", "cosine"},
                      {"decay_steps", "3"}},
                     false};
    char before[BEL_RESULT_TEXT], after[BEL_RESULT_TEXT], *path = export_training(&m, "ended");
    char *into = bel_path_join(bel_test_own_folder(), "later");
    for (int own = 0; own < 2; own++) {
        const bel_learner_options options = {.size = sizeof options, .learning_rate = own * 0.25};
        bel_learner *learner;
        BEL_ASSERT_OK(bel_learner_load(path, &options, &learner));
        BEL_ASSERT_OK(bel_learner_save(learner, into, before));
        BEL_ASSERT_OK(step(learner, FIRST, NULL));
        BEL_ASSERT_OK(bel_learner_save(learner, into, after));
        assert_int_equal(strcmp(before, after) != 0, own);
        bel_learner_destroy(learner);
    }
    bel_free(into);
    bel_free(path);
}

// A learner continues a checkpoint of three replicas as one replica. A training that may do the
// same (allow_changes) has the same bits. Its blocks follow those that the three have read.
static void test_replicas_become_one(void **state)
{
    (void)state;
    const model m = models[8]; // with tables
    const bel_export_options options = {.size = sizeof options, .training = true};
    char want[BEL_RESULT_TEXT], got[BEL_RESULT_TEXT];
    char *path = bel_path_join(bel_test_own_folder(), "three.learner");
    bel_estimator *three = make_estimator(&m, "three", 3);
    train(three, &m, FIRST, NULL);
    BEL_ASSERT_OK(bel_export(three, NULL, &options, path));
    bel_estimator_destroy(three);
    bel_learner *learner;
    BEL_ASSERT_OK(bel_learner_load(path, NULL, &learner));
    for (int64_t s = 0; s < LAST - FIRST; s++)
        BEL_ASSERT_OK(step(learner, 3 * FIRST + s, NULL));
    BEL_ASSERT_OK(bel_learner_save(learner, path, got));
    bel_learner_destroy(learner);
    allow_changes = true;
    bel_estimator *one = make_estimator(&m, "three", 1);
    allow_changes = false;
    train(one, &m, LAST, want);
    assert_string_equal(got, want);
    bel_estimator_destroy(one);
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_every_model_learns_the_same_bits),
        BEL_TEST_IN_FOLDER(test_every_optimizer_learns_the_same_bits),
        BEL_TEST_IN_FOLDER(test_rules_of_tables),
        BEL_TEST_IN_FOLDER(test_life_of_rows),
        BEL_TEST_IN_FOLDER(test_the_last_batch_is_smaller),
        BEL_TEST_IN_FOLDER(test_bf16),
        BEL_TEST_IN_FOLDER(test_a_training_goes_on_where_a_learner_ends),
        BEL_TEST_IN_FOLDER(test_predictors_of_a_learner),
        BEL_TEST_IN_FOLDER(test_errors_leave_the_model_as_it_was),
        BEL_TEST_IN_FOLDER(test_checkpoints),
        BEL_TEST_IN_FOLDER(test_replicas_become_one),
        BEL_TEST_IN_FOLDER(test_another_training),
        BEL_TEST_IN_FOLDER(test_export_compares),
        BEL_TEST_IN_FOLDER(test_a_rate_of_its_own),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
