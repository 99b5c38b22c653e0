// Opening the libraries: the driver first, which says whether there is a card at all, and NVRTC
// only where there is one. The first problem is kept, as every tower asks; none that is no more
// than a missing card is an error of the machine. They stay open until the process ends, since
// contexts of the driver do.
#include "cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

typedef enum library { DRIVER, NVRTC, LIBRARY_COUNT } library;

// Names that a library goes by, the newest first; the last one is what a package for developers
// has.
static const char *const names[LIBRARY_COUNT][4] = {
    [DRIVER] = {"libcuda.so.1"},
    [NVRTC] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
};

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static bel_cuda_api api;
static bel_code code;
static char problem[320];

static void *open_library(library which)
{
    const char *named = getenv(BEL_CUDA_PATH_VARIABLE);
    const char *const folders[] = {named != NULL ? named : "", "", "/usr/local/cuda/lib64"};
    for (int f = named != NULL && named[0] != '\0' ? 0 : 1; f < 3; f++)
        for (int n = 0; n < 4 && names[which][n] != NULL; n++) {
            char path[1024];
            bel_snprintf(path, sizeof path, "%s%s%s", folders[f], folders[f][0] != '\0' ? "/" : "",
                         names[which][n]);
            void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (opened != NULL) return opened;
        }
    return NULL;
}

static void fail(bel_code with, const char *text, const char *more)
{
    if (problem[0] != '\0') return;
    code = with;
    bel_snprintf(problem, sizeof problem, "%s%s", text, more);
}

// A function of a library: ISO C has no conversion from void * to it.
static void find(void *opened, const char *symbol, void *out_function)
{
    void *address = dlsym(opened, symbol);
    memcpy(out_function, &address, sizeof address);
    if (address == NULL) fail(BEL_FAILED_PRECONDITION, "CUDA has no function ", symbol);
}

static void check_versions(void)
{
    int major = 0, minor = 0;
    if (api.driver_version(&api.driver) != 0 || api.nvrtc_version(&major, &minor) != 0) {
        fail(BEL_FAILED_PRECONDITION, "CUDA does not tell its version", "");
        return;
    }
    api.nvrtc = 1000 * major + 10 * minor;
    char text[128];
    bel_snprintf(text, sizeof text, "driver %d.%d, NVRTC %d.%d; 12.0 or newer is needed",
                 api.driver / 1000, api.driver % 1000 / 10, major, minor);
    bool old = api.driver < BEL_CUDA_OLDEST || api.nvrtc < BEL_CUDA_OLDEST;
    if (old) fail(BEL_FAILED_PRECONDITION, "CUDA is too old: ", text);
}

static void open_all(void)
{
    void *driver = open_library(DRIVER);
    if (driver == NULL) {
        fail(BEL_NOT_FOUND, "there is no CUDA driver (libcuda.so.1)", "");
        return;
    }
#define DRIVER_FIND(name, symbol) find(driver, symbol, &api.name);
#define NVRTC_FIND(name, symbol)
#define FUNCTION(library, name, symbol, arguments) library##_FIND(name, symbol)
#include "cuda/api.def"
#undef DRIVER_FIND
#undef NVRTC_FIND
    if (problem[0] != '\0') return;
    int error = api.init(0), count = 0;
    if (error == 0) error = api.device_count(&count);
    if (error == BEL_CUDA_NO_DEVICE || (error == 0 && count == 0)) {
        fail(BEL_NOT_FOUND, "the CUDA driver finds no card", "");
        return;
    }
    if (error != 0) { // one that does not fit the kernel's part after an update, say
        const char *name = NULL;
        api.error_name(error, &name);
        fail(BEL_FAILED_PRECONDITION, "the CUDA driver does not work: ", name != NULL ? name : "?");
        return;
    }
    void *nvrtc = open_library(NVRTC);
    if (nvrtc == NULL) {
        fail(
            BEL_FAILED_PRECONDITION,
            "there is a card, but no NVRTC (libnvrtc.so.12 or .13), which compiles kernels for it; "
            "hint: install it (it comes with the CUDA toolkit), or name its folder in ",
            BEL_CUDA_PATH_VARIABLE);
        return;
    }
#define DRIVER_FIND(name, symbol)
#define NVRTC_FIND(name, symbol) find(nvrtc, symbol, &api.name);
#define FUNCTION(library, name, symbol, arguments) library##_FIND(name, symbol)
#include "cuda/api.def"
#undef DRIVER_FIND
#undef NVRTC_FIND
    if (problem[0] == '\0') check_versions();
}

bel_status *bel_cuda_open_api(const bel_cuda_api **out_api)
{
    pthread_once(&open_once, open_all);
    *out_api = problem[0] == '\0' ? &api : NULL;
    return problem[0] == '\0' ? NULL : BEL_ERR(code, "%s", problem);
}

bel_status *bel_cuda_status(int error, const char *action)
{
    if (error == 0) return NULL;
    const char *name = NULL, *text = NULL;
    api.error_name(error, &name);
    api.error_text(error, &text);
    return BEL_ERR(error == BEL_CUDA_OUT_OF_MEMORY ? BEL_RESOURCE_EXHAUSTED : BEL_INTERNAL,
                   "CUDA cannot %s: %s (%d, %s)", action, text != NULL ? text : "unknown error",
                   error, name != NULL ? name : "no name");
}
