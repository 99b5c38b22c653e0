// Members come from the board as of its last update, and their numbers are those of live processes:
// a replaced process's counts are lost. Only the last epochs are listed, as a long run has many;
// all of them are checked.
//
// Checking notes takes 24 bytes of memory for each read record. A report must not cost more than
// training, so from MOST_NOTE_BYTES on the check is left to `belfry inspect --audit`.
#include "master/job/job_tables.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "input/batch/audit.h"
#include "report/report_chart.h"

enum { MOST_NOTE_BYTES = 64 << 20, LISTED_EPOCHS = 12 };

// --- Filling -------------------------------------------------------------------------------------

#define COLUMNS(names) (names), (int)(sizeof(names) / sizeof(names)[0])

// Begins a table without rows; the table owns the sentence (NULL: none).
static void begin_table(bel_job_tables *t, const char *title, char *sentence,
                        const char *const *columns, int column_count)
{
    t->texts[t->count].sentence = sentence;
    t->tables[t->count++] = (bel_report_table){
        .title = title, .sentence = sentence, .columns = columns, .column_count = column_count};
}

// Adds the next cell of the newest table, row by row; the table owns the text.
static void job_tables_put(bel_job_tables *t, char *text)
{
    int at = t->count - 1;
    size_t count = t->texts[at].cell_count + 1;
    t->texts[at].cells =
        bel_xgrow(t->texts[at].cells, &t->texts[at].capacity, count, sizeof(char *));
    t->texts[at].cells[count - 1] = text;
    t->texts[at].cell_count = count;
    t->tables[at].cells = (const char *const *)t->texts[at].cells;
    t->tables[at].row_count = (int)count / t->tables[at].column_count;
}

static void put_count(bel_job_tables *t, double count)
{
    bel_str text = {0};
    bel_report_integer(&text, (int64_t)count);
    job_tables_put(t, text.text);
}

// Adds milliseconds per step.
static void put_ms(bel_job_tables *t, double seconds, double steps)
{
    job_tables_put(t, steps > 0 ? bel_strf("%.3f", 1e3 * seconds / steps) : bel_xstrdup("–"));
}

static void put_bytes(bel_job_tables *t, double bytes)
{
    char text[32];
    job_tables_put(t, bel_xstrdup(bytes > 0 ? bel_bytes_text((uint64_t)bytes, text) : "–"));
}

void bel_job_tables_deinit(bel_job_tables *tables)
{
    for (int i = 0; i < tables->count; i++) {
        for (size_t k = 0; k < tables->texts[i].cell_count; k++)
            bel_free(tables->texts[i].cells[k]);
        bel_free(tables->texts[i].cells);
        bel_free(tables->texts[i].sentence);
    }
    *tables = (bel_job_tables){.count = 0};
}

// --- Members -------------------------------------------------------------------------------------

static void put_worker(bel_job_tables *t, const bel_board_row *row)
{
    static const bel_number times[] = {BEL_NUMBER_INPUT, BEL_NUMBER_COMPUTE, BEL_NUMBER_PUSH,
                                       BEL_NUMBER_EXCHANGE};
    static const bel_number reports[] = {BEL_NUMBER_COUNTED, BEL_NUMBER_STALE, BEL_NUMBER_DROPPED};
    double steps = row->values[BEL_NUMBER_STEPS];
    job_tables_put(t, bel_strf("worker %d", row->index));
    put_count(t, steps);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        put_ms(t, row->values[times[i]], steps);
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        put_count(t, row->values[reports[i]]);
    put_bytes(t, row->values[BEL_NUMBER_MEMORY]);
}

static void put_shard(bel_job_tables *t, const bel_board_row *row)
{
    double versions = row->values[BEL_NUMBER_VERSIONS];
    job_tables_put(t, bel_strf("shard %d", row->index));
    put_count(t, versions);
    put_ms(t, row->values[BEL_NUMBER_PASSING], versions);
    put_ms(t, row->values[BEL_NUMBER_APPLY], versions - 1); // the first was not made
    put_bytes(t, row->values[BEL_NUMBER_RECEIVED]);
    put_bytes(t, row->values[BEL_NUMBER_SENT]);
    put_bytes(t, row->values[BEL_NUMBER_MEMORY]);
}

// Summarizes restarts of processes, and the slowest one.
static char *members_sentence(const bel_job *job, const bel_board *board)
{
    const bel_board_row *master = &board->rows[0];
    bel_str text = {0};
    char memory[32];
    (void)bel_bytes_text((uint64_t)master->values[BEL_NUMBER_MEMORY], memory);
    if (job->task == NULL) {
        bel_str_printf(&text, "One process with %s of memory.", memory);
    } else {
        bel_str_printf(&text,
                       "%lld restart%s of processes, %lld lost connection%s, seen by this master, "
                       "which has %s of memory.",
                       (long long)board->restarts, board->restarts == 1 ? "" : "s",
                       (long long)board->losses, board->losses == 1 ? "" : "s", memory);
    }
    bel_str_puts(&text, " Times are of a step, in milliseconds.");
    bel_str slowest = {0};
    if (bel_board_write_slowest(board, false, &slowest)) {
        bel_str_printf(&text, " Held up: %s.", slowest.text);
    }
    bel_str_deinit(&slowest);
    return text.text;
}

// Adds the place of each process of a cluster. A worker that shares the master's process has no
// row.
static void put_processes(const bel_job *job, bel_job_tables *t)
{
    static const char *const columns[] = {"Process", "host", "pid", "restarts"};
    const bel_members *members = job->cluster.members;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    begin_table(t, NULL, NULL, COLUMNS(columns));
    job_tables_put(t, bel_xstrdup("master 0"));
    job_tables_put(t, bel_xstrdup(host));
    job_tables_put(t, bel_strf("%lld", (long long)getpid()));
    job_tables_put(t, bel_strf("%u", job->task->incarnation));
    for (int i = 0; i < bel_members_count(members); i++) {
        const bel_member_view *m = bel_members_get(members, i);
        char text[32];
        if (m->pid == 0) continue; // never joined
        job_tables_put(t, bel_xstrdup(bel_role_text(m->role, m->index, text)));
        job_tables_put(t, m->host != NULL ? bel_xstrdup(m->host) : NULL);
        job_tables_put(t, bel_strf("%lld", (long long)m->pid));
        job_tables_put(t, bel_strf("%u", m->incarnation));
    }
}

// Adds the devices of workers' towers, if they have any.
static void put_devices(const bel_board *board, bel_job_tables *t)
{
    static const char *const columns[] = {"GPU", "worker", "towers", "taken", "free", "of"};
    bool begun = false;
    for (int i = 0; i < board->row_count; i++) {
        const bel_board_row *row = &board->rows[i];
        for (int d = 0; d < row->device_count; d++) {
            const bel_device_numbers *its = &row->devices[d];
            if (!begun) begin_table(t, NULL, NULL, COLUMNS(columns));
            begun = true;
            job_tables_put(t, bel_strf("cuda:%d", its->number));
            job_tables_put(t, bel_strf("worker %d", row->index));
            put_count(t, its->towers);
            put_bytes(t, its->taken);
            put_bytes(t, its->free);
            put_bytes(t, its->all);
        }
    }
}

static void put_members(const bel_job *job, bel_job_tables *t)
{
    static const char *const of_workers[] = {"Worker",   "steps",   "input", "compute", "push",
                                             "exchange", "counted", "stale", "dropped", "memory"};
    static const char *const of_shards[] = {"Shard",    "versions", "passes", "apply",
                                            "received", "sent",     "memory"};
    const bel_board *board = bel_reporter_board(job->reporter);
    const char *title = job->task == NULL ? "Workers and shards" : "Cluster";
    begin_table(t, title, members_sentence(job, board), COLUMNS(of_workers));
    for (int i = 0; i < board->row_count; i++)
        if (board->rows[i].role == BEL_BOARD_WORKER) put_worker(t, &board->rows[i]);
    put_devices(board, t);
    begin_table(t, NULL, NULL, COLUMNS(of_shards));
    for (int i = 0; i < board->row_count; i++)
        if (board->rows[i].role == BEL_BOARD_SHARD) put_shard(t, &board->rows[i]);
    if (job->task != NULL) put_processes(job, t);
}

// --- Read data -------------------------------------------------------------------------------

// Size of all notes in a folder. An unreadable folder counts as empty, and the check reports it.
static int64_t note_bytes(const char *folder)
{
    char **names;
    size_t count;
    int64_t bytes = 0;
    bel_status *status = bel_dir_list(folder, &names, &count);
    if (status != NULL) {
        bel_status_ignore(status); // no readable notes: inspect reports which
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        char *path = bel_path_join(folder, names[i]);
        if (stat(path, &info) == 0) bytes += info.st_size;
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return bytes;
}

static void put_epochs(bel_job_tables *t, const bel_audit_result *result)
{
    static const char *const columns[] = {"Epoch", "read", "has"};
    bel_str text = {0};
    bel_str_printf(&text, "Every record was read exactly once in each epoch: %lld batches",
                   (long long)result->blocks);
    if (result->not_counted > 0) {
        bel_str_printf(&text, ", and %lld more in steps that were repeated or did not happen",
                       (long long)result->not_counted);
    }
    bool all = result->epoch_count <= LISTED_EPOCHS;
    if (!all) {
        bel_str_printf(&text, "; the last %d of %lld epochs", LISTED_EPOCHS,
                       (long long)result->epoch_count);
    }
    bel_str_puts(&text, ".");
    begin_table(t, "What was read", text.text, COLUMNS(columns));
    for (int64_t i = all ? 0 : result->epoch_count - LISTED_EPOCHS; i < result->epoch_count; i++) {
        job_tables_put(t, bel_strf("epoch %lld", (long long)result->epochs[i].epoch));
        put_count(t, (double)result->epochs[i].records);
        put_count(t, (double)result->epoch_records);
    }
}

static void put_audit(const bel_job *job, bel_job_tables *t)
{
    const char *model_dir = job->estimator->config.model_dir;
    char *folder = bel_path_join(model_dir, BEL_AUDIT_FOLDER), bytes_text[32];
    const bel_audit_scope scope = {.step = job->steps.saved,
                                   .segments = job->segments.items,
                                   .segment_count = job->segments.count,
                                   .fingerprint = bel_input_fingerprint(job->trainable.input)};
    int64_t bytes = note_bytes(folder);
    bel_audit_result result = {0};
    if (bytes > MOST_NOTE_BYTES) {
        begin_table(t, "What was read",
                    bel_strf("Notes of %s: belfry inspect --audit %s checks them.",
                             bel_bytes_text((uint64_t)bytes, bytes_text), model_dir),
                    NULL, 0);
        bel_free(folder);
        return;
    }
    bel_status *status = bel_audit_check(folder, &scope, &result);
    bel_free(folder);
    if (status == NULL) {
        put_epochs(t, &result);
        bel_audit_result_deinit(&result);
        return;
    }
    bel_log_write(BEL_LOG_WARN, "audit: %s", bel_status_message(status));
    begin_table(t, "What was read", bel_xstrdup(bel_status_message(status)), NULL, 0);
    bel_status_ignore(status); // reported; training is done
}

void bel_job_tables_make(const bel_job *job, bool over, bel_job_tables *out_tables)
{
    *out_tables = (bel_job_tables){.count = 0};
    put_members(job, out_tables);
    if (over && job->estimator->config.audit_input) put_audit(job, out_tables);
}
