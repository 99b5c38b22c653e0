// How predictors are made: of an ONNX model here, of an estimator and a checkpoint by that room.
// belfry/predictor.h says how they are used.
#ifndef BELFRY_PREDICTOR_PREDICTOR_H
#define BELFRY_PREDICTOR_PREDICTOR_H

#include "belfry/predictor.h"
#include "predictor/forward.h"

// What a predictor runs. Everything it points to belongs to `owner`.
typedef struct bel_predictor_parts {
    bel_forward_config forward; // its fields are inputs by number
    bel_port *inputs, *outputs;
    bel_value *const *values; // by output
    int input_count, output_count;
    void *owner;
    void (*release)(void *owner); // when the predictor goes
} bel_predictor_parts;

// Copies the struct and takes the owner, after an error nothing.
bel_status *bel_predictor_make(const bel_predictor_parts *parts,
                               bel_predictor **out_predictor) BEL_MUST_USE;

// The number of the port of this name; -1: there is none.
int bel_port_find(const bel_port *ports, int count, const char *name);

// INVALID_ARGUMENT: the tensor is of another type or shape than the port (named, as `what`:
// "input"), has no example where there is a batch, or no elements where it should.
bel_status *bel_port_check(const char *what, const bel_port *port,
                           const bel_tensor *elements) BEL_MUST_USE;

// INVALID_ARGUMENT: a number of threads that cannot be; `whose`: "a predictor".
bel_status *bel_check_threads(const char *whose, int threads) BEL_MUST_USE;

// What it holds in memory, for people: activations of its programs; constants and variables.
typedef struct bel_predictor_sizes {
    size_t arena_bytes, weight_bytes;
    int64_t weights; // elements
} bel_predictor_sizes;
bel_predictor_sizes bel_predictor_measure(const bel_predictor *predictor);

#endif
