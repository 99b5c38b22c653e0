// Credentials for s3 URLs: see credentials.h. The places and their order are those of Amazon's
// tools: the environment, a web identity, the profile's keys, a container's, the instance's.
#include <string.h>

#include "base/alloc.h"
#include "store/credentials_aws.h"
#include "store/profile.h"

static bel_status *from_web_identity(bel_credentials **out)
{
    static const char variable[] = "AWS_WEB_IDENTITY_TOKEN_FILE";
    const char *path = bel_store_env(variable);
    bel_aws_role role = {.arn = bel_store_env("AWS_ROLE_ARN"),
                         .session = bel_store_env("AWS_ROLE_SESSION_NAME")};
    char *region;
    if (path == NULL) return NULL;
    if (role.arn == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s is set, and AWS_ROLE_ARN is not", variable);
    BEL_TRY(bel_profile_region(&region));
    role.region = region;
    bel_status *status = bel_sts_assume_by_token(&role, path, variable, out);
    bel_free(region);
    return status;
}

static bel_status *not_found(bel_status *cause)
{
    char *files = bel_profile_text(NULL);
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
        bel_aws_from_environment, from_web_identity, bel_profile_credentials,
        bel_aws_from_container, bel_aws_from_instance};
    bel_credentials *c = NULL;
    bel_status *status = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && c == NULL && status == NULL; i++)
        status = places[i](&c);
    if (bel_status_code(status) == BEL_NOT_FOUND) return not_found(status);
    if (status == NULL) *out_credentials = c;
    return status;
}
