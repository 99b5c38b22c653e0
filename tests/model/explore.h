// An explorer of all states of a model: breadth first, so that what it finds wrong comes with a
// shortest trace. It looks for states that break an invariant, for states from which nothing
// follows though the model is not through, and for states from which no end can be reached.
//
// A state is a block of bytes; equal states must be equal bytes. Only 64-bit hashes of the states
// that were seen are kept, beside the states of two levels of the search: with ten million states
// the chance that two of them share a hash, and one is not looked at, is below 1 in 100,000.
#ifndef BELFRY_TESTS_MODEL_EXPLORE_H
#define BELFRY_TESTS_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bel_explorer bel_explorer;

// Who does what: "worker 1 takes version 2". `number` -1: none.
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
    // Calls bel_explore_emit for everything that can happen next, always in the same order.
    void (*expand)(const void *config, const void *state, bel_explorer *explorer);
    const char *(*broken)(const void *config, const void *state); // an invariant; NULL: all hold
    bool (*is_end)(const void *config, const void *state);
} bel_explore_model;

typedef struct bel_explore_result {
    int64_t states, steps, ends;
    int depth;         // of the search; of the trace when something was found
    const char *found; // what is wrong, NULL: nothing; lives as long as the model
    double seconds;
} bel_explore_result;

void bel_explore_emit(bel_explorer *explorer, const void *state, bel_explore_label label);

// Explores all, or up to the first thing wrong, whose trace is written to `trace` unless NULL.
// More than state_limit states count as something wrong.
bel_explore_result bel_explore(const bel_explore_model *model, int64_t state_limit, FILE *trace);

#endif
