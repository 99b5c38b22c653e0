// Benchmark of one graph with and without passes, in turns.
#ifndef BELFRY_BENCH_PASSES_H
#define BELFRY_BENCH_PASSES_H

#include "graph/graph.h"

enum { BENCH_MOST_INPUTS = 32 };

// A graph whose inputs all have closed shapes, and its output. The benchmark fills inputs and
// variables.
typedef struct bench_graph {
    const char *name;
    bel_graph *graph;
    bel_value *output;
    int runs; // runs in a round
} bench_graph;

// Runs programs without the passes of `off` (bits), and with all passes, `rounds` times in turns on
// one thread. Prints median times, their ratio, instructions and memory, and records the ratio as
// `figure`. Exits if something fails or the results differ.
void bench_passes(const bench_graph *graph, unsigned off, const char *off_name, const char *figure,
                  int rounds);

#endif
