// Definition of an operation: a row in ops.def, a shape rule and kernels. Families (math.c,
// matmul.c …) implement rows; op_table.c collects them. The row's gradient rule consists of other
// operations, so it belongs to a folder above the graph: autodiff/rules.h.
#ifndef BELFRY_OPS_OP_H
#define BELFRY_OPS_OP_H

#include <stdatomic.h>

#include "base/arena.h"
#include "belfry/graph.h"
#include "belfry/run.h"

enum { BEL_OP_MAX_INPUTS = 9, BEL_OP_MAX_OUTPUTS = 5, BEL_OP_MAX_ATTRS = 6 };

typedef enum bel_op {
#define OP(id, name, domain, min_inputs, max_inputs, outputs, flags, infer, gradient, prepare,     \
           doc)                                                                                    \
    BEL_OP_##id,
#include "ops/ops.def"
#undef OP
    BEL_OP_COUNT
} bel_op;

typedef struct bel_fused bel_fused; // ops/fused.h

// Attribute, under its ONNX name.
typedef struct bel_attr {
    const char *name;       // static
    double number;          // integers too, up to 2^53
    bel_shape ints;         // lists
    const bel_fused *fused; // for the operation Fused; lives as long as the graph
} bel_attr;

typedef struct bel_attr_list {
    int count;
    bel_attr items[BEL_OP_MAX_ATTRS];
} bel_attr_list;

// Applies Relu to the result of products and convolutions. Passes set it.
#define BEL_ATTR_RELU "relu"
// Gemm: c, which has the product's shape, begins the chains, so a product continues an earlier one.
// A pass sets it.
#define BEL_ATTR_CONTINUES "continues"

double bel_attr_number(const bel_attr_list *attrs, const char *name, double otherwise);
const bel_shape *bel_attr_ints(const bel_attr_list *attrs, const char *name); // NULL: absent

// Returns an integer, truncated and clamped to ±2^53 whatever the attribute is; NaN is 0.
int64_t bel_attr_whole(const bel_attr_list *attrs, const char *name, int64_t otherwise);
static inline bool bel_attr_flag(const bel_attr_list *attrs, const char *name)
{
    return bel_attr_number(attrs, name, 0) != 0;
}
bool bel_attrs_equal(const bel_attr_list *a, const bel_attr_list *b); // numbers by their bits

// Type and shape of a value.
typedef struct bel_spec {
    bel_dtype dtype;
    bel_shape shape;
} bel_spec;

// --- Shape rules --------------------------------------------------------------------------------

// Reads specs and attributes, fills out_outputs. Dimensions may be open (negative). Errors have the
// expected and the actual value; the caller prepends the operation's name.
typedef bel_status *bel_infer_fn(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs);

// --- Kernels ------------------------------------------------------------------------------------

// State that differs from run to run. `error` has the first data error of a run.
typedef struct bel_run_context {
    uint64_t seed;
    int64_t step;
    int local_step, local_steps; // the replica's batch in this step, of how many; 0: the only one
    int64_t replica;
    int64_t round;
    int traced_as;     // in traces of devices: 1 + the worker of the run; 0: none …
    int tower;         // … and its tower
    atomic_int error;  // 0, or 1 + index of the instruction with invalid data
    int64_t bad_value; // outside [bad_low, bad_limit)
    int64_t bad_low, bad_limit;
} bel_run_context;

// Returns the counter of random operations, unique for each batch of a replica, and round.
static inline uint64_t bel_run_place(const bel_run_context *context)
{
    int64_t batches = context->local_steps > 1 ? context->local_steps : 1;
    return (uint64_t)(context->step * batches + context->local_step) << 24 ^
           (uint64_t)context->replica << 4 ^ (uint64_t)context->round;
}

// Bound call: every shape known, every address set before it runs.
typedef struct bel_kernel_call bel_kernel_call;
typedef void bel_kernel_fn(const bel_kernel_call *call, int64_t tile);
struct bel_kernel_call {
    bel_op op;
    bel_kernel_fn *run;
    int64_t tile_count;    // a function of shapes only: docs/determinism.md. For a GPU: launches
    int64_t tile_elements; // > 0: tile t writes only these elements of output 0 from t ·
                           // tile_elements on, the last one the rest
    int input_count;
    int output_count;
    bel_tensor inputs[BEL_OP_MAX_INPUTS];
    bel_tensor outputs[BEL_OP_MAX_OUTPUTS];
    // Elements [n, c, h, w] are stored as [n, h, w, c]; only if the flag BEL_OP_CHANNELS or
    // BEL_OP_ELEMENTWISE allows it.
    bool inputs_last[BEL_OP_MAX_INPUTS];
    bool outputs_last[BEL_OP_MAX_OUTPUTS];
    // Elements of an f32 tensor are stored as bfloat16, and rounded to it when written; only if the
    // device supports it (bel_device_ops.takes_bf16).
    bool inputs_bf16[BEL_OP_MAX_INPUTS];
    bool outputs_bf16[BEL_OP_MAX_OUTPUTS];
    const void *params; // made by prepare, read-only during a run
    // Further calls around this one, or NULL. They share the workspace, whose contents last from
    // the first to the last. Only the last call of an operation has its outputs (and `run`, too, if
    // it writes some of them); only `before` and `run` have its inputs.
    bel_kernel_fn *before, *after;
    int64_t before_tiles, after_tiles;
    bool run_writes;
    // Bytes that `before` makes, once, of inputs that never change (bel_prepare.fixed). `before`
    // finds their place as its workspace, `run` as an input after the others. 0: unused.
    size_t packed_bytes;
    size_t workspace_bytes;
    void *workspace;
    int64_t work; // cost of `run`, in vector operations on an element; 0: as operands' elements
    bel_run_context *context;
    int index; // index of the instruction, for errors
    uint64_t random_id;
};

// Chooses run, tile_count and params for the shapes in `call`. `reference` requests the plain
// kernel.
typedef struct bel_prepare {
    const bel_attr_list *attrs;
    bel_arena *arena; // lives as long as the program: for params
    bool reference;
    bool openblas;         // multiply matrices by it (base/openblas.h, which is then open)
    bool fast_math;        // sums may have another order (bel_program_options)
    bel_gpu_math gpu_math; // multiplication on a GPU
    unsigned fixed;        // bits (1 << input): its elements never change between runs
    int threads;           // threads of the team; only for BELFRY_FAULT=threads2
    int64_t joined;        // requests in the batch, 1 … (bel_program_options)
} bel_prepare;
typedef void bel_prepare_fn(const bel_prepare *prepare, bel_kernel_call *call);

// Returns true if the plain kernel runs: it was requested, or these elements have no other.
static inline bool bel_prepares_plain(const bel_prepare *prepare, const bel_kernel_call *call)
{
    return prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32;
}

// Reports, from inside a kernel, an element outside [0, limit) or [low, limit); the first one is
// kept.
void bel_kernel_report(const bel_kernel_call *call, int64_t bad_value, int64_t limit);
void bel_kernel_report_range(const bel_kernel_call *call, int64_t bad_value, int64_t low,
                             int64_t limit);

// --- The table ----------------------------------------------------------------------------------

enum {
    BEL_OP_LEAF = 1,    // no kernel: fed from outside
    BEL_OP_INPLACE = 2, // output 0 may overlap input 0 when both have the same size
    BEL_OP_ALIAS = 4,   // output 0 is input 0 with another shape; no kernel
    BEL_OP_RANDOM = 8,  // depends on the run context's step and replica
    // Each operand may separately be channels-last: see call->inputs_last and outputs_last.
    BEL_OP_CHANNELS = 16,
    // Element i of the result depends only on elements i, if all operands have one shape.
    BEL_OP_ELEMENTWISE = 32,
    // Outputs after output 0 keep their precision in any mode: statistics, logarithms.
    BEL_OP_EXACT = 64,
    // So do its inputs and output 0 in its gradient, as those numbers belong to them.
    BEL_OP_EXACT_INPUTS = 128,
    // All replicas take part; no kernel (ops/collective.h).
    BEL_OP_COLLECTIVE = 256,
    // Used only in training: gradients, their losses, exchanges, statistics of batches. A library
    // that only runs models (BEL_INFERENCE) has neither shape rule nor kernels for it.
    BEL_OP_TRAINING = 512,
};

typedef struct bel_op_def {
    const char *name;   // ONNX name, or Belfry's own
    const char *domain; // "" for ONNX, "belfry" for operations that ONNX lacks
    int min_inputs;
    int max_inputs;
    int output_count;
    int flags;
    bel_infer_fn *infer;
    bel_prepare_fn *prepare;
} bel_op_def;

const bel_op_def *bel_op_get(bel_op op);

// Returns false if the operation uses only the shape of this input.
bool bel_op_reads(bel_op op, int input);

// Returns the input whose memory this output may have if both have the same size; -1: no input.
int bel_op_overwrites(bel_op op, const bel_attr_list *attrs, int output);

#endif
