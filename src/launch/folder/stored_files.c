// Rules for the names of files, and the walk over a folder. The rules are here and not where the
// files are written, because a rule that is forgotten would send a lock or a socket, or make half a
// checkpoint visible. An error of the walk must never look like an empty folder: the objects of
// missing files may be removed.
#include "launch/folder/stored_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

static bool is_one_of(const char *name, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) return true;
    return false;
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t size = strlen(end);
    return length >= size && strncmp(name + length - size, end, size) == 0;
}

// True for files of only this host: of running processes, and on the way to or from their names.
bool bel_stored_is_of_host(const char *name)
{
    static const char *const first[] = {"job.lock",   "job.token", "job.scale", "job.starts",
                                        "board.json", "copies",    "logs",      BEL_LEASE_FILE};
    if (is_one_of(name, strcspn(name, "/"), first, sizeof first / sizeof *first)) return true;
    if (strncmp(name, ".belfry-", 8) == 0) return true; // a trial of the store
    for (const char *part = name; *part != '\0';) {
        size_t length = strcspn(part, "/");
        const char *between = strstr(part, ".tmp-");
        if (between != NULL && between < part + length) return true;
        if (ends_with(part, length, ".replaced") || strstr(part, ".removed") != NULL) return true;
        part += length;
        part += *part == '/';
    }
    return false;
}

// Length of the folder's part of a name, without the slash.
size_t bel_stored_folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash == NULL ? 0 : (size_t)(slash - name);
}

bool bel_stored_is_last(const char *name)
{
    static const char *const last[] = {"manifest.json", "signature.json"};
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;
    return is_one_of(base, strlen(base), last, sizeof last / sizeof *last);
}

// Length of the name of the checkpoint's folder that a file is in; 0: none.
size_t bel_stored_checkpoint_length(const char *name)
{
    static const char prefix[] = "ckpt-";
    size_t length = strcspn(name, "/");
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[length] == '/' ? length : 0;
}

size_t bel_stored_version_length(const char *name)
{
    static const char exports[] = "export/";
    if (strncmp(name, exports, sizeof exports - 1) != 0) return bel_stored_checkpoint_length(name);
    const char *its = strchr(name + sizeof exports - 1, '/');
    const char *end = its != NULL ? strchr(its + 1, '/') : NULL;
    return end != NULL ? (size_t)(end - name) : 0;
}

// Length of the series before the version's part: 0 for checkpoints, that of "export/best/".
static size_t series_length(const char *name, size_t version)
{
    while (version > 0 && name[version - 1] != '/')
        version--;
    return version;
}

// Steps have no zeros at the beginning, or the same number of digits.
bool bel_stored_is_newer(const char *other, const char *name)
{
    size_t x = bel_stored_version_length(other), y = bel_stored_version_length(name);
    size_t series = series_length(name, y);
    if (x == 0 || y == 0 || series_length(other, x) != series) return false;
    if (strncmp(other, name, series) != 0) return false;
    return x != y ? x > y : strncmp(other + series, name + series, x - series) > 0;
}

bool bel_stored_is_name(const char *name)
{
    enum { MOST_BYTES = 255 };
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, "/");
        bool dots =
            (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.');
        if (length == 0 || length > MOST_BYTES || dots) return false;
        part += length;
        if (*part == '\0') return true;
    }
}

// True for a file in folder `kind`, or in a folder KIND_NAME.
static bool is_below(const char *name, const char *kind)
{
    size_t length = strlen(kind);
    bool begins = strncmp(name, kind, length) == 0;
    return begins && (name[length] == '/' || (name[length] == '_' && strchr(name, '/') != NULL));
}

// An owner's exporters write export/NAME/STEP.
static bool is_export_of_verb(const char *name)
{
    static const char prefix[] = "export/";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *step = name + sizeof prefix - 1;
    size_t digits = strspn(step, "0123456789");
    return digits > 0 && step[digits] == '/';
}

bool bel_stored_may_send(bel_stored_writer writer, const char *name)
{
    if (writer == BEL_STORED_EVALUATOR) return is_below(name, "evaluator");
    if (writer == BEL_STORED_VERB) return is_below(name, "evaluate") || is_export_of_verb(name);
    return writer == BEL_STORED_OWNER || bel_stored_checkpoint_length(name) == 0;
}

bool bel_stored_is_curve(const char *name)
{
    return is_below(name, "evaluator") || is_below(name, "evaluate");
}

char *bel_stored_object(const bel_stored_state *state, const char *name)
{
    return bel_strf("%s/%s", state->url, name);
}

int64_t bel_stored_changed_ns(const struct stat *info)
{
    return info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec;
}

// Adds a file or the files of a folder, unless it is gone.
static bel_status *walk_to(const char *root, const char *name, bel_stored_files *list)
{
    struct stat info;
    char *path = bel_path_join(root, name);
    bool there = lstat(path, &info) == 0;
    bel_status *status = NULL;
    if (!there && errno != ENOENT) status = bel_file_error(errno, "look at", path);
    bel_free(path);
    if (!there) return status;
    if (S_ISDIR(info.st_mode)) return bel_stored_walk(root, name, list);
    if (!S_ISREG(info.st_mode)) return NULL;
    list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (bel_stored_file){.name = bel_xstrdup(name),
                                                   .size_bytes = (uint64_t)info.st_size,
                                                   .changed_ns = bel_stored_changed_ns(&info)};
    return NULL;
}

bel_status *bel_stored_walk(const char *root, const char *below, bel_stored_files *list)
{
    bool is_root = below[0] == '\0';
    char *folder = is_root ? bel_xstrdup(root) : bel_path_join(root, below);
    char **names = NULL;
    size_t count = 0;
    bel_status *status = bel_dir_list(folder, &names, &count);
    if (!is_root && bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // it was removed
        status = NULL;
    }
    for (size_t i = 0; i < count && status == NULL; i++) {
        char *name = is_root ? bel_xstrdup(names[i]) : bel_strf("%s/%s", below, names[i]);
        if (!bel_stored_is_of_host(name)) status = walk_to(root, name, list);
        bel_free(name);
    }
    bel_dir_names_free(names, count);
    bel_free(folder);
    return status;
}

void bel_stored_files_deinit(bel_stored_files *list)
{
    for (size_t i = 0; i < list->count; i++)
        bel_free(list->items[i].name);
    bel_free(list->items);
}
