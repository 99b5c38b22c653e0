// The only file that uses civetweb. Its threads start with all signals blocked, because signals
// belong to the main thread. civetweb's complaints during its start become the error's text; they
// are not printed. Its error pages are replaced, because they repeat the request.
//
// A request counts as active from its header to its answer's last byte. civetweb drops an answer
// that is not written when it stops, so a server drains first.
#include "http/http_server.h"

#include <civetweb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/thread.h"

// Threads that refuse connections, and the pieces in which a body is read. civetweb waits for all
// bytes of a piece, at most timeout_ms for each, so the time is compared after each piece.
enum { SPARE_THREADS = 4, PIECE = 1024, NOTE = 256 };

struct bel_http_server {
    bel_http_config config;
    struct mg_context *context;
    int port;
    pthread_mutex_t mutex;
    pthread_cond_t idle; // active became 0
    int active, open;    // requests, connections
    _Atomic bool draining;
    char complaint[NOTE]; // civetweb's, if it does not start
};

const char *bel_http_header(const bel_http_request *request, const char *name)
{
    return mg_get_header(request->connection, name);
}

// --- Answers ------------------------------------------------------------------------------------

// Sends head and body by one call, because each call is a packet.
static void send_answer(struct mg_connection *connection, const bel_http_answer *answer,
                        bool without_body, bool closes)
{
    enum { HEAD_BYTES = 512 }; // enough for one allocation
    bel_str text = {0};
    (void)bel_str_room(&text, HEAD_BYTES + answer->head.length + answer->body.length);
    bel_str_printf(&text,
                   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                   "Cache-Control: no-cache\r\n",
                   answer->code, mg_get_response_code_text(connection, answer->code), answer->type,
                   answer->body.length);
    if (closes) bel_str_puts(&text, "Connection: close\r\n");
    if (answer->head.length > 0) bel_str_append(&text, answer->head.text, answer->head.length);
    bel_str_puts(&text, "\r\n");
    if (!without_body && answer->body.length > 0)
        bel_str_append(&text, answer->body.text, answer->body.length);
    if (closes) mg_disable_connection_keep_alive(connection);
    mg_write(connection, text.text, text.length);
    bel_str_deinit(&text);
}

static bel_http_answer new_answer(int code)
{
    return (bel_http_answer){.code = code, .type = "text/plain; charset=utf-8"};
}

static void free_answer(bel_http_answer *answer)
{
    bel_str_deinit(&answer->head);
    bel_str_deinit(&answer->body);
}

static int refuse(const bel_http_server *server, struct mg_connection *connection, int code,
                  const char *message)
{
    bel_http_answer answer = new_answer(code);
    if (server->config.refuse != NULL)
        server->config.refuse(server->config.user, code, message, &answer);
    send_answer(connection, &answer, false, true);
    free_answer(&answer);
    return code;
}

// Replaces civetweb's error page.
static int on_error(struct mg_connection *connection, int code, const char *message)
{
    (void)message;
    const bel_http_server *server = mg_get_user_data(mg_get_context(connection));
    refuse(server, connection, code, mg_get_response_code_text(connection, code));
    return 0; // the request is answered
}

// --- Requests -----------------------------------------------------------------------------------

// Reads the body. Returns 0, or the code of an error, with its message.
static int read_body(const bel_http_server *server, struct mg_connection *connection,
                     bel_str *out_body, char message[NOTE])
{
    const struct mg_request_info *info = mg_get_request_info(connection);
    const char *expect = mg_get_header(connection, "Expect");
    size_t most = server->config.most_body;
    int64_t deadline = bel_clock_ns() + server->config.timeout_ms * INT64_C(1000000);
    bel_snprintf(message, NOTE, "expected a body of at most %zu bytes", most);
    if (info->content_length > 0 && (unsigned long long)info->content_length > most) return 413;
    if (expect != NULL && mg_strcasecmp(expect, "100-continue") == 0)
        mg_printf(connection, "HTTP/1.1 100 Continue\r\n\r\n");
    for (int got = 1; got > 0;) {
        size_t left =
            info->content_length >= 0 ? (size_t)info->content_length - out_body->length : PIECE;
        if (left == 0) break;
        got = mg_read(connection, bel_str_room(out_body, PIECE + 1), left < PIECE ? left : PIECE);
        if (got > 0) out_body->length += (size_t)got;
        if (out_body->length > most) return 413;
        if (got > 0 && bel_clock_ns() > deadline) got = -1;
        if (got >= 0 && (got > 0 || info->content_length < 0)) continue;
        bel_snprintf(message, NOTE, "the body ended after %zu bytes, or took longer than %d ms",
                     out_body->length, server->config.timeout_ms);
        return 408;
    }
    return 0;
}

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

// Decodes %XX. Returns false for a wrong escape, and for a zero byte: the path would end there.
static bool decode_path(const char *raw, bel_str *out)
{
    for (; raw != NULL && *raw != '\0'; raw++) {
        char c = *raw;
        if (c == '%') {
            int high = digit_of(raw[1]), low = high >= 0 ? digit_of(raw[2]) : -1;
            if (low < 0 || high * 16 + low == 0) return false;
            c = (char)(high * 16 + low);
            raw += 2;
        }
        bel_str_append(out, &c, 1);
    }
    return out->length > 0;
}

// False if a proxy could find another end of the body than civetweb does: then the rest could pass
// as a request of another client.
static bool is_framed(const struct mg_request_info *info)
{
    int lengths = 0, encodings = 0;
    for (int i = 0; i < info->num_headers; i++) {
        const char *name = info->http_headers[i].name, *value = info->http_headers[i].value;
        bool is_length = mg_strncasecmp(name, "Content-Length", 14) == 0;
        if (strpbrk(name, " \t") != NULL) return false;
        lengths += is_length;
        encodings += mg_strcasecmp(name, "Transfer-Encoding") == 0;
        if (is_length && (value[0] == '\0' || strspn(value, "0123456789") != strlen(value)))
            return false;
    }
    return lengths + encodings <= 1;
}

// Reads the bytes that a client still sends, at most most_body: a connection that closes with
// unread bytes is reset, and the client may lose the answer.
static void discard(const bel_http_server *server, struct mg_connection *connection)
{
    char piece[PIECE];
    int64_t deadline = bel_clock_ns() + server->config.timeout_ms * INT64_C(1000000);
    size_t left = server->config.most_body;
    for (int got = 1; got > 0 && left > 0 && bel_clock_ns() < deadline;) {
        got = mg_read(connection, piece, left < PIECE ? left : PIECE);
        left -= got > 0 ? (size_t)got : 0;
    }
}

static void answer_request(const bel_http_server *server, struct mg_connection *connection,
                           const char *path, int *out_code)
{
    const struct mg_request_info *info = mg_get_request_info(connection);
    char message[NOTE];
    bel_str body = {0};
    *out_code = 0;
    if (info->num_headers >= MG_MAX_HEADERS) { // civetweb ignores more, perhaps Content-Length
        *out_code = refuse(server, connection, 431, "expected fewer than 64 header lines");
        return;
    }
    if (!is_framed(info)) {
        *out_code = refuse(server, connection, 400,
                           "expected one Content-Length of digits, or Transfer-Encoding");
        return;
    }
    if (info->content_length != 0) *out_code = read_body(server, connection, &body, message);
    if (*out_code != 0) {
        refuse(server, connection, *out_code, message);
        if (*out_code == 413) discard(server, connection);
        bel_str_deinit(&body);
        return;
    }
    bel_str_append(&body, "", 0); // a zero byte
    const bel_http_request request = {.method = info->request_method,
                                      .path = path,
                                      .remote = info->remote_addr,
                                      .body = body.text,
                                      .body_size = body.length,
                                      .connection = connection};
    bel_http_answer answer = new_answer(200);
    server->config.answer(server->config.user, &request, &answer);
    bel_str_deinit(&body);
    *out_code = answer.code;
    bool closes = !server->config.keep_alive || server->draining;
    send_answer(connection, &answer, strcmp(info->request_method, "HEAD") == 0, closes);
    free_answer(&answer);
}

// Runs on a civetweb thread for each request, before anything of civetweb's own.
static int on_request(struct mg_connection *connection)
{
    bel_http_server *server = mg_get_user_data(mg_get_context(connection));
    int code;
    bel_str path = {0};
    pthread_mutex_lock(&server->mutex);
    bool crowded = server->open > server->config.connections;
    server->active++;
    pthread_mutex_unlock(&server->mutex);
    if (crowded) {
        code = refuse(server, connection, 503, "too many connections");
    } else if (!decode_path(mg_get_request_info(connection)->local_uri, &path)) {
        code = refuse(server, connection, 400, "expected a path, with no zero byte");
    } else {
        answer_request(server, connection, path.text, &code);
    }
    bel_str_deinit(&path);
    pthread_mutex_lock(&server->mutex);
    if (--server->active == 0) pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->mutex);
    return code;
}

static void count_connection(const struct mg_connection *connection, int change)
{
    bel_http_server *server = mg_get_user_data(mg_get_context(connection));
    pthread_mutex_lock(&server->mutex);
    server->open += change;
    pthread_mutex_unlock(&server->mutex);
}

static int on_open(const struct mg_connection *connection, void **data)
{
    (void)data;
    count_connection(connection, 1);
    return 0;
}

static void on_closed(const struct mg_connection *connection)
{
    count_connection(connection, -1);
}

// --- Start and end ------------------------------------------------------------------------------

// civetweb's log callback; the last message is the reason of a failed start.
static int on_log(const struct mg_connection *connection, const char *message)
{
    const struct mg_context *context = mg_get_context(connection);
    bel_http_server *server = context != NULL ? mg_get_user_data(context) : NULL;
    if (server != NULL) { // on any of civetweb's threads
        pthread_mutex_lock(&server->mutex);
        bel_snprintf(server->complaint, sizeof server->complaint, "%s", message);
        pthread_mutex_unlock(&server->mutex);
    }
    return 1; // suppresses printing
}

// civetweb's threads block signals, which belong to the main thread.
static struct mg_context *start_quietly(bel_http_server *server, const char **options)
{
    const struct mg_callbacks callbacks = {.begin_request = on_request,
                                           .log_message = on_log,
                                           .http_error = on_error,
                                           .init_connection = on_open,
                                           .connection_closed = on_closed};
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    struct mg_context *context = mg_start(&callbacks, server, options);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return context;
}

static bool http_listen(bel_http_server *server, const char *where)
{
    char threads[16], timeout[16], idle[16];
    const bel_http_config *config = &server->config;
    bel_snprintf(threads, sizeof threads, "%d", config->connections + SPARE_THREADS);
    bel_snprintf(timeout, sizeof timeout, "%d", config->timeout_ms);
    bel_snprintf(idle, sizeof idle, "%d", config->idle_ms);
    const char *options[] = {"listening_ports",
                             where,
                             "num_threads",
                             threads,
                             "request_timeout_ms",
                             timeout,
                             "keep_alive_timeout_ms",
                             idle,
                             "enable_keep_alive",
                             config->keep_alive ? "yes" : "no",
                             "tcp_nodelay",
                             "1",
                             "decode_url", // it cuts off a path at %00
                             "no",
                             NULL};
    struct mg_server_port ports[1] = {{0}};
    server->context = start_quietly(server, options);
    if (server->context == NULL || mg_get_server_ports(server->context, 1, ports) != 1)
        return false;
    server->port = ports[0].port;
    return true;
}

bel_status *bel_http_server_start(const bel_http_config *config, bel_http_server **out_server)
{
    BEL_TRY(bel_thread_check_room(config->connections + SPARE_THREADS));
    bel_http_server *server = bel_xcalloc(1, sizeof *server);
    char *where = bel_strf("%s:%d", config->address, config->port);
    server->config = *config;
    pthread_mutex_init(&server->mutex, NULL);
    bel_cond_init(&server->idle);
    (void)mg_init_library(0);
    bel_status *status = NULL;
    if (!http_listen(server, where)) {
        pthread_mutex_lock(&server->mutex);
        status =
            BEL_ERR(BEL_UNAVAILABLE, "cannot serve %s on %s%s%s; hint: %s", config->what, where,
                    server->complaint[0] != '\0' ? ": " : "", server->complaint, config->hint);
        pthread_mutex_unlock(&server->mutex);
    }
    bel_free(where);
    if (status != NULL) {
        bel_http_server_stop(server);
        return status;
    }
    *out_server = server;
    return NULL;
}

int bel_http_server_port(const bel_http_server *server)
{
    return server->port;
}

int bel_http_server_drain(bel_http_server *server, int most_ms)
{
    int64_t deadline = bel_clock_ns() + most_ms * INT64_C(1000000);
    pthread_mutex_lock(&server->mutex);
    server->draining = true;
    while (server->active > 0 && bel_cond_wait_until(&server->idle, &server->mutex, deadline))
        continue;
    int left = server->active;
    pthread_mutex_unlock(&server->mutex);
    return left;
}

// mg_stop returns when civetweb's threads have exited, so nothing uses the server afterwards.
void bel_http_server_stop(bel_http_server *server)
{
    if (server == NULL) return;
    if (server->context != NULL) mg_stop(server->context);
    (void)mg_exit_library();
    pthread_cond_destroy(&server->idle);
    pthread_mutex_destroy(&server->mutex);
    bel_free(server);
}
