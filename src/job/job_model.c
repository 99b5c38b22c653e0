// From an estimator and its specs to what workers and shards need.
#include <string.h>
#include <unistd.h>

#include "autodiff/autodiff.h"
#include "base/alloc.h"
#include "base/str.h"
#include "job/embedded.h"
#include "job/train.h"
#include "optim/multiplier.h"
#include "optim/rule.h"
#include "ps/layout/row_room.h"

bel_status *bel_job_open_input(bel_input_fn *input_fn, void *user, bel_mode mode,
                               const bel_column_names *like, bel_input **out_input)
{
    static const char *const names[] = {"training input", "evaluation input", "prediction input"};
    bel_dataset *dataset = NULL;
    BEL_TRY_CTX(input_fn(user, mode, &dataset), "%s", names[mode]);
    if (dataset == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the input function gave no dataset", names[mode]);
    }
    bel_status *status = bel_input_open(dataset, like, out_input);
    bel_dataset_destroy(dataset);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", names[mode]);
}

bel_status *bel_job_open_like(bel_input_fn *input_fn, void *user, bel_mode mode,
                              const char *columns, bel_input **out_input)
{
    if (columns == NULL) return bel_job_open_input(input_fn, user, mode, NULL, out_input);
    bel_arena *arena = bel_arena_create();
    bel_column_names names;
    bel_status *status = bel_column_names_read(columns, "columns of the checkpoint", arena, &names);
    if (status == NULL) status = bel_job_open_input(input_fn, user, mode, &names, out_input);
    bel_arena_destroy(arena);
    return status;
}

// What was trained already binds the columns; in a new run the file does.
static bel_status *open_training_input(bel_job *job)
{
    char *columns;
    BEL_TRY(
        bel_ckpt_latest_setting(job->estimator->config.model_dir, BEL_SETTING_COLUMNS, &columns));
    bel_status *status = bel_job_open_like(job->spec->input_fn, job->spec->input_user,
                                           BEL_MODE_TRAIN, columns, &job->input);
    bel_free(columns);
    return status;
}

// Adds gradients of the trainable variables to the graph; state variables report what they are
// assigned.
static bel_status *add_reports(bel_job *job)
{
    bel_graph *graph = job->built->graph;
    size_t count = graph->variable_count, lookups = graph->lookup_count;
    bel_value **values = bel_xcalloc(count + lookups, sizeof *values);
    job->reports = bel_xcalloc(count + lookups, sizeof *job->reports);
    job->row_gradients = job->reports + count;
    for (size_t v = 0; v < count; v++) {
        bool trainable = graph->variables[v].kind == BEL_VARIABLE_TRAINABLE;
        values[v] = trainable ? graph->variables[v].value : NULL;
    }
    for (size_t l = 0; l < lookups; l++)
        values[count + l] = graph->inputs[graph->lookups[l].rows].value;
    bool halves = job->estimator->config.precision == BEL_PRECISION_BF16;
    bel_gradients_keeping(graph, halves ? BEL_DTYPE_BF16 : BEL_DTYPE_F32, job->built->spec.loss,
                          values, (int)(count + lookups), job->reports);
    for (size_t v = 0; v < count; v++)
        if (values[v] == NULL) job->reports[v] = graph->variables[v].assigned;
    bel_free(values);
    return bel_graph_check(graph);
}

// Parameters take, beside each other: two buffers, a snapshot, slots and averages with their
// snapshot, and a gradient range for each replica. What cannot fit is said before anything is laid
// out.
static bel_status *check_memory(const bel_job *job)
{
    const bel_graph *graph = job->built->graph;
    double parameters = 0;
    for (size_t v = 0; v < graph->variable_count; v++)
        parameters += (double)bel_shape_elements(&graph->variables[v].value->spec.shape);
    int kept = bel_rule_kept(&job->built->spec.optimizer);
    double copies = 3 + 2 * kept + job->estimator->replica_count;
    if (job->counting.workers > 0) copies += job->estimator->config.worker_count;
    double needed = parameters * copies * sizeof(float);
    double available = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed <= available) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%.0f parameters need %.1f GiB with optimizer and gradients (%.0f copies), but "
                   "this machine has %.1f GiB",
                   parameters, needed * 0x1p-30, copies, available * 0x1p-30);
}

static bel_status *check_multipliers(const bel_job *job)
{
    const bel_graph *graph = job->built->graph;
    size_t most = graph->variable_count + graph->table_count;
    const char **names = bel_xcalloc(most, sizeof *names);
    size_t count = 0;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        if (variable->kind == BEL_VARIABLE_TRAINABLE) names[count++] = variable->name;
    }
    for (size_t t = 0; t < graph->table_count; t++)
        names[count++] = graph->tables[t].name;
    bel_status *status = bel_multipliers_check_names(&job->built->spec.optimizer, names, count);
    bel_free(names);
    return status;
}

static void add_table(bel_job *job, int index)
{
    const bel_graph *graph = job->built->graph;
    const bel_graph_table *from = &graph->tables[index];
    bel_layout_table table = {.name = from->name,
                              .width = from->width,
                              .initializer = from->initializer,
                              .counts_replicas = job->built->spec.optimizer.mean_by_contributors};
    for (size_t l = 0; l < graph->lookup_count; l++)
        if (graph->lookups[l].table == index) {
            table.ids +=
                bel_graph_lookup_ids(graph, &graph->lookups[l]) * bel_input_batch_size(job->input);
        }
    bel_layout_add_table(job->layout, &table);
}

static void make_layout(bel_job *job)
{
    const bel_graph *graph = job->built->graph;
    size_t count = graph->variable_count;
    bel_layout_variable *variables = bel_xcalloc(count, sizeof *variables);
    job->variables = bel_xcalloc(count, sizeof *job->variables);
    for (size_t v = 0; v < count; v++) {
        const bel_graph_variable *from = &graph->variables[v];
        bool state = from->kind == BEL_VARIABLE_STATE_MEAN || from->kind == BEL_VARIABLE_STATE_SUM;
        variables[v] = (bel_layout_variable){
            .name = from->name,
            .shape = from->value->spec.shape,
            .initializer = from->initializer,
            // A state variable that this model never assigns keeps its value.
            .kind = state && from->assigned == NULL ? BEL_VARIABLE_FROZEN : from->kind};
        job->variables[v] = (int)v;
    }
    job->layout = bel_layout_create(variables, (int)count, job->estimator->config.shard_count);
    for (size_t t = 0; t < graph->table_count; t++)
        add_table(job, (int)t);
    bel_free(variables);
}

// What tables cannot do is said before anything is laid out.
static bel_status *check_tables(const bel_job *job)
{
    const bel_graph *graph = job->built->graph;
    if (graph->table_count == 0) return NULL;
    size_t batch = (size_t)bel_input_batch_size(job->input), all = 0, ids;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        const char *name = graph->tables[lookup->table].name;
        int64_t count = bel_graph_lookup_ids(graph, lookup);
        if (count < 0) {
            return BEL_ERR(BEL_UNIMPLEMENTED,
                           "table \"%s\": every example must have the same number of ids", name);
        }
        bool fits = bel_size_mul((size_t)count, batch, &ids) && bel_size_add(all, ids, &all) &&
                    all <= BEL_ROW_ROOM_MOST;
        if (fits) continue;
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "table \"%s\": a batch of %zu examples with %lld ids each is too much", name,
                       batch, (long long)count);
    }
    return NULL;
}

bel_status *bel_job_build(bel_job *job)
{
    const bel_estimator *estimator = job->estimator;
    BEL_TRY(bel_estimator_counting(estimator, &job->counting));
    BEL_TRY(open_training_input(job));
    BEL_TRY(bel_model_build(estimator->model_fn, estimator->params, estimator->param_count,
                            BEL_MODE_TRAIN, job->input, &job->built));
    if (job->built->graph->variable_count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the model has no variables: nothing can be trained");
    }
    BEL_TRY(check_tables(job));
    BEL_TRY_CTX(add_reports(job), "gradients");
    BEL_TRY(check_multipliers(job));
    BEL_TRY(check_memory(job));
    make_layout(job);
    BEL_TRY(bel_row_room_check(job->layout, estimator->replica_count));
    job->model = (bel_worker_model){.graph = job->built->graph,
                                    .loss = job->built->spec.loss,
                                    .reports = job->reports,
                                    .variables = job->variables,
                                    .fields = job->built->fields,
                                    .row_gradients = job->row_gradients};
    bel_settings_gather(&job->settings, estimator, job->built, job->input, job->layout);
    return NULL;
}

bel_status *bel_job_embed(const bel_job *job, bel_crew **out_crew)
{
    const bel_embedded_config config = {.estimator = job->estimator,
                                        .built = job->built,
                                        .model = &job->model,
                                        .layout = job->layout,
                                        .counting = job->counting,
                                        .input = job->input};
    return bel_embedded_create(&config, out_crew);
}

static int find_table(const bel_layout *layout, const bel_graph_table *wanted)
{
    for (int t = 0; t < layout->table_count; t++) {
        const bel_layout_table *table = &layout->tables[t];
        if (strcmp(table->name, wanted->name) == 0 && table->width == wanted->width) return t;
    }
    return -1;
}

// Shards of other processes have written them into a checkpoint, or do so now.
static bel_status *read_saved_rows(bel_job *job, bel_job_eval *eval, int64_t step)
{
    if (job->saved_step != step) BEL_TRY(bel_job_save(job, step));
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_latest(job->estimator->config.model_dir, &reader));
    bel_status *status = bel_rows_load(&eval->rows, eval->built->graph, reader);
    bel_ckpt_close(reader);
    return status;
}

bel_status *bel_job_read_rows(bel_job *job, bel_job_eval *eval, int64_t step)
{
    const bel_graph *graph = eval->built->graph;
    if (graph->table_count == 0) return NULL;
    if (job->crew->ops->read_rows == NULL) return read_saved_rows(job, eval, step);
    for (size_t t = 0; t < graph->table_count; t++) {
        int table = find_table(job->layout, &graph->tables[t]);
        BEL_TRY(job->crew->ops->read_rows(job->crew, table, eval->rows.tables[t]));
    }
    return NULL;
}

// Points each variable of an evaluation graph into the snapshot.
static bel_status *find_values(const bel_job *job, bel_job_eval *eval)
{
    const bel_graph *graph = eval->built->graph;
    eval->values = bel_xcalloc(graph->variable_count, sizeof *eval->values);
    const bel_crew *crew = job->crew;
    const float *snapshot = crew->averages != NULL ? crew->averages : crew->values;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        int index = bel_layout_find(job->layout, variable->name);
        if (index < 0 ||
            !bel_shape_equal(&job->layout->variables[index].shape, &variable->value->spec.shape)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "model function: variable \"%s\" of EVAL is not there, or has another "
                           "shape, in TRAIN",
                           variable->name);
        }
        eval->values[v] = snapshot + job->layout->variables[index].offset;
    }
    for (size_t t = 0; t < graph->table_count; t++)
        if (find_table(job->layout, &graph->tables[t]) < 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "model function: table \"%s\" of EVAL is not there, or has another "
                           "width, in TRAIN",
                           graph->tables[t].name);
        }
    return NULL;
}

static bel_status *build_eval(bel_job *job, bel_job_eval *eval)
{
    const bel_estimator *estimator = job->estimator;
    eval->last_step = -1;
    eval->folder =
        eval->spec->name == NULL ? bel_xstrdup("eval") : bel_strf("eval_%s", eval->spec->name);
    if (eval->spec->every_steps < 0 || eval->spec->steps < 0 || !(eval->spec->throttle_secs >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: steps, every_steps and throttle_secs must be at least 0", eval->folder);
    }
    BEL_TRY(bel_job_open_input(eval->spec->input_fn, eval->spec->input_user, BEL_MODE_EVAL,
                               bel_input_names(job->input), &eval->input));
    BEL_TRY(bel_model_build(estimator->model_fn, estimator->params, estimator->param_count,
                            BEL_MODE_EVAL, eval->input, &eval->built));
    BEL_TRY(bel_rows_init(&eval->rows, eval->built->graph, estimator->config.seed));
    return find_values(job, eval);
}

bel_status *bel_job_build_evals(bel_job *job, const bel_eval_spec *specs, int count)
{
    job->evals = bel_xcalloc((size_t)count, sizeof *job->evals);
    for (int i = 0; i < count; i++) {
        job->evals[i].spec = &specs[i];
        job->eval_count++;
        BEL_TRY(build_eval(job, &job->evals[i]));
        for (int k = 0; k < i; k++) {
            if (strcmp(job->evals[k].folder, job->evals[i].folder) != 0) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT, "two evaluations are named \"%s\"",
                           job->evals[i].folder);
        }
    }
    return NULL;
}

void bel_job_free_model(bel_job *job)
{
    for (int i = 0; i < job->eval_count; i++) {
        bel_job_eval *eval = &job->evals[i];
        bel_built_destroy(eval->built);
        if (eval->input != NULL) bel_input_destroy(eval->input);
        bel_rows_deinit(&eval->rows);
        bel_free(eval->values);
        bel_free(eval->folder);
    }
    bel_free(job->evals);
    bel_settings_deinit(&job->settings);
    bel_layout_destroy(job->layout);
    bel_free(job->reports);
    bel_free(job->variables);
    bel_built_destroy(job->built);
    if (job->input != NULL) bel_input_destroy(job->input);
    bel_free(job->segments);
}
