// Each slot's predictor has input and output arrays here; a request's input is copied to the first.
#include "serve_ort.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "figures.h"
#include "ort.h"

enum { MOST_SLOTS = 64, MOST_ELEMENTS = 4096 };

typedef struct slot {
    const bel_predictor *predictor;
    bench_ort_values values;
    bel_tensor out;
    float x[MOST_ELEMENTS], y[MOST_ELEMENTS];
} slot;

static slot slots[MOST_SLOTS];
static int slot_count;
static bench_ort_model model;
static _Atomic bool in_use;

bel_status *__real_bel_predictor_bind(bel_predictor *predictor, int input,
                                      const bel_tensor *elements);
bel_status *__real_bel_predictor_run(bel_predictor *predictor);
bel_tensor __real_bel_predictor_output(const bel_predictor *predictor, int output);
bel_status *__wrap_bel_predictor_bind(bel_predictor *predictor, int input,
                                      const bel_tensor *elements);
bel_status *__wrap_bel_predictor_run(bel_predictor *predictor);
bel_tensor __wrap_bel_predictor_output(const bel_predictor *predictor, int output);

static slot *find(const bel_predictor *predictor)
{
    for (int i = 0; atomic_load(&in_use) && i < slot_count; i++)
        if (slots[i].predictor == predictor) return &slots[i];
    return NULL;
}

bel_status *__wrap_bel_predictor_bind(bel_predictor *predictor, int input,
                                      const bel_tensor *elements)
{
    slot *s = find(predictor);
    if (s == NULL) return __real_bel_predictor_bind(predictor, input, elements);
    memcpy(s->x, elements->data, bel_tensor_bytes(elements));
    return NULL;
}

bel_status *__wrap_bel_predictor_run(bel_predictor *predictor)
{
    slot *s = find(predictor);
    if (s == NULL) return __real_bel_predictor_run(predictor);
    bench_ort_run(&model, &s->values);
    return NULL;
}

bel_tensor __wrap_bel_predictor_output(const bel_predictor *predictor, int output)
{
    slot *s = find(predictor);
    return s != NULL ? s->out : __real_bel_predictor_output(predictor, output);
}

static bel_tensor one_example(bel_port port, float *data)
{
    bel_tensor tensor = {.dtype = port.dtype, .shape = port.shape, .data = data};
    tensor.shape.dims[0] = 1;
    bench_expect(port.dtype == BEL_DTYPE_F32 && bel_shape_elements(&tensor.shape) <= MOST_ELEMENTS,
                 "a model of one small f32 input and output");
    return tensor;
}

// Compares the answers of both sides to one example.
static void compare(bel_predictor *predictor, const bel_tensor *x)
{
    const int64_t inputs = bel_shape_elements(&x->shape);
    slot *s = &slots[0];
    for (int64_t i = 0; i < inputs; i++)
        s->x[i] = (float)(i * 7 % 17);
    bench_check(__real_bel_predictor_bind(predictor, 0, x));
    bench_check(__real_bel_predictor_run(predictor));
    bench_ort_run(&model, &s->values);
    const bel_tensor y = __real_bel_predictor_output(predictor, 0);
    for (int64_t i = 0; i < bel_shape_elements(&y.shape); i++)
        bench_expect(fabsf(s->y[i] - ((const float *)y.data)[i]) < 1e-4F, "the same answers");
}

bool bench_serve_ort_load(const char *export, const bel_served *version)
{
    bel_predictor *first = bel_served_predictor(version, 0, 0);
    if (!bench_ort_open()) return false;
    bench_expect(version->slot_count <= MOST_SLOTS && version->input_count == 1 &&
                     version->output_count == 1,
                 "a model of one input and one output");
    bel_port in = bel_predictor_input_port(first, 0), out = bel_predictor_output_port(first, 0);
    char *path = bel_path_join(export, "model.onnx");
    model = bench_ort_load(path, bel_xstrdup(in.name), bel_xstrdup(out.name)); // until the end
    bel_free(path);
    for (slot_count = 0; slot_count < version->slot_count; slot_count++) {
        slot *s = &slots[slot_count];
        const bel_tensor x = one_example(in, s->x);
        s->predictor = bel_served_predictor(version, slot_count, 0);
        s->out = one_example(out, s->y);
        s->values = bench_ort_bind(&x, &s->out);
    }
    const bel_tensor x = one_example(in, slots[0].x);
    compare(first, &x);
    return true;
}

void bench_serve_ort_use(bool use)
{
    atomic_store(&in_use, use);
}
