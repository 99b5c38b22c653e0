// Fuzz target for a worker that receives frames of the shards: it waits for a version, asks for
// rows of a table, takes part in a collective, reports, and waits for the next version. The first
// byte chooses whether there is a ledger, whether there are two shards, and whether payloads are
// copied to the client's places, as over a network, or are read in place.
//
// After it come frames: the shard, and the rest as in job.h. They arrive while the client waits.
// After the last one the client is told to give up.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "fuzz/job.h"
#include "ps/client/client.h"
#include "transport/inproc/inproc.h"

enum { SHARDS = 2, LANE_FRAMES = 64, MOST_FRAMES = 64, STEPS = 3, KEYS = 4, PIECE_BYTES = 64 };

typedef struct world {
    fuzz_input input;
    bel_layout *layout;
    bel_assignment *assignment;
    bel_space *space;
    bel_doorbell *bell;
    bel_lane *lanes[SHARDS], *shard_ends[SHARDS];
    void *row_buffer, *answer_room;
    bel_client *client;
    bool ledger, places, cut;
    void *payloads[MOST_FRAMES];
    int payload_count;
} world;

static volatile uint8_t heard;
static void hear(const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        heard = ((const uint8_t *)bytes)[i];
}

// The client waits: delivers the next frame, after reading the frames that the client sent.
static bool bring_frame(void *context)
{
    world *w = context;
    bel_frame frame;
    for (int k = 0; k < w->layout->shard_count; k++)
        while (bel_lane_receive(w->shard_ends[k], &frame))
            hear(frame.payload, frame.payload_bytes);
    if (w->cut || w->input.left == 0 || w->payload_count == MOST_FRAMES) return false;
    int shard = (int)(fuzz_take(&w->input, 1) % (uint64_t)w->layout->shard_count);
    frame = fuzz_job_frame(&w->input, shard);
    bel_client_peer peer = {w->client, shard};
    void *place = NULL;
    if (!w->places || frame.payload_bytes == 0) {
        place = w->payloads[w->payload_count++] = bel_xmalloc(frame.payload_bytes);
    } else {
        place = bel_client_place(&peer, &frame);
        w->cut = place == NULL; // refused: the rest is not read
        if (w->cut) return false;
    }
    if (frame.payload_bytes > 0) memcpy(place, frame.payload, frame.payload_bytes);
    frame.payload = place;
    return fuzz_is_good(bel_lane_send(w->shard_ends[shard], &frame));
}

static bool is_over(void *context)
{
    const world *w = context;
    return w->cut || w->input.left == 0 || w->payload_count == MOST_FRAMES;
}

static void make(world *w)
{
    static const int replicas_of[] = {2, 1};
    unsigned choice = (unsigned)fuzz_take(&w->input, 1);
    w->ledger = (choice & 1) != 0;
    w->places = (choice & 4) != 0;
    w->layout = fuzz_job_layout(choice & 2 ? SHARDS : 1, true);
    w->assignment = bel_assignment_create(replicas_of, 2);
    fuzz_expect(fuzz_is_good(bel_space_create(w->layout, 2, &w->space)), "memory");
    w->bell = bel_doorbell_create();
    for (int k = 0; k < w->layout->shard_count; k++)
        bel_inproc_lane_create(LANE_FRAMES, w->bell, w->bell, &w->lanes[k], &w->shard_ends[k]);
    w->row_buffer = bel_xcalloc(bel_row_buffer_bytes(w->layout, w->assignment, 0), 1);
    w->answer_room = bel_xcalloc(bel_row_buffer_answer_bytes(w->layout, w->assignment, 0), 1);
    const bel_client_config config = {.worker = 0,
                                      .generation = 1,
                                      .layout = w->layout,
                                      .assignment = w->assignment,
                                      .lanes = w->lanes,
                                      .space = w->space,
                                      .row_buffer = w->row_buffer,
                                      .answer_room = w->places ? w->answer_room : NULL,
                                      .ledger = w->ledger,
                                      .bell = w->bell,
                                      .help = bring_frame,
                                      .help_context = w,
                                      .cancelled = is_over,
                                      .cancelled_context = w,
                                      .stall_timeout_secs = 60};
    w->client = bel_client_create(&config);
}

static void destroy(world *w)
{
    for (int k = 0; k < w->layout->shard_count; k++) {
        bel_lane_close(w->lanes[k]);
        bel_lane_close(w->shard_ends[k]);
    }
    bel_client_destroy(w->client);
    bel_free(w->row_buffer);
    bel_free(w->answer_room);
    bel_space_destroy(w->space);
    bel_doorbell_destroy(w->bell);
    bel_assignment_destroy(w->assignment);
    bel_layout_destroy(w->layout);
    for (int i = 0; i < w->payload_count; i++)
        bel_free(w->payloads[i]);
}

// Runs a step of the worker. Returns false at its end.
static bool run_step(world *w, int64_t *version)
{
    static const int64_t keys[KEYS] = {-3, 1, 7, 1000};
    static const double stats[BEL_STATS_COUNT] = {1, 1, 0};
    bel_client *client = w->client;
    uint32_t decision = 0;
    bool good = fuzz_is_good(w->ledger ? bel_client_wait_next(client, version, &decision)
                                       : bel_client_wait(client, *version, &decision));
    good = good && fuzz_is_good(bel_client_pull_rows(client, *version, 0, keys, KEYS)) &&
           fuzz_is_good(bel_client_wait_rows(client, *version));
    if (!good) return false;
    for (int64_t i = 0; i < KEYS; i++)
        hear(bel_client_row(client, 0, i), FUZZ_TABLE_WIDTH * sizeof(float));
    bel_client_piece pieces[2] = {
        {.part = 0, .bytes = PIECE_BYTES, .answer_bytes = PIECE_BYTES},
        {.part = 1, .at = PIECE_BYTES, .bytes = PIECE_BYTES, .answer_at = 64, .answer_bytes = 32}};
    if (!fuzz_is_good(bel_client_exchange(client, *version, 0, pieces, 2))) return false;
    hear(pieces[0].answer, pieces[0].answer_bytes);
    hear(pieces[1].answer, pieces[1].answer_bytes);
    return fuzz_is_good(bel_client_stats(client, *version, decision, 0, 0, stats));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world w = {.input = {data, size}};
    make(&w);
    int64_t version = w.ledger ? -1 : 0;
    bool good = fuzz_is_good(bel_client_pull(w.client, 0));
    for (int step = 0; good && step < STEPS; step++) {
        good = run_step(&w, &version);
        if (!w.ledger) version++;
    }
    destroy(&w);
    return 0;
}
