// Access log: a line of JSON for each request, appended to a file by one write.
#ifndef BELFRY_SERVE_ACCESS_LOG_H
#define BELFRY_SERVE_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_access_log bel_access_log;

// Errors of files.
bel_status *bel_access_log_open(const char *path, bel_access_log **out_log) BEL_MUST_USE;
void bel_access_log_close(bel_access_log *log); // accepts NULL

// Opens the path again, after it was renamed. If that fails, the old file stays in use.
bel_status *bel_access_log_reopen(bel_access_log *log) BEL_MUST_USE;

typedef struct bel_access_entry {
    const char *remote, *method, *path;
    const char *model; // NULL: none
    int64_t version;   // below 0: none
    int code;
    size_t bytes_in, bytes_out;
    int64_t spent_ns;
} bel_access_entry;

// Any thread. A line that cannot be written is lost, which is logged once.
void bel_access_log_write(bel_access_log *log, const bel_access_entry *entry);

#endif
