// Requests to all shards: for parts of a checkpoint, for a snapshot's values, for a snapshot of the
// end, or for a current one if their version is complete. A broken connection may lose a request,
// so a shard that comes back is asked again.
#include "master/backend/remote_inner.h"

enum { UNANSWERED = -2 };

// Sends the current request to one shard.
static void send_asked(remote *r, int shard)
{
    Bel__Save save;
    bel__save__init(&save);
    Bel__Values values;
    bel__values__init(&values);
    Bel__Finish finish;
    bel__finish__init(&finish);
    save.step = values.step = finish.step = r->asked.step;
    char empty[] = "";
    if (r->asked.what == BEL_ASKED_SAVE) // until it has answered, even if it gains access
        r->saves_apart[shard] = bel_members_get(r->config.members, r->shard_members[shard])->blind;
    save.folder = r->saves_apart[shard] ? empty : r->asked.folder;
    values.lane = r->reading;
    finish.whole = r->asked.what == BEL_ASKED_WHOLE;
    switch (r->asked.what) {
    case BEL_ASKED_NOTHING: break;
    case BEL_ASKED_SAVE: bel_remote_send_to_shard(r, shard, &save.base); break;
    case BEL_ASKED_VALUES: bel_remote_send_to_shard(r, shard, &values.base); break;
    case BEL_ASKED_WHOLE:
    case BEL_ASKED_FINISH: bel_remote_send_to_shard(r, shard, &finish.base); break;
    }
}

// Repeats steps; shard 0 skips those that it has.
static void ask_all_again(remote *r)
{
    pthread_mutex_lock(&r->ask_mutex);
    if (r->state.step < r->asks_sent) r->asks_sent = r->state.step;
    pthread_mutex_unlock(&r->ask_mutex);
    bel_remote_send_asks(r);
}

// Asks again after a shard's connection broke, which may have lost the request. A shard that has
// saved its part must not write it again while the checkpoint becomes visible.
void bel_remote_ask_again(remote *r, int shard)
{
    bool has_saved = r->saved != NULL && r->saved[shard] != NULL;
    if (has_saved) bel_remote_pull_again(r, shard);
    if (!has_saved) send_asked(r, shard);
    if (shard == 0 && r->stop_sent) bel_remote_send_stop(r);
    if (shard == 0 && r->pause_sent) bel_remote_send_pause(r);
    if (shard == 0 && r->stop_at_sent) bel_remote_send_stop_at(r);
    if (shard == 0 && r->schedule.asks) ask_all_again(r);
}

void bel_remote_take_whole(remote *r, int shard, const Bel__Snapshot *m)
{
    if (r->asked.what != BEL_ASKED_WHOLE || r->whole[shard] != UNANSWERED) return;
    r->whole[shard] = m->step;
    r->whole_count++;
    if (shard == 0) r->backend.leased = m->next_block;
}

bool bel_remote_joins_whole(remote *r, int member)
{
    int shard = bel_remote_shard_of(r, member);
    bool done = r->rescue == BEL_RESCUE_DONE;
    if (shard >= 0 && done) { // it has continued
        bel_remote_fail(r, BEL_ERR(BEL_UNAVAILABLE,
                                   "the connection of shard %d broke before it was saved", shard));
    } else if (shard >= 0 && r->asked.what == BEL_ASKED_WHOLE && r->whole[shard] != UNANSWERED) {
        r->whole[shard] = UNANSWERED; // it is asked again
        r->whole_count--;
    }
    return done;
}

void bel_remote_ask_shards(remote *r, bel_asked what, int64_t step, char *folder)
{
    r->asked = (asked){.what = what, .step = step, .folder = folder};
    for (int k = 0; k < r->backend.shard_count; k++)
        r->whole[k] = UNANSWERED;
    r->whole_count = 0;
    for (int k = 0; k < r->backend.shard_count; k++)
        send_asked(r, k);
}
