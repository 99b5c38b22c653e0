// What an operation is: a row in ops.def, a shape rule and kernels. Families (math.c, matmul.c …)
// implement rows; op_table.c gathers them. The row's gradient rule is made of other operations, so
// it belongs to a room above the graph: autodiff/rules.h.
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

// An attribute, under its ONNX name.
typedef struct bel_attr {
    const char *name;       // static
    double number;          // integers too, up to 2^53
    bel_shape ints;         // lists
    const bel_fused *fused; // of the operation Fused; lives as long as the graph
} bel_attr;

typedef struct bel_attr_list {
    int count;
    bel_attr items[BEL_OP_MAX_ATTRS];
} bel_attr_list;

// Of products and convolutions: what comes out goes through Relu. Passes put it there.
#define BEL_ATTR_RELU "relu"

double bel_attr_number(const bel_attr_list *attrs, const char *name, double otherwise);
const bel_shape *bel_attr_ints(const bel_attr_list *attrs, const char *name); // NULL: not there

// A whole number, cut off and held to ±2^53 whatever the attribute says; NaN is 0.
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

// Reads specs and attributes, fills out_outputs. Dimensions may be open (negative). Errors say what
// was expected and got; the caller puts the operation's name in front.
typedef bel_status *bel_infer_fn(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs);

// --- Kernels ------------------------------------------------------------------------------------

// What differs from run to run. `error` collects the first data error of a run.
typedef struct bel_run_context {
    uint64_t seed;
    int64_t step;
    int64_t replica;
    int64_t round;
    int traced_as;     // in traces of devices: 1 + the worker whose run it is; 0: in none …
    int tower;         // … and which of its towers
    atomic_int error;  // 0, or 1 + index of the instruction that met bad data
    int64_t bad_value; // which is not in [bad_low, bad_limit)
    int64_t bad_low, bad_limit;
} bel_run_context;

// The counter under which random operations draw: another one for each step, replica and round.
static inline uint64_t bel_run_place(const bel_run_context *context)
{
    return (uint64_t)context->step << 24 ^ (uint64_t)context->replica << 4 ^
           (uint64_t)context->round;
}

// A bound call: every shape known, every address set before it runs.
typedef struct bel_kernel_call bel_kernel_call;
typedef void bel_kernel_fn(const bel_kernel_call *call, int64_t tile);
struct bel_kernel_call {
    bel_op op;
    bel_kernel_fn *run;
    int64_t tile_count;    // a function of shapes only: docs/determinism.md. Of a card: launches
    int64_t tile_elements; // > 0: tile t writes these elements of output 0 from t · tile_elements
                           // on, the last one the rest, and nothing else
    int input_count;
    int output_count;
    bel_tensor inputs[BEL_OP_MAX_INPUTS];
    bel_tensor outputs[BEL_OP_MAX_OUTPUTS];
    // Elements [n, c, h, w] lie in memory as [n, h, w, c]; only where the flag BEL_OP_CHANNELS or
    // BEL_OP_ELEMENTWISE allows it.
    bool inputs_last[BEL_OP_MAX_INPUTS];
    bool outputs_last[BEL_OP_MAX_OUTPUTS];
    // Elements of an f32 tensor lie in memory as bfloat16, and are rounded to it when written; only
    // where the device says that it takes them so (bel_device_ops.takes_halves).
    bool inputs_half[BEL_OP_MAX_INPUTS];
    bool outputs_half[BEL_OP_MAX_OUTPUTS];
    const void *params; // made by prepare, read-only while running
    // Further calls around this one, NULL where there are none. They share the workspace, whose
    // content lasts from the first to the last. Only the last call of an operation has its outputs
    // (and `run`, too, where it writes some of them), only `before` and `run` have its inputs.
    bel_kernel_fn *before, *after;
    int64_t before_tiles, after_tiles;
    bool run_writes;
    // So many bytes `before` makes of inputs that stay as they are (bel_prepare.fixed), and once:
    // it finds their place as its workspace, `run` as an input behind the others. 0: none.
    size_t packed_bytes;
    size_t workspace_bytes;
    void *workspace;
    int64_t work; // of `run`, in vector operations on one element; 0: as many as operands' elements
    bel_run_context *context;
    int index; // of the instruction, for errors
    uint64_t random_id;
};

// Chooses run, tile_count and params for the shapes in `call`. `reference` asks for the plain
// kernel.
typedef struct bel_prepare {
    const bel_attr_list *attrs;
    bel_arena *arena; // lives as long as the program: for params
    bool reference;
    bool openblas;         // multiplies matrices (base/openblas.h, which is open then)
    bool fast_math;        // sums may be made in another order (bel_program_options)
    bel_gpu_math gpu_math; // how a card multiplies
    unsigned fixed;        // bits (1 << input): its elements stay as they are from run to run
    int threads; // of the team that will run it; only BELFRY_FAULT=threads2 may look at it
} bel_prepare;
typedef void bel_prepare_fn(const bel_prepare *prepare, bel_kernel_call *call);

// Whether the plain kernel runs: it was asked for, or these elements have no other.
static inline bool bel_prepares_plain(const bel_prepare *prepare, const bel_kernel_call *call)
{
    return prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32;
}

// Reports from inside a kernel an element that is not in [0, limit) or not in [low, limit); the
// first one wins.
void bel_kernel_report(const bel_kernel_call *call, int64_t bad_value, int64_t limit);
void bel_kernel_report_range(const bel_kernel_call *call, int64_t bad_value, int64_t low,
                             int64_t limit);

// --- The table ----------------------------------------------------------------------------------

enum {
    BEL_OP_LEAF = 1,    // no kernel: fed from outside
    BEL_OP_INPLACE = 2, // output 0 may lie over input 0 when both have the same size
    BEL_OP_ALIAS = 4,   // output 0 is input 0 with another shape; no kernel
    BEL_OP_RANDOM = 8,  // depends on the run context's step and replica
    // Each operand may be channels-last on its own: call->inputs_last and outputs_last say which.
    BEL_OP_CHANNELS = 16,
    // Element i of the result depends on elements i alone, if all operands have one shape.
    BEL_OP_ELEMENTWISE = 32,
    // What it makes beside output 0 is kept as it is whatever the precision: statistics,
    // logarithms.
    BEL_OP_EXACT = 64,
    // And so are its inputs and output 0, as its gradient sees them: those numbers belong to them.
    BEL_OP_EXACT_INPUTS = 128,
    // All replicas take part; no kernel (ops/collective.h).
    BEL_OP_COLLECTIVE = 256,
    // Training alone makes it: gradients, losses of their own, exchanges, statistics of batches. A
    // library that only runs models (BEL_INFERENCE) has neither shape rule nor kernels for it.
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
    const char *doc;
} bel_op_def;

const bel_op_def *bel_op_get(bel_op op);

// False: the operation looks at the shape of this input, never at its elements.
bool bel_op_reads(bel_op op, int input);

#endif
