// Cost model of calls. Rates are in nanoseconds, measured on one core of an AMD EPYC (Zen 3, AVX2).
// To measure them again, run
//     belfry graph --cost --model … --train_batch_size …
//
// for models with the operations in question; divide the times by the factors below. Only their
// proportions to each other and to BEL_COST_HAND_OVER_NS matter.
#include "runtime/cost.h"

enum { KIB = 1024 };

static const double CALL = 40, TILE = 10;
static const double MULTIPLY_ADD = 0.027; // per multiply-add of a product, with full vectors
static const double PRODUCT_KIB = 15, IMAGE_KIB = 20; // moved besides the arithmetic
static const double MOVED_KIB = 18;                   // without a row in `rates`

// Rates of an operation's calls for each KiB of their operands. `reads`: calls that only read (a
// first stage, or one before the last); `whole`: calls that read and write; `writes`: calls that
// only write (a last stage). `work`: for each unit of bel_kernel_call.work. `row`: for each row
// along the last dimension.
typedef struct rate {
    double reads, whole, writes, work, row;
} rate;

static const rate rates[BEL_OP_COUNT] = {
    [BEL_OP_EQUAL] = {.whole = 100},
    [BEL_OP_GREATER] = {.whole = 100},
    [BEL_OP_LESS] = {.whole = 100},
    [BEL_OP_GREATER_OR_EQUAL] = {.whole = 100},
    [BEL_OP_LESS_OR_EQUAL] = {.whole = 100},
    [BEL_OP_WHERE] = {.whole = 100},
    [BEL_OP_CAST] = {.whole = 42},
    [BEL_OP_EXP] = {.whole = 128},
    [BEL_OP_LOG] = {.whole = 150},
    [BEL_OP_SIGMOID] = {.whole = 150},
    [BEL_OP_TANH] = {.whole = 205},
    [BEL_OP_ERF] = {.whole = 76},
    [BEL_OP_GELU] = {.whole = 86},
    [BEL_OP_GELU_GRAD] = {.whole = 110},
    [BEL_OP_GELU_TANH] = {.whole = 115},
    [BEL_OP_GELU_TANH_GRAD] = {.whole = 100},
    [BEL_OP_SILU] = {.whole = 150},
    [BEL_OP_SILU_GRAD] = {.whole = 110},
    [BEL_OP_SOFTPLUS] = {.whole = 420},
    [BEL_OP_POW] = {.whole = 1700},
    [BEL_OP_SIN] = {.whole = 1360},
    [BEL_OP_COS] = {.whole = 1360},
    [BEL_OP_TAN] = {.whole = 1360},
    [BEL_OP_SOFTMAX] = {.whole = 220, .row = 85},
    [BEL_OP_LOG_SOFTMAX] = {.whole = 220, .row = 85},
    [BEL_OP_SOFTMAX_CROSS_ENTROPY] = {.whole = 280, .row = 110},
    [BEL_OP_CROSS_ENTROPY_GRAD] = {.whole = 130, .row = 30},
    [BEL_OP_SIGMOID_CROSS_ENTROPY] = {.whole = 420},
    [BEL_OP_REDUCE_SUM] = {.whole = 30},
    [BEL_OP_REDUCE_MAX] = {.whole = 140},
    [BEL_OP_REDUCE_MIN] = {.whole = 140},
    [BEL_OP_ARG_MAX] = {.whole = 730},
    [BEL_OP_ARG_MIN] = {.whole = 730},
    [BEL_OP_TOP_K] = {.whole = 1830},
    [BEL_OP_CUM_SUM] = {.whole = 270},
    [BEL_OP_BROADCAST_TO] = {.whole = 50},
    [BEL_OP_TRANSPOSE] = {.whole = 90},
    [BEL_OP_SLICE] = {.whole = 35},
    [BEL_OP_PAD] = {.whole = 35},
    [BEL_OP_EXPAND] = {.whole = 35},
    [BEL_OP_GATHER] = {.whole = 58},
    [BEL_OP_DROPOUT] = {.whole = 500},
    [BEL_OP_RANDOM_UNIFORM] = {.whole = 500},
    [BEL_OP_RANDOM_NORMAL] = {.whole = 3000},
    [BEL_OP_CONV] = {.reads = 180, .work = 0.185},
    [BEL_OP_CONV_GRAD_INPUT] = {.reads = 180, .work = 0.185},
    [BEL_OP_CONV_GRAD_WEIGHTS] = {.writes = 550, .work = 0.195},
    [BEL_OP_CHANNEL_SUM] = {.reads = 60},
    [BEL_OP_MAX_POOL] = {.whole = 100},
    [BEL_OP_MAX_POOL_GRAD] = {.whole = 120},
    [BEL_OP_AVERAGE_POOL] = {.whole = 50},
    [BEL_OP_AVERAGE_POOL_GRAD] = {.whole = 47},
    [BEL_OP_GLOBAL_AVERAGE_POOL] = {.whole = 52},
    [BEL_OP_BATCH_NORM] = {.reads = 80, .whole = 34},
    [BEL_OP_BATCH_NORM_GRAD] = {.reads = 55, .whole = 25},
    [BEL_OP_BATCH_MOMENTS] = {.reads = 80},
    [BEL_OP_MOMENTS_NORM] = {.whole = 34},
    [BEL_OP_MOMENTS_NORM_SUMS] = {.reads = 55, .whole = 0.1},
    [BEL_OP_MOMENTS_NORM_GRAD] = {.whole = 25},
    [BEL_OP_ATTENTION] = {.work = 0.24},
    [BEL_OP_ATTENTION_GRAD] = {.work = 0.24},
    [BEL_OP_GRU] = {.reads = 60, .work = 0.22},
    [BEL_OP_LSTM] = {.reads = 70, .work = 0.22},
    [BEL_OP_GRU_GRAD] = {.reads = 10, .writes = 420, .work = 0.087},
    [BEL_OP_LSTM_GRAD] = {.reads = 10, .writes = 420, .work = 0.087},
};

static double kib_of(const bel_tensor *tensors, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += bel_tensor_bytes(&tensors[i]);
    return (double)bytes / KIB;
}

static bool is_product(bel_op op)
{
    return op == BEL_OP_GEMM || op == BEL_OP_MATMUL || op == BEL_OP_MATMUL_FLAT;
}

// Columns are computed in vectors of 16.
static double product_ns(const bel_kernel_call *call)
{
    enum { LANES = 16 };
    const bel_shape *result = &call->outputs[0].shape;
    int64_t columns = result->rank > 0 ? result->dims[result->rank - 1] : 1;
    int64_t rows = columns > 0 ? bel_shape_elements(result) / columns : 0;
    double inner = rows > 0 ? (double)bel_shape_elements(&call->inputs[0].shape) / (double)rows : 0;
    double filled = (double)((columns + LANES - 1) / LANES * LANES);
    return (double)rows * inner * filled * MULTIPLY_ADD;
}

// KiB that a stage which only reads, or only writes, goes through.
static double stage_kib(const bel_kernel_call *call)
{
    switch (call->op) {
    case BEL_OP_CONV:
    case BEL_OP_CONV_GRAD_INPUT: // packs the weights
        return kib_of(&call->inputs[1], 1);
    case BEL_OP_GRU_GRAD:
    case BEL_OP_LSTM_GRAD:
        if (call->input_count == 0) return (double)call->workspace_bytes / KIB;
        break;
    default: break;
    }
    return kib_of(call->inputs, call->input_count) + kib_of(call->outputs, call->output_count);
}

// Number of rows along the last dimension of the inputs that have rows.
static double rows_of(const bel_kernel_call *call)
{
    int64_t rows = 0;
    for (int i = 0; i < call->input_count; i++) {
        const bel_shape *shape = &call->inputs[i].shape;
        if (shape->rank < 2 || shape->dims[shape->rank - 1] == 0) continue;
        rows = bel_shape_elements(shape) / shape->dims[shape->rank - 1];
    }
    return (double)rows;
}

// Time by the kernel's bottleneck. Products and kernels with units of work: arithmetic plus KiB
// moved. Single stages: the rate of their side. Others: KiB moved and rows.
static double kernel_ns(const bel_kernel_call *call)
{
    const rate *r = &rates[call->op];
    double moved = kib_of(call->inputs, call->input_count);
    moved += kib_of(call->outputs, call->output_count);
    if (is_product(call->op)) return product_ns(call) + PRODUCT_KIB * moved;
    if (call->work > 0) return r->work * (double)call->work + IMAGE_KIB * moved;
    double stage = call->input_count == 0 ? r->writes : call->output_count == 0 ? r->reads : 0;
    if (stage > 0) return stage * stage_kib(call);
    return (r->whole > 0 ? r->whole : MOVED_KIB) * moved + r->row * rows_of(call);
}

int64_t bel_cost_ns(const bel_kernel_call *call)
{
    double ns = CALL + TILE * (double)call->tile_count + kernel_ns(call);
    return (int64_t)ns;
}
