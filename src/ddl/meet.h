// How ranks that do not share memory find each other. Rank 0 listens at the job's address; the
// others tell it who they are and where they listen themselves, and when all have come it tells
// everybody where everybody is. Then each of two ranks has a connection to the other: the one with
// the larger number makes it.
//
// Who does not know the job's secret (BELFRY_SECRET) is turned away; it goes over the network in
// clear. Whoever connects and says nothing holds nobody up.
#ifndef BELFRY_DDL_MEET_H
#define BELFRY_DDL_MEET_H

#include "base/launcher.h"
#include "belfry/ddl.h"

typedef struct bel_ddl_meeting {
    int files[BEL_DDL_MAX_RANKS]; // connections by rank, the caller's; -1: none, as to itself
    int together; // ranks of each host that can share memory: they follow each other, and are as
                  // many on all hosts; 1: none can
} bel_ddl_meeting;

// `settings`: what all ranks must have alike, in words. Errors as of bel_ddl_init; then no
// connection is left.
bel_status *bel_ddl_meet(const bel_launch *launch, const char *settings, double timeout_secs,
                         bel_ddl_meeting *out_meeting) BEL_MUST_USE;

#endif
