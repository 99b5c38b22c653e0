// Builder of packages (--package_path), with a store of built ones in a job's model folder.
#ifndef BELFRY_TOOLS_PACKAGE_PACKAGE_BUILD_H
#define BELFRY_TOOLS_PACKAGE_PACKAGE_BUILD_H

#include "belfry/status.h"

// Builds the package in `folder` as `model_dir`/packages/DIGEST/NAME.so. DIGEST is the digest of
// the file's bytes, which contain no path of the build. All processes of a job load the file that
// the job started with, even if the sources have changed since. An existing file stays. *out_path:
// the file's absolute path; free it with bel_free.
//
// package.yaml defines the build (`name`, `sources`, `cflags`, `libraries`: all optional). Without
// that file, a CMakeLists.txt builds its module NAME. Otherwise all *.c of the folder are compiled
// into one object. `module` is NULL or a name such as "trainer.main", as in Python: the folder's
// name, a dot, NAME. The default for NAME is that of package.yaml, or the folder's name.
//
// NOT_FOUND: the folder, or its sources; INVALID_ARGUMENT: package.yaml (with its place), a module
// of another folder; ABORTED: the compiler failed, its messages are on stderr; DEADLINE_EXCEEDED:
// it took more than ten minutes.
bel_status *bel_package_build(const char *folder, const char *module, const char *model_dir,
                              char **out_path) BEL_MUST_USE;

// Finds the package that the newest training in model_dir loaded from there, by its job.yaml.
// *out_path: as above, or NULL if there is no such package. Errors of bel_yaml_read.
bel_status *bel_package_kept(const char *model_dir, char **out_path) BEL_MUST_USE;

// FAILED_PRECONDITION: the file is in a store, and its digest differs from its folder's name. OK
// for a file elsewhere.
bel_status *bel_package_check_store(const char *path) BEL_MUST_USE;

#endif
