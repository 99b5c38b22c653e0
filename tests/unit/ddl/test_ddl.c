// The DDL calls among processes: sums, types, sizes that fill a slot, cut it or fit into little;
// what differs between ranks; ranks that die, come twice or not at all.
// label: native
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

// --- Ranks ---------------------------------------------------------------------------------------

// What a rank does; its exit status: 0 is well.
typedef int (*rank_body)(int rank, int size);

static const char *new_job(void)
{
    static int jobs;
    static char job[64];
    bel_snprintf(job, sizeof job, "test-%d-%d", (int)getpid(), ++jobs);
    return job;
}

static void be_rank(int rank, int size, const char *job)
{
    char text[16];
    bel_snprintf(text, sizeof text, "%d", rank);
    setenv("BELFRY_DDL_RANK", text, 1);
    bel_snprintf(text, sizeof text, "%d", size);
    setenv("BELFRY_DDL_SIZE", text, 1);
    setenv("BELFRY_DDL_JOB", job, 1);
}

static pid_t start_rank(rank_body body, int rank, int size, const char *job)
{
    pid_t child = fork();
    if (child == 0) {
        be_rank(rank, size, job);
        _exit(body(rank, size));
    }
    assert_true(child > 0);
    return child;
}

static int exit_of(pid_t child)
{
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static void run_ranks(rank_body body, int size)
{
    const char *job = new_job();
    pid_t children[BEL_DDL_MAX_RANKS];
    for (int r = 0; r < size; r++)
        children[r] = start_rank(body, r, size, job);
    for (int r = 0; r < size; r++) {
        int code = exit_of(children[r]);
        if (code != 0) fail_msg("rank %d of %d: %d", r, size, code);
    }
}

// In a rank: says what went wrong, and leaves with the line's number.
static void need(bool holds, const char *what, int line)
{
    if (holds) return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(line % 200 + 1);
}
#define NEED(condition) need((condition), #condition, __LINE__)

static void need_ok(bel_status *status, int line)
{
    need(status == NULL, status == NULL ? "" : bel_status_message(status), line);
}
#define NEED_OK(expression) need_ok((expression), __LINE__)

static void need_fails(bel_status *status, bel_code code, const char *part, int line)
{
    need(status != NULL, "it did not fail", line);
    need(bel_status_code(status) == code, bel_status_message(status), line);
    need(strstr(bel_status_message(status), part) != NULL, bel_status_message(status), line);
    bel_status_ignore(status);
}
#define NEED_FAILS(expression, code, part) need_fails((expression), (code), (part), __LINE__)

static bel_ddl *begin(void)
{
    bel_ddl *ddl;
    NEED_OK(bel_ddl_init(&(bel_ddl_options){.timeout_secs = 60, .device = -1}, &ddl));
    return ddl;
}

static bel_tensor vector(bel_dtype dtype, int64_t n, void *data)
{
    return (bel_tensor){dtype, BEL_SHAPE(n), data};
}

// --- Sums ----------------------------------------------------------------------------------------

// Rank r's element i, of numbers whose sums are exact.
static int64_t number(int rank, int64_t i)
{
    return (i * 7 + rank * 13) % 1001 - 500;
}

static void fill(const bel_tensor *t, int rank)
{
    int64_t n = bel_shape_elements(&t->shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = number(rank, i + n);
        switch (t->dtype) {
        case BEL_DTYPE_F32: ((float *)t->data)[i] = (float)value; break;
        case BEL_DTYPE_F64: ((double *)t->data)[i] = (double)value; break;
        case BEL_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)value; break;
        default: ((int64_t *)t->data)[i] = value;
        }
    }
}

static double element(const bel_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case BEL_DTYPE_F32: return (double)((const float *)t->data)[i];
    case BEL_DTYPE_F64: return ((const double *)t->data)[i];
    case BEL_DTYPE_I32: return ((const int32_t *)t->data)[i];
    default: return (double)((const int64_t *)t->data)[i];
    }
}

static bool is_sum(const bel_tensor *t, int size, double divisor)
{
    int64_t n = bel_shape_elements(&t->shape);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int r = 0; r < size; r++)
            sum += (double)number(r, i + n);
        double expected =
            t->dtype == BEL_DTYPE_F32 ? (double)((float)sum / (float)divisor) : sum / divisor;
        if (element(t, i) != expected) return false;
    }
    return true;
}

enum { MOST_TENSORS = 200 };

typedef struct tensors {
    bel_tensor list[MOST_TENSORS];
    int count;
} tensors;

static void add_tensor(tensors *all, bel_dtype dtype, int64_t n)
{
    void *data = bel_xcalloc((size_t)n + 1, bel_dtype_size(dtype));
    all->list[all->count++] = vector(dtype, n, data);
}

static void free_tensors(tensors *all)
{
    for (int i = 0; i < all->count; i++)
        bel_free(all->list[i].data);
    all->count = 0;
}

static void reduce(bel_ddl *ddl, tensors *all, bel_ddl_op op)
{
    bel_ddl_place place = bel_ddl_place_of(ddl);
    for (int repeat = 0; repeat < 2; repeat++) {
        for (int i = 0; i < all->count; i++)
            fill(&all->list[i], place.rank);
        NEED_OK(bel_ddl_all_reduce_n(ddl, op, all->list, all->count));
        for (int i = 0; i < all->count; i++)
            NEED(is_sum(&all->list[i], place.size, op == BEL_DDL_AVG ? place.size : 1));
    }
}

// Sizes from none to several slots, cut at odd places.
static int sum_sizes(int rank, int size)
{
    (void)rank, (void)size;
    static const int64_t sizes[] = {0,    1,     2,     15,    17,    257,   1000,
                                    4097, 16385, 65535, 65536, 70000, 200001};
    static const bel_dtype types[] = {BEL_DTYPE_F32, BEL_DTYPE_F64, BEL_DTYPE_I32, BEL_DTYPE_I64};
    bel_ddl *ddl = begin();
    tensors all = {.count = 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t t = 0; t < 4; t++) {
            add_tensor(&all, types[t], sizes[i]);
            reduce(ddl, &all, BEL_DDL_SUM);
            if (t < 2) reduce(ddl, &all, BEL_DDL_AVG);
            free_tensors(&all);
        }
    }
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

// Many tensors of mixed sizes and types in one call.
static int sum_mixed(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl = begin();
    tensors all = {.count = 0};
    for (int i = 0; i < 161; i++)
        add_tensor(&all, (bel_dtype)(i % 4), i % 10 == 9 ? 30000 + i : 7 * i % 300);
    reduce(ddl, &all, BEL_DDL_SUM);
    free_tensors(&all);
    for (int i = 0; i < 100; i++)
        add_tensor(&all, (bel_dtype)(i % 2), i == 50 ? 300000 : 256);
    reduce(ddl, &all, BEL_DDL_AVG);
    free_tensors(&all);
    reduce(ddl, &all, BEL_DDL_SUM); // of nothing
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static const int rank_counts[] = {1, 2, 3, 5, 8};
enum { RANK_COUNTS = sizeof rank_counts / sizeof rank_counts[0] };

static void sums_of_all_sizes_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < RANK_COUNTS; i++)
        run_ranks(sum_sizes, rank_counts[i]);
}

static void tensors_of_mixed_sizes_and_types_go_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < RANK_COUNTS; i++)
        run_ranks(sum_mixed, rank_counts[i]);
}

// Along the tree over ranks: (0 + 1) + (2 + 3), then 4.
static int sum_by_tree(int rank, int size)
{
    static const float values[5] = {1e8F, 3.25F, -1e8F, 1.5F, 0.5F};
    float pair = values[0] + values[1], other = values[2] + values[3];
    float tree = (pair + other) + values[4];
    NEED(tree != ((values[0] + values[1] + values[2]) + values[3] + values[4]) || size == 0);
    bel_ddl *ddl = begin();
    static float data[100000];
    for (int n = 1; n <= 100000; n *= 10) {
        for (int i = 0; i < n; i++)
            data[i] = values[rank];
        bel_tensor t = vector(BEL_DTYPE_F32, n, data);
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
    run_ranks(sum_by_tree, 5);
}

// --- Memory that all see -------------------------------------------------------------------------

// Tensors in two memories and outside, in one call, again and again: nobody reads what another
// writes already.
static int sum_in_place(int rank, int size)
{
    enum { N = 150000 };
    (void)size;
    bel_ddl *ddl = begin();
    void *large, *small;
    NEED_OK(bel_ddl_alloc(ddl, (size_t)N * 12, &large));
    NEED_OK(bel_ddl_alloc(ddl, 1000, &small));
    for (size_t i = 0; i < (size_t)N * 12; i++)
        NEED(((char *)large)[i] == 0);
    static int32_t own[40000];
    bel_tensor list[5] = {vector(BEL_DTYPE_F64, N, large), vector(BEL_DTYPE_I32, 40000, own),
                          vector(BEL_DTYPE_F32, 250, small),
                          vector(BEL_DTYPE_F32, 7, (char *)large + (size_t)N * 8),
                          vector(BEL_DTYPE_F32, N - 7, (char *)large + (size_t)N * 8 + 28)};
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 5; i++)
            fill(&list[i], rank + step);
        int count = step % 3 == 0 ? 5 : step % 5 + 1;
        NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, count));
        for (int i = 0; i < count; i++) {
            int64_t n = bel_shape_elements(&list[i].shape);
            for (int64_t k = 0; k < n; k++) {
                int64_t sum = 0;
                for (int r = 0; r < size; r++)
                    sum += number(r + step, k + n);
                NEED(element(&list[i], k) == (double)sum);
            }
        }
    }
    for (int i = 0; i < 5; i++)
        fill(&list[i], rank);
    NEED_OK(bel_ddl_bcast(ddl, list, 5));
    for (int i = 0; i < 5; i++) {
        int64_t n = bel_shape_elements(&list[i].shape);
        for (int64_t k = 0; k < n; k++)
            NEED(element(&list[i], k) == (double)number(0, k + n));
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
    bel_ddl *ddl = begin();
    void *memory;
    NEED_OK(bel_ddl_alloc(ddl, 100000, &memory));
    bel_tensor t = vector(BEL_DTYPE_F32, 10000, (char *)memory + (rank == 1 ? 64 : 0));
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_FAILED_PRECONDITION,
               "the first f32 [10000] in shared memory; some have other types, shapes or places");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int ask_for_other_sizes(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = begin();
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
    bel_ddl *ddl = begin();
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
        run_ranks(sum_in_place, rank_counts[i]);
    run_ranks(tensors_elsewhere, 2);
    run_ranks(ask_for_other_sizes, 2);
    run_ranks(ask_for_too_much, 2);
}

// --- Other calls ---------------------------------------------------------------------------------

static int spread_values(int rank, int size)
{
    bel_ddl *ddl = begin();
    bel_ddl_place place = bel_ddl_place_of(ddl);
    NEED(place.rank == rank && place.size == size);
    NEED(place.local_rank == rank && place.local_size == size && place.device == rank);
    static uint8_t bytes[700001];
    static uint16_t halves[5];
    bool flags[3] = {rank == 0, false, rank == 0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = rank == 0 ? (uint8_t)(i * 31 + i / 256) : 0;
    for (int i = 0; i < 5; i++)
        halves[i] = rank == 0 ? (uint16_t)(i + 7) : 0;
    bel_tensor list[3] = {vector(BEL_DTYPE_BOOL, 3, flags), vector(BEL_DTYPE_BF16, 5, halves),
                          vector(BEL_DTYPE_U8, sizeof bytes, bytes)};
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_OK(bel_ddl_bcast(ddl, list, 3));
    for (size_t i = 0; i < sizeof bytes; i++)
        NEED(bytes[i] == (uint8_t)(i * 31 + i / 256));
    for (int i = 0; i < 5; i++)
        NEED(halves[i] == i + 7);
    NEED(flags[0] && !flags[1] && flags[2]);
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static void rank_0_gives_its_values(void **state)
{
    (void)state;
    run_ranks(spread_values, 1);
    run_ranks(spread_values, 2);
    run_ranks(spread_values, 4);
}

// Calls of all kinds and sizes in one order, thousands of them: nobody runs over what another still
// reads.
static int call_at_random(int rank, int size)
{
    enum { MOST = 150000 };
    bel_ddl *ddl = begin();
    static float data[MOST];
    uint64_t random = 88172645463325252u;
    for (int step = 0; step < 1500; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int64_t n = (int64_t)(random >> 8) % (step % 50 == 0 ? MOST : 3000);
        bel_tensor t = vector(BEL_DTYPE_F32, n, data);
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
    run_ranks(call_at_random, 2);
    run_ranks(call_at_random, 3);
}

// --- What differs --------------------------------------------------------------------------------

static int call_another(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = begin();
    float data[6] = {0};
    bel_tensor t = {BEL_DTYPE_F32, rank == 1 ? BEL_SHAPE(2, 3) : BEL_SHAPE(6), data};
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_FAILED_PRECONDITION,
               "call 2 differs: rank 0 calls all_reduce_n (sum) of 1 tensors, the first f32 [6], "
               "rank 1 all_reduce_n (sum) of 1 tensors, the first f32 [2, 3]");
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_FAILED_PRECONDITION,
               "call 2 differs"); // as all later ones
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_FAILED_PRECONDITION, "call 2 differs");
    return 0;
}

static int call_another_kind(int rank, int size)
{
    bel_ddl *ddl = begin();
    static float data[200000];
    bel_tensor t = vector(BEL_DTYPE_F32, 200000, data);
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
    bel_ddl *ddl = begin();
    float data[8] = {0};
    bel_tensor list[2] = {vector(BEL_DTYPE_F32, 4, data), vector(BEL_DTYPE_F32, 4, data + 4)};
    if (rank == 0) list[1].dtype = BEL_DTYPE_I32;
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, list, 2), BEL_FAILED_PRECONDITION,
               "; some have other types, shapes or places");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static int call_with_nonsense(int rank, int size)
{
    (void)size;
    bel_ddl *ddl = begin();
    float data[8] = {0};
    bel_tensor t = vector(BEL_DTYPE_F32, 8, data);
    if (rank == 1) t.dtype = BEL_DTYPE_STRING;
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_INVALID_ARGUMENT,
               "rank 1, all_reduce_n (sum), tensor 0 of 1: expected f32, f64, i32 or i64, got");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void calls_that_differ_fail_everywhere(void **state)
{
    (void)state;
    run_ranks(call_another, 2);
    run_ranks(call_another, 3);
    run_ranks(call_another_kind, 2);
    run_ranks(call_another_kind, 4);
    run_ranks(call_with_another_tail, 2);
    run_ranks(call_with_nonsense, 3);
}

static void what_is_no_tensor_is_refused(void **state)
{
    (void)state;
    bel_ddl *ddl = begin(); // alone
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

// --- Who does not come ---------------------------------------------------------------------------

static int die_in_a_call(int rank, int size)
{
    bel_ddl *ddl = begin();
    static double data[100000];
    bel_tensor t = vector(BEL_DTYPE_F64, 100000, data);
    for (int step = 0; step < 5; step++)
        NEED_OK(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1));
    if (rank == size - 1) raise(SIGKILL);
    NEED_FAILS(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, &t, 1), BEL_ABORTED,
               " has ended; it was waited for");
    NEED_FAILS(bel_ddl_finalize(ddl), BEL_ABORTED, " has ended");
    return 0;
}

static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) {
        const char *job = new_job();
        pid_t children[4];
        for (int r = 0; r < size; r++)
            children[r] = start_rank(die_in_a_call, r, size, job);
        for (int r = 0; r < size; r++)
            assert_int_equal(exit_of(children[r]), r == size - 1 ? 128 + SIGKILL : 0);
    }
}

// Rank 0 computes for long; the others need not wait for it to learn that one is gone.
static int die_while_one_computes(int rank, int size)
{
    bel_ddl *ddl = begin();
    if (rank == 0) pause(); // until it is killed
    if (rank == size - 1) raise(SIGKILL);
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_ABORTED, "rank 2 of 3 has ended");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void a_rank_that_dies_is_named_at_once(void **state)
{
    (void)state;
    const char *job = new_job();
    pid_t children[3];
    for (int r = 0; r < 3; r++)
        children[r] = start_rank(die_while_one_computes, r, 3, job);
    assert_int_equal(exit_of(children[2]), 128 + SIGKILL);
    assert_int_equal(exit_of(children[1]), 0);
    assert_int_equal(kill(children[0], SIGKILL), 0);
    assert_int_equal(exit_of(children[0]), 128 + SIGKILL);
}

static int stay_away(int rank, int size)
{
    (void)size;
    bel_ddl *ddl;
    NEED_OK(bel_ddl_init(&(bel_ddl_options){.timeout_secs = 0.3}, &ddl));
    if (rank == 1) pause(); // until it is killed
    NEED_FAILS(bel_ddl_barrier(ddl), BEL_DEADLINE_EXCEEDED,
               "rank 1 of 3 has not come to barrier within 0.3 s");
    bel_status_ignore(bel_ddl_finalize(ddl));
    return 0;
}

static void a_rank_that_does_not_call_is_named(void **state)
{
    (void)state;
    const char *job = new_job();
    pid_t children[3];
    for (int r = 0; r < 3; r++)
        children[r] = start_rank(stay_away, r, 3, job);
    assert_int_equal(exit_of(children[0]), 0);
    assert_int_equal(exit_of(children[2]), 0);
    assert_int_equal(kill(children[1], SIGKILL), 0);
    assert_int_equal(exit_of(children[1]), 128 + SIGKILL);
}

static int expect_nobody(int rank, int size)
{
    bel_ddl *ddl;
    char text[64];
    bel_snprintf(text, sizeof text, "rank %d of %d has not come within 0.2 s", rank == 0 ? 1 : 0,
                 size);
    NEED_FAILS(bel_ddl_init(&(bel_ddl_options){.timeout_secs = 0.2}, &ddl), BEL_DEADLINE_EXCEEDED,
               text);
    return 0;
}

static void who_does_not_begin_is_named(void **state)
{
    (void)state;
    assert_int_equal(exit_of(start_rank(expect_nobody, 0, 2, new_job())), 0);
    assert_int_equal(exit_of(start_rank(expect_nobody, 2, 3, new_job())), 0);
}

static int come_to_a_taken_place(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl;
    bel_status *status =
        bel_ddl_init(&(bel_ddl_options){.timeout_secs = 1}, &ddl); // or it was the first of the two
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
    const char *job = new_job();
    pid_t children[3] = {start_rank(come_to_a_taken_place, 0, 3, job),
                         start_rank(come_to_a_taken_place, 1, 3, job),
                         start_rank(come_to_a_taken_place, 1, 3, job)};
    for (int r = 0; r < 3; r++)
        assert_int_equal(exit_of(children[r]), 0);
}

static int come_as_one_of_others(int rank, int size)
{
    bel_ddl *ddl;
    const char *part =
        rank == 0 ? "has not come within" : "rank 1 is one of 3 ranks, and rank 0 one of 2";
    (void)size;
    NEED_FAILS(bel_ddl_init(&(bel_ddl_options){.timeout_secs = 0.5}, &ddl),
               rank == 0 ? BEL_DEADLINE_EXCEEDED : BEL_INVALID_ARGUMENT, part);
    return 0;
}

static void ranks_of_other_sizes_do_not_meet(void **state)
{
    (void)state;
    const char *job = new_job();
    pid_t first = start_rank(come_as_one_of_others, 0, 2, job);
    pid_t second = start_rank(come_as_one_of_others, 1, 3, job);
    assert_int_equal(exit_of(second), 0);
    assert_int_equal(exit_of(first), 0);
}

static int wait_for_nobody(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl;
    bel_status_ignore(bel_ddl_init(&(bel_ddl_options){.timeout_secs = 60}, &ddl));
    return 0;
}

static void name_of(const char *job, char out[128])
{
    char text[128];
    bel_snprintf(text, sizeof text, "BELFRY_DDL_RANK\n%s", job);
    bel_snprintf(out, 128, "/dev/shm/belfry-ddl-%u-%016llx", (unsigned)geteuid(),
                 (unsigned long long)bel_hash64(text, strlen(text)));
}

// Rank 0 is killed while it waits: its name is left, and another job of that name begins all the
// same. Afterwards nothing is left.
static void names_of_dead_jobs_are_no_obstacle(void **state)
{
    (void)state;
    const char *job = new_job();
    char name[128];
    name_of(job, name);
    pid_t child = start_rank(wait_for_nobody, 0, 2, job);
    for (int i = 0; i < 6000 && access(name, F_OK) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(exit_of(child), 128 + SIGKILL);
    assert_int_equal(access(name, F_OK), 0);
    pid_t second = start_rank(spread_values, 1, 2, job),
          first = start_rank(spread_values, 0, 2, job);
    assert_int_equal(exit_of(first), 0);
    assert_int_equal(exit_of(second), 0);
    assert_int_not_equal(access(name, F_OK), 0);
}

// --- Variables -----------------------------------------------------------------------------------

static int read_variables(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl;
    unsetenv("BELFRY_DDL_RANK");
    setenv("SLURM_PROCID", "0", 1); // of a batch script
    setenv("SLURM_NTASKS", "4", 1);
    NEED_OK(bel_ddl_init(NULL, &ddl));
    NEED(bel_ddl_place_of(ddl).size == 1);
    NEED_OK(bel_ddl_finalize(ddl));
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_LOCALID", "0", 1);
    setenv("SLURM_STEP_NUM_NODES", "2", 1);
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_UNIMPLEMENTED, "4 ranks on several hosts");
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "3", 1);
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_INVALID_ARGUMENT,
               "environment variable RANK: expected from 0 to 2, got 3");
    setenv("WORLD_SIZE", "many", 1);
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_INVALID_ARGUMENT,
               "environment variable WORLD_SIZE: expected from 1 to 64, got many");
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_INVALID_ARGUMENT,
               "environment variable OMPI_COMM_WORLD_SIZE: expected from 1 to 64, got nothing");
    setenv("BELFRY_DDL_RANK", "0", 1);
    setenv("BELFRY_DDL_SIZE", "2", 1);
    unsetenv("BELFRY_DDL_JOB");
    NEED_FAILS(bel_ddl_init(NULL, &ddl), BEL_INVALID_ARGUMENT,
               "environment variable BELFRY_DDL_JOB: expected a word that names the job");
    NEED_FAILS(bel_ddl_init(&(bel_ddl_options){.timeout_secs = -1}, &ddl), BEL_INVALID_ARGUMENT,
               "timeout_secs: expected seconds above 0, got -1");
    setenv("BELFRY_DDL_SIZE", "1", 1);
    NEED_OK(bel_ddl_init(&(bel_ddl_options){.device = 5}, &ddl));
    NEED(bel_ddl_place_of(ddl).device == 5);
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static void launchers_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(exit_of(start_rank(read_variables, 0, 1, "none")), 0);
}

// Ranks that start as torchrun's do.
static int be_torchruns(int rank, int size)
{
    char text[16];
    unsetenv("BELFRY_DDL_RANK");
    bel_snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    setenv("LOCAL_RANK", text, 1);
    bel_snprintf(text, sizeof text, "%d", size);
    setenv("WORLD_SIZE", text, 1);
    setenv("LOCAL_WORLD_SIZE", text, 1);
    setenv("TORCHELASTIC_RUN_ID", getenv("BELFRY_DDL_JOB"), 1);
    return spread_values(rank, size);
}

static void torchruns_variables_make_ranks(void **state)
{
    (void)state;
    run_ranks(be_torchruns, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_all_sizes_are_exact),
        cmocka_unit_test(tensors_of_mixed_sizes_and_types_go_together),
        cmocka_unit_test(sums_follow_the_tree),
        cmocka_unit_test(tensors_are_added_where_they_lie),
        cmocka_unit_test(rank_0_gives_its_values),
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
        cmocka_unit_test(launchers_are_told_apart),
        cmocka_unit_test(torchruns_variables_make_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
