// Members by role: the indices of workers and shards among the members, the extent and elasticity
// of the assignment, messages to single members, and the first error. It calls no other remote
// file, so that they can call it without a cycle. Indices of workers rely on the order in which
// members.c makes seats. A message to an absent member is dropped: code that waits for an answer
// asks again when it has come back.
#include "base/log.h"
#include "master/backend/remote_inner.h"

int bel_remote_shard_of(const remote *r, int member)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        if (r->shard_members[k] == member) return k;
    return -1;
}

bool bel_remote_is_unused(const remote *r, int member)
{
    bel_role role = bel_members_get(r->config.members, member)->role;
    return role == BEL_ROLE_PS && bel_remote_shard_of(r, member) < 0;
}

void bel_remote_send_to_shard(remote *r, int shard, const ProtobufCMessage *kind)
{
    bel_members_send(r->config.members, r->shard_members[shard], r->backend.generation, kind);
}

void bel_remote_send_stop(remote *r)
{
    Bel__Stop stop;
    bel__stop__init(&stop);
    bel_remote_send_to_shard(r, 0, &stop.base);
}

void bel_remote_send_pause(remote *r)
{
    Bel__Pause pause;
    bel__pause__init(&pause);
    bel_remote_send_to_shard(r, 0, &pause.base);
}

void bel_remote_send_stop_at(remote *r)
{
    Bel__StopAt stop;
    bel__stop_at__init(&stop);
    stop.step = r->sent.stop_step;
    bel_remote_send_to_shard(r, 0, &stop.base);
}

void bel_remote_send_asks(remote *r)
{
    int32_t functions[BEL_CONTROL_MOST_ASKED];
    protobuf_c_boolean waits[BEL_CONTROL_MOST_ASKED];
    Bel__Ask ask;
    bel__ask__init(&ask);
    ask.functions = functions;
    ask.waits = waits;
    remote_requested *requested = &r->requested;
    pthread_mutex_lock(&requested->mutex);
    ask.version = requested->sent;
    for (; requested->sent < requested->end; requested->sent++) {
        int64_t at = requested->sent % BEL_CONTROL_MOST_ASKED;
        functions[ask.n_functions++] = requested->steps[at].function;
        waits[ask.n_waits++] = requested->steps[at].waits;
    }
    pthread_mutex_unlock(&requested->mutex);
    if (ask.n_functions > 0) bel_remote_send_to_shard(r, 0, &ask.base);
}

bool bel_remote_is_idle(remote *r)
{
    pthread_mutex_lock(&r->requested.mutex);
    bool idle = r->plan.schedule.asks && r->state.step >= r->requested.end;
    pthread_mutex_unlock(&r->requested.mutex);
    return idle;
}

void bel_remote_release(remote *r)
{
    Bel__Release release;
    bel__release__init(&release);
    bel_remote_send_to_shard(r, 0, &release.base);
}

// Whether the master's current operation cannot succeed.
bool bel_remote_is_broken(const remote *r)
{
    return r->error != NULL || r->backend.lost;
}

bool bel_remote_began(const remote *r)
{
    return r->config.replaces || r->backend.generation > 0;
}

int bel_remote_worker(const remote *r, int worker)
{
    return bel_members_find(r->config.members, BEL_ROLE_WORKER, 0) + worker; // contiguous
}

bool bel_remote_is_away(const remote *r)
{
    bool away = false;
    for (int w = 0; w < r->seats; w++) {
        bool plays = r->assignment.replicas[w] > 0 && !r->ended.workers[w];
        away =
            away || (plays && !bel_members_get(r->config.members, bel_remote_worker(r, w))->here);
    }
    return away;
}

int bel_remote_assigned(const remote *r)
{
    int count = r->seats;
    while (count > 0 && r->assignment.replicas[count - 1] == 0)
        count--;
    return count;
}

// Why the set of workers is fixed: they hold the shards, or a ledger knows them by number. NULL: it
// is elastic.
const char *bel_remote_why_fixed(const remote *r)
{
    if (r->config.task->ps_count == 0) return "the workers hold the parameters";
    bool ledger = bel_counting_has_ledger(&r->config.trainable->counting);
    return ledger ? "not all workers count in every step (mode sync, without backups)" : NULL;
}

bool bel_remote_is_elastic(const remote *r)
{
    return bel_remote_why_fixed(r) == NULL;
}

void bel_remote_fail(remote *r, bel_status *status)
{
    if (r->error == NULL) {
        r->error = status;
    } else {
        bel_status_ignore(status); // the first error counts
    }
}

// Why the master cannot continue; NULL: it can.
bel_status *bel_remote_take_error(remote *r)
{
    bel_status *error = r->error;
    r->error = NULL;
    if (error != NULL || !r->backend.lost) return error;
    return BEL_ERR(BEL_UNAVAILABLE, "a member was lost");
}

void bel_remote_ask_to_stop(remote *r, const char *why)
{
    if (r->sent.stop) return;
    r->sent.stop = true;
    bel_log_write(BEL_LOG_DEBUG, "asking for the end of training: %s", why);
    bel_remote_send_stop(r);
}
