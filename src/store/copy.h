// Copies of objects on this host: whole, read-only, shared by its processes. A copy is made once,
// in parallel ranges, and then read and mapped like any local file. So a reader at random places
// costs no request, and later epochs are as fast as local files.
//
// Copies are files of this host's cache (store/cache.h). A copy is of one state of the object: its
// tag is part of its name.
#ifndef BELFRY_STORE_COPY_H
#define BELFRY_STORE_COPY_H

#include "base/host_file.h"
#include "store/store.h"

// Opens the copy of an object's present state, and makes it if this host has none. Close it with
// bel_host_file_close. *out_info may be NULL. RESOURCE_EXHAUSTED: no room on the disk. Other
// errors: those of bel_store_read; DATA_LOSS: the object changed while it was copied.
bel_status *bel_store_copy_open(const char *url, bel_host_file *out_file,
                                bel_store_info *out_info) BEL_MUST_USE;

// The same for a state that the caller has just found.
bel_status *bel_store_copy_open_state(const char *url, const bel_store_info *info,
                                      bel_host_file *out_file) BEL_MUST_USE;

// The same for the state that this process saw last, without a request if the copy exists: for
// records that name files. DATA_LOSS: the object changed since, and there is no copy of that state.
bel_status *bel_store_copy_open_known(const char *url, bel_host_file *out_file,
                                      bel_store_info *out_info) BEL_MUST_USE;

// Looks up the object's present state on another thread, and makes a copy if this host has none and
// the object is small (8 MiB). Returns at once. The functions above report errors, and wait for the
// copy.
void bel_store_copy_begin(const char *url);

#endif
