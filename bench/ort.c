// The table of onnxruntime's functions is used by index, because npm's package has no header; the
// library guarantees the order.
#include "ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

typedef void *ort_status;
typedef struct ort_base {
    const void *const *(*get)(uint32_t version);
    const char *(*version)(void);
} ort_base;

// Indices in the table of version 13.
enum {
    ORT_MESSAGE = 2,
    ORT_ENV = 3,
    ORT_SESSION = 7,
    ORT_RUN = 9,
    ORT_OPTIONS = 10,
    ORT_OPTIMIZE = 23,
    ORT_INTRA = 24,
    ORT_INTER = 25,
    ORT_TENSOR = 49,
    ORT_CPU = 69
};
enum { ORT_VERSION = 13, ORT_FLOAT = 1, ORT_OPTIMIZE_ALL = 99, ORT_ERRORS_ONLY = 3 };

typedef ort_status ort_run_fn(void *session, void *options, const char *const *in_names,
                              const void *const *in, size_t in_count, const char *const *out_names,
                              size_t out_count, void **out);
typedef ort_status ort_tensor_fn(void *memory, void *data, size_t bytes, const int64_t *dims,
                                 size_t rank, int type, void **out);

static const void *const *ort;
static void *ort_env, *ort_memory;
static ort_run_fn *ort_run;

// Function at an index of the table, cast from a pointer to data.
#define ORT(place, ...)                                                                            \
    (((const union {                                                                               \
         const void *data;                                                                         \
         ort_status (*function)(__VA_ARGS__);                                                      \
     }){.data = ort[place]})                                                                       \
         .function)

static void ort_check(ort_status status, const char *what)
{
    if (status == NULL) return;
    const char *(*message)(ort_status);
    memcpy(&message, &ort[ORT_MESSAGE], sizeof message);
    (void)fprintf(stderr, "onnxruntime: %s: %s\n", what, message(status));
    exit(1);
}

bool bench_ort_open(void)
{
    const char *folder = getenv("ORT_DIR");
    if (folder == NULL) return false;
    char *path = bel_path_join(folder, "libonnxruntime.so.1");
    void *library = dlopen(path, RTLD_NOW), *found = NULL;
    if (library != NULL) found = dlsym(library, "OrtGetApiBase");
    if (found == NULL) {
        (void)fprintf(stderr, "ORT_DIR: cannot open %s\n", path);
        exit(1);
    }
    const ort_base *(*base)(void);
    memcpy(&base, &found, sizeof base);
    ort = base()->get(ORT_VERSION);
    printf("onnxruntime %s\n", base()->version());
    ort_check(ORT(ORT_ENV, int, const char *, void **)(ORT_ERRORS_ONLY, "bench", &ort_env), "env");
    ort_check(ORT(ORT_CPU, int, int, void **)(1, 0, &ort_memory), "memory");
    memcpy(&ort_run, &ort[ORT_RUN], sizeof ort_run);
    bel_free(path);
    return true;
}

bench_ort_model bench_ort_load(const char *path, const char *in_name, const char *out_name)
{
    bench_ort_model m = {.in_name = in_name, .out_name = out_name};
    void *options;
    ort_check(ORT(ORT_OPTIONS, void **)(&options), "options");
    ort_check(ORT(ORT_INTRA, void *, int)(options, 1), "threads");
    ort_check(ORT(ORT_INTER, void *, int)(options, 1), "threads");
    ort_check(ORT(ORT_OPTIMIZE, void *, int)(options, ORT_OPTIMIZE_ALL), "optimization");
    ort_check(ORT(ORT_SESSION, void *, const char *, const void *, void **)(ort_env, path, options,
                                                                            &m.session),
              "session");
    return m;
}

static void *ort_tensor(const bel_tensor *tensor)
{
    void *made;
    ort_tensor_fn *make;
    memcpy(&make, &ort[ORT_TENSOR], sizeof make);
    ort_check(make(ort_memory, tensor->data, bel_tensor_bytes(tensor), tensor->shape.dims,
                   (size_t)tensor->shape.rank, ORT_FLOAT, &made),
              "tensor");
    return made;
}

bench_ort_values bench_ort_bind(const bel_tensor *in, const bel_tensor *out)
{
    return (bench_ort_values){ort_tensor(in), ort_tensor(out)};
}

void bench_ort_run(const bench_ort_model *model, const bench_ort_values *values)
{
    void *out = values->out;
    ort_check(ort_run(model->session, NULL, &model->in_name, (const void *const *)&values->in, 1,
                      &model->out_name, 1, &out),
              "run");
}
