// HTTP by libcurl: see http.h. A request borrows an easy handle from a stack and gives it back with
// its open connections, so the next request of any thread goes over the connection used last. An
// easy handle for each thread would need a thread's end to be noticed. The library stays open until
// the process ends.
#include <ctype.h>
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "store/crypto.h"
#include "store/http.h"
#include "store/store.h"

#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(curl_global_init)                                                                     \
    FUNCTION(curl_easy_init)                                                                       \
    FUNCTION(curl_easy_reset)                                                                      \
    FUNCTION(curl_easy_cleanup)                                                                    \
    FUNCTION(curl_easy_setopt)                                                                     \
    FUNCTION(curl_easy_perform)                                                                    \
    FUNCTION(curl_easy_getinfo)                                                                    \
    FUNCTION(curl_easy_strerror)                                                                   \
    FUNCTION(curl_slist_append)                                                                    \
    FUNCTION(curl_slist_free_all)                                                                  \
    FUNCTION(curl_getdate)

static struct {
#define FUNCTION(name) __typeof__(name) *name;
    FUNCTIONS(FUNCTION)
#undef FUNCTION
} api;

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static char problem[256];

static void open_library(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        bel_snprintf(problem, sizeof problem, "%s", dlerror());
        return;
    }
    void *address;
#define FUNCTION(name)                                                                             \
    address = dlsym(library, #name);                                                               \
    memcpy(&api.name, &address, sizeof address);                                                   \
    if (address == NULL)                                                                           \
        bel_snprintf(problem, sizeof problem, "libcurl.so.4 has no function " #name);
    FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (problem[0] != '\0') return;
    bel_crypto_begin();
    if (api.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        bel_snprintf(problem, sizeof problem, "curl_global_init failed");
}

// --- Handles

static pthread_mutex_t handles_mutex = PTHREAD_MUTEX_INITIALIZER;
static CURL *handles[BEL_STORE_TRANSFERS];
static int handle_count;

static CURL *borrow_handle(void)
{
    pthread_mutex_lock(&handles_mutex);
    CURL *handle = handle_count > 0 ? handles[--handle_count] : NULL;
    pthread_mutex_unlock(&handles_mutex);
    return handle != NULL ? handle : api.curl_easy_init();
}

static void return_handle(CURL *handle)
{
    api.curl_easy_reset(handle); // its connections stay
    pthread_mutex_lock(&handles_mutex);
    bool kept = handle_count < BEL_STORE_TRANSFERS;
    if (kept) handles[handle_count++] = handle;
    pthread_mutex_unlock(&handles_mutex);
    if (!kept) api.curl_easy_cleanup(handle);
}

// --- Callbacks

typedef struct transfer {
    const bel_http_request *request;
    bel_http_answer *answer;
    CURL *handle;
    struct curl_slist *lines;
    uint64_t sent, skipped;
    bool is_enough; // the wanted bytes are here; the rest is not transferred
    bel_status *status;
} transfer;

static size_t send_piece(char *out, size_t size, size_t count, void *context)
{
    transfer *t = context;
    uint64_t left = t->request->body.size - t->sent;
    size_t piece = left < size * count ? (size_t)left : size * count;
    t->status = bel_http_body_read(&t->request->body, t->sent, out, piece);
    if (t->status != NULL) return CURL_READFUNC_ABORT;
    t->sent += piece;
    return piece;
}

// A server that asks for credentials, or a broken connection, makes libcurl begin again.
static int seek_body(void *context, curl_off_t offset, int origin)
{
    transfer *t = context;
    if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
    t->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t take_bytes(transfer *t, const char *data, size_t size)
{
    bel_http_answer *a = t->answer;
    size_t at = 0;
    if (a->status == 200 && t->skipped < t->request->skip) {
        uint64_t left = t->request->skip - t->skipped;
        at = left < size ? (size_t)left : size;
        t->skipped += at;
    }
    size_t room = t->request->most - a->got, piece = size - at < room ? size - at : room;
    if (piece > 0) t->status = t->request->take(t->request->taker, a->got, data + at, piece);
    if (t->status != NULL) return 0;
    a->got += piece;
    if (at + piece == size) return size;
    a->is_larger = t->is_enough = true;
    return 0;
}

static size_t receive_piece(char *data, size_t size, size_t count, void *context)
{
    transfer *t = context;
    bel_http_answer *a = t->answer;
    size *= count;
    bool wanted = a->status == 200 || a->status == 206;
    if (wanted && t->request->take != NULL) return take_bytes(t, data, size);
    enum { ERROR_MOST = 1 << 16 };
    size_t most = wanted ? t->request->most : ERROR_MOST;
    size_t piece = size < most - a->text.length ? size : most - a->text.length;
    bel_str_append(&a->text, data, piece);
    if (piece == size) return size;
    a->is_larger = t->is_enough = true;
    return 0;
}

// A date has full seconds: on average it is half a second late.
static void take_clock(bel_http_answer *answer)
{
    time_t at = api.curl_getdate(bel_headers_find(&answer->headers, "date"), NULL);
    answer->has_clock = at > 0;
    answer->clock_offset_secs = (double)at + 0.5 - bel_clock_wall();
}

// A line of the answer's head. A status line begins a new answer: after 100 or a redirect.
static size_t receive_header(char *line, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t length = size * count;
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n'))
        length--;
    if (length > 5 && strncmp(line, "HTTP/", 5) == 0) {
        const char *space = memchr(line, ' ', length);
        int64_t status = 0;
        bool good = space != NULL && length - (size_t)(space - line) >= 4 &&
                    bel_parse_i64(space + 1, 3, &status);
        bel_headers_deinit(&t->answer->headers);
        t->answer->status = good ? (int)status : 0;
        return size * count;
    }
    const char *colon = memchr(line, ':', length);
    if (colon == NULL) return size * count;
    char *name = bel_xstrndup(line, (size_t)(colon - line));
    for (char *c = name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *value = colon + 1, *end = line + length;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    bel_headers_add(&t->answer->headers, name, "%.*s", (int)(end - value), value);
    if (strcmp(name, "date") == 0) take_clock(t->answer);
    bel_free(name);
    return size * count;
}

// --- Request

static void set_body(transfer *t)
{
    const bel_http_request *r = t->request;
    CURL *h = t->handle;
    if (strcmp(r->method, "HEAD") == 0) {
        api.curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
    } else if (strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0) {
        api.curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
        api.curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body.size);
        api.curl_easy_setopt(h, CURLOPT_READFUNCTION, send_piece);
        api.curl_easy_setopt(h, CURLOPT_READDATA, t);
        api.curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, seek_body);
        api.curl_easy_setopt(h, CURLOPT_SEEKDATA, t);
        api.curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 19);
        // Without it libcurl waits for "100 Continue" before a body.
        t->lines = api.curl_slist_append(t->lines, "Expect:");
    }
    if (strcmp(r->method, "HEAD") != 0) api.curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_options(transfer *t)
{
    const bel_http_request *r = t->request;
    CURL *h = t->handle;
    const char *bundle = getenv("AWS_CA_BUNDLE");
    api.curl_easy_setopt(h, CURLOPT_URL, r->url);
    api.curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L); // a signature is over these bytes
    api.curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    api.curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    api.curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    api.curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, r->follow ? 1L : 0L);
    api.curl_easy_setopt(h, CURLOPT_MAXREDIRS, 5L);
    api.curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(r->connect_secs * 1e3));
    api.curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1000L);
    api.curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)(r->stall_secs + 0.999));
    api.curl_easy_setopt(h, CURLOPT_BUFFERSIZE, 1L << 18);
    api.curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    api.curl_easy_setopt(h, CURLOPT_USERAGENT, "belfry/" BEL_VERSION);
    api.curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, receive_piece);
    api.curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    api.curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, receive_header);
    api.curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
    if (bundle != NULL && bundle[0] != '\0') api.curl_easy_setopt(h, CURLOPT_CAINFO, bundle);
    if (r->is_single) api.curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L);
    if (r->direct) api.curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
    set_body(t);
    for (size_t i = 0; r->headers != NULL && i < r->headers->count; i++)
        t->lines = api.curl_slist_append(t->lines, r->headers->lines[i]);
    api.curl_easy_setopt(h, CURLOPT_HTTPHEADER, t->lines);
}

static void take_outcome(transfer *t, CURLcode code, const char *detail)
{
    bel_http_answer *a = t->answer;
    curl_off_t wait = 0;
    if (t->is_enough && code == CURLE_WRITE_ERROR) code = CURLE_OK;
    if (code != CURLE_OK)
        bel_snprintf(a->fault, sizeof a->fault, "%s",
                     detail[0] != '\0' ? detail : api.curl_easy_strerror(code));
    a->is_lasting = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
                    code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CACERT_BADFILE ||
                    code == CURLE_TOO_MANY_REDIRECTS;
    if (api.curl_easy_getinfo(t->handle, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
        a->retry_secs = (double)wait;
    if (a->text.text == NULL) bel_str_puts(&a->text, "");
}

// Runs the transfer. OpenSSL writes to sockets in a way that raises SIGPIPE if the other end has
// disconnected, and the program may not ignore it: blocked, it is taken off the thread afterwards.
static CURLcode perform(CURL *handle)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe, before, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    sigpending(&pending);
    CURLcode code = api.curl_easy_perform(handle);
    if (!sigismember(&pending, SIGPIPE)) sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

bel_status *bel_http_send(const bel_http_request *request, bel_http_answer *out_answer)
{
    pthread_once(&open_once, open_library);
    if (problem[0] != '\0')
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s; hint: URLs need libcurl: apt-get install libcurl4",
                       problem);
    bel_http_answer answer = {0};
    transfer t = {.request = request, .answer = &answer, .handle = borrow_handle()};
    if (t.handle == NULL) return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "libcurl has no memory");
    char detail[CURL_ERROR_SIZE] = "";
    api.curl_easy_setopt(t.handle, CURLOPT_ERRORBUFFER, detail);
    set_options(&t);
    CURLcode code = perform(t.handle);
    if (t.status == NULL) take_outcome(&t, code, detail);
    api.curl_slist_free_all(t.lines);
    return_handle(t.handle);
    if (t.status != NULL) {
        bel_http_answer_deinit(&answer);
        return t.status;
    }
    *out_answer = answer;
    return NULL;
}
