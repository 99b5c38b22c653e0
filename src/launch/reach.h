// How a supervisor reaches the hosts of its processes: for each that is not a child of its own on
// this host, a command whose standard streams are those of `belfry carry` over there (carry.h).
// Engines make one (engine.h); a supervisor without one has all processes on its host.
#ifndef BELFRY_LAUNCH_REACH_H
#define BELFRY_LAUNCH_REACH_H

#include <stddef.h>

#include "launch/plan.h"

typedef struct bel_reach bel_reach;
struct bel_reach {
    // The command for a process, its name first and NULL at the end; NULL: it is started here. Each
    // text and the list with bel_free.
    char **(*words)(const bel_reach *reach, const bel_task *task);
    void (*destroy)(bel_reach *reach);
    const char *peer; // an address on the way to the other hosts, "host:port": on this host's own
                      // address there the master listens
    const char *program; // of processes over there; "": the one that runs `carry`
};

void bel_reach_words_free(char **words);

#endif
