// Expectations of the model tests: every state is sound, or the explorer finds a given defect.
#ifndef BELFRY_TESTS_MODEL_EXPECT_H
#define BELFRY_TESTS_MODEL_EXPECT_H

#include "model/cluster.h"

// Explores all states and prints their number. Fails, with the shortest trace, on an error.
void bel_expect_sound(const char *what, bel_cluster_config config);

// Explores up to the first error, which must be `found`, and prints the end of its trace. With
// BELFRY_TRACES=1 in the environment it prints the complete trace.
void bel_expect_found(bel_cluster_config config, const char *found);

#endif
