// Checkpoints of members without access to the model folder. A shard requests the files to load, an
// evaluator those to evaluate. A shard's part, written in a separate folder, is requested here, and
// counts as saved when it has arrived completely. The member belongs to this job, as its secret has
// proved, and still gets only files of checkpoints.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/files.h"
#include "fetch/fetch.h"
#include "master/backend/remote_inner.h"

static void send_requests(remote *r, int shard)
{
    Bel__Fetch request;
    while (bel_fetch_next(r->saving.pulls[shard], &request))
        bel_remote_send_to_shard(r, shard, &request.base);
}

// Requests "shard-00000-of-00002.safetensors".
static bel_status *remote_begin(remote *r, int shard)
{
    char *name = bel_ckpt_shard_file_name(shard, r->backend.shard_count);
    bel_status *status =
        bel_fetch_begin(r->asked.folder, r->asked.step, name, &r->saving.pulls[shard]);
    bel_free(name);
    return status;
}

void bel_remote_pull(remote *r, int shard)
{
    bel_status *status = remote_begin(r, shard);
    if (status != NULL) {
        bel_remote_fail(r, status);
    } else {
        send_requests(r, shard);
    }
}

void bel_remote_pull_again(remote *r, int shard)
{
    if (r->saving.pulls[shard] == NULL) return; // it has arrived
    bel_fetch_again(r->saving.pulls[shard]);
    send_requests(r, shard);
}

void bel_remote_end_pulls(remote *r)
{
    for (int k = 0; k < r->backend.shard_count; k++) {
        bel_fetch_destroy(r->saving.pulls[k]);
        r->saving.pulls[k] = NULL;
    }
}

// Finishes a complete file, which must match the shard's report.
static bel_status *remote_end(remote *r, int shard)
{
    int64_t size;
    uint32_t crc32c;
    bel_ckpt_shard_file(r->saving.parts[shard], &size, &crc32c);
    BEL_TRY(bel_fetch_end(r->saving.pulls[shard], size, crc32c));
    bel_fetch_destroy(r->saving.pulls[shard]);
    r->saving.pulls[shard] = NULL;
    r->saving.saved++;
    return NULL;
}

static bel_status *remote_take(remote *r, int shard, const Bel__Piece *piece)
{
    BEL_TRY(bel_fetch_take(r->saving.pulls[shard], piece));
    r->saving.piece_ns = bel_clock_awake_ns();
    if (bel_fetch_is_whole(r->saving.pulls[shard])) return remote_end(r, shard);
    send_requests(r, shard);
    return NULL;
}

void bel_remote_take_piece(remote *r, int member, const Bel__Piece *piece)
{
    int shard = bel_remote_shard_of(r, member);
    if (!bel_fetch_is_of(r->saving.pulls[shard], piece->step, piece->file)) return;
    bel_status *status = remote_take(r, shard, piece);
    if (status != NULL) {
        bel_remote_fail(r, bel_status_wrap(status, __FILE__, __LINE__, "shard %d", shard));
    }
}

void bel_remote_answer_fetch(remote *r, int member, Bel__Fetch *request)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    Bel__Piece piece;
    // Its setup told it to fetch, also if it sees the folder meanwhile.
    if (m->role != BEL_ROLE_EVALUATOR)
        r->progress.last_ns = bel_clock_awake_ns(); // steps wait for it
    bel_fetch_answer(r->config.trainable->estimator->config.model_dir, request, &piece);
    bel_members_send(r->config.members, member, r->backend.generation, &piece.base);
    bel_fetch_free_answer(&piece);
}
