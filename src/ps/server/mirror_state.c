// The state of a shard on its way to a process that lacks it: from the mirror to the shard's
// newcomer, or from a shard to the newcomer that holds its mirror. It goes before a generation's
// first step. No worker has all of the first version before the newcomer publishes it, so no report
// comes, and the state does not change meanwhile: frames are sent from where it is.
//
// Chunks have the generation's first version or the next one. If it is the next one, the values of
// both versions are sent, as workers begin with the first. The receiver has the first version in
// buffer 0, whichever buffer it was in.
#include <string.h>

#include "base/alloc.h"
#include "ps/server/control.h"
#include "ps/server/shard_inner.h"

enum { VALUES, NEXT_VALUES, FIRST_SLOTS, POINT_NUMBERS = 4 /* and the series */ };

static int arrays_of(const bel_shard *shard) // beside values
{
    return shard->rules.slot_counts[0] + (shard->memory.averages != NULL); // one step function
}

static size_t numbers_of(const bel_shard *shard)
{
    return POINT_NUMBERS + 2 * (size_t)shard->config.settings.stats.series;
}

// Begins without points.
static void forget_points(bel_shard *shard)
{
    bel_free(shard->transfer.points);
    if (shard->transfer.numbers == NULL)
        shard->transfer.numbers = bel_xcalloc(BEL_KEPT_POINTS * numbers_of(shard), sizeof(double));
    shard->transfer.points = NULL;
    shard->transfer.point_count = 0;
}

// An array of the shard; NULL: there is no such array.
static float *array_at(const bel_shard *shard, int array, int64_t first_version)
{
    if (array < 0 || array >= FIRST_SLOTS + arrays_of(shard)) return NULL;
    if (array < FIRST_SLOTS)
        return shard->config.space->buffers[bel_shard_buffer_at(shard, first_version + array)];
    int slot = array - FIRST_SLOTS;
    return slot < shard->rules.slot_counts[0] ? shard->memory.slots[0][slot]
                                              : shard->memory.averages;
}

static bool is_frozen(const bel_shard *shard, int chunk)
{
    return shard->config.layout->chunks[chunk].kind == BEL_VARIABLE_FROZEN;
}

// Arrays of a chunk's state at its version, a bit for each. A frozen one is the same in all
// versions.
static unsigned arrays_at(const bel_shard *shard, const bel_shard_chunk *chunk)
{
    _Static_assert(FIRST_SLOTS + BEL_RULE_MAX_SLOTS + 1 <= 32, "a bit for each array");
    if (is_frozen(shard, chunk->chunk)) return 1u << VALUES;
    unsigned slots = ((1u << arrays_of(shard)) - 1) << FIRST_SLOTS;
    return 1u << VALUES | (chunk->version > shard->step ? 1u << NEXT_VALUES : 0) | slots;
}

// --- Sending -------------------------------------------------------------------------------------

static void send_part(bel_shard *shard, bel_lane *lane, int local, int array)
{
    const bel_shard_chunk *chunk = &shard->chunks[local];
    const bel_chunk *part = &shard->config.layout->chunks[chunk->chunk];
    bool frozen = is_frozen(shard, chunk->chunk);
    const float *from =
        frozen ? shard->config.space->buffers[0] : array_at(shard, array, shard->step);
    const bel_state_frame state = {
        .version = chunk->version, .chunk = chunk->chunk, .array = array};
    bel_shard_send_locked(
        shard, lane,
        bel_state_frame_write(state, from + part->offset, (size_t)part->count * sizeof(float)));
}

static void write_point(const bel_control_point *point, double *to, size_t numbers)
{
    to[0] = (double)point->step;
    to[1] = point->loss;
    to[2] = point->examples_per_second;
    to[3] = point->steps_per_second;
    memcpy(to + POINT_NUMBERS, point->series, (numbers - POINT_NUMBERS) * sizeof(double));
}

void bel_shard_send_state(bel_shard *shard, bel_lane *lane, const bel_control_point *points,
                          int count)
{
    size_t numbers = numbers_of(shard);
    pthread_mutex_lock(&shard->mutex);
    for (int i = 0; i < shard->chunk_count; i++) {
        bool frozen = is_frozen(shard, shard->chunks[i].chunk);
        bool ahead = shard->chunks[i].version > shard->step;
        send_part(shard, lane, i, VALUES);
        if (frozen) continue;
        if (ahead) send_part(shard, lane, i, NEXT_VALUES);
        for (int a = 0; a < arrays_of(shard); a++)
            send_part(shard, lane, i, FIRST_SLOTS + a);
    }
    forget_points(shard);
    for (int i = 0; i < count; i++)
        write_point(&points[i], shard->transfer.numbers + (size_t)i * numbers, numbers);
    const bel_points_frame end = {.count = count};
    bel_shard_send_locked(shard, lane,
                          bel_points_frame_write(end, shard->transfer.numbers,
                                                 (size_t)count * numbers * sizeof(double)));
    pthread_mutex_unlock(&shard->mutex);
}

// --- Taking --------------------------------------------------------------------------------------

void bel_shard_expect_state(bel_shard *shard, int64_t version)
{
    if (shard->config.kept != NULL) bel_kept_clear(shard->config.kept);
    bel_shard_set_snapshot(shard, 0);
    shard->step = shard->loaded = version;
    for (int i = 0; i < shard->chunk_count; i++)
        shard->chunks[i].arrays = 0;
    forget_points(shard);
    atomic_store(&shard->transfer.expects, true);
}

void *bel_shard_place_state(const bel_shard *shard, const bel_frame *frame)
{
    if (!atomic_load(&shard->transfer.expects)) return NULL;
    if (frame->kind != BEL_FRAME_STATE && frame->kind != BEL_FRAME_POINTS) return NULL;
    if (frame->kind == BEL_FRAME_POINTS) {
        int32_t count = bel_points_frame_read(frame).count;
        bool fits = count >= 0 && count <= BEL_KEPT_POINTS &&
                    frame->payload_bytes == (size_t)count * numbers_of(shard) * sizeof(double);
        return fits ? shard->transfer.numbers : NULL;
    }
    bel_state_frame state = bel_state_frame_read(frame);
    int64_t version = shard->loaded; // fixed before the lane was opened
    if (bel_shard_local_chunk(shard, state.chunk) < 0) return NULL;
    if (state.version != version && state.version != version + 1) return NULL;
    const bel_chunk *part = &shard->config.layout->chunks[state.chunk];
    float *to = array_at(shard, state.array, version);
    bool fits = to != NULL && frame->payload_bytes == (size_t)part->count * sizeof(float);
    return fits ? to + part->offset : NULL;
}

void *bel_shard_place_mirrored(void *context, const bel_frame *frame)
{
    const bel_shard_peer *peer = context;
    bool of_state = frame->kind == BEL_FRAME_STATE || frame->kind == BEL_FRAME_POINTS;
    return of_state ? bel_shard_place_state(peer->shard, frame) : bel_shard_place(context, frame);
}

// Steps rise, and are numbers that a double has exactly.
static bool are_steps(const bel_shard *shard, int count)
{
    const double most = 9007199254740992; // 2^53
    double before = -1;
    for (int i = 0; i < count; i++) {
        double step = shard->transfer.numbers[(size_t)i * numbers_of(shard)];
        if (!(step > before && step <= most)) return false;
        before = step;
    }
    return true;
}

static void read_points(bel_shard *shard, int count)
{
    bel_shard_transfer *t = &shard->transfer;
    size_t numbers = numbers_of(shard);
    t->points = bel_xcalloc((size_t)count + 1, sizeof *t->points);
    t->point_count = count;
    for (int i = 0; i < count; i++) {
        const double *from = t->numbers + (size_t)i * numbers;
        bel_control_point *point = &t->points[i];
        point->step = (int64_t)from[0];
        point->loss = from[1];
        point->examples_per_second = from[2];
        point->steps_per_second = from[3];
        memcpy(point->series, from + POINT_NUMBERS, (numbers - POINT_NUMBERS) * sizeof(double));
    }
}

// Without shared memory the payload is in its place already. False: it has none.
static bool put_in_place_locked(bel_shard *shard, const bel_frame *frame)
{
    void *to = bel_shard_place_state(shard, frame);
    if (to == NULL) {
        bel_shard_fail_locked(shard, frame, "expected a part of a state");
        return false;
    }
    shard->counters.received_bytes += (int64_t)frame->payload_bytes;
    if (to != frame->payload && frame->payload_bytes > 0)
        memcpy(to, frame->payload, frame->payload_bytes);
    return true;
}

static void take_part_locked(bel_shard *shard, const bel_frame *frame)
{
    if (!put_in_place_locked(shard, frame)) return;
    bel_state_frame state = bel_state_frame_read(frame);
    bel_shard_chunk *chunk = &shard->chunks[bel_shard_local_chunk(shard, state.chunk)];
    unsigned array = 1u << state.array;
    if (chunk->arrays == 0) chunk->version = state.version;
    bool fits = (chunk->arrays & array) == 0 && (arrays_at(shard, chunk) & array) != 0;
    if (!fits || chunk->version != state.version) {
        bel_shard_fail_locked(shard, frame, "a part that its chunk has, or that does not fit it");
        return;
    }
    chunk->arrays |= array;
}

// The points are last: all frames of the state must have come.
static void take_points_locked(bel_shard *shard, const bel_frame *frame)
{
    bel_kept *kept = shard->config.kept;
    bool whole = true;
    if (!put_in_place_locked(shard, frame)) return;
    for (int i = 0; i < shard->chunk_count; i++)
        whole = whole && shard->chunks[i].arrays == arrays_at(shard, &shard->chunks[i]);
    if (!whole || !are_steps(shard, bel_points_frame_read(frame).count)) {
        bel_shard_fail_locked(shard, frame,
                              whole ? "points without rising steps" : "a state that lacks a part");
        return;
    }
    atomic_store(&shard->transfer.expects, false);
    read_points(shard, bel_points_frame_read(frame).count);
    for (int i = 0; kept != NULL && i < shard->chunk_count; i++)
        bel_kept_set_version(kept, i, shard->chunks[i].version);
    if (kept != NULL) bel_kept_begin(kept, shard->config.generation, shard->loaded, shard->step);
    shard->error = bel_shard_continue(shard, shard->step);
}

bool bel_shard_take_state(bel_shard *shard, bel_lane *lane)
{
    bel_frame frame;
    pthread_mutex_lock(&shard->mutex);
    bool expected = atomic_load(&shard->transfer.expects);
    while (atomic_load(&shard->transfer.expects) && shard->error == NULL &&
           bel_lane_receive(lane, &frame)) {
        if (frame.generation != shard->config.generation) {
            shard->counters.foreign++;
        } else if (frame.kind == BEL_FRAME_STATE) {
            take_part_locked(shard, &frame);
        } else {
            take_points_locked(shard, &frame);
        }
    }
    bool whole = expected && !atomic_load(&shard->transfer.expects) && shard->error == NULL;
    pthread_mutex_unlock(&shard->mutex);
    return whole;
}

const bel_control_point *bel_shard_taken_points(const bel_shard *shard, int *out_count)
{
    *out_count = shard->transfer.point_count;
    return shard->transfer.points;
}
