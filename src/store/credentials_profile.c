// Credentials that a profile of Amazon's tools names: see credentials_aws.h. A role is assumed by
// those of another profile, which may have a role again, or of the process's surroundings. A chain
// of profiles has a largest length, since it may be a circle.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/program.h"
#include "store/credentials_aws.h"
#include "store/crypto.h"
#include "store/profile.h"

enum { MOST_ROLES = 8, MOST_WORDS = 64, PROGRAM_SECS = 60 };

// Settings of a profile that belong together; NULL: not set.
typedef struct settings {
    const char *profile; // NULL: the chosen one
    char *values[8];
} settings;

static bel_status *settings_read(settings *s, const bel_profiles *files, const char *const *names)
{
    bel_status *status = NULL;
    for (int i = 0; names[i] != NULL && status == NULL; i++)
        status = bel_profile_get(files, s->profile, names[i], &s->values[i]);
    return status;
}

static void settings_deinit(settings *s)
{
    for (size_t i = 0; i < sizeof s->values / sizeof *s->values; i++)
        bel_free(s->values[i]);
}

static bel_status *profile_error(const bel_aws_search *search, const char *profile, const char *why,
                                 const char *detail)
{
    char *text = bel_profile_text(&search->files, profile);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s: %s%s", text, why, detail);
    bel_free(text);
    return status;
}

// --- Keys

static bel_status *from_keys(const bel_aws_search *search, const char *profile,
                             bel_credentials **out)
{
    static const char *const names[] = {"aws_access_key_id", "aws_secret_access_key",
                                        "aws_session_token", NULL};
    settings s = {.profile = profile};
    bel_status *status = settings_read(&s, &search->files, names);
    bool id = s.values[0] != NULL, secret = s.values[1] != NULL;
    if (status == NULL && id && secret)
        *out = bel_aws_make(s.values[0], s.values[1], s.values[2], "the profile's files");
    else if (status == NULL && (id || secret))
        status =
            profile_error(search, profile, id ? names[0] : names[1],
                          id ? " without aws_secret_access_key" : " without aws_access_key_id");
    settings_deinit(&s);
    return status;
}

// --- A program

// Splits a command in place as a shell would, without variables: words, quotes and backslashes.
// Returns the problem; NULL: none.
static const char *split_words(char *text, char *out_words[MOST_WORDS + 1])
{
    int count = 0;
    char *to = text;
    for (char *at = text; *at != '\0';) {
        at += strspn(at, " \t");
        if (*at == '\0') break;
        if (count == MOST_WORDS) return "expected at most 64 words";
        out_words[count++] = to;
        char quote = '\0';
        for (; *at != '\0' && (quote != '\0' || strchr(" \t", *at) == NULL); at++) {
            bool opens = quote == '\0' && (*at == '"' || *at == '\'');
            if (opens || (quote != '\0' && *at == quote)) {
                quote = opens ? *at : '\0';
                continue;
            }
            bool escapes = quote == '\0' || (quote == '"' && strchr("\"\\$`", at[1]) != NULL);
            if (*at == '\\' && escapes && at[1] != '\0') at++;
            *to++ = *at;
        }
        if (quote != '\0') return "expected a command with closed quotes";
        bool last = *at == '\0';
        *to++ = '\0';
        at += !last;
    }
    out_words[count] = NULL;
    return count > 0 ? NULL : "expected a command";
}

static bel_status *run_program(const bel_aws_search *search, char *const *words, char **out_text)
{
    static const char source[] = "credential_process";
    int64_t left = (search->deadline_ns - bel_clock_ns()) / 1000000000;
    if (left <= 0) return BEL_ERR(BEL_UNAVAILABLE, "%s: no time is left to run it", source);
    int secs = left < PROGRAM_SECS ? (int)left : PROGRAM_SECS;
    BEL_TRY_CTX(bel_program_ask(words, NULL, secs, out_text), "%s", source);
    return NULL;
}

static bel_status *from_program(const bel_aws_search *search, const char *profile,
                                bel_credentials **out)
{
    static const char source[] = "credential_process";
    char *command, *words[MOST_WORDS + 1], *text = NULL;
    BEL_TRY(bel_profile_get(&search->files, profile, source, &command));
    if (command == NULL) return NULL;
    const char *problem = split_words(command, words);
    bel_status *status = NULL;
    if (problem != NULL) status = profile_error(search, profile, "credential_process: ", problem);
    if (status == NULL) status = run_program(search, words, &text);
    if (status == NULL)
        status = bel_aws_take_keys(text, strlen(text), "SessionToken", true, source, out);
    bel_free(text);
    bel_free(command);
    return status;
}

// --- Single sign-on

// Reads the token that `aws sso login` has written, whose file has the hash of `session` as name.
static bel_status *sso_token(const char *session, char **out_token)
{
    char name[BEL_HEX_BYTES], *text;
    size_t size;
    const char *home = bel_store_env("HOME"), *token, *expiry = NULL;
    bel_digest *digest = bel_digest_create(BEL_DIGEST_SHA1);
    bel_digest_update(digest, session, strlen(session));
    bel_digest_finish_hex(digest, name);
    char *path = bel_strf("%s/.aws/sso/cache/%s.json", home != NULL ? home : "", name);
    bel_json *json = NULL;
    bel_status *status = NULL;
    bool good = bel_file_exists(path);
    if (good) status = bel_file_read(path, &text, &size);
    if (good && status == NULL) {
        status = bel_json_parse_secret(text, size, path, &json);
        bel_free(text);
    }
    good = good && json != NULL && bel_json_string(bel_json_root(json), "accessToken", &token) &&
           bel_json_string(bel_json_root(json), "expiresAt", &expiry) &&
           bel_credentials_time(expiry) > bel_clock_wall();
    if (status == NULL && good)
        *out_token = bel_xstrdup(token);
    else if (status == NULL)
        status =
            BEL_ERR(BEL_PERMISSION_DENIED, "%s: %s; hint: aws sso login, with the same AWS_PROFILE",
                    path, expiry != NULL ? "the sign-on has expired" : "there is no sign-on");
    bel_json_destroy(json);
    bel_free(path);
    return status;
}

static bel_status *take_role_keys(const bel_str *answer, bel_credentials **out)
{
    static const char source[] = "single sign-on";
    bel_json *json;
    const char *id, *secret, *token;
    int64_t expires_ms;
    BEL_TRY(bel_json_parse_secret(answer->text, answer->length, source, &json));
    const bel_json_value *keys = bel_json_member(bel_json_root(json), "roleCredentials");
    bool good = keys != NULL && bel_json_string(keys, "accessKeyId", &id) &&
                bel_json_string(keys, "secretAccessKey", &secret) &&
                bel_json_string(keys, "sessionToken", &token) &&
                bel_json_i64(keys, "expiration", &expires_ms) && expires_ms > 0;
    if (good) {
        *out = bel_aws_make(id, secret, token, source);
        (*out)->expires = (double)expires_ms / 1000;
    }
    bel_json_destroy(json);
    if (good) return NULL;
    return BEL_ERR(BEL_PERMISSION_DENIED, "%s: expected roleCredentials with keys and a time",
                   source);
}

static bel_status *ask_sso(const bel_aws_search *search, const char *region, const char *account,
                           const char *role, const char *token, bel_credentials **out)
{
    char *origin, *path;
    bel_str url = {0}, answer = {0};
    bel_headers headers = {0};
    BEL_TRY(bel_profile_endpoint(&search->files, "SSO", false, &origin, &path));
    if (origin == NULL) origin = bel_profile_amazon("portal.sso", region);
    bel_str_printf(&url, "%s%s/federation/credentials?account_id=", origin,
                   path != NULL ? path : "");
    bel_url_encode(&url, account, false);
    bel_str_puts(&url, "&role_name=");
    bel_url_encode(&url, role, false);
    bel_headers_add(&headers, "x-amz-sso_bearer_token", "%s", token);
    bel_http_request request = {.method = "GET",
                                .url = url.text,
                                .headers = &headers,
                                .most = BEL_AWS_ANSWER_MOST,
                                .connect_secs = BEL_AWS_CONNECT_SECS,
                                .stall_secs = BEL_AWS_STALL_SECS};
    bel_status *status =
        bel_credentials_ask(&request, "single sign-on", 5, search->deadline_ns, &answer);
    if (status == NULL) status = take_role_keys(&answer, out);
    bel_headers_deinit(&headers);
    bel_str_deinit(&answer);
    bel_str_deinit(&url);
    bel_free(origin);
    bel_free(path);
    return status;
}

// The sign-on's token never goes to the server of a store: see `shared` of bel_profile_endpoint. A
// session has its settings in a separate section; older profiles have them themselves.
static bel_status *from_sign_on(const bel_aws_search *search, const char *profile,
                                bel_credentials **out)
{
    static const char *const names[] = {"sso_account_id", "sso_role_name", "sso_session",
                                        "sso_start_url",  "sso_region",    NULL};
    settings s = {.profile = profile};
    char *region = NULL, *token = NULL;
    bel_status *status = settings_read(&s, &search->files, names);
    const char *key = s.values[2] != NULL ? s.values[2] : s.values[3];
    if (status == NULL && s.values[2] != NULL)
        region = bel_profile_session(&search->files, s.values[2], names[4]);
    const char *at = region != NULL ? region : s.values[4];
    bool any = s.values[0] != NULL || key != NULL;
    bool whole = s.values[0] != NULL && s.values[1] != NULL && key != NULL && at != NULL;
    if (status == NULL && any && !whole)
        status = profile_error(search, profile, "single sign-on",
                               ": expected sso_account_id, sso_role_name, and sso_session or "
                               "sso_start_url, with sso_region");
    if (status == NULL && any && !bel_url_is_name(at, "-_"))
        status = profile_error(search, profile,
                               "sso_region: expected a name such as eu-west-1, got ", at);
    if (status == NULL && any) status = sso_token(key, &token);
    if (status == NULL && any) status = ask_sso(search, at, s.values[0], s.values[1], token, out);
    bel_free(token);
    bel_free(region);
    settings_deinit(&s);
    return status;
}

// --- Roles

// The profiles that lead to a role, the first one's number 0.
typedef struct way {
    const bel_aws_search *search;
    const char *profile; // NULL: the chosen one
    const struct way *before;
    int count;
} way;

static bel_status *find(const way *at, bel_credentials **out);

static bel_status *by_surroundings(const bel_aws_search *search, const char *profile,
                                   const char *name, bel_credentials **out)
{
    bel_status *status = NULL;
    if (strcmp(name, "Environment") == 0)
        status = bel_aws_from_environment(search, out);
    else if (strcmp(name, "EcsContainer") == 0)
        status = bel_aws_from_container(search, out);
    else if (strcmp(name, "Ec2InstanceMetadata") == 0)
        status = bel_aws_from_instance(search, out);
    else
        return profile_error(search, profile,
                             "credential_source: expected Environment, EcsContainer or "
                             "Ec2InstanceMetadata, got ",
                             name);
    if (status != NULL || *out != NULL) return status;
    return profile_error(search, profile, "no credentials in credential_source ", name);
}

// The keys of the named profile come before its role. A profile that is on the way already has only
// these.
static bel_status *by_profile(const way *at, const char *name, bel_credentials **out)
{
    const bel_aws_search *search = at->search;
    bool again = false;
    for (const way *w = at; w != NULL; w = w->before)
        again = again || bel_profile_is(w->profile, name);
    if (at->count == MOST_ROLES)
        return profile_error(search, at->profile, "more than 8 roles lead to each other from here",
                             "");
    const way next = {.search = search, .profile = name, .before = at, .count = at->count + 1};
    BEL_TRY(from_keys(search, name, out));
    if (*out == NULL && !again) BEL_TRY(find(&next, out));
    if (*out != NULL) return NULL;
    return profile_error(search, at->profile, "no credentials in source_profile ", name);
}

static bel_status *assume(const way *at, const settings *s, bel_credentials **out)
{
    const bel_aws_search *search = at->search;
    const char *source = s->values[1], *place = s->values[2], *file = s->values[3];
    bel_credentials *by = NULL;
    char *region;
    if ((source != NULL) + (place != NULL) + (file != NULL) != 1)
        return profile_error(search, at->profile, "role_arn",
                             ": expected one of source_profile, credential_source and "
                             "web_identity_token_file");
    if (s->values[7] != NULL)
        return profile_error(search, at->profile, "mfa_serial",
                             " is not supported: a job has no terminal for the code; hint: put "
                             "temporary keys into the environment");
    BEL_TRY(bel_profile_region(&search->files, &region));
    const bel_aws_role role = {.arn = s->values[0],
                               .session = s->values[4],
                               .external_id = s->values[5],
                               .seconds = s->values[6],
                               .region = region};
    bel_status *status = NULL;
    if (file != NULL)
        status = bel_sts_assume_by_token(search, &role, file, "web_identity_token_file", out);
    else if (source != NULL)
        status = by_profile(at, source, &by);
    else
        status = by_surroundings(search, at->profile, place, &by);
    if (status == NULL && by != NULL) status = bel_sts_assume(search, &role, by, out);
    bel_credentials_destroy(by);
    bel_free(region);
    return status;
}

static bel_status *from_role(const way *at, bel_credentials **out)
{
    static const char *const names[] = {"role_arn",
                                        "source_profile",
                                        "credential_source",
                                        "web_identity_token_file",
                                        "role_session_name",
                                        "external_id",
                                        "duration_seconds",
                                        "mfa_serial",
                                        NULL};
    settings s = {.profile = at->profile};
    bel_status *status = settings_read(&s, &at->search->files, names);
    if (status == NULL && s.values[0] != NULL) status = assume(at, &s, out);
    settings_deinit(&s);
    return status;
}

// The keys of `aws login` are in a cache of that tool.
static bel_status *refuse_login(const bel_aws_search *search, const char *profile)
{
    char *session;
    BEL_TRY(bel_profile_get(&search->files, profile, "login_session", &session));
    if (session == NULL) return NULL;
    bel_free(session);
    return profile_error(search, profile, "login_session",
                         " is not supported; hint: eval \"$(aws configure export-credentials "
                         "--format env)\"");
}

static bel_status *find(const way *at, bel_credentials **out)
{
    BEL_TRY(from_role(at, out));
    if (*out == NULL) BEL_TRY(from_sign_on(at->search, at->profile, out));
    if (*out == NULL) BEL_TRY(from_keys(at->search, at->profile, out));
    if (*out == NULL) BEL_TRY(from_program(at->search, at->profile, out));
    return *out == NULL ? refuse_login(at->search, at->profile) : NULL;
}

bel_status *bel_profile_credentials(const bel_aws_search *search, bel_credentials **out_credentials)
{
    const way first = {.search = search};
    return find(&first, out_credentials);
}
