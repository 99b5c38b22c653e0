// How training stops before its last step, and what follows: requests to stop, pauses for another
// assignment, processes that must go, shards that continue with their state, and a stop while a
// worker is lost.
#include "model/cluster.h"

// --- Requests, and processes that must go --------------------------------------------------------

static void must_go(const bel_reporter *look, int member)
{
    bel_cluster s = *look->now;
    s.leaves--;
    if (member == MASTER) {
        s.master.leaving = 1;
    } else {
        s.processes[member].leaving = 1;
    }
    bel_emit(look, &s, "member", member, "must go", -1);
}

static void tell_leave(const bel_reporter *look, int member)
{
    bel_cluster s = *look->now;
    s.processes[member].leaving = 2;
    bel_send_master(&s, member, (bel_model_message){.kind = LEAVE});
    bel_emit(look, &s, "member", member, "tells that it must go", -1);
}

static void move_leaving(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    for (int m = 0; m < MEMBERS; m++) {
        const bel_process *process = &now->processes[m];
        if (process->life != UP) continue;
        bool may = now->leaves > 0 && look->config->may_leave[m] && process->leaving == 0;
        if (may) must_go(look, m);
        if (process->leaving == 1 && process->connected) tell_leave(look, m);
    }
    bool may = now->leaves > 0 && look->config->may_leave[MASTER] && now->master.leaving == 0;
    if (may && now->master.life == UP) must_go(look, MASTER);
}

void bel_ends_processes(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    if (now->master.phase == DISMISSES) return;
    if (now->stops > 0) {
        bel_cluster s = *now;
        s.stops--;
        s.stop_wanted = 1;
        bel_emit(look, &s, "user", 0, "asks for a stop", -1);
    }
    if (now->scales > 0) {
        bel_cluster s = *now;
        s.scales--;
        s.disk.wanted = now->disk.wanted == 1 ? ALL_WORKERS : 1;
        bel_emit(look, &s, "user", 0, "asks for workers:", s.disk.wanted == 1 ? 1 : WORKERS);
    }
    if (now->leaves > 0 || look->config->leaves > 0) move_leaving(look);
}

// True if nothing is under way that tells shard 0 of a request to stop that the master has sent.
bool bel_ends_stop_is_lost(const bel_cluster *s)
{
    const bel_model_master *m = &s->master;
    const bel_model_shard *shard = &s->shards[0];
    bool sent = s->stop_wanted && m->life == UP && m->phase == RUNS && m->stop_sent && !m->lost;
    bool there = s->processes[0].life == UP && s->processes[0].connected == 2 &&
                 shard->generation == m->generation;
    bool under_way = s->from_master[0].count > 0 || s->to_master[0].count > 0;
    bool knows = shard->stop_wanted || (shard->decision_known && (shard->decision & STOP) != 0);
    return sent && there && !under_way && !knows;
}

static void send_request(const bel_reporter *look, uint8_t kind)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    if (kind == ASK_STOP) {
        m->stop_sent = 1;
    } else {
        m->pause_sent = 1;
    }
    bel_send_member(&s, 0, (bel_model_message){.kind = kind, .generation = m->generation});
    bel_emit(look, &s, "master", 0, kind == ASK_STOP ? "asks for a stop" : "asks for a pause", -1);
}

// --- Workers that leave, or are not needed -------------------------------------------------------

void bel_ends_retire(bel_cluster *s, int worker)
{
    int member = SHARDS + worker;
    bel_send_member(s, member, (bel_model_message){.kind = END});
    s->master.here &= (uint8_t) ~(1 << member);
}

static void let_go(bel_cluster *s, int member)
{
    bel_send_member(s, member, (bel_model_message){.kind = END, .flag = 1});
    s->master.leaves &= (uint8_t) ~(1 << member);
    s->master.here &= (uint8_t) ~(1 << member);
}

static bool is_at_hand(const bel_cluster *now, int member)
{
    return (now->master.here >> member & 1) != 0 && now->processes[member].connected == 2;
}

// Whether all that play are there, and all that should.
static bool all_at_hand(const bel_cluster *now)
{
    unsigned workers = now->master.plays | now->disk.wanted;
    for (int k = 0; k < SHARDS; k++)
        if (!is_at_hand(now, k)) return false;
    for (int w = 0; w < WORKERS; w++)
        if ((workers >> w & 1) != 0 && !is_at_hand(now, SHARDS + w)) return false;
    return true;
}

// A worker leaves at once; a shard and the master have state to save first.
static void move_farewells(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    bool at_once = look->config->defect == SHARD_LEAVES_AT_ONCE;
    for (int i = at_once ? 0 : SHARDS; i < MEMBERS; i++) {
        if ((m->leaves >> i & 1) == 0) continue;
        bel_cluster s = *look->now;
        let_go(&s, i);
        bel_emit(look, &s, "master", 0, "lets go of member", i);
    }
}

static bool wants_pause(const bel_cluster *now)
{
    const bel_model_master *m = &now->master;
    bool leaves = (m->leaves & ALL_SHARDS) != 0 || m->leaving;
    return leaves || m->plays != now->disk.wanted;
}

// --- After the last version is saved -------------------------------------------------------------

static void begin_anew(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    bel_master_forget(look, s);
    m->begins_anew = look->config->defect != PAUSE_TAKES_OVER;
    m->first_step = m->saved_step = s->disk.checkpoint;
    for (int i = 0; i < MEMBERS; i++)
        if ((m->leaves >> i & 1) != 0) let_go(s, i);
}

// Training is over, or continues after a pause. A master that must go leaves without a message.
void bel_ends_conclude(const bel_reporter *look, bel_cluster *s)
{
    bel_model_master *m = &s->master;
    m->asked = m->saved = 0;
    if (m->over != PAUSED + 1) {
        m->phase = IS_THROUGH;
    } else if (m->leaving) {
        bel_master_ends(s);
    } else {
        begin_anew(look, s);
    }
}

// --- Shards that continue with their state -------------------------------------------------------

// Whether a state that does not run can continue. It may be of an earlier generation that this one
// continues: its shard has not begun the later ones, so none has made a step in them.
static bool is_of_now(const bel_model_master *m, uint8_t generation)
{
    return generation != 0 && generation >= m->since && generation <= m->generation;
}

bool bel_ends_has_state(const bel_model_master *m, int shard)
{
    return m->seat_generation[shard] == m->generation || is_of_now(m, m->seat_held[shard]);
}

// The mirror of a shard is in the other one's process.
static bool has_mirror(const bel_reporter *look, const bel_model_master *m, int shard)
{
    int place = SHARDS - 1 - shard;
    bool runs = m->seat_generation[place] == m->generation;
    return look->config->mirrors && (m->here >> place & 1) != 0 &&
           (runs || is_of_now(m, m->seat_mirror[place]));
}

bool bel_ends_all_have(const bel_reporter *look, const bel_model_master *m)
{
    for (int k = 0; k < SHARDS; k++)
        if (!bel_ends_has_state(m, k) && !has_mirror(look, m, k)) return false;
    return true;
}

uint8_t bel_ends_lacking(const bel_reporter *look, const bel_model_master *m)
{
    unsigned lacking = 0;
    for (int k = 0; k < SHARDS; k++) {
        if (!bel_ends_has_state(m, k)) lacking |= 1u << k;
        bool sent = look->config->defect != MIRROR_NOT_FILLED;
        if (look->config->mirrors && sent && !has_mirror(look, m, k)) lacking |= 1u << (SHARDS + k);
    }
    return (uint8_t)lacking;
}

// Whether no loss that may happen takes a state with it: only shards die, and another copy of each
// state remains.
bool bel_ends_never_goes_back(const bel_cluster_config *config)
{
    bool others = config->breaks > 0 || config->may_die[MASTER] || config->may_die[WORKER_0] ||
                  config->may_die[WORKER_1];
    return !others && config->deaths > 0 && config->scales == 0 &&
           (config->keeps || (config->mirrors && config->deaths == 1));
}

static bool is_due(const bel_cluster_config *config, int version)
{
    return version % config->save_steps == 0 && version != config->steps;
}

// Whether the state of shards may be worth waiting for after a loss.
bool bel_ends_can_hold(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    bool trains = m->phase >= RUNS && m->phase <= SAVES_LAST;
    bool rescued = m->whole[0] > 0 || m->lacks;
    return (look->config->keeps || look->config->mirrors) && trains && !rescued;
}

void bel_ends_hold(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.at_end = s.master.phase == FINISHES || s.master.phase == SAVES_LAST;
    s.master.phase = HOLDS;
    s.disk.folder = s.disk.folder_of = 0;
    memset(s.disk.part, 0, sizeof s.disk.part);
    memset(s.disk.part_history, 0, sizeof s.disk.part_history);
    s.master.lost = s.master.asked = s.master.saved = 0;
    bel_emit(look, &s, "master", 0, "looks for a state of the shards", -1);
}

// The version at which all shards can continue.
static int held_step(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    bool highest = look->config->defect == HELD_AT_HIGHEST;
    int step = look->config->steps - 1;
    if (highest) step = 0;
    for (int k = 0; k < SHARDS; k++) {
        bool own = bel_ends_has_state(m, k);
        int has = own ? m->seat_held_step[k] : m->seat_mirror_step[SHARDS - 1 - k];
        if (!own && look->config->defect == MIRROR_NOT_COUNTED) continue;
        if (highest ? has > step : has < step) step = has;
    }
    return step;
}

// One above the version of the snapshot that is not used yet, if training continues at `step`;
// 0: none. Shard 0 may have died before it announced it.
static uint8_t unused_snapshot(const bel_reporter *look, int step)
{
    const bel_model_master *m = &look->now->master;
    int used = m->released > m->first_step + 1 ? m->released - 1 : m->first_step;
    int version = m->saved_snapshot - 1;
    if (m->at_end || look->config->defect == HELD_WITHOUT_SNAPSHOT) return 0;
    for (int v = used + 1; v <= step && version < 0; v++)
        if (is_due(look->config, v)) version = v;
    return version >= 0 && version <= step ? (uint8_t)(version + 1) : 0;
}

static void begin_held(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    int step = held_step(look);
    uint8_t unused = unused_snapshot(look, step);
    bel_master_forget(look, &s);
    m->continues = unused;
    m->begins_anew = m->held = 1;
    m->at_end = 0;
    m->first_step = (uint8_t)step;
    bel_emit(look, &s, "master", 0, "continues with the shards' version", step);
}

static void ask_to_hold(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    m->asked = HOLD;
    for (int k = 0; k < SHARDS; k++)
        if (m->seat_generation[k] != m->generation) m->saved |= (uint8_t)(1 << k);
    if (look->config->defect == HELD_WITHOUT_STOP) {
        m->saved = ALL_SHARDS;
        for (int k = 0; k < SHARDS; k++)
            if (m->seat_generation[k] == m->generation) m->seat_held_step[k] = s.shards[k].step;
    } else {
        bel_master_send_shards(&s, (bel_model_message){.kind = HOLD});
    }
    bel_emit(look, &s, "master", 0, "stops the shards that run", -1);
}

static void notice_losses(const bel_reporter *look)
{
    for (int k = 0; k < SHARDS; k++) {
        if ((look->now->master.here >> k & 1) == 0 || look->now->processes[k].connected) continue;
        bel_cluster s = *look->now;
        s.master.here &= (uint8_t) ~(1 << k);
        bel_emit(look, &s, "master", 0, "notices the loss of member", k);
    }
}

// A shard that dies while others stop is waited for as the first one.
static void wait_again(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.asked = s.master.saved = 0;
    bel_emit(look, &s, "master", 0, "waits once more for a state", -1);
}

static void move_hold(const bel_reporter *look)
{
    const bel_model_master *m = &look->now->master;
    bool all_here = (m->here & ALL_SHARDS) == ALL_SHARDS;
    notice_losses(look);
    if (all_here && !bel_ends_all_have(look, m)) {
        bel_master_go_back(look);
    } else if (m->asked == HOLD && !all_here) {
        wait_again(look);
    } else if (m->asked == 0 && all_here) {
        ask_to_hold(look);
    } else if (m->asked == HOLD && m->saved == ALL_SHARDS) {
        begin_held(look);
    }
}

// --- A stop without a worker ---------------------------------------------------------------------

static bool have_all_shards(const bel_cluster *now)
{
    for (int k = 0; k < SHARDS; k++) {
        bool holds = now->master.seat_generation[k] == now->master.generation;
        if (!holds || !is_at_hand(now, k)) return false;
    }
    return true;
}

static bool may_rescue(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    const bel_model_master *m = &now->master;
    bool waits = look->config->rescues && m->stop_sent && !m->pause_sent && !m->has_snapshot &&
                 m->saved_snapshot == 0 && m->admits == 0;
    bool away = false;
    for (int w = 0; w < WORKERS; w++) {
        bool plays = (m->plays >> w & 1) != 0 && (m->ended >> w & 1) == 0;
        away = away || (plays && !now->processes[SHARDS + w].connected);
    }
    return waits && away && have_all_shards(now);
}

static void ask_whole(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    s.master.lacks = 0;
    s.master.phase = ASKS_WHOLE;
    s.master.asked = FINISH;
    memset(s.master.whole, 0, sizeof s.master.whole);
    bel_master_send_shards(&s, (bel_model_message){.kind = FINISH, .flag = 1});
    bel_emit(look, &s, "master", 0, "asks whether the shards are whole", -1);
}

// Worker 1 does not come back. If a snapshot is in use, training goes back.
static void give_up(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    s.processes[SHARDS + 1].life = OVER;
    s.disk.wanted = 1;
    m->here &= (uint8_t) ~(1 << (SHARDS + 1));
    m->admits &= 1;
    bool in_use = m->has_snapshot || m->saved_snapshot > 0;
    m->lacks = !in_use;
    m->lost = in_use;
    bel_emit(look, &s, "master", 0, "gives up worker", 1);
}

static bool may_give_up(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    bool plays = (now->master.plays & now->disk.wanted) == ALL_WORKERS;
    return look->config->gives_up && plays && now->processes[SHARDS + 1].life == DOWN;
}

static void take_answers(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_master *m = &s.master;
    int version = m->whole[0] - 1;
    bool same = m->whole[1] == m->whole[0] || look->config->defect == WHOLE_NOT_COMPARED;
    bool whole = version != NOT_WHOLE && same;
    bool announced = m->saved_snapshot > 0 || m->has_snapshot; // meanwhile
    bool other = announced && (!whole || m->saved_snapshot != version + 1);
    bool goes_on = m->plays != s.disk.wanted && !s.stop_wanted; // without worker 1
    m->asked = 0;
    m->phase = RUNS;
    if (!whole) memset(m->whole, 0, sizeof m->whole);
    if (other) {
        m->failed = 1; // its snapshot may be gone
        m->phase = IS_THROUGH;
    } else if (whole) {
        m->over = (goes_on ? PAUSED : INTERRUPTED) + 1;
        m->snapshot = (uint8_t)version;
        m->has_snapshot = 1;
        m->saved_snapshot = (uint8_t)(version + 1);
        m->phase = FINISHES;
    } else if (goes_on) {
        m->lost = 1;
    } else if (look->config->defect != WHOLE_NOT_RELEASED) {
        bel_master_send_shards(&s, (bel_model_message){.kind = RELEASE, .flag = 1});
    }
    bel_emit(look, &s, "master", 0, "hears from all shards whether they are whole", -1);
}

// --- The master's moves --------------------------------------------------------------------------

void bel_ends_moves(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    const bel_model_master *m = &now->master;
    if (m->phase == HOLDS) move_hold(look);
    if (m->phase == ASKS_WHOLE && m->whole[0] > 0 && m->whole[1] > 0) take_answers(look);
    if (m->phase != RUNS && m->phase != SAVES) return;
    if (now->stop_wanted && !m->stop_sent) send_request(look, ASK_STOP);
    move_farewells(look);
    if (m->phase != RUNS) return;
    if (may_give_up(look)) give_up(look);
    if (m->lacks) {
        have_all_shards(now) ? ask_whole(look) : bel_master_go_back(look);
        return;
    }
    if (!m->pause_sent && wants_pause(now) && all_at_hand(now)) send_request(look, ASK_PAUSE);
    if (may_rescue(look)) ask_whole(look);
}
