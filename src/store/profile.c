// Settings of Amazon's tools: see profile.h. Indented lines belong to nested settings, which are
// skipped.
#include "store/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

const char *bel_store_env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static char *file_path(const char *variable, const char *name)
{
    const char *set = bel_store_env(variable), *home = bel_store_env("HOME");
    if (set != NULL) return bel_xstrdup(set);
    return bel_strf("%s/.aws/%s", home != NULL ? home : "", name);
}

static const char *profile_name(const char *profile)
{
    if (profile != NULL) return profile;
    const char *name = bel_store_env("AWS_PROFILE");
    if (name == NULL) name = bel_store_env("AWS_DEFAULT_PROFILE");
    return name != NULL ? name : "default";
}

// Cuts spaces off both ends.
static const char *trim(const char *text, size_t *length)
{
    while (*length > 0 && strchr(" \t\r", text[0]) != NULL) {
        text++;
        --*length;
    }
    while (*length > 0 && strchr(" \t\r", text[*length - 1]) != NULL)
        --*length;
    return text;
}

// True for "[section]", with any spaces between its words.
static bool is_section(const char *line, size_t length, const char *section)
{
    line = trim(line, &length);
    if (length < 2 || line[0] != '[') return false;
    const char *close = memchr(line, ']', length), *at = line + 1;
    if (close == NULL) return false;
    while (*section != '\0') {
        size_t word = strcspn(section, " ");
        at += strspn(at, " \t");
        if ((size_t)(close - at) < word || strncmp(at, section, word) != 0) return false;
        at += word;
        section += word + (section[word] == ' ' ? 1 : 0);
        if (*section != '\0' && *at != ' ' && *at != '\t') return false;
    }
    return at + strspn(at, " \t") == close;
}

bool bel_profile_find(const char *text, const char *section, const char *name, char **out_value)
{
    bool inside = false, found = false;
    size_t name_length = strlen(name);
    *out_value = NULL;
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n"), left = length;
        const char *at = line;
        line += length + (line[length] == '\n' ? 1 : 0);
        if (length == 0 || strchr("#; \t", at[0]) != NULL) continue;
        if (at[0] == '[') {
            inside = is_section(at, length, section);
            found = found || inside;
            continue;
        }
        const char *equals = memchr(at, '=', length);
        if (!inside || equals == NULL) continue;
        size_t key = (size_t)(equals - at);
        trim(at, &key);
        if (key != name_length || strncmp(at, name, key) != 0) continue;
        left = length - (size_t)(equals + 1 - at);
        const char *value = trim(equals + 1, &left);
        bel_free(*out_value);
        *out_value = left > 0 ? bel_xstrndup(value, left) : NULL;
    }
    return found;
}

// Looks into one file; a missing one has nothing.
static bel_status *look_into(const char *path, const char *section, const char *name,
                             bool *io_found, char **out_value)
{
    char *text;
    size_t size;
    *out_value = NULL;
    if (!bel_file_exists(path)) return NULL;
    BEL_TRY(bel_file_read(path, &text, &size));
    if (bel_profile_find(text, section, name, out_value)) *io_found = true;
    bel_free(text);
    return NULL;
}

bool bel_profile_is(const char *profile, const char *name)
{
    return strcmp(profile_name(profile), name) == 0;
}

bel_status *bel_profile_session(const char *session, const char *name, char **out_value)
{
    char *config = file_path("AWS_CONFIG_FILE", "config");
    char *section = bel_strf("sso-session %s", session);
    bool found = false;
    bel_status *status = look_into(config, section, name, &found, out_value);
    bel_free(section);
    bel_free(config);
    return status;
}

bel_status *bel_profile_get(const char *profile, const char *name, char **out_value)
{
    const char *chosen = profile == NULL ? "AWS_PROFILE: " : "";
    profile = profile_name(profile);
    char *credentials = file_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    char *config = file_path("AWS_CONFIG_FILE", "config");
    bool is_default = strcmp(profile, "default") == 0, found = is_default;
    char *section = is_default ? bel_xstrdup(profile) : bel_strf("profile %s", profile);
    char *value = NULL, *second = NULL;
    bel_status *status = look_into(credentials, profile, name, &found, &value);
    if (status == NULL) status = look_into(config, section, name, &found, &second);
    if (value == NULL) {
        value = second;
        second = NULL;
    }
    if (status == NULL && !found)
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "%sprofile \"%s\" is in neither %s nor %s", chosen,
                         profile, credentials, config);
    if (status == NULL)
        *out_value = value;
    else
        bel_free(value);
    bel_free(second);
    bel_free(section);
    bel_free(credentials);
    bel_free(config);
    return status;
}

char *bel_profile_text(const char *profile)
{
    char *credentials = file_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    char *config = file_path("AWS_CONFIG_FILE", "config");
    char *text =
        bel_strf("profile \"%s\" of %s and %s", profile_name(profile), credentials, config);
    bel_free(credentials);
    bel_free(config);
    return text;
}

bel_status *bel_profile_region(char **out_region)
{
    const char *set = bel_store_env("AWS_REGION");
    if (set == NULL) set = bel_store_env("AWS_DEFAULT_REGION");
    char *region = NULL;
    if (set == NULL) BEL_TRY(bel_profile_get(NULL, "region", &region));
    if (region == NULL) region = bel_xstrdup(set != NULL ? set : "us-east-1");
    bool good =
        strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
        strlen(region);
    if (good) {
        *out_region = region;
        return NULL;
    }
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT,
                "AWS_REGION or the profile's region: expected a name such as eu-west-1, got \"%s\"",
                region);
    bel_free(region);
    return status;
}

bel_status *bel_profile_endpoint(const char *service, char **out_url)
{
    char *variable = bel_strf("AWS_ENDPOINT_URL_%s", service), *found = NULL;
    const char *set = bel_store_env(variable);
    bel_free(variable);
    if (set == NULL) set = bel_store_env("AWS_ENDPOINT_URL");
    if (set == NULL) BEL_TRY(bel_profile_get(NULL, "endpoint_url", &found));
    *out_url = set != NULL ? bel_xstrdup(set) : found;
    return NULL;
}
