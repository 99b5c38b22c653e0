// A notice that this machine is about to be taken away: a spot instance, a node that is drained.
// Whoever gives it does not signal processes, so it is looked for: a file that appears
// (BELFRY_NOTICE_FILE), or a command that succeeds (BELFRY_NOTICE_COMMAND). It is no signal: the
// one that follows when the machine goes is the first.
#ifndef BELFRY_DRIVER_NOTICE_H
#define BELFRY_DRIVER_NOTICE_H

#include "belfry/status.h"

typedef struct bel_notice bel_notice;

// Looks once, so that a process that begins on such a machine leaves at once, and goes on looking
// on a thread of its own: for the file about once a second; the command runs every five seconds,
// with /bin/sh, and is killed after five. `told` is called once, on whichever thread. *out_notice
// is NULL where the environment names neither, or there is a notice already. RESOURCE_EXHAUSTED: no
// thread. End with bel_notice_end.
bel_status *bel_notice_begin(void (*told)(void), bel_notice **out_notice) BEL_MUST_USE;
void bel_notice_end(bel_notice *notice); // NULL is fine; a command that runs is killed

#endif
