// Building of programs: chooses the nodes that are needed, the values that share memory, and the
// place of each buffer.
//
// A *buffer* is memory that holds one or more values: aliases (Reshape) and in-place results join
// the buffer of their input. A buffer is in the arena, or outside: an input, a variable, a
// constant, or an external output.
//
// With fixed variables, calls that depend only on variables come first: the *prologue*. Its results
// that other calls read are *resident*: in memory of the instance, which no other program uses.
//
// With collectives the calls come in *parts*, one for each exchange and one after the last. A node
// is in the first part in which all its inputs are available, so independent collectives are
// exchanged together. Within a part the order is the graph's.
//
// Calls form *groups*: runs of neighbors that do not depend on each other. A buffer's life starts
// and ends with whole groups, so calls of one group never share memory by accident.
#include "runtime/program.h"

#include <string.h>

#include "base/alloc.h"
#include "runtime/channels.h"
#include "runtime/compiler.h"
#include "runtime/cost.h"
#include "runtime/device.h"
#include "runtime/flow.h"
#include "runtime/program_inner.h"

// Puts the value into that buffer.
static void put_value(bel_compiler *c, const bel_value *value, int buffer)
{
    bel_buffer_usage *u = &c->usages[buffer];
    c->buffer_of[value->id] = buffer;
    u->reserved = u->reserved || c->reserved[value->id];
    if (c->last_reader[value->id] > u->last_reader) u->last_reader = c->last_reader[value->id];
}

// Inputs and variables are bound before a run, constants are in the graph: no leaf is in the arena.
static void place_leaf(bel_compiler *c, const bel_node *node)
{
    const bel_value *value = node->outputs[0];
    bel_location_kind kind = node->op == BEL_OP_INPUT      ? BEL_LOCATION_INPUT
                             : node->op == BEL_OP_VARIABLE ? BEL_LOCATION_VARIABLE
                                                           : BEL_LOCATION_CONSTANT;
    int buffer = bel_compiler_buffer(c, kind, node->leaf, bel_compiler_bytes(c, value));
    c->buffers[buffer].constant = node->constant.data;
    put_value(c, value, buffer);
}

// Returns the input that `node` may overwrite with output `output`, as no other node reads that
// memory afterwards; -1: no input.
static int overwritten_input(const bel_compiler *c, const bel_node *node, int output)
{
    int over = bel_op_overwrites(node->op, &node->attrs, output);
    if (over < 0 || c->options->no_reuse) return -1;
    const bel_value *input = node->inputs[over];
    int buffer = c->buffer_of[input->id];
    if (c->buffers[buffer].kind != BEL_LOCATION_ARENA) return -1;
    if (bel_compiler_bytes(c, input) != bel_compiler_bytes(c, node->outputs[output])) return -1;
    if (c->bf16[input->id] != c->bf16[node->outputs[output]->id]) return -1; // other sizes
    for (int i = 0; i < node->input_count; i++)
        if (i != over && c->buffer_of[node->inputs[i]->id] == buffer) return -1;
    const bel_buffer_usage *usage = &c->usages[buffer];
    return !usage->reserved && usage->last_reader <= c->position[node->index] ? over : -1;
}

// Places each result: in the caller's memory, the prologue's, an input's, or new room in the arena.
static void place_outputs(bel_compiler *c, const bel_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        const bel_value *value = node->outputs[i];
        int external = c->external_of[value->id];
        int over = external < 0 && !c->resident[value->id] ? overwritten_input(c, node, i) : -1;
        if (over >= 0) {
            put_value(c, value, c->buffer_of[node->inputs[over]->id]);
            continue;
        }
        bel_location_kind kind = external >= 0            ? BEL_LOCATION_OUTPUT
                                 : c->resident[value->id] ? BEL_LOCATION_RESIDENT
                                                          : BEL_LOCATION_ARENA;
        int index = external >= 0 ? external : 0;
        put_value(c, value, bel_compiler_buffer(c, kind, index, bel_compiler_bytes(c, value)));
    }
}

// Adds one to three calls: see bel_kernel_call.
static void add_stages(bel_compiler *c, const bel_program_call *whole)
{
    bel_program_call stage = *whole;
    if (whole->call.before != NULL) {
        stage.call.run = whole->call.before;
        stage.call.tile_count = whole->call.before_tiles;
        stage.call.tile_elements = stage.call.work = stage.call.output_count = 0;
        bel_compiler_add(c, &stage);
    }
    stage.call = whole->call;
    if (whole->call.after == NULL) {
        bel_compiler_add(c, &stage);
        return;
    }
    stage.call.tile_elements = 0;
    if (!whole->call.run_writes) stage.call.output_count = 0;
    bel_compiler_add(c, &stage);
    stage.call = whole->call;
    stage.call.run = whole->call.after;
    stage.call.tile_count = whole->call.after_tiles;
    stage.call.work = stage.call.input_count = 0;
    bel_compiler_add(c, &stage);
}

// Adds the calls of a node. A packed input comes after the others, and needs no call before.
static void program_emit(bel_compiler *c, const bel_node *node)
{
    int packed = c->packed[node->index];
    bel_compiler_emit_bf16_copies(c, node, false);
    bel_program_call made =
        bel_compiler_call(c, node, packed < 0 ? 0 : bel_compiler_fixed(c, node));
    bel_kernel_call *call = &made.call;
    if (packed >= 0) {
        int i = call->input_count++;
        made.input_buffers[i] = packed;
        call->inputs[i] =
            (bel_tensor){.dtype = BEL_DTYPE_U8, .shape = BEL_SHAPE((int64_t)call->packed_bytes)};
        call->before = NULL;
    }
    if (call->workspace_bytes > 0) {
        made.workspace = bel_compiler_buffer(c, BEL_LOCATION_ARENA, 0, call->workspace_bytes);
    }
    add_stages(c, &made);
}

static void run_copy(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    memcpy(call->outputs[0].data, call->inputs[0].data, bel_tensor_bytes(&call->inputs[0]));
}

static void run_nothing(const bel_kernel_call *call, int64_t tile)
{
    (void)call, (void)tile;
}

// The caller owns an external output once it is published, so all other readers must come before.
// An empty instruction after them counts as its writer.
static void emit_hand_over(bel_compiler *c, int output)
{
    bel_program_call made = {.name = "publish output", .workspace = -1};
    made.call.tile_count = 1;
    made.call.run = run_nothing;
    bel_compiler_output(c, &made, c->outputs[output].value);
    bel_compiler_add(c, &made);
}

// Copies an external output that no kernel could write in place: a leaf, or a value that is already
// placed elsewhere. Comes at the end.
static void emit_copy(bel_compiler *c, int output)
{
    const bel_value *value = c->outputs[output].value;
    bel_program_call made = {.name = "copy to output", .workspace = -1};
    made.call.tile_count = 1;
    made.call.run = run_copy;
    bel_compiler_input(c, &made, value);
    bel_compiler_output(c, &made, value);
    made.output_buffers[0] =
        bel_compiler_buffer(c, BEL_LOCATION_OUTPUT, output, bel_compiler_bytes(c, value));
    bel_compiler_add(c, &made);
}

// Collectives are neighbors at the end of their part. The first one opens the exchange, and the
// call after the last one starts another group.
static void emit_collective(bel_compiler *c, const bel_node *node)
{
    bel_program *program = c->program;
    int index = bel_collective_read(node->op, &node->attrs).index;
    bel_program_exchange *exchange = &program->exchanges[program->exchange_of[index]];
    bool opens = exchange->end_call == 0;
    c->apart = opens;
    program_emit(c, node);
    if (opens) {
        exchange->first_call = program->call_count - 1;
        exchange->first_group = program->group_count - 1;
    }
    exchange->end_call = program->call_count;
    exchange->end_group = program->group_count;
}

// Emits the nodes of the prologue, or all others.
static void emit_nodes(bel_compiler *c, bool prologue)
{
    bool exchanging = false;
    for (size_t i = 0; i < c->graph->node_count; i++) {
        int n = c->order[i];
        const bel_node *node = c->graph->nodes[n];
        if (!c->needed[n] || c->fixed[n] != prologue) continue;
        bool collective = bel_op_is_collective(node->op);
        if (exchanging && !collective) c->apart = true;
        exchanging = collective;
        int flags = bel_op_get(node->op)->flags;
        if ((flags & BEL_OP_LEAF) != 0) {
            place_leaf(c, node);
        } else if ((flags & BEL_OP_ALIAS) != 0) {
            put_value(c, node->outputs[0], c->buffer_of[node->inputs[0]->id]);
        } else {
            place_outputs(c, node);
            if (collective) {
                emit_collective(c, node);
            } else {
                program_emit(c, node);
            }
        }
    }
}

// --- All calls -----------------------------------------------------------------------------------

// Places an exchange that the passes have emptied between its neighbors.
static void close_exchanges(bel_program *program)
{
    bel_program_exchange next = {program->call_count, program->call_count, program->group_count,
                                 program->group_count};
    for (int e = program->exchange_count; e-- > 0;) {
        bel_program_exchange *exchange = &program->exchanges[e];
        if (exchange->end_call == 0)
            *exchange = (bel_program_exchange){next.first_call, next.first_call, next.first_group,
                                               next.first_group};
        next = *exchange;
    }
}

// The prologue comes first. A group never spans its end (see join_group).
static void emit_all(bel_compiler *c)
{
    bel_compiler_find_prologue(c);
    emit_nodes(c, true);
    bel_compiler_emit_packings(c);
    for (size_t n = 0; n < c->graph->node_count; n++)
        if (c->needed[n]) bel_compiler_emit_bf16_copies(c, c->graph->nodes[n], true);
    c->program->prologue_calls = c->program->call_count;
    c->program->prologue_groups = c->program->group_count;
    emit_nodes(c, false);
    close_exchanges(c->program);
    c->apart = c->program->exchange_count > 0; // the last part starts
}

// Sets the buffer from which each output is read.
static void finish_outputs(bel_compiler *c)
{
    bel_program *program = c->program;
    program->outputs = bel_xcalloc((size_t)c->output_count, sizeof *program->outputs);
    program->output_count = c->output_count;
    for (int i = 0; i < c->output_count; i++) {
        const bel_value *value = c->outputs[i].value;
        int buffer = c->buffer_of[value->id];
        bool in_place =
            c->buffers[buffer].kind == BEL_LOCATION_OUTPUT && c->buffers[buffer].index == i;
        if (c->outputs[i].external && !in_place && program->device->in_place) {
            emit_copy(c, i);
            buffer = program->calls[program->call_count - 1].output_buffers[0];
        }
        program->outputs[i] = (bel_program_result){.tensor = bel_compiler_tensor(c, value),
                                                   .buffer = buffer,
                                                   .external = c->outputs[i].external};
        bool stays = !c->outputs[i].external || !program->device->in_place;
        if (stays) c->buffers[buffer].last = INT32_MAX; // readable after the run
    }
    for (int i = 0; program->device->in_place && i < c->output_count; i++) {
        const bel_buffer_usage *u = &c->usages[program->outputs[i].buffer];
        if (c->outputs[i].external && u->read_in > u->written_in) emit_hand_over(c, i);
    }
}

// Sets each group's for_team, by its cost.
static void finish_groups(bel_program *program)
{
    for (int g = 0; g < program->group_count; g++) {
        bel_program_group *group = &program->groups[g];
        int64_t cost_ns = 0;
        for (int i = group->first; i < group->first + group->count; i++) {
            program->calls[i].first_tile = group->tile_count;
            group->tile_count += program->calls[i].call.tile_count;
            cost_ns += bel_cost_ns(&program->calls[i].call);
        }
        group->for_team = cost_ns >= BEL_COST_HAND_OVER_NS;
    }
}

// Orders nodes by part, with collectives last in theirs, and otherwise as in the graph. So a node
// comes after its inputs. Nodes that are not needed may come anywhere.
static void find_order(bel_compiler *c)
{
    size_t count = c->graph->node_count, next = 0;
    int parts = c->program->exchange_count + 1;
    int *part = bel_xcalloc(count, sizeof *part);
    for (size_t n = 0; n < count; n++) {
        const bel_node *node = c->graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            const bel_node *from = node->inputs[i]->node;
            int since = part[from->index] + bel_op_is_collective(from->op);
            if (since > part[n]) part[n] = since;
        }
        if (c->needed[n] && bel_op_is_collective(node->op))
            part[n] = c->program->exchange_of[bel_collective_read(node->op, &node->attrs).index];
        if (part[n] >= parts) part[n] = parts - 1; // not needed
    }
    for (int p = 0; p < 2 * parts; p++)
        for (size_t n = 0; n < count; n++) {
            bool last = bel_op_is_collective(c->graph->nodes[n]->op);
            if (part[n] != p / 2 || last != (p % 2 == 1)) continue;
            c->position[n] = (int)next;
            c->order[next++] = (int)n;
        }
    bel_free(part);
}

static void find_readers(bel_compiler *c)
{
    for (size_t i = 0; i < c->graph->node_count; i++) {
        const bel_node *node = c->graph->nodes[c->order[i]];
        for (int k = 0; c->needed[node->index] && k < node->input_count; k++)
            c->last_reader[node->inputs[k]->id] = (int)i;
    }
}

// Finds outputs that a node can write directly: the node that makes the value, or the value that it
// is an alias of. If several outputs are the same value, the first one is chosen. A device whose
// outputs are not bound copies them instead.
static void find_external(bel_compiler *c)
{
    if (!bel_program_binds_outputs(c->program)) return;
    for (int i = c->output_count; i-- > 0;)
        if (c->outputs[i].external) c->external_of[bel_alias_root(c->outputs[i].value)->id] = i;
}

// Emits calls first and plans memory last: a plan needs the groups that use each buffer, and an
// asynchronous one the edges between calls.
static bel_status *program_compile(bel_compiler *c, const bel_shape *input_shapes)
{
    BEL_TRY(bel_graph_verify(c->graph));
    BEL_TRY(bel_graph_infer(c->graph, input_shapes, c->specs));
    for (int i = 0; i < c->output_count; i++)
        if (!c->outputs[i].external || !c->program->device->in_place)
            c->reserved[c->outputs[i].value->id] = true;
    bel_value **values = bel_output_values(c->outputs, c->output_count);
    bel_graph_mark(c->graph, values, c->output_count, c->needed);
    bel_free(values);
    c->program->exchanges =
        bel_xcalloc((size_t)c->program->exchange_count, sizeof *c->program->exchanges);
    find_order(c);
    find_readers(c);
    find_external(c);
    if (!c->options->reference) {
        bel_channels_last(c->graph, c->needed, c->specs, c->outputs, c->output_count, c->last);
    }
    bel_compiler_find_bf16(c);
    if (c->status != NULL) return c->status;
    emit_all(c);
    if (c->status != NULL) return c->status;
    finish_outputs(c);
    finish_groups(c->program);
    c->program->buffers = c->buffers;
    c->program->buffer_count = (int)c->buffer_count;
    if (c->options->asynchronous) {
        c->program->flow = bel_flow_create(c->program, c->options->threads);
    }
    bel_program_plan_memory(c->program, c->buffers, c->buffer_count, c->options->no_reuse);
    c->buffers = NULL; // the program owns them
    return NULL;
}

bel_status *bel_program_build(const bel_graph *graph, const bel_shape *input_shapes,
                              const bel_program_output *outputs, int output_count,
                              const bel_program_options *options, bel_program *program)
{
    bel_compiler c = {.graph = graph,
                      .outputs = outputs,
                      .output_count = output_count,
                      .options = options,
                      .program = program,
                      .specs = bel_xcalloc(graph->value_count, sizeof(bel_spec)),
                      .needed = bel_xcalloc(graph->node_count, sizeof(bool)),
                      .order = bel_xcalloc(graph->node_count, sizeof(int)),
                      .position = bel_xcalloc(graph->node_count, sizeof(int)),
                      .buffer_of = bel_xcalloc(graph->value_count, sizeof(int)),
                      .last_reader = bel_xcalloc(graph->value_count, sizeof(int)),
                      .external_of = bel_xcalloc(graph->value_count, sizeof(int)),
                      .reserved = bel_xcalloc(graph->value_count, sizeof(bool)),
                      .last = bel_xcalloc(graph->value_count, sizeof(bool)),
                      .bf16 = bel_xcalloc(graph->value_count, sizeof(bool)),
                      .bf16_copy = bel_xcalloc(graph->value_count, sizeof(int)),
                      .fixed = bel_xcalloc(graph->node_count, sizeof(bool)),
                      .resident = bel_xcalloc(graph->value_count, sizeof(bool)),
                      .packed = bel_xcalloc(graph->node_count, sizeof(int))};
    for (size_t n = 0; n < graph->node_count; n++)
        c.packed[n] = -1;
    for (size_t v = 0; v < graph->value_count; v++)
        c.buffer_of[v] = c.last_reader[v] = c.external_of[v] = c.bf16_copy[v] = -1;
    bel_status *status = program_compile(&c, input_shapes);
    bel_free(c.specs);
    bel_free(c.needed);
    bel_free(c.order);
    bel_free(c.position);
    bel_free(c.buffer_of);
    bel_free(c.last_reader);
    bel_free(c.external_of);
    bel_free(c.reserved);
    bel_free(c.last);
    bel_free(c.bf16);
    bel_free(c.bf16_copy);
    bel_free(c.operands);
    bel_free(c.fixed);
    bel_free(c.resident);
    bel_free(c.packed);
    bel_free(c.buffers);
    bel_free(c.usages);
    return status;
}

void bel_program_destroy(bel_program *program)
{
    if (program == NULL) return;
    bel_recomputed_deinit(&program->recomputed);
    bel_rewritten_deinit(&program->rewritten);
    bel_arena_destroy(program->arena);
    bel_free(program->calls);
    bel_free(program->groups);
    bel_free(program->buffers);
    bel_free(program->outputs);
    bel_free(program->exchange_of);
    bel_free(program->exchanges);
    bel_flow_destroy(program->flow);
    bel_free(program);
}

bel_value **bel_output_values(const bel_program_output *outputs, int output_count)
{
    bel_value **values = bel_xcalloc((size_t)output_count + 1, sizeof *values);
    for (int i = 0; i < output_count; i++)
        values[i] = outputs[i].value;
    return values;
}
