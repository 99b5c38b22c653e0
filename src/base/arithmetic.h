// Version of Belfry's arithmetic, raised whenever a version computes other bits than the one
// before. Checkpoints store it, and only a version with the same number resumes from them.
#ifndef BELFRY_BASE_ARITHMETIC_H
#define BELFRY_BASE_ARITHMETIC_H

enum { BEL_ARITHMETIC = 6 };

#endif
