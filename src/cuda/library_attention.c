// Attention with fast arithmetic: products by cuBLASLt (library_product.h), and between them a
// kernel that turns scores into weights (kernels/attention_scores.cu). The gradient computes scores
// again, and the products sum the gradients of keys and values over all queries.
//
// Scores of all queries and keys would need memory for each pair, so the call is cut into parts: as
// many matrices as fit, or some queries of one matrix. Scores of a part take 16 MiB, and its
// weights bf16 of that as bf16, which fits the second-level cache of most GPUs with tensor cores.
// Parts are larger only if there would be too many of them to queue. The cut follows only from the
// call's shape.
// With bf16, and with lengths that hide keys (whose values are arbitrary), the products read copies
// of the operands in the workspace.
#include "cuda/kernels/attention_scores.h"
#include "cuda/kernels/rows.h"
#include "cuda/library_product.h"
#include "ops/kernels/attention.h"
#include "runtime/plan.h"

// Scores of a part: a few million, and more if a call would have more parts than MOST_PARTS. A part
// has fewer matrices than a grid may have blocks in its third dimension, which a library may use
// for them.
#define SCORES_OF_PART ((int64_t)1 << 22)
#define MOST_SCORES ((int64_t)1 << 25)
#define MOST_PARTS 512
#define MOST_MATRICES 32768

// Operands of products: tensors of the call (y, dy and their like share one role), and results of a
// part in the workspace.
typedef enum role {
    Q,
    K,
    V,
    Y,
    TENSORS,
    SCORES = TENSORS,
    WEIGHT_GRADS,
    WEIGHTS,
    SLOPES,
} role;

// Products of a part, in order. The kernel comes after those whose y is scores or weight_grads.
typedef struct step {
    role b, a, y;
    bool transpose_b, transpose_a;
} step;

static const step forward[] = {{K, Q, SCORES, true, false}, {V, WEIGHTS, Y, false, false}};
static const step gradient[] = {{K, Q, SCORES, true, false},
                                {V, Y, WEIGHT_GRADS, true, false},
                                {K, SLOPES, Q, false, false},
                                {Q, SLOPES, K, false, true},
                                {Y, WEIGHTS, V, false, true}};
enum { MOST_STEPS = sizeof gradient / sizeof gradient[0] };

typedef struct tensor { // [matrices of the call, rows, width]
    int input;          // index in the call
    bool by_queries;    // else rows are keys
    int64_t rows, width;
    int64_t copy; // offset in the workspace; -1: read in place
} tensor;

typedef struct library_attention {
    const step *steps;
    int step_count;
    int64_t matrices, queries; // in each part but the last, which may have fewer
    tensor tensors[TENSORS];
    void *kernel;                                     // between the products
    bel_cuda_attention_scores scores;                 // its params
    bel_cuda_library_product products[MOST_STEPS][2]; // all parts but the last; the last part
    size_t workspace_offset;                          // the library's workspace
} library_attention;

// --- Cutting -------------------------------------------------------------------------------------

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Cuts the call into parts of about the same size, of as many matrices, or queries, as `room`
// scores allow. False: too many parts, or too few queries of one for a product.
static bool cut_to(library_attention *a, int64_t room)
{
    enum { TOGETHER = 16 };
    const bel_cuda_attention *shape = &a->scores.shape;
    int64_t scores = shape->t * shape->s;
    a->matrices = 1;
    a->queries = shape->t;
    if (scores <= room) {
        int64_t most = room / scores < MOST_MATRICES ? room / scores : MOST_MATRICES;
        a->matrices = divide_up(shape->matrices, divide_up(shape->matrices, most));
    } else {
        int64_t most = room / shape->s / TOGETHER * TOGETHER;
        if (most == 0) return false;
        int64_t even = divide_up(shape->t, divide_up(shape->t, most));
        a->queries = divide_up(even, TOGETHER) * TOGETHER; // at most `most`, and less than t
    }
    return divide_up(shape->matrices, a->matrices) * divide_up(shape->t, a->queries) <= MOST_PARTS;
}

// Cuts the call with the least room that works. False: none does.
static bool library_attention_cut(library_attention *a)
{
    for (int64_t room = SCORES_OF_PART; room <= MOST_SCORES; room *= 2)
        if (cut_to(a, room)) return true;
    return false;
}

// Size of the last part, if all parts have `all` together and the others `each`.
static int64_t last_of(int64_t all, int64_t each)
{
    return all - (divide_up(all, each) - 1) * each;
}

// --- Choosing products ---------------------------------------------------------------------------

// Largest power of two that divides the start of each part of a tensor, at most BEL_PLAN_ALIGNMENT.
static uint32_t alignment_of(const library_attention *a, role of, bool is_read)
{
    if (of >= TENSORS) return BEL_PLAN_ALIGNMENT; // the same for each part
    const tensor *t = &a->tensors[of];
    int64_t size = is_read && a->scores.bf16 ? sizeof(uint16_t) : sizeof(float);
    int64_t begins = a->matrices * t->rows * t->width * size; // start of the second part
    if (t->by_queries) begins |= a->queries * t->width * size;
    int64_t power = begins & -begins;
    return power < BEL_PLAN_ALIGNMENT ? (uint32_t)power : BEL_PLAN_ALIGNMENT;
}

// Rows and width of an operand, in a part of `queries` queries.
static void size_of(const library_attention *a, role of, int64_t queries, int64_t out[2])
{
    bool is_tensor = of < TENSORS;
    out[0] = is_tensor && !a->tensors[of].by_queries ? a->tensors[of].rows : queries;
    out[1] = is_tensor ? a->tensors[of].width : a->scores.shape.s;
}

static bel_cuda_library_product product_of(const library_attention *a, bel_gpu_math math,
                                           const step *its, int64_t matrices, int64_t queries)
{
    int64_t y[2], factor[2];
    size_of(a, its->y, queries, y);
    size_of(a, its->a, queries, factor);
    bel_cuda_library_product product = bel_cuda_library_product_of(
        math, a->scores.bf16 ? BEL_CUBLAS_BF16 : BEL_CUBLAS_F32, y[0], y[1],
        factor[its->transpose_a ? 0 : 1], its->transpose_a, its->transpose_b, matrices,
        its->y == SCORES ? (float)a->scores.shape.scale : 1);
    product.matrices[0].bytes = alignment_of(a, its->b, true);
    product.matrices[1].bytes = alignment_of(a, its->a, true);
    product.matrices[2].bytes = alignment_of(a, its->y, false);
    return product;
}

static bel_status *choose_products(const bel_cuda_build *build, library_attention *a,
                                   size_t *out_workspace, bool *out_found)
{
    const bel_cuda_attention *shape = &a->scores.shape;
    const int64_t matrices[2] = {a->matrices, last_of(shape->matrices, a->matrices)};
    const int64_t queries[2] = {a->queries, last_of(shape->t, a->queries)};
    *out_workspace = 0;
    *out_found = true;
    for (int i = 0; i < a->step_count; i++)
        for (int last = 0; last < 2 && *out_found; last++) {
            bel_cuda_library_product *product = &a->products[i][last];
            *product = product_of(a, build->prepare->gpu_math, &a->steps[i], matrices[last],
                                  queries[last]);
            BEL_TRY(bel_cuda_library_product_choose(build->device, product, out_found));
            if (product->workspace_bytes > *out_workspace)
                *out_workspace = product->workspace_bytes;
        }
    return NULL;
}

// --- The workspace -------------------------------------------------------------------------------

static int64_t add_room(size_t *end, int64_t elements, size_t size)
{
    return (int64_t)bel_cuda_add_work(end, elements, size);
}

// dy · y comes first, where the kernels of attention.cu expect it.
static void divide_workspace(library_attention *a)
{
    bel_cuda_attention_scores *scores = &a->scores;
    const bel_cuda_attention *shape = &scores->shape;
    bool is_gradient = a->steps == gradient, bf16 = scores->bf16 != 0;
    int64_t part = a->matrices * a->queries * shape->s;
    size_t *offset = &a->workspace_offset, size = bf16 ? sizeof(uint16_t) : sizeof(float);
    if (is_gradient) scores->inner = add_room(offset, shape->matrices * shape->t, sizeof(float));
    for (int i = 0; i < TENSORS; i++) {
        tensor *t = &a->tensors[i];
        bool hides = shape->lengths >= 0 && !t->by_queries, is_read = i != Y || is_gradient;
        t->copy = is_read && (bf16 || hides)
                      ? add_room(offset, shape->matrices * t->rows * t->width, size)
                      : -1;
    }
    scores->scores = scores->weights = add_room(offset, part, sizeof(float));
    if (bf16) scores->weights = add_room(offset, part, size);
    if (!is_gradient) return;
    scores->weight_grads = scores->slopes = add_room(offset, part, sizeof(float));
    if (bf16) scores->slopes = add_room(offset, part, size);
}

// --- Running -------------------------------------------------------------------------------------

// Start of a part.
typedef struct place {
    int64_t matrix, query;
} place;

static int64_t first_element(const tensor *t, const place *at)
{
    return (at->matrix * t->rows + (t->by_queries ? at->query : 0)) * t->width;
}

static const char *read_at(const library_attention *a, const bel_cuda_operands *operands, role of,
                           const place *at)
{
    const char *work = operands->work;
    if (of == WEIGHTS) return work + a->scores.weights;
    if (of == SLOPES) return work + a->scores.slopes;
    const tensor *t = &a->tensors[of];
    const char *begin = t->copy >= 0 ? work + t->copy : (const char *)operands->in[t->input];
    int64_t size = a->scores.bf16 ? sizeof(uint16_t) : sizeof(float);
    return begin + first_element(t, at) * size;
}

static void *write_at(const library_attention *a, const bel_cuda_operands *operands, role of,
                      const place *at)
{
    char *work = operands->work;
    if (of == SCORES) return work + a->scores.scores;
    if (of == WEIGHT_GRADS) return work + a->scores.weight_grads;
    float *begin = operands->out[of == Y ? 0 : of]; // y, or dq, dk and dv
    return begin + first_element(&a->tensors[of], at);
}

// Products of a part. The gradients of keys and values of a matrix are sums over its queries,
// accumulated part by part.
static bel_status *attention_library_multiply(const bel_cuda_device *device, void *stream,
                                              const library_attention *a,
                                              const bel_cuda_operands *operands, int number,
                                              bool last, const place *at)
{
    const step *its = &a->steps[number];
    bool adds = (its->y == K || its->y == V) && at->query > 0;
    const bel_cuda_library_operands product = {.b = read_at(a, operands, its->b, at),
                                               .a = read_at(a, operands, its->a, at),
                                               .y = write_at(a, operands, its->y, at),
                                               .beta = adds ? 1 : 0,
                                               .work =
                                                   bel_cuda_work_at(operands, a->workspace_offset)};
    return bel_cuda_library_product_run(device, stream, &a->products[number][last], &product);
}

static bel_status *attention_library_weigh(const bel_cuda_device *device, void *stream,
                                           const library_attention *a, bel_cuda_operands *operands,
                                           bel_cuda_attention_scores *params)
{
    int64_t rows = params->matrices * params->queries;
    void *arguments[2] = {operands, params};
    return bel_cuda_status(device->api->launch(a->kernel, (unsigned)divide_up(rows, BEL_CUDA_ROWS),
                                               1, 1, BEL_CUDA_ROWS * BEL_CUDA_LANES, 1, 1, 0,
                                               stream, arguments, NULL),
                           "launch a kernel");
}

static bel_status *run_part(const bel_cuda_device *device, void *stream, const library_attention *a,
                            const bel_cuda_operands *operands, const place *at)
{
    bel_cuda_operands its = *operands;
    bel_cuda_attention_scores params = a->scores;
    const bel_cuda_attention *shape = &params.shape;
    int64_t matrices = shape->matrices - at->matrix, queries = shape->t - at->query; // the rest
    bool last = a->queries < shape->t ? queries <= a->queries : matrices <= a->matrices;
    params.first_matrix = at->matrix;
    params.first_query = at->query;
    params.matrices = matrices < a->matrices ? matrices : a->matrices;
    params.queries = queries < a->queries ? queries : a->queries;
    for (int i = 0; i < a->step_count; i++) {
        BEL_TRY(attention_library_multiply(device, stream, a, operands, i, last, at));
        bool ready = a->steps[i].y >= TENSORS && a->steps[i + 1].y < TENSORS;
        if (ready) BEL_TRY(attention_library_weigh(device, stream, a, &its, &params));
    }
    return NULL;
}

static bel_status *attention_library_run(bel_cuda_device *device, void *stream,
                                         const bel_cuda_operands *operands, const void *params)
{
    const library_attention *a = params;
    const bel_cuda_attention *shape = &a->scores.shape;
    place at;
    for (at.matrix = 0; at.matrix < shape->matrices; at.matrix += a->matrices)
        for (at.query = 0; at.query < shape->t; at.query += a->queries)
            BEL_TRY(run_part(device, stream, a, operands, &at));
    return NULL;
}

// --- Preparation ---------------------------------------------------------------------------------

// Inputs are q, k, v, or dy, q, k, v, y, logarithms. False: the call cannot be cut.
static bool attention_library_read(const bel_cuda_build *build, const bel_cuda_attention *shape,
                                   library_attention *out)
{
    bool is_gradient = shape->q == 1;
    int first = (int)shape->q;
    *out = (library_attention){
        .steps = is_gradient ? gradient : forward,
        .step_count =
            is_gradient ? sizeof gradient / sizeof *gradient : sizeof forward / sizeof *forward,
        .tensors = {[Q] = {first, true, shape->t, shape->d, -1},
                    [K] = {first + 1, false, shape->s, shape->d, -1},
                    [V] = {first + 2, false, shape->s, shape->e, -1},
                    [Y] = {0, true, shape->t, shape->e, -1}},
        .scores = {.shape = *shape, .bf16 = build->prepare->gpu_math == BEL_GPU_MATH_BF16}};
    if (!library_attention_cut(out)) return false;
    divide_workspace(out);
    return true;
}

static bel_status *add_copies(bel_cuda_build *build, const library_attention *a)
{
    const bel_cuda_attention *shape = &a->scores.shape;
    for (int i = 0; i < TENSORS; i++) {
        const tensor *t = &a->tensors[i];
        if (t->copy < 0) continue;
        const bel_cuda_attention_copy copy = {.shape = *shape,
                                              .rows = t->rows,
                                              .width = t->width,
                                              .operand = t->input,
                                              .offset = t->copy,
                                              .bf16 = a->scores.bf16,
                                              .hides = shape->lengths >= 0 && !t->by_queries};
        int64_t count = shape->matrices * t->rows * t->width;
        BEL_TRY(bel_cuda_add(build, "attention_scores.cu", "attention_copy",
                             bel_cuda_blocks(divide_up(count, 4)), BEL_CUDA_BLOCK, &copy,
                             sizeof copy));
    }
    return NULL;
}

bel_status *bel_cuda_try_attention(bel_cuda_build *build, const bel_cuda_attention *shape,
                                   bool *out_taken)
{
    *out_taken = false;
    bool empty = shape->matrices * shape->t * shape->s * shape->e == 0;
    if (empty || !bel_cuda_is_fast(build)) return NULL;
    size_t library_bytes;
    library_attention a;
    if (!attention_library_read(build, shape, &a)) return NULL;
    BEL_TRY(bel_cuda_libraries(build->device));
    BEL_TRY(choose_products(build, &a, &library_bytes, out_taken));
    if (!*out_taken) return NULL;
    BEL_TRY(add_copies(build, &a));
    if (a.steps == gradient)
        BEL_TRY(bel_cuda_add(build, "attention.cu", "attention_inner",
                             divide_up(shape->matrices * shape->t, BEL_CUDA_ATTENTION_ROWS),
                             BEL_CUDA_ATTENTION_THREADS, shape, sizeof *shape));
    BEL_TRY(bel_cuda_kernel_of(build, "attention_scores.cu",
                               a.steps == gradient ? "attention_slopes" : "attention_weights",
                               &a.kernel));
    build->call->workspace_bytes = a.workspace_offset + library_bytes + BEL_CUDA_WORK_ALIGNMENT;
    bel_cuda_add_library(build, attention_library_run, &a, sizeof a);
    return NULL;
}
