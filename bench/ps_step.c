// A synchronous step of two workers and one shard without computing, three processes over shared
// memory or gRPC on the loopback: both workers report all gradients, the shard updates, both
// receive the new version. Two baselines: a prototype of such a step that updates in place
// (ps_step_bare.h), and the bare arithmetic with two buffers in one process. Both have a thread for
// each core. A round measures all three, each by the median of its steps; medians and quartiles of
// rounds.
// usage: bench_ps_step [MILLIONS-OF-PARAMETERS] [sgd|momentum] [STEPS] [shm|grpc] [ROUNDS]
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/client/client.h"
#include "ps/layout/lane_frames.h"
#include "ps/layout/step_stats.h"
#include "ps/server/shard.h"
#include "ps_step_bare.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/stream_lane.h"

enum { WORKERS = 2, WARM = 3, PATIENCE_SECS = 60, MOST_ROUNDS = 99 };

static int64_t steps = 30;
static bel_layout *layout;
static bel_assignment *assignment;
static bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.01};
static size_t capacity, space_bytes;
static bool over_grpc;

static void check(bel_status *status)
{
    if (bench_end(status) != 0) _exit(1);
}

// Returns milliseconds since *begun, and sets *begun to now.
static double ms_since(int64_t *begun)
{
    int64_t now = bel_clock_ns();
    double ms = (double)(now - *begun) * 1e-6;
    *begun = now;
    return ms;
}

static void make_layout(int64_t elements)
{
    static char name[] = "parameters";
    static const int replicas_of[WORKERS] = {1, 1};
    const bel_layout_variable variable = {.name = name, .shape = BEL_SHAPE(elements)};
    layout = bel_layout_create(&variable, 1, 1);
    assignment = bel_assignment_create(replicas_of, WORKERS);
    capacity = bel_lane_frames_of_worker(layout, assignment, 0, 0, false);
    space_bytes = bel_space_bytes(layout);
}

// --- The shard -----------------------------------------------------------------------------------

typedef struct server {
    bel_shard *shard;
    bel_lane *lanes[WORKERS];
    bel_shard_peer peers[WORKERS];
    bool over;
} server;

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    (void)stats, (void)left;
    server *s = context;
    s->over = version >= steps;
    return s->over ? BEL_DECIDE_STOP : 0;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version; // no checkpoints here
}

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    *out_lane = ((server *)context)->lanes[hello->index];
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find, context, out_events);
}

// The server's address is in a file at `path` once it listens.
static bel_status *hear_address(const char *path, char **out_address)
{
    int64_t deadline = bel_clock_ns() + PATIENCE_SECS * INT64_C(1000000000);
    while (access(path, R_OK) != 0) {
        if (bel_clock_ns() > deadline) return BEL_ERR(BEL_DEADLINE_EXCEEDED, "no server listens");
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    size_t size;
    return bel_file_read(path, out_address, &size);
}

static bel_status *listen_grpc(server *s, const char *path, bel_doorbell *bell)
{
    bel_endpoint *endpoint;
    const bel_endpoint_config config = {
        .listen_address = "127.0.0.1:0", .secret = "", .accept = accept_stream, .context = s};
    for (int w = 0; w < WORKERS; w++)
        BEL_TRY(bel_shard_reserve(s->shard, w));
    BEL_TRY(bel_endpoint_create(&config, &endpoint));
    for (int w = 0; w < WORKERS; w++) {
        s->peers[w] = (bel_shard_peer){s->shard, w, 0};
        const bel_stream_lane_config lane = {.capacity = capacity,
                                             .bell = bell,
                                             .place = bel_shard_place,
                                             .place_context = &s->peers[w]};
        s->lanes[w] = bel_stream_lane_create(endpoint, &lane);
    }
    const char *address = bel_endpoint_address(endpoint); // it lives as long as the process
    return bel_file_write_atomic(path, address, strlen(address));
}

static bel_status *listen_shm(server *s, const char *path, bel_doorbell *bell,
                              bel_shm_region *region)
{
    bel_shm_hub *hub;
    const bel_shm_hub_config config = {
        .listen_path = path, .secret = "", .find = find, .context = s};
    BEL_TRY(bel_shm_hub_create(&config, &hub));
    for (int w = 0; w < WORKERS; w++) {
        const bel_shm_lane_config lane = {
            .capacity = capacity, .bell = bell, .region = region, .peer_bytes = space_bytes};
        s->lanes[w] = bel_shm_lane_create(hub, &lane);
    }
    return NULL;
}

static bel_status *serve(const char *path)
{
    server s = {0};
    bel_shm_region *region;
    BEL_TRY(bel_shm_region_create("parameters", 2 * space_bytes, &region));
    bel_shm_region_touch(region, 0, 2 * space_bytes);
    char *memory = bel_shm_region_memory(region);
    float *const buffers[2] = {(float *)(void *)memory, (float *)(void *)(memory + space_bytes)};
    bel_space *space = bel_space_over(layout, buffers);
    bel_doorbell *bell = bel_doorbell_create();
    const bel_optimizers optimizers = {.main = optimizer};
    const bel_shard_config config = {.layout = layout,
                                     .assignment = assignment,
                                     .space = space,
                                     .settings = {.optimizers = &optimizers, .function_count = 1},
                                     .worker_lanes = s.lanes};
    BEL_TRY(bel_shard_create(&config, &s.shard));
    bel_team *team;
    BEL_TRY(bel_team_create(bel_available_cores(), &team));
    BEL_TRY(over_grpc ? listen_grpc(&s, path, bell) : listen_shm(&s, path, bell, region));
    const bel_shard_events events = {&s, decide, NULL, snapshot_ready};
    bel_shard_start(s.shard, &events);
    while (!s.over) {
        if (bel_shard_work_together(s.shard, team)) continue;
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000000);
    }
    (void)pause(); // until the workers have exited; then this process is killed
    return NULL;
}

// --- A worker ------------------------------------------------------------------------------------

typedef struct reader {
    bel_lane *lane;
    bel_space *space;
} reader;

static bel_status *attach(void *context)
{
    reader *r = context;
    const bel_shm_region *region = bel_shm_lane_peer(r->lane);
    for (size_t i = 0; i < 2; i++)
        BEL_TRY(bel_shm_region_map(region, i * space_bytes, space_bytes, r->space->buffers[i]));
    return NULL;
}

static bel_status *step(bel_client *client, int worker, const float *gradients, int64_t number)
{
    static double stats[BEL_STATS_COUNT];
    uint32_t decision;
    BEL_TRY(bel_client_wait(client, number, &decision));
    if ((decision & BEL_DECIDE_STOP) != 0) return NULL;
    for (int c = 0; c < layout->chunk_count; c++) {
        BEL_TRY(bel_client_report(client, number, decision, c, worker, (bel_weight){1, 1},
                                  gradients + layout->chunks[c].offset));
    }
    stats[BEL_STATS_EXAMPLES] = 1;
    return bel_client_stats(client, number, decision, worker, 0, stats);
}

static bel_status *connect_grpc(reader *r, bel_client_peer *peer, const char *path, int worker,
                                bel_doorbell *bell)
{
    char *address;
    bel_endpoint *endpoint;
    BEL_TRY(hear_address(path, &address));
    BEL_TRY(bel_endpoint_create(&(bel_endpoint_config){.secret = ""}, &endpoint));
    const bel_stream_lane_config lane = {.capacity = capacity,
                                         .bell = bell,
                                         .quiet = 1u << BEL_FRAME_PARAMS | 1u << BEL_FRAME_ROOM,
                                         .urgent = 1u << BEL_FRAME_ROOM,
                                         .at_once = bel_client_take_at_once,
                                         .place = bel_client_place,
                                         .place_context = peer};
    r->lane = bel_stream_lane_connect(endpoint, address, &(bel_lane_hello){.index = worker}, &lane);
    bel_free(address);
    return NULL;
}

static bel_status *connect_shm(reader *r, const char *path, int worker, bel_doorbell *bell,
                               bel_shm_region *region)
{
    bel_shm_hub *hub;
    BEL_TRY(bel_shm_hub_create(&(bel_shm_hub_config){.secret = ""}, &hub));
    const bel_shm_lane_config lane = {.capacity = capacity,
                                      .bell = bell,
                                      .quiet = 1u << BEL_FRAME_REPORT,
                                      .region = region,
                                      .peer_bytes = 2 * space_bytes};
    r->lane = bel_shm_lane_connect(hub, path, &(bel_lane_hello){.index = worker}, &lane);
    return NULL;
}

static bel_status *run_worker(const char *path, int worker)
{
    bel_shm_region *region;
    BEL_TRY(bel_shm_region_create("gradients", space_bytes, &region));
    float *gradients = bel_shm_region_memory(region);
    for (int64_t i = 0; i < layout->size; i++)
        gradients[i] = (float)(i % 17) * 1e-3f;
    bel_doorbell *bell = bel_doorbell_create();
    reader r = {0};
    BEL_TRY(bel_space_create(layout, 2, &r.space));
    const bel_client_config config = {.worker = worker,
                                      .layout = layout,
                                      .assignment = assignment,
                                      .lanes = &r.lane,
                                      .space = r.space,
                                      .attach = over_grpc ? NULL : attach,
                                      .attach_context = &r,
                                      .bell = bell,
                                      .stall_timeout_secs = PATIENCE_SECS};
    bel_client *client = bel_client_create(&config);
    bel_client_peer peer = {client, 0};
    BEL_TRY(over_grpc ? connect_grpc(&r, &peer, path, worker, bell)
                      : connect_shm(&r, path, worker, bell, region));
    BEL_TRY(bel_client_pull(client, 0));
    double *times = bel_xcalloc((size_t)steps + 1, sizeof *times);
    int64_t begun = bel_clock_ns();
    for (int64_t number = 0; number <= steps; number++) {
        BEL_TRY(step(client, worker, gradients, number));
        times[number] = ms_since(&begun);
    }
    if (worker == 0) printf("%.3f\n", bench_median(times + WARM, (int)(steps + 1 - WARM)));
    return NULL;
}

// --- Bare arithmetic -----------------------------------------------------------------------------

typedef struct update {
    const float *gradients[WORKERS], *values;
    float *new_values, *velocity; // velocity NULL: SGD
} update;

static void run_tile(void *context, int64_t tile)
{
    const update *b = context;
    int64_t first = tile << 17, end = first + (1 << 17);
    if (end > layout->size) end = layout->size;
    const float *x = b->gradients[0] + first, *y = b->gradients[1] + first;
    const bench_bare *bare = bench_bare_get();
    if (b->velocity == NULL) {
        bare->sgd(x, y, end - first, 0.01f, b->values + first, b->new_values + first);
    } else {
        bare->momentum(x, y, end - first, 0.01f, 0.9f, b->values + first, b->new_values + first,
                       b->velocity + first);
    }
}

static double time_bare(void)
{
    float *arrays[5];
    for (int i = 0; i < 5; i++) {
        check(bel_space_array(layout, "bare", &arrays[i]));
        for (int64_t k = 0; k < layout->size; k++)
            arrays[i][k] = 1e-3f;
    }
    bel_team *team;
    check(bel_team_create(bel_available_cores(), &team));
    double *times = bel_xcalloc((size_t)steps, sizeof *times);
    int64_t begun = bel_clock_ns();
    for (int64_t number = 0; number < steps; number++) {
        update u = {.gradients = {arrays[0], arrays[1]},
                    .values = arrays[2 + number % 2],
                    .new_values = arrays[3 - number % 2],
                    .velocity = optimizer.kind == BEL_OPTIMIZER_MOMENTUM ? arrays[4] : NULL};
        bel_team_run(team, run_tile, &u, (layout->size + (1 << 17) - 1) >> 17);
        times[number] = ms_since(&begun);
    }
    double ms = bench_median(times + WARM, (int)(steps - WARM));
    bel_team_destroy(team);
    for (int i = 0; i < 5; i++)
        bel_space_free_array(layout, arrays[i]);
    bel_free(times);
    return ms;
}

// --- The run -------------------------------------------------------------------------------------

static pid_t start(bel_status *(*body)(const char *, int), const char *path, int argument, int out)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    dup2(out, STDOUT_FILENO);
    alarm(PATIENCE_SECS);
    check(body(path, argument));
    fflush(stdout);
    _exit(0);
}

static bel_status *run_shard(const char *path, int argument)
{
    (void)argument;
    return serve(path);
}

static double time_processes(void)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    int ends[2];
    if (mkdtemp(folder) == NULL || pipe(ends) != 0) exit(1);
    char *path = bel_path_join(folder, "shard");
    pid_t children[1 + WORKERS] = {start(run_shard, path, 0, ends[1])};
    for (int w = 0; w < WORKERS; w++)
        children[1 + w] = start(run_worker, path, w, ends[1]);
    for (int w = 0; w < WORKERS; w++)
        waitpid(children[1 + w], NULL, 0);
    kill(children[0], SIGTERM);
    waitpid(children[0], NULL, 0);
    close(ends[1]);
    char text[64] = "";
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    (void)remove(path);
    (void)rmdir(folder);
    bel_free(path);
    return got > 0 ? strtod(text, NULL) : -1;
}

static void compare(double millions, int rounds)
{
    double ours[MOST_ROUNDS], prototype[MOST_ROUNDS], bare[MOST_ROUNDS];
    bool sgd = optimizer.kind == BEL_OPTIMIZER_SGD;
    for (int r = 0; r < rounds; r++) {
        ours[r] = time_processes();
        check(bench_ps_step_bare(layout->size, !sgd, WARM, steps - WARM, &prototype[r]));
        bare[r] = time_bare(); // its threads end with it: the next round forks
    }
    bench_spread over_prototype = bench_ratio_of(ours, prototype, rounds);
    bench_spread over_bare = bench_ratio_of(ours, bare, rounds);
    printf("%.4g M parameters, %s, %d chunks, %s: %.2f ms a step; prototype in place %.2f ms, "
           "ratio %.2f [%.2f, %.2f]; bare arithmetic %.2f ms, ratio %.2f [%.2f, %.2f]\n",
           millions, sgd ? "SGD" : "momentum", layout->chunk_count,
           over_grpc ? "gRPC" : "shared memory", bench_median(ours, rounds),
           bench_median(prototype, rounds), over_prototype.median, over_prototype.low,
           over_prototype.high, bench_median(bare, rounds), over_bare.median, over_bare.low,
           over_bare.high);
    const char *rule = sgd ? "sgd" : "momentum", *lane = over_grpc ? "grpc" : "shm";
    bench_figuref(&over_prototype, "ps_step.%.4gM.%s.%s", millions, rule, lane);
    bench_figuref(&over_bare, "ps_step.%.4gM.%s.%s.arithmetic", millions, rule, lane);
}

int main(int count, char **arguments)
{
    double millions = count > 1 ? strtod(arguments[1], NULL) : 10;
    if (count > 2 && strcmp(arguments[2], "momentum") == 0) {
        optimizer.kind = BEL_OPTIMIZER_MOMENTUM;
        optimizer.momentum = 0.9;
    }
    if (count > 3) steps = strtoll(arguments[3], NULL, 10);
    over_grpc = count > 4 && strcmp(arguments[4], "grpc") == 0;
    int rounds = count > 5 ? (int)strtol(arguments[5], NULL, 10) : 5;
    if (rounds < 1 || rounds > MOST_ROUNDS || steps <= WARM) {
        fprintf(stderr, "bench_ps_step: 1 to %d rounds, more than %d steps\n", MOST_ROUNDS, WARM);
        return 2;
    }
    check(bel_optimizer_check(&optimizer));
    make_layout((int64_t)(millions * 1e6));
    compare(millions, rounds);
    return 0;
}
