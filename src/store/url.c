// URLs of objects: see url.h. A key is not encoded in an s3 or gs URL, as in the tools of Amazon
// and Google: s3://b/a%20b names a key with a percent sign. So a key has one URL, and listed names
// can be opened as they are.
#include "store/url.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "store/store.h"

enum { KEY_MOST_BYTES = 1024, BUCKET_LEAST_BYTES = 3, BUCKET_MOST_BYTES = 222 };

static const struct {
    const char *text;
    bel_store_scheme scheme;
} schemes[] = {
    {"s3://", BEL_STORE_S3},
    {"gs://", BEL_STORE_GS},
    {"http://", BEL_STORE_WEB},
    {"https://", BEL_STORE_WEB},
};
enum { SCHEME_COUNT = sizeof schemes / sizeof *schemes };

// Returns the scheme's index; -1: it is a path.
static int find_scheme(const char *path)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        if (strncasecmp(path, schemes[i].text, strlen(schemes[i].text)) == 0) return i;
    return -1;
}

bool bel_store_is_url(const char *path)
{
    return find_scheme(path) >= 0;
}

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bel_status *check_bucket(const char *bucket, size_t length, const char *shown)
{
    if (length == 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no bucket; expected SCHEME://BUCKET/KEY", shown);
    if (strncmp(bucket, "arn:", 4) == 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: expected a bucket, got an ARN; hint: use the alias of the access point",
                       shown);
    if (memchr(bucket, '@', length) != NULL || memchr(bucket, ':', length) != NULL)
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "%s: expected a bucket, got a user (\":\" or \"@\"); hint: credentials come from the "
            "environment and from files (docs/stores.md)",
            shown);
    bool good = length >= BUCKET_LEAST_BYTES && length <= BUCKET_MOST_BYTES &&
                is_alphanumeric(bucket[0]) && is_alphanumeric(bucket[length - 1]);
    for (size_t i = 0; i < length && good; i++)
        good = is_alphanumeric(bucket[i]) || strchr("-._", bucket[i]) != NULL;
    if (good) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: bucket \"%.*s\": expected %d to %d letters, digits, dots, hyphens and "
                   "underscores, with a letter or digit at both ends",
                   shown, (int)length, bucket, BUCKET_LEAST_BYTES, BUCKET_MOST_BYTES);
}

// True if one of the parts between slashes is `..`.
static bool has_parent(const char *key)
{
    for (const char *at = key; *at != '\0';) {
        size_t length = strcspn(at, "/");
        if (length == 2 && strncmp(at, "..", 2) == 0) return true;
        at += length + (at[length] == '/' ? 1 : 0);
    }
    return false;
}

static bel_status *check_text(const char *key, const char *shown)
{
    for (const char *at = key; *at != '\0';) {
        int bytes = bel_utf8_bytes(at);
        if (bytes == 0)
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: expected UTF-8, got the byte 0x%02x at byte %zu of the key", shown,
                           (unsigned char)*at, (size_t)(at - key));
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: the key has the control character 0x%02x at byte %zu", shown,
                           (unsigned char)*at, (size_t)(at - key));
        at += bytes;
    }
    return NULL;
}

static bel_status *check_key(const char *key, const char *shown)
{
    size_t length = strlen(key);
    if (length > KEY_MOST_BYTES)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a key of at most %d bytes, got %zu",
                       shown, KEY_MOST_BYTES, length);
    BEL_TRY(check_text(key, shown));
    if (has_parent(key))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the key has a part \"..\"; stores have no parent folders", shown);
    if (strchr(key, '?') != NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected no query (\"?\") in a key", shown);
    return NULL;
}

static bel_status *check_web(const char *rest, size_t host, const char *shown)
{
    if (host == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no host after the scheme", shown);
    BEL_TRY(check_text(rest, shown));
    if (strchr(rest, ' ') != NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected %%20 instead of a space", shown);
    return NULL;
}

const char *bel_store_find_query(const char *url)
{
    for (const char *at = strchr(url, '?'); at != NULL; at = strchr(at + 1, '?')) {
        const char *name = at + 1;
        while (is_alphanumeric(*name) || (*name != '\0' && strchr("-._~%", *name) != NULL))
            name++;
        if (name > at + 1 && *name == '=') return at;
    }
    return NULL;
}

// Returns the text of a URL for messages. A key of an object may have the "?" of a pattern.
static char *show(const char *scheme, const char *rest, size_t host, bool web)
{
    const char *from = rest;
    for (size_t i = 0; i < host; i++)
        if (rest[i] == '@') from = rest + i + 1;
    if (!web && from == rest && memchr(rest, ':', host) != NULL)
        return bel_strf("%.*s…", (int)strlen(scheme), rest - strlen(scheme));
    const char *query = web ? strpbrk(from, "?#") : bel_store_find_query(from);
    size_t length = query != NULL ? (size_t)(query - from) : strlen(from);
    if (web)
        return bel_strf("%s%.*s%s", scheme, (int)length, from, from[length] == '?' ? "?…" : "");
    return bel_strf("%.*s%s%.*s%s", (int)strlen(scheme), rest - strlen(scheme),
                    from != rest ? "…@" : "", (int)length, from, query != NULL ? "?…" : "");
}

bel_status *bel_store_url_init(bel_store_url *url, const char *text)
{
    int found = find_scheme(text);
    if (found < 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected s3://, gs://, http:// or https://",
                       text);
    const char *scheme = schemes[found].text, *rest = text + strlen(scheme);
    size_t host = strcspn(rest, "/?#");
    bool web = schemes[found].scheme == BEL_STORE_WEB;
    if (!web) host = strcspn(rest, "/");
    bel_store_url made = {.scheme = schemes[found].scheme};
    made.shown = show(scheme, rest, host, web);
    bel_status *status =
        web ? check_web(rest, host, made.shown) : check_bucket(rest, host, made.shown);
    const char *key = rest + host + (!web && rest[host] == '/' ? 1 : 0);
    if (status == NULL && !web) status = check_key(key, made.shown);
    if (status == NULL) {
        made.bucket = web ? bel_strf("%s%.*s", scheme, (int)host, rest) : bel_xstrndup(rest, host);
        made.key = bel_xstrndup(key, web ? strcspn(key, "#") : strlen(key));
        *url = made;
        return NULL;
    }
    bel_free(made.shown);
    return status;
}

bel_status *bel_store_url_init_object(bel_store_url *url, const char *text)
{
    BEL_TRY(bel_store_url_init(url, text));
    if (url->key[0] != '\0' || url->scheme == BEL_STORE_WEB) return NULL;
    bel_status *status = BEL_ERR(
        BEL_INVALID_ARGUMENT, "%s: expected an object, got a bucket; hint: add /KEY", url->shown);
    bel_store_url_deinit(url);
    return status;
}

void bel_store_url_deinit(bel_store_url *url)
{
    bel_free(url->bucket);
    bel_free(url->key);
    bel_free(url->shown);
    *url = (bel_store_url){0};
}

bel_status *bel_store_check_url(const char *url)
{
    bel_store_url parts;
    BEL_TRY(bel_store_url_init(&parts, url));
    bel_store_url_deinit(&parts);
    return NULL;
}

void bel_url_encode(bel_str *out, const char *text, bool keep_slashes)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool kept =
            is_alphanumeric(*at) || strchr("-._~", *at) != NULL || (keep_slashes && *at == '/');
        if (kept)
            bel_str_append(out, at, 1);
        else
            bel_str_printf(out, "%%%02X", (unsigned char)*at);
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void bel_url_decode(char *text, bool plus)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        int high = *at == '%' ? hex_digit(at[1]) : -1;
        int low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low >= 0 && high + low > 0) { // a zero byte stays encoded
            *to++ = (char)(high * 16 + low);
            at += 3;
        } else {
            *to++ = (char)(plus && *at == '+' ? ' ' : *at);
            at++;
        }
    }
    *to = '\0';
}

// --- Servers

void bel_url_cut_usual_port(char *origin)
{
    const char *port = strncmp(origin, "https", 5) == 0 ? ":443" : ":80";
    size_t length = strlen(origin), cut = strlen(port);
    if (length >= cut && strcmp(origin + length - cut, port) == 0) origin[length - cut] = '\0';
}

const char *bel_url_host(const char *origin)
{
    return strstr(origin, "//") + 2;
}

bel_status *bel_url_split_endpoint(const char *url, const char *what, char **out_origin,
                                   char **out_path)
{
    bool tls = strncasecmp(url, "https://", 8) == 0;
    bool good = tls || strncasecmp(url, "http://", 7) == 0;
    const char *host = good ? bel_url_host(url) : url;
    size_t length = strcspn(host, "/?#");
    good = good && length > 0 && strpbrk(host, "?#@ \t\r\n") == NULL;
    if (!good)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected http://HOST:PORT or https://HOST", what);
    *out_origin = bel_strf("%s://%.*s", tls ? "https" : "http", (int)length, host);
    bel_url_cut_usual_port(*out_origin);
    const char *path = host + length;
    size_t used = strlen(path);
    while (used > 0 && path[used - 1] == '/')
        used--;
    *out_path = bel_xstrndup(path, used);
    return NULL;
}

bool bel_url_is_name(const char *text, const char *more)
{
    for (; *text != '\0'; text++)
        if (!is_alphanumeric(*text) && strchr(more, *text) == NULL) return false;
    return true;
}
