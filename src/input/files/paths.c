// Patterns are expanded by glob(3), folder by folder for "**". Its sort order depends on the
// locale, which may differ between the hosts of a job. So names are sorted here, byte by byte: the
// order of the files decides the numbers of their records. Each process expands patterns when it
// opens a dataset. If it finds other files, the fingerprint of its data differs, and the process is
// refused.
#include "input/files/paths.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "store/store.h"
#include "store/url.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_pattern(const char *path)
{
    if (bel_store_is_url(path)) return false;
    return strpbrk(path, "*?[") != NULL && !bel_file_exists(path);
}

bool bel_path_is_object(const char *path)
{
    return bel_store_is_url(path);
}

// A web server has no listings, and ? begins a query there. One of an object's URL is refused when
// it is read.
static bool may_list(const char *url)
{
    bool web = strncasecmp(url, "http", 4) == 0;
    return !web && strpbrk(url, "*?[") != NULL && bel_store_find_query(url) == NULL;
}

bool bel_path_is_pattern(const char *path)
{
    return bel_store_is_url(path) ? may_list(path) : is_pattern(path);
}

// --- Objects -------------------------------------------------------------------------------------

// An object may have a name with * in it.
static bool is_object_pattern(const char *url)
{
    bel_store_info info;
    if (!may_list(url)) return false;
    bel_status *status = bel_store_stat(url, &info);
    bool found = status == NULL;
    bel_status_ignore(status); // the listing reports other errors
    return !found;
}

// As in a shell, wildcards match no slash, nor a dot that begins a name. A folder ** stands for any
// folders, also none.
static bool is_match(const char *pattern, const char *url)
{
    const char *stars = strstr(pattern, "/**/");
    if (stars == NULL) return fnmatch(pattern, url, FNM_PATHNAME | FNM_PERIOD) == 0;
    bel_str folders = {0};
    bool found = false;
    for (const char *slash = url; slash != NULL && !found; slash = strchr(slash + 1, '/')) {
        char *one = bel_strf("%.*s/%s%s", (int)(stars - pattern), pattern,
                             folders.text != NULL ? folders.text : "", stars + 4);
        found = is_match(one, url);
        bel_free(one);
        bel_str_puts(&folders, "*/");
    }
    bel_str_deinit(&folders);
    return found;
}

// Appends the objects that match the pattern, sorted as the listing is.
static bel_status *match_objects(bel_arena *arena, const char *pattern, const char ***list,
                                 size_t *capacity, size_t *used)
{
    size_t fixed = strcspn(pattern, "*?["), before = *used, count;
    bool deep = strchr(pattern + fixed, '/') != NULL;
    char *prefix = bel_xstrndup(pattern, fixed);
    const char *slash = strrchr(prefix, '/');
    int folder = (int)(slash + 1 - prefix); // a URL with a bucket has one
    bel_store_entry *entries = NULL;
    bel_status *status = bel_store_list(prefix, deep, &entries, &count);
    for (size_t i = 0; status == NULL && i < count; i++) {
        const char *name = entries[i].name;
        size_t length = strlen(name);
        bool file = length > 0 && name[length - 1] != '/';
        char *url = bel_strf("%.*s%s", folder, prefix, name);
        if (file && is_match(pattern, url)) {
            *list = bel_xgrow(*list, capacity, *used + 1, sizeof **list);
            (*list)[(*used)++] = bel_arena_strdup(arena, url);
        }
        bel_free(url);
    }
    if (status == NULL) bel_store_entries_free(entries, count);
    bel_free(prefix);
    if (status != NULL || *used > before) return status;
    return BEL_ERR(BEL_NOT_FOUND, "no object matches the pattern %s", pattern);
}

// --- Files ---------------------------------------------------------------------------------------

// Names of files that match; owned, to be freed with names_deinit.
typedef struct names {
    char **items;
    size_t count, capacity;
} names;

static void names_deinit(names *list)
{
    for (size_t i = 0; i < list->count; i++)
        bel_free(list->items[i]);
    bel_free(list->items);
}

// Adds the matches of a pattern; none is no error.
static bel_status *match_one(const char *pattern, names *list)
{
    glob_t matches = {0};
    errno = 0;
    int result = glob(pattern, GLOB_ERR | GLOB_NOSORT, NULL, &matches);
    bel_status *status = NULL;
    if (result == GLOB_NOSPACE) {
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "not enough memory for the files of %s", pattern);
    } else if (result != 0 && result != GLOB_NOMATCH) {
        status = bel_file_error(errno, "list the files of", pattern);
    }
    for (size_t m = 0; result == 0 && m < matches.gl_pathc; m++) {
        list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = bel_xstrdup(matches.gl_pathv[m]);
    }
    globfree(&matches);
    return status;
}

// Appends a name with a backslash before each character that a pattern would interpret.
static void put_literal(bel_str *out, const char *name)
{
    for (; *name != '\0'; name++)
        bel_str_printf(out, "%s%c", strchr("*?[\\", *name) != NULL ? "\\" : "", *name);
}

static bel_status *match_any(const char *pattern, names *list);

// Matches `rest` below a folder and all folders in it, except hidden ones and links.
static bel_status *match_below(const char *folder, const char *rest, names *list)
{
    char **inside;
    size_t count;
    bel_str pattern = {0};
    put_literal(&pattern, folder);
    bel_str_printf(&pattern, "%s%s", folder[0] == '\0' ? "" : "/", rest);
    bel_status *status = match_any(pattern.text, list);
    bel_str_deinit(&pattern);
    BEL_TRY(status);
    BEL_TRY(bel_dir_list(folder[0] == '\0' ? "." : folder, &inside, &count));
    for (size_t i = 0; i < count && status == NULL; i++) {
        struct stat info;
        char *path = folder[0] == '\0' ? bel_xstrdup(inside[i]) : bel_path_join(folder, inside[i]);
        bool enters = inside[i][0] != '.' && lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
        if (enters) status = match_below(path, rest, list);
        bel_free(path);
    }
    bel_dir_names_free(inside, count);
    return status;
}

// Adds the matches of a pattern in which "**" as a folder stands for any folders, also none.
static bel_status *match_any(const char *pattern, names *list)
{
    const char *stars = strncmp(pattern, "**/", 3) == 0 ? pattern : strstr(pattern, "/**/");
    if (stars == NULL) return match_one(pattern, list);
    const char *rest = stars + (stars == pattern && *stars == '*' ? 3 : 4);
    if (stars == pattern) return match_below(*stars == '*' ? "" : "/", rest, list);
    names folders = {0};
    char *before = bel_xstrndup(pattern, (size_t)(stars - pattern));
    bel_status *status = match_one(before, &folders);
    for (size_t f = 0; f < folders.count && status == NULL; f++)
        if (bel_dir_exists(folders.items[f])) status = match_below(folders.items[f], rest, list);
    names_deinit(&folders);
    bel_free(before);
    return status;
}

// Several folders of a pattern may contain each other, and so find a file twice.
static bel_status *match(const char *pattern, names *list)
{
    BEL_TRY(match_any(pattern, list));
    if (list->count == 0) {
        return BEL_ERR(BEL_NOT_FOUND, "no file matches the pattern %s", pattern);
    }
    qsort(list->items, list->count, sizeof *list->items, compare_names);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++) {
        if (strcmp(list->items[i], list->items[kept - 1]) == 0) {
            bel_free(list->items[i]);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    return NULL;
}

// Finds the file of a relative name on this host; hosts of a job may have their data in different
// folders.
static bel_status *find_place(bel_arena *arena, const char *path, const char **out_path)
{
    const char *folder = getenv(BEL_DATA_DIR_VARIABLE);
    *out_path = path;
    if (folder == NULL || folder[0] == '\0' || path[0] == '/' || bel_store_is_url(path))
        return NULL;
    if (folder[0] != '/') { // otherwise a found name would be searched below it again
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "environment variable " BEL_DATA_DIR_VARIABLE
                       ": expected a path from the root, got %s",
                       folder);
    }
    char *whole = bel_path_join(folder, path);
    *out_path = bel_arena_strdup(arena, whole);
    bel_free(whole);
    return NULL;
}

// Appends the files or objects that match.
static bel_status *match_to(bel_arena *arena, const char *pattern, const char ***list,
                            size_t *capacity, size_t *used)
{
    if (bel_store_is_url(pattern)) return match_objects(arena, pattern, list, capacity, used);
    names matches = {0};
    bel_status *status = match(pattern, &matches);
    for (size_t m = 0; status == NULL && m < matches.count; m++) {
        *list = bel_xgrow(*list, capacity, *used + 1, sizeof **list);
        (*list)[(*used)++] = bel_arena_strdup(arena, matches.items[m]);
    }
    names_deinit(&matches);
    return status;
}

// Moves a list to the arena.
static bel_status *keep_list(bel_arena *arena, const char **list, size_t used,
                             const char *const **out_paths, int *out_count)
{
    bel_status *status = NULL;
    if (used > INT_MAX) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "expected at most %d files, got %zu", INT_MAX, used);
    } else {
        *out_paths = bel_arena_copy(arena, list, used * sizeof *list);
        *out_count = (int)used;
    }
    bel_free(list);
    return status;
}

bel_status *bel_paths_match(bel_arena *arena, const char *pattern, const char *const **out_paths,
                            int *out_count)
{
    const char **list = NULL, *place;
    size_t capacity = 0, used = 0;
    BEL_TRY(find_place(arena, pattern, &place));
    bel_status *status = match_to(arena, place, &list, &capacity, &used);
    if (status == NULL) return keep_list(arena, list, used, out_paths, out_count);
    bel_free(list);
    return status;
}

bel_status *bel_paths_expand(bel_arena *arena, const char *const *paths, int count,
                             const char *const **out_paths, int *out_count)
{
    const char **list = NULL;
    size_t capacity = 0, used = 0;
    bel_status *status = NULL;
    for (int i = 0; i < count && status == NULL; i++) {
        const char *path = paths[i];
        if (bel_store_is_url(path) && is_object_pattern(path)) {
            status = match_objects(arena, path, &list, &capacity, &used);
            continue;
        }
        status = find_place(arena, paths[i], &path);
        if (status != NULL) break;
        if (!is_pattern(path)) {
            list = bel_xgrow(list, &capacity, used + 1, sizeof *list);
            list[used++] = bel_arena_strdup(arena, path);
            continue;
        }
        status = match_to(arena, path, &list, &capacity, &used);
    }
    if (status == NULL) return keep_list(arena, list, used, out_paths, out_count);
    bel_free(list);
    return status;
}

bel_status *bel_path_expand_one(bel_arena *arena, const char *path, const char **out_path)
{
    const char *const *found;
    int count;
    BEL_TRY(bel_paths_expand(arena, &path, 1, &found, &count));
    if (count > 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected one file for the pattern %s, got %d: %s, %s%s", path, count,
                       found[0], found[1], count > 2 ? " …" : "");
    }
    *out_path = found[0];
    return NULL;
}

bool bel_paths_are_elsewhere(const char *const *paths, int count)
{
    bel_arena *arena = bel_arena_create();
    const char *const *found = NULL;
    int found_count = 0;
    bel_status *status = bel_paths_expand(arena, paths, count, &found, &found_count);
    bool elsewhere = bel_status_code(status) == BEL_NOT_FOUND;
    bel_status_ignore(status); // any other error is reported when the files are opened
    for (int i = 0; i < found_count && !elsewhere; i++) {
        struct stat info;
        if (bel_store_is_url(found[i])) continue;
        bool exists = stat(found[i], &info) == 0;
        elsewhere = exists ? !S_ISREG(info.st_mode) : errno == ENOENT || errno == ENOTDIR;
    }
    bel_arena_destroy(arena);
    return elsewhere;
}
