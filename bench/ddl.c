// The DDL calls among processes of one host: all_reduce_n (sum, in place, floats) of 4 KB to 256
// MB, consecutive calls, µs a call of rank 0. The bound is the time of all ranks to copy the same
// bytes at once, the least that an all-reduce in place must move (read a tensor, write a tensor).
// Then 161 tensors of 256 floats in one call and in 161; tensors with ResNet-50's 161 sizes, and
// one tensor of the same bytes. In turns, medians; ratios with quartiles.
// usage: bench_ddl [RANKS [ROUNDS [LARGEST_MB]]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "belfry/ddl.h"
#include "figures.h"
#include "mlp.h"

enum { MAX_ROUNDS = 99, SMALL_TENSORS = 161 };

static bel_ddl *ddl;
static int rounds = 9;

static bel_tensor floats(void *data, int64_t n)
{
    return (bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(n), data};
}

typedef void (*work)(const bel_tensor *tensors, int count, void *other);

typedef struct task {
    work body;
    const bel_tensor *tensors;
    int count;
    void *other;
} task;

static void reduce(const bel_tensor *tensors, int count, void *other)
{
    (void)other;
    bench_check(bel_ddl_all_reduce_n(ddl, BEL_DDL_SUM, tensors, count));
}

static void reduce_each(const bel_tensor *tensors, int count, void *other)
{
    for (int i = 0; i < count; i++)
        reduce(&tensors[i], 1, other);
}

static void copy(const bel_tensor *tensors, int count, void *other)
{
    for (int i = 0; i < count; i++)
        memcpy(other, tensors[i].data, bel_tensor_bytes(&tensors[i]));
}

// Returns the calls for about 30 ms: a guess, the same on all ranks.
static int calls_of(const task *t)
{
    double bytes = 0;
    for (int i = 0; i < t->count; i++)
        bytes += (double)bel_tensor_bytes(&t->tensors[i]);
    int calls = (int)(30e-3 / (20e-6 + bytes * 0.3e-9)) + 1;
    return t->body == reduce_each ? calls / 20 + 1 : calls;
}

// Measures tasks in turns: microseconds a call in each round, after one warm-up round.
static void measure(const task *tasks, int count, double us[][MAX_ROUNDS])
{
    for (int r = -1; r < rounds; r++) {
        for (int t = 0; t < count; t++) {
            int calls = calls_of(&tasks[t]);
            bench_check(bel_ddl_barrier(ddl));
            int64_t begun = bel_clock_ns();
            for (int i = 0; i < calls; i++)
                tasks[t].body(tasks[t].tensors, tasks[t].count, tasks[t].other);
            us[t][r < 0 ? 0 : r] = (double)(bel_clock_ns() - begun) * 1e-3 / calls;
        }
    }
}

static void measure_sizes(float *data, float *other, float *shared, int64_t largest, int rank,
                          int size)
{
    for (int64_t bytes = 4096; bytes <= largest; bytes *= 4) {
        double us[3][MAX_ROUNDS];
        memset(data, 0, (size_t)bytes);
        const bel_tensor t = floats(data, bytes / 4), in_place = floats(shared, bytes / 4);
        const task tasks[] = {
            {reduce, &t, 1, NULL}, {copy, &t, 1, other}, {reduce, &in_place, 1, NULL}};
        measure(tasks, 3, us);
        if (rank != 0) continue;
        bench_spread ratio = bench_ratio_of(us[0], us[1], rounds);
        printf("%lld %.2f %.2f %.2f ratio %.2f [%.2f, %.2f]\n", (long long)bytes,
               bench_median(us[0], rounds), bench_median(us[1], rounds),
               bench_median(us[2], rounds), ratio.median, ratio.low, ratio.high);
        fflush(stdout);
        if (bytes >= 1 << 20) // smaller ones stay in the caches, where a copy costs nothing
            bench_figuref(&ratio, "ddl.%d.%lldM.copy", size, (long long)bytes >> 20);
    }
}

// Sets the sizes of ResNet-50's variables: a first convolution, 16 blocks of three with batch
// normalization, a side convolution in four of them, and a layer of 1,000 classes.
static int resnet_sizes(int64_t sizes[SMALL_TENSORS])
{
    static const int blocks[4] = {3, 4, 6, 3};
    int n = 0, in = 64;
    sizes[n++] = 7 * 7 * 3 * 64;
    sizes[n++] = 64;
    sizes[n++] = 64;
    for (int stage = 0; stage < 4; stage++) {
        int width = 64 << stage, out = 4 * width;
        for (int b = 0; b < blocks[stage]; b++, in = out) {
            const int64_t products[4] = {(int64_t)in * width, 9 * (int64_t)width * width,
                                         (int64_t)width * out, (int64_t)in * out};
            const int channels[4] = {width, width, out, out};
            for (int k = 0; k < (b == 0 ? 4 : 3); k++) {
                sizes[n++] = products[k];
                sizes[n++] = channels[k];
                sizes[n++] = channels[k];
            }
        }
    }
    sizes[n++] = 2048 * 1000;
    sizes[n++] = 1000;
    return n;
}

static void measure_small(float *data, int rank, int size)
{
    bel_tensor tensors[SMALL_TENSORS];
    double us[2][MAX_ROUNDS];
    for (int i = 0; i < SMALL_TENSORS; i++)
        tensors[i] = floats(data + (int64_t)i * 256, 256);
    const task tasks[] = {{reduce, tensors, SMALL_TENSORS, NULL},
                          {reduce_each, tensors, SMALL_TENSORS, NULL}};
    measure(tasks, 2, us);
    if (rank != 0) return;
    bench_spread ratio = bench_ratio_of(us[1], us[0], rounds);
    printf("161x256 %.2f each %.2f times %.2f [%.2f, %.2f]\n", bench_median(us[0], rounds),
           bench_median(us[1], rounds), ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "ddl.%d.161x256", size);
}

static void measure_resnet(float *data, int rank, int size)
{
    bel_tensor tensors[SMALL_TENSORS];
    int64_t sizes[SMALL_TENSORS], total = 0;
    double us[2][MAX_ROUNDS];
    int count = resnet_sizes(sizes);
    for (int i = 0; i < count; i++) {
        tensors[i] = floats(data + total, sizes[i]);
        total += sizes[i];
    }
    const bel_tensor whole = floats(data, total);
    const task tasks[] = {{reduce, tensors, count, NULL}, {reduce, &whole, 1, NULL}};
    measure(tasks, 2, us);
    if (rank != 0) return;
    bench_spread ratio = bench_ratio_of(us[0], us[1], rounds);
    printf("resnet50 %d tensors %.1f MB %.1f us, one tensor %.1f us, ratio %.3f [%.3f, %.3f]\n",
           count, (double)total * 4e-6, bench_median(us[0], rounds), bench_median(us[1], rounds),
           ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "ddl.%d.resnet50", size);
}

static void be_rank(int rank, int size, int64_t largest)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%d", rank);
    setenv("BELFRY_RANK", text, 1);
    bel_snprintf(text, sizeof text, "%d", size);
    setenv("BELFRY_SIZE", text, 1);
    bench_check(bel_ddl_init(NULL, &ddl));
    int64_t room = largest > 120 << 20 ? largest : 120 << 20;
    float *data = bel_xcalloc((size_t)room, 1), *other = bel_xcalloc((size_t)room, 1);
    memset(data, 0, (size_t)room);
    memset(other, 0, (size_t)room);
    void *shared;
    bench_check(bel_ddl_alloc(ddl, (size_t)largest, &shared));
    measure_sizes(data, other, shared, largest, rank, size);
    measure_small(data, rank, size);
    measure_resnet(data, rank, size);
    bench_check(bel_ddl_finalize(ddl));
    bel_free(data);
    bel_free(other);
}

int main(int count, char **arguments)
{
    int size = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 2;
    if (count > 2) rounds = (int)strtol(arguments[2], NULL, 10);
    int64_t largest = (count > 3 ? strtoll(arguments[3], NULL, 10) : 256) << 20;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    char job[32];
    bel_snprintf(job, sizeof job, "bench-%d", (int)getpid());
    setenv("BELFRY_JOB", job, 1);
    for (int r = 1; r < size; r++) {
        if (fork() != 0) continue;
        be_rank(r, size, largest);
        return 0;
    }
    be_rank(0, size, largest);
    int state, worst = 0;
    while (wait(&state) > 0)
        worst |= state;
    return worst != 0;
}
