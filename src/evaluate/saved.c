// A checkpoint with its model. The values (or their moving averages) are loaded completely, without
// optimizer state, so that this can run beside a training job without slowing it down. With
// stage_memory they are read in each run instead: the reader stays open, and several towers read at
// once.
#include "evaluate/saved.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "estimator/estimator_inner.h"
#include "model/feature_list.h"
#include "model/input_fn.h"
#include "model/settings.h"

static bel_status *open_checkpoint(bel_saved *saved, const char *checkpoint)
{
    if (saved->reader != NULL) return NULL;
    if (checkpoint != NULL) return bel_ckpt_open(checkpoint, &saved->reader);
    const char *model_dir = saved->estimator->config.model_dir;
    BEL_TRY(bel_ckpt_open_latest(model_dir, &saved->reader));
    if (saved->reader != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "there is no checkpoint in %s; hint: train first", model_dir);
}

static bel_status *read_variable(void *context, int index, void *out_elements)
{
    const bel_saved *saved = context;
    const bel_graph_variable *variable = &saved->built->graph->variables[index];
    const bel_spec *spec = &variable->value->spec;
    int64_t elements = bel_shape_elements(&spec->shape);
    bel_status *status = saved->averages
                             ? bel_ckpt_read_average(saved->reader, variable->name, spec->dtype,
                                                     &spec->shape, 0, elements, out_elements)
                             : bel_ckpt_read(saved->reader, variable->name, spec->dtype,
                                             &spec->shape, 0, elements, out_elements);
    BEL_TRY_CTX(status, "loading %s", bel_ckpt_folder(saved->reader));
    return NULL;
}

// Loads values, or sets the sources to read them from.
static bel_status *load_values(bel_saved *saved)
{
    const bel_graph *graph = saved->built->graph;
    size_t count = graph->variable_count;
    bool staged = saved->stage_memory > 0;
    if (staged) saved->sources = bel_xcalloc(count + 1, sizeof *saved->sources);
    if (!staged) saved->values = bel_xcalloc(count, sizeof *saved->values);
    for (size_t v = 0; v < count; v++) {
        const bel_shape *shape = &graph->variables[v].value->spec.shape;
        size_t bytes = (size_t)bel_shape_elements(shape) * sizeof(float);
        void *memory;
        if (staged) {
            saved->sources[v] = (bel_staged_source){.size_bytes = bytes};
            continue;
        }
        BEL_TRY(bel_pages_create(bytes, false, graph->variables[v].name, &memory));
        saved->values[v] = memory;
        BEL_TRY(read_variable(saved, (int)v, memory));
    }
    BEL_TRY_CTX(bel_row_layers_load(&saved->layers, graph, saved->reader, saved->others,
                                    saved->other_count),
                "loading %s", bel_ckpt_folder(saved->reader));
    return NULL;
}

// Number of replicas whose values the checkpoint has.
static int kept_replicas(const bel_saved *saved)
{
    const char *text = bel_ckpt_setting(saved->reader, BEL_SETTING_REPLICAS);
    int64_t count;
    bool has = text != NULL && bel_parse_i64(text, strlen(text), &count) && count > 0 &&
               count <= INT32_MAX;
    return has ? (int)count : 1;
}

// Opens the checkpoint first: its columns bind the input. A predictor has already opened its input.
bel_status *bel_saved_open(bel_saved *saved, bel_mode mode, bel_input_fn *input_fn,
                           void *input_user, const char *checkpoint)
{
    BEL_TRY(open_checkpoint(saved, checkpoint));
    saved->step = bel_ckpt_reader_info(saved->reader)->step;
    if (saved->input == NULL) {
        const char *columns = bel_ckpt_setting(saved->reader, BEL_SETTING_COLUMNS);
        BEL_TRY(bel_input_fn_open_like(input_fn, input_user, saved->estimator, mode, columns,
                                       &saved->input));
    }
    BEL_TRY(bel_model_build(saved->estimator, mode, NULL, saved->input, kept_replicas(saved),
                            &saved->built));
    return load_values(saved);
}

// Accepts a partly opened model.
void bel_saved_close(bel_saved *saved)
{
    for (size_t v = 0; saved->values != NULL && v < saved->built->graph->variable_count; v++) {
        int64_t elements = bel_shape_elements(&saved->built->graph->variables[v].value->spec.shape);
        bel_pages_destroy(saved->values[v], (size_t)elements * sizeof(float));
    }
    bel_row_layers_deinit(&saved->layers);
    bel_free(saved->values);
    bel_free(saved->sources);
    bel_built_destroy(saved->built);
    if (saved->input != NULL) bel_input_destroy(saved->input);
    if (saved->reader != NULL) bel_ckpt_close(saved->reader);
}

bel_forward_config bel_saved_forward(bel_saved *saved)
{
    return (bel_forward_config){.graph = saved->built->graph,
                                .fields = saved->built->fields,
                                .values = (const float *const *)saved->values,
                                .stage_memory = saved->stage_memory,
                                .staged = {.sources = saved->sources,
                                           .count = (int)saved->built->graph->variable_count,
                                           .read = read_variable,
                                           .context = saved},
                                .pull_rows = bel_row_layers_pull,
                                .rows = &saved->layers,
                                .seed = saved->estimator->config.seed,
                                .step = saved->step,
                                .program = bel_estimator_evaluation_options(saved->estimator)};
}

// --- Features ------------------------------------------------------------------------------------

static bel_status *open_features(const bel_feature *features, int count, bel_input **out_input)
{
    void *zeros;
    size_t bytes;
    bel_dataset *dataset;
    BEL_TRY(bel_feature_dataset(features, NULL, count, 1, &zeros, &bytes, &dataset));
    bel_status *status = bel_input_open(dataset, NULL, out_input);
    bel_dataset_destroy(dataset);
    bel_pages_destroy(zeros, bytes);
    return status;
}

bel_status *bel_saved_open_features(bel_saved *saved, const bel_feature *features, int count,
                                    const char *checkpoint)
{
    BEL_TRY(open_features(features, count, &saved->input));
    return bel_saved_open(saved, BEL_MODE_PREDICT, NULL, NULL, checkpoint);
}
