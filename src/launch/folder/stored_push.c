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
#include "base/str.h"
#include "launch/folder/stored_files.h"
#include "launch/folder/stored_sync.h"
#include "store/store.h"

static bool is_in(const char *name, const char *folder, size_t length)
{
    return bel_stored_folder_length(name) == length && strncmp(name, folder, length) == 0;
}

typedef struct pushing {
    bel_stored_state *state;
    bool removes;
    bel_stored_may_write *may_write;
    void *context;
    bel_stored_sums sums;
    bel_stored_files list;
} pushing;

static bool is_changed(const pushing *p, const bel_stored_file *file)
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
    char *url = bel_stored_object(p->state, entry->name);
    bel_status *status = bel_store_remove(url);
    bel_free(url);
    BEL_TRY(status);
    bel_free(entry->tag);
    entry->tag = NULL;
    return NULL;
}

// A file that is gone meanwhile is not sent; the next walk does not find it.
static bel_status *send_file(pushing *p, const bel_stored_file *file, const char *from)
{
    bel_store_info info;
    struct stat now;
    BEL_TRY(p->may_write(p->context));
    if (stat(from, &now) != 0) return NULL;
    char *url = bel_stored_object(p->state, file->name);
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
    entry->changed_ns = bel_stored_changed_ns(&now); // read before: a later write shows as a change
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
        if (bel_stored_is_last(p->list.items[i].name)) last = i;
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
    const bel_stored_file *x = a, *y = b;
    bool in_root = bel_stored_folder_length(x->name) == 0,
         other_in_root = bel_stored_folder_length(y->name) == 0;
    if (in_root != other_in_root) return in_root ? 1 : -1;
    size_t length = bel_stored_folder_length(x->name), other = bel_stored_folder_length(y->name);
    int order = strncmp(x->name, y->name, length < other ? length : other);
    if (order == 0 && length != other) order = length < other ? -1 : 1;
    return order != 0 ? order : strcmp(x->name, y->name);
}

static bel_status *send_changed(pushing *p)
{
    bel_stored_files *list = &p->list;
    qsort(list->items, list->count, sizeof *list->items, compare_files);
    for (size_t first = 0, end; first < list->count; first = end) {
        const char *folder = list->items[first].name;
        size_t length = bel_stored_folder_length(folder);
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
        if (entry->seen || bel_stored_is_last(entry->name) != last) continue;
        BEL_TRY(remove_object(p, entry));
    }
    return NULL;
}

static bel_status *push(pushing *p)
{
    bel_stored_state *state = p->state;
    for (size_t i = 0; i < state->count; i++)
        state->entries[i].seen = false;
    bel_stored_walk(state->folder, "", &p->list);
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
    bel_stored_files_deinit(&p.list);
    if (out_sums != NULL) *out_sums = p.sums;
    return status;
}
