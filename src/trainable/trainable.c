// Builds the parts for workers and shards from an estimator and its training input: the input, the
// graph with its gradients, the parameter space. A model that cannot be trained, or does not fit,
// is reported before anything is laid out or started (trainable_check.c).
#include "trainable/trainable.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "autodiff/autodiff.h"
#include "base/alloc.h"
#include "base/str.h"
#include "model/input_fn.h"
#include "model/metrics.h"
#include "model/remote_input.h"
#include "ps/layout/row_buffer.h"
#include "trainable/trainable_inner.h"

// An earlier training binds the columns; in a new run the file does. Workers have bound those of an
// input that only they see.
static bel_status *open_training_input(bel_trainable *t, const bel_train_spec *spec)
{
    char *columns;
    if (t->estimator->remote_input != NULL)
        return bel_remote_input_open(t->estimator->remote_input, &t->input);
    BEL_TRY(bel_ckpt_latest_setting(t->estimator->config.model_dir, BEL_SETTING_COLUMNS, &columns));
    bel_status *status = bel_input_fn_open_like(spec->input_fn, spec->input_user, t->estimator,
                                                BEL_MODE_TRAIN, columns, &t->input);
    bel_free(columns);
    return status;
}

// The assignment to a state variable in a step of the function; NULL: none.
static bel_value *assigned_in(const bel_trainable *t, int function, size_t variable)
{
    const bel_built_function *f = &t->built->functions[function];
    return variable < f->assigned_count ? f->assigned[variable] : NULL;
}

static bel_value *bound(bel_graph *g, bel_value *gradient, bel_value *norm, double limit)
{
    bel_value *most = bel_scalar(g, BEL_DTYPE_F32, limit);
    return bel_mul(g, gradient, bel_div(g, most, bel_max(g, norm, most)));
}

// Bounds the gradients of this replica: elements, then norms, like shards do for the average.
static void clip_reports(const bel_trainable *t, int function, bel_value *const *variables,
                         bel_value **reports)
{
    bel_graph *g = t->built->graph;
    const bel_optimizers *optimizers = &t->built->optimizers[function];
    bel_value *all = NULL; // sum of squares of all gradients
    for (size_t v = 0; v < g->variable_count; v++) {
        if (variables[v] == NULL || reports[v] == NULL) continue;
        const bel_optimizer *own = bel_optimizers_find(optimizers, g->variables[v].name);
        if (own->clip_value > 0)
            reports[v] = bel_clip(g, reports[v], -own->clip_value, own->clip_value);
        bel_value *square = bel_reduce_sum_square(g, reports[v], NULL, 0, false);
        if (own->clip_norm > 0)
            reports[v] = bound(g, reports[v], bel_sqrt(g, square), own->clip_norm);
        all = all == NULL ? square : bel_add(g, all, square);
    }
    double limit = optimizers->main.clip_global_norm;
    if (limit == 0 || all == NULL) return;
    bel_value *norm = bel_sqrt(g, all);
    for (size_t v = 0; v < g->variable_count; v++)
        if (variables[v] != NULL && reports[v] != NULL)
            reports[v] = bound(g, reports[v], norm, limit);
}

// Adds the gradients of a function's loss with respect to the trainable variables that it names to
// the graph. State variables report their assignments.
static void add_bel_trainable_reports(bel_trainable *t, int function)
{
    bel_graph *graph = t->built->graph;
    const bel_built_function *f = &t->built->functions[function];
    size_t count = graph->variable_count, lookups = graph->lookup_count;
    bel_value **values = bel_xcalloc(count + lookups, sizeof *values);
    bel_value **reports = bel_trainable_reports(t, function);
    for (size_t v = 0; v < count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        bool named = bel_step_function_names(f->variables, variable->name);
        bool trainable = variable->kind == BEL_VARIABLE_TRAINABLE && named;
        values[v] = trainable ? variable->value : NULL;
    }
    for (size_t l = 0; l < lookups; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        bool named = bel_step_function_names(f->variables, graph->tables[lookup->table].name);
        values[count + l] = named ? graph->inputs[lookup->rows].value : NULL;
    }
    bool bf16 = t->estimator->config.precision == BEL_PRECISION_BF16;
    bel_gradients_keeping(graph, bf16 ? BEL_DTYPE_BF16 : BEL_DTYPE_F32, f->spec.loss, values,
                          (int)(count + lookups), reports);
    if (t->built->optimizers[function].main.clip_each_replica)
        clip_reports(t, function, values, reports);
    for (size_t v = 0; v < count; v++)
        if (values[v] == NULL) reports[v] = assigned_in(t, function, v);
    bel_free(values);
}

static bel_status *add_reports(bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    size_t functions = (size_t)t->built->function_count;
    size_t each = graph->variable_count + graph->lookup_count;
    t->reports = bel_xcalloc(functions * each, sizeof *t->reports);
    for (int f = 0; f < t->built->function_count; f++)
        add_bel_trainable_reports(t, f);
    return bel_graph_check(graph);
}

// Bit mask of the step functions that do not change a table. The model function updates all.
static uint32_t table_kept_by(const bel_trainable *t, int index)
{
    const bel_graph *graph = t->built->graph;
    uint32_t kept = 0;
    if (t->built->function_count == 1 && t->built->functions->variables == NULL) return 0;
    for (int f = 0; f < t->built->function_count; f++) {
        bool updates = false;
        for (int l = graph->tables[index].first_lookup; l >= 0; l = graph->lookups[l].next)
            updates =
                updates || bel_trainable_reports(t, f)[graph->variable_count + (size_t)l] != NULL;
        if (!updates) kept |= (uint32_t)1 << f;
    }
    return kept;
}

// `ids` counts those of all lookups in the table, for a full batch.
static void add_table(bel_trainable *t, int index)
{
    const bel_graph *graph = t->built->graph;
    const bel_graph_table *from = &graph->tables[index];
    bel_layout_table table = {.name = from->name,
                              .width = from->width,
                              .initializer = from->initializer,
                              .counts_replicas = t->built->optimizers->main.mean_by_contributors,
                              .kept_by = table_kept_by(t, index)};
    for (int l = from->first_lookup; l >= 0; l = graph->lookups[l].next)
        table.ids +=
            bel_graph_lookup_ids(graph, &graph->lookups[l]) * bel_input_batch_size(t->input);
    bel_layout_add_table(t->layout, &table);
}

// Bit mask of the step functions that do not change a variable. A job's only function updates all.
static uint32_t kept_by(const bel_trainable *t, size_t variable)
{
    uint32_t kept = 0;
    for (int f = 0; f < t->built->function_count && t->built->function_count > 1; f++)
        if (bel_trainable_reports(t, f)[variable] == NULL) kept |= (uint32_t)1 << f;
    return kept;
}

// Whether no step changes the variable: a state variable that is never assigned, or one that no
// step function names and has a gradient of. The model function updates all. Values of replicas
// keep their kind, which describes them.
static bool variable_stays(const bel_trainable *t, size_t variable)
{
    const bel_graph_variable *v = &t->built->graph->variables[variable];
    bool state = bel_variable_is_state(v->kind);
    if (bel_variable_is_kept_by_replica(v->kind)) return false;
    bool all = t->built->function_count == 1 && t->built->functions->variables == NULL;
    if (!state && all) return false;
    for (int f = 0; f < t->built->function_count; f++)
        if (bel_trainable_reports(t, f)[variable] != NULL) return false;
    return true;
}

// Returns how many shards hold the variables. Rows of tables are on all.
static int count_shards(const bel_trainable *t)
{
    const bel_run_config *config = &t->estimator->config;
    const bel_graph *graph = t->built->graph;
    int64_t bytes = 0, most;
    for (size_t v = 0; v < graph->variable_count; v++)
        bytes +=
            bel_shape_elements(&graph->variables[v].value->spec.shape) * (int64_t)sizeof(float);
    if (graph->table_count > 0 || config->min_shard_bytes == 0)
        return config->parameter_server_count;
    most = bytes / config->min_shard_bytes;
    if (most >= config->parameter_server_count) return config->parameter_server_count;
    return most > 1 ? (int)most : 1;
}

// With local steps slots are variables after those of the model: replicas update them, and shards
// take their means. They have the names of slots in checkpoints, which differ only in who wrote
// them. Returns their number; the caller frees the names.
static size_t list_slots(const bel_trainable *t, bel_layout_variable *variables, size_t count)
{
    size_t slots = 0;
    if (!bel_counting_is_local(&t->counting)) return 0;
    for (size_t v = 0; v < count; v++) {
        const bel_layout_variable *of = &variables[v];
        if (of->kind != BEL_VARIABLE_TRAINABLE) continue;
        const bel_optimizer *optimizer = bel_optimizers_find(t->built->optimizers, of->name);
        const bel_rule *rule = bel_rule_get(optimizer);
        for (int k = 0; k < rule->slot_count; k++) {
            size_t room = strlen(of->name) + BEL_RULE_SLOT_TEXT;
            char *name = bel_xmalloc(room);
            (void)bel_rule_slot_name(name, room, of->name, rule, 0, k);
            variables[count + slots++] = (bel_layout_variable){
                .name = name,
                .shape = of->shape,
                .kind = BEL_VARIABLE_STATE_MEAN,
                .slot = true,
                .initializer = {.kind = BEL_INIT_CONSTANT,
                                .value = (double)bel_rule_slot_start(optimizer, k)}};
        }
    }
    return slots;
}

// Makes the layout. Variables keep their order, so graph and layout number them alike.
static void make_layout(bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    size_t count = graph->variable_count;
    bel_layout_variable *variables =
        bel_xcalloc(count * (1 + BEL_RULE_MAX_SLOTS), sizeof *variables);
    t->variables = bel_xcalloc(count, sizeof *t->variables);
    for (size_t v = 0; v < count; v++) {
        const bel_graph_variable *from = &graph->variables[v];
        variables[v] =
            (bel_layout_variable){.name = from->name,
                                  .shape = from->value->spec.shape,
                                  .initializer = from->initializer,
                                  .kind = variable_stays(t, v) ? BEL_VARIABLE_FROZEN : from->kind,
                                  .kept_by = variable_stays(t, v) ? 0 : kept_by(t, v)};
        t->variables[v] = (int)v;
    }
    size_t slots = list_slots(t, variables, count);
    t->layout = bel_layout_create(variables, (int)(count + slots), count_shards(t));
    t->layout->exchanges = graph->collective_count > 0 && !bel_counting_has_ledger(&t->counting);
    for (size_t i = 0; i < graph->table_count; i++)
        add_table(t, (int)i);
    for (size_t s = count; s < count + slots; s++)
        bel_free(variables[s].name);
    bel_free(variables);
}

void bel_trainable_series_values(const bel_trainable *t, const double *sums,
                                 bel_step_value *out_values)
{
    for (int i = 0; i < t->series_count; i++) {
        double weight = sums[2 * i + 1], mean = weight != 0 ? sums[2 * i] / weight : 0;
        bool others = weight == 0 && t->built->function_count > 1; // another step's function has it
        out_values[i] = (bel_step_value){
            t->series[i].name, others ? NAN : bel_metric_of_mean(t->series[i].kind, mean)};
    }
}

static void add_series(bel_trainable *t, int function, const char *name, bel_metric_kind kind,
                       bel_value *sum, bel_value *weight)
{
    int i = t->series_count++;
    t->series[i] = (bel_series){.name = name, .kind = kind};
    t->series_values[function][2 * i] = sum;
    t->series_values[function][2 * i + 1] = weight;
}

static bel_status *check_series_room(const bel_trainable *t)
{
    if (t->series_count < BEL_MAX_SERIES) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "all step functions together have more than %d summaries",
                   BEL_MAX_SERIES);
}

// Lists summaries, and metrics if requested in training. An area under a curve, or a program's
// metric, is not a quotient of two sums and belongs to evaluations.
static bel_status *list_series(bel_trainable *t, int function)
{
    const bel_estimator_spec *spec = &t->built->functions[function].spec;
    const char *loss_name = t->built->functions[function].loss_name;
    if (t->built->function_count > 1) { // the step's loss alternates between functions
        BEL_TRY(check_series_room(t));
        add_series(t, function, loss_name, BEL_METRIC_MEAN, spec->loss, NULL);
    }
    for (int i = 0; i < spec->summary_count; i++) {
        const bel_summary *summary = &spec->summaries[i];
        if (summary->kind != BEL_SUMMARY_SCALAR) continue;
        BEL_TRY(check_series_room(t));
        add_series(t, function, summary->name, BEL_METRIC_MEAN, summary->value, NULL);
    }
    for (int i = 0; i < spec->metric_count && t->estimator->config.train_metrics; i++) {
        const bel_metric *metric = &spec->metrics[i];
        if (metric->kind == BEL_METRIC_AUC || metric->kind == BEL_METRIC_OWN) continue;
        BEL_TRY(check_series_room(t));
        add_series(t, function, metric->name, metric->kind, metric->sum, metric->weight);
    }
    return NULL;
}

static bel_status *check_series_names(const bel_trainable *t)
{
    for (int i = 0; i < t->series_count; i++)
        for (int other = 0; other < i; other++)
            if (strcmp(t->series[i].name, t->series[other].name) == 0) {
                return BEL_ERR(BEL_INVALID_ARGUMENT,
                               "two step functions have a summary or metric \"%s\"",
                               t->series[i].name);
            }
    return NULL;
}

static void take_observed(void *context, int64_t step, const bel_tensor *values)
{
    bel_observer_take(context, step, values);
}

// Lists observed summaries of all step functions: any step computes them.
static bel_status *list_observed(bel_trainable *t)
{
    const bel_run_config *config = &t->estimator->config;
    const bel_summary *summaries[BEL_MAX_SUMMARIES];
    int count = 0;
    for (int f = 0; f < t->built->function_count && config->save_summary_steps > 0; f++) {
        const bel_estimator_spec *spec = &t->built->functions[f].spec;
        for (int i = 0; i < spec->summary_count; i++) {
            if (spec->summaries[i].kind == BEL_SUMMARY_SCALAR) continue;
            if (count == BEL_MAX_SUMMARIES) {
                return BEL_ERR(BEL_INVALID_ARGUMENT,
                               "all step functions together have more than %d summaries",
                               BEL_MAX_SUMMARIES);
            }
            summaries[count] = &spec->summaries[i];
            t->observed[count++] = spec->summaries[i].value;
        }
    }
    if (count == 0) return NULL;
    t->observer = bel_observer_create(config->model_dir, summaries, count);
    t->observation = (bel_worker_observation){.values = t->observed,
                                              .count = count,
                                              .every_steps = config->save_summary_steps,
                                              .context = t->observer,
                                              .take = take_observed};
    return NULL;
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

// Computes the places of a function's return values among the returned numbers. Functions share the
// places, as each step belongs to one function.
static bel_status *place_returns(bel_trainable *t, int function)
{
    const bel_estimator_spec *spec = &t->built->functions[function].spec;
    int64_t first = 0;
    for (int i = 0; i < spec->return_count; i++) {
        const bel_return *from = &spec->returns[i];
        bel_shape shape = bel_value_shape(from->value);
        int64_t elements = bel_shape_elements(&shape);
        int64_t copies = from->kind == BEL_RETURN_REPLICAS ? t->estimator->replica_count : 1;
        if (elements > BEL_MAX_RETURNED || first + elements * copies > BEL_MAX_RETURNED) {
            return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                           "step function \"%s\" returns more than %d numbers",
                           t->built->functions[function].name, BEL_MAX_RETURNED);
        }
        t->returns[function][i] = (bel_worker_return){.value = from->value,
                                                      .kind = from->kind,
                                                      .elements = (int)elements,
                                                      .first = (int)first};
        first += elements * copies;
    }
    if (first > t->stats.returned) t->stats.returned = (int)first;
    return NULL;
}

static void make_models(bel_trainable *t)
{
    const bel_built *built = t->built;
    t->stats.series = t->series_count;
    t->layout->stats_bytes = bel_stats_room(t->stats);
    t->models = bel_xcalloc((size_t)built->function_count, sizeof *t->models);
    for (int f = 0; f < built->function_count; f++) {
        bel_value **reports = bel_trainable_reports(t, f);
        t->models[f] =
            (bel_worker_model){.graph = built->graph,
                               .loss = built->functions[f].spec.loss,
                               .reports = reports,
                               .variables = t->variables,
                               .fields = built->fields,
                               .row_gradients = reports + built->graph->variable_count,
                               .series = t->series_values[f],
                               .series_count = t->series_count,
                               .returns = t->returns[f],
                               .return_count = t->loop ? built->functions[f].spec.return_count : 0};
    }
}

// Builds a trainable from settings. After an error bel_trainable_deinit frees the parts that were
// made.
static bel_status *trainable_build(bel_trainable *t, const bel_train_spec *spec)
{
    const bel_estimator *estimator = t->estimator;
    BEL_TRY(bel_hooks_init(&t->hooks, spec));
    BEL_TRY(bel_estimator_counting(estimator, &t->counting));
    BEL_TRY(open_training_input(t, spec));
    if (bel_input_follow_secs(t->input) > 0) {
        if (spec->loop != NULL)
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "a loop of the program asks for steps, and so does a file that is "
                           "followed: expected one of them");
        t->loop = true;
    }
    BEL_TRY(bel_model_build(estimator, BEL_MODE_TRAIN, spec->loop, t->input, 0, &t->built));
    if (t->built->graph->variable_count == 0 && t->built->graph->table_count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the model has no variables: nothing can be trained");
    }
    BEL_TRY(bel_trainable_check_tables(t));
    BEL_TRY_CTX(add_reports(t), "gradients");
    BEL_TRY(bel_trainable_check(t));
    make_layout(t);
    BEL_TRY(bel_trainable_check_updates(t));
    BEL_TRY(bel_row_buffer_check(t->layout, estimator->replica_count));
    for (int f = 0; f < t->built->function_count; f++)
        BEL_TRY(list_series(t, f));
    BEL_TRY(check_series_names(t));
    BEL_TRY(list_observed(t));
    t->events =
        (bel_worker_events){.context = t, .before_step = before_step, .after_step = after_step};
    for (int f = 0; f < t->built->function_count && t->loop; f++)
        BEL_TRY(place_returns(t, f));
    make_models(t);
    bel_settings_gather(&t->settings, estimator, t->built, t->input, t->layout);
    bel_graph_write_collectives(t->built->graph, &t->collectives);
    return NULL;
}

bel_status *bel_trainable_init(bel_trainable *trainable, const bel_estimator *estimator,
                               const bel_train_spec *spec)
{
    *trainable = (bel_trainable){.estimator = estimator, .loop = spec->loop != NULL};
    return trainable_build(trainable, spec);
}

double bel_trainable_patience_secs(const bel_trainable *t)
{
    double records = (double)t->estimator->replica_count * (double)bel_input_batch_size(t->input);
    return t->estimator->config.stall_timeout + records * bel_input_follow_secs(t->input);
}

// Within the patience of a master that has asked its workers to stop, and well within that for a
// step.
static double finish_secs(const bel_run_config *config)
{
    const double most = 20;
    return config->stall_timeout / 4 < most ? config->stall_timeout / 4 : most;
}

bel_worker_config bel_trainable_worker_config(const bel_trainable *t, int worker)
{
    const bel_run_config *config = &t->estimator->config;
    return (bel_worker_config){.worker = worker,
                               .events = bel_hooks_for_workers(&t->hooks) ? &t->events : NULL,
                               .observation = t->observer != NULL ? &t->observation : NULL,
                               .layout = t->layout,
                               .models = t->models,
                               .model_count = t->built->function_count,
                               .stats = t->stats,
                               .input = t->input,
                               .tower_count = bel_estimator_towers(t->estimator, worker),
                               .program = bel_estimator_program_options(t->estimator),
                               .cards = bel_estimator_cards(t->estimator, worker),
                               .seed = config->seed,
                               .optimizers = t->built->optimizers,
                               .local_steps = t->counting.local_steps,
                               .rounding = bel_trainable_rounding(t),
                               .counts_replicas = config->average != BEL_AVERAGE_EXAMPLES,
                               .finish_secs = finish_secs(config),
                               .whole_steps = config->drop_remainder,
                               .audit_dir = config->audit_input ? config->model_dir : NULL,
                               .ledger = bel_counting_has_ledger(&t->counting)};
}

bel_rounding bel_trainable_rounding(const bel_trainable *t)
{
    switch (t->estimator->config.exchange_precision) {
    case BEL_EXCHANGE_BF16: return BEL_ROUNDING_BF16;
    case BEL_EXCHANGE_INT8: return BEL_ROUNDING_INT8;
    default: return BEL_ROUNDING_NONE;
    }
}

bel_shard_settings bel_trainable_shard_settings(const bel_trainable *t)
{
    const bel_run_config *config = &t->estimator->config;
    int64_t check = config->check_replicas;
    return (bel_shard_settings){.optimizers = t->built->optimizers,
                                .function_count = t->built->function_count,
                                .counting = t->counting,
                                .seed = config->seed,
                                .stats = t->stats,
                                .sums = config->average == BEL_AVERAGE_SUM,
                                .rounding = bel_trainable_rounding(t),
                                .check_steps = check > 0 ? check : INT64_MAX,
                                .table_admit_after = config->table_admit_after,
                                .table_expire_after = config->table_expire_after,
                                .table_expire_below = config->table_expire_below,
                                .tracks_changes = config->full_checkpoint_every > 1};
}

void bel_trainable_deinit(bel_trainable *t)
{
    bel_observer_destroy(t->observer);
    bel_settings_deinit(&t->settings);
    bel_str_deinit(&t->collectives);
    bel_layout_destroy(t->layout);
    bel_free(t->models);
    bel_free(t->reports);
    bel_free(t->variables);
    bel_built_destroy(t->built);
    if (t->input != NULL) bel_input_destroy(t->input);
    *t = (bel_trainable){.estimator = NULL};
}
