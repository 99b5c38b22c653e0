// gRPC does not report files with other content: calls just get no answer. So the files are looked
// at before gRPC gets them.
#include "rpc/credentials.h"

#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"

static pthread_once_t ground_once = PTHREAD_ONCE_INIT;

// gRPC's messages are only for debugging: relevant errors come as a status.
static void log_from_grpc(gpr_log_func_args *args)
{
    bel_log_write(BEL_LOG_DEBUG, "grpc: %s", args->message);
}

static void prepare_ground(void)
{
    setenv("GRPC_EXPERIMENTS", "tcp_frame_size_tuning,tcp_rcv_lowat", 0);
    gpr_set_log_function(log_from_grpc);
}

bel_status *bel_rpc_begin(void)
{
    enum { THREADS = 10 }; // gRPC's number; if it cannot start one, it hangs silently
    BEL_TRY(bel_thread_check_room(THREADS));
    pthread_once(&ground_once, prepare_ground);
    grpc_init();
    return NULL;
}

// --- Files ---------------------------------------------------------------------------------------

typedef struct pem {
    char *ca, *certificate, *key;
} pem;

static void free_pem(pem *p)
{
    bel_free(p->ca);
    bel_free(p->certificate);
    bel_free(p->key);
}

// True if the text has a line `-----BEGIN … what` and an END line after it.
static bool holds_block(const char *text, const char *what)
{
    static const char begin[] = "-----BEGIN ";
    for (const char *line = strstr(text, begin); line != NULL; line = strstr(line + 1, begin)) {
        const char *end = line + strcspn(line, "\r\n"), *found = strstr(line, what);
        if (found != NULL && found < end && strstr(end, "-----END ") != NULL) return true;
    }
    return false;
}

static bel_status *read_pem_file(const char *path, const char *what, char **out_text)
{
    size_t size;
    BEL_TRY_CTX(bel_file_read(path, out_text, &size), "TLS");
    if (holds_block(*out_text, what)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "TLS: %s holds no %s in PEM form: expected lines from \"-----BEGIN %s-----\" to "
                   "\"-----END %s-----\"",
                   path, what, what, what);
}

static bel_status *read_pem(const bel_rpc_tls *tls, pem *out_pem)
{
    if (tls->ca != NULL) BEL_TRY(read_pem_file(tls->ca, "CERTIFICATE", &out_pem->ca));
    BEL_TRY(read_pem_file(tls->certificate, "CERTIFICATE", &out_pem->certificate));
    return read_pem_file(tls->key, "PRIVATE KEY", &out_pem->key);
}

// --- Credentials ---------------------------------------------------------------------------------

bel_status *bel_rpc_channel_credentials(const bel_rpc_tls *tls,
                                        grpc_channel_credentials **out_channel)
{
    if (tls->certificate == NULL) {
        *out_channel = grpc_insecure_credentials_create();
        return NULL;
    }
    pem p = {0};
    bel_status *status = read_pem(tls, &p);
    if (status == NULL) {
        grpc_ssl_pem_key_cert_pair pair = {.private_key = p.key, .cert_chain = p.certificate};
        *out_channel = grpc_ssl_credentials_create(p.ca, &pair, NULL, NULL);
    }
    free_pem(&p);
    return status;
}

bel_status *bel_rpc_server_credentials(const bel_rpc_tls *tls, grpc_server_credentials **out_server)
{
    if (tls->certificate == NULL) {
        *out_server = grpc_insecure_server_credentials_create();
        return NULL;
    }
    pem p = {0};
    bel_status *status = read_pem(tls, &p);
    if (status == NULL) {
        grpc_ssl_pem_key_cert_pair pair = {.private_key = p.key, .cert_chain = p.certificate};
        *out_server = grpc_ssl_server_credentials_create_ex(
            p.ca, &pair, 1,
            p.ca != NULL ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            NULL);
    }
    free_pem(&p);
    return status;
}
