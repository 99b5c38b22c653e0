// Mode of a sum: a letter and the dimensions of the grid of ranks (belfry/ddl.h, bel_ddl_options).
//
// Rank r of X × Y × Z has the coordinates (r mod X, r / X mod Y, r / XY). Each dimension is added
// before the next one. So adding along the tree over ranks needs powers of two for all sizes but
// the last one that is not 1: then each partial sum is a whole node of the tree.
#ifndef BELFRY_DDL_MODE_H
#define BELFRY_DDL_MODE_H

#include <stdbool.h>

#include "belfry/ddl.h"

enum {
    BEL_DDL_DIMS = 3,
    BEL_DDL_NEAR = 1, // the first dimension between groups
    BEL_DDL_MODE_TEXT = 48,
};

#define BEL_DDL_LETTERS "sormp" // meanings: belfry/ddl.h

typedef struct bel_ddl_mode {
    char letter;
    int dims[BEL_DDL_DIMS]; // X: ranks that share memory; Y and Z: groups. dims[0] == 0:
                            // undetermined
} bel_ddl_mode;

// INVALID_ARGUMENT: not a mode.
bel_status *bel_ddl_mode_parse(const char *text, bel_ddl_mode *out_mode) BEL_MUST_USE;

// Fills in undetermined dimensions and checks all. `together` is the maximum number of ranks that
// share memory, a divisor of `size`. INVALID_ARGUMENT: the product is not `size`.
// FAILED_PRECONDITION: `order` or the hosts do not allow the dimensions.
bel_status *bel_ddl_mode_complete(bel_ddl_mode *mode, int size, int together,
                                  bel_ddl_order order) BEL_MUST_USE;

// True if sums with these dimensions are along the tree.
bool bel_ddl_mode_keeps_tree(const bel_ddl_mode *mode);

// Returns "s:4x2x1", or "s" while its dimensions are undetermined, and always "m".
const char *bel_ddl_mode_text(const bel_ddl_mode *mode, char out[BEL_DDL_MODE_TEXT]);

// Return the coordinate of a rank, and the rank that differs from it only in that coordinate.
int bel_ddl_mode_coordinate(const bel_ddl_mode *mode, int dim, int rank);
int bel_ddl_mode_neighbor(const bel_ddl_mode *mode, int dim, int rank, int coordinate);

#endif
