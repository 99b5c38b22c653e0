// Relays of a generation (ps/layout/fan_in.h): whether there are any, where each worker reports,
// and what a lost worker means then. A relay has part of a step that its worker's successor does
// not, so with relays a worker that comes back begins a new generation (remote_hold.c): the shards
// keep their state, and the step is computed again. If they cannot make it again, training would go
// back to the newest checkpoint, so relays are then made only if the user has set fan_in.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "master/backend/remote_inner.h"
#include "ps/layout/fan_in.h"

static const bel_member_view *worker_at(const remote *r, int worker)
{
    return bel_members_get(r->config.members, bel_remote_worker(r, worker));
}

static bel_assignment *assignment_of(const remote *r)
{
    return bel_assignment_create(r->assignment.replicas, bel_remote_assigned(r));
}

// Members with unix sockets share memory, unless they are told not to.
static bool shares_memory(const remote *r)
{
    static const char unix_prefix[] = "unix:";
    bool local = strncmp(r->config.task->master_address, unix_prefix, sizeof unix_prefix - 1) == 0;
    return local && r->config.trainable->estimator->config.lane != BEL_LANE_GRPC;
}

static bool all_listen(const remote *r)
{
    for (int w = 0; w < r->seats; w++) {
        const char *address = worker_at(r, w)->address;
        if (r->assignment.replicas[w] > 0 && (address == NULL || address[0] == '\0')) return false;
    }
    return true;
}

// Returns why there can be no relays; NULL: there can.
static const char *why_none(const remote *r)
{
    const char *why = bel_trainable_why_no_relays(r->config.trainable);
    if (why != NULL) return why;
    if (shares_memory(r)) return "shards read them in place, in shared memory";
    if (r->config.task->ps_count == 0) return "the workers hold the shards";
    return all_listen(r) ? NULL : "a worker does not listen";
}

// Nodes of the relays in a worker's process: each has an array of sums as large as the model.
static int nodes_of(const bel_assignment *assignment, int fan_in, int worker)
{
    int levels[BEL_FAN_IN_LEVELS], nodes = 0;
    int count = bel_fan_in_relays(assignment, fan_in, worker, levels);
    for (int i = 0; i < count; i++) {
        bel_fan_in_place up = bel_fan_in_place_of(assignment, fan_in, worker, levels[i]);
        bel_reporters above = up.worker < 0
                                  ? bel_fan_in_top(assignment, fan_in)
                                  : bel_fan_in_members(assignment, fan_in, up.worker, up.level);
        const int *first = above.assignment->first_node + up.index;
        nodes += first[1] - first[0];
        bel_reporters_deinit(&above);
    }
    return nodes;
}

// Says how much memory they need, as a process makes its relays when a generation begins.
static void say_relays(const remote *r)
{
    bel_assignment *assignment = assignment_of(r);
    int most = 0, levels = r->backend.relay_levels, fan_in = r->fan_in;
    for (int w = 0; w < assignment->worker_count; w++) {
        int nodes = r->assignment.replicas[w] > 0 ? nodes_of(assignment, fan_in, w) : 0;
        if (nodes > most) most = nodes;
    }
    bel_assignment_destroy(assignment);
    double array = (double)r->config.trainable->layout->size * sizeof(float);
    bel_log_write(BEL_LOG_INFO,
                  "%d workers: their processes add the reports of groups of %d, on %d level%s; "
                  "sums take up to %.0f MiB of a process%s",
                  r->backend.worker_count, fan_in, levels, levels == 1 ? "" : "s",
                  array * most * 0x1p-20,
                  (fan_in & (fan_in - 1)) != 0 ? ", less with a power of two" : "");
}

void bel_remote_choose_relays(remote *r, bool runs, int running)
{
    const bel_trainable *t = r->config.trainable;
    int before = r->backend.relay_levels;
    int fan_in = runs ? running : bel_trainable_fan_in(t);
    bel_assignment *assignment = assignment_of(r);
    int levels = bel_fan_in_levels(assignment, fan_in);
    bel_assignment_destroy(assignment);
    r->fan_in = r->backend.relay_levels = 0;
    if (levels == 0) return;
    const char *why = runs ? NULL : why_none(r);
    const char *why_back = t->estimator->config.fan_in == 0 ? bel_trainable_why_no_hold(t) : NULL;
    if (!runs && why == NULL && why_back != NULL) {
        bel_log_write(BEL_LOG_INFO,
                      "each shard takes the reports of %d workers, without relays: with them a "
                      "lost worker would cost all steps since the newest checkpoint (%s); hint: "
                      "--fan_in %d",
                      r->backend.worker_count, why_back, fan_in);
        return;
    }
    if (why != NULL) {
        bel_log_write(BEL_LOG_INFO,
                      "each shard takes the reports of %d workers, without relays: %s",
                      r->backend.worker_count, why);
        return;
    }
    r->fan_in = fan_in;
    r->backend.relay_levels = levels;
    if (levels != before) say_relays(r);
}

void bel_remote_describe_relays(const remote *r, int member, Bel__Setup *message)
{
    int levels[BEL_FAN_IN_LEVELS];
    const bel_member_view *view = bel_members_get(r->config.members, member);
    message->fan_in = r->fan_in;
    if (r->fan_in == 0 || view->role != BEL_ROLE_WORKER) return;
    bel_assignment *assignment = assignment_of(r);
    int relays = bel_fan_in_relays(assignment, r->fan_in, view->index, levels);
    int top = relays > 0 ? levels[relays - 1] : 0; // the reporter that leaves its process
    bel_fan_in_place place = bel_fan_in_place_of(assignment, r->fan_in, view->index, top);
    if (place.worker >= 0) message->parent = worker_at(r, place.worker)->address;
    bel_assignment_destroy(assignment);
}
