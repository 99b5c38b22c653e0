// Self-pipe: the signals that stop a job arrive as bytes in a pipe, for a poll loop. A handler that
// writes into a pipe works on any thread; a signalfd would need all threads to block the signals.
#ifndef BELFRY_LAUNCH_SUPERVISE_STOP_SIGNALS_H
#define BELFRY_LAUNCH_SUPERVISE_STOP_SIGNALS_H

#include "belfry/status.h"

// Redirects the signals to *out_descriptor and ignores SIGPIPE. SIGHUP stays ignored if it was
// (nohup). SIGCHLD gets its default, because exit codes would be lost if a parent had ignored it.
// Only one may be open in a process.
bel_status *bel_stop_signals_open(int *out_descriptor) BEL_MUST_USE;

// Returns the next signal's number, 0: no signal. SIGINT, SIGTERM (also for SIGHUP), or SIGUSR1 for
// a scheduler's warning that the time is nearly up (also for SIGUSR2).
int bel_stop_signals_read(int descriptor);

// Blocks these signals from now on, except while a descriptor is open. So no signal ends a process
// that has closed its descriptor and still has to write something.
void bel_stop_signals_block(void);

// Restores the previous handling or blocking.
void bel_stop_signals_close(int descriptor);

#endif
