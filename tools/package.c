// Packages: dlopen, the one symbol, the ABI number before anything else is believed.
#include "package.h"

#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

static const char *last_error(void)
{
    const char *text = dlerror();
    return text != NULL ? text : "no reason given";
}

static bel_status *check_package(const char *path, const bel_package *package)
{
    if (package->abi != BEL_PACKAGE_ABI) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--package: %s was compiled for package ABI %d, this belfry has %d; compile "
                       "it again with this version's headers",
                       path, package->abi, BEL_PACKAGE_ABI);
    }
    if (package->name == NULL || package->model_fn == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: %s has no %s in its BEL_PACKAGE", path,
                       package->name == NULL ? "name" : "model function");
    }
    return NULL;
}

static bel_status *open_checked(const char *path, const bel_package **out_package)
{
    if (!bel_file_exists(path)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: there is no file %s", path);
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: cannot load %s as a shared object: %s",
                       path, last_error());
    }
    const bel_package *package = dlsym(object, "bel_package_entry");
    bel_status *status =
        package != NULL ? check_package(path, package)
                        : BEL_ERR(BEL_INVALID_ARGUMENT,
                                  "--package: %s does not export bel_package_entry; did you use "
                                  "BEL_PACKAGE?",
                                  path);
    if (status == NULL) {
        *out_package = package;
    } else {
        dlclose(object);
    }
    return status;
}

bel_status *bel_package_open(const char *path, const bel_package **out_package)
{
    // Without a slash dlopen would look in the system's folders.
    char *file = strchr(path, '/') != NULL ? bel_xstrdup(path) : bel_path_join(".", path);
    bel_status *status = open_checked(file, out_package);
    bel_free(file);
    return status;
}
