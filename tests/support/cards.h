// GPUs for tests: the stand-in of support/cuda_double, or a real GPU with BELFRY_TEST_CARD=1.
#ifndef BELFRY_TESTS_SUPPORT_CARDS_H
#define BELFRY_TESTS_SUPPORT_CARDS_H

#include "cuda/cuda.h"

// Lets Belfry find the stand-in. Call it before anything else in a test.
void bel_use_cards(void);

// Opens GPU 0. Returns false, with the reason on stderr, if a real GPU is requested and absent.
bool bel_cards_open(bel_device **out_card);

#endif
