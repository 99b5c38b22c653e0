// Signatures of requests: see sign.h. The rules are those of "Authenticating Requests: Using the
// Authorization Header" in Amazon's reference of S3. A path is encoded once, as S3 requires; other
// services of Amazon encode it twice.
#include "store/sign.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/number.h"
#include "store/crypto.h"

static int compare_lines(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    size_t at = 0;
    while (x[at] == y[at] && x[at] != ':' && x[at] != '\0')
        at++;
    int left = x[at] == ':' ? 0 : (unsigned char)x[at];
    int right = y[at] == ':' ? 0 : (unsigned char)y[at];
    return left - right;
}

// The name's length, and the value without spaces at its ends; runs of spaces become one.
static void put_header(bel_str *canonical, bel_str *names, const char *line)
{
    size_t name = strcspn(line, ":");
    const char *value = line + name + 1;
    bel_str_printf(names, "%s%.*s", names->length > 0 ? ";" : "", (int)name, line);
    bel_str_append(canonical, line, name + 1);
    bool any = false;
    while (*value != '\0') {
        value += strspn(value, " \t");
        size_t word = strcspn(value, " \t");
        if (any && word > 0) bel_str_puts(canonical, " ");
        bel_str_append(canonical, value, word);
        any = any || word > 0;
        value += word;
    }
    bel_str_puts(canonical, "\n");
}

// Query of the canonical request: a parameter without a value has "=".
static void put_query(bel_str *out, const char *query)
{
    for (const char *at = query; *at != '\0';) {
        size_t length = strcspn(at, "&");
        bel_str_append(out, at, length);
        if (memchr(at, '=', length) == NULL) bel_str_puts(out, "=");
        at += length;
        if (*at == '&') bel_str_append(out, at++, 1);
    }
}

// Hash of the canonical request; *out_names are the signed headers.
static void hash_request(const bel_sign_input *in, const bel_headers *headers, bel_str *out_names,
                         char out_hash[BEL_HEX_BYTES])
{
    char *host = bel_strf("host: %s", in->host);
    size_t count = headers->count + 1;
    const char **lines = bel_xmalloc(count * sizeof *lines);
    for (size_t i = 0; i < headers->count; i++)
        lines[i] = headers->lines[i];
    lines[count - 1] = host;
    qsort(lines, count, sizeof *lines, compare_lines);
    bel_str text = {0};
    bel_str_printf(&text, "%s\n%s\n", in->method, in->path);
    put_query(&text, in->query);
    bel_str_puts(&text, "\n");
    for (size_t i = 0; i < count; i++)
        put_header(&text, out_names, lines[i]);
    bel_str_printf(&text, "\n%s\n%s", out_names->text, in->payload);
    bel_sha256_hex(text.text, text.length, out_hash);
    bel_str_deinit(&text);
    bel_free(lines);
    bel_free(host);
}

// The key of a day, region and service signs `text`.
static void sign_text(const bel_sign_input *in, const char *day, const char *closing,
                      const char *text, char out_signature[BEL_HEX_BYTES])
{
    unsigned char key[BEL_SHA256_BYTES], next[BEL_SHA256_BYTES];
    char *first = bel_strf("%s%s", in->google ? "GOOG4" : "AWS4", in->secret);
    bel_hmac_sha256(first, strlen(first), day, strlen(day), key);
    bel_free(first);
    const char *const parts[] = {in->region, in->service, closing, text};
    for (int i = 0; i < 4; i++) {
        bel_hmac_sha256(key, sizeof key, parts[i], strlen(parts[i]), next);
        memcpy(key, next, sizeof key);
    }
    bel_hex(key, sizeof key, out_signature);
}

void bel_sign_request(const bel_sign_input *input, bel_headers *headers)
{
    const char *closing = input->google ? "goog4_request" : "aws4_request";
    const char *algorithm = input->google ? "GOOG4-HMAC-SHA256" : "AWS4-HMAC-SHA256";
    char stamp[40], day[16], hash[BEL_HEX_BYTES], signature[BEL_HEX_BYTES];
    time_t seconds = (time_t)input->time;
    struct tm utc;
    gmtime_r(&seconds, &utc);
    bel_snprintf(stamp, sizeof stamp, "%04d%02d%02dT%02d%02d%02dZ", utc.tm_year + 1900,
                 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    bel_snprintf(day, sizeof day, "%.8s", stamp);
    bel_headers_add(headers, input->google ? "x-goog-date" : "x-amz-date", "%s", stamp);

    bel_str names = {0}, text = {0};
    hash_request(input, headers, &names, hash);
    char *scope = bel_strf("%s/%s/%s/%s", day, input->region, input->service, closing);
    bel_str_printf(&text, "%s\n%s\n%s\n%s", algorithm, stamp, scope, hash);
    sign_text(input, day, closing, text.text, signature);
    bel_headers_add(headers, "authorization", "%s Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                    algorithm, input->key_id, scope, names.text, signature);
    bel_free(scope);
    bel_str_deinit(&text);
    bel_str_deinit(&names);
}
