// Files are compared by size and modification time with those that were sent, as every file of a
// model folder is replaced as a whole or only grows. A folder with a last file is whole for readers
// if that one exists. So if any file of it changes, the last file is removed first and sent last.
//
// Retention may remove a checkpoint while it is sent. So its files are sent from hard links in
// FOLDER.store/sending, which the next push removes.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/share.h"
#include "launch/folder/stored_files.h"
#include "launch/folder/stored_sync.h"
#include "store/store.h"

static bool is_in(const char *name, const char *folder, size_t length)
{
    return bel_stored_folder_length(name) == length && strncmp(name, folder, length) == 0;
}

typedef struct pushing {
    bel_stored_state *state;
    bel_stored_writer writer;
    bel_stored_sums sums;
    bel_stored_files list;
} pushing;

static bool is_changed(const pushing *p, const bel_stored_file *file)
{
    const bel_stored_entry *entry = bel_stored_state_at(p->state, file->name);
    return entry->tag == NULL || entry->size_bytes != file->size_bytes ||
           entry->changed_ns != file->changed_ns;
}

// Path of a hard link to the file, or of the file itself where the file system has no links; NULL:
// the file is gone.
static char *link_file(const pushing *p, const char *path, size_t index)
{
    char *folder = bel_stored_beside(p->state->folder, "sending");
    char *linked = bel_strf("%s/%zu", folder, index);
    bel_status_ignore(bel_dir_create(folder)); // then no link can be made
    bool made = link(path, linked) == 0, there = made || bel_file_exists(path);
    bel_free(folder);
    if (made) return linked;
    bel_free(linked);
    return there ? bel_xstrdup(path) : NULL;
}

static bel_status *remove_object(pushing *p, bel_stored_entry *entry)
{
    if (entry->tag == NULL) return NULL;
    char *url = bel_stored_object(p->state, entry->name);
    bel_status *status = bel_store_remove(url);
    bel_free(url);
    BEL_TRY(status);
    bel_free(entry->tag);
    entry->tag = NULL;
    return NULL;
}

// True for a file that is not as it was, or gone.
static bool is_other_now(const char *path, const struct stat *before)
{
    struct stat now;
    return stat(path, &now) != 0 || now.st_size != before->st_size ||
           bel_stored_changed_ns(&now) != bel_stored_changed_ns(before);
}

// Sends a file. *out_sent: false if it is gone or grows at this moment: the next walk looks again.
static bel_status *send_file(pushing *p, const bel_stored_file *file, const char *from,
                             bool *out_sent)
{
    bel_store_info info;
    struct stat now;
    *out_sent = false;
    if (stat(from, &now) != 0) return NULL;
    char *url = bel_stored_object(p->state, file->name);
    bel_status *status = bel_store_upload(from, url, &info);
    bel_free(url);
    // The code is also that of a server that is no store.
    bool grows = bel_status_code(status) == BEL_FAILED_PRECONDITION && is_other_now(from, &now);
    if (grows || (status != NULL && !bel_file_exists(from))) {
        bel_status_ignore(status); // the next walk looks again
        return NULL;
    }
    BEL_TRY(status);
    bel_stored_entry *entry = bel_stored_state_at(p->state, file->name);
    bel_free(entry->tag);
    entry->tag = bel_xstrdup(info.tag);
    entry->size_bytes = info.size_bytes;
    entry->changed_ns = bel_stored_changed_ns(&now); // read before: a later write shows as a change
    p->sums.files++;
    p->sums.bytes += (int64_t)info.size_bytes;
    *out_sent = true;
    return NULL;
}

// True for an error after which another file or folder cannot be sent either.
static bool ends_push(const bel_status *status)
{
    bel_code code = bel_status_code(status);
    return code == BEL_UNAVAILABLE || code == BEL_ABORTED;
}

// Keeps the first of several errors.
static void keep_first(bel_status **first, bel_status *next)
{
    if (*first == NULL)
        *first = next;
    else
        bel_status_ignore(next); // the first one is reported
}

// Sends the changed files among [first, end), which are in no folder with a last file. A file that
// fails does not keep the others from the store.
static bel_status *send_files(pushing *p, size_t first, size_t end)
{
    bel_status *status = NULL;
    for (size_t i = first; i < end && !ends_push(status); i++) {
        const bel_stored_file *file = &p->list.items[i];
        bool sent;
        if (!is_changed(p, file)) continue;
        char *path = bel_path_join(p->state->folder, file->name);
        keep_first(&status, send_file(p, file, path, &sent));
        bel_free(path);
    }
    return status;
}

// False for a delta whose base the store does not have, in the delta's folder `base` or beside it:
// a reader of the store would choose what it cannot read. The next push tries again.
static bool has_sent_base(const pushing *p, const char *folder, size_t length)
{
    bel_ckpt_base base = {0};
    char *path = bel_strf("%s/%.*s", p->state->folder, (int)length, folder);
    bel_status_ignore(
        bel_ckpt_read_base(path, &base)); // then it is no delta, or its readers report it
    bel_free(path);
    if (base.step == 0) return true;
    char *within = bel_strf("%.*s/" BEL_CKPT_SHARED_BASE "/manifest.json", (int)length, folder);
    char *beside = bel_strf("ckpt-%08lld/manifest.json", (long long)base.step);
    bool sent = bel_stored_state_at(p->state, within)->tag != NULL ||
                bel_stored_state_at(p->state, beside)->tag != NULL;
    bel_free(within);
    bel_free(beside);
    if (!sent) {
        bel_log_write(BEL_LOG_WARN,
                      "%s: %.*s is not sent yet, as its base, the checkpoint of step %lld, was not",
                      p->state->url, (int)length, folder, (long long)base.step);
    }
    return sent;
}

// Sends the files [first, end) of one folder, of which `last` makes it whole, from links. If one is
// gone the folder is on its way out, and nothing is sent.
static bel_status *send_whole(pushing *p, size_t first, size_t end, size_t last, char **links)
{
    bool all = true, sent;
    for (size_t i = first; i < end && all; i++) {
        char *path = bel_path_join(p->state->folder, p->list.items[i].name);
        links[i - first] = link_file(p, path, i);
        all = links[i - first] != NULL;
        bel_free(path);
    }
    if (!all) return NULL;
    BEL_TRY(remove_object(p, bel_stored_state_at(p->state, p->list.items[last].name)));
    for (size_t i = first; i < end && all; i++) {
        if (i == last || !is_changed(p, &p->list.items[i])) continue;
        BEL_TRY(send_file(p, &p->list.items[i], links[i - first], &all));
    }
    bel_fault_point("stored_before_last");
    return all ? send_file(p, &p->list.items[last], links[last - first], &sent) : NULL;
}

// Sends the changed files [first, end) of one folder.
static bel_status *send_folder(pushing *p, size_t first, size_t end)
{
    size_t last = end;
    bool changed = false;
    for (size_t i = first; i < end; i++) {
        changed = changed || is_changed(p, &p->list.items[i]);
        if (bel_stored_is_last(p->list.items[i].name)) last = i;
    }
    if (!changed) return NULL;
    if (last == end) return send_files(p, first, end);
    const char *name = p->list.items[last].name;
    if (!has_sent_base(p, name, bel_stored_folder_length(name))) return NULL;
    char **links = bel_xcalloc(end - first, sizeof *links);
    bel_status *status = send_whole(p, first, end, last, links);
    for (size_t i = first; i < end; i++)
        bel_free(links[i - first]);
    bel_free(links);
    return status;
}

// Checkpoints come before the files that name them, those of one folder together, and a folder in
// it, the base of a shared delta, before them. The base of a delta is of an earlier step.
static int compare_files(const void *a, const void *b)
{
    const bel_stored_file *x = a, *y = b;
    bool in_root = bel_stored_folder_length(x->name) == 0,
         other_in_root = bel_stored_folder_length(y->name) == 0;
    if (in_root != other_in_root) return in_root ? 1 : -1;
    if (bel_stored_is_newer(x->name, y->name)) return 1;
    if (bel_stored_is_newer(y->name, x->name)) return -1;
    size_t length = bel_stored_folder_length(x->name), other = bel_stored_folder_length(y->name);
    int order = strncmp(x->name, y->name, length < other ? length : other);
    if (order == 0 && length != other) order = length < other ? 1 : -1;
    return order != 0 ? order : strcmp(x->name, y->name);
}

// A folder that fails does not keep the others from the store, unless the store does not answer.
static bel_status *send_changed(pushing *p)
{
    bel_stored_files *list = &p->list;
    bel_status *status = NULL;
    if (list->count > 0) qsort(list->items, list->count, sizeof *list->items, compare_files);
    for (size_t first = 0, end; first < list->count && !ends_push(status); first = end) {
        const char *folder = list->items[first].name;
        size_t length = bel_stored_folder_length(folder);
        int64_t before = p->sums.files;
        for (end = first + 1; end < list->count; end++)
            if (!is_in(list->items[end].name, folder, length)) break;
        keep_first(&status, send_folder(p, first, end));
        if (p->sums.files > before) keep_first(&status, bel_stored_state_write(p->state));
    }
    return status;
}

// Retention removes checkpoints and versions of exports, after newer ones. No other file is removed
// from the store: one that is gone was removed by something else, and the next owner fetches it. So
// the version must be gone as a whole, and the store must have a newer one.
static bool may_go(const pushing *p, const bel_stored_entry *entry)
{
    size_t version = bel_stored_version_length(entry->name);
    bool newer = false;
    if (entry->seen || entry->tag == NULL || version == 0) return false;
    for (size_t i = 0; i < p->state->count; i++) {
        const bel_stored_entry *other = &p->state->entries[i];
        bool same = bel_stored_version_length(other->name) == version &&
                    strncmp(other->name, entry->name, version) == 0;
        if (same && other->seen) return false;
        newer = newer || (other->seen && other->tag != NULL && bel_stored_is_last(other->name) &&
                          bel_stored_is_newer(other->name, entry->name));
    }
    return newer;
}

// The newest version first, so that a base goes after its deltas; a folder before those in it.
static int compare_gone(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    if (bel_stored_is_newer(x, y)) return -1;
    if (bel_stored_is_newer(y, x)) return 1;
    size_t length = bel_stored_folder_length(x), other = bel_stored_folder_length(y);
    if (length != other) return length < other ? -1 : 1;
    return strcmp(x, y);
}

// `last`: only files that make a folder whole.
static bel_status *remove_gone(pushing *p, bool last)
{
    const char **names = bel_xcalloc(p->state->count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < p->state->count; i++) {
        const bel_stored_entry *entry = &p->state->entries[i];
        if (bel_stored_is_last(entry->name) == last && may_go(p, entry))
            names[count++] = entry->name;
    }
    if (count > 0) qsort(names, count, sizeof *names, compare_gone);
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++)
        status = remove_object(p, bel_stored_state_at(p->state, names[i]));
    bel_free(names);
    return status;
}

// Leaves out the files that the writer may not send.
static void keep_own(pushing *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->list.count; i++) {
        bool own = bel_stored_may_send(p->writer, p->list.items[i].name);
        if (own)
            p->list.items[kept++] = p->list.items[i];
        else
            bel_free(p->list.items[i].name);
    }
    p->list.count = kept;
}

static bel_status *push(pushing *p)
{
    bel_stored_state *state = p->state;
    bool removes = p->writer == BEL_STORED_OWNER;
    BEL_TRY(bel_stored_walk(state->folder, "", &p->list));
    keep_own(p);
    for (size_t i = 0; i < state->count; i++)
        state->entries[i].seen = false;
    for (size_t i = 0; i < p->list.count; i++)
        bel_stored_state_at(state, p->list.items[i].name)->seen = true;
    BEL_TRY(send_changed(p));
    if (removes) BEL_TRY(remove_gone(p, true));
    if (removes) BEL_TRY(remove_gone(p, false));
    bel_stored_state_sweep(state);
    return bel_stored_state_write(state);
}

bel_status *bel_stored_push(bel_stored_state *state, bel_stored_writer writer,
                            bel_stored_sums *out_sums)
{
    pushing p = {.state = state, .writer = writer};
    char *sending = bel_stored_beside(state->folder, "sending");
    bel_status *status = bel_dir_remove(sending);
    if (status == NULL) status = push(&p);
    bel_status_ignore(bel_dir_remove(sending)); // the next walk removes it
    bel_free(sending);
    bel_stored_files_deinit(&p.list);
    if (out_sums != NULL) *out_sums = p.sums;
    return status;
}
