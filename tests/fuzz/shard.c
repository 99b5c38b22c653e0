// Fuzz target for a parameter server that receives frames of workers and of another shard. Its job
// is small: two workers, two dense variables and a table, with exchanges. The first byte chooses
// the workers that count, the optimizer, whether there is another shard, and whether payloads are
// copied to the shard's places, as over a network, or are read in place, as in shared memory. It
// also chooses whether there is room for all reports.
//
// After it come frames: sender, kind, generation and so on, fields, two bytes of length, payload.
// The target reads the shard's answers.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "fuzz/job.h"
#include "ps/server/shard.h"
#include "transport/inproc/inproc.h"

enum { WORKERS = 2, LANE_FRAMES = 64, MOST_FRAMES = 64, MOST_WORK = 4096, LAST_VERSION = 6 };

typedef struct world {
    bel_layout *layout;
    bel_assignment *assignment;
    bel_space *space;
    float *snapshot, *averages, *outboxes[WORKERS];
    bel_optimizers optimizers;
    bel_counting counting;
    bel_doorbell *bell;
    bel_lane *worker_lanes[WORKERS], *shard_lanes[2]; // the shard's ends
    bel_lane *others[WORKERS + 1];                    // senders' ends: workers, the other shard
    bel_shard *shard;
    int number; // shard's
    bool places, limited;
    void *payloads[MOST_FRAMES];
    int payload_count;
} world;

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    (void)context, (void)stats;
    if (left == BEL_STEPS_OVER || version >= LAST_VERSION) return BEL_DECIDE_STOP;
    return version == 1 ? BEL_DECIDE_SAVE : version == 2 ? BEL_DECIDE_CHECK : 0;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version;
}

static void make_lanes(world *w, int shards)
{
    w->bell = bel_doorbell_create();
    for (int i = 0; i < WORKERS; i++)
        bel_inproc_lane_create(LANE_FRAMES, w->bell, w->bell, &w->others[i], &w->worker_lanes[i]);
    // Shard 0 has a lane to each other shard. Another shard's lane to shard 0 has index 0.
    if (shards > 1) {
        bel_inproc_lane_create(LANE_FRAMES, w->bell, w->bell, &w->others[WORKERS],
                               &w->shard_lanes[w->number == 0 ? 1 : 0]);
    }
}

static bool make_shard(world *w)
{
    static const bel_shard_events events = {NULL, decide, NULL, snapshot_ready};
    bel_shard_config config = {
        .layout = w->layout,
        .shard = w->number,
        .assignment = w->assignment,
        .space = w->space,
        .snapshot = w->snapshot,
        .snapshot_averages = w->averages,
        .settings = {.optimizers = &w->optimizers, .function_count = 1, .counting = w->counting},
        .generation = 1,
        .worker_lanes = w->worker_lanes,
        .shard_lanes = w->shard_lanes,
        .outboxes = w->outboxes,
        .report_room = w->limited ? 1 : 0,
    };
    if (!fuzz_is_good(bel_shard_create(&config, &w->shard))) return false;
    for (int i = 0; i < WORKERS; i++)
        fuzz_expect(fuzz_is_good(bel_shard_reserve(w->shard, i)), "room for reports");
    if (w->number == 0) bel_shard_lease_from(w->shard, 0, 2 * LAST_VERSION);
    bel_shard_start(w->shard, &events);
    return true;
}

static bool make(world *w, unsigned choice)
{
    static const int replicas_of[WORKERS] = {2, 1};
    static const bel_optimizer optimizers[] = {
        {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.1},
        {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1, .clip_norm = 1},
        {.kind = BEL_OPTIMIZER_LAMB, .learning_rate = 0.1},
        {.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.1},
    };
    int shards = choice & 16 ? 2 : 1;
    w->number = choice & 16 && choice & 32 ? 1 : 0;
    w->places = (choice & 64) != 0;
    w->limited = (choice & 128) != 0;
    w->optimizers.main = optimizers[choice >> 2 & 3];
    if (!fuzz_is_good(bel_optimizers_check(&w->optimizers))) return false;
    w->counting = choice & 3 ? bel_counting_of((bel_counting_kind)(choice & 3), 1, 1, WORKERS, 1)
                             : (bel_counting){.kind = BEL_COUNTING_ALL};
    w->layout = fuzz_job_layout(shards, w->optimizers.main.kind != BEL_OPTIMIZER_LAMB);
    w->assignment = bel_assignment_create(replicas_of, WORKERS);
    bool good = fuzz_is_good(bel_space_create(w->layout, 2, &w->space)) &&
                fuzz_is_good(bel_space_array(w->layout, "snapshot", &w->snapshot)) &&
                fuzz_is_good(bel_space_array(w->layout, "averages", &w->averages));
    for (int i = 0; i < WORKERS; i++)
        good = good && fuzz_is_good(bel_space_array(w->layout, "values", &w->outboxes[i]));
    fuzz_expect(good, "memory for a small model");
    make_lanes(w, shards);
    return make_shard(w);
}

static void destroy(world *w)
{
    bel_shard_destroy(w->shard);
    for (int i = 0; i < WORKERS; i++) {
        bel_lane_close(w->worker_lanes[i]);
        bel_lane_close(w->others[i]);
        bel_space_free_array(w->layout, w->outboxes[i]);
    }
    bel_lane_close(w->shard_lanes[0]);
    bel_lane_close(w->shard_lanes[1]);
    bel_lane_close(w->others[WORKERS]);
    bel_space_free_array(w->layout, w->snapshot);
    bel_space_free_array(w->layout, w->averages);
    bel_space_destroy(w->space);
    bel_doorbell_destroy(w->bell);
    bel_assignment_destroy(w->assignment);
    bel_layout_destroy(w->layout);
    for (int i = 0; i < w->payload_count; i++)
        bel_free(w->payloads[i]);
}

// Reads all that the shard sent.
static volatile uint8_t heard;
static void hear(const world *w)
{
    bel_frame frame;
    for (int i = 0; i <= WORKERS; i++) {
        while (w->others[i] != NULL && bel_lane_receive(w->others[i], &frame)) {
            const uint8_t *bytes = frame.payload;
            for (size_t k = 0; k < frame.payload_bytes; k++)
                heard = bytes[k];
        }
    }
}

// Takes a frame of the input and sends it. Returns false if its lane would be cut.
static bool say(world *w, fuzz_input *input)
{
    unsigned who = (unsigned)fuzz_take(input, 1) % (WORKERS + 1);
    bool is_worker = who < WORKERS;
    int sender = is_worker ? (int)who : 1 - w->number;
    bel_frame frame = fuzz_job_frame(input, sender);
    const void *bytes = frame.payload;
    size_t count = frame.payload_bytes;
    if (w->others[who] == NULL) return true;
    if (w->places && count > 0) {
        bel_shard_peer peer = {w->shard, is_worker ? (int)who : -1, 1 - w->number};
        void *place = bel_shard_place(&peer, &frame);
        if (place == NULL) return false;
        memcpy(place, bytes, count);
        frame.payload = place;
    } else {
        void *payload = bel_xmalloc(count);
        if (count > 0) memcpy(payload, bytes, count);
        w->payloads[w->payload_count++] = payload;
        frame.payload = payload;
    }
    return fuzz_is_good(bel_lane_send(w->others[who], &frame));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    world w = {0};
    bool good = make(&w, (unsigned)fuzz_take(&input, 1));
    for (int i = 0; good && i < MOST_FRAMES && input.left > 0; i++) {
        good = say(&w, &input);
        int work = 0;
        while (good && work < MOST_WORK && bel_shard_work(w.shard))
            work++;
        fuzz_expect(work < MOST_WORK, "work that ends");
        hear(&w);
        good = good && fuzz_is_good(bel_shard_check(w.shard));
    }
    bel_str words = {0};
    if (w.shard != NULL) (void)bel_shard_doing(w.shard, &words);
    bel_str_deinit(&words);
    destroy(&w);
    return 0;
}
