// Making and freeing credentials, and Amazon's form of them in JSON: see credentials_aws.h.
#include "base/alloc.h"
#include "base/json.h"
#include "store/credentials_aws.h"

bel_credentials *bel_aws_make(const char *key_id, const char *secret, const char *token,
                              const char *source)
{
    bel_credentials *c = bel_xcalloc(1, sizeof *c);
    c->key_id = bel_xstrdup(key_id);
    c->secret = bel_xstrdup(secret);
    c->token = token != NULL && token[0] != '\0' ? bel_xstrdup(token) : NULL;
    c->source = source;
    return c;
}

bel_status *bel_aws_take_keys(const char *text, size_t size, const char *token_name, bool may_last,
                              const char *source, bel_credentials **out_credentials)
{
    bel_json *json;
    const char *key_id, *secret, *token = NULL, *expiry = NULL;
    BEL_TRY(bel_json_parse_secret(text, size, source, &json));
    const bel_json_value *root = bel_json_root(json);
    bool has_token = bel_json_string(root, token_name, &token);
    bool has_time = bel_json_string(root, "Expiration", &expiry);
    double expires = has_time ? bel_credentials_time(expiry) : 0;
    const bel_json_value *version = bel_json_member(root, "Version");
    int64_t number = 0;
    bool known = version == NULL || (bel_json_i64(root, "Version", &number) && number == 1);
    bool good = known && bel_json_string(root, "AccessKeyId", &key_id) &&
                bel_json_string(root, "SecretAccessKey", &secret) && (has_token || may_last) &&
                (has_time ? expires > 0 : may_last);
    if (good) {
        *out_credentials = bel_aws_make(key_id, secret, token, source);
        (*out_credentials)->expires = expires;
    }
    bel_json_destroy(json);
    if (good) return NULL;
    if (!known) return BEL_ERR(BEL_PERMISSION_DENIED, "%s: expected \"Version\": 1", source);
    return BEL_ERR(BEL_PERMISSION_DENIED,
                   "%s: expected AccessKeyId, SecretAccessKey, %s and Expiration", source,
                   token_name);
}

void bel_credentials_destroy(bel_credentials *credentials)
{
    if (credentials == NULL) return;
    bel_free(credentials->key_id);
    bel_free(credentials->secret);
    bel_free(credentials->token);
    bel_free(credentials->bearer);
    bel_free(credentials);
}
