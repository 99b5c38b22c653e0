// State of a store's model folder on this host: its URL, the owner's name, and the files that the
// store has. Kept beside the folder, so that a process that starts again knows the files to send.
#ifndef BELFRY_LAUNCH_FOLDER_STORED_STATE_H
#define BELFRY_LAUNCH_FOLDER_STORED_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_stored_entry {
    char *name; // path below the folder: "ckpt-00000100/manifest.json"
    uint64_t size_bytes;
    int64_t changed_ns; // modification time of this host's file
    char *tag;          // the object's; NULL: the store does not have the file
    bool seen;          // by the present walk
} bel_stored_entry;

// Bound to one thread.
typedef struct bel_stored_state {
    char *folder, *url;        // without a slash at the end
    char *owner;               // random, of this host's folder
    bool complete;             // all files were fetched since another host had the folder
    bel_stored_entry *entries; // sorted by name
    size_t count, capacity;
} bel_stored_state;

// Path of a file beside the folder, in FOLDER.store: "state.json", "lock". Free with bel_free.
char *bel_stored_beside(const char *folder, const char *name);

// True if a process of this host owns the folder: it has locked the first byte of
// FOLDER.store/lock. `lock` is another opening of that file; -1: there are no locks.
bool bel_stored_has_owner(int lock);

// Reads the state of a folder. *out_state stays zeroed if the folder is no store's. DATA_LOSS: the
// file is damaged.
bel_status *bel_stored_state_read(const char *folder, bel_stored_state *out_state) BEL_MUST_USE;
bel_status *bel_stored_state_write(const bel_stored_state *state) BEL_MUST_USE;
void bel_stored_state_deinit(bel_stored_state *state);

// Finds or adds an entry. The result is valid until the next addition.
bel_stored_entry *bel_stored_state_at(bel_stored_state *state, const char *name);

// Removes the entries without a tag.
void bel_stored_state_sweep(bel_stored_state *state);

#endif
