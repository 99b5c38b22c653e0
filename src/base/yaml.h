// YAML: a document as a small tree, through libyaml. Features that a configuration does not need
// are refused with their place: anchors, aliases and tags, duplicate keys, keys that are no
// scalars, more than one document, and anything deeper or larger than the limits below.
#ifndef BELFRY_BASE_YAML_H
#define BELFRY_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

enum {
    BEL_YAML_MAX_BYTES = 8 << 20,
    BEL_YAML_MAX_DEPTH = 32,
    BEL_YAML_MAX_NODES = 100000,
    BEL_YAML_MAX_KEYS = BEL_YAML_MAX_NODES / 2, // in one mapping
};

// Limits for kinds of text that may be larger than settings. 0: those above.
typedef struct bel_yaml_limits {
    size_t bytes, nodes;
} bel_yaml_limits;

typedef enum bel_yaml_kind {
    BEL_YAML_SCALAR,
    BEL_YAML_SEQUENCE,
    BEL_YAML_MAPPING,
} bel_yaml_kind;

// Node and its beginning (both counted from 1). Immutable; freed with its document.
typedef struct bel_yaml_node bel_yaml_node;
struct bel_yaml_node {
    bel_yaml_kind kind;
    int line, column;
    const char *text;             // SCALAR: its text, UTF-8
    bool quoted;                  // SCALAR: written in quotes or as a block, so never a null
    size_t count;                 // SEQUENCE: items; MAPPING: entries
    const bel_yaml_node **keys;   // MAPPING: scalars, all different, in the order of the text
    const bel_yaml_node **values; // SEQUENCE and MAPPING
};

typedef struct bel_yaml bel_yaml;

// Parses a text; `source` names it in errors. All errors are INVALID_ARGUMENT and begin with
// "source:line:column: " if there is such a place.
bel_status *bel_yaml_parse(const char *text, size_t length, const char *source,
                           bel_yaml **out_yaml) BEL_MUST_USE;
bel_status *bel_yaml_parse_within(const char *text, size_t length, const char *source,
                                  bel_yaml_limits limits, bel_yaml **out_yaml) BEL_MUST_USE;

// The same for a file, which must be a regular one. Here too all errors are INVALID_ARGUMENT: an
// unreadable configuration is a mistake in the settings, not in the data.
bel_status *bel_yaml_read(const char *path, bel_yaml **out_yaml) BEL_MUST_USE;
bel_status *bel_yaml_read_within(const char *path, bel_yaml_limits limits,
                                 bel_yaml **out_yaml) BEL_MUST_USE;
// Reads only its text; free with bel_free.
bel_status *bel_yaml_read_text(const char *path, char **out_text, size_t *out_length) BEL_MUST_USE;

const bel_yaml_node *bel_yaml_root(const bel_yaml *yaml); // NULL: the document is empty
const char *bel_yaml_source(const bel_yaml *yaml);
void bel_yaml_destroy(bel_yaml *yaml);

// Returns the value of a key; NULL if `mapping` has no such key or is no mapping.
const bel_yaml_node *bel_yaml_member(const bel_yaml_node *mapping, const char *name);

// Returns true for an empty scalar, ~ or null without quotes.
bool bel_yaml_is_null(const bel_yaml_node *node);

// INVALID_ARGUMENT with the node's place first: "train.yaml:4:3: …".
bel_status *bel_yaml_error(const bel_yaml *yaml, const bel_yaml_node *node, const char *format, ...)
    BEL_PRINTF(3, 4) BEL_MUST_USE;

#endif
