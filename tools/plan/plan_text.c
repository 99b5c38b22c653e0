// The report of `belfry plan` as a table for people, and as JSON.
#include <stdarg.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/json.h"
#include "base/number.h"
#include "plan/plan.h"

static const char *const part_names[BEL_COST_PARTS] = {
    [BEL_COST_COMPUTING] = "computing",   [BEL_COST_PASS] = "pass",
    [BEL_COST_SHARD_LINK] = "shard_link", [BEL_COST_WORKER_LINK] = "worker_link",
    [BEL_COST_LATENCY] = "latency",       [BEL_COST_WAKE_UPS] = "wake_ups"};

static const bel_role shown_roles[] = {BEL_ROLE_WORKER, BEL_ROLE_PS, BEL_ROLE_MASTER};
enum { SHOWN_ROLES = sizeof shown_roles / sizeof *shown_roles };

void bel_plan_assume(bel_plan_report *report, const char *format, ...)
{
    enum { LONGEST = 400, MOST = sizeof report->assumptions / sizeof *report->assumptions };
    char text[LONGEST];
    va_list args;
    BEL_CHECK(report->assumption_count < MOST);
    va_start(args, format);
    bel_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report->assumptions[report->assumption_count++] = bel_xstrdup(text);
}

static double rate_of(double examples, double step_ns)
{
    return step_ns > 0 ? examples * 1e9 / step_ns : 0;
}

// Examples a second of one process with one replica, on one machine.
static double rate_of_one(const bel_plan_report *report, const bel_plan_row *row)
{
    double batch = (double)row->examples / row->workers;
    return rate_of(batch, report->one_process_ns);
}

static double speed_up(const bel_plan_report *report, const bel_plan_row *row)
{
    double one = rate_of_one(report, row);
    return one > 0 ? rate_of((double)row->examples, row->cost.step_ns) / one : 0;
}

static int64_t bytes_of(const bel_lane_counts *counts)
{
    return counts->up_bytes + counts->down_bytes;
}

// --- Text ----------------------------------------------------------------------------------------

static void put_row(const bel_plan_report *report, const bel_plan_row *row, bel_str *out)
{
    char bytes[32];
    bel_str_printf(out, "%7d %8d %10.3f %11.0f %8.2f", row->workers, row->threads,
                   row->cost.step_ns * 1e-6, rate_of((double)row->examples, row->cost.step_ns),
                   speed_up(report, row));
    bel_str_printf(out, " %11s", bel_bytes_text((uint64_t)bytes_of(&row->cost.worker), bytes));
    bel_str_printf(out, " %11s", bel_bytes_text((uint64_t)bytes_of(&row->cost.shard), bytes));
    for (int i = 0; i < SHOWN_ROLES; i++)
        bel_str_printf(out, " %10s",
                       bel_bytes_text((uint64_t)row->memory_bytes[shown_roles[i]], bytes));
    bel_cost_part longest = row->cost.bottleneck;
    bel_str_printf(out, "  %s (%.3f ms)\n", bel_cost_part_text(longest),
                   row->cost.parts_ns[longest] * 1e-6);
}

void bel_plan_report_text(const bel_plan_report *report, bel_str *out)
{
    bel_str_puts(out, "workers  threads    step ms  examples/s speed-up worker data  shard data "
                      "worker mem  shard mem master mem  bottleneck\n");
    for (int i = 0; i < report->row_count; i++)
        put_row(report, &report->rows[i], out);
    bel_str_printf(out,
                   "%lld parameters on %d shard%s; data: to and from the busiest one in a "
                   "step; speed-up: over one process, %.3f ms a step\n",
                   (long long)report->parameters, report->shards, report->shards == 1 ? "" : "s",
                   report->one_process_ns * 1e-6);
    for (int i = 0; i < report->measured_count; i++) {
        const bel_plan_measured *m = &report->measured[i];
        bel_str_printf(
            out,
            "measured%s: %s, %d worker%s of %d thread%s: computing %.3f ms, update %.3f ms "
            "(%.0f steps, load %.1f)\n",
            m->kept ? " by an earlier plan" : "", report->processor, m->workers,
            m->workers == 1 ? "" : "s", m->threads, m->threads == 1 ? "" : "s",
            m->figures.compute_ns * 1e-6, m->figures.pass_ns * 1e-6, m->figures.steps,
            m->figures.load);
    }
    for (int i = 0; i < report->assumption_count; i++)
        bel_str_printf(out, "assumed: %s\n", report->assumptions[i]);
}

// --- JSON ----------------------------------------------------------------------------------------

static void put_number(const char *name, double value, bel_str *out)
{
    bel_str_printf(out, "\"%s\":", name);
    bel_json_write_number(out, value);
}

static void put_counts(const char *name, const bel_lane_counts *counts, bel_str *out)
{
    bel_str_printf(out,
                   ",\"%s\":{\"up_frames\":%lld,\"up_bytes\":%lld,\"down_frames\":%lld,"
                   "\"down_bytes\":%lld}",
                   name, (long long)counts->up_frames, (long long)counts->up_bytes,
                   (long long)counts->down_frames, (long long)counts->down_bytes);
}

static void put_json_row(const bel_plan_report *report, const bel_plan_row *row, bel_str *out)
{
    bel_str_printf(out, "{\"workers\":%d,\"threads\":%d,\"examples\":%lld,", row->workers,
                   row->threads, (long long)row->examples);
    put_number("step_ms", row->cost.step_ns * 1e-6, out);
    bel_str_puts(out, ",");
    put_number("examples_per_second", rate_of((double)row->examples, row->cost.step_ns), out);
    bel_str_puts(out, ",");
    put_number("speed_up", speed_up(report, row), out);
    bel_str_printf(out, ",\"bottleneck\":\"%s\",\"parts_ms\":{", part_names[row->cost.bottleneck]);
    for (int i = 0; i < BEL_COST_PARTS; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_number(part_names[i], row->cost.parts_ns[i] * 1e-6, out);
    }
    bel_str_puts(out, "}");
    put_counts("worker", &row->cost.worker, out);
    put_counts("shard", &row->cost.shard, out);
    put_counts("all", &row->all, out);
    bel_str_puts(out, ",\"memory_bytes\":{");
    for (int i = 0; i < SHOWN_ROLES; i++)
        bel_str_printf(out, "%s\"%s\":%.0f", i > 0 ? "," : "", bel_role_name(shown_roles[i]),
                       row->memory_bytes[shown_roles[i]]);
    bel_str_puts(out, "}}");
}

static void put_json_measured(const bel_plan_measured *measured, bel_str *out)
{
    bel_step_figures figures = measured->figures;
    bel_figure list[BEL_FIGURES_MOST];
    size_t count = bel_steps_list(&figures, list);
    bel_str_printf(out, "{\"threads\":%d,\"workers\":%d,\"kept\":%s", measured->threads,
                   measured->workers, measured->kept ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        bel_str_puts(out, ",");
        put_number(list[i].name, *list[i].value, out);
    }
    bel_str_puts(out, "}");
}

void bel_plan_report_json(const bel_plan_report *report, bel_str *out)
{
    bel_machine_figures machine = report->machine;
    bel_figure list[BEL_FIGURES_MOST];
    size_t count = bel_machine_list(&machine, list);
    bel_str_puts(out, "{\"processor\":");
    bel_json_write_string(out, report->processor);
    bel_str_printf(out, ",\"parameters\":%lld,\"shards\":%d,", (long long)report->parameters,
                   report->shards);
    put_number("one_process_ms", report->one_process_ns * 1e-6, out);
    bel_str_puts(out, ",\"workers\":[");
    for (int i = 0; i < report->row_count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_json_row(report, &report->rows[i], out);
    }
    bel_str_puts(out, "],\"measured\":[");
    for (int i = 0; i < report->measured_count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_json_measured(&report->measured[i], out);
    }
    bel_str_puts(out, "],\"machine\":{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_number(list[i].name, *list[i].value, out);
    }
    bel_str_puts(out, "},\"assumptions\":[");
    for (int i = 0; i < report->assumption_count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, report->assumptions[i]);
    }
    bel_str_puts(out, "]}\n");
}
