// Files are compared by size and modification time with those that were sent, as every file of a
// model folder is replaced as a whole or only grows. A folder with a last file (manifest.json of a
// checkpoint, signature.json of an export) is whole for readers if that one exists. So if any file
// of it changes, the last file is removed first and sent last.
//
// Retention may remove a checkpoint while it is sent. So its files are sent from hard links in
// FOLDER.store/sending, which the next walk removes.
#include "launch/folder/stored_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/stored.h"
#include "store/store.h"

#define FETCHING_SUFFIX ".tmp-store"

// --- Names ---------------------------------------------------------------------------------------

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
static bool is_of_host(const char *name)
{
    static const char *const first[] = {"job.lock",   "job.token",  "job.scale",
                                        "job.starts", "evaluating", "board.json",
                                        "copies",     "logs",       BEL_LEASE_FILE};
    if (is_one_of(name, strcspn(name, "/"), first, sizeof first / sizeof *first)) return true;
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
static size_t folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash == NULL ? 0 : (size_t)(slash - name);
}

static bool is_in(const char *name, const char *folder, size_t length)
{
    return folder_length(name) == length && strncmp(name, folder, length) == 0;
}

static bool is_last(const char *name)
{
    static const char *const last[] = {"manifest.json", "signature.json"};
    const char *base = strrchr(name, '/');
    if (base == NULL) return false;
    return is_one_of(base + 1, strlen(base + 1), last, sizeof last / sizeof *last);
}

// Length of the name of the checkpoint's folder that a file is in; 0: none.
static size_t checkpoint_length(const char *name)
{
    static const char prefix[] = "ckpt-";
    size_t length = strcspn(name, "/");
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[length] == '/' ? length : 0;
}

static char *object_of(const bel_stored_state *state, const char *name)
{
    return bel_strf("%s/%s", state->url, name);
}

// --- Walk ----------------------------------------------------------------------------------------

static int64_t changed_ns(const struct stat *info)
{
    return info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec;
}

// A file as it is on this host now.
typedef struct host_entry {
    char *name;
    uint64_t size_bytes;
    int64_t changed_ns;
} host_entry;

typedef struct host_list {
    host_entry *items;
    size_t count, capacity;
} host_list;

// Adds the files of folder `below` ("": the model folder). A folder that is gone has no files.
static void walk(const char *root, const char *below, host_list *list)
{
    char *folder = below[0] == '\0' ? bel_xstrdup(root) : bel_path_join(root, below);
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        char *path = bel_path_join(folder, names[i]);
        char *name = below[0] == '\0' ? bel_xstrdup(names[i]) : bel_strf("%s/%s", below, names[i]);
        bool there = !is_of_host(name) && lstat(path, &info) == 0;
        if (there && S_ISDIR(info.st_mode)) walk(root, name, list);
        if (there && S_ISREG(info.st_mode)) {
            list->items =
                bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
            list->items[list->count++] = (host_entry){.name = name,
                                                      .size_bytes = (uint64_t)info.st_size,
                                                      .changed_ns = changed_ns(&info)};
            name = NULL;
        }
        bel_free(name);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    bel_free(folder);
}

static void list_deinit(host_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        bel_free(list->items[i].name);
    bel_free(list->items);
}

// --- Sending -------------------------------------------------------------------------------------

typedef struct pushing {
    bel_stored_state *state;
    bool removes;
    bel_stored_may_write *may_write;
    void *context;
    bel_stored_sums sums;
    host_list list;
} pushing;

static bool is_changed(const pushing *p, const host_entry *file)
{
    const bel_stored_entry *entry = bel_stored_state_at(p->state, file->name);
    return entry->tag == NULL || entry->size_bytes != file->size_bytes ||
           entry->changed_ns != file->changed_ns;
}

// Path of a hard link to the file, or of the file itself where the file system has no links.
static char *link_file(const pushing *p, const char *path, size_t index)
{
    char *folder = bel_stored_beside(p->state->folder, "sending");
    char *linked = bel_strf("%s/%zu", folder, index);
    bel_status_ignore(bel_dir_create(folder)); // then no link can be made
    bool made = link(path, linked) == 0;
    bel_free(folder);
    if (made) return linked;
    bel_free(linked);
    return bel_xstrdup(path);
}

static bel_status *remove_object(pushing *p, bel_stored_entry *entry)
{
    if (entry->tag == NULL) return NULL;
    BEL_TRY(p->may_write(p->context));
    char *url = object_of(p->state, entry->name);
    bel_status *status = bel_store_remove(url);
    bel_free(url);
    BEL_TRY(status);
    bel_free(entry->tag);
    entry->tag = NULL;
    return NULL;
}

// A file that is gone meanwhile is not sent; the next walk does not find it.
static bel_status *send_file(pushing *p, const host_entry *file, const char *from)
{
    bel_store_info info;
    struct stat now;
    BEL_TRY(p->may_write(p->context));
    if (stat(from, &now) != 0) return NULL;
    char *url = object_of(p->state, file->name);
    bel_status *status = bel_store_upload(from, url, &info);
    bel_free(url);
    if (status != NULL && !bel_file_exists(from)) {
        bel_status_ignore(status);
        return NULL;
    }
    BEL_TRY(status);
    bel_stored_entry *entry = bel_stored_state_at(p->state, file->name);
    bel_free(entry->tag);
    entry->tag = bel_xstrdup(info.tag);
    entry->size_bytes = info.size_bytes;
    entry->changed_ns = changed_ns(&now); // of before: a later write shows as a change
    p->sums.files++;
    p->sums.bytes += (int64_t)info.size_bytes;
    return NULL;
}

// Sends the changed files [first, end) of one folder: the last one at the end.
static bel_status *send_folder(pushing *p, size_t first, size_t end)
{
    bel_status *status = NULL;
    size_t last = end;
    bool changed = false;
    for (size_t i = first; i < end; i++) {
        changed = changed || is_changed(p, &p->list.items[i]);
        if (is_last(p->list.items[i].name)) last = i;
    }
    if (!changed) return NULL;
    char **from = bel_xcalloc(end - first, sizeof *from);
    for (size_t i = first; i < end; i++) {
        char *path = bel_path_join(p->state->folder, p->list.items[i].name);
        from[i - first] = last < end ? link_file(p, path, i) : bel_xstrdup(path);
        bel_free(path);
    }
    if (last < end)
        status = remove_object(p, bel_stored_state_at(p->state, p->list.items[last].name));
    for (size_t i = first; i < end && status == NULL; i++)
        if (i != last && is_changed(p, &p->list.items[i]))
            status = send_file(p, &p->list.items[i], from[i - first]);
    bel_fault_point("stored_before_last");
    if (last < end && status == NULL)
        status = send_file(p, &p->list.items[last], from[last - first]);
    if (status == NULL) status = bel_stored_state_write(p->state);
    for (size_t i = first; i < end; i++)
        bel_free(from[i - first]);
    bel_free(from);
    return status;
}

// Checkpoints come before the files that name them, and those of one folder together.
static int compare_files(const void *a, const void *b)
{
    const host_entry *x = a, *y = b;
    bool in_root = folder_length(x->name) == 0, other_in_root = folder_length(y->name) == 0;
    if (in_root != other_in_root) return in_root ? 1 : -1;
    size_t length = folder_length(x->name), other = folder_length(y->name);
    int order = strncmp(x->name, y->name, length < other ? length : other);
    if (order == 0 && length != other) order = length < other ? -1 : 1;
    return order != 0 ? order : strcmp(x->name, y->name);
}

static bel_status *send_changed(pushing *p)
{
    host_list *list = &p->list;
    qsort(list->items, list->count, sizeof *list->items, compare_files);
    for (size_t first = 0, end; first < list->count; first = end) {
        const char *folder = list->items[first].name;
        size_t length = folder_length(folder);
        for (end = first + 1; end < list->count; end++)
            if (!is_in(list->items[end].name, folder, length)) break;
        BEL_TRY(send_folder(p, first, end));
    }
    return NULL;
}

// Removes the objects whose files are gone. `last`: only those that make a folder whole.
static bel_status *remove_gone(pushing *p, bool last)
{
    for (size_t i = 0; i < p->state->count; i++) {
        bel_stored_entry *entry = &p->state->entries[i];
        if (entry->seen || is_last(entry->name) != last) continue;
        BEL_TRY(remove_object(p, entry));
    }
    return NULL;
}

static bel_status *push(pushing *p)
{
    bel_stored_state *state = p->state;
    for (size_t i = 0; i < state->count; i++)
        state->entries[i].seen = false;
    walk(state->folder, "", &p->list);
    for (size_t i = 0; i < p->list.count; i++)
        bel_stored_state_at(state, p->list.items[i].name)->seen = true;
    BEL_TRY(send_changed(p));
    if (p->removes) BEL_TRY(remove_gone(p, true));
    if (p->removes) BEL_TRY(remove_gone(p, false));
    bel_stored_state_sweep(state);
    return bel_stored_state_write(state);
}

bel_status *bel_stored_push(bel_stored_state *state, bool removes, bel_stored_may_write *may_write,
                            void *context, bel_stored_sums *out_sums)
{
    pushing p = {.state = state, .removes = removes, .may_write = may_write, .context = context};
    char *sending = bel_stored_beside(state->folder, "sending");
    bel_status *status = bel_dir_remove(sending);
    if (status == NULL) status = push(&p);
    bel_status_ignore(bel_dir_remove(sending)); // the next walk removes it
    bel_free(sending);
    list_deinit(&p.list);
    if (out_sums != NULL) *out_sums = p.sums;
    return status;
}

// --- Fetching ------------------------------------------------------------------------------------

typedef struct fetching {
    bel_stored_state *state;
    bel_store_entry *objects;
    size_t object_count;
    bool continues;
    bel_stored_sums sums;
} fetching;

// True if the store has the checkpoint's manifest, or the file is in no checkpoint.
static bool counts(const fetching *f, const char *name)
{
    size_t length = checkpoint_length(name);
    if (length == 0) return true;
    char *manifest = bel_strf("%.*s/manifest.json", (int)length, name);
    bool whole = false;
    for (size_t i = 0; i < f->object_count && !whole; i++)
        whole = strcmp(f->objects[i].name, manifest) == 0;
    bel_free(manifest);
    return whole;
}

static bool is_missing(const fetching *f, const char *name)
{
    char *path = bel_path_join(f->state->folder, name);
    bool missing = !bel_file_exists(path);
    bel_free(path);
    return missing;
}

// For a host that continues: true if the file was here and is gone, or another one of its
// checkpoint.
static bool is_lost(const fetching *f, const bel_store_entry *object)
{
    size_t length = checkpoint_length(object->name);
    if (bel_stored_state_at(f->state, object->name)->tag == NULL) return false;
    if (length == 0) return is_missing(f, object->name);
    for (size_t i = 0; i < f->object_count; i++) {
        const char *other = f->objects[i].name;
        bool together =
            checkpoint_length(other) == length && strncmp(other, object->name, length) == 0;
        if (together && is_missing(f, other)) return true;
    }
    return false;
}

static bool is_here(const fetching *f, const bel_store_entry *object)
{
    struct stat info;
    const bel_stored_entry *entry = bel_stored_state_at(f->state, object->name);
    char *path = bel_path_join(f->state->folder, object->name);
    bool same = entry->tag != NULL && strcmp(entry->tag, object->info.tag) == 0 &&
                stat(path, &info) == 0 && (uint64_t)info.st_size == object->info.size_bytes &&
                changed_ns(&info) == entry->changed_ns;
    bel_free(path);
    return same;
}

// Removes this host's files that the store does not have, or has otherwise. A checkpoint's folder
// goes as a whole.
static bel_status *remove_others(fetching *f)
{
    host_list list = {0};
    bel_status *status = NULL;
    walk(f->state->folder, "", &list);
    for (size_t i = 0; i < f->state->count; i++)
        f->state->entries[i].seen = false;
    for (size_t i = 0; i < f->object_count; i++) {
        const bel_store_entry *object = &f->objects[i];
        if (is_of_host(object->name) || !counts(f, object->name) || !is_here(f, object)) continue;
        bel_stored_state_at(f->state, object->name)->seen = true;
    }
    for (size_t i = 0; i < list.count && status == NULL; i++) {
        bel_stored_entry *entry = bel_stored_state_at(f->state, list.items[i].name);
        if (entry->seen) continue;
        size_t length = checkpoint_length(entry->name);
        char *path = length > 0 ? bel_strf("%s/%.*s", f->state->folder, (int)length, entry->name)
                                : bel_path_join(f->state->folder, entry->name);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    list_deinit(&list);
    return status;
}

// Path to which a file is fetched: beside its checkpoint's folder, which is then renamed.
static char *fetched_path(const bel_stored_state *state, const char *name)
{
    size_t length = checkpoint_length(name);
    if (length == 0) return bel_path_join(state->folder, name);
    return bel_strf("%s/%.*s" FETCHING_SUFFIX "%s", state->folder, (int)length, name,
                    name + length);
}

static bel_status *fetch_file(fetching *f, const bel_store_entry *object)
{
    bel_store_info info;
    struct stat now;
    char *path = fetched_path(f->state, object->name), *url = object_of(f->state, object->name);
    char *folder = bel_xstrndup(path, folder_length(path));
    bel_status *status = bel_dir_create(folder);
    if (status == NULL) status = bel_store_download(url, path, &info);
    if (status == NULL && object->info.modified_ns != 0) {
        struct timespec time = {.tv_sec = (time_t)(object->info.modified_ns / 1000000000),
                                .tv_nsec = (long)(object->info.modified_ns % 1000000000)};
        // Retention goes by the manifests' times. Without them it keeps by the order of steps.
        (void)utimensat(AT_FDCWD, path, (struct timespec[2]){time, time}, 0);
    }
    if (status == NULL && stat(path, &now) != 0) status = bel_file_error(errno, "look at", path);
    if (status == NULL) {
        bel_stored_entry *entry = bel_stored_state_at(f->state, object->name);
        bel_free(entry->tag);
        entry->tag = bel_xstrdup(info.tag);
        entry->size_bytes = info.size_bytes;
        entry->changed_ns = changed_ns(&now);
        f->sums.files++;
        f->sums.bytes += (int64_t)info.size_bytes;
    }
    bel_free(folder);
    bel_free(url);
    bel_free(path);
    return status;
}

// True if all files of a checkpoint that the listing has were fetched.
static bool is_whole(const fetching *f, const char *name, size_t length)
{
    bool whole = true;
    for (size_t i = 0; i < f->object_count && whole; i++) {
        const char *other = f->objects[i].name;
        if (checkpoint_length(other) != length || strncmp(other, name, length) != 0) continue;
        char *path = fetched_path(f->state, other);
        whole = bel_file_exists(path);
        bel_free(path);
    }
    return whole;
}

// Renames the fetched folders of whole checkpoints. One that its owner removed meanwhile is dropped.
static bel_status *place_checkpoints(fetching *f)
{
    bel_status *status = NULL;
    for (size_t i = 0; i < f->object_count && status == NULL; i++) {
        const char *name = f->objects[i].name;
        size_t length = checkpoint_length(name);
        if (length == 0 || strcmp(name + length, "/manifest.json") != 0) continue;
        char *to = bel_strf("%s/%.*s", f->state->folder, (int)length, name);
        char *from = bel_strf("%s" FETCHING_SUFFIX, to);
        bool whole = bel_file_exists(from) && is_whole(f, name, length);
        status = bel_dir_remove(whole ? to : from);
        if (whole && status == NULL) status = bel_file_rename(from, to);
        bel_free(from);
        bel_free(to);
    }
    return status;
}

// Removes what a killed fetch left.
static bel_status *remove_halves(const bel_stored_state *state)
{
    char **names;
    size_t count;
    if (!bel_dir_exists(state->folder)) return NULL;
    BEL_TRY(bel_dir_list(state->folder, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        if (!ends_with(names[i], strlen(names[i]), FETCHING_SUFFIX)) continue;
        char *path = bel_path_join(state->folder, names[i]);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return status;
}

static bool is_wanted(const fetching *f, const bel_store_entry *object)
{
    if (is_of_host(object->name) || !counts(f, object->name)) return false;
    return f->continues ? is_lost(f, object) : !is_here(f, object);
}

static bel_status *fetch(fetching *f)
{
    if (f->object_count > 0) BEL_TRY(bel_dir_create(f->state->folder));
    BEL_TRY(remove_halves(f->state));
    if (!f->continues) BEL_TRY(remove_others(f));
    for (size_t i = 0; i < f->object_count; i++) {
        const bel_store_entry *object = &f->objects[i];
        if (!is_wanted(f, object)) continue;
        bel_status *status = fetch_file(f, object);
        if (bel_status_code(status) == BEL_NOT_FOUND) {
            bel_log_write(BEL_LOG_INFO, "%s: removed while it was fetched",
                          bel_status_message(status));
            bel_status_ignore(status); // by its owner
            status = NULL;
        }
        BEL_TRY(status);
    }
    BEL_TRY(place_checkpoints(f));
    for (size_t i = 0; i < f->state->count && !f->continues; i++) { // of objects that are gone
        bel_stored_entry *entry = &f->state->entries[i];
        if (!is_missing(f, entry->name)) continue;
        bel_free(entry->tag);
        entry->tag = NULL;
    }
    bel_stored_state_sweep(f->state);
    f->state->complete = true;
    return bel_stored_state_write(f->state);
}

bel_status *bel_stored_fetch(bel_stored_state *state, bool continues, bel_stored_sums *out_sums)
{
    fetching f = {.state = state, .continues = continues};
    char *prefix = bel_strf("%s/", state->url);
    bel_status *status = bel_store_list(prefix, true, &f.objects, &f.object_count);
    bel_free(prefix);
    BEL_TRY(status);
    status = fetch(&f);
    bel_store_entries_free(f.objects, f.object_count);
    if (out_sums != NULL) *out_sums = f.sums;
    return status;
}
