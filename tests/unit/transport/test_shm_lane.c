// Lanes in shared memory: allowed places of payloads, wake-ups, and the effects of strangers and of
// peers that break the protocol. label: threads
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "support/bel_test.h"
#include "transport/doorbell.h"
#include "transport/shm/ring.h"
#include "transport/shm/shm_inner.h"
#include "transport/streams/local_socket.h"

enum { QUIET = 1, LOUD = 2 }; // kinds of frames; a lane may be told not to ring for the first

enum { CAPACITY = 8, REGION_BYTES = 16384, SOON_SECONDS = 20 };

static const char secret[] = "s3cret";
static char *folder, *path, *address;
static bel_shm_hub *server, *client;
static _Atomic(bel_lane *) expected; // the lane that the server's hub finds
static _Atomic int refusals;         // number of refusals

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)context;
    if (hello->kind == 99) {
        refusals++;
        return BEL_ERR(BEL_PERMISSION_DENIED, "no lane for %d", hello->index);
    }
    *out_lane = expected;
    return NULL;
}

static int open_hubs(void **state)
{
    (void)state;
    folder = bel_test_folder();
    path = bel_strf("%s/hub", folder);
    address = bel_strf("unix:%s", path);
    bel_shm_hub_config config = {.listen_path = path, .secret = secret, .find = find};
    BEL_ASSERT_OK(bel_shm_hub_create(&config, &server));
    config.listen_path = NULL;
    BEL_ASSERT_OK(bel_shm_hub_create(&config, &client));
    return 0;
}

static int close_hubs(void **state)
{
    (void)state;
    bel_shm_hub_destroy(client);
    bel_shm_hub_destroy(server);
    assert_int_equal(access(path, F_OK), -1); // the hub removed its socket
    bel_test_remove_folder(folder);
    bel_free(path);
    bel_free(address);
    return 0;
}

static bel_shm_region *make_region(size_t bytes)
{
    bel_shm_region *region = NULL;
    BEL_ASSERT_OK(bel_shm_region_create("test", bytes, &region));
    return region;
}

static int64_t soon(void)
{
    return bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
}

static bool receive_soon(bel_lane *lane, bel_doorbell *bell, bel_frame *out_frame)
{
    int64_t deadline = soon();
    bool got = bel_lane_receive(lane, out_frame);
    while (!got && bel_doorbell_wait(bell, deadline))
        got = bel_lane_receive(lane, out_frame);
    return got;
}

// Sends when there is room: until its peer is introduced, a lane does not see which frames were
// taken.
static bel_status *send_soon(bel_lane *lane, const bel_frame *frame)
{
    int64_t deadline = soon();
    bel_status *status = bel_lane_send(lane, frame);
    while (bel_status_code(status) == BEL_RESOURCE_EXHAUSTED && bel_clock_ns() < deadline) {
        bel_status_ignore(status);
        status = bel_lane_send(lane, frame);
    }
    return status;
}

static void wait_for_cut(bel_lane *lane, bel_doorbell *bell)
{
    int64_t deadline = soon();
    while (!bel_lane_is_cut(lane) && bel_doorbell_wait(bell, deadline))
        continue;
    assert_true(bel_lane_is_cut(lane));
}

static void assert_cut(bel_lane *lane, bel_doorbell *bell, const char *reason)
{
    wait_for_cut(lane, bell);
    bel_frame frame = {.kind = LOUD};
    BEL_ASSERT_FAILS(bel_lane_send(lane, &frame), BEL_UNAVAILABLE, reason);
}

// --- Two lanes ----------------------------------------------------------------------------------

typedef struct pair {
    bel_doorbell *bells[2]; // 0: the connecting end
    bel_lane *ends[2];
    bel_shm_region *region; // belongs to end 0
} pair;

static pair make_pair(uint32_t quiet)
{
    pair p = {.bells = {bel_doorbell_create(), bel_doorbell_create()},
              .region = make_region(REGION_BYTES)};
    bel_shm_lane_config a = {
        .capacity = CAPACITY, .bell = p.bells[0], .quiet = quiet, .region = p.region};
    bel_shm_lane_config b = {.capacity = CAPACITY, .bell = p.bells[1], .peer_bytes = REGION_BYTES};
    expected = p.ends[1] = bel_shm_lane_create(server, &b);
    p.ends[0] = bel_shm_lane_connect(client, path, &(bel_lane_hello){0}, &a);
    return p;
}

static void destroy_pair(pair *p)
{
    for (int i = 0; i < 2; i++) {
        bel_lane_close(p->ends[i]);
        bel_doorbell_destroy(p->bells[i]);
    }
    bel_shm_region_destroy(p->region);
}

static bel_frame report(const void *payload, size_t bytes)
{
    return (bel_frame){.kind = QUIET, .payload = payload, .payload_bytes = bytes};
}

static void test_payloads_stay_in_the_region(void **state)
{
    (void)state;
    pair p = make_pair(0);
    uint8_t *own = bel_shm_region_memory(p.region), outside[1024] = {7};
    bel_frame frame = report(outside, sizeof outside), got;
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[0], &frame), BEL_INVALID_ARGUMENT, "region");
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[1], &frame), BEL_INVALID_ARGUMENT, "region");
    frame = report(own + REGION_BYTES - 1016, 1024); // exceeds the region
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[0], &frame), BEL_INVALID_ARGUMENT, "region");
    frame = report(own + 4, 1024);
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[0], &frame), BEL_INVALID_ARGUMENT, "multiple of 8");

    frame = report(own + REGION_BYTES - 1024, 1024); // ends with the region
    own[REGION_BYTES - 1] = 5;
    BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    assert_true(receive_soon(p.ends[1], p.bells[1], &got));
    const uint8_t *view = bel_shm_region_memory(bel_shm_lane_peer(p.ends[1]));
    assert_ptr_equal(got.payload, view + REGION_BYTES - 1024); // the address written to
    assert_int_equal(((const uint8_t *)got.payload)[1023], 5);
    assert_null(bel_shm_lane_peer(p.ends[0])); // the other end has no region
    destroy_pair(&p);
}

// The sender may reuse a small payload's memory at once. The received copy stays valid for CAPACITY
// more frames.
static void test_small_payloads_are_kept(void **state)
{
    (void)state;
    pair p = make_pair(0);
    const double *kept[CAPACITY];
    double content[BEL_SHM_SMALL_BYTES / sizeof(double)];
    for (int i = 0; i < 5 * CAPACITY; i++) {
        content[0] = content[BEL_SHM_SMALL_BYTES / sizeof(double) - 1] = i;
        bel_frame frame = report(content, sizeof content), got;
        BEL_ASSERT_OK(send_soon(p.ends[0], &frame));
        assert_true(receive_soon(p.ends[1], p.bells[1], &got));
        assert_int_equal(got.payload_bytes, sizeof content);
        kept[i % CAPACITY] = got.payload;
        for (int k = i >= CAPACITY ? i - CAPACITY + 1 : 0; k <= i; k++)
            assert_true(kept[k % CAPACITY][0] == k);
        assert_true(kept[i % CAPACITY][BEL_SHM_SMALL_BYTES / sizeof(double) - 1] == i);
    }
    destroy_pair(&p);
}

typedef struct sleeper {
    bel_doorbell *bell;
    _Atomic bool woken;
} sleeper;

static void *sleep_once(void *argument)
{
    sleeper *s = argument;
    s->woken = bel_doorbell_wait(s->bell, soon());
    return NULL;
}

// Quiet frames and one that rings cause at most one wake-up, and exactly one if the other end
// sleeps.
static void test_one_wake_up_for_many_frames(void **state)
{
    (void)state;
    pair p = make_pair(1u << QUIET);
    bel_frame quiet = {.kind = QUIET}, loud = {.kind = LOUD}, got;
    // After this exchange the two ends are introduced, which may take a signal for earlier frames.
    BEL_ASSERT_OK(send_soon(p.ends[1], &loud));
    assert_true(receive_soon(p.ends[0], p.bells[0], &got));
    int rounds = 0;
    uint64_t made = 0;
    for (int64_t deadline = soon(); made == 0 && bel_clock_ns() < deadline; rounds++) {
        sleeper s = {.bell = p.bells[1]};
        pthread_t thread;
        BEL_ASSERT_OK(bel_thread_start(&thread, sleep_once, &s));
        for (int i = 0; i < CAPACITY - 1; i++)
            BEL_ASSERT_OK(send_soon(p.ends[0], &quiet));
        assert_false(s.woken);
        BEL_ASSERT_OK(send_soon(p.ends[0], &loud));
        pthread_join(thread, NULL);
        assert_true(s.woken);
        made = bel_shm_lane_rings(p.ends[0]);
        assert_true(made <= 1);
        assert_int_equal(bel_doorbell_count(p.bells[1]), rounds + 1);
        for (int i = 0; i < CAPACITY; i++)
            assert_true(receive_soon(p.ends[1], p.bells[1], &got));
    }
    assert_int_equal(made, 1);
    assert_int_equal(bel_doorbell_signals(p.bells[1]), 1);
    for (int i = 0; i < CAPACITY; i++) // no thread sleeps: no system calls
        BEL_ASSERT_OK(send_soon(p.ends[0], &loud));
    assert_int_equal(bel_shm_lane_rings(p.ends[0]), 1);
    destroy_pair(&p);
}

// --- Introductions that fail --------------------------------------------------------------------

static void test_refused_for_good(void **state)
{
    (void)state;
    bel_doorbell *bell = bel_doorbell_create();
    int before = refusals;
    bel_shm_lane_config config = {.capacity = CAPACITY, .bell = bell};
    bel_lane *lane =
        bel_shm_lane_connect(client, path, &(bel_lane_hello){.kind = 99, .index = 4}, &config);
    assert_cut(lane, bell, "refused: no lane for 4");
    assert_int_equal(refusals, before + 1); // it asked once
    bel_lane_close(lane);
    bel_doorbell_destroy(bell);
}

// With a bound, calls that nothing answers end the lane, and it says so.
static void test_unheard(void **state)
{
    (void)state;
    bel_doorbell *bell = bel_doorbell_create();
    char *nowhere = bel_strf("%s/gone/hub", folder);
    bel_shm_lane_config config = {.capacity = CAPACITY, .bell = bell, .patience_secs = 0.05};
    bel_lane *lane = bel_shm_lane_connect(client, nowhere, &(bel_lane_hello){0}, &config);
    assert_cut(lane, bell, "cannot connect to unix:");
    assert_true(bel_shm_lane_is_unheard(lane));
    bel_lane_close(lane);
    expected = NULL; // a hub that answers "not yet" is heard
    lane = bel_shm_lane_connect(client, path, &(bel_lane_hello){0}, &config);
    assert_false(bel_doorbell_wait(bell, bel_clock_ns() + INT64_C(300000000)));
    assert_false(bel_shm_lane_is_unheard(lane));
    bel_lane_close(lane);
    bel_free(nowhere);
    bel_doorbell_destroy(bell);
}

// Both ends check their expectations of each other.
static void test_ends_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        size_t capacities[2], peer_bytes, region_bytes;
        const char *reason;
    } cases[] = {{{CAPACITY + 1, CAPACITY}, 0, 0, "a ring of 9 frames, expected up to 8"},
                 {{CAPACITY, CAPACITY}, 4096, 0, "no region"},
                 {{CAPACITY, CAPACITY}, 8192, 4096, "4096 bytes, expected 8192"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bel_doorbell *bells[2] = {bel_doorbell_create(), bel_doorbell_create()};
        bel_shm_region *region =
            cases[i].region_bytes > 0 ? make_region(cases[i].region_bytes) : NULL;
        bel_shm_lane_config a = {
            .capacity = cases[i].capacities[0], .bell = bells[0], .region = region};
        bel_shm_lane_config b = {.capacity = cases[i].capacities[1],
                                 .bell = bells[1],
                                 .peer_bytes = cases[i].peer_bytes};
        bel_lane *waiting = bel_shm_lane_create(server, &b);
        expected = waiting;
        bel_lane *lane = bel_shm_lane_connect(client, path, &(bel_lane_hello){0}, &a);
        assert_cut(lane, bells[0], cases[i].reason);
        assert_false(bel_lane_is_cut(waiting)); // a valid peer may still come
        bel_lane_close(lane);
        bel_lane_close(waiting);
        bel_shm_region_destroy(region);
        bel_doorbell_destroy(bells[0]);
        bel_doorbell_destroy(bells[1]);
    }
}

static void test_second_peer_is_refused(void **state)
{
    (void)state;
    pair p = make_pair(0);
    bel_frame frame = {.kind = QUIET}, got;
    BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    assert_true(receive_soon(p.ends[1], p.bells[1], &got));
    bel_doorbell *bell = bel_doorbell_create();
    bel_shm_lane_config config = {.capacity = CAPACITY, .bell = bell, .region = p.region};
    bel_lane *second = bel_shm_lane_connect(client, path, &(bel_lane_hello){0}, &config);
    assert_cut(second, bell, "peer already");
    assert_false(bel_lane_is_cut(p.ends[1]));
    bel_lane_close(second);
    bel_doorbell_destroy(bell);
    destroy_pair(&p);
}

// The waiting lane is created after the calling one. Frames sent before are not lost.
static void test_late_end(void **state)
{
    (void)state;
    expected = NULL;
    bel_doorbell *bells[2] = {bel_doorbell_create(), bel_doorbell_create()};
    bel_shm_lane_config a = {.capacity = CAPACITY, .bell = bells[0]};
    bel_lane *caller = bel_shm_lane_connect(client, path, &(bel_lane_hello){0}, &a);
    bel_frame frame = {.kind = QUIET, .fields = {11}}, got;
    BEL_ASSERT_OK(bel_lane_send(caller, &frame));
    a.bell = bells[1];
    bel_lane *waiting = bel_shm_lane_create(server, &a);
    expected = waiting;
    assert_true(receive_soon(waiting, bells[1], &got));
    assert_int_equal(got.fields[0], 11);
    bel_lane_close(waiting);
    assert_cut(caller, bells[0], "closed");
    bel_lane_close(caller);
    for (int i = 0; i < 2; i++)
        bel_doorbell_destroy(bells[i]);
}

static void test_hub_errors(void **state)
{
    (void)state;
    bel_shm_hub *hub = NULL;
    char *long_path = bel_xmalloc(301);
    memset(long_path, 'x', 300);
    long_path[300] = '\0';
    bel_shm_hub_config config = {.listen_path = path, .secret = secret};
    BEL_ASSERT_FAILS(bel_shm_hub_create(&config, &hub), BEL_UNAVAILABLE, "another process");
    config.listen_path = long_path;
    BEL_ASSERT_FAILS(bel_shm_hub_create(&config, &hub), BEL_INVALID_ARGUMENT, "path");
    config = (bel_shm_hub_config){.secret = long_path};
    BEL_ASSERT_FAILS(bel_shm_hub_create(&config, &hub), BEL_INVALID_ARGUMENT, "secret");
    bel_free(long_path);
    char *file = bel_test_file(folder, "file", "", 0);
    config = (bel_shm_hub_config){.listen_path = file, .secret = secret};
    BEL_ASSERT_FAILS(bel_shm_hub_create(&config, &hub), BEL_UNAVAILABLE, "no socket");
    assert_int_equal(access(file, F_OK), 0);
    bel_free(file);
    char *stale = bel_strf("unix:%s/stale", folder); // a socket file of a process that was killed
    int killed;
    BEL_ASSERT_OK(bel_local_listen(stale, &killed));
    close(killed);
    config = (bel_shm_hub_config){.listen_path = stale + strlen("unix:"), .secret = secret};
    BEL_ASSERT_OK(bel_shm_hub_create(&config, &hub));
    bel_shm_hub_destroy(hub);
    assert_int_equal(access(config.listen_path, F_OK), -1);
    bel_free(stale);
}

// --- A peer made by hand ------------------------------------------------------------------------

typedef struct raw_peer {
    int socket, event;
    bel_shm_region *ring_region, *region;
    bel_shm_ring *ring;
} raw_peer;

static raw_peer make_raw(void)
{
    raw_peer raw = {.event = bel_linux_event_create(),
                    .ring_region = make_region(bel_shm_ring_bytes(CAPACITY)),
                    .region = make_region(REGION_BYTES)};
    raw.ring = bel_shm_region_memory(raw.ring_region);
    BEL_ASSERT_OK(bel_local_connect(address, &raw.socket));
    return raw;
}

static void destroy_raw(raw_peer *raw)
{
    close(raw->socket);
    close(raw->event);
    bel_shm_region_destroy(raw->ring_region);
    bel_shm_region_destroy(raw->region);
}

static bel_shm_message good_message(void)
{
    bel_shm_message message = {.magic = {'B', 'E', 'L', 'S'},
                               .version = BEL_SHM_VERSION,
                               .slots = CAPACITY,
                               .holds = BEL_SHM_HOLDS_EVENT | BEL_SHM_HOLDS_REGION};
    memcpy(message.secret, secret, sizeof secret - 1);
    return message;
}

// Receives the hub's answer, or returns false if the hub closes silently.
static bool hear(int socket, bel_shm_message *out_answer)
{
    size_t received = 0;
    int descriptors[BEL_LINUX_DESCRIPTORS], count = 0;
    struct pollfd waiting = {.fd = socket, .events = POLLIN};
    while (received < sizeof *out_answer && poll(&waiting, 1, SOON_SECONDS * 1000) == 1) {
        ssize_t got = bel_linux_socket_receive(socket, (uint8_t *)out_answer + received,
                                               sizeof *out_answer - received, descriptors, &count);
        if (got <= 0) break;
        received += (size_t)got;
    }
    while (count > 0)
        close(descriptors[--count]);
    return received == sizeof *out_answer;
}

static void introduce(raw_peer *raw, const bel_shm_message *message, bel_shm_message *out_answer)
{
    const int descriptors[] = {bel_shm_region_descriptor(raw->ring_region), raw->event,
                               bel_shm_region_descriptor(raw->region)};
    assert_true(bel_linux_socket_send(raw->socket, message, sizeof *message, descriptors, 3));
    assert_true(hear(raw->socket, out_answer));
}

typedef struct victim {
    bel_doorbell *bell;
    bel_lane *lane;
} victim;

static victim make_victim(void)
{
    victim v = {.bell = bel_doorbell_create()};
    bel_shm_lane_config config = {.capacity = CAPACITY, .bell = v.bell, .peer_bytes = REGION_BYTES};
    expected = v.lane = bel_shm_lane_create(server, &config);
    return v;
}

static void destroy_victim(victim *v)
{
    bel_lane_close(v->lane);
    bel_doorbell_destroy(v->bell);
}

static const bel_shm_slot good_slot = {
    .number = 1, .kind = QUIET, .place = BEL_SHM_PLACE_REGION, .bytes = REGION_BYTES};

static void publish(raw_peer *raw, const bel_shm_slot *slot)
{
    raw->ring->slots[0] = *slot;
    atomic_store(&raw->ring->sent, 1);
    atomic_store(&raw->ring->rings, 1);
    bel_linux_event_signal(raw->event); // the peer's event: harmless
}

// One bad slot each, after a correct introduction.
static void test_malformed_slots(void **state)
{
    (void)state;
    static const struct {
        bel_shm_slot slot;
        const char *reason;
    } cases[] = {
        {{.number = 1, .kind = 1, .place = 2, .offset = 8, .bytes = REGION_BYTES}, "outside"},
        {{.number = 1, .kind = 1, .place = 2, .offset = UINT64_MAX - 7, .bytes = 16}, "outside"},
        {{.number = 1, .kind = 1, .place = 2, .offset = REGION_BYTES, .bytes = 8}, "outside"},
        {{.number = 1, .kind = 1, .place = 2, .bytes = REGION_BYTES + 1}, "more bytes"},
        {{.number = 1, .kind = 1, .place = 2, .bytes = UINT64_MAX}, "more bytes"},
        {{.number = 1, .kind = 1, .place = 2, .offset = 4, .bytes = 8}, "multiple of 8"},
        {{.number = 1, .kind = 0}, "kind"},
        {{.number = 1, .kind = BEL_FRAME_LAST_KIND + 1}, "kind"},
        {{.number = 1, .kind = UINT32_MAX}, "kind"},
        {{.number = 1, .kind = 1, .place = 0, .bytes = 8}, "no place"},
        {{.number = 1, .kind = 1, .place = 1, .bytes = BEL_SHM_SMALL_BYTES + 1}, "too many bytes"},
        {{.number = 1, .kind = 1, .place = 3}, "place"},
        {{.number = 2, .kind = 1}, "number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        victim v = make_victim();
        raw_peer raw = make_raw();
        bel_shm_message message = good_message(), answer;
        bel_frame got;
        introduce(&raw, &message, &answer);
        assert_int_equal(answer.code, BEL_OK);
        publish(&raw, &cases[i].slot);
        assert_false(bel_lane_receive(v.lane, &got));
        assert_cut(v.lane, v.bell, cases[i].reason);
        assert_false(hear(raw.socket, &answer)); // the hub disconnected the peer
        destroy_raw(&raw);
        destroy_victim(&v);
    }
}

// Impossible counters of a peer; as a control, a valid slot is accepted first.
static void test_malformed_counters(void **state)
{
    (void)state;
    victim v = make_victim();
    raw_peer raw = make_raw();
    bel_shm_message message = good_message(), answer;
    bel_frame got, frame = {.kind = LOUD};
    introduce(&raw, &message, &answer);
    publish(&raw, &good_slot);
    assert_true(receive_soon(v.lane, v.bell, &got));
    assert_int_equal(got.payload_bytes, REGION_BYTES);
    atomic_store(&raw.ring->sent, 0); // decreases
    assert_false(bel_lane_receive(v.lane, &got));
    assert_cut(v.lane, v.bell, "malformed ring");
    destroy_raw(&raw);
    destroy_victim(&v);

    v = make_victim();
    raw = make_raw();
    introduce(&raw, &message, &answer);
    atomic_store(&raw.ring->sent, CAPACITY + 1); // exceeds the capacity
    assert_false(bel_lane_receive(v.lane, &got));
    assert_cut(v.lane, v.bell, "malformed ring");
    destroy_raw(&raw);
    destroy_victim(&v);

    v = make_victim();
    raw = make_raw();
    introduce(&raw, &message, &answer);
    BEL_ASSERT_OK(bel_lane_send(v.lane, &frame));
    atomic_store(&raw.ring->taken, 2); // more than was sent
    BEL_ASSERT_FAILS(bel_lane_send(v.lane, &frame), BEL_UNAVAILABLE, "malformed ring");
    assert_cut(v.lane, v.bell, "malformed ring");
    destroy_raw(&raw);
    destroy_victim(&v);
}

// --- Strangers ----------------------------------------------------------------------------------

// Checks that an honest peer is still served.
static void assert_still_serves(void)
{
    pair p = make_pair(0);
    bel_frame frame = {.kind = QUIET}, got;
    BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    assert_true(receive_soon(p.ends[1], p.bells[1], &got));
    destroy_pair(&p);
}

static void test_bad_introductions(void **state)
{
    (void)state;
    victim v = make_victim();
    for (int i = 0; i < 8; i++) {
        raw_peer raw = make_raw();
        bel_shm_message message = good_message(), answer;
        bel_code code = BEL_INVALID_ARGUMENT;
        int third = bel_shm_region_descriptor(raw.region), count = 3;
        switch (i) {
        case 0: memset(&message, 0x5a, sizeof message); break;
        case 1:
            message.secret[0] ^= 1;
            code = BEL_UNAUTHENTICATED;
            break;
        case 2:
            message.secret[127] = 1;
            code = BEL_UNAUTHENTICATED;
            break;
        case 3:
            message.version++;
            code = BEL_FAILED_PRECONDITION;
            break;
        case 4: message.code = BEL_SHM_NOT_YET; break; // only valid in answers
        case 5: message.slots = 0; break;
        case 6: count = 2; break;
        case 7: third = raw.event; break; // not a region
        }
        const int descriptors[] = {bel_shm_region_descriptor(raw.ring_region), raw.event, third};
        assert_true(
            bel_linux_socket_send(raw.socket, &message, sizeof message, descriptors, count));
        assert_true(hear(raw.socket, &answer));
        assert_int_equal(answer.code, code);
        assert_int_equal(answer.secret[0], 0); // a refused peer receives no secret
        assert_false(hear(raw.socket, &answer));
        destroy_raw(&raw);
    }
    raw_peer raw = make_raw(); // a bell that is not one
    bel_shm_message message = good_message(), answer;
    const int swapped[] = {bel_shm_region_descriptor(raw.ring_region),
                           bel_shm_region_descriptor(raw.region), raw.event};
    assert_true(bel_linux_socket_send(raw.socket, &message, sizeof message, swapped, 3));
    assert_true(hear(raw.socket, &answer));
    assert_non_null(strstr(answer.text, "no eventfd"));
    destroy_raw(&raw);
    assert_false(bel_lane_is_cut(v.lane));
    destroy_victim(&v);
    assert_still_serves();
}

// Strangers that send nothing, or half a message, delay no peer for long and are disconnected.
static void test_silent_strangers(void **state)
{
    (void)state;
    enum { STRANGERS = 80 }; // more than the hub hears at a time
    int sockets[STRANGERS];
    bel_shm_message message = good_message(), answer;
    for (int i = 0; i < STRANGERS; i++) {
        BEL_ASSERT_OK(bel_local_connect(address, &sockets[i]));
        if (i % 2 == 0) assert_int_equal(send(sockets[i], &message, 100, MSG_NOSIGNAL), 100);
    }
    assert_still_serves();
    for (int i = 0; i < STRANGERS; i++) {
        assert_false(hear(sockets[i], &answer));
        close(sockets[i]);
    }
}

// A peer that sends more after the introduction.
static void test_talkative_peer(void **state)
{
    (void)state;
    victim v = make_victim();
    raw_peer raw = make_raw();
    bel_shm_message message = good_message(), answer;
    introduce(&raw, &message, &answer);
    assert_int_equal(send(raw.socket, "x", 1, MSG_NOSIGNAL), 1);
    assert_cut(v.lane, v.bell, "malformed introduction");
    destroy_raw(&raw);
    destroy_victim(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payloads_stay_in_the_region),
        cmocka_unit_test(test_small_payloads_are_kept),
        cmocka_unit_test(test_one_wake_up_for_many_frames),
        cmocka_unit_test(test_refused_for_good),
        cmocka_unit_test(test_unheard),
        cmocka_unit_test(test_ends_that_do_not_fit),
        cmocka_unit_test(test_second_peer_is_refused),
        cmocka_unit_test(test_late_end),
        cmocka_unit_test(test_hub_errors),
        cmocka_unit_test(test_malformed_slots),
        cmocka_unit_test(test_malformed_counters),
        cmocka_unit_test(test_bad_introductions),
        cmocka_unit_test(test_silent_strangers),
        cmocka_unit_test(test_talkative_peer),
    };
    return cmocka_run_group_tests(tests, open_hubs, close_hubs);
}
