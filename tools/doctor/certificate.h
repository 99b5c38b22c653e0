// X.509 certificates and their keys in PEM files: `belfry certs` makes them, `belfry doctor
// --cluster` checks them. Only certificate.c uses libcrypto.
//
// Thread-compatible.
#ifndef BELFRY_TOOLS_DOCTOR_CERTIFICATE_H
#define BELFRY_TOOLS_DOCTOR_CERTIFICATE_H

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

// Makes a self-signed authority with a new key, valid for `days` from now. Its validity begins an
// hour ago, because clocks of hosts differ.
bel_status *bel_certificate_make_authority(int64_t days, bel_pem_pair *out_pair) BEL_MUST_USE;

// Makes a certificate for all of the names, DNS names and addresses (bel_certificate_is_name), for
// servers and clients. The authority in these two files signs it. INVALID_ARGUMENT: the key does
// not belong to the authority's certificate, or the files hold something else.
bel_status *bel_certificate_make_host(const char *authority_path, const char *authority_key_path,
                                      const char *const *names, size_t name_count, int64_t days,
                                      bel_pem_pair *out_pair) BEL_MUST_USE;

// Returns true for an IPv4 or IPv6 address without port and brackets, and for a DNS name. The first
// label of a DNS name may be "*".
bool bel_certificate_is_name(const char *text);

// --- Checking -----------------------------------------------------------------------------------

typedef struct bel_certificate bel_certificate;

// Reads the first certificate of a file. INVALID_ARGUMENT: the file has no certificate.
bel_status *bel_certificate_read(const char *path, bel_certificate **out_certificate) BEL_MUST_USE;
void bel_certificate_destroy(bel_certificate *certificate);

bool bel_certificate_is_authority(const bel_certificate *certificate);
bool bel_certificate_has_begun(const bel_certificate *certificate);
double bel_certificate_days_left(const bel_certificate *certificate); // below 0: expired

// Returns the last day of validity, "2027-11-24"; it lives as long as the certificate.
const char *bel_certificate_last_day(const bel_certificate *certificate);

// Returns true if a connection to this name or address may present the certificate.
bool bel_certificate_names(const bel_certificate *certificate, const char *name);

// INVALID_ARGUMENT: the file's key does not belong to the certificate, or the file has no key.
bel_status *bel_certificate_check_key(const bel_certificate *certificate,
                                      const char *key_path) BEL_MUST_USE;

// INVALID_ARGUMENT: no authority of the file has signed the certificate. Expiry is not checked.
bel_status *bel_certificate_check_signed(const bel_certificate *certificate,
                                         const char *authority_path) BEL_MUST_USE;

#endif
