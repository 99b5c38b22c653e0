// The report of `belfry plan` as a table for people, and as JSON.
#include <stdarg.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/json.h"
#include "base/number.h"
#include "plan/plan.h"

static const char *const part_names[BEL_COST_PARTS] = {
    [BEL_COST_COMPUTING] = "computing",   [BEL_COST_WORKER_LANES] = "worker_lanes",
    [BEL_COST_RELAYS] = "relays",         [BEL_COST_PASS] = "pass",
    [BEL_COST_COPIES] = "copies",         [BEL_COST_WORKER_LINK] = "worker_link",
    [BEL_COST_RELAY_LINK] = "relay_link", [BEL_COST_SHARD_LINK] = "shard_link",
    [BEL_COST_LATENCY] = "latency",       [BEL_COST_WAKE_UPS] = "wake_ups"};
static const char *const actor_names[BEL_COST_ROLES] = {"worker", "relay", "shard"};

static const bel_role shown_roles[] = {BEL_ROLE_WORKER, BEL_ROLE_PS, BEL_ROLE_MASTER};
enum { SHOWN_ROLES = sizeof shown_roles / sizeof *shown_roles };

void bel_plan_assume(bel_plan_report *report, const char *format, ...)
{
    enum { LONGEST = 400 };
    char text[LONGEST];
    va_list args;
    BEL_CHECK(report->assumption_count < BEL_PLAN_MOST_ASSUMPTIONS);
    va_start(args, format);
    bel_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report->assumptions[report->assumption_count++] = bel_xstrdup(text);
}

static int64_t bytes_of(const bel_lane_counts *counts)
{
    return counts->up_bytes + counts->down_bytes;
}

// --- Text ----------------------------------------------------------------------------------------

// The largest bytes of a worker's process, which may have relays.
static int64_t worker_bytes(const bel_plan_row *row)
{
    int64_t worker = bytes_of(&row->cost.most[BEL_COST_WORKER]);
    int64_t relay = bytes_of(&row->cost.most[BEL_COST_RELAY]);
    return worker > relay ? worker : relay;
}

static void put_row(const bel_plan_report *report, const bel_plan_row *row, bel_str *out)
{
    char bytes[32];
    const bel_cost *cost = &row->cost;
    bel_str_printf(out, "%7d %8d %10.3f %11.0f %8.2f", row->workers, row->threads,
                   cost->step_ns * 1e-6, bel_plan_rate(row), bel_plan_speed_up(report, row));
    if (report->facts.epoch_records > 0) bel_str_printf(out, " %10.4g", row->outlook.epoch_secs);
    if (report->facts.epoch_records > 0 && report->facts.price > 0)
        bel_str_printf(out, " %10.4g", row->outlook.epoch_money);
    bel_str_printf(out, " %11s", bel_bytes_text((uint64_t)worker_bytes(row), bytes));
    bel_str_printf(out, " %11s",
                   bel_bytes_text((uint64_t)bytes_of(&cost->most[BEL_COST_SHARD]), bytes));
    for (int i = 0; i < SHOWN_ROLES; i++)
        bel_str_printf(out, " %10s",
                       bel_bytes_text((uint64_t)row->memory_bytes[shown_roles[i]], bytes));
    bel_str_printf(out, "  %s (%.3f ms)\n", bel_cost_part_text(cost->bottleneck),
                   cost->parts_ns[cost->bottleneck] * 1e-6);
}

static void put_head(const bel_plan_report *report, bel_str *out)
{
    bel_str_puts(out, "workers  threads    step ms  examples/s speed-up");
    if (report->facts.epoch_records > 0) bel_str_puts(out, "    epoch s");
    if (report->facts.epoch_records > 0 && report->facts.price > 0)
        bel_str_puts(out, " epoch cost");
    bel_str_puts(out, " worker data  shard data worker mem  shard mem master mem  bottleneck\n");
}

// The times to recover with the most workers.
static void put_recovery(const bel_plan_report *report, bel_str *out)
{
    const bel_plan_row *row = &report->rows[report->row_count - 1];
    const bel_plan_facts *facts = &report->facts;
    bel_str_printf(out, "recovery with %d worker%s: of a killed parameter server ", row->workers,
                   row->workers == 1 ? "" : "s");
    if (row->outlook.process_back_secs < 0) {
        bel_str_puts(out, "all steps; ");
    } else {
        bel_str_printf(out, "%.3g s%s; ", row->outlook.process_back_secs,
                       facts->kept ? "" : ", of which half of the time between checkpoints");
    }
    if (row->outlook.host_back_secs < 0) {
        bel_str_puts(out, "of a lost host of a parameter server all steps, as no checkpoint is "
                          "made\n");
        return;
    }
    bel_str_printf(out,
                   "of a lost host of a parameter server %.3g s, of which %.3g s until it counts "
                   "as lost%s\n",
                   row->outlook.host_back_secs, facts->silence_secs,
                   facts->copied ? ", without a lost step"
                                 : ", and half of the time between checkpoints");
}

void bel_plan_report_text(const bel_plan_report *report, bel_str *out)
{
    put_head(report, out);
    for (int i = 0; i < report->row_count; i++)
        put_row(report, &report->rows[i], out);
    bel_str_printf(out,
                   "%lld parameters on %d shard%s; data: to and from the busiest one in a "
                   "step; speed-up: over one process, %.3f ms a step\n",
                   (long long)report->parameters, report->shards, report->shards == 1 ? "" : "s",
                   report->one_process_ns * 1e-6);
    put_recovery(report, out);
    for (int i = 0; i < report->measured_count; i++) {
        const bel_plan_measured *m = &report->measured[i];
        bel_str_printf(
            out,
            "measured%s: %s, %d worker%s of %d thread%s: computing %.3f ms, update %.3f ms, "
            "input %.3f ms (%.0f steps, load %.1f)\n",
            m->kept ? " by an earlier plan" : "", report->processor, m->workers,
            m->workers == 1 ? "" : "s", m->threads, m->threads == 1 ? "" : "s",
            m->figures.compute_ns * 1e-6, m->figures.pass_ns * 1e-6, m->figures.input_ns * 1e-6,
            m->figures.steps, m->figures.load);
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

static void put_outlook(const bel_plan_row *row, bel_str *out)
{
    const bel_plan_outlook *outlook = &row->outlook;
    const struct {
        const char *name;
        double value;
    } list[] = {{"epoch_seconds", outlook->epoch_secs},
                {"epoch_cost", outlook->epoch_money},
                {"process_recovery_seconds", outlook->process_back_secs},
                {"host_recovery_seconds", outlook->host_back_secs}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        bel_str_puts(out, ",");
        put_number(list[i].name, list[i].value, out);
    }
}

static void put_json_row(const bel_plan_report *report, const bel_plan_row *row, bel_str *out)
{
    const bel_cost *cost = &row->cost;
    bel_str_printf(out,
                   "{\"workers\":%d,\"threads\":%d,\"relays\":%d,\"relay_levels\":%d,"
                   "\"hosts\":%d,\"examples\":%lld,",
                   row->workers, row->threads, row->relays, row->relay_levels, row->hosts,
                   (long long)row->examples);
    put_number("step_ms", cost->step_ns * 1e-6, out);
    bel_str_puts(out, ",");
    put_number("examples_per_second", bel_plan_rate(row), out);
    bel_str_puts(out, ",");
    put_number("speed_up", bel_plan_speed_up(report, row), out);
    put_outlook(row, out);
    bel_str_printf(out, ",\"bottleneck\":\"%s\",\"parts_ms\":{", part_names[cost->bottleneck]);
    for (int i = 0; i < BEL_COST_PARTS; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_number(part_names[i], cost->parts_ns[i] * 1e-6, out);
    }
    bel_str_puts(out, "},\"processor_ms\":{");
    for (int r = 0; r < BEL_COST_ROLES; r++) {
        if (r > 0) bel_str_puts(out, ",");
        put_number(actor_names[r], cost->processor_ns[r] * 1e-6, out);
    }
    bel_str_puts(out, "}");
    for (int r = 0; r < BEL_COST_ROLES; r++)
        put_counts(actor_names[r], &cost->most[r], out);
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
