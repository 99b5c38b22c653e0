// Credentials for s3 URLs: see credentials.h. The places and their order are those of Amazon's
// tools: the environment, a web identity, the profile's keys, a container's, the instance's.
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "store/credentials.h"
#include "store/profile.h"
#include "store/xml.h"

enum { ANSWER_MOST = 1 << 18, CONNECT_SECS = 5, STALL_SECS = 10 };

static bel_credentials *make(const char *key_id, const char *secret, const char *token,
                             const char *source)
{
    bel_credentials *c = bel_xcalloc(1, sizeof *c);
    c->key_id = bel_xstrdup(key_id);
    c->secret = bel_xstrdup(secret);
    c->token = token != NULL && token[0] != '\0' ? bel_xstrdup(token) : NULL;
    c->source = source;
    return c;
}

static bel_status *from_environment(bel_credentials **out)
{
    const char *key_id = bel_store_env("AWS_ACCESS_KEY_ID");
    const char *secret = bel_store_env("AWS_SECRET_ACCESS_KEY");
    if (key_id == NULL && secret == NULL) return NULL;
    if (key_id == NULL || secret == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s is set, and %s is not",
                       key_id != NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                       key_id != NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    *out = make(key_id, secret, bel_store_env("AWS_SESSION_TOKEN"), "the environment");
    return NULL;
}

// --- Files

// A profile may name a source that Belfry does not know. Silence would lead to another identity.
static bel_status *check_unknown(void)
{
    static const char *const unknown[] = {"role_arn", "credential_process", "sso_session",
                                          "sso_start_url", "sso_account_id"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char *value;
        BEL_TRY(bel_profile_get(unknown[i], &value));
        if (value == NULL) continue;
        bel_free(value);
        char *text = bel_profile_text();
        bel_status *status =
            BEL_ERR(BEL_PERMISSION_DENIED,
                    "%s: \"%s\" is not supported; hint: put temporary keys into the environment: "
                    "eval \"$(aws configure export-credentials --format env)\"",
                    text, unknown[i]);
        bel_free(text);
        return status;
    }
    return NULL;
}

static bel_status *from_profile(bel_credentials **out)
{
    char *key_id = NULL, *secret = NULL, *token = NULL;
    bel_status *status = bel_profile_get("aws_access_key_id", &key_id);
    if (status == NULL) status = bel_profile_get("aws_secret_access_key", &secret);
    if (status == NULL) status = bel_profile_get("aws_session_token", &token);
    if (status == NULL && key_id != NULL && secret != NULL)
        *out = make(key_id, secret, token, "the profile's files");
    else if (status == NULL && (key_id != NULL || secret != NULL))
        status = BEL_ERR(BEL_PERMISSION_DENIED, "the AWS profile has %s without %s",
                         key_id != NULL ? "aws_access_key_id" : "aws_secret_access_key",
                         key_id != NULL ? "aws_secret_access_key" : "aws_access_key_id");
    bel_free(key_id);
    bel_free(secret);
    bel_free(token);
    return status == NULL && *out == NULL ? check_unknown() : status;
}

// --- Web identity

typedef struct identity {
    char *key_id, *secret, *token, *expiry;
} identity;

static void visit_identity(void *context, const char *path, const char *text)
{
    identity *id = context;
    const char *name = strrchr(path, '/');
    char **to = name == NULL                            ? NULL
                : strcmp(name, "/AccessKeyId") == 0     ? &id->key_id
                : strcmp(name, "/SecretAccessKey") == 0 ? &id->secret
                : strcmp(name, "/SessionToken") == 0    ? &id->token
                : strcmp(name, "/Expiration") == 0      ? &id->expiry
                                                        : NULL;
    if (to == NULL) return;
    bel_free(*to);
    *to = bel_xstrdup(text);
}

static bel_status *take_identity(const char *text, size_t size, bel_credentials **out)
{
    identity id = {0};
    bel_status *status = bel_xml_read(text, size, visit_identity, &id);
    double expires = bel_credentials_time(id.expiry);
    bool good = id.key_id != NULL && id.secret != NULL && id.token != NULL && expires > 0;
    if (status == NULL && !good)
        status = BEL_ERR(BEL_DATA_LOSS, "expected a key, a secret, a token and a time");
    if (status == NULL) {
        *out = make(id.key_id, id.secret, id.token, "a web identity");
        (*out)->expires = expires;
    }
    bel_free(id.key_id);
    bel_free(id.secret);
    bel_free(id.token);
    bel_free(id.expiry);
    return status == NULL ? NULL : bel_status_wrap(status, __FILE__, __LINE__, "STS's answer");
}

static bel_status *sts_url(char **out_url)
{
    char *url = NULL, *region;
    BEL_TRY(bel_profile_endpoint("STS", &url));
    if (url == NULL) {
        BEL_TRY(bel_profile_region(&region));
        url = bel_strf("https://sts.%s.amazonaws.com%s/", region,
                       strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
        bel_free(region);
    } else if (url[strlen(url) - 1] != '/') {
        char *closed = bel_strf("%s/", url);
        bel_free(url);
        url = closed;
    }
    *out_url = url;
    return NULL;
}

static bel_status *ask_sts(const char *url, const char *role, const char *token,
                           bel_credentials **out)
{
    const char *session = bel_store_env("AWS_ROLE_SESSION_NAME");
    bel_str form = {0}, answer = {0};
    bel_headers headers = {0};
    bel_str_puts(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
    bel_url_encode(&form, role, false);
    bel_str_puts(&form, "&RoleSessionName=");
    bel_url_encode(&form, session != NULL ? session : "belfry", false);
    bel_str_puts(&form, "&WebIdentityToken=");
    bel_url_encode(&form, token, false);
    bel_headers_add(&headers, "content-type", "application/x-www-form-urlencoded");
    bel_http_request request = {.method = "POST",
                                .url = url,
                                .headers = &headers,
                                .body = {.data = form.text, .size = form.length},
                                .most = ANSWER_MOST,
                                .connect_secs = CONNECT_SECS,
                                .stall_secs = STALL_SECS};
    bel_status *status = bel_credentials_ask(&request, "STS", 5, &answer);
    if (status == NULL) status = take_identity(answer.text, answer.length, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&form);
    bel_str_deinit(&answer);
    return status;
}

static bel_status *from_web_identity(bel_credentials **out)
{
    const char *path = bel_store_env("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = bel_store_env("AWS_ROLE_ARN");
    char *token, *url = NULL;
    if (path == NULL) return NULL;
    if (role == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED,
                       "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not");
    BEL_TRY(bel_credentials_read_line(path, "AWS_WEB_IDENTITY_TOKEN_FILE", &token));
    bel_status *status = sts_url(&url);
    if (status == NULL) status = ask_sts(url, role, token, out);
    bel_free(url);
    bel_free(token);
    return status;
}

// --- Containers and instances

static bel_status *take_json(const char *text, size_t size, const char *what, bel_credentials **out)
{
    bel_json *json;
    const char *key_id, *secret, *token, *expiry = NULL;
    BEL_TRY(bel_json_parse(text, size, what, &json));
    const bel_json_value *root = bel_json_root(json);
    bool good = bel_json_string(root, "AccessKeyId", &key_id) &&
                bel_json_string(root, "SecretAccessKey", &secret) &&
                bel_json_string(root, "Token", &token) &&
                bel_json_string(root, "Expiration", &expiry) && bel_credentials_time(expiry) > 0;
    if (good) {
        *out = make(key_id, secret, token, what);
        (*out)->expires = bel_credentials_time(expiry);
    }
    bel_json_destroy(json);
    return good ? NULL
                : BEL_ERR(BEL_PERMISSION_DENIED,
                          "%s: expected AccessKeyId, SecretAccessKey, Token and Expiration", what);
}

static bel_status *ask_container(const char *url, bel_credentials **out)
{
    static const char what[] = "the container's credentials";
    const char *file = bel_store_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *set = bel_store_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char *token = NULL;
    bel_headers headers = {0};
    bel_str answer = {0};
    if (file != NULL)
        BEL_TRY(bel_credentials_read_line(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token));
    if (token != NULL || set != NULL)
        bel_headers_add(&headers, "authorization", "%s", token != NULL ? token : set);
    bel_http_request request = {.method = "GET",
                                .url = url,
                                .headers = &headers,
                                .most = ANSWER_MOST,
                                .connect_secs = CONNECT_SECS,
                                .stall_secs = STALL_SECS,
                                .direct = true};
    bel_status *status = bel_credentials_ask(&request, what, 5, &answer);
    if (status == NULL) status = take_json(answer.text, answer.length, what, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&answer);
    bel_free(token);
    return status;
}

static bel_status *from_container(bel_credentials **out)
{
    const char *relative = bel_store_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = bel_store_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative == NULL && full == NULL) return NULL;
    char *url = relative != NULL ? bel_strf("http://169.254.170.2%s", relative) : bel_xstrdup(full);
    bel_status *status = ask_container(url, out);
    bel_free(url);
    return status;
}

// One request to the instance's metadata. *out is an empty string at the begin.
static bel_status *ask_instance(const char *method, const char *path, const char *header,
                                const char *value, int tries, bel_str *out)
{
    const char *host = bel_store_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char *url = bel_strf("%s%s", host != NULL ? host : "http://169.254.169.254", path);
    bel_headers headers = {0};
    bel_headers_add(&headers, header, "%s", value);
    bel_http_request request = {.method = method,
                                .url = url,
                                .headers = &headers,
                                .most = ANSWER_MOST,
                                .connect_secs = tries == 1 ? 1 : CONNECT_SECS,
                                .stall_secs = 2,
                                .direct = true};
    bel_status *status = bel_credentials_ask(&request, "instance metadata", tries, out);
    bel_headers_deinit(&headers);
    bel_free(url);
    return status;
}

// The first request shows whether there is such a service: NOT_FOUND.
static bel_status *from_instance(bel_credentials **out)
{
    static const char folder[] = "/latest/meta-data/iam/security-credentials/";
    static const char header[] = "x-aws-ec2-metadata-token";
    const char *disabled = bel_store_env("AWS_EC2_METADATA_DISABLED");
    if (disabled != NULL && strcmp(disabled, "true") == 0)
        return BEL_ERR(BEL_NOT_FOUND, "AWS_EC2_METADATA_DISABLED is true");
    bel_str token = {0}, role = {0}, answer = {0};
    char *path = NULL;
    bel_status *status = ask_instance("PUT", "/latest/api/token",
                                      "x-aws-ec2-metadata-token-ttl-seconds", "300", 1, &token);
    if (status == NULL) status = ask_instance("GET", folder, header, token.text, 5, &role);
    if (status == NULL) {
        path = bel_strf("%s%.*s", folder, (int)strcspn(role.text, "\r\n"), role.text);
        status = ask_instance("GET", path, header, token.text, 5, &answer);
    }
    if (status == NULL) status = take_json(answer.text, answer.length, "instance metadata", out);
    bel_free(path);
    bel_str_deinit(&token);
    bel_str_deinit(&role);
    bel_str_deinit(&answer);
    return status;
}

static bel_status *not_found(bel_status *cause)
{
    char *files = bel_profile_text();
    bel_status *status =
        BEL_ERR(BEL_PERMISSION_DENIED,
                "no credentials: AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE and "
                "AWS_CONTAINER_CREDENTIALS_FULL_URI are unset, no keys in %s, and %s; hint: set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a public bucket %s=1",
                files, bel_status_message(cause), BEL_STORE_ANONYMOUS_VARIABLE);
    bel_status_destroy(cause);
    bel_free(files);
    return status;
}

bel_status *bel_credentials_load_aws(bel_credentials **out_credentials)
{
    static bel_status *(*const places[])(bel_credentials **) = {
        from_environment, from_web_identity, from_profile, from_container, from_instance};
    bel_credentials *c = NULL;
    bel_status *status = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && c == NULL && status == NULL; i++)
        status = places[i](&c);
    if (bel_status_code(status) == BEL_NOT_FOUND) return not_found(status);
    if (status == NULL) *out_credentials = c;
    return status;
}
