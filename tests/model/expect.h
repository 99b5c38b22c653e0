// What tests of the model of a cluster say: all is well in every state, or this defect is found.
#ifndef BELFRY_TESTS_MODEL_EXPECT_H
#define BELFRY_TESTS_MODEL_EXPECT_H

#include "model/cluster.h"

// Explores everything and prints how much that was. Fails, with the shortest trace, when something
// is wrong.
void bel_expect_sound(const char *what, bel_cluster_config config);

// Explores up to the first thing wrong, which must be `found`; prints the end of its trace. The
// whole trace with BELFRY_TRACES=1 in the environment.
void bel_expect_found(bel_cluster_config config, const char *found);

#endif
