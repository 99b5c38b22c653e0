// Common parts of the stand-ins' tests: the libraries, kernels (cases.cu), child processes in
// which cases run, and short names for frequent steps. A case is a function without arguments. It
// ends the child with line and condition if a check fails.
#ifndef BELFRY_TESTS_SUPPORT_CUDA_DOUBLE_CASES_H
#define BELFRY_TESTS_SUPPORT_CUDA_DOUBLE_CASES_H

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/api.h"
#include "cuda/kernels/params.h"
#include "support/bel_test.h"

// --- The libraries -------------------------------------------------------------------------------

#define FUNCTION(library, name, symbol, arguments) int(*name) arguments;
typedef struct functions {
#include "cuda/api.def"
} functions;

enum { DRIVER, NVRTC, CUBLAS, CUDNN };
static functions cuda;

static inline void load_libraries(void)
{
    static const char *const paths[] = {
        BEL_CUDA_DOUBLE_DIR "/libcuda.so.1", BEL_CUDA_DOUBLE_DIR "/libnvrtc.so",
        BEL_CUDA_DOUBLE_DIR "/libcublasLt.so.13", BEL_CUDA_DOUBLE_DIR "/libcudnn.so.9"};
    void *libraries[4], *found;
    for (int i = 0; i < 4; i++) {
        libraries[i] = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        assert_non_null(libraries[i]);
    }
#define FUNCTION(library, name, symbol, arguments)                                                 \
    found = dlsym(libraries[library], symbol);                                                     \
    assert_non_null(found);                                                                        \
    memcpy(&cuda.name, &found, sizeof found);
#include "cuda/api.def"
}

// --- Kernels -------------------------------------------------------------------------------------

typedef struct params { // same as in cases.cu
    int64_t count;
    float factor, offset;
} params;

static char source[16384];
enum { MOST_BLOB = 1 << 20 };
static char kernels[MOST_BLOB]; // with checks of accesses
static char kernels_unchecked[MOST_BLOB];

static inline void read_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(out, 1, size - 1, file);
    out[count] = '\0';
    fclose(file);
}

static inline int compile(const char *text, int option_count, const char *const *options,
                          char *out_blob, char *out_log)
{
    char kernel_h[16384], params_h[16384];
    read_text("src/cuda/kernels/kernel.h", kernel_h, sizeof kernel_h);
    read_text("src/cuda/kernels/params.h", params_h, sizeof params_h);
    // The system's stdint.h takes precedence over this one.
    const char *headers[] = {kernel_h, params_h, "#error the wrong stdint.h"};
    const char *names[] = {"cuda/kernels/kernel.h", "cuda/kernels/params.h", "stdint.h"};
    void *program;
    size_t size;
    assert_int_equal(cuda.nvrtc_create(&program, text, "test.cu", 3, headers, names), 0);
    int result = cuda.nvrtc_compile(program, option_count, options);
    assert_int_equal(cuda.nvrtc_log_size(program, &size), 0);
    assert_true(size >= 1 && size < MOST_BLOB);
    if (out_log != NULL) assert_int_equal(cuda.nvrtc_log(program, out_log), 0);
    assert_int_equal(cuda.nvrtc_cubin_size(program, &size), 0);
    assert_true(size < MOST_BLOB);
    if (result == 0) assert_true(size > 0);
    assert_int_equal(cuda.nvrtc_cubin(program, out_blob), 0);
    assert_int_equal(cuda.nvrtc_destroy(&program), 0);
    assert_null(program);
    return result;
}

static const char *const options[] = {"--gpu-architecture=sm_90", "--fmad=false",
                                      "-default-device"};

static inline int prepare(void **state)
{
    (void)state;
    load_libraries();
    read_text("tests/support/cuda_double/cases.cu", source, sizeof source);
    unsetenv("CUDA_DOUBLE_CHECKS");
    assert_int_equal(compile(source, 3, options, kernels, NULL), 0);
    setenv("CUDA_DOUBLE_CHECKS", "0", 1);
    assert_int_equal(compile(source, 3, options, kernels_unchecked, NULL), 0);
    unsetenv("CUDA_DOUBLE_CHECKS");
    return 0;
}

// --- Children ------------------------------------------------------------------------------------

static inline void need(bool holds, const char *what, int line)
{
    if (holds) return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(1);
}
#define NEED(condition) need((condition), #condition, __LINE__)
#define OK(call) NEED(cuda.call == 0)

typedef void body(void);

typedef struct end {
    int state; // as waitpid returns it
    char said[8192];
} end;

// `variables` are NAME=value, ended by NULL. NULL: no variables.
static inline void run_child(body *run, const char *const *variables, end *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            signal(signals[i], SIG_DFL); // else cmocka would continue with the next test
        for (; variables != NULL && *variables != NULL; variables++) {
            char name[64];
            size_t length = strcspn(*variables, "=");
            snprintf(name, sizeof name, "%.*s", (int)length, *variables);
            setenv(name, *variables + length + 1, 1);
        }
        run();
        exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    for (ssize_t count; (count = read(ends[0], out->said + size, sizeof out->said - 1 - size)) > 0;)
        size += (size_t)count;
    out->said[size] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &out->state, 0), child);
}

static inline void expect_fine_with(body *run, const char *const *variables)
{
    end e;
    run_child(run, variables, &e);
    if (!WIFEXITED(e.state) || WEXITSTATUS(e.state) != 0 || e.said[0] != '\0')
        fail_msg("state %d: %s", e.state, e.said);
}

static inline void expect_fine(body *run)
{
    expect_fine_with(run, NULL);
}

// Expects that abort() ended the child, after one line that contains both parts.
static inline void expect_end(body *run, const char *part, const char *other_part)
{
    end e;
    run_child(run, NULL, &e);
    if (!WIFSIGNALED(e.state) || WTERMSIG(e.state) != SIGABRT)
        fail_msg("not \"%s\", state %d: %s", part, e.state, e.said);
    if (strncmp(e.said, "cuda double: ", 13) != 0 || strstr(e.said, part) == NULL ||
        strstr(e.said, other_part) == NULL)
        fail_msg("not \"%s\": %s", part, e.said);
}

// --- What cases share ---------------------------------------------------------------------------

enum { N = 100, BYTES = N * sizeof(float) };

static void *contexts[2];
static void *module;
static void *streams[2];

static inline bool checks_are_off(void)
{
    const char *text = getenv("CUDA_DOUBLE_CHECKS");
    return text != NULL && text[0] == '0';
}

static inline void begin(void)
{
    OK(init(0));
    OK(context_retain(&contexts[0], 0));
    OK(context_set(contexts[0]));
    OK(module_load(&module, checks_are_off() ? kernels_unchecked : kernels));
    for (int i = 0; i < 2; i++)
        OK(stream_create(&streams[i], 1));
}

static inline void *new_event(unsigned flags)
{
    void *event;
    OK(event_create(&event, flags));
    return event;
}

// The second stream reads the output of the first one's kernel.
static inline void use_other_device(void)
{
    OK(context_retain(&contexts[1], 1));
    OK(context_set(contexts[1]));
}

static inline uint64_t allocate(size_t bytes)
{
    uint64_t address;
    OK(allocate(&address, bytes));
    NEED(address % 256 == 0);
    return address;
}

static inline uint64_t filled(size_t bytes)
{
    uint64_t address = allocate(bytes);
    OK(fill(address, 0, bytes, streams[0]));
    OK(stream_finish(streams[0]));
    return address;
}

static inline uint64_t numbers(int count, const float *values)
{
    uint64_t address = allocate((size_t)count * sizeof *values);
    OK(copy_in(address, values, (size_t)count * sizeof *values, streams[0]));
    OK(stream_finish(streams[0]));
    return address;
}

static inline bel_cuda_operands operands_of(uint64_t a, uint64_t b, uint64_t y)
{
    return (bel_cuda_operands){
        .in = {(void *)(uintptr_t)a, (void *)(uintptr_t)b},
        .out = {(void *)(uintptr_t)y},
        .run = (bel_cuda_state *)(uintptr_t)y,
    };
}

static inline int launch_in(void *stream, const char *name, unsigned blocks, unsigned threads,
                            uint64_t a, uint64_t b, uint64_t y, params p)
{
    void *kernel;
    bel_cuda_operands at = operands_of(a, b, y);
    void *arguments[] = {&at, &p};
    OK(module_function(&kernel, module, name));
    int error = cuda.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL);
    memset(&at, 0, sizeof at); // the launch has copied them
    memset(&p, 0, sizeof p);
    return error;
}

static inline void launch(const char *name, unsigned blocks, unsigned threads, uint64_t a,
                          uint64_t b, uint64_t y, params p)
{
    NEED(launch_in(streams[0], name, blocks, threads, a, b, y, p) == 0);
}

static inline void finish(void)
{
    OK(stream_finish(streams[0]));
}

static inline const float *out_numbers(uint64_t address, int count)
{
    static float values[4096];
    OK(copy_out(values, address, (size_t)count * sizeof *values, streams[0]));
    return values;
}

static inline bool processor_fuses(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

#endif
