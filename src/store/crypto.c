// Hashes and signatures by libcrypto: see crypto.h. MD5 serves as a checksum that every store
// compares, never as a protection.
#include "store/crypto.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

static pthread_once_t begin_once = PTHREAD_ONCE_INIT;

// Without effect if another library has begun libcrypto before.
static void begin(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

void bel_crypto_begin(void)
{
    pthread_once(&begin_once, begin);
}

struct bel_digest {
    EVP_MD_CTX *context;
};

bel_digest *bel_digest_create(bel_digest_kind kind)
{
    bel_crypto_begin();
    bel_digest *d = bel_xmalloc(sizeof *d);
    d->context = EVP_MD_CTX_new();
    const EVP_MD *of = kind == BEL_DIGEST_MD5    ? EVP_md5()
                       : kind == BEL_DIGEST_SHA1 ? EVP_sha1()
                                                 : EVP_sha256();
    if (d->context == NULL || EVP_DigestInit_ex(d->context, of, NULL) != 1)
        BEL_UNREACHABLE("libcrypto of Debian has MD5, SHA-1 and SHA-256");
    return d;
}

void bel_digest_update(bel_digest *digest, const void *data, size_t size)
{
    BEL_CHECK(EVP_DigestUpdate(digest->context, data, size) == 1);
}

// Returns the size of the hash, and frees the digest.
static size_t digest_end(bel_digest *digest, unsigned char out_hash[EVP_MAX_MD_SIZE])
{
    unsigned size = 0;
    BEL_CHECK(EVP_DigestFinal_ex(digest->context, out_hash, &size) == 1);
    EVP_MD_CTX_free(digest->context);
    bel_free(digest);
    return size;
}

void bel_digest_finish_hex(bel_digest *digest, char *out_text)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    size_t size = digest_end(digest, hash);
    bel_hex(hash, size, out_text);
}

void bel_digest_finish_base64(bel_digest *digest, char *out_text)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    size_t size = digest_end(digest, hash);
    EVP_EncodeBlock((unsigned char *)out_text, hash, (int)size);
}

void bel_sha256_hex(const void *data, size_t size, char out_text[BEL_HEX_BYTES])
{
    bel_digest *d = bel_digest_create(BEL_DIGEST_SHA256);
    bel_digest_update(d, data, size);
    bel_digest_finish_hex(d, out_text);
}

void bel_hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                     unsigned char out_hash[BEL_SHA256_BYTES])
{
    BEL_CHECK(key_size <= INT_MAX);
    BEL_CHECK(HMAC(EVP_sha256(), key, (int)key_size, data, size, out_hash, NULL) != NULL);
}

void bel_hex(const unsigned char *bytes, size_t size, char *out_text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        out_text[2 * i] = digits[bytes[i] >> 4];
        out_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    out_text[2 * size] = '\0';
}

void bel_base64(bel_str *out, const void *data, size_t size, bool for_url)
{
    char *at = bel_str_room(out, (size + 2) / 3 * 4 + 1);
    size_t length = (size_t)EVP_EncodeBlock((unsigned char *)at, data, (int)size);
    if (for_url) {
        while (length > 0 && at[length - 1] == '=')
            length--;
        for (size_t i = 0; i < length; i++)
            at[i] = (char)(at[i] == '+' ? '-' : at[i] == '/' ? '_' : at[i]);
    }
    at[length] = '\0';
    out->length += length;
}

bel_status *bel_rs256_sign(const char *pem, const char *text, bel_str *out)
{
    bel_status *status = NULL;
    unsigned char *signature = NULL;
    size_t size = 0;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const unsigned char *data = (const unsigned char *)text;
    bool good = key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && context != NULL &&
                EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(context, NULL, &size, data, strlen(text)) == 1;
    if (good) {
        signature = bel_xmalloc(size);
        good = EVP_DigestSign(context, signature, &size, data, strlen(text)) == 1;
    }
    if (good) bel_base64(out, signature, size, true);
    if (!good) status = BEL_ERR(BEL_DATA_LOSS, "expected an RSA private key in PEM");
    bel_free(signature);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return status;
}
