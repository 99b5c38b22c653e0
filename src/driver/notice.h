// Notice that this machine is about to be taken away: a spot instance, a drained node. Its source
// does not signal processes, so this polls for it: a file that appears (BELFRY_NOTICE_FILE), or a
// command that succeeds (BELFRY_NOTICE_COMMAND). A notice does not count as a signal: the signal
// that follows when the machine goes is the first one.
#ifndef BELFRY_DRIVER_NOTICE_H
#define BELFRY_DRIVER_NOTICE_H

#include "belfry/status.h"

typedef struct bel_notice bel_notice;

// Looks once, so that a process that begins on such a machine leaves at once, and then polls on a
// separate thread. It looks for the file about once a second. The command runs every five seconds,
// with /bin/sh, and is killed after five. `told` is called once, on either thread. *out_notice is
// NULL if the environment names neither, or a notice exists already. RESOURCE_EXHAUSTED: no thread.
// End with bel_notice_end.
bel_status *bel_notice_begin(void (*told)(void), bel_notice **out_notice) BEL_MUST_USE;
void bel_notice_end(bel_notice *notice); // NULL is fine; kills a running command

#endif
