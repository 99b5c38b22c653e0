// Packages: dlopen, the one symbol, the ABI number before anything else is believed. A package
// is somebody else's code in this process, so from its opening on a crash and a call of exit say
// whose fault it may be. These lines are written out in advance, as a handler may not format.
//
// A package that was accepted is never closed: its code may be in use until the process ends.
// bel_package_over must be called on every way out of main, or the end itself would be taken for
// a package's exit.
#define _XOPEN_SOURCE 700 // sigaltstack
#include "package.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

// --- Packages that end the process ---------------------------------------------------------------

// Written out in advance: a handler may not format.
static char crashed[512], left[512];
static bool over;

static void say(const char *line)
{
    ssize_t wrote = write(STDERR_FILENO, line, strlen(line));
    (void)wrote; // there is nobody else to tell
}

// The signal comes again, and then ends the process as it would have.
static void on_crash(int number)
{
    say(crashed);
    raise(number);
}

static void on_exit_of_others(void)
{
    if (over) return;
    say(left);
    _exit(EXIT_FAILURE);
}

static void watch(const char *path)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char stack[64 * 1024]; // for a package that has used up its own
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    bel_snprintf(
        crashed, sizeof crashed,
        "belfry: the process crashed while the package %s was in use; hint: the package runs "
        "inside this process, see it in a debugger\n",
        path);
    bel_snprintf(left, sizeof left,
                 "belfry: the package %s called exit; a model function returns an error instead\n",
                 path);
    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
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
    watch(path);
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
