// Relays of a generation (ps/layout/fan_in.h): whether there are any, where each worker reports,
// and what a lost worker means then. A relay has part of a step that its worker's successor does
// not, so with relays a worker that comes back begins a new generation (remote_hold.c): the shards
// keep their state, and the step is computed again. If they cannot make it again, training would go
// back to the newest checkpoint, so relays are then made only if the user has set fan_in.
//
// Workers of one host that can share memory, as their joins say, form the lowest groups.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
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
    return r->config.task->ps_count == 0 ? "the workers hold the shards" : NULL;
}

// Finds the sizes of the runs of neighboring workers that can share memory. Returns their number;
// 0: no two neighbors can.
static int find_hosts(const remote *r, int *out_hosts)
{
    const char *before = NULL;
    int count = 0, most = 0;
    for (int w = 0; w < r->seats; w++) {
        const char *place = worker_at(r, w)->place;
        if (r->assignment.replicas[w] == 0) continue;
        bool same =
            before != NULL && place != NULL && place[0] != '\0' && strcmp(place, before) == 0;
        if (!same) out_hosts[count++] = 0;
        if (++out_hosts[count - 1] > most) most = out_hosts[count - 1];
        before = place;
    }
    return most > 1 ? count : 0;
}

// Nodes of the relays in a worker's process: each has an array of sums as large as the model.
static int nodes_of(const bel_fan_in *tree, int worker)
{
    int levels[BEL_FAN_IN_LEVELS], nodes = 0;
    int count = bel_fan_in_relays(tree, worker, levels);
    for (int i = 0; i < count; i++) {
        bel_fan_in_place up = bel_fan_in_place_of(tree, worker, levels[i]);
        bel_reporters above = bel_fan_in_beside(tree, &up);
        const int *first = above.assignment->first_node + up.index;
        nodes += first[1] - first[0];
        bel_reporters_deinit(&above);
    }
    return nodes;
}

// Bytes of the sums of a process, at most.
static double sums_bytes(const remote *r, const bel_fan_in *tree)
{
    int most = 0;
    for (int w = 0; w < r->seats; w++) {
        int nodes = r->assignment.replicas[w] > 0 ? nodes_of(tree, w) : 0;
        if (nodes > most) most = nodes;
    }
    int64_t size = r->config.trainable->layout->size;
    bel_rounding rounding = bel_trainable_rounding(r->config.trainable);
    double bytes = (double)size * sizeof(float) * most;
    if (rounding != BEL_ROUNDING_NONE)
        bytes += (double)bel_rounding_bytes(rounding, size * (1 + most));
    return bytes;
}

// Says which workers share memory: "workers 0-3 of a, 4-7 of b".
static void say_hosts(const remote *r, double bytes)
{
    enum { MOST = 4 };
    bel_str text = {0};
    int w = 0, said = 0, all = 0;
    for (int h = 0; h < r->relays.host_count; h++) {
        int first = -1, last = -1;
        for (int n = 0; n < r->hosts[h]; w++) {
            if (r->assignment.replicas[w] == 0) continue;
            first = n++ == 0 ? w : first;
            last = w;
        }
        if (r->hosts[h] < 2 || all++ >= MOST) continue;
        const char *place = worker_at(r, first)->place;
        int length = place != NULL ? (int)strcspn(place, " ") : 0; // unknown in a job taken over
        bel_str_printf(&text, "%s%d-%d of %.*s", said++ > 0 ? ", " : "", first, last,
                       length > 0 ? length : 1, length > 0 ? place : "?");
    }
    if (all > said) bel_str_printf(&text, " and of %d more hosts", all - said);
    bel_log_write(BEL_LOG_INFO,
                  "workers %s add in shared memory, where a host has one copy of the values; sums "
                  "take up to %.0f MiB of a process",
                  text.text, bytes * 0x1p-20);
    bel_str_deinit(&text);
}

// Says how much memory they need, as a process makes its relays when a generation begins.
static void say_relays(const remote *r, const bel_fan_in *tree)
{
    int levels = bel_fan_in_levels(tree), fan_in = r->relays.fan_in;
    double bytes = sums_bytes(r, tree);
    if (r->relays.host_count > 0) say_hosts(r, bytes);
    if (fan_in == 0) return;
    bel_log_write(BEL_LOG_INFO,
                  "%d workers: their processes add the reports of groups of %d, on %d level%s; "
                  "sums take up to %.0f MiB of a process%s",
                  r->backend.worker_count, fan_in, levels, levels == 1 ? "" : "s", bytes * 0x1p-20,
                  (fan_in & (fan_in - 1)) != 0 ? ", less with a power of two" : "");
}

// The rule of a new generation: groups of hosts, and groups of fan_in of them, or of workers.
static bel_fan_in_rule find_rule(remote *r)
{
    const bel_trainable *t = r->config.trainable;
    const bel_fan_in_rule none = {.hosts = r->hosts};
    bel_fan_in_rule rule = {.hosts = r->hosts, .host_count = find_hosts(r, r->hosts)};
    int fan_in = bel_trainable_fan_in(t), workers = r->backend.worker_count;
    bool many = (rule.host_count > 0 ? rule.host_count : workers) > fan_in;
    if (rule.host_count == 0 && !many) return none;
    const char *why = why_none(r);
    const char *why_back = t->estimator->config.fan_in == 0 ? bel_trainable_why_no_hold(t) : NULL;
    if (why == NULL && why_back != NULL) {
        bel_log_write(BEL_LOG_INFO,
                      "each shard takes the reports of %d workers, without relays: with them a "
                      "lost worker would cost all steps since the newest checkpoint (%s); hint: "
                      "--fan_in %d",
                      workers, why_back, fan_in);
        return none;
    }
    bool deaf = why == NULL && many && !all_listen(r);
    if (deaf) why = "a worker does not listen";
    if (why != NULL) {
        bel_log_write(BEL_LOG_INFO,
                      "each shard takes the reports of %d workers, without relays%s: %s", workers,
                      deaf && rule.host_count > 0 ? " but those of hosts" : "", why);
    }
    if (why != NULL && !deaf) return none;
    rule.fan_in = many && !deaf ? fan_in : 0;
    return rule;
}

static bool equals(const bel_fan_in_rule *a, const bel_fan_in_rule *b)
{
    return a->fan_in == b->fan_in && a->host_count == b->host_count &&
           memcmp(a->hosts, b->hosts, (size_t)a->host_count * sizeof *a->hosts) == 0;
}

bool bel_remote_lacks_place(const remote *r, int worker)
{
    const char *place = worker_at(r, worker)->place;
    if (r->assignment.replicas[worker] == 0 || (place != NULL && place[0] != '\0')) return false;
    int last = -1; // a host's, counted among the workers with replicas
    int at = 0;
    for (int w = 0; w < worker; w++)
        at += r->assignment.replicas[w] > 0;
    for (int h = 0; h < r->relays.host_count; h++) {
        last += r->hosts[h];
        if (at <= last) return r->hosts[h] > 1;
    }
    return false;
}

// The list of the journal ends with zeros.
bool bel_remote_keeps_relays(remote *r)
{
    bel_fan_in_rule *rule = &r->relays;
    rule->hosts = r->hosts;
    rule->host_count = 0;
    while (rule->host_count < r->seats && rule->hosts[rule->host_count] > 0)
        rule->host_count++;
    bel_assignment *assignment = assignment_of(r);
    bool keeps = bel_fan_in_is_rule(assignment, rule);
    bel_assignment_destroy(assignment);
    for (int w = 0; w < r->seats && keeps; w++)
        keeps = !worker_at(r, w)->here || !bel_remote_lacks_place(r, w);
    return keeps;
}

bool bel_remote_choose_relays(remote *r, bool runs, const bel_fan_in_rule *before)
{
    bel_assignment *assignment = assignment_of(r);
    if (!runs) r->relays = find_rule(r);
    bool others = !equals(&r->relays, before);
    bel_fan_in *tree = bel_fan_in_create(assignment, &r->relays);
    bel_reporters top = bel_fan_in_top(tree);
    r->backend.relay_levels = bel_fan_in_levels(tree);
    r->backend.host_levels = r->backend.relay_levels > 0 && bel_fan_in_is_host(tree, 1);
    r->backend.one_copy = r->backend.host_levels == 1 && top.count == 1;
    bel_reporters_deinit(&top);
    if (others && r->backend.relay_levels > 0) say_relays(r, tree);
    bel_fan_in_destroy(tree);
    bel_assignment_destroy(assignment);
    return others;
}

void bel_remote_describe_relays(const remote *r, int member, Bel__Setup *message)
{
    int levels[BEL_FAN_IN_LEVELS];
    const bel_member_view *view = bel_members_get(r->config.members, member);
    message->fan_in = r->relays.fan_in;
    message->hosts = r->hosts;
    message->n_hosts = (size_t)r->relays.host_count;
    if (r->backend.relay_levels == 0 || view->role != BEL_ROLE_WORKER) return;
    bel_assignment *assignment = assignment_of(r);
    bel_fan_in *tree = bel_fan_in_create(assignment, &r->relays);
    int relays = bel_fan_in_relays(tree, view->index, levels);
    int top = relays > 0 ? levels[relays - 1] : 0; // the reporter that leaves its process
    bel_fan_in_place place = bel_fan_in_place_of(tree, view->index, top);
    bool by_address = place.worker >= 0 && !bel_fan_in_is_host(tree, place.level);
    if (by_address) message->parent = worker_at(r, place.worker)->address;
    bel_fan_in_destroy(tree);
    bel_assignment_destroy(assignment);
}
