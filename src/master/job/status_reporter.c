// Failures here end training only for a taken port at the very first start: a master that replaces
// another continues without the port, and a file that cannot be written is one warning. The file is
// replaced as a whole, unsynced, since it is not needed after a crash of the machine. The HTTP
// server gets finished texts, never the board, so the board needs no lock. Bound to the master's
// thread, which a long save delays: the numbers are then that old.
#include "master/job/status_reporter.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "monitoring/board.h"
#include "monitoring/metrics_server.h"

struct bel_reporter {
    bel_board *board;
    bel_metrics_server *server; // NULL: not configured
    char *path;                 // path of board.json; NULL in one process
    bool warned;
    int64_t updated_ns;
};

// A negative port requests any free one.
static bel_status *open_port(bel_reporter *reporter, const bel_run_config *config,
                             const bel_task *task)
{
    int port = config->metrics_port;
    if (port == 0) return NULL;
    const char *address = config->metrics_address != NULL ? config->metrics_address : "127.0.0.1";
    bel_status *status = bel_metrics_server_start(address, port > 0 ? port : 0, &reporter->server);
    if (status != NULL && task != NULL && task->incarnation > 0) { // training continues without it
        bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
        bel_status_ignore(status); // reported
        return NULL;
    }
    if (status != NULL) return status;
    bel_log_write(BEL_LOG_INFO, "metrics are at http://%s:%d/metrics", address,
                  bel_metrics_server_port(reporter->server));
    return NULL;
}

bel_status *bel_reporter_create(const bel_estimator *estimator, const bel_task *task,
                                bel_reporter **out_reporter)
{
    const bel_run_config *config = &estimator->config;
    bel_reporter *reporter = bel_xcalloc(1, sizeof *reporter);
    reporter->board = bel_board_create(config->num_workers, config->parameter_server_count,
                                       task != NULL ? task->evaluator_count : 0);
    bel_board_find(reporter->board, BEL_BOARD_MASTER, 0)->is_process = true;
    if (task != NULL) reporter->path = bel_path_join(config->model_dir, BEL_BOARD_FILE);
    bel_status *status = open_port(reporter, config, task);
    if (status != NULL) {
        bel_reporter_destroy(reporter);
        return status;
    }
    *out_reporter = reporter;
    return NULL;
}

void bel_reporter_destroy(bel_reporter *reporter)
{
    if (reporter == NULL) return;
    bel_metrics_server_stop(reporter->server);
    bel_board_destroy(reporter->board);
    bel_free(reporter->path);
    bel_free(reporter);
}

// Logs one warning for all failures, as the next second tries again.
static void write_file(bel_reporter *reporter)
{
    bel_str text = {0};
    bel_board_write_json(reporter->board, &text);
    bel_status *status = bel_file_replace(reporter->path, text.text, text.length);
    if (status != NULL && !reporter->warned) {
        bel_log_write(BEL_LOG_WARN, "jobs top will not know of the newest numbers: %s",
                      bel_status_message(status));
        reporter->warned = true;
    }
    bel_status_ignore(status); // no reason to end training
    bel_str_deinit(&text);
}

void bel_reporter_update(bel_reporter *reporter, bel_backend *backend, int64_t last_step, bool now)
{
    enum { SECOND_NS = 1000000000 };
    int64_t time = bel_clock_ns();
    if (!now && reporter->updated_ns != 0 && time - reporter->updated_ns < SECOND_NS) return;
    reporter->updated_ns = time;
    reporter->board->last_step = last_step < INT64_MAX ? last_step : -1;
    for (int k = backend->shard_count; bel_board_find(reporter->board, BEL_BOARD_SHARD, k); k++)
        bel_board_seat(reporter->board, BEL_BOARD_SHARD, k, false); // a server without a shard
    backend->ops->show(backend, reporter->board);
    const double own[BEL_NUMBER_COUNT] = {[BEL_NUMBER_MEMORY] = (double)bel_linux_resident_bytes()};
    bel_board_note(bel_board_find(reporter->board, BEL_BOARD_MASTER, 0), own, time);
    if (reporter->path != NULL) write_file(reporter);
    if (reporter->server == NULL) return;
    bel_str text = {0};
    bel_board_write_metrics(reporter->board, &text);
    bel_metrics_server_set(reporter->server, text.text);
    bel_str_deinit(&text);
}

const bel_board *bel_reporter_board(const bel_reporter *reporter)
{
    return reporter->board;
}

void bel_reporter_end(bel_reporter *reporter, bel_backend *backend, int64_t last_step)
{
    bel_reporter_update(reporter, backend, last_step, true);
    bel_str sentence = {0};
    if (bel_board_write_slowest(reporter->board, false, &sentence)) {
        bel_log_write(BEL_LOG_INFO, "%s", sentence.text);
    }
    bel_str_deinit(&sentence);
}
