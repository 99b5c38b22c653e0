// Parts of Amazon's credentials, which credentials_aws.c puts together. All functions end by
// the deadline of the search, and the texts of keys never appear in messages.
#ifndef BELFRY_STORE_CREDENTIALS_AWS_H
#define BELFRY_STORE_CREDENTIALS_AWS_H

#include "store/credentials.h"
#include "store/profile.h"

enum { BEL_AWS_ANSWER_MOST = 1 << 18, BEL_AWS_CONNECT_SECS = 5, BEL_AWS_STALL_SECS = 10 };

// One search for credentials: all settings are of the same texts, and all waits have one end.
typedef struct bel_aws_search {
    bel_profiles files;
    int64_t deadline_ns; // bel_clock_ns
} bel_aws_search;

// Makes credentials of copies. `token`: NULL or empty: none. `source` is static.
bel_credentials *bel_aws_make(const char *key_id, const char *secret, const char *token,
                              const char *source);

// Takes keys of an object with AccessKeyId, SecretAccessKey, `token_name` and Expiration, a time.
// `may_last`: the last two may be absent. PERMISSION_DENIED: a field is absent or malformed;
// `source` (static) names the object.
bel_status *bel_aws_take_keys(const char *text, size_t size, const char *token_name, bool may_last,
                              const char *source, bel_credentials **out_credentials) BEL_MUST_USE;

// A role to be assumed by STS: an identity with temporary keys.
typedef struct bel_aws_role {
    const char *arn;
    const char *session;     // name in the owner's records; NULL: "belfry"
    const char *external_id; // the role's owner demands it; NULL: none
    const char *seconds;     // duration; NULL: STS's
    const char *region;      // the region whose STS is asked
} bel_aws_role;

// Asks STS for keys of the role, with the identity in the file `token_path`; `what` names the
// setting of that path. PERMISSION_DENIED: STS refuses, with its reason.
bel_status *bel_sts_assume_by_token(const bel_aws_search *search, const bel_aws_role *role,
                                    const char *token_path, const char *what,
                                    bel_credentials **out_credentials) BEL_MUST_USE;
// The same with other credentials.
bel_status *bel_sts_assume(const bel_aws_search *search, const bel_aws_role *role,
                           const bel_credentials *by,
                           bel_credentials **out_credentials) BEL_MUST_USE;

// Finds the credentials that the chosen profile names; NULL in *out_credentials: none. Its role
// comes first, then a single sign-on, keys, and a program. INVALID_ARGUMENT: a setting that is
// incomplete, or that Belfry does not know.
bel_status *bel_profile_credentials(const bel_aws_search *search,
                                    bel_credentials **out_credentials) BEL_MUST_USE;

// Credentials of variables, a container's service or the instance's. *out_credentials is NULL if
// the place's variables are unset. NOT_FOUND: there is no service of the instance.
bel_status *bel_aws_from_environment(const bel_aws_search *search,
                                     bel_credentials **out_credentials) BEL_MUST_USE;
bel_status *bel_aws_from_container(const bel_aws_search *search,
                                   bel_credentials **out_credentials) BEL_MUST_USE;
bel_status *bel_aws_from_instance(const bel_aws_search *search,
                                  bel_credentials **out_credentials) BEL_MUST_USE;

#endif
