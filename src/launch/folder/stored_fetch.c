// A checkpoint is fetched into a folder beside its name, and renamed when it is whole. A checkpoint
// whose manifest the store does not have is on its way there, or from there, and does not count. A
// delta is fetched with its base.
//
// Nothing that only this host has is lost: a file that the store never had stays, and such a
// checkpoint is moved aside. The state says which files the store had. It is also written after an
// error: else the next one to send would take files that were just fetched for changed ones.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/share.h"
#include "launch/folder/stored_files.h"
#include "launch/folder/stored_sync.h"
#include "store/store.h"

#define FETCHING_SUFFIX ".tmp-store"

enum { MOST_BASES = 3 }; // those of `which`, the newest and the best

typedef struct fetching {
    bel_stored_state *state;
    bel_store_entry *objects;
    size_t object_count;
    bool continues;
    int lock;            // see bel_stored_fetch
    const char *which;   // name of a checkpoint; BEL_STORED_ALL: all
    char *newest, *best; // names of checkpoints; NULL: none
    char *bases[MOST_BASES];
    bool for_bases; // these are fetched now
    bel_stored_sums sums;
} fetching;

// False for objects that are no files of a model folder, and for those of a checkpoint whose
// manifest the store does not have.
static bool counts(const fetching *f, const char *name)
{
    if (!bel_stored_is_name(name) || bel_stored_is_of_host(name)) return false;
    size_t length = bel_stored_checkpoint_length(name);
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
    size_t length = bel_stored_checkpoint_length(object->name);
    if (bel_stored_state_at(f->state, object->name)->tag == NULL) return false;
    if (length == 0) return is_missing(f, object->name);
    for (size_t i = 0; i < f->object_count; i++) {
        const char *other = f->objects[i].name;
        bool together = bel_stored_checkpoint_length(other) == length &&
                        strncmp(other, object->name, length) == 0;
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
                bel_stored_changed_ns(&info) == entry->changed_ns;
    bel_free(path);
    return same;
}

static const bel_store_entry *find_object(const fetching *f, const char *name)
{
    for (size_t i = 0; i < f->object_count; i++)
        if (strcmp(f->objects[i].name, name) == 0) return &f->objects[i];
    return NULL;
}

// True for curves to which a process of this host has added since they were sent, and which may
// still do so: the store has less of them.
static bool has_grown(const fetching *f, const char *name)
{
    struct stat info;
    const bel_stored_entry *entry = bel_stored_state_at(f->state, name);
    if (entry->tag == NULL || !bel_stored_is_curve(name)) return false;
    char *path = bel_path_join(f->state->folder, name);
    const bel_store_entry *object = find_object(f, name);
    bool grown = stat(path, &info) == 0 && (uint64_t)info.st_size > entry->size_bytes &&
                 (object == NULL || (uint64_t)info.st_size >= object->info.size_bytes);
    bel_free(path);
    return grown;
}

// Path beside the folder for checkpoints that the store does not have; free with bel_free.
static char *aside_path(const bel_stored_state *state, const char *name, size_t length)
{
    return bel_strf("%s.unsent/%.*s-%lld", state->folder, (int)length, name,
                    (long long)bel_clock_wall());
}

// Shares the base of a delta into the delta's folder, which will be moved.
static void join_base(const fetching *f, const char *name)
{
    bel_ckpt_base base = {0};
    size_t length = bel_stored_checkpoint_length(name);
    char *folder = bel_strf("%s/%.*s", f->state->folder, (int)length, name);
    bel_status *status = bel_ckpt_read_base(folder, &base);
    if (status == NULL && base.step > 0) {
        char *from = bel_ckpt_base_path(folder, base.step);
        char *to = bel_path_join(folder, BEL_CKPT_SHARED_BASE);
        if (strcmp(from, to) != 0) status = bel_ckpt_share_folder(from, to);
        bel_free(to);
        bel_free(from);
    }
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "%s: is moved without its base: %s", folder,
                      bel_status_message(status));
    bel_status_ignore(status); // reported
    bel_free(folder);
}

// Moves a checkpoint that was never sent out of the way: another job had the folder since.
static bel_status *set_aside(const fetching *f, const char *name)
{
    size_t length = bel_stored_checkpoint_length(name);
    char *from = bel_strf("%s/%.*s", f->state->folder, (int)length, name);
    char *to = aside_path(f->state, name, length),
         *folder = bel_strf("%s.unsent", f->state->folder);
    bel_status *status = bel_dir_create(folder);
    if (status == NULL && bel_file_exists(from)) {
        bel_log_write(BEL_LOG_WARN,
                      "%s: %.*s of this host was never sent, and another job had the folder since: "
                      "it is moved to %s",
                      f->state->url, (int)length, name, to);
        status = bel_file_rename(from, to);
    }
    bel_free(folder);
    bel_free(to);
    bel_free(from);
    return status;
}

// True for a file of a checkpoint that the store never had.
static bool is_unsent(const fetching *f, const char *name)
{
    const bel_stored_entry *entry = bel_stored_state_at(f->state, name);
    return !entry->seen && entry->tag == NULL && bel_stored_checkpoint_length(name) > 0;
}

// Makes room for the store's files: removes those of this host that the store had and has otherwise
// or not at all now. A file that the store never had stays, and is sent: this process has just
// written it. A checkpoint goes as a whole. One that is set aside takes its base with it, so bases
// are moved or removed after that.
static bel_status *remove_others(fetching *f)
{
    bel_stored_files list = {0};
    if (!bel_dir_exists(f->state->folder)) return NULL;
    bel_status *status = bel_stored_walk(f->state->folder, "", &list);
    for (size_t i = 0; i < f->state->count; i++)
        f->state->entries[i].seen = false;
    for (size_t i = 0; i < f->object_count; i++) {
        const bel_store_entry *object = &f->objects[i];
        if (counts(f, object->name) && is_here(f, object))
            bel_stored_state_at(f->state, object->name)->seen = true;
    }
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.items[i].name;
        size_t length = bel_stored_checkpoint_length(name);
        bool manifest = length > 0 && strcmp(name + length, "/manifest.json") == 0;
        if (manifest && is_unsent(f, name)) join_base(f, name);
    }
    for (size_t i = 0; i < list.count && status == NULL; i++)
        if (is_unsent(f, list.items[i].name)) status = set_aside(f, list.items[i].name);
    for (size_t i = 0; i < list.count && status == NULL; i++) {
        const bel_stored_entry *entry = bel_stored_state_at(f->state, list.items[i].name);
        size_t length = bel_stored_checkpoint_length(entry->name);
        if (entry->seen || entry->tag == NULL || has_grown(f, entry->name)) continue;
        char *path = length > 0 ? bel_strf("%s/%.*s", f->state->folder, (int)length, entry->name)
                                : bel_path_join(f->state->folder, entry->name);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    bel_stored_files_deinit(&list);
    return status;
}

// Path to which a file is fetched: beside its checkpoint's folder, which is then renamed.
static char *fetched_path(const bel_stored_state *state, const char *name)
{
    size_t length = bel_stored_checkpoint_length(name);
    if (length == 0) return bel_path_join(state->folder, name);
    return bel_strf("%s/%.*s" FETCHING_SUFFIX "%s", state->folder, (int)length, name,
                    name + length);
}

static bel_status *fetch_file(fetching *f, const bel_store_entry *object)
{
    bel_store_info info;
    struct stat now;
    char *path = fetched_path(f->state, object->name),
         *url = bel_stored_object(f->state, object->name);
    char *folder = bel_xstrndup(path, bel_stored_folder_length(path));
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
        entry->changed_ns = bel_stored_changed_ns(&now);
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
        if (bel_stored_checkpoint_length(other) != length || strncmp(other, name, length) != 0)
            continue;
        char *path = fetched_path(f->state, other);
        whole = bel_file_exists(path);
        bel_free(path);
    }
    return whole;
}

static bool is_named(const char *name, const char *checkpoint)
{
    size_t length = bel_stored_checkpoint_length(name);
    return checkpoint != NULL && strlen(checkpoint) == length &&
           strncmp(name, checkpoint, length) == 0;
}

// Name of the checkpoint whose step a JSON file has, in the object of the name `member` (NULL: its
// root); NULL: none. A damaged file names none; its reader reports that.
static char *checkpoint_of(const char *path, const char *member)
{
    char *text = NULL, *name = NULL;
    size_t size;
    int64_t step = -1;
    bel_json *json = NULL;
    bel_status *status = bel_file_exists(path) ? bel_file_read(path, &text, &size) : NULL;
    if (status == NULL && text != NULL) status = bel_json_parse(text, size, path, &json);
    const bel_json_value *object = json != NULL ? bel_json_root(json) : NULL;
    if (object != NULL && member != NULL) object = bel_json_member(object, member);
    if (object != NULL) (void)bel_json_i64(object, "step", &step);
    if (step >= 0) name = bel_strf("ckpt-%08lld", (long long)step);
    bel_status_ignore(status); // the file's reader reports it
    bel_json_destroy(json);
    bel_free(text);
    return name;
}

// Path of a file of a checkpoint: fetched, or in place. Free with bel_free.
static char *present_path(const fetching *f, const char *name)
{
    char *fetched = fetched_path(f->state, name);
    if (bel_file_exists(fetched)) return fetched;
    bel_free(fetched);
    return bel_path_join(f->state->folder, name);
}

// Name of the base of a checkpoint whose manifest is here; NULL: it is full, or has its base within
// its folder. Free with bel_free.
static char *base_of(const fetching *f, const char *checkpoint)
{
    char *name = bel_strf("%s/manifest.json", checkpoint),
         *within = bel_strf("%s/" BEL_CKPT_SHARED_BASE "/manifest.json", checkpoint);
    char *path = present_path(f, name), *inner = present_path(f, within);
    char *base = bel_file_exists(inner) ? NULL : checkpoint_of(path, "base");
    bel_free(inner);
    bel_free(path);
    bel_free(within);
    bel_free(name);
    return base;
}

// False for a delta whose base the store does not have, or whose base was removed meanwhile.
static bool has_base(const fetching *f, const char *checkpoint)
{
    char *base = base_of(f, checkpoint);
    bool all = true, manifest = false;
    if (base == NULL) return true;
    for (size_t i = 0; i < f->object_count && all; i++) {
        const char *name = f->objects[i].name;
        if (!is_named(name, base)) continue;
        char *path = present_path(f, name);
        all = bel_file_exists(path);
        manifest = manifest || strcmp(name + strlen(base), "/manifest.json") == 0;
        bel_free(path);
    }
    bel_free(base);
    return all && manifest;
}

// Whether a fetched checkpoint is of use here. A delta without its base is not, unless its reader
// asked for it and gets the reason.
static bool may_stay(const fetching *f, const char *name, size_t length)
{
    if (is_named(name, f->which) || is_named(name, f->best)) return true;
    char *checkpoint = bel_xstrndup(name, length);
    bool stays = has_base(f, checkpoint);
    if (!stays) {
        bel_log_write(BEL_LOG_WARN, "%s: %s is left out: the store does not have its base",
                      f->state->url, checkpoint);
    }
    bel_free(checkpoint);
    return stays;
}

// Renames the fetched folders of whole checkpoints. One that its owner removed meanwhile is
// dropped.
static bel_status *place_checkpoints(fetching *f)
{
    bel_status *status = NULL;
    for (size_t i = 0; i < f->object_count && status == NULL; i++) {
        const char *name = f->objects[i].name;
        size_t length = bel_stored_checkpoint_length(name);
        if (length == 0 || strcmp(name + length, "/manifest.json") != 0) continue;
        char *to = bel_strf("%s/%.*s", f->state->folder, (int)length, name);
        char *from = bel_strf("%s" FETCHING_SUFFIX, to);
        bool whole =
            bel_file_exists(from) && is_whole(f, name, length) && may_stay(f, name, length);
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
        size_t length = strlen(names[i]), end = sizeof FETCHING_SUFFIX - 1;
        if (length < end || strcmp(names[i] + length - end, FETCHING_SUFFIX) != 0) continue;
        char *path = bel_path_join(state->folder, names[i]);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return status;
}

// Whether a checkpoint is to be fetched: first the chosen ones, whose manifests name their bases,
// then these.
static bool is_chosen(const fetching *f, const char *name)
{
    bool chosen = is_named(name, f->which) || is_named(name, f->newest) || is_named(name, f->best);
    bool base = false;
    for (int b = 0; b < MOST_BASES; b++)
        base = base || is_named(name, f->bases[b]);
    return f->for_bases ? base && !chosen : chosen;
}

static bool was_fetched(const fetching *f, const char *name)
{
    char *path = fetched_path(f->state, name);
    bool fetched = bel_file_exists(path);
    bel_free(path);
    return fetched;
}

// Files outside checkpoints, or those of the checkpoints to fetch.
static bool is_wanted(const fetching *f, const bel_store_entry *object, bool in_checkpoint)
{
    const char *name = object->name;
    if ((bel_stored_checkpoint_length(name) > 0) != in_checkpoint) return false;
    if (!counts(f, name)) return false;
    bool all = f->which != NULL && f->which[0] == '\0';
    if (in_checkpoint && !all && !is_chosen(f, name)) return false;
    if (in_checkpoint && was_fetched(f, name)) return false;
    return f->continues ? is_lost(f, object) : !is_here(f, object) && !has_grown(f, name);
}

// Whether checkpoint x is of a later step than y. Names ascend with the step, shorter ones first.
static bool is_later(const char *x, const char *y)
{
    size_t length = strlen(x), other = strlen(y);
    return length != other ? length > other : strcmp(x, y) > 0;
}

// Finds the newest whole checkpoint, before f->newest if that is set.
static void find_newest(fetching *f)
{
    char *newest = NULL;
    for (size_t i = 0; i < f->object_count; i++) {
        const char *name = f->objects[i].name;
        size_t length = bel_stored_checkpoint_length(name);
        if (length == 0 || !counts(f, name)) continue;
        char *checkpoint = bel_xstrndup(name, length);
        bool fits = f->newest == NULL || is_later(f->newest, checkpoint);
        bool newer = fits && (newest == NULL || is_later(checkpoint, newest));
        bel_free(newer ? newest : checkpoint);
        if (newer) newest = checkpoint;
    }
    bel_free(f->newest);
    f->newest = newest;
}

static void find_best(fetching *f)
{
    char *path = bel_path_join(f->state->folder, "best.json");
    f->best = checkpoint_of(path, NULL);
    bel_free(path);
}

// Finds the bases of the wanted checkpoints, whose manifests are here by now.
static void find_bases(fetching *f)
{
    const char *const wanted[MOST_BASES] = {f->which, f->newest, f->best};
    for (int b = 0; b < MOST_BASES; b++) {
        bel_free(f->bases[b]);
        bool is_one = wanted[b] != NULL && wanted[b][0] != '\0';
        f->bases[b] = is_one ? base_of(f, wanted[b]) : NULL;
    }
}

static bel_status *fetch_wanted(fetching *f, bool in_checkpoint)
{
    for (size_t i = 0; i < f->object_count; i++) {
        const bel_store_entry *object = &f->objects[i];
        if (!is_wanted(f, object, in_checkpoint)) continue;
        if (bel_stored_has_owner(f->lock)) {
            return BEL_ERR(BEL_ABORTED, "%s: a process of this host begins to own it",
                           f->state->url);
        }
        bel_status *status = fetch_file(f, object);
        if (bel_status_code(status) == BEL_NOT_FOUND) {
            bel_log_write(BEL_LOG_INFO, "%s: removed while it was fetched",
                          bel_status_message(status));
            bel_status_ignore(status); // by its owner
            status = NULL;
        } else if (bel_status_code(status) == BEL_INVALID_ARGUMENT) {
            bel_log_write(BEL_LOG_WARN, "%s: is not fetched, as no file can have this name",
                          bel_status_message(status));
            bel_status_ignore(status); // logged: the name of another file is in the way
            status = NULL;
        }
        BEL_TRY(status);
    }
    return NULL;
}

// Names objects that no file of this host can have.
static void say_strange(const fetching *f)
{
    for (size_t i = 0; i < f->object_count; i++) {
        if (bel_stored_is_name(f->objects[i].name)) continue;
        bel_log_write(BEL_LOG_WARN, "%s/%s: is not fetched, as no file can have this name",
                      f->state->url, f->objects[i].name);
    }
}

// For a host that continues: files whose objects are gone or were replaced are sent again.
static void forget_changed(fetching *f)
{
    for (size_t i = 0; i < f->state->count; i++) {
        bel_stored_entry *entry = &f->state->entries[i];
        if (entry->tag == NULL || is_missing(f, entry->name)) continue;
        const bel_store_entry *object = find_object(f, entry->name);
        if (object != NULL && strcmp(object->info.tag, entry->tag) == 0) continue;
        bel_free(entry->tag);
        entry->tag = NULL;
    }
}

// Fetches the checkpoints to choose from, and their bases. If the newest is a delta whose base is
// missing, the next older one is the newest.
static bel_status *fetch_checkpoints(fetching *f)
{
    bool all = f->which != NULL && f->which[0] == '\0';
    find_best(f);
    do {
        find_newest(f);
        f->for_bases = false;
        BEL_TRY(fetch_wanted(f, true));
        find_bases(f);
        f->for_bases = true;
        if (!all) BEL_TRY(fetch_wanted(f, true));
    } while (!all && f->newest != NULL && !has_base(f, f->newest));
    return place_checkpoints(f);
}

// Files that are only in a fetched folder beside their checkpoint count as absent.
static void forget_missing(fetching *f)
{
    for (size_t i = 0; i < f->state->count && !f->continues; i++) {
        bel_stored_entry *entry = &f->state->entries[i];
        if (!is_missing(f, entry->name)) continue;
        bel_free(entry->tag);
        entry->tag = NULL;
    }
    bel_stored_state_sweep(f->state);
}

static bel_status *fetch(fetching *f)
{
    say_strange(f);
    if (f->object_count > 0) BEL_TRY(bel_dir_create(f->state->folder));
    BEL_TRY(remove_halves(f->state));
    if (f->continues)
        forget_changed(f);
    else
        BEL_TRY(remove_others(f));
    BEL_TRY(fetch_wanted(f, false));
    return fetch_checkpoints(f);
}

// A host that continues stays complete: what it lacks of the store counts as lost.
static bel_status *note(fetching *f, bool fetched)
{
    forget_missing(f);
    bool all = f->which != NULL && f->which[0] == '\0';
    if (!f->continues) f->state->complete = fetched && all;
    return bel_stored_state_write(f->state);
}

bel_status *bel_stored_fetch(bel_stored_state *state, bool continues, const char *which, int lock,
                             bel_stored_sums *out_sums)
{
    fetching f = {.state = state, .continues = continues, .which = which, .lock = lock};
    char *prefix = bel_strf("%s/", state->url);
    bel_status *status = bel_store_list(prefix, true, &f.objects, &f.object_count);
    bel_free(prefix);
    BEL_TRY(status);
    status = fetch(&f);
    bel_status *noted = note(&f, status == NULL);
    if (status == NULL)
        status = noted;
    else
        bel_status_ignore(noted); // the first error is reported
    bel_store_entries_free(f.objects, f.object_count);
    bel_free(f.newest);
    bel_free(f.best);
    for (int b = 0; b < MOST_BASES; b++)
        bel_free(f.bases[b]);
    if (out_sums != NULL) *out_sums = f.sums;
    return status;
}
