// Mirrors: each shard's sum of a step also goes to the other shard's process, which makes the same
// step. A version is published when both have made it. After a loss a newcomer gets its shard's
// state from the mirror, and the mirror's from the shard, before it makes a step.
//
// mirrors[k] is in the process of shard k, and is that of the other shard. Frames have their
// generation, as a lane may have those of the last one.
#include "model/cluster.h"

static int other(int k)
{
    return SHARDS - 1 - k;
}

// --- Frames --------------------------------------------------------------------------------------

// Nothing is sent to a process that is gone: its successor's generation is another one.
static void send_frame(bel_cluster *s, int receiver, bel_queue16 *queue, bel_model_frame frame,
                       uint8_t generation)
{
    frame.block = generation;
    if (s->processes[receiver].life == UP) bel_queue_frame(s, queue, frame);
}

static void send_to_mirror(bel_cluster *s, int k, uint8_t kind)
{
    const bel_model_shard *shard = &s->shards[k];
    send_frame(s, other(k), &s->to_mirror[k],
               (bel_model_frame){.kind = kind, .step = shard->step, .other = shard->ahead},
               shard->generation);
}

static void send_from_mirror(bel_cluster *s, int k, uint8_t kind)
{
    const bel_model_mirror *mirror = &s->mirrors[k];
    send_frame(s, other(k), &s->from_mirror[other(k)],
               (bel_model_frame){.kind = kind, .step = mirror->step, .other = mirror->ahead},
               mirror->generation);
}

// --- A shard that has a mirror -------------------------------------------------------------------

void bel_mirror_begin_step(bel_model_shard *shard)
{
    shard->sum_sent = shard->stats_sent = 0;
}

bool bel_mirror_may_pass(const bel_model_shard *shard)
{
    return shard->sum_sent;
}

bool bel_mirror_step_done(const bel_reporter *look, const bel_model_shard *shard)
{
    bool awaits = look->config->defect != MIRROR_NOT_AWAITED;
    return !awaits || shard->mirrored > shard->step + 1;
}

static bool can_send_sum(const bel_model_shard *shard)
{
    bool runs = shard->decision_known && (shard->decision & STOP) == 0 && !shard->stands;
    return runs && !shard->sum_sent && (shard->reports & shard->plays) == shard->plays;
}

static bool can_send_stats(const bel_model_shard *shard)
{
    return shard->sum_sent && !shard->stats_sent &&
           (shard->stats_list & shard->plays) == shard->plays;
}

// --- A mirror ------------------------------------------------------------------------------------

static void take_sum(bel_cluster *s, bel_model_mirror *mirror, const bel_model_frame *frame)
{
    if (frame->step > mirror->step) bel_break(s, MIRROR_OUT_OF_TURN);
    if (frame->step == mirror->step) mirror->sum = 1;
}

// Takes a frame for process k: for its mirror, or for its shard.
static const char *take_for_mirror(bel_cluster *s, int k)
{
    bel_model_mirror *mirror = &s->mirrors[k];
    bel_model_frame frame = bel_take_frame(&s->to_mirror[other(k)]);
    if (frame.block != mirror->generation) return "drops a frame for its mirror";
    if (frame.kind == STATE) {
        mirror->expects = 0;
        mirror->ahead = frame.other;
        return "takes its mirror's state";
    }
    if (frame.kind == SUM) {
        take_sum(s, mirror, &frame);
        return "takes a sum for its mirror";
    }
    mirror->stats = mirror->stats || frame.step == mirror->step;
    return "takes step statistics for its mirror";
}

static const char *take_from_mirror(bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_frame frame = bel_take_frame(&s->from_mirror[k]);
    if (frame.block != shard->generation) return "drops a frame of its mirror";
    if (frame.kind == STATE) {
        shard->expects = 0;
        shard->ahead = frame.other;
        shard->loaded = shard->buffers[0] = shard->step;
        shard->buffers[1] = (uint8_t)(shard->step + frame.other);
        return "takes its state from its mirror";
    }
    shard->mirrored = (uint8_t)(frame.step + 1);
    return "hears from its mirror";
}

static void pass(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    bel_model_mirror *mirror = &s.mirrors[k];
    bool updates = !mirror->ahead || look->config->defect == MIRROR_CHUNK_UPDATED;
    if (mirror->expects || (updates && mirror->ahead)) bel_break(&s, MIRROR_OUT_OF_TURN);
    mirror->ahead = 0;
    mirror->passed = 1;
    bel_emit(look, &s, "mirror in", k, "makes the values of version", mirror->step + 1);
}

static void publish(const bel_reporter *look, int k)
{
    bel_cluster s = *look->now;
    bel_model_mirror *mirror = &s.mirrors[k];
    mirror->step++;
    mirror->sum = mirror->passed = mirror->stats = 0;
    send_from_mirror(&s, k, VERSION);
    bel_emit(look, &s, "mirror in", k, "has made version", mirror->step);
}

// --- Generations ---------------------------------------------------------------------------------

void bel_mirror_keep(bel_model_mirror *mirror)
{
    bel_model_mirror kept = {.held_generation = mirror->held_generation,
                             .held_step = mirror->held_step,
                             .ahead = mirror->ahead};
    if (mirror->generation != 0 && !mirror->expects) {
        kept.held_generation = mirror->generation;
        kept.held_step = mirror->step;
        kept.ahead |= mirror->passed;
    } else if (mirror->generation != 0) {
        kept = (bel_model_mirror){0};
    }
    *mirror = kept;
}

// After the process's shard has begun. States go before all other frames.
void bel_mirror_begin(bel_cluster *s, int k, const bel_model_message *setup)
{
    bel_model_mirror before = s->mirrors[k], *mirror = &s->mirrors[k];
    bel_model_shard *shard = &s->shards[k];
    unsigned stateless = setup->leased & ALL_SHARDS, mirrorless = setup->leased >> SHARDS;
    *mirror = (bel_model_mirror){.generation = setup->generation, .step = setup->first};
    memset(&s->to_mirror[k], 0, sizeof s->to_mirror[k]);
    memset(&s->from_mirror[other(k)], 0, sizeof s->from_mirror[k]);
    shard->mirrored = (uint8_t)(setup->first + 1);
    if (!setup->flag) return;
    mirror->expects = mirrorless >> other(k) & 1;
    if (!mirror->expects) {
        bool near =
            before.held_step <= setup->first + 1 && before.held_step + before.ahead >= setup->first;
        if (before.held_generation == 0 || !near) bel_break(s, SHARDS_APART);
        mirror->ahead = before.held_step + before.ahead > setup->first;
    }
    if ((stateless >> other(k) & 1) != 0) send_from_mirror(s, k, STATE);
    if ((mirrorless >> k & 1) != 0) send_to_mirror(s, k, STATE);
}

bool bel_mirror_waits(const bel_reporter *look, int k)
{
    bool expects = look->now->shards[k].expects || look->now->mirrors[k].expects;
    return look->config->mirrors && expects;
}

static void take(const bel_reporter *look, int k, bool for_mirror)
{
    bel_cluster s = *look->now;
    const char *what = for_mirror ? take_for_mirror(&s, k) : take_from_mirror(&s, k);
    bel_emit(look, &s, "shard", k, what, -1);
}

// Whether the first frame may be taken: a state at any time, others once both states are there.
static bool may_take(const bel_reporter *look, int k, const bel_queue16 *queue)
{
    if (queue->count == 0) return false;
    return bel_first_frame(queue).kind == STATE || !look->now->shards[k].starts;
}

void bel_mirror_moves(const bel_reporter *look, int k)
{
    const bel_cluster *now = look->now;
    const bel_model_shard *shard = &now->shards[k];
    const bel_model_mirror *mirror = &now->mirrors[k];
    if (may_take(look, k, &now->to_mirror[other(k)])) take(look, k, true);
    if (may_take(look, k, &now->from_mirror[k])) take(look, k, false);
    if (mirror->sum && !mirror->passed) pass(look, k);
    if (mirror->passed && mirror->stats) publish(look, k);
    if (shard->starts) return;
    if (can_send_sum(shard)) {
        bel_cluster s = *now;
        s.shards[k].sum_sent = 1;
        bool sends = !shard->ahead || look->config->defect != MIRROR_LACKS_SUM;
        if (sends) send_to_mirror(&s, k, SUM);
        bel_emit(look, &s, "shard", k, "sends the sum to its mirror of step", shard->step);
    }
    if (can_send_stats(shard)) {
        bel_cluster s = *now;
        s.shards[k].stats_sent = 1;
        send_to_mirror(&s, k, STATS);
        bel_emit(look, &s, "shard", k, "sends the step statistics to its mirror", -1);
    }
}

// Moves that nothing can interfere with, once no shard dies any more: what goes to a mirror and
// comes back has one order.
bool bel_mirror_hurries(const bel_reporter *look, int k)
{
    const bel_cluster *now = look->now;
    bool calm = now->deaths == 0 && now->breaks == 0;
    const bel_model_mirror *mirror = &now->mirrors[k];
    if (!calm || now->shards[k].generation == 0 || now->shards[k].starts) return false;
    if (now->to_mirror[other(k)].count > 0) {
        take(look, k, true);
        return true;
    }
    if (mirror->sum && !mirror->passed) {
        pass(look, k);
        return true;
    }
    return false;
}
