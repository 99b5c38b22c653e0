// Fusion of element-wise operations. Nodes are visited from last to first. A node joins a group
// when all its readers are in this group. So no value inside is needed elsewhere, and the group can
// take the place of its last node.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ops/fused.h"
#include "ops/kernels/vector.h"
#include "passes/rewrite.h"

enum { UNREAD = -1, SEVERAL = -2 }; // values of reader_of that are no group

typedef struct fuse_group {
    int count;
    const bel_node *members[BEL_FUSED_STEPS]; // last one first
} fuse_group;

typedef struct fuser {
    const bel_graph *from;
    fuse_group *groups;
    size_t group_count, group_capacity;
    int *group_of;  // by node; -1: none
    int *reader_of; // by value: the group with all its readers, or a value above
} fuser;

// --- Group as one operation ----------------------------------------------------------------------

typedef struct fused_form {
    bel_fused fused;
    const bel_value *inputs[BEL_OP_MAX_INPUTS];
    int input_count;
} fused_form;

// The step that makes a value. Steps count in the order of execution, members from the last node:
// step s is member count - 1 - s. -1: another node makes the value.
static int step_of(const fuse_group *group, const bel_value *value)
{
    for (int s = 0; s < group->count; s++)
        if (group->members[group->count - 1 - s]->outputs[0] == value) return s;
    return -1;
}

// The last step that reads the result of step `step`.
static int last_reader(const fuse_group *group, int step)
{
    const bel_value *value = group->members[group->count - 1 - step]->outputs[0];
    for (int s = group->count - 1; s > step; s--) {
        const bel_node *reader = group->members[group->count - 1 - s];
        for (int i = 0; i < reader->input_count; i++)
            if (reader->inputs[i] == value) return s;
    }
    return step;
}

// The number of an input, added if new; -1: too many inputs.
static int input_number(fused_form *form, const bel_value *value)
{
    for (int i = 0; i < form->input_count; i++)
        if (form->inputs[i] == value) return i;
    if (form->input_count == BEL_OP_MAX_INPUTS) return -1;
    form->inputs[form->input_count] = value;
    return form->input_count++;
}

// Puts a constant number into its step, if the other operand has the shape of the result.
static bool take_number(const bel_node *node, int operand, bel_fused_step *step)
{
    const bel_value *value = node->inputs[operand];
    const bel_tensor *tensor = &value->node->constant;
    bool number = value->node->op == BEL_OP_CONSTANT && tensor->data != NULL &&
                  bel_shape_elements(&tensor->shape) == 1;
    if (!number || node->input_count != 2) return false;
    const bel_shape *other = &node->inputs[1 - operand]->spec.shape;
    if (!bel_shape_equal(other, &node->outputs[0]->spec.shape)) return false;
    bool single = bel_shape_elements(other) != 1; // else neither operand is marked as single
    if (single) memcpy(&step->number, tensor->data, sizeof step->number);
    return single;
}

// Assigns blocks to the results of steps. A block is free again after its last reader, which may
// overwrite it. False: too many inputs or blocks.
static bool form_of(const fuse_group *group, fused_form *form)
{
    int until[BEL_FUSED_REGISTERS], block_of[BEL_FUSED_STEPS];
    form->input_count = 0;
    form->fused.step_count = group->count;
    memset(until, 0xff, sizeof until); // -1: free from the first step
    for (int s = 0; s < group->count; s++) {
        const bel_node *node = group->members[group->count - 1 - s];
        bel_fused_step *step = &form->fused.steps[s];
        *step = (bel_fused_step){.op = node->op, .operands = {-1, -1}};
        bel_curve_numbers(node->op, &node->attrs, &step->s, &step->t);
        for (int i = 0; i < node->input_count; i++) {
            int before = step_of(group, node->inputs[i]);
            step->operands[i] = before >= 0                  ? BEL_FUSED_REGISTER + block_of[before]
                                : take_number(node, i, step) ? BEL_FUSED_NUMBER
                                                             : input_number(form, node->inputs[i]);
            if (step->operands[i] < 0) return false;
        }
        if (s == group->count - 1) break;
        while (step->target < BEL_FUSED_REGISTERS && until[step->target] > s)
            step->target++;
        if (step->target == BEL_FUSED_REGISTERS) return false;
        block_of[s] = step->target;
        until[step->target] = last_reader(group, s);
    }
    return true;
}

// --- Groups --------------------------------------------------------------------------------------

// Tries it on a copy: with one more member the group must still have a form.
static bool can_join(const fuser *f, const bel_node *node, int g)
{
    if (g < 0) return false;
    fuse_group group = f->groups[g];
    const bel_shape *result = &group.members[0]->outputs[0]->spec.shape;
    if (group.count == BEL_FUSED_STEPS || !bel_shape_equal(&node->outputs[0]->spec.shape, result))
        return false;
    fused_form form;
    group.members[group.count++] = node;
    return form_of(&group, &form);
}

// Below this size, separate steps on rows are 10 to 25 % faster (bench/fuse.c).
enum { ROW_ELEMENTS = 1 << 15 };

// Whether a node is element-wise, has a vector kernel for its operands, and is no row that is
// faster unfused.
static bool is_fusable(const bel_node *node)
{
    if ((bel_op_get(node->op)->flags & BEL_OP_ELEMENTWISE) == 0) return false;
    bel_spec inputs[BEL_OP_MAX_INPUTS];
    bel_input_specs(node, inputs);
    const bel_shape *result = &node->outputs[0]->spec.shape;
    bool row =
        node->input_count == 2 && bel_operand_of(&inputs[1].shape, result) == BEL_OPERAND_ROW;
    if (row && bel_shape_elements(result) < ROW_ELEMENTS) return false;
    return bel_fused_can(node->op, inputs, node->input_count, &node->outputs[0]->spec);
}

// Readers come after the nodes that they read. Going backwards, all readers have been seen, and
// reader_of says whether they are in one group.
static void fuser_visit(fuser *f, const bel_node *node)
{
    int g = -1;
    if (is_fusable(node)) {
        g = f->reader_of[node->outputs[0]->id];
        if (!can_join(f, node, g)) {
            g = (int)f->group_count++;
            f->groups = bel_xgrow(f->groups, &f->group_capacity, f->group_count, sizeof *f->groups);
            f->groups[g].count = 0;
        }
        f->groups[g].members[f->groups[g].count++] = node;
    }
    f->group_of[node->index] = g;
    for (int i = 0; i < node->input_count; i++) {
        int *reader = &f->reader_of[node->inputs[i]->id];
        *reader = g < 0 || (*reader != UNREAD && *reader != g) ? SEVERAL : g;
    }
}

// --- The new graph -------------------------------------------------------------------------------

// The result may overwrite the first input (BEL_OP_INPLACE), so that should be one that is not read
// afterwards.
static void put_dying_first(const fuser *f, int g, fused_form *form)
{
    int64_t elements = bel_shape_elements(&f->groups[g].members[0]->outputs[0]->spec.shape);
    int first = 0;
    while (first < form->input_count) {
        const bel_value *input = form->inputs[first];
        bool leaf = (bel_op_get(input->node->op)->flags & BEL_OP_LEAF) != 0;
        if (!leaf && f->reader_of[input->id] == g &&
            bel_shape_elements(&input->spec.shape) == elements)
            break;
        first++;
    }
    if (first == 0 || first == form->input_count) return;
    const bel_value *kept = form->inputs[0];
    form->inputs[0] = form->inputs[first];
    form->inputs[first] = kept;
    for (int s = 0; s < form->fused.step_count; s++) {
        for (int i = 0; i < 2; i++) {
            int *operand = &form->fused.steps[s].operands[i];
            *operand = *operand == 0 ? first : *operand == first ? 0 : *operand;
        }
    }
}

// Adds the group at the place of its last member, when all of its inputs exist.
static void add_group(const fuser *f, int g, bel_graph *to, bel_value **values)
{
    fused_form form;
    const bel_node *root = f->groups[g].members[0];
    bool fits = form_of(&f->groups[g], &form);
    BEL_CHECK(fits);
    put_dying_first(f, g, &form);
    bel_attr_list attrs = {.count = 1, .items = {{.name = "steps"}}};
    attrs.items[0].fused = bel_arena_copy(to->arena, &form.fused, sizeof form.fused);
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < form.input_count; i++)
        inputs[i] = values[form.inputs[i]->id];
    const bel_node *made =
        bel_graph_add_node(to, root->name, BEL_OP_FUSED, &attrs, inputs, form.input_count);
    BEL_CHECK(made != NULL);
    values[root->outputs[0]->id] = made->outputs[0];
}

// Copies a node. Inputs and variables were copied before (bel_copy_leaves).
static void copy_node(const bel_node *node, bel_graph *to, bel_value **values)
{
    bool there = node->op == BEL_OP_INPUT || node->op == BEL_OP_VARIABLE;
    if (there) return;
    bel_value *inputs[BEL_OP_MAX_INPUTS], *outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = values[node->inputs[i]->id];
    bel_copy_node(node, node->name, inputs, to, outputs);
    for (int i = 0; i < node->output_count; i++)
        values[node->outputs[i]->id] = outputs[i];
}

// Builds the new graph. `values`: by id in the old graph, the new value; NULL inside of groups,
// where no node reads it.
static bel_graph *rebuild(const fuser *f, const bool *needed, int *out_count, bel_value **values)
{
    const bel_graph *from = f->from;
    bel_graph *to = bel_graph_create();
    bel_shape *shapes = bel_xcalloc(from->input_count, sizeof *shapes);
    for (size_t i = 0; i < from->input_count; i++)
        shapes[i] = from->inputs[i].value->spec.shape;
    bel_copy_leaves(from, shapes, to, values);
    bel_free(shapes);
    for (size_t n = 0; n < from->node_count; n++) {
        if (!needed[n]) continue;
        const bel_node *node = from->nodes[n];
        int g = f->group_of[n];
        if (g < 0 || f->groups[g].count == 1) {
            copy_node(node, to, values);
        } else if (node == f->groups[g].members[0]) {
            add_group(f, g, to, values);
            *out_count += f->groups[g].count;
        }
    }
    return to;
}

bel_graph *bel_fuse(const bel_graph *from, bel_value *const *outputs, int output_count,
                    int *out_count, bel_value **out_values)
{
    fuser f = {.from = from,
               .group_of = bel_xcalloc(from->node_count, sizeof(int)),
               .reader_of = bel_xcalloc(from->value_count, sizeof(int))};
    bool *needed = bel_xcalloc(from->node_count, sizeof *needed);
    bel_graph_mark(from, outputs, output_count, needed);
    memset(f.group_of, 0xff, from->node_count * sizeof(int)); // -1
    for (size_t v = 0; v < from->value_count; v++)
        f.reader_of[v] = UNREAD;
    for (int i = 0; i < output_count; i++)
        f.reader_of[outputs[i]->id] = SEVERAL;
    for (size_t n = from->node_count; n-- > 0;)
        if (needed[n]) fuser_visit(&f, from->nodes[n]);
    bel_graph *to = rebuild(&f, needed, out_count, out_values);
    bel_free(needed);
    bel_free(f.groups);
    bel_free(f.group_of);
    bel_free(f.reader_of);
    return to;
}
