// Stand-in for libcublasLt.so.13: products of column-major matrices, as far as src/cuda/api.def
// calls it. Sums are f32, in rising order of k. The fast compute types round the operands to tf32
// or bf16, to the nearest, ties to even.
//
// An algorithm records the problem that it was chosen for, so that its use with another problem is
// found. Without a new choice a program may vary the addresses, alpha, beta and the bias. NVIDIA's
// choice assumes matrices that begin at multiples of 256 bytes unless the preference says less, and
// a bias as aligned as the one that is set when the choice is made.
//
// Several threads may use a handle at once, in the context in which it was created. The caller
// orders accesses to layouts and products.
#include "library.h"

#include <string.h>

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15,
};

enum { HANDLE, LAYOUT, PRODUCT, PREFERENCE };

const library this_library = {
    .name = "cuBLASLt",
    .source = "cublas.cu",
    .kernels = {"cublasLtMatmul"},
    .kinds = {"handle", "layout", "product", "preference"},
};

// Constants of the published interface.
enum {
    F32 = 0, // cudaDataType
    BF16 = 14,
    COMPUTE_F32 = 68, // cublasComputeType_t
    COMPUTE_FAST_BF16 = 75,
    COMPUTE_FAST_TF32 = 77,
    RELU = 2, // bits of cublasLtEpilogue_t; a 1 is neither
    BIAS = 4,
};

typedef struct handle {
    thing head;
    loaded kernels;
} handle;

typedef struct layout {
    thing head;
    int type;
    uint64_t rows, columns;
    int64_t step;
    int32_t batches;
    int64_t batch_step;
} layout;

typedef struct product {
    thing head;
    int compute;
    int32_t transposed_a, transposed_b;
    uint32_t epilogue;
    const void *bias;
} product;

typedef struct preference {
    thing head;
    size_t workspace;
    uint32_t alignment[4]; // by matrix: a, b, c and d
} preference;

// Problem that an algorithm is chosen for, in words so that there is no padding.
typedef struct problem {
    int64_t compute, transposed_a, transposed_b, epilogue;
    struct {
        int64_t type, rows, columns, step, batches, batch_step;
    } of[4]; // a, b, c, d
} problem;

// cublasLtMatmulAlgo_t.
typedef struct algorithm {
    uint64_t magic, of_problem;
    uint64_t workspace_bytes;
    uint32_t alignment[4], bias_alignment;
    uint64_t zero[2];
} algorithm;

// cublasLtMatmulHeuristicResult_t.
typedef struct choice {
    algorithm chosen;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} choice;

_Static_assert(sizeof(algorithm) == 64 && sizeof(choice) == 96, "the published sizes");

static const uint64_t ALGORITHM = 0x6d6874697261676c;

API(cublasLtGetProperty, (int property, int *out_value))
{
    return version_of(property, 13, 0, out_value) ? SUCCESS : INVALID_VALUE;
}

API(cublasLtCreate, (void **out_handle))
{
    loaded kernels;
    if (out_handle == NULL) return INVALID_VALUE;
    if (!kernels_load(&kernels)) return NOT_INITIALIZED;
    handle *h = thing_create(HANDLE, sizeof *h);
    h->kernels = kernels;
    *out_handle = h;
    return SUCCESS;
}

// --- Descriptors ---------------------------------------------------------------------------------

// The caller's value must have the attribute's size.
static int set(void *to, size_t bytes, const void *value, size_t value_bytes)
{
    if (value == NULL || value_bytes != bytes) return INVALID_VALUE;
    memcpy(to, value, bytes);
    return SUCCESS;
}

API(cublasLtMatrixLayoutCreate,
    (void **out_layout, int type, uint64_t rows, uint64_t columns, int64_t step))
{
    if (type != F32 && type != BF16)
        die("%s: matrices of type %d are not supported", __func__, type);
    if (out_layout == NULL || rows > INT32_MAX || columns > INT32_MAX || step < (int64_t)rows)
        return INVALID_VALUE;
    layout *l = thing_create(LAYOUT, sizeof *l);
    l->type = type;
    l->rows = rows;
    l->columns = columns;
    l->step = step;
    l->batches = 1;
    *out_layout = l;
    return SUCCESS;
}

API(cublasLtMatrixLayoutSetAttribute,
    (void *pointer, int attribute, const void *value, size_t bytes))
{
    layout *l = thing_of(pointer, LAYOUT, __func__);
    if (attribute == 6) return set(&l->batch_step, sizeof l->batch_step, value, bytes);
    if (attribute != 5) die("%s: attribute %d is not supported", __func__, attribute);
    int32_t batches;
    if (set(&batches, sizeof batches, value, bytes) != SUCCESS || batches < 1) return INVALID_VALUE;
    l->batches = batches;
    return SUCCESS;
}

API(cublasLtMatrixLayoutDestroy, (void *pointer))
{
    thing_destroy(pointer, LAYOUT, __func__);
    return SUCCESS;
}

API(cublasLtMatmulDescCreate, (void **out_product, int compute, int scale_type))
{
    if (compute != COMPUTE_F32 && compute != COMPUTE_FAST_BF16 && compute != COMPUTE_FAST_TF32)
        die("%s: compute type %d is not supported", __func__, compute);
    if (scale_type != F32) die("%s: scales of type %d are not supported", __func__, scale_type);
    if (out_product == NULL) return INVALID_VALUE;
    product *p = thing_create(PRODUCT, sizeof *p);
    p->compute = compute;
    p->epilogue = 1;
    *out_product = p;
    return SUCCESS;
}

static int set_transposed(int32_t *to, const void *value, size_t bytes, const char *call)
{
    int32_t transposed;
    if (set(&transposed, sizeof transposed, value, bytes) != SUCCESS) return INVALID_VALUE;
    if (transposed != 0 && transposed != 1)
        die("%s: operation %d of a matrix is not supported", call, transposed);
    *to = transposed;
    return SUCCESS;
}

API(cublasLtMatmulDescSetAttribute, (void *pointer, int attribute, const void *value, size_t bytes))
{
    product *p = thing_of(pointer, PRODUCT, __func__);
    uint32_t epilogue;
    switch (attribute) {
    case 3: return set_transposed(&p->transposed_a, value, bytes, __func__);
    case 4: return set_transposed(&p->transposed_b, value, bytes, __func__);
    case 7:
        if (set(&epilogue, sizeof epilogue, value, bytes) != SUCCESS) return INVALID_VALUE;
        if (epilogue != 1 && epilogue != RELU && epilogue != BIAS && epilogue != (RELU | BIAS))
            die("%s: epilogue %u is not supported", __func__, epilogue);
        p->epilogue = epilogue;
        return SUCCESS;
    case 8: return set(&p->bias, sizeof p->bias, value, bytes);
    default: die("%s: attribute %d is not supported", __func__, attribute);
    }
}

API(cublasLtMatmulDescDestroy, (void *pointer))
{
    thing_destroy(pointer, PRODUCT, __func__);
    return SUCCESS;
}

API(cublasLtMatmulPreferenceCreate, (void **out_preference))
{
    if (out_preference == NULL) return INVALID_VALUE;
    preference *p = thing_create(PREFERENCE, sizeof *p);
    for (int i = 0; i < 4; i++)
        p->alignment[i] = 256;
    *out_preference = p;
    return SUCCESS;
}

API(cublasLtMatmulPreferenceSetAttribute,
    (void *pointer, int attribute, const void *value, size_t bytes))
{
    preference *p = thing_of(pointer, PREFERENCE, __func__);
    if (attribute == 1) return set(&p->workspace, sizeof p->workspace, value, bytes);
    if (attribute < 5 || attribute > 8)
        die("%s: attribute %d is not supported", __func__, attribute);
    uint32_t alignment;
    if (set(&alignment, sizeof alignment, value, bytes) != SUCCESS || alignment == 0 ||
        (alignment & (alignment - 1)) != 0)
        return INVALID_VALUE;
    p->alignment[attribute - 5] = alignment;
    return SUCCESS;
}

API(cublasLtMatmulPreferenceDestroy, (void *pointer))
{
    thing_destroy(pointer, PREFERENCE, __func__);
    return SUCCESS;
}

// --- Problems ------------------------------------------------------------------------------------

static problem problem_of(const product *p, const layout *const *layouts)
{
    problem made = {.compute = p->compute,
                    .transposed_a = p->transposed_a,
                    .transposed_b = p->transposed_b,
                    .epilogue = p->epilogue};
    for (int i = 0; i < 4; i++) {
        const layout *l = layouts[i];
        made.of[i].type = l->type;
        made.of[i].rows = (int64_t)l->rows;
        made.of[i].columns = (int64_t)l->columns;
        made.of[i].step = l->step;
        made.of[i].batches = l->batches;
        made.of[i].batch_step = l->batch_step;
    }
    return made;
}

static uint64_t hash_of(const problem *p)
{
    uint64_t hash = 0xcbf29ce484222325;
    const unsigned char *bytes = (const unsigned char *)p;
    for (size_t i = 0; i < sizeof *p; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

// Writes rows, columns and inner size of the product to `out`.
static void sizes_of(const problem *p, int64_t out[3])
{
    out[0] = p->of[3].rows;
    out[1] = p->of[3].columns;
    out[2] = p->transposed_a ? p->of[0].rows : p->of[0].columns;
}

// Checks that the four matrices fit each other and that cublasLtMatmul supports the product.
static int check(const problem *p)
{
    int64_t sizes[3];
    sizes_of(p, sizes);
    int64_t a_rows = p->transposed_a ? p->of[0].columns : p->of[0].rows;
    int64_t b_rows = p->transposed_b ? p->of[1].columns : p->of[1].rows;
    int64_t b_columns = p->transposed_b ? p->of[1].rows : p->of[1].columns;
    if (a_rows != sizes[0] || b_columns != sizes[1] || b_rows != sizes[2]) return INVALID_VALUE;
    if (p->of[2].rows != sizes[0] || p->of[2].columns != sizes[1]) return INVALID_VALUE;
    if (sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0) return INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (p->of[i].batches != p->of[3].batches) return INVALID_VALUE;
    // cublasLtMatmul's table: fast types accept only f32, and f32 does not become bf16.
    bool in_f32 = p->of[0].type == F32, out_f32 = p->of[3].type == F32;
    if (p->of[0].type != p->of[1].type || p->of[2].type != p->of[3].type) return NOT_SUPPORTED;
    if (in_f32 && !out_f32) return NOT_SUPPORTED;
    return p->compute == COMPUTE_F32 || in_f32 ? SUCCESS : NOT_SUPPORTED;
}

// The largest power of two, up to the bytes that a kernel reads at once, that divides the address.
static uint32_t bias_alignment(const void *bias)
{
    enum { WIDEST = 16 };
    uint32_t alignment = WIDEST;
    while (!is_aligned(bias, alignment))
        alignment /= 2;
    return alignment;
}

API(cublasLtMatmulAlgoGetHeuristic,
    (void *handle_pointer, void *product_pointer, void *a, void *b, void *c, void *d,
     void *preference_pointer, int asked, choice *out_choices, int *out_count))
{
    enum { LARGE = 64 };
    const handle *h = thing_of(handle_pointer, HANDLE, __func__);
    const product *p = thing_of(product_pointer, PRODUCT, __func__);
    const layout *const layouts[] = {thing_of(a, LAYOUT, __func__), thing_of(b, LAYOUT, __func__),
                                     thing_of(c, LAYOUT, __func__), thing_of(d, LAYOUT, __func__)};
    const preference *like = thing_of(preference_pointer, PREFERENCE, __func__);
    need_context(&h->kernels, __func__);
    if (out_choices == NULL || out_count == NULL || asked < 1) return INVALID_VALUE;
    *out_count = 0;
    problem asks = problem_of(p, layouts);
    int error = check(&asks);
    if (error != SUCCESS) return error;
    int64_t sizes[3];
    sizes_of(&asks, sizes);
    // Workspace of sums in parts. A caller that offers less gets an algorithm without.
    size_t workspace = sizes[2] < LARGE ? 0 : 64 * (1 + (size_t)sizes[2] / LARGE);
    if (workspace > like->workspace) workspace = 0;
    choice made = {.workspace_bytes = workspace, .waves = 1};
    made.chosen = (algorithm){.magic = ALGORITHM,
                              .of_problem = hash_of(&asks),
                              .workspace_bytes = workspace,
                              .bias_alignment = bias_alignment(p->bias)};
    memcpy(made.chosen.alignment, like->alignment, sizeof like->alignment);
    out_choices[0] = made;
    *out_count = 1;
    return SUCCESS;
}

// --- Products ------------------------------------------------------------------------------------

static void check_algorithm(const algorithm *chosen, const problem *p, const void *workspace,
                            size_t workspace_bytes, const char *call)
{
    if (chosen == NULL) die("%s: a product without an algorithm is not supported", call);
    if (chosen->magic != ALGORITHM) die("%s: the algorithm was never chosen", call);
    if (chosen->of_problem != hash_of(p))
        die("%s: the algorithm was chosen for other layouts or another product", call);
    if (workspace_bytes < chosen->workspace_bytes)
        die("%s: the algorithm takes %zu bytes of workspace, it gets %zu", call,
            (size_t)chosen->workspace_bytes, workspace_bytes);
    if (chosen->workspace_bytes == 0) return;
    if (workspace == NULL) die("%s: the workspace is NULL", call);
    if (!is_aligned(workspace, WORKSPACE_ALIGNMENT))
        die("%s: the workspace begins at no multiple of %d bytes", call, WORKSPACE_ALIGNMENT);
}

// `at` has the addresses of a, b, c and d.
static void check_addresses(const algorithm *chosen, const void *const *at, const product *p,
                            bool reads_c, const char *call)
{
    for (int i = 0; i < 4; i++) {
        if (i == 2 && !reads_c) continue;
        if (at[i] == NULL) die("%s: matrix %c is NULL", call, "abcd"[i]);
        if (!is_aligned(at[i], chosen->alignment[i]))
            die("%s: matrix %c begins at no multiple of the %u bytes that the algorithm was chosen "
                "for (attributes 5 to 8 of the preference)",
                call, "abcd"[i], chosen -> alignment[i]);
    }
    if (at[3] == at[0] || at[3] == at[1]) die("%s: matrix d is a or b", call);
    if ((p->epilogue & BIAS) == 0) return;
    if (p->bias == NULL) die("%s: the bias is NULL", call);
    if (!is_aligned(p->bias, chosen->bias_alignment))
        die("%s: the bias begins at no multiple of %u bytes, as it did when the algorithm was "
            "chosen",
            call, chosen->bias_alignment);
}

static library_matrix matrix_of(const void *at, const layout *l, bool transposed)
{
    return (library_matrix){.at = at,
                            .row_step = transposed ? l->step : 1,
                            .column_step = transposed ? 1 : l->step,
                            .batch_step = l->batch_step};
}

API(cublasLtMatmul, (void *handle_pointer, void *product_pointer, const void *alpha, const void *a,
                     void *a_layout, const void *b, void *b_layout, const void *beta, const void *c,
                     void *c_layout, void *d, void *d_layout, const void *chosen_pointer,
                     void *workspace, size_t workspace_bytes, void *stream))
{
    const handle *h = thing_of(handle_pointer, HANDLE, __func__);
    const product *p = thing_of(product_pointer, PRODUCT, __func__);
    const layout *const layouts[] = {
        thing_of(a_layout, LAYOUT, __func__), thing_of(b_layout, LAYOUT, __func__),
        thing_of(c_layout, LAYOUT, __func__), thing_of(d_layout, LAYOUT, __func__)};
    const algorithm *chosen = chosen_pointer;
    need_context(&h->kernels, __func__);
    if (alpha == NULL || beta == NULL) return INVALID_VALUE;
    problem asks = problem_of(p, layouts);
    int error = check(&asks);
    if (error != SUCCESS) return error;
    int64_t sizes[3];
    sizes_of(&asks, sizes);
    library_product made = {.a = matrix_of(a, layouts[0], p->transposed_a),
                            .b = matrix_of(b, layouts[1], p->transposed_b),
                            .c = matrix_of(c, layouts[2], false),
                            .d = d,
                            .d_column_step = layouts[3]->step,
                            .d_batch_step = layouts[3]->batch_step,
                            .bias = (p->epilogue & BIAS) != 0 ? p->bias : NULL,
                            .rows = sizes[0],
                            .columns = sizes[1],
                            .inner = sizes[2],
                            .batches = layouts[3]->batches,
                            .in_bf16 = layouts[0]->type == BF16,
                            .out_bf16 = layouts[3]->type == BF16,
                            .dropped = p->compute == COMPUTE_FAST_TF32   ? LIBRARY_DROP_TF32
                                       : p->compute == COMPUTE_FAST_BF16 ? LIBRARY_DROP_BF16
                                                                         : LIBRARY_DROP_F32,
                            .relu = (p->epilogue & RELU) != 0,
                            .workspace.at = workspace};
    memcpy(&made.alpha, alpha, sizeof made.alpha);
    memcpy(&made.beta, beta, sizeof made.beta);
    bool reads_c = made.beta < 0 || made.beta > 0;
    check_algorithm(chosen, &asks, workspace, workspace_bytes, __func__);
    check_addresses(chosen, (const void *const[]){a, b, c, d}, p, reads_c, __func__);
    if (reads_c && c == d && memcmp(&asks.of[2], &asks.of[3], sizeof asks.of[2]) != 0)
        die("%s: matrix d is c, and lies otherwise", __func__);
    made.workspace.words = (long long)(chosen->workspace_bytes / sizeof(float));
    int driver_error =
        kernel_launch(&h->kernels, 0, made.rows * made.columns * made.batches, stream, &made);
    return driver_error == 0 ? SUCCESS : EXECUTION_FAILED;
}
