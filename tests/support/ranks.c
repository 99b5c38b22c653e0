#include "support/ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/number.h"
#include "support/bel_test.h"

// --- Ranks ---------------------------------------------------------------------------------------

// Port for one test, which no other process gets as long as this process lives: it stays bound
// here. A process that asks for it by number can listen at it.
static int reserve_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(file, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

const char *bel_new_job(void)
{
    static int jobs;
    static char job[64];
    char address[32];
    bel_snprintf(job, sizeof job, "test-%d-%d", (int)getpid(), ++jobs);
    bel_snprintf(address, sizeof address, "127.0.0.1:%d", reserve_port());
    setenv("BELFRY_ADDRESS", address, 1);
    return job;
}

int bel_connect_to_job(void)
{
    const char *text = getenv("BELFRY_ADDRESS");
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtol(strrchr(text, ':') + 1, NULL, 10));
    for (int i = 0; i < 6000; i++) {
        int file = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(file, (struct sockaddr *)&address, sizeof address) == 0) return file;
        close(file);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("no process listens at %s", text);
    return -1;
}

static void set_number(const char *name, int number)
{
    char text[16];
    bel_snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

pid_t bel_start_rank(bel_rank_body body, int rank, int size, int local_size, const char *job)
{
    pid_t child = fork();
    if (child == 0) {
        set_number("BELFRY_RANK", rank);
        set_number("BELFRY_SIZE", size);
        set_number("BELFRY_LOCAL_RANK", rank % local_size);
        set_number("BELFRY_LOCAL_SIZE", local_size);
        setenv("BELFRY_JOB", job, 1);
        _exit(body(rank, size));
    }
    assert_true(child > 0);
    return child;
}

int bel_exit_of(pid_t child)
{
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

void bel_run_ranks(bel_rank_body body, int size, int local_size)
{
    const char *job = bel_new_job();
    pid_t children[BEL_DDL_MAX_RANKS];
    for (int r = 0; r < size; r++)
        children[r] = bel_start_rank(body, r, size, local_size, job);
    for (int r = 0; r < size; r++) {
        int code = bel_exit_of(children[r]);
        if (code != 0) fail_msg("rank %d of %d: %d", r, size, code);
    }
}

// In a rank: prints the failed condition and exits with the line's number.
void bel_need(bool holds, const char *what, int line)
{
    if (holds) return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(line % 200 + 1);
}

void bel_need_ok(bel_status *status, int line)
{
    bel_need(status == NULL, status == NULL ? "" : bel_status_message(status), line);
}

void bel_need_fails(bel_status *status, bel_code code, const char *part, int line)
{
    bel_need(status != NULL, "it did not fail", line);
    bel_need(bel_status_code(status) == code, bel_status_message(status), line);
    bel_need(strstr(bel_status_message(status), part) != NULL, bel_status_message(status), line);
    bel_status_ignore(status);
}

bel_ddl *bel_begin_rank(void)
{
    bel_ddl *ddl;
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.timeout_secs = 60;
    NEED_OK(bel_ddl_init(&options, &ddl));
    return ddl;
}

bel_tensor bel_vector(bel_dtype dtype, int64_t n, void *data)
{
    return (bel_tensor){dtype, BEL_SHAPE(n), data};
}

// --- Sums ----------------------------------------------------------------------------------------

// Rank r's element i, of numbers whose sums are exact.
int64_t bel_rank_number(int rank, int64_t i)
{
    return (i * 7 + rank * 13) % 1001 - 500;
}

void bel_fill_tensor(const bel_tensor *t, int rank)
{
    int64_t n = bel_shape_elements(&t->shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = bel_rank_number(rank, i + n);
        switch (t->dtype) {
        case BEL_DTYPE_F32: ((float *)t->data)[i] = (float)value; break;
        case BEL_DTYPE_F64: ((double *)t->data)[i] = (double)value; break;
        case BEL_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)value; break;
        default: ((int64_t *)t->data)[i] = value;
        }
    }
}

double bel_tensor_element(const bel_tensor *t, int64_t i)
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
            sum += (double)bel_rank_number(r, i + n);
        double expected =
            t->dtype == BEL_DTYPE_F32 ? (double)((float)sum / (float)divisor) : sum / divisor;
        if (bel_tensor_element(t, i) != expected) return false;
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
    all->list[all->count++] = bel_vector(dtype, n, data);
}

static void free_tensors(tensors *all)
{
    for (int i = 0; i < all->count; i++)
        bel_free(all->list[i].data);
    all->count = 0;
}

// Sums or averages all the tensors twice, and checks the results.
static void reduce_tensors(bel_ddl *ddl, tensors *all, bel_ddl_op op)
{
    bel_ddl_place place = bel_ddl_place_of(ddl);
    for (int repeat = 0; repeat < 2; repeat++) {
        for (int i = 0; i < all->count; i++)
            bel_fill_tensor(&all->list[i], place.rank);
        NEED_OK(bel_ddl_all_reduce_n(ddl, op, all->list, all->count));
        for (int i = 0; i < all->count; i++)
            NEED(is_sum(&all->list[i], place.size, op == BEL_DDL_AVG ? place.size : 1));
    }
}

// Sizes from 0 to several slots, cut at odd places.
int bel_sum_sizes(int rank, int size)
{
    (void)rank, (void)size;
    static const int64_t sizes[] = {0,    1,     2,     15,    17,    257,   1000,
                                    4097, 16385, 65535, 65536, 70000, 200001};
    static const bel_dtype types[] = {BEL_DTYPE_F32, BEL_DTYPE_F64, BEL_DTYPE_I32, BEL_DTYPE_I64};
    bel_ddl *ddl = bel_begin_rank();
    tensors all = {.count = 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t t = 0; t < 4; t++) {
            add_tensor(&all, types[t], sizes[i]);
            reduce_tensors(ddl, &all, BEL_DDL_SUM);
            if (t < 2) reduce_tensors(ddl, &all, BEL_DDL_AVG);
            free_tensors(&all);
        }
    }
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

// Many tensors of mixed sizes and types in one call.
int bel_sum_mixed(int rank, int size)
{
    (void)rank, (void)size;
    bel_ddl *ddl = bel_begin_rank();
    tensors all = {.count = 0};
    for (int i = 0; i < 161; i++)
        add_tensor(&all, (bel_dtype)(i % 4), i % 10 == 9 ? 30000 + i : 7 * i % 300);
    reduce_tensors(ddl, &all, BEL_DDL_SUM);
    free_tensors(&all);
    for (int i = 0; i < 100; i++)
        add_tensor(&all, (bel_dtype)(i % 2), i == 50 ? 300000 : 256);
    reduce_tensors(ddl, &all, BEL_DDL_AVG);
    free_tensors(&all);
    reduce_tensors(ddl, &all, BEL_DDL_SUM); // an empty list
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

int bel_spread_values(int rank, int size)
{
    bel_ddl *ddl = bel_begin_rank();
    bel_ddl_place place = bel_ddl_place_of(ddl);
    NEED(place.rank == rank && place.size == size);
    NEED(place.local_rank == rank % place.local_size && place.device == place.local_rank);
    static uint8_t bytes[700001];
    static uint16_t words[5];
    bool flags[3] = {rank == 0, false, rank == 0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = rank == 0 ? (uint8_t)(i * 31 + i / 256) : 0;
    for (int i = 0; i < 5; i++)
        words[i] = rank == 0 ? (uint16_t)(i + 7) : 0;
    bel_tensor list[3] = {bel_vector(BEL_DTYPE_BOOL, 3, flags),
                          bel_vector(BEL_DTYPE_BF16, 5, words),
                          bel_vector(BEL_DTYPE_U8, sizeof bytes, bytes)};
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_OK(bel_ddl_bcast(ddl, list, 3));
    for (size_t i = 0; i < sizeof bytes; i++)
        NEED(bytes[i] == (uint8_t)(i * 31 + i / 256));
    for (int i = 0; i < 5; i++)
        NEED(words[i] == i + 7);
    NEED(flags[0] && !flags[1] && flags[2]);
    NEED_OK(bel_ddl_barrier(ddl));
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}
