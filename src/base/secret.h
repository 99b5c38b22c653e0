// Secret of a job or a server, which every call must present: its sources, its syntax, and the
// check that not every user of the host can read it or a private key.
#ifndef BELFRY_BASE_SECRET_H
#define BELFRY_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

// Message of a process that would listen without a secret where other hosts can reach it; with the
// length and the text of the host, and the port.
#define BEL_SECRET_MISSING                                                                         \
    "any process that reaches %.*s port %s could take part in this job, as it has no secret; "     \
    "expected the same in the environment of all its processes: "                                  \
    "BELFRY_SECRET_FILE=belfry.secret (hint: (umask 077; openssl rand -hex 32 > "                  \
    "belfry.secret)), or the secret itself in BELFRY_SECRET"

enum { BEL_SECRET_LEAST_BYTES = 16, BEL_SECRET_MOST_BYTES = 128 };

// Reads the secret in BELFRY_SECRET, or in the file that BELFRY_SECRET_FILE names. *out_secret is
// "" if both are unset; free with bel_free. INVALID_ARGUMENT: both are set, or the two functions
// below refuse it; errors of files.
bel_status *bel_secret_from_environment(char **out_secret) BEL_MUST_USE;

// Reads a file: one line, without trailing white space. `what` names the file in errors:
// "secret_file". Free with bel_free. INVALID_ARGUMENT: it has another content, or
// bel_private_file_check refuses it; errors of files.
bel_status *bel_secret_read(const char *path, const char *what, char **out_secret) BEL_MUST_USE;

// True if the bytes are the secret. The time depends on their number only.
bool bel_secret_matches(const char *secret, const void *shown, size_t shown_bytes);

// A new secret: 32 random bytes in hexadecimal. Free with bel_free.
bel_status *bel_secret_create(char **out_secret) BEL_MUST_USE;

// INVALID_ARGUMENT: users other than its owner and group may read or write the file. The code that
// opens the file reports a missing one. Accepts NULL.
bel_status *bel_private_file_check(const char *path, const char *what) BEL_MUST_USE;

#endif
