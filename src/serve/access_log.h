// Access log: a line of JSON for each request, appended to a file by one write.
#ifndef BELFRY_SERVE_ACCESS_LOG_H
#define BELFRY_SERVE_ACCESS_LOG_H

#include "http/http_server.h"

typedef struct bel_access_log bel_access_log;

// Errors of files.
bel_status *bel_access_log_open(const char *path, bel_access_log **out_log) BEL_MUST_USE;
void bel_access_log_close(bel_access_log *log); // accepts NULL

// Opens the path again, after it was renamed. If that fails, the old file stays in use.
bel_status *bel_access_log_reopen(bel_access_log *log) BEL_MUST_USE;

// Any thread. `model` NULL: none; `version` below 0: none. A line that cannot be written is lost,
// which is logged once.
void bel_access_log_write(bel_access_log *log, const bel_http_request *request,
                          const bel_http_answer *answer, const char *model, int64_t version,
                          int64_t spent_ns);

#endif
