#include "master/look.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "sight/board.h"
#include "sight/metrics_server.h"

struct bel_look {
    bel_board *board;
    bel_metrics_server *server; // NULL: nobody asked for it
    char *path;                 // of board.json; NULL in one process
    bool warned;
    int64_t looked_ns;
};

static bel_status *open_port(bel_look *look, const bel_run_config *config, const bel_task *task)
{
    int port = config->metrics_port;
    if (port == 0) return NULL;
    const char *address = config->metrics_address != NULL ? config->metrics_address : "127.0.0.1";
    bel_status *status = bel_metrics_server_start(address, port > 0 ? port : 0, &look->server);
    if (status != NULL && task != NULL && task->incarnation > 0) { // training goes on without
        bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
        bel_status_ignore(status); // said
        return NULL;
    }
    if (status != NULL) return status;
    bel_log_write(BEL_LOG_INFO, "metrics are at http://%s:%d/metrics", address,
                  bel_metrics_server_port(look->server));
    return NULL;
}

bel_status *bel_look_create(const bel_estimator *estimator, const bel_task *task,
                            bel_look **out_look)
{
    const bel_run_config *config = &estimator->config;
    bel_look *look = bel_xcalloc(1, sizeof *look);
    look->board = bel_board_create(config->worker_count, config->shard_count,
                                   task != NULL ? task->evaluator_count : 0);
    bel_board_find(look->board, BEL_BOARD_MASTER, 0)->is_process = true;
    if (task != NULL) look->path = bel_path_join(config->model_dir, BEL_BOARD_FILE);
    bel_status *status = open_port(look, config, task);
    if (status != NULL) {
        bel_look_destroy(look);
        return status;
    }
    *out_look = look;
    return NULL;
}

void bel_look_destroy(bel_look *look)
{
    if (look == NULL) return;
    bel_metrics_server_stop(look->server);
    bel_board_destroy(look->board);
    bel_free(look->path);
    bel_free(look);
}

static void write_file(bel_look *look)
{
    bel_str text = {0};
    bel_board_write_json(look->board, &text);
    bel_status *status = bel_file_replace(look->path, text.text, text.length);
    if (status != NULL && !look->warned) {
        bel_log_write(BEL_LOG_WARN, "jobs top will not know of the newest numbers: %s",
                      bel_status_message(status));
        look->warned = true;
    }
    bel_status_ignore(status); // no reason to end training
    bel_str_deinit(&text);
}

void bel_look_again(bel_look *look, bel_crew *crew, int64_t last_step, bool now)
{
    enum { SECOND_NS = 1000000000 };
    int64_t time = bel_clock_ns();
    if (!now && look->looked_ns != 0 && time - look->looked_ns < SECOND_NS) return;
    look->looked_ns = time;
    look->board->last_step = last_step;
    crew->ops->show(crew, look->board);
    const double own[BEL_NUMBER_COUNT] = {[BEL_NUMBER_MEMORY] = (double)bel_linux_resident_bytes()};
    bel_board_note(bel_board_find(look->board, BEL_BOARD_MASTER, 0), own, time);
    if (look->path != NULL) write_file(look);
    if (look->server == NULL) return;
    bel_str text = {0};
    bel_board_write_metrics(look->board, &text);
    bel_metrics_server_set(look->server, text.text);
    bel_str_deinit(&text);
}

void bel_look_end(bel_look *look, bel_crew *crew, int64_t last_step)
{
    bel_look_again(look, crew, last_step, true);
    bel_str sentence = {0};
    if (bel_board_write_slowest(look->board, false, &sentence)) {
        bel_log_write(BEL_LOG_INFO, "%s", sentence.text);
    }
    bel_str_deinit(&sentence);
}
