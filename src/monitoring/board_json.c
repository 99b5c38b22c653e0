// The board as a file, which `jobs top` reads. It includes rates, so that a reader needs one file
// and no history. Names are those of numbers.h. An absent number, or null because it was not
// finite, is read as 0, and such a rate as unknown, so another version's file can still be shown. A
// file without its frame (time, step, rows) is refused.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "monitoring/board.h"

#define RATE "_per_second"

static void put_number(bel_str *out, const char *name, const char *suffix, double value)
{
    bel_str_printf(out, ",\"%s%s\":", name, suffix);
    bel_json_write_number(out, value);
}

static void put_devices(const bel_board_row *row, bel_str *out)
{
    for (int d = 0; d < row->device_count; d++) {
        const bel_device_numbers *its = &row->devices[d];
        bel_str_printf(out, "%s{\"number\":%d,\"towers\":%d", d == 0 ? ",\"devices\":[" : ",",
                       its->number, its->towers);
        put_number(out, "taken_bytes", "", its->taken);
        put_number(out, "free_bytes", "", its->free);
        put_number(out, "memory_bytes", "", its->all);
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "]");
}

static void put_row(const bel_board_row *row, bel_str *out)
{
    bel_str_printf(out, "{\"role\":\"%s\",\"index\":%d,\"process\":%d,\"step\":%lld,\"doing\":",
                   bel_board_role_name(row->role), row->index, row->is_process ? 1 : 0,
                   (long long)row->step);
    bel_json_write_string(out, row->doing != NULL ? row->doing : "");
    for (int n = 0; n < BEL_NUMBER_COUNT; n++) {
        if (!bel_board_has(row, (bel_number)n)) continue;
        put_number(out, bel_number_table[n].name, "", row->values[n]);
        if (bel_number_table[n].counts) {
            put_number(out, bel_number_table[n].name, RATE, row->rates[n]);
        }
    }
    if (row->device_count > 0) put_devices(row, out);
    bel_str_puts(out, "}");
}

void bel_board_write_json(const bel_board *board, bel_str *out)
{
    bel_str_printf(out, "{\"time\":%.3f,\"step\":%lld,\"last_step\":%lld,\"examples\":%lld",
                   board->time, (long long)board->step, (long long)board->last_step,
                   (long long)board->examples);
    put_number(out, "loss", "", board->loss);
    put_number(out, "examples", RATE, board->examples_per_second);
    bel_str_printf(out, ",\"restarts\":%lld,\"losses\":%lld,\"rows\":[", (long long)board->restarts,
                   (long long)board->losses);
    for (int i = 0; i < board->row_count; i++) {
        bel_str_puts(out, i > 0 ? ",\n" : "\n");
        put_row(&board->rows[i], out);
    }
    bel_str_puts(out, "\n]}\n");
}

// --- Reading -------------------------------------------------------------------------------------

static double read_number(const bel_json_value *object, const char *name, double otherwise)
{
    double value;
    return bel_json_f64(object, name, &value) ? value : otherwise;
}

static bool read_role(const bel_json_value *object, bel_board_role *out_role)
{
    const char *name;
    if (!bel_json_string(object, "role", &name)) return false;
    for (int r = 0; r < BEL_BOARD_ROLE_COUNT; r++) {
        if (strcmp(name, bel_board_role_name((bel_board_role)r)) != 0) continue;
        *out_role = (bel_board_role)r;
        return true;
    }
    return false;
}

// Skips invalid devices.
static void read_devices(const bel_json_value *list, bel_board_row *row)
{
    bel_device_numbers devices[BEL_MOST_DEVICES];
    int count = 0;
    for (size_t i = 0; i < bel_json_length(list) && count < BEL_MOST_DEVICES; i++) {
        const bel_json_value *object = bel_json_at(list, i);
        int64_t number, towers;
        bool ok =
            bel_json_i64(object, "number", &number) && bel_json_i64(object, "towers", &towers);
        if (!ok || number < 0 || number >= BEL_MOST_DEVICES || towers < 0 || towers > INT16_MAX)
            continue;
        devices[count++] =
            (bel_device_numbers){.number = (int)number,
                                 .towers = (int)towers,
                                 .taken = read_number(object, "taken_bytes", (double)NAN),
                                 .free = read_number(object, "free_bytes", (double)NAN),
                                 .all = read_number(object, "memory_bytes", (double)NAN)};
    }
    bel_board_note_devices(row, devices, count);
}

// False: not a row. Absent numbers are fine.
static bool read_row(const bel_json_value *object, bel_board_row *row)
{
    int64_t index, process;
    const char *doing;
    bool ok = read_role(object, &row->role) && bel_json_i64(object, "index", &index) &&
              bel_json_i64(object, "process", &process) &&
              bel_json_i64(object, "step", &row->step) && bel_json_string(object, "doing", &doing);
    if (!ok || index < 0 || index > INT16_MAX) return false;
    row->index = (int)index;
    row->is_process = process != 0;
    row->doing = doing[0] != '\0' ? bel_xstrdup(doing) : NULL;
    const bel_json_value *devices = bel_json_member(object, "devices");
    if (bel_json_is_array(devices)) read_devices(devices, row);
    for (int n = 0; n < BEL_NUMBER_COUNT; n++) {
        char rate[64];
        bel_snprintf(rate, sizeof rate, "%s" RATE, bel_number_table[n].name);
        row->values[n] = read_number(object, bel_number_table[n].name, 0);
        row->rates[n] = read_number(object, rate, (double)NAN);
    }
    return true;
}

bel_status *bel_board_parse(const char *text, size_t length, const char *source,
                            bel_board **out_board)
{
    bel_json *json;
    BEL_TRY(bel_json_parse(text, length, source, &json));
    const bel_json_value *root = bel_json_root(json), *rows = bel_json_member(root, "rows");
    bel_board *board = bel_xcalloc(1, sizeof *board);
    board->rows = bel_xcalloc(bel_json_length(rows) + 1, sizeof *board->rows);
    bool ok = bel_json_is_array(rows) && bel_json_f64(root, "time", &board->time) &&
              bel_json_i64(root, "step", &board->step) &&
              bel_json_i64(root, "last_step", &board->last_step) &&
              bel_json_i64(root, "examples", &board->examples) &&
              bel_json_i64(root, "restarts", &board->restarts) &&
              bel_json_i64(root, "losses", &board->losses);
    board->loss = read_number(root, "loss", (double)NAN);
    board->examples_per_second = read_number(root, "examples" RATE, (double)NAN);
    for (size_t i = 0; i < bel_json_length(rows) && ok; i++)
        ok = read_row(bel_json_at(rows, i), &board->rows[board->row_count++]);
    bel_json_destroy(json);
    if (ok) {
        *out_board = board;
        return NULL;
    }
    bel_board_destroy(board);
    return BEL_ERR(BEL_DATA_LOSS, "%s: not the board of a job", source);
}
