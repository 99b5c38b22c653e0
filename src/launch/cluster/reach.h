// Reach: how a supervisor starts processes on other hosts. For each remote process it runs a
// command, such as ssh, whose standard streams are those of a remote `belfry carry` (carry.h).
// Engines create a reach (engine.h); a supervisor without one has all processes on its host.
#ifndef BELFRY_LAUNCH_CLUSTER_REACH_H
#define BELFRY_LAUNCH_CLUSTER_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "launch/cluster/plan.h"

typedef struct bel_str bel_str; // base/str.h
typedef struct bel_reach bel_reach;
struct bel_reach {
    // Returns the command for a process, with its name first and NULL at the end. NULL: the process
    // starts here. Free with bel_reach_words_free.
    char **(*words)(const bel_reach *reach, const bel_task *task);
    void (*destroy)(bel_reach *reach);
    const char *peer; // an address towards the other hosts, "host:port": the master listens on this
                      // host's address on the route to it
    const char *program; // for remote processes; "": the program that runs `carry`
    char *const *moved;  // files of flags with another remote path (bel_parcel); or NULL
};

void bel_reach_words_free(char **words);

// --- For engines that make one -------------------------------------------------------------------

// A command under construction; {0} is empty.
typedef struct bel_reach_words {
    char **items; // NULL at the end; free with bel_reach_words_free
    size_t count, capacity;
} bel_reach_words;

void bel_reach_words_add(bel_reach_words *words, const char *text); // copies it
void bel_reach_words_take(bel_reach_words *words, char *text);      // takes ownership

// True if an argument is belfry's flag `name`: "--name" or "--name=VALUE", with "-" for "_" alike.
// *out_value is the text after "=", NULL: the value is the next argument.
bool bel_reach_is_flag(const char *argument, const char *name, const char **out_value);

// Appends a text in single quotes, as one shell word.
void bel_reach_quote(const char *text, bel_str *out);

// Returns the hosts of the cluster's roles other than this one, each once. Free the list with
// bel_free; the texts belong to the cluster.
const char **bel_reach_hosts(const bel_cluster *cluster, size_t *out_count);

// For engines whose supervisor and master are here. INVALID_ARGUMENT: the master is on another
// host, or there is no other host; `name` is the engine's.
bel_status *bel_reach_check(const bel_cluster *cluster, const char *name) BEL_MUST_USE;

// Returns "127.0.0.1:22" from a host's name or address, after removing a "user@": a reach's `peer`.
// Free with bel_free.
char *bel_reach_peer(const char *host);

// For --dry_run: appends the command of each remote process, one a line.
void bel_reach_show(const bel_reach *reach, const char *job, const bel_plan *plan, bel_str *out);

#endif
