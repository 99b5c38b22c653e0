// Compiles every kernel source with NVIDIA's compiler, if a CUDA toolkit is installed: the
// stand-in, which runs the kernels, compiles them as C. Skipped without a toolkit.
// label: native, label: thorough
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cuda/device.h"
#include "cuda/texts.h"
#include "support/bel_test.h"
#include "support/cards.h"

static const bel_cuda_api *api;

static void compile(const char *name, const char *source)
{
    char *image;
    size_t bytes;
    BEL_ASSERT_OK(bel_cuda_compile(api, name, source, 90, &image, &bytes));
    bel_free(image);
}

static void test_sources(void **state)
{
    (void)state;
    int count = 0;
    for (int i = 0; i < bel_cuda_text_count; i++) {
        const char *name = bel_cuda_texts[i].name, *end = strrchr(name, '.');
        if (strcmp(end, ".cu") != 0) continue;
        compile(name, bel_cuda_texts[i].text);
        count++;
    }
    assert_true(count > 10);
}

// The parts of sources that are generated for a program.
static void test_elements(void **state)
{
    (void)state;
    compile("all functions", "#define PLAIN\n"
                             "#include \"cuda/kernels/elements.h\"\n"
                             "KERNEL(elements, bel_cuda_elements)\n"
                             "{\n"
                             "    float *y = (float *)at.out[0];\n"
                             "    double *z = (double *)at.out[1];\n"
                             "    if (THREAD < p.count) y[THREAD] = f32_EXP(y[THREAD], 0, 0, 0);\n"
                             "    if (THREAD < p.count) z[THREAD] = f64_SIN(z[THREAD], 0, 0, 0);\n"
                             "}\n");
}

// C that is not C++ is refused; otherwise the other tests could not fail.
static void test_refuses(void **state)
{
    (void)state;
    char *image;
    size_t bytes;
    const char *source = "#include \"cuda/kernels/kernel.h\"\n"
                         "typedef struct pair { int a, b; } pair;\n"
                         "KERNEL(refused, bel_cuda_elements)\n"
                         "{\n"
                         "    *(pair *)at.out[0] = (pair){1, (int)p.count};\n"
                         "}\n";
    bel_status *status = bel_cuda_compile(api, "C only", source, 90, &image, &bytes);
    assert_non_null(status);
    bel_status_destroy(status);
}

int main(void)
{
    static const char nvrtc[] = "/usr/local/cuda/lib64/libnvrtc.so";
    if (access(nvrtc, R_OK) != 0) return 77;
    bel_use_cards();
    setenv("CUDA_DOUBLE_NVRTC", nvrtc, 0);
    bel_status *status = bel_cuda_open_api(&api);
    if (status != NULL) { // built without CUDA
        bel_status_destroy(status);
        return 77;
    }
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
