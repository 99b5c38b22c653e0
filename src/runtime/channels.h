// Which values lie channels-last in memory.
#ifndef BELFRY_RUNTIME_CHANNELS_H
#define BELFRY_RUNTIME_CHANNELS_H

#include "runtime/program.h"

// Sets out_last[value id] for values [n, c, …] that lie as [n, …, c]: those that only convolutions,
// pools, normalisations and element-wise operations make and read. Where such a chain begins and
// ends its kernels read or write the plain order, so nothing is reordered by an operation of its
// own. `needed` is by node, `specs` by value; out_last is all false on entry.
void bel_channels_last(const bel_graph *graph, const bool *needed, const bel_spec *specs,
                       const bel_program_output *outputs, int output_count, bool *out_last);

#endif
