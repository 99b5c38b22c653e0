// Predictors of an ONNX model. Initializers are constants of the graph, so that passes fold
// expressions of them; the remaining ones are the program's prologue, which runs once. Initializers
// are used in place, without a copy. An exported folder has the model as model.onnx, and beside it
// a signature.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/json.h"
#include "base/mapping.h"
#include "base/sized.h"
#include "onnx/onnx.h"
#include "predictor/predictor.h"

// Owner of a predictor's parts.
typedef struct loaded {
    bel_onnx_model *model;
    bel_graph *graph;
    bel_port *inputs, *outputs;
    bel_value **values;         // by output
    int *fields;                // by graph input: the same index
    bel_staged_source *sources; // by graph variable, if it runs in stages
} loaded;

static void load_release(void *owner)
{
    loaded *l = owner;
    bel_graph_destroy(l->graph);
    bel_onnx_destroy(l->model);
    bel_free(l->inputs);
    bel_free(l->outputs);
    bel_free(l->values);
    bel_free(l->fields);
    bel_free(l->sources);
    bel_free(l);
}

// Finds the elements of initializers that are variables.
static void find_sources(loaded *l)
{
    l->sources = bel_xcalloc(l->graph->variable_count + 1, sizeof *l->sources);
    for (int i = 0; i < bel_onnx_initializer_count(l->model); i++) {
        bel_tensor tensor;
        int v = bel_graph_find_variable(l->graph, bel_onnx_initializer(l->model, i, &tensor));
        if (v < 0) continue; // it is a constant
        l->sources[v] = (bel_staged_source){.elements = tensor.data,
                                            .size_bytes = bel_tensor_bytes(&tensor),
                                            .mapped = bel_onnx_is_mapped(l->model, i)};
    }
}

// Inputs of the graph are the model's, in their order. Output types and shapes come from the graph,
// because a file's come from another program, or are absent.
static bel_status *loaded_build(loaded *l, bel_predictor_parts *parts)
{
    bool exported = strcmp(bel_onnx_producer(l->model), "belfry") == 0;
    bool staged = parts->forward.stage_memory > 0;
    parts->forward.program.fast_math = !exported;
    const bel_onnx_options options = {
        .views = true, .variables = staged, .merge = !exported && !staged};
    size_t inputs = (size_t)bel_onnx_input_count(l->model);
    size_t outputs = (size_t)bel_onnx_output_count(l->model);
    l->graph = bel_graph_create();
    l->inputs = bel_xcalloc(inputs + 1, sizeof *l->inputs);
    l->outputs = bel_xcalloc(outputs + 1, sizeof *l->outputs);
    l->values = bel_xcalloc(outputs + 1, sizeof(bel_value *));
    l->fields = bel_xcalloc(inputs + 1, sizeof *l->fields);
    BEL_TRY(bel_onnx_build(l->model, l->graph, &options, l->values));
    for (size_t i = 0; i < inputs; i++) {
        const bel_onnx_port *port = bel_onnx_input(l->model, (int)i);
        l->inputs[i] = (bel_port){port->name, port->dtype, port->shape};
        l->fields[i] = (int)i;
    }
    for (size_t i = 0; i < outputs; i++) {
        const bel_onnx_port *port = bel_onnx_output(l->model, (int)i);
        const bel_spec *spec = &l->values[i]->spec;
        l->outputs[i] = (bel_port){port->name, spec->dtype, spec->shape};
    }
    if (staged) find_sources(l);
    parts->forward.staged =
        (bel_staged_variables){.sources = l->sources, .count = (int)l->graph->variable_count};
    parts->forward.graph = l->graph;
    parts->forward.fields = l->fields;
    parts->inputs = l->inputs;
    parts->outputs = l->outputs;
    parts->values = l->values;
    parts->input_count = (int)inputs;
    parts->output_count = (int)outputs;
    return NULL;
}

static bel_status *read_options(const bel_predictor_options *given, bel_predictor_options *out)
{
    BEL_TRY(bel_sized_take(out, sizeof *out, given, "bel_predictor_options"));
    BEL_TRY(bel_isa_check_wanted());
    BEL_TRY(bel_isa_check());
    if (out->joined < 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "joined: expected 0 or more, got %lld",
                       (long long)out->joined);
    return bel_check_threads("a predictor", out->threads);
}

// Takes ownership of the model.
static bel_status *load_make(bel_onnx_model *model, const bel_predictor_options *options,
                             int64_t step, bel_predictor **out_predictor)
{
    loaded *l = bel_xcalloc(1, sizeof *l);
    l->model = model;
    bel_predictor_parts parts = {
        .forward = {.seed = options->seed,
                    .step = step,
                    .stage_memory = options->stage_memory,
                    .program = {.threads = options->threads > 0 ? options->threads : 1,
                                .joined = options->joined}},
        .owner = l,
        .release = load_release};
    bel_status *status = loaded_build(l, &parts);
    if (status == NULL) status = bel_predictor_make(&parts, out_predictor);
    if (status != NULL) load_release(l);
    return status;
}

bel_status *bel_predictor_load_bytes(const void *bytes, size_t size,
                                     const bel_predictor_options *given,
                                     bel_predictor **out_predictor)
{
    bel_predictor_options options;
    bel_onnx_model *model;
    BEL_TRY(read_options(given, &options));
    BEL_TRY(bel_onnx_read(bytes, size, &model));
    return load_make(model, &options, -1, out_predictor);
}

// --- Files ---------------------------------------------------------------------------------------

// Reads the step from a folder's signature; -1 if the file or the member is absent.
static bel_status *read_step(const char *path, int64_t *out_step)
{
    bel_mapping text;
    bel_json *json;
    *out_step = -1;
    if (!bel_file_exists(path)) return NULL;
    BEL_TRY(bel_mapping_open(path, &text));
    bel_status *status = bel_json_parse(text.data != NULL ? text.data : "", text.size, path, &json);
    bel_mapping_close(&text);
    if (status != NULL) return status;
    (void)bel_json_i64(bel_json_root(json), "step", out_step); // false: absent
    bel_json_destroy(json);
    return NULL;
}

static bel_status *load_file(const char *path, const bel_predictor_options *given, int64_t step,
                             bel_predictor **out_predictor)
{
    bel_predictor_options options;
    bel_onnx_model *model;
    BEL_TRY(read_options(given, &options));
    BEL_TRY(bel_onnx_read_file(path, &model));
    BEL_TRY_CTX(load_make(model, &options, step, out_predictor), "%s", path);
    return NULL;
}

bel_status *bel_predictor_load(const char *path, const bel_predictor_options *options,
                               bel_predictor **out_predictor)
{
    if (!bel_dir_exists(path)) return load_file(path, options, -1, out_predictor);
    int64_t step;
    char *signature = bel_path_join(path, "signature.json");
    char *model = bel_path_join(path, "model.onnx");
    bel_status *status = read_step(signature, &step);
    if (status == NULL) status = load_file(model, options, step, out_predictor);
    bel_free(signature);
    bel_free(model);
    return status;
}
