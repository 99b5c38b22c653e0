// The only file that uses civetweb. Its threads see one text, never the board. The mutex guards the
// pointer to it, and each answer is made from a copy, so a slow reader delays nothing else. A
// silent client occupies one of 32 threads for a second. The threads start with all signals
// blocked, because signals belong to the main thread. civetweb's complaints during its start become
// the error's text; they are not printed.
#include "monitoring/metrics_server.h"

#include <civetweb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"

struct bel_metrics_server {
    struct mg_context *context;
    int port;
    pthread_mutex_t mutex;
    char *text;
    char complaint[256]; // civetweb's, if it does not start
};

static void write_head(struct mg_connection *connection, int code, const char *type, size_t bytes)
{
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
              code, mg_get_response_code_text(connection, code), type, bytes);
}

static int metrics_server_answer(struct mg_connection *connection, const char *type,
                                 const char *body)
{
    write_head(connection, 200, type, strlen(body));
    if (strcmp(mg_get_request_info(connection)->request_method, "HEAD") != 0) {
        mg_write(connection, body, strlen(body));
    }
    return 200;
}

// Replaces civetweb's answer, which repeats the version from the request.
static int answer_error(struct mg_connection *connection, int code, const char *message)
{
    (void)message;
    write_head(connection, code, "text/plain; charset=utf-8", 0);
    return 0; // the request is answered
}

// Runs on a civetweb thread. Copies the text under the lock and writes the answer without it.
static int answer_metrics(struct mg_connection *connection, void *context)
{
    bel_metrics_server *server = context;
    const char *method = mg_get_request_info(connection)->request_method;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        mg_send_http_error(connection, 405, "%s", "expected GET");
        return 405;
    }
    pthread_mutex_lock(&server->mutex);
    char *text = bel_xstrdup(server->text);
    pthread_mutex_unlock(&server->mutex);
    int code = metrics_server_answer(connection, "text/plain; version=0.0.4; charset=utf-8", text);
    bel_free(text);
    return code;
}

static int answer_root(struct mg_connection *connection, void *context)
{
    (void)context;
    return metrics_server_answer(connection, "text/plain; charset=utf-8", "belfry: see /metrics\n");
}

// civetweb's log callback; the last message is the reason of a failed start.
static int keep_complaint(const struct mg_connection *connection, const char *message)
{
    const struct mg_context *context = mg_get_context(connection);
    bel_metrics_server *server = context != NULL ? mg_get_user_data(context) : NULL;
    if (server != NULL) { // on any of civetweb's threads
        pthread_mutex_lock(&server->mutex);
        bel_snprintf(server->complaint, sizeof server->complaint, "%s", message);
        pthread_mutex_unlock(&server->mutex);
    }
    return 1; // suppresses printing
}

// civetweb's threads block signals, which belong to the main thread.
static struct mg_context *start_quietly(bel_metrics_server *server, const char **options)
{
    const struct mg_callbacks callbacks = {.log_message = keep_complaint,
                                           .http_error = answer_error};
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    struct mg_context *context = mg_start(&callbacks, server, options);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return context;
}

bel_status *bel_metrics_server_start(const char *address, int port, bel_metrics_server **out_server)
{
    bel_metrics_server *server = bel_xcalloc(1, sizeof *server);
    char *where = bel_strf("%s:%d", address, port);
    // A silent connection occupies a thread until this timeout.
    const char *options[] = {"listening_ports",    where,  "num_threads", "32",
                             "request_timeout_ms", "1000", NULL};
    pthread_mutex_init(&server->mutex, NULL);
    server->text = bel_xstrdup("");
    (void)mg_init_library(0);
    server->context = start_quietly(server, options);
    struct mg_server_port ports[1] = {{0}};
    bool listens = server->context != NULL && mg_get_server_ports(server->context, 1, ports) == 1;
    bel_status *status = NULL;
    if (!listens) {
        pthread_mutex_lock(&server->mutex);
        status = BEL_ERR(BEL_UNAVAILABLE,
                         "cannot serve metrics on %s%s%s; hint: another --metrics_port, or -1 for "
                         "a free one",
                         where, server->complaint[0] != '\0' ? ": " : "", server->complaint);
        pthread_mutex_unlock(&server->mutex);
    }
    bel_free(where);
    if (status != NULL) {
        bel_metrics_server_stop(server);
        return status;
    }
    server->port = ports[0].port;
    mg_set_request_handler(server->context, "/metrics$", answer_metrics, server);
    mg_set_request_handler(server->context, "/$", answer_root, server);
    *out_server = server;
    return NULL;
}

int bel_metrics_server_port(const bel_metrics_server *server)
{
    return server->port;
}

// Frees the old text outside the lock: it has no other user.
void bel_metrics_server_set(bel_metrics_server *server, const char *text)
{
    char *copy = bel_xstrdup(text);
    pthread_mutex_lock(&server->mutex);
    char *before = server->text;
    server->text = copy;
    pthread_mutex_unlock(&server->mutex);
    bel_free(before);
}

// mg_stop returns when civetweb's threads have exited, so nothing uses the text afterwards.
void bel_metrics_server_stop(bel_metrics_server *server)
{
    if (server == NULL) return;
    if (server->context != NULL) mg_stop(server->context);
    (void)mg_exit_library();
    pthread_mutex_destroy(&server->mutex);
    bel_free(server->text);
    bel_free(server);
}
