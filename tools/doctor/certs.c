// Verb certs: makes an authority for the job and one certificate for all of its hosts. No file is
// overwritten: a running job has these files open on each host, and a lost key cannot be restored.
// A new certificate is made if host.pem and host.key are absent and the authority is there. Other
// hosts then need no new ca.pem.
//
// Files are created with their final mode, keys first. So a key is never visible to other users,
// and a certificate never exists without its key. If one file of a pair cannot be written, both are
// removed. stdout has only the lines for cluster.yaml, so it can be appended to that file.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "doctor/certificate.h"

// Paths of the four files.
typedef struct files {
    char *ca, *ca_key, *host, *host_key;
} files;

static files name_files(const char *folder)
{
    return (files){bel_path_join(folder, "ca.pem"), bel_path_join(folder, "ca.key"),
                   bel_path_join(folder, "host.pem"), bel_path_join(folder, "host.key")};
}

static void free_files(files *f)
{
    bel_free(f->ca);
    bel_free(f->ca_key);
    bel_free(f->host);
    bel_free(f->host_key);
}

// --- Names --------------------------------------------------------------------------------------

typedef struct name_list {
    const char **items;
    size_t count, capacity;
} name_list;

static void add_name(name_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0) return;
    list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = name;
}

// Collects the names of --hosts, or this host's name (`own` keeps it), and the loopback's names.
static bel_status *collect_names(const bel_options *options, char own[256], name_list *out)
{
    size_t count;
    const char *const *hosts = bel_options_list(options, "hosts", &count);
    for (size_t i = 0; i < count; i++) {
        if (!bel_certificate_is_name(hosts[i])) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--hosts: \"%s\" is no host: expected a DNS name, or an IPv4 or IPv6 "
                           "address, without user, port and brackets",
                           hosts[i]);
        }
        add_name(out, hosts[i]);
    }
    if (count == 0 && gethostname(own, 255) == 0 && bel_certificate_is_name(own))
        add_name(out, own);
    add_name(out, "localhost");
    add_name(out, "127.0.0.1");
    add_name(out, "::1");
    return NULL;
}

static char *names_text(const name_list *names)
{
    bel_str text = {0};
    for (size_t i = 0; i < names->count; i++) {
        const char *between = i == 0 ? "" : i + 1 < names->count ? ", " : " and ";
        bel_str_printf(&text, "%s%s", between, names->items[i]);
    }
    return text.text;
}

// --- Files --------------------------------------------------------------------------------------

static bel_status *write_new(const char *path, const char *text, mode_t mode)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) return bel_file_error(errno, "create", path);
    int error = bel_fault_write_fails() ? ENOSPC : 0;
    size_t left = error == 0 ? strlen(text) : 0;
    while (left > 0 && error == 0) {
        ssize_t wrote = write(descriptor, text, left);
        if (wrote < 0 && errno != EINTR) error = errno;
        if (wrote < 0) continue;
        text += wrote;
        left -= (size_t)wrote;
    }
    if (error == 0 && fsync(descriptor) != 0) error = errno;
    close(descriptor);
    if (error == 0) return NULL;
    unlink(path);
    return bel_file_error(error, "write", path);
}

static bel_status *write_pair(const bel_pem_pair *pair, const char *path, const char *key_path)
{
    BEL_TRY(write_new(key_path, pair->key, 0600));
    bel_status *status = write_new(path, pair->certificate, 0644);
    if (status != NULL) unlink(key_path);
    return status;
}

// Requires both files of an authority, or neither.
static bel_status *check_files(const files *f, bool *out_has_authority)
{
    const char *const hosts[] = {f->host, f->host_key};
    for (int i = 0; i < 2; i++) {
        if (!bel_file_exists(hosts[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s is there already; nothing was changed; hint: with host.pem and host.key "
                       "moved away, the authority beside them signs new ones",
                       hosts[i]);
    }
    bool ca = bel_file_exists(f->ca), key = bel_file_exists(f->ca_key);
    *out_has_authority = ca;
    if (ca == key) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s is there without %s; expected both files of an authority, or neither; "
                   "nothing was changed",
                   ca ? f->ca : f->ca_key, ca ? f->ca_key : f->ca);
}

// --- Making -------------------------------------------------------------------------------------

// An authority outlives several host certificates: hosts with its ca.pem need no other one.
static bel_status *make_authority(const files *f, int64_t days)
{
    enum { LEAST_DAYS = 3650 };
    bel_pem_pair pair = {0};
    int64_t longer = (days > LEAST_DAYS ? days : LEAST_DAYS) + 1;
    BEL_TRY(bel_certificate_make_authority(longer, &pair));
    bel_status *status = write_pair(&pair, f->ca, f->ca_key);
    bel_pem_pair_deinit(&pair);
    return status;
}

// Checks that an existing certificate is an authority's, and that it expires no earlier than the
// new one.
static bel_status *check_authority(const files *f, int64_t days)
{
    BEL_TRY(bel_private_file_check(f->ca_key, "the authority's key"));
    bel_certificate *ca;
    BEL_TRY(bel_certificate_read(f->ca, &ca));
    bel_status *status = NULL;
    double left = bel_certificate_days_left(ca);
    if (!bel_certificate_is_authority(ca)) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "the certificate in %s is not that of an authority",
                         f->ca);
    } else if (left < (double)days) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "--days: the authority in %s ends on %s, which is sooner: expected at "
                         "most %lld, got %lld",
                         f->ca, bel_certificate_last_day(ca), left > 0 ? (long long)left : 0,
                         (long long)days);
    }
    bel_certificate_destroy(ca);
    return status;
}

static bel_status *make_host(const files *f, const name_list *names, int64_t days)
{
    bel_pem_pair pair = {0};
    BEL_TRY(bel_certificate_make_host(f->ca, f->ca_key, names->items, names->count, days, &pair));
    bel_status *status = write_pair(&pair, f->host, f->host_key);
    bel_pem_pair_deinit(&pair);
    return status;
}

// --- Output -------------------------------------------------------------------------------------

// Appends a text for YAML, which accepts JSON's quotes; unquoted if it needs no quotes.
static void put_text(bel_str *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-";
    bool simple = text[0] != '-' && text[strspn(text, plain)] == '\0';
    simple ? bel_str_puts(out, text) : bel_json_write_string(out, text);
}

static void write_yaml(const files *f, bel_str *out)
{
    bel_str_puts(out, "security:\n  tls: {ca: ");
    put_text(out, f->ca);
    bel_str_puts(out, ", certificate: ");
    put_text(out, f->host);
    bel_str_puts(out, ", key: ");
    put_text(out, f->host_key);
    bel_str_puts(out, "}\n");
}

static void write_json(const files *f, const name_list *names, const char *last_day, bel_str *out)
{
    bel_str_puts(out, "{\"ca\":");
    bel_json_write_string(out, f->ca);
    bel_str_puts(out, ",\"certificate\":");
    bel_json_write_string(out, f->host);
    bel_str_puts(out, ",\"key\":");
    bel_json_write_string(out, f->host_key);
    bel_str_puts(out, ",\"hosts\":[");
    for (size_t i = 0; i < names->count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, names->items[i]);
    }
    bel_str_printf(out, "],\"last_day\":\"%s\"}\n", last_day);
}

static bel_status *files_report(const files *f, const name_list *names, bool json)
{
    bel_certificate *host;
    BEL_TRY(bel_certificate_read(f->host, &host));
    char *hosts = names_text(names);
    bel_log_write(BEL_LOG_INFO,
                  "%s is for %s, until %s; it goes to each of the job's hosts, with "
                  "its key and %s",
                  f->host, hosts, bel_certificate_last_day(host), f->ca);
    bel_log_write(
        BEL_LOG_INFO,
        "%s signs further ones, for anyone who has it: keep it away from the job's hosts, "
        "which do not need it",
        f->ca_key);
    bel_str text = {0};
    if (json) {
        write_json(f, names, bel_certificate_last_day(host), &text);
    } else {
        write_yaml(f, &text);
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_free(hosts);
    bel_certificate_destroy(host);
    return status;
}

static bel_status *make_all(const files *f, const name_list *names, const char *folder,
                            const bel_options *options)
{
    int64_t days = bel_options_int(options, "days");
    bool has_authority = false;
    BEL_TRY(check_files(f, &has_authority));
    if (has_authority) {
        BEL_TRY(check_authority(f, days));
        bel_log_write(BEL_LOG_INFO, "the authority in %s signs", f->ca);
    } else {
        BEL_TRY(bel_dir_create(folder));
        BEL_TRY(make_authority(f, days));
    }
    BEL_TRY(make_host(f, names, days));
    return files_report(f, names, bel_options_bool(options, "json"));
}

bel_status *bel_verb_certs(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    if (count != 1 || arguments[0][0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "certs: expected one folder for the files, got %zu",
                       count);
    }
    char own[256] = "";
    name_list names = {0};
    files f = name_files(arguments[0]);
    bel_status *status = collect_names(options, own, &names);
    if (status == NULL) status = make_all(&f, &names, arguments[0], options);
    free_files(&f);
    bel_free(names.items);
    return status;
}
