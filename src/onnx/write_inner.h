// Conversion of a graph's node to nodes of a model.
#ifndef BELFRY_ONNX_WRITE_INNER_H
#define BELFRY_ONNX_WRITE_INNER_H

#include "graph/graph.h"
#include "onnx/emit.h"
#include "onnx/write.h"

// One node during its conversion.
typedef struct bel_onnx_writing {
    bel_onnx_emitter *emitter;
    const bel_onnx_source *source;
    const bel_node *node;
    const char *inputs[BEL_OP_MAX_INPUTS];
    const char *outputs[BEL_OP_MAX_OUTPUTS]; // names; NULL: no reader
    int output_count;                        // up to the last one that is read
} bel_onnx_writing;

// Writes the node as ONNX's operators in the graph itself. *out_done is false if ONNX has no
// equivalent.
bel_status *bel_onnx_write_plain(const bel_onnx_writing *w, bool *out_done) BEL_MUST_USE;

// The functions of domain "belfry" that a model calls, each once. Zero: empty.
typedef struct bel_onnx_functions {
    Onnx__FunctionProto **items; // free with bel_free
    char **keys;                 // by item; free each and the array with bel_free
    size_t count, capacity, key_capacity;
} bel_onnx_functions;

// Writes the node as a call of such a function. *out_done is false if the operation has none.
bel_status *bel_onnx_write_own(const bel_onnx_writing *w, bel_onnx_functions *functions,
                               bool *out_done) BEL_MUST_USE;
void bel_onnx_functions_deinit(bel_onnx_functions *functions);

// --- write_message.c: the model's parts around its nodes, in the arena ---------------------------

void bel_onnx_begin_model(Onnx__ModelProto *model, Onnx__GraphProto *graph, bel_arena *arena);
Onnx__ValueInfoProto *bel_onnx_port_message(bel_arena *arena, const char *name,
                                            const bel_spec *spec);
Onnx__OperatorSetIdProto *bel_onnx_opset_message(bel_arena *arena, const char *domain,
                                                 int64_t version);
Onnx__StringStringEntryProto *bel_onnx_entry_message(bel_arena *arena, const char *key,
                                                     const char *value);

// Packs the message piece by piece; constants that it points to are not copied. RESOURCE_EXHAUSTED:
// more than 2 GiB; then the sink has received nothing.
bel_status *bel_onnx_pack(Onnx__ModelProto *model, bel_arena *arena, bel_onnx_sink *sink,
                          void *context) BEL_MUST_USE;

// Inserts spaces into descriptions (doc_string) so that large elements of initializers are aligned
// to BEL_GRAPH_CONSTANT_ALIGNMENT in the packed model. A reader that maps the file then needs no
// copy.
void bel_onnx_align_elements(Onnx__ModelProto *model, bel_arena *arena);

// Returns the attribute's number, or `otherwise` if the node lacks it.
static inline double bel_onnx_attr_of(const bel_node *node, const char *name, double otherwise)
{
    return bel_attr_number(&node->attrs, name, otherwise);
}

#endif
