// Who is who: the numbers of workers and shards among the members, how far replicas are
// assigned, and the ways to speak to one of them. It calls nothing of the other remote files, so
// that they can call it without a circle. Numbers of workers rest on the order in which
// members.c makes seats. A message to a member that is away is dropped: whoever waits for an
// answer asks again when it has come back.
#include "master/remote_inner.h"

void bel_remote_send_to_shard(remote *r, int shard, const ProtobufCMessage *kind)
{
    bel_members_send(r->config.members, r->shard_members[shard], r->backend.generation, kind);
}

void bel_remote_send_stop(remote *r)
{
    const Bel__Stop stop = BEL__STOP__INIT;
    bel_remote_send_to_shard(r, 0, &stop.base);
}

void bel_remote_send_pause(remote *r)
{
    const Bel__Pause pause = BEL__PAUSE__INIT;
    bel_remote_send_to_shard(r, 0, &pause.base);
}

void bel_remote_release(remote *r)
{
    const Bel__Release release = BEL__RELEASE__INIT;
    bel_remote_send_to_shard(r, 0, &release.base);
}

void bel_remote_send_finish(remote *r, int member)
{
    const Bel__Finish finish = BEL__FINISH__INIT;
    bel_members_send(r->config.members, member, r->backend.generation, &finish.base);
}

// Nothing more can come of what the master does now.
bool bel_remote_is_broken(const remote *r)
{
    return r->error != NULL || r->backend.lost;
}

int bel_remote_worker(const remote *r, int worker)
{
    return bel_members_find(r->config.members, BEL_ROLE_WORKER, 0) + worker; // one behind the other
}

int bel_remote_assigned(const remote *r)
{
    int count = r->seats;
    while (count > 0 && r->replicas[count - 1] == 0)
        count--;
    return count;
}
