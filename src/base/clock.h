// Clocks. Durations use the monotonic clock; wall time only labels texts for people.
#ifndef BELFRY_BASE_CLOCK_H
#define BELFRY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t bel_clock_ns(void);  // monotonic nanoseconds
double bel_clock_wall(void); // seconds since 1970

// Nanoseconds of processor time: of a process, or of a thread that runs. 0: there is no such one.
int64_t bel_clock_processor_ns(clockid_t clock);

// Monotonic nanoseconds without those in which this process was suspended, for bounds of waits on
// others. A batch system may suspend a whole job for hours (SIGSTOP, a frozen cgroup), and no
// process may take its absence for that of others. Time between two calls, on any threads, counts
// up to BEL_CLOCK_GAP_NS. So a wait that uses this clock looks at least every BEL_CLOCK_LOOK_MS,
// and passes only times of bel_clock_ns to the system. A bound that a suspended process must keep
// is longer than the gap. Fields with such a time name it "awake time".
#define BEL_CLOCK_GAP_NS INT64_C(2000000000)
#define BEL_CLOCK_LOOK_MS 1000
int64_t bel_clock_awake_ns(void);

#endif
