// belfry serve over gRPC beside the least that gRPC's C core takes: ModelInfer of one example with
// raw contents over two connections of the loopback, clients in this process. The bare server sends
// as many bytes as the model's answer, without reading the message. Rounds alternate; the ratio of
// rates belongs to a round.
// The export is a model of one input x [N, 64]; bench/serve makes it.
//   bench_serve_grpc EXPORT_DIR [ROUNDS [SECONDS]]
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "figures.h"
#include "inference.pb-c.h"
#include "serve/server.h"

enum { CLIENTS = 2, INPUTS = 64, MOST_ROUNDS = 101, BARE_THREADS = 4, REQUESTED = 4 };

#define METHOD "/inference.GRPCInferenceService/ModelInfer"

// --- Clients ------------------------------------------------------------------------------------

typedef struct client {
    const bel_str *request;
    grpc_channel *channel;
    grpc_completion_queue *queue;
    int64_t end_ns;
    int count;
    size_t answer_bytes; // the last answer has
} client;

// Sends the request and waits for the answer.
static void exchange(client *c)
{
    grpc_slice method = grpc_slice_from_static_string(METHOD), details;
    grpc_slice bytes = grpc_slice_from_static_buffer(c->request->text, c->request->length);
    grpc_call *call =
        grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->queue, method, NULL,
                                 gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&bytes, 1), *answer = NULL;
    grpc_metadata_array initial, trailing;
    grpc_status_code status;
    grpc_metadata_array_init(&initial);
    grpc_metadata_array_init(&trailing);
    grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA,
                       .data.recv_initial_metadata.recv_initial_metadata = &initial},
                      {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &answer},
                      {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                       .data.recv_status_on_client = {.trailing_metadata = &trailing,
                                                      .status = &status,
                                                      .status_details = &details}}};
    bench_expect(grpc_call_start_batch(call, ops, 6, c, NULL) == GRPC_CALL_OK,
                 "grpc_call_start_batch");
    grpc_event event =
        grpc_completion_queue_next(c->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    bench_expect(event.type == GRPC_OP_COMPLETE && status == GRPC_STATUS_OK && answer != NULL,
                 "a call has failed");
    c->answer_bytes = grpc_byte_buffer_length(answer);
    grpc_byte_buffer_destroy(answer);
    grpc_byte_buffer_destroy(message);
    grpc_metadata_array_destroy(&initial);
    grpc_metadata_array_destroy(&trailing);
    grpc_slice_unref(details);
    grpc_call_unref(call);
}

static void *run_client(void *argument)
{
    client *c = argument;
    for (c->count = 0; bel_clock_ns() < c->end_ns; c->count++)
        exchange(c);
    return NULL;
}

static void open_client(client *c, int port, const bel_str *request)
{
    grpc_arg list[] = {{.type = GRPC_ARG_INTEGER, .value.integer = 1},
                       {.type = GRPC_ARG_INTEGER, .value.integer = 0}};
    static char pool[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, proxy[] = GRPC_ARG_ENABLE_HTTP_PROXY;
    list[0].key = pool;
    list[1].key = proxy;
    const grpc_channel_args args = {2, list};
    char *where = bel_strf("127.0.0.1:%d", port);
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    *c = (client){.request = request,
                  .channel = grpc_channel_create(where, credentials, &args),
                  .queue = grpc_completion_queue_create_for_next(NULL)};
    grpc_channel_credentials_release(credentials);
    bel_free(where);
}

static void close_client(client *c)
{
    grpc_channel_destroy(c->channel);
    grpc_completion_queue_shutdown(c->queue);
    while (grpc_completion_queue_next(c->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(c->queue);
}

// Returns requests a second. *out_work_us is the processor time of a request, with the client's.
static double run_load(int port, const bel_str *request, double seconds, size_t *out_bytes,
                       double *out_work_us)
{
    client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    int count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        open_client(&clients[i], port, request);
        exchange(&clients[i]); // connects
    }
    int64_t begun = bel_clock_ns();
    double worked = bench_processor_seconds();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].end_ns = begun + (int64_t)(seconds * 1e9);
        bench_check(bel_thread_start(&threads[i], run_client, &clients[i]));
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        count += clients[i].count;
    }
    double rate = count / ((double)(bel_clock_ns() - begun) * 1e-9);
    *out_work_us = (bench_processor_seconds() - worked) * 1e6 / count;
    *out_bytes = clients[0].answer_bytes;
    for (int i = 0; i < CLIENTS; i++)
        close_client(&clients[i]);
    return rate;
}

static bel_str make_request(void)
{
    float x[INPUTS];
    int64_t shape[] = {1, INPUTS};
    char model[] = "digits", name[] = "x", type[] = "FP32";
    for (int i = 0; i < INPUTS; i++)
        x[i] = (float)(i * 7 % 17);
    Inference__ModelInferRequest__InferInputTensor input;
    Inference__ModelInferRequest__InferInputTensor *inputs[] = {&input};
    Inference__ModelInferRequest request;
    ProtobufCBinaryData raw = {sizeof x, (uint8_t *)x};
    inference__model_infer_request__infer_input_tensor__init(&input);
    inference__model_infer_request__init(&request);
    input.name = name;
    input.datatype = type;
    input.n_shape = 2;
    input.shape = shape;
    request.model_name = model;
    request.n_inputs = request.n_raw_input_contents = 1;
    request.inputs = inputs;
    request.raw_input_contents = &raw;
    bel_str bytes = {0};
    size_t size = inference__model_infer_request__get_packed_size(&request);
    bytes.length =
        inference__model_infer_request__pack(&request, (uint8_t *)bel_str_room(&bytes, size));
    return bytes;
}

// --- The bare server ----------------------------------------------------------------------------

static size_t bare_bytes = 1; // the size of its answer

typedef struct bare {
    grpc_server *server;
    grpc_completion_queue *queue;
    void *method;
    pthread_t threads[BARE_THREADS];
} bare;

// Tag of a requested call, then of its end.
typedef struct bare_call {
    bool answered;
    grpc_call *call;
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_byte_buffer *received;
    int cancelled;
} bare_call;

static void request_bare(bare *b)
{
    bare_call *c = bel_xcalloc(1, sizeof *c);
    grpc_metadata_array_init(&c->metadata);
    bench_expect(grpc_server_request_registered_call(b->server, b->method, &c->call, &c->deadline,
                                                     &c->metadata, &c->received, b->queue, b->queue,
                                                     c) == GRPC_CALL_OK,
                 "grpc_server_request_registered_call");
}

static void answer_bare(bare *b, bare_call *c)
{
    request_bare(b);
    grpc_slice bytes = grpc_slice_malloc(bare_bytes), details = grpc_empty_slice();
    memset(GRPC_SLICE_START_PTR(bytes), 'x', bare_bytes);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&bytes, 1);
    grpc_op ops[4] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &c->cancelled},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
         .data.send_status_from_server = {.status = GRPC_STATUS_OK, .status_details = &details}}};
    c->answered = true;
    bench_expect(grpc_call_start_batch(c->call, ops, 4, c, NULL) == GRPC_CALL_OK, "an answer");
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(bytes);
}

static void *run_bare(void *argument)
{
    bare *b = argument;
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(b->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        bare_call *c = event.tag;
        if (c == NULL) {
            grpc_completion_queue_shutdown(b->queue); // the server's shutdown
        } else if (event.success && !c->answered) {
            answer_bare(b, c);
        } else {
            if (c->call != NULL) grpc_call_unref(c->call);
            if (c->received != NULL) grpc_byte_buffer_destroy(c->received);
            grpc_metadata_array_destroy(&c->metadata);
            bel_free(c);
        }
    }
}

static int start_bare(bare *b)
{
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    b->server = grpc_server_create(NULL, NULL);
    b->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(b->server, b->queue, NULL);
    b->method = grpc_server_register_method(b->server, METHOD, NULL,
                                            GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    int port = grpc_server_add_http2_port(b->server, "127.0.0.1:0", credentials);
    grpc_server_credentials_release(credentials);
    bench_expect(port != 0, "the bare server cannot listen");
    grpc_server_start(b->server);
    for (int i = 0; i < REQUESTED; i++)
        request_bare(b);
    for (int i = 0; i < BARE_THREADS; i++)
        bench_check(bel_thread_start(&b->threads[i], run_bare, b));
    return port;
}

static void stop_bare(bare *b)
{
    grpc_server_shutdown_and_notify(b->server, b->queue, NULL);
    grpc_server_cancel_all_calls(b->server);
    for (int i = 0; i < BARE_THREADS; i++)
        pthread_join(b->threads[i], NULL);
    grpc_server_destroy(b->server);
    grpc_completion_queue_destroy(b->queue);
}

// --- The row ------------------------------------------------------------------------------------

static void measure(int port, int rounds, double seconds)
{
    double served[MOST_ROUNDS], echoed[MOST_ROUNDS], served_us[MOST_ROUNDS], echoed_us[MOST_ROUNDS];
    bare b;
    size_t ignored;
    bel_str request = make_request();
    int bare_port = start_bare(&b);
    (void)run_load(port, &request, 0.3, &bare_bytes, &served_us[0]); // also a warm-up
    (void)run_load(bare_port, &request, 0.3, &ignored, &echoed_us[0]);
    for (int r = 0; r < rounds; r++) {
        served[r] = run_load(port, &request, seconds, &ignored, &served_us[r]);
        echoed[r] = run_load(bare_port, &request, seconds, &ignored, &echoed_us[r]);
    }
    stop_bare(&b);
    bench_spread spread = bench_ratio_of(served, echoed, rounds);
    printf("gRPC: %zu bytes in, %zu bytes out, %d connections\n", request.length, bare_bytes,
           CLIENTS);
    printf("belfry serve %.0f calls/s, bare C core %.0f\n", bench_median(served, rounds),
           bench_median(echoed, rounds));
    printf("rate over the bare C core: ratio %.3f [%.3f, %.3f], %d rounds\n", spread.median,
           spread.low, spread.high, rounds);
    bench_figure("serve.grpc", &spread);
    spread = bench_ratio_of(echoed_us, served_us, rounds);
    printf("processor time of a call with its client: %.1f us, bare %.1f us; ratio %.3f [%.3f, "
           "%.3f]\n",
           bench_median(served_us, rounds), bench_median(echoed_us, rounds), spread.median,
           spread.low, spread.high);
    bench_figure("serve.grpc.work", &spread);
    bel_str_deinit(&request);
}

int main(int count, char **words)
{
    bench_expect(count >= 2, "usage: bench_serve_grpc EXPORT_DIR [ROUNDS [SECONDS]]");
    int rounds = count > 2 ? (int)strtol(words[2], NULL, 10) : 5;
    double seconds = count > 3 ? strtod(words[3], NULL) : 2;
    bench_expect(rounds >= 1 && rounds <= MOST_ROUNDS, "ROUNDS is 1 to 101");
    int cores = bel_available_cores();
    bel_models *models =
        bel_models_create(&(bel_models_config){.slot_count = cores, .max_batch = 1, .keep = 1});
    const bel_server_config config = {.address = "127.0.0.1",
                                      .port = -1,
                                      .service = {.slots = cores,
                                                  .queue = 64,
                                                  .max_batch = 1,
                                                  .max_examples = 65536,
                                                  .most_body = 1 << 20,
                                                  .wait_ms = 30000},
                                      .idle_ms = 60000,
                                      .connections = 8};
    bel_server *server;
    bench_check(bel_models_add(models, words[1], "digits"));
    bench_check(bel_server_start(&config, models, &server));
    measure(bel_server_grpc_port(server), rounds, seconds);
    (void)bel_server_stop(server, 1000);
    bel_models_destroy(models);
    return 0;
}
