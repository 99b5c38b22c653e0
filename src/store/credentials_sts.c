// Amazon's Security Token Service: see credentials_aws.h. A web identity proves itself by its
// token. Other callers sign the request, which has the rules of sign.h with the service "sts".
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/credentials_aws.h"
#include "store/crypto.h"
#include "store/profile.h"
#include "store/sign.h"
#include "store/xml.h"

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

static bel_status *take_identity(const bel_str *answer, const char *source, bel_credentials **out)
{
    identity id = {0};
    bel_status *status = bel_xml_read(answer->text, answer->length, visit_identity, &id);
    double expires = bel_credentials_time(id.expiry);
    bool good = id.key_id != NULL && id.secret != NULL && id.token != NULL && expires > 0;
    if (status == NULL && !good)
        status = BEL_ERR(BEL_PERMISSION_DENIED, "expected a key, a secret, a token and a time");
    if (status == NULL) {
        *out = bel_aws_make(id.key_id, id.secret, id.token, source);
        (*out)->expires = expires;
    }
    bel_free(id.key_id);
    bel_free(id.secret);
    bel_free(id.token);
    bel_free(id.expiry);
    return status == NULL ? NULL : bel_status_wrap(status, __FILE__, __LINE__, "STS's answer");
}

static bel_status *find_sts(const bel_profiles *files, const char *region, char **out_origin,
                            char **out_path)
{
    char *origin, *path;
    BEL_TRY(bel_profile_endpoint(files, "STS", true, &origin, &path));
    *out_origin = origin != NULL ? origin : bel_profile_amazon("sts", region);
    *out_path = bel_strf("%s/", path != NULL ? path : "");
    bel_free(path);
    return NULL;
}

static void put_field(bel_str *form, const char *name, const char *value)
{
    if (value == NULL) return;
    bel_str_printf(form, "&%s=", name);
    bel_url_encode(form, value, false);
}

static void sign(const char *origin, const char *path, const char *region, const bel_str *form,
                 const bel_credentials *by, bel_headers *headers)
{
    char hash[BEL_HEX_BYTES];
    bel_sha256_hex(form->text, form->length, hash);
    if (by->token != NULL) bel_headers_add(headers, "x-amz-security-token", "%s", by->token);
    const bel_sign_input input = {.method = "POST",
                                  .host = bel_url_host(origin),
                                  .path = path,
                                  .query = "",
                                  .payload = hash,
                                  .key_id = by->key_id,
                                  .secret = by->secret,
                                  .region = region,
                                  .service = "sts",
                                  .time = (int64_t)bel_clock_wall()};
    bel_sign_request(&input, headers);
}

static bel_status *ask_sts(const bel_aws_search *search, const char *action,
                           const bel_aws_role *role, const char *token, const bel_credentials *by,
                           bel_str *out)
{
    char *origin, *path;
    bel_str form = {0};
    bel_headers headers = {0};
    BEL_TRY(find_sts(&search->files, role->region, &origin, &path));
    char *url = bel_strf("%s%s", origin, path);
    bel_str_printf(&form, "Action=%s&Version=2011-06-15", action);
    put_field(&form, "RoleArn", role->arn);
    put_field(&form, "RoleSessionName", role->session != NULL ? role->session : "belfry");
    put_field(&form, "WebIdentityToken", token);
    put_field(&form, "ExternalId", role->external_id);
    put_field(&form, "DurationSeconds", role->seconds);
    bel_headers_add(&headers, "content-type", "application/x-www-form-urlencoded");
    if (by != NULL) sign(origin, path, role->region, &form, by, &headers);
    bel_http_request request = {.method = "POST",
                                .url = url,
                                .headers = &headers,
                                .body = {.data = form.text, .size = form.length},
                                .most = BEL_AWS_ANSWER_MOST,
                                .connect_secs = BEL_AWS_CONNECT_SECS,
                                .stall_secs = BEL_AWS_STALL_SECS};
    bel_status *status = bel_credentials_ask(&request, "STS", 5, search->deadline_ns, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&form);
    bel_free(url);
    bel_free(origin);
    bel_free(path);
    return status;
}

bel_status *bel_sts_assume_by_token(const bel_aws_search *search, const bel_aws_role *role,
                                    const char *token_path, const char *what,
                                    bel_credentials **out_credentials)
{
    char *token;
    bel_str answer = {0};
    BEL_TRY(bel_credentials_read_line(token_path, what, &token));
    bel_status *status = ask_sts(search, "AssumeRoleWithWebIdentity", role, token, NULL, &answer);
    if (status == NULL) status = take_identity(&answer, "a web identity", out_credentials);
    bel_str_deinit(&answer);
    bel_free(token);
    return status;
}

bel_status *bel_sts_assume(const bel_aws_search *search, const bel_aws_role *role,
                           const bel_credentials *by, bel_credentials **out_credentials)
{
    bel_str answer = {0};
    bel_status *status = ask_sts(search, "AssumeRole", role, NULL, by, &answer);
    if (status == NULL) status = take_identity(&answer, "the profile's role", out_credentials);
    bel_str_deinit(&answer);
    return status;
}
