// Other numbers of workers and parameter servers in a running job. Workers below the number must
// run. Workers above it exit when the master tells them to, after their current step. A request for
// the present number brings back workers that were given up. Another number of servers divides the
// parameters anew, so the job saves, ends, and is started again with it: no step is repeated.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "launch/folder/scale.h"
#include "launch/supervise/supervisor_inner.h"

static bel_child *find_worker(const bel_supervisor *s, int index)
{
    for (int i = 0; i < s->child_count; i++) {
        const bel_task *task = s->children[i].task;
        if (task->role == BEL_ROLE_WORKER && task->index == index) return &s->children[i];
    }
    return NULL;
}

// Makes the worker run again, with all its restarts available.
static void want_worker(bel_child *child)
{
    bool is_away = !bel_child_is_running(child) && child->lives.restart_ns == 0;
    child->let_go = child->given_up = false;
    child->lives.restarts = 0;
    if (is_away) child->lives.restart_ns = bel_clock_awake_ns();
}

// The master ends it; until then it continues.
static void let_go(bel_child *child)
{
    child->let_go = true;
    child->lives.restart_ns = 0;
}

// Keeps children of the plan and of earlier requests; an index without a child gets one.
static void scale_to(bel_supervisor *s, int workers)
{
    if (workers != s->scale.workers) {
        bel_log_write(BEL_LOG_INFO, "%d worker%s wanted, instead of %d", workers,
                      workers == 1 ? " is" : "s are", s->scale.workers);
    }
    s->scale.workers = workers;
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        if (child->task->role != BEL_ROLE_WORKER) continue;
        (child->task->index < workers ? want_worker : let_go)(child);
    }
    for (int w = s->config->plan->cluster->master_trains ? 1 : 0; w < workers; w++)
        if (find_worker(s, w) == NULL) bel_supervisor_add_worker(s, w);
}

// Does nothing once the job is ending, because no child starts any more.
bool bel_supervisor_look_at_scale(bel_supervisor *supervisor)
{
    enum { LOOK_NS = 1000000000 };
    bel_supervisor *s = supervisor;
    int64_t now = bel_clock_awake_ns();
    bool ending = s->ending.signal != 0 || s->ending.killing || s->ending.deadline_ns != 0 ||
                  s->ending.first_failed != NULL;
    if (s->config->model_dir == NULL || ending || now - s->scale.looked_ns < LOOK_NS) return false;
    s->scale.looked_ns = now;
    bel_scale wish = bel_scale_read_new(s->config->model_dir, &s->scale.wish);
    int workers = wish.workers < BEL_CLUSTER_MOST ? wish.workers : BEL_CLUSTER_MOST;
    int servers = wish.servers < BEL_CLUSTER_MOST ? wish.servers : BEL_CLUSTER_MOST;
    int present = s->config->plan->cluster->roles[BEL_ROLE_PS].count;
    if (servers == 0 || servers == present) {
        if (workers > 0) scale_to(s, workers);
        return false;
    }
    if (workers > 0) s->scale.workers = workers; // for the next start
    s->scale.servers = servers;
    bel_log_write(BEL_LOG_INFO,
                  "%d parameter server%s wanted, instead of %d: the job saves, and continues with "
                  "%s",
                  servers, servers == 1 ? " is" : "s are", present, servers == 1 ? "it" : "them");
    return true;
}

// `others`: workers that run or will run, the master included when it trains.
bool bel_supervisor_give_up(bel_supervisor *supervisor, bel_child *child, const char *what)
{
    const bel_cluster *cluster = supervisor->config->plan->cluster;
    int others = cluster->master_trains ? 1 : 0;
    for (int i = 0; i < supervisor->child_count; i++) {
        const bel_child *other = &supervisor->children[i];
        bool dead =
            !bel_child_is_running(other) && other->lives.restart_ns == 0 && other->end.code != 0;
        others += other != child && other->task->role == BEL_ROLE_WORKER && !other->let_go && !dead;
    }
    bool worker = child->task->role == BEL_ROLE_WORKER;
    if (!worker || cluster->min_workers == 0 || others < cluster->min_workers) return false;
    child->given_up = true;
    bel_log_write(BEL_LOG_WARN,
                  "%s: it is not started again (%d times were allowed), and the job "
                  "continues with %d worker%s",
                  what, cluster->restarts, others, others == 1 ? "" : "s");
    return true;
}
