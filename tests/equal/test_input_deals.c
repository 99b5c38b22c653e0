// Test that the result does not depend on which replica reads which part of a dataset, whatever its
// stages. The digest is the same for one worker of four towers, for two and four workers with other
// threads, and for a run that resumes in the middle of an epoch. By the audit, each run reads every
// record exactly once in each epoch. Each pipeline has stages whose order is no formula.
#include "support/bel_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "belfry/belfry.h"
#include "checkpoint/checkpoint.h"
#include "input/batch/audit.h"

enum { RECORDS = 230, WIDTH = 6, CLASSES = 3, BATCH = 7, STEPS = 23, PIPELINES = 6 };

typedef struct data {
    float x[RECORDS * WIDTH];
    int64_t label[RECORDS];
} data;

static bel_dataset *records(data *memory, int64_t first, int64_t count)
{
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(count, WIDTH), memory->x + first * WIDTH}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(count), memory->label + first}},
    };
    return bel_dataset_from_memory(fields, 2);
}

// --- Functions of the pipelines ------------------------------------------------------------------

static int64_t length_of(const bel_record *record)
{
    return *(const int64_t *)bel_record_get(record, BEL_LABEL_FIELD)->data;
}

static int64_t ask_length(void *user, const bel_record *record)
{
    (void)user;
    return length_of(record);
}

static int64_t count_parts(void *user, const bel_record *record)
{
    (void)user;
    return length_of(record);
}

static bel_status *make_part(void *user, bel_record *record, int64_t part, bool *out_skip)
{
    (void)user;
    float *x = bel_record_get(record, "x")->data;
    x[part] += 1;
    *out_skip = x[0] > 0.9f;
    return NULL;
}

static void make_at(int64_t place, int64_t epoch, bel_record *record)
{
    bel_shape scalar = bel_shape_scalar();
    float *x = bel_record_add(record, "x", BEL_DTYPE_F32, &BEL_SHAPE(WIDTH));
    for (int64_t i = 0; i < WIDTH; i++)
        x[i] = (float)((place * 31 + i * 17 + epoch) % 23) / 23;
    *(int64_t *)bel_record_add(record, BEL_LABEL_FIELD, BEL_DTYPE_I64, &scalar) = place % CLASSES;
}

static bel_status *begin(void *user, int64_t epoch, void **out_state)
{
    (void)user;
    int64_t *state = bel_xcalloc(2, sizeof *state);
    state[0] = epoch;
    *out_state = state;
    return NULL;
}

static bel_status *next(void *user, void *state, bel_record *record, bool *out_end)
{
    (void)user;
    int64_t *at = state;
    *out_end = at[1] == RECORDS;
    if (!*out_end) make_at(at[1]++, at[0], record);
    return NULL;
}

static void end(void *user, void *state)
{
    (void)user;
    bel_free(state);
}

// Makes one row of a window's numbers, with its last label.
static bel_status *flatten(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    const float *from = bel_record_get(record, "x")->data;
    int64_t label = ((const int64_t *)bel_record_get(record, BEL_LABEL_FIELD)->data)[1];
    bel_shape scalar = bel_shape_scalar();
    float *x = bel_record_add(record, "x", BEL_DTYPE_F32, &BEL_SHAPE(WIDTH));
    for (int i = 0; i < WIDTH; i++)
        x[i] = from[i] - from[WIDTH + i];
    *(int64_t *)bel_record_add(record, BEL_LABEL_FIELD, BEL_DTYPE_I64, &scalar) = label;
    return NULL;
}

// --- Pipelines -----------------------------------------------------------------------------------

static bel_dataset *halves(data *memory, int pipeline)
{
    bel_dataset *parts[] = {records(memory, 0, 80), records(memory, 80, RECORDS - 80)};
    bel_dataset_shuffle(parts[0], 0, 1);
    bel_dataset_shuffle(parts[1], 10, 2);
    if (pipeline == 1) return bel_dataset_interleave(parts, 2, 2, 3);
    return bel_dataset_sample(parts, (const double[]){2, 1}, 2, 200, 3);
}

static bel_dataset *pipeline_of(data *memory, int pipeline)
{
    static const bel_generator steps = {
        .size = sizeof steps, .begin = begin, .next = next, .end = end};
    bel_dataset *dataset = NULL;
    if (pipeline < 2) dataset = halves(memory, pipeline);
    if (pipeline == 2) {
        dataset = records(memory, 0, RECORDS);
        bel_dataset_shuffle_sliding(dataset, 40, 4);
    }
    if (pipeline == 3) {
        dataset = records(memory, 0, RECORDS);
        bel_dataset_shuffle(dataset, 0, 5);
        bel_dataset_bucket_by_length(dataset, ask_length, NULL, (const int64_t[]){1, 2}, 2);
    }
    if (pipeline == 4) {
        dataset = records(memory, 0, RECORDS);
        bel_dataset_flat_map(dataset, count_parts, make_part, NULL, NULL);
        bel_dataset_cache(dataset, NULL, 5000); // too small for all of them
        bel_dataset_shuffle(dataset, 0, 6);
    }
    if (pipeline == 5) {
        dataset = bel_dataset_from_generator(&steps, NULL, 0);
        bel_dataset_window(dataset, 2, 1, 3, true);
        bel_dataset_map(dataset, flatten, NULL, NULL);
    }
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    return dataset;
}

typedef struct run_input {
    data *memory;
    int pipeline, prefetch_threads;
} run_input;

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)mode, (void)estimator;
    const run_input *input = user;
    bel_dataset *dataset = pipeline_of(input->memory, input->pipeline);
    bel_dataset_batch(dataset, BATCH);
    bel_dataset_prefetch(dataset, 3, input->prefetch_threads);
    *out_dataset = dataset;
    return NULL;
}

// --- Runs ----------------------------------------------------------------------------------------

typedef struct deal {
    int workers;
    int towers[4];
    int prefetch_threads;
} deal;

static const deal deals[] = {{1, {4}, 1}, {2, {3, 1}, 3}, {4, {1, 1, 1, 1}, 2}};

static void train_to(data *memory, int pipeline, const deal *d, const char *folder, int64_t steps,
                     char digest[33])
{
    const bel_param params[] = {{"class_count", "3"}, {"learning_rate", "0.1"}};
    run_input input = {memory, pipeline, d->prefetch_threads};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_workers = d->workers;
    config.towers_of = d->towers;
    config.num_threads = 1;
    config.report = false;
    config.audit_input = true;
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("linear")->model_fn, &config, params, 2, &estimator));
    bel_train_spec train = {
        .size = sizeof train, .input_fn = input_fn, .input_user = &input, .max_steps = steps};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train(estimator, &train, &result));
    memcpy(digest, result.digest, 33);
    bel_estimator_destroy(estimator);
}

// All epochs but the last one are complete.
static void assert_audited(const char *folder)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    unsigned long long fingerprint;
    assert_int_equal(sscanf(bel_ckpt_setting(reader, "input"), "%llx", &fingerprint), 1);
    const bel_audit_scope scope = {.step = info->step,
                                   .segments = info->segments,
                                   .segment_count = info->segment_count,
                                   .fingerprint = fingerprint};
    char *notes = bel_path_join(folder, BEL_AUDIT_FOLDER);
    bel_audit_result result;
    BEL_ASSERT_OK(bel_audit_check(notes, &scope, &result));
    assert_int_equal(result.blocks, STEPS * 4);
    assert_true(result.epoch_count >= 2);
    for (int64_t e = 0; e + 1 < result.epoch_count; e++)
        assert_true(result.epochs[e].whole);
    bel_audit_result_deinit(&result);
    bel_free(notes);
    bel_ckpt_close(reader);
}

static void test_every_pipeline_in_every_deal(void **state)
{
    (void)state;
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    data *memory = bel_xcalloc(1, sizeof *memory);
    for (int i = 0; i < RECORDS; i++) {
        for (int j = 0; j < WIDTH; j++)
            memory->x[i * WIDTH + j] = (float)((i * 37 + j * 11) % 29) / 29;
        memory->label[i] = i * 7 % CLASSES;
    }
    char digests[PIPELINES][33], got[33];
    for (int p = 0; p < PIPELINES; p++) {
        for (size_t d = 0; d < sizeof deals / sizeof *deals; d++) {
            char *folder = bel_test_folder();
            // The second half runs in another deal.
            if (d > 0) train_to(memory, p, &deals[0], folder, STEPS / 2, got);
            train_to(memory, p, &deals[d], folder, STEPS, d == 0 ? digests[p] : got);
            if (d > 0) assert_string_equal(got, digests[p]);
            assert_audited(folder);
            bel_test_remove_folder(folder);
        }
        for (int other = 0; other < p; other++)
            assert_string_not_equal(digests[p], digests[other]);
    }
    bel_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_pipeline_in_every_deal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
