// Building packages (--package_path), and the store of built ones in a job's model folder.
#ifndef BELFRY_TOOLS_PACKAGE_BUILD_H
#define BELFRY_TOOLS_PACKAGE_BUILD_H

#include "belfry/status.h"

// Builds the package in `folder` and puts it into `model_dir`/packages/DIGEST/NAME.so, where DIGEST
// is that of its bytes, in which no path of the build is. What a job has been started with is what
// every process of it loads, also when the sources have changed since. What is there already stays.
// *out_path: the file's absolute path, to be freed with bel_free.
//
// What is built: what package.yaml says (`name`, `sources`, `cflags`, `libraries`: all optional);
// else, with a CMakeLists.txt, its module NAME; else all *.c of the folder, compiled into one.
// `module` is NULL or a name such as "trainer.main", as Python has it: the folder's name, a dot,
// NAME. Without it NAME is that of package.yaml, or the folder's.
//
// NOT_FOUND: the folder, or its sources; INVALID_ARGUMENT: package.yaml (with its place), a module
// of another folder; ABORTED: the compiler failed, its messages are on stderr; DEADLINE_EXCEEDED:
// it took more than ten minutes.
bel_status *bel_package_build(const char *folder, const char *module, const char *model_dir,
                              char **out_path) BEL_MUST_USE;

// The package that the newest training in model_dir loaded from there, by its job.yaml. *out_path:
// as above, or NULL where there is none. Errors of bel_yaml_read.
bel_status *bel_package_kept(const char *model_dir, char **out_path) BEL_MUST_USE;

// FAILED_PRECONDITION: the file lies in a store, and is not what its folder's name says. OK
// elsewhere.
bel_status *bel_package_check_store(const char *path) BEL_MUST_USE;

#endif
