// Table of names, numbered from 0 in the order of insertion. Thread-compatible.
#ifndef BELFRY_ONNX_NAMES_H
#define BELFRY_ONNX_NAMES_H

#include <stdbool.h>

typedef struct bel_names bel_names;

bel_names *bel_names_create(void);
void bel_names_destroy(bel_names *names); // accepts NULL

// Returns the number of a name, or -1. The text is not copied and must outlive the table.
int bel_names_find(const bel_names *names, const char *text);
int bel_names_add(bel_names *names, const char *text, bool *out_new); // may exist already
int bel_names_count(const bel_names *names);
const char *bel_names_text(const bel_names *names, int number);

#endif
