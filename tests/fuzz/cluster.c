// Fuzz target for cluster.yaml, in both families of keys, and with it base/yaml.h. A cluster that
// is accepted is possible, with numbers within their limits.
#include "fuzz/fuzz.h"
#include "launch/cluster/cluster_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_cluster *cluster;
    if (!fuzz_is_good(bel_cluster_parse((const char *)data, size, "cluster.yaml", &cluster)))
        return 0;
    fuzz_expect(fuzz_is_good(bel_cluster_change(cluster, &BEL_NO_CLUSTER_CHANGES)),
                "a cluster that was read is possible");
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        int count = cluster->roles[r].count;
        fuzz_expect(count >= 0 && count <= BEL_CLUSTER_MOST, "a count within its limit");
    }
    bel_cluster_destroy(cluster);
    return 0;
}
