// Rules for the names of files, and the walk over a folder.
#include "launch/folder/stored_files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "launch/folder/stored.h"

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
    static const char *const first[] = {"job.lock",   "job.token",  "job.scale",
                                        "job.starts", "evaluating", "board.json",
                                        "copies",     "logs",       BEL_LEASE_FILE};
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
    const char *base = strrchr(name, '/');
    if (base == NULL) return false;
    return is_one_of(base + 1, strlen(base + 1), last, sizeof last / sizeof *last);
}

// Length of the name of the checkpoint's folder that a file is in; 0: none.
size_t bel_stored_checkpoint_length(const char *name)
{
    static const char prefix[] = "ckpt-";
    size_t length = strcspn(name, "/");
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[length] == '/' ? length : 0;
}

char *bel_stored_object(const bel_stored_state *state, const char *name)
{
    return bel_strf("%s/%s", state->url, name);
}

int64_t bel_stored_changed_ns(const struct stat *info)
{
    return info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec;
}

// Adds the files of folder `below` ("": the model folder). A folder that is gone has no files.
void bel_stored_walk(const char *root, const char *below, bel_stored_files *list)
{
    char *folder = below[0] == '\0' ? bel_xstrdup(root) : bel_path_join(root, below);
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        char *path = bel_path_join(folder, names[i]);
        char *name = below[0] == '\0' ? bel_xstrdup(names[i]) : bel_strf("%s/%s", below, names[i]);
        bool there = !bel_stored_is_of_host(name) && lstat(path, &info) == 0;
        if (there && S_ISDIR(info.st_mode)) bel_stored_walk(root, name, list);
        if (there && S_ISREG(info.st_mode)) {
            list->items =
                bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
            list->items[list->count++] =
                (bel_stored_file){.name = name,
                                  .size_bytes = (uint64_t)info.st_size,
                                  .changed_ns = bel_stored_changed_ns(&info)};
            name = NULL;
        }
        bel_free(name);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    bel_free(folder);
}

void bel_stored_files_deinit(bel_stored_files *list)
{
    for (size_t i = 0; i < list->count; i++)
        bel_free(list->items[i].name);
    bel_free(list->items);
}
