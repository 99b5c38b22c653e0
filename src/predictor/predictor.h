// Construction of predictors: from an ONNX model here, from an estimator and a checkpoint in
// `estimator`. belfry/predictor.h describes their use.
#ifndef BELFRY_PREDICTOR_PREDICTOR_H
#define BELFRY_PREDICTOR_PREDICTOR_H

#include "belfry/predictor.h"
#include "predictor/forward.h"

// Parts of a predictor. Everything they point to belongs to `owner`.
typedef struct bel_predictor_parts {
    bel_forward_config forward; // its fields are the inputs, by index
    bel_port *inputs, *outputs;
    bel_value *const *values; // by output
    int input_count, output_count;
    void *owner;
    void (*release)(void *owner); // called when the predictor is destroyed
} bel_predictor_parts;

// Copies the struct and takes ownership of the owner, but not after an error.
bel_status *bel_predictor_make(const bel_predictor_parts *parts,
                               bel_predictor **out_predictor) BEL_MUST_USE;

// Returns the index of the port of this name; -1: no such port.
int bel_port_find(const bel_port *ports, int count, const char *name);

// INVALID_ARGUMENT: the tensor's type or shape differs from the port's (the message calls it
// `what`: "input"), or it lacks examples or elements.
bel_status *bel_port_check(const char *what, const bel_port *port,
                           const bel_tensor *elements) BEL_MUST_USE;

// INVALID_ARGUMENT: an invalid number of threads; `whose`: "a predictor".
bel_status *bel_check_threads(const char *whose, int threads) BEL_MUST_USE;

// Memory use, for people: activations of its programs; constants and variables.
typedef struct bel_predictor_sizes {
    size_t arena_bytes, weight_bytes;
} bel_predictor_sizes;
bel_predictor_sizes bel_predictor_measure(const bel_predictor *predictor);

#endif
