// Fuzz target for requests over HTTP: the first byte cuts the rest into pieces that a socket sends.
// An accepted head has only parts of its text, and a body is at most the limit. The same bytes in
// one piece have the same meaning.
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "http/http_reader.h"

enum { MOST_BODY = 1 << 12, MOST_INPUT = 1 << 15 };

// Sends the bytes, of which the reader gets all but the last piece before it looks for a request.
static void feed(bel_http_reader *r, int to, const uint8_t *data, size_t size, size_t piece)
{
    for (size_t sent = 0, more; sent < size; sent += more) {
        more = size - sent < piece ? size - sent : piece;
        fuzz_expect(send(to, data + sent, more, MSG_NOSIGNAL) == (ssize_t)more, "room");
        if (sent + more < size) (void)bel_http_reader_fill(r, bel_clock_ns() + 1000000000);
    }
    (void)shutdown(to, SHUT_WR);
}

static uint64_t hash_head(const bel_http_head *head, uint64_t hash)
{
    hash = bel_hash64_more(hash, head->method, strlen(head->method));
    hash = bel_hash64_more(hash, head->target, strlen(head->target));
    for (int i = 0; i < head->field_count; i++) {
        const bel_http_field *f = &head->fields[i];
        hash = bel_hash64_more(hash, f->name, strlen(f->name) + 1);
        hash = bel_hash64_more(hash, f->value, strlen(f->value));
        fuzz_expect(bel_http_head_find(head, f->name) != NULL, "the field");
    }
    return hash;
}

// Reads a request. Returns 0, or the end's code.
static int read_one(bel_http_reader *r, uint64_t *hash)
{
    const char *message = NULL, *body = NULL;
    size_t size = 0;
    int64_t deadline = bel_clock_ns() + 1000000000;
    (void)bel_http_reader_next(r);
    int code = bel_http_reader_head(r, deadline, &message);
    fuzz_expect(code <= 0 || message != NULL, "a message");
    if (code != 0) return code;
    *hash = hash_head(&r->head, *hash);
    code = bel_http_reader_body(r, MOST_BODY, deadline, &body, &size);
    if (code != 0) return code;
    fuzz_expect(size <= MOST_BODY && body[size] == '\0', "a bounded body");
    *hash = bel_hash64_more(*hash, body, size);
    return 0;
}

// Returns a hash of all requests of the bytes, and of their end.
static uint64_t read_all(const uint8_t *data, size_t size, size_t piece)
{
    int files[2], code = 0;
    uint64_t hash = 0;
    bel_http_reader r = {0};
    fuzz_expect(socketpair(AF_UNIX, SOCK_STREAM, 0, files) == 0, "a pair of sockets");
    for (int i = 0; i < 2; i++)
        (void)fcntl(files[i], F_SETFL, O_NONBLOCK);
    r.stream.file = files[0];
    feed(&r, files[1], data, size, piece);
    while (code == 0)
        code = read_one(&r, &hash);
    bel_http_reader_deinit(&r);
    bel_http_stream_close(&r.stream);
    (void)close(files[1]);
    return bel_hash64_more(hash, &code, sizeof code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST_INPUT) return 0;
    size_t piece = (size_t)data[0] + 1;
    uint64_t one = read_all(data + 1, size - 1, MOST_INPUT);
    fuzz_expect(read_all(data + 1, size - 1, piece) == one, "the same requests in pieces");
    return 0;
}
