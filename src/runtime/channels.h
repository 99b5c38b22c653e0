// Choice of the values that are stored channels-last.
#ifndef BELFRY_RUNTIME_CHANNELS_H
#define BELFRY_RUNTIME_CHANNELS_H

#include "runtime/program.h"

// Sets out_last[value id] for values of shape [n, c, …] that are stored as [n, …, c]. These are
// values that only convolutions, pools, normalizations and element-wise operations write and read.
// The kernels at both ends of such a chain read or write the plain order, so no separate operation
// reorders elements. `needed` is by node, `specs` by value; out_last is all false on entry.
void bel_channels_last(const bel_graph *graph, const bool *needed, const bel_spec *specs,
                       const bel_program_output *outputs, int output_count, bool *out_last);

#endif
