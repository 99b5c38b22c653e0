// Checkpoints: saving, and the start of a run. Between the shards' answers and the rename the
// master checks its members once more: a master that was replaced meanwhile, or has lost a member,
// must not make the checkpoint visible. After any error the unfinished folder is removed. The next
// master that begins a checkpoint removes leftovers of a kill.
//
// Every start is a load: initial values are first saved as ckpt-0, in a cluster by shards of this
// process, as no member has values yet. Segments of the input are carried from one checkpoint to
// the next, so that a resumed run reads no block twice.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/best.h"
#include "checkpoint/folder.h"
#include "checkpoint/setting_names.h"
#include "checkpoint/table.h"
#include "master/backend/embedded.h"
#include "master/job/job.h"

// --- Saving --------------------------------------------------------------------------------------

// Computes the segments at a step. With a ledger positions do not follow from the step: a run that
// continues from here begins with the first block that was not leased. Blocks that were leased and
// not used by then are omitted. At the end of the input the last step had fewer records than its
// blocks: a run over more epochs continues with the first record of the next one.
static int segments_at(const bel_job *job, int64_t step, bel_input_segment *out_segments)
{
    int count = job->segments.count;
    memcpy(out_segments, job->segments.items, (size_t)count * sizeof *out_segments);
    const bel_input_segment *last = bel_job_newest_segment(&job->segments);
    const bel_input *input = job->trainable.input;
    bel_input_segment *next = &out_segments[count];
    if (last->first_step == step) return count;
    *next = bel_input_segment_next(last, step, last->replica_count);
    if (job->backend->leased >= 0) next->first_block = job->backend->leased;
    bool beyond = next->first_block > bel_input_block_count(input, false);
    if (beyond) {
        next->first_block = bel_input_records(input) / next->batch_size;
        next->origin = bel_input_records(input) % next->batch_size;
    }
    return job->backend->leased >= 0 || beyond ? count + 1 : count;
}

// Chooses the base of the next checkpoint. It is full if the last full one is no longer whole.
static bel_ckpt_base choose_base(const bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    const bel_job_deltas *deltas = &job->deltas;
    bool due = deltas->count + 1 >= config->full_checkpoint_every;
    if (due || deltas->base.step == 0 || job->trainable.layout->table_count == 0)
        return (bel_ckpt_base){.step = 0};
    bel_status *status = bel_ckpt_check_full(config->model_dir, &deltas->base);
    if (status == NULL) return deltas->base;
    bel_log_write(BEL_LOG_WARN, "the next checkpoint is full: the base of a delta is bad: %s",
                  bel_status_message(status));
    bel_status_destroy(status);
    return (bel_ckpt_base){.step = 0};
}

// Notes a visible checkpoint.
static void note_saved(bel_job *job, bel_ckpt_base saved, bool is_delta)
{
    bel_job_deltas *deltas = &job->deltas;
    deltas->ends = is_delta;
    if (is_delta)
        deltas->count++;
    else
        *deltas = (bel_job_deltas){.base = saved};
}

// Makes the checkpoint visible; its digest becomes the result's. `mark`: the rows that were learned
// of a file that grows (follow.h); NULL: none.
static bel_status *save_commit(bel_job *job, int64_t step, const bel_ckpt_base *base,
                               const char *folder, bel_ckpt_shard **shards, const char *mark)
{
    bel_input_segment *segments = bel_xcalloc((size_t)job->segments.count + 1, sizeof *segments);
    bel_ckpt_info info = {.step = step,
                          .generation = job->backend->generation,
                          .seed = job->estimator->config.seed,
                          .segments = segments,
                          .segment_count = segments_at(job, step, segments),
                          .setting_names = (const char *const *)job->trainable.settings.names,
                          .setting_values = (const char *const *)job->trainable.settings.values,
                          .setting_count = job->trainable.settings.count,
                          .base = *base};
    const char *disk = job->estimator->config.table_disk;
    const char **names = bel_xcalloc(2 * ((size_t)info.setting_count + 3), sizeof *names);
    const char **values = names + info.setting_count + 3;
    memcpy(names, info.setting_names, (size_t)info.setting_count * sizeof *names);
    memcpy(values, info.setting_values, (size_t)info.setting_count * sizeof *values);
    info.setting_names = names;
    info.setting_values = values;
    if (job->loop.runs[0] != '\0') {
        names[info.setting_count] = BEL_SETTING_RUNS;
        values[info.setting_count++] = job->loop.runs;
    }
    if (mark != NULL) {
        names[info.setting_count] = BEL_SETTING_FOLLOWED;
        values[info.setting_count++] = mark;
    }
    if (disk != NULL && disk[0] != '\0') {
        names[info.setting_count] = BEL_SETTING_TABLE_DISK;
        values[info.setting_count++] = disk;
    }
    bel_hash128 digest;
    bel_status *status = bel_ckpt_commit(job->estimator->config.model_dir, folder, &info, shards,
                                         job->backend->shard_count, &digest);
    bel_free(segments);
    bel_free(names);
    if (status != NULL) return status;
    bel_hash128_text(digest, job->result.digest);
    job->steps.saved = step;
    job->steps.owed = false;
    bel_ckpt_bases_note(&job->bases, step, base->step);
    note_saved(job, (bel_ckpt_base){.step = step, .digest = digest}, base->step > 0);
    return NULL;
}

static bel_status *tell_hooks(bel_job *job, int64_t step)
{
    bel_hook_context context = {
        .estimator = job->estimator, .stop = &job->stopping.soon, .log = job->log, .step = step};
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    bel_status *status =
        bel_hooks_after_save(&job->trainable.hooks, &context, step, folder != NULL ? folder : "");
    bel_free(folder);
    return status;
}

static bel_status *save(bel_job *job, int64_t step, bel_ckpt_base base)
{
    const bel_run_config *config = &job->estimator->config;
    char *folder;
    bool again = job->steps.saved == step;             // in full, after a delta that hooks know
    if (job->log != NULL) bel_run_log_flush(job->log); // a later master does not write it again
    BEL_TRY(bel_job_await_loop(job, step));
    int64_t begun = bel_trace_begin();
    int64_t incarnation = job->task != NULL ? job->task->incarnation : 0;
    BEL_TRY(
        bel_ckpt_begin(config->model_dir, step, job->backend->generation, incarnation, &folder));
    size_t count = (size_t)job->backend->shard_count;
    bel_ckpt_shard **shards = bel_xcalloc(count, sizeof(bel_ckpt_shard *));
    bel_fault_point("master_saves");
    bel_status *status =
        job->backend->ops->write_shards(job->backend, folder, step, base.step, shards);
    if (status == NULL) status = bel_job_write_hooks(job, folder);
    // After a loss, perhaps of this master's role, the checkpoint must not become visible.
    if (status == NULL) status = job->backend->ops->attend(job->backend, 0);
    bel_str mark = {0};
    // A worker may have read another file that has the name now.
    if (status == NULL && job->loop.follow != NULL)
        status =
            bel_follow_mark(job->loop.follow, bel_job_newest_segment(&job->segments), step, &mark);
    if (status == NULL) status = save_commit(job, step, &base, folder, shards, mark.text);
    bel_str_deinit(&mark);
    if (status != NULL) bel_status_ignore(bel_dir_remove(folder)); // the first error counts
    for (size_t k = 0; k < count; k++)
        bel_ckpt_shard_destroy(shards[k]);
    bel_free(shards);
    bel_free(folder);
    BEL_TRY_CTX(status, "saving a checkpoint at step %lld", (long long)step);
    if (job->loop.follow != NULL)
        bel_follow_saved(job->loop.follow, bel_job_newest_segment(&job->segments), step);
    bel_trace_end((bel_trace_event){.role = BEL_TRACE_MASTER, .span = BEL_TRACE_SAVE, .step = step},
                  begun);
    char delta[64] = "";
    if (base.step > 0)
        bel_snprintf(delta, sizeof delta, ", a delta on step %lld", (long long)base.step);
    bel_log_write(BEL_LOG_DEBUG, "saved checkpoint at step %lld, digest %s%s", (long long)step,
                  job->result.digest, delta);
    bel_job_retain(job);
    return job->hooks.begun && !again ? tell_hooks(job, step) : NULL;
}

bel_status *bel_job_save(bel_job *job, int64_t step)
{
    return save(job, step, choose_base(job));
}

bel_status *bel_job_save_last(bel_job *job, int64_t step)
{
    return save(job, step, (bel_ckpt_base){.step = 0});
}

// --- Rows of tables ------------------------------------------------------------------------------

// In one process its shard has logged the rows of a table in which they come and go.
static void say_table(const bel_job *job, const char *name, int64_t rows)
{
    const bel_run_config *config = &job->estimator->config;
    long long step = job->state.step, uses = config->table_admit_after;
    bool expires = config->table_expire_after > 0;
    if (rows == 0) {
        char *wait = uses > 1 ? bel_strf("; no key was used %lld times (table_admit_after)%s", uses,
                                         expires ? ", or all rows have expired" : "")
                              : bel_xstrdup(expires ? "; all rows have expired" : "");
        bel_log_write(BEL_LOG_WARN, "table \"%s\" has no row at step %lld%s", name, step, wait);
        bel_free(wait);
    } else if (job->task != NULL && (uses > 1 || expires)) {
        bel_log_write(BEL_LOG_INFO,
                      "table \"%s\" at step %lld: %lld rows on all shards, whose logs say how many "
                      "were created and have expired",
                      name, step, (long long)rows);
    }
}

void bel_job_say_rows(const bel_job *job)
{
    const bel_layout *layout = job->trainable.layout;
    if (layout->table_count == 0 || job->state.step == 0) return;
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, job->steps.saved);
    bel_ckpt_reader *reader = NULL;
    bel_status *status = folder != NULL ? bel_ckpt_open_lazily(folder, &reader) : NULL;
    bel_free(folder);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "the rows of tables are not counted: %s",
                      bel_status_message(status));
    bel_status_ignore(status); // logged; the job is whole without
    if (reader == NULL) return;
    for (int i = 0; i < bel_ckpt_table_count(reader); i++) {
        int64_t rows;
        bel_ckpt_table table = bel_ckpt_table_at(reader, i, &rows);
        for (int t = 0; t < layout->table_count; t++) // others are ages and counts
            if (strcmp(layout->tables[t].name, table.name) == 0) say_table(job, table.name, rows);
    }
    bel_ckpt_close(reader);
}

// --- Resuming ------------------------------------------------------------------------------------

static void set_segments(bel_job_segments *segments, const bel_input_segment *from, int count)
{
    bel_free(segments->items);
    segments->items = bel_xcalloc((size_t)count + 1, sizeof *segments->items);
    memcpy(segments->items, from, (size_t)count * sizeof *from);
    segments->count = count;
}

// Saves initial values as ckpt-0 in a new run, which is then loaded like any other checkpoint. In a
// cluster shards of this process write it, as no member has values yet.
static bel_status *save_first(bel_job *job)
{
    bel_input_segment segment = {
        .replica_count = bel_estimator_blocks_per_step(job->estimator, &job->trainable.counting),
        .batch_size = bel_input_batch_size(job->trainable.input)};
    set_segments(&job->segments, &segment, 1);
    bel_backend *backend = job->backend, *first = NULL;
    if (job->task != NULL) BEL_TRY(bel_embedded_create(&job->trainable, &first));
    if (first != NULL) job->backend = first;
    bel_status *status = bel_job_initialize(job, job->backend->values);
    if (status == NULL && job->backend->averages != NULL) { // averages begin as the values
        memcpy(job->backend->averages, job->backend->values,
               (size_t)job->trainable.layout->size * sizeof(float));
    }
    if (status == NULL) status = bel_ckpt_best_forget(job->estimator->config.model_dir);
    if (status == NULL) status = bel_job_save(job, 0);
    if (first != NULL) first->ops->destroy(first);
    job->backend = backend;
    return status;
}

static void add_segment(bel_job_segments *segments, int64_t step, int64_t replicas)
{
    const bel_input_segment last = *bel_job_newest_segment(segments);
    size_t count = (size_t)segments->count + 1;
    segments->items = bel_xrealloc(segments->items, count * sizeof *segments->items);
    segments->items[segments->count++] = bel_input_segment_next(&last, step, replicas);
}

// With another batch size (allowed by --allow_changes) the run continues at the same record.
static bel_status *take_batch_size(bel_job *job, int64_t step)
{
    int64_t own = bel_input_batch_size(job->trainable.input), records;
    bel_input_segment *last = bel_job_newest_segment(&job->segments), resized;
    if (last->batch_size == 0) last->batch_size = own; // an earlier version: assumed equal
    if (last->batch_size == own) return NULL;
    if (!bel_input_segment_resize(last, step, own, &resized, &records)) {
        return BEL_ERR(BEL_DATA_LOSS, "its input segments count more records than 64 bits hold");
    }
    bel_log_write(BEL_LOG_INFO,
                  "batches of %lld records instead of %lld: training continues after the %lld "
                  "records that were read",
                  (long long)own, (long long)last->batch_size, (long long)records);
    add_segment(&job->segments, step, last->replica_count);
    *bel_job_newest_segment(&job->segments) = resized;
    return NULL;
}

// With another number of replicas (allowed by --allow_changes) a new segment of blocks begins; with
// a ledger always, since leases are counted from there.
static bel_status *continue_segments(bel_job *job, const bel_ckpt_info *info)
{
    set_segments(&job->segments, info->segments, info->segment_count);
    BEL_TRY(take_batch_size(job, info->step));
    const bel_input_segment last = *bel_job_newest_segment(&job->segments);
    int64_t replicas = bel_estimator_blocks_per_step(job->estimator, &job->trainable.counting);
    bool begins =
        !bel_counting_has_ledger(&job->trainable.counting) || last.first_step == info->step;
    bel_input_set_origin(job->trainable.input, last.origin);
    if (job->estimator->config.elastic_rescale) return NULL; // bel_job_rescale decides
    if (last.replica_count != replicas || !begins)
        add_segment(&job->segments, info->step, replicas);
    return NULL;
}

// Replicas whose batches make a step: with backups only those of the workers that count.
static int64_t counted_replicas(const bel_job *job)
{
    const bel_counting *counting = &job->trainable.counting;
    if (!bel_counting_has_ledger(counting)) return job->backend->replica_count;
    return (int64_t)counting->workers * job->estimator->replicas_of[0];
}

// Scales rates. The given rate is for one replica, and the optimizer knows how warm-up reaches the
// scale.
static void scale_rates(bel_job *job)
{
    int64_t replicas = counted_replicas(job);
    bel_built *built = job->trainable.built;
    for (int f = 0; f < built->function_count; f++) {
        built->optimizers[f] = job->optimizers[f];
        bel_optimizers_set_scale(&built->optimizers[f], (double)replicas);
    }
    bel_log_write(BEL_LOG_INFO, "scale_learning_rate: %lld times the learning rate",
                  (long long)replicas);
}

// The linear rule (Goyal et al. 2017, section 2.1): a batch k times as large needs a rate k times
// as high. With only elastic_rescale the given rate is for the first segment's replicas.
void bel_job_rescale(bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    int64_t replicas = job->backend->replica_count;
    bool changes = config->elastic_rescale &&
                   bel_job_newest_segment(&job->segments)->replica_count != replicas;
    if (changes) add_segment(&job->segments, job->steps.first, replicas);
    if (config->scale_learning_rate != BEL_SCALE_NONE) scale_rates(job);
    if (!config->elastic_rescale || config->scale_learning_rate != BEL_SCALE_NONE) return;
    double factor = (double)replicas / (double)job->segments.items[0].replica_count;
    bel_built *built = job->trainable.built;
    for (int f = 0; f < built->function_count; f++) {
        built->optimizers[f] = job->optimizers[f];
        bel_optimizers_scale(&built->optimizers[f], factor);
    }
    if (!changes) return;
    bel_log_write(BEL_LOG_INFO,
                  "%lld replica%s from step %lld on: %g times the learning rate of %lld; schedules "
                  "count steps as before, and the data now give another number of them",
                  (long long)replicas, replicas == 1 ? "" : "s", (long long)job->steps.first,
                  factor, (long long)job->segments.items[0].replica_count);
}

// Compares settings. More passes, or a schedule that ends later, are the same training. They are
// logged, as earlier steps had the old schedule, and the last of them perhaps a short batch.
static bel_status *compare_settings(const bel_job *job, const bel_ckpt_reader *reader)
{
    bel_str longer = {0};
    bel_status *status =
        bel_settings_compare(&job->trainable.settings, job->trainable.input, reader,
                             job->estimator->config.allow_changes, &longer);
    if (status == NULL && longer.length > 0) {
        long long step = (long long)bel_ckpt_reader_info(reader)->step;
        bel_log_write(BEL_LOG_INFO,
                      "training is longer from step %lld on: %s; steps up to %lld had the old "
                      "length, so the result is not that of one training of the new length",
                      step, longer.text, step);
    }
    bel_str_deinit(&longer);
    return status;
}

// Loads the checkpoint's position in the input and its values.
static bel_status *save_load(bel_job *job, const bel_ckpt_reader *reader)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    BEL_TRY(compare_settings(job, reader));
    if (info->segment_count < 1) {
        return BEL_ERR(BEL_DATA_LOSS, "%s has no input segments", bel_ckpt_folder(reader));
    }
    BEL_TRY_CTX(continue_segments(job, info), "%s", bel_ckpt_folder(reader));
    if (job->loop.follow != NULL) {
        BEL_TRY_CTX(bel_follow_begin(job->loop.follow, bel_job_newest_segment(&job->segments),
                                     info->step, bel_ckpt_setting(reader, BEL_SETTING_FOLLOWED)),
                    "%s", bel_ckpt_folder(reader));
    }
    BEL_TRY(job->backend->ops->load(job->backend, reader));
    BEL_TRY(bel_job_read_hooks(job, bel_ckpt_folder(reader)));
    if (job->loop.replicator != NULL && job->trainable.built->function_count > 1) {
        BEL_TRY_CTX(bel_replicator_load_runs(job->loop.replicator,
                                             bel_ckpt_setting(reader, BEL_SETTING_RUNS)),
                    "%s", bel_ckpt_folder(reader));
    }
    job->steps.first = job->steps.found = job->steps.saved = info->step;
    job->points.told_step = job->state.step = info->step;
    job->deltas = (bel_job_deltas){.count = 0};
    bel_hash128_text(bel_ckpt_reader_digest(reader), job->result.digest);
    return NULL;
}

// Whether there are only initial values of an abandoned run, perhaps because its data could not be
// read: another run may replace them.
static bool is_only_begun(const bel_job *job, const bel_ckpt_reader *reader)
{
    const bel_run_config *config = &job->estimator->config;
    int64_t *steps = NULL;
    size_t count = 0;
    if (bel_ckpt_reader_info(reader)->step > 0 || config->allow_changes) return false;
    bel_status *listing = bel_ckpt_list(config->model_dir, &steps, &count);
    bool alone = listing == NULL && count == 1; // no other, possibly damaged one
    bel_free(steps);
    bel_status_ignore(listing); // resuming reports the fault
    if (!alone) return false;
    bel_status *status =
        bel_settings_compare(&job->trainable.settings, job->trainable.input, reader, false, NULL);
    bool differs = bel_status_code(status) == BEL_FAILED_PRECONDITION;
    bel_status_ignore(status); // nothing was trained with them
    return differs;
}

// Afterwards a checkpoint exists in any case, and is loaded.
bel_status *bel_job_resume(bel_job *job)
{
    const char *model_dir = job->estimator->config.model_dir;
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_latest(model_dir, &reader));
    if (reader != NULL && is_only_begun(job, reader)) {
        bel_log_write(BEL_LOG_INFO, "nothing was trained in %s yet: it starts again", model_dir);
        bel_ckpt_close(reader);
        reader = NULL;
    }
    if (reader == NULL) {
        BEL_TRY(save_first(job));
        BEL_TRY(bel_ckpt_open_latest(model_dir, &reader));
        if (reader == NULL)
            return BEL_ERR(BEL_DATA_LOSS, "%s: the checkpoint that was just saved is gone",
                           model_dir);
    } else {
        bool begins = job->spec->warm_start.checkpoint != NULL || job->spec->init_fn != NULL;
        bel_log_write(BEL_LOG_INFO, "resuming from %s%s", bel_ckpt_folder(reader),
                      begins ? "; the initial values of a new run are skipped" : "");
    }
    bel_status *status = save_load(job, reader);
    bel_ckpt_close(reader);
    return status;
}

// Goes back after a loss, or continues after a pause. Evaluations of steps that will be repeated
// count as not made.
bel_status *bel_job_go_back(bel_job *job)
{
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_latest(job->estimator->config.model_dir, &reader));
    if (reader == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: the checkpoint to go back to is gone",
                       job->estimator->config.model_dir);
    }
    int64_t step = job->state.step; // from shard 0's last report
    int64_t reached = job->backend->reached > step ? job->backend->reached : step;
    job->steps.owed = false;
    bool paused = job->backend->paused && !job->backend->lost; // then nothing is lost
    bel_status *status = save_load(job, reader);
    if (status == NULL && !paused) {
        bel_log_write(BEL_LOG_WARN, "going back from step %lld to %s", (long long)reached,
                      bel_ckpt_folder(reader));
        bel_run_log_go_back(job->log, job->steps.first);
    }
    bel_ckpt_close(reader);
    for (int i = 0; i < job->evals.count; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        if (eval->last_step > job->steps.first) eval->last_step = eval->done_step = -1;
    }
    return status;
}
