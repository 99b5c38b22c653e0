// Rules that need a norm of the whole model. When all chunks are summed, squares of grains go to
// shard 0, and factors of the variables come back. No thread waits for that: the state is checked
// after every job and every poll, and updates are queued once the factors are known. Repeated
// frames are dropped and counted; unexpected ones make the shard fail. Squares are read at their
// destination, as they stay there until their shard has its factors.
#include <string.h>

#include "ps/server/shard_inner.h"

// The second pass of every chunk may begin.
static void factors_known_locked(bel_shard *shard)
{
    shard->norms.factors_known = true;
    bel_shard_factors_to_mirror_locked(shard);
    if (bel_shard_on_devices(shard)) {
        bel_shard_push_all_locked(shard, BEL_JOB_UPDATE);
        return;
    }
    for (int i = 0; i < shard->chunk_count; i++)
        bel_shard_push_locked(shard, (bel_shard_job){.kind = BEL_JOB_UPDATE, .local = i});
}

// Norms are due once all chunks are summed and the step is known to run. Shard 0 continues when all
// other shards' squares have arrived, too.
void bel_shard_move_norms_locked(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    if (!shard->rules.needs_norm || shard->norms.factors_known || !shard->started) return;
    if (shard->work.summed < shard->chunk_count || !shard->decision.known) return;
    if ((shard->decision.now & BEL_DECIDE_STOP) != 0) return;
    if (shard->config.mirrors) { // its shard sends the factors, perhaps before all sums are here
        if (shard->mirror.has_factors) factors_known_locked(shard);
        return;
    }
    if (shard->config.shard != 0) {
        if (shard->norms.sent) return;
        shard->norms.sent = true;
        bel_norms_frame norms = {.step = shard->step};
        size_t bytes = bel_shard_norm_bytes(shard, shard->config.shard);
        bel_norms_pack(layout, shard->config.shard, bel_shard_norm_planes(shard),
                       shard->memory.grain_squares, shard->norms.list);
        bel_shard_send_locked(shard, shard->config.shard_lanes[0],
                              bel_norms_frame_write(norms, shard->norms.list, bytes));
        return;
    }
    if (shard->norms.count < layout->shard_count - 1) return;
    bel_shard_combine_norms(shard);
    for (int k = 1; k < layout->shard_count; k++) {
        bel_factors_frame factors = {.step = shard->step};
        size_t bytes = (size_t)layout->variable_count * sizeof(float);
        bel_shard_send_locked(shard, shard->config.shard_lanes[k],
                              bel_factors_frame_write(factors, shard->memory.factors, bytes));
    }
    factors_known_locked(shard);
}

// Takes squares at shard 0, factors at the others. Squares are not copied: they stay at their
// destination until their shard has its factors. Factors are copied.
void bel_shard_take_norms_locked(bel_shard *shard, const bel_frame *frame)
{
    const bel_layout *layout = shard->config.layout;
    bool for_first = frame->kind == BEL_FRAME_NORMS;
    int64_t step =
        for_first ? bel_norms_frame_read(frame).step : bel_factors_frame_read(frame).step;
    if (step > shard->step) {
        bel_shard_fail_locked(shard, frame, "its step has not begun");
        return;
    }
    if (step < shard->step || bel_shard_is_stopping(shard)) {
        shard->counters.late++;
        return;
    }
    bool takes_norms = shard->config.shard == 0 && !shard->config.mirrors;
    if (!shard->rules.needs_norm || for_first != takes_norms) {
        bel_shard_fail_locked(shard, frame, "unexpected norms or factors");
        return;
    }
    if (for_first) {
        bool known = frame->sender >= 1 && frame->sender < layout->shard_count;
        if (!known || frame->payload_bytes != bel_shard_norm_bytes(shard, frame->sender)) {
            bel_shard_fail_locked(shard, frame, "norms of the wrong size");
        } else if (shard->norms.squares[frame->sender] == NULL) {
            bool none = frame->payload_bytes == 0; // it holds no chunk: nothing is read
            shard->norms.squares[frame->sender] =
                none ? shard->memory.grain_squares : frame->payload;
            shard->norms.count++;
        } else {
            shard->counters.repeated++;
        }
        return;
    }
    if (frame->payload_bytes != (size_t)layout->variable_count * sizeof(float)) {
        bel_shard_fail_locked(shard, frame, "factors of the wrong size");
    } else if (!shard->norms.factors_known) {
        memcpy(shard->memory.factors, frame->payload, frame->payload_bytes);
        shard->mirror.has_factors = shard->config.mirrors;
        if (!shard->config.mirrors) factors_known_locked(shard);
    } else {
        shard->counters.repeated++;
    }
}
