// The paths that a user wrote, as files: patterns are replaced by what they match.
#ifndef BELFRY_INPUT_PATHS_H
#define BELFRY_INPUT_PATHS_H

#include "base/arena.h"
#include "belfry/status.h"

// Each path in its turn, below the folder of BEL_DATA_DIR_VARIABLE where it is a relative one and
// that is set: as it is, or, if it holds a * ? or [ and is not the name of a file, the
// files that match it as in a shell, sorted by their bytes. Memory comes from `arena`. NOT_FOUND: a
// pattern that no file matches; errors of folders that cannot be read.
bel_status *bel_paths_expand(bel_arena *arena, const char *const *paths, int count,
                             const char *const **out_paths, int *out_count) BEL_MUST_USE;

// The same for one path of which there can be but one file. INVALID_ARGUMENT: several match.
bel_status *bel_path_expand_one(bel_arena *arena, const char *path,
                                const char **out_path) BEL_MUST_USE;

#endif
