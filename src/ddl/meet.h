// Rendezvous of ranks that do not share memory. Rank 0 listens at the job's address. Each other
// rank sends its identity and its listening address; when all have connected, rank 0 sends all
// addresses to every rank. Then each pair of ranks connects: the rank with the larger number
// initiates.
//
// A process without the job's secret (BELFRY_SECRET) is rejected; the secret is sent unencrypted. A
// silent connection delays no other.
#ifndef BELFRY_DDL_MEET_H
#define BELFRY_DDL_MEET_H

#include "base/launcher.h"
#include "belfry/ddl.h"

typedef struct bel_ddl_meeting {
    int files[BEL_DDL_MAX_RANKS]; // connections by rank, the caller's; -1: none, also for itself
    int together; // number of consecutive ranks that can share memory, the same on all hosts; 1: no
                  // sharing
} bel_ddl_meeting;

// `settings`: text that must be equal on all ranks. Errors as of bel_ddl_init; all connections are
// closed then.
bel_status *bel_ddl_meet(const bel_launch *launch, const char *settings, double timeout_secs,
                         bel_ddl_meeting *out_meeting) BEL_MUST_USE;

#endif
