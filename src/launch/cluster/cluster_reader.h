// Table-driven reader of cluster.yaml's mappings, for cluster_file.c, cluster_engines.c and
// ai_platform.c. A row has the key's name, the kind of its value and the field that gets it.
#ifndef BELFRY_LAUNCH_CLUSTER_CLUSTER_READER_H
#define BELFRY_LAUNCH_CLUSTER_CLUSTER_READER_H

#include "base/yaml.h"
#include "launch/cluster/cluster_file.h"

typedef enum bel_cluster_kind {
    BEL_CLUSTER_TEXT,        // char *, replaced; not empty
    BEL_CLUSTER_WHOLE,       // int, from `low` to `high`; may be quoted
    BEL_CLUSTER_BYTES,       // int64_t, above 0: "64 GiB", "500 MB"
    BEL_CLUSTER_SECONDS,     // double, from 0.001 to BEL_CLUSTER_MOST_SECONDS
    BEL_CLUSTER_SWITCH,      // bool: true or false
    BEL_CLUSTER_OTHER,       // `read` converts the value
    BEL_CLUSTER_PASSED_OVER, // known, but has no effect here
} bel_cluster_kind;

typedef struct bel_cluster_key {
    const char *name;
    bel_cluster_kind kind;
    size_t offset; // offset of the field in the struct that the mapping fills
    int low, high; // WHOLE
    bel_status *(*read)(const bel_yaml *yaml, const bel_yaml_node *value, void *place); // for OTHER
} bel_cluster_key;

// Fills `out` from a mapping, in the order of the table rather than of the file. So a later row can
// change the result of an earlier one. An unknown key is an error that names the nearest.
bel_status *bel_cluster_read_mapping(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                     const bel_cluster_key *keys, size_t key_count,
                                     void *out) BEL_MUST_USE;

// "expected WHAT, got …" with the node's place.
bel_status *bel_cluster_expected(const bel_yaml *yaml, const bel_yaml_node *node,
                                 const char *what) BEL_MUST_USE;

// "unknown key …" with the key's place and the nearest of the names, if one is near.
bel_status *bel_cluster_unknown_key(const bel_yaml *yaml, const bel_yaml_node *key,
                                    const char *const *names, size_t count) BEL_MUST_USE;

// A scalar that is not empty; the text belongs to the document.
bel_status *bel_cluster_text(const bel_yaml *yaml, const bel_yaml_node *node,
                             const char **out_text) BEL_MUST_USE;

// Returns the value of a key, or `otherwise` if the mapping has no such key.
const bel_yaml_node *bel_cluster_place(const bel_yaml_node *mapping, const char *name,
                                       const bel_yaml_node *otherwise);

// Returns the first key of a mapping that is in a table; NULL: no key is.
const bel_yaml_node *bel_cluster_first_key(const bel_yaml_node *mapping,
                                           const bel_cluster_key *keys, size_t key_count);

// cluster_engines.c: read its sections into bel_cluster_slurm and bel_cluster_kubernetes.
bel_status *bel_cluster_read_slurm(const bel_yaml *yaml, const bel_yaml_node *node,
                                   void *place) BEL_MUST_USE;
bel_status *bel_cluster_read_kubernetes(const bel_yaml *yaml, const bel_yaml_node *node,
                                        void *place) BEL_MUST_USE;

// ai_platform.c: its table of keys; the first of them in a file (or trainingInput), NULL: no such
// key; the reader of such a file.
const bel_cluster_key *bel_ai_platform_keys(size_t *out_count);
const bel_yaml_node *bel_ai_platform_first_key(const bel_yaml_node *root);
bel_status *bel_ai_platform_read(const bel_yaml *yaml, const bel_yaml_node *root,
                                 bel_cluster *cluster) BEL_MUST_USE;

#endif
