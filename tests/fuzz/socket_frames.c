// Fuzz target for the frames of streams on a unix socket, as an endpoint reads them that listens.
// The bytes come in pieces, with each piece's length before it in the input. An even first byte
// puts a good hello before them. Every answer is complete frames that this side may get, and an END
// is the last one.
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "transport/streams/endpoint.h"
#include "transport/streams/local_socket.h"
#include "wire/bytes.h"

enum { OPENED = 2, DATA = 3, END = 5, PONG = 7 };

static volatile uint8_t heard;

// A zero byte is an error of the stream's owner.
static bel_status *received(void *context, const uint8_t *bytes, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        heard = bytes[i];
        if (bytes[i] == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "a zero byte");
    }
    return NULL;
}

static void fill(void *context, bel_stream_message *message)
{
    (void)context, (void)message;
}

static void closed(void *context, bel_status *status)
{
    (void)context;
    bel_status_ignore(status); // any end is one
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)stream;
    if (strcmp(path, "/refused") == 0) return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
    *out_events = (bel_stream_events){
        .context = context, .received = received, .fill = fill, .closed = closed};
    return NULL;
}

static const char *address(void)
{
    static bel_endpoint *endpoint; // for all inputs: it keeps nothing of a stream
    static char *at;
    if (endpoint == NULL) {
        at = bel_strf("unix:%s/frames-%d", fuzz_folder(), (int)getpid());
        const bel_endpoint_config config = {
            .listen_address = at, .secret = "s3cr", .accept = accept_stream};
        fuzz_expect(fuzz_is_good(bel_endpoint_create(&config, &endpoint)), "an endpoint");
    }
    return at;
}

static void check_answer(const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    bool ended = false, opened = false;
    while (count - at >= 8) {
        uint64_t size = bel_wire_get(bytes + at, 4), kind = bel_wire_get(bytes + at + 4, 4);
        fuzz_expect(!ended, "nothing after an END");
        fuzz_expect(kind == OPENED || kind == END || (opened && (kind == PONG || kind == DATA)),
                    "a kind of the side that accepts");
        fuzz_expect(size <= count - at - 8, "a complete frame");
        opened = opened || kind == OPENED;
        ended = kind == END;
        at += 8 + size;
    }
    fuzz_expect(at == count, "complete frames");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_ANSWER = 1 << 20 };
    static const char hello[] = "\x0e\0\0\0\1\0\0\0\4\0\0\0s3cr/named";
    static uint8_t answer[MOST_ANSWER];
    int file = -1;
    fuzz_expect(fuzz_is_good(bel_local_connect(address(), &file)), "a connection");
    fuzz_input input = {data, size};
    // The endpoint may have disconnected already.
    if (fuzz_take(&input, 1) % 2 == 0) (void)!send(file, hello, sizeof hello - 1, MSG_NOSIGNAL);
    while (input.left > 0) {
        size_t count, wanted = (size_t)fuzz_take(&input, 1) + 1;
        const uint8_t *bytes = fuzz_take_bytes(&input, wanted, &count);
        (void)!send(file, bytes, count, MSG_NOSIGNAL);
    }
    (void)shutdown(file, SHUT_WR);
    size_t used = 0;
    struct pollfd one = {.fd = file, .events = POLLIN};
    while (poll(&one, 1, 20000) == 1) {
        ssize_t got = recv(file, answer + used, sizeof answer - used, 0);
        if (got <= 0) break;
        used += (size_t)got;
    }
    fuzz_expect(used < sizeof answer, "a short answer");
    check_answer(answer, used);
    (void)close(file);
    return 0;
}
