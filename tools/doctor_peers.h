// Asking other hosts by ssh, side by side: a shell script there, what it prints comes back.
#ifndef BELFRY_TOOLS_DOCTOR_PEERS_H
#define BELFRY_TOOLS_DOCTOR_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "belfry/status.h"

enum { BEL_PEERS_CONNECT_SECS = 5, BEL_PEERS_MOST_SECS = 10, BEL_PEERS_AT_ONCE = 32 };

// Begins the lines that count among what is printed: a login shell may print others.
#define BEL_PEERS_WORD "belfry-doctor "

typedef struct bel_peer {
    const char *destination; // in: what ssh is given, "b" or "user@b"
    bel_str output, errors;  // what was printed to stdout, and to stderr: its beginning
    double heard_at;         // wall clock when the first line that counts had come; 0: none has
    double answered_secs;    // from the start of ssh to that
    int code;                // ssh's exit code, 255 when it reached nobody; -1: it could not run
    bool timed_out;          // it was killed after BEL_PEERS_MOST_SECS
} bel_peer;

// The program of the variable BELFRY_SSH, else ssh; free with bel_free. NOT_FOUND.
bel_status *bel_peers_program(char **out_path) BEL_MUST_USE;

// Runs `script` at all peers, BEL_PEERS_AT_ONCE at a time, and waits for their ends. Whoever asks
// deinits the peers.
void bel_peers_ask(const char *program, bel_peer *peers, size_t count, const char *script);
void bel_peer_deinit(bel_peer *peer);

// The value of the line "belfry-doctor NAME VALUE" of the output; false: there is none. A value is
// cut where it does not fit.
bool bel_peer_value(const bel_peer *peer, const char *name, char *out_value, size_t size);

// The last line of its errors, or what else became of it; lives as long as the peer.
const char *bel_peer_problem(const bel_peer *peer, char text[160]);

#endif
