/// Click prediction: learns from lines `user,item,hour,clicked` with a table of users and one of
/// items. Users and items are any integers, without a fixed number of them.
///
/// ```
/// user ─ rows of table "user" [n, 8] ─┐ product, summed ──────────────(+)── logit ── sigmoid
/// item ─ rows of table "item" [n, 8] ─┘                                │
/// item ─ rows of table "popularity" [n, 1] ────────────────────────────┤
/// hour ─ dense "hour" ─────────────────────────────────────────────────┘
/// ```
///
/// usage: clicks TRAIN.csv EVAL.csv [EPOCHS] [--model_dir FOLDER] [flags of a run]
#include <stdio.h>
#include <stdlib.h>

#include <belfry/belfry.h>

static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *user = bel_context_feature(context, "user"); // I64 [n]
    bel_value *item = bel_context_feature(context, "item");
    bel_value *hour = bel_context_feature(context, "hour"); // F32 [n]
    const bel_initializer small = {.kind = BEL_INIT_NORMAL, .value = 0.1};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    const bel_shape column = BEL_SHAPE(BEL_DIM_BATCH, 1);
    const int64_t across = 1;

    bel_value *users = bel_embedding(g, "user", user, 8, small);
    bel_value *items = bel_embedding(g, "item", item, 8, small);
    bel_value *taste = bel_reduce_sum(g, bel_mul(g, users, items), &across, 1, true); // [n, 1]
    bel_value *popularity = bel_embedding(g, "popularity", item, 1, zeros);
    bel_value *by_hour = bel_dense(g, bel_reshape(g, hour, &column), 1, "hour");
    bel_value *logit = bel_add(g, bel_add(g, taste, popularity), by_hour);
    bel_predictions_set(spec, bel_sigmoid(g, logit));

    bel_value *labels = bel_context_labels(context); // I64 [n]
    if (labels != NULL) {
        bel_value *clicked = bel_reshape(g, bel_cast(g, labels, BEL_DTYPE_F32), &column);
        bel_value *losses = bel_sigmoid_cross_entropy(g, logit, clicked);
        bel_loss_set(spec, bel_mean(g, losses));
        bel_value *yes = bel_greater(g, logit, bel_scalar(g, BEL_DTYPE_F32, 0));
        bel_value *said = bel_cast(g, yes, BEL_DTYPE_F32);
        bel_metric_accuracy(context, spec, "accuracy", clicked, said, NULL);
    }
    // A row's gradient is small, since few examples of a batch name it, so its sum begins small,
    // too.
    const bel_optimizer adagrad = {.size = sizeof adagrad,
                                   .kind = BEL_OPTIMIZER_ADAGRAD,
                                   .learning_rate = 0.1,
                                   .initial_accumulator = 1e-6};
    bel_optimizer_use(spec, NULL, &adagrad);
    return NULL;
}

typedef struct files {
    const char *train, *eval;
    int64_t epochs;
} files;

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator;
    static const bel_csv_column columns[] = {
        {"user", BEL_DTYPE_I64}, {"item", BEL_DTYPE_I64}, {"hour", BEL_DTYPE_F32}};
    const files *f = user;
    const char *path = mode == BEL_MODE_TRAIN ? f->train : f->eval;
    const bel_csv_options csv = {.size = sizeof csv,
                                 .paths = &path,
                                 .path_count = 1,
                                 .columns = columns,
                                 .column_count = 3,
                                 .label_column = "clicked",
                                 .class_count = 2};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    if (mode == BEL_MODE_TRAIN) {
        bel_dataset_shuffle(data, 0, 1);
        bel_dataset_repeat(data, f->epochs);
    }
    bel_dataset_batch(data, 64);
    *out_dataset = data;
    return NULL;
}

// Parses a number of epochs; false if it is malformed.
static bool read_count(const char *text, int64_t *out)
{
    char *rest;
    *out = strtoll(text, &rest, 10);
    return rest != text && *rest == '\0' && *out > 0;
}

int main(int count, char **arguments)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.num_workers = 2; // in a cluster: overridden by its count
    bel_status *status = bel_run_config_flags(&config, &count, arguments);
    if (status == NULL) status = bel_refuse_flags(count, arguments);
    if (status != NULL) return bel_status_report(status);
    int64_t epochs = 5;
    if (count < 3 || count > 4 || (count == 4 && !read_count(arguments[3], &epochs))) {
        fprintf(stderr, "usage: clicks TRAIN.csv EVAL.csv [EPOCHS] [--model_dir FOLDER] [flags]\n");
        return 2;
    }
    files f = {arguments[1], arguments[2], epochs};

    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    const bel_train_spec train = {.size = sizeof train, .input_fn = input_fn, .input_user = &f};
    const bel_eval_spec eval = {.size = sizeof eval, .input_fn = input_fn, .input_user = &f};
    status = bel_estimator_create(model_fn, &config, NULL, 0, &estimator);
    if (status != NULL) return bel_status_report(status);
    int code = bel_run_job(estimator, &train, &eval, 1, &result);
    if (result.digest[0] != '\0') { // in the process that represents the job
        printf("loss %.4f, accuracy %.4f, digest %s\n", result.loss, result.metrics[0].value,
               result.digest);
    }
    bel_estimator_destroy(estimator);
    return code;
}
