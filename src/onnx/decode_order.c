// Topological sort of nodes. ONNX requires sorted nodes, but not every file has them. A depth-first
// search from each node to the makers of its inputs finds the order. It is not recursive, because a
// chain may be as long as the file. Nodes with subgraphs come last where the file leaves a choice,
// because the outer values that a subgraph uses are not examined here.
#include "base/alloc.h"
#include "base/str.h"
#include "onnx/decode_inner.h"

enum { NEW, OPEN, PLACED };

typedef struct ordering {
    bel_decoder *decoder;
    Onnx__NodeProto *const *nodes;
    bel_names *names; // for outputs
    int *makers;      // by number of a name: its node
    char *states;     // by node
    size_t *next;     // by node: the next input to examine
    int *stack, *order;
    size_t depth, placed;
} ordering;

static void find_makers(ordering *o, size_t count)
{
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < o->nodes[i]->n_output; k++) {
            bool added;
            int number = bel_names_add(o->names, o->nodes[i]->output[k], &added);
            if (!added) continue; // made twice: reported where nodes are decoded
            o->makers = bel_xgrow(o->makers, &capacity, (size_t)number + 1, sizeof *o->makers);
            o->makers[number] = (int)i;
        }
    }
}

// Returns the node that makes an input; -1: omitted, or made by no node.
static int maker_of(const ordering *o, size_t node, size_t input)
{
    const char *text = o->nodes[node]->input[input];
    int id, number = text[0] == '\0' ? -1 : bel_names_find(o->names, text);
    return number < 0 || bel_decode_find(o->decoder, text, &id) ? -1 : o->makers[number];
}

static bool is_sorted(const ordering *o, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < o->nodes[i]->n_input; k++)
            if (maker_of(o, i, k) >= (int)i) return false;
    return true;
}

// Places a node after the nodes that it needs.
static bel_status *ordering_place(ordering *o, size_t root)
{
    if (o->states[root] == PLACED) return NULL;
    o->stack[o->depth++] = (int)root;
    while (o->depth > 0) {
        size_t node = (size_t)o->stack[o->depth - 1];
        o->states[node] = OPEN;
        if (o->next[node] == o->nodes[node]->n_input) {
            o->states[node] = PLACED;
            o->order[o->placed++] = (int)node;
            o->depth--;
            continue;
        }
        int maker = maker_of(o, node, o->next[node]++);
        if (maker < 0 || o->states[maker] == PLACED) continue;
        if (o->states[maker] == OPEN) {
            return BEL_ERR(
                BEL_DATA_LOSS,
                "nodes wait for each other in a circle: node %zu \"%.48s\" (%.40s) takes "
                "what follows from it",
                (size_t)maker, bel_decode_text(o->nodes[maker]->name),
                bel_decode_text(o->nodes[maker]->op_type));
        }
        o->stack[o->depth++] = maker;
    }
    return NULL;
}

static bool has_subgraph(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->type == BEL_ONNX_GRAPH) return true;
    return false;
}

static bel_status *ordering_sort(ordering *o, size_t count)
{
    o->states = bel_xcalloc(count + 1, sizeof *o->states);
    o->next = bel_xcalloc(count + 1, sizeof *o->next);
    o->stack = bel_xcalloc(count + 1, sizeof *o->stack);
    o->order = bel_xcalloc(count + 1, sizeof *o->order);
    bel_status *status = NULL;
    for (int subgraphs = 0; subgraphs < 2; subgraphs++)
        for (size_t i = 0; i < count && status == NULL; i++)
            if (has_subgraph(o->nodes[i]) == (subgraphs == 1)) status = ordering_place(o, i);
    bel_free(o->states);
    bel_free(o->next);
    bel_free(o->stack);
    return status;
}

bel_status *bel_decode_order(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             int **out_order)
{
    ordering o = {.decoder = d, .nodes = nodes, .names = bel_names_create()};
    find_makers(&o, count);
    bel_status *status = is_sorted(&o, count) ? NULL : ordering_sort(&o, count);
    bel_names_destroy(o.names);
    bel_free(o.makers);
    if (status != NULL) {
        bel_free(o.order);
        return status;
    }
    *out_order = o.order;
    return NULL;
}
