// A shard: its steps, its snapshots, and its messages with the master.
#include "model/cluster.h"

uint8_t bel_shard_buffer(const bel_model_shard *shard, uint8_t version)
{
    return (uint8_t)(version - shard->loaded) & 1;
}

void bel_shard_learns(bel_model_shard *shard, uint8_t decision)
{
    if (shard->decision_known) return;
    shard->decision = decision;
    shard->decision_known = 1;
}

// --- A step --------------------------------------------------------------------------------------

bool bel_shard_can_pass(const bel_reporter *look, const bel_model_shard *shard)
{
    if (shard->passed || !shard->decision_known || (shard->decision & STOP) != 0) return false;
    if (look->config->ledger) return bel_ledger_can_pass(shard);
    int needed = look->config->defect == OVERWRITES_EARLY ? 1 : (1 << WORKERS) - 1;
    return (shard->reports & needed) == needed;
}

// Only shard 0 knows the snapshot in use; all shards' snapshots have the same version.
static void check_snapshot(bel_cluster *s, const bel_model_shard *shard)
{
    const bel_model_shard *first = &s->shards[0];
    bool in_hand = first->has_snapshot && first->generation == shard->generation;
    if (in_hand && first->snapshot - 1 < shard->step + 1) bel_break(s, SNAPSHOT_OVERWRITTEN);
}

// Writes the update into the buffer of the version before the last.
static void pass(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    uint8_t from = bel_shard_buffer(shard, shard->step);
    bool complete = look->config->ledger || shard->reports == (1 << WORKERS) - 1;
    if (shard->buffers[from] != shard->step) bel_break(&s, UPDATE_OUT_OF_TURN);
    if (!complete) bel_break(&s, REPORT_INCOMPLETE);
    for (int w = 0; w < WORKERS; w++) {
        bool counts = !look->config->ledger || bel_ledger_counts(shard, w);
        bool alive = shard->report_incarnation[w] == shard->lane_incarnation[w];
        if (counts && !alive) bel_break(&s, REPORT_OF_DEAD);
        const bel_queue16 *down = &s.down[w][k];
        for (unsigned i = 0; i < down->count && !look->config->ledger; i++) {
            bel_queue16 rest = {.count = 1, .items = {down->items[i]}};
            bel_model_frame frame = bel_first_frame(&rest);
            if (frame.kind == PARAMS && frame.step < shard->step) {
                bel_break(&s, VALUES_OVERWRITTEN);
            }
        }
    }
    shard->buffers[1 - from] = (uint8_t)(shard->step + 1);
    shard->passed = 1;
    if (look->config->ledger) bel_ledger_passed(look, &s, k);
    if ((shard->decision & SAVE) != 0) {
        check_snapshot(&s, shard);
        shard->snapshot = (uint8_t)(shard->step + 2);
        shard->snapshot_history = shard->history;
    }
    if (!look->config->ledger) bel_sync_passed(look, &s, k);
    bel_emit(look, &s, "shard", k, "makes the values of version", shard->step + 1);
}

// --- Publication ---------------------------------------------------------------------------------

static bool is_due(const bel_cluster_config *config, int version)
{
    return version % config->save_steps == 0 && version != config->steps;
}

static bool decides_later(const bel_reporter *look, const bel_model_shard *first, int version)
{
    if (look->config->defect == NEVER_WAITS_FOR_RELEASE || version >= look->config->steps) {
        return false;
    }
    return is_due(look->config, version + 1) && first->snapshot_busy;
}

static void begin_step(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    shard->last_decision = shard->decision;
    shard->decision = shard->decision_known = shard->passed = shard->snapshot_made = 0;
    if (!look->config->ledger) shard->reports = shard->stats_list = 0;
    if (k != 0) return;
    bool last = shard->step >= look->config->steps;
    uint8_t decision = last ? STOP : is_due(look->config, shard->step + 1) ? SAVE : 0;
    if (decision == SAVE) shard->snapshot_busy = 1;
    shard->made_step = shard->step;
    bel_shard_learns(shard, decision);
}

static void publish(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    shard->publishing = 0;
    shard->step++;
    shard->published_more = 1;
    begin_step(look, &s, k);
    int ahead = s.shards[0].step - s.shards[1].step;
    bool same = s.shards[0].generation == s.shards[1].generation;
    bool near = ahead >= -1 && ahead <= (look->config->ledger ? WORKERS : 1);
    if (same && !near) bel_break(&s, SHARDS_APART);
    if (look->config->ledger) {
        bel_ledger_published(look, &s, k);
    } else {
        bel_sync_published(look, &s, k);
    }
    bel_emit(look, &s, "shard", k, "publishes version", shard->step);
}

static bool step_is_done(const bel_reporter *look, const bel_model_shard *shard)
{
    if (!shard->passed || !shard->decision_known) return false;
    if (look->config->ledger) return bel_ledger_step_done(look, shard);
    return shard->stats_list == (1 << WORKERS) - 1;
}

// Moves in stages, as the code does without its lock: 1 the snapshot is complete, 2 its number too.
static void move_publication(const bel_reporter *look, int k)
{
    const bel_model_shard *now = &look->now->shards[k];
    if (now->publishing == 0 && !step_is_done(look, now)) return;
    int version = now->step + 1;
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    bool snapshot = (now->decision & SAVE) != 0 && !now->snapshot_made;
    bool later = k == 0 && decides_later(look, now, version);
    if (now->publishing == 1) {
        shard->ready = (uint8_t)(version + 1);
        shard->publishing = 2;
        bel_emit(look, &s, "shard", k, "has the snapshot of version", version);
    } else if (now->publishing == 0 && snapshot) {
        shard->publishing = shard->snapshot_made = 1;
        shard->leased = shard->next_block;
        if (k == 0) shard->has_snapshot = 1;
        bel_emit(look, &s, "shard", k, "is through with version", version);
    } else if (later) {
        if (now->made_step == version && now->publishing == 0) return;
        shard->made_step = (uint8_t)version;
        shard->publishing = 0;
        bel_emit(look, &s, "shard", k, "waits for the release before version", version);
    } else if (look->config->ledger && now->publishing == 0) {
        shard->publishing = 2;
        bel_emit(look, &s, "shard", k, "begins to publish version", version);
    } else {
        publish(look, k);
    }
}

// --- Messages of the master ----------------------------------------------------------------------

static void clear_lane(bel_cluster *s, int worker, int k)
{
    memset(&s->down[worker][k], 0, sizeof s->down[worker][k]);
}

static void begin_anew(const bel_reporter *look, bel_cluster *s, int k,
                       const bel_model_message *setup)
{
    bel_model_shard *shard = &s->shards[k];
    memset(shard, 0, sizeof *shard);
    shard->generation = setup->generation;
    shard->loaded = shard->step = shard->buffers[0] = setup->first;
    shard->history = s->disk.history;
    shard->next_block = shard->leased = s->disk.leased;
    if (setup->first != s->disk.checkpoint) bel_break(s, CHECKPOINT_MIXED);
    for (int w = 0; w < WORKERS; w++) {
        shard->lane_incarnation[w] = setup->incarnations[w];
        clear_lane(s, w, k);
    }
    memset(&s->ledger, 0, k == 0 ? sizeof s->ledger : 0);
    begin_step(look, s, k);
}

// A worker that has begun has a lane. A worker admitted under the same incarnation keeps it.
static void admit(const bel_reporter *look, bel_cluster *s, int k, const bel_model_message *message)
{
    bel_model_shard *shard = &s->shards[k];
    int w = message->index;
    bool again = shard->lane_incarnation[w] == message->incarnations[0];
    if (look->config->defect == ADMITS_TWICE) again = false;
    if (!again) {
        if (bel_lane_is_open(s, w, k)) bel_break(s, LANE_CUT);
        clear_lane(s, w, k);
        shard->lane_incarnation[w] = message->incarnations[0];
        bool keeps = look->config->defect == KEEPS_REPORTS_OF_DEAD;
        if (look->config->ledger) {
            bel_ledger_forgets(s, k, w, keeps);
        } else {
            shard->stats_list &= (uint8_t) ~(1 << w);
            if (!shard->passed && !keeps) shard->reports &= (uint8_t) ~(1 << w);
            shard->reader[w] = NO_READER;
            shard->sent[w] = 0;
        }
    }
    bel_send_master(s, k,
                    (bel_model_message){.kind = ADMITTED,
                                        .generation = shard->generation,
                                        .step = shard->step,
                                        .index = message->index,
                                        .incarnations = {message->incarnations[0]},
                                        .counted = shard->counted[w]});
}

static void tell_snapshot(bel_cluster *s, int k, uint8_t version)
{
    const bel_model_shard *shard = &s->shards[k];
    bel_send_master(s, k,
                    (bel_model_message){.kind = SNAPSHOT,
                                        .generation = shard->generation,
                                        .step = version,
                                        .leased = shard->leased});
}

static const char *obey(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_message message = bel_take_message(&s->from_master[k]);
    if (message.kind == SETUP) {
        begin_anew(look, s, k, &message);
        return "begins anew in generation";
    }
    if (message.kind == END) {
        s->processes[k].life = OVER;
        return "hears that the job is over, in generation";
    }
    if (message.generation != shard->generation) return "drops a message, it is in generation";
    switch (message.kind) {
    case ADMIT: admit(look, s, k, &message); return "admits a worker in generation";
    case ASK_SAVE:
        shard->writes = (uint8_t)(message.step + 1);
        shard->writes_for = message.incarnations[0];
        return "begins to save in generation";
    case FINISH:
        shard->snapshot = (uint8_t)(shard->step + 1);
        shard->snapshot_history = shard->history;
        shard->leased = shard->next_block;
        tell_snapshot(s, k, message.step);
        return "makes the last snapshot in generation";
    default:
        if (k == 0) shard->has_snapshot = shard->snapshot_busy = 0;
        return "may continue with snapshots in generation";
    }
}

static void take_message(const bel_reporter *look, int k)
{
    const bel_model_shard *shard = &look->now->shards[k];
    const bel_queue32 *queue = &look->now->from_master[k];
    if (queue->count == 0 || shard->writes > 0) return;
    bool reads = bel_shard_can_pass(look, shard) || shard->publishing > 0;
    for (int w = 0; w < WORKERS; w++)
        reads = reads || shard->copying[w] > 0;
    if (bel_first_message(queue).kind == ADMIT && reads) return; // until the reader is done
    bel_cluster s = *look->now;
    const char *what = obey(look, &s, k);
    bel_emit(look, &s, "shard", k, what, s.shards[k].generation);
}

// --- Messages to the master ----------------------------------------------------------------------

static void end_writing(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    bool exists = s.disk.folder == shard->writes && s.disk.folder_of == shard->writes_for;
    if (exists) {
        s.disk.part[k] = shard->snapshot;
        s.disk.part_history[k] = shard->snapshot_history;
    }
    bel_send_master(&s, k,
                    (bel_model_message){.kind = SAVED,
                                        .generation = shard->generation,
                                        .step = (uint8_t)(shard->writes - 1),
                                        .first = !exists});
    shard->writes = shard->writes_for = 0;
    bel_emit(look, &s, "shard", k, "has saved its part of version", shard->snapshot - 1);
}

static void tell_master(const bel_reporter *look, int k)
{
    const bel_model_shard *now = &look->now->shards[k];
    if (!look->now->processes[k].connected || now->writes > 0) return;
    bool first = now->has_snapshot && now->said != now->snapshot; // the snapshot is reported before
    if (look->config->defect == FINISHES_EARLY) first = false;
    bool last = now->made_step == look->config->steps; // earlier ones do not matter
    if (k == 0 && !first && last && now->progress_said == 0) {
        bel_cluster s = *look->now;
        s.shards[k].progress_said = 1;
        bel_send_master(&s, k,
                        (bel_model_message){.kind = PROGRESS,
                                            .generation = now->generation,
                                            .step = now->made_step});
        bel_emit(look, &s, "shard", k, "tells its progress:", now->made_step);
    }
    bool mixed = look->config->defect == SNAPSHOT_MIXED_UP;
    uint8_t ready = k == 0 && !mixed && !now->has_snapshot ? now->said : now->ready;
    if (k == 0 && !mixed && now->has_snapshot) ready = now->snapshot;
    if (ready == 0 || ready == now->said) return;
    bel_cluster s = *look->now;
    s.shards[k].said = ready;
    if (k != 0 || now->has_snapshot) tell_snapshot(&s, k, (uint8_t)(ready - 1));
    bel_emit(look, &s, "shard", k, "tells of its snapshot", ready - 1);
}

static bool has_frame(const bel_reporter *look, int k, int w)
{
    return bel_lane_is_open(look->now, w, k) && look->now->up[w][k].count > 0;
}

static void take_frame(const bel_reporter *look, int k, int w)
{
    bel_cluster s = *look->now;
    const char *what =
        look->config->ledger ? bel_ledger_takes(look, &s, k, w) : bel_sync_takes(look, &s, k, w);
    bel_emit(look, &s, "shard", k, what, w);
}

// With a ledger two orders matter: the order in which step statistics reach shard 0, and the moment
// when a worker begins.
bool bel_shard_hurries(const bel_reporter *look, int k)
{
    for (int w = 0; w < WORKERS; w++) {
        if (!bel_worker_stays(look, w) || !has_frame(look, k, w)) continue;
        uint8_t kind = bel_first_frame(&look->now->up[w][k]).kind;
        bool decides = look->config->ledger && k == 0 && kind == STATS;
        if (kind == PULL || decides) continue;
        take_frame(look, k, w);
        return true;
    }
    return look->config->ledger && bel_ledger_hurries(look, k);
}

void bel_shard_moves(const bel_reporter *look, int k)
{
    const bel_model_shard *shard = &look->now->shards[k];
    take_message(look, k);
    if (shard->writes > 0) end_writing(look, k);
    if (shard->generation == 0) return;
    tell_master(look, k);
    for (int w = 0; w < WORKERS; w++)
        if (has_frame(look, k, w)) take_frame(look, k, w);
    if (bel_shard_can_pass(look, shard)) pass(look, k);
    move_publication(look, k);
    if (look->config->ledger) bel_ledger_moves(look, k);
}
