// The graph as the rooms behind the builder see it. Nodes stand in the order in which they were
// built, which is a topological order.
#ifndef BELFRY_GRAPH_GRAPH_H
#define BELFRY_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/index.h"
#include "base/str.h"
#include "belfry/graph.h"
#include "ops/collective.h"
#include "ops/op.h"

typedef struct bel_node bel_node;

enum { BEL_GRAPH_MAX_SCOPES = 64, BEL_GRAPH_MAX_NAME = 320 }; // a name with its closing 0

// No value has more: so products of sizes fit, whoever wrote the shapes. Open dimensions count as
// 1.
#define BEL_GRAPH_MAX_ELEMENTS (INT64_C(1) << 48)

struct bel_value {
    bel_graph *graph;
    bel_node *node; // that makes it
    int output;     // which of the node's outputs
    int id;         // index into graph->values
    bel_spec spec;  // dimensions may be open
};

struct bel_node {
    bel_op op;
    int index;  // into graph->nodes
    int leaf;   // INPUT: index into graph->inputs; VARIABLE: into graph->variables
    char *name; // "scope/Gemm_12", unique
    bel_attr_list attrs;
    int input_count;
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int output_count;
    bel_value *outputs[BEL_OP_MAX_OUTPUTS];
    bel_tensor constant; // CONSTANT: elements owned by the graph, or by another one (a view)
};

typedef struct bel_graph_variable {
    char *name;
    bel_value *value; // of values of replicas: all of them
    bel_value *read;  // what bel_variable gives for it
    bel_initializer initializer;
    bel_variable_kind kind;
    bel_value *assigned;   // what a state variable is assigned, or NULL
    const float *elements; // with which it begins, in place of the initializer's; NULL: those
} bel_graph_variable;

typedef struct bel_graph_input {
    char *name;
    bel_value *value;
    int lookup; // that feeds it, plus one; 0: it is the caller's
} bel_graph_input;

typedef struct bel_graph_table {
    char *name;
    int width;
    bel_initializer initializer;
    int first_lookup, last_lookup; // in their order, chained by bel_graph_lookup.next; -1: none
} bel_graph_table;

// Rows are fed like an input: whoever runs the graph looks them up.
typedef struct bel_graph_lookup {
    int table;
    int ids, rows; // inputs
    int next;      // lookup in the same table; -1: none
} bel_graph_lookup;

// Where a collective was called.
typedef struct bel_graph_collective {
    bel_op op;
    char *file;
    int line;
    bool gradient; // it is the gradient of the one that was called there
} bel_graph_collective;

struct bel_graph {
    bel_arena *arena;
    bel_node **nodes;
    bel_value **values;
    bel_graph_variable *variables;
    bel_graph_input *inputs;
    bel_graph_table *tables;
    bel_graph_lookup *lookups;
    bel_graph_collective *collectives;
    int replica_count; // that exchange with each other; 0 is 1
    int kept_replicas; // that variables have values of; 0 is replica_count
    size_t node_count, node_capacity;
    size_t value_count, value_capacity;
    size_t variable_count, variable_capacity;
    size_t input_count, input_capacity;
    size_t table_count, table_capacity;
    size_t lookup_count, lookup_capacity;
    size_t collective_count, collective_capacity;
    bel_index variable_names, input_names, table_names;
    char scope[256];
    int scope_starts[BEL_GRAPH_MAX_SCOPES]; // where each of the open ones begins in `scope`
    int scope_count;
    struct bel_attached *attached; // what goes with the graph
    bel_code error_code;           // BEL_OK until something fails
    char *error;
};

// Hands over what must live as long as the graph: `release` is called when that goes.
void bel_graph_attach(bel_graph *graph, void *owner, void (*release)(void *owner));

// As bel_graph_add (ops/op.h), for rewriting: under a name of its own (NULL: the usual one), and a
// constant whose elements are not copied and must outlive the graph.
bel_node *bel_graph_add_node(bel_graph *graph, const char *name, bel_op op,
                             const bel_attr_list *attrs, bel_value *const *inputs, int input_count);
bel_value *bel_graph_add_view(bel_graph *graph, const char *name, const bel_tensor *tensor);

// A node of another graph in this one, by its name: sets out_values[node->output_count]; the
// elements of a constant are not copied. Leaves but constants are the caller's.
void bel_graph_copy_node(bel_graph *graph, const bel_node *node, bel_value *const *inputs,
                         bel_value **out_values);

// At least of what bel_constant copies: vectors of a level then cross no lines of the cache.
enum { BEL_GRAPH_CONSTANT_ALIGNMENT = 64 };

// A variable under its full name, which is new, and of exactly this shape: bel_variable without
// what it does for values of replicas. Sticky errors.
bel_value *bel_graph_add_variable(bel_graph *graph, const char *full, const bel_shape *shape,
                                  bel_initializer initializer, bel_variable_kind kind);

// Whether steps assign to such a variable; whether each replica has a value of its own.
static inline bool bel_variable_is_state(bel_variable_kind kind)
{
    return kind >= BEL_VARIABLE_STATE_MEAN;
}
static inline bool bel_variable_is_kept_by_replica(bel_variable_kind kind)
{
    return kind >= BEL_VARIABLE_REPLICA;
}

// The name of a variable or table in the scope that is open. False, with an error that sticks: it
// is too long.
bool bel_graph_full_name(bel_graph *graph, const char *name, char out_full[BEL_GRAPH_MAX_NAME]);

// Adds any operation; used by builders, gradient rules and ONNX import. Sticky errors as in
// belfry/graph.h.
bel_value *bel_graph_add(bel_graph *graph, bel_op op, const bel_attr_list *attrs,
                         bel_value *const *inputs, int input_count);

// Output `output` of the operation that makes `value`. Implemented by the graph room.
bel_value *bel_graph_output(const bel_value *value, int output);

// Marks by index the nodes that any of the values depends on.
void bel_graph_mark(const bel_graph *graph, bel_value *const *values, int count, bool *out_needed);

// Specs of all values when the inputs have the given closed shapes, in the order of graph->values.
// Errors: a shape rule refuses, or a dimension stays open; names the node.
bel_status *bel_graph_infer(const bel_graph *graph, const bel_shape *input_shapes,
                            bel_spec *out_specs) BEL_MUST_USE;

// Checks that the graph is well formed: order, arities, ownership, specs as the rules say.
// INTERNAL when it is not: a defect of whoever built or rewrote it.
bel_status *bel_graph_verify(const bel_graph *graph) BEL_MUST_USE;

// The value whose memory `value` shares by being a chain of aliases of it; often itself.
const bel_value *bel_alias_root(const bel_value *value);

bel_value *bel_graph_find_input(const bel_graph *graph, const char *name); // NULL: not there

// Indices by full name, -1: not there.
int bel_graph_find_variable(const bel_graph *graph, const char *name);
int bel_graph_find_table(const bel_graph *graph, const char *name);

// Ids that one example has for a lookup; -1: it depends on the example.
int64_t bel_graph_lookup_ids(const bel_graph *graph, const bel_graph_lookup *lookup);

// The lookup that feeds an input, or NULL: the input is the caller's.
const bel_graph_lookup *bel_graph_lookup_of(const bel_graph *graph, int input);

// Adds a collective, whose index is filled in; with `gradient_of` that of the one of this index,
// else called at file:line. Sticky errors.
bel_value *bel_graph_add_collective(bel_graph *graph, bel_collective what, bel_value *value,
                                    const char *file, int line);
bel_value *bel_graph_add_collective_gradient(bel_graph *graph, bel_collective what,
                                             bel_value *value, int gradient_of);

// What a collective is and where it was called, for messages: "AllReduce called at model.c:12".
enum { BEL_COLLECTIVE_TEXT = 256 };
const char *bel_graph_collective_text(const bel_graph *graph, int index,
                                      char text[BEL_COLLECTIVE_TEXT]);

// Appends the collectives in their order, a line each: "AllReduce of f32 [24] (0, 0), called at
// model.c:12". The numbers are the reduction and the source. Graphs with equal lines exchange
// without an error; of two others the first line that differs names the calls.
void bel_graph_write_collectives(const bel_graph *graph, bel_str *out);

// In which exchange each collective takes part, by index: -1 where none of `values` depends on it.
// All those of which none waits for another are one exchange, so a collective's is the number of
// exchanges that it must wait for. Gives the number of exchanges.
int bel_graph_exchanges(const bel_graph *graph, bel_value *const *values, int count,
                        int *out_exchanges);

// A stable number for random operations: a hash of the node's name.
uint64_t bel_node_random_id(const bel_node *node);

#endif
