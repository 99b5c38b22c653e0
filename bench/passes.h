// Programs of one graph with and without passes, in turns.
#ifndef BELFRY_BENCH_PASSES_H
#define BELFRY_BENCH_PASSES_H

#include "graph/graph.h"

enum { BENCH_MOST_INPUTS = 32 };

// A graph whose inputs all have closed shapes, and what it is asked for. Elements of inputs and
// variables are made here.
typedef struct bench_graph {
    const char *name;
    bel_graph *graph;
    bel_value *output;
    int runs; // in a round
} bench_graph;

// Runs programs in which the passes of `off` (bits) are left out, and whole ones, `rounds` times in
// turns on one thread, and prints median times, their ratio, instructions and memory. Ends the
// process when something fails or the results differ.
void bench_passes(const bench_graph *graph, unsigned off, const char *off_name, int rounds);

#endif
