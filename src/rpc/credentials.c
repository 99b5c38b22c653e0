// gRPC credentials from PEM files, which are looked at before gRPC gets them (base/pem.h): it would
// report a file with other content only as connections that fail. gRPC copies the texts, so keys
// are freed at once.
#include "rpc/credentials.h"

#include "base/pem.h"
#include "rpc/api.h"

// --- Files ---------------------------------------------------------------------------------------

typedef struct pem {
    char *ca, *certificate, *key;
} pem;

static void free_pem(pem *p)
{
    bel_pem_free(p->ca);
    bel_pem_free(p->certificate);
    bel_pem_free(p->key);
}

static bel_status *read_pem(const bel_rpc_tls *tls, pem *out_pem)
{
    if (tls->ca != NULL) BEL_TRY(bel_pem_read(tls->ca, "CERTIFICATE", &out_pem->ca));
    BEL_TRY(bel_pem_read(tls->certificate, "CERTIFICATE", &out_pem->certificate));
    return bel_pem_read(tls->key, "PRIVATE KEY", &out_pem->key);
}

// --- Credentials ---------------------------------------------------------------------------------

bel_status *bel_rpc_channel_credentials(const bel_rpc_tls *tls,
                                        grpc_channel_credentials **out_channel)
{
    if (tls->certificate == NULL) {
        *out_channel = bel_grpc.insecure_credentials_create();
        return NULL;
    }
    pem p = {0};
    bel_status *status = read_pem(tls, &p);
    if (status == NULL) {
        grpc_ssl_pem_key_cert_pair pair = {.private_key = p.key, .cert_chain = p.certificate};
        *out_channel = bel_grpc.ssl_credentials_create(p.ca, &pair, NULL, NULL);
    }
    free_pem(&p);
    return status;
}

bel_status *bel_rpc_server_credentials(const bel_rpc_tls *tls, grpc_server_credentials **out_server)
{
    if (tls->certificate == NULL) {
        *out_server = bel_grpc.insecure_server_credentials_create();
        return NULL;
    }
    pem p = {0};
    bel_status *status = read_pem(tls, &p);
    if (status == NULL) {
        grpc_ssl_pem_key_cert_pair pair = {.private_key = p.key, .cert_chain = p.certificate};
        *out_server = bel_grpc.ssl_server_credentials_create_ex(
            p.ca, &pair, 1,
            p.ca != NULL ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            NULL);
    }
    free_pem(&p);
    return status;
}
