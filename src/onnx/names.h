// A table of names: each gets the next number, from 0 on. Thread-compatible.
#ifndef BELFRY_ONNX_NAMES_H
#define BELFRY_ONNX_NAMES_H

#include <stdbool.h>

typedef struct bel_names bel_names;

bel_names *bel_names_create(void);
void bel_names_destroy(bel_names *names); // accepts NULL

// The number of a name, or -1. The text is not copied and must stay.
int bel_names_find(const bel_names *names, const char *text);
int bel_names_add(bel_names *names, const char *text, bool *out_new); // may be there already
int bel_names_count(const bel_names *names);
const char *bel_names_text(const bel_names *names, int number);

#endif
