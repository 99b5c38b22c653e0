// Clocks. Durations use the monotonic clock; wall time only labels texts for people.
#ifndef BELFRY_BASE_CLOCK_H
#define BELFRY_BASE_CLOCK_H

#include <stdint.h>

int64_t bel_clock_ns(void);  // monotonic nanoseconds
double bel_clock_wall(void); // seconds since 1970

#endif
