// Internal view of the graph, for all code except model functions. Nodes are in the order of their
// creation, which is topological.
#ifndef BELFRY_GRAPH_GRAPH_H
#define BELFRY_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/index.h"
#include "belfry/graph.h"
#include "ops/collective.h"
#include "ops/op.h"

typedef struct bel_str bel_str; // base/str.h
typedef struct bel_node bel_node;

enum { BEL_GRAPH_MAX_SCOPES = 64, BEL_GRAPH_MAX_NAME = 320 }; // a name with its closing 0

// Maximal elements of a value, so that products of sizes fit for any source of shapes. Open
// dimensions count as 1.
#define BEL_GRAPH_MAX_ELEMENTS (INT64_C(1) << 48)

struct bel_value {
    bel_graph *graph;
    bel_node *node; // node that makes it
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
    bel_tensor constant; // CONSTANT: elements owned by the graph, or elsewhere (a view)
};

typedef struct bel_graph_variable {
    char *name;
    bel_value *value; // with values of replicas: all of them
    bel_value *read;  // result of bel_variable for it
    bel_initializer initializer;
    bel_variable_kind kind;
    bel_value *assigned;   // value assigned to a state variable, or NULL
    const float *elements; // initial elements, instead of the initializer's; NULL: unset
} bel_graph_variable;

typedef struct bel_graph_input {
    char *name;
    bel_value *value;
    int lookup; // lookup that feeds it, plus one; 0: fed by the caller
} bel_graph_input;

typedef struct bel_graph_table {
    char *name;
    int width;
    bel_initializer initializer;
    int first_lookup, last_lookup; // in order, chained by bel_graph_lookup.next; -1: empty
} bel_graph_table;

// Rows are an input: the code that runs the graph looks them up.
typedef struct bel_graph_lookup {
    int table;
    int ids, rows; // inputs
    int next;      // lookup in the same table; -1: last
} bel_graph_lookup;

// Call of a collective.
typedef struct bel_graph_collective {
    bel_op op;
    char *file;
    int line;
    bool gradient; // true for the gradient of the one that was called there
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
    int replica_count; // replicas that exchange with each other; 0 is 1
    int kept_replicas; // for values of replicas in variables; 0 is replica_count
    size_t node_count, node_capacity;
    size_t value_count, value_capacity;
    size_t variable_count, variable_capacity;
    size_t input_count, input_capacity;
    size_t table_count, table_capacity;
    size_t lookup_count, lookup_capacity;
    size_t collective_count, collective_capacity;
    bel_index variable_names, input_names, table_names;
    char scope[256];
    int scope_starts[BEL_GRAPH_MAX_SCOPES]; // beginnings of the open ones in `scope`
    int scope_count;
    struct bel_attached *attached; // objects that the graph owns
    bel_code error_code;           // BEL_OK until something fails
    char *error;
};

// Attaches an object that must live as long as the graph: `release` is called when the graph is
// freed.
void bel_graph_attach(bel_graph *graph, void *owner, void (*release)(void *owner));

// Takes ownership of a status: an error becomes the graph's. Returns true if there was none.
bool bel_graph_ok(bel_graph *graph, bel_status *status);

// Like bel_graph_add (ops/op.h), for rewriting: under a given name (NULL: the usual one), and the
// elements of a constant are not copied and must outlive the graph.
bel_node *bel_graph_add_node(bel_graph *graph, const char *name, bel_op op,
                             const bel_attr_list *attrs, bel_value *const *inputs, int input_count);
bel_value *bel_graph_add_view(bel_graph *graph, const char *name, const bel_tensor *tensor);

// Copies a node of another graph, with its name: sets out_values[node->output_count]. The elements
// of a constant are not copied. The caller makes all leaves except constants.
void bel_graph_copy_node(bel_graph *graph, const bel_node *node, bel_value *const *inputs,
                         bel_value **out_values);

// Minimal alignment of elements that bel_constant copies: vectors of any level then cross no cache
// lines.
enum { BEL_GRAPH_CONSTANT_ALIGNMENT = 64 };

// Adds a variable under its full, new name, of exactly this shape: bel_variable without the
// handling of values of replicas. Sticky errors.
bel_value *bel_graph_add_variable(bel_graph *graph, const char *full, const bel_shape *shape,
                                  bel_initializer initializer, bel_variable_kind kind);

// Returns true if steps assign to such a variable.
static inline bool bel_variable_is_state(bel_variable_kind kind)
{
    return kind >= BEL_VARIABLE_STATE_MEAN;
}
// Returns true if each replica has a separate value.
static inline bool bel_variable_is_kept_by_replica(bel_variable_kind kind)
{
    return kind >= BEL_VARIABLE_REPLICA;
}

// Makes the name of a variable or table in the current scope. False, with a sticky error: it is too
// long.
bool bel_graph_full_name(bel_graph *graph, const char *name, char out_full[BEL_GRAPH_MAX_NAME]);

// Adds any operation; used by builders, gradient rules and ONNX import. Sticky errors as in
// belfry/graph.h.
bel_value *bel_graph_add(bel_graph *graph, bel_op op, const bel_attr_list *attrs,
                         bel_value *const *inputs, int input_count);

// Returns output `output` of the operation that makes `value`. Defined in graph/.
bel_value *bel_graph_output(const bel_value *value, int output);

// Marks by index the nodes that any of the values depends on.
void bel_graph_mark(const bel_graph *graph, bel_value *const *values, int count, bool *out_needed);

// Computes the specs of all values when the inputs have the given closed shapes, in the order of
// graph->values. Errors: a shape rule fails, or a dimension stays open; names the node.
bel_status *bel_graph_infer(const bel_graph *graph, const bel_shape *input_shapes,
                            bel_spec *out_specs) BEL_MUST_USE;

// Checks that the graph is well formed: order, arities, ownership, specs as the rules say. INTERNAL
// if it is not: a defect of the code that built or rewrote it.
bel_status *bel_graph_verify(const bel_graph *graph) BEL_MUST_USE;

// Returns the value whose memory `value` shares as a chain of its aliases; often `value` itself.
const bel_value *bel_alias_root(const bel_value *value);

bel_value *bel_graph_find_input(const bel_graph *graph, const char *name); // NULL: absent

// Return indices by full name, -1: absent.
int bel_graph_find_variable(const bel_graph *graph, const char *name);
int bel_graph_find_table(const bel_graph *graph, const char *name);

// Returns the ids that one example has for a lookup; -1: it depends on the example.
int64_t bel_graph_lookup_ids(const bel_graph *graph, const bel_graph_lookup *lookup);

// Returns the lookup that feeds an input, or NULL: the caller feeds the input.
const bel_graph_lookup *bel_graph_lookup_of(const bel_graph *graph, int input);

// Adds a collective, and fills in its index; with `gradient_of` as the gradient of the one with
// this index, else as called at file:line. Sticky errors.
bel_value *bel_graph_add_collective(bel_graph *graph, bel_collective what, bel_value *value,
                                    const char *file, int line);
bel_value *bel_graph_add_collective_gradient(bel_graph *graph, bel_collective what,
                                             bel_value *value, int gradient_of);

// Describes a collective and its call, for messages: "AllReduce called at model.c:12".
enum { BEL_COLLECTIVE_TEXT = 256 };
const char *bel_graph_collective_text(const bel_graph *graph, int index,
                                      char text[BEL_COLLECTIVE_TEXT]);

// Appends the collectives in their order, a line each: "AllReduce of f32 [24] (0, 0), called at
// model.c:12". The numbers are the reduction and the source. Graphs with equal lines exchange
// without an error; for two others the first different line names the calls.
void bel_graph_write_collectives(const bel_graph *graph, bel_str *out);

// Assigns collectives to exchanges, by index: -1 if no value of `values` depends on it. All
// independent collectives form one exchange, so a collective's number is the number of exchanges
// that must precede it. Returns the number of exchanges.
int bel_graph_exchanges(const bel_graph *graph, bel_value *const *values, int count,
                        int *out_exchanges);

// Returns a stable number for random operations: a hash of the node's name.
uint64_t bel_node_random_id(const bel_node *node);

#endif
