// Requests to a store: see request.h. Each try is signed anew, as a signature has a time. An answer
// is judged by its fault, status and code: it is the outcome, or leads to another try at once (new
// credentials, region or clock; each once a call) or after a pause, or it is an error.
#include "store/request.h"

#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "store/credentials.h"
#include "store/crypto.h"
#include "store/patience.h"
#include "store/sign.h"

enum { CORRUPT_TRIES = 5, CONNECT_SECS = 10, SLOW_STALL_SECS = 600 };

typedef enum verdict { DONE, AT_ONCE, LATER, FAILED } verdict;

typedef struct attempt {
    bel_store_call *call;
    bel_credentials *credentials;
    bel_http_answer answer;
    bel_store_problem problem;
    const char *mismatch;                                  // in the answer's bytes; NULL: none
    char sha256[BEL_HEX_BYTES], md5[BEL_MD5_BASE64_BYTES]; // sums of the body; "": not computed yet
    bool renewed, moved, reset;                            // tried at once for this reason
    int corrupt;                                           // answers with a mismatch
    int64_t first_failure_ns;                              // 0: none yet
    bool was_reported;
    bel_backoff backoff;
} attempt;

// --- One try

// The body's SHA-256 is signed. Over https the connection protects the body.
static bool signs_body(const attempt *a, const bel_place_view *place)
{
    bool tls = strncmp(place->origin, "https", 5) == 0;
    return a->credentials != NULL && a->credentials->bearer == NULL && !tls;
}

// Computes the hash for the signature, or the checksum that the store compares. S3's interface
// compares a signed SHA-256, too: then one pass over the bytes is enough.
static bel_status *hash_body(attempt *a, bool is_signed)
{
    const bel_store_call *call = a->call;
    bel_status *status = NULL;
    bool summed = call->is_summed && !(is_signed && call->url->scheme == BEL_STORE_S3);
    if (is_signed && a->sha256[0] == '\0') {
        bel_digest *d = bel_digest_create(BEL_DIGEST_SHA256);
        status = bel_http_body_digest(&call->body, d);
        bel_digest_finish_hex(d, a->sha256);
    }
    if (summed && a->md5[0] == '\0' && status == NULL) {
        bel_digest *d = bel_digest_create(BEL_DIGEST_MD5);
        status = bel_http_body_digest(&call->body, d);
        bel_digest_finish_base64(d, a->md5);
    }
    return status;
}

static void copy_headers(const bel_headers *from, bel_headers *to)
{
    for (size_t i = 0; from != NULL && i < from->count; i++) {
        size_t name = strcspn(from->lines[i], ":");
        char *text = bel_xstrndup(from->lines[i], name);
        bel_headers_add(to, text, "%s", from->lines[i] + name + 2);
        bel_free(text);
    }
}

static void authorize(const attempt *a, const bel_place_view *place, const char *path,
                      bel_headers *headers)
{
    const bel_store_call *call = a->call;
    const bel_credentials *c = a->credentials;
    if (c == NULL) return;
    if (c->bearer != NULL) {
        bel_headers_add(headers, "authorization", "Bearer %s", c->bearer);
        return;
    }
    const char *hash = signs_body(a, place) ? a->sha256 : BEL_UNSIGNED_PAYLOAD;
    bool google = call->url->scheme == BEL_STORE_GS;
    bel_headers_add(headers, google ? "x-goog-content-sha256" : "x-amz-content-sha256", "%s", hash);
    if (c->token != NULL) bel_headers_add(headers, "x-amz-security-token", "%s", c->token);
    bel_sign_input input = {
        .method = call->method,
        .host = place->host,
        .path = path,
        .query = call->query != NULL ? call->query : "",
        .payload = hash,
        .key_id = c->key_id,
        .secret = c->secret,
        .region = place->region,
        .service = google ? "storage" : "s3",
        .google = google,
        .time = (int64_t)(bel_clock_wall() + place->skew_secs),
    };
    bel_sign_request(&input, headers);
}

static bel_status *send_once(attempt *a)
{
    bel_store_call *call = a->call;
    bool web = call->url->scheme == BEL_STORE_WEB;
    bel_place_view place;
    bel_place_view_init(&place, call->place);
    bel_str path = {0}, url = {0};
    bel_headers headers = {0};
    bel_str_puts(&path, place.path);
    if (web) {
        bel_str_puts(&path, call->url->key);
    } else if (!call->is_of_bucket) {
        bel_str_puts(&path, "/");
        bel_url_encode(&path, call->url->key, true);
    } else if (path.length == 0) {
        bel_str_puts(&path, "/");
    }
    bel_str_printf(&url, "%s%s", place.origin, path.text);
    if (call->query != NULL) bel_str_printf(&url, "?%s", call->query);
    copy_headers(call->headers, &headers);
    call->source = a->credentials != NULL ? a->credentials->source : NULL;
    bel_status *status = hash_body(a, signs_body(a, &place));
    if (a->md5[0] != '\0') bel_headers_add(&headers, "content-md5", "%s", a->md5);
    if (status == NULL) authorize(a, &place, path.text, &headers);
    double stall_secs = bel_patience_stall_secs();
    bel_http_request request = {
        .method = call->method,
        .url = url.text,
        .headers = &headers,
        .body = call->body,
        .take = call->take,
        .taker = call->taker,
        .skip = call->skip,
        .most = call->most,
        .connect_secs = stall_secs < CONNECT_SECS ? stall_secs : CONNECT_SECS,
        .stall_secs = call->is_slow ? SLOW_STALL_SECS : stall_secs,
        .follow = web,
        .is_single = call->is_single,
    };
    if (status == NULL) status = bel_http_send(&request, &a->answer);
    bel_headers_deinit(&headers);
    bel_str_deinit(&url);
    bel_str_deinit(&path);
    bel_place_view_deinit(&place);
    return status;
}

// --- Judgment

static bool is_one_of(const char *code, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(code, *list) == 0) return true;
    return false;
}

static verdict once_more(bool *tried, bool helps)
{
    if (*tried || !helps) return FAILED;
    *tried = true;
    return AT_ONCE;
}

static verdict renew(attempt *a)
{
    bel_credentials *next = NULL;
    if (a->renewed || a->credentials == NULL) return FAILED;
    bel_status *status = bel_credentials_get(a->call->url->scheme, a->credentials, &next);
    bool same = status == NULL &&
                (next == NULL || (next->bearer == NULL && a->credentials->bearer == NULL &&
                                  strcmp(next->key_id, a->credentials->key_id) == 0));
    bel_status_ignore(status); // the store's refusal is the better message
    bel_credentials_release(next);
    return once_more(&a->renewed, status == NULL && !same);
}

// An answer that is an error.
static verdict judge_error(attempt *a)
{
    static const char *const passing[] = {"RequestTimeout",
                                          "IncompleteBody",
                                          "BadDigest",
                                          "XAmzContentSHA256Mismatch",
                                          "ConditionalRequestConflict",
                                          "OperationAborted",
                                          "InternalError",
                                          "SlowDown",
                                          "ServiceUnavailable",
                                          NULL};
    static const char *const expired[] = {"ExpiredToken",         "ExpiredTokenException",
                                          "TokenRefreshRequired", "InvalidToken",
                                          "InvalidAccessKeyId",   NULL};
    static const char *const elsewhere[] = {"AuthorizationHeaderMalformed", "PermanentRedirect",
                                            "TemporaryRedirect",
                                            "IllegalLocationConstraintException", NULL};
    const bel_store_problem *p = &a->problem;
    int status = a->answer.status;
    bool bearer = a->credentials != NULL && a->credentials->bearer != NULL;
    if (status == 408 || status == 429 || (status >= 500 && status != 501) ||
        is_one_of(p->code, passing))
        return LATER;
    if (a->call->url->scheme == BEL_STORE_WEB) return FAILED;
    if (strcmp(p->code, "RequestTimeTooSkewed") == 0 && a->answer.has_clock) {
        bel_place_set_clock(a->call->place, a->answer.clock_offset_secs, true);
        return once_more(&a->reset, true);
    }
    if (a->call->url->scheme == BEL_STORE_S3 &&
        (status / 100 == 3 || is_one_of(p->code, elsewhere))) {
        bool moved = bel_place_move(a->call->place, p->region[0] != '\0' ? p->region : NULL,
                                    p->endpoint[0] != '\0' ? p->endpoint : NULL);
        return once_more(&a->moved, moved);
    }
    if (is_one_of(p->code, expired) || (status == 401 && bearer)) return renew(a);
    return FAILED;
}

// True for a web page, as a proxy, a portal or a console sends it: a store marks its answers, at
// least with the object's tag. Google's calls an empty answer text/html, too.
static bool is_page(const attempt *a)
{
    static const char *const marks[] = {"x-amz-", "x-goog-", "x-guploader-", "x-trans-id", "etag:"};
    const bel_http_answer *answer = &a->answer;
    const bel_headers *headers = &answer->headers;
    const char *type = bel_headers_find(headers, "content-type");
    const char *length = bel_headers_find(headers, "content-length");
    if (a->call->url->scheme == BEL_STORE_WEB || type == NULL) return false;
    bool full = strcmp(a->call->method, "HEAD") == 0 ? length != NULL && strcmp(length, "0") != 0
                                                     : answer->text.length > 0 || answer->got > 0;
    if (!full || (answer->status != 200 && answer->status != 206)) return false;
    for (size_t i = 0; i < headers->count; i++)
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
            if (strncmp(headers->lines[i], marks[m], strlen(marks[m])) == 0) return false;
    return strncmp(type, "text/html", 9) == 0;
}

static verdict judge(attempt *a)
{
    bel_http_answer *answer = &a->answer;
    a->mismatch = NULL;
    a->problem = (bel_store_problem){0};
    if (answer->fault[0] != '\0') return answer->is_lasting ? FAILED : LATER;
    if (answer->has_clock) bel_place_set_clock(a->call->place, answer->clock_offset_secs, false);
    bool good = answer->status / 100 == 2;
    for (const int *s = a->call->accepted; s != NULL && *s != 0; s++)
        if (*s == answer->status) return DONE;
    if (!good || a->call->may_have_error) bel_store_problem_read(answer, &a->problem);
    if (!good || a->problem.code[0] != '\0') return judge_error(a);
    if (good && is_page(a)) return FAILED;
    a->mismatch = a->call->check != NULL ? a->call->check(a->call->context, answer) : NULL;
    if (a->mismatch == NULL) return DONE;
    return ++a->corrupt < CORRUPT_TRIES ? LATER : FAILED;
}

// --- Repetition

static const char *describe(const attempt *a, char text[320])
{
    const char *code = a->problem.code;
    if (a->answer.fault[0] != '\0')
        bel_snprintf(text, 320, "%s", a->answer.fault);
    else if (a->mismatch != NULL)
        bel_snprintf(text, 320, "%s", a->mismatch);
    else
        bel_snprintf(text, 320, "HTTP %d%s%s", a->answer.status, code[0] != '\0' ? " " : "", code);
    return text;
}

static bel_status *fail(const attempt *a)
{
    char text[320];
    const bel_store_call *call = a->call;
    if (a->mismatch != NULL)
        return BEL_ERR(BEL_DATA_LOSS, "%s: %s: %s, in each of %d tries", call->url->shown,
                       call->method, a->mismatch, a->corrupt);
    if (a->answer.status / 100 == 2 && a->problem.code[0] == '\0' && is_page(a))
        return bel_store_no_store(call, BEL_ERR(BEL_DATA_LOSS, "it is a web page"));
    if (a->answer.fault[0] == '\0') return bel_store_error(call, &a->answer, &a->problem);
    bool certificate = strstr(a->answer.fault, "certificate") != NULL;
    return BEL_ERR(BEL_UNAVAILABLE, "%s: %s: %s%s", call->url->shown, call->method,
                   describe(a, text),
                   certificate ? "; hint: AWS_CA_BUNDLE names a file of trusted certificates" : "");
}

// Refuses to send after the patience: new credentials may have taken all of it since `before_ns`.
static bel_status *check_time(const attempt *a, int64_t before_ns)
{
    enum { GRACE_SECS = 1 };
    int64_t from_ns = a->first_failure_ns != 0 ? a->first_failure_ns : before_ns;
    int64_t now_ns = bel_clock_ns(), end_ns = bel_patience_end_ns(from_ns);
    if (now_ns <= end_ns + GRACE_SECS * INT64_C(1000000000)) return NULL;
    return BEL_ERR(BEL_UNAVAILABLE, "%s: %s: not sent: new credentials came after %.0f s of %.0f s",
                   a->call->url->shown, a->call->method, (double)(now_ns - from_ns) * 1e-9,
                   (double)(end_ns - from_ns) * 1e-9);
}

// Asks whether this try may change the store. It comes last, as new credentials take time.
static bel_status *check_permission(const attempt *a)
{
    bel_store_action action = a->call->action;
    bool changes = action == BEL_STORE_WRITES || action == BEL_STORE_REMOVES;
    bel_status *status = changes ? bel_patience_ask_permission() : NULL;
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "%s: %s: not sent", a->call->url->shown,
                           a->call->method);
}

// Waits before another try. False: the patience would end before it.
static bool pause_before_next(attempt *a)
{
    enum { REPORT_SECS = 10 };
    int64_t now = bel_clock_ns();
    if (a->first_failure_ns == 0) a->first_failure_ns = now;
    int64_t end = bel_patience_end_ns(a->first_failure_ns);
    int64_t pause = bel_backoff_next(&a->backoff), asked = (int64_t)(a->answer.retry_secs * 1e9);
    if (asked > pause) pause = asked;
    if (now + pause >= end) return false;
    char text[320];
    double secs = (double)(now + pause - a->first_failure_ns) * 1e-9;
    bool is_long = secs > REPORT_SECS && !a->was_reported;
    if (is_long) a->was_reported = true;
    bel_log_write(is_long ? BEL_LOG_WARN : BEL_LOG_DEBUG,
                  "%s: %s: %s; next try in %.1f s, the last within %.0f s", a->call->url->shown,
                  a->call->method, describe(a, text), (double)pause * 1e-9,
                  (double)(end - now) * 1e-9);
    bel_patience_wait(pause);
    return true;
}

static bel_status *give_up(const attempt *a)
{
    char text[320];
    const bel_store_call *call = a->call;
    const char *id = a->problem.request;
    return BEL_ERR(a->mismatch != NULL ? BEL_DATA_LOSS : BEL_UNAVAILABLE,
                   "%s: %s: %s%s%s; the store did not serve it in %d tries within %.0f s%s",
                   call->url->shown, call->method, describe(a, text),
                   id[0] != '\0' ? ", request " : "", id, call->tries,
                   (double)bel_patience_ns() * 1e-9,
                   a->answer.retry_secs > 0 ? ", and asks for a longer pause" : "");
}

bel_status *bel_store_send(bel_store_call *call, bel_http_answer *out_answer)
{
    attempt a = {.call = call, .backoff = {.least_ns = 100000000, .most_ns = 10000000000}};
    bel_status *status = NULL;
    verdict v = AT_ONCE;
    int64_t before_ns = bel_clock_ns();
    call->tries = 0;
    while (v == AT_ONCE || v == LATER) {
        bel_http_answer_deinit(&a.answer);
        bel_credentials_release(a.credentials);
        a.credentials = NULL;
        status = bel_credentials_get(call->url->scheme, NULL, &a.credentials);
        if (status != NULL)
            status = bel_status_wrap(status, __FILE__, __LINE__, "%s", call->url->shown);
        if (status == NULL) status = check_time(&a, before_ns);
        if (status == NULL) status = check_permission(&a);
        if (status == NULL) {
            call->tries++;
            status = send_once(&a);
            if (status != NULL)
                status = bel_status_wrap(status, __FILE__, __LINE__, "%s: %s", call->url->shown,
                                         call->method);
        }
        if (status != NULL) break;
        before_ns = bel_clock_ns();
        v = judge(&a);
        if (v == FAILED) status = fail(&a);
        if (v == LATER && !pause_before_next(&a)) {
            status = give_up(&a);
            break;
        }
    }
    bel_credentials_release(a.credentials);
    if (status == NULL)
        *out_answer = a.answer;
    else
        bel_http_answer_deinit(&a.answer);
    return status;
}
