// External requests to a running job: to stop, or that this process leaves it (bel_request_stop and
// bel_request_leave of belfry/estimator.h). Set by signal handlers, read by the code that makes
// steps. One job at a time in a process. Any thread.
#ifndef BELFRY_BASE_REQUESTS_H
#define BELFRY_BASE_REQUESTS_H

#include <stdbool.h>

// Sources of notices that this machine is to go (driver/notice.h).
#define BEL_NOTICE_FILE_VARIABLE "BELFRY_NOTICE_FILE"
#define BEL_NOTICE_COMMAND_VARIABLE "BELFRY_NOTICE_COMMAND"
enum { BEL_NOTICE_FILE_SECS = 1, BEL_NOTICE_COMMAND_SECS = 5 }; // polling intervals

// Begins a job. `may_leave`: it can continue without this process, which is replaced; otherwise a
// request to leave is a request to stop.
void bel_requests_begin(bool may_leave);

// Ends it and clears requests, which end one job.
void bel_requests_end(void);

bool bel_stop_requested(void);
bool bel_leave_requested(void); // and no stop is requested
bool bel_leave_stood(void);     // the same, and it was requested before the job began
bool bel_end_requested(void);   // either of them: a process with nothing to save ends at once

// Returns true if one of the functions above has returned true: the job knows of a request. Safe in
// signal handlers.
bool bel_request_is_known(void);

#endif
