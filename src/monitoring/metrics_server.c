// The threads of the HTTP server see one text, never the board. The mutex guards the pointer to it,
// and each answer is made from a copy, so a slow reader delays nothing else. A silent client
// occupies one of 32 threads for a second.
#include "monitoring/metrics_server.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "http/http_server.h"

struct bel_metrics_server {
    bel_http_server *http;
    pthread_mutex_t mutex;
    char *text;
};

// Copies the text under the lock.
static void answer_metrics(bel_metrics_server *server, const bel_http_request *request,
                           bel_http_answer *answer)
{
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        answer->code = 405;
        return;
    }
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    pthread_mutex_lock(&server->mutex);
    bel_str_puts(&answer->body, server->text);
    pthread_mutex_unlock(&server->mutex);
}

static void metrics_server_answer(void *user, const bel_http_request *request,
                                  bel_http_answer *answer)
{
    if (strcmp(request->path, "/metrics") == 0) {
        answer_metrics(user, request, answer);
    } else if (strcmp(request->path, "/") == 0) {
        bel_str_puts(&answer->body, "belfry: see /metrics\n");
    } else {
        answer->code = 404;
    }
}

bel_status *bel_metrics_server_start(const char *address, int port, bel_metrics_server **out_server)
{
    bel_metrics_server *server = bel_xcalloc(1, sizeof *server);
    pthread_mutex_init(&server->mutex, NULL);
    server->text = bel_xstrdup("");
    const bel_http_config config = {.address = address,
                                    .port = port,
                                    .what = "metrics",
                                    .hint = "another --metrics_port, or -1 for a free one",
                                    .connections = 28,
                                    .timeout_ms = 1000,
                                    .answer = metrics_server_answer,
                                    .user = server};
    bel_status *status = bel_http_server_start(&config, &server->http);
    if (status != NULL) {
        bel_metrics_server_stop(server);
        return status;
    }
    *out_server = server;
    return NULL;
}

int bel_metrics_server_port(const bel_metrics_server *server)
{
    return bel_http_server_port(server->http);
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

// The HTTP server's threads have exited when it has stopped, so nothing uses the text afterwards.
void bel_metrics_server_stop(bel_metrics_server *server)
{
    if (server == NULL) return;
    bel_http_server_stop(server->http);
    pthread_mutex_destroy(&server->mutex);
    bel_free(server->text);
    bel_free(server);
}
