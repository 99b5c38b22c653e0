// Requests over HTTP: the path is looked up, then the model and version are taken, then the request
// is read, computed and written (service.h). Reading and sending bytes needs no admission, so a
// slow client occupies a connection and nothing else.
#include "serve/server.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "belfry/estimator.h"
#include "http/http_server.h"
#include "rpc/rpc_server.h"
#include "serve/grpc_v2.h"
#include "serve/page.h"
#include "serve/rest_v1.h"
#include "serve/rest_v2.h"
#include "serve/route.h"
#include "serve/service.h"

struct bel_server {
    bel_service *service;
    bel_http_server *http;
    bel_rpc_server *rpc; // NULL: no gRPC
};

// Request in progress.
typedef struct call {
    bel_service_call call;
    const bel_http_request *request;
    bel_http_answer *answer;
    bel_route route;
} call;

// --- Errors -------------------------------------------------------------------------------------

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
    if (code == 401) bel_str_puts(&answer->head, "WWW-Authenticate: Bearer\r\n");
}

// The server's own refusals, before there is a request.
static void refuse(void *user, int code, const char *message, bel_http_answer *answer)
{
    bel_server *server = user;
    put_error(user, code, message, answer);
    bel_service_refused(server->service, code);
}

// --- Inference ----------------------------------------------------------------------------------

// Takes the version that the path names, or that labels choose by the request's id.
static bel_status *acquire(call *c, const char *id, bool awaits_id)
{
    const bel_route *route = &c->route;
    bool is_v1 = route->kind == BEL_ROUTE_V1_PREDICT;
    const bel_service_choice choice = {.model = route->model,
                                       .model_length = route->model_length,
                                       .number = route->version,
                                       .label = route->label,
                                       .label_length = route->label_length,
                                       .is_inference = is_v1 || route->kind == BEL_ROUTE_V2_INFER,
                                       .id = id,
                                       .awaits_id = awaits_id};
    return bel_service_acquire(&c->call, &choice);
}

static bel_status *infer_v2(call *c, bel_infer *infer)
{
    bel_v2_request request;
    BEL_TRY(bel_v2_parse(infer->arena, c->request, &request));
    if (infer->version == NULL) BEL_TRY(acquire(c, request.id, false));
    infer->version = c->call.version;
    return bel_v2_infer(infer, &request, c->answer);
}

// The form of an answer has no place for the version, so a header says it.
static bel_status *infer_v1(call *c, bel_infer *infer)
{
    BEL_TRY(bel_v1_predict(infer, c->request, c->answer));
    bel_str_puts(&c->answer->head, "Model-Version: ");
    bel_str_put_i64(&c->answer->head, infer->version->number);
    bel_str_puts(&c->answer->head, "\r\n");
    return NULL;
}

static bel_status *infer(void *user, bel_infer *infer)
{
    call *c = user;
    bool is_v2 = c->route.kind == BEL_ROUTE_V2_INFER;
    return is_v2 ? infer_v2(c, infer) : infer_v1(c, infer);
}

static bel_status *run_inference(call *c)
{
    const char *encoding = bel_http_header(c->request, "Content-Encoding");
    if (encoding != NULL && strcmp(encoding, "identity") != 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "Content-Encoding: expected identity, got \"%s\"",
                       encoding);
    }
    return bel_service_infer(&c->call, infer, c);
}

// --- Other paths --------------------------------------------------------------------------------

// All models and their versions, as the index of Triton's extension model_repository.
static void answer_models(const call *c)
{
    bel_str *out = &c->answer->body;
    const bel_models *models = bel_service_models(c->call.service);
    int written = 0;
    bel_str_puts(out, "[");
    for (int m = 0; m < bel_models_count(models); m++) {
        int count;
        bel_model *model = bel_models_at(models, m);
        int64_t *numbers = bel_model_versions(model, &count);
        for (int i = 0; i < count; i++) {
            bel_str_puts(out, written++ > 0 ? ",{\"name\":" : "{\"name\":");
            bel_json_write_string(out, bel_model_name(model));
            bel_str_printf(out, ",\"version\":\"%lld\",\"state\":\"READY\",\"reason\":\"\"}",
                           (long long)numbers[i]);
        }
        bel_free(numbers);
    }
    bel_str_puts(out, "]");
}

// The page loads nothing from other servers.
static void answer_page(const call *c)
{
    c->answer->type = "text/html; charset=utf-8";
    bel_str_puts(&c->answer->head,
                 "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                 "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'\r\n");
    bel_page_write(&c->answer->body);
}

static bel_status *answer_server(const call *c)
{
    bel_str *out = &c->answer->body;
    switch (c->route.kind) {
    case BEL_ROUTE_PAGE: answer_page(c); return NULL;
    case BEL_ROUTE_METRICS:
        c->answer->type = "text/plain; version=0.0.4; charset=utf-8";
        bel_service_write_metrics(c->call.service, out);
        return NULL;
    case BEL_ROUTE_SERVER:
        bel_str_printf(out,
                       "{\"name\":\"belfry\",\"version\":\"%s\",\"extensions\":"
                       "[\"binary_tensor_data\"]}",
                       bel_version());
        break;
    case BEL_ROUTE_MODELS: answer_models(c); break;
    case BEL_ROUTE_LIVE: bel_str_puts(out, "{\"live\":true}"); break;
    case BEL_ROUTE_READY:
        if (!bel_service_is_ready(c->call.service))
            return BEL_ERR(BEL_UNAVAILABLE, "the server is stopping");
        bel_str_puts(out, "{\"ready\":true}");
        break;
    default: return BEL_ERR(BEL_NOT_FOUND, "there is no path %s", c->request->path);
    }
    c->answer->type = "application/json";
    return NULL;
}

static bel_status *answer_version(call *c)
{
    bel_model *model = c->call.model;
    const bel_served *version = c->call.version;
    int64_t chosen = c->route.version;
    if (c->route.label != NULL) chosen = version->number;
    bel_str *out = &c->answer->body;
    c->answer->type = "application/json";
    switch (c->route.kind) {
    case BEL_ROUTE_V2_METADATA: bel_v2_metadata(model, version, out); return NULL;
    case BEL_ROUTE_V1_METADATA: bel_v1_metadata(model, version, out); return NULL;
    case BEL_ROUTE_V1_STATUS: bel_v1_model_status(model, chosen, out); return NULL;
    case BEL_ROUTE_V2_READY:
        bel_str_puts(out, "{\"name\":");
        bel_json_write_string(out, bel_model_name(model));
        bel_str_puts(out, ",\"ready\":true}");
        return NULL;
    default: return run_inference(c);
    }
}

static bel_status *answer_model(call *c)
{
    BEL_TRY(acquire(c, NULL, c->route.kind == BEL_ROUTE_V2_INFER));
    return answer_version(c);
}

// Paths without a token: they show nothing of models.
static bool is_open(bel_route_kind kind)
{
    return kind == BEL_ROUTE_PAGE || kind == BEL_ROUTE_LIVE || kind == BEL_ROUTE_READY;
}

static bool accepts_method(const call *c)
{
    const char *method = c->request->method, *expected = c->route.method;
    if (expected == NULL || strcmp(method, expected) == 0) return true;
    return strcmp(method, "HEAD") == 0 && strcmp(expected, "GET") == 0;
}

static call make_call(const bel_server *server, const bel_http_request *request,
                      bel_http_answer *answer)
{
    return (call){.call = {.service = server->service,
                           .remote = request->remote,
                           .method = request->method,
                           .path = request->path,
                           .bytes_in = request->body_size},
                  .request = request,
                  .answer = answer,
                  .route = bel_route_find(request->path)};
}

// Judges method and token by the head, so that a body without a token takes no memory.
static bool server_accepts(void *user, const bel_http_request *request, bel_http_answer *answer)
{
    call c = make_call(user, request, answer);
    bel_status *status = NULL;
    bool accepts_it = accepts_method(&c);
    if (accepts_it && !is_open(c.route.kind))
        status = bel_service_authorize(&c.call, bel_http_header(request, "Authorization"));
    if (accepts_it && status == NULL) return true;
    bel_service_begin(&c.call);
    if (!accepts_it) {
        put_error(user, 405, c.route.method[0] == 'P' ? "expected POST" : "expected GET", answer);
        bel_str_printf(&answer->head, "Allow: %s\r\n", c.route.method);
    } else {
        put_error(user, bel_service_code(status), bel_status_message(status), answer);
    }
    bel_status_ignore(status); // the client has it
    bel_service_end(&c.call, answer->code, answer->body.length);
    return false;
}

static void server_answer(void *user, const bel_http_request *request, bel_http_answer *answer)
{
    call c = make_call(user, request, answer);
    bel_service_begin(&c.call);
    bel_status *status = c.route.model != NULL ? answer_model(&c) : answer_server(&c);
    if (status != NULL)
        put_error(user, bel_service_code(status), bel_status_message(status), answer);
    bel_status_ignore(status); // the client has it
    bel_service_end(&c.call, answer->code, answer->body.length);
}

// --- Start and end ------------------------------------------------------------------------------

static bel_status *answer_rpc(void *user, const bel_rpc_request *request, bel_str *out_body)
{
    const bel_server *server = user;
    return bel_grpc_v2_answer(server->service, request, out_body);
}

static void refuse_rpc(void *user, const bel_status *status)
{
    const bel_server *server = user;
    bel_service_refused(server->service, bel_service_code(status));
}

static bel_status *start_rpc(bel_server *server, const bel_server_config *config)
{
    const bel_rpc_config rpc = {.address = config->address,
                                .port = config->grpc_port,
                                .what = "models",
                                .hint = "another --grpc_port, or 0 for a free one",
                                .methods = bel_grpc_v2_methods,
                                .method_count = bel_grpc_v2_method_count,
                                .calls = config->connections,
                                .timeout_ms = config->service.wait_ms,
                                .idle_ms = config->idle_ms,
                                .most_body = config->service.most_body,
                                .tls_ca = config->tls_ca,
                                .tls_certificate = config->tls_certificate,
                                .tls_key = config->tls_key,
                                .answer = answer_rpc,
                                .refused = refuse_rpc,
                                .user = server};
    return bel_rpc_server_start(&rpc, &server->rpc);
}

static bel_status *start_parts(bel_server *server, const bel_server_config *config)
{
    const bel_http_config http = {.address = config->address,
                                  .port = config->port,
                                  .what = "models",
                                  .hint = "another --port, or 0 for a free one",
                                  .connections = config->connections,
                                  .keep_alive = true,
                                  .timeout_ms = config->service.wait_ms,
                                  .idle_ms = config->idle_ms,
                                  .most_body = config->service.most_body,
                                  .tls_ca = config->tls_ca,
                                  .tls_certificate = config->tls_certificate,
                                  .tls_key = config->tls_key,
                                  .accepts = server_accepts,
                                  .answer = server_answer,
                                  .refuse = refuse,
                                  .user = server};
    if (config->grpc_port >= 0) BEL_TRY(start_rpc(server, config)); // sets variables: no thread yet
    return config->port >= 0 ? bel_http_server_start(&http, &server->http) : NULL;
}

bel_status *bel_server_start(const bel_server_config *config, bel_models *models,
                             bel_server **out_server)
{
    bel_server *server = bel_xcalloc(1, sizeof *server);
    bel_status *status = bel_service_create(&config->service, models, &server->service);
    if (status == NULL) status = start_parts(server, config);
    if (status != NULL) {
        (void)bel_server_stop(server, 0); // nothing is in progress
        return status;
    }
    *out_server = server;
    return NULL;
}

int bel_server_port(const bel_server *server)
{
    return server->http != NULL ? bel_http_server_port(server->http) : -1;
}

int bel_server_grpc_port(const bel_server *server)
{
    return server->rpc != NULL ? bel_rpc_server_port(server->rpc) : -1;
}

void bel_server_reopen(bel_server *server)
{
    bel_service_reopen(server->service);
}

int bel_server_stop(bel_server *server, int most_ms)
{
    if (server->service != NULL) bel_service_stop(server->service);
    int64_t deadline = bel_clock_ns() + most_ms * INT64_C(1000000);
    if (server->rpc != NULL) (void)bel_rpc_server_drain(server->rpc, 0); // no more calls
    int left = server->http != NULL ? bel_http_server_drain(server->http, most_ms) : 0;
    int64_t rest_ms = (deadline - bel_clock_ns()) / 1000000;
    if (server->rpc != NULL)
        left += bel_rpc_server_drain(server->rpc, rest_ms > 0 ? (int)rest_ms : 0);
    if (server->service != NULL)
        bel_service_give_up(server->service); // runs end, and no more begin
    bel_http_server_stop(server->http);
    bel_rpc_server_stop(server->rpc);
    bel_service_destroy(server->service);
    bel_free(server);
    return left;
}
