// Descriptors, kernels and launches of the stand-ins for cuBLASLt and cuDNN: library.h.
//
// The driver and NVRTC come from the library's folder. If the program has already opened the same
// files, those are used. The source is compiled when the first handle is created. It takes half a
// second, so a test that forks many children compiles before (cuda_double_compile).
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int (*current)(void **out_context);
    int (*load)(void **out_module, const void *image);
    int (*function)(void **out_function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra);
    int (*stream_id)(void *stream, unsigned long long *out_id);
} driver;

static struct {
    int (*create)(void **out_program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*log_size)(void *program, size_t *out_size);
    int (*log)(void *program, char *out_log);
    int (*cubin_size)(void *program, size_t *out_size);
    int (*cubin)(void *program, char *out_cubin);
    int (*destroy)(void **program);
} nvrtc;

static pthread_once_t opened = PTHREAD_ONCE_INIT, compiled = PTHREAD_ONCE_INIT;
static char *cubin;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the variables below
static thing *things;
static unsigned numbers[MOST_KINDS];
static pid_t created_by; // last handle's: a forked child reports no leaks of its parent

void die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char text[2048];
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuda double: %s\n", text);
    abort();
}

static void *need(void *memory)
{
    if (memory == NULL) die("no memory");
    return memory;
}

bool version_of(int property, int major, int minor, int *out_value)
{
    const char *old = getenv("CUDA_DOUBLE_OLD_LIBRARIES");
    if (old != NULL && strcmp(old, "1") == 0) major = 8;
    if (property < 0 || property > 2 || out_value == NULL) return false;
    *out_value = property == 0 ? major : property == 1 ? minor : 0;
    return true;
}

// --- Descriptors ---------------------------------------------------------------------------------

void *thing_create(int kind, size_t bytes)
{
    thing *t = need(calloc(1, bytes));
    pthread_mutex_lock(&mutex);
    *t = (thing){&this_library, kind, true, ++numbers[kind], things};
    things = t;
    created_by = getpid();
    pthread_mutex_unlock(&mutex);
    return t;
}

void *thing_of(const void *pointer, int kind, const char *call)
{
    const char *name = this_library.kinds[kind];
    if (pointer == NULL) die("%s: the %s is NULL", call, name);
    thing *t;
    memcpy(&t, &pointer, sizeof t);
    if (t->of != &this_library) die("%s: the %s is nothing of %s", call, name, this_library.name);
    if (t->kind != kind)
        die("%s: a %s where a %s is expected", call, this_library.kinds[t->kind], name);
    pthread_mutex_lock(&mutex);
    bool alive = t->alive;
    pthread_mutex_unlock(&mutex);
    if (!alive) die("%s: %s %u was destroyed", call, name, t->number);
    return t;
}

void thing_destroy(void *pointer, int kind, const char *call)
{
    thing *t = thing_of(pointer, kind, call);
    pthread_mutex_lock(&mutex);
    t->alive = false;
    pthread_mutex_unlock(&mutex);
}

__attribute__((destructor)) static void look_for_leaks(void)
{
    const char *asked = getenv("CUDA_DOUBLE_LEAKS");
    if (asked == NULL || strcmp(asked, "1") != 0 || created_by != getpid()) return;
    bool found = false;
    for (int kind = 1; kind < MOST_KINDS && this_library.kinds[kind] != NULL; kind++) {
        int count = 0;
        for (const thing *t = things; t != NULL; t = t->next)
            if (t->kind == kind && t->alive) count++;
        if (count == 0) continue;
        fprintf(stderr, "cuda double: %s: %d of kind %s left\n", this_library.name, count,
                this_library.kinds[kind]);
        found = true;
    }
    if (found) _exit(1);
}

// --- Opening -------------------------------------------------------------------------------------

static void *open_beside(const char *name)
{
    Dl_info self;
    if (dladdr(&this_library, &self) == 0) die("%s does not know where it is", this_library.name);
    const char *slash = strrchr(self.dli_fname, '/');
    char path[4096];
    snprintf(path, sizeof path, "%.*s%s", slash == NULL ? 0 : (int)(slash + 1 - self.dli_fname),
             self.dli_fname, name);
    void *opened_library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (opened_library == NULL) opened_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened_library == NULL) die("%s: %s", this_library.name, dlerror());
    return opened_library;
}

static void find(void *in, const char *symbol, void *out_function)
{
    void *found = dlsym(in, symbol);
    if (found == NULL) die("%s: there is no %s", this_library.name, symbol);
    memcpy(out_function, &found, sizeof found);
}

static void open_both(void)
{
    void *in = open_beside("libcuda.so.1");
    find(in, "cuCtxGetCurrent", &driver.current);
    find(in, "cuModuleLoadData", &driver.load);
    find(in, "cuModuleGetFunction", &driver.function);
    find(in, "cuLaunchKernel", &driver.launch);
    find(in, "cuStreamGetId", &driver.stream_id);
    in = open_beside("libnvrtc.so");
    find(in, "nvrtcCreateProgram", &nvrtc.create);
    find(in, "nvrtcCompileProgram", &nvrtc.compile);
    find(in, "nvrtcGetProgramLogSize", &nvrtc.log_size);
    find(in, "nvrtcGetProgramLog", &nvrtc.log);
    find(in, "nvrtcGetCUBINSize", &nvrtc.cubin_size);
    find(in, "nvrtcGetCUBIN", &nvrtc.cubin);
    find(in, "nvrtcDestroyProgram", &nvrtc.destroy);
}

// --- Compiling -----------------------------------------------------------------------------------

static char *text_of(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", CUDA_DOUBLE_SOURCES, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) die("%s: %s cannot be opened", this_library.name, path);
    enum { MOST = 1 << 16 };
    char *text = need(malloc(MOST));
    text[fread(text, 1, MOST - 1, file)] = '\0';
    fclose(file);
    return text;
}

// Compiles without fused operations, as Belfry does: every product and sum is rounded.
static void compile(void)
{
    static const char *const options[] = {"--gpu-architecture=sm_90", "--fmad=false",
                                          "-default-device"};
    const char *names[] = {"library_kernel.h", "library_params.h"};
    char *source = text_of(this_library.source),
         *headers[] = {text_of(names[0]), text_of(names[1])};
    pthread_once(&opened, open_both);
    void *program;
    size_t size;
    if (nvrtc.create(&program, source, this_library.source, 2, (const char *const *)headers,
                     names) != 0)
        die("%s: nvrtcCreateProgram fails", this_library.name);
    if (nvrtc.compile(program, 3, options) != 0) {
        nvrtc.log_size(program, &size);
        char *log = need(malloc(size));
        nvrtc.log(program, log);
        die("%s: %s", this_library.source, log);
    }
    nvrtc.cubin_size(program, &size);
    cubin = need(malloc(size));
    nvrtc.cubin(program, cubin);
    nvrtc.destroy(&program);
    free(source);
    free(headers[0]);
    free(headers[1]);
}

API(cuda_double_compile, (void))
{
    return pthread_once(&compiled, compile);
}

// --- Launches ------------------------------------------------------------------------------------

bool kernels_load(loaded *out)
{
    cuda_double_compile();
    loaded l = {.context = NULL};
    if (driver.current(&l.context) != 0 || l.context == NULL) return false;
    if (driver.load(&l.module, cubin) != 0) return false;
    for (int i = 0; i < MOST_KERNELS && this_library.kernels[i] != NULL; i++)
        if (driver.function(&l.kernels[i], l.module, this_library.kernels[i]) != 0) return false;
    *out = l;
    return true;
}

void need_context(const loaded *l, const char *call)
{
    void *current = NULL;
    driver.current(&current);
    if (current != l->context)
        die("%s: the handle is of context %p, the current context is %p", call, l->context,
            current);
}

void need_stream(void *stream)
{
    unsigned long long id;
    (void)driver.stream_id(stream, &id);
}

int kernel_launch(const loaded *l, int kernel, long long count, void *stream, void *params)
{
    enum { THREADS = 128, MOST_BLOCKS = 1 << 16 };
    long long blocks = (count + THREADS - 1) / THREADS;
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    return driver.launch(l->kernels[kernel], (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, stream,
                         &params, NULL);
}

bool is_aligned(const void *address, size_t alignment)
{
    return (uintptr_t)address % alignment == 0;
}
