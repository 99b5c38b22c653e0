// bel_evaluate, bel_predict and predictors: a checkpoint, an input, a graph; no training. They load
// the values (or their moving averages) whole and keep no optimizer state, so that they run beside
// a training job without slowing it down.
#include "estimator/predict.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "estimator/blocks.h"
#include "estimator/estimator_inner.h"
#include "estimator/evaluation.h"
#include "estimator/input_fn.h"
#include "estimator/rows.h"
#include "estimator/run_log.h"
#include "estimator/settings.h"
#include "predictor/predictor.h"

typedef struct use {
    const bel_estimator *estimator;
    bel_input *input;
    bel_built *built;
    bel_ckpt_reader *reader;
    float **values; // by graph variable, owned
    bel_rows rows;
    bool averages; // in place of the values, where the checkpoint has them
} use;

static bel_status *open_checkpoint(use *u, const char *checkpoint)
{
    if (checkpoint != NULL) return bel_ckpt_open(checkpoint, &u->reader);
    const char *model_dir = u->estimator->config.model_dir;
    BEL_TRY(bel_ckpt_open_latest(model_dir, &u->reader));
    if (u->reader != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "there is no checkpoint in %s; hint: train first", model_dir);
}

static bel_status *load_values(use *u)
{
    const bel_graph *graph = u->built->graph;
    u->values = bel_xcalloc(graph->variable_count, sizeof *u->values);
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        const bel_spec *spec = &variable->value->spec;
        int64_t elements = bel_shape_elements(&spec->shape);
        void *memory;
        BEL_TRY(bel_pages_create((size_t)elements * sizeof(float), false, variable->name, &memory));
        u->values[v] = memory;
        bel_status *status = u->averages
                                 ? bel_ckpt_read_average(u->reader, variable->name, spec->dtype,
                                                         &spec->shape, 0, elements, memory)
                                 : bel_ckpt_read(u->reader, variable->name, spec->dtype,
                                                 &spec->shape, 0, elements, memory);
        BEL_TRY_CTX(status, "loading %s", bel_ckpt_folder(u->reader));
    }
    BEL_TRY(bel_rows_init(&u->rows, graph, bel_ckpt_reader_info(u->reader)->seed));
    BEL_TRY_CTX(bel_rows_load(&u->rows, graph, u->reader), "loading %s",
                bel_ckpt_folder(u->reader));
    return NULL;
}

// Of how many replicas the checkpoint has values.
static int kept_replicas(const use *u)
{
    const char *text = bel_ckpt_setting(u->reader, BEL_SETTING_REPLICAS);
    int64_t count;
    bool has = text != NULL && bel_parse_i64(text, strlen(text), &count) && count > 0 &&
               count <= INT32_MAX;
    return has ? (int)count : 1;
}

// The checkpoint first: its columns bind the input. A predictor has opened its own.
static bel_status *begin(use *u, bel_mode mode, bel_input_fn *input_fn, void *input_user,
                         const char *checkpoint)
{
    BEL_TRY(open_checkpoint(u, checkpoint));
    if (u->input == NULL) {
        const char *columns = bel_ckpt_setting(u->reader, BEL_SETTING_COLUMNS);
        BEL_TRY(
            bel_input_fn_open_like(input_fn, input_user, u->estimator, mode, columns, &u->input));
    }
    BEL_TRY(bel_model_build(u->estimator, mode, NULL, u->input, kept_replicas(u), &u->built));
    return load_values(u);
}

// Takes a use of which only a part was begun.
static void end(use *u)
{
    for (size_t v = 0; u->values != NULL && v < u->built->graph->variable_count; v++) {
        int64_t elements = bel_shape_elements(&u->built->graph->variables[v].value->spec.shape);
        bel_pages_destroy(u->values[v], (size_t)elements * sizeof(float));
    }
    bel_rows_deinit(&u->rows);
    bel_free(u->values);
    bel_built_destroy(u->built);
    if (u->input != NULL) bel_input_destroy(u->input);
    if (u->reader != NULL) bel_ckpt_close(u->reader);
}

static bel_forward_config forward_of(const use *u)
{
    return (bel_forward_config){.graph = u->built->graph,
                                .fields = u->built->fields,
                                .values = (const float *const *)u->values,
                                .pull_rows = bel_rows_pull,
                                .rows = &u->rows,
                                .seed = u->estimator->config.seed,
                                .step = bel_ckpt_reader_info(u->reader)->step,
                                .program = bel_estimator_evaluation_options(u->estimator)};
}

static bel_evaluation_config config_of(const use *u, int64_t steps)
{
    return (bel_evaluation_config){
        .built = u->built,
        .forward = forward_of(u),
        .input = u->input,
        .steps = steps,
        .tower_count = bel_estimator_evaluation_towers(u->estimator),
    };
}

// The numbers are the answer; a folder that may only be read keeps no event of them. Only what
// follows a job writes where the job's own evaluations are, which decide about early stopping and
// about what is evaluated again: by hand any checkpoint may be evaluated, on any data.
static void write_events(const use *u, const bel_eval_spec *eval, bool follows,
                         const bel_result *result, const bel_details *details)
{
    const char *kind = follows ? "eval" : "evaluate";
    char *folder = eval->name != NULL ? bel_strf("%s_%s", kind, eval->name) : bel_xstrdup(kind);
    bel_status *status =
        bel_run_log_add(u->estimator->config.model_dir, folder, follows, result, details);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "the evaluation is in no event file: %s",
                      bel_status_message(status));
    }
    bel_status_destroy(status);
    bel_free(folder);
}

// Results go out only when all has gone well; an event file that cannot be written is a warning.
static bel_status *evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                            const char *checkpoint, bool follows, bel_result *out_result)
{
    use u = {.estimator = estimator, .averages = estimator->config.averages};
    bel_result result = {0};
    bel_details details = {0};
    bel_status *status = begin(&u, BEL_MODE_EVAL, eval->input_fn, eval->input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, eval->steps);
        config.details = &details;
        result.global_step = result.evaluation_step = bel_ckpt_reader_info(u.reader)->step;
        bel_hash128_text(bel_ckpt_reader_digest(u.reader), result.digest);
        status = bel_evaluation_run(&config, &result);
    }
    if (status == NULL) write_events(&u, eval, follows, &result, &details);
    bel_details_deinit(&details);
    end(&u);
    if (status != NULL) return status;
    *out_result = result;
    if (eval->out_result != NULL) *eval->out_result = result;
    return NULL;
}

bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                         const char *checkpoint, bel_result *out_result)
{
    return evaluate(estimator, eval, checkpoint, false, out_result);
}

bel_status *bel_evaluate_along(bel_estimator *estimator, const bel_eval_spec *eval,
                               const char *checkpoint, bel_result *out_result)
{
    return evaluate(estimator, eval, checkpoint, true, out_result);
}

struct bel_evaluating {
    use use;
    bel_evaluation_config config;
    bel_details details; // wanted, so that outputs are the master's
    bel_blocks *blocks;
};

static bel_status *open_evaluating(bel_evaluating *e, const bel_eval_spec *eval,
                                   const char *checkpoint)
{
    BEL_TRY(begin(&e->use, BEL_MODE_EVAL, eval->input_fn, eval->input_user, checkpoint));
    e->config = config_of(&e->use, eval->steps);
    e->config.details = &e->details;
    return bel_blocks_create(&e->config, &e->blocks);
}

bel_status *bel_evaluating_open(bel_estimator *estimator, const bel_eval_spec *eval,
                                const char *checkpoint, bel_evaluating **out_evaluating)
{
    bel_evaluating *e = bel_xcalloc(1, sizeof *e);
    e->use.estimator = estimator;
    e->use.averages = true;
    bel_status *status = open_evaluating(e, eval, checkpoint);
    if (status != NULL) {
        bel_evaluating_close(e);
        return status;
    }
    *out_evaluating = e;
    return NULL;
}

void bel_evaluating_close(bel_evaluating *e)
{
    if (e == NULL) return;
    bel_blocks_destroy(e->blocks);
    end(&e->use);
    bel_free(e);
}

bel_status *bel_evaluating_run(bel_evaluating *e, int64_t first, int64_t count,
                               bool (*stop)(void *context), bel_batch_sums_fn *take, void *context)
{
    int64_t all = bel_blocks_count(e->blocks);
    if (first < 0 || count < 0 || first > all || count > all - first) {
        return BEL_ERR(BEL_OUT_OF_RANGE, "batches %lld to %lld of an evaluation that has %lld here",
                       (long long)first, (long long)first + (long long)count - 1, (long long)all);
    }
    return bel_evaluation_run_blocks(e->blocks, e->config.tower_count, first, count, stop, take,
                                     context);
}

bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                        const char *checkpoint, bel_predict_fn *each, void *user)
{
    use u = {.estimator = estimator, .averages = estimator->config.averages};
    bel_status *status = begin(&u, BEL_MODE_PREDICT, input_fn, input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, 0);
        config.part = estimator->config.predict_part;
        config.parts = estimator->config.predict_parts;
        status = bel_prediction_run(&config, each, user);
    }
    end(&u);
    return status;
}

// --- Predictors ----------------------------------------------------------------------------------

// What a predictor's parts point to.
typedef struct kept {
    use use;
    bel_port *inputs;
    bel_port outputs[BEL_MAX_OUTPUTS + 1];
    bel_value *values[BEL_MAX_OUTPUTS + 1];
} kept;

static void release(void *owner)
{
    kept *k = owner;
    end(&k->use);
    bel_free(k->inputs);
    bel_free(k);
}

// A batch of one record whose fields are the features, empty where they are open: the model is
// built for what it says of them, and nobody reads it.
static bel_status *open_features(const bel_feature *features, int count, bel_input **out_input)
{
    bel_memory_field *fields = bel_xcalloc((size_t)count + 1, sizeof *fields);
    bel_padded_shape *padded = bel_xcalloc((size_t)count + 1, sizeof *padded);
    size_t most = 1;
    bool open = false, whole = true;
    for (int i = 0; i < count && whole; i++) {
        bel_tensor data = {.dtype = features[i].dtype, .shape = {.rank = 1, .dims = {1}}};
        whole = features[i].shape.rank >= 0 && features[i].shape.rank < BEL_MAX_RANK;
        for (int32_t d = 0; whole && d < features[i].shape.rank; d++) {
            int64_t size = features[i].shape.dims[d];
            open = open || size < 0;
            data.shape.dims[data.shape.rank++] = size < 0 ? 1 : size;
        }
        size_t bytes = whole ? bel_tensor_bytes(&data) : 0;
        if (bytes > most) most = bytes;
        fields[i] = (bel_memory_field){features[i].name, data};
        padded[i] = (bel_padded_shape){features[i].name, features[i].shape};
    }
    void *zeros = NULL;
    bel_status *status =
        whole ? bel_pages_create(most, false, "features", &zeros)
              : BEL_ERR(BEL_INVALID_ARGUMENT, "expected features of at most %d dimensions",
                        BEL_MAX_RANK - 1);
    for (int i = 0; i < count; i++)
        fields[i].data.data = zeros;
    if (status == NULL) {
        bel_dataset *dataset = bel_dataset_from_memory(fields, count);
        if (open) {
            bel_dataset_padded_batch(dataset, 1, padded, count);
        } else {
            bel_dataset_batch(dataset, 1);
        }
        status = bel_input_open(dataset, NULL, out_input);
        bel_dataset_destroy(dataset);
    }
    if (zeros != NULL) bel_pages_destroy(zeros, most);
    bel_free(fields);
    bel_free(padded);
    return status;
}

static bel_status *open_kept(kept *k, const bel_feature *features, int feature_count,
                             const char *checkpoint)
{
    BEL_TRY(open_features(features, feature_count, &k->use.input));
    BEL_TRY(begin(&k->use, BEL_MODE_PREDICT, NULL, NULL, checkpoint));
    k->inputs = bel_xcalloc((size_t)feature_count + 1, sizeof *k->inputs);
    for (int i = 0; i < feature_count; i++) {
        bel_port *port = &k->inputs[i];
        port->name = bel_input_field_name(k->use.input, i);
        bel_input_field_spec(k->use.input, i, &port->dtype, &port->shape);
    }
    return NULL;
}

// A row for each example is what all outputs promise, whatever the graph says of their shapes.
static bel_predictor_parts parts_of(kept *k, int feature_count)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    int count = bel_spec_outputs(&k->use.built->spec, outputs);
    for (int i = 0; i < count; i++) {
        const bel_value *value = outputs[i].value;
        k->values[i] = outputs[i].value;
        k->outputs[i] = (bel_port){outputs[i].name, value->spec.dtype, value->spec.shape};
        if (value->spec.shape.rank > 0) k->outputs[i].shape.dims[0] = BEL_DIM_BATCH;
    }
    return (bel_predictor_parts){.forward = forward_of(&k->use),
                                 .inputs = k->inputs,
                                 .outputs = k->outputs,
                                 .values = k->values,
                                 .input_count = feature_count,
                                 .output_count = count,
                                 .owner = k,
                                 .release = release};
}

bel_status *bel_estimator_predictor(bel_estimator *estimator, const bel_feature *features,
                                    int feature_count, const char *checkpoint,
                                    bel_predictor **out_predictor)
{
    kept *k = bel_xcalloc(1, sizeof *k);
    k->use.estimator = estimator;
    k->use.averages = estimator->config.averages;
    bel_status *status = open_kept(k, features, feature_count, checkpoint);
    if (status == NULL) {
        const bel_predictor_parts parts = parts_of(k, feature_count);
        status = bel_predictor_make(&parts, out_predictor);
    }
    if (status != NULL) release(k);
    return status;
}
