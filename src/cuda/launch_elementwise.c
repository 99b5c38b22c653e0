// Element-wise operations, single or as a chain (ops/fused.h). The source of the one kernel is
// generated here for the operations, types and operands of the call. So values between two steps
// stay in registers, and the compiler sees constants where possible. The functions of the steps are
// the CPU's (ops/kernels/elementwise.def), chosen in the same way: floats in float if an operation
// has a form for it, other non-integers in double, integers in int64_t. Element i of the result
// depends only on elements i and is written by the thread that reads them. So the result may
// overwrite an operand of its size. If all operands are floats of one shape, a thread processes
// four elements at a time. Operands of the result's shape, and the result, may be stored as bf16;
// then one overwrites another only if both are bf16.
#include <string.h>

#include "base/check.h"
#include "base/number.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/walk.h"
#include "ops/fused.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"

enum { WIDE = 4 }; // as in kernels/elements.h

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

// Forms of bel_element_get and bel_element_set_whole …: %s is the element, or the value.
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
    bel_str steps; // text of the steps, from values v0 … to the last r
    int last_step;
    bel_cuda_elements params;
    const char *kind;  // kind of the functions: f32, f64 or whole
    const char *value; // type in which steps compute
    const char *index; // int32_t if that suffices: its division takes a third of the time
} writer;

// Storage type of operand `i`, or of the result, -1.
static const char *stored_type(const writer *w, int i)
{
    if (i < 0 ? w->call->outputs_bf16[0] : w->call->inputs_bf16[i]) return "uint16_t";
    return type_of(i < 0 ? w->call->outputs[0].dtype : w->call->inputs[i].dtype);
}

static bel_operand operand_of(const writer *w, int i)
{
    return bel_operand_of(&w->call->inputs[i].shape, &w->call->outputs[0].shape);
}

// Element i of operand `k`, or of several at a time the j-th.
static void put_element(const writer *w, bel_str *text, int k, bool wide)
{
    const bel_operand operand = operand_of(w, k);
    if (operand == BEL_OPERAND_FULL && wide) {
        bel_str_printf(text, "w%d.v[j]", k);
    } else if (operand == BEL_OPERAND_FULL) {
        bel_str_printf(text, "x%d[i]", k);
    } else if (operand == BEL_OPERAND_SINGLE) {
        bel_str_printf(text, "x%d[0]", k);
    } else if (operand == BEL_OPERAND_ROW) {
        bel_str_printf(text, "x%d[i %% (%s)p.rows[%d]]", k, w->index, k);
    } else { // bel_fused_can excludes these
        bel_str_printf(text, "x%d[walk_place(&p.walk, %d, i)]", k, k);
    }
}

// Reads the operands, computes the steps, and writes element i.
static void put_body(const writer *w, bel_str *text, bool wide)
{
    const bel_kernel_call *call = w->call;
    for (int k = 0; k < call->input_count; k++) {
        bel_str element = {0};
        put_element(w, &element, k, wide);
        bel_str_printf(text, "        %s v%d = (%s)", w->value, k, w->value);
        put_form(text, call->inputs_bf16[k] ? "float_of(%s)" : read_form(call->inputs[k].dtype),
                 element.text);
        bel_str_puts(text, ";\n");
        bel_str_deinit(&element);
    }
    bel_str_puts(text, w->steps.text);
    char value[16];
    bel_snprintf(value, sizeof value, "r%d", w->last_step);
    bel_str_puts(text, wide ? "        wy.v[j] = " : "        y[i] = ");
    bool whole = strcmp(w->kind, "whole") == 0;
    put_form(text,
             call->outputs_bf16[0] ? "bfloat_of(%s)" : write_form(call->outputs[0].dtype, whole),
             value);
    bel_str_puts(text, ";\n");
}

// Whether several aligned elements can be processed at a time: floats of the result's shape, in
// either storage, or one for all.
static bool can_be_wide(const writer *w)
{
    bool wide = strcmp(w->kind, "f32") == 0;
    for (int k = 0; k < w->call->input_count; k++)
        wide = wide &&
               (operand_of(w, k) == BEL_OPERAND_FULL || operand_of(w, k) == BEL_OPERAND_SINGLE);
    return wide;
}

// Loop over WIDE elements a thread; the other loop does the rest, or all.
static void put_wide(const writer *w, bel_str *text)
{
    const bel_kernel_call *call = w->call;
    bel_str_puts(text, "    uintptr_t places = (uintptr_t)y");
    for (int k = 0; k < call->input_count; k++)
        if (operand_of(w, k) == BEL_OPERAND_FULL) bel_str_printf(text, " | (uintptr_t)x%d", k);
    bel_str_puts(text, ";\n    if (places % 16 == 0) done = p.count / WIDE * WIDE;\n"
                       "    for (int64_t at_w = THREAD; at_w < done / WIDE; at_w += THREADS) {\n");
    for (int k = 0; k < call->input_count; k++)
        if (operand_of(w, k) == BEL_OPERAND_FULL)
            bel_str_printf(text, "    wide_%s w%d = ((const wide_%s *)x%d)[at_w];\n",
                           stored_type(w, k), k, stored_type(w, k), k);
    bel_str_printf(text, "    wide_%s wy;\n    for (int j = 0; j < WIDE; j++) {\n",
                   stored_type(w, -1));
    put_body(w, text, true);
    bel_str_printf(text, "    }\n    ((wide_%s *)y)[at_w] = wy;\n    }\n", stored_type(w, -1));
}

// Writes the whole source.
static void put_source(writer *w, bel_str *text)
{
    const bel_kernel_call *call = w->call;
    bool plain = strcmp(w->kind, "f64") == 0;
    w->index = w->params.count <= INT32_MAX / 2 ? "int32_t" : "int64_t";
    bel_str_puts(text, plain ? "#define PLAIN\n" : "");
    bel_str_puts(text, "#include \"cuda/kernels/elements.h\"\n\n"
                       "KERNEL(elements, bel_cuda_elements)\n{\n");
    for (int k = 0; k < call->input_count; k++) {
        const bel_operand operand = operand_of(w, k);
        BEL_CHECK(operand != BEL_OPERAND_OTHER ||
                  (call->op != BEL_OP_FUSED && k < BEL_WALK_TENSORS));
        if (operand == BEL_OPERAND_ROW)
            w->params.rows[k] = bel_shape_elements(&call->inputs[k].shape);
        bel_str_printf(text, "    const %s *x%d = (const %s *)at.in[%d];\n", stored_type(w, k), k,
                       stored_type(w, k), k);
    }
    bel_str_printf(text, "    %s *y = (%s *)at.out[0];\n    int64_t done = 0;\n",
                   stored_type(w, -1), stored_type(w, -1));
    if (can_be_wide(w)) put_wide(w, text);
    bel_str_printf(text,
                   "    for (int64_t at_i = done + THREAD; at_i < p.count; at_i += THREADS) {\n"
                   "        %s i = (%s)at_i;\n",
                   w->index, w->index);
    put_body(w, text, false);
    bel_str_puts(text, "    }\n}\n");
}

// Step r`step` = the operation on two operands, given as names of values.
static void put_step(writer *w, int step, bel_op op, const char *a, const char *b)
{
    bel_str_printf(&w->steps, "        %s r%d = %s_%s(%s, %s, (%s)p.s[%d], (%s)p.t[%d]);\n",
                   w->value, step, w->kind, id_of(op), a, b, w->value, step, w->value, step);
    w->last_step = step;
}

static bel_status *elementwise_finish(bel_cuda_build *build, writer *w)
{
    bel_str text = {0};
    put_source(w, &text);
    int64_t threads = can_be_wide(w) ? (w->params.count + WIDE - 1) / WIDE : w->params.count;
    bel_status *status = bel_cuda_add_text(build, "an element-wise kernel", text.text, "elements",
                                           bel_cuda_blocks(threads), &w->params, sizeof w->params);
    bel_str_deinit(&text);
    bel_str_deinit(&w->steps);
    return status;
}

static writer writer_of(const bel_kernel_call *call)
{
    return (writer){.call = call,
                    .params = {.count = bel_shape_elements(&call->outputs[0].shape)},
                    .kind = "f32",
                    .value = "float"};
}

// Whether steps compute in float.
static bool is_by_floats(const bel_kernel_call *call)
{
    bel_vector_kernel kernel;
    bool floats = call->inputs[0].dtype == BEL_DTYPE_F32 && call->outputs[0].dtype == BEL_DTYPE_F32;
    return call->op == BEL_OP_FUSED ||
           (floats && (call->op == BEL_OP_CAST || bel_vector_kernel_of(call->op, &kernel)));
}

// --- Operations ----------------------------------------------------------------------------------

bel_status *bel_cuda_prepare_elementwise(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    bel_dtype from = call->inputs[0].dtype, to = call->outputs[0].dtype;
    writer w = writer_of(call);
    bool fast = is_by_floats(call);
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
    put_step(&w, 0, call->op, "v0", call->input_count > 1 ? "v1" : "0");
    return elementwise_finish(build, &w);
}

bel_status *bel_cuda_prepare_fused(bel_cuda_build *build)
{
    const bel_fused *fused = bel_attr_fused(build->prepare->attrs);
    writer w = writer_of(build->call);
    int made_by[BEL_FUSED_REGISTERS] = {0}; // the step whose result is in a register
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
    return elementwise_finish(build, &w);
}

void bel_cuda_elementwise_bf16(const bel_kernel_call *call, bel_bf16_operands *out)
{
    if (!is_by_floats(call)) return;
    out->outputs = 1;
    for (int i = 0; i < call->input_count; i++)
        if (bel_operand_of(&call->inputs[i].shape, &call->outputs[0].shape) == BEL_OPERAND_FULL)
            out->inputs |= 1u << i;
}
