// Parts of HTTP that need no libcurl: headers, bodies, answers.
#include "store/http.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/number.h"

void bel_headers_add(bel_headers *headers, const char *name, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = bel_vsnprintf(NULL, 0, format, args);
    va_end(args);
    size_t start = strlen(name) + 2, size = start + (size_t)length + 1;
    char *line = bel_xmalloc(size);
    bel_snprintf(line, size, "%s: ", name);
    bel_vsnprintf(line + start, size - start, format, again);
    va_end(again);
    headers->lines =
        bel_xgrow(headers->lines, &headers->capacity, headers->count + 1, sizeof *headers->lines);
    headers->lines[headers->count++] = line;
}

const char *bel_headers_find(const bel_headers *headers, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < headers->count; i++) {
        const char *line = headers->lines[i];
        if (strncmp(line, name, length) == 0 && line[length] == ':') return line + length + 2;
    }
    return NULL;
}

void bel_headers_deinit(bel_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        bel_free(headers->lines[i]);
    bel_free(headers->lines);
    *headers = (bel_headers){0};
}

bel_status *bel_http_body_read(const bel_http_body *body, uint64_t from, void *out, size_t size)
{
    if (body->data != NULL) {
        memcpy(out, (const char *)body->data + from, size);
        return NULL;
    }
    for (size_t used = 0; used < size;) {
        ssize_t got =
            pread(body->file, (char *)out + used, size - used, (off_t)(body->offset + from + used));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return BEL_ERR(BEL_DATA_LOSS, "cannot read the file: %s", strerror(errno));
        if (got == 0)
            return BEL_ERR(BEL_FAILED_PRECONDITION, "the file became shorter while it was read");
        used += (size_t)got;
    }
    return NULL;
}

bel_status *bel_http_take_memory(void *context, uint64_t at, const void *data, size_t size)
{
    memcpy((char *)context + at, data, size);
    return NULL;
}

void bel_http_answer_deinit(bel_http_answer *answer)
{
    bel_headers_deinit(&answer->headers);
    bel_str_deinit(&answer->text);
    *answer = (bel_http_answer){0};
}

bel_status *bel_http_body_digest(const bel_http_body *body, bel_digest *digest)
{
    enum { PIECE = 1 << 18 };
    if (body->data != NULL || body->size == 0) {
        bel_digest_update(digest, body->data, (size_t)body->size);
        return NULL;
    }
    bel_status *status = NULL;
    char *piece = bel_xmalloc(PIECE);
    for (uint64_t at = 0; at < body->size && status == NULL; at += PIECE) {
        size_t size = body->size - at < PIECE ? (size_t)(body->size - at) : PIECE;
        status = bel_http_body_read(body, at, piece, size);
        if (status == NULL) bel_digest_update(digest, piece, size);
    }
    bel_free(piece);
    return status;
}
