// Certificates (X.509) and their keys in PEM files: made for `belfry certs`, looked at for `belfry
// doctor --cluster`. certificate.c is the only file that knows libcrypto.
//
// Thread-compatible.
#ifndef BELFRY_TOOLS_CERTIFICATE_H
#define BELFRY_TOOLS_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// --- Making -------------------------------------------------------------------------------------

// A certificate and its private key, as texts in PEM form.
typedef struct bel_pem_pair {
    char *certificate, *key;
} bel_pem_pair;

void bel_pem_pair_deinit(bel_pem_pair *pair);

// An authority of its own, with a new key. Valid from an hour before now, as clocks of hosts
// differ, for so many days from now.
bel_status *bel_certificate_make_authority(int64_t days, bel_pem_pair *out_pair) BEL_MUST_USE;

// A certificate for all of the names, which are DNS names and addresses (bel_certificate_is_name),
// for servers and clients, signed by the authority in these two files. INVALID_ARGUMENT: the key is
// not that of the authority's certificate; the files hold something else.
bel_status *bel_certificate_make_host(const char *authority_path, const char *authority_key_path,
                                      const char *const *names, size_t name_count, int64_t days,
                                      bel_pem_pair *out_pair) BEL_MUST_USE;

// True for an IPv4 or IPv6 address without port and brackets, and for a DNS name, whose first label
// may be "*".
bool bel_certificate_is_name(const char *text);

// --- Looking at ---------------------------------------------------------------------------------

typedef struct bel_certificate bel_certificate;

// The first certificate of a file. INVALID_ARGUMENT: the file holds none.
bel_status *bel_certificate_read(const char *path, bel_certificate **out_certificate) BEL_MUST_USE;
void bel_certificate_destroy(bel_certificate *certificate);

bool bel_certificate_is_authority(const bel_certificate *certificate);
bool bel_certificate_has_begun(const bel_certificate *certificate);
double bel_certificate_days_left(const bel_certificate *certificate); // below 0: it is over

// The day on which it ends, "2027-11-24"; lives as long as the certificate.
const char *bel_certificate_last_day(const bel_certificate *certificate);

// True when a connection to this name or address may show the certificate.
bool bel_certificate_names(const bel_certificate *certificate, const char *name);

// INVALID_ARGUMENT: the file's key is not that of the certificate, or it holds none.
bel_status *bel_certificate_check_key(const bel_certificate *certificate,
                                      const char *key_path) BEL_MUST_USE;

// INVALID_ARGUMENT: no authority of the file has signed it. Whether anything is over does not
// count.
bel_status *bel_certificate_check_signed(const bel_certificate *certificate,
                                         const char *authority_path) BEL_MUST_USE;

#endif
