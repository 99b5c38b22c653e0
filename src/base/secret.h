// A job's secret, which every call must show: where it comes from, what it must be like, and that
// neither it nor a private key may be read by every user of the host.
#ifndef BELFRY_BASE_SECRET_H
#define BELFRY_BASE_SECRET_H

#include "belfry/status.h"

// What a process says that would listen without a secret where other hosts can reach it; with
// the length and the text of the host, and the port.
#define BEL_SECRET_MISSING                                                                         \
    "whoever reaches %.*s port %s could take part in this job, as it has no secret; expected the " \
    "same in the environment of all its processes: BELFRY_SECRET_FILE=belfry.secret (hint: "       \
    "(umask 077; openssl rand -hex 32 > belfry.secret)), or the secret itself in BELFRY_SECRET"

enum { BEL_SECRET_LEAST_BYTES = 16, BEL_SECRET_MOST_BYTES = 128 };

// What the environment says: BELFRY_SECRET, or the content of the file that BELFRY_SECRET_FILE
// names. *out_secret is "" where it says nothing; free with bel_free. INVALID_ARGUMENT: both, or
// what the two functions below refuse; errors of files.
bel_status *bel_secret_from_environment(char **out_secret) BEL_MUST_USE;

// Reads a file: one line, white space behind it is not part of it. `what` names the file in
// errors: "secret_file". Errors as above. Free with bel_free.
bel_status *bel_secret_read(const char *path, const char *what, char **out_secret) BEL_MUST_USE;

// A new secret: 32 random bytes in hexadecimal. Free with bel_free.
bel_status *bel_secret_create(char **out_secret) BEL_MUST_USE;

// INVALID_ARGUMENT: shorter or longer, or not of printing ASCII characters. `source` is where it
// comes from: "secret_file s.txt", "environment variable BELFRY_SECRET".
bel_status *bel_secret_check(const char *secret, const char *source) BEL_MUST_USE;

// INVALID_ARGUMENT: users other than its owner and group may read or write the file. A file that is
// not there is reported by the code that opens it. NULL is fine.
bel_status *bel_private_file_check(const char *path, const char *what) BEL_MUST_USE;

#endif
