// DDL calls among processes. Sums, types, and sizes that fill a slot, cut it, or leave room; calls
// that differ between ranks; ranks that die, begin twice or never begin. label: native
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/number.h"
#include "belfry/ddl.h"
#include "ddl/region.h"
#include "support/bel_test.h"
#include "support/ranks.h"

// --- Sums ----------------------------------------------------------------------------------------

static const int rank_counts[] = {1, 2, 3, 5, 8};
enum { RANK_COUNTS = sizeof rank_counts / sizeof rank_counts[0] };

static void sums_of_all_sizes_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < RANK_COUNTS; i++)
        bel_run_ranks(bel_sum_sizes, rank_counts[i], rank_counts[i]);
}

static void tensors_of_mixed_sizes_and_types_go_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < RANK_COUNTS; i++)
        bel_run_ranks(bel_sum_mixed, rank_counts[i], rank_counts[i]);
}

// Sums along the tree over ranks: (0 + 1) + (2 + 3), then 4.
static int sum_by_tree(int rank, int size)
{
    static const float values[5] = {1e8F, 3.25F, -1e8F, 1.5F, 0.5F};
    float pair = values[0] + values[1], other = values[2] + values[3];
    float tree = (pair + other) + values[4];
    NEED(tree != ((values[0] + values[1] + values[2]) + values[3] + values[4]) || size == 0);
    bel_ddl *ddl = bel_begin_rank();
    static float data[100000];
    for (int n = 1; n <= 100000; n *= 10) {
        for (int i = 0; i < n; i++)
            data[i] = values[rank];
        bel_tensor t = bel_vector(BEL_DTYPE_F32, n, data);
        NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1));
        for (int i = 0; i < n; i++)
            NEED(memcmp(&data[i], &tree, sizeof tree) == 0);
    }
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static void sums_follow_the_tree(void **state)
{
    (void)state;
    bel_run_ranks(sum_by_tree, 5, 5);
}

// --- Shared memory -------------------------------------------------------------------------------

// Reduces tensors in two shared memories and outside them in one call, repeatedly. No rank reads a
// tensor that another already writes.
static int sum_in_place(int rank, int size)
{
    enum { N = 150000 };
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    void *large, *small;
    NEED_OK(bel_ddl_alloc(ddl, (size_t)N * 12, &large));
    NEED_OK(bel_ddl_alloc(ddl, 1000, &small));
    for (size_t i = 0; i < (size_t)N * 12; i++)
        NEED(((char *)large)[i] == 0);
    static int32_t own[40000];
    bel_tensor list[5] = {bel_vector(BEL_DTYPE_F64, N, large),
                          bel_vector(BEL_DTYPE_I32, 40000, own),
                          bel_vector(BEL_DTYPE_F32, 250, small),
                          bel_vector(BEL_DTYPE_F32, 7, (char *)large + (size_t)N * 8),
                          bel_vector(BEL_DTYPE_F32, N - 7, (char *)large + (size_t)N * 8 + 28)};
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 5; i++)
            bel_fill_tensor(&list[i], rank + step);
        int count = step % 3 == 0 ? 5 : step % 5 + 1;
        NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, count));
        for (int i = 0; i < count; i++) {
            int64_t n = bel_shape_elements(&list[i].shape);
            for (int64_t k = 0; k < n; k++) {
                int64_t sum = 0;
                for (int r = 0; r < size; r++)
                    sum += bel_rank_number(r + step, k + n);
                NEED(bel_tensor_element(&list[i], k) == (double)sum);
            }
        }
    }
    for (int i = 0; i < 5; i++)
        bel_fill_tensor(&list[i], rank);
    NEED_OK(bel_ddl_bcast(ddl, list, 5));
    for (int i = 0; i < 5; i++) {
        int64_t n = bel_shape_elements(&list[i].shape);
        for (int64_t k = 0; k < n; k++)
            NEED(bel_tensor_element(&list[i], k) == (double)bel_rank_number(0, k + n));
    }
    bel_ddl_free(ddl, small);
    bel_ddl_free(ddl, NULL);
    NEED_OK(bel_ddl_alloc(ddl, 100, &small));
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static int tensors_elsewhere(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    void *memory;
    NEED_OK(bel_ddl_alloc(ddl, 100000, &memory));
    bel_tensor t = bel_vector(BEL_DTYPE_F32, 10000, (char *)memory + (rank == 1 ? 64 : 0));
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_FAILED_PRECONDITION,
               "the first f32 [10000] in shared memory; some have other types, shapes or places");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int tensors_that_leave(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    void *memory;
    NEED_OK(bel_ddl_alloc(ddl, 4000, &memory));
    bel_tensor t = bel_vector(BEL_DTYPE_F32, 1001, memory);
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_INVALID_ARGUMENT,
               "tensor 0 of 1: expected one that ends within its memory of bel_ddl_alloc");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return rank < 0;
}

static int ask_for_other_sizes(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    void *memory;
    NEED_FAILS(bel_ddl_alloc(ddl, 1000 + (size_t)(rank == 1), &memory), BEL_FAILED_PRECONDITION,
               "rank 0 calls alloc of 1000 bytes, rank 1 alloc of 1001 bytes");
    NEED(memory == NULL);
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int ask_for_too_much(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl = bel_begin_rank();
    void *memory;
    NEED_FAILS(bel_ddl_alloc(ddl, (size_t)1 << 50, &memory), BEL_RESOURCE_EXHAUSTED,
               "no shared memory of 1125899906842624 bytes");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void tensors_are_added_where_they_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < RANK_COUNTS; i++)
        bel_run_ranks(sum_in_place, rank_counts[i], rank_counts[i]);
    bel_run_ranks(tensors_elsewhere, 2, 2);
    bel_run_ranks(tensors_that_leave, 2, 2);
    bel_run_ranks(ask_for_other_sizes, 2, 2);
    bel_run_ranks(ask_for_too_much, 2, 2);
}

// --- Other calls ---------------------------------------------------------------------------------

static void rank_0_gives_its_values(void **state)
{
    (void)state;
    bel_run_ranks(bel_spread_values, 1, 1);
    bel_run_ranks(bel_spread_values, 2, 2);
    bel_run_ranks(bel_spread_values, 4, 4);
}

static int spread_from_each(int rank, int size)
{
    enum { N = 300000 };
    static int32_t data[N];
    bel_ddl *ddl = bel_begin_rank();
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < N; i++)
            data[i] = rank == root ? i * 3 + root : -1;
        bel_tensor t = bel_vector(BEL_DTYPE_I32, N, data);
        NEED_OK(bel_ddl_bcast_from(ddl, root, &t, 1));
        for (int i = 0; i < N; i++)
            NEED(data[i] == i * 3 + root);
    }
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static int spread_from_nobody(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    NEED_FAILS(bel_ddl_bcast_from(ddl, size, NULL, 0), BEL_INVALID_ARGUMENT,
               "bcast: expected a root from 0 to 2, got 3");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return rank < 0;
}

static void any_rank_gives_its_values(void **state)
{
    (void)state;
    bel_run_ranks(spread_from_nobody, 3, 3);
    bel_run_ranks(spread_from_each, 3, 3);
    bel_run_ranks(spread_from_each, 4, 2);
    bel_run_ranks(spread_from_each, 6, 1);
    setenv("BELFRY_DDL_OPTIONS", "mode=s:2x2x2", 1);
    bel_run_ranks(spread_from_each, 8, 2);
    unsetenv("BELFRY_DDL_OPTIONS");
}

static int give_up(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    (void)size;
    if (rank == 1) {
        bel_ddl_abort(ddl, "no data");
        return 0;
    }
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_ABORTED, "has given up: no data");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void a_rank_may_give_up(void **state)
{
    (void)state;
    bel_run_ranks(give_up, 3, 3);
    bel_run_ranks(give_up, 4, 2);
}

// Thousands of calls of all kinds and sizes in one order. No rank overwrites data that another
// still reads.
static int call_at_random(int rank, int size)
{
    enum { MOST = 150000 };
    bel_ddl *ddl = bel_begin_rank();
    static float data[MOST];
    uint64_t random = 88172645463325252u;
    for (int step = 0; step < 1500; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int64_t n = (int64_t)(random >> 8) % (step % 50 == 0 ? MOST : 3000);
        bel_tensor t = bel_vector(BEL_DTYPE_F32, n, data);
        bool reduces = random % 3 != 0;
        for (int64_t i = 0; i < n; i++)
            data[i] = (float)((i + step) % 1000 + rank);
        if (reduces) {
            NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1));
        } else {
            NEED_OK(bel_ddl_bcast(ddl, &t, 1));
        }
        int ranks = reduces ? size : 1, numbers = reduces ? size * (size - 1) / 2 : 0;
        for (int64_t i = 0; i < n; i++)
            NEED(data[i] == (float)(ranks * ((i + step) % 1000) + numbers));
    }
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static void calls_follow_each_other(void **state)
{
    (void)state;
    bel_run_ranks(call_at_random, 2, 2);
    bel_run_ranks(call_at_random, 3, 3);
}

// --- Calls that differ ---------------------------------------------------------------------------

static int call_another(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    float data[6] = {0};
    bel_tensor t = {BEL_DTYPE_F32, rank == 1 ? BEL_SHAPE(2, 3) : BEL_SHAPE(6), data};
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_FAILED_PRECONDITION,
               "call 2 differs: rank 0 calls all_reduce_n (sum) of 1 tensors, the first f32 [6], "
               "rank 1 all_reduce_n (sum) of 1 tensors, the first f32 [2, 3]");
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_FAILED_PRECONDITION,
               "call 2 differs"); // like all later calls
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_FAILED_PRECONDITION, "call 2 differs");
    return 0;
}

static int call_another_kind(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    static float data[200000];
    bel_tensor t = bel_vector(BEL_DTYPE_F32, 200000, data);
    bel_status *status = rank == size - 1 ? bel_ddl_bcast(ddl, &t, 1)
                                          : bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, &t, 1);
    NEED_FAILS(status, BEL_FAILED_PRECONDITION,
               "rank 0 calls all_reduce_n (avg) of 1 tensors, the first f32 [200000], rank ");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int call_with_another_tail(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    float data[8] = {0};
    bel_tensor list[2] = {bel_vector(BEL_DTYPE_F32, 4, data),
                          bel_vector(BEL_DTYPE_F32, 4, data + 4)};
    if (rank == 0) list[1].dtype = BEL_DTYPE_I32;
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, 2), BEL_FAILED_PRECONDITION,
               "; some have other types, shapes or places");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int call_with_nonsense(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = bel_begin_rank();
    float data[8] = {0};
    bel_tensor t = bel_vector(BEL_DTYPE_F32, 8, data);
    if (rank == 1) t.dtype = BEL_DTYPE_STRING;
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_INVALID_ARGUMENT,
               "rank 1, all_reduce_n (sum), tensor 0 of 1: expected f32, f64, i32 or i64, got");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void calls_that_differ_fail_everywhere(void **state)
{
    (void)state;
    bel_run_ranks(call_another, 2, 2);
    bel_run_ranks(call_another, 3, 3);
    bel_run_ranks(call_another_kind, 2, 2);
    bel_run_ranks(call_another_kind, 4, 4);
    bel_run_ranks(call_with_another_tail, 2, 2);
    bel_run_ranks(call_with_nonsense, 3, 3);
}

static void what_is_no_tensor_is_refused(void **state)
{
    (void)state;
    bel_ddl *ddl = bel_begin_rank(); // the only rank
    float one = 3;
    bel_tensor t = {BEL_DTYPE_F32, BEL_SHAPE(BEL_DIM_BATCH), &one};
    BEL_ASSERT_FAILS(bel_ddl_bcast(ddl, &t, 1), BEL_INVALID_ARGUMENT, "open dimensions");
    t.shape = BEL_SHAPE(INT64_MAX / 2);
    BEL_ASSERT_FAILS(bel_ddl_bcast(ddl, &t, 1), BEL_INVALID_ARGUMENT, "fits into memory");
    t = (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(1), NULL};
    BEL_ASSERT_FAILS(bel_ddl_bcast(ddl, &t, 1), BEL_INVALID_ARGUMENT, "expected data");
    t = (bel_tensor){BEL_DTYPE_I32, BEL_SHAPE(1), &one};
    BEL_ASSERT_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, &t, 1), BEL_INVALID_ARGUMENT,
                     "expected f32 or f64, got i32 [1]");
    t.dtype = BEL_DTYPE_F32;
    BEL_ASSERT_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1));
    assert_true(one == 3);
    BEL_ASSERT_OK(bel_ddl_barrier(ddl));
    BEL_ASSERT_OK(bel_ddl_finalize(ddl));
    BEL_ASSERT_OK(bel_ddl_finalize(NULL));
}

// --- Absent ranks --------------------------------------------------------------------------------

static int die_in_a_call(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    static double data[100000];
    bel_tensor t = bel_vector(BEL_DTYPE_F64, 100000, data);
    for (int step = 0; step < 5; step++)
        NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1));
    if (rank == size - 1) raise(SIGKILL);
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_ABORTED,
               " has exited; it was waited for");
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_ABORTED, " has exited");
    return 0;
}

static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) {
        const char *job = bel_new_job();
        pid_t children[4];
        for (int r = 0; r < size; r++)
            children[r] = bel_start_rank(die_in_a_call, r, size, size, job);
        for (int r = 0; r < size; r++)
            assert_int_equal(bel_exit_of(children[r]), r == size - 1 ? 128 + SIGKILL : 0);
    }
}

// Rank 0 computes for a long time. The other ranks learn without it that a rank exited.
static int die_while_one_computes(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    if (rank == 0) pause(); // until killed
    if (rank == size - 1) raise(SIGKILL);
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_ABORTED, "rank 2 of 3 has exited");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void a_rank_that_dies_is_named_at_once(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    pid_t children[3];
    for (int r = 0; r < 3; r++)
        children[r] = bel_start_rank(die_while_one_computes, r, 3, 3, job);
    assert_int_equal(bel_exit_of(children[2]), 128 + SIGKILL);
    assert_int_equal(bel_exit_of(children[1]), 0);
    assert_int_equal(kill(children[0], SIGKILL), 0);
    assert_int_equal(bel_exit_of(children[0]), 128 + SIGKILL);
}

static int stay_away(int rank, int size)
{
    (void)size;
    bel_ddl *ddl;
    NEED_OK(bel_ddl_init(&(bel_ddl_options){.size = sizeof(bel_ddl_options), .timeout_secs = 0.3},
                         &ddl));
    if (rank == 1) pause(); // until killed
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_DEADLINE_EXCEEDED,
               "rank 1 of 3 has not come to barrier within 0.3 s");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void a_rank_that_does_not_call_is_named(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    pid_t children[3];
    for (int r = 0; r < 3; r++)
        children[r] = bel_start_rank(stay_away, r, 3, 3, job);
    assert_int_equal(bel_exit_of(children[0]), 0);
    assert_int_equal(bel_exit_of(children[2]), 0);
    assert_int_equal(kill(children[1], SIGKILL), 0);
    assert_int_equal(bel_exit_of(children[1]), 128 + SIGKILL);
}

static int expect_nobody(int rank, int size)
{
    bel_ddl *ddl;
    char text[64];
    bel_snprintf(text, sizeof text, "rank %d of %d has not come within 0.2 s", rank == 0 ? 1 : 0,
                 size);
    NEED_FAILS(bel_ddl_init(
                   &(bel_ddl_options){.size = sizeof(bel_ddl_options), .timeout_secs = 0.2}, &ddl),
               BEL_DEADLINE_EXCEEDED, text);
    return 0;
}

static void who_does_not_begin_is_named(void **state)
{
    (void)state;
    assert_int_equal(bel_exit_of(bel_start_rank(expect_nobody, 0, 2, 2, bel_new_job())), 0);
    assert_int_equal(bel_exit_of(bel_start_rank(expect_nobody, 2, 3, 3, bel_new_job())), 0);
}

static int come_to_a_taken_place(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl;
    bel_status *status =
        bel_ddl_init(&(bel_ddl_options){.size = sizeof(bel_ddl_options), .timeout_secs = 1},
                     &ddl); // may be the first of the two
    if (status == NULL) return 3;
    if (bel_status_code(status) == BEL_ALREADY_EXISTS)
        NEED_FAILS(status, BEL_ALREADY_EXISTS, "rank 1 of 3 is there already");
    else
        NEED_FAILS(status, BEL_DEADLINE_EXCEEDED, "rank 2 of 3 has not come within");
    return 0;
}

static void a_place_is_taken_once(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    pid_t children[3] = {bel_start_rank(come_to_a_taken_place, 0, 3, 3, job),
                         bel_start_rank(come_to_a_taken_place, 1, 3, 3, job),
                         bel_start_rank(come_to_a_taken_place, 1, 3, 3, job)};
    for (int r = 0; r < 3; r++)
        assert_int_equal(bel_exit_of(children[r]), 0);
}

static int come_as_one_of_others(int rank, int size)
{
    bel_ddl *ddl;
    const char *part = rank == 0
                           ? "has not come within"
                           : "rank 1 is one of 3 ranks that share memory, and rank 0 one of 2";
    (void)size;
    NEED_FAILS(bel_ddl_init(
                   &(bel_ddl_options){.size = sizeof(bel_ddl_options), .timeout_secs = 0.5}, &ddl),
               rank == 0 ? BEL_DEADLINE_EXCEEDED : BEL_INVALID_ARGUMENT, part);
    return 0;
}

static void ranks_of_other_sizes_do_not_meet(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    pid_t first = bel_start_rank(come_as_one_of_others, 0, 2, 2, job);
    pid_t second = bel_start_rank(come_as_one_of_others, 1, 3, 3, job);
    assert_int_equal(bel_exit_of(second), 0);
    assert_int_equal(bel_exit_of(first), 0);
}

static int wait_for_nobody(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl;
    bel_status_ignore(bel_ddl_init(NULL, &ddl));
    return 0;
}

static void name_of(const char *job, char out[128])
{
    char text[128];
    bel_snprintf(text, sizeof text, "BELFRY_RANK\n%s", job);
    bel_snprintf(out, 128, "/dev/shm/belfry-ddl-%u-%016llx", (unsigned)geteuid(),
                 (unsigned long long)bel_hash64(text, strlen(text)));
}

// Rank 0 is killed while it waits, and its name remains. Another job of that name still begins, and
// afterwards no name remains.
static void names_of_dead_jobs_are_no_obstacle(void **state)
{
    (void)state;
    const char *job = bel_new_job();
    char name[128];
    name_of(job, name);
    pid_t child = bel_start_rank(wait_for_nobody, 0, 2, 2, job);
    for (int i = 0; i < 6000 && access(name, F_OK) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(bel_exit_of(child), 128 + SIGKILL);
    assert_int_equal(access(name, F_OK), 0);
    pid_t second = bel_start_rank(bel_spread_values, 1, 2, 2, job),
          first = bel_start_rank(bel_spread_values, 0, 2, 2, job);
    assert_int_equal(bel_exit_of(first), 0);
    assert_int_equal(bel_exit_of(second), 0);
    assert_int_not_equal(access(name, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_all_sizes_are_exact),
        cmocka_unit_test(tensors_of_mixed_sizes_and_types_go_together),
        cmocka_unit_test(sums_follow_the_tree),
        cmocka_unit_test(tensors_are_added_where_they_lie),
        cmocka_unit_test(rank_0_gives_its_values),
        cmocka_unit_test(any_rank_gives_its_values),
        cmocka_unit_test(a_rank_may_give_up),
        cmocka_unit_test(calls_follow_each_other),
        cmocka_unit_test(calls_that_differ_fail_everywhere),
        cmocka_unit_test(what_is_no_tensor_is_refused),
        cmocka_unit_test(a_rank_that_dies_is_named),
        cmocka_unit_test(a_rank_that_dies_is_named_at_once),
        cmocka_unit_test(a_rank_that_does_not_call_is_named),
        cmocka_unit_test(who_does_not_begin_is_named),
        cmocka_unit_test(a_place_is_taken_once),
        cmocka_unit_test(ranks_of_other_sizes_do_not_meet),
        cmocka_unit_test(names_of_dead_jobs_are_no_obstacle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
