// Rates of lanes, sums and files. Lanes have both ends in this process, on separate threads. The
// processor time of an exchange is the process's: of both ends, and of the threads that gRPC has
// beside them. The upper end has a figure as well, as it shows the cost of a message.
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "plan/calibration.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/stream_lane.h"

enum {
    ROUNDS = 5,
    EXCHANGES = 400, // in a round of one caller
    CROWD = 64,      // lanes that are used together
    BULK_FRAMES = 32,
    BULK_BYTES = 1 << 20,
    SMALL_BYTES = 64,
    CAPACITY = 2 * BULK_FRAMES,
    SECOND_NS = 1000000000,
    SUM_REPORTS = 4,
    SUM_DEPTH = 2, // levels of their tree
    PIECE = 1024,  // floats added at a time: they stay in the L1 cache
    PATIENCE_SECS = 30,
};
_Static_assert(1 << SUM_DEPTH >= SUM_REPORTS, "the tree has room for all reports");

// A lane's lower end, with its thread.
typedef struct caller {
    struct crowd *crowd;
    bel_doorbell *bell;
    bel_lane *lane;
    pthread_t thread;
    bel_status *status;
    int64_t own_ns; // processor time: its thread's; the first one has also the endpoint's
} caller;

// Lanes of some callers to one thread, which answers when each of them has sent a frame, as a shard
// does.
typedef struct crowd {
    bel_endpoint *low, *high;        // gRPC's
    bel_shm_hub *low_hub, *high_hub; // shared memory's
    bel_doorbell *bell;
    caller callers[CROWD];
    bel_lane *lanes[CROWD];
    char *bulk, *landing; // payloads
    int count;            // callers in use
    int bulk_frames;      // frames of the first caller before each exchange
    int exchanges;
    double walls[EXCHANGES]; // by exchange
    int64_t processor_ns;    // the process's, as all these without the first exchange
    int64_t high_ns;         // the upper end's
} crowd;

static bel_status *find_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    if (hello->index >= 0 && hello->index < CROWD)
        *out_lane = ((crowd *)context)->lanes[hello->index];
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find_lane, context, out_events);
}

static void *place_payload(void *context, const bel_frame *frame)
{
    return frame->payload_bytes <= BULK_BYTES ? ((crowd *)context)->landing : NULL;
}

static bel_status *open_grpc(crowd *c)
{
    const bel_endpoint_config server = {
        .listen_address = "127.0.0.1:0", .secret = "", .accept = accept_stream, .context = c};
    const bel_endpoint_config client = {.secret = ""};
    bel_status *status = bel_endpoint_create(&server, &c->high);
    if (status == NULL) status = bel_endpoint_create(&client, &c->low);
    bel_stream_lane_config config = {
        .capacity = CAPACITY, .bell = c->bell, .place = place_payload, .place_context = c};
    for (int i = 0; i < CROWD && status == NULL; i++)
        c->lanes[i] = bel_stream_lane_create(c->high, &config);
    for (int i = 0; i < CROWD && status == NULL; i++) {
        const bel_lane_hello hello = {.index = i};
        config.bell = c->callers[i].bell;
        c->callers[i].lane =
            bel_stream_lane_connect(c->low, bel_endpoint_address(c->high), &hello, &config);
    }
    return status;
}

static bel_status *open_shm(crowd *c, const char *scratch)
{
    char *path = bel_strf("%s/lane.shm", scratch);
    const bel_shm_hub_config server = {
        .listen_path = path, .secret = "", .find = find_lane, .context = c};
    const bel_shm_hub_config client = {.secret = ""};
    bel_status *status = bel_shm_hub_create(&server, &c->high_hub);
    if (status == NULL) status = bel_shm_hub_create(&client, &c->low_hub);
    bel_shm_lane_config config = {.capacity = CAPACITY, .bell = c->bell};
    for (int i = 0; i < CROWD && status == NULL; i++)
        c->lanes[i] = bel_shm_lane_create(c->high_hub, &config);
    for (int i = 0; i < CROWD && status == NULL; i++) {
        const bel_lane_hello hello = {.index = i};
        config.bell = c->callers[i].bell;
        c->callers[i].lane = bel_shm_lane_connect(c->low_hub, path, &hello, &config);
    }
    bel_free(path);
    return status;
}

static void close_crowd(crowd *c)
{
    bel_lane *lanes[CROWD];
    for (int i = 0; i < CROWD; i++)
        lanes[i] = c->callers[i].lane;
    bel_lane_close_all(lanes, CROWD);
    bel_lane_close_all(c->lanes, CROWD);
    bel_endpoint_destroy(c->low);
    bel_endpoint_destroy(c->high);
    bel_shm_hub_destroy(c->low_hub);
    bel_shm_hub_destroy(c->high_hub);
    bel_doorbell_destroy(c->bell);
    for (int i = 0; i < CROWD; i++)
        bel_doorbell_destroy(c->callers[i].bell);
}

// Takes that many frames, of any of the lanes.
static bel_status *take_frames(bel_lane *const *lanes, int lane_count, bel_doorbell *bell,
                               int count)
{
    int64_t deadline = bel_clock_awake_ns() + PATIENCE_SECS * (int64_t)SECOND_NS;
    while (count > 0) {
        bool cut = false;
        bel_frame frame;
        for (int i = 0; i < lane_count; i++) {
            while (bel_lane_receive(lanes[i], &frame))
                count--;
            cut = cut || bel_lane_is_cut(lanes[i]);
        }
        if (count <= 0) break;
        if (cut || bel_clock_awake_ns() > deadline)
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "a lane within this process brings no frame");
        (void)bel_doorbell_wait(bell, bel_clock_ns() + SECOND_NS);
    }
    return NULL;
}

static bel_status *send_small(bel_lane *lane)
{
    static const char zeros[SMALL_BYTES];
    const bel_frame frame = {.kind = 1, .payload = zeros, .payload_bytes = sizeof zeros};
    return bel_lane_send(lane, &frame);
}

// Processor time of the calling thread, and of an endpoint; NULL: none.
static int64_t end_ns(bel_endpoint *endpoint)
{
    int64_t threads = endpoint != NULL ? bel_endpoint_processor_ns(endpoint) : 0;
    return threads + bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
}

static bel_status *answer(crowd *c)
{
    for (int i = 0; i < c->exchanges; i++) {
        if (i == 1) c->high_ns = -end_ns(c->high);
        BEL_TRY(take_frames(c->lanes, c->count, c->bell, c->count + c->bulk_frames));
        for (int k = 0; k < c->count; k++)
            BEL_TRY(send_small(c->lanes[k]));
    }
    c->high_ns += end_ns(c->high);
    return NULL;
}

// The first caller measures: all threads run when its first exchange is over.
static bel_status *call(caller *me)
{
    crowd *c = me->crowd;
    bool first = me == c->callers;
    const bel_frame bulk = {.kind = 1, .payload = c->bulk, .payload_bytes = BULK_BYTES};
    for (int i = 0; i < c->exchanges; i++) {
        int64_t begun = bel_clock_ns();
        for (int f = 0; f < c->bulk_frames && first; f++)
            BEL_TRY(bel_lane_send(me->lane, &bulk));
        BEL_TRY(send_small(me->lane));
        BEL_TRY(take_frames(&me->lane, 1, me->bell, 1));
        if (i == 0) me->own_ns = -end_ns(first ? c->low : NULL);
        if (!first) continue;
        if (i == 0) c->processor_ns = -bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (i > 0) c->walls[i - 1] = (double)(bel_clock_ns() - begun);
        if (i == c->exchanges - 1)
            c->processor_ns += bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    me->own_ns += end_ns(first ? c->low : NULL);
    return NULL;
}

static void *call_main(void *argument)
{
    caller *me = argument;
    me->status = call(me);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct exchange_round {
    int exchanges, count, bulk_frames;
    double wall_ns;      // lower quartile: on a busy machine others also wait for a core
    double processor_ns; // mean
    double high_ns;      // mean: the upper end's of that
    double other_ns;     // mean: that of neither end, but of gRPC's other threads
} exchange_round;

// Exchanges of that many callers, each after `bulk_frames` large frames of the first one. The first
// exchange is not measured.
static bel_status *play(crowd *c, exchange_round *r)
{
    int started = 0;
    c->exchanges = r->exchanges + 1;
    c->count = r->count;
    c->bulk_frames = r->bulk_frames;
    bel_status *status = NULL;
    for (; started < r->count && status == NULL; started++)
        status = bel_thread_start(&c->callers[started].thread, call_main, &c->callers[started]);
    if (status != NULL) started--; // the last one has no thread
    if (status == NULL) status = answer(c);
    for (int i = 0; i < started; i++) { // after an error each waits at most its patience
        pthread_join(c->callers[i].thread, NULL);
        if (status == NULL) {
            status = c->callers[i].status;
        } else {
            bel_status_ignore(c->callers[i].status); // the first one counts
        }
        c->callers[i].status = NULL;
    }
    if (status != NULL) return status;
    r->processor_ns = (double)c->processor_ns / r->exchanges;
    r->high_ns = (double)c->high_ns / r->exchanges;
    int64_t other_ns = c->processor_ns - c->high_ns;
    for (int i = 0; i < r->count; i++)
        other_ns -= c->callers[i].own_ns;
    r->other_ns = other_ns > 0 ? (double)other_ns / r->exchanges : 0;
    qsort(c->walls, (size_t)r->exchanges, sizeof *c->walls, by_size);
    r->wall_ns = c->walls[r->exchanges / 4];
    return NULL;
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

// An exchange of n callers has 2 n messages with two ends each, and n + 1 receivers wake. Each end
// of one with a single caller has the same work. With more of them, the upper end shows the cost of
// a message: it wakes once. gRPC's other threads work for messages. Shared memory costs nothing for
// a byte: the pass reads it in place.
static bel_status *measure_medium(crowd *c, bel_cost_medium medium, bel_cost_rates *rates)
{
    double wall[ROUNDS], one[ROUNDS], one_high[ROUNDS], many_high[ROUNDS], others[ROUNDS],
        bulk[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        exchange_round single = {.exchanges = EXCHANGES, .count = 1};
        exchange_round many = {.exchanges = EXCHANGES / CROWD, .count = CROWD};
        exchange_round large = {.exchanges = 2, .count = 1, .bulk_frames = BULK_FRAMES};
        BEL_TRY(play(c, &single));
        BEL_TRY(play(c, &many));
        if (medium == BEL_COST_GRPC) BEL_TRY(play(c, &large));
        wall[i] = single.wall_ns;
        one[i] = single.processor_ns;
        one_high[i] = single.high_ns;
        many_high[i] = many.high_ns;
        others[i] = many.other_ns;
        bulk[i] = large.processor_ns;
    }
    // upper end: 2 n messages + a wake; both ends of a single caller: 4 messages + 2 wakes
    double lone = median(one);
    double message =
        (median(many_high) - median(one_high)) / (2 * (CROWD - 1)) + median(others) / (4 * CROWD);
    if (message < 0) message = 0;
    if (4 * message > lone) message = lone / 4;
    rates->media[medium].exchange = median(wall);
    rates->media[medium].message = message;
    rates->media[medium].wake = lone / 2 - 2 * message;
    rates->media[medium].byte = median(bulk) / ((double)BULK_FRAMES * BULK_BYTES * 2);
    return NULL;
}

static bel_status *measure_lanes(const char *scratch, bel_cost_rates *rates)
{
    char *memory = bel_xcalloc(2, BULK_BYTES);
    bel_status *status = NULL;
    for (int medium = 0; medium < BEL_COST_MEDIA && status == NULL; medium++) {
        crowd *c = bel_xcalloc(1, sizeof *c);
        c->bulk = memory;
        c->landing = memory + BULK_BYTES;
        c->bell = bel_doorbell_create();
        for (int i = 0; i < CROWD; i++) {
            c->callers[i].crowd = c;
            c->callers[i].bell = bel_doorbell_create();
        }
        status = medium == BEL_COST_SHM ? open_shm(c, scratch) : open_grpc(c);
        if (status == NULL) status = measure_medium(c, (bel_cost_medium)medium, rates);
        close_crowd(c);
        bel_free(c);
    }
    bel_free(memory);
    return status;
}

// Processor time of one thread for the sum of `count` reports, piece by piece as a shard adds them:
// the sum stays in the thread's cache, the reports come from memory.
static double sum_ns(int count, const float *memory, int64_t n)
{
    float scratch[(SUM_DEPTH + 1) * PIECE];
    int *ones = bel_xcalloc((size_t)count, sizeof *ones);
    bel_weight *weights = bel_xcalloc((size_t)count, sizeof *weights);
    for (int i = 0; i < count; i++) {
        ones[i] = 1;
        weights[i] = (bel_weight){1, 1};
    }
    bel_assignment *assignment = bel_assignment_create(ones, count);
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begun = bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int64_t at = 0; at < n; at += PIECE) {
            const float *inputs[SUM_REPORTS];
            for (int k = 0; k < count; k++)
                inputs[k] = memory + n * k + at;
            (void)bel_assignment_sum(assignment, inputs, weights, PIECE, scratch);
        }
        ns[i] = (double)(bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
    }
    bel_assignment_destroy(assignment);
    bel_free(weights);
    bel_free(ones);
    return median(ns);
}

// A report has 16 MB: all together are larger than most caches. Their pages are written, as pages
// that no one has written are all the same one.
static void measure_sums(bel_cost_rates *rates)
{
    const int64_t n = 4096 * PIECE;
    float *memory = bel_xcalloc((size_t)n * SUM_REPORTS, sizeof *memory);
    for (int64_t i = 0; i < n * SUM_REPORTS; i++)
        memory[i] = 1;
    double more = sum_ns(SUM_REPORTS, memory, n) - sum_ns(2, memory, n);
    rates->add = more > 0 ? more / ((double)n * (SUM_REPORTS - 2)) : 0;
    bel_free(memory);
}

// A file that was just written, as a checkpoint is read whose pages are still in memory.
static bel_status *measure_files(const char *scratch, double *out_byte_ns)
{
    const size_t bytes = 32 << 20;
    char *path = bel_strf("%s/file", scratch), *text = bel_xcalloc(bytes, 1), *read = NULL;
    size_t size;
    double ns[ROUNDS];
    bel_status *status = bel_file_replace(path, text, bytes);
    for (int i = 0; i < ROUNDS && status == NULL; i++) {
        int64_t begun = bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
        status = bel_file_read(path, &read, &size);
        ns[i] = (double)(bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
        bel_free(read);
        read = NULL;
    }
    if (status == NULL) *out_byte_ns = median(ns) / (double)bytes;
    bel_free(text);
    bel_free(path);
    return status;
}

bel_status *bel_machine_measure(const char *scratch, bel_machine_figures *out_machine)
{
    bel_machine_figures machine = {.load = bel_machine_load()};
    BEL_TRY(measure_lanes(scratch, &machine.rates));
    measure_sums(&machine.rates);
    BEL_TRY(measure_files(scratch, &machine.file_byte_ns));
    *out_machine = machine;
    return NULL;
}
