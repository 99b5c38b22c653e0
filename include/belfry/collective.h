/// Collectives: operations in the middle of a step in which all replicas take part, each with its
/// own value.
///
/// ```c
/// bel_value *sum = bel_all_reduce(graph, bel_reduce_sum(graph, x, NULL, 0, false),
///                                 BEL_REDUCE_SUM);
/// ```
///
/// All replicas run the same graph, so all of them call the same collectives in the same order.
/// Values that depend on the replica come from bel_replica_id. Independent collectives are
/// exchanged together, so a nest of tensors is a loop over its tensors, as in bel_all_reduce_n.
///
/// **Participants.** In training: the replicas of a step that have examples; in async and bounded
/// modes those of one worker. With a single replica, and in evaluation and prediction, there is no
/// exchange. A replica without examples (a last step may leave some without) is skipped: it adds
/// nothing to a reduction, and its rows of bel_all_gather are zeros. Sums follow the tree over
/// replica ids (docs/determinism.md), so the bits do not depend on the placement of replicas.
///
/// **Gradients** are those of the loss of the step, the job's mean over replicas (by examples, or
/// each replica once). If replicas have different numbers of examples, the sum in a gradient is
/// weighted by them. Collectives of integers have no gradient.
///
/// **Shapes.** Types and shapes must be the same in all participating replicas. Open dimensions are
/// compared at every step, and an error names both replicas and the line of the call. Errors stick
/// to the graph (graph.h).
#ifndef BELFRY_COLLECTIVE_H
#define BELFRY_COLLECTIVE_H

#include "belfry/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Reduction of the values of all replicas. A maximum or minimum with a NaN is NaN.
typedef enum bel_reduce_op {
    BEL_REDUCE_SUM,
    BEL_REDUCE_MEAN, ///< Only F32 and F64; each participating replica counts once.
    BEL_REDUCE_MIN,
    BEL_REDUCE_MAX,
    BEL_REDUCE_PRODUCT,
} bel_reduce_op;

/// Returns the number of replicas that exchange with each other; 1 in evaluation and prediction.
BEL_API int bel_replica_count(const bel_graph *graph);

/// Returns this replica's number among them, from 0 on: a scalar I64.
BEL_API bel_value *bel_replica_id(bel_graph *graph);

/// Reduces `value` (F32, F64, I32, I64) of all replicas element by element; all get the same
/// result. If several replicas have the smallest or largest element, they share its gradient.
#define bel_all_reduce(graph, value, op)                                                           \
    bel_all_reduce_at((graph), (value), (op), __FILE__, __LINE__)

/// Replaces each of `count` values, of mixed types and shapes, by its reduction over the replicas,
/// in one exchange if they are independent.
/// Called as bel_all_reduce_n(graph, values, count, op).
#define bel_all_reduce_n(graph, ...) bel_all_reduce_n_at((graph), __VA_ARGS__, __FILE__, __LINE__)

/// Concatenates the values of all replicas along a new leading axis of bel_replica_count. Any type;
/// rank up to BEL_MAX_RANK - 1.
#define bel_all_gather(graph, value) bel_all_gather_at((graph), (value), __FILE__, __LINE__)

/// Reduces `value`, which has a leading axis of bel_replica_count, over replicas. Replica i
/// receives part i of that axis, which is dropped. Types as in bel_all_reduce. MIN, MAX and PRODUCT
/// have no gradient here.
#define bel_reduce_scatter(graph, value, op)                                                       \
    bel_reduce_scatter_at((graph), (value), (op), __FILE__, __LINE__)

/// Broadcasts the value of replica `source`, 0 to bel_replica_count - 1. Any type. If that replica
/// has no examples, the step fails with FAILED_PRECONDITION.
#define bel_broadcast(graph, value, source)                                                        \
    bel_broadcast_at((graph), (value), (source), __FILE__, __LINE__)

/// Replaces each of `count` values by that of replica `source`, grouped as in bel_all_reduce_n.
/// Called as bel_broadcast_n(graph, values, count, source).
#define bel_broadcast_n(graph, ...) bel_broadcast_n_at((graph), __VA_ARGS__, __FILE__, __LINE__)

/// Maps an item of bel_map_reduce and bel_map_gather. Called while the graph is built, once for
/// each item of a replica; `item` has the shape of items[i].
typedef bel_value *bel_map_item_fn(void *user, bel_graph *graph, bel_value *item);

/// Assigns `count` values of one type and shape, which are the same in all replicas, to the
/// replicas in blocks. Maps each value in one replica and reduces the results for all replicas.
/// Each replica computes ceil(count / replicas) items. F32 and F64. The step fails with
/// FAILED_PRECONDITION if a replica has no examples.
#define bel_map_reduce(graph, items, count, map, user, op)                                         \
    bel_map_reduce_at((graph), (items), (count), (map), (user), (op), __FILE__, __LINE__)

/// Like bel_map_reduce, but concatenates the results along a new leading axis of `count`.
#define bel_map_gather(graph, items, count, map, user)                                             \
    bel_map_gather_at((graph), (items), (count), (map), (user), __FILE__, __LINE__)

/// Functions of the macros above, with the place for messages; the file's name is copied.
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
