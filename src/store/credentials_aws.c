// Credentials for s3 URLs: see credentials.h. The places and their order are those of Amazon's
// tools: the environment, a web identity, the profile's keys, a container's, the instance's.
#include <string.h>

#include "base/alloc.h"
#include "store/credentials_aws.h"
#include "store/profile.h"

static bel_status *from_web_identity(const bel_aws_search *search, bel_credentials **out)
{
    static const char variable[] = "AWS_WEB_IDENTITY_TOKEN_FILE";
    const char *path = bel_store_env(variable);
    bel_aws_role role = {.arn = bel_store_env("AWS_ROLE_ARN"),
                         .session = bel_store_env("AWS_ROLE_SESSION_NAME")};
    char *region;
    if (path == NULL) return NULL;
    if (role.arn == NULL)
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s is set, and AWS_ROLE_ARN is not", variable);
    BEL_TRY(bel_profile_region(&search->files, &region));
    role.region = region;
    bel_status *status = bel_sts_assume_by_token(search, &role, path, variable, out);
    bel_free(region);
    return status;
}

static bel_status *not_found(const bel_aws_search *search, bel_status *cause)
{
    char *files = bel_profile_text(&search->files, NULL);
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

// A profile that AWS_PROFILE chooses, and whose role the variables' keys assume, comes before them.
static bel_status *from_role_by_variables(const bel_aws_search *search, bel_credentials **out)
{
    char *source = NULL;
    if (!bel_profile_is_chosen()) return NULL;
    bel_status_ignore(bel_profile_get(&search->files, NULL, "credential_source",
                                      &source)); // unknown: the profile's turn reports it
    bool comes_first = source != NULL && strcmp(source, "Environment") == 0;
    bel_free(source);
    return comes_first ? bel_profile_credentials(search, out) : NULL;
}

bel_status *bel_credentials_load_aws(int64_t deadline_ns, bel_credentials **out_credentials)
{
    static bel_status *(*const places[])(const bel_aws_search *, bel_credentials **) = {
        from_role_by_variables,  bel_aws_from_environment, from_web_identity,
        bel_profile_credentials, bel_aws_from_container,   bel_aws_from_instance};
    enum { COUNT = sizeof places / sizeof *places };
    bel_aws_search search = {.deadline_ns = deadline_ns};
    bel_credentials *c = NULL;
    bel_profiles_read(&search.files);
    bel_status *status = NULL;
    for (size_t i = 0; i < COUNT && c == NULL && status == NULL; i++) {
        status = places[i](&search, &c);
        bool is_last = i == COUNT - 1;
        if (is_last && bel_status_code(status) == BEL_NOT_FOUND)
            status = not_found(&search, status);
    }
    bel_profiles_deinit(&search.files);
    if (status == NULL) *out_credentials = c;
    return status;
}
