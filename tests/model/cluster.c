// Queues, processes that die and restart, connections that break, and invariants.
#include "model/cluster.h"

// --- Queues --------------------------------------------------------------------------------------

void bel_queue_frame(bel_cluster *s, bel_queue16 *queue, bel_model_frame frame)
{
    if (queue->count == sizeof queue->items / sizeof queue->items[0]) {
        bel_break(s, QUEUE_OVERFLOWS);
        return;
    }
    queue->items[queue->count++] =
        (uint16_t)(frame.kind | frame.step << 4 | frame.decision << 6 | frame.block << 8 |
                   frame.other << 12 | frame.first << 14);
}

bel_model_frame bel_first_frame(const bel_queue16 *queue)
{
    unsigned bits = queue->items[0];
    return (bel_model_frame){.kind = bits & 15,
                             .step = bits >> 4 & 3,
                             .decision = bits >> 6 & 3,
                             .block = bits >> 8 & 15,
                             .other = bits >> 12 & 3,
                             .first = bits >> 14 & 1};
}

bel_model_frame bel_take_frame(bel_queue16 *queue)
{
    bel_model_frame frame = bel_first_frame(queue);
    queue->count--;
    memmove(queue->items, queue->items + 1, queue->count * sizeof queue->items[0]);
    queue->items[queue->count] = 0;
    return frame;
}

void bel_queue_message(bel_cluster *s, bel_queue32 *queue, bel_model_message m)
{
    if (queue->count == sizeof queue->items / sizeof queue->items[0]) {
        bel_break(s, QUEUE_OVERFLOWS);
        return;
    }
    queue->items[queue->count++] =
        (uint32_t)m.kind | (uint32_t)m.generation << 5 | (uint32_t)m.step << 8 |
        (uint32_t)m.first << 11 | (uint32_t)m.index << 14 | (uint32_t)m.incarnations[0] << 15 |
        (uint32_t)m.incarnations[1] << 17 | (uint32_t)m.counted << 19 | (uint32_t)m.leased << 22 |
        (uint32_t)m.plays << 26 | (uint32_t)m.flag << 28 | (uint32_t)m.snapshot << 29;
}

bel_model_message bel_first_message(const bel_queue32 *queue)
{
    uint32_t bits = queue->items[0];
    return (bel_model_message){.kind = bits & 31,
                               .generation = bits >> 5 & 7,
                               .step = bits >> 8 & 7,
                               .first = bits >> 11 & 7,
                               .index = bits >> 14 & 1,
                               .incarnations = {bits >> 15 & 3, bits >> 17 & 3},
                               .counted = bits >> 19 & 7,
                               .leased = bits >> 22 & 15,
                               .plays = bits >> 26 & 3,
                               .flag = bits >> 28 & 1,
                               .snapshot = (uint8_t)(bits >> 29)};
}

bel_model_message bel_take_message(bel_queue32 *queue)
{
    bel_model_message message = bel_first_message(queue);
    queue->count--;
    memmove(queue->items, queue->items + 1, queue->count * sizeof queue->items[0]);
    queue->items[queue->count] = 0;
    return message;
}

void bel_send_master(bel_cluster *s, int member, bel_model_message message)
{
    if (s->processes[member].connected) bel_queue_message(s, &s->to_master[member], message);
}

void bel_send_member(bel_cluster *s, int member, bel_model_message message)
{
    if (s->processes[member].connected == 2) bel_queue_message(s, &s->from_master[member], message);
}

bool bel_lane_is_open(const bel_cluster *s, int worker, int shard)
{
    const bel_process *process = &s->processes[SHARDS + worker];
    const bel_model_shard *other = &s->shards[shard];
    return process->life == UP && s->processes[shard].life == UP && other->generation != 0 &&
           s->workers[worker].generation == other->generation &&
           other->lane_incarnation[worker] == process->incarnation;
}

void bel_emit(const bel_reporter *look, const bel_cluster *next, const char *actor, int index,
              const char *what, int number)
{
    bel_explore_emit(look->explorer, next, (bel_explore_label){actor, index, what, number});
}

// --- Processes -----------------------------------------------------------------------------------

static const char *name_of(int member)
{
    return member < SHARDS ? "shard" : "worker";
}

static int index_of(int member)
{
    return member < SHARDS ? member : member - SHARDS;
}

static void clear_lanes(bel_cluster *s, int member)
{
    for (int w = 0; w < WORKERS; w++) {
        for (int k = 0; k < SHARDS; k++) {
            if (member != k && member != SHARDS + w) continue;
            memset(&s->up[w][k], 0, sizeof s->up[w][k]);
            memset(&s->down[w][k], 0, sizeof s->down[w][k]);
        }
    }
    if (member < SHARDS) {
        memset(&s->ledger, 0, sizeof s->ledger);
        memset(s->to_mirror, 0, sizeof s->to_mirror); // each lane has an end in every process
        memset(s->from_mirror, 0, sizeof s->from_mirror);
    }
}

// The state of a shard that does not run any more.
void bel_shard_keep(bel_model_shard *shard)
{
    bel_model_shard kept = {.held_generation = shard->held_generation,
                            .held_step = shard->held_step,
                            .ahead = shard->ahead,
                            .loaded = shard->loaded,
                            .buffers = {shard->buffers[0], shard->buffers[1]},
                            .whole_snapshot = shard->whole_snapshot,
                            .snapshot_history = shard->snapshot_history};
    if (shard->expects) kept = (bel_model_shard){0};
    if (shard->generation != 0 && !shard->expects) {
        kept.held_generation = shard->generation;
        kept.held_step = shard->step;
        kept.ahead |= shard->passed;
    }
    *shard = kept;
}

// Its messages to the master may still arrive; the contents of its lanes are lost.
void bel_process_ends(bel_cluster *s, int member, bool keeps)
{
    s->processes[member].life = DOWN;
    s->processes[member].connected = s->processes[member].leaving = 0;
    clear_lanes(s, member);
    memset(&s->from_master[member], 0, sizeof s->from_master[member]);
    if (member >= SHARDS) {
        memset(&s->workers[member - SHARDS], 0, sizeof s->workers[0]);
    } else if (keeps) {
        bel_shard_keep(&s->shards[member]);
    } else {
        memset(&s->shards[member], 0, sizeof s->shards[member]);
    }
    if (member < SHARDS) memset(&s->mirrors[member], 0, sizeof s->mirrors[member]);
}

static void die(const bel_reporter *look, int member)
{
    bel_cluster s = *look->now;
    s.deaths--;
    bel_process_ends(&s, member, look->config->keeps);
    bel_emit(look, &s, name_of(member), index_of(member), "dies", -1);
}

// Tells the master its state, and repeats the messages that the last master may not have received.
static void call_master(const bel_reporter *look, int member)
{
    bel_cluster s = *look->now;
    const bel_cluster_config *config = look->config;
    bel_process *process = &s.processes[member];
    memset(&s.to_master[member], 0, sizeof s.to_master[member]);
    memset(&s.from_master[member], 0, sizeof s.from_master[member]);
    process->connected = 1;
    bel_model_message join = {.kind = JOIN, .incarnations = {process->incarnation}};
    if (member < SHARDS) {
        bel_model_shard *shard = &s.shards[member];
        join.generation = shard->generation;
        join.step = shard->step;
        join.counted = shard->held_generation;
        join.leased = shard->held_step;
        join.first = s.mirrors[member].held_generation;
        join.plays = s.mirrors[member].held_step;
        bool forgets = look->config->defect == KEPT_FORGETS_SNAPSHOT;
        join.snapshot = forgets ? 0 : shard->whole_snapshot;
        shard->stands = shard->whole_of = 0;
        if (config->defect != SNAPSHOT_NOT_TOLD_AGAIN) shard->said = 0;
        shard->progress_said = 0;
    } else {
        bel_model_worker *worker = &s.workers[member - SHARDS];
        join.generation = worker->generation;
        if (config->defect != ENDED_NOT_TOLD_AGAIN) worker->told = 0;
    }
    if (process->leaving > 0) process->leaving = 1;
    bel_send_master(&s, member, join);
    bel_emit(look, &s, name_of(member), index_of(member), "calls the master", -1);
}

static void move_process(const bel_reporter *look, int member)
{
    const bel_cluster *now = look->now;
    const bel_process *process = &now->processes[member];
    bool dismissed = now->master.phase == DISMISSES;
    bool wanted = member >= SHARDS && process->life == OVER && !dismissed &&
                  (now->disk.wanted >> (member - SHARDS) & 1) != 0;
    if (process->life == DOWN || wanted) {
        bel_cluster s = *now;
        s.processes[member].life = UP;
        s.processes[member].incarnation++;
        bel_emit(look, &s, name_of(member), index_of(member), "is started again", -1);
    }
    if (process->life != UP) return;
    bool busy = member < SHARDS && now->shards[member].writes > 0;
    if (!process->connected && now->master.life == UP && !busy) call_master(look, member);
    if (now->deaths > 0 && look->config->may_die[member] && !dismissed) die(look, member);
    if (now->breaks > 0 && process->connected && !dismissed) {
        bel_cluster s = *now;
        s.breaks--;
        s.processes[member].connected = 0;
        bel_emit(look, &s, name_of(member), index_of(member), "loses its connection", -1);
    }
}

void bel_master_ends(bel_cluster *s)
{
    s->master.life = DOWN;
    for (int m = 0; m < MEMBERS; m++) {
        s->processes[m].connected = 0;
        memset(&s->to_master[m], 0, sizeof s->to_master[m]);
    }
}

static void move_masters_process(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    if (s.master.life == DOWN) {
        uint8_t incarnation = (uint8_t)(s.master.incarnation + 1);
        memset(&s.master, 0, sizeof s.master);
        s.master.life = UP;
        s.master.incarnation = incarnation;
        s.master.first_step = s.master.saved_step = s.disk.checkpoint;
        s.master.plays = s.disk.plays;
        s.disk.folder = s.disk.folder_of = 0; // files that others left unfinished
        memset(s.disk.part, 0, sizeof s.disk.part);
        memset(s.disk.part_history, 0, sizeof s.disk.part_history);
        s.master.phase = s.disk.checkpoint >= look->config->steps ? IS_THROUGH : GATHERS;
        bel_emit(look, &s, "master", 0, "is started again at checkpoint", s.disk.checkpoint);
        return;
    }
    if (s.deaths == 0 || !look->config->may_die[MEMBERS] || s.master.phase == DISMISSES) return;
    s.deaths--;
    bel_master_ends(&s);
    bel_emit(look, &s, "master", 0, "dies", -1);
}

// --- The model -----------------------------------------------------------------------------------

static void begin(const void *config, void *out_state)
{
    const bel_cluster_config *c = config;
    bel_cluster *s = out_state;
    memset(s, 0, sizeof *s);
    s->deaths = (uint8_t)c->deaths;
    s->breaks = (uint8_t)c->breaks;
    for (int m = 0; m < MEMBERS; m++)
        s->processes[m] = (bel_process){.life = UP, .connected = c->joined ? 2 : 0};
    s->stops = (uint8_t)c->stops;
    s->scales = (uint8_t)c->scales;
    s->leaves = (uint8_t)c->leaves;
    s->disk.plays = s->disk.wanted = c->one_plays ? 1 : ALL_WORKERS;
    s->master.life = UP;
    s->master.plays = s->disk.plays;
    s->master.here = c->joined ? (1 << MEMBERS) - 1 : 0;
    if (!c->one_plays) return;
    s->processes[SHARDS + 1] = (bel_process){.life = OVER};
    s->master.here &= (uint8_t) ~(1 << (SHARDS + 1));
}

// Whether the worker's lanes lose nothing any more.
bool bel_worker_stays(const bel_reporter *look, int worker)
{
    return look->now->deaths == 0 || !look->config->may_die[SHARDS + worker];
}

static bool hurries(const bel_reporter *look)
{
    const bel_cluster *now = look->now;
    bool calm = now->deaths == 0 && now->breaks == 0;
    if (calm && now->master.life == UP && bel_master_hurries(look)) return true;
    for (int k = 0; k < SHARDS; k++)
        if (now->processes[k].life == UP && bel_shard_hurries(look, k)) return true;
    for (int w = 0; w < WORKERS; w++)
        if (now->processes[SHARDS + w].life == UP && bel_worker_hurries(look, w)) return true;
    return false;
}

static void expand(const void *config, const void *state, bel_explorer *explorer)
{
    const bel_reporter look = {config, state, explorer};
    if (hurries(&look)) return;
    for (int m = 0; m < MEMBERS; m++)
        move_process(&look, m);
    move_masters_process(&look);
    bel_ends_processes(&look);
    if (look.now->master.life == UP) bel_master_moves(&look);
    for (int k = 0; k < SHARDS; k++)
        if (look.now->processes[k].life == UP) bel_shard_moves(&look, k);
    for (int w = 0; w < WORKERS; w++)
        if (look.now->processes[SHARDS + w].life == UP) bel_worker_moves(&look, w);
}

static const char *broken(const void *config, const void *state)
{
    static const char *const names[BROKEN_COUNT] = {
        [QUEUE_OVERFLOWS] = "a queue holds more than it should ever have to",
        [READS_OTHER_VERSION] = "a worker computes on another version than it should",
        [SENDS_OTHER_VERSION] = "a shard sends another version than it says",
        [VALUES_OVERWRITTEN] = "values are received over others that were not taken",
        [REPORT_OF_DEAD] = "a report is read whose worker is gone",
        [REPORT_INCOMPLETE] = "a step is made without all its reports",
        [UPDATE_OUT_OF_TURN] = "an update is not made of the version before",
        [SHARDS_APART] = "the shards stand further apart than they may",
        [SNAPSHOT_OVERWRITTEN] = "a snapshot is overwritten before its release",
        [CHECKPOINT_MIXED] = "a checkpoint becomes visible whose parts are not of its version",
        [CHECKPOINT_TORN] = "a checkpoint becomes visible while a shard writes into it",
        [CHECKPOINT_BACK] = "a checkpoint becomes visible that is not newer than the last",
        [CHECKPOINT_LEFT_OUT] = "a version that was due has no checkpoint",
        [JOB_FAILS] = "the job ends with an error",
        [LANE_CUT] = "the lane of a worker that was admitted is cut",
        [HISTORIES_DIFFER] = "the shards have not made the same steps of the same reports",
        [BLOCK_USED_TWICE] = "a block is used twice",
        [STALE_COUNTED] = "a report on an older version counts",
        [PUBLISHED_WHILE_COPYING] = "a version is published while the one before is copied",
        [COPY_WHILE_COMPUTING] = "a worker's copy is written while it computes",
        [PAGE_UNKNOWN] = "a page of the ledger comes that cannot be",
        [END_WRONG] = "the job ends, and its last checkpoint is not that of the last step",
        [STOP_LOST] = "a request to stop is lost",
        [WENT_BACK] = "training goes back although no state was lost",
        [ROWS_OF_OTHER_VERSION] = "a worker gets rows of another version than it should",
        [MIRROR_OUT_OF_TURN] = "a mirror makes a step that is not its next one",
    };
    (void)config;
    const bel_cluster *s = state;
    return names[s->broken == ALL_HOLD && bel_ends_stop_is_lost(s) ? STOP_LOST : s->broken];
}

static bool is_end(const void *config, const void *state)
{
    (void)config;
    const bel_cluster *s = state;
    for (int m = 0; m < MEMBERS; m++)
        if (s->processes[m].life != OVER) return false;
    return s->master.phase == DISMISSES;
}

bel_explore_model bel_cluster_model(const bel_cluster_config *config)
{
    return (bel_explore_model){.config = config,
                               .state_bytes = sizeof(bel_cluster),
                               .begin = begin,
                               .expand = expand,
                               .broken = broken,
                               .is_end = is_end};
}
