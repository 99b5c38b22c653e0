// Opening of the libraries: first the driver, which knows whether there is a GPU, then NVRTC if
// there is one; cuBLASLt and cuDNN on demand. The first problem is kept, as every tower asks. An
// absent driver or GPU is NOT_FOUND; other problems are errors of the machine. The libraries stay
// open until the process ends, since contexts of the driver do.
#include "cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "cuda/cuda.h"

typedef enum library { DRIVER, NVRTC, CUBLAS, CUDNN, LIBRARY_COUNT } library;

// File names of the libraries, the newest first; the last one is that of a developer package.
static const char *const names[LIBRARY_COUNT][4] = {
    [DRIVER] = {"libcuda.so.1"},
    [NVRTC] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
    [CUBLAS] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
    [CUDNN] = {"libcudnn.so.9", "libcudnn.so"},
};

// The first problem.
typedef struct opening {
    bel_code code;
    char problem[320];
} opening;

static pthread_once_t open_once = PTHREAD_ONCE_INIT, fast_once = PTHREAD_ONCE_INIT;
static bel_cuda_api api;
static opening opened_all, opened_fast;

// Whether a library is newer than the driver: CUDA libraries need a driver of at least their major
// version.
static bool is_too_new(library which, const char *name)
{
    const char *end = strrchr(name, '.');
    int64_t major;
    bool numbered = bel_parse_i64(end + 1, strlen(end + 1), &major);
    return (which == NVRTC || which == CUBLAS) && numbered && major > api.driver / 1000;
}

// Opens a library in a folder, the first `length` characters of `folder`; with length 0 the loader
// searches it. NULL: not there.
static void *open_in(library which, const char *folder, size_t length)
{
    for (int n = 0; n < 4 && names[which][n] != NULL; n++) {
        char path[1024];
        if (is_too_new(which, names[which][n])) continue;
        bel_snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, length > 0 ? "/" : "",
                     names[which][n]);
        void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (opened != NULL) return opened;
    }
    return NULL;
}

static void *open_library(library which)
{
    static const char usual[] = "/usr/local/cuda/lib64";
    const char *named = getenv(BEL_CUDA_PATH_VARIABLE);
    for (const char *at = named != NULL ? named : ""; *at != '\0';) {
        size_t length = strcspn(at, ":");
        void *opened = length > 0 ? open_in(which, at, length) : NULL;
        if (opened != NULL) return opened;
        at += length + (at[length] == ':' ? 1 : 0);
    }
    void *opened = open_in(which, "", 0);
    return opened != NULL ? opened : open_in(which, usual, strlen(usual));
}

static void opening_fail(opening *o, bel_code with, const char *text, const char *more)
{
    if (o->problem[0] != '\0') return;
    o->code = with;
    bel_snprintf(o->problem, sizeof o->problem, "%s%s", text, more);
}

// Looks up a function of a library. Copies the address, as ISO C has no conversion from void * to
// it.
static void opening_find(opening *o, void *opened, const char *symbol, void *out_function)
{
    void *address = dlsym(opened, symbol);
    memcpy(out_function, &address, sizeof address);
    if (address == NULL)
        opening_fail(
            o, BEL_FAILED_PRECONDITION,
            "one of CUDA's libraries is too old, or another one by that name: it has no function ",
            symbol);
}

static void find_all(opening *o, library which, void *opened)
{
#define FUNCTION(library, name, symbol, arguments)                                                 \
    if (which == library) opening_find(o, opened, symbol, &api.name);
#include "cuda/api.def"
}

static void check_versions(opening *o)
{
    int major = 0, minor = 0;
    if (api.nvrtc_version(&major, &minor) != 0) {
        opening_fail(o, BEL_FAILED_PRECONDITION, "NVRTC does not report its version", "");
        return;
    }
    api.nvrtc = 1000 * major + 10 * minor;
    char text[128];
    bel_snprintf(text, sizeof text, "driver %d.%d, NVRTC %d.%d; 12.0 or newer is needed",
                 api.driver / 1000, api.driver % 1000 / 10, major, minor);
    bool old = api.driver < BEL_CUDA_OLDEST || api.nvrtc < BEL_CUDA_OLDEST;
    if (old) opening_fail(o, BEL_FAILED_PRECONDITION, "CUDA is too old: ", text);
}

static void open_all(void)
{
    opening *o = &opened_all;
    void *driver = open_library(DRIVER);
    if (driver == NULL) {
        opening_fail(o, BEL_NOT_FOUND, "there is no CUDA driver (libcuda.so.1)", "");
        return;
    }
    find_all(o, DRIVER, driver);
    if (o->problem[0] != '\0') return;
    int error = api.init(0), count = 0;
    if (error == 0) error = api.driver_version(&api.driver);
    if (error == 0) error = api.device_count(&count);
    if (error == BEL_CUDA_NO_DEVICE || (error == 0 && count == 0)) {
        opening_fail(o, BEL_NOT_FOUND, "the CUDA driver finds no GPU", "");
        return;
    }
    if (error != 0) { // for example a driver that does not fit the kernel module after an update
        const char *name = NULL;
        api.error_name(error, &name);
        opening_fail(o, BEL_FAILED_PRECONDITION,
                     "the CUDA driver does not work: ", name != NULL ? name : "?");
        return;
    }
    void *nvrtc = open_library(NVRTC);
    if (nvrtc == NULL) {
        opening_fail(
            o, BEL_FAILED_PRECONDITION,
            "there is a GPU, but no NVRTC (libnvrtc.so.12 or .13), which compiles kernels for it; "
            "hint: install it (it comes with the CUDA toolkit), or name its folder in ",
            BEL_CUDA_PATH_VARIABLE);
        return;
    }
    find_all(o, NVRTC, nvrtc);
    if (o->problem[0] == '\0') check_versions(o);
}

bel_status *bel_cuda_open_api(const bel_cuda_api **out_api)
{
    pthread_once(&open_once, open_all);
    bool good = opened_all.problem[0] == '\0';
    *out_api = good ? &api : NULL;
    return good ? NULL : BEL_ERR(opened_all.code, "%s", opened_all.problem);
}

// --- Fast arithmetic -----------------------------------------------------------------------------

static void open_fast_library(opening *o, library which, const char *text)
{
    void *opened = open_library(which);
    if (opened != NULL) {
        find_all(o, which, opened);
        return;
    }
    opening_fail(o, BEL_FAILED_PRECONDITION, text, BEL_CUDA_PATH_VARIABLE);
}

// Version from `property`, in the form of NVRTC's; 0: unknown.
static int version_of(int (*property)(int property, int *out_value))
{
    int major, minor;
    bool told = property(BEL_CUDA_PROPERTY_MAJOR, &major) == 0 &&
                property(BEL_CUDA_PROPERTY_MINOR, &minor) == 0;
    return told ? 1000 * major + 10 * minor : 0;
}

static void say_fast(char *text, size_t size)
{
    bel_snprintf(text, size, "cuBLASLt %d.%d, cuDNN %d.%d", api.cublas / 1000,
                 api.cublas % 1000 / 10, api.cudnn / 1000, api.cudnn % 1000 / 10);
}

static void open_fast(void)
{
    opening *o = &opened_fast;
    open_fast_library(o, CUBLAS,
                      "there is no cuBLASLt (libcublasLt.so.12 or .13), which multiplies matrices; "
                      "hint: install it (it comes with the CUDA toolkit), or name its folder in ");
    open_fast_library(o, CUDNN,
                      "there is no cuDNN (libcudnn.so.9), which makes convolutions; hint: install "
                      "it, or name its folder in ");
    if (o->problem[0] != '\0') return;
    api.cublas = version_of(api.cublas_property);
    api.cudnn = version_of(api.cudnn_property);
    if (api.cublas >= BEL_CUDA_OLDEST && api.cudnn >= BEL_CUDNN_OLDEST) return;
    char text[64], needs[128];
    say_fast(text, sizeof text);
    bel_snprintf(needs, sizeof needs, "%s; 12.0 and 9.0 or newer are needed", text);
    opening_fail(o, BEL_FAILED_PRECONDITION, "CUDA is too old: ", needs);
}

bel_status *bel_cuda_open_fast(char text[BEL_CUDA_TEXT])
{
    pthread_once(&fast_once, open_fast);
    if (opened_fast.problem[0] != '\0') return BEL_ERR(opened_fast.code, "%s", opened_fast.problem);
    if (text != NULL) say_fast(text, BEL_CUDA_TEXT);
    return NULL;
}

bel_status *bel_cuda_library_status(int error, const char *whose, const char *action)
{
    if (error == 0) return NULL;
    bool full = error == BEL_CUBLAS_ALLOCATION || error == BEL_CUDNN_HOST_ALLOCATION ||
                error == BEL_CUDNN_DEVICE_ALLOCATION;
    return BEL_ERR(full ? BEL_RESOURCE_EXHAUSTED : BEL_INTERNAL, "%s cannot %s: status %d%s", whose,
                   action, error, full ? ", out of memory" : "");
}

// Errors after which a process's context is unusable.
static bool is_end_of_context(int error)
{
    return error == BEL_CUDA_MEMORY_ERROR || error == BEL_CUDA_LINK_ERROR ||
           error == BEL_CUDA_ILLEGAL_ADDRESS || error == BEL_CUDA_LAUNCH_TIMEOUT ||
           (error >= BEL_CUDA_FIRST_FAULT && error <= BEL_CUDA_LAST_FAULT);
}

// Reasons for the first loss: from a wait, with the GPU's name, and from the driver before that;
// NULL: none. They are kept until the process ends.
static _Atomic(const char *) why_lost_named, why_lost;

void bel_cuda_note_lost(const char *card, const char *why)
{
    const char *none = NULL;
    char *kept = card != NULL ? bel_strf("%s: %s", card, why) : bel_xstrdup(why);
    if (!atomic_compare_exchange_strong(card != NULL ? &why_lost_named : &why_lost, &none, kept))
        bel_free(kept);
}

const char *bel_cuda_why_lost(void)
{
    const char *named = atomic_load(&why_lost_named);
    return named != NULL ? named : atomic_load(&why_lost);
}

bool bel_cuda_has_lost_card(void)
{
    return bel_cuda_why_lost() != NULL;
}

bel_status *bel_cuda_status(int error, const char *action)
{
    if (error == 0) return NULL;
    const char *name = NULL, *text = NULL;
    api.error_name(error, &name);
    api.error_text(error, &text);
    bel_status *status =
        BEL_ERR(error == BEL_CUDA_OUT_OF_MEMORY ? BEL_RESOURCE_EXHAUSTED : BEL_INTERNAL,
                "CUDA cannot %s: %s (%d, %s)", action, text != NULL ? text : "unknown error", error,
                name != NULL ? name : "no name");
    if (is_end_of_context(error)) bel_cuda_note_lost(NULL, bel_status_message(status));
    return status;
}
