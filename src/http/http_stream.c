// The only file that uses OpenSSL's libssl. Sockets do not block, and poll waits for them, so that
// the deadline holds for TLS as well. Threads of the server have SIGPIPE blocked, as all signals:
// libssl writes without MSG_NOSIGNAL.
//
// A session can be resumed without another look at the client's certificate, as only a client that
// has shown one gets a ticket.
#include "http/http_stream.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/pem.h"

struct bel_http_tls {
    SSL_CTX *context;
};

// --- TLS ----------------------------------------------------------------------------------------

// Takes the oldest error of OpenSSL on this thread.
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_get_error());
    return text != NULL ? text : "unknown";
}

// A key with a password is an error, instead of a question at the terminal.
static int no_password(char *to, int size, int is_new, void *user)
{
    (void)to, (void)size, (void)is_new, (void)user;
    return -1;
}

static bel_status *use_files(SSL_CTX *context, const char *certificate, const char *key,
                             const char *ca)
{
    BEL_TRY(bel_pem_check(certificate, "CERTIFICATE"));
    BEL_TRY(bel_pem_check(key, "PRIVATE KEY"));
    if (ca != NULL) BEL_TRY(bel_pem_check(ca, "CERTIFICATE"));
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "TLS: certificate %s: %s", certificate, reason());
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "TLS: key %s for the certificate %s: %s", key,
                       certificate, reason());
    // A key of another type than the certificate's has passed so far.
    if (SSL_CTX_check_private_key(context) != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "TLS: key %s is not that of the certificate %s: %s",
                       key, certificate, reason());
    if (ca == NULL) return NULL;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca);
    if (names == NULL || SSL_CTX_load_verify_file(context, ca) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return BEL_ERR(BEL_INVALID_ARGUMENT, "TLS: authority %s: %s", ca, reason());
    }
    SSL_CTX_set_client_CA_list(context, names); // it owns them
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return NULL;
}

bel_status *bel_http_tls_create(const char *certificate, const char *key, const char *ca,
                                bel_http_tls **out_tls)
{
    static const unsigned char name[] = "belfry"; // sessions with certificates need one
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL) return BEL_ERR(BEL_INTERNAL, "TLS: %s", reason());
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(context,
                           SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    (void)SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
    bel_status *status = use_files(context, certificate, key, ca);
    if (status != NULL) {
        SSL_CTX_free(context);
        return status;
    }
    *out_tls = bel_xcalloc(1, sizeof **out_tls);
    (*out_tls)->context = context;
    return NULL;
}

void bel_http_tls_destroy(bel_http_tls *tls)
{
    if (tls == NULL) return;
    SSL_CTX_free(tls->context);
    bel_free(tls);
}

// --- Waits --------------------------------------------------------------------------------------

// Waits for an event of the socket. Returns 1, or BEL_HTTP_LATE or BEL_HTTP_WOKEN. A broken
// connection is an event, too.
static int wait_for(int file, short event, int wake, int64_t deadline_ns)
{
    struct pollfd entries[2] = {{.fd = file, .events = event}, {.fd = wake, .events = POLLIN}};
    for (;;) {
        int64_t left = deadline_ns - bel_clock_ns();
        int64_t ms = left > 0 ? (left + 999999) / 1000000 : 0;
        int count = poll(entries, wake >= 0 ? 2 : 1, ms < INT_MAX ? (int)ms : INT_MAX);
        if (count > 0) return entries[0].revents != 0 ? 1 : BEL_HTTP_WOKEN;
        if (count == 0 && left <= 0) return BEL_HTTP_LATE;
        if (count < 0 && errno != EINTR) return BEL_HTTP_LATE; // no memory for the call
    }
}

// Waits as a call of OpenSSL demands. False: the call failed, or took too long.
static bool wait_for_tls(const bel_http_stream *stream, int result, int64_t deadline_ns)
{
    int error = SSL_get_error(stream->session, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    short event = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return wait_for(stream->file, event, -1, deadline_ns) == 1;
}

// --- Streams ------------------------------------------------------------------------------------

bool bel_http_stream_open(bel_http_stream *stream, int file, const bel_http_tls *tls,
                          int64_t deadline_ns, bool *out_is_plain)
{
    *stream = (bel_http_stream){.file = file};
    *out_is_plain = false;
    if (tls == NULL) return true;
    ERR_clear_error();
    SSL *session = SSL_new(tls->context);
    if (session == NULL || SSL_set_fd(session, file) != 1) {
        SSL_free(session);
        return false;
    }
    stream->session = session;
    for (;;) {
        int result = SSL_accept(session);
        if (result == 1) return true;
        if (wait_for_tls(stream, result, deadline_ns)) continue;
        *out_is_plain = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
        ERR_clear_error();
        SSL_free(session);
        stream->session = NULL;
        return false;
    }
}

int bel_http_stream_await(const bel_http_stream *stream, int wake, int64_t deadline_ns)
{
    if (stream->session != NULL && SSL_has_pending(stream->session)) return 1;
    return wait_for(stream->file, POLLIN, wake, deadline_ns);
}

static ptrdiff_t read_tls(const bel_http_stream *stream, void *to, size_t most, int64_t deadline_ns)
{
    ERR_clear_error();
    for (;;) {
        int got = SSL_read(stream->session, to, most < INT_MAX ? (int)most : INT_MAX);
        if (got > 0) return got;
        if (SSL_get_error(stream->session, got) == SSL_ERROR_ZERO_RETURN) return BEL_HTTP_END;
        if (!wait_for_tls(stream, got, deadline_ns))
            return bel_clock_ns() >= deadline_ns ? BEL_HTTP_LATE : BEL_HTTP_LOST;
    }
}

ptrdiff_t bel_http_stream_read(const bel_http_stream *stream, void *to, size_t most,
                               int64_t deadline_ns)
{
    if (bel_clock_ns() >= deadline_ns) return BEL_HTTP_LATE; // also if bytes never stop
    if (stream->session != NULL) return read_tls(stream, to, most, deadline_ns);
    for (;;) {
        ssize_t got = recv(stream->file, to, most, 0);
        if (got >= 0) return got;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return BEL_HTTP_LOST;
        int ready = wait_for(stream->file, POLLIN, -1, deadline_ns);
        if (ready != 1) return ready;
    }
}

// Writes a first part, and returns its size; 0: it took too long, or failed.
static size_t write_some(const bel_http_stream *stream, const void *bytes, size_t size,
                         int64_t deadline_ns)
{
    int most = size < INT_MAX ? (int)size : INT_MAX;
    ERR_clear_error();
    for (;;) {
        ptrdiff_t put = stream->session != NULL ? SSL_write(stream->session, bytes, most)
                                                : send(stream->file, bytes, size, MSG_NOSIGNAL);
        if (put > 0) return (size_t)put;
        if (stream->session != NULL) {
            if (!wait_for_tls(stream, (int)put, deadline_ns)) return 0;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (wait_for(stream->file, POLLOUT, -1, deadline_ns) != 1) return 0;
        } else if (errno != EINTR) {
            return 0;
        }
    }
}

bool bel_http_stream_write(const bel_http_stream *stream, const void *bytes, size_t size,
                           int timeout_ms)
{
    enum { PART = 1 << 20 };
    const char *at = bytes;
    for (size_t left = size; left > 0;) {
        int64_t deadline = bel_clock_ns() + timeout_ms * INT64_C(1000000);
        const char *end = at + (left < PART ? left : PART);
        left -= (size_t)(end - at);
        while (at < end) {
            size_t put = write_some(stream, at, (size_t)(end - at), deadline);
            if (put == 0) return false;
            at += put;
        }
    }
    return true;
}

void bel_http_stream_end(const bel_http_stream *stream)
{
    ERR_clear_error();
    if (stream->session != NULL) (void)SSL_shutdown(stream->session); // the client may be gone
    (void)shutdown(stream->file, SHUT_WR);
}

void bel_http_stream_close(bel_http_stream *stream)
{
    ERR_clear_error();
    if (stream->session != NULL) (void)SSL_shutdown(stream->session); // the client may be gone
    SSL_free(stream->session);
    (void)close(stream->file);
}
