// Reading mappings of cluster.yaml by table, for cluster_file.c and ai_platform.c.
#ifndef BELFRY_LAUNCH_CLUSTER_READER_H
#define BELFRY_LAUNCH_CLUSTER_READER_H

#include "base/yaml.h"
#include "launch/cluster_file.h"

// A known key and who reads its value; NULL: known, and passed over.
typedef struct bel_cluster_key {
    const char *name;
    bel_status *(*read)(const bel_yaml *yaml, const bel_yaml_node *value, bel_cluster *cluster);
} bel_cluster_key;

// Reads a mapping by its keys; an unknown one is an error that names the nearest.
bel_status *bel_cluster_read_keys(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                  const bel_cluster_key *keys, size_t key_count,
                                  bel_cluster *cluster) BEL_MUST_USE;

// The same as names: errors only.
bel_status *bel_cluster_check_keys(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                   const char *const *names, size_t count) BEL_MUST_USE;

// Values; errors name the place, the kind that is expected and what came.
bel_status *bel_cluster_text(const bel_yaml *yaml, const bel_yaml_node *node,
                             const char **out_text) BEL_MUST_USE; // not empty
bel_status *bel_cluster_whole(const bel_yaml *yaml, const bel_yaml_node *node, int low, int high,
                              int *out_number) BEL_MUST_USE;
bel_status *bel_cluster_seconds(const bel_yaml *yaml, const bel_yaml_node *node,
                                double *out_seconds) BEL_MUST_USE; // above 0
bel_status *bel_cluster_bool(const bel_yaml *yaml, const bel_yaml_node *node,
                             bool *out_value) BEL_MUST_USE;

// ai_platform.c: true when the mapping has a key of AI Platform's; and reading such a file.
bool bel_ai_platform_is(const bel_yaml_node *root);
bel_status *bel_ai_platform_read(const bel_yaml *yaml, const bel_yaml_node *root,
                                 bel_cluster *cluster) BEL_MUST_USE;

#endif
