// Settings of Amazon's tools: see profile.h. Indented lines belong to nested settings, which are
// skipped.
#include "store/profile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "store/url.h"

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

// Reads one file. A missing one has nothing, and one that cannot be read is a problem if a setting
// is needed that may be in it.
static char *read_text(const char *path, char **problem)
{
    size_t size;
    char *text = NULL;
    bel_status *status = NULL;
    if (bel_file_exists(path)) status = bel_file_read(path, &text, &size);
    if (status != NULL) *problem = bel_xstrdup(bel_status_message(status));
    bel_status_destroy(status);
    return text != NULL ? text : bel_xstrdup("");
}

void bel_profiles_read(bel_profiles *out_files)
{
    bel_profiles files = {.credentials_path =
                              file_path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                          .config_path = file_path("AWS_CONFIG_FILE", "config")};
    files.credentials = read_text(files.credentials_path, &files.credentials_problem);
    files.config = read_text(files.config_path, &files.config_problem);
    *out_files = files;
}

void bel_profiles_deinit(bel_profiles *files)
{
    bel_free(files->credentials_path);
    bel_free(files->config_path);
    bel_free(files->credentials);
    bel_free(files->config);
    bel_free(files->credentials_problem);
    bel_free(files->config_problem);
    *files = (bel_profiles){0};
}

bool bel_profile_is_chosen(void)
{
    return bel_store_env("AWS_PROFILE") != NULL || bel_store_env("AWS_DEFAULT_PROFILE") != NULL;
}

bool bel_profile_is(const char *profile, const char *name)
{
    return strcmp(profile_name(profile), name) == 0;
}

char *bel_profile_session(const bel_profiles *files, const char *session, const char *name)
{
    char *section = bel_strf("sso-session %s", session), *value;
    (void)bel_profile_find(files->config, section, name, &value);
    bel_free(section);
    return value;
}

// `strict`: a setting of the second file counts only if the first one can be read.
static bel_status *find_setting(const bel_profiles *files, const char *profile, const char *name,
                                bool strict, char **out_value)
{
    const char *chosen = profile == NULL ? "AWS_PROFILE: " : "";
    profile = profile_name(profile);
    bool is_default = strcmp(profile, "default") == 0;
    char *section = is_default ? bel_xstrdup(profile) : bel_strf("profile %s", profile);
    char *value, *second;
    bool first = bel_profile_find(files->credentials, profile, name, &value);
    bool found = bel_profile_find(files->config, section, name, &second) || first || is_default;
    bel_free(section);
    const char *problem = value == NULL ? files->credentials_problem : NULL;
    if (value == NULL) {
        value = second;
        second = NULL;
    }
    bel_free(second);
    if (value != NULL && !strict) problem = NULL;
    if (value == NULL && problem == NULL) problem = files->config_problem;
    if (problem != NULL) {
        bel_free(value);
        return BEL_ERR(BEL_PERMISSION_DENIED, "%s", problem);
    }
    if (!found)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%sprofile \"%s\" is in neither %s nor %s", chosen,
                       profile, files->credentials_path, files->config_path);
    *out_value = value;
    return NULL;
}

bel_status *bel_profile_get(const bel_profiles *files, const char *profile, const char *name,
                            char **out_value)
{
    return find_setting(files, profile, name, true, out_value);
}

char *bel_profile_text(const bel_profiles *files, const char *profile)
{
    return bel_strf("profile \"%s\" of %s and %s", profile_name(profile), files->credentials_path,
                    files->config_path);
}

// Gets a setting of the place, which is usually in the second file. If it has a default, one line
// reports files that cannot be read.
static bel_status *get_place(const bel_profiles *files, const char *name, bool has_default,
                             char **out_value)
{
    static atomic_bool reported;
    *out_value = NULL;
    bel_status *status = find_setting(files, NULL, name, false, out_value);
    if (bel_status_code(status) != BEL_PERMISSION_DENIED) return status;
    if (!has_default) {
        bel_status *refusal =
            BEL_ERR(BEL_PERMISSION_DENIED,
                    "%s; it may have endpoint_url; hint: set AWS_ENDPOINT_URL, or AWS_REGION for "
                    "Amazon's server",
                    bel_status_message(status));
        bel_status_destroy(status);
        return refusal;
    }
    if (!atomic_exchange(&reported, true))
        bel_log_write(BEL_LOG_WARN, "%s; its region and endpoint_url are not used",
                      bel_status_message(status));
    bel_status_destroy(status);
    return NULL;
}

static const char *region_variable(void)
{
    const char *set = bel_store_env("AWS_REGION");
    return set != NULL ? set : bel_store_env("AWS_DEFAULT_REGION");
}

bel_status *bel_profile_region(const bel_profiles *files, char **out_region)
{
    const char *set = region_variable();
    char *region = NULL;
    if (set == NULL) BEL_TRY(get_place(files, "region", true, &region));
    if (region == NULL) region = bel_xstrdup(set != NULL ? set : "us-east-1");
    if (bel_url_is_name(region, "-_")) {
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

bel_status *bel_profile_endpoint(const bel_profiles *files, const char *service, bool shared,
                                 char **out_origin, char **out_path)
{
    char *what = bel_strf("AWS_ENDPOINT_URL_%s", service), *found = NULL;
    const char *set = bel_store_env(what);
    bel_status *status = NULL;
    if (set == NULL && shared) {
        bel_free(what);
        what = bel_xstrdup("AWS_ENDPOINT_URL");
        set = bel_store_env(what);
    }
    if (set == NULL && shared) {
        char *profile = bel_profile_text(files, NULL);
        bel_free(what);
        what = bel_strf("%s: endpoint_url", profile);
        bel_free(profile);
        status = get_place(files, "endpoint_url", region_variable() != NULL, &found);
        set = found;
    }
    if (status == NULL && set != NULL)
        status = bel_url_split_endpoint(set, what, out_origin, out_path);
    else if (status == NULL)
        *out_origin = *out_path = NULL;
    bel_free(found);
    bel_free(what);
    return status;
}

char *bel_profile_amazon(const char *service, const char *region)
{
    bool china = strncmp(region, "cn-", 3) == 0;
    return bel_strf("https://%s.%s.amazonaws.com%s", service, region, china ? ".cn" : "");
}
