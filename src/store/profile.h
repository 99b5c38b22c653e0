// Settings of Amazon's tools: the files ~/.aws/credentials and ~/.aws/config, or those that
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name, and there the profile AWS_PROFILE, else
// "default". They are read for each renewal, as another tool may have changed them. Thread-safe.
#ifndef BELFRY_STORE_PROFILE_H
#define BELFRY_STORE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

// Both files as they were when they were read: a key and its secret then belong together.
typedef struct bel_profiles {
    char *credentials_path, *config_path;
    char *credentials, *config; // their texts; "": there is no such file, or it cannot be read
    // The reasons if they cannot be read; NULL: none.
    char *credentials_problem, *config_problem;
} bel_profiles;
void bel_profiles_read(bel_profiles *out_files); // end with deinit
void bel_profiles_deinit(bel_profiles *files);

// Returns a setting of a profile (NULL: the chosen one), NULL if it has none; free with bel_free.
// The file of credentials counts before the other. INVALID_ARGUMENT: neither file has the profile.
// PERMISSION_DENIED: a file cannot be read, and the setting that counts may be there.
bel_status *bel_profile_get(const bel_profiles *files, const char *profile, const char *name,
                            char **out_value) BEL_MUST_USE;

// Returns a setting of a section [sso-session SESSION], NULL if it is absent; free with bel_free.
char *bel_profile_session(const bel_profiles *files, const char *session, const char *name);

// True if AWS_PROFILE or AWS_DEFAULT_PROFILE is set.
bool bel_profile_is_chosen(void);

// True if the profile (NULL: the chosen one) has that name.
bool bel_profile_is(const char *profile, const char *name);

// The profile (NULL: the chosen one) and its files, for messages; free with bel_free.
char *bel_profile_text(const bel_profiles *files, const char *profile);

// Reads a setting from a file's text. `section`: "default", or "profile NAME" in a config file.
// `group`: the nested settings below a line "GROUP ="; NULL: none. True if the text has the
// section; *out_value is NULL if the section lacks the setting.
bool bel_profile_find(const char *text, const char *section, const char *group, const char *name,
                      char **out_value);

// Value of an environment variable; NULL: unset or empty.
const char *bel_store_env(const char *name);

// The region of Amazon's services: AWS_REGION, AWS_DEFAULT_REGION, the profile's, or us-east-1.
// A file that cannot be read has no region, and one line says so.
bel_status *bel_profile_region(const bel_profiles *files, char **out_region) BEL_MUST_USE;

// The server of a service ("S3", "STS") that the user has set, split by bel_url_split_endpoint:
// AWS_ENDPOINT_URL_SERVICE, or if `shared` AWS_ENDPOINT_URL, or the service's endpoint_url in the
// section [services NAME] of the profile, or if `shared` the profile's. NULL for both: Amazon's, or
// the user has set that these settings are ignored. INVALID_ARGUMENT: it would be Amazon's usual
// one, but the profile, or a variable, chooses another (FIPS, …). PERMISSION_DENIED: a file with
// endpoint_url perhaps cannot be read, and no variable has a region, which would show that Amazon's
// server is meant.
bel_status *bel_profile_endpoint(const bel_profiles *files, const char *service, bool shared,
                                 char **out_origin, char **out_path) BEL_MUST_USE;

// Place of a bucket's name. AUTO: in the host's name on Amazon's servers, else in the path.
typedef enum bel_profile_addressing {
    BEL_ADDRESSING_AUTO,
    BEL_ADDRESSING_PATH,
    BEL_ADDRESSING_VIRTUAL
} bel_profile_addressing;
// Reads addressing_style of the group s3. INVALID_ARGUMENT: another word.
bel_status *bel_profile_style(const bel_profiles *files,
                              bel_profile_addressing *out_style) BEL_MUST_USE;

// INVALID_ARGUMENT: the profile has another setting that is not supported, and would otherwise be
// ignored silently.
bel_status *bel_profile_check(const bel_profiles *files) BEL_MUST_USE;

// Amazon's server of a service: "https://SERVICE.REGION.amazonaws.com"; free with bel_free.
char *bel_profile_amazon(const char *service, const char *region);

#endif
