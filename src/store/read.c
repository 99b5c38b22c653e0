// Reading of objects. A read compares the number of its bytes with the range that the answer names;
// a read of an entire object also compares its checksum, if the store reports one.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "store/crypto.h"
#include "store/object.h"

enum { FIRST_BYTES = 1 << 20 };

typedef struct reading {
    const bel_object *object;
    const char *tag;
    uint64_t offset;
    size_t size;
    bel_http_take *take;
    void *taker;
    const char *data;    // the bytes in memory; NULL: the caller compares checksums
    bel_store_info info; // about the object that was read
    bel_object_sums sums;
    bool is_changed;
} reading;

// Compares an entire object with its checksums. Returns the text of a mismatch.
static const char *compare_sums(const bel_object_sums *sums, const char *data, size_t size)
{
    char got[BEL_HEX_BYTES];
    if (sums->has_crc32c)
        return bel_crc32c(0, data, size) == sums->crc32c ? NULL
                                                         : "the bytes do not match their CRC-32C";
    if (sums->md5[0] == '\0') return NULL;
    bel_digest *d = bel_digest_create(BEL_DIGEST_MD5);
    bel_digest_update(d, data, size);
    bel_digest_finish_hex(d, got);
    return strcmp(got, sums->md5) == 0 ? NULL : "the bytes do not match their MD5";
}

// "bytes 10-19/100".
static bool parse_range(const char *text, uint64_t *out_first, uint64_t *out_last,
                        uint64_t *out_total)
{
    if (text == NULL || strncmp(text, "bytes ", 6) != 0) return false;
    text += 6;
    size_t dash = strcspn(text, "-"), slash = strcspn(text, "/");
    if (text[slash] != '/' || dash >= slash) return false;
    int64_t first, last, total;
    if (!bel_parse_i64(text, dash, &first) ||
        !bel_parse_i64(text + dash + 1, slash - dash - 1, &last) ||
        !bel_parse_i64(text + slash + 1, strlen(text + slash + 1), &total))
        return false;
    *out_first = (uint64_t)first;
    *out_last = (uint64_t)last;
    *out_total = (uint64_t)total;
    return first >= 0 && last >= first && total > last;
}

// The sizes of an answer with status 200: the server sends the object from its beginning.
static bool measure_whole(reading *r, const bel_http_answer *answer)
{
    const char *length = bel_headers_find(&answer->headers, "content-length");
    int64_t total;
    if (length != NULL && bel_parse_i64(length, strlen(length), &total) && total >= 0)
        r->info.size_bytes = (uint64_t)total;
    else if (!answer->is_larger) // sent in chunks, and all are here
        r->info.size_bytes = r->offset + answer->got;
    else
        return false;
    return true;
}

// A server without tags cannot tell.
static bool has_changed(const reading *r)
{
    return r->tag != NULL && r->tag[0] != '\0' && strcmp(r->tag, r->info.tag) != 0;
}

static const char *check(void *context, const bel_http_answer *answer)
{
    reading *r = context;
    uint64_t first = r->offset, last, total;
    if (answer->status == 206) {
        const char *range = bel_headers_find(&answer->headers, "content-range");
        if (!parse_range(range, &first, &last, &total)) return "the answer does not name its range";
        if (first != r->offset || answer->is_larger) return "the answer has another range";
        r->info.size_bytes = total;
    } else if (!measure_whole(r, answer)) {
        return "the answer has no size";
    }
    total = r->info.size_bytes;
    uint64_t left = total > r->offset ? total - r->offset : 0;
    uint64_t expected = left < r->size ? left : r->size;
    if (answer->got != expected) return "the body is shorter than its length";
    bel_object_tag(r->object->url.scheme, &answer->headers, r->info.tag);
    r->is_changed = has_changed(r);
    bel_object_sums_read(r->object, &answer->headers, &r->sums);
    if (r->is_changed || r->data == NULL || r->offset > 0 || answer->got < total) return NULL;
    return compare_sums(&r->sums, r->data, answer->got);
}

// The object ends before the range, or is empty.
static bel_status *read_end(reading *r)
{
    BEL_TRY(bel_object_stat(r->object, &r->info, NULL));
    r->is_changed = has_changed(r);
    if (r->is_changed || r->offset == r->info.size_bytes) return NULL;
    r->is_changed = r->offset < r->info.size_bytes && r->size > 0;
    if (r->is_changed) return bel_object_changed(r->object);
    if (r->offset < r->info.size_bytes) return NULL;
    return BEL_ERR(BEL_OUT_OF_RANGE, "%s: the object has %llu bytes, and byte %llu was requested",
                   r->object->url.shown, (unsigned long long)r->info.size_bytes,
                   (unsigned long long)r->offset);
}

static void note_no_ranges(const reading *r)
{
    if (r->offset == 0 && r->info.size_bytes <= r->size) return;
    if (bel_place_learn(r->object->place, BEL_PLACE_SERVES_RANGES, BEL_PLACE_NO) == BEL_PLACE_NO)
        return;
    bel_log_write(BEL_LOG_WARN,
                  "%s: the server serves no ranges, so each read transfers the object from its "
                  "beginning",
                  r->object->url.shown);
}

static void add_headers(const reading *r, bel_headers *headers)
{
    bel_store_scheme scheme = r->object->url.scheme;
    bel_headers_add(headers, "range", "bytes=%llu-%llu", (unsigned long long)r->offset,
                    (unsigned long long)(r->offset + r->size - 1));
    // Google unpacks objects that are stored packed, unless the client can.
    if (scheme == BEL_STORE_GS) bel_headers_add(headers, "accept-encoding", "gzip");
    if (scheme == BEL_STORE_WEB) bel_headers_add(headers, "accept-encoding", "identity");
    if (r->tag != NULL && r->tag[0] != '\0' && scheme != BEL_STORE_WEB)
        bel_object_add_condition(scheme, r->tag, headers);
}

static bel_status *read_range(reading *r, size_t *out_got)
{
    static const int accepted[] = {412, 416, 0};
    *out_got = 0;
    if (r->size == 0) return read_end(r);
    bel_headers headers = {0};
    add_headers(r, &headers);
    bel_store_call call = {.url = &r->object->url,
                           .place = r->object->place,
                           .action = BEL_STORE_READS,
                           .method = "GET",
                           .headers = &headers,
                           .take = r->take,
                           .taker = r->taker,
                           .skip = r->offset,
                           .most = r->size,
                           .accepted = accepted,
                           .check = check,
                           .context = r};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_headers_deinit(&headers);
    BEL_TRY(status);
    *out_got = answer.got;
    int code = answer.status;
    bel_http_answer_deinit(&answer);
    if (code == 416) return read_end(r);
    if (code == 412) r->is_changed = true;
    if (code == 200) note_no_ranges(r);
    if (code == 200 && r->offset > r->info.size_bytes) return read_end(r);
    return NULL;
}

static bel_status *read_object(reading *r, size_t *out_got, bel_store_info *out_info,
                               bel_object_sums *out_sums)
{
    BEL_TRY(read_range(r, out_got));
    if (r->is_changed) return bel_object_changed(r->object);
    if (out_info != NULL) *out_info = r->info;
    if (out_sums != NULL) *out_sums = r->sums;
    return NULL;
}

bel_status *bel_object_read_pieces(const bel_object *object, const char *tag, uint64_t offset,
                                   size_t size, bel_http_take *take, void *taker, size_t *out_got,
                                   bel_store_info *out_info, bel_object_sums *out_sums)
{
    reading r = {
        .object = object, .tag = tag, .offset = offset, .size = size, .take = take, .taker = taker};
    return read_object(&r, out_got, out_info, out_sums);
}

bel_status *bel_object_read_state(const bel_object *object, const char *tag, uint64_t offset,
                                  size_t size, bel_http_take *take, void *taker, bool *out_changed)
{
    size_t got;
    reading r = {
        .object = object, .tag = tag, .offset = offset, .size = size, .take = take, .taker = taker};
    bel_status *status = read_range(&r, &got);
    *out_changed = r.is_changed || (status == NULL && got != size);
    return status == NULL && *out_changed ? bel_object_changed(object) : status;
}

bel_status *bel_object_read(const bel_object *object, const char *tag, uint64_t offset, size_t size,
                            void *out_data, size_t *out_got, bel_store_info *out_info,
                            bel_object_sums *out_sums)
{
    reading r = {.object = object,
                 .tag = tag,
                 .offset = offset,
                 .size = size,
                 .take = bel_http_take_memory,
                 .taker = out_data,
                 .data = out_data};
    return read_object(&r, out_got, out_info, out_sums);
}

bel_status *bel_store_read(const char *url, const char *tag, uint64_t offset, size_t size,
                           void *out_data, size_t *out_got, bel_store_info *out_info)
{
    bel_object object;
    size_t got;
    BEL_TRY(bel_object_open(&object, url, false));
    bel_status *status =
        bel_object_read(&object, tag, offset, size, out_data, &got, out_info, NULL);
    bel_object_close(&object);
    if (status == NULL) *out_got = got;
    return status;
}

// Reads an entire object: a first block, from which the size is known, and the rest.
static bel_status *read_whole(const bel_object *object, uint64_t most, char **out_data,
                              size_t *out_size, const char **out_mismatch)
{
    char text[32], limit[32];
    char *data = bel_xmalloc(FIRST_BYTES + 1);
    size_t size = 0, got = 0;
    bel_store_info info;
    bel_object_sums sums;
    bel_status *status = bel_object_read(object, NULL, 0, FIRST_BYTES, data, &size, &info, &sums);
    if (status == NULL && info.size_bytes > most)
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: expected at most %s, got an object of %s",
                         object->url.shown, bel_bytes_text(most, limit),
                         bel_bytes_text(info.size_bytes, text));
    if (status == NULL) {
        size_t total = (size_t)info.size_bytes;
        data = bel_xrealloc(data, total + 1);
        if (size < total)
            status = bel_object_read(object, info.tag, size, total - size, data + size, &got, NULL,
                                     NULL);
        size += got;
        if (status == NULL && size != total) status = bel_object_changed(object);
    }
    if (status != NULL) {
        bel_free(data);
        return status;
    }
    data[size] = '\0';
    *out_mismatch = got > 0 ? compare_sums(&sums, data, size) : NULL;
    *out_data = data;
    *out_size = size;
    return NULL;
}

bel_status *bel_store_read_all(const char *url, uint64_t most, char **out_data, size_t *out_size)
{
    enum { TRIES = 3 };
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    bel_status *status = NULL;
    const char *mismatch = "";
    char *data = NULL;
    size_t size = 0;
    for (int i = 0; i < TRIES && mismatch != NULL && status == NULL; i++) {
        bel_free(data);
        data = NULL;
        status = read_whole(&object, most, &data, &size, &mismatch);
    }
    if (status == NULL && mismatch != NULL)
        status = BEL_ERR(BEL_DATA_LOSS, "%s: GET: %s, in each of %d tries", object.url.shown,
                         mismatch, TRIES);
    bel_object_close(&object);
    if (status == NULL) {
        *out_data = data;
        *out_size = size;
    } else {
        bel_free(data);
    }
    return status;
}
