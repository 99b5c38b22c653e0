// A request: its path is looked up, then its model and version are taken, then a slot, whose
// predictor, arena and stack it uses until its answer is a text. Reading and sending bytes needs
// no slot, so a slow client occupies a connection but no slot.
#include "serve/server.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/linux_stack.h"
#include "belfry/estimator.h"
#include "http/http_server.h"
#include "serve/access_log.h"
#include "serve/gate.h"
#include "serve/rest_v1.h"
#include "serve/rest_v2.h"
#include "serve/route.h"
#include "serve/tally.h"

// Memory of one request at a time. The threads of civetweb have stacks of 100 KB, which kernels
// exceed, so a request computes on the stack of its slot.
typedef struct slot {
    bel_arena *arena;
    bel_linux_stack *stack;
} slot;

enum { STACK_BYTES = 8 << 20 };

struct bel_server {
    bel_models *models;
    bel_gate *gate;
    slot *slots;
    int slot_count;
    bel_tally *tally;
    bel_access_log *log; // NULL: none
    bel_http_server *http;
    _Atomic bool stopping;
};

// Request in progress, for the answer and the log.
typedef struct call {
    bel_server *server;
    const bel_http_request *request;
    bel_http_answer *answer;
    bel_route route;
    bel_model *model; // NULL: none
    int64_t version;  // -1: none
} call;

// --- Errors -------------------------------------------------------------------------------------

static int code_of(const bel_status *status)
{
    switch (bel_status_code(status)) {
    case BEL_OK: return 200;
    case BEL_INVALID_ARGUMENT:
    case BEL_OUT_OF_RANGE:
    case BEL_FAILED_PRECONDITION:
    case BEL_DATA_LOSS: return 400;
    case BEL_NOT_FOUND: return 404;
    case BEL_RESOURCE_EXHAUSTED: return 429;
    case BEL_UNIMPLEMENTED: return 501;
    case BEL_UNAVAILABLE: return 503;
    case BEL_DEADLINE_EXCEEDED: return 504;
    default: return 500;
    }
}

// Replaces what was written by an error, an object with the member "error" in both protocols.
static void put_error(void *user, int code, const char *message, bel_http_answer *answer)
{
    (void)user;
    answer->code = code;
    answer->type = "application/json";
    answer->head.length = answer->body.length = 0;
    bel_str_puts(&answer->body, "{\"error\":");
    bel_json_write_string(&answer->body, message);
    bel_str_puts(&answer->body, "}");
    if (code == 429) bel_str_puts(&answer->head, "Retry-After: 1\r\n");
}

// The server's own refusals, before there is a request.
static void refuse(void *user, int code, const char *message, bel_http_answer *answer)
{
    bel_server *server = user;
    put_error(user, code, message, answer);
    bel_tally_add(server->tally, -1, code, false, 0);
}

// --- Inference ----------------------------------------------------------------------------------

typedef struct inference {
    const call *call;
    const bel_served *version;
    int slot;
    bel_status *status;
} inference;

// Runs on the stack of the slot.
static void infer_in_slot(void *argument)
{
    inference *i = argument;
    const call *c = i->call;
    bel_arena *arena = c->server->slots[i->slot].arena;
    bel_infer infer = {.version = i->version,
                       .model = bel_model_name(c->model),
                       .slot = i->slot,
                       .arena = arena,
                       .most_elements = c->request->body_size};
    i->status = c->route.kind == BEL_ROUTE_V2_INFER ? bel_v2_infer(&infer, c->request, c->answer)
                                                    : bel_v1_predict(&infer, c->request, c->answer);
    bel_arena_reset(arena);
}

static bel_status *run_inference(const call *c, const bel_served *version)
{
    inference i = {.call = c, .version = version};
    const char *encoding = bel_http_header(c->request, "Content-Encoding");
    if (encoding != NULL && strcmp(encoding, "identity") != 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "Content-Encoding: expected identity, got \"%s\"",
                       encoding);
    }
    BEL_TRY(bel_gate_enter(c->server->gate, &i.slot));
    bel_linux_stack_call(c->server->slots[i.slot].stack, infer_in_slot, &i);
    bel_gate_leave(c->server->gate, i.slot);
    return i.status;
}

// --- Other paths --------------------------------------------------------------------------------

static void answer_index(const call *c)
{
    bel_str *out = &c->answer->body;
    bel_str_puts(out, "belfry serve: /metrics, /v2, /v2/health/ready");
    for (int m = 0; m < bel_models_count(c->server->models); m++)
        bel_str_printf(out, ", /v2/models/%s", bel_model_name(bel_models_at(c->server->models, m)));
    bel_str_puts(out, "\n");
}

static bel_status *answer_server(const call *c)
{
    bel_str *out = &c->answer->body;
    switch (c->route.kind) {
    case BEL_ROUTE_INDEX: answer_index(c); return NULL;
    case BEL_ROUTE_METRICS:
        c->answer->type = "text/plain; version=0.0.4; charset=utf-8";
        bel_tally_write(c->server->tally, c->server->models, c->server->gate, out);
        return NULL;
    case BEL_ROUTE_SERVER:
        bel_str_printf(out,
                       "{\"name\":\"belfry\",\"version\":\"%s\",\"extensions\":"
                       "[\"binary_tensor_data\"]}",
                       bel_version());
        break;
    case BEL_ROUTE_LIVE: bel_str_puts(out, "{\"live\":true}"); break;
    case BEL_ROUTE_READY:
        if (atomic_load(&c->server->stopping))
            return BEL_ERR(BEL_UNAVAILABLE, "the server is stopping");
        bel_str_puts(out, "{\"ready\":true}");
        break;
    default: return BEL_ERR(BEL_NOT_FOUND, "there is no path %s", c->request->path);
    }
    c->answer->type = "application/json";
    return NULL;
}

static bel_status *answer_version(const call *c, const bel_served *version)
{
    bel_str *out = &c->answer->body;
    c->answer->type = "application/json";
    switch (c->route.kind) {
    case BEL_ROUTE_V2_METADATA: bel_v2_metadata(c->model, version, out); return NULL;
    case BEL_ROUTE_V1_METADATA: bel_v1_metadata(c->model, version, out); return NULL;
    case BEL_ROUTE_V1_STATUS: bel_v1_model_status(c->model, c->route.version, out); return NULL;
    case BEL_ROUTE_V2_READY:
        bel_str_puts(out, "{\"name\":");
        bel_json_write_string(out, bel_model_name(c->model));
        bel_str_puts(out, ",\"ready\":true}");
        return NULL;
    default: return run_inference(c, version);
    }
}

static bel_status *answer_model(call *c)
{
    const bel_route *route = &c->route;
    c->model = bel_models_find(c->server->models, route->model, route->model_length);
    if (c->model == NULL)
        return BEL_ERR(BEL_NOT_FOUND, "there is no model \"%.*s\"", (int)route->model_length,
                       route->model);
    bel_served *version = route->version == -2 ? NULL : bel_model_acquire(c->model, route->version);
    if (version == NULL)
        return BEL_ERR(BEL_NOT_FOUND, "model %s does not have this version; its status lists them",
                       bel_model_name(c->model));
    c->version = version->number;
    bel_status *status = answer_version(c, version);
    bel_model_release(c->model, version);
    return status;
}

static bool accepts_method(const call *c)
{
    const char *method = c->request->method, *expected = c->route.method;
    if (expected == NULL || strcmp(method, expected) == 0) return true;
    return strcmp(method, "HEAD") == 0 && strcmp(expected, "GET") == 0;
}

static void server_answer(void *user, const bel_http_request *request, bel_http_answer *answer)
{
    int64_t begun = bel_clock_ns();
    call c = {user, request, answer, bel_route_find(request->path), NULL, -1};
    bel_status *status = NULL;
    if (!accepts_method(&c)) {
        put_error(user, 405, c.route.method[0] == 'P' ? "expected POST" : "expected GET", answer);
        bel_str_printf(&answer->head, "Allow: %s\r\n", c.route.method);
    } else {
        status = c.route.model != NULL ? answer_model(&c) : answer_server(&c);
    }
    if (status != NULL) put_error(user, code_of(status), bel_status_message(status), answer);
    bel_status_ignore(status); // the client has it
    bool is_inference = c.route.kind == BEL_ROUTE_V2_INFER || c.route.kind == BEL_ROUTE_V1_PREDICT;
    int64_t spent = bel_clock_ns() - begun;
    int model = c.model != NULL ? bel_model_index(c.model) : -1;
    bel_tally_add(c.server->tally, model, answer->code, is_inference, spent);
    if (c.server->log != NULL)
        bel_access_log_write(c.server->log, request, answer,
                             c.model != NULL ? bel_model_name(c.model) : NULL, c.version, spent);
}

// --- Start and end ------------------------------------------------------------------------------

static bel_status *start_parts(bel_server *server, const bel_server_config *config)
{
    const bel_http_config http = {.address = config->address,
                                  .port = config->port,
                                  .what = "models",
                                  .hint = "another --port, or 0 for a free one",
                                  .connections = config->connections,
                                  .keep_alive = true,
                                  .timeout_ms = config->wait_ms,
                                  .idle_ms = config->idle_ms,
                                  .most_body = config->most_body,
                                  .answer = server_answer,
                                  .refuse = refuse,
                                  .user = server};
    for (int i = 0; i < server->slot_count; i++) {
        server->slots[i].arena = bel_arena_create();
        BEL_TRY(bel_linux_stack_create(STACK_BYTES, &server->slots[i].stack));
    }
    if (config->access_log != NULL) BEL_TRY(bel_access_log_open(config->access_log, &server->log));
    return bel_http_server_start(&http, &server->http);
}

bel_status *bel_server_start(const bel_server_config *config, bel_models *models,
                             bel_server **out_server)
{
    bel_server *server = bel_xcalloc(1, sizeof *server);
    server->models = models;
    server->slot_count = config->slots;
    server->slots = bel_xcalloc((size_t)config->slots, sizeof *server->slots);
    server->gate = bel_gate_create(config->slots, config->queue, config->wait_ms);
    server->tally = bel_tally_create(bel_models_count(models));
    bel_status *status = start_parts(server, config);
    if (status != NULL) {
        (void)bel_server_stop(server, 0); // nothing is in progress
        return status;
    }
    *out_server = server;
    return NULL;
}

int bel_server_port(const bel_server *server)
{
    return bel_http_server_port(server->http);
}

bel_status *bel_server_reopen(bel_server *server)
{
    return server->log != NULL ? bel_access_log_reopen(server->log) : NULL;
}

int bel_server_stop(bel_server *server, int most_ms)
{
    atomic_store(&server->stopping, true);
    int left = server->http != NULL ? bel_http_server_drain(server->http, most_ms) : 0;
    bel_http_server_stop(server->http);
    bel_access_log_close(server->log);
    bel_tally_destroy(server->tally);
    for (int i = 0; i < server->slot_count; i++) {
        bel_arena_destroy(server->slots[i].arena);
        bel_linux_stack_destroy(server->slots[i].stack);
    }
    bel_free(server->slots);
    bel_gate_destroy(server->gate);
    bel_free(server);
    return left;
}
