// Each process writes its spans into a separate file and needs no other process for that. The
// master joins the files when the others have exited. A master that replaces another (incarnation
// above 0) keeps the existing parts, because its predecessor's spans are among them.
//
// The path of the joined trace is tested before training, by opening a file beside it. So an
// unwritable path is refused at the start. A failure at the end is a warning, and the parts stay.
#include "launch/task/job_trace.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trace.h"

static char *folder_of_parts(const char *model_dir)
{
    return bel_path_join(model_dir, "logs");
}

// Refuses an unwritable trace path before training.
static bel_status *check_path(const char *path)
{
    bel_file_writer *writer;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a file, got a folder", path);
    }
    BEL_TRY(bel_file_writer_open_beside(path, &writer));
    bel_file_writer_abandon(writer);
    return NULL;
}

// A part's name has the incarnation in it, so that a restarted process keeps its predecessor's
// spans.
bel_status *bel_job_trace_start(const char *trace_file, const char *model_dir, const bel_task *task)
{
    if (trace_file == NULL || bel_trace_is_on()) return NULL;
    bool leads = task == NULL || task->role == BEL_ROLE_MASTER;
    char *folder = folder_of_parts(model_dir);
    char *name = task == NULL ? bel_xstrdup("process")
                              : bel_strf("%s-%d.%u", bel_role_name(task->role), task->index,
                                         task->incarnation);
    bel_status *status = leads ? check_path(trace_file) : NULL;
    if (status == NULL && leads && (task == NULL || task->incarnation == 0))
        status = bel_trace_clear(folder);
    if (status == NULL) status = bel_trace_start(folder, name);
    bel_free(name);
    bel_free(folder);
    BEL_TRY_CTX(status, "--trace");
    return NULL;
}

void bel_job_trace_finish(const char *trace_file, const char *model_dir)
{
    if (trace_file == NULL) return;
    bel_trace_stop();
    char *folder = folder_of_parts(model_dir);
    bel_status *status = bel_trace_merge(folder, trace_file);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "the trace is in %s", trace_file);
    } else {
        bel_log_write(BEL_LOG_WARN, "there is no trace: %s; its parts are in %s",
                      bel_status_message(status), folder);
    }
    bel_status_ignore(status); // logged
    bel_free(folder);
}
