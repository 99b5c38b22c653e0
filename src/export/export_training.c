// The exported step is that of a job with one replica. A trainable is made as in a worker, by the
// estimator's model function and parameters, for the checkpoint's fields and with its training
// settings. The settings are compared as on resume, to check that it is the same model. If a source
// scales a feature, the graph does.
#include "export/export_training.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arithmetic.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "checkpoint/share.h"
#include "export/export.h"
#include "export/export_folder.h"
#include "learner/training_file.h"
#include "model/feature_list.h"
#include "model/settings.h"
#include "onnx/graph_file.h"
#include "trainable/trainable.h"
#include "trainable/trainable_inner.h"

typedef struct training {
    const char *folder;
    bel_ckpt_reader *reader;
    bel_arena *arena;
    bel_feature_list fields;
    bel_estimator estimator; // copy of the given one, as a job of one replica
    int one;                 // number of towers and replicas
    void *zeros;             // memory of a record
    size_t zero_bytes;
    bel_trainable trainable;
    bel_input *predict_input;
    bel_built *predict;
    bel_str files; // entries of the signature's list
} training;

static const char *training_setting(const training *t, const char *name)
{
    return bel_ckpt_setting(t->reader, name);
}

static bool setting_is(const training *t, const char *name, const char *value)
{
    const char *is = training_setting(t, name);
    return is != NULL && strcmp(is, value) == 0;
}

// --- Graphs --------------------------------------------------------------------------------------

static bel_status *read_fields(training *t)
{
    const char *text = training_setting(t, BEL_SETTING_FEATURES),
               *folder = bel_ckpt_folder(t->reader);
    if (text != NULL) BEL_TRY(bel_feature_list_read(text, folder, t->arena, &t->fields));
    if (text != NULL && t->fields.has_labels) return NULL;
    return BEL_ERR(
        BEL_FAILED_PRECONDITION,
        "%s does not say what its %s are, since an earlier version saved it; hint: train "
        "it further by a step",
        folder, text == NULL ? "features" : "labels");
}

// Sets the place that determines the bits of a step with one replica.
static void training_place(training *t, const bel_estimator *given)
{
    t->estimator = *given;
    bel_run_config *config = &t->estimator.config;
    config->seed = bel_ckpt_reader_info(t->reader)->seed;
    config->precision =
        setting_is(t, BEL_SETTING_PRECISION, "bf16") ? BEL_PRECISION_BF16 : BEL_PRECISION_F32;
    config->mode = BEL_AGGREGATE_SYNC;
    config->scale_learning_rate = BEL_SCALE_NONE;
    config->elastic_rescale = config->drop_remainder = false;
    config->replicas_to_aggregate = 0;
    config->num_workers = config->parameter_server_count = 1;
    config->save_summary_steps = 0;
    config->model_dir = (char *)(uintptr_t)t->folder; // has no columns that would bind
    t->one = 1;
    t->estimator.towers_of = t->estimator.replicas_of = &t->one;
    t->estimator.replica_count = 1;
}

static bel_status *give_fields(void *user, const bel_estimator *estimator, bel_mode mode,
                               bel_dataset **out_dataset)
{
    (void)estimator;
    (void)mode;
    training *t = user;
    const char *text = training_setting(t, BEL_SETTING_BATCH);
    int64_t batch = text != NULL ? strtoll(text, NULL, 10) : 0;
    if (batch < 1)
        return BEL_ERR(BEL_DATA_LOSS, "%s: " BEL_SETTING_BATCH " is no number above 0",
                       bel_ckpt_folder(t->reader));
    return bel_feature_dataset(t->fields.fields, t->fields.is_label, t->fields.field_count, batch,
                               &t->zeros, &t->zero_bytes, out_dataset);
}

// Compares the settings that a step depends on. (Fields are the checkpoint's in any case, and
// unscaled here.)
static bel_status *training_compare(const training *t)
{
    bel_str list = {0};
    const bel_settings *settings = &t->trainable.settings;
    bel_settings_differences(t->reader, settings->names, settings->values, settings->count,
                             bel_setting_is_of_step, &list);
    if (list.length == 0) return NULL;
    bel_status *status = BEL_ERR(BEL_FAILED_PRECONDITION,
                                 "%s was trained with other settings than the estimator has: %s",
                                 bel_ckpt_folder(t->reader), list.text);
    bel_str_deinit(&list);
    return status;
}

static bel_status *make_training(training *t)
{
    const bel_train_spec spec = {.input_fn = give_fields, .input_user = t};
    BEL_TRY(bel_trainable_init(&t->trainable, &t->estimator, &spec));
    return training_compare(t);
}

static bel_status *make_prediction(training *t)
{
    void *zeros;
    size_t bytes;
    bel_dataset *dataset;
    BEL_TRY(
        bel_feature_dataset(t->fields.items, NULL, t->fields.count, 1, &zeros, &bytes, &dataset));
    bel_status *status = bel_input_open(dataset, NULL, &t->predict_input);
    bel_dataset_destroy(dataset);
    bel_pages_destroy(zeros, bytes);
    if (status != NULL) return status;
    return bel_model_build(&t->estimator, BEL_MODE_PREDICT, NULL, t->predict_input, 1, &t->predict);
}

// --- Files ---------------------------------------------------------------------------------------

static void take_bytes(void *context, const void *bytes, size_t count)
{
    bel_file_writer_write(context, bytes, count);
}

static bel_status *write_graph(training *t, const char *name, const bel_graph_file_source *source)
{
    uint64_t size;
    uint32_t crc32c;
    bel_file_writer *writer;
    char *path = bel_path_join(t->folder, name);
    bel_status *status = bel_file_writer_open(path, &writer);
    bel_free(path);
    if (status != NULL) return status;
    status = bel_graph_file_write(source, take_bytes, writer);
    if (status != NULL) {
        bel_file_writer_abandon(writer);
        return status;
    }
    BEL_TRY(bel_file_writer_finish(writer, &size, &crc32c));
    bel_str_printf(&t->files, "%s\n  {\"name\":\"%s\",\"size\":%llu,\"crc32c\":\"%08x\"}",
                   t->files.length > 0 ? "," : "", name, (unsigned long long)size, crc32c);
    return NULL;
}

// Scales by input of a graph whose first inputs are the fields.
static double *scales_of(const training *t, const bel_graph *graph, const double *fields, int count)
{
    double *scales = bel_arena_alloc(t->arena, (graph->input_count + 1) * sizeof *scales);
    for (size_t i = 0; i < graph->input_count; i++)
        scales[i] = (int)i < count ? fields[i] : 1;
    return scales;
}

static const char *name_of(const training *t, const char *kind, const char *name)
{
    char *whole = bel_strf("%s%s", kind, name);
    const char *kept = bel_arena_strdup(t->arena, whole);
    bel_free(whole);
    return kept;
}

static bel_status *write_training(training *t)
{
    const bel_graph *graph = t->trainable.built->graph;
    const bel_layout *layout = t->trainable.layout;
    bel_value *const *reports = bel_trainable_reports(&t->trainable, 0);
    size_t most = graph->variable_count + graph->lookup_count + 1;
    bel_onnx_result *results = bel_arena_alloc(t->arena, most * sizeof *results);
    bel_variable_kind *kinds =
        bel_arena_alloc(t->arena, (graph->variable_count + 1) * sizeof *kinds);
    int count = 0;
    results[count++] = (bel_onnx_result){BEL_TRAINING_LOSS, t->trainable.models->loss};
    for (size_t v = 0; v < graph->variable_count; v++) {
        kinds[v] = layout->variables[v].kind;
        if (reports[v] != NULL && kinds[v] != BEL_VARIABLE_FROZEN)
            results[count++] = (bel_onnx_result){
                name_of(t, BEL_TRAINING_REPORT, graph->variables[v].name), reports[v]};
    }
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_value *rows = reports[graph->variable_count + l];
        const char *input = graph->inputs[graph->lookups[l].rows].name;
        if (rows != NULL)
            results[count++] = (bel_onnx_result){name_of(t, BEL_TRAINING_ROWS, input), rows};
    }
    const bel_graph_file_source source = {
        .graph = graph,
        .results = results,
        .result_count = count,
        .kinds = kinds,
        .scales = scales_of(t, graph, t->fields.field_scales, t->fields.field_count)};
    return write_graph(t, BEL_TRAINING_GRAPH, &source);
}

static bel_status *write_prediction(training *t)
{
    const bel_graph *graph = t->predict->graph;
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    bel_onnx_result results[BEL_MAX_OUTPUTS + 1];
    int count = bel_spec_outputs(&t->predict->spec, outputs);
    for (int o = 0; o < count; o++)
        results[o] = (bel_onnx_result){outputs[o].name, outputs[o].value};
    const bel_graph_file_source source = {
        .graph = graph,
        .results = results,
        .result_count = count,
        .scales = scales_of(t, graph, t->fields.scales, t->fields.count)};
    return write_graph(t, BEL_TRAINING_PREDICTION, &source);
}

// --- The signature -------------------------------------------------------------------------------

static void write_ports(const training *t, bool labels, bel_str *out)
{
    bool first = true;
    for (int f = 0; f < t->fields.field_count; f++) {
        if (t->fields.is_label[f] != labels) continue;
        const bel_graph_input *input = &t->trainable.built->graph->inputs[f];
        bel_str_puts(out, first ? "\n  " : ",\n  ");
        first = false;
        bel_feature_write_port(out, input->name, &input->value->spec);
        bel_str_puts(out, "}");
    }
}

typedef struct pairs {
    bel_str *out;
    bool follows;
} pairs;

static void write_pair(void *context, const char *name, const char *text)
{
    pairs *p = context;
    bel_str_puts(p->out, p->follows ? ",[" : "[");
    p->follows = true;
    bel_json_write_string(p->out, name);
    bel_str_puts(p->out, ",");
    bel_json_write_string(p->out, text);
    bel_str_puts(p->out, "]");
}

// A schedule at its end, as after a complete training, would change nothing.
static void warn_of_rate(const training *t, const bel_optimizers *optimizers)
{
    int64_t step = bel_ckpt_reader_info(t->reader)->step;
    if (bel_optimizer_rate(&optimizers->main, step) > 0) return;
    bel_log_write(
        BEL_LOG_WARN,
        "at step %lld the learning rate is 0, as the schedule is at its end: a learner changes "
        "nothing, unless its program gives it a rate (bel_learner_options.learning_rate)",
        (long long)step);
}

// Restores the job's rate for one replica: src/master/job/save.c has the two rules.
static void write_optimizers(training *t, bel_str *out)
{
    bel_optimizers optimizers = *t->trainable.built->optimizers;
    const bel_ckpt_info *info = bel_ckpt_reader_info(t->reader);
    if (setting_is(t, BEL_SETTING_RATE_SCALE, BEL_SETTING_LINEAR)) {
        bel_optimizers_set_scale(&optimizers, 1);
    } else if (setting_is(t, BEL_SETTING_ELASTIC, BEL_SETTING_LINEAR) && info->segment_count > 0) {
        bel_optimizers_scale(&optimizers, 1.0 / (double)info->segments[0].replica_count);
    }
    pairs p = {.out = out};
    bel_optimizers_list(&optimizers, write_pair, &p);
    warn_of_rate(t, &optimizers);
}

// Writes the settings that a learner compares with those of a checkpoint, so that it does not learn
// with another training's settings.
static void write_settings(const training *t, bel_str *out)
{
    const bel_settings *settings = &t->trainable.settings;
    bool first = true;
    for (int s = 0; s < settings->count; s++) {
        if (!bel_setting_is_of_step(settings->names[s])) continue;
        bel_str_puts(out, first ? "\n  " : ",\n  ");
        first = false;
        bel_json_write_string(out, settings->names[s]);
        bel_str_puts(out, ":");
        bel_json_write_string(out, settings->values[s]);
    }
}

static bel_status *write_signature(training *t)
{
    const char *model = training_setting(t, "param.model");
    char digest[BEL_RESULT_TEXT];
    bel_str text = {0};
    bel_hash128_text(bel_ckpt_reader_digest(t->reader), digest);
    bel_str_printf(&text, "{\"format\":\"%s\",\"format_version\":%d,\"arithmetic\":%d",
                   BEL_TRAINING_FORMAT, BEL_TRAINING_VERSION, BEL_ARITHMETIC);
    bel_str_printf(&text, ",\"step\":%lld,\"digest\":\"%s\"",
                   (long long)bel_ckpt_reader_info(t->reader)->step, digest);
    if (model != NULL) {
        bel_str_puts(&text, ",\"model\":");
        bel_json_write_string(&text, model);
    }
    bel_str_puts(&text, ",\n \"inputs\":[");
    write_ports(t, false, &text);
    bel_str_puts(&text, "],\n \"labels\":[");
    write_ports(t, true, &text);
    bel_str_puts(&text, "],\n \"optimizer\":[");
    write_optimizers(t, &text);
    bel_str_puts(&text, "],\n \"settings\":{");
    write_settings(t, &text);
    bel_str_printf(&text, "},\n \"files\":[%s]", t->files.text);
    bel_str_printf(&text, BEL_TRAINING_SEAL, bel_crc32c(0, text.text, text.length));
    char *path = bel_path_join(t->folder, BEL_TRAINING_SIGNATURE);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// Shares the checkpoint, and the copy of the ONNX file that its model is based on.
static bel_status *share_checkpoint(const training *t, const bel_estimator *given)
{
    const char *from = bel_ckpt_folder(t->reader);
    char *to = bel_ckpt_folder_path(t->folder, bel_ckpt_reader_info(t->reader)->step);
    bel_status *status = bel_ckpt_share_folder(from, to);
    bel_free(to);
    if (status != NULL) return status;
    return bel_export_share_source(given, t->folder);
}

// --- Entry point --------------------------------------------------------------------------------

static bel_status *open_reader(training *t, const bel_estimator *given, const char *checkpoint)
{
    const char *model_dir = given->config.model_dir;
    BEL_TRY(checkpoint != NULL ? bel_ckpt_open(checkpoint, &t->reader)
                               : bel_ckpt_open_latest(model_dir, &t->reader));
    if (t->reader != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "there is no checkpoint in %s; hint: train first", model_dir);
}

static bel_status *export_all(training *t, const bel_estimator *given, const char *checkpoint)
{
    BEL_TRY(open_reader(t, given, checkpoint));
    BEL_TRY(read_fields(t));
    training_place(t, given);
    BEL_TRY(make_training(t));
    BEL_TRY(make_prediction(t));
    BEL_TRY_CTX(write_training(t), "exporting the training of %s", bel_ckpt_folder(t->reader));
    BEL_TRY_CTX(write_prediction(t), "exporting the predictions of %s", bel_ckpt_folder(t->reader));
    BEL_TRY(share_checkpoint(t, given));
    return write_signature(t);
}

bel_status *bel_export_training_files(const bel_estimator *estimator, const char *checkpoint,
                                      const char *folder)
{
    training t = {.folder = folder, .arena = bel_arena_create()};
    bel_status *status = export_all(&t, estimator, checkpoint);
    bel_trainable_deinit(&t.trainable);
    bel_built_destroy(t.predict);
    if (t.predict_input != NULL) bel_input_destroy(t.predict_input);
    if (t.zeros != NULL) bel_pages_destroy(t.zeros, t.zero_bytes);
    if (t.reader != NULL) bel_ckpt_close(t.reader);
    bel_str_deinit(&t.files);
    bel_arena_destroy(t.arena);
    return status;
}
