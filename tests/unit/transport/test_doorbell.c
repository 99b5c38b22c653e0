// Doorbells: no thread makes a system call while no thread sleeps. Remote rings count and wake.
// label: threads
#include <sys/resource.h>

#include "base/clock.h"
#include "base/linux_shared.h"
#include "base/thread.h"
#include "support/bel_test.h"
#include "transport/doorbell.h"

static const int64_t second_ns = 1000000000;

// The memory of another process, and the signals that it would send.
typedef struct other {
    _Atomic uint64_t rings;
    _Atomic uint32_t asleep;
    int signals; // number sent
} other;

static bel_doorbell_remote remote_of(other *o)
{
    return (bel_doorbell_remote){.rings = &o->rings, .asleep = &o->asleep};
}

static void ring(other *o, const bel_doorbell *doorbell)
{
    atomic_fetch_add(&o->rings, 1);
    if (atomic_load(&o->asleep) == 0) return;
    bel_linux_event_signal(bel_doorbell_event(doorbell));
    o->signals++;
}

static void test_counts(void **state)
{
    (void)state;
    bel_doorbell *bell = bel_doorbell_create();
    other others[2] = {{.rings = 2}, {.rings = 0}};
    bel_doorbell_remote remotes[2] = {remote_of(&others[0]), remote_of(&others[1])};
    assert_false(bel_doorbell_wait(bell, bel_clock_ns() + 1000));
    bel_doorbell_add(bell, &remotes[0]);
    assert_true(bel_doorbell_wait(bell, 0)); // rings from before it was added
    assert_false(bel_doorbell_wait(bell, 0));
    bel_doorbell_add(bell, &remotes[1]);
    bel_doorbell_ring(bell);
    ring(&others[0], bell);
    ring(&others[1], bell);
    assert_int_equal(bel_doorbell_count(bell), 5);
    assert_true(bel_doorbell_wait(bell, 0)); // one wait takes all
    assert_false(bel_doorbell_wait(bell, 0));
    others[0].rings--; // a false count hides no other's rings
    ring(&others[1], bell);
    assert_true(bel_doorbell_wait(bell, 0));
    others[0].rings++;
    bel_doorbell_remove(bell, &remotes[0]);
    assert_int_equal(bel_doorbell_count(bell), 6);
    others[0].rings++;
    assert_int_equal(bel_doorbell_count(bell), 6);
    assert_int_equal(bel_doorbell_signals(bell), 0); // no thread slept
    bel_doorbell_destroy(bell);
}

typedef struct sleeper {
    bel_doorbell *bell;
    _Atomic int woken;
    int rounds;
} sleeper;

static void *sleep_rounds(void *argument)
{
    sleeper *s = argument;
    for (int i = 0; i < s->rounds; i++) {
        if (!bel_doorbell_wait(s->bell, bel_clock_ns() + 20 * second_ns)) break;
        s->woken++;
    }
    return NULL;
}

static bool reaches(_Atomic int *number, int value)
{
    int64_t deadline = bel_clock_ns() + 20 * second_ns;
    while (*number < value && bel_clock_ns() < deadline)
        continue;
    return *number >= value;
}

// Local and remote rings in turn, each awaited: a missed ring would stop the test.
static void test_wakes(void **state)
{
    (void)state;
    enum { ROUNDS = 1000 };
    sleeper s = {.bell = bel_doorbell_create(), .rounds = ROUNDS};
    other o = {0};
    bel_doorbell_remote remote = remote_of(&o);
    bel_doorbell_add(s.bell, &remote);
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, sleep_rounds, &s));
    bool woke = true;
    for (int i = 0; i < ROUNDS && woke; i++) {
        if (i % 3 == 0) {
            bel_doorbell_ring(s.bell);
        } else {
            ring(&o, s.bell);
        }
        woke = reaches(&s.woken, i + 1);
    }
    pthread_join(thread, NULL);
    assert_true(woke);
    assert_int_equal(bel_doorbell_count(s.bell), ROUNDS);
    assert_true(bel_doorbell_signals(s.bell) <= ROUNDS);
    bel_doorbell_destroy(s.bell);
}

// A remote with rings is added while a thread already sleeps.
static void test_wakes_when_added(void **state)
{
    (void)state;
    sleeper s = {.bell = bel_doorbell_create(), .rounds = 1};
    other early = {0}, late = {.rings = 1};
    bel_doorbell_remote first = remote_of(&early), second = remote_of(&late);
    bel_doorbell_add(s.bell, &first);
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, sleep_rounds, &s));
    int64_t deadline = bel_clock_ns() + 20 * second_ns;
    while (atomic_load(&early.asleep) == 0 && bel_clock_ns() < deadline)
        continue;
    bel_doorbell_add(s.bell, &second);
    bool woke = reaches(&s.woken, 1);
    pthread_join(thread, NULL);
    assert_true(woke);
    assert_int_equal(bel_doorbell_signals(s.bell), 1);
    bel_doorbell_destroy(s.bell);
}

// Without descriptors the doorbell is slower, but correct.
static void test_no_descriptors(void **state)
{
    (void)state;
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    sleeper s = {.bell = bel_doorbell_create(), .rounds = 3};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(bel_doorbell_event(s.bell), -1);
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, sleep_rounds, &s));
    bool woke = true;
    for (int i = 0; i < s.rounds && woke; i++) {
        bel_doorbell_ring(s.bell);
        woke = reaches(&s.woken, i + 1);
    }
    pthread_join(thread, NULL);
    assert_true(woke);
    bel_doorbell_destroy(s.bell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_wakes_when_added),
        cmocka_unit_test(test_no_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
