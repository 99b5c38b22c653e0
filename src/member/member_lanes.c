// Lanes of a member's shard: created here for each generation and for each admitted worker, and
// found when a peer opens one. Threads of the endpoint and the hub look for lanes while the main
// thread creates and closes them, so the shard's mutex guards the data of the search.
#include "base/alloc.h"
#include "member/member_inner.h"
#include "ps/frames/frames.h"
#include "ps/layout/lane_frames.h"

// The reporter whose worker opens a lane; -1: none.
static int reporter_of(const member_shard *s, int worker)
{
    for (int i = 0; i < s->reporters.count; i++)
        if (s->reporters.workers[i] == worker) return i;
    return -1;
}

// A peer of another generation or incarnation must ask again: either it or this process will soon
// receive the change.
static bel_status *find_lane_locked(const member_shard *s, const bel_lane_hello *hello,
                                    bel_lane **out_lane)
{
    if (s->search.generation == 0 || hello->generation != s->search.generation) return NULL;
    if (hello->kind == BEL_HELLO_MASTER) {
        if (hello->index == s->search.reading) *out_lane = s->lanes.master;
    } else if (hello->kind == BEL_HELLO_WORKER && reporter_of(s, hello->index) >= 0) {
        int reporter = reporter_of(s, hello->index);
        bool current = hello->incarnation == s->search.incarnations[reporter];
        if (current && !s->search.replacing[reporter]) *out_lane = s->lanes.workers[reporter];
    } else if (hello->kind == BEL_HELLO_SHARD && s->index == 0 && hello->index > 0 &&
               hello->index < s->layout->shard_count) {
        *out_lane = s->lanes.shards[hello->index];
    } else if (hello->kind == BEL_HELLO_MIRROR && s->mirror.there && hello->index == s->mirror.of) {
        *out_lane = s->mirror.in;
    } else {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "shard %d has no lane for such a peer", s->index);
    }
    return NULL;
}

// On threads of the endpoint and the hub: workers of this host use shared memory if there is a hub,
// all other peers streams.
static bel_status *find_lane(void *context, const bel_lane_hello *hello, bool shm,
                             bel_lane **out_lane)
{
    member_shard *s = context;
    if (shm != (s->shares_memory && hello->kind == BEL_HELLO_WORKER)) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "shard %d has another kind of lane for this peer",
                       s->index);
    }
    pthread_mutex_lock(&s->search.mutex);
    bel_status *status = find_lane_locked(s, hello, out_lane);
    pthread_mutex_unlock(&s->search.mutex);
    return status;
}

static bel_status *find_stream_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    member *m = context;
    if (hello->kind == BEL_HELLO_REPORTER && m->worker.here) {
        bel_member_relays_find(m, hello, false, out_lane);
        return NULL;
    }
    if (m->shard.here) return find_lane(&m->shard, hello, false, out_lane);
    return NULL; // its shard had this address before, and it asks again until its next setup
}

bel_status *bel_member_find_shm(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    member *m = context;
    if (m->shm.one_host) return find_lane(&m->shard, hello, true, out_lane);
    if (hello->kind == BEL_HELLO_REPORTER) bel_member_relays_find(m, hello, true, out_lane);
    return NULL; // not yet
}

bel_status *bel_member_accept(void *context, const char *path, bel_stream *stream,
                              bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find_stream_lane, context, out_events);
}

void *bel_member_refuse_frame(void *context, const bel_frame *frame)
{
    (void)context, (void)frame;
    return NULL; // the master sends no payloads
}

// Creates the shard's end; the worker's region must hold all its ranges and its rooms for rows.
bel_lane *bel_member_make_worker_lane(member *m, int worker)
{
    member_shard *s = &m->shard;
    size_t capacity =
        bel_lane_frames_of_worker(s->layout, s->assignment, worker, s->index, s->shares_memory);
    if (s->shares_memory) {
        const int *first = s->assignment->first_replica;
        size_t replicas = (size_t)(first[worker + 1] - first[worker]);
        const bel_shm_lane_config config = {
            .capacity = capacity,
            .bell = s->bell,
            .region = m->shm.parameters,
            .peer_bytes = replicas * bel_space_bytes(s->layout) +
                          bel_row_buffer_bytes(s->layout, s->assignment, worker)};
        return bel_shm_lane_create(m->shm.hub, &config);
    }
    s->lanes.worker_peers[worker] = (bel_shard_peer){s->shard, worker, 0};
    const bel_stream_lane_config config = {.capacity = capacity,
                                           .bell = s->bell,
                                           .joined = 1u << BEL_FRAME_PARAMS, // a version follows
                                           .place = bel_shard_place,
                                           .place_context = &s->lanes.worker_peers[worker]};
    return bel_stream_lane_create(m->endpoint, &config);
}

// Shard 0 waits for the others, which connect to it.
static void make_shard_lanes(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    bel_stream_lane_config config = {.capacity = bel_lane_frames_of_shards(s->assignment),
                                     .bell = s->bell,
                                     .place = bel_shard_place};
    for (int k = 1; s->index == 0 && k < s->layout->shard_count; k++) {
        s->lanes.shard_peers[k] = (bel_shard_peer){s->shard, -1, k};
        config.place_context = &s->lanes.shard_peers[k];
        s->lanes.shards[k] = bel_stream_lane_create(m->endpoint, &config);
    }
    if (s->index == 0) return;
    const bel_lane_hello hello = {
        .kind = BEL_HELLO_SHARD, .index = s->index, .generation = m->generation};
    s->lanes.shard_peers[0] = (bel_shard_peer){s->shard, -1, 0};
    config.place_context = &s->lanes.shard_peers[0];
    s->lanes.shards[0] = bel_stream_lane_connect(m->endpoint, setup->shards[0], &hello, &config);
}

// Runs before the engine. Admitting gives the shard its lanes and the workers' incarnations.
void bel_member_make_lanes(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    for (int w = 0; w < s->assignment->worker_count; w++) {
        int worker = s->reporters.workers[w];
        bool own = m->worker.here && worker == m->task->index;
        int64_t step;
        s->search.incarnations[w] = setup->incarnations[worker];
        if (s->assignment->first_node[w] == s->assignment->first_node[w + 1])
            continue; // it has no replicas
        (void)bel_shard_admit(s->shard, w, setup->incarnations[worker],
                              own ? s->lanes.own : bel_member_make_worker_lane(m, w), &step);
    }
    s->lanes.own = NULL;
    make_shard_lanes(m, setup);
}
