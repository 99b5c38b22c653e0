// The grpc lane between two processes: payload GB/s one way and CPU seconds per GB of both ends,
// over a unix socket and over TCP on the loopback, and the time of one exchange of small frames.
// Also over TLS with the files of `belfry certs FOLDER`, in turns with plain TCP.
// usage: bench_lane [ROUNDS [FOLDER]]. bench/README.md has the figures of bare gRPC beside it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "figures.h"
#include "mlp.h"
#include "transport/streams/stream_lane.h"

enum { FRAME_BYTES = 4 << 20, FRAMES = 256, CAPACITY = 16, EXCHANGES = 2000, WARM = 16 };
enum { MOST_ROUNDS = 32 };

static char *landing; // destination of payloads
static struct {
    char *ca, *certificate, *key; // NULL: without TLS
} tls;

static void *place(void *context, const bel_frame *frame)
{
    (void)context;
    return frame->payload_bytes <= FRAME_BYTES ? landing : NULL;
}

typedef struct side {
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    bel_lane *lane;
} side;

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)hello;
    *out_lane = ((side *)context)->lane;
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find, context, out_events);
}

static bel_status *open_side(side *s, const char *listen, const char *connect)
{
    bel_endpoint_config config = {.listen_address = listen,
                                  .secret = "",
                                  .tls_ca = tls.ca,
                                  .tls_certificate = tls.certificate,
                                  .tls_key = tls.key,
                                  .accept = accept_stream,
                                  .context = s};
    BEL_TRY(bel_endpoint_create(&config, &s->endpoint));
    s->bell = bel_doorbell_create();
    bel_stream_lane_config lane = {.capacity = CAPACITY, .bell = s->bell, .place = place};
    s->lane = connect == NULL
                  ? bel_stream_lane_create(s->endpoint, &lane)
                  : bel_stream_lane_connect(s->endpoint, connect, &(bel_lane_hello){0}, &lane);
    return NULL;
}

static void close_side(side *s)
{
    bel_lane_close(s->lane);
    bel_endpoint_destroy(s->endpoint);
    bel_doorbell_destroy(s->bell);
}

static bel_frame receive(side *s)
{
    bel_frame frame;
    while (!bel_lane_receive(s->lane, &frame))
        (void)bel_doorbell_wait(s->bell, bel_clock_ns() + 1000000000);
    return frame;
}

static bel_status *send_frame(side *s, int number, size_t bytes)
{
    bel_frame frame = {
        .kind = 1, .fields = {(uint8_t)number}, .payload = landing, .payload_bytes = bytes};
    for (;;) {
        bel_status *status = bel_lane_send(s->lane, &frame);
        if (bel_status_code(status) != BEL_RESOURCE_EXHAUSTED) return status;
        bel_status_ignore(status); // full: the peer signals free room
        (void)bel_doorbell_wait(s->bell, bel_clock_ns() + 50000);
    }
}

// Child process: sends large frames, or answers small ones.
static bel_status *play_child(const char *address, bool bulk)
{
    side s = {0};
    BEL_TRY(open_side(&s, NULL, address));
    for (int i = 0; bulk && i < WARM + FRAMES; i++)
        BEL_TRY(send_frame(&s, i, FRAME_BYTES));
    for (int i = 0; !bulk && i < WARM + EXCHANGES; i++) {
        (void)receive(&s);
        BEL_TRY(send_frame(&s, i, 64));
    }
    (void)receive(&s); // the parent has received everything
    close_side(&s);
    return NULL;
}

static double cpu_seconds(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Measures seconds of the frames or exchanges after the first few.
static bel_status *measure(side *s, bool bulk, double *out_seconds)
{
    int count = WARM + (bulk ? FRAMES : EXCHANGES);
    int64_t begun = 0;
    for (int i = 0; i < count; i++) {
        if (i == WARM) begun = bel_clock_ns();
        if (!bulk) BEL_TRY(send_frame(s, i, 64));
        (void)receive(s);
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    return send_frame(s, 0, 64);
}

// Runs two processes, started before gRPC, which does not survive a fork. The parent of a round is
// a child itself, so that each round counts its processor time separately.
static bel_status *play_round(const char *listen, bool bulk, int result)
{
    int addresses[2];
    if (pipe(addresses) != 0) return BEL_ERR(BEL_INTERNAL, "pipe");
    pid_t child = fork();
    if (child == 0) {
        char address[256] = "";
        if (read(addresses[0], address, sizeof address - 1) <= 0) _exit(1);
        _exit(bench_end(play_child(address, bulk)));
    }
    side s = {0};
    double numbers[2];
    BEL_TRY(open_side(&s, listen, NULL));
    const char *address = bel_endpoint_address(s.endpoint);
    if (write(addresses[1], address, strlen(address)) < 0) return BEL_ERR(BEL_INTERNAL, "pipe");
    BEL_TRY(measure(&s, bulk, &numbers[0]));
    close_side(&s);
    waitpid(child, NULL, 0);
    numbers[1] = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
    return write(result, numbers, sizeof numbers) == (ssize_t)sizeof numbers
               ? NULL
               : BEL_ERR(BEL_INTERNAL, "pipe");
}

static bool run_round(const char *listen, bool bulk, double out_numbers[2])
{
    int result[2];
    if (pipe(result) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) _exit(bench_end(play_round(listen, bulk, result[1])));
    bool good = read(result[0], out_numbers, 2 * sizeof(double)) == 2 * sizeof(double);
    waitpid(pid, NULL, 0);
    close(result[0]);
    close(result[1]);
    return good;
}

static int run(const char *name, const char *listen, int rounds)
{
    const double gb = (double)FRAMES * FRAME_BYTES * 1e-9;
    const double all_gb = (double)(FRAMES + WARM) * FRAME_BYTES * 1e-9;
    double gbps[MOST_ROUNDS], cpu[MOST_ROUNDS], us[MOST_ROUNDS], numbers[2];
    for (int i = 0; i < rounds; i++) {
        if (!run_round(listen, true, numbers)) return 1;
        gbps[i] = gb / numbers[0];
        cpu[i] = numbers[1] / all_gb;
        if (!run_round(listen, false, numbers)) return 1;
        us[i] = numbers[0] * 1e6 / EXCHANGES;
    }
    printf("{\"bench\":\"lane\",\"over\":\"%s\",\"gb_per_second\":%.2f,\"cpu_seconds_per_gb\":%.2f,"
           "\"exchange_us\":%.0f}\n",
           name, bench_median(gbps, rounds), bench_median(cpu, rounds), bench_median(us, rounds));
    fflush(stdout);
    return 0;
}

// Runs plain TCP and TLS in turns.
static int compare_tls(const char *folder, int rounds)
{
    double ratios[MOST_ROUNDS], plain[2], secured[2];
    char *ca = bel_path_join(folder, "ca.pem"), *certificate = bel_path_join(folder, "host.pem"),
         *key = bel_path_join(folder, "host.key");
    bool good = true;
    for (int i = 0; i < rounds && good; i++) {
        good = run_round("127.0.0.1:0", true, plain);
        tls.ca = ca;
        tls.certificate = certificate;
        tls.key = key;
        good = good && run_round("127.0.0.1:0", true, secured);
        tls.ca = tls.certificate = tls.key = NULL;
        ratios[i] = plain[0] / secured[0];
    }
    if (good) {
        bench_spread ratio = bench_spread_of(ratios, rounds);
        printf("{\"bench\":\"lane\",\"over\":\"tcp, tls over plain\",\"ratio\":%.3f,"
               "\"quartiles\":[%.3f,%.3f]}\n",
               ratio.median, ratio.low, ratio.high);
        bench_figure("lane.tls", &ratio);
    }
    bel_free(ca);
    bel_free(certificate);
    bel_free(key);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    landing = bel_xcalloc(FRAME_BYTES, 1);
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return 1;
    char *address = bel_strf("unix:%s/lane", folder);
    int failed = run("unix", address, rounds) + run("tcp", "127.0.0.1:0", rounds);
    if (argc > 2) failed += compare_tls(argv[2], rounds);
    bel_free(address);
    rmdir(folder);
    return failed;
}
