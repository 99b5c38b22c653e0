// Credentials that surround a process on its host: see credentials_aws.h. Variables, the service of
// its container, and that of its instance.
#include <string.h>

#include "base/alloc.h"
#include "store/credentials_aws.h"
#include "store/profile.h"

bel_status *bel_aws_from_environment(const bel_aws_search *search,
                                     bel_credentials **out_credentials)
{
    (void)search;
    const char *key_id = bel_store_env("AWS_ACCESS_KEY_ID");
    const char *secret = bel_store_env("AWS_SECRET_ACCESS_KEY");
    if (key_id == NULL && secret == NULL) return NULL;
    if (key_id == NULL || secret == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s is set, and %s is not",
                       key_id != NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                       key_id != NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    *out_credentials =
        bel_aws_make(key_id, secret, bel_store_env("AWS_SESSION_TOKEN"), "the environment");
    return NULL;
}

static bel_status *ask_container(const bel_aws_search *search, const char *url,
                                 bel_credentials **out)
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
                                .most = BEL_AWS_ANSWER_MOST,
                                .connect_secs = BEL_AWS_CONNECT_SECS,
                                .stall_secs = BEL_AWS_STALL_SECS,
                                .direct = true};
    bel_status *status = bel_credentials_ask(&request, what, 5, search->deadline_ns, &answer);
    if (status == NULL)
        status = bel_aws_take_keys(answer.text, answer.length, "Token", false, what, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&answer);
    bel_free(token);
    return status;
}

bel_status *bel_aws_from_container(const bel_aws_search *search, bel_credentials **out_credentials)
{
    const char *relative = bel_store_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = bel_store_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative == NULL && full == NULL) return NULL;
    char *url = relative != NULL ? bel_strf("http://169.254.170.2%s", relative) : bel_xstrdup(full);
    bel_status *status = ask_container(search, url, out_credentials);
    bel_free(url);
    return status;
}

// One request to the instance's metadata. *out is an empty string at the begin.
static bel_status *ask_instance(const bel_aws_search *search, const char *method, const char *path,
                                const char *header, const char *value, int tries, bel_str *out)
{
    const char *host = bel_store_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char *url = bel_strf("%s%s", host != NULL ? host : "http://169.254.169.254", path);
    bel_headers headers = {0};
    bel_headers_add(&headers, header, "%s", value);
    bel_http_request request = {.method = method,
                                .url = url,
                                .headers = &headers,
                                .most = BEL_AWS_ANSWER_MOST,
                                .connect_secs = tries == 1 ? 1 : BEL_AWS_CONNECT_SECS,
                                .stall_secs = 2,
                                .direct = true};
    bel_status *status =
        bel_credentials_ask(&request, "instance metadata", tries, search->deadline_ns, out);
    bel_headers_deinit(&headers);
    bel_free(url);
    return status;
}

// The first request shows whether there is such a service: NOT_FOUND.
bel_status *bel_aws_from_instance(const bel_aws_search *search, bel_credentials **out_credentials)
{
    static const char folder[] = "/latest/meta-data/iam/security-credentials/";
    static const char header[] = "x-aws-ec2-metadata-token";
    const char *disabled = bel_store_env("AWS_EC2_METADATA_DISABLED");
    if (disabled != NULL && strcmp(disabled, "true") == 0)
        return BEL_ERR(BEL_NOT_FOUND, "AWS_EC2_METADATA_DISABLED is true");
    bel_str token = {0}, role = {0}, answer = {0};
    char *path = NULL;
    bel_status *status = ask_instance(search, "PUT", "/latest/api/token",
                                      "x-aws-ec2-metadata-token-ttl-seconds", "300", 1, &token);
    if (status == NULL) status = ask_instance(search, "GET", folder, header, token.text, 5, &role);
    if (status == NULL) {
        path = bel_strf("%s%.*s", folder, (int)strcspn(role.text, "\r\n"), role.text);
        status = ask_instance(search, "GET", path, header, token.text, 5, &answer);
    }
    if (status == NULL)
        status = bel_aws_take_keys(answer.text, answer.length, "Token", false, "instance metadata",
                                   out_credentials);
    bel_free(path);
    bel_str_deinit(&token);
    bel_str_deinit(&role);
    bel_str_deinit(&answer);
    return status;
}
