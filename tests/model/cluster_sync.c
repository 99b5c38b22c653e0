// Frames of a shard in a mode in which all workers count: versions to readers that follow or lag,
// reports, and workers that repeat a step.
#include "model/cluster.h"

// --- Frames to workers ---------------------------------------------------------------------------

static void send_chunk(const bel_reporter *look, bel_cluster *s, int k, int worker, uint8_t version)
{
    const bel_model_shard *shard = &s->shards[k];
    bel_queue16 *down = &s->down[worker][k];
    if (look->config->in_place || !bel_lane_is_open(s, worker, k)) return;
    bool newest = version == shard->step + shard->passed;
    uint8_t current = bel_shard_buffer(shard, (uint8_t)(shard->step + shard->passed));
    if (shard->buffers[newest ? current : 1 - current] != version) {
        bel_break(s, SENDS_OTHER_VERSION);
    }
    for (unsigned i = 0; i < down->count; i++) { // they are received into the same buffer
        bel_queue16 one = {.count = 1, .items = {down->items[i]}};
        bel_model_frame before = bel_first_frame(&one);
        if (before.kind == PARAMS && before.step != version) bel_break(s, VALUES_OVERWRITTEN);
    }
    bel_queue_frame(s, down,
                    (bel_model_frame){.kind = PARAMS,
                                      .step = version,
                                      .first = s->workers[worker].published[k] == 0});
}

static void send_version(const bel_reporter *look, bel_cluster *s, int k, int worker,
                         uint8_t version)
{
    bel_model_shard *shard = &s->shards[k];
    bool newest = version == shard->step;
    shard->sent[worker] = (uint8_t)(version + 1);
    if (!bel_lane_is_open(s, worker, k)) return;
    bel_queue_frame(s, &s->down[worker][k],
                    (bel_model_frame){.kind = VERSION,
                                      .step = version,
                                      .decision = newest ? shard->decision : shard->last_decision,
                                      .other = bel_shard_buffer(shard, version),
                                      .first = !look->config->in_place});
}

static void send_whole(const bel_reporter *look, bel_cluster *s, int k, int worker, uint8_t version,
                       bool values_sent)
{
    bel_model_shard *shard = &s->shards[k];
    send_chunk(look, s, k, worker, version);
    send_version(look, s, k, worker, version);
    shard->reader[worker] = version == shard->step && !values_sent ? FOLLOWS : BEHIND;
}

void bel_sync_passed(const bel_reporter *look, bel_cluster *s, int k)
{
    const bel_model_shard *shard = &s->shards[k];
    for (int w = 0; w < WORKERS; w++)
        if (shard->reader[w] == FOLLOWS) send_chunk(look, s, k, w, (uint8_t)(shard->step + 1));
}

void bel_sync_published(const bel_reporter *look, bel_cluster *s, int k)
{
    const bel_model_shard *shard = &s->shards[k];
    for (int w = 0; w < WORKERS; w++) {
        if (shard->reader[w] == FOLLOWS) {
            send_version(look, s, k, w, shard->step);
        } else if (shard->reader[w] == BEHIND && shard->sent[w] == shard->step) {
            send_whole(look, s, k, w, shard->step, true);
        }
    }
}

// --- Frames of workers ---------------------------------------------------------------------------

static void take_pull(const bel_reporter *look, bel_cluster *s, int k, int worker, uint8_t version)
{
    const bel_model_shard *shard = &s->shards[k];
    bool kept = version + 1 == shard->step && !shard->passed && shard->published_more;
    if (look->config->defect == FORGETS_PREVIOUS_VERSION) kept = false;
    if (version == shard->step || kept) send_whole(look, s, k, worker, version, shard->passed);
}

static bool catches_up(const bel_reporter *look, const bel_model_shard *shard, int worker,
                       const bel_model_frame *frame)
{
    bool untold = look->config->defect == LAST_STEP_TWICE_UNTOLD && (shard->decision & STOP) != 0;
    return frame->kind == STATS && frame->step + 1 == shard->step && !untold &&
           shard->reader[worker] == BEHIND && shard->sent[worker] == frame->step + 1;
}

const char *bel_sync_takes(const bel_reporter *look, bel_cluster *s, int k, int worker)
{
    bel_model_shard *shard = &s->shards[k];
    uint8_t kind = bel_first_frame(&s->up[worker][k]).kind;
    if (kind == ROW_PULL || kind == ROW_REPORT) return bel_rows_shard_takes(look, s, k, worker);
    bel_model_frame frame = bel_take_frame(&s->up[worker][k]);
    if (frame.kind == PULL) {
        take_pull(look, s, k, worker, frame.step);
        return "takes the pull of worker";
    }
    if (frame.step != shard->step || (shard->decision & STOP) != 0) {
        if (catches_up(look, shard, worker, &frame)) {
            send_whole(look, s, k, worker, shard->step, shard->passed);
        }
        return "drops a late frame of worker";
    }
    uint8_t bit = (uint8_t)(1 << worker);
    bel_shard_learns(shard, frame.decision);
    if (frame.kind == STATS) {
        shard->stats_list |= bit;
        if ((shard->plays & bit) == 0) bel_break(s, REPORT_INCOMPLETE);
        return "takes the step statistics of worker";
    }
    if ((shard->reports & bit) != 0) return "drops a repeated report of worker";
    shard->reports |= bit;
    shard->report_incarnation[worker] = shard->lane_incarnation[worker];
    return "takes the report of worker";
}
