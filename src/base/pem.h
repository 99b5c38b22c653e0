// Check of PEM files before a library of TLS gets them: gRPC reports no file with another content,
// and OpenSSL does not name the file.
#ifndef BELFRY_BASE_PEM_H
#define BELFRY_BASE_PEM_H

#include "belfry/status.h"

// Reads a file that has a block `what`: "CERTIFICATE", "PRIVATE KEY". Free with bel_pem_free.
// INVALID_ARGUMENT: it has none. Errors of files.
bel_status *bel_pem_read(const char *path, const char *what, char **out_text) BEL_MUST_USE;

// The same without the text.
bel_status *bel_pem_check(const char *path, const char *what) BEL_MUST_USE;

void bel_pem_free(char *text); // clears it first; accepts NULL

#endif
