// Packing of a graph of calls into streams: lists of calls that one thread runs in order.
//
// The algorithm is the stream analysis of TensorFlow's runtime (TFRT). Forward: the start, and then
// each call, is followed by the calls whose inputs' costliest path from the start ends in it.
// Backward: streams that follow a call and are too cheap for another thread are merged. The call
// then joins the costliest of those left, or the one with the end.
#ifndef BELFRY_RUNTIME_STREAMS_H
#define BELFRY_RUNTIME_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bel_dag_edge {
    int from;  // an earlier node
    bool data; // false: only the order matters
} bel_dag_edge;

// Graph of calls, in an order in which they could run.
typedef struct bel_dag {
    int node_count;
    int64_t *costs;   // by node, at least 1, in any unit
    int *first_edges; // [node_count + 1]: node n waits for edges [first_edges[n], first_edges[n +
                      // 1])
    bel_dag_edge *edges;
} bel_dag;

typedef struct bel_stream {
    int64_t cost;     // sum of its nodes; stream 0 also counts the start and the end, 1 each
    int first, count; // in bel_streams.nodes
} bel_stream;

typedef struct bel_streams {
    bel_stream *items; // the start and the end belong to stream 0
    int count;
    int *nodes;     // stream after stream, each in the order of the graph
    int *stream_of; // by node
} bel_streams;

typedef struct bel_stream_options {
    int thread_count; // 1: everything is one stream
    // Independent streams below this are merged until they reach it. 0: automatic, while the
    // costliest path does not become longer.
    int64_t threshold;
    bool merge_dependent; // first merges streams that read each other's values
} bel_stream_options;

// Deterministic: the same arguments give the same streams. A node without edges follows the start;
// the end waits for all nodes that no other node waits for.
void bel_streams_pack(const bel_dag *dag, const bel_stream_options *options,
                      bel_streams *out_streams);
void bel_streams_deinit(bel_streams *streams);

void bel_dag_deinit(bel_dag *dag); // frees the arrays

#endif
