/// Classifier of five spoken languages: a model, an input function and their settings. A CSV file
/// names sound files, which become padded batches for a sequence classifier.
///
/// ```
/// x [n, t, 26] log-mel, length [n] ── gru "sounds" ── gru "words" [n, t, units] ──┐
/// logits [n, 5] ── dense "logits" ── dropout ── mean and deviation over time ─────┘
/// ```
///
/// Sounds have different lengths: a batch is padded to its longest one, and frames after a sound's
/// length are ignored.
#include <belfry/belfry.h>

enum { LANGUAGES = 5, SAMPLE_RATE = 8000, BANDS = 26 };

/// Mean and deviation over the time of each sound: h [n, t, units], zeros after lengths [n] -> [n,
/// 2 · units].
static bel_value *pool(bel_graph *g, bel_value *h, bel_value *lengths)
{
    const int64_t time = 1;
    const bel_shape column = BEL_SHAPE(BEL_DIM_BATCH, 1);
    bel_value *count = bel_reshape(g, bel_cast(g, lengths, BEL_DTYPE_F32), &column);
    bel_value *mean = bel_div(g, bel_reduce_sum(g, h, &time, 1, false), count);
    bel_value *square = bel_div(g, bel_reduce_sum_square(g, h, &time, 1, false), count);
    bel_value *variance = bel_relu(g, bel_sub(g, square, bel_mul(g, mean, mean)));
    bel_value *small = bel_scalar(g, BEL_DTYPE_F32, 1e-4);
    bel_value *parts[] = {mean, bel_sqrt(g, bel_add(g, variance, small))};
    return bel_concat(g, parts, 2, 1);
}

static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    int64_t units = (int64_t)bel_context_param_number(context, "units", 48);
    double rate = bel_context_param_number(context, "learning_rate", 0.003);
    double ratio = bel_context_param_number(context, "dropout", 0.2);
    int64_t steps = (int64_t)bel_context_param_number(context, "decay_steps", 1500);
    if (units < 1 || steps < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected units >= 1 and decay_steps >= 1");
    }

    // Logarithms of power lie around -4 and spread by about 5.
    bel_value *x = bel_context_feature(context, "x");
    bel_value *lengths = bel_context_feature(context, BEL_LENGTH_FIELD);
    x = bel_add(g, x, bel_scalar(g, BEL_DTYPE_F32, 4));
    x = bel_mul(g, x, bel_scalar(g, BEL_DTYPE_F32, 0.2));
    bel_value *sounds = bel_gru(g, x, lengths, units, "sounds", NULL);
    bel_value *words = bel_gru(g, sounds, lengths, units, "words", NULL); // zeros after a length
    bel_value *heard = pool(g, words, lengths);
    if (bel_context_mode(context) == BEL_MODE_TRAIN) heard = bel_dropout(g, heard, ratio);
    bel_value *logits = bel_dense(g, heard, LANGUAGES, "logits");
    bel_predictions_set(spec, bel_softmax(g, logits));

    bel_value *labels = bel_context_labels(context);
    if (labels != NULL) {
        bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, logits, labels)));
        bel_metric_accuracy(context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
    }
    bel_optimizer_use(
        spec, NULL,
        &(bel_optimizer){
            .size = sizeof(bel_optimizer),
            .kind = BEL_OPTIMIZER_ADAM,
            .learning_rate = rate,
            .schedule = {.kind = BEL_SCHEDULE_COSINE, .decay_steps = steps, .alpha = 0.01}});
    return NULL;
}

/// Reads CSV files `path,label` from --train_files and --eval_files: one each.
static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    static const bel_csv_column columns[] = {{"path", BEL_DTYPE_STRING}};
    (void)user;
    bool train = mode == BEL_MODE_TRAIN;
    const char *path = bel_estimator_param(estimator, train ? "train_files" : "eval_files", NULL);
    int64_t batch_size;
    BEL_TRY(bel_estimator_param_int(estimator, train ? "train_batch_size" : "eval_batch_size", 8,
                                    &batch_size));
    if (path == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a CSV file in --%s_files, got none",
                       train ? "train" : "eval");
    }
    const bel_csv_options csv = {.size = sizeof csv,
                                 .paths = &path,
                                 .path_count = 1,
                                 .columns = columns,
                                 .column_count = 1,
                                 .label_column = "label",
                                 .class_count = LANGUAGES};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    if (train) {
        bel_dataset_shuffle(data, 0, 1);
        bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    }
    bel_dataset_map_audio(data, &(bel_audio_options){.size = sizeof(bel_audio_options),
                                                     .sample_rate = SAMPLE_RATE,
                                                     .mel_count = BANDS,
                                                     .length_field = BEL_LENGTH_FIELD});
    bel_dataset_padded_batch(data, batch_size, &(bel_padded_shape){"x", BEL_SHAPE(-1, BANDS)}, 1);
    *out_dataset = data;
    return NULL;
}

BEL_PACKAGE(.name = "voices", .description = "which of five languages is spoken",
            .model_fn = model_fn, .input_fn = input_fn)
