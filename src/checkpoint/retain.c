// Retention: which checkpoints of a model folder stay. It uses the time of the manifest, which is
// not written again after the commit. A base stays as long as a delta on it stays, and does not
// count as one of the newest for that reason. Deltas go before their bases: they are newer, and the
// newest are removed first.
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "checkpoint/best.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"

// The listed checkpoints, ascending, of which the first `old` may go.
typedef struct retaining {
    const char *model_dir;
    int64_t *steps;
    size_t count, old;
    bool *stays;
} retaining;

// Reads the commit time: that of the manifest, which is not written again.
static bool commit_time(const char *folder, double *out_seconds)
{
    char *manifest = bel_path_join(folder, BEL_MANIFEST_NAME);
    struct stat info;
    bool found = stat(manifest, &info) == 0;
    bel_free(manifest);
    if (found) *out_seconds = (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
    return found;
}

static bool is_among(int64_t step, const int64_t *steps, int count)
{
    for (int i = 0; i < count; i++)
        if (steps[i] == step) return true;
    return false;
}

// Keeps the newest, and those of `kept`. With a period it keeps the first of the others, and then
// each one committed at least that long after the last one kept.
static void choose(const retaining *r, double keep_every_n_hours, const int64_t *kept,
                   int kept_count)
{
    bool have_kept = false;
    double kept_time = 0;
    for (size_t i = 0; i < r->count; i++) {
        char *folder = bel_ckpt_find_folder(r->model_dir, r->steps[i]);
        double time;
        r->stays[i] = i >= r->old || is_among(r->steps[i], kept, kept_count);
        bool due = i < r->old && keep_every_n_hours > 0 && commit_time(folder, &time) &&
                   (!have_kept || time - kept_time >= keep_every_n_hours * 3600.0);
        if (due) {
            r->stays[i] = have_kept = true;
            kept_time = time;
        }
        bel_free(folder);
    }
}

// Keeps the base of a checkpoint that stays, and logs it when it is no longer one of the newest. A
// damaged checkpoint keeps none.
static bel_status *keep_base(const retaining *r, size_t delta)
{
    bel_ckpt_base base = {0};
    char *folder = bel_ckpt_find_folder(r->model_dir, r->steps[delta]);
    bel_status *status = bel_ckpt_read_base(folder, &base);
    bel_free(folder);
    bel_code code = bel_status_code(status);
    if (code == BEL_DATA_LOSS || code == BEL_NOT_FOUND) {
        bel_status_ignore(status); // its readers report it
        return NULL;
    }
    BEL_TRY(status);
    for (size_t i = 0; i < delta; i++) {
        if (base.step == 0 || r->steps[i] != base.step || r->stays[i]) continue;
        r->stays[i] = true;
        if (i + 1 != r->old) continue; // it was logged
        bel_log_write(
            BEL_LOG_INFO,
            "the checkpoint of step %lld stays beyond keep_checkpoint_max, as that of step "
            "%lld is a delta on it",
            (long long)base.step, (long long)r->steps[delta]);
    }
    return NULL;
}

static bel_status *keep_bases(const retaining *r)
{
    bool any = false;
    for (size_t i = 0; i < r->old; i++)
        any = any || !r->stays[i];
    for (size_t i = r->count; any && i-- > 0;)
        if (r->stays[i]) BEL_TRY(keep_base(r, i));
    return NULL;
}

static bel_status *retain(retaining *r, int keep_max, double keep_every_n_hours, int64_t *kept,
                          int kept_count)
{
    bel_ckpt_best best;
    bool found;
    BEL_TRY(bel_ckpt_best_read(r->model_dir, &best, &found));
    if (found) kept[0] = best.step;
    BEL_TRY(bel_ckpt_list(r->model_dir, &r->steps, &r->count));
    r->old = r->count > (size_t)keep_max ? r->count - (size_t)keep_max : 0;
    r->stays = bel_xcalloc(r->count, sizeof *r->stays);
    choose(r, keep_every_n_hours, kept, kept_count);
    BEL_TRY(keep_bases(r));
    for (size_t i = r->old; i-- > 0;)
        if (!r->stays[i])
            bel_ckpt_say_stays(BEL_LOG_WARN, bel_ckpt_remove(r->model_dir, r->steps[i]));
    return NULL;
}

void bel_ckpt_retain_but(const char *model_dir, int keep_max, double keep_every_n_hours,
                         const int64_t *held, int held_count)
{
    enum { MOST = 3 };
    int64_t kept[MOST] = {-1};
    BEL_CHECK(held_count < MOST);
    if (keep_max <= 0) return;
    memcpy(kept + 1, held, (size_t)held_count * sizeof *kept);
    retaining r = {.model_dir = model_dir};
    bel_status *status = retain(&r, keep_max, keep_every_n_hours, kept, held_count + 1);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "old checkpoints stay: %s", bel_status_message(status));
    bel_status_ignore(status); // reported
    bel_free(r.steps);
    bel_free(r.stays);
}

void bel_ckpt_retain(const char *model_dir, int keep_max, double keep_every_n_hours, int64_t held)
{
    bel_ckpt_retain_but(model_dir, keep_max, keep_every_n_hours, &held, 1);
}
