// What a running job is asked for from outside: that it stops, or that this process leaves it
// (bel_request_stop and bel_request_leave of belfry/estimator.h). Asked by signal handlers, read by
// whoever makes steps. One job at a time in a process. Any thread.
#ifndef BELFRY_BASE_REQUESTS_H
#define BELFRY_BASE_REQUESTS_H

#include <stdbool.h>

// How processes hear that their machine is to go (driver/notice.h).
#define BEL_NOTICE_FILE_VARIABLE "BELFRY_NOTICE_FILE"
#define BEL_NOTICE_COMMAND_VARIABLE "BELFRY_NOTICE_COMMAND"
enum { BEL_NOTICE_FILE_SECS = 1, BEL_NOTICE_COMMAND_SECS = 5 }; // how often it is looked for

// A job begins. `may_leave`: it can go on without this process, and gets another one in its place;
// where it does not, a request to leave asks for a stop.
void bel_requests_begin(bool may_leave);

// It is over: requests, which end one job, are forgotten.
void bel_requests_end(void);

bool bel_stop_requested(void);
bool bel_leave_requested(void); // and the job is not asked to stop
bool bel_leave_stood(void);     // the same, and it was so before the job began
bool bel_end_requested(void);   // either of them: a process with nothing to save ends at once

// Whether one of the functions above has been true: the job knows of a request. Safe in signal
// handlers.
bool bel_request_is_known(void);

#endif
