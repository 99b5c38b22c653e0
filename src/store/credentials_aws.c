// Credentials for s3 URLs: see credentials.h.
#include <string.h>

#include "base/alloc.h"
#include "store/credentials.h"
#include "store/profile.h"

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

bel_status *bel_credentials_load_aws(bel_credentials **out_credentials)
{
    bel_credentials *c = NULL;
    BEL_TRY(from_environment(&c));
    if (c == NULL) return BEL_ERR(BEL_PERMISSION_DENIED, "no credentials");
    *out_credentials = c;
    return NULL;
}
