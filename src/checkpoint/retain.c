// Retention: which checkpoints of a model folder stay. It uses the time of the manifest, which is
// not written again after the commit. A base stays as long as a delta on it stays, and does not
// count as one of the newest for that reason. Deltas go before their bases: they are newer, and the
// newest are removed first. A base that is damaged takes its deltas with it, so a second full
// checkpoint stays beside the only base of all that stay.
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

enum { NO_MANIFEST = -1, UNREADABLE = -2 };

// The listed checkpoints, ascending, of which the first `old` may go.
typedef struct retaining {
    const char *model_dir;
    int64_t *steps;
    size_t count, old;
    bool *stays;
    int64_t *base; // step of each one's base; 0: it is full; or one of those above
    bool any_delta;
    bel_ckpt_bases *bases;
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

// --- Bases ---------------------------------------------------------------------------------------

static bel_ckpt_known *find_known(const bel_ckpt_bases *bases, int64_t step)
{
    for (size_t i = 0; i < bases->count; i++)
        if (bases->items[i].step == step) return &bases->items[i];
    return NULL;
}

void bel_ckpt_bases_note(bel_ckpt_bases *bases, int64_t step, int64_t base)
{
    bel_ckpt_known *known = find_known(bases, step);
    if (known == NULL) {
        bases->items =
            bel_xgrow(bases->items, &bases->capacity, bases->count + 1, sizeof *bases->items);
        known = &bases->items[bases->count++];
    }
    *known = (bel_ckpt_known){.step = step, .base = base};
}

void bel_ckpt_bases_deinit(bel_ckpt_bases *bases)
{
    bel_free(bases->items);
}

// Reads the base of a listed checkpoint, unless it is known. A manifest that cannot be read now is
// read again by the next pass.
static int64_t read_base(const retaining *r, int64_t step)
{
    bel_ckpt_base base = {0};
    const bel_ckpt_known *known = find_known(r->bases, step);
    if (known != NULL) return known->base;
    char *folder = bel_ckpt_find_folder(r->model_dir, step);
    bel_status *status = bel_ckpt_read_base(folder, &base);
    bel_free(folder);
    if (status == NULL) {
        bel_ckpt_bases_note(r->bases, step, base.step);
        return base.step;
    }
    bool gone = bel_status_code(status) == BEL_NOT_FOUND;
    bel_status_ignore(status); // its readers report it
    return gone ? NO_MANIFEST : UNREADABLE;
}

// Gets the bases of the listed checkpoints, and forgets those of others.
static void read_bases(retaining *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        r->base[i] = read_base(r, r->steps[i]);
        r->any_delta = r->any_delta || r->base[i] > 0;
    }
    for (size_t k = 0; k < r->bases->count; k++) {
        bool listed = false;
        for (size_t i = 0; i < r->count && !listed; i++)
            listed = r->steps[i] == r->bases->items[k].step;
        if (listed) r->bases->items[kept++] = r->bases->items[k];
    }
    r->bases->count = kept;
}

static void say_base_stays(const retaining *r, size_t base, size_t delta)
{
    if (base + 1 != r->old) return; // it was logged
    bel_log_write(BEL_LOG_INFO,
                  "the checkpoint of step %lld stays beyond keep_checkpoint_max, as that of step "
                  "%lld is a delta on it",
                  (long long)r->steps[base], (long long)r->steps[delta]);
}

// Keeps the base of a checkpoint that stays, and logs it when it is no longer one of the newest. If
// its manifest cannot be read, each older checkpoint that is no delta may be its base.
static void keep_base(const retaining *r, size_t delta)
{
    for (size_t i = 0; i < delta; i++) {
        bool unknown =
            r->base[delta] == UNREADABLE && (r->base[i] == 0 || r->base[i] == UNREADABLE);
        bool is_base = r->base[delta] > 0 && r->steps[i] == r->base[delta];
        if (r->stays[i] || !(unknown || is_base)) continue;
        r->stays[i] = true;
        if (is_base) {
            say_base_stays(r, i, delta);
        } else {
            bel_log_write(BEL_LOG_WARN,
                          "the checkpoint of step %lld stays, as that of step %lld may be a delta "
                          "on it: its manifest cannot be read",
                          (long long)r->steps[i], (long long)r->steps[delta]);
        }
    }
}

// Keeps the newest full checkpoint beside the only one on which all that stay depend.
static void keep_spare(const retaining *r)
{
    size_t full = 0, spare = r->count;
    bool delta = false;
    for (size_t i = 0; i < r->count; i++) {
        full += r->stays[i] && r->base[i] == 0;
        delta = delta || (r->stays[i] && r->base[i] > 0);
        if (!r->stays[i] && r->base[i] == 0) spare = i;
    }
    if (!delta || full > 1 || spare == r->count) return;
    r->stays[spare] = true;
    if (r->bases->spare == r->steps[spare]) return; // it was logged
    r->bases->spare = r->steps[spare];
    bel_log_write(BEL_LOG_INFO,
                  "the checkpoint of step %lld stays beyond keep_checkpoint_max until there are "
                  "two newer full ones",
                  (long long)r->steps[spare]);
}

// Without any delta nothing more stays, whatever cannot be read.
static void keep_bases(retaining *r)
{
    bool any = false;
    for (size_t i = 0; i < r->old; i++)
        any = any || !r->stays[i];
    if (any) read_bases(r);
    if (!r->any_delta) return;
    for (size_t i = r->count; i-- > 0;)
        if (r->stays[i]) keep_base(r, i);
    keep_spare(r);
}

// A delta that cannot be removed keeps its base.
static void remove_old(const retaining *r)
{
    for (size_t i = r->old; i-- > 0;) {
        if (r->stays[i]) continue;
        bel_status *status = bel_ckpt_remove(r->model_dir, r->steps[i]);
        if (status != NULL && r->any_delta) keep_base(r, i);
        bel_ckpt_say_stays(BEL_LOG_WARN, status);
    }
}

// --- A pass --------------------------------------------------------------------------------------

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
    r->base = bel_xcalloc(r->count, sizeof *r->base);
    choose(r, keep_every_n_hours, kept, kept_count);
    keep_bases(r);
    remove_old(r);
    return NULL;
}

void bel_ckpt_retain_but(const char *model_dir, int keep_max, double keep_every_n_hours,
                         const int64_t *held, int held_count, bel_ckpt_bases *bases)
{
    enum { MOST = 3 };
    int64_t kept[MOST] = {-1};
    bel_ckpt_bases own = {0};
    BEL_CHECK(held_count < MOST);
    if (keep_max <= 0) return;
    for (int i = 0; i < held_count; i++)
        kept[1 + i] = held[i];
    retaining r = {.model_dir = model_dir, .bases = bases != NULL ? bases : &own};
    bel_status *status = retain(&r, keep_max, keep_every_n_hours, kept, held_count + 1);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "old checkpoints stay: %s", bel_status_message(status));
    bel_status_ignore(status); // reported
    bel_free(r.steps);
    bel_free(r.stays);
    bel_free(r.base);
    bel_ckpt_bases_deinit(&own);
}

void bel_ckpt_retain(const char *model_dir, int keep_max, double keep_every_n_hours, int64_t held)
{
    bel_ckpt_retain_but(model_dir, keep_max, keep_every_n_hours, &held, 1, NULL);
}
