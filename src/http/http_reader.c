// A body that came together with its head stays where it is. Others are collected, and memory is
// taken only for bytes that have come. A client chooses the sizes: each must be compared with its
// limit before memory or time is spent on it.
#include "http/http_reader.h"

#include <string.h>

enum { PIECE = 8 << 10, BODY_PIECE = 64 << 10, MOST_KEPT = 1 << 20, CHUNK_LINE = 256 };

void bel_http_reader_deinit(bel_http_reader *reader)
{
    bel_str_deinit(&reader->lines);
    bel_str_deinit(&reader->in);
    bel_str_deinit(&reader->body);
}

bool bel_http_reader_next(bel_http_reader *r)
{
    r->lines.length = r->body.length = 0;
    if (r->body.capacity > MOST_KEPT) bel_str_deinit(&r->body);
    return r->in.length > r->used;
}

ptrdiff_t bel_http_reader_fill(bel_http_reader *r, int64_t deadline_ns)
{
    size_t left = r->in.length - r->used;
    if (left > 0 && r->used > 0) memmove(r->in.text, r->in.text + r->used, left);
    r->in.length = left;
    r->used = 0;
    char *room = bel_str_room(&r->in, PIECE);
    ptrdiff_t got = bel_http_stream_read(&r->stream, room, PIECE, deadline_ns);
    if (got > 0) r->in.length += (size_t)got;
    return got;
}

// --- Head ---------------------------------------------------------------------------------------

// Empty lines before a request are ignored, as old clients send them after a body.
static void skip_empty_lines(bel_http_reader *r)
{
    while (r->in.length - r->used >= 2 && memcmp(r->in.text + r->used, "\r\n", 2) == 0)
        r->used += 2;
}

int bel_http_reader_head(bel_http_reader *r, int64_t deadline_ns, const char **out_message)
{
    for (size_t seen = 0;;) {
        skip_empty_lines(r);
        size_t have = r->in.length - r->used;
        size_t size = have > 0 ? bel_http_head_size(r->in.text + r->used, have, seen) : 0;
        if (size > BEL_HTTP_HEAD_BYTES || (size == 0 && have > BEL_HTTP_HEAD_BYTES)) {
            *out_message = "expected header lines of at most 16 KiB";
            return 400;
        }
        if (size > 0) {
            bel_str_append(&r->lines, r->in.text + r->used, size);
            r->used += size;
            return bel_http_head_parse(r->lines.text, size, &r->head, out_message);
        }
        seen = have;
        ptrdiff_t got = bel_http_reader_fill(r, deadline_ns);
        if (got > 0) continue;
        *out_message = "expected the entire head of a request in time";
        return got == BEL_HTTP_LATE ? 408 : -1;
    }
}

// --- Body ---------------------------------------------------------------------------------------

// Moves bytes of the connection to the end of the body until it has `size` bytes.
static bool collect(bel_http_reader *r, size_t size, int64_t deadline_ns)
{
    size_t have = r->in.length - r->used, missing = size - r->body.length;
    if (have > missing) have = missing;
    bel_str_append(&r->body, r->in.text + r->used, have);
    r->used += have;
    while (r->body.length < size) {
        size_t left = size - r->body.length, most = left < BODY_PIECE ? left : BODY_PIECE;
        ptrdiff_t got =
            bel_http_stream_read(&r->stream, bel_str_room(&r->body, most), most, deadline_ns);
        if (got <= 0) return false;
        r->body.length += (size_t)got;
    }
    return true;
}

// Takes a line of chunked coding. Returns 0, or a code. The line has no CR LF and ends with a zero
// byte.
static int take_line(bel_http_reader *r, int64_t deadline_ns, char out_line[CHUNK_LINE])
{
    for (;;) {
        const char *at = r->in.text + r->used;
        size_t have = r->in.length - r->used;
        const char *end = have > 0 ? memchr(at, '\n', have) : NULL;
        size_t size = end != NULL ? (size_t)(end - at) : have;
        if (size >= CHUNK_LINE) return 400;
        if (end != NULL) {
            if (size == 0 || at[size - 1] != '\r') return 400;
            memcpy(out_line, at, size - 1);
            out_line[size - 1] = '\0';
            r->used += size + 1;
            return 0;
        }
        if (bel_http_reader_fill(r, deadline_ns) <= 0) return 408;
    }
}

// Parses the size of a chunk: hexadecimal digits, then perhaps an extension, which is ignored.
static bool parse_size(const char *line, size_t *out_size)
{
    static const char digits[] = "0123456789abcdef";
    enum { MOST_DIGITS = 8 };
    size_t count = strspn(line, "0123456789abcdefABCDEF"), size = 0;
    const char *rest = line + count + strspn(line + count, " \t");
    if (count == 0 || count > MOST_DIGITS || (*rest != '\0' && *rest != ';')) return false;
    for (size_t i = 0; i < count; i++) {
        char c = line[i] >= 'A' && line[i] <= 'F' ? (char)(line[i] - 'A' + 'a') : line[i];
        size = size * 16 + (size_t)(strchr(digits, c) - digits);
    }
    *out_size = size;
    return true;
}

// Reads the fields after the last chunk, which are ignored.
static int skip_trailer(bel_http_reader *r, int64_t deadline_ns)
{
    char line[CHUNK_LINE];
    for (int i = 0; i <= BEL_HTTP_HEAD_FIELDS; i++) {
        int code = take_line(r, deadline_ns, line);
        if (code != 0 || line[0] == '\0') return code;
    }
    return 400;
}

static int read_chunks(bel_http_reader *r, size_t most, int64_t deadline_ns)
{
    char line[CHUNK_LINE];
    for (;;) {
        size_t size;
        int code = take_line(r, deadline_ns, line);
        if (code != 0) return code;
        if (!parse_size(line, &size)) return 400;
        if (size == 0) return skip_trailer(r, deadline_ns);
        if (size > most - r->body.length) return 413;
        if (!collect(r, r->body.length + size, deadline_ns)) return 408;
        code = take_line(r, deadline_ns, line);
        if (code != 0) return code;
        if (line[0] != '\0') return 400;
    }
}

int bel_http_reader_body(bel_http_reader *r, size_t most, int64_t deadline_ns,
                         const char **out_body, size_t *out_size)
{
    size_t have = r->in.length - r->used;
    if (!r->head.is_chunked && have <= most && r->head.content_length == have) { // the usual case
        *out_body = r->in.text + r->used;
        *out_size = have;
        r->in.text[r->in.length] = '\0';
        r->used = r->in.length;
        return 0;
    }
    int code = 0;
    if (r->head.content_length > most) code = 413;
    if (code == 0 && r->head.is_chunked) code = read_chunks(r, most, deadline_ns);
    if (code == 0 && !r->head.is_chunked &&
        !collect(r, (size_t)r->head.content_length, deadline_ns))
        code = 408;
    bel_str_append(&r->body, "", 0); // a zero byte
    *out_body = r->body.text;
    *out_size = r->body.length;
    return code;
}
