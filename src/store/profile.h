// Settings of Amazon's tools: the files ~/.aws/credentials and ~/.aws/config, or those that
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name, and there the profile AWS_PROFILE, else
// "default". Read at each call, as a renewal may have changed them. Thread-safe.
#ifndef BELFRY_STORE_PROFILE_H
#define BELFRY_STORE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

// Returns a setting of a profile (NULL: the chosen one), NULL if it has none; free with bel_free.
// The file of credentials counts before the other. INVALID_ARGUMENT: neither file has the profile.
bel_status *bel_profile_get(const char *profile, const char *name, char **out_value) BEL_MUST_USE;

// Returns a setting of a section [sso-session SESSION], NULL if it is absent; free with bel_free.
bel_status *bel_profile_session(const char *session, const char *name,
                                char **out_value) BEL_MUST_USE;

// True if the profile (NULL: the chosen one) has that name.
bool bel_profile_is(const char *profile, const char *name);

// The profile (NULL: the chosen one) and its files, for messages; free with bel_free.
char *bel_profile_text(const char *profile);

// Reads a setting from a file's text. `section`: "default", or "profile NAME" in a config file.
// True if the text has the section; *out_value is NULL if the section lacks the setting.
bool bel_profile_find(const char *text, const char *section, const char *name, char **out_value);

// Value of an environment variable; NULL: unset or empty.
const char *bel_store_env(const char *name);

// The region of Amazon's services: AWS_REGION, AWS_DEFAULT_REGION, the profile's, or us-east-1.
bel_status *bel_profile_region(char **out_region) BEL_MUST_USE;

// The URL of a service ("S3", "STS") that the user has set: AWS_ENDPOINT_URL_SERVICE,
// AWS_ENDPOINT_URL, or the profile's endpoint_url. NULL: Amazon's.
bel_status *bel_profile_endpoint(const char *service, char **out_url) BEL_MUST_USE;

#endif
