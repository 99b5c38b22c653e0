// Search space of `belfry tune --try`: flags, each with its possible values. Draw n is a function
// of the seed, n and the flag's name, so a search that continues later draws the same values.
#ifndef BELFRY_TOOLS_STUDIES_SEARCH_SPACE_H
#define BELFRY_TOOLS_STUDIES_SEARCH_SPACE_H

#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_search_space bel_search_space;

// Parses texts such as
//
//   learning_rate=log:1e-4:1e-1   a number; every order of magnitude is equally likely
//   dropout=0:0.5                 a number; both ends are possible
//   embedding_width=int:4:64      an integer; both ends are possible
//   hidden_units=32|64,32|128     one of these
//
// INVALID_ARGUMENT: another form, or the same name twice. Free with bel_search_space_destroy.
bel_status *bel_search_space_create(const char *const *texts, int count,
                                    bel_search_space **out_space) BEL_MUST_USE;
void bel_search_space_destroy(bel_search_space *space); // accepts NULL

int bel_search_space_count(const bel_search_space *space); // number of flags
const char *bel_search_space_name(const bel_search_space *space, int flag);

// Draws the values of `count` different trials: [trial * flags + flag]. If the space has fewer,
// *out_count is their number. Free each, and the list, with bel_free.
char **bel_search_space_draw(const bel_search_space *space, uint64_t seed, int count,
                             int *out_count);

#endif
