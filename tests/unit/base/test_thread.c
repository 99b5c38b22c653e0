// Thread team: every tile of every job runs exactly once, however short the jobs are.
// label: threads
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "support/bel_test.h"

enum { MAX_TILES = 1000 };

typedef struct stats {
    atomic_int runs[MAX_TILES];
    int plain[MAX_TILES]; // the tile's thread writes it, the test reads it after the job
} stats;

static void count_tile(void *argument, int64_t tile)
{
    stats *counts = argument;
    atomic_fetch_add_explicit(&counts->runs[tile], 1, memory_order_relaxed);
    counts->plain[tile]++;
}

static void check_once(bel_team *team, int64_t tile_count)
{
    static stats counts;
    memset(&counts, 0, sizeof counts);
    bel_team_run(team, count_tile, &counts, tile_count);
    for (int64_t tile = 0; tile < MAX_TILES; tile++) {
        int expected = tile < tile_count ? 1 : 0;
        assert_int_equal(atomic_load(&counts.runs[tile]), expected);
        assert_int_equal(counts.plain[tile], expected);
    }
}

static void test_every_tile_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(threads, &team));
        assert_int_equal(bel_team_size(team), threads);
        static const int64_t tile_counts[] = {0, 1, 2, 3, 7, 64, MAX_TILES};
        for (size_t i = 0; i < sizeof tile_counts / sizeof tile_counts[0]; i++)
            check_once(team, tile_counts[i]);
        bel_team_destroy(team);
    }
}

// Jobs follow each other so closely that a helper may wake for a job that already finished.
static void test_many_short_jobs(void **state)
{
    (void)state;
    enum { JOBS = 5000 };
    static stats counts;
    memset(&counts, 0, sizeof counts);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(3, &team));
    int expected[8] = {0};
    for (int job = 0; job < JOBS; job++) {
        int tile_count = 1 + job % 8;
        bel_team_run(team, count_tile, &counts, tile_count);
        for (int tile = 0; tile < tile_count; tile++)
            expected[tile]++;
    }
    for (int tile = 0; tile < 8; tile++)
        assert_int_equal(counts.plain[tile], expected[tile]);
    bel_team_destroy(team);
}

static void test_create_and_destroy(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) { // helpers may still be starting
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(3, &team));
        if (i % 2 == 0) check_once(team, 5);
        bel_team_destroy(team);
    }
    bel_team_destroy(NULL);
    assert_true(bel_available_cores() >= 1);
}

static void test_deadline(void **state)
{
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    bel_cond_init(&cond);
    pthread_mutex_lock(&mutex);
    int64_t deadline = bel_clock_ns() + 2000000;
    while (bel_cond_wait_until(&cond, &mutex, deadline)) { // no thread signals
    }
    assert_true(bel_clock_ns() >= deadline);
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&cond);
}

// Runs in a child process that may start no threads. The limit does not apply to root.
static void test_no_room(void **state)
{
    (void)state;
    BEL_ASSERT_OK(bel_thread_check_room(3));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {1, 1};
        bool limited = setrlimit(RLIMIT_NPROC, &none) == 0 && (getuid() != 0 || setuid(65534) == 0);
        bel_status *status = limited ? bel_thread_check_room(3) : NULL;
        bool named = status != NULL && strstr(bel_status_message(status), "`ulimit -u` allows 1");
        _exit(named ? 0 : 1);
    }
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFEXITED(end));
    assert_int_equal(WEXITSTATUS(end), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tile_once),
        cmocka_unit_test(test_many_short_jobs),
        cmocka_unit_test(test_create_and_destroy),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
