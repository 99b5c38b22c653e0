// The asynchronous executor on graphs of calls with fixed times, skewed in several ways. The ratio
// is the makespan on two threads over its lower bound: the longer of the costliest path and half of
// the whole. A graph so cheap that it should stay on one thread is compared with its calls one
// after another. Medians of rounds with quartiles.
// usage: bench_async [ROUNDS]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "figures.h"
#include "mlp.h"
#include "runtime/async.h"
#include "runtime/cost.h"

enum { MOST_CALLS = 80, MOST_EDGES = 400, MAX_ROUNDS = 99, CHEAP_RUNS = 100 };

typedef struct workload {
    const char *name; // also in the figure's name
    int64_t costs[MOST_CALLS], parts[MOST_CALLS];
    int first_edges[MOST_CALLS + 1];
    bel_dag_edge edges[MOST_EDGES];
    bel_dag dag;
} workload;

// --- Graphs --------------------------------------------------------------------------------------

// Adds a call; edges to it follow.
static int add_call(workload *w, double us)
{
    int call = w->dag.node_count++;
    w->costs[call] = (int64_t)(us * 1000);
    w->parts[call] = 1;
    w->first_edges[call + 1] = w->first_edges[call];
    return call;
}

static void add_edge(workload *w, int from)
{
    w->edges[w->first_edges[w->dag.node_count]++] = (bel_dag_edge){from, true};
}

static double random_unit(uint64_t graph, uint64_t at)
{
    uint32_t words[4];
    bel_rng_block(bel_rng_key_make(graph, "bench", 0), 0, at, words);
    return (double)bel_rng_unit(words[0]);
}

// Draws a time from 20 to 500 us, with equal odds below and above 100.
static double skewed_us(uint64_t graph, uint64_t at)
{
    return 20 * pow(25, random_unit(graph, at));
}

static void make_fan(workload *w)
{
    for (uint64_t i = 0; i < 48; i++)
        add_call(w, skewed_us(1, i));
}

static void make_towers(workload *w)
{
    for (int tower = 0; tower < 2; tower++) {
        for (int i = 0; i < (tower == 0 ? 20 : 35); i++) {
            int call = add_call(w, tower == 0 ? 150 : 60);
            if (i > 0) add_edge(w, call - 1);
        }
    }
    add_call(w, 50);
    add_edge(w, 19);
    add_edge(w, 54);
}

// Makes the shape of gradients: a chain, and beside each link a call without successors.
static void make_comb(workload *w)
{
    for (int i = 0; i < 25; i++) {
        int link = add_call(w, 100);
        if (i > 0) add_edge(w, link - 2);
        add_call(w, i % 5 == 0 ? 300 : 60);
        add_edge(w, link);
    }
}

static void make_tree(workload *w)
{
    int count = 32, first = 0;
    for (int i = 0; i < count; i++)
        add_call(w, skewed_us(2, (uint64_t)i));
    for (; count > 1; count /= 2) {
        for (int i = 0; i < count / 2; i++) {
            add_call(w, skewed_us(3, (uint64_t)(first + i)));
            add_edge(w, first + 2 * i);
            add_edge(w, first + 2 * i + 1);
        }
        first += count;
    }
}

static void make_random(workload *w, uint64_t seed)
{
    for (int i = 0; i < 64; i++) {
        add_call(w, skewed_us(seed, (uint64_t)i));
        for (int e = 0; e < 3 && i > 0; e++) {
            int back = 1 + (int)(16 * random_unit(seed, (uint64_t)(1000 + 4 * i + e)));
            if (back <= i) add_edge(w, i - back);
        }
    }
}

static void make_random_1(workload *w)
{
    make_random(w, 11);
}

static void make_random_2(workload *w)
{
    make_random(w, 12);
}

static void make_random_3(workload *w)
{
    make_random(w, 13);
}

static void make_cheap(workload *w)
{
    for (int i = 0; i < 16; i++) {
        add_call(w, 0.5);
        if (i >= 4) add_edge(w, i - 4);
    }
}

static void workload_init(workload *w, const char *name, void (*make)(workload *w))
{
    *w = (workload){.name = name};
    make(w);
    w->dag.costs = w->costs;
    w->dag.first_edges = w->first_edges;
    w->dag.edges = w->edges;
}

// Returns the lower bound of two threads' time, in ns.
static double bound_of(const workload *w)
{
    int64_t total = 0, longest = 0, paths[MOST_CALLS];
    for (int c = 0; c < w->dag.node_count; c++) {
        paths[c] = 0;
        for (int e = w->first_edges[c]; e < w->first_edges[c + 1]; e++)
            if (paths[w->edges[e].from] > paths[c]) paths[c] = paths[w->edges[e].from];
        paths[c] += w->costs[c];
        total += w->costs[c];
        if (paths[c] > longest) longest = paths[c];
    }
    return (double)longest > (double)total / 2 ? (double)longest : (double)total / 2;
}

// --- Running -------------------------------------------------------------------------------------

static void spin(void *context, int call, int64_t part)
{
    (void)part;
    const workload *w = context;
    int64_t end = bel_clock_ns() + w->costs[call];
    while (bel_clock_ns() < end)
        bel_thread_pause();
}

static bool finish(void *context, int call)
{
    (void)context, (void)call;
    return true;
}

static double time_run(bel_async *async, bel_team *team)
{
    int64_t begun = bel_clock_ns();
    if (bel_async_run(async, team) != BEL_FUTURE_READY) exit(1);
    return (double)(bel_clock_ns() - begun);
}

static double time_serial(workload *w)
{
    int64_t begun = bel_clock_ns();
    for (int c = 0; c < w->dag.node_count; c++)
        spin(w, c, 0);
    return (double)(bel_clock_ns() - begun);
}

static bel_async *make_executor(workload *w, bel_streams *out_streams)
{
    const bel_stream_options options = {
        .thread_count = 2, .threshold = BEL_COST_HAND_OVER_NS, .merge_dependent = true};
    const bel_async_calls calls = {
        .run = spin, .finish = finish, .context = w, .part_counts = w->parts};
    bel_streams_pack(&w->dag, &options, out_streams);
    return bel_async_create(&w->dag, out_streams, &calls);
}

// Measures the makespan over the bound.
static double time_skewed(workload *w, bel_team *team, int rounds)
{
    bel_streams streams;
    bel_async *async = make_executor(w, &streams);
    double ratios[MAX_ROUNDS], bound = bound_of(w);
    (void)time_run(async, team); // warm-up
    for (int r = 0; r < rounds; r++)
        ratios[r] = time_run(async, team) / bound;
    bench_spread ratio = bench_spread_of(ratios, rounds);
    printf("%-8s %2d calls in %2d streams: %5.0f us on 2 threads, bound %5.0f us; ratio %.2f "
           "[%.2f, %.2f]\n",
           w->name, w->dag.node_count, streams.count, ratio.median * bound / 1000, bound / 1000,
           ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "async.%s", w->name);
    bel_async_destroy(async);
    bel_streams_deinit(&streams);
    return ratio.median;
}

static void time_cheap(workload *w, bel_team *team, int rounds)
{
    bel_streams streams;
    bel_async *async = make_executor(w, &streams);
    double ours[MAX_ROUNDS], serial[MAX_ROUNDS];
    (void)time_run(async, team); // warm-up
    for (int r = 0; r < rounds; r++) {
        ours[r] = serial[r] = 0;
        for (int i = 0; i < CHEAP_RUNS; i++) {
            ours[r] += time_run(async, team) / CHEAP_RUNS;
            serial[r] += time_serial(w) / CHEAP_RUNS;
        }
    }
    bench_spread ratio = bench_ratio_of(ours, serial, rounds);
    printf("%-8s %2d calls in %2d stream: %.2f us, one after another %.2f us; ratio %.3f [%.3f, "
           "%.3f] (mark: <= 1.05)\n",
           w->name, w->dag.node_count, streams.count, bench_median(ours, rounds) / 1000,
           bench_median(serial, rounds) / 1000, ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "async.%s", w->name);
    bel_async_destroy(async);
    bel_streams_deinit(&streams);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*make)(workload *w);
    } graphs[] = {
        {"fan", make_fan},           {"towers", make_towers},     {"comb", make_comb},
        {"tree", make_tree},         {"random_1", make_random_1}, {"random_2", make_random_2},
        {"random_3", make_random_3},
    };
    int rounds = count > 1 ? atoi(arguments[1]) : 31;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bel_team *team;
    if (bench_end(bel_team_create(2, &team)) != 0) exit(1);
    static workload w;
    double worst = 0;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        workload_init(&w, graphs[i].name, graphs[i].make);
        double ratio = time_skewed(&w, team, rounds);
        if (ratio > worst) worst = ratio;
    }
    printf("worst ratio of the makespan to the bound: %.2f (mark: <= 1.10)\n", worst);
    workload_init(&w, "cheap", make_cheap);
    time_cheap(&w, team, rounds);
    bel_team_destroy(team);
    return 0;
}
