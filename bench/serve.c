// belfry serve beside the least that civetweb takes: REST requests of one example over kept
// connections of the loopback, two clients in this process. The bare handler reads the same body
// and sends as many bytes as the model's answer. Rounds alternate; the ratio of rates belongs to a
// round. Then the 99th percentile of a request's time while the version is exchanged every second,
// over that without, also in turns. With ORT_DIR (ort.h) the first part is the same server with
// onnxruntime's runs instead of the predictor's, in turns with it.
// The export is a model of one input x [N, 64]; bench/serve makes it.
//   bench_serve EXPORT_DIR [ROUNDS [SECONDS]]
#define _XOPEN_SOURCE 700 // realpath
#include <arpa/inet.h>
#include <civetweb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_sched.h"
#include "base/str.h"
#include "base/thread.h"
#include "figures.h"
#include "serve/server.h"
#include "serve_ort.h"

enum { CLIENTS = 2, INPUTS = 64, MOST_ROUNDS = 101, MOST_TIMES = 1 << 20, ANSWER = 1 << 14 };

// --- Clients ------------------------------------------------------------------------------------

typedef struct client {
    const bel_str *request;
    int file;
    int64_t end_ns;
    double *times_us;
    int count;
    double spent_us;     // processor time of the client
    size_t answer_bytes; // the size of the last body
} client;

static int connect_to(int port)
{
    const int yes = 1;
    int file = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bench_expect(file >= 0 && connect(file, (const struct sockaddr *)&to, sizeof to) == 0,
                 "connect");
    (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return file;
}

// Sends the request and reads the whole answer.
static void exchange(client *c)
{
    static const char field[] = "Content-Length: ";
    char text[ANSWER];
    size_t got = 0, whole = SIZE_MAX;
    bench_expect(write(c->file, c->request->text, c->request->length) ==
                     (ssize_t)c->request->length,
                 "write");
    while (got < whole) {
        ssize_t more = read(c->file, text + got, sizeof text - 1 - got);
        bench_expect(more > 0, "the connection ended");
        got += (size_t)more;
        text[got] = '\0';
        const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, field);
        if (whole != SIZE_MAX || body == NULL) continue;
        bench_expect(strncmp(text, "HTTP/1.1 200", 12) == 0 && length != NULL, text);
        c->answer_bytes = strtoull(length + sizeof field - 1, NULL, 10);
        whole = (size_t)(body + 4 - text) + c->answer_bytes;
    }
}

static void *run_client(void *argument)
{
    client *c = argument;
    int64_t now = bel_clock_ns();
    for (c->count = 0; now < c->end_ns && c->count < MOST_TIMES; c->count++) {
        exchange(c);
        int64_t after = bel_clock_ns();
        c->times_us[c->count] = (double)(after - now) * 1e-3;
        now = after;
    }
    c->spent_us = (double)bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-3;
    return NULL;
}

typedef struct load {
    double rate, p99_us, work_us, server_us; // processor time of a request, with the client's and
                                             // without
    size_t answer_bytes;
} load;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static load run_load(int port, const bel_str *request, double seconds)
{
    static double times[CLIENTS][MOST_TIMES], all[CLIENTS * MOST_TIMES];
    client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    int64_t begun = bel_clock_ns();
    double worked = bench_processor_seconds();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.request = request,
                              .file = connect_to(port),
                              .end_ns = begun + (int64_t)(seconds * 1e9),
                              .times_us = times[i]};
        bench_check(bel_thread_start(&threads[i], run_client, &clients[i]));
    }
    int count = 0;
    double clients_us = 0;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        clients_us += clients[i].spent_us;
        close(clients[i].file);
        memcpy(all + count, times[i], (size_t)clients[i].count * sizeof *all);
        count += clients[i].count;
    }
    double spent = (double)(bel_clock_ns() - begun) * 1e-9;
    worked = bench_processor_seconds() - worked;
    qsort(all, (size_t)count, sizeof *all, by_value);
    return (load){count / spent, all[(count - 1) * 99 / 100], worked * 1e6 / count,
                  (worked * 1e6 - clients_us) / count, clients[0].answer_bytes};
}

static bel_str make_request(const char *path)
{
    bel_str body = {0}, request = {0};
    bel_str_puts(&body, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,64],"
                        "\"data\":[");
    for (int i = 0; i < INPUTS; i++)
        bel_str_printf(&body, "%s%d", i > 0 ? "," : "", i * 7 % 17);
    bel_str_puts(&body, "]}]}");
    bel_str_printf(&request, "POST %s HTTP/1.1\r\nHost: b\r\nContent-Length: %zu\r\n\r\n%s", path,
                   body.length, body.text);
    bel_str_deinit(&body);
    return request;
}

// --- The bare server ----------------------------------------------------------------------------

static size_t bare_bytes = 1; // the size of its answer

static int answer_bare(struct mg_connection *connection, void *user)
{
    char body[ANSWER], text[ANSWER];
    (void)user;
    bench_expect(mg_read(connection, body, sizeof body) > 0, "the body is absent");
    int head = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\nCache-Control: no-cache\r\n\r\n",
                        bare_bytes);
    memset(text + head, 'x', bare_bytes);
    mg_write(connection, text, (size_t)head + bare_bytes);
    return 200;
}

static int start_bare(struct mg_context **out_context)
{
    const char *options[] = {"listening_ports",
                             "127.0.0.1:0",
                             "num_threads",
                             "8",
                             "enable_keep_alive",
                             "yes",
                             "keep_alive_timeout_ms",
                             "60000",
                             "tcp_nodelay",
                             "1",
                             NULL};
    struct mg_server_port port = {0};
    *out_context = mg_start(NULL, NULL, options);
    bench_expect(*out_context != NULL && mg_get_server_ports(*out_context, 1, &port) == 1,
                 "mg_start");
    mg_set_request_handler(*out_context, "/", answer_bare, NULL);
    return port.port;
}

// --- Versions -----------------------------------------------------------------------------------

typedef struct swapper {
    bel_models *models;
    const char *folder, *export;
    _Atomic bool ends;
    int number;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} swapper;

static void put_version(swapper *s, int number)
{
    char *path = bel_strf("%s/%d", s->folder, number);
    bench_expect(symlink(s->export, path) == 0, "symlink");
    bel_free(path);
}

static void *swap_each_second(void *argument)
{
    swapper *s = argument;
    bel_linux_give_way(); // as the verb's thread
    pthread_mutex_lock(&s->mutex);
    while (!atomic_load(&s->ends)) {
        put_version(s, ++s->number);
        bel_models_scan(s->models);
        char *before = bel_strf("%s/%d", s->folder, s->number - 1);
        (void)unlink(before);
        bel_free(before);
        (void)bel_cond_wait_until(&s->wake, &s->mutex, bel_clock_ns() + 1000000000);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static load run_swapping(swapper *s, int port, const bel_str *request, double seconds)
{
    pthread_t thread;
    atomic_store(&s->ends, false);
    bench_check(bel_thread_start(&thread, swap_each_second, s));
    load result = run_load(port, request, seconds);
    atomic_store(&s->ends, true);
    pthread_cond_signal(&s->wake);
    pthread_join(thread, NULL);
    return result;
}

// Processor time of a run of the model in one thread, with the predictors of all slots in turns.
static double time_run(const bel_models *models)
{
    enum { RUNS = 20000, WARM = 100 };
    float x[INPUTS];
    bel_model *model = bel_models_at(models, 0);
    bel_served *version = bel_model_acquire(model, -1);
    const bel_tensor in = {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(1, INPUTS), .data = x};
    double begun = 0;
    for (int i = 0; i < INPUTS; i++)
        x[i] = (float)(i * 7 % 17);
    for (int r = 0; r < WARM + RUNS; r++) {
        bel_predictor *p = bel_served_predictor(version, r % version->slot_count, 0);
        if (r == WARM) begun = bench_processor_seconds();
        bench_check(bel_predictor_bind(p, 0, &in));
        bench_check(bel_predictor_run(p));
    }
    double spent = bench_processor_seconds() - begun;
    bel_model_release(model, version);
    return spent * 1e6 / RUNS;
}

// --- The rows -----------------------------------------------------------------------------------

static void print_ratio(const char *name, const char *text, double *values, int rounds)
{
    bench_spread spread = bench_spread_of(values, rounds);
    printf("%s: ratio %.3f [%.3f, %.3f], %d rounds\n", text, spread.median, spread.low, spread.high,
           rounds);
    bench_figure(name, &spread);
}

// The server with both runs in turns, if onnxruntime is there.
static void measure_ort(const swapper *s, int port, int rounds, double seconds)
{
    double rates[2][MOST_ROUNDS], works[2][MOST_ROUNDS], runs[2][MOST_ROUNDS],
        servers[2][MOST_ROUNDS];
    bel_model *model = bel_models_at(s->models, 0);
    bel_served *version = bel_model_acquire(model, -1);
    bel_str request = make_request("/v2/models/digits/infer");
    int count = bench_serve_ort_load(s->export, version) ? rounds : 0;
    for (int r = 0; r < 2 * count; r++) {
        bench_serve_ort_use(r % 2 == 1);
        if (r < 2) (void)run_load(port, &request, 0.3); // a warm-up
        load l = run_load(port, &request, seconds);
        rates[r % 2][r / 2] = l.rate;
        works[r % 2][r / 2] = l.work_us;
        servers[r % 2][r / 2] = l.server_us;
        runs[r % 2][r / 2] = time_run(s->models);
    }
    bench_serve_ort_use(false);
    bel_str_deinit(&request);
    bel_model_release(model, version);
    if (count == 0) return;
    bench_spread rate = bench_ratio_of(rates[0], rates[1], count);
    bench_spread work = bench_ratio_of(works[1], works[0], count);
    bench_spread server = bench_ratio_of(servers[1], servers[0], count);
    bench_spread run = bench_ratio_of(runs[1], runs[0], count);
    printf("with Belfry's runs %.0f requests/s, with onnxruntime's %.0f: ratio %.3f [%.3f, %.3f]\n",
           bench_median(rates[0], count), bench_median(rates[1], count), rate.median, rate.low,
           rate.high);
    bench_figure("serve.ort", &rate);
    printf("processor time of a request with its client: %.1f us, %.1f us: ratio %.3f [%.3f, "
           "%.3f]\n",
           bench_median(works[0], count), bench_median(works[1], count), work.median, work.low,
           work.high);
    bench_figure("serve.ort.work", &work);
    printf("the server's: %.1f us, %.1f us: ratio %.3f [%.3f, %.3f]\n",
           bench_median(servers[0], count), bench_median(servers[1], count), server.median,
           server.low, server.high);
    bench_figure("serve.ort.server", &server);
    printf("a run of the model: %.2f us, %.2f us: ratio %.3f [%.3f, %.3f]\n",
           bench_median(runs[0], count), bench_median(runs[1], count), run.median, run.low,
           run.high);
    bench_figure("serve.ort.run", &run);
}

static void measure(swapper *s, int port, int rounds, double seconds)
{
    double rates[MOST_ROUNDS], tails[MOST_ROUNDS], served[MOST_ROUNDS], bare[MOST_ROUNDS],
        calm[MOST_ROUNDS], swapping[MOST_ROUNDS], works[MOST_ROUNDS], served_us[MOST_ROUNDS],
        bare_us[MOST_ROUNDS], others[MOST_ROUNDS];
    struct mg_context *context;
    bel_str request = make_request("/v2/models/digits/infer");
    int bare_port = start_bare(&context);
    bare_bytes = run_load(port, &request, 0.3).answer_bytes; // also a warm-up
    (void)run_load(bare_port, &request, 0.3);
    for (int r = 0; r < rounds; r++) {
        load a = run_load(port, &request, seconds), b = run_load(bare_port, &request, seconds);
        load c = run_swapping(s, port, &request, seconds < 3 ? 3 : seconds);
        load d = run_load(port, &request, seconds < 3 ? 3 : seconds);
        served[r] = a.rate;
        bare[r] = b.rate;
        calm[r] = d.p99_us;
        swapping[r] = c.p99_us;
        rates[r] = a.rate / b.rate;
        works[r] = b.work_us / a.work_us;
        served_us[r] = a.work_us;
        others[r] = b.work_us / (a.work_us - time_run(s->models));
        bare_us[r] = b.work_us;
        tails[r] = c.p99_us / d.p99_us;
    }
    printf("%zu bytes in, %zu bytes of body out, %d connections\n", request.length, bare_bytes,
           CLIENTS);
    printf("belfry serve %.0f requests/s, bare civetweb %.0f\n", bench_median(served, rounds),
           bench_median(bare, rounds));
    print_ratio("serve.rest", "rate over bare civetweb", rates, rounds);
    printf("processor time of a request with its client: %.1f us, bare %.1f us\n",
           bench_median(served_us, rounds), bench_median(bare_us, rounds));
    print_ratio("serve.rest.work", "bare civetweb's processor time over it", works, rounds);
    printf("a run of the model: %.1f us\n", time_run(s->models));
    print_ratio("serve.rest.others", "the same without the model's run", others, rounds);
    printf("p99 %.0f us, %.0f us while a version is exchanged each second\n",
           bench_median(calm, rounds), bench_median(swapping, rounds));
    print_ratio("serve.swap", "p99 while versions are exchanged", tails, rounds);
    mg_stop(context);
    bel_str_deinit(&request);
}

int main(int count, char **words)
{
    bench_expect(count >= 2, "usage: bench_serve EXPORT_DIR [ROUNDS [SECONDS]]");
    int rounds = count > 2 ? (int)strtol(words[2], NULL, 10) : 5;
    double seconds = count > 3 ? strtod(words[3], NULL) : 2;
    bench_expect(rounds >= 1 && rounds <= MOST_ROUNDS, "ROUNDS is 1 to 101");
    char folder[] = "/tmp/bench_serve_XXXXXX";
    bench_expect(mkdtemp(folder) != NULL, "mkdtemp");
    char *export = realpath(words[1], NULL);
    bench_expect(export != NULL, words[1]);
    swapper s = {.folder = folder, .export = export, .number = 1};
    pthread_mutex_init(&s.mutex, NULL);
    bel_cond_init(&s.wake);
    int cores = bel_available_cores();
    (void)bel_log_set_level(BEL_LOG_WARN);
    s.models =
        bel_models_create(&(bel_models_config){.slot_count = cores, .max_batch = 1, .keep = 1});
    put_version(&s, s.number);
    bench_check(bel_models_add(s.models, folder, "digits"));
    const bel_server_config config = {.address = "127.0.0.1",
                                      .service = {.slots = cores,
                                                  .queue = 64,
                                                  .max_batch = 1,
                                                  .max_examples = 65536,
                                                  .most_body = 1 << 20,
                                                  .wait_ms = 30000},
                                      .idle_ms = 60000,
                                      .grpc_port = -1,
                                      .connections = 8};
    bel_server *server;
    bench_check(bel_server_start(&config, s.models, &server));
    measure_ort(&s, bel_server_port(server), rounds, seconds);
    measure(&s, bel_server_port(server), rounds, seconds);
    (void)bel_server_stop(server, 1000);
    bel_models_destroy(s.models);
    char *last = bel_strf("%s/%d", folder, s.number);
    (void)unlink(last);
    (void)rmdir(folder);
    bel_free(last);
    free(export);
    return 0;
}
