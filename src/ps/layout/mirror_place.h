// Places of mirrors (ps/server/mirror.c): the mirror of shard k is in the process of shard
// (k + distance) mod shards. Shard k is on host k mod `hosts`, as a cluster file assigns them.
#ifndef BELFRY_PS_LAYOUT_MIRROR_PLACE_H
#define BELFRY_PS_LAYOUT_MIRROR_PLACE_H

// Returns a shard that is on one host with its mirror, or -1. With fewer than two hosts, or if they
// are not known (0), the answer is -1.
static inline int bel_mirror_together(int shards, int hosts, int distance)
{
    for (int k = 0; k < shards && hosts > 1; k++)
        if (k % hosts == (k + distance) % shards % hosts) return k;
    return -1;
}

// Returns the shortest distance that leaves no shard on one host with its mirror; 1 if there is no
// such distance: an odd number of shards on two hosts.
static inline int bel_mirror_distance(int shards, int hosts)
{
    for (int distance = 1; distance < shards; distance++)
        if (bel_mirror_together(shards, hosts, distance) < 0) return distance;
    return 1;
}

#endif
