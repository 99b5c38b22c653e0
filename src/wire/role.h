// Roles of a job's processes: bel_role's numbers travel in messages; their names are here.
#ifndef BELFRY_WIRE_ROLE_H
#define BELFRY_WIRE_ROLE_H

#include "belfry/run.h"

const char *bel_role_name(bel_role role); // "master", "worker", "ps", "evaluator"

// Returns "worker 1", "master" in `text`, which needs 32 bytes.
const char *bel_role_text(bel_role role, int index, char text[32]);

// Kind of a lane's client end in its hello, by its number on the wire.
// BEL_HELLO_REPORTER: a worker, or a relay, that reports to a relay. BEL_HELLO_MIRROR: a shard that
// calls its mirror.
enum {
    BEL_HELLO_WORKER = 1,
    BEL_HELLO_SHARD,
    BEL_HELLO_MASTER,
    BEL_HELLO_REPORTER,
    BEL_HELLO_MIRROR
};

#endif
