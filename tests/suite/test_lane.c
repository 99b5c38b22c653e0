// Tests of every kind of lane, one battery: order, disturbances, disconnection, full lanes,
// doorbells. label: threads
#include <sched.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "base/thread.h"
#include "support/bel_test.h"
#include "transport/inproc/inproc.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/stream_lane.h"
#include "wire/bytes.h"

enum { CAPACITY = 8, EXCHANGES = 2000, GENERATION = 3, JOINED_KIND = 2, URGENT_KIND = 3 };

// A kind of lane: how to make one with CAPACITY frames each way.
typedef struct lane_kind {
    const char *name;
    void (*create)(bel_doorbell *a_bell, bel_doorbell *b_bell, bel_lane **out_a, bel_lane **out_b);
} lane_kind;

static void create_inproc(bel_doorbell *a_bell, bel_doorbell *b_bell, bel_lane **out_a,
                          bel_lane **out_b)
{
    bel_inproc_lane_create(CAPACITY, a_bell, b_bell, out_a, out_b);
}

// Two endpoints of one process, connected by a unix socket or a port that the system chooses.
static bel_endpoint *server, *client;
static _Atomic(bel_lane *) waiting; // server's end of the lane under construction
static float landed[2][EXCHANGES];  // payloads, by end and step

// Fields of these tests' frames: a number, and bytes after it that say where it was read.
static uint64_t number_of(const bel_frame *frame)
{
    return bel_wire_get(frame->fields, 8);
}

static void *place(void *context, const bel_frame *frame)
{
    float *own = context;
    uint64_t number = number_of(frame);
    return number < EXCHANGES && frame->payload_bytes == sizeof *own ? &own[number] : NULL;
}

static atomic_int urgent_count; // calls of at_once

static void at_once(void *context, const bel_frame *frame)
{
    assert_ptr_equal(context, landed[1]);
    assert_int_equal(frame->kind, URGENT_KIND);
    atomic_fetch_add(&urgent_count, 1);
}

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)context, (void)hello;
    *out_lane = waiting;
    return NULL;
}

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    (void)context;
    if (strcmp(path, BEL_STREAM_LANE_PATH) != 0) return BEL_ERR(BEL_UNIMPLEMENTED, "%s", path);
    return bel_stream_lane_accept(stream, find, context, out_events);
}

static void create_streams(bel_doorbell *a_bell, bel_doorbell *b_bell, bel_lane **out_a,
                           bel_lane **out_b)
{
    bel_stream_lane_config a = {CAPACITY, a_bell, 0, place, landed[0], 0, NULL, 1u << JOINED_KIND};
    bel_stream_lane_config b = {CAPACITY, b_bell,           0, place, landed[1], 1u << URGENT_KIND,
                                at_once,  1u << JOINED_KIND};
    waiting = *out_b = bel_stream_lane_create(server, &b);
    *out_a = bel_stream_lane_connect(client, bel_endpoint_address(server),
                                     &(bel_lane_hello){.generation = GENERATION}, &a);
}

static void open_endpoints(const char *address)
{
    bel_endpoint_config config = {
        .listen_address = address, .secret = "s3cret", .accept = accept_stream};
    BEL_ASSERT_OK(bel_endpoint_create(&config, &server));
    config.listen_address = NULL;
    BEL_ASSERT_OK(bel_endpoint_create(&config, &client));
}

static void close_endpoints(void)
{
    bel_endpoint_destroy(client);
    bel_endpoint_destroy(server);
}

// Two hubs of one process: their shared memory is mapped twice.
static bel_shm_hub *server_hub, *client_hub;
static char *hub_path;

static void create_shm(bel_doorbell *a_bell, bel_doorbell *b_bell, bel_lane **out_a,
                       bel_lane **out_b)
{
    bel_shm_lane_config a = {.capacity = CAPACITY, .bell = a_bell};
    bel_shm_lane_config b = {.capacity = CAPACITY, .bell = b_bell};
    waiting = *out_b = bel_shm_lane_create(server_hub, &b);
    *out_a = bel_shm_lane_connect(client_hub, hub_path, &(bel_lane_hello){0}, &a);
}

static void open_hubs(const char *folder)
{
    hub_path = bel_strf("%s/hub", folder);
    bel_shm_hub_config config = {.listen_path = hub_path, .secret = "s3cret", .find = find};
    BEL_ASSERT_OK(bel_shm_hub_create(&config, &server_hub));
    config.listen_path = NULL;
    BEL_ASSERT_OK(bel_shm_hub_create(&config, &client_hub));
}

static void close_hubs(void)
{
    bel_shm_hub_destroy(client_hub);
    bel_shm_hub_destroy(server_hub);
    bel_free(hub_path);
}

static lane_kind kinds[] = {
    {"inproc", create_inproc}, {"shm", create_shm}, {"streams", create_streams}};

typedef struct pair {
    bel_doorbell *bells[2];
    bel_lane *ends[2];
} pair;

static pair make_pair(const lane_kind *kind)
{
    pair p = {.bells = {bel_doorbell_create(), bel_doorbell_create()}};
    kind->create(p.bells[0], p.bells[1], &p.ends[0], &p.ends[1]);
    return p;
}

enum { SOON_SECONDS = 20 };

// Receives the next frame, which is there or on its way.
static bool receive_soon(bel_lane *lane, bel_doorbell *bell, bel_frame *out_frame)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    bool got = bel_lane_receive(lane, out_frame);
    while (!got && bel_doorbell_wait(bell, deadline))
        got = bel_lane_receive(lane, out_frame);
    return got;
}

// Sends a frame once there is room for it.
static bel_status *send_soon(bel_lane *lane, const bel_frame *frame)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    bel_status *status = bel_lane_send(lane, frame);
    while (bel_status_code(status) == BEL_RESOURCE_EXHAUSTED && bel_clock_ns() < deadline) {
        bel_status_ignore(status);
        status = bel_lane_send(lane, frame);
    }
    return status;
}

// Waits until a bell has rung `count` times in all.
static void wait_for_rings(bel_doorbell *bell, uint64_t count)
{
    int64_t deadline = bel_clock_ns() + SOON_SECONDS * (int64_t)1000000000;
    while (bel_doorbell_count(bell) < count && bel_clock_ns() < deadline)
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000);
    assert_true(bel_doorbell_count(bell) >= count);
}

static void close_end(pair *p, int end)
{
    bel_lane_close(p->ends[end]);
    p->ends[end] = NULL;
}

static void destroy_pair(pair *p)
{
    for (int i = 0; i < 2; i++) {
        bel_lane_close(p->ends[i]);
        bel_doorbell_destroy(p->bells[i]);
    }
}

static bel_frame frame_number(int number, const float *payload)
{
    bel_frame frame = {.kind = 1,
                       .generation = GENERATION,
                       .incarnation = 4,
                       .sender = 5,
                       .payload = payload,
                       .payload_bytes = sizeof *payload};
    uint8_t *at = bel_wire_put(frame.fields, (uint64_t)number, 8);
    for (uint8_t *end = frame.fields + sizeof frame.fields; at < end; at++)
        *at = (uint8_t)(number + (end - at));
    return frame;
}

static void check_frame(const bel_frame *got, int number, float content)
{
    bel_frame expected = frame_number(number, NULL);
    assert_int_equal(got->kind, expected.kind);
    assert_int_equal(got->generation, expected.generation);
    assert_int_equal(got->incarnation, expected.incarnation);
    assert_int_equal(got->sender, expected.sender);
    assert_memory_equal(got->fields, expected.fields, sizeof got->fields);
    assert_int_equal(got->payload_bytes, sizeof content);
    assert_memory_equal(got->payload, &content, sizeof content);
}

// Frames arrive complete and in order, both ways at once, with repeated use of the same slots.
static void test_order(void **state)
{
    pair p = make_pair(*state);
    float content[2][CAPACITY];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CAPACITY - round; i++) {
            for (int end = 0; end < 2; end++) {
                content[end][i] = (float)(100 * end + i);
                bel_frame frame = frame_number(i, &content[end][i]);
                BEL_ASSERT_OK(send_soon(p.ends[end], &frame));
            }
        }
        bel_frame got;
        for (int i = 0; i < CAPACITY - round; i++) {
            for (int end = 0; end < 2; end++) {
                assert_true(receive_soon(p.ends[1 - end], p.bells[1 - end], &got));
                check_frame(&got, i, (float)(100 * end + i));
            }
        }
        assert_false(bel_lane_receive(p.ends[0], &got));
        assert_false(bel_lane_receive(p.ends[1], &got));
    }
    destroy_pair(&p);
}

typedef struct arrivals {
    int count[CAPACITY]; // by frame number
    int total, idle;     // all frames; polls without one before the last new frame
    bool in_order;
} arrivals;

// Sends CAPACITY frames under a fault, and polls until all have arrived, and a while longer.
static arrivals disturbed(const lane_kind *kind, const char *fault)
{
    bel_fault_set(fault);
    pair p = make_pair(kind);
    float content = 1;
    for (int i = 0; i < CAPACITY; i++) {
        bel_frame frame = frame_number(i, &content);
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    }
    wait_for_rings(p.bells[1], CAPACITY);
    arrivals seen = {.in_order = true};
    int distinct = 0, newest = -1;
    for (int poll = 0; poll < 2000; poll++) {
        bel_frame got;
        if (!bel_lane_receive(p.ends[1], &got)) {
            if (distinct < CAPACITY) seen.idle++;
            continue;
        }
        int number = (int)number_of(&got);
        check_frame(&got, number, content);
        if (seen.count[number]++ == 0) {
            distinct++;
            seen.in_order = seen.in_order && number > newest;
            newest = number;
        }
        seen.total++;
    }
    assert_int_equal(distinct, CAPACITY); // disturbed, never lost
    destroy_pair(&p);
    bel_fault_set("");
    return seen;
}

static void test_disturbances(void **state)
{
    arrivals calm = disturbed(*state, "");
    assert_true(calm.in_order && calm.total == CAPACITY && calm.idle == 0);
    arrivals late = disturbed(*state, "lane:delay");
    assert_true(late.in_order && late.total == CAPACITY && late.idle > 0);
    arrivals twice = disturbed(*state, "lane:repeat");
    assert_true(twice.total > CAPACITY);
    for (int i = 0; i < CAPACITY; i++)
        assert_true(twice.count[i] <= 2);
    arrivals mixed = disturbed(*state, "lane:reorder");
    assert_true(!mixed.in_order && mixed.total == CAPACITY);
    arrivals all = disturbed(*state, "lane:delay+repeat+reorder");
    assert_true(!all.in_order && all.total > CAPACITY && all.idle > 0);
}

static void test_cut(void **state)
{
    pair p = make_pair(*state);
    float content = 2;
    bel_frame frame = frame_number(0, &content), got;
    BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    assert_false(bel_lane_is_cut(p.ends[1]));
    wait_for_rings(p.bells[1], 1);
    close_end(&p, 0);
    wait_for_rings(p.bells[1], 2); // wakes a waiting receiver
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[1], &frame), BEL_UNAVAILABLE, "cut");
    assert_true(bel_lane_is_closed(p.ends[1]));
    assert_false(bel_lane_is_cut(p.ends[1])); // frames are still left
    assert_true(bel_lane_receive(p.ends[1], &got));
    check_frame(&got, 0, content);
    assert_true(bel_lane_is_cut(p.ends[1]));
    assert_false(bel_lane_receive(p.ends[1], &got));
    destroy_pair(&p);
}

static void test_full(void **state)
{
    pair p = make_pair(*state);
    float content = 3;
    bel_frame frame = frame_number(1, &content), got;
    for (int i = 0; i < CAPACITY; i++)
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    wait_for_rings(p.bells[1], CAPACITY);
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[0], &frame), BEL_RESOURCE_EXHAUSTED, "full");
    assert_int_equal(bel_doorbell_count(p.bells[1]), CAPACITY);
    for (int i = 0; i < CAPACITY; i++)
        assert_true(bel_lane_receive(p.ends[1], &got));
    BEL_ASSERT_OK(send_soon(p.ends[0], &frame)); // room again
    destroy_pair(&p);
}

static void test_doorbell(void **state)
{
    pair p = make_pair(*state);
    float content = 4;
    bel_frame frame = frame_number(1, &content);
    for (int i = 1; i <= 5; i++) {
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
        wait_for_rings(p.bells[1], (uint64_t)i);
        assert_int_equal(bel_doorbell_count(p.bells[1]), i);
    }
    assert_int_equal(bel_doorbell_count(p.bells[0]), 0); // the sender's bell is silent
    bel_doorbell_ring(p.bells[1]);
    assert_true(bel_doorbell_wait(p.bells[1], 0)); // one wait consumes all rings
    assert_false(bel_doorbell_wait(p.bells[1], bel_clock_ns() + 1000000));
    destroy_pair(&p);
}

// Sends each frame back, until ten seconds have passed without one.
static void *echo(void *argument)
{
    pair *p = argument;
    intptr_t sent = 0;
    while (sent < EXCHANGES) {
        bel_frame got;
        if (bel_lane_receive(p->ends[1], &got)) {
            bel_status *status = bel_lane_send(p->ends[1], &got);
            if (status == NULL) sent++;
            bel_status_ignore(status); // the test's thread notices the missing answer
        } else if (!bel_doorbell_wait(p->bells[1], bel_clock_ns() + 10000000000)) {
            break;
        }
    }
    return (void *)sent;
}

// Frames that wait for the next one arrive before it, with and without shared memory.
static void test_joined(void **state)
{
    pair p = make_pair(*state);
    float content[CAPACITY];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CAPACITY; i++) {
            content[i] = (float)(10 * round + i);
            bel_frame frame = frame_number(i, &content[i]);
            if (i < CAPACITY - 1) frame.kind = JOINED_KIND;
            BEL_ASSERT_OK(send_soon(p.ends[0], &frame));
        }
        for (int i = 0; i < CAPACITY; i++) {
            bel_frame got;
            assert_true(receive_soon(p.ends[1], p.bells[1], &got));
            assert_int_equal(got.kind, i < CAPACITY - 1 ? JOINED_KIND : 1);
            got.kind = 1;
            check_frame(&got, i, (float)(10 * round + i));
        }
    }
    destroy_pair(&p);
}

// A frame that would wait arrives without another one.
static void test_flush(void **state)
{
    pair p = make_pair(*state);
    float content = 5;
    bel_frame frame = frame_number(0, &content), got;
    frame.kind = JOINED_KIND;
    BEL_ASSERT_OK(send_soon(p.ends[0], &frame));
    bel_lane_flush(p.ends[0]);
    assert_true(receive_soon(p.ends[1], p.bells[1], &got));
    assert_int_equal(got.kind, JOINED_KIND);
    bel_lane_flush(p.ends[0]); // nothing waits
    destroy_pair(&p);
}

// Urgent frames are given to the lane's thread before they can be taken.
static void test_urgent(void **state)
{
    const lane_kind *kind = *state;
    pair p = make_pair(kind);
    bool calls = strcmp(kind->name, "streams") == 0;
    atomic_store(&urgent_count, 0);
    for (int i = 0; i < CAPACITY; i++) {
        bel_frame frame = {.kind = URGENT_KIND, .generation = GENERATION}, got;
        BEL_ASSERT_OK(send_soon(p.ends[0], &frame));
        assert_true(receive_soon(p.ends[1], p.bells[1], &got));
        assert_int_equal(got.kind, URGENT_KIND);
        assert_int_equal(atomic_load(&urgent_count), calls ? i + 1 : 0);
    }
    destroy_pair(&p);
}

// Two threads sleep on their doorbells: if a ring is missed, the exchange stops.
static void test_wakes_a_waiter(void **state)
{
    pair p = make_pair(*state);
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, echo, &p));
    float content = 5;
    int received = 0;
    for (int i = 0; i < EXCHANGES; i++) {
        bel_frame frame = frame_number(i, &content), got;
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
        int64_t deadline = bel_clock_ns() + 10000000000;
        bool arrived = bel_lane_receive(p.ends[0], &got);
        while (!arrived && bel_doorbell_wait(p.bells[0], deadline))
            arrived = bel_lane_receive(p.ends[0], &got);
        if (!arrived) break;
        received += number_of(&got) == (uint64_t)i;
    }
    void *sent;
    pthread_join(thread, &sent);
    assert_int_equal(received, EXCHANGES);
    assert_int_equal((intptr_t)sent, EXCHANGES);
    assert_int_equal(bel_doorbell_count(p.bells[0]), EXCHANGES);
    assert_int_equal(bel_doorbell_count(p.bells[1]), EXCHANGES);
    destroy_pair(&p);
}

// Streams that break in the middle of frames lose no frame and deliver no frame twice.
static void test_breaks(void **state)
{
    bel_fault_set("lane:break");
    pair p = make_pair(*state);
    float content[CAPACITY];
    int taken = 0;
    for (int i = 0; i < EXCHANGES / 4; i++) {
        content[i % CAPACITY] = (float)i;
        bel_frame frame = frame_number(i, &content[i % CAPACITY]), got;
        BEL_ASSERT_OK(bel_lane_send(p.ends[i % 2], &frame));
        if (i % 4 < 3) continue; // four frames are under way, two each way
        for (int k = i - 3; k <= i; k++) {
            int end = 1 - k % 2;
            assert_true(receive_soon(p.ends[end], p.bells[end], &got));
            check_frame(&got, k, (float)k);
            taken++;
        }
    }
    assert_int_equal(taken, EXCHANGES / 4);
    if (!p.ends[0]->ops->shares_memory) {
        assert_true(bel_stream_lane_streams(p.ends[0]) > 10);
    }
    destroy_pair(&p);
    bel_fault_set("");
}

static int run_battery(lane_kind *kind, const char *title)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_order, kind),
        cmocka_unit_test_prestate(test_disturbances, kind),
        cmocka_unit_test_prestate(test_cut, kind),
        cmocka_unit_test_prestate(test_full, kind),
        cmocka_unit_test_prestate(test_doorbell, kind),
        cmocka_unit_test_prestate(test_joined, kind),
        cmocka_unit_test_prestate(test_flush, kind),
        cmocka_unit_test_prestate(test_urgent, kind),
        cmocka_unit_test_prestate(test_wakes_a_waiter, kind),
        cmocka_unit_test_prestate(test_breaks, kind),
    };
    return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

// --- Many at once --------------------------------------------------------------------------------

enum { MANY = 20 };
static atomic_int closing;

// Its host is gone, like all the others': it returns when all are being closed.
static void close_with_others(bel_lane *lane)
{
    int64_t deadline = bel_clock_ns() + 20 * (int64_t)1000000000;
    (void)lane;
    atomic_fetch_add(&closing, 1);
    while (atomic_load(&closing) < MANY && bel_clock_ns() < deadline)
        sched_yield();
}

static void test_closed_side_by_side(void **state)
{
    (void)state;
    static const bel_lane_ops ops = {.close = close_with_others};
    bel_lane ends[MANY], *lanes[MANY + 1] = {NULL};
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < MANY; i++) {
        ends[i].ops = &ops;
        lanes[i] = &ends[i];
    }
    bel_lane_close_all(lanes, MANY + 1);
    assert_int_equal(atomic_load(&closing), MANY);
    assert_true(bel_clock_ns() - begun < 20 * (int64_t)1000000000); // before the deadline
    for (int i = 0; i <= MANY; i++)
        assert_null(lanes[i]);
}

int main(void)
{
    const struct CMUnitTest many[] = {cmocka_unit_test(test_closed_side_by_side)};
    int failed = cmocka_run_group_tests_name("many", many, NULL, NULL);
    failed += run_battery(&kinds[0], "inproc");
    char *folder = bel_test_folder();
    open_hubs(folder);
    failed += run_battery(&kinds[1], "shm");
    close_hubs();
    char *addresses[] = {bel_strf("unix:%s/socket", folder), bel_xstrdup("127.0.0.1:0")};
    for (int i = 0; i < BEL_TEST_CARRIERS; i++) {
        open_endpoints(addresses[i]);
        failed += run_battery(&kinds[2], addresses[i]);
        close_endpoints();
    }
    for (int i = 0; i < 2; i++)
        bel_free(addresses[i]);
    bel_test_remove_folder(folder);
    return failed != 0;
}
