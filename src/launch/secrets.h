// What a job's secret and a private key must be like: long enough not to be guessed, and not
// readable for every user of the host.
#ifndef BELFRY_LAUNCH_SECRETS_H
#define BELFRY_LAUNCH_SECRETS_H

#include "belfry/status.h"

enum { BEL_SECRET_LEAST_BYTES = 16, BEL_SECRET_MOST_BYTES = 128 };

// INVALID_ARGUMENT: shorter or longer, or not of printing ASCII characters. `source` is where it
// comes from: "secret_file s.txt", "environment variable BELFRY_SECRET".
bel_status *bel_secret_check(const char *secret, const char *source) BEL_MUST_USE;

// INVALID_ARGUMENT: users other than its owner and group may read or write the file. A file that is
// not there is reported by the code that opens it. NULL is fine.
bel_status *bel_private_file_check(const char *path, const char *what) BEL_MUST_USE;

#endif
