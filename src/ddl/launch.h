// Who this process is among those that were started with it, by the variables of the launcher.
#ifndef BELFRY_DDL_LAUNCH_H
#define BELFRY_DDL_LAUNCH_H

#include "belfry/ddl.h"

enum { BEL_DDL_JOB_TEXT = 512, BEL_DDL_HOST_TEXT = 256 };

typedef struct bel_ddl_launch {
    bel_ddl_place place;          // device: not set
    char job[BEL_DDL_JOB_TEXT];   // what the ranks of a job share and other jobs do not have
    char host[BEL_DDL_HOST_TEXT]; // where rank 0 can be reached from other hosts; "": not known
    int port;
} bel_ddl_launch;

// INVALID_ARGUMENT: variables that make no rank or no address, named.
bel_status *bel_ddl_find_launch(bel_ddl_launch *out_launch) BEL_MUST_USE;

#endif
