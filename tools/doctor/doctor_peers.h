// Runs a shell script on other hosts by ssh, in parallel, and collects its output.
#ifndef BELFRY_TOOLS_DOCTOR_DOCTOR_PEERS_H
#define BELFRY_TOOLS_DOCTOR_DOCTOR_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "belfry/status.h"

enum { BEL_PEERS_CONNECT_SECS = 5, BEL_PEERS_MOST_SECS = 10, BEL_PEERS_AT_ONCE = 32 };

// Prefix of the output lines that count: a login shell may print others.
#define BEL_PEERS_WORD "belfry-doctor "

typedef struct bel_peer {
    const char *destination; // in: ssh's destination, "b" or "user@b"
    bel_str output, errors;  // beginning of stdout and of stderr
    double heard_at;         // wall clock after the first line that counts; 0: none yet
    double answered_secs;    // from the start of ssh to that line
    int code;                // ssh's exit code, 255 if it reached no host; -1: it did not start
    bool timed_out;          // killed after BEL_PEERS_MOST_SECS
} bel_peer;

// Finds the program of the environment variable BELFRY_SSH, else ssh; free with bel_free.
// NOT_FOUND.
bel_status *bel_peers_program(char **out_path) BEL_MUST_USE;

// Runs `script` on all peers, BEL_PEERS_AT_ONCE at a time, and waits until all finish. The caller
// deinits the peers.
void bel_peers_ask(const char *program, bel_peer *peers, size_t count, const char *script);
void bel_peer_deinit(bel_peer *peer);

// Reads the value of the line "belfry-doctor NAME VALUE" of the output; false: no such line. A
// value that does not fit is cut.
bool bel_peer_value(const bel_peer *peer, const char *name, char *out_value, size_t size);

// Returns the last line of the peer's errors, or its other failure; it lives as long as the peer.
const char *bel_peer_problem(const bel_peer *peer, char text[160]);

#endif
