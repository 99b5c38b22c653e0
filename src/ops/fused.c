// Fused: shape rule and kernel. A tile goes through its elements in blocks, and a block through all
// steps, so that intermediate results stay on the stack and in the first-level cache. Steps use the
// vector kernels of the operations, and an element depends on no other one, so neither blocks nor
// fusion changes the bits. There is no plain kernel, as reference programs are not fused. With a
// short row that repeats, a block is a multiple of the row.
#include "ops/fused.h"

#include "base/check.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"

bool bel_fused_can(bel_op op, const bel_spec *inputs, int input_count, const bel_spec *result)
{
    bel_vector_kernel kernel;
    if (inputs[0].dtype != BEL_DTYPE_F32 || result->dtype != BEL_DTYPE_F32) return false;
    if (input_count > 2 || !bel_vector_kernel_of(op, &kernel)) return false;
    bel_operand a = bel_operand_of(&inputs[0].shape, &result->shape);
    if (input_count == 1) return a == BEL_OPERAND_FULL;
    bel_operand b = bel_operand_of(&inputs[1].shape, &result->shape);
    if (kernel.binary == NULL) return a == BEL_OPERAND_FULL && b == BEL_OPERAND_FULL;
    return (a == BEL_OPERAND_FULL && b != BEL_OPERAND_OTHER) ||
           (a == BEL_OPERAND_SINGLE && b == BEL_OPERAND_FULL);
}

const bel_fused *bel_attr_fused(const bel_attr_list *attrs)
{
    return attrs->items[0].fused;
}

bel_status *bel_infer_fused(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    (void)attrs;
    out_outputs[0] = inputs[0];
    for (int i = 1; i < input_count; i++)
        BEL_TRY(
            bel_broadcast_shapes(&out_outputs[0].shape, &inputs[i].shape, &out_outputs[0].shape));
    return NULL;
}

// --- Kernel --------------------------------------------------------------------------------------

// Size of a block: all registers and some inputs fit the first-level cache. Registers are slightly
// more than a page apart, or loads from one would wait for stores to another.
enum { BLOCK = 1024, STRIDE = BLOCK + 96 };

typedef struct fused_params {
    int step_count;
    bel_fused_step steps[BEL_FUSED_STEPS];
    bel_vector_kernel kernels[BEL_FUSED_STEPS];
    bel_operand operands[BEL_OP_MAX_INPUTS];
} fused_params;

// Operands of the steps for one block.
typedef struct block {
    const bel_kernel_call *call;
    int64_t at, count;                        // elements of the result
    bel_repeated_row rows[BEL_OP_MAX_INPUTS]; // for inputs that are rows
    _Alignas(64) float registers[BEL_FUSED_REGISTERS][STRIDE];
} block;

static bel_operand kind_of(const fused_params *p, int operand)
{
    if (operand == BEL_FUSED_NUMBER) return BEL_OPERAND_SINGLE;
    return operand >= BEL_FUSED_REGISTER ? BEL_OPERAND_FULL : p->operands[operand];
}

// Returns the start of a step's operand for this block: the number itself, an intermediate block,
// or an input (a full one at the block's place, a single element or a row at its start).
static const float *operand_at(const fused_params *p, const block *b, int step, int i)
{
    const bel_fused_step *s = &p->steps[step];
    int operand = s->operands[i];
    if (operand == BEL_FUSED_NUMBER) return &s->number;
    if (operand >= BEL_FUSED_REGISTER) return b->registers[operand - BEL_FUSED_REGISTER];
    const float *data = b->call->inputs[operand].data;
    return p->operands[operand] == BEL_OPERAND_FULL ? data + b->at : data;
}

// Runs the step's kernel; one of two operands may be a single element or, as the second, a row.
static void run_step(const fused_params *p, const block *b, int step, float *y)
{
    const bel_fused_step *s = &p->steps[step];
    const bel_vector_kernel *kernel = &p->kernels[step];
    const float *first = operand_at(p, b, step, 0);
    if (kernel->unary != NULL) {
        kernel->unary(first, y, b->count);
    } else if (kernel->curve != NULL) {
        kernel->curve(first, (float)s->s, (float)s->t, y, b->count);
    } else if (kernel->curve_grad != NULL) {
        kernel->curve_grad(first, operand_at(p, b, step, 1), (float)s->s, (float)s->t, y, b->count);
    } else if (kind_of(p, s->operands[1]) == BEL_OPERAND_ROW) {
        bel_run_row(kernel->binary, first, &b->rows[s->operands[1]], b->at, y, b->count);
    } else {
        bel_cpu_binary_fn *run =
            kind_of(p, s->operands[1]) == BEL_OPERAND_SINGLE   ? kernel->binary_scalar
            : kind_of(p, s->operands[0]) == BEL_OPERAND_SINGLE ? kernel->scalar_binary
                                                               : kernel->binary;
        run(first, operand_at(p, b, step, 1), y, b->count);
    }
}

// Runs all steps on one block after another, so that intermediate results stay in the first-level
// cache. With rows a block is a multiple of each row's (repeated) length.
static void run_fused(const bel_kernel_call *call, int64_t tile)
{
    const fused_params *p = call->params;
    int64_t begin = bel_tile_begin(tile);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    block b; // large: unused members stay uninitialized
    b.call = call;
    int64_t most = BLOCK;
    for (int i = 0; i < call->input_count; i++) {
        if (p->operands[i] != BEL_OPERAND_ROW) continue;
        bel_repeat_row(call->inputs[i].data, bel_shape_elements(&call->inputs[i].shape),
                       end - begin, &b.rows[i]);
        if (b.rows[i].length < BLOCK) most = BLOCK / b.rows[i].length * b.rows[i].length;
    }
    for (b.at = begin; b.at < end; b.at += most) {
        b.count = end - b.at < most ? end - b.at : most;
        for (int s = 0; s < p->step_count - 1; s++)
            run_step(p, &b, s, b.registers[p->steps[s].target]);
        run_step(p, &b, p->step_count - 1, (float *)call->outputs[0].data + b.at);
    }
}

void bel_prepare_fused(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_fused *fused = bel_attr_fused(prepare->attrs);
    const bel_shape *result = &call->outputs[0].shape;
    fused_params *p = bel_arena_alloc(prepare->arena, sizeof *p);
    p->step_count = fused->step_count;
    for (int s = 0; s < fused->step_count; s++) {
        p->steps[s] = fused->steps[s];
        bool found = bel_vector_kernel_of(fused->steps[s].op, &p->kernels[s]);
        BEL_CHECK(found);
    }
    for (int i = 0; i < call->input_count; i++)
        p->operands[i] = bel_operand_of(&call->inputs[i].shape, result);
    call->run = run_fused;
    call->tile_count = bel_tiles_of(bel_shape_elements(result));
    call->work = bel_shape_elements(result) * (call->input_count + fused->step_count);
    call->params = p;
}
