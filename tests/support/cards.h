// Cards for tests: the stand-in of support/cuda_double, or with BELFRY_TEST_CARD=1 a real one.
#ifndef BELFRY_TESTS_SUPPORT_CARDS_H
#define BELFRY_TESTS_SUPPORT_CARDS_H

#include "cuda/cuda.h"

// Before anything else of a test: lets Belfry find the stand-in.
void bel_use_cards(void);

// Card 0. False, with the reason on stderr: a real one is wanted and there is none.
bool bel_cards_open(bel_device **out_card);

#endif
