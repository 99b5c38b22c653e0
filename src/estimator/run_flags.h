// Settings of a run by their flag names (belfry/run.h), one row each.
#ifndef BELFRY_ESTIMATOR_RUN_FLAGS_H
#define BELFRY_ESTIMATOR_RUN_FLAGS_H

#include <stddef.h>

#include "belfry/run.h"

typedef struct bel_str bel_str; // base/str.h

// Name of the index-th setting, NULL after the last.
const char *bel_run_flag(size_t index);

// Appends word `value` of the choices of flag `name`: 2 of "gpu_math" is tf32.
void bel_run_flag_word(const char *name, int value, bel_str *out);

// Checks each field against its row. INVALID_ARGUMENT names the field, what it accepts, and its
// value.
bel_status *bel_run_config_check_rows(const bel_run_config *config) BEL_MUST_USE;

// Replaces the texts of all rows by copies, and frees those. Other fields stay.
void bel_run_config_copy_texts(bel_run_config *config);
void bel_run_config_free_texts(bel_run_config *config);

#endif
