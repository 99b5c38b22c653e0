// Explorer of all states of a model, breadth first, so that an error comes with a shortest trace.
// It looks for states that break an invariant, for states without a successor although the model is
// not at its end, and for states from which no end can be reached.
//
// A state is a block of bytes; equal states must be equal bytes. The explorer keeps only 64-bit
// hashes of the states seen, beside the states of two levels of the search. With ten million states
// the probability that two of them share a hash, so that one is skipped, is below 1 in 100,000.
#ifndef BELFRY_TESTS_MODEL_EXPLORE_H
#define BELFRY_TESTS_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bel_explorer bel_explorer;

// An actor and its move: "worker 1 takes version 2". `number` -1: none.
typedef struct bel_explore_label {
    const char *actor;
    int index;
    const char *what;
    int number;
} bel_explore_label;

typedef struct bel_explore_model {
    const void *config;
    size_t state_bytes;
    void (*begin)(const void *config, void *out_state);
    // Calls bel_explore_emit for every possible next move, always in the same order.
    void (*expand)(const void *config, const void *state, bel_explorer *explorer);
    const char *(*broken)(const void *config, const void *state); // an invariant, or NULL
    bool (*is_end)(const void *config, const void *state);
} bel_explore_model;

typedef struct bel_explore_result {
    int64_t states, steps, ends;
    int depth;         // the search's; after an error the trace's
    const char *found; // the error, or NULL; lives as long as the model
    double seconds;
} bel_explore_result;

void bel_explore_emit(bel_explorer *explorer, const void *state, bel_explore_label label);

// Explores all states, or up to the first error, and writes its trace to `trace` unless NULL. More
// than state_limit states are an error, too.
bel_explore_result bel_explore(const bel_explore_model *model, int64_t state_limit, FILE *trace);

#endif
