// gRPC credentials from PEM files, after bel_rpc_begin (rpc/api.h).
#ifndef BELFRY_RPC_CREDENTIALS_H
#define BELFRY_RPC_CREDENTIALS_H

#include <grpc/grpc.h>
#include <stdbool.h>

#include "belfry/status.h"

typedef struct bel_rpc_tls {
    const char *ca, *certificate, *key; // PEM files; certificate NULL: no TLS
} bel_rpc_tls;

// Creates the credentials of a channel: without TLS if there is no `certificate`. It shows its
// certificate, and accepts servers of the authority. INVALID_ARGUMENT: a file does not hold what it
// should.
bel_status *bel_rpc_channel_credentials(const bel_rpc_tls *tls,
                                        grpc_channel_credentials **out_channel) BEL_MUST_USE;

// The same of a server. With `ca`, clients must show a certificate of that authority.
bel_status *bel_rpc_server_credentials(const bel_rpc_tls *tls,
                                       grpc_server_credentials **out_server) BEL_MUST_USE;

#endif
