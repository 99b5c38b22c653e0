// Dependencies of an asynchronous program: the calls that each call waits for, the streams, and
// their consequences for memory.
#ifndef BELFRY_RUNTIME_FLOW_H
#define BELFRY_RUNTIME_FLOW_H

#include "runtime/program_inner.h"
#include "runtime/streams.h"

struct bel_flow {
    bel_dag dag;          // the calls, with costs in ns
    bel_streams streams;  // for the threads of bel_program_options
    int64_t *part_counts; // by call: its tiles if worth sharing among threads, else 1
};

// Built from the calls and buffers of a program. A call waits for the calls that write its inputs,
// and for those that read the memory that it overwrites.
bel_flow *bel_flow_create(const bel_program *program, int thread_count);
void bel_flow_destroy(bel_flow *flow);

// Lifetimes of some of a program's buffers, valid for any timing of the threads. Immutable.
typedef struct bel_flow_lives bel_flow_lives;

// `buffers` are indices into the program's buffers. The caller keeps the array.
bel_flow_lives *bel_flow_lives_create(const bel_flow *flow, const bel_program *program,
                                      const int *buffers, int count);
void bel_flow_lives_destroy(bel_flow_lives *lives);

// True when buffers `a` and `b` (places in the list) may be alive at the same time: neither is
// finished by all its calls before the first call of the other one starts.
bool bel_flow_together(const bel_flow_lives *lives, int a, int b);

// First and last call that use a buffer, in the order of the program. The last is INT32_MAX if the
// buffer is read after the run. With a single stream these bound its life.
void bel_flow_life(const bel_flow_lives *lives, int buffer, int *out_first, int *out_last);

#endif
