// One JSON object, which is replaced as a whole and synced: without it this host would take its
// files for those of another job. It is beside the folder, since an export's folder must not exist
// before the export. Entries are sorted, as each file of a walk looks for its entry.
#include "launch/folder/stored_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_lock.h"
#include "base/str.h"

#define STATE_FILE "state.json"

char *bel_stored_beside(const char *folder, const char *name)
{
    return bel_strf("%s.store/%s", folder, name);
}

bool bel_stored_has_owner(int lock)
{
    return lock >= 0 && bel_linux_byte_is_locked(lock, 0);
}

// Number of entries with names before `name`.
static size_t state_place(const bel_stored_state *state, const char *name)
{
    size_t low = 0, high = state->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(state->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bel_stored_entry *bel_stored_state_at(bel_stored_state *state, const char *name)
{
    size_t at = state_place(state, name);
    if (at < state->count && strcmp(state->entries[at].name, name) == 0) return &state->entries[at];
    state->entries =
        bel_xgrow(state->entries, &state->capacity, state->count + 1, sizeof *state->entries);
    bel_stored_entry *entry = &state->entries[at];
    memmove(entry + 1, entry, (state->count - at) * sizeof *entry);
    *entry = (bel_stored_entry){.name = bel_xstrdup(name)};
    state->count++;
    return entry;
}

void bel_stored_state_sweep(bel_stored_state *state)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->count; i++) {
        if (state->entries[i].tag != NULL)
            state->entries[kept++] = state->entries[i];
        else
            bel_free(state->entries[i].name);
    }
    state->count = kept;
}

static bel_status *read_entry(void *context, const char *name, const bel_json_value *value)
{
    bel_stored_state *state = context;
    const char *tag;
    int64_t size, changed;
    if (!bel_json_string(value, "tag", &tag) || !bel_json_i64(value, "bytes", &size) ||
        !bel_json_i64(value, "changed_ns", &changed) || size < 0) {
        return BEL_ERR(BEL_DATA_LOSS, "file \"%s\": expected tag, bytes and changed_ns", name);
    }
    bel_stored_entry *entry = bel_stored_state_at(state, name);
    bel_free(entry->tag);
    entry->tag = bel_xstrdup(tag);
    entry->size_bytes = (uint64_t)size;
    entry->changed_ns = changed;
    return NULL;
}

static bel_status *read_state(const char *path, bel_stored_state *state)
{
    char *text;
    size_t size;
    bel_json *json = NULL;
    const char *url = NULL, *owner = NULL;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_status *status = bel_json_parse(text, size, path, &json);
    bel_free(text);
    BEL_TRY(status);
    const bel_json_value *root = bel_json_root(json);
    const bel_json_value *files = bel_json_member(root, "files");
    if (!bel_json_string(root, "url", &url) || !bel_json_string(root, "owner", &owner) ||
        !bel_json_is_object(files)) {
        status =
            BEL_ERR(BEL_DATA_LOSS,
                    "%s: expected url, owner and files; hint: if you remove it, this host forgets "
                    "which files the store has",
                    path);
    }
    int64_t complete = 0;
    (void)bel_json_i64(root, "complete", &complete);
    if (status == NULL) {
        state->complete = complete != 0;
        state->url = bel_xstrdup(url);
        state->owner = bel_xstrdup(owner);
        status = bel_json_each(files, read_entry, state);
    }
    bel_json_destroy(json);
    return status;
}

bel_status *bel_stored_state_read(const char *folder, bel_stored_state *out_state)
{
    bel_stored_state state = {.folder = bel_xstrdup(folder)};
    char *path = bel_stored_beside(folder, STATE_FILE);
    bel_status *status = bel_file_exists(path) ? read_state(path, &state) : NULL;
    bel_free(path);
    if (status != NULL || state.url == NULL) bel_stored_state_deinit(&state);
    *out_state = state;
    return status;
}

bel_status *bel_stored_state_write(const bel_stored_state *state)
{
    bel_str text = {0};
    bel_str_puts(&text, "{\"url\": ");
    bel_json_write_exact(&text, state->url);
    bel_str_puts(&text, ",\n \"owner\": ");
    bel_json_write_exact(&text, state->owner);
    bel_str_printf(&text, ",\n \"complete\": %d,\n \"files\": {", state->complete);
    const char *between = "\n  ";
    for (size_t i = 0; i < state->count; i++) {
        const bel_stored_entry *entry = &state->entries[i];
        if (entry->tag == NULL) continue;
        bel_str_puts(&text, between);
        bel_json_write_exact(&text, entry->name);
        bel_str_printf(&text, ": {\"bytes\": %llu, \"changed_ns\": %lld, \"tag\": ",
                       (unsigned long long)entry->size_bytes, (long long)entry->changed_ns);
        bel_json_write_exact(&text, entry->tag);
        bel_str_puts(&text, "}");
        between = ",\n  ";
    }
    bel_str_puts(&text, "}}\n");
    char *path = bel_stored_beside(state->folder, STATE_FILE);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

void bel_stored_state_deinit(bel_stored_state *state)
{
    for (size_t i = 0; i < state->count; i++) {
        bel_free(state->entries[i].name);
        bel_free(state->entries[i].tag);
    }
    bel_free(state->entries);
    bel_free(state->folder);
    bel_free(state->url);
    bel_free(state->owner);
    *state = (bel_stored_state){0};
}
