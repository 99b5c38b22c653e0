// Tables from operations to vector kernels, made of elementwise.def; entries are places plus one,
// so that 0 means no row. An operand is classified by its count of elements: with the result's
// count it also has the result's order, whatever dimensions of 1 it has. Short rows are written out
// several times, so that a kernel is called for longer runs. Kernels work element by element, so
// the lengths of runs do not change the bits.
#include "ops/kernels/vector.h"

#include <math.h>
#include <string.h>

// Place in the tables of bel_cpu_kernels, plus one; 0: absent.
static const int binary_of[BEL_OP_COUNT] = {
#define BINARY(id, f32, plain) [BEL_OP_##id] = 1 + BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
};
static const int unary_of[BEL_OP_COUNT] = {
#define UNARY(id, f32, plain) [BEL_OP_##id] = 1 + BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
};
static const int curve_of[BEL_OP_COUNT] = {
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain)                                \
    [BEL_OP_##id] = 1 + BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
};
static const int curve_grad_of[BEL_OP_COUNT] = {
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    [BEL_OP_##id] = 1 + BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
};

bool bel_vector_kernel_of(bel_op op, bel_vector_kernel *out_kernel)
{
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    *out_kernel = (bel_vector_kernel){.binary = NULL};
    int binary = binary_of[op] - 1;
    if (binary >= 0) {
        out_kernel->binary = cpu->binary[binary];
        out_kernel->binary_scalar = cpu->binary_scalar[binary];
        out_kernel->scalar_binary = cpu->scalar_binary[binary];
    }
    if (unary_of[op] > 0) out_kernel->unary = cpu->unary[unary_of[op] - 1];
    if (curve_of[op] > 0) out_kernel->curve = cpu->curve[curve_of[op] - 1];
    if (curve_grad_of[op] > 0) out_kernel->curve_grad = cpu->curve_grad[curve_grad_of[op] - 1];
    return binary_of[op] + unary_of[op] + curve_of[op] + curve_grad_of[op] > 0;
}

void bel_curve_numbers(bel_op op, const bel_attr_list *attrs, double *out_s, double *out_t)
{
    static const struct {
        const char *s_name, *t_name;
        double s, t;
    } numbers[BEL_OP_COUNT] = {
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain)                                \
    [BEL_OP_##id] = {s_name, t_name, s_default, t_default},
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    CURVE(id, s_name, s_default, t_name, t_default, f32, plain)
#include "ops/kernels/elementwise.def"
    };
    *out_s = *out_t = 0;
    if (numbers[op].s_name == NULL) return;
    *out_s = bel_attr_number(attrs, numbers[op].s_name, numbers[op].s);
    *out_t = bel_attr_number(attrs, numbers[op].t_name, numbers[op].t);
}

// --- Operands ------------------------------------------------------------------------------------

// Returns true if `small` is `large` without some of its leading dimensions.
static bool is_suffix(const bel_shape *small, const bel_shape *large)
{
    if (small->rank > large->rank) return false;
    return memcmp(small->dims, large->dims + (large->rank - small->rank),
                  (size_t)small->rank * sizeof small->dims[0]) == 0;
}

bel_operand bel_operand_of(const bel_shape *operand, const bel_shape *result)
{
    int64_t have = bel_shape_elements(operand), elements = bel_shape_elements(result);
    if (have == elements) return BEL_OPERAND_FULL;
    if (have == 1) return BEL_OPERAND_SINGLE;
    return have > 0 && is_suffix(operand, result) ? BEL_OPERAND_ROW : BEL_OPERAND_OTHER;
}

void bel_repeat_row(const float *row, int64_t length, int64_t elements, bel_repeated_row *out)
{
    int64_t room = sizeof out->room / sizeof out->room[0];
    if (room > elements) room = elements;
    out->row = row;
    out->length = length;
    if (2 * length > room) return;
    memcpy(out->room, row, (size_t)length * sizeof *row);
    for (int64_t whole = room / length * length; out->length < whole;) {
        int64_t more = out->length < whole - out->length ? out->length : whole - out->length;
        memcpy(out->room + out->length, out->room, (size_t)more * sizeof *row);
        out->length += more;
    }
    out->row = out->room;
}

void bel_run_row(bel_cpu_binary_fn *run, const float *a, const bel_repeated_row *row, int64_t at,
                 float *y, int64_t n)
{
    int64_t column = at % row->length;
    for (int64_t done = 0; done < n; column = 0) {
        int64_t count = row->length - column < n - done ? row->length - column : n - done;
        run(a + done, row->row + column, y + done, count);
        done += count;
    }
}
