// Values for workers: versions, and chunks if memory is not shared. If all workers count, a worker
// that gets a complete version follows from then on. If chunks of the next version were sent
// before, it stays BEL_READER_BEHIND, and gets all of that one, too. So does a worker whose
// predecessor's reports are kept: a chunk may be passed before it has this version. The preceding
// version is available while no chunk of the step has all its reports, as its buffer is still
// intact.
//
// All functions run under the shard's mutex, except the copies for a ledger's workers, which finish
// before the next version is published.
#include <string.h>

#include "ps/server/shard_inner.h"

// True for a worker that gets no frames of values: it reads them in place, or is the shard of which
// this is the mirror.
static bool gets_no_values(const bel_shard *shard, int worker)
{
    return shard->config.mirrors || bel_shard_reads_in_place(shard, worker);
}

// Finds chunk `local` of a version: the step's version, the one that the step makes, or the one
// before the step's, which exists while no chunk of the step has all its reports. The newest one is
// current; the other, unless frozen, is in the other buffer.
static const float *values_locked(const bel_shard *shard, int local, int64_t version)
{
    const bel_shard_chunk *chunk = &shard->chunks[local];
    const bel_chunk *part = &shard->config.layout->chunks[chunk->chunk];
    const bel_space *space = shard->config.space;
    int current = atomic_load(&space->current[chunk->chunk]);
    bool newest = version == shard->step + (chunk->passed ? 1 : 0);
    bool other = !newest && part->kind != BEL_VARIABLE_FROZEN;
    return space->buffers[other ? 1 - current : current] + part->offset;
}

// Sends a chunk's values as a payload in place: the shard's buffer is not written before the worker
// has reported on them.
static void send_chunk_locked(bel_shard *shard, int worker, int local, int64_t version)
{
    int c = shard->chunks[local].chunk;
    size_t bytes = (size_t)shard->config.layout->chunks[c].count * sizeof(float);
    bel_params_frame params = {.version = version, .chunk = c};
    bel_shard_send_locked(
        shard, shard->config.worker_lanes[worker],
        bel_params_frame_write(params, values_locked(shard, local, version), bytes));
}

// Sends what the chunk's new values differ by, to a worker that has the old ones. The array is
// written again after the worker has reported on the new ones.
static void send_differences_locked(bel_shard *shard, int worker, int local)
{
    int c = shard->chunks[local].chunk;
    const bel_chunk *chunk = &shard->config.layout->chunks[c];
    bel_rounding rounding = shard->config.settings.rounding;
    const char *differences = shard->memory.differences;
    bel_params_frame params = {.version = shard->step + 1, .chunk = c};
    bel_shard_send_locked(
        shard, shard->config.worker_lanes[worker],
        bel_params_frame_write(params, differences + bel_rounding_bytes(rounding, chunk->offset),
                               bel_rounding_bytes(rounding, chunk->count)));
}

// Workers that follow get a chunk's new values as soon as they are ready.
void bel_shard_send_passed_locked(bel_shard *shard, int local)
{
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bool follows = shard->workers[w].reader == BEL_READER_FOLLOWS;
        if (!follows || gets_no_values(shard, w)) continue;
        if (shard->chunks[local].differs) {
            send_differences_locked(shard, w, local);
        } else {
            send_chunk_locked(shard, w, local, shard->step + 1);
        }
    }
    shard->work.values_sent++;
}

// Announces a version, after the frames of `chunks` chunks.
void bel_shard_send_version_locked(bel_shard *shard, int worker, int64_t version, int chunks)
{
    bool newest = version == shard->step;
    bel_version_frame announced = {.version = version,
                                   .decision = newest ? shard->decision.now : shard->decision.last,
                                   .chunks = gets_no_values(shard, worker) ? 0 : chunks,
                                   .buffer = bel_shard_buffer_at(shard, version)};
    bel_shard_tell_room_locked(shard, worker, &announced);
    bel_shard_send_locked(shard, shard->config.worker_lanes[worker],
                          bel_version_frame_write(announced, NULL, 0));
    shard->workers[worker].version = version;
}

// Sends all of this step's version, or of the preceding one.
void bel_shard_send_whole_locked(bel_shard *shard, int worker, int64_t version)
{
    bool reads = gets_no_values(shard, worker);
    bool anew = shard->workers[worker].reader == BEL_READER_NONE; // frozen values are sent once
    int sent = 0;
    for (int i = 0; i < shard->chunk_count && !reads; i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        if (!anew && chunk->kind == BEL_VARIABLE_FROZEN) continue;
        send_chunk_locked(shard, worker, i, version);
        sent++;
    }
    bel_shard_send_version_locked(shard, worker, version, sent);
    bool follows = version == shard->step && shard->work.values_sent == 0 &&
                   !bel_shard_has_parts(shard, worker);
    shard->workers[worker].reader = follows ? BEL_READER_FOLLOWS : BEL_READER_BEHIND;
}

// The next version is not published before the copy is complete, so nothing writes there.
void bel_shard_copy_values(const bel_shard *shard, int local, int worker)
{
    const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[local].chunk];
    bool frozen = chunk->kind == BEL_VARIABLE_FROZEN;
    const float *values =
        shard->config.space->buffers[frozen ? 0 : bel_shard_buffer_at(shard, shard->step)];
    memcpy(shard->config.outboxes[worker] + chunk->offset, values + chunk->offset,
           (size_t)chunk->count * sizeof(float));
}
