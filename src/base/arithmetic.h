// The number of Belfry's arithmetic: one more whenever a version computes other bits than the one
// before. Checkpoints keep it, and only a version of the same number goes on from them.
#ifndef BELFRY_BASE_ARITHMETIC_H
#define BELFRY_BASE_ARITHMETIC_H

enum { BEL_ARITHMETIC = 5 };

#endif
