// Objects: stat, tags and conditions. See object.h.
#include "store/object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "store/crypto.h"

bel_status *bel_object_open(bel_object *object, const char *text, bool may_be_bucket)
{
    bel_store_url url;
    BEL_TRY(may_be_bucket ? bel_store_url_init(&url, text) : bel_store_url_init_object(&url, text));
    bel_place *place;
    bel_status *status = bel_place_get(&url, &place);
    if (status == NULL) {
        *object = (bel_object){url, place};
        return NULL;
    }
    status = bel_status_wrap(status, __FILE__, __LINE__, "%s", url.shown);
    bel_store_url_deinit(&url);
    return status;
}

void bel_object_close(bel_object *object)
{
    bel_store_url_deinit(&object->url);
}

bel_status *bel_object_check_writable(const bel_object *object)
{
    if (object->url.scheme != BEL_STORE_WEB) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: http and https URLs are only read; hint: write to s3:// or gs://",
                   object->url.shown);
}

bel_status *bel_object_changed(const bel_object *object)
{
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: the object changed while it was read; hint: write new objects instead of "
                   "replacing those that a job reads",
                   object->url.shown);
}

// --- Tags

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

// A strong ETag is kept without quotes, since lists of some stores have none.
void bel_object_tag(bel_store_scheme scheme, const bel_headers *headers,
                    char out_tag[BEL_STORE_TAG_BYTES])
{
    const char *generation = bel_headers_find(headers, "x-goog-generation");
    const char *etag = bel_headers_find(headers, "etag");
    const char *modified = bel_headers_find(headers, "last-modified");
    const char *tag = scheme == BEL_STORE_GS && generation != NULL  ? generation
                      : etag != NULL && etag[0] != '\0'             ? etag
                      : scheme == BEL_STORE_WEB && modified != NULL ? modified
                                                                    : "";
    size_t length = strlen(tag);
    if (length >= 2 && tag[0] == '"' && tag[length - 1] == '"') {
        tag++;
        length -= 2;
    }
    bel_snprintf(out_tag, BEL_STORE_TAG_BYTES, "%.*s", (int)length, tag);
}

void bel_object_add_condition(bel_store_scheme scheme, const char *tag, bel_headers *headers)
{
    if (scheme == BEL_STORE_GS && (tag == NULL || is_number(tag)))
        bel_headers_add(headers, "x-goog-if-generation-match", "%s", tag != NULL ? tag : "0");
    else if (tag == NULL)
        bel_headers_add(headers, "if-none-match", "*");
    else
        bel_headers_add(headers, "if-match", "\"%s\"", tag);
}

// Copies the ETag if it is the MD5 of the object.
static void read_md5(const bel_object *object, const bel_headers *headers, char out_text[33])
{
    const char *etag = bel_headers_find(headers, "etag");
    const char *encryption = bel_headers_find(headers, "x-amz-server-side-encryption");
    const char *bucket = object->url.bucket;
    size_t length = etag != NULL ? strlen(etag) : 0, name = strlen(bucket);
    bool quoted = length >= 2 && etag[0] == '"' && etag[length - 1] == '"';
    if (quoted) {
        etag++;
        length -= 2;
    }
    // Keys of Amazon's key service, and directory buckets, have other tags of 32 digits.
    bool other =
        object->url.scheme == BEL_STORE_WEB ||
        (encryption != NULL && strncmp(encryption, "aws:kms", 7) == 0) ||
        bel_headers_find(headers, "x-amz-server-side-encryption-customer-algorithm") != NULL ||
        (name > 6 && strcmp(bucket + name - 6, "--x-s3") == 0);
    if (other || length != 32 || strspn(etag, "0123456789abcdef") < 32) return;
    bel_snprintf(out_text, 33, "%.32s", etag);
}

// Value of a character of base64; -1: another character.
static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

// Reads a number of `bits` in base64, the first byte first, which ends the text or a line of it.
static bool read_base64(const char *text, unsigned bits, uint64_t *out_number)
{
    uint64_t number = 0;
    for (unsigned got = 0; got < bits; got += 6) {
        int digit = base64_digit(*text++);
        if (digit < 0) return false;
        unsigned taken = bits - got < 6 ? bits - got : 6; // the last digit has bits of padding
        number = number << taken | (uint64_t)digit >> (6 - taken);
    }
    *out_number = number;
    return true;
}

// Reads the header of Google's store.
static bool read_google_crc32c(const bel_headers *headers, uint64_t *out_crc)
{
    for (size_t i = 0; i < headers->count; i++) {
        const char *line = headers->lines[i];
        const char *at = strncmp(line, "x-goog-hash:", 12) == 0 ? strstr(line, "crc32c=") : NULL;
        if (at != NULL) return read_base64(at + 7, 32, out_crc);
    }
    return false;
}

// Reads a header of S3, unless it is of the parts' checksums: those have "-3" at the end.
static bool read_amazon_crc(const bel_headers *headers, const char *name, unsigned bits,
                            uint64_t *out_crc)
{
    const char *text = bel_headers_find(headers, name);
    return text != NULL && strchr(text, '-') == NULL && read_base64(text, bits, out_crc);
}

void bel_object_sums_read(const bel_object *object, const bel_headers *headers,
                          bel_object_sums *out_sums)
{
    uint64_t crc32c = 0;
    *out_sums = (bel_object_sums){0};
    read_md5(object, headers, out_sums->md5);
    if (object->url.scheme == BEL_STORE_GS)
        out_sums->has_crc32c = read_google_crc32c(headers, &crc32c);
    if (object->url.scheme == BEL_STORE_S3) {
        out_sums->has_crc32c = read_amazon_crc(headers, "x-amz-checksum-crc32c", 32, &crc32c);
        out_sums->has_crc64 =
            read_amazon_crc(headers, "x-amz-checksum-crc64nvme", 64, &out_sums->crc64);
    }
    out_sums->crc32c = (uint32_t)crc32c;
}

// --- Stat

static bool read_size(const bel_http_answer *answer, uint64_t *out_size)
{
    const char *range = bel_headers_find(&answer->headers, "content-range");
    const char *length = bel_headers_find(&answer->headers, "content-length");
    const char *text = answer->status == 206 || answer->status == 416 ? range : length;
    if (text == range && text != NULL) {
        text = strchr(text, '/');
        text = text != NULL ? text + 1 : NULL;
    }
    int64_t size;
    if (text == NULL || !bel_parse_i64(text, strlen(text), &size) || size < 0) return false;
    *out_size = (uint64_t)size;
    return true;
}

static const char *check_size(void *context, const bel_http_answer *answer)
{
    return read_size(answer, context) ? NULL : "the answer has no size";
}

// An answer to HEAD has no body, so a refusal has no reason. Reading a byte gives one.
static bel_status *stat_by_byte(const bel_object *object, bel_store_info *out_info,
                                bel_object_sums *out_sums)
{
    static const int accepted[] = {416, 0};
    bel_headers headers = {0};
    bel_headers_add(&headers, "range", "bytes=0-0");
    char byte;
    bel_store_info info = {0};
    bel_store_call call = {.url = &object->url,
                           .place = object->place,
                           .action = BEL_STORE_READS,
                           .method = "GET",
                           .headers = &headers,
                           .take = bel_http_take_memory,
                           .taker = &byte,
                           .most = 1,
                           .accepted = accepted,
                           .check = check_size,
                           .context = &info.size_bytes};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_headers_deinit(&headers);
    BEL_TRY(status);
    bel_object_tag(object->url.scheme, &answer.headers, info.tag);
    if (out_sums != NULL) bel_object_sums_read(object, &answer.headers, out_sums);
    bel_http_answer_deinit(&answer);
    *out_info = info;
    return NULL;
}

bel_status *bel_object_stat(const bel_object *object, bel_store_info *out_info,
                            bel_object_sums *out_sums)
{
    static const int accepted[] = {301, 307, 400, 403, 405, 501, 0};
    bel_headers headers = {0};
    if (object->url.scheme == BEL_STORE_GS) bel_headers_add(&headers, "accept-encoding", "gzip");
    if (object->url.scheme == BEL_STORE_S3 && out_sums != NULL)
        bel_headers_add(&headers, "x-amz-checksum-mode", "ENABLED");
    if (out_sums != NULL) *out_sums = (bel_object_sums){0};
    bel_store_info info = {0};
    bel_store_call call = {.url = &object->url,
                           .place = object->place,
                           .action = BEL_STORE_READS,
                           .method = "HEAD",
                           .headers = &headers,
                           .accepted = accepted,
                           .check = check_size,
                           .context = &info.size_bytes};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_headers_deinit(&headers);
    BEL_TRY(status);
    bool good = answer.status / 100 == 2;
    if (good) bel_object_tag(object->url.scheme, &answer.headers, info.tag);
    if (good && out_sums != NULL) bel_object_sums_read(object, &answer.headers, out_sums);
    bel_http_answer_deinit(&answer);
    if (!good) return stat_by_byte(object, out_info, out_sums);
    *out_info = info;
    return NULL;
}

bel_status *bel_store_stat(const char *url, bel_store_info *out_info)
{
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    bel_status *status = bel_object_stat(&object, out_info, NULL);
    bel_object_close(&object);
    return status;
}

bel_status *bel_store_remove(const char *url)
{
    static const int accepted[] = {404, 0};
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    bel_store_call call = {.url = &object.url,
                           .place = object.place,
                           .action = BEL_STORE_REMOVES,
                           .method = "DELETE",
                           .accepted = accepted};
    bel_http_answer answer;
    bel_status *status = bel_object_check_writable(&object);
    if (status == NULL) status = bel_store_send(&call, &answer);
    if (status == NULL) {
        bel_store_problem problem = {0};
        if (answer.status == 404) bel_store_problem_read(&answer, &problem);
        if (strcmp(problem.code, "NoSuchBucket") == 0)
            status = bel_store_error(&call, &answer, &problem);
        bel_http_answer_deinit(&answer);
    }
    bel_object_close(&object);
    return status;
}
