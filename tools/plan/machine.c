// Rates of lanes and sums. Each lane has both its ends in this process: a second thread answers.
// Processor time is the process's, so that of both ends and of the threads that gRPC has.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "plan/calibration.h"
#include "transport/grpc/grpc_lane.h"
#include "transport/shm/shm_lane.h"

enum {
    ROUNDS = 5,
    EXCHANGES = 400, // in a round
    BULK_FRAMES = 32,
    BULK_BYTES = 1 << 20,
    SMALL_BYTES = 64,
    CAPACITY = 2 * BULK_FRAMES,
    ENDS = 2,
    SECOND_NS = 1000000000,
    PATIENCE_SECS = 10,
};

// Both ends of a lane; the second one's thread answers.
typedef struct lane_pair {
    bel_endpoint *endpoints[ENDS]; // gRPC's
    bel_shm_hub *hubs[ENDS];       // shared memory's
    bel_doorbell *bells[ENDS];
    bel_lane *lanes[ENDS];
    char *bulk, *landing; // payloads
    int bulk_frames;      // frames up before each answer
    int answers;
    bel_status *status; // the thread's
} lane_pair;

static bel_status *find_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)hello;
    *out_lane = ((lane_pair *)context)->lanes[1];
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)path;
    return bel_grpc_lane_accept(stream, find_lane, context, out_events);
}

static void *place_payload(void *context, const bel_frame *frame)
{
    return frame->payload_bytes <= BULK_BYTES ? ((lane_pair *)context)->landing : NULL;
}

static bel_status *open_grpc(lane_pair *pair, const char *scratch)
{
    char *address = bel_strf("unix:%s/lane", scratch);
    const bel_endpoint_config server = {
        .listen_address = address, .secret = "", .accept = accept_stream, .context = pair};
    const bel_endpoint_config client = {.secret = ""};
    bel_status *status = bel_endpoint_create(&server, &pair->endpoints[1]);
    if (status == NULL) status = bel_endpoint_create(&client, &pair->endpoints[0]);
    for (int e = ENDS - 1; e >= 0 && status == NULL; e--) {
        const bel_grpc_lane_config config = {.capacity = CAPACITY,
                                             .bell = pair->bells[e],
                                             .place = place_payload,
                                             .place_context = pair};
        pair->lanes[e] = e == 1 ? bel_grpc_lane_create(pair->endpoints[1], &config)
                                : bel_grpc_lane_connect(pair->endpoints[0], address,
                                                        &(bel_lane_hello){0}, &config);
    }
    bel_free(address);
    return status;
}

static bel_status *open_shm(lane_pair *pair, const char *scratch)
{
    char *path = bel_strf("%s/lane.shm", scratch);
    const bel_shm_hub_config server = {
        .listen_path = path, .secret = "", .find = find_lane, .context = pair};
    const bel_shm_hub_config client = {.secret = ""};
    bel_status *status = bel_shm_hub_create(&server, &pair->hubs[1]);
    if (status == NULL) status = bel_shm_hub_create(&client, &pair->hubs[0]);
    for (int e = ENDS - 1; e >= 0 && status == NULL; e--) {
        const bel_shm_lane_config config = {.capacity = CAPACITY, .bell = pair->bells[e]};
        pair->lanes[e] =
            e == 1 ? bel_shm_lane_create(pair->hubs[1], &config)
                   : bel_shm_lane_connect(pair->hubs[0], path, &(bel_lane_hello){0}, &config);
    }
    bel_free(path);
    return status;
}

static void close_pair(lane_pair *pair)
{
    bel_lane_close_all(pair->lanes, ENDS);
    for (int e = 0; e < ENDS; e++) {
        bel_endpoint_destroy(pair->endpoints[e]);
        bel_shm_hub_destroy(pair->hubs[e]);
        bel_doorbell_destroy(pair->bells[e]);
    }
}

static bel_status *take_frame(lane_pair *pair, int end)
{
    bel_frame frame;
    int64_t deadline = bel_clock_ns() + PATIENCE_SECS * (int64_t)SECOND_NS;
    while (!bel_lane_receive(pair->lanes[end], &frame)) {
        if (bel_lane_is_cut(pair->lanes[end]) || bel_clock_ns() > deadline)
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "a lane within this process brings no frame");
        (void)bel_doorbell_wait(pair->bells[end], bel_clock_ns() + SECOND_NS);
    }
    return NULL;
}

static bel_status *send_small(lane_pair *pair, int end)
{
    static const char zeros[SMALL_BYTES];
    const bel_frame frame = {.kind = 1, .payload = zeros, .payload_bytes = sizeof zeros};
    return bel_lane_send(pair->lanes[end], &frame);
}

static bel_status *answer(lane_pair *pair)
{
    for (int i = 0; i < pair->answers; i++) {
        for (int f = 0; f < pair->bulk_frames; f++)
            BEL_TRY(take_frame(pair, 1));
        BEL_TRY(take_frame(pair, 1));
        BEL_TRY(send_small(pair, 1));
    }
    return NULL;
}

static void *answer_main(void *argument)
{
    lane_pair *pair = argument;
    pair->status = answer(pair);
    return NULL;
}

static bel_status *call(lane_pair *pair)
{
    const bel_frame bulk = {.kind = 1, .payload = pair->bulk, .payload_bytes = BULK_BYTES};
    for (int f = 0; f < pair->bulk_frames; f++)
        BEL_TRY(bel_lane_send(pair->lanes[0], &bulk));
    BEL_TRY(send_small(pair, 0));
    return take_frame(pair, 0);
}

static double processor_ns(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * SECOND_NS + (double)time.tv_nsec;
}

// One round: that many exchanges, each after `bulk_frames` large frames up. Means of an exchange.
static bel_status *play(lane_pair *pair, int exchanges, int bulk_frames, double *out_wall_ns,
                        double *out_processor_ns)
{
    pthread_t thread;
    pair->answers = exchanges + 1; // the first connects
    pair->bulk_frames = bulk_frames;
    BEL_TRY(bel_thread_start(&thread, answer_main, pair));
    bel_status *status = call(pair);
    int64_t begun = bel_clock_ns();
    double processor = processor_ns();
    for (int i = 0; i < exchanges && status == NULL; i++)
        status = call(pair);
    *out_wall_ns = (double)(bel_clock_ns() - begun) / exchanges;
    *out_processor_ns = (processor_ns() - processor) / exchanges;
    pthread_join(thread, NULL); // after an error here it waits at most its patience
    if (status == NULL) return pair->status;
    bel_status_ignore(pair->status); // the same one
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

// Shared memory costs nothing for a byte: the pass reads it in place.
static bel_status *measure_lane(lane_pair *pair, bel_cost_lane lane, bel_cost_rates *rates)
{
    double wall[ROUNDS], processor[ROUNDS], bulk_wall, bulk[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        BEL_TRY(play(pair, EXCHANGES, 0, &wall[i], &processor[i]));
        bulk[i] = 0;
        if (lane == BEL_COST_GRPC) BEL_TRY(play(pair, 2, BULK_FRAMES, &bulk_wall, &bulk[i]));
    }
    rates->lanes[lane].exchange = median(wall);
    rates->lanes[lane].frame = median(processor) / (2 * ENDS); // two frames
    rates->lanes[lane].byte = median(bulk) / ((double)BULK_FRAMES * BULK_BYTES * ENDS);
    return NULL;
}

static bel_status *measure_lanes(const char *scratch, bel_cost_rates *rates)
{
    char *bulk = bel_xcalloc(2, BULK_BYTES);
    bel_status *status = NULL;
    for (int lane = 0; lane < BEL_COST_LANES && status == NULL; lane++) {
        lane_pair pair = {.bulk = bulk, .landing = bulk + BULK_BYTES};
        for (int e = 0; e < ENDS; e++)
            pair.bells[e] = bel_doorbell_create();
        status = lane == BEL_COST_SHM ? open_shm(&pair, scratch) : open_grpc(&pair, scratch);
        if (status == NULL) status = measure_lane(&pair, (bel_cost_lane)lane, rates);
        close_pair(&pair);
    }
    bel_free(bulk);
    return status;
}

// Time of one thread for the sum of `count` reports.
static double sum_ns(int count, const float *const *inputs, int64_t n, float *scratch)
{
    int *ones = bel_xcalloc((size_t)count, sizeof *ones);
    bel_weight *weights = bel_xcalloc((size_t)count, sizeof *weights);
    for (int i = 0; i < count; i++) {
        ones[i] = 1;
        weights[i] = (bel_weight){1, 1};
    }
    bel_assignment *assignment = bel_assignment_create(ones, count);
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begun = bel_clock_ns();
        (void)bel_assignment_sum(assignment, inputs, weights, n, scratch);
        ns[i] = (double)(bel_clock_ns() - begun);
    }
    bel_assignment_destroy(assignment);
    bel_free(weights);
    bel_free(ones);
    return median(ns);
}

// A shard adds the pieces of a chunk while they are in its cache; the reports come from memory.
static void measure_sums(bel_cost_rates *rates)
{
    enum { REPORTS = 4, DEPTH = 2 };
    const int64_t n = 1 << 20;
    float *memory = bel_xcalloc((size_t)n * (REPORTS + DEPTH + 1), sizeof *memory);
    const float *inputs[REPORTS];
    for (int i = 0; i < REPORTS; i++)
        inputs[i] = memory + n * i;
    float *scratch = memory + n * REPORTS;
    (void)sum_ns(REPORTS, inputs, n, scratch); // touches all pages
    double more = sum_ns(REPORTS, inputs, n, scratch) - sum_ns(2, inputs, n, scratch);
    rates->add = more > 0 ? more / ((double)n * (REPORTS - 2)) : 0;
    bel_free(memory);
}

bel_status *bel_machine_measure(const char *scratch, bel_machine_figures *out_machine)
{
    bel_machine_figures machine = {.load = bel_machine_load()};
    BEL_TRY(measure_lanes(scratch, &machine.rates));
    measure_sums(&machine.rates);
    *out_machine = machine;
    return NULL;
}
