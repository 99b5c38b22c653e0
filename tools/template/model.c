/// @NAME@: classifies points by their ring of a target, from lines `x,y,ring`.
///
/// A package has a model function and, if the command's flags for CSV and IDX files are not enough,
/// an input function; every process of a job calls both. Adapt them to your model:
/// <belfry/model.h> describes the fields that a model function sets, <belfry/ops.h> the operations,
/// <belfry/dataset.h> the sources of records.
#include <belfry/belfry.h>

enum { RINGS = 3 };

// [n, 2] -> scores [n, RINGS] by a hidden layer.
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    int64_t units = (int64_t)bel_context_param_number(context, "units", 0);
    bel_value *hidden =
        bel_relu(g, bel_dense(g, bel_context_feature(context, "x"), units, "hidden"));
    bel_value *scores = bel_dense(g, hidden, RINGS, "scores");
    bel_predictions_set(spec, bel_softmax(g, scores));

    bel_value *rings = bel_context_labels(context); // NULL in PREDICT
    if (rings != NULL) {
        bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, scores, rings)));
        bel_metric_accuracy(context, spec, "accuracy", rings, bel_arg_max(g, scores, 1), NULL);
    }
    bel_optimizer optimizer = {.size = sizeof optimizer};
    bel_context_optimizer(context, &optimizer);
    bel_optimizer_use(spec, NULL, &optimizer); // --optimizer, --learning_rate …
    return NULL;
}

// --train_files in TRAIN, else --eval_files: one file each.
static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)user;
    bool training = mode == BEL_MODE_TRAIN;
    const char *flag = training ? "train_files" : "eval_files";
    const char *path = bel_estimator_param(estimator, flag, NULL);
    int64_t batch_size, epochs;
    if (path == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is needed: a CSV file", flag);
    BEL_TRY(bel_estimator_param_int(estimator, training ? "train_batch_size" : "eval_batch_size",
                                    64, &batch_size));
    BEL_TRY(bel_estimator_param_int(estimator, "num_epochs", 0, &epochs));

    const bel_csv_options csv = {.size = sizeof csv,
                                 .paths = &path,
                                 .path_count = 1,
                                 .label_column = mode == BEL_MODE_PREDICT ? NULL : "ring",
                                 .class_count = RINGS};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    if (training) {
        bel_dataset_shuffle(data, 0, 1);
        bel_dataset_repeat(data, epochs > 0 ? epochs : BEL_REPEAT_FOREVER);
    }
    bel_dataset_batch(data, batch_size);
    *out_dataset = data;
    return NULL;
}

// Flags of this package: parameters of the same names, stored in every checkpoint.
static const bel_package_flag flags[] = {{.name = "units",
                                          .kind = BEL_FLAG_INT,
                                          .otherwise = "32",
                                          .accepts = "[1, 4096]",
                                          .help = "Size of the hidden layer."}};

BEL_PACKAGE(.name = "@NAME@", .description = "rings of a target", .model_fn = model_fn,
            .input_fn = input_fn, .flags = flags, .flag_count = 1)
