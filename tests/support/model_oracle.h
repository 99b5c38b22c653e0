// Numbers that another program computed of a model from the same weights, in a file *.safetensors:
// variables under their names, "gradient/NAME" of each, and other results.
#ifndef BELFRY_TESTS_SUPPORT_MODEL_ORACLE_H
#define BELFRY_TESTS_SUPPORT_MODEL_ORACLE_H

#include "belfry/belfry.h"
#include "master/job/warm_file.h"

// Makes an estimator of a model of Belfry. `params` ends with a name NULL.
bel_estimator *bel_oracle_estimator(const char *model, const bel_param *params, const char *folder);

// Reads a tensor of floats. Free with bel_free.
float *bel_oracle_floats(const bel_warm_file *file, const char *name, bel_shape shape);

// Reads a tensor of int64_t.
void bel_oracle_integers(const bel_warm_file *file, const char *name, int64_t *out, size_t count);

// Compares the changes of a step of SGD at rate 1, which subtracts the gradient and, of matrices,
// `decay` of the value. The folder has the checkpoint of step 1.
void bel_oracle_check_gradients(const bel_warm_file *file, const char *folder, double decay);

#endif
