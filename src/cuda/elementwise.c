// Element-wise operations, alone or as a chain (ops/fused.h): one kernel, whose source is written
// here for the operations, types and operands at hand, so that what lies between two steps stays in
// a register and a card's compiler sees constants where it can. The functions of the steps are the
// CPU's own (ops/kernels/elementwise.def), by the same choice: floats in float where an operation
// has a form for it, what else is no integer in double, integers in int64_t. Element i of the
// result depends on elements i alone and is written by the thread that reads them, so the result
// may lie over an operand of its size.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/walk.h"
#include "ops/fused.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"

_Static_assert((int)BEL_CUDA_STEPS == (int)BEL_FUSED_STEPS, "the steps of a chain");

static const char *id_of(bel_op op)
{
    static const char *const ids[BEL_OP_COUNT] = {
#define OP(id, name, domain, min_inputs, max_inputs, outputs, flags, infer, gradient, prepare,     \
           doc)                                                                                    \
#id,
#include "ops/ops.def"
#undef OP
    };
    return ids[op];
}

static const char *type_of(bel_dtype dtype)
{
    switch (dtype) {
    case BEL_DTYPE_F32: return "float";
    case BEL_DTYPE_F64: return "double";
    case BEL_DTYPE_I32: return "int32_t";
    case BEL_DTYPE_I64: return "int64_t";
    case BEL_DTYPE_F16:
    case BEL_DTYPE_BF16: return "uint16_t";
    default: return "uint8_t";
    }
}

// As bel_element_get and bel_element_set_whole …: %s is the element, or the value.
static const char *read_form(bel_dtype dtype)
{
    if (dtype == BEL_DTYPE_F16) return "bel_half_get(%s)";
    return dtype == BEL_DTYPE_BF16 ? "bel_bfloat_get(%s)" : "%s";
}

static const char *write_form(bel_dtype dtype, bool whole)
{
    switch (dtype) {
    case BEL_DTYPE_F32: return "(float)(%s)";
    case BEL_DTYPE_F64: return "%s";
    case BEL_DTYPE_I32:
        return whole ? "(int32_t)(%s)" : "(int32_t)bel_whole_of(%s, INT32_MIN, INT32_MAX)";
    case BEL_DTYPE_I64: return whole ? "%s" : "bel_whole_of(%s, INT64_MIN, INT64_MAX)";
    case BEL_DTYPE_BOOL: return "(%s) != 0";
    case BEL_DTYPE_F16: return "bel_half_make(%s)";
    case BEL_DTYPE_BF16: return "bel_bfloat_make(%s)";
    default: return whole ? "(uint8_t)(%s)" : "(uint8_t)bel_whole_of(%s, 0, UINT8_MAX)";
    }
}

static void put_form(bel_str *text, const char *form, const char *inner)
{
    const char *gap = strstr(form, "%s");
    bel_str_append(text, form, (size_t)(gap - form));
    bel_str_puts(text, inner);
    bel_str_puts(text, gap + 2);
}

// --- Source --------------------------------------------------------------------------------------

typedef struct writer {
    const bel_kernel_call *call;
    bel_str text;
    bel_cuda_elements params;
    const char *kind;  // of functions: f32, f64 or whole
    const char *value; // type that steps compute in
} writer;

// What every source begins with: the operands.
static void begin(writer *w)
{
    const bel_kernel_call *call = w->call;
    bool plain = strcmp(w->kind, "f64") == 0;
    bel_str_puts(&w->text, plain ? "#define PLAIN\n" : "");
    bel_str_printf(&w->text, "#include \"cuda/kernels/elements.h\"\n\n"
                             "KERNEL(elements, bel_cuda_elements)\n{\n");
    for (int i = 0; i < call->input_count; i++) {
        const char *type = type_of(call->inputs[i].dtype);
        bel_str_printf(&w->text, "    const %s *x%d = (const %s *)at.in[%d];\n", type, i, type, i);
    }
    const char *type = type_of(call->outputs[0].dtype);
    bel_str_printf(&w->text, "    %s *y = (%s *)at.out[0];\n", type, type);
    // Indices of 32 bits are divided in a third of the time.
    const char *index = w->params.count <= INT32_MAX / 2 ? "int32_t" : "int64_t";
    bel_str_printf(&w->text,
                   "    for (int64_t at_i = THREAD; at_i < p.count; at_i += THREADS) {\n"
                   "        %s i = (%s)at_i;\n",
                   index, index);
    for (int i = 0; i < call->input_count; i++) {
        bel_operand operand = bel_operand_of(&call->inputs[i].shape, &call->outputs[0].shape);
        char element[64];
        if (operand == BEL_OPERAND_FULL) {
            bel_snprintf(element, sizeof element, "x%d[i]", i);
        } else if (operand == BEL_OPERAND_SINGLE) {
            bel_snprintf(element, sizeof element, "x%d[0]", i);
        } else if (operand == BEL_OPERAND_ROW) {
            w->params.rows[i] = bel_shape_elements(&call->inputs[i].shape);
            bel_snprintf(element, sizeof element, "x%d[i %% (%s)p.rows[%d]]", i, index, i);
        } else { // bel_fused_can has none of these
            BEL_CHECK(call->op != BEL_OP_FUSED && i < BEL_WALK_TENSORS);
            bel_snprintf(element, sizeof element, "x%d[walk_place(&p.walk, %d, i)]", i, i);
        }
        bel_str_printf(&w->text, "        %s v%d = (%s)", w->value, i, w->value);
        put_form(&w->text, read_form(call->inputs[i].dtype), element);
        bel_str_puts(&w->text, ";\n");
    }
}

static void end(writer *w, int step)
{
    char value[16];
    bel_snprintf(value, sizeof value, "r%d", step);
    bel_str_puts(&w->text, "        y[i] = ");
    put_form(&w->text, write_form(w->call->outputs[0].dtype, strcmp(w->kind, "whole") == 0), value);
    bel_str_puts(&w->text, ";\n    }\n}\n");
}

// Result r`step` of two operands, which are names of values.
static void put_step(writer *w, int step, bel_op op, const char *a, const char *b)
{
    bel_str_printf(&w->text, "        %s r%d = %s_%s(%s, %s, (%s)p.s[%d], (%s)p.t[%d]);\n",
                   w->value, step, w->kind, id_of(op), a, b, w->value, step, w->value, step);
}

static bel_status *finish(bel_cuda_build *build, writer *w)
{
    bel_status *status =
        bel_cuda_add_text(build, "an element-wise kernel", w->text.text, "elements",
                          bel_cuda_blocks(w->params.count), &w->params, sizeof w->params);
    bel_str_deinit(&w->text);
    return status;
}

static writer writer_of(const bel_kernel_call *call)
{
    return (writer){.call = call,
                    .params = {.count = bel_shape_elements(&call->outputs[0].shape)},
                    .kind = "f32",
                    .value = "float"};
}

// --- Operations ----------------------------------------------------------------------------------

bel_status *bel_cuda_prepare_elementwise(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    bel_dtype from = call->inputs[0].dtype, to = call->outputs[0].dtype;
    writer w = writer_of(call);
    bel_vector_kernel kernel;
    bool fast = from == BEL_DTYPE_F32 && to == BEL_DTYPE_F32 && call->op != BEL_OP_CAST &&
                bel_vector_kernel_of(call->op, &kernel);
    bool whole = bel_element_is_whole(from) && bel_element_is_whole(to);
    if (whole) {
        w.kind = "whole";
        w.value = "int64_t";
    } else if (!fast) {
        w.kind = "f64";
        w.value = "double";
    }
    bel_curve_numbers(call->op, build->prepare->attrs, &w.params.s[0], &w.params.t[0]);
    w.params.walk =
        bel_cuda_walk_broadcast(&call->outputs[0].shape, call->inputs, call->input_count);
    begin(&w);
    put_step(&w, 0, call->op, "v0", call->input_count > 1 ? "v1" : "0");
    end(&w, 0);
    return finish(build, &w);
}

bel_status *bel_cuda_prepare_fused(bel_cuda_build *build)
{
    const bel_fused *fused = bel_attr_fused(build->prepare->attrs);
    writer w = writer_of(build->call);
    int made_by[BEL_FUSED_REGISTERS] = {0}; // the step whose result a register has
    begin(&w);
    for (int s = 0; s < fused->step_count; s++) {
        const bel_fused_step *step = &fused->steps[s];
        char names[2][24] = {"0", "0"};
        for (int i = 0; i < 2 && step->operands[i] >= 0; i++) {
            int operand = step->operands[i];
            if (operand == BEL_FUSED_NUMBER) {
                bel_snprintf(names[i], sizeof names[i], "p.numbers[%d]", s);
            } else if (operand >= BEL_FUSED_REGISTER) {
                bel_snprintf(names[i], sizeof names[i], "r%d",
                             made_by[operand - BEL_FUSED_REGISTER]);
            } else {
                bel_snprintf(names[i], sizeof names[i], "v%d", operand);
            }
        }
        w.params.numbers[s] = step->number;
        w.params.s[s] = step->s;
        w.params.t[s] = step->t;
        put_step(&w, s, step->op, names[0], names[1]);
        if (s < fused->step_count - 1) made_by[step->target] = s;
    }
    end(&w, fused->step_count - 1);
    return finish(build, &w);
}
