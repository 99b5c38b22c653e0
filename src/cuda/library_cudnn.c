// Convolutions and their gradients by cuDNN, for fast arithmetic.
//
// Its fast kernels want channels-last images and weights, in f32 (which it may round to tf32) or
// bf16. An image in that form is used in place, which is the usual case (the runtime's choice of
// bf16 values sees to that). Others are copied to the call's workspace, and the result from there,
// by kernels of arrange.cu, which add the bias and Relu on the way. Only algorithms that report to
// be deterministic are used.
//
// Descriptors are created when an algorithm is chosen and when work is queued, as in
// library_cublas.c. cuDNN pads both sides of an image alike. For windows with other pads, x is
// copied with a margin of zeros, or its gradient from inside such a margin.
#include <string.h>

#include "cuda/device.h"
#include "cuda/images.h"
#include "cuda/kernels/arrange.h"
#include "ops/kernels/conv.h"

enum { X, W, Y, OPERANDS }; // the convolution's; in ConvTranspose, y is its input
#define MOST_WORKSPACE ((size_t)512 << 20)

// Place of x, w or y.
typedef struct operand {
    int input;     // index in the call; -1: its output
    bool bf16;     // stored as bf16
    bool in_place; // else in the workspace, at `offset`
    size_t offset;
    bel_cuda_image_steps steps; // for x and y, in place or in the workspace
} operand;

typedef struct library_conv {
    bel_op op; // CONV, CONV_GRAD_INPUT, CONV_GRAD_WEIGHTS
    int type, math, algorithm;
    int n, groups, channels[OPERANDS], rows[OPERANDS], columns[OPERANDS]; // w: its window
    int pad[2], stride[2], dilation[2];
    int margin[2], margins[2]; // zeros around x in the library's copy: before it, and both together
    operand operands[OPERANDS];
    size_t workspace_offset, workspace_bytes;
} library_conv;

typedef struct descriptors {
    void *x, *w, *y, *conv;
} descriptors;

// --- Descriptors ---------------------------------------------------------------------------------

static void cudnn_destroy(const bel_cuda_api *api, const descriptors *d)
{
    if (d->x != NULL) api->cudnn_tensor_destroy(d->x);
    if (d->y != NULL) api->cudnn_tensor_destroy(d->y);
    if (d->w != NULL) api->cudnn_filter_destroy(d->w);
    if (d->conv != NULL) api->cudnn_conv_destroy(d->conv);
}

static int make_image(const bel_cuda_api *api, const library_conv *p, int which, void **out_tensor)
{
    const bel_cuda_image_steps *steps = &p->operands[which].steps;
    int error = api->cudnn_tensor_create(out_tensor);
    if (error != 0) return error;
    return api->cudnn_tensor_set(*out_tensor, p->type, p->n, p->channels[which], p->rows[which],
                                 p->columns[which], (int)steps->image, (int)steps->channel,
                                 (int)steps->row, (int)steps->column);
}

static int cudnn_make(const bel_cuda_api *api, const library_conv *p, descriptors *d)
{
    int error = make_image(api, p, X, &d->x);
    if (error == 0) error = make_image(api, p, Y, &d->y);
    if (error == 0) error = api->cudnn_filter_create(&d->w);
    if (error == 0)
        error = api->cudnn_filter_set(d->w, p->type, BEL_CUDNN_CHANNELS_LAST, p->channels[Y],
                                      p->channels[X] / p->groups, p->rows[W], p->columns[W]);
    if (error == 0) error = api->cudnn_conv_create(&d->conv);
    if (error == 0)
        error = api->cudnn_conv_set(d->conv, p->pad[0], p->pad[1], p->stride[0], p->stride[1],
                                    p->dilation[0], p->dilation[1], BEL_CUDNN_CROSS_CORRELATION,
                                    BEL_CUDNN_F32);
    if (error == 0) error = api->cudnn_conv_math(d->conv, p->math);
    if (error == 0) error = api->cudnn_conv_groups(d->conv, p->groups);
    return error;
}

// --- Choosing ------------------------------------------------------------------------------------

static int cudnn_ask(const bel_cuda_device *device, const library_conv *p, const descriptors *d,
                     int *out_count, bel_cudnn_choice *out_choices)
{
    const bel_cuda_api *api = device->api;
    const int most = BEL_CUDNN_MOST_CHOICES;
    if (p->op == BEL_OP_CONV)
        return api->cudnn_choose_output(device->cudnn, d->x, d->w, d->conv, d->y, most, out_count,
                                        out_choices);
    if (p->op == BEL_OP_CONV_GRAD_INPUT)
        return api->cudnn_choose_input(device->cudnn, d->w, d->y, d->conv, d->x, most, out_count,
                                       out_choices);
    return api->cudnn_choose_weights(device->cudnn, d->x, d->y, d->conv, d->w, most, out_count,
                                     out_choices);
}

// Whether the library does not support the request, as opposed to a failure.
static bool is_not_supported(int error)
{
    bool installation =
        error >= BEL_CUDNN_INCOMPATIBLE_DRIVER && error <= BEL_CUDNN_SUBLIBRARY_UNAVAILABLE;
    return error >= BEL_CUDNN_BAD_PARAM && error < BEL_CUDNN_NOT_SUPPORTED + 1000 && !installation;
}

// Chooses the fastest algorithm that adds in the same order each time, and does not round factors
// on its choice; *out_found false: there is no such one.
static bel_status *cudnn_choose(bel_cuda_device *device, library_conv *p, bool *out_found)
{
    descriptors d = {.x = NULL};
    bel_cudnn_choice choices[BEL_CUDNN_MOST_CHOICES];
    int count = 0;
    *out_found = false;
    pthread_mutex_lock(&device->libraries_mutex);
    int error = cudnn_make(device->api, p, &d);
    if (error == 0) error = cudnn_ask(device, p, &d, &count, choices);
    cudnn_destroy(device->api, &d);
    pthread_mutex_unlock(&device->libraries_mutex);
    if (is_not_supported(error)) return NULL;
    BEL_TRY(bel_cuda_library_status(error, "cuDNN", "choose an algorithm"));
    for (int i = 0; i < count; i++) {
        const bel_cudnn_choice *its = &choices[i];
        bool good = its->status == 0 && its->determinism == BEL_CUDNN_DETERMINISTIC &&
                    its->workspace_bytes <= MOST_WORKSPACE &&
                    (p->math != BEL_CUDNN_MATH_FMA || its->math == BEL_CUDNN_MATH_FMA);
        if (!good) continue;
        p->algorithm = its->algorithm;
        p->math = its->math;
        p->workspace_bytes = its->workspace_bytes;
        *out_found = true;
        return NULL;
    }
    return NULL;
}

// --- Reading a call ------------------------------------------------------------------------------

// Shape of the plain kernel's params.
static const bel_conv_shape *shape_of(const bel_cuda_build *build)
{
    bel_prepare prepare = *build->prepare;
    bel_kernel_call call = *build->call;
    prepare.reference = true;
    bel_op_get(call.op)->prepare(&prepare, &call);
    return call.params;
}

// Whether a padded length of `length` has exactly the windows there are.
static bool cudnn_fits(const bel_window *window, int d, int64_t length)
{
    int64_t reach = (window->kernel[d] - 1) * window->dilation[d] + 1;
    return length >= reach && (length - reach) / window->stride[d] + 1 == window->out[d];
}

// Sets pads, or else a margin; call it after read_sizes. False: neither gives the windows.
static bool read_window(const bel_window *window, library_conv *p)
{
    bool pads = true, margins = true;
    for (int d = 0; d < 2; d++) {
        int64_t before = window->pad[d], both = before + window->pad_end[d], in = window->in[d];
        if (before > INT32_MAX / 4 || both > INT32_MAX / 4) return false;
        pads = pads && before >= 0 && cudnn_fits(window, d, in + 2 * before);
        margins = margins && before >= 0 && both >= before && cudnn_fits(window, d, in + both);
        p->stride[d] = (int)window->stride[d];
        p->dilation[d] = (int)window->dilation[d];
        p->pad[d] = (int)before;
    }
    if (pads || !margins) return pads;
    for (int d = 0; d < 2; d++) {
        p->margin[d] = p->pad[d];
        p->margins[d] = p->pad[d] + (int)window->pad_end[d];
        p->pad[d] = 0;
    }
    p->rows[X] += p->margins[0];
    p->columns[X] += p->margins[1];
    return (int64_t)p->n * p->channels[X] * p->rows[X] * p->columns[X] <= INT32_MAX;
}

static bool read_sizes(const bel_conv_shape *shape, library_conv *p)
{
    const bel_window *w = &shape->window;
    int64_t sizes[] = {shape->n * shape->groups * shape->in * w->in[0] * w->in[1],
                       shape->n * shape->groups * shape->out * w->out[0] * w->out[1],
                       shape->groups * shape->out * shape->in * w->kernel[0] * w->kernel[1]};
    for (int i = 0; i < 3; i++) // steps and positions are 32 bits
        if (sizes[i] <= 0 || sizes[i] > INT32_MAX) return false;
    p->n = (int)shape->n;
    p->groups = (int)shape->groups;
    p->channels[X] = (int)(shape->groups * shape->in);
    p->channels[Y] = (int)(shape->groups * shape->out);
    for (int d = 0; d < 2; d++) {
        const int64_t of[OPERANDS] = {w->in[d], w->kernel[d], w->out[d]};
        int *to = d == 0 ? p->rows : p->columns;
        for (int i = 0; i < OPERANDS; i++)
            to[i] = (int)of[i];
    }
    return true;
}

// Form of x, w or y for the library: channels last, dense.
static bel_cuda_arrange form_of(const library_conv *p, int which)
{
    bool weights = which == W, x = which == X;
    return (bel_cuda_arrange){.images = weights ? p->channels[Y] : p->n,
                              .rows = p->rows[which] - (x ? p->margins[0] : 0),
                              .columns = p->columns[which] - (x ? p->margins[1] : 0),
                              .form_rows = p->rows[which],
                              .form_columns = p->columns[which],
                              .margin_rows = x ? p->margin[0] : 0,
                              .margin_columns = x ? p->margin[1] : 0,
                              .channels = weights ? p->channels[X] / p->groups : p->channels[which],
                              .form_bf16 = p->type == BEL_CUDNN_BF16};
}

// The step of a dimension of size 1 does not matter.
static bool is_step(int64_t step, int64_t dense, int64_t size)
{
    return step == dense || size == 1;
}

static bool is_form(const bel_cuda_arrange *form, const bel_cuda_image_steps *steps)
{
    int64_t row = form->channels * form->columns;
    return form->rows == form->form_rows && form->columns == form->form_columns &&
           is_step(steps->channel, 1, form->channels) &&
           is_step(steps->column, form->channels, form->columns) &&
           is_step(steps->row, row, form->rows) &&
           is_step(steps->image, row * form->rows, form->images);
}

// Places x, w and y: in the tensor, if it has the library's form, else in the workspace.
static void place_operands(const bel_kernel_call *call, library_conv *p,
                           bel_cuda_image_steps steps[OPERANDS])
{
    size_t bytes = 0;
    for (int i = 0; i < OPERANDS; i++) {
        operand *o = &p->operands[i];
        const bel_tensor *tensor = o->input < 0 ? &call->outputs[0] : &call->inputs[o->input];
        bool last = o->input < 0 ? call->outputs_last[0] : call->inputs_last[o->input];
        bool bf16 = o->input < 0 ? call->outputs_bf16[0] : call->inputs_bf16[o->input];
        bel_image_steps its = bel_image_steps_of(&tensor->shape, i != W && last);
        bel_cuda_arrange form = form_of(p, i);
        steps[i] = bel_cuda_steps_of(&its);
        o->bf16 = bf16;
        o->in_place = bf16 == (p->type == BEL_CUDNN_BF16) && is_form(&form, &steps[i]);
        o->steps =
            (bel_cuda_image_steps){.channel = 1,
                                   .column = form.channels,
                                   .row = form.channels * form.form_columns,
                                   .image = form.channels * form.form_columns * form.form_rows};
        if (o->in_place) continue;
        o->offset = bel_cuda_add_work(&bytes, form.images * o->steps.image,
                                      form.form_bf16 ? sizeof(uint16_t) : sizeof(float));
    }
    p->workspace_offset = bytes;
}

// --- Running -------------------------------------------------------------------------------------

static void *library_conv_find(const library_conv *p, int which, const bel_cuda_operands *operands)
{
    const operand *o = &p->operands[which];
    union {
        const void *read;
        void *write;
    } at;
    at.read = o->input < 0 ? operands->out[0] : operands->in[o->input];
    return o->in_place ? at.write : (char *)operands->work + o->offset;
}

static int cudnn_compute(const bel_cuda_device *device, const library_conv *p, const descriptors *d,
                         const bel_cuda_operands *operands)
{
    const bel_cuda_api *api = device->api;
    const float one = 1, zero = 0;
    void *x = library_conv_find(p, X, operands), *w = library_conv_find(p, W, operands),
         *y = library_conv_find(p, Y, operands),
         *work = bel_cuda_work_at(operands, p->workspace_offset);
    if (p->op == BEL_OP_CONV)
        return api->cudnn_output(device->cudnn, &one, d->x, x, d->w, w, d->conv, p->algorithm, work,
                                 p->workspace_bytes, &zero, d->y, y);
    if (p->op == BEL_OP_CONV_GRAD_INPUT)
        return api->cudnn_input(device->cudnn, &one, d->w, w, d->y, y, d->conv, p->algorithm, work,
                                p->workspace_bytes, &zero, d->x, x);
    return api->cudnn_weights(device->cudnn, &one, d->x, x, d->y, y, d->conv, p->algorithm, work,
                              p->workspace_bytes, &zero, d->w, w);
}

static bel_status *cudnn_convolve(bel_cuda_device *device, void *stream,
                                  const bel_cuda_operands *operands, const void *params)
{
    const library_conv *p = params;
    descriptors d = {.x = NULL};
    pthread_mutex_lock(&device->libraries_mutex);
    int error = device->api->cudnn_stream(device->cudnn, stream);
    device->cudnn_stream = stream;
    if (error == 0) error = cudnn_make(device->api, p, &d);
    if (error == 0) error = cudnn_compute(device, p, &d, operands);
    cudnn_destroy(device->api, &d);
    pthread_mutex_unlock(&device->libraries_mutex);
    return bel_cuda_library_status(error, "cuDNN", "convolve");
}

// --- Preparation ---------------------------------------------------------------------------------

// Whether pixels of a tensor are neighbors, more than one, and few: for arrange_planes_in and
// _out.
static bool has_planes(const bel_cuda_arrange *a)
{
    enum { LEAST_CHANNELS = 16 };
    int64_t pixels = a->rows * a->columns;
    return a->offset >= 0 && a->rows == a->form_rows && a->columns == a->form_columns &&
           pixels > 1 && pixels <= BEL_CUDA_ARRANGE_PIXELS && a->channels >= LEAST_CHANNELS &&
           is_step(a->steps.column, 1, a->columns) && is_step(a->steps.row, a->columns, a->rows) &&
           a->steps.channel == pixels && is_step(a->steps.image, pixels * a->channels, a->images);
}

static bool has_fours(const bel_cuda_arrange *a)
{
    const bel_cuda_image_steps *s = &a->steps;
    return s->channel == 1 && a->channels % 4 == 0 && s->column % 4 == 0 && s->row % 4 == 0 &&
           s->image % 4 == 0;
}

static bel_status *add_arrange(bel_cuda_build *build, bool in, bel_cuda_arrange *a)
{
    if (has_planes(a)) {
        int64_t tiles = (a->channels + BEL_CUDA_ARRANGE_CHANNELS - 1) / BEL_CUDA_ARRANGE_CHANNELS;
        return bel_cuda_add(build, "arrange.cu", in ? "arrange_planes_in" : "arrange_planes_out",
                            a->images * tiles, BEL_CUDA_BLOCK, a, sizeof *a);
    }
    a->fours = has_fours(a);
    a->by_channels = divisor_make((uint32_t)a->channels);
    a->by_fours = divisor_make((uint32_t)a->channels / 4);
    a->by_columns = divisor_make((uint32_t)(in ? a->form_columns : a->columns));
    a->by_rows = divisor_make((uint32_t)(in ? a->form_rows : a->rows));
    int64_t elements = a->images * a->form_rows * a->form_columns * a->channels;
    return bel_cuda_add(build, "arrange.cu", in ? "arrange_in" : "arrange_out",
                        bel_cuda_blocks(a->fours ? elements / 4 : elements), BEL_CUDA_BLOCK, a,
                        sizeof *a);
}

// Adds copies of operands that are not in place, the library's part, and the copy of the result.
static bel_status *add_all(bel_cuda_build *build, const library_conv *p,
                           const bel_cuda_image_steps steps[OPERANDS], bool has_bias, bool relu)
{
    int result = X;
    for (int i = 0; i < OPERANDS; i++) {
        const operand *o = &p->operands[i];
        if (o->input < 0) result = i;
        if (o->input < 0 || o->in_place) continue;
        bel_cuda_arrange arrange = form_of(p, i);
        arrange.steps = steps[i];
        arrange.offset = (int64_t)o->offset;
        arrange.operand = o->input;
        arrange.tensor_bf16 = o->bf16;
        BEL_TRY(add_arrange(build, true, &arrange));
    }
    bel_cuda_add_library(build, cudnn_convolve, p, sizeof *p);
    const operand *o = &p->operands[result];
    if (o->in_place && !has_bias && !relu) return NULL;
    bel_cuda_arrange arrange = form_of(p, result);
    arrange.steps = steps[result];
    arrange.offset = o->in_place ? -1 : (int64_t)o->offset;
    arrange.tensor_bf16 = o->bf16;
    arrange.has_bias = has_bias;
    arrange.relu = relu;
    return add_arrange(build, false, &arrange);
}

// Reads the call for the library; *out_found false: it cannot compute it. `steps` are those of the
// tensors.
static bel_status *find_way(bel_cuda_build *build, library_conv *p,
                            bel_cuda_image_steps steps[OPERANDS], bool *out_found)
{
    const bel_kernel_call *call = build->call;
    bool transpose = call->op == BEL_OP_CONV_TRANSPOSE;
    *out_found = false;
    if (!bel_cuda_is_fast(build)) return NULL;
    BEL_TRY(bel_cuda_libraries(build->device));
    bel_gpu_math math = build->prepare->gpu_math;
    bool bf16 = math == BEL_GPU_MATH_BF16;
    *p = (library_conv){.op = transpose ? BEL_OP_CONV_GRAD_INPUT : call->op,
                        .type = bf16 ? BEL_CUDNN_BF16 : BEL_CUDNN_F32,
                        .math = bf16                        ? BEL_CUDNN_MATH_TENSOR
                                : math == BEL_GPU_MATH_TF32 ? BEL_CUDNN_MATH_DEFAULT
                                                            : BEL_CUDNN_MATH_FMA};
    p->operands[X].input = p->op == BEL_OP_CONV ? 0 : p->op == BEL_OP_CONV_GRAD_INPUT ? -1 : 1;
    p->operands[Y].input = p->op == BEL_OP_CONV ? -1 : 0;
    p->operands[W].input = p->op == BEL_OP_CONV_GRAD_WEIGHTS ? -1 : 1;
    const bel_conv_shape *shape = shape_of(build);
    if (!read_sizes(shape, p) || !read_window(&shape->window, p)) return NULL;
    place_operands(call, p, steps);
    return cudnn_choose(build->device, p, out_found);
}

bel_status *bel_cuda_try_cudnn(bel_cuda_build *build, bool *out_taken)
{
    bel_kernel_call *call = build->call;
    bool biased = call->op == BEL_OP_CONV_TRANSPOSE || call->op == BEL_OP_CONV;
    library_conv p;
    bel_cuda_image_steps steps[OPERANDS];
    BEL_TRY(find_way(build, &p, steps, out_taken));
    if (!*out_taken) return NULL;
    call->workspace_bytes = p.workspace_offset + p.workspace_bytes + BEL_CUDA_WORK_ALIGNMENT;
    return add_all(build, &p, steps, biased && call->input_count > 2,
                   bel_attr_flag(build->prepare->attrs, BEL_ATTR_RELU));
}

// Images may be bf16, weights not.
bel_status *bel_cuda_cudnn_bf16(bel_cuda_build *build, bel_bf16_operands *out)
{
    library_conv p;
    bel_cuda_image_steps steps[OPERANDS];
    bool found;
    BEL_TRY(find_way(build, &p, steps, &found));
    if (!found || p.type != BEL_CUDNN_BF16) return NULL;
    out->multiplies = true;
    for (int i = 0; i < OPERANDS; i++) {
        if (i == W) continue;
        if (p.operands[i].input < 0) out->outputs = 1;
        if (p.operands[i].input >= 0) out->inputs |= 1u << p.operands[i].input;
    }
    return NULL;
}
