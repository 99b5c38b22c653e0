// Ranks of several hosts, simulated by groups on one host. The sums are the same in every mode and
// deal, bit for bit where the order is fixed. Ranks name each other when they differ or die.
// label: native
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/number.h"
#include "support/bel_test.h"
#include "support/ranks.h"

static void set_options(const char *words)
{
    assert_int_equal(setenv("BELFRY_DDL_OPTIONS", words, 1), 0);
}

static int do_everything(int rank, int size)
{
    return bel_sum_mixed(rank, size) || bel_spread_values(rank, size);
}

typedef struct deal {
    int size, local_size;
    const char *options;
} deal;

// Sums that are exact in any order.
static void sums_are_right_in_every_mode(void **state)
{
    (void)state;
    static const deal deals[] = {
        {2, 1, ""},
        {4, 2, ""},
        {3, 1, ""},
        {6, 3, ""}, // order fixed: the hosts hold no complete subtrees
        {6, 3, "order=fast"},
        {6, 2, "mode=s:2x3"},
        {8, 2, "mode=s:2x2x2"},
        {4, 4, "mode=s:1x4"}, // only connections, on one host
        {4, 4, "mode=o"},
        {4, 2, "mode=o"},
        {5, 5, "mode=s:1x5"},
        {4, 1, "mode=r order=fast"},
        {6, 2, "mode=r:2x3 order=fast"},
        {5, 1, "mode=r order=fast"},
        {6, 1, "mode=r:1x3x2 order=fast"},
        {8, 2, "mode=s:1x2x4"},
    };
    for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++) {
        set_options(deals[i].options);
        bel_run_ranks(do_everything, deals[i].size, deals[i].local_size);
    }
    set_options("");
    bel_run_ranks(bel_sum_sizes, 4, 2);
    bel_run_ranks(bel_sum_sizes, 3, 1);
}

// --- Bits ----------------------------------------------------------------------------------------

static float noise(int rank, int i)
{
    uint64_t numbers[2] = {(uint64_t)rank, (uint64_t)i};
    uint64_t bits = bel_hash64(numbers, sizeof numbers);
    return (float)(int64_t)bits * 0x1p-63F * (float)(1 << bits % 12);
}

// Computes sums whose bits depend on the order. Rank 0 writes their hash to the test's pipe.
static int write_bits(int rank, int size)
{
    enum { N = 700000 };
    static float data[N];
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    uint64_t digest = 0;
    for (int n = 7; n <= N; n *= 10) {
        for (int i = 0; i < n; i++)
            data[i] = noise(rank, i);
        bel_tensor t = bel_vector(BEL_DTYPE_F32, n, data);
        NEED_OK(bel_ddl_all_reduce_n(ddl, n == 70 ? BEL_DDL_AVG : BEL_DDL_SUM, &t, 1));
        digest = bel_hash64_more(digest, data, (size_t)n * sizeof *data);
    }
    NEED_OK(bel_ddl_finalize(ddl));
    int file = (int)strtol(getenv("TEST_PIPE"), NULL, 10);
    NEED(write(file, &digest, sizeof digest) == sizeof digest); // the digest of every rank
    return 0;
}

// The digest that all ranks share.
static uint64_t bits_of(int size, int local_size, const char *options)
{
    int ends[2];
    char text[16];
    uint64_t digest = 0, other;
    assert_int_equal(pipe(ends), 0);
    bel_snprintf(text, sizeof text, "%d", ends[1]);
    setenv("TEST_PIPE", text, 1);
    set_options(options);
    bel_run_ranks(write_bits, size, local_size);
    for (int r = 0; r < size; r++) {
        assert_int_equal(read(ends[0], &other, sizeof other), sizeof other);
        if (r > 0) assert_true(other == digest);
        digest = other;
    }
    close(ends[0]);
    close(ends[1]);
    return digest;
}

static void bits_depend_on_the_number_of_ranks_alone(void **state)
{
    (void)state;
    uint64_t six = bits_of(6, 6, ""), eight = bits_of(8, 8, "");
    assert_true(bits_of(6, 3, "") == six);
    assert_true(bits_of(6, 2, "") == six);
    assert_true(bits_of(6, 1, "") == six);
    assert_true(bits_of(6, 6, "mode=o") == six);
    assert_true(bits_of(6, 6, "mode=p") == six);
    assert_true(bits_of(6, 2, "mode=p") == six);
    assert_true(bits_of(8, 4, "") == eight);
    assert_true(bits_of(8, 2, "mode=s:2x2x2") == eight);
    assert_true(bits_of(8, 1, "mode=o") == eight);
    assert_true(bits_of(8, 8, "mode=s:4x2") == eight);
    // Other orders give other bits; otherwise this test could not fail.
    assert_false(bits_of(8, 2, "mode=r order=fast") == eight);
    setenv("BELFRY_ENABLE_FAULTS", "1", 1);
    setenv("BELFRY_FAULT", "sum_sequential", 1);
    assert_false(bits_of(8, 8, "") == eight);
    unsetenv("BELFRY_FAULT");
    unsetenv("BELFRY_ENABLE_FAULTS");
}

// --- Refusals ------------------------------------------------------------------------------------

static const char *expected_part;
static bel_code expected_code;

static int fail_to_begin(int rank, int size)
{
    bel_ddl *ddl;
    (void)rank, (void)size;
    NEED_FAILS(bel_ddl_init(NULL, &ddl), expected_code, expected_part);
    return 0;
}

static void refuse(int size, int local_size, const char *options, bel_code code, const char *part)
{
    expected_code = code;
    expected_part = part;
    set_options(options);
    bel_run_ranks(fail_to_begin, size, local_size);
}

static void modes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    refuse(2, 2, "mode=x", BEL_INVALID_ARGUMENT, "mode \"x\": expected s, o, r or p, with at");
    refuse(2, 2, "mode=s:2x1x1x1", BEL_INVALID_ARGUMENT, "mode \"s:2x1x1x1\": expected");
    refuse(2, 2, "mode=s:0x2", BEL_INVALID_ARGUMENT, "mode \"s:0x2\": expected");
    refuse(2, 2, "mode=m:2", BEL_INVALID_ARGUMENT, "mode \"m:2\": expected");
    refuse(6, 3, "mode=s:2x2", BEL_INVALID_ARGUMENT,
           "mode s:2x2x1: expected dimensions whose product is 6, the number of ranks, got 4");
    refuse(4, 2, "mode=s:4", BEL_FAILED_PRECONDITION, "expected a first dimension that divides 2");
    refuse(6, 3, "mode=s:3x2", BEL_FAILED_PRECONDITION,
           "mode s:3x2x1 does not add along the tree over ranks");
    refuse(2, 1, "mode=r", BEL_FAILED_PRECONDITION,
           "mode r:1x2x1 adds in a different order: expected order fast");
    refuse(2, 2, "mode=m order=fast", BEL_FAILED_PRECONDITION,
           "mode m: expected ranks that mpirun");
    refuse(2, 2, "order=slow", BEL_INVALID_ARGUMENT,
           "environment variable BELFRY_DDL_OPTIONS: expected words such as mode=s:4x2, "
           "order=fixed or fast, check=1e-5, timeout=60, device=0, pci=true, got order=slow");
    refuse(2, 2, "check=2", BEL_INVALID_ARGUMENT, "check: expected a tolerance from 0 to 1, got 2");
    refuse(2, 2, "timeout", BEL_INVALID_ARGUMENT, "got timeout");
    refuse(2, 2, "timeout=0", BEL_INVALID_ARGUMENT, "timeout_secs: expected seconds above 0");
    set_options("");
}

// --- Ranks that are missing, differ, or die ------------------------------------------------------

static int begin_with_options(int rank, int size)
{
    (void)size;
    if (rank == 1) setenv("BELFRY_DDL_OPTIONS", "check=0.5", 1);
    return fail_to_begin(rank, size);
}

static int begin_with_secrets(int rank, int size)
{
    bel_ddl *ddl;
    (void)size;
    setenv("BELFRY_SECRET", rank == 1 ? "of-somebody-else" : "of-this-very-job", 1);
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.timeout_secs = 0.7;
    NEED_FAILS(bel_ddl_init(&options, &ddl),
               rank == 1 ? BEL_UNAUTHENTICATED : BEL_DEADLINE_EXCEEDED,
               rank == 1 ? "rank 0 has another secret" : "rank 1 of 3 has not come within 0.7 s");
    return 0;
}

// Rank 1 belongs to another job, at the same address and with the same secret.
static int begin_with_jobs(int rank, int size)
{
    bel_ddl *ddl;
    (void)size;
    if (rank == 1) setenv("BELFRY_JOB", "yesterday's", 1);
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.timeout_secs = 0.7;
    NEED_FAILS(bel_ddl_init(&options, &ddl),
               rank == 1 ? BEL_FAILED_PRECONDITION : BEL_DEADLINE_EXCEEDED,
               rank == 1 ? "rank 0 is of another job" : "rank 1 of 2 has not come within 0.7 s");
    return 0;
}

static int come_late(int rank, int size)
{
    bel_ddl *ddl;
    (void)size;
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.timeout_secs = 0.5;
    if (rank != 2)
        NEED_FAILS(bel_ddl_init(&options, &ddl), BEL_DEADLINE_EXCEEDED,
                   "rank 2 of 4 has not come within 0.5 s");
    return 0;
}

static int come_without_address(int rank, int size)
{
    unsetenv("BELFRY_ADDRESS");
    return fail_to_begin(rank, size);
}

static void who_does_not_fit_is_named(void **state)
{
    (void)state;
    expected_code = BEL_FAILED_PRECONDITION;
    expected_part =
        "rank 0 has mode s, order fixed, check 0, and rank 1 mode s, order fixed, check "
        "0.5";
    bel_run_ranks(begin_with_options, 2, 1);
    expected_part = "check 0.5";
    bel_run_ranks(begin_with_options, 2, 2);
    bel_run_ranks(begin_with_secrets, 3, 1);
    bel_run_ranks(begin_with_jobs, 2, 1);
    bel_run_ranks(come_late, 4, 2);
    expected_code = BEL_INVALID_ARGUMENT;
    expected_part = "expected BELFRY_ADDRESS=HOST:PORT in the environment of all ranks";
    bel_run_ranks(come_without_address, 2, 1);
}

static int call_otherwise(int rank, int size)
{
    static float data[100000];
    bel_ddl *ddl = bel_begin_rank();
    bel_tensor t = bel_vector(BEL_DTYPE_F32, rank == 1 ? 99999 : 100000, data);
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_FAILED_PRECONDITION,
               "call 2 differs: rank ");
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_FAILED_PRECONDITION, "f32 [99999]");
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_FAILED_PRECONDITION, "f32 [100000]");
    return size == 0;
}

// Rank 2 stays away. Ranks that wait for it only through other ranks also learn its name.
static int stay_away(int rank, int size)
{
    static float data[1000];
    bel_ddl *ddl;
    bel_tensor t = bel_vector(BEL_DTYPE_F32, 1000, data);
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.timeout_secs = 2;
    (void)size;
    NEED_OK(bel_ddl_init(&options, &ddl));
    if (rank == 2) pause(); // until killed
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_DEADLINE_EXCEEDED,
               "rank 2 of 4 has not come to all_reduce_n (sum) within 2 s");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void miss_rank_2(bel_rank_body body, int local_size)
{
    const char *job = bel_new_job();
    pid_t children[4];
    for (int r = 0; r < 4; r++)
        children[r] = bel_start_rank(body, r, 4, local_size, job);
    for (int r = 0; r < 4; r++)
        if (r != 2) assert_int_equal(bel_exit_of(children[r]), 0);
    assert_int_equal(kill(children[2], SIGKILL), 0);
    assert_int_equal(bel_exit_of(children[2]), 128 + SIGKILL);
}

static void calls_that_differ_are_told_to_all(void **state)
{
    (void)state;
    bel_run_ranks(call_otherwise, 2, 1);
    bel_run_ranks(call_otherwise, 3, 1);
    bel_run_ranks(call_otherwise, 4, 2);
    set_options("mode=r order=fast");
    bel_run_ranks(call_otherwise, 4, 1);
    set_options("");
}

// Rank 2 stops in the middle of its calls, and all others fail soon. So does the other rank of its
// group, which may wait for it in another place.
static int be_left_alone(int rank, int size)
{
    enum { N = 300000 };
    static float data[N];
    bel_ddl *ddl;
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    bel_tensor t = bel_vector(BEL_DTYPE_F32, N, data);
    options.timeout_secs = 1;
    NEED_OK(bel_ddl_init(&options, &ddl));
    for (int i = 0;; i++) {
        if (rank == 2 && i == 30) raise(SIGSTOP);
        bel_status *status = bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1);
        if (status == NULL) continue;
        NEED_FAILS(status, BEL_DEADLINE_EXCEEDED, "within 1 s");
        bel_status_ignore(bel_ddl_finalize(ddl));
        return size == 0;
    }
}

static void nobody_waits_longer_for_a_stopped_rank(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        miss_rank_2(be_left_alone, 2);
}

static void a_rank_that_stays_away_is_named(void **state)
{
    (void)state;
    miss_rank_2(stay_away, 2);
    miss_rank_2(stay_away, 1);
    set_options("mode=r order=fast");
    miss_rank_2(stay_away, 1);
    set_options("");
}

// Rank 1 dies after the ranks have met and before its group shares memory, where the group waits
// for it.
static int lose_rank_1_early(int rank, int size)
{
    bel_ddl *ddl;
    (void)size;
    if (rank == 1) setenv("BELFRY_FAULT", "crash:ddl_met", 1);
    if (rank == 1) setenv("BELFRY_ENABLE_FAULTS", "1", 1);
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_ABORTED, "rank 1 of 4 has exited");
    return 0;
}

// Rank 3 dies in the middle of its calls.
static int lose_rank_3(int rank, int size)
{
    enum { N = 300000 };
    static float data[N];
    bel_ddl *ddl = bel_begin_rank();
    bel_tensor t = bel_vector(BEL_DTYPE_F32, N, data);
    char part[64];
    bel_snprintf(part, sizeof part, "rank 3 of %d has exited", size);
    for (int i = 0;; i++) {
        if (rank == 3 && i == 20) raise(SIGKILL);
        bel_status *status = bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1);
        if (status == NULL) continue;
        NEED_FAILS(status, BEL_ABORTED, part);
        break;
    }
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_ABORTED, part);
    return 0;
}

static void lose_one(bel_rank_body body, int lost, int size, int local_size)
{
    const char *job = bel_new_job();
    pid_t children[8];
    for (int r = 0; r < size; r++)
        children[r] = bel_start_rank(body, r, size, local_size, job);
    for (int r = 0; r < size; r++)
        assert_int_equal(bel_exit_of(children[r]), r == lost ? 128 + SIGKILL : 0);
}

static void lose(int size, int local_size)
{
    lose_one(lose_rank_3, 3, size, local_size);
}

static void a_rank_that_dies_is_named_on_all_hosts(void **state)
{
    (void)state;
    lose_one(lose_rank_1_early, 1, 4, 2);
    lose(4, 2);
    lose(4, 1);
    lose(8, 2);
    set_options("mode=r order=fast");
    lose(6, 2);
    set_options("mode=s:2x2x2");
    lose(8, 2);
    set_options("");
}

// --- Strangers -----------------------------------------------------------------------------------

// Connections that send nothing, or nonsense, while the ranks find each other.
static void strangers_hold_nobody_up(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    pid_t children[3];
    children[0] = bel_start_rank(bel_spread_values, 0, 3, 1, job);
    for (int i = 0; i < 20; i++) {
        int file = bel_connect_to_job();
        char noise_bytes[700] = {1, 2, 3};
        if (i % 2 == 0) assert_true(send(file, noise_bytes, sizeof noise_bytes, MSG_NOSIGNAL) > 0);
    }
    children[1] = bel_start_rank(bel_spread_values, 1, 3, 1, job);
    children[2] = bel_start_rank(bel_spread_values, 2, 3, 1, job);
    for (int r = 0; r < 3; r++)
        assert_int_equal(bel_exit_of(children[r]), 0);
}

// --- Checked sums --------------------------------------------------------------------------------

static int check_sums(int rank, int size)
{
    enum { N = 50001 };
    static float data[N], small[3];
    static int32_t whole[5];
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    for (int i = 0; i < N; i++)
        data[i] = noise(rank, i);
    small[1] = rank == 0 ? 1e30F : -1e30F; // they cancel
    whole[0] = INT32_MAX;                  // it wraps around
    bel_tensor list[3] = {bel_vector(BEL_DTYPE_F32, 3, small), bel_vector(BEL_DTYPE_F32, N, data),
                          bel_vector(BEL_DTYPE_I32, 5, whole)};
    NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, 3));
    NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, list, 2));
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

// Values outside the range of f32: half of the smallest number, and more than the largest.
static int check_ends_of_the_range(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    float small = rank == 0 ? 0x1p-149F : 0, large = 3e38F, none = rank == 0 ? NAN : 1;
    bel_tensor list[3] = {{BEL_DTYPE_F32, bel_shape_scalar(), &small},
                          {BEL_DTYPE_F32, bel_shape_scalar(), &large},
                          {BEL_DTYPE_F32, bel_shape_scalar(), &none}};
    NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, list, 1));
    NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, 3));
    NEED(isinf(large) && isnan(none) && small == 0 && size == 2);
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

// A tolerance too small for f32.
static int check_too_closely(int rank, int size)
{
    static float data[20000], zeros[10];
    bel_ddl *ddl = bel_begin_rank();
    for (int i = 0; i < 20000; i++)
        data[i] = i == 17000 ? noise(rank, 1) : 0;
    (void)size;
    bel_tensor list[2] = {bel_vector(BEL_DTYPE_F32, 10, zeros),
                          bel_vector(BEL_DTYPE_F32, 20000, data)};
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, 2), BEL_DATA_LOSS,
               "all_reduce_n (sum), tensor 1 of 2, element 17000: expected ");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void sums_are_checked(void **state)
{
    (void)state;
    set_options("check=1e-6");
    bel_run_ranks(check_sums, 3, 3);
    bel_run_ranks(check_sums, 4, 2);
    bel_run_ranks(check_ends_of_the_range, 2, 2);
    set_options("check=1e-6 mode=r order=fast");
    bel_run_ranks(check_sums, 3, 1);
    set_options("check=1e-12");
    bel_run_ranks(check_too_closely, 3, 3);
    bel_run_ranks(check_too_closely, 4, 2);
    set_options("");
}

int main(void)
{
    char *cache = bel_test_folder(); // used by mode p
    setenv("XDG_CACHE_HOME", cache, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right_in_every_mode),
        cmocka_unit_test(bits_depend_on_the_number_of_ranks_alone),
        cmocka_unit_test(modes_that_cannot_be_are_refused),
        cmocka_unit_test(who_does_not_fit_is_named),
        cmocka_unit_test(calls_that_differ_are_told_to_all),
        cmocka_unit_test(a_rank_that_stays_away_is_named),
        cmocka_unit_test(nobody_waits_longer_for_a_stopped_rank),
        cmocka_unit_test(a_rank_that_dies_is_named_on_all_hosts),
        cmocka_unit_test(strangers_hold_nobody_up),
        cmocka_unit_test(sums_are_checked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bel_test_remove_folder(cache);
    return failed;
}
