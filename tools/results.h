// Results on stdout: lines "name value", or with --json one object.
#ifndef BELFRY_TOOLS_RESULTS_H
#define BELFRY_TOOLS_RESULTS_H

#include "base/options.h"
#include "belfry/estimator.h"

// What bel_result says after training (`trained`: with speed and digest) or evaluation.
bel_status *bel_results_print(const bel_result *result, bool trained, bool evaluated,
                              bool json) BEL_MUST_USE;

// Writes a text to stdout, or what stdout still holds back. UNKNOWN with the reason when it cannot.
bel_status *bel_results_write(const char *text) BEL_MUST_USE;
bel_status *bel_results_flush(void) BEL_MUST_USE;

#endif
