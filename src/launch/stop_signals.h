// The signals that stop a job as bytes in a pipe, for a poll loop. A handler that writes into a
// pipe works whichever thread the system chooses; a signalfd would need all threads to block them.
#ifndef BELFRY_LAUNCH_STOP_SIGNALS_H
#define BELFRY_LAUNCH_STOP_SIGNALS_H

#include "belfry/status.h"

// From now on signals come through *out_descriptor, and SIGPIPE is ignored. SIGHUP stays as it is
// when it was ignored (nohup). SIGCHLD gets its default: where a parent has ignored it, exit codes
// would be lost. One at a time in a process.
bel_status *bel_stop_signals_open(int *out_descriptor) BEL_MUST_USE;

// The next signal's number, 0 when there is none: SIGINT, SIGTERM (also for SIGHUP), or SIGUSR1 for
// a scheduler's warning that the time is nearly up (also for SIGUSR2).
int bel_stop_signals_read(int descriptor);

// From now on these signals wait, but while they come through a descriptor: so none ends a process
// that has closed it and has something to write down yet.
void bel_stop_signals_block(void);

// Signals are handled, or wait, as before.
void bel_stop_signals_close(int descriptor);

#endif
