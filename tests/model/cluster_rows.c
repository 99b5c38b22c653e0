// Tables: a worker pulls the rows of its step from both shards, and reports on them beside the
// chunks. Rows are updated in place. So a shard keeps its answers to a worker, for a process that
// replaces it in the same step.
#include "model/cluster.h"

// --- The shard -----------------------------------------------------------------------------------

static void answer_pull(const bel_reporter *look, bel_cluster *s, int k, int worker,
                        uint8_t version)
{
    bel_model_shard *shard = &s->shards[k];
    uint8_t now = (uint8_t)(shard->step + shard->rows_passed);
    bool kept = shard->kept[worker] == version + 1 && look->config->defect != ROWS_NOT_KEPT;
    if (!kept) shard->kept[worker] = (uint8_t)(version + 1);
    bel_queue_frame(
        s, &s->down[worker][k],
        (bel_model_frame){.kind = ROWS, .step = version, .other = kept ? version : now});
}

const char *bel_rows_shard_takes(const bel_reporter *look, bel_cluster *s, int k, int worker)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_frame frame = bel_take_frame(&s->up[worker][k]);
    if (frame.kind == ROW_PULL) {
        answer_pull(look, s, k, worker, frame.step);
        return "answers the row pull of worker";
    }
    uint8_t bit = (uint8_t)(1 << worker);
    bool late = frame.step != shard->step || (shard->decision & STOP) != 0;
    if (late || (shard->row_reports & bit) != 0) return "drops a row report of worker";
    bel_shard_learns(shard, frame.decision);
    shard->row_reports |= bit;
    shard->row_incarnation[worker] = shard->lane_incarnation[worker];
    return "takes the row report of worker";
}

bool bel_rows_can_pass(const bel_reporter *look, const bel_model_shard *shard)
{
    int needed = look->config->defect == ROWS_UPDATED_EARLY ? 1 : shard->plays;
    bool begun = shard->decision_known && (shard->decision & STOP) == 0 && !shard->stands;
    return begun && !shard->rows_passed && (shard->row_reports & needed) == needed;
}

void bel_rows_move(const bel_reporter *look, int k)
{
    if (!bel_rows_can_pass(look, &look->now->shards[k])) return;
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    if ((shard->row_reports & shard->plays) != shard->plays) bel_break(&s, REPORT_INCOMPLETE);
    for (int w = 0; w < WORKERS; w++) {
        bool alive = shard->row_incarnation[w] == shard->lane_incarnation[w];
        if ((shard->plays >> w & 1) != 0 && !alive) bel_break(&s, REPORT_OF_DEAD);
    }
    shard->rows_passed = 1;
    bel_emit(look, &s, "shard", k, "updates its rows to version", shard->step + 1);
}

// --- The worker ----------------------------------------------------------------------------------

const char *bel_rows_compute(const bel_reporter *look, bel_cluster *s, int w)
{
    bel_model_worker *worker = &s->workers[w];
    if (worker->place == PULLS_ROWS) {
        for (int k = 0; k < SHARDS; k++)
            bel_worker_send(s, w, k, (bel_model_frame){.kind = ROW_PULL, .step = worker->step});
        worker->rows = 0;
        worker->place = WAITS_FOR_ROWS;
        return "pulls rows";
    }
    bool waits = worker->rows != ALL_SHARDS && look->config->defect != REPORTS_BEFORE_ROWS;
    if (waits) return NULL;
    worker->place = REPORTS_1;
    return "has its rows";
}

bool bel_rows_take(const bel_reporter *look, int w, int k)
{
    const bel_queue16 *queue = &look->now->down[w][k];
    bool open = bel_lane_is_open(look->now, w, k) && queue->count > 0;
    if (!open || bel_first_frame(queue).kind != ROWS) return false;
    bel_cluster s = *look->now;
    bel_model_worker *worker = &s.workers[w];
    bel_model_frame frame = bel_take_frame(&s.down[w][k]);
    bool awaited = frame.step == worker->step && worker->place == WAITS_FOR_ROWS;
    if (!awaited || frame.other != frame.step) bel_break(&s, ROWS_OF_OTHER_VERSION);
    worker->rows |= (uint8_t)(1 << k);
    bel_emit(look, &s, "worker", w, "takes rows of shard", k);
    return true;
}
