// HTTP server that answers GET /metrics with the text set last.
#ifndef BELFRY_MONITORING_METRICS_SERVER_H
#define BELFRY_MONITORING_METRICS_SERVER_H

#include "belfry/status.h"

typedef struct bel_metrics_server bel_metrics_server;

// Listens on `address` ("127.0.0.1", "0.0.0.0", "[::]"); with port 0 the system chooses one.
// Answers on separate threads. UNAVAILABLE: the port is in use, or the address is not this host's.
bel_status *bel_metrics_server_start(const char *address, int port,
                                     bel_metrics_server **out_server) BEL_MUST_USE;

int bel_metrics_server_port(const bel_metrics_server *server); // Returns the listening port.

// Thread-safe. Copies the text.
void bel_metrics_server_set(bel_metrics_server *server, const char *text);

void bel_metrics_server_stop(bel_metrics_server *server); // waits for answers; NULL is fine

#endif
