// Start of a member's parts with the master's setup. A setup always ends the running parts: first
// the worker's thread, then the shard, which reads the worker's reports in place, then the worker's
// memory. Memory is allocated once, parts that depend on the assignment with each new one, lanes
// and threads with each generation. So a process needs no more memory when training begins anew.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/long_wait.h"
#include "base/trace.h"
#include "launch/task/job_trace.h"
#include "member/member_inner.h"
#include "optim/settings.h"
#include "ps/layout/row_buffer.h"

static bool is_assignment(const member *m, const Bel__Setup *setup)
{
    const bel_assignment *assignment = m->assignment;
    bool same = assignment != NULL && setup->n_replicas == (size_t)assignment->worker_count &&
                setup->fan_in == m->relays.fan_in && setup->n_hosts == (size_t)m->relays.host_count;
    for (int h = 0; same && h < m->relays.host_count; h++)
        same = setup->hosts[h] == m->relays.hosts[h];
    for (int w = 0; same && w < assignment->worker_count; w++)
        same = setup->replicas[w] == bel_assignment_replicas(assignment, w);
    return same;
}

// True if the numbers of replicas make an assignment in which this process has replicas.
static bool check_assignment(const member *m, const Bel__Setup *setup)
{
    enum { MOST_WORKERS = 1024, MOST_REPLICAS = 1 << 20 };
    size_t workers = setup->n_replicas;
    int64_t replicas = 0;
    for (size_t w = 0; w < workers && workers <= MOST_WORKERS; w++) {
        if (setup->replicas[w] < 0) return false;
        replicas += setup->replicas[w];
    }
    if (workers > MOST_WORKERS || replicas < 1 || replicas > MOST_REPLICAS) return false;
    size_t index = (size_t)m->task->index;
    return !m->worker.here || (index < workers && setup->replicas[index] > 0);
}

// Takes the assignment of this generation. A changed assignment replaces the parts that depend on
// it; with a ledger there is only one.
static bel_status *take_assignment(member *m, const Bel__Setup *setup)
{
    if (is_assignment(m, setup)) return NULL;
    bool fits = check_assignment(m, setup) && (m->assignment == NULL || !bel_member_has_ledger(m));
    if (!fits) return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: replicas of the workers");
    bel_member_shard_forget_assignment(m);
    bel_member_forget_answers(m);
    bel_member_free_ranges(m);
    bel_member_forget_values(m);
    bel_member_relays_forget(m);
    bel_assignment_destroy(m->assignment);
    m->assignment = bel_assignment_create(setup->replicas, (int)setup->n_replicas);
    BEL_TRY(bel_member_relays_take_rule(m, setup));
    if (!m->shard.here) return NULL;
    m->shard.reporters = bel_fan_in_top(m->relays.tree);
    m->shard.assignment = m->shard.reporters.assignment;
    return NULL;
}

// Adds tables to a parameter server's layout, from the master's description, which is checked here.
static bel_status *add_tables(member *m, const Bel__Setup *setup)
{
    for (size_t t = 0; t < setup->n_tables; t++) {
        const Bel__Table *from = setup->tables[t];
        bool good = from->width > 0 && from->ids > 0 && from->start >= 0 &&
                    from->start <= BEL_INIT_NORMAL && isfinite(from->start_value);
        if (!good) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: table \"%s\"", from->name);
        }
        bel_layout_add_table(
            m->layout,
            &(bel_layout_table){
                .name = from->name,
                .width = from->width,
                .ids = from->ids,
                .kept_by = from->kept_by,
                .counts_replicas = m->optimizers->main.mean_by_contributors,
                .initializer = {.kind = (bel_init_kind)from->start, .value = from->start_value}});
    }
    return NULL;
}

// Returns false for an invalid shape, or one with too many elements to count.
static bool read_shape(const Bel__Variable *from, bel_shape *out_shape)
{
    int64_t elements = 1;
    if (from->n_dims > BEL_MAX_RANK) return false;
    *out_shape = (bel_shape){.rank = (int32_t)from->n_dims};
    for (size_t d = 0; d < from->n_dims; d++) {
        int64_t dim = from->dims[d];
        if (dim < 0 || (elements > 0 && dim > INT64_MAX / elements)) return false;
        elements *= dim;
        out_shape->dims[d] = dim;
    }
    return true;
}

// Creates a parameter server's layout: the same function of names, shapes and kinds as the
// master's.
static bel_status *make_layout(member *m, const Bel__Setup *setup)
{
    const int64_t most = (int64_t)1 << 40; // parameters
    size_t count = setup->n_variables;
    int64_t all = 0;
    if (setup->n_shards == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: no shards");
    }
    bel_layout_variable *variables = bel_xcalloc(count, sizeof *variables);
    bel_status *status = NULL;
    for (size_t v = 0; v < count && status == NULL; v++) {
        const Bel__Variable *from = setup->variables[v];
        bel_shape shape;
        bool good = from->kind >= 0 && from->kind <= BEL_VARIABLE_REPLICA_FIRST &&
                    read_shape(from, &shape) && bel_shape_elements(&shape) <= most - all;
        // one value by replica, in the first dimension
        bool of_replicas = good && from->kind >= BEL_VARIABLE_REPLICA;
        if (!good || (of_replicas && (shape.rank == 0 || shape.dims[0] == 0))) {
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: variable \"%s\"", from->name);
            break;
        }
        all += bel_shape_elements(&shape);
        variables[v] = (bel_layout_variable){.name = from->name,
                                             .shape = shape,
                                             .kind = (bel_variable_kind)from->kind,
                                             .kept_by = from->kept_by};
    }
    if (status == NULL) {
        m->layout = bel_layout_create(variables, (int)count, (int)setup->n_shards);
        m->layout->exchanges = setup->exchanges;
        m->layout->stats_bytes = bel_stats_room(m->settings.stats);
        status = add_tables(m, setup);
    }
    bel_free(variables);
    return status;
}

// Allocates the memory of a shard's process, once in its life.
static bel_status *make_memory(member *m)
{
    member_shard *s = &m->shard;
    const bel_layout *layout = m->worker.here ? m->worker.trainable.layout : m->layout;
    BEL_TRY(bel_member_make_parameters(m, layout, &s->memory.space));
    s->layout = layout;
    m->worker.space = m->worker.here ? s->memory.space : NULL;
    if (m->worker.here && bel_member_has_ledger(m)) {
        member_worker *w = &m->worker;
        BEL_TRY(bel_space_array(layout, "parameters of a worker", &w->values));
        w->space = bel_space_over(layout, (float *const[2]){w->values, w->values});
    }
    return bel_member_make_outboxes(m);
}

// Checks a setup against the layout, which a worker has from its model.
static bel_status *check_setup(const member *m, const Bel__Setup *setup)
{
    const bel_layout *layout = m->worker.here ? m->worker.trainable.layout : m->layout;
    if (setup->n_shards != (size_t)layout->shard_count) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "the master's model is on %zu shards and this process's on %d; hint: the same "
            "--min_shard_bytes everywhere",
            setup->n_shards, layout->shard_count);
    }
    if (setup->n_incarnations != (size_t)m->assignment->worker_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: incarnations of the workers");
    }
    return bel_row_buffer_check(layout, m->assignment->replica_count);
}

// A shard of this process reads its worker's reports in place, so it ends before they are freed.
void bel_member_stop_parts(member *m, double patience_secs)
{
    bel_member_worker_end(m, patience_secs);
    bel_member_relays_stop(m);
    bel_member_shard_stop(m);
    bel_member_worker_stop(m);
    bel_member_relays_free(m);
}

// Records from the first setup on. On the master's host the clocks are the same: then the master's
// last message cannot come from the future, nor the join from the past. On another host the setup
// gives the lead of the master's clock, minus the message's delay.
static bel_status *start_trace(member *m, const Bel__Setup *setup)
{
    if (m->traces || bel_trace_is_on()) return NULL;
    BEL_TRY(
        bel_job_trace_start(m->estimator->config.trace, m->estimator->config.model_dir, m->task));
    m->traces = bel_trace_is_on();
    int64_t least = setup->clock - bel_clock_ns(), most = setup->clock_lead;
    if (m->traces && (least > 0 || most < 0)) bel_trace_set_lead(least);
    return NULL;
}

// Reads the common part of every setup, and its settings; optimizers go into an array of
// BEL_MAX_STEP_FUNCTIONS.
static bel_status *read_settings(const Bel__Setup *setup, bel_optimizers *optimizers,
                                 bel_shard_settings *out_settings)
{
    const Bel__Counting *counting = setup->counting;
    bool good = setup->schedule != NULL && setup->segment != NULL && counting != NULL &&
                counting->kind >= 0 && counting->kind < BEL_COUNTING_KIND_COUNT &&
                counting->workers > 0 && counting->local_steps > 0 && setup->series >= 0 &&
                setup->series <= BEL_MAX_SERIES && setup->returned >= 0 &&
                setup->returned <= BEL_MAX_RETURNED && setup->check_steps >= 0 &&
                setup->table_admit_after >= 0 && setup->table_expire_after >= 0 &&
                setup->table_expire_below >= 0 && isfinite(setup->table_expire_below) &&
                setup->rounding >= 0 && setup->rounding < BEL_ROUNDING_COUNT;
    // Only if all workers count may there be more reports than workers, which then take turns.
    if (good && counting->kind != BEL_COUNTING_ALL)
        good = (size_t)counting->workers <= setup->n_replicas;
    if (!good)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: schedule, segment, counting, "
                                             "series, check_steps, rounding or tables");
    optimizers[0] = (bel_optimizers){.main = bel_optimizer_default()};
    *out_settings = (bel_shard_settings){
        .optimizers = optimizers,
        .function_count = 1,
        .counting = {.kind = (bel_counting_kind)counting->kind,
                     .workers = counting->workers,
                     .max_lead = counting->max_lead,
                     .local_steps = counting->local_steps},
        .seed = setup->seed,
        .stats = {.series = setup->series, .returned = setup->returned},
        .sums = setup->sums,
        .rounding = (bel_rounding)setup->rounding,
        .check_steps = setup->check_steps,
        .table_admit_after = setup->table_admit_after,
        .table_expire_after = setup->table_expire_after,
        .table_expire_below = setup->table_expire_below,
        .tracks_changes = setup->tracks_changes,
    };
    for (size_t i = 0; i < setup->n_optimizer; i++) {
        const Bel__Setting *setting = setup->optimizer[i];
        int function = out_settings->function_count - 1;
        if (strcmp(setting->name, BEL_FUNCTION_SETTING) == 0) {
            if (function + 1 == BEL_MAX_STEP_FUNCTIONS) {
                return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: more than %d step functions",
                               BEL_MAX_STEP_FUNCTIONS);
            }
            optimizers[++function] = (bel_optimizers){.main = bel_optimizer_default()};
            out_settings->function_count++;
            continue;
        }
        BEL_TRY_CTX(bel_optimizers_set(&optimizers[function], setting->name, setting->value),
                    "malformed setup: optimizer");
    }
    for (int f = 0; f < out_settings->function_count; f++)
        BEL_TRY(bel_optimizers_check(&optimizers[f]));
    return NULL;
}

// Begins, or begins again with another generation.
bel_status *bel_member_start_parts(member *m, uint32_t generation, const Bel__Setup *setup)
{
    bel_long_wait_note_training(true); // from here on requests work during any read
    bel_member_stop_parts(m, m->estimator->config.stall_timeout);
    bel_member_forget_evaluated(m, generation);
    m->generation = generation;
    m->told.status_ns = 0; // the new activity is reported at once
    bel_fault_point("member_begins");
    BEL_TRY(start_trace(m, setup));
    if (bel_member_is_evaluator(m)) return NULL;
    bool first = m->assignment == NULL;
    if (m->optimizers == NULL)
        m->optimizers = bel_xcalloc(BEL_MAX_STEP_FUNCTIONS, sizeof *m->optimizers);
    BEL_TRY(read_settings(setup, m->optimizers, &m->settings));
    BEL_TRY(take_assignment(m, setup));
    if (first && !m->worker.here) BEL_TRY(make_layout(m, setup));
    BEL_TRY(check_setup(m, setup));
    member_shard *s = &m->shard;
    if (s->here && first) BEL_TRY(make_memory(m));
    if (s->here && s->memory.space == NULL) {
        BEL_TRY(bel_member_make_parameters(m, s->layout, &s->memory.space));
    }
    if (m->worker.space == NULL && m->worker.here) {
        BEL_TRY(bel_member_make_parameters(m, m->worker.trainable.layout, &m->worker.space));
    }
    if (m->worker.here) BEL_TRY(bel_member_worker_start(m, setup));
    if (m->shard.here) BEL_TRY(bel_member_shard_start(m, setup));
    m->shard.held = m->shard.mirror.held = (bel_kept_state){0};
    return m->worker.here ? bel_member_worker_run(m) : NULL;
}
