// The roles of a job's processes: bel_role's numbers travel in messages, and here are their names.
#ifndef BELFRY_WIRE_ROLE_H
#define BELFRY_WIRE_ROLE_H

#include "belfry/run.h"

const char *bel_role_name(bel_role role); // "master", "worker", "ps", "evaluator"

// "worker 1", "master". `text` needs 32 bytes and is returned.
const char *bel_role_text(bel_role role, int index, char text[32]);

// What the hello of a lane says its client end is, by number as it travels.
enum { BEL_HELLO_WORKER = 1, BEL_HELLO_SHARD, BEL_HELLO_MASTER };

#endif
