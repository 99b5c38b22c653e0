// Names of values become numbers. A subgraph is decoded where its node is, and so is the body of a
// function. A name in subgraph number 3 is stored as "3\1name", and is looked up from the inside
// out. A name in a function is stored as "4\2call/name". It sees nothing outside except the
// function's parameters, which are aliases of the call's arguments.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "onnx/decode_inner.h"

enum { SUBGRAPH_MARK = '\1', FUNCTION_MARK = '\2' };

bel_status *bel_decode_count(size_t count, const char *what)
{
    if (count <= INT_MAX / 2) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "%zu %s are too many", count, what);
}

const char *bel_onnx_node_label(const bel_onnx_node *node, char label[BEL_ONNX_LABEL])
{
    const char *dot = node->domain[0] == '\0' ? "" : ".";
    bel_snprintf(label, BEL_ONNX_LABEL, "node %d \"%.48s\" (%.40s%s%.40s)", node->index, node->name,
                 node->domain, dot, node->op);
    return label;
}

static const char *scoped(bel_decoder *d, const bel_decode_scope *in, const char *text)
{
    if (in == NULL) return text;
    char *name = in->call == NULL
                     ? bel_strf("%d%c%s", in->number, SUBGRAPH_MARK, text)
                     : bel_strf("%d%c%s/%s", in->number, FUNCTION_MARK, in->label, text);
    const char *kept = bel_arena_strdup(d->model->arena, name);
    bel_free(name);
    return kept;
}

const char *bel_decode_plain_name(const char *text, bool *out_inner)
{
    const char *subgraph = strrchr(text, SUBGRAPH_MARK), *function = strrchr(text, FUNCTION_MARK);
    *out_inner = subgraph != NULL;
    return subgraph != NULL ? subgraph + 1 : function != NULL ? function + 1 : text;
}

bool bel_decode_find(bel_decoder *d, const char *text, int *out_id)
{
    for (const bel_decode_scope *in = d->scope;; in = in->outer) {
        int number = bel_names_find(d->values, scoped(d, in, text));
        if (number >= 0) {
            int id = d->states[number].id;
            *out_id = id;
            if (id < 0 || d->states[id].made) return true;
        }
        if (in == NULL || in->call != NULL) return false;
    }
}

// Returns the number of a name in this graph.
static int number_of(bel_decoder *d, const char *text)
{
    bool added;
    int number = bel_names_add(d->values, scoped(d, d->scope, text), &added);
    if (added) {
        d->states = bel_xgrow(d->states, &d->state_capacity, (size_t)number + 1, sizeof *d->states);
        d->states[number] = (bel_decode_value){.id = number};
    }
    return number;
}

int bel_decode_id(bel_decoder *d, const char *text)
{
    int number = number_of(d, text); // may move the list
    return d->states[number].id;
}

bool bel_decode_make(bel_decoder *d, int id)
{
    if (id < 0 || d->states[id].made) return false;
    d->states[id].made = true;
    return true;
}

void bel_decode_alias(bel_decoder *d, const char *text, int id, bool made)
{
    int number = number_of(d, text);
    d->states[number].id = id;
    if (id >= 0 && made) d->states[id].made = true;
}

bel_status *bel_decode_usable(const bel_decoder *d, int id)
{
    if (id >= d->model->initializer_count) return NULL;
    const bel_onnx_initializer_entry *entry = &d->model->initializers[id];
    if (entry->refused == NULL) return NULL;
    return BEL_ERR(bel_status_code(entry->refused), "initializer \"%s\": %s", entry->name,
                   bel_status_message(entry->refused));
}

// --- Opsets --------------------------------------------------------------------------------------

const char *bel_decode_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t version_in(Onnx__OperatorSetIdProto *const *opsets, size_t count, const char *domain)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(bel_decode_domain(opsets[i]->domain), domain) == 0) return opsets[i]->version;
    return 0;
}

// A function may import different versions.
int64_t bel_decode_version(const bel_decoder *d, const char *domain)
{
    const bel_decode_scope *in = d->scope;
    while (in != NULL && in->call == NULL)
        in = in->outer;
    const Onnx__FunctionProto *function = in == NULL ? NULL : in->call->function;
    int64_t version =
        function == NULL ? 0 : version_in(function->opset_import, function->n_opset_import, domain);
    if (version != 0) return version;
    version = version_in(d->message->opset_import, d->message->n_opset_import, domain);
    return d->message->n_opset_import == 0 && domain[0] == '\0' ? 1 : version;
}
