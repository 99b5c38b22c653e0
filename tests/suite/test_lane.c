// One battery over every kind of lane: order, disturbances, cuts, full lanes, doorbells.
// label: threads
#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"
#include "support/bel_test.h"
#include "transport/inproc/inproc.h"

enum { CAPACITY = 8 };

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

static lane_kind kinds[] = {{"inproc", create_inproc}};

typedef struct pair {
    bel_doorbell *bells[2];
    bel_lane *ends[2];
} pair;

static pair make_pair(const lane_kind *kind)
{
    pair p = {.bells = {bel_doorbell_create(), bel_doorbell_create()}};
    kind->create(p.bells[0], p.bells[1], &p.ends[0], &p.ends[1]);
    assert_string_equal(p.ends[0]->ops->name, kind->name);
    return p;
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
    return (bel_frame){.kind = BEL_FRAME_REPORT,
                       .generation = 3,
                       .incarnation = 4,
                       .sender = 5,
                       .step = number,
                       .decision = 6,
                       .chunk = number + 1,
                       .node = number + 2,
                       .payload = payload,
                       .payload_bytes = sizeof *payload};
}

static void check_frame(const bel_frame *got, int number, float content)
{
    bel_frame expected = frame_number(number, NULL);
    assert_int_equal(got->kind, expected.kind);
    assert_int_equal(got->generation, expected.generation);
    assert_int_equal(got->incarnation, expected.incarnation);
    assert_int_equal(got->sender, expected.sender);
    assert_int_equal(got->step, expected.step);
    assert_int_equal(got->decision, expected.decision);
    assert_int_equal(got->chunk, expected.chunk);
    assert_int_equal(got->node, expected.node);
    assert_int_equal(got->payload_bytes, sizeof content);
    assert_memory_equal(got->payload, &content, sizeof content);
}

// Frames arrive whole and in order, both ways at once, over and over the same slots.
static void test_order(void **state)
{
    pair p = make_pair(*state);
    float content[2][CAPACITY];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CAPACITY - round; i++) {
            for (int end = 0; end < 2; end++) {
                content[end][i] = (float)(100 * end + i);
                bel_frame frame = frame_number(i, &content[end][i]);
                BEL_ASSERT_OK(bel_lane_send(p.ends[end], &frame));
            }
        }
        bel_frame got;
        for (int i = 0; i < CAPACITY - round; i++) {
            for (int end = 0; end < 2; end++) {
                assert_true(bel_lane_receive(p.ends[1 - end], &got));
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

// Sends CAPACITY frames under a fault and polls until all have come, and a while longer.
static arrivals disturbed(const lane_kind *kind, const char *fault)
{
    bel_fault_set(fault);
    pair p = make_pair(kind);
    float content = 1;
    for (int i = 0; i < CAPACITY; i++) {
        bel_frame frame = frame_number(i, &content);
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
    }
    arrivals seen = {.in_order = true};
    int distinct = 0, newest = -1;
    for (int poll = 0; poll < 2000; poll++) {
        bel_frame got;
        if (!bel_lane_receive(p.ends[1], &got)) {
            if (distinct < CAPACITY) seen.idle++;
            continue;
        }
        int number = (int)got.step;
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
    uint64_t rings = bel_doorbell_count(p.bells[1]);
    close_end(&p, 0);
    assert_true(bel_doorbell_count(p.bells[1]) > rings); // a waiting receiver learns of it
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[1], &frame), BEL_UNAVAILABLE, "cut");
    assert_false(bel_lane_is_cut(p.ends[1])); // there is still something to take
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
    uint64_t rings = bel_doorbell_count(p.bells[1]);
    BEL_ASSERT_FAILS(bel_lane_send(p.ends[0], &frame), BEL_RESOURCE_EXHAUSTED, "full");
    assert_int_equal(bel_doorbell_count(p.bells[1]), rings);
    assert_true(bel_lane_receive(p.ends[1], &got));
    BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame)); // room again
    destroy_pair(&p);
}

static void test_doorbell(void **state)
{
    pair p = make_pair(*state);
    float content = 4;
    bel_frame frame = frame_number(1, &content);
    for (int i = 1; i <= 5; i++) {
        BEL_ASSERT_OK(bel_lane_send(p.ends[0], &frame));
        assert_int_equal(bel_doorbell_count(p.bells[1]), i);
    }
    assert_int_equal(bel_doorbell_count(p.bells[0]), 0); // the sender's own bell is silent
    assert_true(bel_doorbell_wait(p.bells[1], 0));       // one wait takes all five
    assert_false(bel_doorbell_wait(p.bells[1], bel_clock_ns() + 1000000));
    destroy_pair(&p);
}

enum { EXCHANGES = 2000 };

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
            bel_status_ignore(status); // the test's own thread sees the missing answer
        } else if (!bel_doorbell_wait(p->bells[1], bel_clock_ns() + 10000000000)) {
            break;
        }
    }
    return (void *)sent;
}

// Two threads that sleep on their doorbells: no ring may be missed, or the exchange stands still.
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
        received += got.step == i;
    }
    void *sent;
    pthread_join(thread, &sent);
    assert_int_equal(received, EXCHANGES);
    assert_int_equal((intptr_t)sent, EXCHANGES);
    assert_int_equal(bel_doorbell_count(p.bells[0]), EXCHANGES);
    assert_int_equal(bel_doorbell_count(p.bells[1]), EXCHANGES);
    destroy_pair(&p);
}

int main(void)
{
    int failed = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_order, &kinds[k]),
            cmocka_unit_test_prestate(test_disturbances, &kinds[k]),
            cmocka_unit_test_prestate(test_cut, &kinds[k]),
            cmocka_unit_test_prestate(test_full, &kinds[k]),
            cmocka_unit_test_prestate(test_doorbell, &kinds[k]),
            cmocka_unit_test_prestate(test_wakes_a_waiter, &kinds[k]),
        };
        failed += cmocka_run_group_tests_name(kinds[k].name, tests, NULL, NULL);
    }
    return failed != 0;
}
