// Stand-in for cuBLASLt (tests/support/cuda_double): products equal plain loops, bit for bit.
// Misuse of the library ends the process or is refused, as by NVIDIA's library. Cases run in forked
// children, as in test_cuda_double.c. label: native
#include "support/cuda_double/library_cases.h"

enum { F32 = 0, BF16 = 14 };

// --- Products ------------------------------------------------------------------------------------

typedef struct product {
    int rows, columns, inner, batches;
    bool transposed_a, transposed_b, in_bf16, out_bf16, one_b, in_place;
    int compute;       // 0: BEL_CUBLAS_COMPUTE_F32
    unsigned epilogue; // 0: BEL_CUBLAS_THEN_NOTHING
    float alpha, beta;
    int gap; // after every column
    // Made from the members above
    void *handle, *by, *preference, *layouts[4];
    uint64_t at[4], bias, workspace;
    float numbers[4][MOST], bias_numbers[64];
    size_t workspace_bytes;
    bel_cublas_choice choice;
} product;

enum { A, B, C, D };

static bool is_bf16(const product *p, int matrix)
{
    return matrix <= B ? p->in_bf16 : p->out_bf16;
}

static void sizes_of(const product *p, int matrix, int *out_rows, int *out_columns)
{
    int rows = matrix == B ? p->inner : p->rows, columns = matrix == A ? p->inner : p->columns;
    bool swap = (matrix == A && p->transposed_a) || (matrix == B && p->transposed_b);
    *out_rows = swap ? columns : rows;
    *out_columns = swap ? rows : columns;
}

static int count_of(const product *p, int matrix)
{
    int rows, columns;
    sizes_of(p, matrix, &rows, &columns);
    return (rows + p->gap) * columns * (matrix == B && p->one_b ? 1 : p->batches);
}

static void set_layout(void *layout, int attribute, const void *value, size_t bytes)
{
    OK(cublas_layout_set(layout, attribute, value, bytes));
}

static void make_matrix(product *p, int matrix)
{
    int rows, columns, count = count_of(p, matrix);
    sizes_of(p, matrix, &rows, &columns);
    int32_t batches = p->batches;
    int64_t step = matrix == B && p->one_b ? 0 : (int64_t)(rows + p->gap) * columns;
    OK(cublas_layout_create(&p->layouts[matrix], is_bf16(p, matrix) ? BF16 : F32, (uint64_t)rows,
                            (uint64_t)columns, rows + p->gap));
    set_layout(p->layouts[matrix], BEL_CUBLAS_LAYOUT_COUNT, &batches, sizeof batches);
    set_layout(p->layouts[matrix], BEL_CUBLAS_LAYOUT_STEP, &step, sizeof step);
    for (int i = 0; i < count; i++)
        p->numbers[matrix][i] = some_number(10000 * matrix + i);
    if (matrix == D && p->in_place) {
        p->at[D] = p->at[C];
    } else if (matrix == D) {
        p->at[D] = allocate(bytes_of(count, p->out_bf16));
    } else {
        p->at[matrix] = upload(p->numbers[matrix], count, is_bf16(p, matrix));
    }
}

static void set_product(void *by, int attribute, const void *value, size_t bytes)
{
    OK(cublas_product_set(by, attribute, value, bytes));
}

static int choose(product *p)
{
    int count;
    int error = cuda.cublas_choose(p->handle, p->by, p->layouts[A], p->layouts[B], p->layouts[C],
                                   p->layouts[D], p->preference, 1, &p->choice, &count);
    if (error == 0) NEED(count == 1 && p->choice.status == 0);
    return error;
}

static void make_product(product *p)
{
    int32_t a = p->transposed_a, b = p->transposed_b;
    uint32_t epilogue = p->epilogue == 0 ? BEL_CUBLAS_THEN_NOTHING : p->epilogue;
    size_t room = 1 << 20;
    OK(cublas_create(&p->handle));
    OK(cublas_product_create(&p->by, p->compute == 0 ? BEL_CUBLAS_COMPUTE_F32 : p->compute, F32));
    set_product(p->by, BEL_CUBLAS_TRANSPOSE_A, &a, sizeof a);
    set_product(p->by, BEL_CUBLAS_TRANSPOSE_B, &b, sizeof b);
    set_product(p->by, BEL_CUBLAS_EPILOGUE, &epilogue, sizeof epilogue);
    for (int i = 0; i < p->rows; i++)
        p->bias_numbers[i] = some_number(-i);
    p->bias = upload(p->bias_numbers, p->rows, p->out_bf16);
    void *bias = pointer(p->bias);
    set_product(p->by, BEL_CUBLAS_BIAS, &bias, sizeof bias);
    for (int matrix = A; matrix <= D; matrix++)
        make_matrix(p, matrix);
    OK(cublas_preference_create(&p->preference));
    OK(cublas_preference_set(p->preference, BEL_CUBLAS_MOST_WORKSPACE, &room, sizeof room));
    NEED(choose(p) == 0);
    p->workspace_bytes = p->choice.workspace_bytes;
    p->workspace = allocate(p->workspace_bytes + 256);
}

static int multiply_in(const product *p, void *stream)
{
    return cuda.cublas_multiply(
        p->handle, p->by, &p->alpha, pointer(p->at[A]), p->layouts[A], pointer(p->at[B]),
        p->layouts[B], &p->beta, pointer(p->at[C]), p->layouts[C], pointer(p->at[D]), p->layouts[D],
        p->choice.algorithm, pointer(p->workspace), p->workspace_bytes, stream);
}

static int multiply(const product *p)
{
    return multiply_in(p, streams[0]);
}

static void destroy_product(product *p)
{
    for (int matrix = A; matrix <= D; matrix++) {
        OK(cublas_layout_destroy(p->layouts[matrix]));
        if (matrix != D || !p->in_place) OK(release(p->at[matrix]));
    }
    OK(cublas_product_destroy(p->by));
    OK(cublas_preference_destroy(p->preference));
    OK(release(p->bias));
    OK(release(p->workspace));
}

// Element (row, column) of op(matrix).
static float element(const product *p, int matrix, int row, int column, int batch)
{
    int rows, columns;
    sizes_of(p, matrix, &rows, &columns);
    bool swap = (matrix == A && p->transposed_a) || (matrix == B && p->transposed_b);
    int start = matrix == B && p->one_b ? 0 : batch * (rows + p->gap) * columns;
    return p->numbers[matrix][start + (swap ? column + row * (rows + p->gap)
                                            : row + column * (rows + p->gap))];
}

static float expected_of(const product *p, int row, int column, int batch)
{
    int bits = p->compute == BEL_CUBLAS_COMPUTE_TF32   ? BITS_TF32
               : p->compute == BEL_CUBLAS_COMPUTE_BF16 ? BITS_BF16
                                                       : BITS_F32;
    float sum = 0;
    for (int k = 0; k < p->inner; k++)
        sum += to_bits(element(p, A, row, k, batch), bits) *
               to_bits(element(p, B, k, column, batch), bits);
    float y = p->alpha * sum;
    if (p->beta < 0 || p->beta > 0) y += p->beta * element(p, C, row, column, batch);
    if ((p->epilogue & BEL_CUBLAS_THEN_BIAS) != 0) y += p->bias_numbers[row];
    if ((p->epilogue & BEL_CUBLAS_THEN_RELU) != 0 && y < 0) y = 0;
    return p->out_bf16 ? to_bits(y, BITS_BF16) : y;
}

static void need_product(const product *p)
{
    static float d[MOST];
    int step = p->rows + p->gap, negative = 0;
    for (int batch = 0; batch < p->batches; batch++)
        for (int column = 0; column < p->columns; column++) {
            int start = (batch * p->columns + column) * step;
            download(p->at[D] + bytes_of(start, p->out_bf16), p->rows, p->out_bf16, d);
            for (int row = 0; row < p->rows; row++) {
                NEED(d[row] == expected_of(p, row, column, batch));
                negative += d[row] < 0;
            }
        }
    NEED(((p->epilogue & BEL_CUBLAS_THEN_RELU) != 0) == (negative == 0));
}

static const product products[] = {
    {.rows = 7, .columns = 5, .inner = 9, .batches = 1, .alpha = 1},
    {.rows = 7, .columns = 5, .inner = 100, .batches = 1, .alpha = 1.25f, .transposed_a = true},
    {.rows = 6, .columns = 8, .inner = 3, .batches = 2, .alpha = 1, .transposed_b = true},
    {.rows = 4,
     .columns = 3,
     .inner = 65,
     .batches = 3,
     .alpha = -1,
     .beta = 0.75f,
     .gap = 2,
     .transposed_a = true,
     .transposed_b = true,
     .one_b = true},
    {.rows = 9,
     .columns = 4,
     .inner = 8,
     .batches = 2,
     .alpha = 1,
     .beta = 1,
     .in_place = true,
     .epilogue = BEL_CUBLAS_THEN_BIAS},
    {.rows = 9,
     .columns = 4,
     .inner = 8,
     .batches = 1,
     .alpha = 1,
     .epilogue = BEL_CUBLAS_THEN_RELU},
    {.rows = 9,
     .columns = 4,
     .inner = 8,
     .batches = 2,
     .alpha = 1,
     .gap = 1,
     .epilogue = BEL_CUBLAS_THEN_BIAS | BEL_CUBLAS_THEN_RELU},
    {.rows = 7,
     .columns = 5,
     .inner = 30,
     .batches = 1,
     .alpha = 1,
     .compute = BEL_CUBLAS_COMPUTE_TF32},
    {.rows = 7,
     .columns = 5,
     .inner = 30,
     .batches = 1,
     .alpha = 1,
     .compute = BEL_CUBLAS_COMPUTE_BF16,
     .epilogue = BEL_CUBLAS_THEN_BIAS},
    {.rows = 7, .columns = 5, .inner = 30, .batches = 2, .alpha = 1, .in_bf16 = true},
    {.rows = 7,
     .columns = 5,
     .inner = 30,
     .batches = 1,
     .alpha = 1,
     .beta = 0.5f,
     .in_bf16 = true,
     .out_bf16 = true,
     .epilogue = BEL_CUBLAS_THEN_BIAS},
};

static void multiply_all(void)
{
    static product p;
    begin();
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        p = products[i];
        make_product(&p);
        NEED((p.workspace_bytes > 0) == (p.inner >= 64));
        NEED(multiply(&p) == 0);
        need_product(&p);
        destroy_product(&p);
    }
    for (int i = 0; i < 2; i++)
        OK(stream_destroy(streams[i]));
    OK(module_unload(module));
    OK(context_release(0)); // unloads the handles' kernels too, which are not leaks
}

// A tie, and a number just above it, for mantissas of 11 and 8 bits.
static void round_ties(void)
{
    static const struct {
        int compute;
        float x, expected;
    } cases[] = {
        {BEL_CUBLAS_COMPUTE_TF32, 1 + 0x1p-11f, 1},
        {BEL_CUBLAS_COMPUTE_TF32, 1 + 0x3p-11f, 1 + 0x1p-9f},
        {BEL_CUBLAS_COMPUTE_TF32, 1 + 0x1p-11f + 0x1p-23f, 1 + 0x1p-10f},
        {BEL_CUBLAS_COMPUTE_BF16, 1 + 0x1p-8f, 1},
        {BEL_CUBLAS_COMPUTE_BF16, -1 - 0x3p-8f, -1 - 0x1p-6f},
        {BEL_CUBLAS_COMPUTE_F32, 1 + 0x1p-23f, 1 + 0x1p-23f},
    };
    static product p;
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float one = 1;
        p = (product){.rows = 1, .columns = 1, .inner = 1, .batches = 1, .alpha = 1};
        p.compute = cases[i].compute;
        make_product(&p);
        OK(copy_in(p.at[A], &cases[i].x, 4, streams[0]));
        OK(copy_in(p.at[B], &one, 4, streams[0]));
        NEED(multiply(&p) == 0);
        NEED(out_numbers(p.at[D], 1)[0] == cases[i].expected);
    }
}

static void test_products(void **state)
{
    (void)state;
    expect_fine_with(multiply_all, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL});
    expect_fine(round_ties);
}

// The product with which most cases begin; it needs workspace and reads no c.
static product *usual(void)
{
    static product p;
    begin();
    p = (product){.rows = 8,
                  .columns = 8,
                  .inner = 64,
                  .batches = 2,
                  .alpha = 1,
                  .epilogue = BEL_CUBLAS_THEN_BIAS};
    make_product(&p);
    return &p;
}

static void replay_product(void)
{
    product *p = usual();
    void *graph, *exec;
    p->at[C] = 0; // not read
    OK(capture_begin(streams[0], 1));
    NEED(multiply(p) == 0);
    OK(capture_end(streams[0], &graph));
    OK(graph_instantiate(&exec, graph, 0));
    OK(graph_destroy(graph));
    for (int round = 0; round < 2; round++) {
        OK(graph_launch(exec, streams[0]));
        need_product(p);
        for (int i = 0; i < count_of(p, A); i++)
            p->numbers[A][i] = some_number(777 + i);
        OK(copy_in(p->at[A], p->numbers[A], bytes_of(count_of(p, A), false), streams[0]));
    }
    void *other;
    OK(capture_begin(streams[0], 1));
    NEED(cuda.cublas_create(&other) == 1); // a capture forbids loading its kernels
    NEED(cuda.capture_end(streams[0], &graph) == 901);
}

static void answer_statuses(void)
{
    static product *p;
    void *made;
    int value;
    NEED(cuda.cublas_create(&made) == 1); // no context
    p = usual();
    NEED(cuda.cublas_property(0, &value) == 0 && value == 13);
    NEED(cuda.cublas_property(1, &value) == 0 && value == 0);
    NEED(cuda.cublas_property(2, &value) == 0 && value == 0);
    NEED(cuda.cublas_property(3, &value) == 7);
    NEED(cuda.cublas_layout_create(&made, F32, 8, 8, 7) == 7);
    int32_t word = 2;
    NEED(cuda.cublas_layout_set(p->layouts[A], BEL_CUBLAS_LAYOUT_COUNT, &word, 8) == 7);
    NEED(cuda.cublas_layout_set(p->layouts[A], BEL_CUBLAS_LAYOUT_STEP, &word, 4) == 7);
    NEED(cuda.cublas_product_set(p->by, BEL_CUBLAS_TRANSPOSE_A, &word, 1) == 7);
    NEED(cuda.cublas_product_set(p->by, BEL_CUBLAS_EPILOGUE, &word, 8) == 7);
    NEED(cuda.cublas_product_set(p->by, BEL_CUBLAS_BIAS, &word, 4) == 7);
    NEED(cuda.cublas_preference_set(p->preference, BEL_CUBLAS_MOST_WORKSPACE, &word, 4) == 7);
    word = 0;
    NEED(cuda.cublas_layout_set(p->layouts[A], BEL_CUBLAS_LAYOUT_COUNT, &word, 4) == 7);
    static const int wrong[][3] = {{A, 8, 63}, {B, 63, 8}, {B, 64, 7}, {C, 8, 7}, {D, 7, 8}};
    for (int i = 0; i < 6; i++) { // wrong sizes, at last wrong batches
        int of = i < 5 ? wrong[i][0] : B;
        void *right = p->layouts[of];
        OK(cublas_layout_create(&p->layouts[of], F32, (uint64_t)(i < 5 ? wrong[i][1] : 64),
                                (uint64_t)(i < 5 ? wrong[i][2] : 8), 64));
        word = i < 5 ? 2 : 3;
        OK(cublas_layout_set(p->layouts[of], BEL_CUBLAS_LAYOUT_COUNT, &word, 4));
        NEED(choose(p) == 7);
        NEED(multiply(p) == 7);
        p->layouts[of] = right;
    }
    NEED(choose(p) == 0);
    size_t room = 4;
    OK(cublas_preference_set(p->preference, BEL_CUBLAS_MOST_WORKSPACE, &room, sizeof room));
    NEED(choose(p) == 0 && p->choice.workspace_bytes == 0);
    p->workspace = p->workspace_bytes = 0;
    NEED(multiply(p) == 0);
    need_product(p);
}

static void refuse_types(void)
{
    static product p;
    void *layout;
    begin();
    p = products[9]; // bf16
    make_product(&p);
    OK(cublas_product_destroy(p.by));
    OK(cublas_product_create(&p.by, BEL_CUBLAS_COMPUTE_TF32, F32));
    NEED(choose(&p) == 15); // the fast types require f32
    OK(cublas_product_destroy(p.by));
    OK(cublas_product_create(&p.by, BEL_CUBLAS_COMPUTE_F32, F32));
    NEED(choose(&p) == 0);
    OK(cublas_layout_create(&layout, F32, 7, 30, 7));
    int32_t batches = 2;
    set_layout(layout, BEL_CUBLAS_LAYOUT_COUNT, &batches, sizeof batches);
    p.layouts[A] = layout;
    NEED(choose(&p) == 15); // a and b differ
}

static void answer_old(void)
{
    int value;
    NEED(cuda.cublas_property(BEL_CUDA_PROPERTY_MAJOR, &value) == 0 && value == 8);
    NEED(cuda.cudnn_property(BEL_CUDA_PROPERTY_MAJOR, &value) == 0 && value == 8);
}

static void lose_product(void)
{
    product *p = usual();
    for (int i = 0; i < 3; i++)
        NEED(multiply(p) == 0);
    NEED(cuda.stream_finish(streams[0]) == 719);
    NEED(multiply(p) == 13);
}

static void *multiply_often(void *argument)
{
    product *p = argument; // runs on a thread, asserts nothing
    void *stream = NULL;
    bool fine = cuda.context_set(contexts[0]) == 0 && cuda.stream_create(&stream, 1) == 0;
    for (int i = 0; i < 50 && fine; i++)
        fine = multiply_in(p, stream) == 0;
    return fine && cuda.stream_finish(stream) == 0 ? p : NULL;
}

// NVIDIA allows threads to share a handle.
static void multiply_in_two_threads(void)
{
    static product both[2];
    pthread_t threads[2];
    begin();
    for (int i = 0; i < 2; i++) {
        both[i] = products[i];
        make_product(&both[i]);
        both[i].handle = both[0].handle;
    }
    for (int i = 0; i < 2; i++)
        NEED(pthread_create(&threads[i], NULL, multiply_often, &both[i]) == 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        NEED(result == &both[i]);
        need_product(&both[i]);
    }
}

static void test_products_otherwise(void **state)
{
    (void)state;
    expect_fine(replay_product);
    expect_fine(answer_statuses);
    expect_fine(refuse_types);
    expect_fine_with(answer_old, (const char *[]){"CUDA_DOUBLE_OLD_LIBRARIES=1", NULL});
    expect_fine_with(lose_product, (const char *[]){"CUDA_DOUBLE_LOSE=0:5", NULL});
    expect_fine(multiply_in_two_threads);
}

// --- Misuse --------------------------------------------------------------------------------------

static void use_destroyed_layout(void)
{
    product *p = usual();
    OK(cublas_layout_destroy(p->layouts[B]));
    (void)multiply(p);
}

static void destroy_twice(void)
{
    product *p = usual();
    OK(cublas_product_destroy(p->by));
    (void)cuda.cublas_product_destroy(p->by);
}

static void use_destroyed_preference(void)
{
    product *p = usual();
    OK(cublas_preference_destroy(p->preference));
    (void)choose(p);
}

static void use_product_as_layout(void)
{
    product *p = usual();
    p->layouts[A] = p->by;
    (void)multiply(p);
}

static void use_nothing(void)
{
    product *p = usual();
    p->handle = NULL;
    (void)multiply(p);
}

static void set_unknown_of_layout(void)
{
    int32_t order = 1;
    (void)cuda.cublas_layout_set(usual()->layouts[A], 1, &order, sizeof order);
}

static void set_unknown_of_product(void)
{
    int32_t mode = 0;
    (void)cuda.cublas_product_set(usual()->by, 2, &mode, sizeof mode);
}

static void set_unknown_of_preference(void)
{
    uint32_t mask = 0;
    (void)cuda.cublas_preference_set(usual()->preference, 3, &mask, sizeof mask);
}

static void ask_for_gelu(void)
{
    uint32_t epilogue = 32;
    (void)cuda.cublas_product_set(usual()->by, BEL_CUBLAS_EPILOGUE, &epilogue, sizeof epilogue);
}

static void ask_for_conjugate(void)
{
    int32_t conjugate = 2;
    (void)cuda.cublas_product_set(usual()->by, BEL_CUBLAS_TRANSPOSE_A, &conjugate,
                                  sizeof conjugate);
}

static void ask_for_f64(void)
{
    void *by;
    (void)cuda.cublas_product_create(&by, 70, 1);
}

static void ask_for_f16(void)
{
    void *layout;
    (void)cuda.cublas_layout_create(&layout, 2, 1, 1, 1);
}

static void ask_for_wide_scales(void)
{
    void *by;
    (void)cuda.cublas_product_create(&by, BEL_CUBLAS_COMPUTE_F32, 1);
}

static void multiply_elsewhere(void)
{
    product *p = usual();
    use_other_device();
    (void)multiply(p);
}

static void choose_elsewhere(void)
{
    product *p = usual();
    use_other_device();
    (void)choose(p);
}

static void multiply_on_others_stream(void)
{
    product *p = usual();
    void *stream;
    use_other_device();
    OK(stream_create(&stream, 1));
    OK(context_set(contexts[0]));
    (void)multiply_in(p, stream);
}

static void multiply_on_no_stream(void)
{
    (void)multiply_in(usual(), NULL);
}

static void multiply_by_no_choice(void)
{
    product *p = usual();
    memset(&p->choice, 0, sizeof p->choice);
    (void)multiply(p);
}

static void multiply_by_others_choice(void)
{
    product *p = usual();
    uint32_t relu = BEL_CUBLAS_THEN_BIAS | BEL_CUBLAS_THEN_RELU;
    set_product(p->by, BEL_CUBLAS_EPILOGUE, &relu, sizeof relu);
    (void)multiply(p);
}

static void multiply_other_steps(void)
{
    product *p = usual();
    int64_t step = 0;
    set_layout(p->layouts[B], BEL_CUBLAS_LAYOUT_STEP, &step, sizeof step);
    (void)multiply(p);
}

static void give_too_little(void)
{
    product *p = usual();
    p->workspace_bytes--;
    (void)multiply(p);
}

static void give_crooked(void)
{
    product *p = usual();
    p->workspace += 128;
    (void)multiply(p);
}

static void give_none(void)
{
    product *p = usual();
    p->workspace = 0;
    (void)multiply(p);
}

static void multiply_crooked(void)
{
    product *p = usual();
    p->at[B] += 64;
    (void)multiply(p);
}

// Misalignment is allowed if the choice was made for it, up to the stated alignment.
static void multiply_crooked_as_chosen(void)
{
    product *p = usual();
    uint32_t alignment = 64;
    p->beta = 1;
    OK(cublas_preference_set(p->preference, 7, &alignment, sizeof alignment)); // alignment of c
    NEED(choose(p) == 0);
    uint64_t shifted = filled(bytes_of(count_of(p, C), false) + 96);
    p->at[C] = shifted + 64;
    NEED(multiply(p) == 0);
    p->at[C] = shifted + 32;
    (void)multiply(p);
}

static void shift_bias(void)
{
    product *p = usual();
    void *bias = pointer(p->bias + 4);
    set_product(p->by, BEL_CUBLAS_BIAS, &bias, sizeof bias);
    (void)multiply(p);
}

static void forget_bias(void)
{
    product *p = usual();
    void *bias = NULL;
    set_product(p->by, BEL_CUBLAS_BIAS, &bias, sizeof bias);
    NEED(choose(p) == 0);
    (void)multiply(p);
}

static void multiply_onto_itself(void)
{
    product *p = usual();
    p->at[D] = p->at[A];
    (void)multiply(p);
}

static void forget_c(void)
{
    product *p = usual();
    p->beta = 1;
    p->at[C] = 0;
    (void)multiply(p);
}

static void add_in_place_otherwise(void)
{
    static product p;
    begin();
    p = (product){.rows = 2, .columns = 2, .inner = 2, .batches = 1, .alpha = 1, .beta = 1};
    make_product(&p);
    OK(cublas_layout_create(&p.layouts[C], F32, 2, 2, 3));
    NEED(choose(&p) == 0);
    p.at[D] = p.at[C];
    (void)multiply(&p);
}

// Errors that the driver's stand-in finds
static void write_behind_d(void)
{
    product *p = usual();
    p->at[D] = allocate(bytes_of(count_of(p, D) - 1, false));
    NEED(multiply(p) == 0);
    finish();
}

static void read_unwritten_a(void)
{
    product *p = usual();
    p->at[A] = allocate(bytes_of(count_of(p, A), false));
    NEED(multiply(p) == 0);
    finish();
}

static void batches_onto_each_other(void)
{
    product *p = usual();
    int64_t step = 0;
    set_layout(p->layouts[D], BEL_CUBLAS_LAYOUT_STEP, &step, sizeof step);
    NEED(choose(p) == 0);
    NEED(multiply(p) == 0);
    finish();
}

static void share_workspace(void)
{
    static product both[2];
    begin();
    for (int i = 0; i < 2; i++) {
        both[i] = products[1];
        make_product(&both[i]);
    }
    both[1].workspace = both[0].workspace;
    for (int i = 0; i < 2; i++)
        NEED(multiply_in(&both[i], streams[i]) == 0);
    finish();
    OK(stream_finish(streams[1]));
}

static void use_handle_of_ended_context(void)
{
    product *p = usual();
    OK(context_release(0));
    OK(context_retain(&contexts[0], 0));
    OK(stream_create(&streams[0], 1));
    (void)multiply(p);
}

static void leave_layouts(void)
{
    void *layout;
    for (int i = 0; i < 2; i++)
        OK(cublas_layout_create(&layout, F32, 1, 1, 1));
}

static void test_misuse_of_products(void **state)
{
    (void)state;
    static const misuse all[] = {
        {use_destroyed_layout, "cublasLtMatmul: layout 2 was destroyed", ""},
        {destroy_twice, "cublasLtMatmulDescDestroy: product 1 was destroyed", ""},
        {use_destroyed_preference, "AlgoGetHeuristic: preference 1 was destroyed", ""},
        {use_product_as_layout, "cublasLtMatmul: a product where a layout is expected", ""},
        {use_nothing, "cublasLtMatmul: the handle is NULL", ""},
        {set_unknown_of_layout, "LayoutSetAttribute: attribute 1 is not supported", ""},
        {set_unknown_of_product, "DescSetAttribute: attribute 2 is not supported", ""},
        {set_unknown_of_preference, "PreferenceSetAttribute: attribute 3 is not supported", ""},
        {ask_for_gelu, "epilogue 32 is not supported", ""},
        {ask_for_conjugate, "operation 2 of a matrix is not supported", ""},
        {ask_for_f64, "compute type 70 is not supported", ""},
        {ask_for_f16, "matrices of type 2 are not supported", ""},
        {ask_for_wide_scales, "scales of type 1 are not supported", ""},
        {multiply_elsewhere, "cublasLtMatmul: the handle is of context", "current context"},
        {choose_elsewhere, "AlgoGetHeuristic: the handle is of context", "current context"},
        {multiply_on_others_stream, "belongs to device 1, the current context to device 0", ""},
        {multiply_on_no_stream, "the default stream is not supported", ""},
        {multiply_by_no_choice, "the algorithm was never chosen", ""},
        {multiply_by_others_choice, "the algorithm was chosen for other layouts", ""},
        {multiply_other_steps, "the algorithm was chosen for other layouts", ""},
        {give_too_little, "the algorithm takes 128 bytes of workspace, it gets 127", ""},
        {give_crooked, "the workspace begins at no multiple of 256 bytes", ""},
        {give_none, "the workspace is NULL", ""},
        {multiply_crooked, "matrix b begins at no multiple of the 256 bytes", ""},
        {multiply_crooked_as_chosen, "matrix c begins at no multiple of the 64 bytes", ""},
        {shift_bias, "the bias begins at no multiple of 16 bytes", ""},
        {forget_bias, "the bias is NULL", ""},
        {multiply_onto_itself, "matrix d is a or b", ""},
        {forget_c, "matrix c is NULL", ""},
        {add_in_place_otherwise, "matrix d is c, and lies otherwise", ""},
        {write_behind_d, "kernel cublasLtMatmul, block (0,0,0), thread (127,0,0), writes outside",
         "0 bytes after the end"},
        {read_unwritten_a, "kernel cublasLtMatmul, block (0,0,0), thread (0,0,0), reads what was",
         "never written"},
        {batches_onto_each_other, "thread (64,0,0), writes", "nothing orders the two"},
        {share_workspace, "kernel cublasLtMatmul (operation", "nothing orders the two"},
        {use_handle_of_ended_context, "cuLaunchKernel: kernel", "was destroyed"},
    };
    expect_ends(all, sizeof all / sizeof all[0]);
}

static void test_left_descriptors(void **state)
{
    (void)state;
    end e;
    run_child(leave_layouts, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL}, &e);
    assert_true(WIFEXITED(e.state) && WEXITSTATUS(e.state) == 1);
    assert_string_equal(e.said, "cuda double: cuBLASLt: 2 of kind layout left\n");
    expect_fine(leave_layouts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_products_otherwise),
        cmocka_unit_test(test_misuse_of_products),
        cmocka_unit_test(test_left_descriptors),
    };
    return cmocka_run_group_tests(tests, prepare_libraries, NULL);
}
