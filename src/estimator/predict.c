// bel_evaluate and bel_predict: a checkpoint, an input, a graph; no training. Both load the values
// (or their moving averages) whole and keep no optimizer state, so that they run beside a training
// job without slowing it down.
#include "estimator/predict.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "estimator/estimator_inner.h"
#include "estimator/evaluation.h"
#include "estimator/input_fn.h"
#include "estimator/rows.h"
#include "estimator/run_log.h"
#include "estimator/settings.h"

typedef struct use {
    const bel_estimator *estimator;
    bel_input *input;
    bel_built *built;
    bel_ckpt_reader *reader;
    float **values; // by graph variable, owned
    bel_rows rows;
} use;

static bel_status *open_checkpoint(use *u, const char *checkpoint)
{
    if (checkpoint != NULL) return bel_ckpt_open(checkpoint, &u->reader);
    const char *model_dir = u->estimator->config.model_dir;
    BEL_TRY(bel_ckpt_open_latest(model_dir, &u->reader));
    if (u->reader != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "there is no checkpoint in %s; hint: train first", model_dir);
}

// Moving averages in place of the values, where the checkpoint has them and the settings want them.
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
        bel_status *status = u->estimator->config.averages
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

// The checkpoint first: its columns bind the input.
static bel_status *begin(use *u, bel_mode mode, bel_input_fn *input_fn, void *input_user,
                         const char *checkpoint)
{
    BEL_TRY(open_checkpoint(u, checkpoint));
    BEL_TRY(bel_input_fn_open_like(input_fn, input_user, u->estimator, mode,
                                   bel_ckpt_setting(u->reader, BEL_SETTING_COLUMNS), &u->input));
    BEL_TRY(bel_model_build(u->estimator, mode, u->input, &u->built));
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

static bel_evaluation_config config_of(const use *u, int64_t steps)
{
    return (bel_evaluation_config){.built = u->built,
                                   .input = u->input,
                                   .values = (const float *const *)u->values,
                                   .pull_rows = bel_rows_pull,
                                   .rows = &u->rows,
                                   .steps = steps,
                                   .seed = u->estimator->config.seed,
                                   .step = bel_ckpt_reader_info(u->reader)->step,
                                   .tower_count = u->estimator->towers_of[0],
                                   .program = bel_estimator_evaluation_options(u->estimator)};
}

// The numbers are the answer; a folder that may only be read keeps no event of them.
static void write_events(const use *u, const bel_eval_spec *eval, bool follows,
                         const bel_result *result)
{
    char *folder = eval->name != NULL ? bel_strf("eval_%s", eval->name) : bel_xstrdup("eval");
    bel_status *status = bel_run_log_add(u->estimator->config.model_dir, folder, follows, result);
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
    use u = {.estimator = estimator};
    bel_result result = {0};
    bel_status *status = begin(&u, BEL_MODE_EVAL, eval->input_fn, eval->input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, eval->steps);
        result.global_step = bel_ckpt_reader_info(u.reader)->step;
        bel_hash128_text(bel_ckpt_reader_digest(u.reader), result.digest);
        status = bel_evaluation_run(&config, &result);
    }
    if (status == NULL) write_events(&u, eval, follows, &result);
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

bel_status *bel_evaluate_newest(bel_estimator *estimator, const bel_eval_spec *eval,
                                bel_result *out_result)
{
    return evaluate(estimator, eval, NULL, true, out_result);
}

bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                        const char *checkpoint, bel_predict_fn *each, void *user)
{
    use u = {.estimator = estimator};
    bel_status *status = begin(&u, BEL_MODE_PREDICT, input_fn, input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, 0);
        status = bel_prediction_run(&config, each, user);
    }
    end(&u);
    return status;
}
