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
    if ((decision & SAVE) != 0) shard->whole_snapshot = 0; // it is about to be overwritten
}

// --- A step --------------------------------------------------------------------------------------

bool bel_shard_can_pass(const bel_reporter *look, const bel_model_shard *shard)
{
    if (shard->passed || !shard->decision_known || (shard->decision & STOP) != 0) return false;
    if (shard->stands) return false;
    if (look->config->ledger) return bel_ledger_can_pass(shard);
    if (look->config->mirrors && !bel_mirror_may_pass(shard)) return false;
    int needed = look->config->defect == OVERWRITES_EARLY ? 1 : shard->plays;
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
    bool complete = look->config->ledger || (shard->reports & shard->plays) == shard->plays;
    if (shard->buffers[from] != shard->step) bel_break(&s, UPDATE_OUT_OF_TURN);
    if (shard->ahead && shard->buffers[1 - from] != shard->step + 1) {
        bel_break(&s, UPDATE_OUT_OF_TURN);
    }
    if (!complete) bel_break(&s, REPORT_INCOMPLETE);
    for (int w = 0; w < WORKERS; w++) {
        bool counts = look->config->ledger ? bel_ledger_counts(shard, w) : shard->plays >> w & 1;
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
    bool updates = !shard->ahead || look->config->defect == HELD_CHUNK_UPDATED;
    uint8_t slots = (uint8_t)(shard->step + shard->ahead); // their version
    if (updates && slots != shard->step) bel_break(&s, UPDATE_OUT_OF_TURN);
    shard->buffers[1 - from] = (uint8_t)(shard->step + 1);
    shard->ahead = 0;
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
    if (first->stop_wanted || first->pause_wanted) return false;
    return is_due(look->config, version + 1) && first->snapshot_busy;
}

static void begin_step(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    shard->last_decision = shard->decision;
    shard->decision = shard->decision_known = shard->passed = shard->snapshot_made = 0;
    shard->rows_passed = shard->row_reports = 0;
    bel_mirror_begin_step(shard);
    if (!look->config->ledger) shard->reports = shard->stats_list = 0;
    if (k != 0) return;
    bool last = shard->step >= look->config->steps;
    bool asked = (shard->stop_wanted || shard->pause_wanted) && !shard->must;
    shard->reason = last || !asked ? DONE : shard->stop_wanted ? INTERRUPTED : PAUSED;
    shard->must = 0;
    uint8_t decision = last || asked ? STOP : is_due(look->config, shard->step + 1) ? SAVE : 0;
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
    if (!shard->passed || !shard->decision_known || shard->stands) return false;
    if (look->config->tables && !shard->rows_passed) return false;
    if (look->config->mirrors && !bel_mirror_step_done(look, shard)) return false;
    if (look->config->ledger) return bel_ledger_step_done(look, shard);
    return (shard->stats_list & shard->plays) == shard->plays;
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
        shard->whole_snapshot = (uint8_t)(version + 1);
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

// A snapshot of the last generation is in use again.
static void continue_snapshot(bel_model_shard *shard, int k, uint8_t snapshot,
                              const bel_model_shard *before, bel_cluster *s)
{
    if (before->whole_snapshot != snapshot) bel_break(s, CHECKPOINT_MIXED);
    shard->whole_snapshot = shard->snapshot = shard->ready = snapshot;
    shard->snapshot_history = before->snapshot_history;
    shard->has_snapshot = shard->snapshot_busy = k == 0;
}

static void begin_anew(const bel_reporter *look, bel_cluster *s, int k,
                       const bel_model_message *setup)
{
    bel_model_shard *shard = &s->shards[k];
    bool running = shard->generation != 0;
    if (setup->flag && running) bel_shard_keep(shard);
    if (setup->flag && running) bel_mirror_keep(&s->mirrors[k]);
    bel_model_shard before = *shard;
    bool expects = setup->flag && (setup->leased >> k & 1) != 0;
    memset(shard, 0, sizeof *shard);
    shard->generation = setup->generation;
    shard->plays = setup->plays;
    shard->step = setup->first;
    if (expects) {
        shard->expects = 1;
    } else if (setup->flag) {
        shard->loaded = before.loaded;
        memcpy(shard->buffers, before.buffers, sizeof shard->buffers);
        shard->ahead = before.held_step + before.ahead > setup->first;
        if (before.held_generation == 0) bel_break(s, CHECKPOINT_MIXED);
        if (before.held_step + before.ahead > setup->first + 1) bel_break(s, SHARDS_APART);
    } else {
        shard->loaded = shard->buffers[0] = setup->first;
        if (setup->first != s->disk.checkpoint) bel_break(s, CHECKPOINT_MIXED);
    }
    shard->must = setup->flag && look->config->defect != HELD_STEP_NOT_MADE;
    if (setup->snapshot > 0) continue_snapshot(shard, k, setup->snapshot, &before, s);
    shard->history = s->disk.history;
    shard->next_block = shard->leased = s->disk.leased;
    for (int w = 0; w < WORKERS; w++) {
        shard->lane_incarnation[w] = setup->incarnations[w];
        clear_lane(s, w, k);
    }
    memset(&s->ledger, 0, k == 0 ? sizeof s->ledger : 0);
    if (look->config->mirrors) bel_mirror_begin(s, k, setup);
    shard->starts = setup->flag && (k == 0 || look->config->mirrors);
    if (!shard->starts) begin_step(look, s, k);
}

// Shard 0 decides on the first step of its state, perhaps after a request to stop.
static void start(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    s.shards[k].starts = 0;
    begin_step(look, &s, k);
    bel_emit(look, &s, "shard", k, "starts with version", s.shards[k].step);
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
            if (!shard->rows_passed && !keeps) shard->row_reports &= (uint8_t) ~(1 << w);
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

// One above the version of a snapshot that the master was not told; 0: none.
static uint8_t snapshot_to_tell(const bel_reporter *look, int k, const bel_model_shard *shard)
{
    bool mixed = look->config->defect == SNAPSHOT_MIXED_UP;
    uint8_t ready = shard->ready;
    if (k == 0 && !mixed) ready = shard->has_snapshot ? shard->snapshot : shard->said;
    return ready == shard->said ? 0 : ready;
}

// It stops, and from now on has no running state.
static void hold(bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_mirror *mirror = &s->mirrors[k];
    bool has_mirror = mirror->generation != 0 && !mirror->expects;
    bel_send_master(s, k,
                    (bel_model_message){.kind = HELD,
                                        .generation = shard->generation,
                                        .step = shard->expects ? NO_STATE : shard->step,
                                        .first = has_mirror ? mirror->step : NO_STATE,
                                        .snapshot = shard->expects ? 0 : shard->whole_snapshot});
    bel_shard_keep(shard);
    bel_mirror_keep(mirror);
    for (int w = 0; w < WORKERS; w++)
        clear_lane(s, w, k);
}

// Answers whether no part of the next version is made, and then stands with a snapshot.
static void answer_whole(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    bool made = shard->passed || shard->ahead || bel_shard_can_pass(look, shard);
    bool whole = !made || look->config->defect == WHOLE_THOUGH_MADE;
    uint8_t untold = snapshot_to_tell(look, k, shard);
    if (untold > 0 && (k != 0 || shard->has_snapshot)) {
        shard->said = untold;
        tell_snapshot(s, k, (uint8_t)(untold - 1));
    }
    if (k == 0) {
        bel_send_master(
            s, 0,
            (bel_model_message){
                .kind = PROGRESS, .generation = shard->generation, .step = shard->step, .flag = 1});
    }
    if (whole) {
        shard->whole_snapshot = 0;
        shard->whole_of = (uint8_t)(shard->step + shard->passed + shard->ahead + 1);
        shard->stands = look->config->defect != WHOLE_CONTINUES;
    }
    bel_send_master(s, k,
                    (bel_model_message){.kind = SNAPSHOT,
                                        .generation = shard->generation,
                                        .step = whole ? shard->step : NOT_WHOLE,
                                        .flag = 1});
}

static const char *obey(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_message message = bel_take_message(&s->from_master[k]);
    if (message.kind == SETUP) {
        begin_anew(look, s, k, &message);
        return "begins anew in generation";
    }
    if (message.kind == END && message.flag) {
        bel_process_ends(s, k, false);
        return "leaves, in generation";
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
    case ASK_STOP: shard->stop_wanted = 1; return "is asked to stop in generation";
    case ASK_PAUSE: shard->pause_wanted = 1; return "is asked to pause in generation";
    case HOLD: hold(s, k); return "stops with its state; it is in generation";
    case FINISH:
        if (message.flag) {
            answer_whole(look, s, k);
            return "answers whether it is whole, in generation";
        }
        if (shard->ahead) bel_break(s, CHECKPOINT_MIXED);
        shard->snapshot = (uint8_t)(shard->step + 1);
        shard->whole_snapshot = 0;
        shard->snapshot_history = shard->history;
        shard->leased = shard->next_block;
        tell_snapshot(s, k, message.step);
        return "makes the last snapshot in generation";
    default:
        if (message.flag) {
            shard->stands = shard->whole_of = 0;
            return "continues in generation";
        }
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
    bel_model_message first = bel_first_message(queue);
    if (first.kind == ADMIT && reads) return; // until the reader is done
    bool stops = first.kind == HOLD || (first.kind == FINISH && first.flag);
    if (stops && shard->publishing > 0) return; // until the work under way is done
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
        s.disk.part[k] = shard->whole_of > 0 ? shard->whole_of : shard->snapshot;
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

static uint8_t told_reason(const bel_reporter *look, const bel_model_shard *shard)
{
    return look->config->defect == PAUSE_IS_AN_END ? DONE : shard->reason;
}

static void tell_master(const bel_reporter *look, int k)
{
    const bel_model_shard *now = &look->now->shards[k];
    if (!look->now->processes[k].connected || now->writes > 0) return;
    bool first = now->has_snapshot && now->said != now->snapshot; // the snapshot is reported before
    if (look->config->defect == FINISHES_EARLY) first = false;
    bool last = now->decision_known && (now->decision & STOP) != 0; // earlier ones do not matter
    if (k == 0 && !first && last && now->progress_said == 0) {
        bel_cluster s = *look->now;
        s.shards[k].progress_said = 1;
        bel_send_master(&s, k,
                        (bel_model_message){.kind = PROGRESS,
                                            .generation = now->generation,
                                            .step = now->made_step,
                                            .first = told_reason(look, now)});
        bel_emit(look, &s, "shard", k, "tells its progress:", now->made_step);
    }
    uint8_t ready = snapshot_to_tell(look, k, now);
    if (ready == 0) return;
    bel_cluster s = *look->now;
    s.shards[k].said = ready;
    if (k != 0 || now->has_snapshot) tell_snapshot(&s, k, (uint8_t)(ready - 1));
    bel_emit(look, &s, "shard", k, "tells of its snapshot", ready - 1);
}

static bool has_frame(const bel_reporter *look, int k, int w)
{
    const bel_model_shard *shard = &look->now->shards[k];
    bool takes = bel_lane_is_open(look->now, w, k) && !shard->stands && !shard->starts;
    return takes && look->now->up[w][k].count > 0;
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
        if (kind == PULL || kind == ROW_PULL || decides) continue;
        take_frame(look, k, w);
        return true;
    }
    if (look->config->mirrors && bel_mirror_hurries(look, k)) return true;
    return look->config->ledger && bel_ledger_hurries(look, k);
}

void bel_shard_moves(const bel_reporter *look, int k)
{
    const bel_model_shard *shard = &look->now->shards[k];
    take_message(look, k);
    if (shard->writes > 0) end_writing(look, k);
    if (shard->generation == 0) return;
    tell_master(look, k);
    if (look->config->mirrors) bel_mirror_moves(look, k);
    if (shard->starts) {
        bool later = k == 0 && shard->snapshot_busy && is_due(look->config, shard->step + 1);
        if (!later && !bel_mirror_waits(look, k)) start(look, k);
        return;
    }
    for (int w = 0; w < WORKERS; w++)
        if (has_frame(look, k, w)) take_frame(look, k, w);
    if (bel_shard_can_pass(look, shard)) pass(look, k);
    if (look->config->tables) bel_rows_move(look, k);
    move_publication(look, k);
    if (look->config->ledger) bel_ledger_moves(look, k);
}
