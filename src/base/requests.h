// What a running job is asked for from outside: that it stops, or that this process leaves it
// (bel_request_stop and bel_request_leave of belfry/estimator.h). Asked by signal handlers, read by
// whoever makes steps. One job at a time in a process. Any thread.
#ifndef BELFRY_BASE_REQUESTS_H
#define BELFRY_BASE_REQUESTS_H

#include <stdbool.h>

// A job begins. `may_leave`: it can go on without this process, and gets another one in its place;
// where it does not, a request to leave asks for a stop.
void bel_requests_begin(bool may_leave);

// It is over: requests, which end one job, are forgotten.
void bel_requests_end(void);

bool bel_stop_requested(void);
bool bel_leave_requested(void); // and the job is not asked to stop
bool bel_end_requested(void);   // either of them: whoever has nothing to save yet goes at once

#endif
