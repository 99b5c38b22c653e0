// Results on stdout: lines "name value", or with --json one object.
#ifndef BELFRY_TOOLS_COMMAND_RESULTS_H
#define BELFRY_TOOLS_COMMAND_RESULTS_H

#include "base/options.h"
#include "belfry/estimator.h"

// Prints a bel_result after training (`trained`: with speed and digest) or evaluation.
bel_status *bel_results_print(const bel_result *result, bool trained, bool evaluated,
                              bool json) BEL_MUST_USE;

// Writes a text to stdout and flushes it. UNKNOWN, with the reason, on failure.
bel_status *bel_results_write(const char *text) BEL_MUST_USE;
// The same for any bytes, without flushing.
bel_status *bel_results_write_bytes(const void *bytes, size_t size) BEL_MUST_USE;
bel_status *bel_results_flush(void) BEL_MUST_USE;

#endif
