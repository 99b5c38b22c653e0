// Settings of Amazon's tools: see profile.h. Indented lines are the settings of a group, which a
// line "GROUP =" without a value begins. The texts stay as they were read and are searched for each
// setting, since there are few.
#include "store/profile.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

// True for a line "NAME = VALUE" of that name; *out_value is NULL if it is empty, else for
// bel_free.
static bool is_setting(const char *line, size_t length, const char *name, char **out_value)
{
    const char *equals = memchr(line, '=', length);
    if (equals == NULL) return false;
    size_t key = (size_t)(equals - line), left = length - (size_t)(equals + 1 - line);
    line = trim(line, &key);
    if (key != strlen(name) || strncmp(line, name, key) != 0) return false;
    const char *value = trim(equals + 1, &left);
    *out_value = left > 0 ? bel_xstrndup(value, left) : NULL;
    return true;
}

bool bel_profile_find(const char *text, const char *section, const char *group, const char *name,
                      char **out_value)
{
    bool inside = false, found = false, in_group = false;
    *out_value = NULL;
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *at = line;
        char *value;
        line += length + (line[length] == '\n' ? 1 : 0);
        if (length == 0 || strchr("#;", at[0]) != NULL) continue;
        bool indented = strchr(" \t", at[0]) != NULL;
        if (at[0] == '[') {
            inside = is_section(at, length, section);
            found = found || inside;
            in_group = false;
            continue;
        }
        if (!indented && group != NULL) {
            value = NULL;
            in_group = inside && is_setting(at, length, group, &value) && value == NULL;
            bel_free(value);
            continue;
        }
        if (!inside || indented != (group != NULL) || (indented && !in_group)) continue;
        if (!is_setting(at, length, name, &value)) continue;
        bel_free(*out_value);
        *out_value = value;
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
    (void)bel_profile_find(files->config, section, NULL, name, &value);
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
    bool first = bel_profile_find(files->credentials, profile, NULL, name, &value);
    bool found =
        bel_profile_find(files->config, section, NULL, name, &second) || first || is_default;
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

// A setting of the chosen profile in the config file, in a group or in none; NULL: absent.
static char *config_setting(const bel_profiles *files, const char *group, const char *name)
{
    const char *profile = profile_name(NULL);
    bool is_default = strcmp(profile, "default") == 0;
    char *section = is_default ? bel_xstrdup(profile) : bel_strf("profile %s", profile), *value;
    (void)bel_profile_find(files->config, section, group, name, &value);
    bel_free(section);
    return value;
}

// True if a variable (NULL: only the setting counts), else a setting, is "true".
static bool is_true(const bel_profiles *files, const char *variable, const char *group,
                    const char *name)
{
    const char *set = variable != NULL ? bel_store_env(variable) : NULL;
    char *value = set != NULL ? bel_xstrdup(set) : config_setting(files, group, name);
    bool yes = value != NULL && strcasecmp(value, "true") == 0;
    bel_free(value);
    return yes;
}

// The endpoint_url of a service in the section [services NAME] that the profile names.
static bel_status *find_in_services(const bel_profiles *files, const char *service, char **out_what,
                                    char **out_url)
{
    char *name = NULL, group[8] = "";
    BEL_TRY(get_place(files, "services", true, &name));
    if (name == NULL) return NULL;
    for (size_t i = 0; service[i] != '\0' && i + 1 < sizeof group; i++)
        group[i] = (char)tolower((unsigned char)service[i]);
    char *section = bel_strf("services %s", name);
    bool there = bel_profile_find(files->config, section, group, "endpoint_url", out_url);
    if (there)
        *out_what = bel_strf("%s: [%s]: %s: endpoint_url", files->config_path, section, group);
    bel_free(section);
    bel_status *status = NULL;
    if (!there) {
        char *profile = bel_profile_text(files, NULL);
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "%s: services = %s: there is no section [services %s]",
                    profile, name, name);
        bel_free(profile);
    }
    bel_free(name);
    return status;
}

// Finds the server of a service, and where it is set; NULL: it is not set.
static bel_status *find_endpoint(const bel_profiles *files, const char *service, bool shared,
                                 char **out_what, char **out_url)
{
    static const char all[] = "AWS_ENDPOINT_URL";
    char *variable = bel_strf("%s_%s", all, service);
    const char *set = bel_store_env(variable);
    bool common = set == NULL && shared;
    if (common) set = bel_store_env(all);
    *out_what = *out_url = NULL;
    if (set != NULL) {
        *out_what = bel_xstrdup(common ? all : variable);
        *out_url = bel_xstrdup(set);
    }
    bel_free(variable);
    if (set != NULL) return NULL;
    BEL_TRY(find_in_services(files, service, out_what, out_url));
    if (*out_url != NULL || !shared) return NULL;
    bel_free(*out_what);
    char *profile = bel_profile_text(files, NULL);
    *out_what = bel_strf("%s: endpoint_url", profile);
    bel_free(profile);
    return get_place(files, "endpoint_url", region_variable() != NULL, out_url);
}

// Refuses settings that choose another server of Amazon than the usual one.
static bel_status *check_usual(const bel_profiles *files, const char *service)
{
    static const struct {
        const char *variable, *group, *name;
    } servers[] = {{"AWS_USE_FIPS_ENDPOINT", NULL, "use_fips_endpoint"},
                   {"AWS_USE_DUALSTACK_ENDPOINT", NULL, "use_dualstack_endpoint"},
                   {NULL, "s3", "use_dualstack_endpoint"},
                   {NULL, "s3", "use_accelerate_endpoint"}};
    bool is_s3 = strcmp(service, "S3") == 0;
    size_t count = sizeof servers / sizeof *servers, i = 0;
    while (i < count && ((servers[i].group != NULL && !is_s3) ||
                         !is_true(files, servers[i].variable, servers[i].group, servers[i].name)))
        i++;
    if (i == count) return NULL;
    const char *variable = servers[i].variable, *group = servers[i].group;
    char *what = variable != NULL && bel_store_env(variable) != NULL
                     ? bel_xstrdup(variable)
                     : bel_strf("%s: %s%s%s", files->config_path, group != NULL ? group : "",
                                group != NULL ? ": " : "", servers[i].name);
    bel_status *status = BEL_ERR(
        BEL_INVALID_ARGUMENT, "%s is not supported; hint: set AWS_ENDPOINT_URL_%s to that server%s",
        what, service, is_s3 ? ", such as https://s3-fips.us-east-1.amazonaws.com" : "");
    bel_free(what);
    return status;
}

bel_status *bel_profile_endpoint(const bel_profiles *files, const char *service, bool shared,
                                 char **out_origin, char **out_path)
{
    char *what = NULL, *url = NULL;
    bel_status *status = NULL;
    *out_origin = *out_path = NULL;
    if (!is_true(files, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", NULL,
                 "ignore_configured_endpoint_urls"))
        status = find_endpoint(files, service, shared, &what, &url);
    if (status == NULL)
        status = url != NULL ? bel_url_split_endpoint(url, what, out_origin, out_path)
                             : check_usual(files, service);
    bel_free(url);
    bel_free(what);
    return status;
}

bel_status *bel_profile_style(const bel_profiles *files, bel_profile_addressing *out_style)
{
    char *text = config_setting(files, "s3", "addressing_style");
    bel_status *status = NULL;
    if (text == NULL || strcmp(text, "auto") == 0)
        *out_style = BEL_ADDRESSING_AUTO;
    else if (strcmp(text, "path") == 0)
        *out_style = BEL_ADDRESSING_PATH;
    else if (strcmp(text, "virtual") == 0)
        *out_style = BEL_ADDRESSING_VIRTUAL;
    else
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "%s: s3: addressing_style: expected auto, path or virtual, got \"%s\"",
                         files->config_path, text);
    bel_free(text);
    return status;
}

bel_status *bel_profile_check(const bel_profiles *files)
{
    char *bundle = config_setting(files, NULL, "ca_bundle");
    bool unread = bundle != NULL && bel_store_env("AWS_CA_BUNDLE") == NULL;
    bel_free(bundle);
    if (!unread) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: ca_bundle is not supported; hint: set AWS_CA_BUNDLE to that file",
                   files->config_path);
}

char *bel_profile_amazon(const char *service, const char *region)
{
    bool china = strncmp(region, "cn-", 3) == 0;
    return bel_strf("https://%s.%s.amazonaws.com%s", service, region, china ? ".cn" : "");
}
