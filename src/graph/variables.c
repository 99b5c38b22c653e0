// Variables of model functions. A variable with values of replicas has a leading axis of replicas,
// and a replica of a step reads its row. In a graph of one replica (evaluation, prediction, export)
// a read aggregates the rows. Both are plain operations, so only the code that combines reports
// knows of the difference.
#include <string.h>

#include "belfry/collective.h"
#include "belfry/ops.h"
#include "graph/graph.h"

// --- Kinds ---------------------------------------------------------------------------------------

static bel_status *trainable_kind(bel_variable_synchronization synchronization,
                                  bel_variable_aggregation aggregation, bel_variable_kind *out_kind)
{
    if (synchronization != BEL_SYNCHRONIZATION_ON_WRITE)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a trainable variable is the same for all replicas: "
                                             "expected synchronization AUTO or ON_WRITE");
    if (aggregation != BEL_AGGREGATION_NONE && aggregation != BEL_AGGREGATION_MEAN)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "gradients of a trainable variable are averaged: expected aggregation NONE "
                       "or MEAN; hint: --average sum adds those of all variables");
    *out_kind = BEL_VARIABLE_TRAINABLE;
    return NULL;
}

bel_status *bel_variable_kind_of(bool trainable, bel_variable_synchronization synchronization,
                                 bel_variable_aggregation aggregation, bel_variable_kind *out_kind)
{
    static const bel_variable_kind on_write[] = {BEL_VARIABLE_FROZEN, BEL_VARIABLE_STATE_SUM,
                                                 BEL_VARIABLE_STATE_MEAN, BEL_VARIABLE_STATE_FIRST};
    static const bel_variable_kind on_read[] = {BEL_VARIABLE_REPLICA, BEL_VARIABLE_REPLICA_SUM,
                                                BEL_VARIABLE_REPLICA_MEAN,
                                                BEL_VARIABLE_REPLICA_FIRST};
    if ((unsigned)synchronization > BEL_SYNCHRONIZATION_ON_READ ||
        (unsigned)aggregation > BEL_AGGREGATION_ONLY_FIRST_REPLICA)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "no such synchronization or aggregation");
    if (synchronization == BEL_SYNCHRONIZATION_AUTO) synchronization = BEL_SYNCHRONIZATION_ON_WRITE;
    if (trainable) return trainable_kind(synchronization, aggregation, out_kind);
    if (synchronization == BEL_SYNCHRONIZATION_NONE && aggregation != BEL_AGGREGATION_NONE)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "with synchronization NONE the replicas' values are never read together: "
                       "expected aggregation NONE, or synchronization ON_READ");
    bool shared = synchronization == BEL_SYNCHRONIZATION_ON_WRITE;
    *out_kind = (shared ? on_write : on_read)[aggregation];
    return NULL;
}

// --- Reading -------------------------------------------------------------------------------------

// Returns a variable of the graph by the value of bel_variable; NULL: the value is no variable.
static bel_graph_variable *variables_find(const bel_graph *graph, const bel_value *value)
{
    if (value == NULL || value->graph != graph) return NULL;
    if (value->node->op == BEL_OP_VARIABLE) return &graph->variables[value->node->leaf];
    for (size_t v = 0; v < graph->variable_count; v++)
        if (graph->variables[v].read == value) return &graph->variables[v];
    return NULL;
}

static int64_t kept_replicas(const bel_graph *graph)
{
    return graph->kept_replicas > 0 ? graph->kept_replicas : bel_replica_count(graph);
}

// Returns the aggregate of all rows.
static bel_value *aggregate(bel_graph *graph, const bel_graph_variable *variable)
{
    static const int64_t replicas[] = {0};
    int64_t zero = 0;
    const bel_tensor first = {BEL_DTYPE_I64, bel_shape_scalar(), &zero};
    switch (variable->kind) {
    case BEL_VARIABLE_REPLICA_MEAN:
        return bel_reduce_mean(graph, variable->value, replicas, 1, false);
    case BEL_VARIABLE_REPLICA_SUM:
        return bel_reduce_sum(graph, variable->value, replicas, 1, false);
    case BEL_VARIABLE_REPLICA_FIRST:
        return bel_gather(graph, variable->value, bel_constant(graph, &first));
    default: return variable->value;
    }
}

// Fails: values that only their replicas read have no aggregate.
static void fail_apart(bel_graph *graph, const bel_graph_variable *variable)
{
    bel_graph_fail(graph, BEL_FAILED_PRECONDITION,
                   "variable \"%s\": each of %lld replicas has a separate value, and its kind does "
                   "not say how to aggregate them; hint: BEL_VARIABLE_REPLICA_MEAN, _SUM, _FIRST",
                   variable->name, (long long)kept_replicas(graph));
}

bel_value *bel_variable_aggregate(bel_graph *graph, bel_value *value)
{
    if (graph->error_code != BEL_OK) return NULL;
    const bel_graph_variable *variable = variables_find(graph, value);
    if (variable == NULL) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "only a variable can be aggregated");
        return NULL;
    }
    if (!bel_variable_is_kept_by_replica(variable->kind)) return variable->value;
    if (kept_replicas(graph) == 1) return variable->read;
    if (variable->kind != BEL_VARIABLE_REPLICA) return aggregate(graph, variable);
    fail_apart(graph, variable);
    return NULL;
}

// Reads this replica's row.
static bel_value *read_own(bel_graph *graph, const bel_graph_variable *variable)
{
    if (kept_replicas(graph) == bel_replica_count(graph))
        return bel_gather(graph, variable->value, bel_replica_id(graph));
    if (variable->kind != BEL_VARIABLE_REPLICA) return aggregate(graph, variable);
    fail_apart(graph, variable);
    return NULL;
}

static bel_value *add_of_replicas(bel_graph *graph, const char *full, const bel_shape *shape,
                                  bel_initializer initializer, bel_variable_kind kind)
{
    bel_shape all = {.rank = shape->rank + 1, .dims = {kept_replicas(graph)}};
    if (shape->rank >= BEL_MAX_RANK) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "variable \"%s\" of replicas: expected at most %d axes", full,
                       BEL_MAX_RANK - 1);
        return NULL;
    }
    memcpy(all.dims + 1, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
    if (bel_graph_add_variable(graph, full, &all, initializer, kind) == NULL) return NULL;
    size_t v = graph->variable_count - 1;
    graph->variables[v].read = read_own(graph, &graph->variables[v]);
    return graph->variables[v].read;
}

static bel_value *existing_variable(bel_graph *graph, const char *name, const bel_shape *shape)
{
    int v = bel_graph_find_variable(graph, name);
    if (v < 0) {
        if (bel_graph_find_table(graph, name) < 0) return NULL;
        bel_graph_fail(graph, BEL_ALREADY_EXISTS, "variable \"%s\": a table has this name", name);
        return NULL;
    }
    bel_value *value = graph->variables[v].read;
    if (!bel_shape_equal(&value->spec.shape, shape)) {
        char have[BEL_SHAPE_TEXT], want[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "variable \"%s\" has shape %s and is requested again with shape %s", name,
                       bel_shape_text(&value->spec.shape, have), bel_shape_text(shape, want));
    }
    return value;
}

bel_value *bel_variable(bel_graph *graph, const char *name, const bel_shape *shape,
                        bel_initializer initializer, bel_variable_kind kind)
{
    if (graph->error_code != BEL_OK) return NULL;
    char full[BEL_GRAPH_MAX_NAME];
    if (!bel_graph_full_name(graph, name, full)) return NULL;
    bel_value *existing = existing_variable(graph, full, shape);
    if (graph->error_code != BEL_OK) return NULL;
    if (existing != NULL) return existing;
    if (bel_variable_is_kept_by_replica(kind))
        return add_of_replicas(graph, full, shape, initializer, kind);
    return bel_graph_add_variable(graph, full, shape, initializer, kind);
}

// --- Assigning -----------------------------------------------------------------------------------

void bel_assign_state(bel_graph *graph, bel_value *variable, bel_value *value)
{
    if (graph->error_code != BEL_OK) return;
    bel_graph_variable *target = variables_find(graph, variable);
    if (target == NULL || value == NULL || value->graph != graph) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "only a state variable can be assigned");
        return;
    }
    bool state = bel_variable_is_state(target->kind);
    bool same = value->spec.dtype == BEL_DTYPE_F32 &&
                bel_shape_equal(&value->spec.shape, &target->read->spec.shape);
    if (!state || !same || target->assigned != NULL) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "variable \"%s\" %s", target->name,
                       !state  ? "is no state variable and cannot be assigned"
                       : !same ? "is assigned a value of another shape or type"
                               : "is assigned twice");
        return;
    }
    target->assigned = value;
}
