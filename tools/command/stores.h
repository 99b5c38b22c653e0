// Folders in object stores that flags name, as folders of this host (launch/folder/stored.h).
#ifndef BELFRY_TOOLS_COMMAND_STORES_H
#define BELFRY_TOOLS_COMMAND_STORES_H

#include "base/options.h"

// Gets the path on this host of a folder, or of a checkpoint in it, that may be a URL of a store;
// free with bel_free. A path that is no URL is copied. Errors of bel_stored_folder.
bel_status *bel_store_path(const char *text, char **out_path) BEL_MUST_USE;

// The same, and fetches the checkpoints of the folder: the newest and the best, or all. Errors of
// bel_stored_pull.
bel_status *bel_store_path_to_read(const char *text, bool all, char **out_path) BEL_MUST_USE;

// Lets bel_options_string return these paths for the flags of folders. Folders that are read are
// made equal to the store's; a training does that when it locks the folder.
bel_status *bel_stores_from_flags(bel_options *options) BEL_MUST_USE;

// After the verb: sends the files that it added, such as an export or the events of an evaluation.
bel_status *bel_stores_add(const bel_options *options) BEL_MUST_USE;

// Adds to an error of damaged files how to fetch them again.
bel_status *bel_stores_explain(const bel_options *options, bel_status *status) BEL_MUST_USE;

#endif
