// Packages: opened with dlopen; the ABI number of their one symbol is checked before its other
// fields are read. A package is foreign code in this process, so after its opening a crash or a
// call of exit names the package as the possible cause. The line for exit is formatted in advance,
// because it is printed while the process exits.
//
// An accepted package is never closed: its code may be in use until the process ends. A process has
// one package. Every return path of main must call bel_package_over, or the regular exit would be
// reported as the package's.
#include "package/package.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "command/flags.h"
#include "package/package_build.h"

// --- Packages that end the process ---------------------------------------------------------------

static char left[512];
static bool over;

static void on_exit_of_others(void)
{
    if (over) return;
    ssize_t wrote = write(STDERR_FILENO, left, strlen(left));
    (void)wrote; // no other place to report it
    _exit(EXIT_FAILURE);
}

static void package_watch(const char *path)
{
    char *crashed = bel_strf("the process crashed while the package %s was in use; hint: the "
                             "package runs inside this process, see it in a debugger",
                             path);
    bel_crash_watch(crashed, true);
    bel_free(crashed);
    bel_snprintf(left, sizeof left,
                 "belfry: the package %s called exit; a model function returns an error instead\n",
                 path);
    atexit(on_exit_of_others);
}

void bel_package_over(void)
{
    over = true;
}

// --- Opening -------------------------------------------------------------------------------------

static const char *last_error(void)
{
    const char *text = dlerror();
    return text != NULL ? text : "no reason given";
}

// After abi and size, fields beyond the package's size stay zero.
static bel_status *check_package(const char *path, const bel_package *package,
                                 bel_package *out_package)
{
    if (package->abi != BEL_PACKAGE_ABI) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--package: %s was compiled for package ABI %d, this belfry has %d; compile "
                       "it again with this version's headers",
                       path, package->abi, BEL_PACKAGE_ABI);
    }
    size_t size = package->size < sizeof *package ? package->size : sizeof *package;
    if (!bel_sized_is_zero(package, sizeof *package, package->size)) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--package: %s sets a field of BEL_PACKAGE that this belfry lacks: it was "
                       "compiled with the headers of a later version",
                       path);
    }
    *out_package = (bel_package){0};
    memcpy(out_package, package, size);
    if (out_package->name == NULL || out_package->model_fn == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: %s has no %s in its BEL_PACKAGE", path,
                       out_package->name == NULL ? "name" : "model function");
    }
    if (out_package->input_fn != NULL && out_package->feature_fn != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--package: %s has an input function and a feature function: the first one "
                       "makes the features, too",
                       path);
    }
    return NULL;
}

static bel_status *package_load(const char *path, bel_package *out_package)
{
    if (!bel_file_exists(path)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: there is no file %s", path);
    }
    BEL_TRY(bel_package_check_store(path));
    package_watch(path);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: cannot load %s as a shared object: %s",
                       path, last_error());
    }
    const bel_package *package = dlsym(object, "bel_package_entry");
    bel_status *status =
        package != NULL ? check_package(path, package, out_package)
                        : BEL_ERR(BEL_INVALID_ARGUMENT,
                                  "--package: %s does not export bel_package_entry; did you use "
                                  "BEL_PACKAGE?",
                                  path);
    if (status != NULL) dlclose(object);
    return status;
}

bel_status *bel_package_open(const char *path, const bel_package **out_package)
{
    static bel_package package;
    static char *opened;
    bool again = opened != NULL && strcmp(opened, path) == 0;
    if (!again) {
        // Without a slash dlopen would search the system's folders.
        char *file = strchr(path, '/') != NULL ? bel_xstrdup(path) : bel_path_join(".", path);
        bel_status *status = package_load(file, &package);
        bel_free(file);
        BEL_TRY(status);
        bel_free(opened);
        opened = bel_xstrdup(path);
    }
    *out_package = &package;
    return NULL;
}

// --- Its flags -----------------------------------------------------------------------------------

// A switch without a default is off.
static bel_option row_of(const bel_package_flag *flag)
{
    static const bel_option_type types[] = {
        [BEL_FLAG_TEXT] = BEL_OPTION_STRING,   [BEL_FLAG_INT] = BEL_OPTION_INT,
        [BEL_FLAG_NUMBER] = BEL_OPTION_DOUBLE, [BEL_FLAG_SWITCH] = BEL_OPTION_BOOL,
        [BEL_FLAG_INTS] = BEL_OPTION_INTS,     [BEL_FLAG_TEXTS] = BEL_OPTION_STRINGS};
    const char *none = flag->kind == BEL_FLAG_SWITCH ? "false" : "";
    return (bel_option){.name = flag->name,
                        .type = types[flag->kind],
                        .uses = BEL_VERBS_RUNNING,
                        .otherwise = flag->otherwise != NULL ? flag->otherwise : none,
                        .accepts = flag->accepts,
                        .group = BEL_FLAG_GROUP_PACKAGE,
                        .help = flag->help != NULL ? flag->help : ""};
}

bel_status *bel_package_add_flags(const char *path, bel_options *options)
{
    const bel_package *package;
    BEL_TRY(bel_package_open(path, &package));
    for (int i = 0; i < package->flag_count; i++) {
        const bel_package_flag *flag = &package->flags[i];
        if (flag->name == NULL || (unsigned)flag->kind > BEL_FLAG_TEXTS) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "--package: %s: flag %d of its list has no %s",
                           path, i, flag->name == NULL ? "name" : "known kind");
        }
        const bel_option row = row_of(flag);
        BEL_TRY_CTX(bel_options_add(options, &row), "--package: %s: its flag --%s", path,
                    flag->name);
    }
    return NULL;
}
