// Values of a snapshot, for the master's evaluations: shards send them on separate lanes, straight
// into the backend's array, which has memory from then until the snapshot is released. Each reading
// has new lanes. Their number, which includes the master's incarnation, keeps a shard from
// confusing them with an earlier reading's, or another master's. Shards are asked before their
// lanes are connected, since that makes the shards create their ends; a hello that comes too early
// is tried again. `values.step` is the step in the array, so that several evaluations of a snapshot
// read it once.
#include "base/alloc.h"
#include "base/clock.h"
#include "master/backend/remote_inner.h"
#include "ps/frames/frames.h"
#include "transport/streams/stream_lane.h"

// Places values in the master's array; shards send nothing else on these lanes.
static void *place_values(void *context, const bel_frame *frame)
{
    const remote *r = context;
    const bel_layout *layout = r->config.trainable->layout;
    if (frame->kind != BEL_FRAME_PARAMS) return NULL;
    int32_t c = bel_params_frame_read(frame).chunk;
    if (c < 0 || c >= layout->chunk_count) return NULL;
    const bel_chunk *chunk = &layout->chunks[c];
    bool fits = frame->payload_bytes == (size_t)chunk->count * sizeof(float) &&
                frame->sender == chunk->shard;
    return fits ? r->backend.values + chunk->offset : NULL;
}

void bel_remote_close_lanes(remote *r)
{
    bel_lane_close_all(r->values.lanes, r->backend.shard_count);
}

// Finds a number that no other lanes to these shards had, of this master or a predecessor.
static void number_lanes(remote_values *values, uint32_t incarnation)
{
    enum { LANES_OF_ONE = 4096 };
    values->readings++;
    uint32_t number = incarnation * LANES_OF_ONE + values->readings;
    values->reading = (int32_t)(number & INT32_MAX);
}

// Connects a lane to each shard; only the version after the values rings.
static void connect_lanes(remote *r)
{
    const bel_stream_lane_config config = {
        .capacity = bel_layout_snapshot_frames(r->config.trainable->layout),
        .bell = r->values.bell,
        .quiet = 1u << BEL_FRAME_PARAMS,
        .place = place_values,
        .place_context = r};
    const bel_lane_hello hello = {.kind = BEL_HELLO_MASTER,
                                  .index = r->values.reading,
                                  .generation = r->backend.generation,
                                  .incarnation = r->config.task->incarnation};
    for (int k = 0; k < r->backend.shard_count; k++) {
        const char *address = bel_members_get(r->config.members, r->shard_members[k])->address;
        r->values.lanes[k] = bel_stream_lane_connect(bel_members_endpoint(r->config.members),
                                                     address, &hello, &config);
    }
}

// Takes received values; true if all shards have sent all.
static bool drain_values(remote *r, int *arrived, int *expected)
{
    int complete = 0;
    for (int k = 0; k < r->backend.shard_count; k++) {
        bel_frame frame;
        while (bel_lane_receive(r->values.lanes[k], &frame)) {
            if (frame.kind == BEL_FRAME_VERSION) {
                bel_version_frame version = bel_version_frame_read(&frame);
                if (version.version == r->state.snapshot) expected[k] = version.chunks;
            }
            if (frame.kind == BEL_FRAME_PARAMS)
                arrived[k] += bel_params_frame_read(&frame).version == r->state.snapshot;
        }
        complete += expected[k] >= 0 && arrived[k] >= expected[k];
    }
    return complete == r->backend.shard_count;
}

// Checks the lanes. A broken lane reconnects automatically; one that is closed for good ends the
// job.
static void check_lanes(remote *r)
{
    for (int k = 0; k < r->backend.shard_count; k++) {
        bel_status *fault = bel_lane_fault(r->values.lanes[k]);
        if (fault != NULL)
            bel_remote_fail(
                r, bel_status_wrap(fault, __FILE__, __LINE__, "master, lane of shard %d", k));
    }
}

// Returns when all chunks have arrived, with an error, or by the stall clock. `arrived` counts only
// this snapshot's chunks.
bel_status *bel_remote_read_values(bel_backend *backend)
{
    enum { NAP_NS = 50000000 };
    remote *r = (remote *)backend;
    if (!r->started || r->values.step == r->state.snapshot) return NULL;
    bel_remote_close_lanes(r); // an interrupted reading's
    number_lanes(&r->values, r->config.task->incarnation);
    bel_remote_ask_shards(r, BEL_ASKED_VALUES, r->state.snapshot, NULL); // this makes their ends
    connect_lanes(r);
    size_t shards = (size_t)backend->shard_count;
    int *arrived = bel_xcalloc(shards, sizeof *arrived);
    int *expected = bel_xcalloc(shards, sizeof *expected);
    for (size_t k = 0; k < shards; k++)
        expected[k] = -1;
    int64_t begun = bel_clock_awake_ns();
    while (!bel_remote_is_broken(r) && !drain_values(r, arrived, expected)) {
        (void)bel_doorbell_wait(r->values.bell, bel_clock_ns() + NAP_NS);
        check_lanes(r);
        bel_remote_await_answer(r, 0, begun, "values of a snapshot");
    }
    bel_free(arrived);
    bel_free(expected);
    r->asked.what = BEL_ASKED_NOTHING;
    if (bel_remote_is_broken(r)) return bel_remote_take_error(r);
    r->values.step = r->state.snapshot;
    return NULL;
}
