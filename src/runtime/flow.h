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

// Sets out_together[i · count + k] where `buffers` (indices of the program's) i and k may be alive
// at the same time: neither is left by all its calls before the first call of the other one begins,
// whatever the threads do.
void bel_flow_together(const bel_flow *flow, const bel_program *program, const int *buffers,
                       int count, bool *out_together);

#endif
