// Stand-in for cuDNN (tests/support/cuda_double): convolutions and their gradients equal plain
// loops, bit for bit. Misuse of the library ends the process or is refused, as by NVIDIA's library.
// Cases run in forked children, as in test_cuda_double.c. label: native
#include "support/cuda_double/library_cases.h"

enum { F32 = BEL_CUDNN_F32 };

// --- Convolutions --------------------------------------------------------------------------------

enum { X, W, Y };
enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, DIRECTIONS };
static const int made_by[DIRECTIONS] = {Y, X, W};

typedef struct conv {
    int n, groups, in, out; // channels of a group
    int size[2], kernel[2], pad[2], stride[2], dilation[2];
    bool bf16, last, gaps; // gaps: x and y have a gap of one element after each
    int math, algorithm;   // 0: number 1, which needs workspace
    float alpha, beta;
    // Made from the members above
    int dims[3][4];
    long long steps[3][4];
    void *handle, *by, *tensors[3];
    uint64_t at[3], workspace;
    size_t workspace_bytes;
    float numbers[3][MOST];
} conv;

static int numbers_of(const conv *c, int which)
{
    const int *d = c->dims[which];
    return d[0] * d[1] * d[2] * d[3] * (c->gaps && which != W ? 2 : 1);
}

static int place(const conv *c, int which, int i, int j, int h, int w)
{
    const long long *s = c->steps[which];
    return (int)(i * s[0] + j * s[1] + h * s[2] + w * s[3]);
}

static void size_tensors(conv *c)
{
    int out[2];
    for (int d = 0; d < 2; d++)
        out[d] =
            (c->size[d] + 2 * c->pad[d] - (c->kernel[d] - 1) * c->dilation[d] - 1) / c->stride[d] +
            1;
    const int dims[3][4] = {{c->n, c->groups * c->in, c->size[0], c->size[1]},
                            {c->groups * c->out, c->in, c->kernel[0], c->kernel[1]},
                            {c->n, c->groups * c->out, out[0], out[1]}};
    memcpy(c->dims, dims, sizeof dims);
    for (int which = X; which <= Y; which++) {
        const int *d = dims[which];
        long long unit = c->gaps && which != W ? 2 : 1, *s = c->steps[which];
        s[0] = unit * d[1] * d[2] * d[3];
        s[1] = c->last ? unit : unit * d[2] * d[3];
        s[2] = c->last ? unit * d[3] * d[1] : unit * d[3];
        s[3] = c->last ? unit * d[1] : unit;
    }
}

static int set_tensor(const conv *c, int which)
{
    const int *d = c->dims[which];
    int type = c->bf16 ? BEL_CUDNN_BF16 : BEL_CUDNN_F32;
    const long long *s = c->steps[which];
    if (which == W)
        return cuda.cudnn_filter_set(c->tensors[W], type, c->last ? BEL_CUDNN_CHANNELS_LAST : 0,
                                     d[0], d[1], d[2], d[3]);
    return cuda.cudnn_tensor_set(c->tensors[which], type, d[0], d[1], d[2], d[3], (int)s[0],
                                 (int)s[1], (int)s[2], (int)s[3]);
}

static int set_conv(const conv *c)
{
    return cuda.cudnn_conv_set(c->by, c->pad[0], c->pad[1], c->stride[0], c->stride[1],
                               c->dilation[0], c->dilation[1], BEL_CUDNN_CROSS_CORRELATION,
                               BEL_CUDNN_F32);
}

static int choose_conv(const conv *c, int direction, int asked, int *out_count,
                       bel_cudnn_choice *out)
{
    switch (direction) {
    case FORWARD:
        return cuda.cudnn_choose_output(c->handle, c->tensors[X], c->tensors[W], c->by,
                                        c->tensors[Y], asked, out_count, out);
    case BACKWARD_DATA:
        return cuda.cudnn_choose_input(c->handle, c->tensors[W], c->tensors[Y], c->by,
                                       c->tensors[X], asked, out_count, out);
    default:
        return cuda.cudnn_choose_weights(c->handle, c->tensors[X], c->tensors[Y], c->by,
                                         c->tensors[W], asked, out_count, out);
    }
}

static int run_conv(const conv *c, int direction)
{
    void *x = pointer(c->at[X]), *w = pointer(c->at[W]), *y = pointer(c->at[Y]);
    void *workspace = pointer(c->workspace);
    int algorithm = c->algorithm == 0 ? 1 : c->algorithm;
    switch (direction) {
    case FORWARD:
        return cuda.cudnn_output(c->handle, &c->alpha, c->tensors[X], x, c->tensors[W], w, c->by,
                                 algorithm, workspace, c->workspace_bytes, &c->beta, c->tensors[Y],
                                 y);
    case BACKWARD_DATA:
        return cuda.cudnn_input(c->handle, &c->alpha, c->tensors[W], w, c->tensors[Y], y, c->by,
                                algorithm, workspace, c->workspace_bytes, &c->beta, c->tensors[X],
                                x);
    default:
        return cuda.cudnn_weights(c->handle, &c->alpha, c->tensors[X], x, c->tensors[Y], y, c->by,
                                  algorithm, workspace, c->workspace_bytes, &c->beta, c->tensors[W],
                                  w);
    }
}

static void make_conv(conv *c)
{
    size_tensors(c);
    OK(cudnn_create(&c->handle));
    OK(cudnn_stream(c->handle, streams[0]));
    OK(cudnn_tensor_create(&c->tensors[X]));
    OK(cudnn_filter_create(&c->tensors[W]));
    OK(cudnn_tensor_create(&c->tensors[Y]));
    OK(cudnn_conv_create(&c->by));
    NEED(set_conv(c) == 0);
    if (c->groups > 1) OK(cudnn_conv_groups(c->by, c->groups));
    OK(cudnn_conv_math(c->by, c->math));
    for (int which = X; which <= Y; which++) {
        NEED(set_tensor(c, which) == 0);
        for (int i = 0; i < numbers_of(c, which); i++)
            c->numbers[which][i] = some_number(10000 * which + i);
        c->at[which] = upload(c->numbers[which], numbers_of(c, which), c->bf16);
    }
    c->workspace_bytes = 1 << 16;
    c->workspace = allocate(c->workspace_bytes + 256);
}

// Chooses like a caller that takes the first deterministic algorithm.
static void take_choice(conv *c, int direction, int algorithm)
{
    bel_cudnn_choice choices[BEL_CUDNN_MOST_CHOICES];
    int count, i = 0;
    NEED(choose_conv(c, direction, BEL_CUDNN_MOST_CHOICES, &count, choices) == 0);
    NEED(count >= 2 && choices[0].status == 0 && choices[0].determinism == 0);
    while (i < count && (choices[i].status != 0 || choices[i].determinism != 1 ||
                         (algorithm != 0 && choices[i].algorithm != algorithm)))
        i++;
    NEED(i < count);
    NEED((choices[i].workspace_bytes > 0) == (algorithm == 0));
    c->algorithm = choices[i].algorithm;
    c->workspace_bytes = choices[i].workspace_bytes;
    OK(cudnn_conv_math(c->by, choices[i].math));
}

static void destroy_conv(conv *c)
{
    OK(cudnn_tensor_destroy(c->tensors[X]));
    OK(cudnn_filter_destroy(c->tensors[W]));
    OK(cudnn_tensor_destroy(c->tensors[Y]));
    OK(cudnn_conv_destroy(c->by));
    for (int which = X; which <= Y; which++)
        OK(release(c->at[which]));
    OK(release(c->workspace));
}

// Adds the products of the related x[xi], w[wi] and y[yi] to the result.
static void add_products(const conv *c, int direction, int xi, int wi, int yi, float *out)
{
    int bits = c->math == BEL_CUDNN_MATH_FMA ? BITS_F32 : BITS_TF32;
    float x = to_bits(c->numbers[X][xi], bits), w = to_bits(c->numbers[W][wi], bits);
    float y = to_bits(c->numbers[Y][yi], bits);
    if (direction == FORWARD) out[yi] += x * w;
    if (direction == BACKWARD_DATA) out[xi] += w * y;
    if (direction == BACKWARD_WEIGHTS) out[wi] += x * y;
}

// Adds each sum in the order that cudnn.cu uses.
static void add_all(const conv *c, int direction, float *out)
{
    for (int n = 0; n < c->n; n++)
        for (int g = 0; g < c->groups; g++)
            for (int k = g * c->out; k < (g + 1) * c->out; k++)
                for (int i = 0; i < c->in * c->kernel[0] * c->kernel[1]; i++) {
                    int r = i / c->kernel[1] % c->kernel[0], s = i % c->kernel[1];
                    int from = i / c->kernel[1] / c->kernel[0];
                    for (int o = 0; o < c->dims[Y][2] * c->dims[Y][3]; o++) {
                        int p = o / c->dims[Y][3], q = o % c->dims[Y][3];
                        int h = p * c->stride[0] - c->pad[0] + r * c->dilation[0];
                        int w = q * c->stride[1] - c->pad[1] + s * c->dilation[1];
                        if (h < 0 || w < 0 || h >= c->size[0] || w >= c->size[1]) continue;
                        add_products(c, direction, place(c, X, n, g * c->in + from, h, w),
                                     place(c, W, k, from, r, s), place(c, Y, n, k, p, q), out);
                    }
                }
}

// Checks all of the result; elements in gaps must be unchanged.
static void need_conv(const conv *c, int direction)
{
    static float sums[MOST], made[MOST];
    int which = made_by[direction], count = numbers_of(c, which);
    memset(sums, 0, sizeof sums);
    add_all(c, direction, sums);
    download(c->at[which], count, c->bf16, made);
    for (int i = 0; i < count; i++) {
        float y = c->alpha * sums[i];
        if (c->beta < 0 || c->beta > 0) y += c->beta * c->numbers[which][i];
        if (c->bf16) y = to_bits(y, BITS_BF16);
        if (c->gaps && which != W && i % 2 == 1) y = c->numbers[which][i];
        NEED(made[i] == y);
    }
}

static const conv convs[] = {
    {.n = 2, .groups = 1, .in = 3, .out = 2, .size = {5, 6}, .kernel = {3, 2}, .alpha = 1},
    {.n = 1,
     .groups = 2,
     .in = 2,
     .out = 3,
     .size = {7, 9},
     .kernel = {3, 3},
     .pad = {1, 2},
     .stride = {2, 1},
     .dilation = {1, 2},
     .alpha = 1.5f,
     .beta = -0.5f,
     .last = true},
    {.n = 2,
     .groups = 4,
     .in = 1,
     .out = 1,
     .size = {6, 5},
     .kernel = {2, 3},
     .pad = {2, 0},
     .stride = {3, 2},
     .dilation = {2, 1},
     .alpha = 1,
     .gaps = true,
     .math = BEL_CUDNN_MATH_FMA},
    {.n = 3,
     .groups = 1,
     .in = 4,
     .out = 5,
     .size = {4, 4},
     .kernel = {1, 1},
     .alpha = 1,
     .beta = 1,
     .last = true,
     .bf16 = true},
    {.n = 2,
     .groups = 2,
     .in = 2,
     .out = 2,
     .size = {8, 5},
     .kernel = {3, 3},
     .pad = {1, 1},
     .stride = {2, 2},
     .alpha = 1,
     .bf16 = true,
     .math = BEL_CUDNN_MATH_TENSOR},
};

static void begin_conv(conv *c)
{
    for (int d = 0; d < 2; d++) {
        if (c->stride[d] == 0) c->stride[d] = 1;
        if (c->dilation[d] == 0) c->dilation[d] = 1;
    }
    make_conv(c);
}

static void convolve_all(void)
{
    static conv c;
    begin();
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++)
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            c = convs[i];
            begin_conv(&c);
            take_choice(&c, direction, i == 0 ? 5 : 0); // the one without workspace
            NEED(run_conv(&c, direction) == 0);
            need_conv(&c, direction);
            destroy_conv(&c);
        }
    for (int i = 0; i < 2; i++)
        OK(stream_destroy(streams[i]));
    OK(module_unload(module));
    OK(context_release(0));
}

static void test_convolutions(void **state)
{
    (void)state;
    expect_fine_with(convolve_all, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL});
}

// The convolution with which most cases begin.
static conv *usual_conv(void)
{
    static conv c;
    begin();
    c = convs[0];
    c.math = BEL_CUDNN_MATH_TENSOR; // required by the algorithm
    begin_conv(&c);
    return &c;
}

static void replay_convolutions(void)
{
    conv *c = usual_conv();
    void *graph, *exec;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        int other = direction == FORWARD ? X : Y;
        OK(capture_begin(streams[0], 1));
        NEED(run_conv(c, direction) == 0);
        OK(capture_end(streams[0], &graph));
        OK(graph_instantiate(&exec, graph, 0));
        OK(graph_destroy(graph));
        for (int round = 0; round < 2; round++) {
            OK(graph_launch(exec, streams[0]));
            need_conv(c, direction);
            for (int i = 0; i < numbers_of(c, other); i++)
                c->numbers[other][i] = some_number(555 + direction + i);
            OK(copy_in(c->at[other], c->numbers[other], bytes_of(numbers_of(c, other), false),
                       streams[0]));
        }
        finish();
        int made = made_by[direction];
        OK(copy_in(c->at[made], c->numbers[made], bytes_of(numbers_of(c, made), false),
                   streams[0]));
        OK(graph_exec_destroy(exec));
    }
    void *handle;
    OK(capture_begin(streams[0], 1));
    NEED(cuda.cudnn_create(&handle) == 1001);
    NEED(cuda.capture_end(streams[0], &graph) == 901);
}

static void answer_statuses_of_cudnn(void)
{
    enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
    void *handle;
    int value, count;
    bel_cudnn_choice choices[4];
    NEED(cuda.cudnn_create(&handle) == 1001);
    conv *c = usual_conv();
    NEED(cuda.cudnn_property(0, &value) == 0 && value == 9);
    NEED(cuda.cudnn_property(1, &value) == 0 && value == 1);
    NEED(cuda.cudnn_property(2, &value) == 0 && value == 0);
    NEED(cuda.cudnn_tensor_set(c->tensors[X], F32, 0, 1, 1, 1, 1, 1, 1, 1) == BAD_PARAM);
    NEED(cuda.cudnn_tensor_set(c->tensors[X], F32, 1, 1, 1, 1, 1, 1, 0, 1) == BAD_PARAM);
    NEED(cuda.cudnn_filter_set(c->tensors[W], F32, 0, 1, 1, 0, 1) == BAD_PARAM);
    NEED(cuda.cudnn_conv_set(c->by, -1, 0, 1, 1, 1, 1, 1, F32) == BAD_PARAM);
    NEED(cuda.cudnn_conv_set(c->by, 0, 0, 0, 1, 1, 1, 1, F32) == BAD_PARAM);
    NEED(cuda.cudnn_conv_set(c->by, 0, 0, 1, 1, 1, 0, 1, F32) == BAD_PARAM);
    NEED(cuda.cudnn_conv_groups(c->by, 0) == BAD_PARAM);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        NEED(choose_conv(c, direction, 0, &count, choices) == BAD_PARAM);
        NEED(choose_conv(c, direction, 1, &count, choices) == 0 && count == 1);
        for (int which = X; which <= Y; which++)
            for (int d = 0; d < 4; d++) {
                c->dims[which][d]++;
                NEED(set_tensor(c, which) == 0);
                NEED(choose_conv(c, direction, 4, &count, choices) == BAD_PARAM && count == 0);
                NEED(run_conv(c, direction) == BAD_PARAM);
                c->dims[which][d]--;
                NEED(set_tensor(c, which) == 0);
            }
        OK(cudnn_conv_groups(c->by, 3)); // 2 outputs are not 3 groups
        NEED(choose_conv(c, direction, 4, &count, choices) == BAD_PARAM);
        OK(cudnn_conv_groups(c->by, 1));
        c->bf16 = true;
        NEED(set_tensor(c, W) == 0); // another type than the other tensors
        NEED(choose_conv(c, direction, 4, &count, choices) == BAD_PARAM);
        c->bf16 = false;
        c->last = true;
        NEED(set_tensor(c, W) == 0); // channels last, the other tensors first
        NEED(choose_conv(c, direction, 4, &count, choices) == NOT_SUPPORTED);
        NEED(run_conv(c, direction) == NOT_SUPPORTED);
        c->last = false;
        NEED(set_tensor(c, W) == 0);
    }
}

static void look_at_choices(void)
{
    conv *c = usual_conv();
    bel_cudnn_choice all[8];
    int count;
    static const int asked[] = {BEL_CUDNN_MATH_DEFAULT, BEL_CUDNN_MATH_TENSOR, BEL_CUDNN_MATH_FMA};
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int i = 0; i < 3; i++) {
            OK(cudnn_conv_math(c->by, asked[i]));
            NEED(choose_conv(c, direction, 8, &count, all) == 0 && count == 4);
            NEED(all[0].status == 0 && all[0].determinism == 0);
            NEED(all[1].status != 0);
            NEED(all[2].status == 0 && all[2].determinism == 1 && all[2].workspace_bytes > 0);
            NEED(all[3].status == 0 && all[3].determinism == 1 && all[3].workspace_bytes == 0);
            bool fma = asked[i] == BEL_CUDNN_MATH_FMA;
            NEED(all[2].math == (fma ? BEL_CUDNN_MATH_FMA : BEL_CUDNN_MATH_TENSOR));
            NEED(all[3].math == (fma ? BEL_CUDNN_MATH_FMA : BEL_CUDNN_MATH_DEFAULT));
        }
}

static void lose_convolution(void)
{
    conv *c = usual_conv();
    for (int i = 0; i < 3; i++)
        NEED(run_conv(c, FORWARD) == 0);
    NEED(cuda.stream_finish(streams[0]) == 719);
    NEED(run_conv(c, FORWARD) == 5001);
}

static void test_convolutions_otherwise(void **state)
{
    (void)state;
    expect_fine(replay_convolutions);
    expect_fine(answer_statuses_of_cudnn);
    expect_fine(look_at_choices);
    expect_fine_with(lose_convolution, (const char *[]){"CUDA_DOUBLE_LOSE=0:4", NULL});
}

// --- Misuse --------------------------------------------------------------------------------------

static void use_chance(void)
{
    conv *c = usual_conv();
    bel_cudnn_choice choice;
    int count;
    NEED(choose_conv(c, BACKWARD_WEIGHTS, 1, &count, &choice) == 0);
    NEED(choice.algorithm == 0);
    float one = 1;
    (void)cuda.cudnn_weights(c->handle, &one, c->tensors[X], pointer(c->at[X]), c->tensors[Y],
                             pointer(c->at[Y]), c->by, 0, NULL, 0, &c->beta, c->tensors[W],
                             pointer(c->at[W]));
}

static void use_what_failed(void)
{
    conv *c = usual_conv();
    c->algorithm = 2;
    (void)run_conv(c, FORWARD);
}

static void use_unknown(void)
{
    conv *c = usual_conv();
    c->algorithm = 7;
    (void)run_conv(c, BACKWARD_DATA);
}

static void forget_math(void)
{
    conv *c = usual_conv();
    OK(cudnn_conv_math(c->by, BEL_CUDNN_MATH_DEFAULT));
    (void)run_conv(c, FORWARD);
}

static void convolve_in_too_little(void)
{
    conv *c = usual_conv();
    c->workspace_bytes = 256;
    (void)run_conv(c, FORWARD);
}

static void convolve_in_crooked(void)
{
    conv *c = usual_conv();
    c->workspace += 16;
    (void)run_conv(c, FORWARD);
}

static void convolve_in_none(void)
{
    conv *c = usual_conv();
    c->workspace = 0;
    (void)run_conv(c, FORWARD);
}

static void convolve_crooked(void)
{
    conv *c = usual_conv();
    c->at[W] += 4;
    (void)run_conv(c, FORWARD);
}

static void convolve_nothing(void)
{
    conv *c = usual_conv();
    c->at[X] = 0;
    (void)run_conv(c, BACKWARD_WEIGHTS);
}

static void convolve_onto_itself(void)
{
    conv *c = usual_conv();
    c->at[Y] = c->at[X];
    (void)run_conv(c, BACKWARD_DATA);
}

static void forget_stream(void)
{
    conv *c = usual_conv();
    OK(cudnn_create(&c->handle));
    (void)run_conv(c, FORWARD);
}

static void convolve_on_others_stream(void)
{
    conv *c = usual_conv();
    void *stream;
    use_other_device();
    OK(stream_create(&stream, 1));
    OK(context_set(contexts[0]));
    OK(cudnn_stream(c->handle, stream));
    (void)run_conv(c, FORWARD);
}

static void convolve_elsewhere(void)
{
    conv *c = usual_conv();
    use_other_device();
    (void)run_conv(c, FORWARD);
}

static void set_stream_elsewhere(void)
{
    conv *c = usual_conv();
    use_other_device();
    (void)cuda.cudnn_stream(c->handle, streams[0]);
}

static void use_destroyed_tensor(void)
{
    conv *c = usual_conv();
    OK(cudnn_tensor_destroy(c->tensors[X]));
    (void)run_conv(c, FORWARD);
}

static void destroy_filter_twice(void)
{
    conv *c = usual_conv();
    OK(cudnn_filter_destroy(c->tensors[W]));
    (void)cuda.cudnn_filter_destroy(c->tensors[W]);
}

static void use_filter_as_tensor(void)
{
    conv *c = usual_conv();
    c->tensors[X] = c->tensors[W];
    (void)run_conv(c, FORWARD);
}

static void use_layout_as_tensor(void)
{
    conv *c = usual_conv();
    OK(cublas_layout_create(&c->tensors[X], F32, 1, 1, 1));
    (void)run_conv(c, FORWARD);
}

static void use_unset_tensor(void)
{
    conv *c = usual_conv();
    OK(cudnn_tensor_create(&c->tensors[Y]));
    (void)run_conv(c, FORWARD);
}

static void use_unset_conv(void)
{
    conv *c = usual_conv();
    OK(cudnn_conv_create(&c->by));
    (void)run_conv(c, FORWARD);
}

static void ask_for_f64_tensor(void)
{
    (void)cuda.cudnn_tensor_set(usual_conv()->tensors[X], 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

static void ask_for_vectors(void)
{
    (void)cuda.cudnn_filter_set(usual_conv()->tensors[W], F32, 2, 1, 1, 1, 1);
}

static void ask_for_flipped(void)
{
    (void)cuda.cudnn_conv_set(usual_conv()->by, 0, 0, 1, 1, 1, 1, 0, F32);
}

static void ask_for_bf16_sums(void)
{
    (void)cuda.cudnn_conv_set(usual_conv()->by, 0, 0, 1, 1, 1, 1, 1, BEL_CUDNN_BF16);
}

static void ask_for_conversion(void)
{
    (void)cuda.cudnn_conv_math(usual_conv()->by, 2);
}

static void write_behind_y(void)
{
    conv *c = usual_conv();
    c->at[Y] = allocate(bytes_of(numbers_of(c, Y) - 1, false));
    NEED(run_conv(c, FORWARD) == 0);
    finish();
}

static void read_unwritten_w(void)
{
    conv *c = usual_conv();
    c->at[W] = allocate(bytes_of(numbers_of(c, W), false));
    NEED(run_conv(c, BACKWARD_DATA) == 0);
    finish();
}

static void write_onto_itself(void)
{
    conv *c = usual_conv();
    c->steps[Y][0] = c->steps[Y][2]; // images overlap
    NEED(set_tensor(c, Y) == 0);
    NEED(run_conv(c, FORWARD) == 0);
    finish();
}

// Two unordered streams share a workspace.
static void share_conv_workspace(void)
{
    conv *c = usual_conv();
    uint64_t other = allocate(bytes_of(numbers_of(c, Y), false));
    NEED(run_conv(c, FORWARD) == 0);
    OK(cudnn_stream(c->handle, streams[1]));
    c->at[Y] = other;
    NEED(run_conv(c, FORWARD) == 0);
    finish();
    OK(stream_finish(streams[1]));
}

static void *convolve_for_ever(void *argument)
{
    conv *c = argument;
    bel_cudnn_choice choice;
    int count;
    if (cuda.context_set(contexts[0]) != 0) return NULL;
    while (choose_conv(c, FORWARD, 1, &count, &choice) == 0) {
    }
    return NULL;
}

// The threads meet at some point: every call yields to other threads.
static void use_handle_twice(void)
{
    conv *c = usual_conv();
    pthread_t threads[2];
    alarm(60);
    for (int i = 0; i < 2; i++)
        NEED(pthread_create(&threads[i], NULL, convolve_for_ever, c) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void test_misuse_of_convolutions(void **state)
{
    (void)state;
    static const misuse all[] = {
        {use_chance, "cudnnConvolutionBackwardFilter: algorithm 0 is not deterministic", ""},
        {use_what_failed, "algorithm 2 had status 3000 when it was offered", ""},
        {use_unknown, "cudnnConvolutionBackwardData: algorithm 7 is not supported", ""},
        {forget_math, "algorithm 1 needs math type 1, the convolution's is 0", ""},
        {convolve_in_too_little, "algorithm 1 takes ", " bytes of workspace, it gets 256"},
        {convolve_in_crooked, "the workspace begins at no multiple of 256 bytes", ""},
        {convolve_in_none, "the workspace is NULL", ""},
        {convolve_crooked, "tensor 2 begins at no multiple of 16 bytes", ""},
        {convolve_nothing, "tensor 1 is NULL", ""},
        {convolve_onto_itself, "the result overwrites an input", ""},
        {forget_stream, "the stream of handle 2 was never set", ""},
        {convolve_on_others_stream, "belongs to device 1, the current context to device 0", ""},
        {convolve_elsewhere, "the handle is of context", "the current context"},
        {set_stream_elsewhere, "cudnnSetStream: the handle is of context", ""},
        {use_destroyed_tensor, "cudnnConvolutionForward: tensor 1 was destroyed", ""},
        {destroy_filter_twice, "FilterDescriptor: filter 1 was destroyed", ""},
        {use_filter_as_tensor, "a filter where a tensor is expected", ""},
        {use_layout_as_tensor, "the tensor is nothing of cuDNN", ""},
        {use_unset_tensor, "tensor 3 was never set", ""},
        {use_unset_conv, "convolution 2 was never set", ""},
        {ask_for_f64_tensor, "numbers of type 1 are not supported", ""},
        {ask_for_vectors, "format 2 is not supported", ""},
        {ask_for_flipped, "mode 0 is not supported", ""},
        {ask_for_bf16_sums, "computing in type 9 is not supported", ""},
        {ask_for_conversion, "math type 2 is not supported", ""},
        {write_behind_y, "kernel cudnnConvolutionForward", "writes outside of"},
        {read_unwritten_w, "kernel cudnnConvolutionBackwardData", "reads what was never written"},
        {write_onto_itself, "kernel cudnnConvolutionForward", "nothing orders the two"},
        {share_conv_workspace, "kernel cudnnConvolutionForward (operation",
         "nothing orders the two"},
        {use_handle_twice, "handle 1 is used by two threads at once", ""},
    };
    expect_ends(all, sizeof all / sizeof all[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_convolutions_otherwise),
        cmocka_unit_test(test_misuse_of_convolutions),
    };
    return cmocka_run_group_tests(tests, prepare_libraries, NULL);
}
