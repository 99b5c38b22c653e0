// Each thread accepts a connection, serves it, and accepts the next one. So no connection waits for
// another thread, and their number is the bound.
//
// A request counts as active from its first byte to its answer's last one. The server ends without
// losing a request that it could answer: connections between requests wake, and have a moment for a
// request that is on its way; those that have closed meanwhile end at once. Requests that begin
// after the drain did not extend the time in which new connections are accepted.
#include "http/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/thread.h"
#include "http/http_answer.h"
#include "http/http_reader.h"

// Threads that refuse connections; time of a connection for a last request; most time of a drain
// for connections that wait to be accepted, and for those that greet; longest pause of a client
// whose request was refused.
enum {
    SPARE_THREADS = 4,
    GRACE_MS = 200,
    QUEUE_MS = 1000,
    GREETING_MS = 2000,
    PAUSE_MS = 2000,
    NOTE = 96,
    ADDRESS = 64
};

typedef struct worker {
    bel_http_server *server;
    pthread_t thread;
    int file;        // its connection; -1: none. Under the server's mutex.
    bool is_crowded; // the connection is one too many, and does not count in `open`
    char remote[ADDRESS];
    bel_http_reader reader;
    bel_str out; // bytes of an answer
} worker;

struct bel_http_server {
    bel_http_config config;
    bel_http_tls *tls; // NULL: none
    int listener, port;
    int waking[2]; // a pipe, whose end to write closes when the server drains
    worker *workers;
    int worker_count;
    pthread_mutex_t mutex;
    pthread_cond_t changed; // a count became smaller
    int active[2], open;    // requests that began before the drain, and since; connections
    int greeting;           // connections without their first request, while TLS may delay it
    _Atomic bool draining;
    bool stopping, is_short_of_files;
};

const char *bel_http_header(const bel_http_request *request, const char *name)
{
    return bel_http_head_find(request->head, name);
}

static int64_t after_ms(int ms)
{
    return bel_clock_ns() + ms * INT64_C(1000000);
}

// --- Answers ------------------------------------------------------------------------------------

// Sends head and body by one call, because each call is a packet.
static bool send_answer(worker *w, const bel_http_answer *answer, bool without_body, bool closes)
{
    enum { MOST_KEPT = 1 << 20 };
    bel_str *out = &w->out;
    out->length = 0;
    const char *connection = closes ? "close" : NULL;
    if (!closes && w->reader.head.is_old) connection = "keep-alive";
    bel_http_answer_put(out, answer, connection, without_body);
    bool sent = bel_http_stream_write(&w->reader.stream, out->text, out->length,
                                      w->server->config.timeout_ms);
    if (out->capacity > MOST_KEPT) bel_str_deinit(out);
    return sent;
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

// Sends an answer to a request that is not read to its end. The connection is to be closed, after
// the bytes that the client still sends, at most most_body: one that closes with unread bytes is
// reset, and the client may lose the answer.
static void send_last(worker *w, const bel_http_answer *answer)
{
    const bel_http_config *config = &w->server->config;
    char piece[1024];
    if (!send_answer(w, answer, false, true)) return;
    bel_http_stream_end(&w->reader.stream);
    size_t left = config->most_body + BEL_HTTP_HEAD_BYTES;
    int64_t end = after_ms(config->timeout_ms), pause = after_ms(PAUSE_MS);
    for (ptrdiff_t got = 1; got > 0 && left > (size_t)got; pause = after_ms(PAUSE_MS)) {
        left -= (size_t)got;
        got =
            bel_http_stream_read(&w->reader.stream, piece, sizeof piece, pause < end ? pause : end);
    }
}

// Refuses a request. The connection is to be closed.
static void refuse(worker *w, int code, const char *message)
{
    const bel_http_config *config = &w->server->config;
    bel_http_answer answer = new_answer(code);
    if (config->refuse != NULL) config->refuse(config->user, code, message, &answer);
    send_last(w, &answer);
    free_answer(&answer);
}

// --- Requests -----------------------------------------------------------------------------------

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

// Decodes the path of a target, in place; the target may be an absolute URL, as proxies get it.
// NULL: there is no path, a wrong escape, or a zero byte, where the path would end.
static const char *decode_path(char *target)
{
    char *scheme = strstr(target, "://"), *path = target;
    if (target[0] != '/') path = scheme != NULL ? strchr(scheme + 3, '/') : NULL;
    if (path == NULL) return NULL;
    path[strcspn(path, "?#")] = '\0';
    char *to = path;
    for (const char *from = path; *from != '\0'; from++) {
        char c = *from;
        if (c == '%') {
            int high = digit_of(from[1]), low = high >= 0 ? digit_of(from[2]) : -1;
            if (low < 0 || high * 16 + low == 0) return NULL;
            c = (char)(high * 16 + low);
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return path;
}

// Reads the body. Returns 0, or the code of an error, with its message.
static int read_body(worker *w, const char **out_body, size_t *out_size, char out_message[NOTE])
{
    const bel_http_config *config = &w->server->config;
    bel_http_reader *r = &w->reader;
    bool is_there = r->in.length > r->used || r->head.content_length > config->most_body;
    static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (r->head.awaits_continue && !is_there)
        (void)bel_http_stream_write(&r->stream, proceed, sizeof proceed - 1, config->timeout_ms);
    int code = bel_http_reader_body(r, config->most_body, after_ms(config->timeout_ms), out_body,
                                    out_size);
    if (code == 413) {
        bel_snprintf(out_message, NOTE, "expected a body of at most %zu bytes", config->most_body);
    } else if (code == 408) {
        bel_snprintf(out_message, NOTE, "the body ended after %zu bytes, or took longer than %d ms",
                     r->body.length, config->timeout_ms);
    } else if (code != 0) {
        bel_snprintf(out_message, NOTE, "malformed chunks of the body");
    }
    return code;
}

// Sends an answer. Returns whether the connection stays open.
static bool finish_answer(worker *w, const bel_http_answer *answer)
{
    const bel_http_head *head = &w->reader.head;
    bool closes = !w->server->config.keep_alive || !head->keeps || w->server->draining;
    return send_answer(w, answer, strcmp(head->method, "HEAD") == 0, closes) && !closes;
}

// Whether the server answers the request. False: it is refused, and *out_stays says whether the
// connection stays open.
static bool is_accepted(worker *w, const bel_http_request *request, bool *out_stays)
{
    const bel_http_config *config = &w->server->config;
    const bel_http_head *head = &w->reader.head;
    bel_http_answer answer = new_answer(200);
    bool accepts = config->accepts == NULL || config->accepts(config->user, request, &answer);
    *out_stays = false;
    if (!accepts && !head->is_chunked && head->content_length == 0) {
        *out_stays = finish_answer(w, &answer);
    } else if (!accepts) {
        send_last(w, &answer);
    }
    free_answer(&answer);
    return accepts;
}

// Answers the request whose head was read. Returns whether the connection stays open.
static bool answer_request(worker *w, const char *path)
{
    bel_http_server *server = w->server;
    const bel_http_config *config = &server->config;
    const bel_http_head *head = &w->reader.head;
    char message[NOTE];
    bel_http_request request = {
        .method = head->method, .path = path, .remote = w->remote, .body = "", .head = head};
    bool stays;
    if (!is_accepted(w, &request, &stays)) return stays;
    int code = read_body(w, &request.body, &request.body_size, message);
    if (code != 0) {
        refuse(w, code, message);
        return false;
    }
    bel_http_answer answer = new_answer(200);
    config->answer(config->user, &request, &answer);
    stays = finish_answer(w, &answer);
    free_answer(&answer);
    return stays;
}

// Returns whether the connection stays open. `deadline` is that of the head.
static bool serve_request(worker *w, int64_t deadline)
{
    const char *message;
    int code = bel_http_reader_head(&w->reader, deadline, &message);
    if (code < 0) return false;
    char *target = code == 0 ? w->reader.head.target : NULL;
    const char *path = target != NULL ? decode_path(target) : NULL;
    if (code == 0 && path == NULL) {
        code = 400;
        message = "expected a path, with no zero byte";
    }
    if (code == 0 && w->is_crowded) {
        code = 503;
        message = "too many connections";
    }
    if (code == 0) return answer_request(w, path);
    refuse(w, code, message);
    return false;
}

// --- Connections --------------------------------------------------------------------------------

// Waits for the first bytes of a request. False: none came.
static bool await_request(worker *w, int64_t deadline)
{
    bel_http_server *server = w->server;
    if (bel_http_reader_next(&w->reader)) return true;
    int ready = BEL_HTTP_WOKEN;
    if (!server->draining)
        ready = bel_http_stream_await(&w->reader.stream, server->waking[0], deadline);
    if (ready == BEL_HTTP_WOKEN)
        ready = bel_http_stream_await(&w->reader.stream, -1, after_ms(GRACE_MS));
    return ready == 1;
}

// Counts a request. Returns 1 if the server drains, and 0 otherwise. A connection that was one too
// many takes a place that is free by now.
static int begin_request(worker *w)
{
    bel_http_server *server = w->server;
    pthread_mutex_lock(&server->mutex);
    int since = server->draining;
    server->active[since]++;
    if (w->is_crowded && (since == 1 || server->open < server->config.connections)) {
        w->is_crowded = false;
        server->open++;
    }
    pthread_mutex_unlock(&server->mutex);
    return since;
}

static void end_request(bel_http_server *server, int since)
{
    pthread_mutex_lock(&server->mutex);
    if (--server->active[since] == 0 && server->draining) pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
}

// Counts a connection as one that greets, or no more.
static void count_greeting(bel_http_server *server, int change)
{
    if (server->tls == NULL) return;
    pthread_mutex_lock(&server->mutex);
    server->greeting += change;
    if (server->draining) pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
}

// A request begins with its first bytes, which may be a part of a record of TLS. The first head has
// the deadline of the connection.
static void serve_connection(worker *w, int file)
{
    bel_http_server *server = w->server;
    const bel_http_config *config = &server->config;
    bool is_plain, stays = true;
    const int64_t first = after_ms(config->timeout_ms);
    count_greeting(server, 1);
    w->reader = (bel_http_reader){0};
    if (!bel_http_stream_open(&w->reader.stream, file, server->tls, first, &is_plain)) {
        if (is_plain) refuse(w, 400, "expected TLS; hint: https://");
        count_greeting(server, -1);
        stays = false;
    }
    for (bool is_first = true; stays; is_first = false) {
        stays = await_request(w, is_first ? first : after_ms(config->idle_ms));
        int since = stays ? begin_request(w) : 0;
        if (is_first) count_greeting(server, -1);
        if (!stays) break;
        int64_t deadline = is_first ? first : after_ms(config->timeout_ms);
        bool has_bytes = w->reader.in.length > w->reader.used;
        stays = (has_bytes || bel_http_reader_fill(&w->reader, deadline) > 0) &&
                serve_request(w, deadline);
        end_request(server, since);
    }
    bel_http_reader_deinit(&w->reader);
}

static void note_remote(worker *w, const struct sockaddr *address, socklen_t length)
{
    static const char mapped[] = "::ffff:"; // an IPv4 client of an IPv6 socket
    if (getnameinfo(address, length, w->remote, sizeof w->remote, NULL, 0, NI_NUMERICHOST) != 0)
        w->remote[0] = '\0';
    if (strncmp(w->remote, mapped, sizeof mapped - 1) == 0)
        memmove(w->remote, w->remote + sizeof mapped - 1,
                strlen(w->remote + sizeof mapped - 1) + 1);
}

// Says once that connections cannot be accepted, and pauses.
static void note_shortage(bel_http_server *server, int error)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    pthread_mutex_lock(&server->mutex);
    bool is_news = !server->is_short_of_files;
    server->is_short_of_files = true;
    pthread_mutex_unlock(&server->mutex);
    if (is_news)
        bel_log_write(BEL_LOG_WARN, "port %d: connections wait: %s", server->port, strerror(error));
    (void)nanosleep(&nap, NULL);
}

// Accepts a connection. Below 0: the server accepts no more.
static int accept_next(worker *w)
{
    bel_http_server *server = w->server;
    const int yes = 1;
    for (;;) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int file = accept(server->listener, (struct sockaddr *)&address, &length);
        int error = errno;
        pthread_mutex_lock(&server->mutex);
        bool ends = server->stopping || (file < 0 && error == EINVAL); // the listener was shut down
        if (file >= 0 && !ends) {
            w->file = file;
            w->is_crowded = server->open >= server->config.connections;
            if (!w->is_crowded) server->open++;
        }
        pthread_mutex_unlock(&server->mutex);
        if (file >= 0 && ends) (void)close(file);
        if (ends) return -1;
        if (file < 0) {
            if (error != EINTR && error != ECONNABORTED) note_shortage(server, error);
            continue;
        }
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
        (void)fcntl(file, F_SETFL, O_NONBLOCK);
        (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        note_remote(w, (const struct sockaddr *)&address, length);
        return file;
    }
}

// Closes the connection when no other thread can shut it down.
static void leave(worker *w)
{
    bel_http_server *server = w->server;
    pthread_mutex_lock(&server->mutex);
    w->file = -1;
    if (!w->is_crowded) server->open--;
    if (server->draining) pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
    bel_http_stream_close(&w->reader.stream);
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    for (int file; (file = accept_next(w)) >= 0;) {
        serve_connection(w, file);
        leave(w);
    }
    return NULL;
}

// --- Start and end ------------------------------------------------------------------------------

static int listen_at(const struct addrinfo *address)
{
    const int yes = 1;
    int file = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (file < 0) return -1;
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(file, address->ai_addr, address->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0)
        return file;
    int error = errno;
    (void)close(file);
    errno = error;
    return -1;
}

static int port_of(int file)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    (void)getsockname(file, (struct sockaddr *)&address, &length);
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
    return ntohs(address.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

static bel_status *listen_on(bel_http_server *server)
{
    const bel_http_config *config = &server->config;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    size_t length = strlen(config->address);
    bool in_brackets = length > 2 && config->address[0] == '['; // "[::1]"
    char *host =
        bel_xstrndup(config->address + (in_brackets ? 1 : 0), length - (in_brackets ? 2 : 0));
    char *port = bel_strf("%d", config->port);
    int error = getaddrinfo(host, port, &hints, &list);
    const char *why = error != 0 ? gai_strerror(error) : "no address";
    for (const struct addrinfo *a = list; a != NULL && server->listener < 0; a = a->ai_next) {
        server->listener = listen_at(a);
        if (server->listener < 0) why = strerror(errno);
    }
    if (list != NULL) freeaddrinfo(list);
    bel_free(host);
    bel_free(port);
    if (server->listener < 0)
        return BEL_ERR(BEL_UNAVAILABLE, "cannot serve %s on %s:%d: %s; hint: %s", config->what,
                       config->address, config->port, why, config->hint);
    server->port = port_of(server->listener);
    return NULL;
}

static bel_status *start(bel_http_server *server)
{
    const bel_http_config *config = &server->config;
    if (config->tls_certificate != NULL)
        BEL_TRY(bel_http_tls_create(config->tls_certificate, config->tls_key, config->tls_ca,
                                    &server->tls));
    if (pipe(server->waking) != 0)
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
        (void)fcntl(server->waking[i], F_SETFD, FD_CLOEXEC);
    BEL_TRY(listen_on(server));
    int count = config->connections + SPARE_THREADS;
    server->workers = bel_xcalloc((size_t)count, sizeof *server->workers);
    for (; server->worker_count < count; server->worker_count++) {
        worker *w = &server->workers[server->worker_count];
        w->server = server;
        w->file = -1;
        BEL_TRY(bel_thread_start(&w->thread, worker_main, w));
    }
    return NULL;
}

bel_status *bel_http_server_start(const bel_http_config *config, bel_http_server **out_server)
{
    bel_http_server *server = bel_xcalloc(1, sizeof *server);
    server->config = *config;
    server->listener = server->waking[0] = server->waking[1] = -1;
    pthread_mutex_init(&server->mutex, NULL);
    bel_cond_init(&server->changed);
    bel_status *status = start(server);
    bel_http_config *kept = &server->config; // without the caller's texts
    kept->address = kept->what = kept->hint = kept->tls_ca = kept->tls_certificate = NULL;
    kept->tls_key = NULL;
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

// Waits until a number is 0. False: the deadline.
static bool wait_for_none(bel_http_server *server, const int *number, int64_t deadline)
{
    while (*number > 0)
        if (!bel_cond_wait_until(&server->changed, &server->mutex, deadline)) return *number == 0;
    return true;
}

static bool is_queued(const bel_http_server *server)
{
    struct pollfd entry = {.fd = server->listener, .events = POLLIN};
    return poll(&entry, 1, 0) > 0;
}

// Waits until no connection waits to be accepted: a shutdown of the listener resets them. Threads
// become free as idle connections end.
static void await_queue(bel_http_server *server, int64_t deadline)
{
    while (is_queued(server) && bel_clock_ns() < deadline) {
        int64_t next = after_ms(5);
        while (bel_cond_wait_until(&server->changed, &server->mutex, next)) {
        }
    }
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int bel_http_server_drain(bel_http_server *server, int most_ms)
{
    int64_t deadline = after_ms(most_ms);
    pthread_mutex_lock(&server->mutex);
    bool begins = !server->draining;
    server->draining = true;
    if (begins) (void)close(server->waking[1]); // idle connections wake
    (void)wait_for_none(server, &server->active[0], deadline);
    await_queue(server, sooner(after_ms(QUEUE_MS), deadline));
    (void)shutdown(server->listener, SHUT_RDWR); // threads that accept end
    (void)wait_for_none(server, &server->active[1], deadline);
    (void)wait_for_none(server, &server->greeting, sooner(after_ms(GREETING_MS), deadline));
    (void)wait_for_none(server, &server->open, sooner(after_ms(2 * GRACE_MS), deadline));
    (void)wait_for_none(server, &server->active[1], deadline); // the last requests
    int left = server->active[0] + server->active[1] + server->greeting;
    pthread_mutex_unlock(&server->mutex);
    return left;
}

void bel_http_server_stop(bel_http_server *server)
{
    if (server == NULL) return;
    if (server->worker_count > 0) (void)bel_http_server_drain(server, 0);
    pthread_mutex_lock(&server->mutex);
    server->stopping = true;
    for (int i = 0; i < server->worker_count; i++)
        if (server->workers[i].file >= 0) (void)shutdown(server->workers[i].file, SHUT_RDWR);
    pthread_mutex_unlock(&server->mutex);
    for (int i = 0; i < server->worker_count; i++) {
        pthread_join(server->workers[i].thread, NULL);
        bel_str_deinit(&server->workers[i].out);
    }
    if (server->listener >= 0) (void)close(server->listener);
    if (server->waking[0] >= 0) (void)close(server->waking[0]);
    if (server->waking[1] >= 0 && !server->draining) (void)close(server->waking[1]);
    bel_http_tls_destroy(server->tls);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->mutex);
    bel_free(server->workers);
    bel_free(server);
}
