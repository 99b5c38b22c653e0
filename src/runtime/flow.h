// What an asynchronous program has beside its calls: which of them wait for which, their streams,
// and what follows for memory.
#ifndef BELFRY_RUNTIME_FLOW_H
#define BELFRY_RUNTIME_FLOW_H

#include "runtime/program_inner.h"
#include "runtime/streams.h"

struct bel_flow {
    bel_dag dag;          // of calls, costs in ns
    bel_streams streams;  // for the threads of bel_program_options
    int64_t *part_counts; // by call: its tiles where they are worth sharing among threads, else 1
};

// Reads calls and buffers of a program. A call waits for whoever made what it reads, and for
// whoever reads what it writes over.
bel_flow *bel_flow_create(const bel_program *program, int thread_count);
void bel_flow_destroy(bel_flow *flow);

// When buffers are alive, for any timing of the threads; of those of the program that were asked
// about. Immutable.
typedef struct bel_flow_lives bel_flow_lives;

// `buffers` are indices of the program's, and stay the caller's.
bel_flow_lives *bel_flow_lives_create(const bel_flow *flow, const bel_program *program,
                                      const int *buffers, int count);
void bel_flow_lives_destroy(bel_flow_lives *lives);

// True when two of the buffers, by their places in the list, may be alive at the same time: neither
// is left by all its calls before the first call of the other one begins.
bool bel_flow_together(const bel_flow_lives *lives, int a, int b);

// The first and the last call that touch a buffer, in the order of the program; the last is
// INT32_MAX where it is read after the run. With a single stream these are its life.
void bel_flow_life(const bel_flow_lives *lives, int buffer, int *out_first, int *out_last);

#endif
