// The board as text for Prometheus and for people. For Prometheus a row without values is omitted,
// because a zero would look like a restarted counter. Integers have no decimal point, and
// non-finite values are in Prometheus's notation. For people the times of a step are those of the
// last second, or of all steps if it had none; a dash means unknown.
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "monitoring/board.h"

// --- Prometheus ----------------------------------------------------------------------------------

static void put_head(bel_str *out, const char *name, bool counts, const char *help)
{
    bel_str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
                   counts ? "counter" : "gauge");
}

// Integers have no decimal point while a double represents them exactly.
static void put_value(bel_str *out, const char *name, const char *labels, double value)
{
    bel_str_printf(out, "%s%s ", name, labels);
    if (isfinite(value) && value == floor(value) && fabs(value) < 1e15) {
        bel_str_printf(out, "%.0f", value);
    } else if (isfinite(value)) {
        bel_json_write_number(out, value);
    } else {
        bel_str_puts(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    }
    bel_str_puts(out, "\n");
}

static void put_one(bel_str *out, const char *name, bool counts, const char *help, double value)
{
    put_head(out, name, counts, help);
    put_value(out, name, "", value);
}

// Writes one number of all rows that have it; with `rates`, its rate.
static void put_number(const bel_board *board, bel_str *out, bel_number number, bool rates)
{
    static const char *const owners[] = {"worker_", "shard_", "process_"};
    const bel_number_info *info = &bel_number_table[number];
    char name[64], help[128], labels[64];
    bool counts = info->counts && !rates;
    bel_snprintf(name, sizeof name, "belfry_%s%s%s", owners[info->owner], info->name,
                 rates    ? "_per_second"
                 : counts ? "_total"
                          : "");
    bel_snprintf(help, sizeof help, "%s%s", info->help, rates ? " In the last second." : "");
    put_head(out, name, counts, help);
    for (int i = 0; i < board->row_count; i++) {
        const bel_board_row *row = &board->rows[i];
        if (!bel_board_has(row, number) || row->noted_ns == 0) continue;
        const char *role = bel_board_role_name(row->role);
        if (info->owner == BEL_OF_PROCESS) {
            bel_snprintf(labels, sizeof labels, "{role=\"%s\",index=\"%d\"}", role, row->index);
        } else {
            bel_snprintf(labels, sizeof labels, "{%s=\"%d\"}", role, row->index);
        }
        put_value(out, name, labels, rates ? row->rates[number] : row->values[number]);
    }
}

typedef double device_number(const bel_device_numbers *device);

static double towers_of(const bel_device_numbers *device)
{
    return device->towers;
}

static double taken_of(const bel_device_numbers *device)
{
    return device->taken;
}

static double free_of(const bel_device_numbers *device)
{
    return device->free;
}

static double all_of(const bel_device_numbers *device)
{
    return device->all;
}

// Writes one number of all workers' devices; nothing if no worker has one.
static void put_devices(const bel_board *board, bel_str *out, const char *name, const char *help,
                        device_number *of)
{
    bool begun = false;
    char labels[64];
    for (int i = 0; i < board->row_count; i++) {
        const bel_board_row *row = &board->rows[i];
        for (int d = 0; d < row->device_count; d++) {
            if (!begun) put_head(out, name, false, help);
            begun = true;
            bel_snprintf(labels, sizeof labels, "{worker=\"%d\",device=\"cuda:%d\"}", row->index,
                         row->devices[d].number);
            put_value(out, name, labels, of(&row->devices[d]));
        }
    }
}

// Writes all numbers of numbers.h, with the rate of steps first.
void bel_board_write_metrics(const bel_board *board, bel_str *out)
{
    put_one(out, "belfry_step", false, "The newest version of the parameters.",
            (double)board->step);
    put_one(out, "belfry_last_step", false, "Where training ends.",
            board->last_step >= 0 ? (double)board->last_step : NAN);
    put_one(out, "belfry_loss", false, "Mean loss of the newest step.", board->loss);
    put_one(out, "belfry_examples_total", true, "Examples trained on by this run.",
            (double)board->examples);
    put_one(out, "belfry_examples_per_second", false, "The same in the last second.",
            board->examples_per_second);
    put_one(out, "belfry_restarts_total", true, "Processes that came back as another incarnation.",
            (double)board->restarts);
    put_one(out, "belfry_losses_total", true, "Connections of members that were lost.",
            (double)board->losses);
    for (int n = 0; n < BEL_NUMBER_COUNT; n++)
        put_number(board, out, (bel_number)n, false);
    put_number(board, out, BEL_NUMBER_STEPS, true);
    put_devices(board, out, "belfry_device_towers", "Towers of the worker on the device.",
                towers_of);
    put_devices(board, out, "belfry_device_taken_bytes",
                "Memory of the device that the worker's process has taken for programs.", taken_of);
    put_devices(board, out, "belfry_device_free_bytes",
                "Memory of the device that no process has taken.", free_of);
    put_devices(board, out, "belfry_device_memory_bytes", "Memory of the device.", all_of);
}

// --- Tables --------------------------------------------------------------------------------------

static const char *rate_text(double rate, char text[32])
{
    if (isnan(rate)) return "-";
    bel_snprintf(text, 32, "%.1f", rate);
    return text;
}

static const char *byte_text(double bytes, char text[32])
{
    return isnan(bytes) ? "-" : bel_bytes_text((uint64_t)bytes, text);
}

// Milliseconds per step: over the last second's steps, otherwise over all.
static const char *part_text(const bel_board_row *row, int number, char text[32])
{
    bool recent = row->rates[BEL_NUMBER_STEPS] > 0 && !isnan(row->rates[number]);
    const double *from = recent ? row->rates : row->values;
    if (!(from[BEL_NUMBER_STEPS] > 0)) return "-";
    bel_snprintf(text, 32, "%.1f", 1e3 * from[number] / from[BEL_NUMBER_STEPS]);
    return text;
}

static const char *memory_text(const bel_board_row *row, char text[32])
{
    return row->is_process ? byte_text(row->values[BEL_NUMBER_MEMORY], text) : "-";
}

static void put_worker(const bel_board_row *row, bel_str *out)
{
    char rate[32], input[32], compute[32], exchange[32], memory[32];
    bel_str_printf(out, "%-6d  %-8s  %-8s  %-10s  %-11s  %-8.0f  %-6.0f  %-7.0f  %-9s  %s\n",
                   row->index, rate_text(row->rates[BEL_NUMBER_STEPS], rate),
                   part_text(row, BEL_NUMBER_INPUT, input),
                   part_text(row, BEL_NUMBER_COMPUTE, compute),
                   part_text(row, BEL_NUMBER_EXCHANGE, exchange), row->values[BEL_NUMBER_COUNTED],
                   row->values[BEL_NUMBER_STALE], row->values[BEL_NUMBER_DROPPED],
                   memory_text(row, memory), row->doing != NULL ? row->doing : "-");
}

static void put_shard(const bel_board_row *row, bel_str *out)
{
    char versions[32], passes[32], received[32], sent[32], memory[32];
    bel_str_printf(out, "%-6d  %-10s  %-8s  %-10s  %-10s  %-5.0f  %-6.0f  %-9s  %s\n", row->index,
                   rate_text(row->rates[BEL_NUMBER_VERSIONS], versions),
                   rate_text(row->rates[BEL_NUMBER_PASSES], passes),
                   byte_text(row->rates[BEL_NUMBER_RECEIVED], received),
                   byte_text(row->rates[BEL_NUMBER_SENT], sent), row->values[BEL_NUMBER_QUEUE],
                   row->values[BEL_NUMBER_UNUSED], memory_text(row, memory),
                   row->doing != NULL ? row->doing : "-");
}

// Writes nothing if no worker has devices.
static void put_device_table(const bel_board *board, bel_str *out)
{
    bool begun = false;
    char taken[32], left[32], all[32];
    for (int i = 0; i < board->row_count; i++) {
        const bel_board_row *row = &board->rows[i];
        for (int d = 0; d < row->device_count; d++) {
            const bel_device_numbers *its = &row->devices[d];
            if (!begun) bel_str_puts(out, "\nWORKER  DEVICE   TOWERS  TAKEN      FREE       OF\n");
            begun = true;
            bel_str_printf(out, "%-6d  cuda:%-2d  %-6d  %-9s  %-9s  %s\n", row->index, its->number,
                           its->towers, byte_text(its->taken, taken), byte_text(its->free, left),
                           byte_text(its->all, all));
        }
    }
}

void bel_board_write_table(const bel_board *board, bel_str *out)
{
    char loss[32] = "-", rate[32] = "-"; // before the first step
    if (!isnan(board->loss)) bel_snprintf(loss, sizeof loss, "%.5g", board->loss);
    if (!isnan(board->examples_per_second))
        bel_snprintf(rate, sizeof rate, "%.0f", board->examples_per_second);
    bel_str_printf(out, "step %lld", (long long)board->step);
    if (board->last_step >= 0) bel_str_printf(out, "/%lld", (long long)board->last_step);
    bel_str_printf(out, ", loss %s, %s examples/s, %lld restarts, %lld losses\n\n", loss, rate,
                   (long long)board->restarts, (long long)board->losses);
    bel_str_puts(out, "WORKER  STEPS/S   INPUT ms  COMPUTE ms  EXCHANGE ms  COUNTED   STALE   "
                      "DROPPED  MEMORY     DOES\n");
    for (int i = 0; i < board->row_count; i++)
        if (board->rows[i].role == BEL_BOARD_WORKER) put_worker(&board->rows[i], out);
    bel_str_puts(out, "\nSHARD   VERSIONS/S  PASSES/S  IN/S        OUT/S       QUEUE  UNUSED  "
                      "MEMORY     DOES\n");
    for (int i = 0; i < board->row_count; i++)
        if (board->rows[i].role == BEL_BOARD_SHARD) put_shard(&board->rows[i], out);
    put_device_table(board, out);
    bel_str sentence = {0};
    bool found = bel_board_write_slowest(board, true, &sentence) ||
                 bel_board_write_slowest(board, false, &sentence);
    if (found) bel_str_printf(out, "\n%s\n", sentence.text);
    bel_str_deinit(&sentence);
}
