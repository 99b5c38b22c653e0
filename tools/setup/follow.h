// Checks of --follow: a training on a file that grows.
#ifndef BELFRY_TOOLS_SETUP_FOLLOW_H
#define BELFRY_TOOLS_SETUP_FOLLOW_H

#include "base/options.h"

// Returns true if the command has --follow, and it is given.
bool bel_follows(const bel_options *options);

// INVALID_ARGUMENT: a flag needs all rows beforehand, or reads rows in another order or not once;
// the columns are not described; the file is not one CSV file.
bel_status *bel_follow_check(const bel_options *options) BEL_MUST_USE;

#endif
