// An export: the graph of predictions with a checkpoint's values, as files for other programs. The
// graph is the model function's in PREDICT, built anew from the checkpoint's description of its
// features, so it contains nothing from training. The writer refuses operations that cannot be
// exported (src/onnx/write.h).
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "belfry/columns.h"
#include "checkpoint/safetensors.h"
#include "estimator/estimator_inner.h"
#include "export/export_folder.h"
#include "export/export_graph.h"
#include "export/export_training.h"
#include "model/settings.h"
#include "onnx/write.h"

// Variables larger than this are only in weights.safetensors: a protobuf file has at most twice as
// much.
enum { MOST_BYTES_INSIDE = 1 << 30 };

typedef struct export
{
    const bel_export_options *options;
    const char *folder;
    bel_saved saved;
    bel_export_tables tables;
    bel_arena *arena;
    bel_feature_list features;
    bel_columns *columns; // NULL: no description
    bel_export_graph graph;
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    int output_count;
}
export;

static char *path_of(const export *x, const char *name)
{
    return bel_path_join(x->folder, name);
}

// --- The model ----------------------------------------------------------------------------

bel_status *bel_export_read_features(const bel_ckpt_reader *reader, bel_arena *arena,
                                     bel_feature_list *out_features)
{
    const char *text = bel_ckpt_setting(reader, BEL_SETTING_FEATURES);
    if (text != NULL)
        return bel_feature_list_read(text, bel_ckpt_folder(reader), arena, out_features);
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s does not say what its features are, since an earlier version saved it; "
                   "hint: train it further by a step",
                   bel_ckpt_folder(reader));
}

// Opens the checkpoint's folder twice: its contents determine how to build the model.
static bel_status *read_features(export *x, const char *checkpoint)
{
    const bel_export_options *how = x->options;
    if (how->features != NULL) {
        if (how->feature_count < 1 || how->feature_count > INT32_MAX)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "feature_count: expected 1 to %d, got %lld",
                           INT32_MAX, (long long)how->feature_count);
        double *scales =
            bel_arena_alloc(x->arena, ((size_t)how->feature_count + 1) * sizeof *scales);
        for (int64_t f = 0; f < how->feature_count; f++)
            scales[f] = 1;
        x->features.items = bel_arena_copy(x->arena, how->features,
                                           (size_t)how->feature_count * sizeof *how->features);
        x->features.scales = scales;
        x->features.count = (int)how->feature_count;
        return NULL;
    }
    bel_ckpt_reader *reader = NULL;
    const char *model_dir = x->saved.estimator->config.model_dir;
    BEL_TRY(checkpoint != NULL ? bel_ckpt_open(checkpoint, &reader)
                               : bel_ckpt_open_latest(model_dir, &reader));
    if (reader == NULL) {
        return BEL_ERR(BEL_NOT_FOUND, "there is no checkpoint in %s; hint: train first", model_dir);
    }
    bel_status *status = bel_export_read_features(reader, x->arena, &x->features);
    bel_ckpt_close(reader);
    return status;
}

static bel_status *make_graph(export *x)
{
    return bel_export_graph_make(&x->saved, &x->features, &x->tables, x->columns, x->outputs,
                                 x->output_count, x->options->inline_tables, &x->graph);
}

static bel_status *open_model(export *x, const char *checkpoint)
{
    BEL_TRY(read_features(x, checkpoint));
    BEL_TRY(bel_saved_open_features(&x->saved, x->features.items, x->features.count, checkpoint));
    const char *table = bel_ckpt_setting(x->saved.reader, BEL_SETTING_TABLE);
    const char *folder = bel_ckpt_folder(x->saved.reader);
    if (table != NULL) BEL_TRY(bel_columns_parse(table, folder, &x->columns));
    x->output_count = bel_spec_outputs(&x->saved.built->spec, x->outputs);
    BEL_TRY(bel_export_tables_load(&x->saved, &x->tables));
    BEL_TRY(make_graph(x));
    bel_export_graph_name_outputs(&x->graph, x->arena, x->outputs, x->output_count);
    return NULL;
}

// --- weights.safetensors -------------------------------------------------------------------------

// Writes the variables, including the rows of tables, and the keys of these.
static bel_status *write_weights(const export *x)
{
    const bel_graph *graph = x->graph.graph;
    size_t most = graph->variable_count + (size_t)x->tables.list_count + 1;
    bel_safetensors_input *tensors = bel_xcalloc(most, sizeof *tensors);
    int count = 0;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_spec *spec = &graph->variables[v].value->spec;
        tensors[count++] = (bel_safetensors_input){.name = graph->variables[v].name,
                                                   .dtype = spec->dtype,
                                                   .shape = spec->shape,
                                                   .data = x->graph.variables[v]};
    }
    for (int l = 0; l < x->tables.list_count; l++) {
        const bel_key_list *list = &x->tables.lists[l];
        tensors[count++] = (bel_safetensors_input){.name = list->name,
                                                   .dtype = BEL_DTYPE_I64,
                                                   .shape = BEL_SHAPE(list->count),
                                                   .data = list->keys};
    }
    const bel_safetensors_text format = {"format", "pt"}; // order that readers expect
    char *path = path_of(x, BEL_EXPORT_WEIGHTS);
    bel_status *status = bel_safetensors_write(path, &format, 1, tensors, count, NULL, NULL);
    bel_free(path);
    bel_free(tensors);
    return status;
}

// Finds the start of each variable's elements in the file.
static bel_status *find_weights(const export *x, int64_t *out_variables)
{
    const bel_graph *graph = x->graph.graph;
    bel_safetensors_list list;
    bel_disk_file file;
    char *path = path_of(x, BEL_EXPORT_WEIGHTS);
    bel_status *status = bel_disk_file_open(path, &file);
    bel_free(path);
    if (status != NULL) return status;
    status = bel_safetensors_read_header(&file, x->arena, &list);
    for (size_t v = 0; v < graph->variable_count && status == NULL; v++)
        out_variables[v] = (int64_t)bel_safetensors_find(&list, graph->variables[v].name)->offset;
    bel_disk_file_close(&file);
    return status;
}

// --- model.onnx ----------------------------------------------------------------------------------

static void take_bytes(void *context, const void *bytes, size_t count)
{
    bel_file_writer_write(context, bytes, count);
}

static bel_status *write_file(const export *x, const bel_onnx_source *source)
{
    char *path = path_of(x, BEL_EXPORT_MODEL);
    bel_file_writer *writer;
    bel_status *status = bel_file_writer_open(path, &writer);
    bel_free(path);
    if (status != NULL) return status;
    status = bel_onnx_write(source, take_bytes, writer);
    if (status == NULL) return bel_file_writer_finish(writer, NULL, NULL);
    bel_file_writer_abandon(writer);
    return status;
}

static bool is_large(const export *x)
{
    const bel_graph *graph = x->graph.graph;
    double bytes = 0;
    for (size_t v = 0; v < graph->variable_count; v++)
        bytes += 4.0 * (double)bel_shape_elements(&graph->variables[v].value->spec.shape);
    return bytes > MOST_BYTES_INSIDE;
}

static bel_status *write_model(const export *x)
{
    const bel_graph *graph = x->graph.graph;
    bel_arena *arena = x->arena;
    char step[24], digest[BEL_RESULT_TEXT];
    bel_snprintf(step, sizeof step, "%lld", (long long)bel_ckpt_reader_info(x->saved.reader)->step);
    bel_hash128_text(bel_ckpt_reader_digest(x->saved.reader), digest);
    const bel_onnx_note notes[] = {{"belfry.step", step}, {"belfry.digest", digest}};
    bel_onnx_result results[BEL_MAX_OUTPUTS + 1];
    for (int o = 0; o < x->output_count; o++)
        results[o] = (bel_onnx_result){x->outputs[o].name, x->graph.outputs[o]};
    int64_t *variables = bel_arena_alloc(arena, (graph->variable_count + 1) * sizeof *variables);
    const bel_onnx_beside beside = {BEL_EXPORT_WEIGHTS, variables};
    bool apart = x->options->external_data || is_large(x);
    if (apart) BEL_TRY(find_weights(x, variables));
    const bel_onnx_source source = {.graph = graph,
                                    .results = results,
                                    .result_count = x->output_count,
                                    .variables = x->graph.variables,
                                    .beside = apart ? &beside : NULL,
                                    .step = bel_ckpt_reader_info(x->saved.reader)->step,
                                    .opset = x->options->opset > 0 ? (int)x->options->opset
                                                                   : BEL_ONNX_OPSET_HIGHEST,
                                    .notes = notes,
                                    .note_count = 2};
    return write_file(x, &source);
}

// --- signature.json ------------------------------------------------------------------------------

// Appends ,"kind":"category","values":["a","b"],"missing":true
static void write_column(bel_str *out, const bel_column *column)
{
    static const char *const kinds[BEL_COLUMN_KINDS] = {[BEL_COLUMN_NUMBER] = "number",
                                                        [BEL_COLUMN_CATEGORY] = "category",
                                                        [BEL_COLUMN_HASH] = "hash",
                                                        [BEL_COLUMN_DATE] = "date",
                                                        [BEL_COLUMN_CROSS] = "cross"};
    bel_str_printf(out, ",\"kind\":\"%s\"", kinds[column->kind]);
    if (column->kind != BEL_COLUMN_CATEGORY) return;
    bel_str_puts(out, ",\"values\":[");
    for (int v = 0; v < column->value_count; v++) {
        if (v > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, column->values[v]);
    }
    bel_str_printf(out, "],\"missing\":%s", column->missing_value ? "true" : "false");
}

static void write_inputs(const export *x, bel_str *out)
{
    const bel_graph *graph = x->graph.graph;
    bool first = true;
    bel_str_puts(out, ",\n \"inputs\":[");
    for (size_t i = 0; i < graph->input_count; i++) {
        const bel_graph_input *input = &graph->inputs[i];
        const bel_export_input *meaning = &x->graph.inputs[i];
        if (!meaning->read) continue;
        bel_str_puts(out, first ? "\n  " : ",\n  ");
        first = false;
        bel_feature_write_port(out, input->name, &input->value->spec);
        if (meaning->column != NULL) write_column(out, meaning->column);
        if (meaning->scale != 1) {
            bel_str_puts(out, ",\"scale\":");
            bel_json_write_number(out, meaning->scale);
        }
        if (meaning->keys != NULL && meaning->keys->name != NULL) {
            bel_str_puts(out, ",\"keys\":");
            bel_json_write_string(out, meaning->keys->name);
            bel_str_printf(out, ",\"key_count\":%lld", (long long)meaning->keys->count);
        }
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "]");
}

static void write_outputs(const export *x, bel_str *out)
{
    bel_str_puts(out, ",\n \"outputs\":[");
    for (int o = 0; o < x->output_count; o++) {
        bel_str_puts(out, o > 0 ? ",\n  " : "\n  ");
        bel_feature_write_port(out, x->outputs[o].name, &x->graph.outputs[o]->spec);
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "]");
}

// Writes the names of the label's classes, in the order of the predictions, and the description of
// all columns, which converts cells to features.
static void write_columns(const export *x, bel_str *out)
{
    const char *names = bel_ckpt_setting(x->saved.reader, BEL_SETTING_COLUMNS);
    if (names != NULL) bel_str_printf(out, ",\n \"columns\":%s", names);
    if (x->columns == NULL) return;
    if (bel_columns_label(x->columns) != NULL) {
        bel_str_puts(out, ",\n \"label\":");
        bel_json_write_string(out, bel_columns_label(x->columns));
    }
    int labels = bel_columns_label_count(x->columns);
    if (labels > 1) bel_str_puts(out, ",\n \"labels\":[");
    for (int l = 0; l < labels && labels > 1; l++) {
        if (l > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, bel_columns_label_at(x->columns, l));
    }
    if (labels > 1) bel_str_puts(out, "]");
    int count = bel_columns_class_count(x->columns);
    if (count > 0) bel_str_puts(out, ",\n \"classes\":[");
    for (int c = 0; c < count; c++) {
        if (c > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, bel_columns_class(x->columns, c));
    }
    if (count > 0) bel_str_puts(out, "]");
    bel_str_puts(out, ",\n \"table\":");
    bel_json_write_string(out, bel_columns_text(x->columns));
}

// Writes a parameter of the model that defines the meaning of inputs or outputs, if it is set.
static void write_param(const export *x, const char *name, bel_str *out)
{
    char setting[64];
    bel_snprintf(setting, sizeof setting, "param.%s", name);
    const char *value = bel_ckpt_setting(x->saved.reader, setting);
    if (value == NULL) return;
    bel_str_printf(out, ",\"%s\":", name);
    bel_json_write_string(out, value);
}

static bel_status *write_signature(const export *x)
{
    const bel_ckpt_reader *reader = x->saved.reader;
    const char *model = bel_ckpt_setting(reader, "param.model");
    char digest[BEL_RESULT_TEXT];
    bel_str text = {0};
    bel_hash128_text(bel_ckpt_reader_digest(reader), digest);
    bel_str_printf(&text, "{\"format\":\"belfry-export\",\"format_version\":1,\"step\":%lld",
                   (long long)bel_ckpt_reader_info(reader)->step);
    bel_str_printf(&text, ",\"digest\":\"%s\"", digest);
    if (model != NULL) {
        bel_str_puts(&text, ",\"model\":");
        bel_json_write_string(&text, model);
    }
    write_param(x, "objective", &text);
    write_param(x, "threshold", &text);
    write_param(x, "tokenizer", &text);
    write_inputs(x, &text);
    write_outputs(x, &text);
    write_columns(x, &text);
    bel_str_puts(&text, "}\n");
    char *path = path_of(x, BEL_EXPORT_SIGNATURE);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// --- All of it -----------------------------------------------------------------------------------

static bel_status *export_all(export *x, const char *checkpoint)
{
    int64_t opset = x->options->opset;
    if (opset != 0 && (opset < BEL_ONNX_OPSET_LOWEST || opset > BEL_ONNX_OPSET_HIGHEST)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "opset: expected %d to %d, got %lld",
                       BEL_ONNX_OPSET_LOWEST, BEL_ONNX_OPSET_HIGHEST, (long long)opset);
    }
    BEL_TRY(open_model(x, checkpoint));
    BEL_TRY(write_weights(x));
    BEL_TRY_CTX(write_model(x), "exporting %s", bel_ckpt_folder(x->saved.reader));
    return write_signature(x);
}

static void remove_files(const export *x)
{
    static const char *const names[] = {BEL_EXPORT_MODEL, BEL_EXPORT_WEIGHTS, BEL_EXPORT_SIGNATURE,
                                        BEL_EXPORT_TOKENIZER};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = path_of(x, names[i]);
        (void)remove(path); // it may be absent
        bel_free(path);
    }
}

bel_status *bel_export_files(const bel_estimator *estimator, const char *checkpoint,
                             const bel_export_options *options, const char *folder)
{
    bel_export_options copy;
    BEL_TRY(bel_sized_take(&copy, sizeof copy, options, "bel_export_options"));
    export x = {.options = &copy,
                .folder = folder,
                .saved = {.estimator = estimator, .averages = estimator->config.averages},
                .arena = bel_arena_create()};
    bel_status *status = export_all(&x, checkpoint);
    if (status == NULL) status = bel_export_share_tokenizer(estimator, folder);
    if (status != NULL) remove_files(&x);
    bel_export_graph_deinit(&x.graph);
    bel_export_tables_deinit(&x.tables);
    bel_columns_destroy(x.columns);
    bel_saved_close(&x.saved);
    bel_arena_destroy(x.arena);
    return status;
}

typedef struct order {
    const bel_estimator *estimator;
    const char *checkpoint;
    const bel_export_options *options;
} order;

static bel_status *export_fill(void *context, const char *folder)
{
    const order *o = context;
    bool training = o->options->training;
    return training ? bel_export_training_files(o->estimator, o->checkpoint, folder)
                    : bel_export_files(o->estimator, o->checkpoint, o->options, folder);
}

bel_status *bel_export(bel_estimator *estimator, const char *checkpoint,
                       const bel_export_options *options, const char *folder)
{
    bel_export_options copy;
    BEL_TRY(bel_sized_take(&copy, sizeof copy, options, "bel_export_options"));
    order o = {.estimator = estimator, .checkpoint = checkpoint, .options = &copy};
    return bel_export_to_folder(folder, !copy.training, export_fill, &o);
}
