// How a supervisor reaches the hosts of its processes: for each that is not a child of its own on
// this host, a command whose standard streams are those of `belfry carry` over there (carry.h).
// Engines make one (engine.h); a supervisor without one has all processes on its host.
#ifndef BELFRY_LAUNCH_REACH_H
#define BELFRY_LAUNCH_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "launch/plan.h"

typedef struct bel_reach bel_reach;
struct bel_reach {
    // The command for a process, its name first and NULL at the end; NULL: it is started here. Free
    // with bel_reach_words_free.
    char **(*words)(const bel_reach *reach, const bel_task *task);
    void (*destroy)(bel_reach *reach);
    const char *peer; // an address on the way to the other hosts, "host:port": on this host's own
                      // address there the master listens
    const char *program; // of processes over there; "": the one that runs `carry`
    char *const *moved;  // files that flags name and that lie elsewhere there (bel_parcel); or NULL
};

void bel_reach_words_free(char **words);

// --- For engines that make one -------------------------------------------------------------------

// A command that grows; {0} has no words yet.
typedef struct bel_reach_words {
    char **items; // NULL at the end; free with bel_reach_words_free
    size_t count, capacity;
} bel_reach_words;

void bel_reach_words_add(bel_reach_words *words, const char *text); // a copy of it
void bel_reach_words_take(bel_reach_words *words, char *text);      // frees it in the end

// Whether an argument is the flag `name` of belfry's own, "--name" or "--name=VALUE", with "-" for
// "_" alike. *out_value is what stands behind "=", NULL: the next argument.
bool bel_reach_is_flag(const char *argument, const char *name, const char **out_value);

// In single quotes, as one word of a shell's.
void bel_reach_quote(const char *text, bel_str *out);

// The hosts of the cluster's roles that are others than this one, each once. Free the list with
// bel_free; the texts are the cluster's.
const char **bel_reach_hosts(const bel_cluster *cluster, size_t *out_count);

// For engines whose supervisor and master are here. INVALID_ARGUMENT: the master belongs elsewhere,
// or there is no other host; `name` is the engine's.
bel_status *bel_reach_check(const bel_cluster *cluster, const char *name) BEL_MUST_USE;

// "127.0.0.1:22" of a host's name or address, which a user may stand before: a reach's `peer`.
// Free with bel_free.
char *bel_reach_peer(const char *host);

// For --dry_run: what the job's processes are started by, a line for each that is not here.
void bel_reach_show(const bel_reach *reach, const char *job, const bel_plan *plan, bel_str *out);

#endif
