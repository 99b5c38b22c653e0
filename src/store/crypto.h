// Hashes and signatures by libcrypto, whose types appear only in crypto.c. Thread-safe.
#ifndef BELFRY_STORE_CRYPTO_H
#define BELFRY_STORE_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"

enum { BEL_SHA256_BYTES = 32, BEL_MD5_BYTES = 16, BEL_HEX_BYTES = 65, BEL_MD5_BASE64_BYTES = 25 };

// Keeps libcrypto until the process is gone: otherwise its end would free it under threads that
// still transfer. Before the first use; any thread, any number of times.
void bel_crypto_begin(void);

// Hash of bytes that come in pieces. End it with one of the two functions after it; `out_text` has
// room for BEL_HEX_BYTES.
typedef struct bel_digest bel_digest;
typedef enum bel_digest_kind { BEL_DIGEST_MD5, BEL_DIGEST_SHA1, BEL_DIGEST_SHA256 } bel_digest_kind;
bel_digest *bel_digest_create(bel_digest_kind kind);
void bel_digest_update(bel_digest *digest, const void *data, size_t size);
void bel_digest_finish_hex(bel_digest *digest, char *out_text); // in lower case
void bel_digest_finish_base64(bel_digest *digest, char *out_text);

// SHA-256 of one block, in hexadecimal.
void bel_sha256_hex(const void *data, size_t size, char out_text[BEL_HEX_BYTES]);

void bel_hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                     unsigned char out_hash[BEL_SHA256_BYTES]);

void bel_hex(const unsigned char *bytes, size_t size, char *out_text); // 2 · size + 1 bytes

// Appends base64; `for_url`: the alphabet of URLs, without padding.
void bel_base64(bel_str *out, const void *data, size_t size, bool for_url);

// Appends the signature of `text` by RS256 (RSASSA-PKCS1-v1_5 with SHA-256), in base64 for URLs.
// `pem` is a private key. DATA_LOSS: it is malformed; the message does not contain it.
bel_status *bel_rs256_sign(const char *pem, const char *text, bel_str *out) BEL_MUST_USE;

#endif
