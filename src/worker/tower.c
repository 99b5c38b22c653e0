// One tower: its threads, its program, its batches. The step and the replica id determine the block
// that a replica reads, or with a ledger the leases do. So a prefetching thread reads ahead, and a
// replacement of the worker reads the same blocks. A replica after the end of the input has no
// batch; all its elements count as finished, so that its chunks are reported anyway.
//
// If the model has collectives, the replicas of a tower are all under way at once: each has its
// batch, its arena and its context from the first part of its program to the last.
//
// Any thread of the team publishes gradients while the program runs; the mutex guards their first
// error, which ends the step when all towers have finished.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trace.h"
#include "ps/layout/step_stats.h"
#include "runtime/device.h"
#include "worker/worker_inner.h"

// Number of replicas that a tower plays in a step: index, index + towers, … below the worker's
// count.
static int rounds_of(const bel_tower *tower)
{
    int towers = tower->worker->config.tower_count;
    int left = tower->worker->replica_count - tower->index;
    return left <= 0 ? 0 : (left + towers - 1) / towers;
}

// Index of a replica's batch among those of its step.
static int64_t part_of_step(const bel_worker *worker, int64_t local_step, int replica)
{
    return local_step * worker->config.assignment->replica_count + worker->first_replica + replica;
}

// The order in which a tower reads blocks: its replicas of each step, or local step, one after the
// other. After the input's last block replicas have no examples. With a ledger more blocks may
// follow: those of a lost worker are leased again.
static int64_t next_block(void *context, int64_t index)
{
    const bel_tower *tower = context;
    const bel_worker_config *config = &tower->worker->config;
    int64_t rounds = rounds_of(tower), own = tower->index + index % rounds * config->tower_count;
    int64_t end = bel_worker_block_end(tower->worker);
    if (config->ledger) {
        int64_t first = bel_client_lease(config->client, index / rounds);
        if (first < 0) return BEL_BLOCK_END;
        return first + own < end ? first + own : BEL_BLOCK_EMPTY;
    }
    int64_t local = bel_worker_local_steps(tower->worker), turn = index / rounds;
    int64_t step = config->first_step + turn / local;
    int64_t part = part_of_step(tower->worker, turn % local, (int)own);
    int64_t block = bel_input_segment_block(&config->segment, step, part);
    return block < end ? block : BEL_BLOCK_END;
}

static bel_replica_run *run_of(const bel_tower *tower, int replica)
{
    bool all = tower->worker->exchanges;
    return &tower->runs[all ? replica / tower->worker->config.tower_count : 0];
}

const bel_replica_run *bel_tower_run_of(const bel_tower *tower, int replica)
{
    return run_of(tower, replica);
}

static void turn_to(bel_tower *tower, int replica)
{
    tower->replica = replica;
    tower->run = run_of(tower, replica);
}

// Batches are copied to the GPU directly from the reader's memory.
static void pin_batch(void *context, const void *memory, size_t bytes, bool there)
{
    const bel_tower *tower = context;
    bel_device_pin(tower->program.device, memory, bytes, there);
}

static bool is_cancelled(const void *client)
{
    return bel_client_is_cancelled(client);
}

bel_status *bel_tower_init(bel_tower *tower, bel_worker *worker, int index)
{
    enum { MOST_READERS = 4 }; // threads that make batches, unless configured
    const bel_worker_config *config = &worker->config;
    tower->worker = worker;
    tower->index = index;
    pthread_mutex_init(&tower->mutex, NULL);
    int runs = bel_tower_runs(worker);
    for (int r = 0; r < runs; r++)
        tower->runs[r].input_shapes =
            bel_xcalloc(config->models->graph->input_count, sizeof(bel_shape));
    tower->program = config->program;
    tower->program.device = worker->devices[index];
    tower->program.on_device = config->updater != NULL;
    BEL_TRY(bel_team_create(config->program.threads, &tower->team));
    BEL_TRY(bel_local_init(tower));
    tower->runners = bel_xcalloc((size_t)config->model_count, sizeof(bel_runner *));
    for (int f = 0; f < config->model_count; f++) {
        const bel_worker_function *function = &worker->functions[f];
        tower->runners[f] = bel_runner_create(config->models->graph, function->outputs,
                                              function->output_count, &tower->program, runs);
    }
    if (rounds_of(tower) == 0) return NULL;
    const bel_batch_watch watch = {.note = pin_batch, .context = tower};
    bool card = tower->program.device != NULL; // a fast one, which leaves its share of cores idle
    int threads = card ? tower->program.threads : 1;
    if (threads > MOST_READERS) threads = MOST_READERS;
    BEL_TRY(bel_prefetch_start(config->input, next_block, tower, runs, card ? &watch : NULL,
                               threads, &tower->prefetch));
    bel_prefetch_cancel_by(tower->prefetch, is_cancelled, config->client);
    return NULL;
}

void bel_tower_deinit(bel_tower *tower)
{
    if (tower->prefetch != NULL) bel_prefetch_stop(tower->prefetch);
    for (int f = 0; tower->runners != NULL && f < tower->worker->config.model_count; f++)
        bel_runner_destroy(tower->runners[f]);
    bel_free(tower->runners);
    bel_local_deinit(tower);
    if (tower->observer != NULL) bel_runner_destroy(tower->observer);
    bel_free(tower->observed);
    bel_team_destroy(tower->team);
    for (int r = 0; tower->worker != NULL && r < bel_tower_runs(tower->worker); r++)
        bel_free(tower->runs[r].input_shapes);
    bel_status_destroy(tower->status);
    if (tower->worker != NULL) pthread_mutex_destroy(&tower->mutex);
}

// Called by any thread of the team, while the program runs: part of an output is final. Outputs
// after the reports are the loss, rows and series. After local steps reports are made of values.
static void tower_publish(void *context, int output, int64_t first, int64_t count)
{
    bel_tower *tower = context;
    bel_worker *worker = tower->worker;
    const bel_worker_function *function = worker->function;
    if (bel_worker_is_local(worker)) return;
    if (output >= function->report_count) return; // rows are reported when all replicas have run
    bel_status *status =
        bel_worker_finish(worker, function->output_variables[output], first, count);
    if (status == NULL) return;
    pthread_mutex_lock(&tower->mutex);
    if (tower->status == NULL) {
        tower->status = status;
    } else {
        bel_status_ignore(status); // the first error is reported
    }
    pthread_mutex_unlock(&tower->mutex);
}

// Inputs are the batch's, variables the current version's or with local steps the replica's, and
// reports go to its gradient range: nothing is copied.
static void tower_bind(bel_tower *tower, bel_instance *instance, const bel_batch *batch)
{
    const bel_worker *worker = tower->worker;
    const bel_worker_config *config = &worker->config;
    const bel_worker_model *model = config->models; // common to all functions
    for (size_t i = 0; i < model->graph->input_count; i++)
        if (model->fields[i] >= 0)
            bel_instance_bind_input(instance, (int)i, batch->fields[model->fields[i]].data);
    const bel_updater *updater = config->updater;
    const float *there = updater != NULL ? updater->ops->values(updater, tower->index) : NULL;
    bool local = bel_worker_is_local(worker);
    for (size_t v = 0; v < model->graph->variable_count; v++) {
        int variable = model->variables[v];
        const float *values = there != NULL ? there + config->layout->variables[variable].offset
                              : local       ? bel_local_variable(tower, variable)
                                            : bel_space_variable(config->space, variable);
        bel_instance_bind_variable(instance, (int)v, values);
    }
}

// Announces the next batch, if it has arrived and is for the next run of this instance.
static void announce(bel_tower *tower, bel_instance *instance)
{
    const bel_worker_model *model = tower->worker->config.models;
    bool alone = tower->worker->config.model_count == 1 && bel_tower_runs(tower->worker) == 1;
    if (!alone || tower->program.device == NULL) return;
    const bel_batch *next = bel_prefetch_peek(tower->prefetch);
    size_t count = model->graph->input_count;
    bool fits = next != NULL && next->example_count > 0; // otherwise another instance runs next
    for (size_t i = 0; fits && i < count; i++)
        if (model->fields[i] >= 0)
            fits = bel_shape_equal(&next->fields[model->fields[i]].shape,
                                   &tower->run->input_shapes[i]);
    for (size_t i = 0; fits && i < count; i++)
        if (model->fields[i] >= 0)
            bel_instance_announce_input(instance, (int)i, next->fields[model->fields[i]].data);
}

static void bind_reports(bel_tower *tower, bel_instance *instance)
{
    const bel_worker *worker = tower->worker;
    const bel_worker_config *config = &worker->config;
    bool local = bel_worker_is_local(worker);
    float *range = local ? tower->local.gradients : config->ranges[tower->replica];
    const bel_worker_function *function = worker->function;
    for (int r = 0; r < function->report_count; r++) {
        const bel_layout_variable *variable =
            &config->layout->variables[function->output_variables[r]];
        int64_t own = bel_layout_own_first(variable, worker->first_replica + tower->replica);
        bel_instance_bind_output(instance, r, range + variable->offset + own);
    }
}

static double *stats_of(const bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    return worker->stats_list + (size_t)tower->replica * (size_t)worker->stats_size;
}

// Examples of the present batch, which stats_of may sum over several.
static double examples_of(const bel_tower *tower)
{
    return tower->run->batch != NULL ? (double)tower->run->batch->example_count : 0;
}

static double scalar_of(const bel_instance *instance, int output)
{
    return (double)*(const float *)bel_instance_output(instance, output).data;
}

// Fills the values that the step returns, from the program's `output` on. A value with separate
// numbers for each replica has a place for each; the other places stay 0, so that a sum over
// replicas keeps all.
static void fill_returns(bel_tower *tower, const bel_instance *instance, int output, double *stats)
{
    const bel_worker *worker = tower->worker;
    const bel_worker_model *model = worker->function->model;
    for (int i = 0; i < model->return_count; i++) {
        const bel_worker_return *returned = &model->returns[i];
        const float *values = bel_instance_output(instance, output + i).data;
        double factor = returned->kind == BEL_RETURN_MEAN ? examples_of(tower) : 1;
        double *place = stats + bel_stats_returned(worker->config.stats) + returned->first;
        if (returned->kind == BEL_RETURN_REPLICAS)
            place += (worker->first_replica + tower->replica) * returned->elements;
        for (int e = 0; e < returned->elements; e++)
            place[e] += (double)values[e] * factor;
    }
}

// A series without a weight is a mean over the replica's examples.
static void fill_series(bel_tower *tower, const bel_instance *instance, double *stats)
{
    const bel_worker_model *model = tower->worker->function->model;
    int output = tower->worker->function->first_series_output;
    for (int i = 0; i < model->series_count; i++) {
        if (model->series[2 * i] == NULL) continue; // another function's
        double *place = stats + bel_stats_series(i);
        double sum = scalar_of(instance, output++), weight = examples_of(tower);
        if (model->series[2 * i + 1] != NULL) {
            weight = scalar_of(instance, output++);
        } else {
            sum *= weight;
        }
        place[0] += sum;
        place[1] += weight;
    }
    fill_returns(tower, instance, output, stats);
}

// Logs details: the job ends with an error that has only the step.
static void say_not_finite(const bel_tower *tower, double value)
{
    enum { SHOWN = 8 };
    const bel_worker *worker = tower->worker;
    const bel_batch *batch = tower->run->batch;
    bel_str records = {0};
    for (int64_t i = 0; batch != NULL && i < batch->position_count && i < SHOWN; i++)
        bel_str_printf(&records, "%s%lld", i > 0 ? ", " : "",
                       (long long)batch->positions[i].number);
    bool more = batch != NULL && batch->position_count > SHOWN;
    bel_log_write(BEL_LOG_WARN,
                  "worker %d, replica %d: the loss of its batch is %g; its records, from 0: %s%s",
                  worker->config.worker, worker->first_replica + tower->replica, value,
                  records.text != NULL ? records.text : "none", more ? " …" : "");
    bel_str_deinit(&records);
}

// Adds the batch's statistics to those of the step. The loss follows the reports among the outputs.
static void fill_stats(bel_tower *tower, const bel_instance *instance)
{
    double *stats = stats_of(tower);
    double value = scalar_of(instance, tower->worker->function->report_count);
    stats[BEL_STATS_LOSS_SUM] += value * examples_of(tower);
    if (!isfinite(value) && stats[BEL_STATS_NONFINITE] == 0) {
        stats[BEL_STATS_NONFINITE] = 1;
        say_not_finite(tower, value);
    }
    fill_series(tower, instance, stats);
}

// Sets the replica's weight, as soon as its batch has arrived. A local step adds to it.
static void set_weight(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    double *stats = stats_of(tower);
    if (tower->local.step == 0) memset(stats, 0, (size_t)worker->stats_size * sizeof *stats);
    stats[BEL_STATS_EXAMPLES] += examples_of(tower);
    int64_t examples = (int64_t)stats[BEL_STATS_EXAMPLES];
    bel_weight weight = {.replicas = examples > 0, .examples = examples};
    worker->plain_weights[tower->replica] = bel_weight_once(weight);
    worker->weights[tower->replica] =
        worker->config.counts_replicas ? bel_weight_once(weight) : weight;
}

static void trace(const bel_tower *tower, bel_trace_span span, int64_t begun, int64_t done)
{
    const bel_worker *worker = tower->worker;
    const bel_device *device = span == BEL_TRACE_COMPUTE ? tower->program.device : NULL;
    uint8_t card = device != NULL ? (uint8_t)(device->number + 1) : 0;
    bel_trace_add((bel_trace_event){.role = BEL_TRACE_WORKER,
                                    .device = card,
                                    .index = (int16_t)worker->config.worker,
                                    .step = worker->step,
                                    .part = worker->first_replica + tower->replica,
                                    .span = (uint8_t)span},
                  begun, done);
}

// Waits for the prefetching thread. Rows get the shape of their ids, followed by the table's width.
static bel_status *take_batch(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    const bel_worker_model *model = worker->config.models; // common to all functions
    int64_t begun = bel_clock_ns();
    BEL_TRY(bel_prefetch_take(tower->prefetch, &tower->run->batch));
    int64_t ready = bel_clock_ns();
    trace(tower, BEL_TRACE_INPUT, begun, ready);
    tower->input_ns += ready - begun;
    atomic_store_explicit(&tower->input_bytes, bel_prefetch_bytes(tower->prefetch),
                          memory_order_relaxed);
    if (worker->audit != NULL && tower->run->batch != NULL) {
        int64_t part = part_of_step(worker, tower->local.step, tower->replica);
        BEL_TRY(bel_audit_note(worker->audit, worker->step, part, tower->run->batch));
    }
    if (tower->run->batch != NULL && tower->run->batch->example_count == 0)
        tower->run->batch = NULL;
    set_weight(tower);
    if (tower->run->batch == NULL) return NULL; // after the end, or a map skipped all of it
    const bel_graph *graph = model->graph;
    for (size_t i = 0; i < graph->input_count; i++)
        if (model->fields[i] >= 0)
            tower->run->input_shapes[i] = tower->run->batch->fields[model->fields[i]].shape;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        bel_shape shape = tower->run->input_shapes[lookup->ids];
        shape.dims[shape.rank++] = graph->tables[lookup->table].width;
        tower->run->input_shapes[lookup->rows] = shape;
    }
    return NULL;
}

// With a ledger replica 0 does not take part in every version: then the first version after a
// multiple is used instead.
static bool is_observed(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    const bel_worker_observation *observation = worker->config.observation;
    if (observation == NULL || worker->first_replica + tower->replica != 0) return false;
    if (tower->local.step > 0) return false;
    int64_t made = worker->step + 1, before = tower->observable;
    tower->observable = made;
    if (before == 0) before = made - 1;
    return made == worker->config.first_step + 1 ||
           made / observation->every_steps > before / observation->every_steps;
}

// Gets the instance for the replica's batch.
static bel_status *get_instance(const bel_tower *tower, bel_runner *runner, int slot,
                                bel_instance **out_instance)
{
    bel_status *status =
        bel_runner_get_beside_guests(runner, slot, tower->run->input_shapes, out_instance);
    bool full = bel_status_code(status) == BEL_RESOURCE_EXHAUSTED;
    if (!full || tower->worker->config.updater == NULL) return status;
    return bel_status_wrap(status, __FILE__, __LINE__,
                           "GPUs have the parameters as well; hint: update_device cpu");
}

// Runs before the replica's program, so that the version's values cannot be overwritten yet. It has
// the same context, so that random operations draw the same numbers.
static bel_status *observe(bel_tower *tower)
{
    const bel_worker_config *config = &tower->worker->config;
    const bel_worker_observation *observation = config->observation;
    bel_instance *instance;
    if (tower->observer == NULL) {
        tower->observed = bel_xcalloc((size_t)observation->count, sizeof *tower->observed);
        for (int i = 0; i < observation->count; i++)
            tower->observed[i].value = observation->values[i];
        tower->observer = bel_runner_create(config->models->graph, tower->observed,
                                            observation->count, &tower->program, 1);
    }
    BEL_TRY(get_instance(tower, tower->observer, 0, &instance));
    tower_bind(tower, instance, tower->run->batch);
    bel_tower_bind_rows(tower, instance);
    BEL_TRY(bel_instance_run(instance, tower->team, &tower->run->context, NULL, NULL));
    bel_tensor *values = bel_xcalloc((size_t)observation->count, sizeof *values);
    for (int i = 0; i < observation->count; i++)
        values[i] = bel_instance_output(instance, i);
    observation->take(observation->context, tower->worker->step + 1, values);
    bel_free(values);
    return NULL;
}

// Runs before part 0: prepares the program for this batch, with all addresses.
static bel_status *begin_batch(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    bel_replica_run *run = tower->run;
    bel_fault_point("tower_compute");
    run->context.seed = worker->config.seed;
    run->context.step = worker->step;
    run->context.local_step = tower->local.step;
    run->context.local_steps = bel_worker_local_steps(worker);
    run->context.replica = worker->first_replica + tower->replica;
    run->context.traced_as = worker->config.worker + 1;
    run->context.tower = tower->index;
    if (is_observed(tower)) BEL_TRY_CTX(observe(tower), "summaries");
    int slot = (int)(run - tower->runs);
    bel_runner *runner = tower->runners[worker->function - worker->functions];
    BEL_TRY(get_instance(tower, runner, slot, &run->instance));
    tower_bind(tower, run->instance, run->batch);
    announce(tower, run->instance);
    bind_reports(tower, run->instance);
    bel_tower_bind_rows(tower, run->instance);
    return NULL;
}

// The program publishes reports while it runs; statistics and rows follow at its end.
static bel_status *run_part(bel_tower *tower, int part)
{
    const bel_worker *worker = tower->worker;
    bel_replica_run *run = tower->run;
    int64_t begun = bel_clock_ns();
    if (part == 0) BEL_TRY(begin_batch(tower));
    int exchanges = worker->function->exchange_count;
    if (exchanges == 0) {
        BEL_TRY(bel_instance_run(run->instance, tower->team, &run->context, tower_publish, tower));
    } else {
        BEL_TRY(bel_instance_run_part(run->instance, part, tower->team, &run->context,
                                      tower_publish, tower));
    }
    if (part == exchanges) {
        fill_stats(tower, run->instance);
        bel_tower_sum_rows(tower);
        if (bel_worker_is_local(worker)) bel_local_update(tower);
    }
    int64_t done = bel_clock_ns();
    trace(tower, BEL_TRACE_COMPUTE, begun, done);
    tower->compute_ns += done - begun;
    return NULL;
}

// A replica without examples counts as having written all elements; its gradients are never read.
static void pass_over(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    const bel_layout *layout = worker->config.layout;
    const bel_worker_function *function = worker->function;
    for (int r = 0; r < function->report_count; r++)
        tower_publish(tower, r, 0, layout->variables[function->output_variables[r]].elements);
}

// Runs on the tower's thread, when no thread publishes.
static void keep_error(bel_tower *tower, bel_status *status)
{
    const bel_worker *worker = tower->worker;
    if (tower->status != NULL) {
        bel_status_ignore(status); // a failed report came first
    } else if (status != NULL) {
        tower->status = bel_status_wrap(
            status, __FILE__, __LINE__, "worker %d, step %lld, replica %d", worker->config.worker,
            (long long)worker->step, worker->first_replica + tower->replica);
    }
}

void bel_tower_take(bel_tower *tower, int replica)
{
    turn_to(tower, replica);
    if (replica == tower->index && tower->local.step == 0)
        bel_fault_point("tower_step"); // once a step
    keep_error(tower, take_batch(tower));
    if (tower->status == NULL) bel_tower_gather_ids(tower);
}

void bel_tower_run(bel_tower *tower, int replica, int part)
{
    if (tower->status != NULL) return;
    turn_to(tower, replica);
    if (tower->run->batch != NULL) {
        keep_error(tower, run_part(tower, part));
    } else if (part == 0) {
        pass_over(tower);
    }
}

// Runs each replica's batch and program, one after the other.
static void run_replicas(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    for (int replica = tower->index; replica < worker->replica_count && tower->status == NULL;
         replica += worker->config.tower_count) {
        bel_tower_take(tower, replica);
        if (bel_worker_is_local(worker) && tower->local.step == 0) bel_local_begin(tower);
        bel_tower_run(tower, replica, 0);
    }
}

// Without tables and exchanges, on the thread of this tower. Blocks are read in the order of the
// input, so local steps are the outer loop.
void bel_tower_step(bel_tower *tower)
{
    for (int h = 0; h < bel_worker_local_steps(tower->worker); h++) {
        if (h > 0 && bel_client_is_cancelled(tower->worker->config.client)) {
            keep_error(tower, BEL_ERR(BEL_CANCELLED, "the round is not needed any more"));
            return;
        }
        tower->local.step = h;
        run_replicas(tower);
    }
}
