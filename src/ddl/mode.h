// The way of a sum: a letter and the dimensions that ranks make (belfry/ddl.h, bel_ddl_options).
//
// Rank r of X × Y × Z has the coordinates (r mod X, r / X mod Y, r / XY). A dimension is added up
// before the next one, so along the tree over ranks the sizes of all but the last one that is not 1
// must be powers of two: then what has been added is a whole node of the tree.
#ifndef BELFRY_DDL_MODE_H
#define BELFRY_DDL_MODE_H

#include <stdbool.h>

#include "belfry/ddl.h"

enum {
    BEL_DDL_DIMS = 3,
    BEL_DDL_NEAR = 1, // the first dimension between groups
    BEL_DDL_MODE_TEXT = 48,
};

#define BEL_DDL_LETTERS "sormp" // what each means: belfry/ddl.h

typedef struct bel_ddl_mode {
    char letter;
    int dims[BEL_DDL_DIMS]; // X: ranks that share memory; Y and Z: groups. dims[0] is 0: left open
} bel_ddl_mode;

// INVALID_ARGUMENT: no mode.
bel_status *bel_ddl_mode_parse(const char *text, bel_ddl_mode *out_mode) BEL_MUST_USE;

// Fills in open dimensions, and checks: `together` is how many ranks at most can share memory, a
// divisor of `size`. INVALID_ARGUMENT: another product than `size`; FAILED_PRECONDITION: what
// `order` or the hosts do not allow.
bel_status *bel_ddl_mode_complete(bel_ddl_mode *mode, int size, int together,
                                  bel_ddl_order order) BEL_MUST_USE;

// Whether such dimensions add up along the tree.
bool bel_ddl_mode_keeps_tree(const bel_ddl_mode *mode);

// "s:4x2x1", or "s" while its dimensions are open, and always "m".
const char *bel_ddl_mode_text(const bel_ddl_mode *mode, char out[BEL_DDL_MODE_TEXT]);

// The coordinate of a rank, and the rank that differs from it in that alone.
int bel_ddl_mode_coordinate(const bel_ddl_mode *mode, int dim, int rank);
int bel_ddl_mode_neighbour(const bel_ddl_mode *mode, int dim, int rank, int coordinate);

#endif
