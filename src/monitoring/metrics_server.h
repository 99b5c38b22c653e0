// An HTTP port that answers GET /metrics with the newest text it was given.
#ifndef BELFRY_MONITORING_METRICS_SERVER_H
#define BELFRY_MONITORING_METRICS_SERVER_H

#include "belfry/status.h"

typedef struct bel_metrics_server bel_metrics_server;

// Listens on `address` ("127.0.0.1", "0.0.0.0", "[::]"); with port 0 the system chooses one.
// Answers on threads of its own. UNAVAILABLE: the port is taken, or the address is none of this
// host.
bel_status *bel_metrics_server_start(const char *address, int port,
                                     bel_metrics_server **out_server) BEL_MUST_USE;

int bel_metrics_server_port(const bel_metrics_server *server); // the one that it listens on

// Thread-safe. The text is copied.
void bel_metrics_server_set(bel_metrics_server *server, const char *text);

void bel_metrics_server_stop(bel_metrics_server *server); // waits for answers; NULL is fine

#endif
