// Buffers and calls of a program under construction: operands, calls as the device prepares them,
// and their groups. program.c decides which calls there are and in which order.
#include "runtime/compiler.h"

#include "base/alloc.h"
#include "runtime/device.h"

int bel_compiler_buffer(bel_compiler *c, bel_location_kind kind, int index, size_t size)
{
    c->buffers =
        bel_xgrow(c->buffers, &c->buffer_capacity, c->buffer_count + 1, sizeof *c->buffers);
    c->usages = bel_xgrow(c->usages, &c->usage_capacity, c->buffer_count + 1, sizeof *c->usages);
    c->usages[c->buffer_count] =
        (bel_buffer_usage){.last_reader = -1, .read_in = -1, .written_in = -1};
    c->buffers[c->buffer_count] =
        (bel_program_buffer){.kind = kind, .index = index, .size_bytes = size, .first = -1};
    return (int)c->buffer_count++;
}

size_t bel_compiler_bytes(const bel_compiler *c, const bel_value *value)
{
    const bel_spec *spec = &c->specs[value->id];
    bel_dtype lies_as = c->bf16[value->id] ? BEL_DTYPE_BF16 : spec->dtype;
    return bel_tensor_bytes(&(bel_tensor){.dtype = lies_as, .shape = spec->shape});
}

bel_tensor bel_compiler_tensor(const bel_compiler *c, const bel_value *value)
{
    const bel_spec *spec = &c->specs[value->id];
    return (bel_tensor){.dtype = spec->dtype, .shape = spec->shape};
}

// Extends the life of a buffer, from the first to the last group that uses it.
static void touch(bel_compiler *c, int buffer, int group)
{
    if (c->buffers[buffer].first < 0) c->buffers[buffer].first = group;
    c->buffers[buffer].last = group;
}

// Whether a call must come after a group. A call overwrites a buffer only if it reads it; a
// workspace is read and written.
static bool depends(const bel_compiler *c, const bel_program_call *call, int group)
{
    bool any = call->workspace >= 0 && c->usages[call->workspace].written_in == group;
    for (int i = 0; i < call->call.input_count; i++)
        any = any || c->usages[call->input_buffers[i]].written_in == group;
    for (int i = 0; i < call->call.output_count; i++)
        any = any || c->usages[call->output_buffers[i]].read_in == group;
    return any;
}

// Records the buffers of a call that joins the group.
static void touch_all(bel_compiler *c, const bel_program_call *call, int group)
{
    for (int i = 0; i < call->call.input_count; i++) {
        touch(c, call->input_buffers[i], group);
        c->usages[call->input_buffers[i]].read_in = group;
    }
    for (int i = 0; i < call->call.output_count; i++) {
        touch(c, call->output_buffers[i], group);
        c->usages[call->output_buffers[i]].written_in = group;
    }
    if (call->workspace < 0) return;
    touch(c, call->workspace, group);
    c->usages[call->workspace].written_in = group;
}

// Puts the newest call into the last group, or into a new one.
static void join_group(bel_compiler *c)
{
    bel_program *program = c->program;
    const bel_program_call *made = &program->calls[program->call_count - 1];
    bool fits = program->group_count > program->prologue_groups && !c->options->no_groups &&
                !c->apart && !depends(c, made, program->group_count - 1);
    c->apart = false;
    if (!fits) {
        size_t count = (size_t)program->group_count + 1;
        program->groups =
            bel_xgrow(program->groups, &c->group_capacity, count, sizeof *program->groups);
        program->groups[program->group_count++] =
            (bel_program_group){.first = program->call_count - 1};
    }
    program->groups[program->group_count - 1].count++;
    touch_all(c, made, program->group_count - 1);
}

void bel_compiler_add(bel_compiler *c, const bel_program_call *call)
{
    bel_program *program = c->program;
    program->calls = bel_xgrow(program->calls, &c->call_capacity, (size_t)program->call_count + 1,
                               sizeof *program->calls);
    bel_program_call *made = &program->calls[program->call_count];
    *made = *call;
    made->name = bel_arena_strdup(program->arena, call->name);
    made->call.index = program->call_count++;
    join_group(c);
}

void bel_compiler_input(const bel_compiler *c, bel_program_call *made, const bel_value *value)
{
    int i = made->call.input_count++;
    made->input_buffers[i] = c->buffer_of[value->id];
    made->call.inputs[i] = bel_compiler_tensor(c, value);
    made->call.inputs_last[i] = c->last[value->id];
    made->call.inputs_bf16[i] = c->bf16[value->id];
}

void bel_compiler_output(const bel_compiler *c, bel_program_call *made, const bel_value *value)
{
    int i = made->call.output_count++;
    made->output_buffers[i] = c->buffer_of[value->id];
    made->call.outputs[i] = bel_compiler_tensor(c, value);
    made->call.outputs_last[i] = c->last[value->id];
    made->call.outputs_bf16[i] = c->bf16[value->id];
}

const bel_value *bel_compiler_copied_leaf(const bel_compiler *c, const bel_node *node, int i)
{
    const bel_bf16_operands *its = c->operands != NULL ? &c->operands[node->index] : NULL;
    if (its == NULL || !its->multiplies || (its->inputs >> i & 1) == 0) return NULL;
    const bel_value *root = bel_alias_root(node->inputs[i]);
    return (bel_op_get(root->node->op)->flags & BEL_OP_LEAF) != 0 ? root : NULL;
}

bel_program_call bel_compiler_describe(const bel_compiler *c, const bel_node *node)
{
    bel_program_call made = {.name = node->name, .workspace = -1};
    made.call.op = node->op;
    made.call.random_id = bel_node_random_id(node);
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *leaf = bel_compiler_copied_leaf(c, node, i);
        bel_compiler_input(c, &made, node->inputs[i]);
        if (leaf == NULL || c->bf16_copy[leaf->id] < 0) continue;
        made.input_buffers[i] = c->bf16_copy[leaf->id];
        made.call.inputs_bf16[i] = true;
    }
    for (int i = 0; i < node->output_count; i++)
        bel_compiler_output(c, &made, node->outputs[i]);
    return made;
}

bel_prepare bel_compiler_prepare(const bel_compiler *c, const bel_node *node, unsigned fixed)
{
    return (bel_prepare){.attrs = &node->attrs,
                         .arena = c->program->arena,
                         .reference = c->options->reference,
                         .openblas = c->options->openblas,
                         .gpu_math = c->options->gpu_math,
                         .fixed = fixed,
                         .fast_math = c->options->fast_math,
                         .threads = c->options->threads > 0 ? c->options->threads : 1,
                         .joined = c->options->joined > 0 ? c->options->joined : 1};
}

void bel_compiler_take(bel_compiler *c, const bel_node *node, bel_status *status)
{
    if (status != NULL)
        c->status = bel_status_wrap(status, __FILE__, __LINE__, "%s: %s on %s", node->name,
                                    bel_op_get(node->op)->name, c->program->device->name);
}

void bel_compiler_prepare_made(bel_compiler *c, const bel_node *node, bel_program_call *made,
                               unsigned fixed)
{
    bel_prepare prepare = bel_compiler_prepare(c, node, fixed);
    bel_device *device = c->program->device;
    if (c->status == NULL) // the program will not be used
        bel_compiler_take(c, node, device->ops->prepare(device, &prepare, &made->call));
}

bel_program_call bel_compiler_call(bel_compiler *c, const bel_node *node, unsigned fixed)
{
    bel_program_call made = bel_compiler_describe(c, node);
    bel_compiler_prepare_made(c, node, &made, fixed);
    return made;
}

unsigned bel_compiler_fixed(const bel_compiler *c, const bel_node *node)
{
    unsigned fixed = 0;
    for (int i = 0; i < node->input_count; i++)
        if (c->fixed[node->inputs[i]->node->index]) fixed |= 1u << i;
    return fixed;
}
