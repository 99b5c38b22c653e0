// Checks of a model for training, by the graph and the settings of the run. They run before
// anything is laid out, and their errors name the change to make. bel_run_config_check compares
// settings without a model.
#include "trainable/trainable_inner.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "ps/layout/fan_in.h"
#include "ps/layout/row_buffer.h"

// Checks that each pattern of a function matches a trainable variable, as a misspelt one would have
// no effect.
static bel_status *check_names(const bel_trainable *t, const bel_built_function *function)
{
    const bel_graph *graph = t->built->graph;
    for (const char *rest = function->variables; rest != NULL;) {
        const char *comma = strchr(rest, ',');
        size_t length = comma != NULL ? (size_t)(comma - rest) : strlen(rest);
        char *pattern = bel_xstrndup(rest, length);
        bool matches = false;
        for (size_t v = 0; v < graph->variable_count && !matches; v++) {
            matches = graph->variables[v].kind == BEL_VARIABLE_TRAINABLE &&
                      bel_step_function_names(pattern, graph->variables[v].name);
        }
        for (size_t i = 0; i < graph->table_count && !matches; i++)
            matches = bel_step_function_names(pattern, graph->tables[i].name);
        bel_status *status = matches
                                 ? NULL
                                 : BEL_ERR(BEL_INVALID_ARGUMENT,
                                           "step function \"%s\": no trainable variable or table "
                                           "matches \"%s\"",
                                           function->name, pattern);
        bel_free(pattern);
        if (status != NULL) return status;
        rest = comma != NULL ? comma + 1 : NULL;
    }
    return NULL;
}

// Checks that each of several step functions updates something.
static bel_status *check_functions(const bel_trainable *t)
{
    const bel_built *built = t->built;
    const bel_graph *graph = built->graph;
    for (int f = 0; f < built->function_count; f++)
        BEL_TRY(check_names(t, &built->functions[f]));
    if (built->function_count == 1 && built->functions->variables == NULL) return NULL;
    for (int f = 0; f < built->function_count; f++) {
        bool updates = false;
        for (size_t v = 0; v < graph->variable_count + graph->lookup_count; v++)
            updates = updates || bel_trainable_reports(t, f)[v] != NULL;
        if (updates) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "step function \"%s\": its loss depends on no trainable variable that "
                       "\"%s\" names",
                       built->functions[f].name,
                       built->functions[f].variables != NULL ? built->functions[f].variables : "*");
    }
    return NULL;
}

// Replicas on this machine: in a job on several hosts those of its workers.
static int replicas_here(const bel_estimator *estimator)
{
    int workers = bel_estimator_local_size(estimator), most = 0;
    for (int w = 0; w < estimator->config.num_workers; w++)
        if (estimator->replicas_of[w] > most) most = estimator->replicas_of[w];
    bool known = workers > 0 && workers < estimator->config.num_workers;
    return known && workers * most < estimator->replica_count ? workers * most
                                                              : estimator->replica_count;
}

// Part of the parameter servers that is on one host; all of them if their hosts are not known.
static double servers_here(const bel_estimator *estimator, int shards)
{
    int hosts = estimator->server_hosts;
    return hosts > 1 && shards > 0 ? (double)((shards + hosts - 1) / hosts) / shards : 1;
}

// Checks the memory. Parameters need simultaneously: two buffers, a snapshot, slots and averages
// with their snapshot, and a gradient range for each replica; a copy of a parameter server two
// buffers, sums at both ends, slots and averages. Models that do not fit are reported before
// anything is laid out.
static bel_status *check_memory(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    double parameters = 0;
    for (size_t v = 0; v < graph->variable_count; v++)
        parameters += (double)bel_shape_elements(&graph->variables[v].value->spec.shape);
    int kept = 0; // maximum over the functions
    for (int f = 0; f < t->built->function_count; f++) {
        int own = bel_optimizers_kept(&t->built->optimizers[f]);
        if (own > kept) kept = own;
    }
    int replicas = replicas_here(t->estimator);
    double servers = 3 + 2 * kept + t->estimator->server_copies * (4 + kept);
    double copies =
        servers * servers_here(t->estimator, (int)t->estimator->config.parameter_server_count) +
        replicas;
    if (bel_counting_is_local(&t->counting)) // slots have two buffers, and a copy in each replica
        copies += kept + (kept + 1) * replicas;
    if (t->estimator->config.update_device == BEL_DEVICE_CUDA) copies = 1 + kept; // the snapshot
    if (bel_counting_has_ledger(&t->counting)) copies += t->estimator->config.num_workers;
    double needed = parameters * copies * sizeof(float);
    double available = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed <= available) return NULL;
    const bel_run_config *config = &t->estimator->config;
    bool alone = !t->estimator->in_job && config->num_workers == 1 && graph->table_count == 0;
    bool there = alone && bel_estimator_wants_cards(config) &&
                 config->update_device == BEL_DEVICE_AUTO; // the hint may apply
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%.0f parameters need %.1f GiB with optimizer and gradients (%.0f copies), but "
                   "this machine has %.1f GiB%s",
                   parameters, needed * 0x1p-30, copies, available * 0x1p-30,
                   there ? "; hint: update_device cuda, where GPUs have room for most of it" : "");
}

// Checks that every pattern of a function's optimizers matches a trainable variable or a table.
static bel_status *check_patterns_of(const bel_trainable *t, int function)
{
    const bel_graph *graph = t->built->graph;
    size_t most = graph->variable_count + graph->table_count;
    const char **names = bel_xcalloc(most, sizeof *names);
    size_t count = 0;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        if (variable->kind == BEL_VARIABLE_TRAINABLE &&
            bel_step_function_names(t->built->functions[function].variables, variable->name))
            names[count++] = variable->name;
    }
    for (size_t i = 0; i < graph->table_count; i++)
        if (bel_step_function_names(t->built->functions[function].variables, graph->tables[i].name))
            names[count++] = graph->tables[i].name;
    bel_status *status = bel_optimizers_check_names(&t->built->optimizers[function], names, count);
    bel_free(names);
    return status;
}

static bel_status *check_patterns(const bel_trainable *t)
{
    for (int f = 0; f < t->built->function_count; f++)
        BEL_TRY(check_patterns_of(t, f));
    return NULL;
}

// Reports unsupported uses of tables before anything is laid out.
bel_status *bel_trainable_check_tables(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    const char *disk = t->estimator->config.table_disk;
    if (graph->table_count == 0 && disk != NULL && disk[0] != '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "table_disk %s is for the rows of tables, and the model has no table", disk);
    }
    if (graph->table_count == 0) return NULL;
    bool each = false;
    for (int f = 0; f < t->built->function_count; f++)
        each = each || t->built->optimizers[f].main.clip_each_replica;
    if (each) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "table \"%s\": clip_each_replica is only for dense variables",
                       graph->tables[0].name);
    }
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

// Whether `value` depends on values that replicas exchange.
static bool is_exchanged(const bel_graph *graph, bel_value *value)
{
    int *exchange_of = bel_xcalloc(graph->collective_count, sizeof *exchange_of);
    int exchanges = bel_graph_exchanges(graph, &value, 1, exchange_of);
    bel_free(exchange_of);
    return exchanges > 0;
}

static bel_status *check_observed(const bel_trainable *t, const bel_estimator_spec *spec,
                                  const char *first)
{
    for (int i = 0; i < spec->summary_count; i++) {
        const bel_summary *summary = &spec->summaries[i];
        if (summary->kind == BEL_SUMMARY_SCALAR) continue;
        if (!is_exchanged(t->built->graph, summary->value)) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "summary \"%s\": histograms and images are computed by one replica, but "
                       "this one is made of what replicas exchange (%s)",
                       summary->name, first);
    }
    return NULL;
}

// Checks before the layout that replicas can exchange values within a step. A single replica's
// graph has no collectives.
static bel_status *check_collectives(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    if (graph->collective_count == 0) return NULL;
    char first[BEL_COLLECTIVE_TEXT];
    const char *why = NULL;
    (void)bel_graph_collective_text(graph, 0, first);
    if (t->counting.kind == BEL_COUNTING_BACKUPS) {
        why = "with backups (replicas_to_aggregate below the number of workers) the replicas of a "
              "step are known only at its end";
    } else if (t->estimator->config.executor == BEL_EXECUTOR_ASYNC) {
        why = "the asynchronous executor does not stop for it: use executor sync";
    }
    if (why != NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s: replicas exchange values within a step: %s", first,
                       why);
    }
    for (int f = 0; f < t->built->function_count; f++)
        BEL_TRY(check_observed(t, &t->built->functions[f].spec, first));
    return NULL;
}

// Refuses a model's scale beside that by the number of replicas: one of the two was overlooked.
static bel_status *check_scale(const bel_trainable *t)
{
    const bel_built *built = t->built;
    if (t->estimator->config.scale_learning_rate == BEL_SCALE_NONE) return NULL;
    for (int f = 0; f < built->function_count; f++) {
        if (!bel_optimizers_have_scale(&built->optimizers[f])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "rate_scale and scale_learning_rate exclude each other: the one multiplies "
                       "the learning rate by a number, the other by that of the replicas");
    }
    return NULL;
}

// Values of replicas need the same replicas in every step.
static bel_status *check_replicas(const bel_trainable *t)
{
    const bel_graph *graph = t->built->graph;
    const char *why = NULL;
    if (bel_counting_takes_stale(&t->counting)) why = "async and bounded have no common steps";
    if (t->estimator->config.elastic_rescale) why = "with elastic_rescale their number changes";
    for (size_t v = 0; why != NULL && v < graph->variable_count; v++) {
        if (!bel_variable_is_kept_by_replica(graph->variables[v].kind)) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "variable \"%s\": each replica of a step has a separate value: %s",
                       graph->variables[v].name, why);
    }
    return NULL;
}

static bel_status *refuse_local(const bel_trainable *t, const char *what, const char *name,
                                const char *why)
{
    return BEL_ERR(BEL_UNIMPLEMENTED, "local_steps is %d, but %s \"%s\" %s; hint: local_steps 1",
                   t->counting.local_steps, what, name, why);
}

// Refuses models whose replicas need each other, or a shard's work, in every batch.
static bel_status *check_local(const bel_trainable *t)
{
    const bel_built *built = t->built;
    const bel_graph *graph = built->graph;
    if (!bel_counting_is_local(&t->counting)) return NULL;
    if (graph->table_count > 0)
        return refuse_local(t, "table", graph->tables[0].name,
                            "has rows on the shards, which every batch reads and updates there");
    if (graph->collective_count > 0) {
        char first[BEL_COLLECTIVE_TEXT];
        return refuse_local(t, "collective", bel_graph_collective_text(graph, 0, first),
                            "exchanges values of all replicas in every batch");
    }
    if (built->function_count > 1)
        return refuse_local(t, "step function", built->functions[1].name,
                            "takes turns with another one, step by step");
    for (size_t v = 0; v < graph->variable_count; v++)
        if (graph->variables[v].kind == BEL_VARIABLE_STATE_SUM)
            return refuse_local(t, "variable", graph->variables[v].name,
                                "adds up over replicas, and a mean of their values is no sum");
    const bel_estimator_spec *spec = &built->functions->spec;
    for (int i = 0; t->loop && i < spec->return_count; i++)
        if (spec->returns[i].kind == BEL_RETURN_REPLICAS)
            return refuse_local(t, "returned value of", built->functions->name,
                                "is separate for each replica, which has several batches");
    return NULL;
}

int bel_trainable_fan_in(const bel_trainable *t)
{
    int64_t fan_in = t->estimator->config.fan_in;
    return fan_in > 0 ? (int)fan_in : BEL_FAN_IN;
}

// Whether a step that is computed again would change a rule's slots twice.
static bool prepares(const bel_trainable *t)
{
    const bel_layout *layout = t->layout;
    for (int f = 0; f < t->built->function_count; f++)
        for (int v = 0; v < layout->variable_count; v++)
            if (bel_rule_get(
                    bel_optimizers_find(&t->built->optimizers[f], layout->variables[v].name))
                    ->prepares)
                return true;
    return false;
}

const char *bel_trainable_why_no_hold(const bel_trainable *t)
{
    if (t->loop) return "a loop of the program decides on the steps";
    if (bel_counting_has_ledger(&t->counting)) return "not every worker counts in each step";
    if (t->estimator->config.elastic_rescale) return "replicas follow the workers";
    if (bel_hooks_period(&t->hooks) > 0) return "there are hooks";
    return prepares(t) ? "the optimizer changes its slots before the update" : NULL;
}

const char *bel_trainable_why_no_relays(const bel_trainable *t)
{
    const bel_built *built = t->built;
    if (bel_counting_has_ledger(&t->counting)) return "not every worker counts in each step";
    if (t->loop) return "a loop of the program decides on the steps";
    if (built->function_count > 1) return "there are several step functions";
    if (built->graph->table_count > 0) return "rows of tables go straight to their shards";
    if (built->graph->collective_count > 0) return "workers exchange values within a step";
    return NULL;
}

static bel_status *check_relays(const bel_trainable *t)
{
    int64_t fan_in = t->estimator->config.fan_in;
    const char *why = fan_in > 0 ? bel_trainable_why_no_relays(t) : NULL;
    if (why == NULL) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "fan_in is %lld, but there can be no relays: %s",
                   (long long)fan_in, why);
}

bel_status *bel_trainable_check(const bel_trainable *t)
{
    BEL_TRY(check_local(t));
    BEL_TRY(check_functions(t));
    BEL_TRY(check_collectives(t));
    BEL_TRY(check_replicas(t));
    BEL_TRY(check_scale(t));
    BEL_TRY(check_relays(t));
    BEL_TRY(check_patterns(t));
    return check_memory(t);
}
