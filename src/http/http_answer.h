// Answers as bytes.
#ifndef BELFRY_HTTP_HTTP_ANSWER_H
#define BELFRY_HTTP_HTTP_ANSWER_H

#include "http/http_server.h"

// Appends the status line, the fields and, unless `without_body`, the body. `connection`: the value
// of the field Connection; NULL: without it.
void bel_http_answer_put(bel_str *out, const bel_http_answer *answer, const char *connection,
                         bool without_body);

#endif
