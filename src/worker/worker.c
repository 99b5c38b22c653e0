// The step loop of a worker, on one thread; a separate team runs the towers in parallel. Within a
// step reports come first, with zeros for chunks without values, and step statistics last: they
// tell a shard that this worker has finished. A worker keeps no state beyond a step, so a
// replacement repeats the step with the same bits.
//
// Data for other threads (step, activity and times) is in atomics beside the loop's variables,
// which only the loop's thread reads.

#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trace.h"
#include "ps/frames/frames.h"
#include "ps/layout/step_stats.h"
#include "worker/worker_inner.h"

// --- Life ----------------------------------------------------------------------------------------

bel_program_output *bel_worker_list_outputs(const bel_layout *layout, const bel_worker_model *model,
                                            int *out_reports, int *out_count)
{
    size_t variables = (size_t)bel_layout_model_variables(layout);
    size_t lookups = model->graph->lookup_count;
    bel_program_output *outputs = bel_xcalloc(
        variables + 1 + lookups + 2 * (size_t)model->series_count + (size_t)model->return_count,
        sizeof *outputs);
    int count = 0;
    for (int v = 0; v < (int)variables; v++)
        if (model->reports[v] != NULL) {
            outputs[count++] = (bel_program_output){.value = model->reports[v], .external = true};
        }
    *out_reports = count;
    outputs[count++] = (bel_program_output){.value = model->loss};
    for (size_t l = 0; l < lookups; l++)
        if (model->row_gradients[l] != NULL) {
            outputs[count++] =
                (bel_program_output){.value = model->row_gradients[l], .external = true};
        }
    for (int i = 0; i < 2 * model->series_count; i++)
        if (model->series[i] != NULL) {
            outputs[count++] = (bel_program_output){.value = model->series[i]};
        }
    for (int i = 0; i < model->return_count; i++)
        outputs[count++] = (bel_program_output){.value = model->returns[i].value};
    *out_count = count;
    return outputs;
}

// Lists the outputs, the variable or lookup of each, and the number of reported elements of each
// chunk.
static void list_outputs(const bel_worker *worker, bel_worker_function *function)
{
    const bel_layout *layout = worker->config.layout;
    const bel_worker_model *model = function->model;
    size_t lookups = model->graph->lookup_count;
    function->outputs =
        bel_worker_list_outputs(layout, model, &function->report_count, &function->output_count);
    function->lookup_outputs = bel_xcalloc(lookups, sizeof *function->lookup_outputs);
    function->output_variables =
        bel_xcalloc((size_t)layout->variable_count, sizeof *function->output_variables);
    function->chunk_reports =
        bel_xcalloc((size_t)layout->chunk_count, sizeof *function->chunk_reports);
    int next = 0;
    for (int v = 0; v < bel_layout_model_variables(layout); v++)
        if (model->reports[v] != NULL) function->output_variables[next++] = v;
    next = function->report_count + 1; // after the loss
    for (size_t l = 0; l < lookups; l++)
        function->lookup_outputs[l] = model->row_gradients[l] != NULL ? next++ : -1;
    function->first_series_output = next;
    if (bel_worker_is_local(worker)) return; // chunks are reported when all replicas have trained
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        for (int s = 0; s < chunk->segment_count; s++) {
            int variable = layout->segments[chunk->first_segment + s].variable;
            if (model->reports[variable] == NULL) continue;
            const bel_layout_variable *v = &layout->variables[variable];
            if (v->own_elements > 0) continue;
            function->chunk_reports[c] += bel_worker_overlap(chunk, v, 0, v->elements);
        }
    }
}

// Exchanges are among all replicas of a step, or in modes with a ledger among those of this worker,
// which are averaged before any report. The model has their number.
static bel_status *count_exchanges(const bel_worker *worker, bel_worker_function *function)
{
    const bel_graph *graph = function->model->graph;
    bel_value **values = bel_xcalloc((size_t)function->output_count, sizeof(bel_value *));
    int *exchange_of = bel_xcalloc(graph->collective_count, sizeof *exchange_of);
    for (int i = 0; i < function->output_count; i++)
        values[i] = function->outputs[i].value;
    function->exchange_count =
        bel_graph_exchanges(graph, values, function->output_count, exchange_of);
    bel_free(exchange_of);
    bel_free(values);
    int replicas =
        worker->config.ledger ? worker->replica_count : worker->config.assignment->replica_count;
    if (function->exchange_count == 0 || bel_replica_count(graph) == replicas) return NULL;
    return BEL_ERR(BEL_INTERNAL, "worker %d: the model exchanges among %d replicas of %d",
                   worker->config.worker, bel_replica_count(graph), replicas);
}

static bel_status *make_functions(bel_worker *worker)
{
    const bel_worker_config *config = &worker->config;
    worker->functions = bel_xcalloc((size_t)config->model_count, sizeof *worker->functions);
    worker->function = worker->functions;
    for (int f = 0; f < config->model_count; f++) {
        bel_worker_function *function = &worker->functions[f];
        function->model = &config->models[f];
        list_outputs(worker, function);
        BEL_TRY(count_exchanges(worker, function));
        worker->exchanges = worker->exchanges || function->exchange_count > 0;
    }
    worker->round_size = worker->exchanges ? worker->replica_count : config->tower_count;
    return NULL;
}

static void free_functions(bel_worker *worker)
{
    for (int f = 0; f < worker->config.model_count; f++) {
        bel_free(worker->functions[f].outputs);
        bel_free(worker->functions[f].output_variables);
        bel_free(worker->functions[f].lookup_outputs);
        bel_free(worker->functions[f].chunk_reports);
    }
    bel_free(worker->functions);
}

static bel_status *open_audit(bel_worker *worker)
{
    char *folder = bel_path_join(worker->config.audit_dir, BEL_AUDIT_FOLDER);
    bel_status *status = bel_audit_open(folder, worker->config.worker, worker->config.input,
                                        bel_worker_block_end(worker), &worker->audit);
    bel_free(folder);
    return status;
}

bel_status *bel_worker_create(const bel_worker_config *config, bel_worker **out_worker)
{
    bel_worker *worker = bel_xcalloc(1, sizeof *worker);
    atomic_init(&worker->shown_exchange, -1);
    const bel_assignment *assignment = config->assignment;
    size_t chunks = (size_t)config->layout->chunk_count;
    worker->config = *config;
    worker->first_replica = assignment->first_replica[config->worker];
    worker->replica_count = bel_assignment_replicas(assignment, config->worker);
    size_t replicas = (size_t)worker->replica_count;
    worker->weights = bel_xcalloc(2 * replicas, sizeof *worker->weights);
    worker->plain_weights = worker->weights + replicas;
    worker->chunk_left = bel_xcalloc(chunks, sizeof *worker->chunk_left);
    worker->towers = bel_xcalloc((size_t)config->tower_count, sizeof *worker->towers);
    worker->stats_size = bel_stats_size(config->stats);
    bel_exchange_init(&worker->exchange, worker->replica_count);
    bel_status *status = make_functions(worker);
    size_t runs = (size_t)bel_tower_runs(worker);
    for (int t = 0; t < config->tower_count; t++) {
        worker->towers[t].runs = bel_xcalloc(runs, sizeof(bel_replica_run));
        worker->towers[t].run = worker->towers[t].runs;
    }
    worker->stats_list = bel_xcalloc(replicas * (size_t)worker->stats_size, sizeof(double));
    worker->own_stats = bel_xcalloc((size_t)worker->stats_size, sizeof(double));
    if (status == NULL) status = bel_team_create(config->tower_count, &worker->dispatch);
    if (status == NULL) status = bel_worker_create_rows(worker);
    worker->devices = bel_xcalloc((size_t)config->tower_count, sizeof(bel_device *));
    if (status == NULL)
        status = bel_cards_choose(&config->cards, config->tower_count, worker->devices);
    if (status == NULL) bel_worker_pin_own(worker, true);
    if (status == NULL && config->audit_dir != NULL) status = open_audit(worker);
    for (int t = 0; t < config->tower_count && status == NULL; t++)
        status = bel_tower_init(&worker->towers[t], worker, t);
    if (status != NULL) {
        bel_worker_destroy(worker);
        return status;
    }
    const bel_program_options *program = &config->program;
    bel_log_write(BEL_LOG_DEBUG, "worker %d: %d threads, executor %s, activation memory %zu MiB",
                  config->worker, program->threads, program->asynchronous ? "async" : "sync",
                  program->memory_bytes >> 20);
    *out_worker = worker;
    return NULL;
}

void bel_worker_destroy(bel_worker *worker)
{
    if (worker == NULL) return;
    if (worker->config.ledger)
        bel_client_end_leases(worker->config.client); // prefetching threads wait for them
    for (int t = 0; t < worker->config.tower_count; t++)
        bel_tower_deinit(&worker->towers[t]);
    bel_team_destroy(worker->dispatch);
    bel_audit_close(worker->audit);
    bel_worker_unpin_space(worker);
    bel_worker_pin_own(worker, false);
    bel_worker_destroy_rows(worker);
    for (int t = 0; t < worker->config.tower_count; t++)
        bel_free(worker->towers[t].runs);
    bel_exchange_deinit(&worker->exchange);
    bel_free(worker->towers);
    bel_free(worker->devices);
    bel_free(worker->stats_list);
    bel_free(worker->own_stats);
    bel_free(worker->weights);
    bel_free(worker->chunk_left);
    free_functions(worker);
    bel_free(worker);
}

// --- Reports -------------------------------------------------------------------------------------

// Relaxed: the team starts the towers' threads after it.
static void begin_reports(bel_worker *worker)
{
    for (int c = 0; c < worker->config.layout->chunk_count; c++) {
        atomic_store_explicit(&worker->chunk_left[c],
                              worker->function->chunk_reports[c] * worker->replica_count,
                              memory_order_relaxed);
    }
}

// After all replicas have run: reports zeros for chunks without values, chunks with values of
// replicas, and after local steps all chunks. One replica's write to such a chunk says nothing
// about the others'. If it were counted down, the chunk could be passed, and its variable be one
// version ahead, before another replica has read it.
static bel_status *report_rest(bel_worker *worker)
{
    const bel_layout *layout = worker->config.layout;
    for (int c = 0; c < layout->chunk_count; c++) {
        bool changes =
            bel_chunk_changes(&layout->chunks[c], bel_decision_function(worker->decision));
        if (worker->function->chunk_reports[c] == 0 && changes)
            BEL_TRY(bel_worker_report_chunk(worker, c));
    }
    return NULL;
}

// Sums step statistics over each node's replicas with the same tree, and sends them.
static bel_status *report_stats_list(bel_worker *worker)
{
    const bel_assignment *assignment = worker->config.assignment;
    int w = worker->config.worker, size = worker->stats_size;
    memset(worker->own_stats, 0, (size_t)size * sizeof(double));
    for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        double *stats_list =
            worker->stats_list + (size_t)(node->first - worker->first_replica) * (size_t)size;
        for (int stride = 1; stride < node->count; stride *= 2)
            for (int j = 0; j + stride < node->count; j += 2 * stride)
                for (int i = 0; i < size; i++)
                    stats_list[j * size + i] += stats_list[(j + stride) * size + i];
        BEL_TRY(bel_client_stats(worker->config.client, worker->step, worker->decision, k,
                                 worker->hash, stats_list));
        for (int i = 0; i < size; i++)
            worker->own_stats[i] += stats_list[i];
    }
    return NULL;
}

// --- The loop ------------------------------------------------------------------------------------

// A tower that has finished works on reports that have arrived, so that less work is left after the
// last one. After a while without reports it only waits: polling would take a processor from towers
// that compute.
static void end_tower(bel_worker *worker)
{
    enum { PATIENCE_NS = 1000000 };
    const bel_worker_config *config = &worker->config;
    int64_t worked = bel_clock_ns();
    atomic_fetch_sub(&worker->computing, 1);
    while (config->meanwhile != NULL && atomic_load(&worker->computing) > 0 &&
           bel_clock_ns() - worked < PATIENCE_NS) {
        if (config->meanwhile(config->meanwhile_context)) {
            worked = bel_clock_ns();
        } else {
            sched_yield();
        }
    }
}

// One tile is one tower; each runs on a thread of the dispatch team.
static void run_towers(bel_worker *worker, bel_team_job *job)
{
    atomic_store(&worker->computing, worker->config.tower_count);
    bel_team_run(worker->dispatch, job, worker, worker->config.tower_count);
}

static void run_tower(void *argument, int64_t tile)
{
    bel_worker *worker = argument;
    bel_tower_step(&worker->towers[tile]);
    end_tower(worker);
}

// Returns the error of the lowest tower with one; the others' are usually consequences.
static bel_status *take_errors(bel_worker *worker)
{
    bel_status *first = NULL;
    for (int t = 0; t < worker->config.tower_count; t++) {
        bel_status *status = worker->towers[t].status;
        worker->towers[t].status = NULL;
        if (first == NULL) {
            first = status;
        } else {
            bel_status_ignore(status); // only the lowest tower's is returned
        }
    }
    return first;
}

static void take_in_tower(void *argument, int64_t tile)
{
    bel_worker *worker = argument;
    bel_tower *tower = &worker->towers[tile];
    int towers = worker->config.tower_count, end = bel_worker_round_end(worker);
    for (int r = worker->round + (int)tile; r < end && tower->status == NULL; r += towers)
        bel_tower_take(tower, r);
}

static void run_in_tower(void *argument, int64_t tile)
{
    bel_worker *worker = argument;
    int towers = worker->config.tower_count, end = bel_worker_round_end(worker);
    for (int r = worker->round + (int)tile; r < end; r += towers)
        bel_tower_run(&worker->towers[tile], r, worker->part);
    end_tower(worker);
}

// With tables or exchanges: all replicas of a round have their batches before one of them runs, so
// that their rows are pulled together. All of them reach an exchange before it runs.
static bel_status *run_round(bel_worker *worker)
{
    int towers = worker->config.tower_count;
    bel_team_run(worker->dispatch, take_in_tower, worker, towers);
    BEL_TRY(take_errors(worker));
    if (worker->config.layout->table_count > 0) BEL_TRY(bel_worker_pull_rows(worker));
    int exchanges = worker->function->exchange_count;
    for (worker->part = 0; worker->part <= exchanges; worker->part++) {
        run_towers(worker, run_in_tower);
        BEL_TRY(take_errors(worker));
        if (worker->part < exchanges) BEL_TRY(bel_worker_exchange(worker, worker->part));
    }
    return NULL;
}

static bel_status *run_rounds(bel_worker *worker)
{
    int size = worker->round_size;
    for (worker->round = 0; worker->round < worker->replica_count; worker->round += size)
        BEL_TRY(run_round(worker));
    return worker->config.layout->table_count > 0 ? bel_worker_report_rows(worker) : NULL;
}

// Hash of all dense parameters as the towers read them, without the padding between variables.
static uint64_t hash_parameters(const bel_worker *worker)
{
    const bel_layout *layout = worker->config.layout;
    uint64_t hash = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        size_t bytes = (size_t)layout->variables[v].elements * sizeof(float);
        hash = bel_hash64_more(hash, bel_space_variable(worker->config.space, v), bytes);
    }
    return hash;
}

// From a version to the last report, in the order described at the top of this file. Parameters are
// hashed before the first report, as chunks that all workers have reported are updated.
static bel_status *run_step(bel_worker *worker)
{
    const bel_worker_events *events = worker->config.events;
    begin_reports(worker);
    bool checks = (worker->decision & BEL_DECIDE_CHECK) != 0;
    worker->hash = checks ? hash_parameters(worker) : 0;
    if (events != NULL) BEL_TRY(events->before_step(events->context, worker->step));
    if (worker->config.layout->table_count > 0 || worker->exchanges) {
        BEL_TRY(run_rounds(worker));
    } else {
        run_towers(worker, run_tower);
        BEL_TRY(take_errors(worker));
    }
    int64_t begun = bel_clock_ns();
    BEL_TRY(report_rest(worker));
    bel_fault_point("worker_sends_stats");
    BEL_TRY(report_stats_list(worker));
    worker->times.push_ns += bel_clock_ns() - begun;
    bel_fault_point("worker_waits");
    if (events == NULL) return NULL;
    return events->after_step(events->context, worker->step, worker->own_stats);
}

// Waits for the version to compute on next. With a ledger, while shard 0 has no blocks for this
// worker, it waits for another version: in effect for the end.
static bel_status *next_version(bel_worker *worker)
{
    bel_client *client = worker->config.client;
    if (!worker->config.ledger) {
        return bel_client_wait(client, worker->step, &worker->decision);
    }
    do {
        BEL_TRY(bel_client_wait_next(client, &worker->step, &worker->decision));
    } while ((worker->decision & BEL_DECIDE_STOP) == 0 &&
             bel_client_lease(client, worker->times.steps) < 0);
    return NULL;
}

// Selects the step function of shard 0's decision.
static bel_status *choose_function(bel_worker *worker)
{
    int function = bel_decision_function(worker->decision);
    if (function >= worker->config.model_count) {
        return BEL_ERR(BEL_INTERNAL, "worker %d, step %lld: there is no step function %d",
                       worker->config.worker, (long long)worker->step, function);
    }
    worker->function = &worker->functions[function];
    return NULL;
}

static bel_worker_times times_of(const bel_worker *worker)
{
    bel_worker_times times = worker->times;
    for (int t = 0; t < worker->config.tower_count; t++) {
        times.input_ns += worker->towers[t].input_ns / worker->config.tower_count;
        times.compute_ns += worker->towers[t].compute_ns / worker->config.tower_count;
    }
    int threads = worker->config.tower_count * worker->config.program.threads;
    int64_t pushing = atomic_load_explicit(&worker->pushing_ns, memory_order_relaxed) / threads;
    times.push_ns += pushing;
    times.compute_ns = times.compute_ns > pushing ? times.compute_ns - pushing : 0;
    return times;
}

// Relaxed: each number is read separately, and guards nothing.
static void show_times(bel_worker *worker, int64_t total_ns)
{
    bel_worker_times t = times_of(worker);
    atomic_store_explicit(&worker->shown_times.input_ns, t.input_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->shown_times.compute_ns, t.compute_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->shown_times.push_ns, t.push_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->shown_times.exchange_ns, t.exchange_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->shown_times.total_ns, total_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->shown_times.steps, t.steps, memory_order_relaxed);
}

bel_worker_times bel_worker_time_so_far(const bel_worker *worker)
{
    return (bel_worker_times){
        .input_ns = atomic_load_explicit(&worker->shown_times.input_ns, memory_order_relaxed),
        .compute_ns = atomic_load_explicit(&worker->shown_times.compute_ns, memory_order_relaxed),
        .push_ns = atomic_load_explicit(&worker->shown_times.push_ns, memory_order_relaxed),
        .exchange_ns = atomic_load_explicit(&worker->shown_times.exchange_ns, memory_order_relaxed),
        .total_ns = atomic_load_explicit(&worker->shown_times.total_ns, memory_order_relaxed),
        .steps = atomic_load_explicit(&worker->shown_times.steps, memory_order_relaxed)};
}

int64_t bel_worker_input_bytes(const bel_worker *worker)
{
    int64_t bytes = 0;
    for (int t = 0; t < worker->config.tower_count; t++)
        bytes += atomic_load_explicit(&worker->towers[t].input_bytes, memory_order_relaxed);
    return bytes;
}

int bel_worker_tower_count(const bel_worker *worker)
{
    return worker->config.tower_count;
}

bel_device *bel_worker_device(const bel_worker *worker, int tower)
{
    return worker->devices[tower];
}

// Warns if a longer run spent a quarter of its time without a batch.
static void say_what_it_waited_for(const bel_worker *worker)
{
    enum { LONG_SECS = 30 };
    bel_worker_times t = times_of(worker);
    if (t.total_ns < LONG_SECS * INT64_C(1000000000) || t.input_ns < t.total_ns / 4) return;
    bel_log_write(BEL_LOG_INFO,
                  "worker %d waited for batches in %.0f %% of its time; hint: input_threads, where "
                  "processors are idle",
                  worker->config.worker, 100.0 * (double)t.input_ns / (double)t.total_ns);
}

// Runs on the worker's thread. `step` is the version of the computation; with a ledger it is the
// last one that arrived.
bel_status *bel_worker_run(bel_worker *worker)
{
    int64_t begun = bel_clock_ns();
    worker->step = worker->config.first_step;
    BEL_TRY(bel_client_pull(worker->config.client, worker->step));
    if (worker->config.ledger) worker->step = -1; // any version
    bool leaves;
    for (;;) {
        int64_t waiting = bel_clock_ns();
        atomic_store(&worker->shown_step, worker->step);
        atomic_store(&worker->waits, true);
        BEL_TRY(next_version(worker));
        bel_worker_pin_space(worker);
        int64_t now = bel_clock_ns();
        worker->times.exchange_ns += now - waiting;
        bel_trace_add(bel_worker_event(worker, BEL_TRACE_WAIT, 0), waiting, now);
        show_times(worker, now - begun);
        atomic_store(&worker->shown_step, worker->step);
        atomic_store(&worker->waits, false);
        leaves = worker->config.leaves != NULL && atomic_load(worker->config.leaves);
        if ((worker->decision & BEL_DECIDE_STOP) != 0 || leaves) break;
        BEL_TRY(choose_function(worker));
        bel_crash_set_step(worker->step);
        BEL_TRY(run_step(worker));
        worker->times.steps++;
        if (!worker->config.ledger) worker->step++;
    }
    worker->times.total_ns = bel_clock_ns() - begun;
    say_what_it_waited_for(worker);
    if (leaves || worker->config.finish_secs == 0) return NULL;
    return bel_input_finish(worker->config.input, worker->config.finish_secs);
}

typedef struct thread_job {
    bel_worker *worker;
    void (*job)(void *context);
    void *context;
} thread_job;

static void run_thread_job(void *argument, int64_t tile)
{
    (void)tile;
    const thread_job *j = argument;
    j->job(j->context);
}

// Runs on one thread of the dispatch team for each tower, which starts the job on that tower's
// team.
static void spread_thread_job(void *argument, int64_t tile)
{
    const thread_job *j = argument;
    bel_team *team = j->worker->towers[tile].team;
    bel_team_run(team, run_thread_job, argument, bel_team_size(team));
}

void bel_worker_on_all_threads(bel_worker *worker, void (*job)(void *context), void *context)
{
    thread_job j = {worker, job, context};
    bel_team_run(worker->dispatch, spread_thread_job, &j, worker->config.tower_count);
}

int64_t bel_worker_doing(bel_worker *worker, bel_str *out_words)
{
    int64_t step = atomic_load(&worker->shown_step);
    int exchange = atomic_load(&worker->shown_exchange);
    if (atomic_load(&worker->waits)) {
        if (worker->config.ledger) step++; // at least
        bel_str_printf(out_words, "waits for version %lld", (long long)step);
        bel_client_missing(worker->config.client, step, out_words);
    } else if (exchange >= 0) {
        bel_str_printf(out_words, "waits in exchange %d", exchange);
    } else {
        bel_str_puts(out_words, "computes");
    }
    return step;
}
