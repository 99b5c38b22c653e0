// Credentials for gs URLs: see credentials.h. The places are HMAC keys in the environment, the file
// of GOOGLE_APPLICATION_CREDENTIALS, the file that `gcloud auth application-default login` writes,
// and the metadata server. An emulator gets only credentials that the environment names.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/credentials.h"
#include "store/crypto.h"
#include "store/profile.h"

#define TOKEN_URL "https://oauth2.googleapis.com/token"
#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"

enum { ANSWER_MOST = 1 << 18, LIFE_SECS = 3600 };

static bel_status *from_keys(bel_credentials **out)
{
    const char *key_id = bel_store_env("GS_ACCESS_KEY_ID");
    const char *secret = bel_store_env("GS_SECRET_ACCESS_KEY");
    if (key_id == NULL && secret == NULL) return NULL;
    if (key_id == NULL || secret == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s is set, and %s is not",
                       key_id != NULL ? "GS_ACCESS_KEY_ID" : "GS_SECRET_ACCESS_KEY",
                       key_id != NULL ? "GS_SECRET_ACCESS_KEY" : "GS_ACCESS_KEY_ID");
    bel_credentials *c = bel_xcalloc(1, sizeof *c);
    c->key_id = bel_xstrdup(key_id);
    c->secret = bel_xstrdup(secret);
    c->source = "the environment";
    *out = c;
    return NULL;
}

// {"access_token": …, "expires_in": …}
static bel_status *take_token(const bel_str *answer, const char *what, bel_credentials **out)
{
    bel_json *json;
    const char *token;
    double secs;
    BEL_TRY(bel_json_parse_secret(answer->text, answer->length, what, &json));
    const bel_json_value *root = bel_json_root(json);
    bool good =
        bel_json_string(root, "access_token", &token) && bel_json_f64(root, "expires_in", &secs);
    if (good) {
        bel_credentials *c = bel_xcalloc(1, sizeof *c);
        c->bearer = bel_xstrdup(token);
        c->expires = bel_clock_wall() + secs;
        c->source = what;
        *out = c;
    }
    bel_json_destroy(json);
    return good ? NULL
                : BEL_ERR(BEL_PERMISSION_DENIED, "%s: expected access_token and expires_in", what);
}

static bel_status *ask_for_token(const char *url, const bel_str *form, int64_t deadline_ns,
                                 bel_credentials **out)
{
    static const char what[] = "Google's OAuth server";
    bel_headers headers = {0};
    bel_str answer = {0};
    bel_headers_add(&headers, "content-type", "application/x-www-form-urlencoded");
    bel_http_request request = {.method = "POST",
                                .url = url,
                                .headers = &headers,
                                .body = {.data = form->text, .size = form->length},
                                .most = ANSWER_MOST,
                                .connect_secs = 5,
                                .stall_secs = 10};
    bel_status *status = bel_credentials_ask(&request, what, 5, deadline_ns, &answer);
    if (status == NULL) status = take_token(&answer, what, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&answer);
    return status;
}

// --- Files

// Makes a JSON web token, signed by the account's key.
static bel_status *make_grant(const char *email, const char *pem, const char *url, bel_str *out)
{
    bel_str claims = {0};
    int64_t now = (int64_t)bel_clock_wall();
    static const char head[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
    bel_str_puts(&claims, "{\"iss\":");
    bel_json_write_string(&claims, email);
    bel_str_puts(&claims, ",\"scope\":\"" SCOPE "\",\"aud\":");
    bel_json_write_string(&claims, url);
    bel_str_printf(&claims, ",\"iat\":%lld,\"exp\":%lld}", (long long)now,
                   (long long)now + LIFE_SECS);
    bel_str token = {0};
    bel_base64(&token, head, sizeof head - 1, true);
    bel_str_puts(&token, ".");
    bel_base64(&token, claims.text, claims.length, true);
    char *text = bel_xstrdup(token.text);
    bel_str_puts(&token, ".");
    bel_status *status = bel_rs256_sign(pem, text, &token);
    if (status == NULL)
        bel_str_printf(
            out,
            "grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Ajwt-bearer&assertion=%s",
            token.text);
    bel_free(text);
    bel_str_deinit(&token);
    bel_str_deinit(&claims);
    return status;
}

static bel_status *use_service_account(const bel_json_value *root, const char *path,
                                       int64_t deadline_ns, bel_credentials **out)
{
    const char *email, *pem, *url = TOKEN_URL;
    if (!bel_json_string(root, "client_email", &email) ||
        !bel_json_string(root, "private_key", &pem))
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s: expected client_email and private_key", path);
    bel_json_string(root, "token_uri", &url);
    bel_str form = {0};
    bel_status *status = make_grant(email, pem, url, &form);
    if (status != NULL)
        status = bel_status_wrap(status, __FILE__, __LINE__, "%s: private_key", path);
    if (status == NULL) status = ask_for_token(url, &form, deadline_ns, out);
    bel_str_deinit(&form);
    return status;
}

static bel_status *use_user(const bel_json_value *root, const char *path, int64_t deadline_ns,
                            bel_credentials **out)
{
    static const char *const names[] = {"client_id", "client_secret", "refresh_token"};
    const char *value, *url = TOKEN_URL;
    bel_str form = {0};
    bel_str_puts(&form, "grant_type=refresh_token");
    bel_json_string(root, "token_uri", &url);
    bel_status *status = NULL;
    for (int i = 0; i < 3 && status == NULL; i++) {
        if (!bel_json_string(root, names[i], &value)) {
            status = BEL_ERR(BEL_PERMISSION_DENIED, "%s: expected %s", path, names[i]);
            break;
        }
        bel_str_printf(&form, "&%s=", names[i]);
        bel_url_encode(&form, value, false);
    }
    if (status == NULL) status = ask_for_token(url, &form, deadline_ns, out);
    bel_str_deinit(&form);
    return status;
}

static bel_status *from_file(const char *path, int64_t deadline_ns, bel_credentials **out)
{
    char *text;
    size_t size;
    bel_json *json;
    const char *type = "";
    BEL_TRY_CTX(bel_file_read(path, &text, &size), "GOOGLE_APPLICATION_CREDENTIALS");
    bel_status *status = bel_json_parse_secret(text, size, path, &json);
    bel_free(text);
    BEL_TRY(status);
    const bel_json_value *root = bel_json_root(json);
    bel_json_string(root, "type", &type);
    if (strcmp(type, "service_account") == 0)
        status = use_service_account(root, path, deadline_ns, out);
    else if (strcmp(type, "authorized_user") == 0)
        status = use_user(root, path, deadline_ns, out);
    else
        status =
            BEL_ERR(BEL_PERMISSION_DENIED,
                    "%s: expected type service_account or authorized_user, got \"%s\"", path, type);
    bel_json_destroy(json);
    return status;
}

static char *usual_file(void)
{
    const char *folder = bel_store_env("CLOUDSDK_CONFIG"), *home = bel_store_env("HOME");
    static const char name[] = "application_default_credentials.json";
    if (folder != NULL) return bel_strf("%s/%s", folder, name);
    return bel_strf("%s/.config/gcloud/%s", home != NULL ? home : "", name);
}

// --- Metadata server

static bel_status *from_metadata(int64_t deadline_ns, bel_credentials **out)
{
    static const char what[] = "Google's metadata server";
    const char *host = bel_store_env("GCE_METADATA_HOST");
    char *url = bel_strf("http://%s/computeMetadata/v1/instance/service-accounts/default/token",
                         host != NULL ? host : "169.254.169.254");
    bel_headers headers = {0};
    bel_str answer = {0};
    bel_headers_add(&headers, "metadata-flavor", "Google");
    bel_http_request request = {.method = "GET",
                                .url = url,
                                .headers = &headers,
                                .most = ANSWER_MOST,
                                .connect_secs = host != NULL ? 5 : 1,
                                .stall_secs = 5,
                                .direct = true};
    bel_status *status =
        bel_credentials_ask(&request, what, host != NULL ? 5 : 1, deadline_ns, &answer);
    if (status == NULL) status = take_token(&answer, what, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&answer);
    bel_free(url);
    return status;
}

static bel_status *not_found(const char *file, bel_status *cause)
{
    bel_status *status = BEL_ERR(
        BEL_PERMISSION_DENIED,
        "no credentials: GS_ACCESS_KEY_ID and GOOGLE_APPLICATION_CREDENTIALS are unset, there is "
        "no %s, and %s; hint: gcloud auth application-default login, or for a public bucket %s=1",
        file, bel_status_message(cause), BEL_STORE_ANONYMOUS_VARIABLE);
    bel_status_destroy(cause);
    return status;
}

bel_status *bel_credentials_load_google(int64_t deadline_ns, bel_credentials **out_credentials)
{
    const char *path = bel_store_env("GOOGLE_APPLICATION_CREDENTIALS");
    bool emulated = bel_store_env("STORAGE_EMULATOR_HOST") != NULL;
    bel_credentials *c = NULL;
    BEL_TRY(from_keys(&c));
    char *file = path != NULL ? bel_xstrdup(path) : usual_file();
    bool is_used = c == NULL && (path != NULL || (!emulated && bel_file_exists(file)));
    bool asks = !is_used && c == NULL && (!emulated || bel_store_env("GCE_METADATA_HOST") != NULL);
    bel_status *status = NULL;
    if (is_used) status = from_file(file, deadline_ns, &c);
    if (asks) status = from_metadata(deadline_ns, &c);
    if (asks && bel_status_code(status) == BEL_NOT_FOUND) status = not_found(file, status);
    bel_free(file);
    if (status == NULL) *out_credentials = c;
    return status;
}
