// Server of models: REST of two protocols, gRPC, metrics, health, a page (docs/serve.md).
#ifndef BELFRY_SERVE_SERVER_H
#define BELFRY_SERVE_SERVER_H

#include "serve/service.h"

typedef struct bel_server_config {
    bel_service_config service; // `wait_ms` is also the most time of a request's bytes
    const char *address;        // "127.0.0.1"
    int port;                   // 0: the system chooses one; below 0: no HTTP
    int grpc_port;              // the same for gRPC
    int idle_ms;                // most time of a connection between requests
    int connections;            // at the same time
    // PEM files; certificate NULL: no TLS; ca NULL: any client.
    const char *tls_ca, *tls_certificate, *tls_key;
} bel_server_config;

typedef struct bel_server bel_server;

// Starts it; the models must outlive it, and no more are added. UNAVAILABLE: it cannot listen.
// Otherwise errors of files and threads.
bel_status *bel_server_start(const bel_server_config *config, bel_models *models,
                             bel_server **out_server) BEL_MUST_USE;

int bel_server_port(const bel_server *server);      // below 0: no HTTP
int bel_server_grpc_port(const bel_server *server); // below 0: no gRPC

// bel_service_reopen.
void bel_server_reopen(bel_server *server);

// Stops: readiness ends first, requests in progress are answered for at most this long. Then those
// that wait for a slot get UNAVAILABLE, and runs in progress are waited for. Returns the number of
// requests that lost their answers.
int bel_server_stop(bel_server *server, int most_ms);

#endif
