// The master: members, generations, admissions, checkpoints, the end.
#include "model/cluster.h"

void bel_master_send_shards(bel_cluster *s, bel_model_message message)
{
    message.generation = s->master.generation;
    for (int k = 0; k < SHARDS; k++)
        bel_send_member(s, k, message);
}

// --- Beginning -----------------------------------------------------------------------------------

// Forgets the members' messages, which they repeat.
void bel_master_forget(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    m->phase = GATHERS;
    m->lost = m->ended = m->admits = m->has_snapshot = m->snapshot = m->step = 0;
    m->saved_snapshot = m->released = m->asked = m->saved = m->over = m->held = m->lacks = 0;
    m->pause_sent = m->continues = 0;
    if (look->config->defect != STOP_FORGOTTEN) m->stop_sent = 0;
    memset(m->whole, 0, sizeof m->whole);
    memset(m->answered, 0, sizeof m->answered);
    memset(m->admitted_step, 0, sizeof m->admitted_step);
    memset(m->counted, 0, sizeof m->counted);
    memset(m->snapshots, 0, sizeof m->snapshots);
}

// `lacking`: bits of shards without state, then of those without mirror.
static void send_setup(bel_cluster *s, int member, uint8_t step, uint8_t lacking)
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
            .plays = m->plays,
            .flag = m->held,
            .leased = m->held ? lacking : 0,
            .snapshot = m->held ? m->continues : 0,
            .incarnations = {m->seat_incarnation[SHARDS], m->seat_incarnation[SHARDS + 1]},
        });
}

static void admit(bel_cluster *s, int worker)
{
    bel_model_master *m = &s->master;
    m->admits |= (uint8_t)(1 << worker);
    m->answered[worker] = m->counted[worker] = 0;
    m->admitted_step[worker] = 7;
    bel_master_send_shards(
        s, (bel_model_message){.kind = ADMIT,
                               .index = (uint8_t)worker,
                               .incarnations = {m->seat_incarnation[SHARDS + worker]}});
}

static void take_over(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    m->generation = m->since = m->seat_generation[0];
    if (look->config->defect == ENDS_BY_JOIN) {
        m->step = m->seat_step[0];
        m->over = m->step == look->config->steps ? DONE + 1 : 0;
    }
    m->plays = look->config->defect == ASSIGNMENT_BY_REQUEST ? s->disk.wanted : s->disk.plays;
    for (int w = 0; w < WORKERS; w++) {
        bool plays = (m->plays >> w & 1) != 0;
        if (plays && m->seat_generation[SHARDS + w] != m->generation) admit(s, w);
    }
}

static void begin_generation(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    uint8_t newest = s->disk.generation;
    bool raised = look->config->defect != GENERATION_NOT_RAISED;
    for (int i = 0; i < MEMBERS && raised; i++)
        if (m->seat_generation[i] > newest) newest = m->seat_generation[i];
    for (int k = 0; k < SHARDS && raised; k++)
        if (m->seat_held[k] > newest) newest = m->seat_held[k];
    uint8_t lacking = m->held ? bel_ends_lacking(look, m) : 0;
    m->generation = (uint8_t)(newest + 1);
    if (!m->held) m->since = m->generation;
    if (raised) s->disk.generation = m->generation;
    m->step = m->first_step;
    m->plays = s->disk.plays = s->disk.wanted;
    for (int i = 0; i < MEMBERS; i++) {
        bool plays = i < SHARDS || (m->plays >> (i - SHARDS) & 1) != 0;
        if (plays) send_setup(s, i, m->first_step, lacking);
        if (!plays && (m->here >> i & 1) != 0) bel_ends_retire(s, i - SHARDS);
    }
    m->saved_snapshot = m->continues; // announced, and its parts are announced again
    m->held = m->continues = 0;
    memset(m->seat_held, 0, sizeof m->seat_held);
    memset(m->seat_held_step, 0, sizeof m->seat_held_step);
    memset(m->seat_mirror, 0, sizeof m->seat_mirror);
    memset(m->seat_mirror_step, 0, sizeof m->seat_mirror_step);
    memset(m->seat_snapshot, 0, sizeof m->seat_snapshot);
}

// The members that must be there: with the state of a generation also its workers, as they were
// dealt the replicas.
static unsigned awaited(const bel_cluster *now)
{
    const bel_model_master *m = &now->master;
    unsigned workers = now->disk.wanted | (m->begins_anew ? 0u : now->disk.plays);
    return ALL_SHARDS | workers << SHARDS;
}

// A snapshot of which a shard has lost its part cannot continue: its checkpoint is left out.
static void settle_snapshot(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    bool half = false;
    for (int k = 0; k < SHARDS; k++)
        half = half || !bel_ends_has_state(m, k) || m->seat_snapshot[k] != m->continues;
    if (m->continues == 0 || !half || look->config->defect == HELD_HALF_SNAPSHOT) return;
    if (look->config->mirrors) s->left_out |= (uint8_t)(1 << (m->continues - 1)); // else never
    m->continues = 0;
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
    if ((m->here & awaited(look->now)) != awaited(look->now)) return;
    if ((m->held && !bel_ends_all_have(look, m)) ||
        (m->held && look->now->disk.wanted != m->plays)) {
        bel_master_go_back(look);
        return;
    }
    bel_cluster s = *look->now;
    bool have_state = m->seat_generation[0] == m->seat_generation[1] && m->seat_generation[0] != 0;
    if (m->begins_anew) have_state = false;
    if (m->held) settle_snapshot(look, &s);
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
                                            .flag = m->phase == ASKS_WHOLE,
                                            .incarnations = {m->incarnation}});
    }
    bool again = shard == 0 && look->config->defect != STOP_NOT_REPEATED;
    bel_model_message ask = {.kind = ASK_STOP, .generation = m->generation};
    if (again && m->stop_sent) bel_send_member(s, shard, ask);
    ask.kind = ASK_PAUSE;
    if (again && m->pause_sent) bel_send_member(s, shard, ask);
    for (int w = 0; w < WORKERS; w++)
        if ((m->admits >> w & 1) != 0) admit(s, w);
}

static void take_join(const bel_reporter *look, bel_cluster *s, int member,
                      const bel_model_message *join)
{
    bel_model_master *m = &s->master;
    if (s->processes[member].connected > 0) s->processes[member].connected = 2;
    m->here |= (uint8_t)(1 << member);
    if (m->seat_incarnation[member] != join->incarnations[0]) m->leaves &= (uint8_t) ~(1 << member);
    if (member < SHARDS) {
        m->seat_held[member] = join->counted;
        m->seat_held_step[member] = join->leased;
        m->seat_mirror[member] = join->first;
        m->seat_mirror_step[member] = join->plays;
        m->seat_snapshot[member] = join->snapshot;
    }
    m->seat_generation[member] = join->generation;
    m->seat_incarnation[member] = join->incarnations[0];
    m->seat_step[member] = join->step;
    if (m->phase == DISMISSES) bel_send_member(s, member, (bel_model_message){.kind = END});
    if (m->phase == HOLDS && m->asked == HOLD && member < SHARDS) {
        if (join->generation == m->generation) {
            ask_again(look, s, member);
        } else {
            m->asked = m->saved = 0; // its predecessor may not answer any more
        }
    }
    if (m->phase == GATHERS || m->phase == HOLDS || m->phase >= IS_THROUGH) return;
    if (member < SHARDS && m->phase == ASKS_WHOLE) m->whole[member] = 0; // it has continued
    bool rescued = m->over > 0 && m->whole[0] > 0;
    if (rescued && m->phase != ASKS_WHOLE) {
        if (member < SHARDS) m->failed = 1;
        return;
    }
    bool plays = member < SHARDS || (m->plays >> (member - SHARDS) & 1) != 0;
    if (!plays) {
        bool wanted = (s->disk.wanted >> (member - SHARDS) & 1) != 0;
        if (!wanted) bel_ends_retire(s, member - SHARDS);
        return;
    }
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
    if (message->flag) {
        if (m->phase == ASKS_WHOLE) m->whole[shard] = (uint8_t)(message->step + 1);
        return;
    }
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
    send_setup(s, SHARDS + w, m->admitted_step[w], 0);
}

static void take_held(bel_model_master *m, int shard, const bel_model_message *message)
{
    if (m->phase != HOLDS) return;
    bool has_state = message->step != NO_STATE, has_mirror = message->first != NO_STATE;
    m->seat_held[shard] = has_state ? m->generation : 0;
    m->seat_held_step[shard] = has_state ? message->step : 0;
    m->seat_mirror[shard] = has_mirror ? m->generation : 0;
    m->seat_mirror_step[shard] = has_mirror ? message->first : 0;
    m->seat_snapshot[shard] = message->snapshot;
    m->seat_generation[shard] = 0;
    m->saved |= (uint8_t)(1 << shard);
}

static const char *take_message(const bel_reporter *look, bel_cluster *s, int member)
{
    bel_model_master *m = &s->master;
    bel_model_message message = bel_take_message(&s->to_master[member]);
    if (message.kind == JOIN) {
        take_join(look, s, member, &message);
        return "takes the join of member";
    }
    if (message.kind == LEAVE) {
        m->leaves |= (uint8_t)(1 << member);
        return "hears that it must go from member";
    }
    if (message.generation != m->generation) return "drops an old message of member";
    switch (message.kind) {
    case PROGRESS:
        m->step = message.step;
        if (!message.flag) m->over = (uint8_t)(message.first + 1);
        return "takes the progress of member";
    case HELD: take_held(m, member, &message); return "hears the version of member";
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

void bel_master_begin_save(const bel_reporter *look, bel_phase phase)
{
    bel_cluster s = *look->now;
    s.master.phase = (uint8_t)phase;
    s.master.asked = ASK_SAVE;
    s.master.saved = 0;
    s.disk.folder = (uint8_t)(s.master.snapshot + 1);
    s.disk.folder_of = s.master.incarnation;
    bel_master_send_shards(&s, (bel_model_message){.kind = ASK_SAVE,
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
    for (int v = disk->checkpoint + 1; v < version; v++)
        if (v % look->config->save_steps == 0 && (s->left_out >> v & 1) == 0)
            bel_break(s, CHECKPOINT_LEFT_OUT);
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
    s.master.phase = RELEASES;
    if (last) bel_ends_conclude(look, &s);
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
    if (look->config->defect != END_IS_OLD_SNAPSHOT) m->released = 0;
    m->saved_snapshot = (uint8_t)(m->step + 1);
    memset(m->snapshots, 0, sizeof m->snapshots);
    bel_master_send_shards(&s, (bel_model_message){.kind = FINISH, .step = m->step});
    bel_emit(look, &s, "master", 0, "asks for the snapshot of the end, version", m->step);
}

// The last version that a shard made.
static int last_step(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    if (!now->stop_wanted) return look->config->steps;
    int step = now->disk.checkpoint;
    for (int k = 0; k < SHARDS; k++) {
        bool runs = now->shards[k].generation == now->master.generation;
        if (runs && now->shards[k].step > step) step = now->shards[k].step;
    }
    return step;
}

static void dismiss(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.phase = DISMISSES;
    if (!s.master.failed && s.disk.checkpoint != last_step(look)) bel_break(&s, END_WRONG);
    for (int i = 0; i < MEMBERS; i++)
        bel_send_member(&s, i, (bel_model_message){.kind = END});
    bel_emit(look, &s, "master", 0, "ends the job", -1);
}

void bel_master_go_back(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    if (look->config->deaths == 0 && look->config->breaks == 0) bel_break(&s, WENT_BACK);
    for (int k = 0; k < SHARDS; k++) {
        const bel_model_shard *shard = &s.shards[k];
        bool ahead = shard->step > s.disk.checkpoint || shard->held_step > s.disk.checkpoint;
        if (ahead && bel_ends_never_goes_back(look->config)) bel_break(&s, WENT_BACK);
    }
    bel_master_forget(look, &s);
    s.master.begins_anew = look->config->defect != TAKES_OVER_WHAT_IS_LOST;
    s.master.first_step = s.master.saved_step = s.disk.checkpoint;
    s.left_out = 0;
    s.disk.folder = s.disk.folder_of = 0;
    memset(s.disk.part, 0, sizeof s.disk.part);
    memset(s.disk.part_history, 0, sizeof s.disk.part_history);
    bel_emit(look, &s, "master", 0, "goes back to checkpoint", s.disk.checkpoint);
}

static void fail(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.phase = IS_THROUGH;
    bel_emit(look, &s, "master", 0, "ends with an error", -1);
}

// A version that is saved already needs no other checkpoint.
static void save_last(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    bool saved = m->snapshot == m->saved_step && m->snapshot == look->now->disk.checkpoint &&
                 look->config->defect != SAVES_WHAT_IS_SAVED;
    if (!saved) {
        bel_master_begin_save(look, SAVES_LAST);
        return;
    }
    bel_cluster s = *look->now;
    bel_ends_conclude(look, &s);
    bel_emit(look, &s, "master", 0, "has saved that version:", m->snapshot);
}

void bel_master_moves(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    if (m->failed && m->phase < IS_THROUGH) {
        fail(look);
        return;
    }
    if (m->lost) {
        bel_ends_can_hold(look) ? bel_ends_hold(look) : bel_master_go_back(look);
        return;
    }
    take_messages(look);
    bel_ends_moves(look);
    bool all_saved = m->saved == (1 << SHARDS) - 1;
    bool waits = m->saved_snapshot > 0 && look->config->defect != FINISHES_EARLY;
    bool all_ended = (m->ended & m->plays) == m->plays && m->over > 0 && !waits;
    switch ((bel_phase)m->phase) {
    case GATHERS: gather(look); break;
    case RUNS:
        if (m->has_snapshot && m->snapshot == m->saved_step) {
            release(look);
        } else if (m->has_snapshot) {
            bel_master_begin_save(look, SAVES);
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
        if (m->has_snapshot) save_last(look);
        break;
    case IS_THROUGH: dismiss(look); break;
    case HOLDS:
    case ASKS_WHOLE:
    case DISMISSES: break;
    }
}
