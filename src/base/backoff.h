// Exponential backoff with jitter: pauses between the tries of a call that its other end cannot
// answer yet. Thousands of processes may call one that has just started, so each pause is about
// twice the preceding one, and no two callers keep step.
#ifndef BELFRY_BASE_BACKOFF_H
#define BELFRY_BASE_BACKOFF_H

#include <stdint.h>

typedef struct bel_backoff {
    int64_t least_ns, most_ns; // the first pause, and the limit
    int tries;                 // 0: none yet; set it to 0 when a call succeeds
} bel_backoff;

// Returns the next pause: between half of `least_ns` · 2^tries, at most `most_ns`, and all of it.
int64_t bel_backoff_next(bel_backoff *backoff);

#endif
