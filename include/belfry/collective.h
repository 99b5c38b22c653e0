/// Collectives: operations in the middle of a step in which all replicas take part, each with a
/// value of its own.
///
/// ```c
/// bel_value *sum = bel_all_reduce(graph, bel_reduce_sum(graph, x, NULL, 0, false),
///                                 BEL_REDUCE_SUM);
/// ```
///
/// All replicas run one and the same graph, so all of them call the same collectives in the same
/// order; what depends on the replica is computed from bel_replica_id. Those that do not wait for
/// each other are exchanged together, so a nest of tensors is a loop over its tensors, as
/// bel_all_reduce_n is.
///
/// **Who takes part.** In training the replicas of a step that have examples, which in async and
/// bounded modes are those of one worker; where there is a single one, and in evaluation and
/// prediction, a replica exchanges with nobody. A replica without examples (a last step may leave
/// some without) is passed over: it adds nothing to a reduction, and its rows of bel_all_gather are
/// zeros. Sums follow the tree over replica ids (docs/determinism.md), so the bits do not depend on
/// who plays which replica.
///
/// **Gradients** are those of the loss of the step, the mean over replicas as the job takes it (by
/// examples, or each replica once). So where replicas have different numbers of examples, what a
/// gradient sums is weighted by them. Collectives of integers have none.
///
/// **Shapes.** Types and shapes must be the same in all replicas that take part; open dimensions
/// are compared at every step, and an error names both replicas and the line that called. Errors
/// stick to the graph (graph.h).
#ifndef BELFRY_COLLECTIVE_H
#define BELFRY_COLLECTIVE_H

#include "belfry/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How the values of all replicas become one. Of a maximum or minimum with a NaN the result is NaN.
typedef enum bel_reduce_op {
    BEL_REDUCE_SUM,
    BEL_REDUCE_MEAN, ///< F32 and F64 alone; each replica that takes part counts once.
    BEL_REDUCE_MIN,
    BEL_REDUCE_MAX,
    BEL_REDUCE_PRODUCT,
} bel_reduce_op;

/// Replicas that exchange with each other; 1 in evaluation and prediction.
BEL_API int bel_replica_count(const bel_graph *graph);

/// This replica's number among them, from 0 on: a scalar I64.
BEL_API bel_value *bel_replica_id(bel_graph *graph);

/// `value` (F32, F64, I32, I64) of all replicas, reduced element by element: the same for all.
/// Where several replicas have the smallest or largest element, its gradient is shared among them.
#define bel_all_reduce(graph, value, op)                                                           \
    bel_all_reduce_at((graph), (value), (op), __FILE__, __LINE__)

/// Replaces each of `count` values, of mixed types and shapes, by its reduction over the replicas,
/// in one exchange where none of them waits for another.
/// Called as bel_all_reduce_n(graph, values, count, op).
#define bel_all_reduce_n(graph, ...) bel_all_reduce_n_at((graph), __VA_ARGS__, __FILE__, __LINE__)

/// Values of all replicas one behind the other, along a new leading axis of bel_replica_count. Any
/// type; rank up to BEL_MAX_RANK - 1.
#define bel_all_gather(graph, value) bel_all_gather_at((graph), (value), __FILE__, __LINE__)

/// `value` has a leading axis of bel_replica_count: it is reduced over replicas, and replica i is
/// given part i of that axis, which is dropped. Types as of bel_all_reduce. MIN, MAX and PRODUCT
/// have no gradient here.
#define bel_reduce_scatter(graph, value, op)                                                       \
    bel_reduce_scatter_at((graph), (value), (op), __FILE__, __LINE__)

/// The value of replica `source`, 0 to bel_replica_count - 1, for all. Any type. When that replica
/// has no examples, the step fails with FAILED_PRECONDITION.
#define bel_broadcast(graph, value, source)                                                        \
    bel_broadcast_at((graph), (value), (source), __FILE__, __LINE__)

/// Replaces each of `count` values by that of replica `source`, as bel_all_reduce_n does.
/// Called as bel_broadcast_n(graph, values, count, source).
#define bel_broadcast_n(graph, ...) bel_broadcast_n_at((graph), __VA_ARGS__, __FILE__, __LINE__)

/// What bel_map_reduce and bel_map_gather do with an item. Called while the graph is built, once
/// for each item of a replica; `item` has the shape of items[i].
typedef bel_value *bel_map_item_fn(void *user, bel_graph *graph, bel_value *item);

/// Deals `count` values of one type and shape, which are the same in all replicas, over the
/// replicas in blocks, maps each in one of them, and reduces the results; all replicas get it. Each
/// replica computes ceil(count / replicas) items. F32 and F64. The step fails with
/// FAILED_PRECONDITION where a replica has no examples.
#define bel_map_reduce(graph, items, count, map, user, op)                                         \
    bel_map_reduce_at((graph), (items), (count), (map), (user), (op), __FILE__, __LINE__)

/// The same, with the results one behind the other along a new leading axis of `count`.
#define bel_map_gather(graph, items, count, map, user)                                             \
    bel_map_gather_at((graph), (items), (count), (map), (user), __FILE__, __LINE__)

/// What the macros above call, with the place for messages; the file's name is copied.
BEL_API bel_value *bel_all_reduce_at(bel_graph *graph, bel_value *value, bel_reduce_op op,
                                     const char *file, int line);
BEL_API void bel_all_reduce_n_at(bel_graph *graph, bel_value **values, int count, bel_reduce_op op,
                                 const char *file, int line);
BEL_API bel_value *bel_all_gather_at(bel_graph *graph, bel_value *value, const char *file,
                                     int line);
BEL_API bel_value *bel_reduce_scatter_at(bel_graph *graph, bel_value *value, bel_reduce_op op,
                                         const char *file, int line);
BEL_API bel_value *bel_broadcast_at(bel_graph *graph, bel_value *value, int source,
                                    const char *file, int line);
BEL_API void bel_broadcast_n_at(bel_graph *graph, bel_value **values, int count, int source,
                                const char *file, int line);
BEL_API bel_value *bel_map_reduce_at(bel_graph *graph, bel_value *const *items, int count,
                                     bel_map_item_fn *map, void *user, bel_reduce_op op,
                                     const char *file, int line);
BEL_API bel_value *bel_map_gather_at(bel_graph *graph, bel_value *const *items, int count,
                                     bel_map_item_fn *map, void *user, const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
