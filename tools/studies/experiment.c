// Verb experiment batch_norm: repeats a notebook's experiment on distributed batch normalization in
// TensorFlow, with Belfry's. 8 replicas read batches of 32 from normal numbers [101 · 256, 64], in
// order: 100 steps of training and one of inference, with momentum 0.99 and epsilon 0.001. Their
// results are compared with one layer that reads the 256 rows at once, and the differences with
// those of the notebook.
//
// All layers are in one model function, which bel_train runs with a tower for each replica:
//
//   regular  normalizes the gathered rows of all replicas, so each replica has the whole layer
//   local    each replica keeps separate moving statistics (BEL_VARIABLE_REPLICA_MEAN), and
//            their mean is kept beside them ("read")
//   mean     bel_batch_norm: moving statistics are the replicas' mean after each step
//   sync     BEL_STATISTICS_SYNC; sums: the same by sums and sums of squares, as in TensorFlow
//
// For training outputs the largest difference so far is kept, for inference the last one. Windows
// come from a simulation of 200 seeds in C with floats. If a difference is only rounding, a smaller
// one is fine, too. A record is a whole batch of 32 rows, so that its shape is closed.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "command/results.h"
#include "command/verbs.h"

enum { REPLICAS = 8, BATCH = 32, CHANNELS = 64, STEPS = 100, BATCHES = (STEPS + 1) * REPLICAS };

static const double momentum = 0.99, epsilon = 1e-3;

// --- The model -----------------------------------------------------------------------------------

static bel_value *experiment_layer(bel_graph *g, bel_value *x, const char *name, bool training)
{
    const bel_batch_norm_options options = {.size = sizeof options,
                                            .training = training,
                                            .name = name,
                                            .momentum = momentum,
                                            .epsilon = epsilon,
                                            .statistics = name[0] == 's' ? BEL_STATISTICS_SYNC
                                                                         : BEL_STATISTICS_LOCAL,
                                            .sum_formula = strcmp(name, "sums") == 0};
    return bel_batch_norm_with(g, x, &options);
}

static bel_value *experiment_state(bel_graph *g, const char *name, const bel_shape *shape,
                                   double start, bel_variable_kind kind)
{
    const bel_initializer initializer = {.kind = BEL_INIT_CONSTANT, .value = start};
    return bel_variable(g, name, shape, initializer, kind);
}

// Adds a layer with separate moving statistics for each replica. *out_inference: normalized by
// those of the earlier steps.
static bel_value *local_layer(bel_graph *g, bel_value *x, bel_value **out_inference)
{
    static float ones[CHANNELS], zeros[CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        ones[c] = 1;
    const bel_shape vector = BEL_SHAPE(CHANNELS);
    bel_value *scale = bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, vector, ones});
    bel_value *bias = bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, vector, zeros});
    bel_value *mean = experiment_state(g, "local/mean", &vector, 0, BEL_VARIABLE_REPLICA_MEAN),
              *new_mean;
    bel_value *variance =
        experiment_state(g, "local/variance", &vector, 1, BEL_VARIABLE_REPLICA_MEAN);
    bel_value *new_variance;
    bel_value *y = bel_batch_normalization(g, x, scale, bias, mean, variance, epsilon, momentum,
                                           true, &new_mean, &new_variance);
    *out_inference = bel_batch_normalization(g, x, scale, bias, mean, variance, epsilon, momentum,
                                             false, NULL, NULL);
    bel_assign_state(g, mean, new_mean);
    bel_assign_state(g, variance, new_variance);
    bel_assign_state(g, experiment_state(g, "read/mean", &vector, 0, BEL_VARIABLE_STATE_MEAN),
                     new_mean);
    bel_assign_state(g, experiment_state(g, "read/variance", &vector, 1, BEL_VARIABLE_STATE_MEAN),
                     new_variance);
    return y;
}

// Records the largest |a - b| of all replicas; if `kept`, of all steps.
static void experiment_note(bel_graph *g, const char *name, bel_value *a, bel_value *b, bool kept)
{
    bel_value *most = bel_reduce_max(g, bel_abs(g, bel_sub(g, a, b)), NULL, 0, false);
    bel_value *variable = experiment_state(g, name, &BEL_SHAPE(1), 0, BEL_VARIABLE_STATE_MEAN);
    most = bel_reshape(g, bel_all_reduce(g, most, BEL_REDUCE_MAX), &BEL_SHAPE(1));
    bel_assign_state(g, variable, kept ? bel_max(g, variable, most) : most);
}

// Returns this replica's rows of a value that covers all replicas.
static bel_value *own_rows(bel_graph *g, bel_value *all)
{
    bel_value *parts = bel_reshape(g, all, &BEL_SHAPE(REPLICAS, BATCH, CHANNELS));
    return bel_gather(g, parts, bel_replica_id(g));
}

static bel_status *experiment_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    int64_t zero = 0;
    bel_value *first = bel_constant(g, &(bel_tensor){BEL_DTYPE_I64, bel_shape_scalar(), &zero});
    bel_value *x = bel_gather(g, bel_context_only_feature(context), first), *read;
    bel_value *all =
        bel_reshape(g, bel_all_gather(g, x), &BEL_SHAPE((int64_t)REPLICAS * BATCH, CHANNELS));
    bel_value *regular = own_rows(g, experiment_layer(g, all, "regular", true));
    bel_value *regular_read = own_rows(g, experiment_layer(g, all, "regular", false));
    experiment_note(g, "training/local", regular, local_layer(g, x, &read), true);
    experiment_note(g, "inference/local", regular_read, read, false);
    static const char *const names[] = {"mean", "sync", "sums"};
    for (int i = 0; i < 3; i++) {
        char name[32];
        bel_value *y = experiment_layer(g, x, names[i], true);
        (void)bel_snprintf(name, sizeof name, "training/%s", names[i]);
        if (i > 0)
            experiment_note(g, name, regular, y, true); // the first one equals the local layer
        (void)bel_snprintf(name, sizeof name, "inference/%s", names[i]);
        experiment_note(g, name, regular_read, experiment_layer(g, x, names[i], false), false);
    }
    experiment_note(g, "inference/copy", regular_read, experiment_layer(g, x, "regular", false),
                    false);
    const bel_initializer start = {.kind = BEL_INIT_ZEROS}; // the smallest variable to train
    bel_value *w = bel_variable(g, "w", &BEL_SHAPE(1), start, BEL_VARIABLE_TRAINABLE);
    bel_value *loss = bel_mean(g, w);
    bel_loss_set(spec, loss);
    bel_predictions_set(spec, loss);
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

// --- The run -------------------------------------------------------------------------------------

static float *make_numbers(uint64_t seed)
{
    const size_t count = (size_t)BATCHES * BATCH * CHANNELS;
    float *numbers = bel_xcalloc(count, sizeof *numbers);
    bel_rng_key key = bel_rng_key_make(seed, "experiment batch_norm", 0);
    for (size_t i = 0; i < count; i += 2) {
        double pair[2];
        bel_rng_normal_pair(key, 0, i / 2, pair);
        numbers[i] = (float)pair[0];
        numbers[i + 1] = (float)pair[1];
    }
    return numbers;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    const bel_memory_field field = {"x",
                                    {BEL_DTYPE_F32, BEL_SHAPE(BATCHES, BATCH, CHANNELS), user}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_batch(*out_dataset, 1);
    return NULL;
}

// Resumes in `folder` and trains up to that step.
static bel_status *experiment_train(const char *folder, float *numbers, int64_t steps)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_gpus = REPLICAS;
    config.num_threads = 1;
    config.report = false;
    config.log_step_count_steps = 0;
    config.save_summary_steps = 0;
    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    BEL_TRY(bel_estimator_create(experiment_model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = numbers, .max_steps = steps};
    bel_status *status = bel_train(estimator, &spec, &result);
    bel_estimator_destroy(estimator);
    return status;
}

// --- Results -------------------------------------------------------------------------------------

// Comparisons, in the order of the notebook: description, its number there, and the window.
#define ROWS(X)                                                                                    \
    X(TRAINING_LOCAL, "training, each replica by its batch", 1.4629191, 1.32, 1.87)                \
    X(INFERENCE_LOCAL, "inference, each replica by its moving statistics", 0.09319067, 0.076,      \
      0.147)                                                                                       \
    X(INFERENCE_MEAN, "inference, by the mean of the moving statistics", NAN, 0.032, 0.046)        \
    X(MEAN_LOCAL, "moving mean", 3.1432137e-09, 0, 8.4e-9)                                         \
    X(VARIANCE_LOCAL, "moving variance", 0.019875884, 0.0185, 0.0211)                              \
    X(AGGREGATION, "moving variance, mean of the replicas' and as it is read", 0, 0, 0)            \
    X(TRAINING_SYNC, "sync: training", 1.9073486e-06, 0, 2.4e-6)                                   \
    X(INFERENCE_SYNC, "sync: inference", 7.1525574e-07, 0, 9.5e-7)                                 \
    X(MEAN_SYNC, "sync: moving mean", 4.4237822e-09, 0, 7.5e-9)                                    \
    X(VARIANCE_SYNC, "sync: moving variance", 2.9802322e-07, 0, 4.8e-7)                            \
    X(TRAINING_SUMS, "sync by sums: training", NAN, 0, 2.4e-6)                                     \
    X(INFERENCE_SUMS, "sync by sums: inference", NAN, 0, 9.5e-7)                                   \
    X(MEAN_SUMS, "sync by sums: moving mean", NAN, 0, 7.5e-9)                                      \
    X(VARIANCE_SUMS, "sync by sums: moving variance", NAN, 0, 4.8e-7)                              \
    X(INFERENCE_COPY, "inference, moving statistics of the one in all replicas", 4.7683716e-07, 0, \
      1e-6)

enum {
#define X(id, text, seed, low, high) id,
    ROWS(X)
#undef X
        ROW_COUNT
};

typedef struct row {
    const char *text;
    double seed, low, high; // seed NAN: the notebook does not have it
} row;

static const row rows[] = {
#define X(id, text, seed, low, high) {text, seed, low, high},
    ROWS(X)
#undef X
};

// Computes the largest difference of two vectors [CHANNELS] of a checkpoint.
static bel_status *differ(const bel_checkpoint *from, const char *a, const char *b, double *out)
{
    float x[CHANNELS], y[CHANNELS];
    BEL_TRY(bel_checkpoint_read(from, a, x, sizeof x));
    BEL_TRY(bel_checkpoint_read(from, b, y, sizeof y));
    *out = 0;
    for (int c = 0; c < CHANNELS; c++)
        *out = fmax(*out, fabs((double)x[c] - (double)y[c]));
    return NULL;
}

// Adds the replicas' variances by the tree, in the order in which the job adds them on reading.
static bel_status *check_aggregation(const bel_checkpoint *from, double *out)
{
    float own[REPLICAS][CHANNELS], read[CHANNELS];
    BEL_TRY(bel_checkpoint_read(from, "local/variance", own, sizeof own));
    BEL_TRY(bel_checkpoint_read(from, "read/variance", read, sizeof read));
    *out = 0;
    for (int c = 0; c < CHANNELS; c++) {
        for (int stride = 1; stride < REPLICAS; stride *= 2)
            for (int r = 0; r + stride < REPLICAS; r += 2 * stride)
                own[r][c] = own[r][c] + own[r + stride][c];
        *out = fmax(*out, fabs((double)(own[0][c] / REPLICAS) - (double)read[c]));
    }
    return NULL;
}

static bel_status *read_number(const bel_checkpoint *from, const char *name, double *out)
{
    float number;
    BEL_TRY(bel_checkpoint_read(from, name, &number, sizeof number));
    *out = (double)number;
    return NULL;
}

static bel_status *read_training(const char *folder, double *out)
{
    bel_checkpoint *from;
    BEL_TRY(bel_checkpoint_open(folder, &from));
    bel_status *status;
    BEL_TRY_GOTO(status, done, read_number(from, "training/local", &out[TRAINING_LOCAL]));
    BEL_TRY_GOTO(status, done, read_number(from, "training/sync", &out[TRAINING_SYNC]));
    BEL_TRY_GOTO(status, done, read_number(from, "training/sums", &out[TRAINING_SUMS]));
    BEL_TRY_GOTO(status, done, differ(from, "regular/mean", "read/mean", &out[MEAN_LOCAL]));
    BEL_TRY_GOTO(status, done, differ(from, "regular/mean", "sync/mean", &out[MEAN_SYNC]));
    BEL_TRY_GOTO(status, done, differ(from, "regular/mean", "sums/mean", &out[MEAN_SUMS]));
    BEL_TRY_GOTO(status, done,
                 differ(from, "regular/variance", "read/variance", &out[VARIANCE_LOCAL]));
    BEL_TRY_GOTO(status, done,
                 differ(from, "regular/variance", "sync/variance", &out[VARIANCE_SYNC]));
    BEL_TRY_GOTO(status, done,
                 differ(from, "regular/variance", "sums/variance", &out[VARIANCE_SUMS]));
    BEL_TRY_GOTO(status, done, check_aggregation(from, &out[AGGREGATION]));
done:
    bel_checkpoint_close(from);
    return status;
}

static bel_status *read_inference(const char *folder, double *out)
{
    static const struct {
        const char *name;
        int row;
    } numbers[] = {{"inference/local", INFERENCE_LOCAL},
                   {"inference/mean", INFERENCE_MEAN},
                   {"inference/sync", INFERENCE_SYNC},
                   {"inference/sums", INFERENCE_SUMS},
                   {"inference/copy", INFERENCE_COPY}};
    bel_checkpoint *from;
    BEL_TRY(bel_checkpoint_open(folder, &from));
    bel_status *status = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && status == NULL; i++)
        status = read_number(from, numbers[i].name, &out[numbers[i].row]);
    bel_checkpoint_close(from);
    return status;
}

static bel_status *experiment_measure(const char *folder, uint64_t seed, double *out)
{
    float *numbers = make_numbers(seed);
    bel_status *status = experiment_train(folder, numbers, STEPS);
    if (status == NULL) status = read_training(folder, out);
    if (status == NULL) status = experiment_train(folder, numbers, STEPS + 1);
    if (status == NULL) status = read_inference(folder, out);
    bel_free(numbers);
    return status;
}

// Returns how many numbers are outside.
static int experiment_print(bel_str *out, const double *numbers, uint64_t seed, bool json)
{
    int outside = 0;
    if (json) {
        bel_str_printf(out, "{\"seed\":%llu,\"rows\":[", (unsigned long long)seed);
    } else {
        bel_str_printf(out, "%-58s %-12s %-12s %s\n", "largest difference from one replica of 256",
                       "here", "notebook", "window");
    }
    for (int i = 0; i < ROW_COUNT; i++) {
        const row *r = &rows[i];
        bool inside = numbers[i] >= r->low && numbers[i] <= r->high; // false for NaN
        char seed_text[32] = "", window[64];
        outside += !inside;
        if (!isnan(r->seed)) (void)bel_snprintf(seed_text, sizeof seed_text, "%.8g", r->seed);
        (void)bel_snprintf(window, sizeof window, "%g to %g", r->low, r->high);
        if (json) {
            bel_str_printf(out,
                           "%s{\"name\":\"%s\",\"here\":%.9g,\"notebook\":%s,\"low\":%g,"
                           "\"high\":%g,\"inside\":%s}",
                           i > 0 ? "," : "", r->text, numbers[i],
                           seed_text[0] == '\0' ? "null" : seed_text, r->low, r->high,
                           inside ? "true" : "false");
        } else {
            bel_str_printf(out, "%-58s %-12.8g %-12s %s%s\n", r->text, numbers[i], seed_text,
                           window, inside ? "" : "  OUTSIDE");
        }
    }
    if (json) bel_str_printf(out, "],\"inside\":%s}\n", outside == 0 ? "true" : "false");
    return outside;
}

bel_status *bel_verb_experiment_batch_norm(const bel_options *options, int *out_exit_code)
{
    double numbers[ROW_COUNT] = {0};
    uint64_t seed = (uint64_t)bel_options_int(options, "seed");
    const char *base = getenv("TMPDIR");
    char *folder =
        bel_path_join(base != NULL && base[0] != '\0' ? base : "/tmp", "belfry-experiment-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        bel_status *status = bel_file_error(errno, "create folder", folder);
        bel_free(folder);
        return status;
    }
    bel_status *status = experiment_measure(folder, seed, numbers);
    bel_status_ignore(bel_dir_remove(folder)); // a temporary folder
    bel_free(folder);
    if (status != NULL) return status;
    bel_str text = {0};
    bool json = bel_options_bool(options, "json");
    if (experiment_print(&text, numbers, seed, json) > 0) *out_exit_code = 1;
    status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}
