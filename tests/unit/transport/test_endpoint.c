// Endpoints and lanes under faults: addresses, secrets, and peers that send nonsense.
// label: threads
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "support/bel_test.h"
#include "transport/streams/local_socket.h"
#include "transport/streams/stream_lane.h"
#include "wire/frame.h"

enum { SOON_SECONDS = 20 };

static _Atomic(bel_lane *) waiting; // the result of find; set while a peer calls again
static atomic_bool never;           // find returns an error

static void *place_nothing(void *context, const bel_frame *frame)
{
    (void)context, (void)frame;
    return NULL;
}

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)context;
    if (never) return BEL_ERR(BEL_FAILED_PRECONDITION, "no lane for peer %d", hello->index);
    *out_lane = waiting;
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)context;
    if (strcmp(path, BEL_STREAM_LANE_PATH) != 0) return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
    return bel_stream_lane_accept(stream, find, NULL, out_events);
}

static bel_endpoint *endpoint(const char *listen, const char *secret)
{
    bel_endpoint_config config = {
        .listen_address = listen, .secret = secret, .accept = accept_stream};
    bel_endpoint *made;
    BEL_ASSERT_OK(bel_endpoint_create(&config, &made));
    return made;
}

// Waits until a lane is cut and checks the reason.
static void assert_cut(bel_lane *lane, bel_doorbell *bell, const char *reason)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (!bel_lane_is_cut(lane) && bel_clock_ns() < deadline)
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 10000000);
    assert_true(bel_lane_is_cut(lane));
    if (strstr(bel_stream_lane_cut_reason(lane), reason) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", reason, bel_stream_lane_cut_reason(lane));
    }
}

static void test_addresses(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    char *local = bel_strf("unix:%s/s", folder);
    bel_endpoint *first = endpoint("127.0.0.1:0", "s"), *second = endpoint(local, "s"), *none;
    assert_int_not_equal(strcmp(bel_endpoint_address(first), "127.0.0.1:0"), 0);
    bel_endpoint_config config = {.secret = "s", .accept = accept_stream};
    config.listen_address = bel_endpoint_address(first);
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &none), BEL_UNAVAILABLE, "cannot listen on 127");
    config.listen_address = local;
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &none), BEL_UNAVAILABLE, "another process");
    config.listen_address = "no-such-host.invalid:1";
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &none), BEL_UNAVAILABLE, "no-such-host");
    char long_path[200];
    memset(long_path, 'x', sizeof long_path);
    memcpy(long_path, "unix:/", 6);
    long_path[sizeof long_path - 1] = '\0';
    config.listen_address = long_path;
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &none), BEL_INVALID_ARGUMENT, "path");
    bel_endpoint_destroy(second);
    second = endpoint(local, "s"); // the address is free again
    bel_endpoint_destroy(second);
    bel_endpoint_destroy(first);
    bel_free(local);
    bel_test_remove_folder(folder);
}

typedef struct caller { // opens streams to an unused address
    pthread_t thread;
    atomic_int closed, wrong;
} caller;

static void fill_nothing(void *context, bel_stream_message *message)
{
    (void)context, (void)message;
}

static void note_closed(void *context, bel_status *status)
{
    caller *c = context;
    if (pthread_equal(pthread_self(), c->thread)) atomic_fetch_add(&c->wrong, 1);
    if (bel_status_code(status) != BEL_UNAVAILABLE) atomic_fetch_add(&c->wrong, 1);
    bel_status_ignore(status); // no server listens there
    atomic_fetch_add(&c->closed, 1);
}

// A call to an unused address fails at once. The failure is still reported on the endpoint's
// thread, as callers that retry after a while rely on that.
static void test_nobody_there(void **state)
{
    (void)state;
    enum { STREAMS = 500 };
    char *folder = bel_test_folder(), *address = bel_strf("unix:%s/s", folder);
    bel_endpoint *client = endpoint(NULL, "");
    caller c = {.thread = pthread_self()};
    const bel_stream_events events = {.context = &c, .fill = fill_nothing, .closed = note_closed};
    for (int i = 0; i < STREAMS; i++)
        bel_stream_release(bel_stream_open(client, address, "/nowhere", &events));
    bel_endpoint_destroy(client); // returns after all streams ended
    assert_int_equal(c.closed, STREAMS);
    assert_int_equal(c.wrong, 0);
    bel_free(address);
    bel_test_remove_folder(folder);
}

static void test_wrong_secret(void **state)
{
    const char *const secrets[] = {"", "rigHt", "right and more"};
    bel_endpoint *server = endpoint(*state, "right");
    bel_doorbell *bell = bel_doorbell_create();
    for (int i = 0; i < 3; i++) {
        bel_endpoint *client = endpoint(NULL, secrets[i]);
        bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
        bel_lane *lane = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                                 &(bel_lane_hello){0}, &config);
        assert_cut(lane, bell, "secret");
        bel_lane_close(lane);
        bel_endpoint_destroy(client);
    }
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
}

// A peer refused for good is cut. A peer that is early retries until it is expected.
static void test_hello(void **state)
{
    bel_endpoint *server = endpoint(*state, ""), *client = endpoint(NULL, "");
    bel_doorbell *bell = bel_doorbell_create();
    bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
    never = true;
    bel_lane *refused = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                                &(bel_lane_hello){.index = 5}, &config);
    assert_cut(refused, bell, "no lane for peer 5");
    bel_lane_close(refused);
    never = false;
    waiting = NULL;
    bel_lane *early = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                              &(bel_lane_hello){0}, &config);
    while (bel_stream_lane_streams(early) < 3) // it has retried
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000);
    waiting = bel_stream_lane_create(server, &config);
    BEL_ASSERT_OK(bel_lane_send(early, &(bel_frame){.kind = 1, .fields = {3}}));
    bel_frame got;
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    bool arrived = bel_lane_receive(waiting, &got);
    while (!arrived && bel_clock_ns() < deadline) {
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000);
        arrived = bel_lane_receive(waiting, &got);
    }
    assert_true(arrived && got.fields[0] == 3);
    bel_lane_close(early);
    bel_lane_close(waiting);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
}

// A payload without a place at the receiver cuts the lane on both sides, and nothing is written.
static void test_malformed(void **state)
{
    bel_endpoint *server = endpoint(*state, ""), *client = endpoint(NULL, "");
    bel_doorbell *bells[2] = {bel_doorbell_create(), bel_doorbell_create()};
    bel_stream_lane_config config = {.capacity = 4, .bell = bells[0], .place = place_nothing};
    waiting = bel_stream_lane_create(server, &config);
    config.bell = bells[1];
    bel_lane *lane = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                             &(bel_lane_hello){0}, &config);
    static const char payload[100000];
    BEL_ASSERT_OK(bel_lane_send(
        lane, &(bel_frame){.kind = 1, .payload = payload, .payload_bytes = sizeof payload}));
    assert_cut(lane, bells[1], "malformed");
    assert_cut(waiting, bells[0], "malformed");
    BEL_ASSERT_FAILS(bel_lane_fault(waiting), BEL_INTERNAL, "kind 1, number 1, ");
    BEL_ASSERT_FAILS(bel_lane_fault(lane), BEL_INTERNAL, "100000 bytes");
    bel_lane_close(lane);
    bel_lane_close(waiting);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bells[0]);
    bel_doorbell_destroy(bells[1]);
}

// A stream that sends the bytes a test gives it.
typedef struct intruder {
    uint8_t bytes[2 * BEL_WIRE_FRAME_BYTES];
    size_t size;
    atomic_bool over;
    char why[256];
} intruder;

static bel_status *ignore_bytes(void *context, const uint8_t *bytes, size_t count)
{
    (void)context, (void)bytes, (void)count;
    return NULL;
}

static void say_bytes(void *context, bel_stream_message *message)
{
    intruder *i = context;
    if (i->size > 0) bel_stream_message_copy(message, i->bytes, i->size);
    i->size = 0;
}

static void note_end(void *context, bel_status *status)
{
    intruder *i = context;
    snprintf(i->why, sizeof i->why, "%s", bel_status_message(status));
    bel_status_ignore(status); // copied above
    atomic_store(&i->over, true);
}

// Sends these frames to the waiting lane, and records why the stream ended.
static void intrude(intruder *i, bel_endpoint *client, const char *address,
                    const bel_wire_frame *frames, size_t count)
{
    *i = (intruder){.size = count * BEL_WIRE_FRAME_BYTES};
    for (size_t k = 0; k < count; k++)
        bel_wire_frame_write(&frames[k], i->bytes + k * BEL_WIRE_FRAME_BYTES);
    const bel_stream_events events = {
        .context = i, .received = ignore_bytes, .fill = say_bytes, .closed = note_end};
    bel_stream *stream = bel_stream_open(client, address, BEL_STREAM_LANE_PATH, &events);
    bel_stream_kick(stream);
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (!atomic_load(&i->over) && bel_clock_ns() < deadline)
        sched_yield();
    assert_true(atomic_load(&i->over));
    bel_stream_release(stream);
}

static void exchange_one(bel_lane *from, bel_lane *to, uint8_t number)
{
    bel_frame got = {0};
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    BEL_ASSERT_OK(
        bel_lane_send(from, &(bel_frame){.kind = 1, .generation = 7, .fields = {number}}));
    while (!bel_lane_receive(to, &got) && bel_clock_ns() < deadline)
        sched_yield();
    assert_int_equal(got.fields[0], number);
}

// Threads of an endpoint that sends and receives have processor time, as a part of the process's.
static void test_processor_time(void **state)
{
    enum { EXCHANGES = 300 };
    bel_endpoint *server = endpoint(*state, ""), *client = endpoint(NULL, "");
    bel_doorbell *bell = bel_doorbell_create();
    bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
    waiting = bel_stream_lane_create(server, &config);
    bel_lane *lane = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                             &(bel_lane_hello){.generation = 7}, &config);
    int64_t process = -bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t upper = -bel_endpoint_processor_ns(server), lower = -bel_endpoint_processor_ns(client);
    for (int i = 0; i < EXCHANGES; i++) {
        exchange_one(lane, waiting, (uint8_t)i);
        exchange_one(waiting, lane, (uint8_t)i);
    }
    upper += bel_endpoint_processor_ns(server);
    lower += bel_endpoint_processor_ns(client);
    process += bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    assert_true(upper > 0 && lower > 0);
    assert_true(upper + lower <= process);
    bel_lane_close(lane);
    bel_lane_close(waiting);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
}

// A hello that does not fit is refused, and the lane continues with its stream. Frames of another
// generation than the hello's cut the lane.
static void test_wrong_hello(void **state)
{
    enum { HELLO = BEL_FRAME_LAST_KIND + 1 }; // the lane's own kinds follow
    bel_endpoint *server = endpoint(*state, ""), *client = endpoint(NULL, "");
    bel_endpoint *stranger = endpoint(NULL, "");
    bel_doorbell *bell = bel_doorbell_create();
    bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
    const char *address = bel_endpoint_address(server);
    waiting = bel_stream_lane_create(server, &config);
    bel_lane *lane =
        bel_stream_lane_connect(client, address, &(bel_lane_hello){.generation = 7}, &config);
    exchange_one(lane, waiting, 1);
    intruder i;
    const bel_wire_frame ahead = {.kind = HELLO, .generation = 7, .fields = {[8] = 99}};
    intrude(&i, stranger, address, &ahead, 1);
    assert_non_null(strstr(i.why, "a hello that does not fit"));
    const bel_wire_frame taken = {.kind = HELLO, .generation = 7, .taken = 99};
    intrude(&i, stranger, address, &taken, 1);
    assert_non_null(strstr(i.why, "a hello that does not fit"));
    exchange_one(lane, waiting, 2);
    exchange_one(waiting, lane, 3);
    assert_int_equal(bel_stream_lane_streams(lane), 1);
    BEL_ASSERT_OK(bel_lane_fault(lane));
    BEL_ASSERT_OK(bel_lane_fault(waiting));
    BEL_ASSERT_OK(bel_lane_send(lane, &(bel_frame){.kind = 1, .generation = 8}));
    assert_cut(waiting, bell, "its generation");
    bel_lane_close(lane);
    bel_lane_close(waiting);
    bel_endpoint_destroy(stranger);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
}

// PEM files with other content cause an error that names them, not a wait.
static void test_bad_pem(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    char *empty = bel_test_file(folder, "empty.pem", "nothing\n", 8);
    bel_endpoint_config config = {.listen_address = "127.0.0.1:0",
                                  .secret = "s",
                                  .tls_ca = "tests/support/tls/ca.pem",
                                  .tls_certificate = "tests/support/tls/host.pem",
                                  .tls_key = "tests/support/tls/ca.pem",
                                  .accept = accept_stream};
    bel_endpoint *made;
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &made), BEL_INVALID_ARGUMENT,
                     "ca.pem holds no PRIVATE KEY in PEM form");
    config.tls_ca = empty;
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &made), BEL_INVALID_ARGUMENT,
                     "empty.pem holds no CERTIFICATE in PEM form");
    bel_free(empty);
    bel_free(folder);
}

// Reads any bytes until the server disconnects, and returns the last ones in `bytes`.
static void await_disconnection(int connection, char *bytes, size_t room)
{
    enum { LONG_MS = 3 * SOON_SECONDS * 1000 };
    struct pollfd one = {.fd = connection, .events = POLLIN};
    ssize_t got = 1;
    while (got > 0) {
        assert_int_equal(poll(&one, 1, LONG_MS), 1);
        got = recv(connection, bytes, room, 0);
    }
    close(connection);
}

static int connect_locally(const char *address)
{
    int connection;
    BEL_ASSERT_OK(bel_local_connect(address, &connection));
    return connection;
}

// A client that connects and stays silent is disconnected, over TCP and on a unix socket.
static void test_silent_strangers(void **state)
{
    enum { STRANGERS = 20 };
    bel_endpoint *server = endpoint("127.0.0.1:0", ""), *local = endpoint(*state, "");
    int port = (int)strtol(strrchr(bel_endpoint_address(server), ':') + 1, NULL, 10);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    int strangers[STRANGERS];
    for (int i = 0; i < STRANGERS; i++) {
        if (i % 2 == 1) {
            strangers[i] = connect_locally(*state);
            continue;
        }
        strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(strangers[i], (const struct sockaddr *)&to, sizeof to), 0);
    }
    char bytes[1024];
    for (int i = 0; i < STRANGERS; i++)
        await_disconnection(strangers[i], bytes, sizeof bytes);
    bel_endpoint_destroy(local);
    bel_endpoint_destroy(server);
}

#define GOOD_HELLO "\x14\0\0\0\1\0\0\0\4\0\0\0s3cr/belfry/lane"

// Bytes that no process of a job sends end their connection, whatever came before. Cut anywhere,
// good ones are understood.
static void test_strange_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
    } strange[] = {
#define BYTES(text) {text, sizeof text - 1}
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        BYTES("\xff\xff\xff\xff\1\0\0\0"),       // a hello of 4 GB
        BYTES("\4\0\0\0\3\0\0\0data"),           // data first
        BYTES("\0\0\0\0\4\0\0\0"),               // a close first
        BYTES("\0\0\0\0\2\0\0\0"),               // the other side's
        BYTES("\0\0\0\0\x63\0\0\0"),             // no kind
        BYTES("\2\0\0\0\1\0\0\0\4\0"),           // too short for a length
        BYTES("\6\0\0\0\1\0\0\0\xff\xff\0\0s3"), // a secret beyond the end
        BYTES(GOOD_HELLO GOOD_HELLO),
        BYTES(GOOD_HELLO "\4\0\0\0\5\0\0\0\0\0\0\0"), // an end from this side
    };
    bel_endpoint *server = endpoint(*state, "s3cr"), *client = endpoint(NULL, "s3cr");
    bel_doorbell *bell = bel_doorbell_create();
    bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
    never = false;
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        int connection = connect_locally(*state);
        char end[1024];
        for (size_t k = 0; k < strange[i].count; k++) // it may be gone before the last one
            (void)send(connection, strange[i].bytes + k, 1, MSG_NOSIGNAL);
        await_disconnection(connection, end, sizeof end);
    }
    waiting = bel_stream_lane_create(server, &config);
    bel_lane *lane =
        bel_stream_lane_connect(client, *state, &(bel_lane_hello){.generation = 7}, &config);
    exchange_one(lane, waiting, 1); // it still listens
    bel_lane_close(lane);
    bel_lane_close(waiting);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
}

static bel_endpoint *tls_endpoint(const char *listen, const char *who)
{
    char *certificate = bel_strf("tests/support/tls/%s.pem", who);
    char *key = bel_strf("tests/support/tls/%s.key", who);
    bel_endpoint_config config = {.listen_address = listen,
                                  .secret = "s",
                                  .tls_ca = "tests/support/tls/ca.pem",
                                  .tls_certificate = certificate,
                                  .tls_key = key,
                                  .accept = accept_stream};
    bel_endpoint *made;
    BEL_ASSERT_OK(bel_endpoint_create(&config, &made));
    bel_free(certificate);
    bel_free(key);
    return made;
}

// With TLS both sides present certificates of one authority. Connections fail without a
// certificate, or with another authority's. A key that belongs to another certificate is not
// reported as a taken port.
static void test_tls_mismatch(void **state)
{
    (void)state;
    const bel_endpoint_config config = {.listen_address = "127.0.0.1:0",
                                        .secret = "",
                                        .tls_ca = "tests/support/tls/ca.pem",
                                        .tls_certificate = "tests/support/tls/host.pem",
                                        .tls_key = "tests/support/tls/stranger.key"};
    bel_endpoint *made = NULL;
    BEL_ASSERT_FAILS(bel_endpoint_create(&config, &made), BEL_INVALID_ARGUMENT,
                     "stranger.key is the key of tests/support/tls/host.pem");
}

static void test_tls(void **state)
{
    (void)state;
    never = false;
    bel_endpoint *server = tls_endpoint("127.0.0.1:0", "host");
    bel_endpoint *client = tls_endpoint(NULL, "host"), *stranger = tls_endpoint(NULL, "stranger");
    bel_endpoint *plain = endpoint(NULL, "s");
    bel_doorbell *bell = bel_doorbell_create();
    bel_stream_lane_config config = {.capacity = 4, .bell = bell, .place = place_nothing};
    bel_lane *lanes[3];
    bel_endpoint *const callers[] = {stranger, plain, client};
    waiting = bel_stream_lane_create(server, &config);
    for (int i = 0; i < 3; i++) {
        lanes[i] = bel_stream_lane_connect(callers[i], bel_endpoint_address(server),
                                           &(bel_lane_hello){0}, &config);
        BEL_ASSERT_OK(bel_lane_send(lanes[i], &(bel_frame){.kind = 1, .fields = {(uint8_t)i}}));
    }
    bel_frame got;
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    bool arrived = bel_lane_receive(waiting, &got);
    while (!arrived && bel_clock_ns() < deadline) {
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000);
        arrived = bel_lane_receive(waiting, &got);
    }
    assert_true(arrived && got.fields[0] == 2); // only the client of the same authority
    assert_false(bel_lane_receive(waiting, &got));
    for (int i = 0; i < 3; i++)
        bel_lane_close(lanes[i]);
    bel_lane_close(waiting);
    bel_endpoint_destroy(plain);
    bel_endpoint_destroy(stranger);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    bel_doorbell_destroy(bell);
    bel_endpoint_config missing = {.listen_address = "127.0.0.1:0",
                                   .secret = "",
                                   .tls_ca = "/nowhere/ca.pem",
                                   .tls_certificate = "c",
                                   .tls_key = "k",
                                   .accept = accept_stream};
    BEL_ASSERT_FAILS(bel_endpoint_create(&missing, &server), BEL_NOT_FOUND, "/nowhere/ca.pem");
}

typedef struct stuck_reader { // stops reading until it is released
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool here, goes_on;
} stuck_reader;

static void *place_when_let_go(void *context, const bel_frame *frame)
{
    stuck_reader *reader = context;
    (void)frame;
    pthread_mutex_lock(&reader->mutex);
    reader->here = true;
    pthread_cond_broadcast(&reader->changed);
    while (!reader->goes_on)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    pthread_mutex_unlock(&reader->mutex);
    return NULL;
}

// Sent memory stays referenced while its reader does not read. Closing the lane releases it.
static void spans_may_go(bel_endpoint *server, bel_endpoint *client)
{
    enum { BYTES = 32 << 20 };
    const int64_t second_ns = 1000000000;
    stuck_reader reader = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    bel_cond_init(&reader.changed);
    void *memory;
    BEL_ASSERT_OK(bel_pages_create(BYTES, true, "a payload", &memory));
    bel_stream_lane_config config = {
        .capacity = 4, .place = place_when_let_go, .place_context = &reader};
    waiting = bel_stream_lane_create(server, &config);
    bel_lane *lane = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                             &(bel_lane_hello){0}, &config);
    bel_spans *spans = bel_stream_lane_spans(lane);
    assert_true(bel_spans_wait(spans, 0));
    BEL_ASSERT_OK(bel_lane_send(
        lane, &(bel_frame){.kind = 1, .payload = memory, .payload_bytes = (size_t)BYTES}));
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * second_ns;
    pthread_mutex_lock(&reader.mutex);
    while (!reader.here)
        assert_true(bel_cond_wait_until(&reader.changed, &reader.mutex, deadline));
    pthread_mutex_unlock(&reader.mutex);
    while (bel_spans_wait(spans, 0)) { // no reference may exist between two messages
        assert_true(bel_clock_ns() < deadline);
        sched_yield();
    }
    bel_lane_close(lane);
    assert_true(bel_spans_wait(spans, 0));
    bel_spans_release(spans);
    bel_pages_destroy(memory, BYTES);
    pthread_mutex_lock(&reader.mutex);
    reader.goes_on = true;
    pthread_cond_broadcast(&reader.changed);
    pthread_mutex_unlock(&reader.mutex);
    bel_lane_close(waiting);
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
    pthread_cond_destroy(&reader.changed);
}

static void test_spans(void **state)
{
    never = false;
    spans_may_go(endpoint(*state, "s"), endpoint(NULL, "s"));
}

static void test_spans_with_tls(void **state)
{
    (void)state;
    never = false;
    spans_may_go(tls_endpoint("127.0.0.1:0", "host"), tls_endpoint(NULL, "host"));
}

int main(void)
{
    char *folder = bel_test_folder(), *local = bel_strf("unix:%s/socket", folder);
    char tcp[] = "127.0.0.1:0";
    const struct CMUnitTest on_sockets[] = {cmocka_unit_test(test_nobody_there),
                                            cmocka_unit_test_prestate(test_wrong_secret, local),
                                            cmocka_unit_test_prestate(test_hello, local),
                                            cmocka_unit_test_prestate(test_malformed, local),
                                            cmocka_unit_test_prestate(test_wrong_hello, local),
                                            cmocka_unit_test_prestate(test_processor_time, local),
                                            cmocka_unit_test_prestate(test_strange_bytes, local),
                                            cmocka_unit_test_prestate(test_spans, local)};
    const struct CMUnitTest with_grpc[] = {cmocka_unit_test(test_addresses),
                                           cmocka_unit_test_prestate(test_wrong_secret, tcp),
                                           cmocka_unit_test_prestate(test_hello, tcp),
                                           cmocka_unit_test_prestate(test_malformed, tcp),
                                           cmocka_unit_test_prestate(test_wrong_hello, tcp),
                                           cmocka_unit_test_prestate(test_processor_time, tcp),
                                           cmocka_unit_test(test_bad_pem),
                                           cmocka_unit_test_prestate(test_silent_strangers, local),
                                           cmocka_unit_test(test_tls),
                                           cmocka_unit_test(test_tls_mismatch),
                                           cmocka_unit_test_prestate(test_spans, tcp),
                                           cmocka_unit_test(test_spans_with_tls)};
    int failed = cmocka_run_group_tests(on_sockets, NULL, NULL);
    if (BEL_TEST_CARRIERS > 1) failed += cmocka_run_group_tests(with_grpc, NULL, NULL);
    bel_free(local);
    bel_test_remove_folder(folder);
    return failed;
}
