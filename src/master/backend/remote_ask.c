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
    Bel__Hold hold;
    bel__hold__init(&hold);
    save.step = values.step = finish.step = r->asked.step;
    char empty[] = "";
    if (r->asked.what == BEL_ASKED_SAVE) // until it has answered, even if it gains access
        r->saving.apart[shard] = bel_members_get(r->config.members, r->shard_members[shard])->blind;
    save.folder = r->saving.apart[shard] ? empty : r->asked.folder;
    save.since = r->saving.base;
    values.lane = r->values.reading;
    finish.whole = r->asked.what == BEL_ASKED_WHOLE;
    switch (r->asked.what) {
    case BEL_ASKED_NOTHING: break;
    case BEL_ASKED_SAVE: bel_remote_send_to_shard(r, shard, &save.base); break;
    case BEL_ASKED_VALUES: bel_remote_send_to_shard(r, shard, &values.base); break;
    case BEL_ASKED_WHOLE:
    case BEL_ASKED_FINISH: bel_remote_send_to_shard(r, shard, &finish.base); break;
    case BEL_ASKED_HOLD: bel_remote_send_to_shard(r, shard, &hold.base); break;
    }
}

// Repeats steps; shard 0 skips those that it has.
static void ask_all_again(remote *r)
{
    pthread_mutex_lock(&r->requested.mutex);
    if (r->state.step < r->requested.sent) r->requested.sent = r->state.step;
    pthread_mutex_unlock(&r->requested.mutex);
    bel_remote_send_asks(r);
}

// Asks again after a shard's connection broke, which may have lost the request. A shard that has
// saved its part must not write it again while the checkpoint becomes visible.
void bel_remote_ask_again(remote *r, int shard)
{
    bool has_saved = r->saving.parts != NULL && r->saving.parts[shard] != NULL;
    if (has_saved) bel_remote_pull_again(r, shard);
    if (!has_saved) send_asked(r, shard);
    if (shard == 0 && r->sent.stop) bel_remote_send_stop(r);
    if (shard == 0 && r->sent.pause) bel_remote_send_pause(r);
    if (shard == 0 && r->sent.stop_at) bel_remote_send_stop_at(r);
    if (shard == 0 && r->plan.schedule.asks) ask_all_again(r);
}

// Whether a shard has answered the current request for its version.
static bool has_answered(const remote_asked *asked, int shard)
{
    return asked->what == BEL_ASKED_WHOLE && asked->whole[shard] != UNANSWERED;
}

void bel_remote_take_whole(remote *r, int shard, const Bel__Snapshot *m)
{
    if (r->asked.what != BEL_ASKED_WHOLE || has_answered(&r->asked, shard)) return;
    r->asked.whole[shard] = m->step;
    r->asked.answers++;
    if (shard == 0) r->backend.leased = m->next_block;
}

// An answer may come when the master waits for another shard that was lost meanwhile.
void bel_remote_take_held(remote *r, int member, const Bel__Held *m)
{
    bel_members_set_held(r->config.members, member, r->backend.generation, m);
    if (r->asked.what == BEL_ASKED_HOLD) r->asked.answers++;
}

bool bel_remote_joins_whole(remote *r, int member)
{
    int shard = bel_remote_shard_of(r, member);
    bool done = r->rescue.stage == BEL_RESCUE_DONE;
    if (shard >= 0 && done) { // it has continued
        bel_remote_fail(r, BEL_ERR(BEL_UNAVAILABLE,
                                   "the connection of shard %d broke before it was saved", shard));
    } else if (shard >= 0 && has_answered(&r->asked, shard)) {
        r->asked.whole[shard] = UNANSWERED; // it is asked again
        r->asked.answers--;
    }
    return done;
}

void bel_remote_ask_shards(remote *r, bel_asked what, int64_t step, char *folder)
{
    r->asked.what = what;
    r->asked.step = step;
    r->asked.folder = folder;
    for (int k = 0; k < r->backend.shard_count; k++)
        r->asked.whole[k] = UNANSWERED;
    r->asked.answers = 0;
    for (int k = 0; k < r->backend.shard_count; k++)
        send_asked(r, k);
}
