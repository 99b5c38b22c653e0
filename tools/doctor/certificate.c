// X.509 certificates by libcrypto. Keys use the curve P-256, signatures ECDSA with SHA-256, serial
// numbers 126 random bits: every TLS library accepts these. gRPC compares the address that it calls
// only with the alternative names of the presented certificate, so the common name is only for
// people. Each process of a job is client and server, so one certificate serves for both.
//
// Names are inserted into a text in OpenSSL's configuration language. No name that passes
// bel_certificate_is_name has special characters of that language. Keys never prompt for a
// passphrase on the terminal.
#include "doctor/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"

struct bel_certificate {
    char *path; // for messages
    X509 *x509;
    char last_day[16];
};

// Returns the oldest queued error of the library, which is the deepest cause, and clears the queue.
static bel_status *crypto_error(const char *what)
{
    char reason[160] = "no reason is given";
    unsigned long error = ERR_get_error();
    if (error != 0) ERR_error_string_n(error, reason, sizeof reason);
    ERR_clear_error();
    return BEL_ERR(BEL_UNKNOWN, "cannot %s: libcrypto: %s", what, reason);
}

// --- PEM ----------------------------------------------------------------------------------------

void bel_pem_pair_deinit(bel_pem_pair *pair)
{
    bel_free(pair->certificate);
    bel_free(pair->key);
    *pair = (bel_pem_pair){0};
}

static char *take_text(BIO *memory)
{
    char *bytes;
    long size = BIO_get_mem_data(memory, &bytes);
    char *text = bel_xstrndup(bytes, (size_t)size);
    BIO_free(memory);
    return text;
}

static bel_status *write_pair(X509 *x509, EVP_PKEY *key, bel_pem_pair *out_pair)
{
    BIO *certificate = BIO_new(BIO_s_mem()), *private = BIO_new(BIO_s_mem());
    bool good = certificate != NULL && private != NULL &&
                PEM_write_bio_X509(certificate, x509) == 1 &&
                PEM_write_bio_PKCS8PrivateKey(private, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (!good) {
        BIO_free(certificate);
        BIO_free(private);
        return crypto_error("write a certificate and its key");
    }
    out_pair->certificate = take_text(certificate);
    out_pair->key = take_text(private);
    return NULL;
}

static bel_status *read_file(const char *path, BIO **out_memory)
{
    char *text;
    size_t size;
    BEL_TRY(bel_file_read(path, &text, &size));
    BIO *memory = BIO_new(BIO_s_mem());
    bool good = memory != NULL && size <= INT32_MAX &&
                (size == 0 || BIO_write(memory, text, (int)size) == (int)size);
    bel_free(text);
    if (!good) {
        BIO_free(memory);
        return crypto_error("read a file into memory");
    }
    *out_memory = memory;
    return NULL;
}

static bel_status *holds_none(const char *path, const char *what)
{
    ERR_clear_error();
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s holds no %s in PEM form, or a damaged one: expected lines from \"-----BEGIN "
                   "%s-----\" to \"-----END %s-----\"",
                   path, what, what, what);
}

static bel_status *read_key(const char *path, EVP_PKEY **out_key)
{
    static char no_passphrase[] = "";
    BIO *memory = NULL;
    BEL_TRY(read_file(path, &memory));
    *out_key = PEM_read_bio_PrivateKey(memory, NULL, NULL, no_passphrase);
    BIO_free(memory);
    return *out_key != NULL ? NULL : holds_none(path, "PRIVATE KEY");
}

bel_status *bel_certificate_read(const char *path, bel_certificate **out_certificate)
{
    BIO *memory = NULL;
    BEL_TRY(read_file(path, &memory));
    X509 *x509 = PEM_read_bio_X509(memory, NULL, NULL, NULL);
    BIO_free(memory);
    if (x509 == NULL) return holds_none(path, "CERTIFICATE");
    bel_certificate *certificate = bel_xcalloc(1, sizeof *certificate);
    struct tm end = {0};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(x509), &end) == 1) {
        bel_snprintf(certificate->last_day, sizeof certificate->last_day, "%04d-%02d-%02d",
                     end.tm_year + 1900, end.tm_mon + 1, end.tm_mday);
    }
    certificate->path = bel_xstrdup(path);
    certificate->x509 = x509;
    *out_certificate = certificate;
    return NULL;
}

void bel_certificate_destroy(bel_certificate *certificate)
{
    if (certificate == NULL) return;
    X509_free(certificate->x509);
    bel_free(certificate->path);
    bel_free(certificate);
}

// --- Making -------------------------------------------------------------------------------------

typedef struct extension {
    int nid;
    const char *value;
} extension;

static bool add_extensions(X509 *x509, X509 *issuer, const extension *list, size_t count)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        X509_EXTENSION *made = X509V3_EXT_conf_nid(NULL, &context, list[i].nid, list[i].value);
        bool good = made != NULL && X509_add_ext(x509, made, -1) == 1;
        X509_EXTENSION_free(made);
        if (!good) return false;
    }
    return true;
}

static bool set_serial(X509 *x509)
{
    BIGNUM *number = BN_new();
    bool good = number != NULL && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != NULL;
    BN_free(number);
    return good;
}

static bool set_name(X509_NAME *name, const char *text)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                      0) == 1;
}

// Makes a certificate without extensions and signature; NULL: the error is in libcrypto's queue.
static X509 *certificate_begin(EVP_PKEY *key, const char *name, int64_t days)
{
    enum { EARLIER_SECONDS = 3600, VERSION_3 = 2 };
    X509 *x509 = X509_new();
    if (x509 == NULL) return NULL;
    bool good = X509_set_version(x509, VERSION_3) == 1 && set_serial(x509) &&
                X509_gmtime_adj(X509_getm_notBefore(x509), -EARLIER_SECONDS) != NULL &&
                X509_time_adj_ex(X509_getm_notAfter(x509), (int)days, 0, NULL) != NULL &&
                set_name(X509_get_subject_name(x509), name) && X509_set_pubkey(x509, key) == 1;
    if (good) return x509;
    X509_free(x509);
    return NULL;
}

bel_status *bel_certificate_make_authority(int64_t days, bel_pem_pair *out_pair)
{
    static const extension extensions[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        {NID_subject_key_identifier, "hash"},
    };
    unsigned long long number; // makes the names of two authorities differ
    BEL_TRY(bel_linux_random(&number, sizeof number));
    char name[64];
    bel_snprintf(name, sizeof name, "Belfry job authority %016llx", number);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = key != NULL ? certificate_begin(key, name, days) : NULL;
    bool good = x509 != NULL && X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 &&
                add_extensions(x509, x509, extensions, sizeof extensions / sizeof extensions[0]) &&
                X509_sign(x509, key, EVP_sha256()) > 0;
    bel_status *status =
        good ? write_pair(x509, key, out_pair) : crypto_error("make an authority's certificate");
    X509_free(x509);
    EVP_PKEY_free(key);
    return status;
}

static bool is_address(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static bel_status *sign_host(const bel_certificate *authority, EVP_PKEY *authority_key,
                             const char *names, int64_t days, bel_pem_pair *out_pair)
{
    const extension extensions[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth,clientAuth"},
        {NID_subject_alt_name, names},
        {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid:always"},
    };
    size_t count = sizeof extensions / sizeof extensions[0];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = key != NULL ? certificate_begin(key, "hosts of a Belfry job", days) : NULL;
    bool good = x509 != NULL &&
                X509_set_issuer_name(x509, X509_get_subject_name(authority->x509)) == 1 &&
                add_extensions(x509, authority->x509, extensions, count) &&
                X509_sign(x509, authority_key, EVP_sha256()) > 0;
    bel_status *status =
        good ? write_pair(x509, key, out_pair) : crypto_error("make a host's certificate");
    X509_free(x509);
    EVP_PKEY_free(key);
    return status;
}

bel_status *bel_certificate_make_host(const char *authority_path, const char *authority_key_path,
                                      const char *const *names, size_t name_count, int64_t days,
                                      bel_pem_pair *out_pair)
{
    bel_certificate *authority;
    EVP_PKEY *key = NULL;
    bel_str list = {0};
    BEL_TRY(bel_certificate_read(authority_path, &authority));
    bel_status *status = bel_certificate_check_key(authority, authority_key_path);
    if (status == NULL) status = read_key(authority_key_path, &key);
    for (size_t i = 0; i < name_count; i++) {
        bel_str_printf(&list, "%s%s:%s", i > 0 ? "," : "", is_address(names[i]) ? "IP" : "DNS",
                       names[i]);
    }
    if (status == NULL) status = sign_host(authority, key, list.text, days, out_pair);
    bel_str_deinit(&list);
    EVP_PKEY_free(key);
    bel_certificate_destroy(authority);
    return status;
}

// Returns the length of a label of letters, digits, '-' and '_', which does not end with '-' or
// '_'; 0: no label.
static size_t label_length(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t length = strspn(text, letters);
    bool good = length > 0 && length <= 63 && text[0] != '-' && text[length - 1] != '-';
    return good ? length : 0;
}

bool bel_certificate_is_name(const char *text)
{
    if (is_address(text)) return true;
    if (strlen(text) > 253) return false;
    const char *label = strncmp(text, "*.", 2) == 0 ? text + 2 : text;
    for (;;) {
        size_t length = label_length(label);
        if (length == 0) return false;
        // A name that ends with a number would be an invalid address.
        if (label[length] == '\0') return strspn(label, "0123456789") < length;
        if (label[length] != '.') return false;
        label += length + 1;
    }
}

// --- Checking -----------------------------------------------------------------------------------

bool bel_certificate_is_authority(const bel_certificate *certificate)
{
    return X509_check_ca(certificate->x509) != 0;
}

bool bel_certificate_has_begun(const bel_certificate *certificate)
{
    return X509_cmp_current_time(X509_get0_notBefore(certificate->x509)) < 0;
}

double bel_certificate_days_left(const bel_certificate *certificate)
{
    int days = 0, seconds = 0; // NULL is now
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate->x509)) != 1) {
        ERR_clear_error();
        return -1; // unreadable time
    }
    return days + seconds / 86400.0;
}

const char *bel_certificate_last_day(const bel_certificate *certificate)
{
    return certificate->last_day;
}

bool bel_certificate_names(const bel_certificate *certificate, const char *name)
{
    X509 *x509 = certificate->x509;
    int found = is_address(name) ? X509_check_ip_asc(x509, name, 0)
                                 : X509_check_host(x509, name, 0, 0, NULL);
    ERR_clear_error();
    return found == 1;
}

bel_status *bel_certificate_check_key(const bel_certificate *certificate, const char *key_path)
{
    EVP_PKEY *key;
    BEL_TRY(read_key(key_path, &key));
    bool good = X509_check_private_key(certificate->x509, key) == 1;
    ERR_clear_error();
    EVP_PKEY_free(key);
    if (good) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is not the key of the certificate in %s", key_path,
                   certificate->path);
}

// Reads the other certificates of a file, the chain from the first one to its authority.
static STACK_OF(X509) * read_chain(const char *path)
{
    STACK_OF(X509) *chain = sk_X509_new_null();
    BIO *memory = NULL;
    bel_status *status = read_file(path, &memory);
    bel_status_ignore(status); // the file was readable before
    X509 *x509;
    while (chain != NULL && memory != NULL &&
           (x509 = PEM_read_bio_X509(memory, NULL, NULL, NULL)) != NULL)
        if (sk_X509_push(chain, x509) <= 0) X509_free(x509);
    ERR_clear_error(); // error of the file's end
    BIO_free(memory);
    return chain;
}

bel_status *bel_certificate_check_signed(const bel_certificate *certificate,
                                         const char *authority_path)
{
    bel_certificate *authority; // for its error: the store reports none for a wrong file
    BEL_TRY(bel_certificate_read(authority_path, &authority));
    bel_certificate_destroy(authority);
    STACK_OF(X509) *chain = read_chain(certificate->path);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    bool ready = chain != NULL && store != NULL && context != NULL &&
                 X509_STORE_load_file(store, authority_path) == 1 &&
                 X509_STORE_set_flags(store, X509_V_FLAG_NO_CHECK_TIME) == 1 &&
                 X509_STORE_CTX_init(context, store, certificate->x509, chain) == 1;
    bel_status *status = NULL;
    if (!ready) {
        status = crypto_error("look for an authority");
    } else if (X509_verify_cert(context) != 1) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s is not signed by an authority in %s: %s",
                         certificate->path, authority_path,
                         X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)));
    }
    ERR_clear_error();
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    sk_X509_pop_free(chain, X509_free);
    return status;
}
