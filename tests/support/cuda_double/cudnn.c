// Stand-in for libcudnn.so.9: two-dimensional convolutions and their gradients, as far as
// src/cuda/api.def calls it. Sums are f32. Operands are rounded to tf32, to the nearest, ties to
// even, if the math type allows it for f32 tensors (every math type but FMA). Results in bf16 are
// rounded to the nearest, ties to even, too.
//
// Each of the three operations has the same four algorithms. Each algorithm is a trap for a caller
// that ignores part of the answer: see `algorithms` below. One thread at a time uses a handle, in
// the context in which it was created.
#include "library.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1001,
    BAD_PARAM = 2000,
    NOT_SUPPORTED = 3000,
    EXECUTION_FAILED_CUDA_DRIVER = 5001,
};

enum { HANDLE, TENSOR, FILTER, CONVOLUTION };
enum { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };

const library this_library = {
    .name = "cuDNN",
    .source = "cudnn.cu",
    .kernels = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                "cudnnConvolutionBackwardFilter"},
    .kinds = {"handle", "tensor", "filter", "convolution"},
};

// Constants of the published interface.
enum {
    F32 = 0, // cudnnDataType_t
    BF16 = 9,
    CHANNELS_FIRST = 0, // cudnnTensorFormat_t
    CHANNELS_LAST = 1,
    CROSS_CORRELATION = 1, // cudnnConvolutionMode_t
    MATH_DEFAULT = 0,      // cudnnMathType_t
    MATH_TENSOR = 1,
    MATH_FMA = 3,
};

typedef struct handle {
    thing head;
    loaded kernels;
    atomic_flag in_use;
    void *stream; // NULL: never set
} handle;

typedef struct tensor { // and filter
    thing head;
    bool is_set;
    int type, format; // only of filters
    library_tensor is;
} tensor;

typedef struct convolution {
    thing head;
    bool is_set;
    int pad[2], stride[2], dilation[2], groups, math;
} convolution;

// cudnnConvolutionFwdAlgoPerf_t and its counterparts for the gradients.
typedef struct choice {
    int algorithm, status;
    float milliseconds;
    size_t workspace_bytes;
    int determinism, math;
    int reserved[3];
} choice;

// In the order in which they are offered. The first is a trap for callers that check nothing,
// the second for callers that ignore the status. The third needs workspace and its math type.
static const struct {
    int algorithm, status, determinism, math;
    bool takes_workspace;
} algorithms[] = {
    {0, SUCCESS, 0, MATH_TENSOR, false},
    {2, NOT_SUPPORTED, 1, MATH_TENSOR, false},
    {1, SUCCESS, 1, MATH_TENSOR, true},
    {5, SUCCESS, 1, MATH_DEFAULT, false},
};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

API(cudnnGetProperty, (int property, int *out_value))
{
    return version_of(property, 9, 1, out_value) ? SUCCESS : BAD_PARAM;
}

// --- Handles -------------------------------------------------------------------------------------

API(cudnnCreate, (void **out_handle))
{
    loaded kernels;
    if (out_handle == NULL) return BAD_PARAM;
    if (!kernels_load(&kernels)) return NOT_INITIALIZED;
    handle *h = thing_create(HANDLE, sizeof *h);
    h->kernels = kernels;
    atomic_flag_clear(&h->in_use);
    *out_handle = h;
    return SUCCESS;
}

// Begins a call with the handle, until `leave`. Yields, so that other threads can collide.
static handle *enter(void *pointer, const char *call)
{
    handle *h = thing_of(pointer, HANDLE, call);
    if (atomic_flag_test_and_set(&h->in_use))
        die("%s: handle %u is used by two threads at once", call, h->head.number);
    sched_yield();
    need_context(&h->kernels, call);
    return h;
}

static int leave(handle *h, int error)
{
    atomic_flag_clear(&h->in_use);
    return error;
}

API(cudnnSetStream, (void *pointer, void *stream))
{
    handle *h = enter(pointer, __func__);
    // The library orders the new stream after the old one.
    if (h->stream != NULL) need_stream(h->stream);
    h->stream = stream;
    return leave(h, SUCCESS);
}

// --- Descriptors ---------------------------------------------------------------------------------

static int create(int kind, size_t bytes, void **out)
{
    if (out == NULL) return BAD_PARAM;
    *out = thing_create(kind, bytes);
    return SUCCESS;
}

API(cudnnCreateTensorDescriptor, (void **out_tensor))
{
    return create(TENSOR, sizeof(tensor), out_tensor);
}

API(cudnnDestroyTensorDescriptor, (void *pointer))
{
    thing_destroy(pointer, TENSOR, __func__);
    return SUCCESS;
}

static void need_type(int type, const char *call)
{
    if (type != F32 && type != BF16) die("%s: numbers of type %d are not supported", call, type);
}

API(cudnnSetTensor4dDescriptorEx, (void *pointer, int type, int n, int c, int h, int w, int n_step,
                                   int c_step, int h_step, int w_step))
{
    tensor *t = thing_of(pointer, TENSOR, __func__);
    need_type(type, __func__);
    if (n < 1 || c < 1 || h < 1 || w < 1) return BAD_PARAM;
    if (n_step < 1 || c_step < 1 || h_step < 1 || w_step < 1) return BAD_PARAM;
    t->is_set = true;
    t->type = type;
    t->is = (library_tensor){{n, c, h, w}, {n_step, c_step, h_step, w_step}};
    return SUCCESS;
}

API(cudnnCreateFilterDescriptor, (void **out_filter))
{
    return create(FILTER, sizeof(tensor), out_filter);
}

API(cudnnDestroyFilterDescriptor, (void *pointer))
{
    thing_destroy(pointer, FILTER, __func__);
    return SUCCESS;
}

API(cudnnSetFilter4dDescriptor,
    (void *pointer, int type, int format, int out, int in, int h, int w))
{
    tensor *t = thing_of(pointer, FILTER, __func__);
    need_type(type, __func__);
    if (format != CHANNELS_FIRST && format != CHANNELS_LAST)
        die("%s: format %d is not supported", __func__, format);
    if (out < 1 || in < 1 || h < 1 || w < 1) return BAD_PARAM;
    long long map = (long long)h * w;
    t->is_set = true;
    t->type = type;
    t->format = format;
    t->is = (library_tensor){{out, in, h, w}, {in * map, map, w, 1}};
    if (format == CHANNELS_LAST)
        t->is = (library_tensor){{out, in, h, w}, {in * map, 1, (long long)in * w, in}};
    return SUCCESS;
}

API(cudnnCreateConvolutionDescriptor, (void **out_convolution))
{
    int error = create(CONVOLUTION, sizeof(convolution), out_convolution);
    if (error == SUCCESS) ((convolution *)*out_convolution)->groups = 1;
    return error;
}

API(cudnnDestroyConvolutionDescriptor, (void *pointer))
{
    thing_destroy(pointer, CONVOLUTION, __func__);
    return SUCCESS;
}

API(cudnnSetConvolution2dDescriptor,
    (void *pointer, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
     int dilation_w, int mode, int compute_type))
{
    convolution *c = thing_of(pointer, CONVOLUTION, __func__);
    if (mode != CROSS_CORRELATION) die("%s: mode %d is not supported", __func__, mode);
    if (compute_type != F32)
        die("%s: computing in type %d is not supported", __func__, compute_type);
    if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
        return BAD_PARAM;
    c->is_set = true;
    c->pad[0] = pad_h;
    c->pad[1] = pad_w;
    c->stride[0] = stride_h;
    c->stride[1] = stride_w;
    c->dilation[0] = dilation_h;
    c->dilation[1] = dilation_w;
    return SUCCESS;
}

API(cudnnSetConvolutionMathType, (void *pointer, int math))
{
    convolution *c = thing_of(pointer, CONVOLUTION, __func__);
    if (math != MATH_DEFAULT && math != MATH_TENSOR && math != MATH_FMA)
        die("%s: math type %d is not supported", __func__, math);
    c->math = math;
    return SUCCESS;
}

API(cudnnSetConvolutionGroupCount, (void *pointer, int groups))
{
    convolution *c = thing_of(pointer, CONVOLUTION, __func__);
    if (groups < 1) return BAD_PARAM;
    c->groups = groups;
    return SUCCESS;
}

// --- Problems ------------------------------------------------------------------------------------

// x, w and y, or their gradients, with the convolution that relates them.
typedef struct problem {
    const tensor *x, *w, *y;
    const convolution *by;
} problem;

static const tensor *tensor_of(const void *pointer, int kind, const char *call)
{
    const tensor *t = thing_of(pointer, kind, call);
    if (!t->is_set) die("%s: %s %u was never set", call, this_library.kinds[kind], t->head.number);
    return t;
}

static problem problem_of(const void *x, const void *w, const void *y, const void *by,
                          const char *call)
{
    problem p = {tensor_of(x, TENSOR, call), tensor_of(w, FILTER, call), tensor_of(y, TENSOR, call),
                 thing_of(by, CONVOLUTION, call)};
    if (!p.by->is_set) die("%s: convolution %u was never set", call, p.by->head.number);
    return p;
}

// Whether elements are channels-last without gaps. Strides of dimensions of size 1 do not matter.
static bool is_channels_last(const tensor *t)
{
    const int *dims = t->is.dims;
    const long long steps[4] = {(long long)dims[1] * dims[2] * dims[3], 1,
                                (long long)dims[1] * dims[3], dims[1]};
    for (int d = 0; d < 4; d++)
        if (dims[d] > 1 && t->is.steps[d] != steps[d]) return false;
    return true;
}

static int check(const problem *p)
{
    const int *x = p->x->is.dims, *w = p->w->is.dims, *y = p->y->is.dims;
    const convolution *by = p->by;
    if (p->x->type != p->w->type || p->x->type != p->y->type) return BAD_PARAM;
    if (x[0] != y[0] || x[1] != w[1] * by->groups || y[1] != w[0] || w[0] % by->groups != 0)
        return BAD_PARAM;
    for (int d = 0; d < 2; d++) {
        int room = x[2 + d] + 2 * by->pad[d] - ((w[2 + d] - 1) * by->dilation[d] + 1);
        if (room < 0 || y[2 + d] != 1 + room / by->stride[d]) return BAD_PARAM;
    }
    // NVIDIA has kernels for channels-last weights only if all tensors are channels-last.
    if (p->w->format == CHANNELS_LAST && !(is_channels_last(p->x) && is_channels_last(p->y)))
        return NOT_SUPPORTED;
    return SUCCESS;
}

// Workspace of an algorithm. It depends on the sizes, and no two convolutions of a net are equal.
static size_t workspace_of(const problem *p)
{
    enum { MOST = 1 << 20 };
    const int *w = p->w->is.dims, *y = p->y->is.dims;
    size_t bytes = 256 + sizeof(float) * (size_t)w[0] * (size_t)w[1] * (size_t)w[2] * (size_t)w[3] +
                   sizeof(float) * (size_t)(y[0] + y[2] + y[3]);
    return bytes < MOST ? bytes : MOST;
}

// FMA, without tensor cores, if the descriptor says so; else the algorithm's math type.
static int math_of(int index, const convolution *by)
{
    return by->math == MATH_FMA ? MATH_FMA : algorithms[index].math;
}

static int choose(const problem *p, int asked, int *out_count, choice *out_choices)
{
    if (asked < 1 || out_count == NULL || out_choices == NULL) return BAD_PARAM;
    *out_count = 0;
    int error = check(p);
    if (error != SUCCESS) return error;
    int count = asked < ALGORITHMS ? asked : ALGORITHMS;
    for (int i = 0; i < count; i++) {
        bool fine = algorithms[i].status == SUCCESS;
        out_choices[i] =
            (choice){.algorithm = algorithms[i].algorithm,
                     .status = algorithms[i].status,
                     .milliseconds = fine ? 0.25f * (float)(i + 1) : -1,
                     .workspace_bytes = algorithms[i].takes_workspace ? workspace_of(p) : 0,
                     .determinism = algorithms[i].determinism,
                     .math = math_of(i, p->by)};
    }
    *out_count = count;
    return SUCCESS;
}

API(cudnnGetConvolutionForwardAlgorithm_v7,
    (void *pointer, const void *x, const void *w, const void *by, const void *y, int asked,
     int *out_count, choice *out_choices))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(x, w, y, by, __func__);
    return leave(h, choose(&p, asked, out_count, out_choices));
}

API(cudnnGetConvolutionBackwardDataAlgorithm_v7,
    (void *pointer, const void *w, const void *dy, const void *by, const void *dx, int asked,
     int *out_count, choice *out_choices))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(dx, w, dy, by, __func__);
    return leave(h, choose(&p, asked, out_count, out_choices));
}

API(cudnnGetConvolutionBackwardFilterAlgorithm_v7,
    (void *pointer, const void *x, const void *dy, const void *by, const void *dw, int asked,
     int *out_count, choice *out_choices))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(x, dw, dy, by, __func__);
    return leave(h, choose(&p, asked, out_count, out_choices));
}

// --- Running -------------------------------------------------------------------------------------

// Arguments of a call in addition to the problem.
typedef struct order {
    const void *alpha, *beta, *in[2];
    void *out, *workspace;
    size_t workspace_bytes;
    int algorithm;
} order;

// Returns the bytes of workspace that the algorithm writes.
static size_t check_algorithm(const problem *p, const order *o, const char *call)
{
    int i = 0;
    while (i < ALGORITHMS && algorithms[i].algorithm != o->algorithm)
        i++;
    if (i == ALGORITHMS) die("%s: algorithm %d is not supported", call, o->algorithm);
    if (algorithms[i].status != SUCCESS)
        die("%s: algorithm %d had status %d when it was offered", call, o->algorithm,
            algorithms[i].status);
    if (algorithms[i].determinism == 0)
        die("%s: algorithm %d is not deterministic", call, o->algorithm);
    if (p->by->math != math_of(i, p->by))
        die("%s: algorithm %d needs math type %d, the convolution's is %d", call, o->algorithm,
            math_of(i, p->by), p->by->math);
    if (!algorithms[i].takes_workspace) return 0;
    size_t needed = workspace_of(p);
    if (o->workspace_bytes < needed)
        die("%s: algorithm %d takes %zu bytes of workspace, it gets %zu", call, o->algorithm,
            needed, o->workspace_bytes);
    if (o->workspace == NULL) die("%s: the workspace is NULL", call);
    if (!is_aligned(o->workspace, WORKSPACE_ALIGNMENT))
        die("%s: the workspace begins at no multiple of %d bytes", call, WORKSPACE_ALIGNMENT);
    return needed;
}

static void check_addresses(const order *o, const char *call)
{
    enum { ALIGNMENT = 16 }; // needed by kernels for tensor cores
    const void *const all[] = {o->in[0], o->in[1], o->out};
    for (int i = 0; i < 3; i++) {
        if (all[i] == NULL) die("%s: tensor %d is NULL", call, i + 1);
        if (!is_aligned(all[i], ALIGNMENT))
            die("%s: tensor %d begins at no multiple of %d bytes", call, i + 1, ALIGNMENT);
    }
    if (o->out == o->in[0] || o->out == o->in[1]) die("%s: the result overwrites an input", call);
}

static int run(const handle *h, const problem *p, const order *o, int kernel, const char *call)
{
    if (o->alpha == NULL || o->beta == NULL) return BAD_PARAM;
    if (h->stream == NULL) die("%s: the stream of handle %u was never set", call, h->head.number);
    int error = check(p);
    if (error != SUCCESS) return error;
    size_t workspace_bytes = check_algorithm(p, o, call);
    check_addresses(o, call);
    const convolution *by = p->by;
    library_convolution made = {
        .x = p->x->is,
        .w = p->w->is,
        .y = p->y->is,
        .in = {o->in[0], o->in[1]},
        .out = o->out,
        .bf16 = p->x->type == BF16,
        .pad = {by->pad[0], by->pad[1]},
        .stride = {by->stride[0], by->stride[1]},
        .dilation = {by->dilation[0], by->dilation[1]},
        .groups = by->groups,
        .dropped = by->math == MATH_FMA ? LIBRARY_DROP_F32 : LIBRARY_DROP_TF32,
        .workspace = {o->workspace, (long long)(workspace_bytes / sizeof(float))},
    };
    memcpy(&made.alpha, o->alpha, sizeof made.alpha);
    memcpy(&made.beta, o->beta, sizeof made.beta);
    const tensor *const outs[] = {p->y, p->x, p->w};
    const int *dims = outs[kernel]->is.dims;
    long long count = (long long)dims[0] * dims[1] * dims[2] * dims[3];
    int driver_error = kernel_launch(&h->kernels, kernel, count, h->stream, &made);
    return driver_error == 0 ? SUCCESS : EXECUTION_FAILED_CUDA_DRIVER;
}

API(cudnnConvolutionForward,
    (void *pointer, const void *alpha, const void *x_tensor, const void *x, const void *w_filter,
     const void *w, const void *by, int algorithm, void *workspace, size_t workspace_bytes,
     const void *beta, const void *y_tensor, void *y))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(x_tensor, w_filter, y_tensor, by, __func__);
    order o = {alpha, beta, {x, w}, y, workspace, workspace_bytes, algorithm};
    return leave(h, run(h, &p, &o, FORWARD, __func__));
}

API(cudnnConvolutionBackwardData,
    (void *pointer, const void *alpha, const void *w_filter, const void *w, const void *dy_tensor,
     const void *dy, const void *by, int algorithm, void *workspace, size_t workspace_bytes,
     const void *beta, const void *dx_tensor, void *dx))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(dx_tensor, w_filter, dy_tensor, by, __func__);
    order o = {alpha, beta, {w, dy}, dx, workspace, workspace_bytes, algorithm};
    return leave(h, run(h, &p, &o, BACKWARD_DATA, __func__));
}

API(cudnnConvolutionBackwardFilter,
    (void *pointer, const void *alpha, const void *x_tensor, const void *x, const void *dy_tensor,
     const void *dy, const void *by, int algorithm, void *workspace, size_t workspace_bytes,
     const void *beta, const void *dw_filter, void *dw))
{
    handle *h = enter(pointer, __func__);
    problem p = problem_of(x_tensor, dw_filter, dy_tensor, by, __func__);
    order o = {alpha, beta, {x, dy}, dw, workspace, workspace_bytes, algorithm};
    return leave(h, run(h, &p, &o, BACKWARD_FILTER, __func__));
}
