// From an estimator and its training input to what workers and shards need: the input, the graph
// with its gradients, the parameter space. What cannot be trained, or cannot fit, is reported here,
// before anything is laid out or started.
#include "estimator/trainable.h"

#include <math.h>
#include <unistd.h>

#include "autodiff/autodiff.h"
#include "base/alloc.h"
#include "estimator/input_fn.h"
#include "ps/layout/row_buffer.h"

// What was trained already binds the columns; in a new run the file does.
static bel_status *open_training_input(bel_trainable *t, const bel_train_spec *spec)
{
    char *columns;
    BEL_TRY(bel_ckpt_latest_setting(t->estimator->config.model_dir, BEL_SETTING_COLUMNS, &columns));
    bel_status *status = bel_input_fn_open_like(spec->input_fn, spec->input_user, t->estimator,
                                                BEL_MODE_TRAIN, columns, &t->input);
    bel_free(columns);
    return status;
}

// Adds gradients of the trainable variables to the graph; state variables report what they are
// assigned.
static bel_status *add_reports(bel_trainable *t)
{
    bel_graph *graph = t->built->graph;
    size_t count = graph->variable_count, lookups = graph->lookup_count;
    bel_value **values = bel_xcalloc(count + lookups, sizeof *values);
    t->reports = bel_xcalloc(count + lookups, sizeof *t->reports);
    t->row_gradients = t->reports + count;
    for (size_t v = 0; v < count; v++) {
        bool trainable = graph->variables[v].kind == BEL_VARIABLE_TRAINABLE;
        values[v] = trainable ? graph->variables[v].value : NULL;
    }
    for (size_t l = 0; l < lookups; l++)
        values[count + l] = graph->inputs[graph->lookups[l].rows].value;
    bool halves = t->estimator->config.precision == BEL_PRECISION_BF16;
    bel_gradients_keeping(graph, halves ? BEL_DTYPE_BF16 : BEL_DTYPE_F32, t->built->spec.loss,
                          values, (int)(count + lookups), t->reports);
    for (size_t v = 0; v < count; v++)
        if (values[v] == NULL) t->reports[v] = graph->variables[v].assigned;
    bel_free(values);
    return bel_graph_check(graph);
}

// Parameters take, beside each other: two buffers, a snapshot, slots and averages with their
// snapshot, and a gradient range for each replica. What cannot fit is reported before anything is
// laid out.
static bel_status *check_memory(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    double parameters = 0;
    for (size_t v = 0; v < graph->variable_count; v++)
        parameters += (double)bel_shape_elements(&graph->variables[v].value->spec.shape);
    int kept = bel_optimizers_kept(&t->built->optimizers);
    double copies = 3 + 2 * kept + t->estimator->replica_count;
    if (bel_counting_has_ledger(&t->counting)) copies += t->estimator->config.worker_count;
    double needed = parameters * copies * sizeof(float);
    double available = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed <= available) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%.0f parameters need %.1f GiB with optimizer and gradients (%.0f copies), but "
                   "this machine has %.1f GiB",
                   parameters, needed * 0x1p-30, copies, available * 0x1p-30);
}

// Every pattern of the optimizers must meet a trainable variable or a table.
static bel_status *check_patterns(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    size_t most = graph->variable_count + graph->table_count;
    const char **names = bel_xcalloc(most, sizeof *names);
    size_t count = 0;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        if (variable->kind == BEL_VARIABLE_TRAINABLE) names[count++] = variable->name;
    }
    for (size_t i = 0; i < graph->table_count; i++)
        names[count++] = graph->tables[i].name;
    bel_status *status = bel_optimizers_check_names(&t->built->optimizers, names, count);
    bel_free(names);
    return status;
}

// `ids`: of all lookups in the table, for a full batch.
static void add_table(bel_trainable *t, int index)
{
    const bel_graph *graph = t->built->graph;
    const bel_graph_table *from = &graph->tables[index];
    bel_layout_table table = {.name = from->name,
                              .width = from->width,
                              .initializer = from->initializer,
                              .counts_replicas = t->built->optimizers.main.mean_by_contributors};
    for (int l = from->first_lookup; l >= 0; l = graph->lookups[l].next)
        table.ids +=
            bel_graph_lookup_ids(graph, &graph->lookups[l]) * bel_input_batch_size(t->input);
    bel_layout_add_table(t->layout, &table);
}

// Variables keep their order, so graph and layout number them alike.
static void make_layout(bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    size_t count = graph->variable_count;
    bel_layout_variable *variables = bel_xcalloc(count, sizeof *variables);
    t->variables = bel_xcalloc(count, sizeof *t->variables);
    for (size_t v = 0; v < count; v++) {
        const bel_graph_variable *from = &graph->variables[v];
        bool state = from->kind == BEL_VARIABLE_STATE_MEAN || from->kind == BEL_VARIABLE_STATE_SUM;
        variables[v] = (bel_layout_variable){
            .name = from->name,
            .shape = from->value->spec.shape,
            .initializer = from->initializer,
            // A state variable that this model never assigns keeps its value.
            .kind = state && from->assigned == NULL ? BEL_VARIABLE_FROZEN : from->kind};
        t->variables[v] = (int)v;
    }
    t->layout = bel_layout_create(variables, (int)count, t->estimator->config.shard_count);
    t->layout->exchanges = graph->collective_count > 0 && !bel_counting_has_ledger(&t->counting);
    for (size_t i = 0; i < graph->table_count; i++)
        add_table(t, (int)i);
    bel_free(variables);
}

// What tables cannot do is reported before anything is laid out.
static bel_status *check_tables(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    if (graph->table_count == 0) return NULL;
    size_t batch = (size_t)bel_input_batch_size(t->input), all = 0, ids;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        const char *name = graph->tables[lookup->table].name;
        int64_t count = bel_graph_lookup_ids(graph, lookup);
        if (count < 0) {
            return BEL_ERR(BEL_UNIMPLEMENTED,
                           "table \"%s\": every example must have the same number of ids", name);
        }
        bool fits = bel_size_mul((size_t)count, batch, &ids) && bel_size_add(all, ids, &all) &&
                    all <= BEL_ROW_BUFFER_MOST;
        if (fits) continue;
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "table \"%s\": a batch of %zu examples with %lld ids each is too much", name,
                       batch, (long long)count);
    }
    return NULL;
}

// Whether `value` is made of what replicas exchange.
static bool is_exchanged(const bel_graph *graph, bel_value *value)
{
    int *exchange_of = bel_xcalloc(graph->collective_count, sizeof *exchange_of);
    int exchanges = bel_graph_exchanges(graph, &value, 1, exchange_of);
    bel_free(exchange_of);
    return exchanges > 0;
}

// Who can exchange values within a step is known before anything is laid out; where a replica is
// alone, its graph has no collectives.
static bel_status *check_collectives(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    const bel_estimator_spec *spec = &t->built->spec;
    if (graph->collective_count == 0) return NULL;
    char first[BEL_COLLECTIVE_TEXT];
    const char *why = NULL;
    (void)bel_graph_collective_text(graph, 0, first);
    if (t->counting.kind == BEL_COUNTING_BACKUPS) {
        why =
            "with backups (replicas_to_aggregate below the number of workers) nobody knows before "
            "the end of a step who takes part in it";
    } else if (t->estimator->config.executor == BEL_EXECUTOR_ASYNC) {
        why = "the asynchronous executor does not stop for it: use executor sync";
    }
    if (why != NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s: replicas exchange values within a step: %s", first,
                       why);
    }
    for (int i = 0; i < spec->summary_count; i++) {
        const bel_summary *summary = &spec->summaries[i];
        if (summary->kind == BEL_SUMMARY_SCALAR || !is_exchanged(graph, summary->value)) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "summary \"%s\": histograms and images are computed by a replica alone, but "
                       "this one is made of what replicas exchange (%s)",
                       summary->name, first);
    }
    return NULL;
}

void bel_trainable_series_values(const bel_trainable *t, const double *sums,
                                 bel_step_value *out_values)
{
    for (int i = 0; i < t->series_count; i++) {
        double weight = sums[2 * i + 1], mean = weight != 0 ? sums[2 * i] / weight : 0;
        bool root = t->series[i].kind == BEL_METRIC_ROOT_MEAN;
        out_values[i] = (bel_step_value){t->series[i].name, root ? sqrt(mean) : mean};
    }
}

static void add_series(bel_trainable *t, const char *name, bel_metric_kind kind, bel_value *sum,
                       bel_value *weight)
{
    int i = t->series_count++;
    t->series[i] = (bel_series){.name = name, .kind = kind};
    t->series_values[2 * i] = sum;
    t->series_values[2 * i + 1] = weight;
}

// Summaries, and metrics where they are asked for in training. An area under a curve, or a metric
// of the program's own, has no sum of two numbers and is one of evaluations.
static void list_series(bel_trainable *t)
{
    const bel_estimator_spec *spec = &t->built->spec;
    for (int i = 0; i < spec->summary_count; i++) {
        if (spec->summaries[i].kind != BEL_SUMMARY_SCALAR) continue;
        add_series(t, spec->summaries[i].name, BEL_METRIC_MEAN, spec->summaries[i].value, NULL);
    }
    for (int i = 0; i < spec->metric_count && t->estimator->config.train_metrics; i++) {
        const bel_metric *metric = &spec->metrics[i];
        if (metric->kind == BEL_METRIC_AUC || metric->kind == BEL_METRIC_OWN) continue;
        add_series(t, metric->name, metric->kind, metric->sum, metric->weight);
    }
}

static void take_observed(void *context, int64_t step, const bel_tensor *values)
{
    bel_observer_take(context, step, values);
}

static void list_observed(bel_trainable *t)
{
    const bel_estimator_spec *spec = &t->built->spec;
    const bel_run_config *config = &t->estimator->config;
    const bel_summary *summaries[BEL_MAX_SUMMARIES];
    int count = 0;
    for (int i = 0; i < spec->summary_count && config->save_summary_steps > 0; i++) {
        if (spec->summaries[i].kind == BEL_SUMMARY_SCALAR) continue;
        summaries[count] = &spec->summaries[i];
        t->observed[count++] = spec->summaries[i].value;
    }
    if (count == 0) return;
    t->observer = bel_observer_create(config->model_dir, summaries, count);
    t->observation = (bel_worker_observation){.values = t->observed,
                                              .count = count,
                                              .every_steps = config->save_summary_steps,
                                              .context = t->observer,
                                              .take = take_observed};
}

static bel_status *before_step(void *context, int64_t step)
{
    const bel_trainable *t = context;
    bel_hook_context hook = {.estimator = t->estimator};
    return bel_hooks_before_worker(&t->hooks, &hook, step);
}

static bel_status *after_step(void *context, int64_t step, const double *stats)
{
    const bel_trainable *t = context;
    bel_hook_context hook = {.estimator = t->estimator};
    bel_step_value values[BEL_MAX_SERIES];
    bel_trainable_series_values(t, stats + BEL_STATS_COUNT, values);
    double examples = stats[BEL_STATS_EXAMPLES];
    const bel_step_report report = {.step = step,
                                    .loss =
                                        examples > 0 ? stats[BEL_STATS_LOSS_SUM] / examples : NAN,
                                    .examples = (int64_t)examples,
                                    .values = values,
                                    .value_count = t->series_count};
    return bel_hooks_after_worker(&t->hooks, &hook, &report);
}

// The steps from settings to a trainable; what was made before an error stays for
// bel_trainable_deinit.
static bel_status *build(bel_trainable *t, const bel_train_spec *spec)
{
    const bel_estimator *estimator = t->estimator;
    BEL_TRY(bel_hooks_init(&t->hooks, spec));
    BEL_TRY(bel_estimator_counting(estimator, &t->counting));
    BEL_TRY(open_training_input(t, spec));
    BEL_TRY(bel_model_build(estimator, BEL_MODE_TRAIN, t->input, &t->built));
    if (t->built->graph->variable_count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the model has no variables: nothing can be trained");
    }
    BEL_TRY(check_tables(t));
    BEL_TRY_CTX(add_reports(t), "gradients");
    BEL_TRY(check_collectives(t));
    BEL_TRY(check_patterns(t));
    BEL_TRY(check_memory(t));
    make_layout(t);
    BEL_TRY(bel_row_buffer_check(t->layout, estimator->replica_count));
    list_series(t);
    list_observed(t);
    t->events =
        (bel_worker_events){.context = t, .before_step = before_step, .after_step = after_step};
    t->model = (bel_worker_model){.graph = t->built->graph,
                                  .loss = t->built->spec.loss,
                                  .reports = t->reports,
                                  .variables = t->variables,
                                  .fields = t->built->fields,
                                  .row_gradients = t->row_gradients,
                                  .series = t->series_values,
                                  .series_count = t->series_count};
    bel_settings_gather(&t->settings, estimator, t->built, t->input, t->layout);
    return NULL;
}

bel_status *bel_trainable_init(bel_trainable *trainable, const bel_estimator *estimator,
                               const bel_train_spec *spec)
{
    *trainable = (bel_trainable){.estimator = estimator};
    return build(trainable, spec);
}

bel_worker_config bel_trainable_worker_config(const bel_trainable *t, int worker)
{
    const bel_run_config *config = &t->estimator->config;
    return (bel_worker_config){.worker = worker,
                               .events = bel_hooks_for_workers(&t->hooks) ? &t->events : NULL,
                               .observation = t->observer != NULL ? &t->observation : NULL,
                               .layout = t->layout,
                               .model = &t->model,
                               .input = t->input,
                               .tower_count = bel_estimator_towers(t->estimator, worker),
                               .program = bel_estimator_program_options(t->estimator),
                               .seed = config->seed,
                               .counts_replicas = config->average != BEL_AVERAGE_EXAMPLES,
                               .whole_steps = config->drop_remainder,
                               .audit_dir = config->audit_input ? config->model_dir : NULL,
                               .ledger = bel_counting_has_ledger(&t->counting)};
}

bel_shard_settings bel_trainable_shard_settings(const bel_trainable *t)
{
    return (bel_shard_settings){.optimizers = t->built->optimizers,
                                .counting = t->counting,
                                .seed = t->estimator->config.seed,
                                .series_count = t->series_count,
                                .sums = t->estimator->config.average == BEL_AVERAGE_SUM};
}

void bel_trainable_deinit(bel_trainable *t)
{
    bel_observer_destroy(t->observer);
    bel_settings_deinit(&t->settings);
    bel_layout_destroy(t->layout);
    bel_free(t->reports);
    bel_free(t->variables);
    bel_built_destroy(t->built);
    if (t->input != NULL) bel_input_destroy(t->input);
    *t = (bel_trainable){.estimator = NULL};
}
