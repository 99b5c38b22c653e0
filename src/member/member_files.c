// A shard or an evaluator that does not see the master's model folder. It has a private folder
// below the model folder's name on its host, MODEL_DIR/copies/ROLE-INDEX, with the checkpoints that
// it needs: those that a shard saved, and those that it requested from the master. It loads or
// evaluates a checkpoint when all its files have arrived; a shard has no state until then. Files
// from an earlier life on this host are checked and not requested again.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/files.h"
#include "checkpoint/folder.h"
#include "fetch/fetch.h"
#include "member/member_inner.h"

struct bel_member_files {
    char *folder;          // the private folder
    Bel__Message *message; // handled when all files are here: SETUP or EVALUATE; NULL: no request
    bel_fetch *fetch;      // the file under way, kept also without a master
    bel_ckpt_file *needed; // NULL: the manifest has not arrived yet
    int count, next;
    int64_t base;        // with `needed`: step of the base of a delta; 0: none
    bool base_asked;     // its manifest was requested
    bool ready;          // all files are here
    bool all;            // not only the files that a shard usually needs
    Bel__Message **kept; // received after the setup, for a state that is not complete
    size_t kept_count, kept_capacity, kept_taken;
};

static struct bel_member_files *files_of(member *m)
{
    if (m->files != NULL) return m->files;
    m->files = bel_xcalloc(1, sizeof *m->files);
    char *copies = bel_path_join(m->estimator->config.model_dir, "copies");
    char *name = bel_strf("%s-%d", bel_role_name(m->task->role), m->task->index);
    m->files->folder = bel_path_join(copies, name);
    bel_free(name);
    bel_free(copies);
    return m->files;
}

static bool is_setup(const Bel__Message *message)
{
    return message->kind_case == BEL__MESSAGE__KIND_SETUP;
}

static int64_t step_of(const struct bel_member_files *f)
{
    return is_setup(f->message) ? f->message->setup->schedule->first_step
                                : f->message->evaluate->step;
}

static void forget_needed(struct bel_member_files *f)
{
    bel_ckpt_files_free(f->needed, f->count);
    f->needed = NULL;
    f->count = f->next = 0;
    f->base = 0;
}

static void send_requests(member *m)
{
    Bel__Fetch request;
    while (bel_fetch_next(m->files->fetch, &request))
        bel_member_send(m, &request.base);
}

// Requests a file, or continues it if it has partly arrived.
static bel_status *ask_for(member *m, int64_t step, const char *name)
{
    struct bel_member_files *f = m->files;
    if (bel_fetch_is_of(f->fetch, step, name)) {
        bel_fetch_again(f->fetch);
    } else {
        char *folder;
        bel_fetch_destroy(f->fetch);
        f->fetch = NULL;
        BEL_TRY(bel_ckpt_make_folder(f->folder, step, &folder));
        bel_status *status = bel_fetch_begin(folder, step, name, &f->fetch);
        bel_free(folder);
        BEL_TRY(status);
    }
    send_requests(m);
    return NULL;
}

static void end_waiting(struct bel_member_files *f)
{
    bel_message_destroy(f->message);
    f->message = NULL;
    f->ready = f->base_asked = false;
    forget_needed(f);
}

// Requests the next missing file.
static bel_status *go_on(member *m)
{
    struct bel_member_files *f = m->files;
    while (f->next < f->count && f->needed[f->next].whole)
        f->next++;
    if (f->next < f->count) return ask_for(m, f->needed[f->next].step, f->needed[f->next].name);
    f->ready = true;
    return NULL;
}

const Bel__Message *bel_member_files_ready(member *m)
{
    return m->files != NULL && m->files->ready ? m->files->message : NULL;
}

int64_t bel_member_files_awaited(const member *m)
{
    return m->files != NULL && m->files->message != NULL ? step_of(m->files) : -1;
}

bel_status *bel_member_files_begun(member *m, bel_status *status)
{
    struct bel_member_files *f = m->files;
    f->ready = false;
    // More files are needed: the saved ones may be another model's.
    if (bel_status_code(status) == BEL_NOT_FOUND && !f->all) {
        bel_status_destroy(status);
        f->all = true;
        f->base_asked = false;
        forget_needed(f);
        m->generation = 0;
        return ask_for(m, step_of(f), BEL_CKPT_MANIFEST);
    }
    end_waiting(f); // kept messages are taken next
    return status;
}

// An evaluation needs the files of all shards.
bel_status *bel_member_files_ask(member *m, Bel__Message *message)
{
    struct bel_member_files *f = files_of(m);
    bel_member_files_drop(m);
    f->message = message;
    f->all = !is_setup(message);
    if (is_setup(message) && message->setup->schedule == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: no schedule");
    }
    return ask_for(m, step_of(f), BEL_CKPT_MANIFEST);
}

void bel_member_files_drop(member *m)
{
    struct bel_member_files *f = m->files;
    if (f == NULL) return;
    end_waiting(f);
    for (size_t i = f->kept_taken; i < f->kept_count; i++)
        bel_message_destroy(f->kept[i]);
    f->kept_count = f->kept_taken = 0;
}

bool bel_member_files_keep(member *m, Bel__Message *message)
{
    struct bel_member_files *f = m->files;
    bool is_kept = f != NULL && f->message != NULL &&
                   message->generation == f->message->generation &&
                   message->kind_case != BEL__MESSAGE__KIND_PIECE &&
                   message->kind_case != BEL__MESSAGE__KIND_END;
    if (!is_kept) return false;
    f->kept = bel_xgrow(f->kept, &f->kept_capacity, f->kept_count + 1, sizeof *f->kept);
    f->kept[f->kept_count++] = message;
    return true;
}

Bel__Message *bel_member_files_next(member *m)
{
    struct bel_member_files *f = m->files;
    bool any = f != NULL && f->message == NULL && f->kept_taken < f->kept_count;
    return any ? f->kept[f->kept_taken++] : NULL;
}

// Lists the files to request, after a manifest has arrived. Only now the base is known, so other
// checkpoints are not removed before: one of them may be it.
static bel_status *find_needed(member *m)
{
    struct bel_member_files *f = m->files;
    forget_needed(f);
    const Bel__Setup *setup = is_setup(f->message) ? f->message->setup : NULL;
    int shards = setup != NULL ? (int)setup->n_shards : 0;
    int mirrors = setup != NULL ? setup->mirrors : 0; // a malformed one is refused later
    bool mirrored = mirrors > 0 && mirrors < shards;
    int index = m->shard.index;
    const int own[] = {index, mirrored ? (index + shards - mirrors) % shards : index};
    BEL_TRY(bel_ckpt_files_needed(f->folder, step_of(f), f->all ? NULL : own, mirrored ? 2 : 1,
                                  shards, &f->needed, &f->count, &f->base));
    bool of_base = f->count == 1 && f->needed[0].size < 0;
    if (of_base && f->base_asked) {
        return BEL_ERR(
            BEL_DATA_LOSS,
            "the checkpoint of step %lld is a delta on that of step %lld, whose manifest "
            "came and is another one",
            (long long)step_of(f), (long long)f->base);
    }
    f->base_asked = f->base_asked || of_base;
    bel_ckpt_remove_others(f->folder, step_of(f), f->base);
    return NULL;
}

static bel_status *take_whole(member *m)
{
    struct bel_member_files *f = m->files;
    const bel_ckpt_file *file = f->needed != NULL ? &f->needed[f->next] : NULL;
    bool is_manifest = file == NULL || file->size < 0;
    bel_fetch *fetch = f->fetch;
    f->fetch = NULL;
    bel_status *status =
        bel_fetch_end(fetch, file != NULL ? file->size : -1, file != NULL ? file->crc32c : 0);
    bel_fetch_destroy(fetch);
    BEL_TRY(status);
    if (is_manifest)
        BEL_TRY(find_needed(m));
    else
        f->next++;
    return go_on(m);
}

bel_status *bel_member_files_take(member *m, const Bel__Piece *piece)
{
    struct bel_member_files *f = m->files;
    bool wanted = f != NULL && f->message != NULL && f->fetch != NULL &&
                  bel_fetch_is_of(f->fetch, piece->step, piece->file);
    if (!wanted) return NULL; // for a request that was given up
    BEL_TRY(bel_fetch_take(f->fetch, piece));
    if (bel_fetch_is_whole(f->fetch)) return take_whole(m);
    send_requests(m);
    return NULL;
}

char *bel_member_files_path(member *m, int64_t step)
{
    return bel_ckpt_find_folder(files_of(m)->folder, step);
}

bel_status *bel_member_files_open(member *m, int64_t step, bel_ckpt_reader **out_reader)
{
    return bel_ckpt_open_part(files_of(m)->folder, step, out_reader);
}

bel_status *bel_member_files_make(member *m, int64_t step, int64_t base, char **out_folder)
{
    const char *folder = files_of(m)->folder;
    BEL_TRY(bel_ckpt_make_folder(folder, step, out_folder));
    bel_ckpt_remove_others(folder, step, base);
    return NULL;
}

void bel_member_files_answer(member *m, Bel__Fetch *request)
{
    Bel__Piece piece;
    bel_fetch_answer(files_of(m)->folder, request, &piece);
    bel_member_send(m, &piece.base);
    bel_fetch_free_answer(&piece);
}

void bel_member_files_free(member *m)
{
    if (m->files == NULL) return;
    bel_member_files_drop(m);
    bel_fetch_destroy(m->files->fetch);
    bel_free(m->files->folder);
    bel_free(m->files->kept);
    bel_free(m->files);
}
