// Expansion of the user's paths to files: each pattern is replaced by its matches.
#ifndef BELFRY_INPUT_FILES_PATHS_H
#define BELFRY_INPUT_FILES_PATHS_H

#include <stdbool.h>

#include "base/arena.h"
#include "belfry/status.h"

// Expands each path in order. A URL of an object store (store/store.h) is a path, too, and its
// patterns match objects: * and ? match no slash. A relative path is below the folder of
// BEL_DATA_DIR_VARIABLE, if that is set. A path with a * ? or [ that is not the name of a file
// becomes the files that match it as in a shell, sorted by their bytes. A folder ** stands for any
// folders, as in src/**/*.c. Memory comes from `arena`. NOT_FOUND: a pattern that matches no file;
// errors of folders that cannot be read, and of bel_store_list.
bel_status *bel_paths_expand(bel_arena *arena, const char *const *paths, int count,
                             const char *const **out_paths, int *out_count) BEL_MUST_USE;

// The same for one path that is known to be a pattern, whatever files exist now.
bel_status *bel_paths_match(bel_arena *arena, const char *pattern, const char *const **out_paths,
                            int *out_count) BEL_MUST_USE;

// True if a path stands for the files or objects that match it, and is no file's name. One of an
// object store counts by its characters. A URL of a web
// server, or one with a query, is not a pattern.
bool bel_path_is_pattern(const char *path);
bool bel_path_is_object(const char *path); // or a pattern of objects

// The same as the first for a path that must match one file. INVALID_ARGUMENT: several match.
bel_status *bel_path_expand_one(bel_arena *arena, const char *path,
                                const char **out_path) BEL_MUST_USE;

// Whether a host without these files could take another host's description of them instead: one of
// them is missing, matches nothing, or is no regular file.
bool bel_paths_are_elsewhere(const char *const *paths, int count);

#endif
