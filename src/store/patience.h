// Patience and permission of a thread (bel_store_set_patience, bel_store_set_permission), and
// pauses.
#ifndef BELFRY_STORE_PATIENCE_H
#define BELFRY_STORE_PATIENCE_H

#include <stdint.h>

#include "belfry/status.h"

int64_t bel_patience_ns(void);

// End of the tries of a call that failed first at `from_ns`.
int64_t bel_patience_end_ns(int64_t from_ns);

// Longest silence of a transfer before it is given up: a sixth of the patience, so that there is
// time for other tries, from 2 to 20 seconds.
double bel_patience_stall_secs(void);

// Asks for the permission of this thread's changes.
bel_status *bel_patience_ask_permission(void) BEL_MUST_USE;

void bel_patience_wait(int64_t pause_ns);

#endif
