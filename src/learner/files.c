// Reader of the files from `belfry export --training`, except checkpoints. signature.json is read
// first: it has sizes and checksums of the other files, so that a damaged file is detected.
// docs/formats/training.md defines the names of training.onnx's outputs.
#include <string.h>

#include "base/alloc.h"
#include "base/arithmetic.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mapping.h"
#include "base/number.h"
#include "base/str.h"
#include "learner/learner_inner.h"
#include "learner/training_file.h"
#include "onnx/graph_file.h"

// --- Files ---------------------------------------------------------------------------------------

// Finds the member of the list "files" with this name.
static const bel_json_value *find_entry(const bel_json_value *root, const char *name)
{
    const bel_json_value *files = bel_json_member(root, "files");
    for (size_t i = 0; i < bel_json_length(files); i++) {
        const char *is;
        const bel_json_value *entry = bel_json_at(files, i);
        if (bel_json_string(entry, "name", &is) && strcmp(is, name) == 0) return entry;
    }
    return NULL;
}

static bel_status *check_bytes(const bel_json_value *root, const char *name, const void *bytes,
                               size_t size)
{
    int64_t wanted_size;
    const char *wanted;
    char sum[9];
    const bel_json_value *entry = find_entry(root, name);
    bool said =
        bel_json_i64(entry, "size", &wanted_size) && bel_json_string(entry, "crc32c", &wanted);
    if (!said) return BEL_ERR(BEL_DATA_LOSS, "%s says nothing of %s", BEL_TRAINING_SIGNATURE, name);
    bel_snprintf(sum, sizeof sum, "%08x", (unsigned)bel_crc32c(0, bytes, size));
    if ((uint64_t)wanted_size == size && strcmp(sum, wanted) == 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s is damaged: expected %lld bytes of CRC-32C %s, got %zu of %s",
                   name, (long long)wanted_size, wanted, size, sum);
}

// Opens a file and checks it against its signature; close the mapping.
static bel_status *open_checked(const char *folder, const bel_json_value *root, const char *name,
                                bel_mapping *out)
{
    char *path = bel_path_join(folder, name);
    bel_status *status = bel_mapping_open(path, out);
    bel_free(path);
    if (status != NULL) return status;
    status = check_bytes(root, name, out->data, out->size);
    if (status != NULL) bel_mapping_close(out);
    return status;
}

// --- The signature -------------------------------------------------------------------------------

// Every bit is checked, because a learning rate with one changed digit would still be a valid rate.
static bel_status *check_seal(const bel_mapping *text)
{
    char want[BEL_TRAINING_SEAL_BYTES + 1];
    size_t sealed = text->size < BEL_TRAINING_SEAL_BYTES ? 0 : text->size - BEL_TRAINING_SEAL_BYTES;
    bel_snprintf(want, sizeof want, BEL_TRAINING_SEAL, (unsigned)bel_crc32c(0, text->data, sealed));
    if (sealed > 0 && memcmp(text->data + sealed, want, BEL_TRAINING_SEAL_BYTES) == 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "it is damaged, or was changed: its checksum is another one");
}

static bel_status *check_version(const bel_json_value *root)
{
    const char *format;
    int64_t version, arithmetic;
    bool is = bel_json_string(root, "format", &format) &&
              strcmp(format, BEL_TRAINING_FORMAT) == 0 &&
              bel_json_i64(root, "format_version", &version) &&
              bel_json_i64(root, "arithmetic", &arithmetic);
    if (!is)
        return BEL_ERR(BEL_DATA_LOSS,
                       "this is no exported training; hint: belfry export --training writes one");
    if (version != BEL_TRAINING_VERSION)
        return BEL_ERR(BEL_UNIMPLEMENTED, "it is of format version %lld, expected %d",
                       (long long)version, BEL_TRAINING_VERSION);
    if (arithmetic == BEL_ARITHMETIC) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "it was exported by arithmetic %lld, and this version's is %d; hint: export it "
                   "anew",
                   (long long)arithmetic, BEL_ARITHMETIC);
}

// Reads [["optimizer","adam"],["beta1","0.8"], …].
static bel_status *read_optimizers(const bel_json_value *root, bel_optimizers *out)
{
    const bel_json_value *list = bel_json_member(root, "optimizer");
    if (!bel_json_is_array(list)) return BEL_ERR(BEL_DATA_LOSS, "it has no optimizer");
    out->main = bel_optimizer_default();
    for (size_t i = 0; i < bel_json_length(list); i++) {
        const bel_json_value *pair = bel_json_at(list, i);
        const char *name = bel_json_value_string(bel_json_at(pair, 0));
        const char *text = bel_json_value_string(bel_json_at(pair, 1));
        if (name == NULL || text == NULL)
            return BEL_ERR(BEL_DATA_LOSS, "setting %zu of its optimizer is no pair of texts", i);
        BEL_TRY_CTX(bel_optimizers_set(out, name, text), "its optimizer");
    }
    BEL_TRY_CTX(bel_optimizers_check(out), "its optimizer");
    return NULL;
}

typedef struct setting_list {
    bel_training_file *file;
    size_t name_capacity, value_capacity;
} setting_list;

static bel_status *take_setting(void *context, const char *name, const bel_json_value *value)
{
    setting_list *list = context;
    bel_training_file *file = list->file;
    const char *text = bel_json_value_string(value);
    size_t count = (size_t)file->setting_count + 1;
    if (text == NULL) return BEL_ERR(BEL_DATA_LOSS, "its setting \"%s\" is no text", name);
    file->setting_names =
        bel_xgrow(file->setting_names, &list->name_capacity, count, sizeof(char *));
    file->setting_values =
        bel_xgrow(file->setting_values, &list->value_capacity, count, sizeof(char *));
    file->setting_names[file->setting_count] = bel_xstrdup(name);
    file->setting_values[file->setting_count++] = bel_xstrdup(text);
    return NULL;
}

static bel_status *read_settings(const bel_json_value *root, bel_training_file *out)
{
    const bel_json_value *settings = bel_json_member(root, "settings");
    setting_list list = {.file = out};
    if (!bel_json_is_object(settings)) return BEL_ERR(BEL_DATA_LOSS, "it has no settings");
    return bel_json_each(settings, take_setting, &list);
}

static bool is_label(const bel_json_value *root, const char *name)
{
    const bel_json_value *labels = bel_json_member(root, "labels");
    for (size_t i = 0; i < bel_json_length(labels); i++) {
        const char *label;
        if (bel_json_string(bel_json_at(labels, i), "name", &label) && strcmp(label, name) == 0)
            return true;
    }
    return false;
}

// --- The graph -----------------------------------------------------------------------------------

static bel_status *take_ports(const bel_json_value *root, bel_training_file *file)
{
    const bel_graph *graph = file->graph;
    size_t most = graph->input_count + 1;
    file->inputs = bel_xcalloc(most, sizeof *file->inputs);
    file->labels = bel_xcalloc(most, sizeof *file->labels);
    file->input_fields = bel_xcalloc(most, sizeof *file->input_fields);
    file->label_fields = bel_xcalloc(most, sizeof *file->label_fields);
    for (size_t i = 0; i < graph->input_count; i++) {
        const bel_graph_input *input = &graph->inputs[i];
        const bel_spec *spec = &input->value->spec;
        const bel_port port = {input->name, spec->dtype, spec->shape};
        if (bel_graph_lookup_of(graph, (int)i) != NULL) continue;
        if (spec->shape.rank < 1 || spec->shape.dims[0] != BEL_DIM_BATCH)
            return BEL_ERR(BEL_DATA_LOSS, "input \"%s\" does not begin with the batch",
                           input->name);
        if (is_label(root, input->name)) {
            file->label_fields[file->label_count] = (int)i;
            file->labels[file->label_count++] = port;
        } else {
            file->input_fields[file->input_count] = (int)i;
            file->inputs[file->input_count++] = port;
        }
    }
    size_t inputs = bel_json_length(bel_json_member(root, "inputs"));
    size_t labels = bel_json_length(bel_json_member(root, "labels"));
    bool agrees = (size_t)file->input_count == inputs && (size_t)file->label_count == labels;
    if (agrees && inputs + labels > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "inputs and labels of the graph are not those of %s",
                   BEL_TRAINING_SIGNATURE);
}

// True for a value of this shape in F32; open dimensions must match.
static bool is_like(const bel_value *value, const bel_value *like)
{
    return value->spec.dtype == BEL_DTYPE_F32 &&
           bel_shape_equal(&value->spec.shape, &like->spec.shape);
}

// Stores the value as the report that its name denotes. False: an unknown name, or a wrong type
// or shape.
static bool take_report(bel_training_file *file, const char *name, bel_value *value)
{
    bel_graph *graph = file->graph;
    size_t reports = strlen(BEL_TRAINING_REPORT), rows = strlen(BEL_TRAINING_ROWS);
    if (strcmp(name, BEL_TRAINING_LOSS) == 0) {
        file->loss = value;
        return value->spec.dtype == BEL_DTYPE_F32 && value->spec.shape.rank == 0;
    }
    if (strncmp(name, BEL_TRAINING_REPORT, reports) == 0) {
        int v = bel_graph_find_variable(graph, name + reports);
        if (v < 0) return false;
        file->reports[v] = value;
        return value->spec.dtype == BEL_DTYPE_F32 &&
               bel_shape_elements(&value->spec.shape) ==
                   bel_shape_elements(&graph->variables[v].value->spec.shape);
    }
    if (strncmp(name, BEL_TRAINING_ROWS, rows) != 0) return false;
    const bel_value *input = bel_graph_find_input(graph, name + rows);
    if (input == NULL || bel_graph_lookup_of(graph, input->node->leaf) == NULL) return false;
    file->row_gradients[graph->inputs[input->node->leaf].lookup - 1] = value;
    return is_like(value, input);
}

static bel_status *take_results(bel_training_file *file, const bel_onnx_model *model,
                                bel_value *const *results)
{
    const bel_graph *graph = file->graph;
    file->reports = bel_xcalloc(graph->variable_count + 1, sizeof(bel_value *));
    file->row_gradients = bel_xcalloc(graph->lookup_count + 1, sizeof(bel_value *));
    for (int o = 0; o < bel_onnx_output_count(model); o++) {
        const char *name = bel_onnx_output(model, o)->name;
        if (!take_report(file, name, results[o]))
            return BEL_ERR(BEL_DATA_LOSS,
                           "output \"%s\" is of nothing that is trained, or of another "
                           "shape",
                           name);
    }
    if (graph->variable_count == 0 && graph->table_count == 0)
        return BEL_ERR(BEL_DATA_LOSS, "the graph has no variables");
    return file->loss != NULL ? NULL : BEL_ERR(BEL_DATA_LOSS, "the graph has no loss");
}

static bel_status *read_graph(const char *folder, const bel_json_value *root,
                              bel_training_file *file)
{
    bel_mapping bytes;
    bel_onnx_model *model;
    BEL_TRY(open_checked(folder, root, BEL_TRAINING_GRAPH, &bytes));
    bel_status *status = bel_onnx_read(bytes.data, bytes.size, &model);
    bel_mapping_close(&bytes);
    if (status != NULL) return status;
    size_t outputs = (size_t)bel_onnx_output_count(model);
    bel_value **results = bel_xcalloc(outputs + 1, sizeof(bel_value *));
    status = bel_graph_file_read(model, &file->graph, results);
    if (status == NULL) status = take_results(file, model, results);
    bel_onnx_destroy(model);
    bel_free(results);
    if (status == NULL) return take_ports(root, file);
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", BEL_TRAINING_GRAPH);
}

// The graph's variables and tables must be those of the training.
static bel_status *check_prediction(const bel_training_file *file)
{
    bel_onnx_model *model;
    bel_graph *graph = NULL;
    BEL_TRY(bel_onnx_read(file->prediction, file->prediction_bytes, &model));
    size_t outputs = (size_t)bel_onnx_output_count(model);
    bel_value **results = bel_xcalloc(outputs + 1, sizeof(bel_value *));
    bel_status *status = bel_graph_file_read(model, &graph, results);
    for (size_t v = 0; status == NULL && v < graph->variable_count; v++) {
        const char *name = graph->variables[v].name;
        int there = bel_graph_find_variable(file->graph, name);
        if (there < 0 || !bel_shape_equal(&file->graph->variables[there].value->spec.shape,
                                          &graph->variables[v].value->spec.shape))
            status = BEL_ERR(BEL_DATA_LOSS, "its variable \"%s\" is not in the training", name);
    }
    for (size_t t = 0; status == NULL && t < graph->table_count; t++) {
        int there = bel_graph_find_table(file->graph, graph->tables[t].name);
        if (there < 0 || file->graph->tables[there].width != graph->tables[t].width)
            status = BEL_ERR(BEL_DATA_LOSS, "its table \"%s\" is not in the training",
                             graph->tables[t].name);
    }
    if (status == NULL && outputs == 0) status = BEL_ERR(BEL_DATA_LOSS, "it has no outputs");
    bel_free(results);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
    return status;
}

// Keeps the bytes, because each predictor makes a separate graph.
static bel_status *read_prediction(const char *folder, const bel_json_value *root,
                                   bel_training_file *file)
{
    bel_mapping bytes;
    BEL_TRY(open_checked(folder, root, BEL_TRAINING_PREDICTION, &bytes));
    file->prediction = bel_xmalloc(bytes.size + 1);
    file->prediction_bytes = bytes.size;
    if (bytes.size > 0) memcpy(file->prediction, bytes.data, bytes.size);
    bel_mapping_close(&bytes);
    BEL_TRY_CTX(check_prediction(file), "%s", BEL_TRAINING_PREDICTION);
    return NULL;
}

static bel_status *read_all(const char *folder, const bel_json_value *root, bel_training_file *out)
{
    BEL_TRY_CTX(read_optimizers(root, &out->optimizers), "%s", BEL_TRAINING_SIGNATURE);
    BEL_TRY_CTX(read_settings(root, out), "%s", BEL_TRAINING_SIGNATURE);
    BEL_TRY(read_graph(folder, root, out));
    return read_prediction(folder, root, out);
}

bel_status *bel_training_file_read(const char *folder, bel_training_file *out)
{
    bel_mapping text;
    bel_json *json;
    char *path = bel_path_join(folder, BEL_TRAINING_SIGNATURE);
    bel_status *status = bel_mapping_open(path, &text);
    if (status == NULL) {
        status = bel_json_parse(text.data != NULL ? text.data : "", text.size, path, &json);
        if (status == NULL) {
            status = check_version(bel_json_root(json));
            if (status == NULL) status = check_seal(&text);
            if (status != NULL) {
                bel_json_destroy(json);
                status = bel_status_wrap(status, __FILE__, __LINE__, "%s", path);
            }
        }
        bel_mapping_close(&text);
    }
    bel_free(path);
    if (status != NULL) return status;
    status = read_all(folder, bel_json_root(json), out);
    bel_json_destroy(json);
    return status == NULL ? NULL : bel_status_wrap(status, __FILE__, __LINE__, "%s", folder);
}

static const char *setting_of(const bel_training_file *file, const char *name)
{
    for (int s = 0; s < file->setting_count; s++)
        if (strcmp(file->setting_names[s], name) == 0) return file->setting_values[s];
    return NULL;
}

static bel_status *no_number(const char *name, const char *text)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected a number for %s, got \"%s\"",
                   BEL_TRAINING_SIGNATURE, name, text);
}

bel_status *bel_training_file_number(const bel_training_file *file, const char *name,
                                     int64_t *out_number)
{
    const char *text = setting_of(file, name);
    *out_number = 0;
    if (text == NULL) return NULL;
    bool good = bel_parse_i64(text, strlen(text), out_number) && *out_number >= 0;
    return good ? NULL : no_number(name, text);
}

bel_status *bel_training_file_real(const bel_training_file *file, const char *name,
                                   double *out_number)
{
    const char *text = setting_of(file, name);
    *out_number = 0;
    if (text == NULL) return NULL;
    bool good = bel_parse_f64(text, strlen(text), out_number) && *out_number >= 0;
    return good ? NULL : no_number(name, text);
}

void bel_training_file_deinit(bel_training_file *file)
{
    bel_graph_destroy(file->graph);
    bel_free(file->reports);
    bel_free(file->row_gradients);
    bel_free(file->inputs);
    bel_free(file->labels);
    bel_free(file->input_fields);
    bel_free(file->label_fields);
    bel_free(file->prediction);
    for (int s = 0; s < file->setting_count; s++) {
        bel_free(file->setting_names[s]);
        bel_free(file->setting_values[s]);
    }
    bel_free(file->setting_names);
    bel_free(file->setting_values);
    *file = (bel_training_file){.graph = NULL};
}
