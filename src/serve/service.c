// A request's memory is an arena. Arenas are made when they are first needed, and the one used last
// is used next, as it is in the processor's caches.
#include "serve/service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/trace.h"
#include "serve/access_log.h"
#include "serve/tally.h"

enum { MOST_KEPT = 1 << 20 };

typedef struct workspace workspace;
struct workspace {
    bel_arena *arena;
    workspace *next;
};

struct bel_service {
    bel_service_config config;
    bel_models *models;
    bel_gate *gate;
    bel_tally *tally;
    bel_access_log *log; // NULL: none
    _Atomic bool stopping;
    char *token_file; // NULL: no token is needed
    pthread_mutex_t mutex;
    workspace *unused; // under the mutex
    char *token;       // the same
};

// --- Workspaces ---------------------------------------------------------------------------------

static void workspace_destroy(workspace *w)
{
    bel_arena_destroy(w->arena);
    bel_free(w);
}

static void return_workspace(bel_service *service, workspace *w)
{
    if (bel_arena_bytes(w->arena) > MOST_KEPT) { // after a large request
        bel_arena_destroy(w->arena);
        w->arena = bel_arena_create();
    }
    bel_arena_reset(w->arena);
    pthread_mutex_lock(&service->mutex);
    w->next = service->unused;
    service->unused = w;
    pthread_mutex_unlock(&service->mutex);
}

static workspace *take_workspace(bel_service *service)
{
    pthread_mutex_lock(&service->mutex);
    workspace *w = service->unused;
    if (w != NULL) service->unused = w->next;
    pthread_mutex_unlock(&service->mutex);
    if (w != NULL) return w;
    w = bel_xcalloc(1, sizeof *w);
    w->arena = bel_arena_create();
    return w;
}

// --- Life ---------------------------------------------------------------------------------------

bel_status *bel_service_create(const bel_service_config *config, bel_models *models,
                               bel_service **out_service)
{
    bel_access_log *log = NULL;
    char *token = NULL;
    if (config->token_file != NULL)
        BEL_TRY(bel_secret_read(config->token_file, "token_file", &token));
    if (config->access_log != NULL) {
        bel_status *status = bel_access_log_open(config->access_log, &log);
        if (status != NULL) {
            bel_free(token);
            return status;
        }
    }
    bel_service *service = bel_xcalloc(1, sizeof *service);
    service->config = *config;
    service->config.access_log = service->config.token_file = NULL; // the caller's texts
    service->token = token;
    if (token != NULL) service->token_file = bel_xstrdup(config->token_file);
    service->models = models;
    service->log = log;
    service->gate = bel_gate_create(config->slots, config->queue, config->delay_us);
    service->tally = bel_tally_create(bel_models_count(models));
    pthread_mutex_init(&service->mutex, NULL);
    *out_service = service;
    return NULL;
}

void bel_service_destroy(bel_service *service)
{
    if (service == NULL) return;
    while (service->unused != NULL) {
        workspace *w = service->unused;
        service->unused = w->next;
        workspace_destroy(w);
    }
    bel_access_log_close(service->log);
    bel_tally_destroy(service->tally);
    bel_gate_destroy(service->gate);
    pthread_mutex_destroy(&service->mutex);
    bel_free(service->token);
    bel_free(service->token_file);
    bel_free(service);
}

bel_models *bel_service_models(const bel_service *service)
{
    return service->models;
}

bool bel_service_is_ready(const bel_service *service)
{
    return !atomic_load(&service->stopping);
}

void bel_service_stop(bel_service *service)
{
    atomic_store(&service->stopping, true);
}

void bel_service_give_up(bel_service *service)
{
    bel_gate_stop(service->gate);
}

static bel_status *read_token(bel_service *service)
{
    char *token;
    BEL_TRY(bel_secret_read(service->token_file, "token_file", &token));
    pthread_mutex_lock(&service->mutex);
    char *before = service->token;
    service->token = token;
    pthread_mutex_unlock(&service->mutex);
    bel_free(before);
    return NULL;
}

static void log_stays(const char *what, bel_status *status)
{
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "the old %s stays in use: %s", what,
                      bel_status_message(status));
    bel_status_ignore(status); // logged
}

void bel_service_reopen(bel_service *service)
{
    if (service->log != NULL) log_stays("access log", bel_access_log_reopen(service->log));
    if (service->token_file != NULL) log_stays("token", read_token(service));
}

void bel_service_write_metrics(const bel_service *service, bel_str *out)
{
    bel_tally_write(service->tally, service->models, service->gate, out);
}

// --- Calls --------------------------------------------------------------------------------------

void bel_service_begin(bel_service_call *call)
{
    call->begun_ns = bel_clock_ns();
}

bel_status *bel_service_authorize(const bel_service_call *call, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    enum { SCHEME = sizeof scheme - 1 };
    bel_service *service = call->service;
    if (service->token_file == NULL) return NULL;
    bool shown = authorization != NULL && strncasecmp(authorization, scheme, SCHEME) == 0;
    if (shown) {
        const char *token = authorization + SCHEME;
        pthread_mutex_lock(&service->mutex);
        shown = bel_secret_matches(service->token, token, strlen(token));
        pthread_mutex_unlock(&service->mutex);
    }
    if (shown) return NULL;
    return BEL_ERR(BEL_UNAUTHENTICATED,
                   "expected the header Authorization: Bearer with this server's token");
}

bel_status *bel_service_acquire(bel_service_call *call, const bel_service_choice *choice)
{
    bel_models *models = call->service->models;
    int64_t number = choice->number;
    bel_model *model = bel_models_find(models, choice->model, choice->model_length);
    if (model == NULL)
        return BEL_ERR(BEL_NOT_FOUND, "there is no model \"%.*s\"", (int)choice->model_length,
                       choice->model);
    call->model = model;
    bool is_shared = choice->is_inference && choice->label == NULL && number == -1 &&
                     bel_model_has_shares(model);
    if (is_shared && choice->awaits_id) return NULL;
    if (is_shared) number = bel_models_share(models, model, choice->id);
    // A label may move before its version is taken, which is then looked up again.
    for (int tries = 0; tries < 2 && call->version == NULL; tries++) {
        if (choice->label != NULL &&
            !bel_models_find_label(models, model, choice->label, choice->label_length, &number)) {
            return BEL_ERR(BEL_NOT_FOUND, "model %s has no label \"%.*s\"", bel_model_name(model),
                           (int)choice->label_length, choice->label);
        }
        if (number >= -1) call->version = bel_model_acquire(model, number);
        if (is_shared) number = -1; // the newest version answers for one that is not there
    }
    if (call->version != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "model %s does not have this version%s; its status lists them",
                   bel_model_name(model), choice->label != NULL ? " of the label" : "");
}

static bel_status *work_admitted(bel_service_call *call, bel_service_work *work, void *user)
{
    bel_service *service = call->service;
    int64_t deadline = call->begun_ns + service->config.wait_ms * INT64_C(1000000);
    if (call->deadline_ns != 0 && call->deadline_ns < deadline) deadline = call->deadline_ns;
    workspace *w = take_workspace(service);
    bel_infer infer = {.version = call->version,
                       .model = bel_model_name(call->model),
                       .gate = service->gate,
                       .max_batch = service->config.max_batch,
                       .most_examples = service->config.max_examples,
                       .deadline_ns = deadline,
                       .arena = w->arena,
                       .most_elements = call->bytes_in,
                       .most_tokens = (int64_t)(service->config.most_body / 2)}; // "0,"
    bel_status *status = work(user, &infer);
    call->arrived_ns = infer.arrived_ns;
    call->taken_ns = infer.taken_ns;
    call->computed_ns = infer.computed_ns;
    return_workspace(service, w);
    return status;
}

bel_status *bel_service_infer(bel_service_call *call, bel_service_work *work, void *user)
{
    call->is_inference = true;
    BEL_TRY(bel_gate_admit(call->service->gate));
    bel_status *status = work_admitted(call, work, user);
    bel_gate_dismiss(call->service->gate);
    return status;
}

int bel_service_code(const bel_status *status)
{
    switch (bel_status_code(status)) {
    case BEL_OK: return 200;
    case BEL_INVALID_ARGUMENT:
    case BEL_OUT_OF_RANGE:
    case BEL_FAILED_PRECONDITION:
    case BEL_DATA_LOSS: return 400;
    case BEL_UNAUTHENTICATED: return 401;
    case BEL_NOT_FOUND: return 404;
    case BEL_RESOURCE_EXHAUSTED: return 429;
    case BEL_UNIMPLEMENTED: return 501;
    case BEL_UNAVAILABLE: return 503;
    case BEL_DEADLINE_EXCEEDED: return 504;
    default: return 500;
    }
}

// Counts the stages of an inference that succeeded, and adds them to the trace.
static void note_stages(const bel_service_call *call, int64_t end_ns)
{
    static const uint8_t spans[BEL_STAGES] = {BEL_TRACE_READ, BEL_TRACE_QUEUE, BEL_TRACE_RUN,
                                              BEL_TRACE_WRITE};
    const int64_t times[] = {call->begun_ns, call->arrived_ns, call->taken_ns, call->computed_ns,
                             end_ns};
    int64_t spent[BEL_STAGES];
    for (int s = 0; s < BEL_STAGES; s++) {
        spent[s] = times[s + 1] - times[s];
        bel_trace_add((bel_trace_event){.role = BEL_TRACE_SERVER,
                                        .span = spans[s],
                                        .step = call->version->number,
                                        .part = bel_model_index(call->model)},
                      times[s], times[s + 1]);
    }
    bel_tally_add_stages(call->service->tally, bel_model_index(call->model), spent);
}

void bel_service_end(bel_service_call *call, int code, size_t bytes_out)
{
    bel_service *service = call->service;
    const int64_t now = bel_clock_ns(), spent = now - call->begun_ns;
    int model = call->model != NULL ? bel_model_index(call->model) : -1;
    bel_tally_add(service->tally, model, code, call->is_inference, spent);
    if (call->version != NULL && call->is_inference)
        bel_counts_add(&call->version->counts, code, true, spent);
    if (call->computed_ns != 0 && code == 200) note_stages(call, now);
    if (service->log != NULL) {
        const bel_access_entry entry = {
            .remote = call->remote,
            .method = call->method,
            .path = call->path,
            .model = call->model != NULL ? bel_model_name(call->model) : NULL,
            .version = call->version != NULL ? call->version->number : -1,
            .code = code,
            .bytes_in = call->bytes_in,
            .bytes_out = bytes_out,
            .spent_ns = spent};
        bel_access_log_write(service->log, &entry);
    }
    if (call->version != NULL) bel_model_release(call->model, call->version);
}

void bel_service_refused(bel_service *service, int code)
{
    bel_tally_add(service->tally, -1, code, false, 0);
}
