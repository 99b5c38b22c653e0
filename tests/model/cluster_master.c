// The master: members, generations, admissions, checkpoints, the end.
#include "model/cluster.h"

static void send_shards(bel_cluster *s, bel_model_message message)
{
    message.generation = s->master.generation;
    for (int k = 0; k < SHARDS; k++)
        bel_send_member(s, k, message);
}

// --- Beginning -----------------------------------------------------------------------------------

// Forgets the members' messages, which they repeat.
static void forget(bel_cluster *s)
{
    bel_model_master *m = &s->master;
    m->phase = GATHERS;
    m->lost = m->ended = m->admits = m->has_snapshot = m->snapshot = m->step = 0;
    m->saved_snapshot = m->released = m->asked = m->saved = 0;
    memset(m->answered, 0, sizeof m->answered);
    memset(m->admitted_step, 0, sizeof m->admitted_step);
    memset(m->counted, 0, sizeof m->counted);
    memset(m->snapshots, 0, sizeof m->snapshots);
}

static void send_setup(bel_cluster *s, int member, uint8_t step)
{
    bel_model_master *m = &s->master;
    m->seat_generation[member] = m->generation;
    bel_send_member(
        s, member,
        (bel_model_message){
            .kind = SETUP,
            .generation = m->generation,
            .step = step,
            .first = m->first_step,
            .incarnations = {m->seat_incarnation[SHARDS], m->seat_incarnation[SHARDS + 1]},
        });
}

static void admit(bel_cluster *s, int worker)
{
    bel_model_master *m = &s->master;
    m->admits |= (uint8_t)(1 << worker);
    m->answered[worker] = m->counted[worker] = 0;
    m->admitted_step[worker] = 7;
    send_shards(s, (bel_model_message){.kind = ADMIT,
                                       .index = (uint8_t)worker,
                                       .incarnations = {m->seat_incarnation[SHARDS + worker]}});
}

static void take_over(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    m->generation = m->seat_generation[0];
    if (look->config->defect == ENDS_BY_JOIN) m->step = m->seat_step[0];
    for (int w = 0; w < WORKERS; w++)
        if (m->seat_generation[SHARDS + w] != m->generation) admit(s, w);
}

static void begin_generation(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    uint8_t newest = s->disk.generation;
    bool raised = look->config->defect != GENERATION_NOT_RAISED;
    for (int i = 0; i < MEMBERS && raised; i++)
        if (m->seat_generation[i] > newest) newest = m->seat_generation[i];
    m->generation = (uint8_t)(newest + 1);
    if (raised) s->disk.generation = m->generation;
    m->step = m->first_step;
    for (int i = 0; i < MEMBERS; i++)
        send_setup(s, i, m->first_step);
}

static void gather(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    for (int i = 0; i < MEMBERS; i++) {
        if ((m->here >> i & 1) == 0 || look->now->processes[i].connected) continue;
        bel_cluster s = *look->now;
        s.master.here &= (uint8_t) ~(1 << i);
        bel_emit(look, &s, "master", 0, "notices the loss of member", i);
    }
    if (m->here != (1 << MEMBERS) - 1) return;
    bel_cluster s = *look->now;
    bool have_state = m->seat_generation[0] == m->seat_generation[1] && m->seat_generation[0] != 0;
    if (m->begins_anew) have_state = false;
    s.master.begins_anew = 0;
    s.master.phase = RUNS;
    if (have_state) {
        take_over(look, &s);
    } else {
        begin_generation(look, &s);
    }
    bel_emit(look, &s, "master", 0, have_state ? "takes over generation" : "begins generation",
             s.master.generation);
}

// --- Messages ------------------------------------------------------------------------------------

static void ask_again(const bel_reporter *look, bel_cluster *s, int shard)
{
    bel_model_master *m = &s->master;
    bool has_saved = m->asked == ASK_SAVE && (m->saved >> shard & 1) != 0;
    if (look->config->defect == SAVES_TWICE) has_saved = false;
    if (m->asked != 0 && !has_saved) {
        bel_send_member(s, shard,
                        (bel_model_message){.kind = m->asked,
                                            .generation = m->generation,
                                            .step = m->asked == FINISH ? m->step : m->snapshot,
                                            .incarnations = {m->incarnation}});
    }
    for (int w = 0; w < WORKERS; w++)
        if ((m->admits >> w & 1) != 0) admit(s, w);
}

static void take_join(const bel_reporter *look, bel_cluster *s, int member,
                      const bel_model_message *join)
{
    bel_model_master *m = &s->master;
    if (s->processes[member].connected > 0) s->processes[member].connected = 2;
    m->here |= (uint8_t)(1 << member);
    m->seat_generation[member] = join->generation;
    m->seat_incarnation[member] = join->incarnations[0];
    m->seat_step[member] = join->step;
    if (m->phase == DISMISSES) bel_send_member(s, member, (bel_model_message){.kind = END});
    if (m->phase == GATHERS || m->phase >= IS_THROUGH) return;
    bool holds = join->generation == m->generation;
    if (member < SHARDS && !holds) {
        m->lost = 1;
    } else if (member < SHARDS) {
        ask_again(look, s, member);
    } else if (!holds) {
        admit(s, member - SHARDS);
    }
}

static void take_snapshot(const bel_reporter *look, bel_cluster *s, int shard,
                          const bel_model_message *message)
{
    bel_model_master *m = &s->master;
    uint8_t version = (uint8_t)(message->step + 1);
    bool old = version < m->snapshots[shard] && look->config->defect != OLD_SNAPSHOT_COUNTS;
    if (old) return;
    m->snapshots[shard] = version;
    if (shard == 0 && version == m->released && look->config->defect != RELEASE_NOT_REPEATED) {
        bel_send_member(s, 0, (bel_model_message){.kind = RELEASE, .generation = m->generation});
        return;
    }
    if (shard == 0) {
        m->leased = message->leased;
        m->saved_snapshot = version;
    }
    for (int k = 0; k < SHARDS; k++)
        if (m->snapshots[k] != m->saved_snapshot || m->saved_snapshot == 0) return;
    m->has_snapshot = 1;
    m->snapshot = (uint8_t)(m->saved_snapshot - 1);
}

static void take_saved(bel_cluster *s, int shard, const bel_model_message *message)
{
    bel_model_master *m = &s->master;
    bool waits = m->phase == SAVES || m->phase == SAVES_LAST;
    if (!waits || (m->saved >> shard & 1) != 0) return;
    if (message->first != 0) bel_break(s, JOB_FAILS);
    m->saved |= (uint8_t)(1 << shard);
}

static void take_admitted(const bel_reporter *look, bel_cluster *s, int shard,
                          const bel_model_message *message)
{
    bel_model_master *m = &s->master;
    int w = message->index;
    bool current = message->incarnations[0] == m->seat_incarnation[SHARDS + w];
    if ((m->admits >> w & 1) == 0 || !current || (m->answered[w] >> shard & 1) != 0) return;
    m->answered[w] |= (uint8_t)(1 << shard);
    if (message->step < m->admitted_step[w]) m->admitted_step[w] = message->step;
    if (shard == 0) m->counted[w] = message->counted;
    if (m->answered[w] != (1 << SHARDS) - 1) return;
    m->admits &= (uint8_t) ~(1 << w);
    bool middle = look->config->ledger && m->admitted_step[w] < m->counted[w];
    if (middle && look->config->defect != LOST_IN_THE_MIDDLE) {
        m->lost = 1;
        return;
    }
    send_setup(s, SHARDS + w, m->admitted_step[w]);
}

static const char *take_message(const bel_reporter *look, bel_cluster *s, int member)
{
    bel_model_master *m = &s->master;
    bel_model_message message = bel_take_message(&s->to_master[member]);
    if (message.kind == JOIN) {
        take_join(look, s, member, &message);
        return "takes the join of member";
    }
    if (message.generation != m->generation) return "drops an old message of member";
    switch (message.kind) {
    case PROGRESS: m->step = message.step; return "takes the progress of member";
    case SNAPSHOT:
        take_snapshot(look, s, member, &message);
        return "hears of a snapshot from member";
    case SAVED: take_saved(s, member, &message); return "hears that a part is saved by member";
    case ENDED: m->ended |= (uint8_t)(1 << (member - SHARDS)); return "hears of the end of member";
    default: take_admitted(look, s, member, &message); return "hears of an admission from member";
    }
}

static void take_from(const bel_reporter *look, int member)
{
    bel_cluster s = *look->now;
    const char *what = take_message(look, &s, member);
    bel_emit(look, &s, "master", 0, what, member);
}

static bool hears_all(const bel_model_master *m)
{
    return m->phase != GATHERS && m->phase < IS_THROUGH; // else only joins
}

static void take_messages(const bel_reporter *look)
{
    for (int i = 0; i < MEMBERS; i++) {
        const bel_queue32 *queue = &look->now->to_master[i];
        if (queue->count == 0) continue;
        bool join = bel_first_message(queue).kind == JOIN;
        if (join || hears_all(&look->now->master)) take_from(look, i);
    }
}

bool bel_master_hurries(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    for (int i = 0; i < MEMBERS && hears_all(m) && !m->lost; i++) {
        const bel_queue32 *queue = &look->now->to_master[i];
        if (queue->count == 0) continue;
        bel_model_message message = bel_first_message(queue);
        bool old = message.kind != JOIN && message.generation != m->generation;
        if (!old && message.kind != SAVED && message.kind != ENDED) continue;
        take_from(look, i);
        return true;
    }
    return false;
}

// --- Checkpoints ---------------------------------------------------------------------------------

static void begin_save(const bel_reporter *look, bel_phase phase)
{
    bel_cluster s = *look->now;
    s.master.phase = (uint8_t)phase;
    s.master.asked = ASK_SAVE;
    s.master.saved = 0;
    s.disk.folder = (uint8_t)(s.master.snapshot + 1);
    s.disk.folder_of = s.master.incarnation;
    send_shards(&s, (bel_model_message){.kind = ASK_SAVE,
                                        .step = s.master.snapshot,
                                        .incarnations = {s.master.incarnation}});
    bel_emit(look, &s, "master", 0, "saves version", s.master.snapshot);
}

static bool has_block(uint32_t history, int entries, unsigned block)
{
    for (int i = 0; i < entries; i++)
        if ((history >> (9 * i) & 15) == block) return true;
    return false;
}

static void check_commit(const bel_reporter *look, bel_cluster *s)
{
    const bel_model_disk *disk = &s->disk;
    uint8_t version = s->master.snapshot;
    for (int k = 0; k < SHARDS; k++) {
        const bel_model_shard *shard = &s->shards[k];
        if (disk->part[k] != version + 1) bel_break(s, CHECKPOINT_MIXED);
        if (shard->writes == disk->folder && shard->writes_for == disk->folder_of) {
            bel_break(s, CHECKPOINT_TORN);
        }
    }
    if (disk->part_history[0] != disk->part_history[1]) bel_break(s, HISTORIES_DIFFER);
    if (version <= disk->checkpoint) bel_break(s, CHECKPOINT_BACK);
    if (version > disk->checkpoint + look->config->save_steps) bel_break(s, CHECKPOINT_LEFT_OUT);
    for (int i = 0; i < version && look->config->ledger; i++)
        if (has_block(disk->part_history[0], i, disk->part_history[0] >> (9 * i) & 15))
            bel_break(s, BLOCK_USED_TWICE);
}

// One rename makes it visible.
static void commit(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_disk *disk = &s.disk;
    bool last = s.master.phase == SAVES_LAST;
    check_commit(look, &s);
    disk->checkpoint = s.master.saved_step = s.master.snapshot;
    disk->history = disk->part_history[0];
    disk->leased = look->config->defect != LEASES_FORGOTTEN ? s.master.leased : 0;
    disk->folder = disk->folder_of = 0;
    memset(disk->part, 0, sizeof disk->part);
    memset(disk->part_history, 0, sizeof disk->part_history);
    s.master.asked = s.master.saved = 0;
    s.master.phase = last ? IS_THROUGH : RELEASES;
    bel_emit(look, &s, "master", 0, "commits checkpoint", disk->checkpoint);
}

static void release(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    m->released = (uint8_t)(m->snapshot + 1);
    m->has_snapshot = m->saved_snapshot = m->snapshot = 0;
    m->phase = RUNS;
    bel_send_member(&s, 0, (bel_model_message){.kind = RELEASE, .generation = m->generation});
    bel_emit(look, &s, "master", 0, "releases version", m->released - 1);
}

// --- The end -------------------------------------------------------------------------------------

static void finish(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    m->phase = FINISHES;
    m->asked = FINISH;
    m->saved_snapshot = (uint8_t)(m->step + 1);
    memset(m->snapshots, 0, sizeof m->snapshots);
    send_shards(&s, (bel_model_message){.kind = FINISH, .step = m->step});
    bel_emit(look, &s, "master", 0, "asks for the snapshot of the end, version", m->step);
}

static void dismiss(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.phase = DISMISSES;
    if (s.disk.checkpoint != look->config->steps) bel_break(&s, END_WRONG);
    for (int i = 0; i < MEMBERS; i++)
        bel_send_member(&s, i, (bel_model_message){.kind = END});
    bel_emit(look, &s, "master", 0, "ends the job", -1);
}

static void go_back(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    forget(&s);
    s.master.begins_anew = look->config->defect != TAKES_OVER_WHAT_IS_LOST;
    s.master.first_step = s.master.saved_step = s.disk.checkpoint;
    s.disk.folder = s.disk.folder_of = 0;
    memset(s.disk.part, 0, sizeof s.disk.part);
    memset(s.disk.part_history, 0, sizeof s.disk.part_history);
    bel_emit(look, &s, "master", 0, "goes back to checkpoint", s.disk.checkpoint);
}

void bel_master_moves(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    if (m->lost) {
        go_back(look);
        return;
    }
    take_messages(look);
    bool all_saved = m->saved == (1 << SHARDS) - 1;
    bool waits = m->saved_snapshot > 0 && look->config->defect != FINISHES_EARLY;
    bool all_ended = m->ended == (1 << WORKERS) - 1 && m->step == look->config->steps && !waits;
    switch ((bel_phase)m->phase) {
    case GATHERS: gather(look); break;
    case RUNS:
        if (m->has_snapshot && m->snapshot == m->saved_step) {
            release(look);
        } else if (m->has_snapshot) {
            begin_save(look, SAVES);
        } else if (all_ended) {
            finish(look);
        }
        break;
    case SAVES:
    case SAVES_LAST:
        if (all_saved) commit(look);
        break;
    case RELEASES: release(look); break;
    case FINISHES:
        if (m->has_snapshot) begin_save(look, SAVES_LAST);
        break;
    case IS_THROUGH: dismiss(look); break;
    case DISMISSES: break;
    }
}
