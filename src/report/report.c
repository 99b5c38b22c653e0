// The page around the charts. It is built in memory and written at once, so that a reloading
// browser never sees a part. Style and script are in the page (report_style.h): it must be readable
// anywhere, without a network. All texts go through bel_report_text, since names of files and
// settings may hold anything.
#include "report/report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "report/report_chart.h"
#include "report/report_style.h"

// Longer values (digests, paths) get a tile of twice the width and a smaller type.
enum { WIDE_TILE_LENGTH = 16 };

static void put_tiles(bel_str *out, const bel_report *report)
{
    if (report->tile_count == 0) return;
    bel_str_puts(out, "<dl class=\"tiles\">\n");
    for (int i = 0; i < report->tile_count; i++) {
        const bel_report_tile *tile = &report->tiles[i];
        bool wide = strlen(tile->value) > WIDE_TILE_LENGTH;
        bel_str_puts(out, wide ? "<div class=\"wide\"><dt>" : "<div><dt>");
        bel_report_text(out, tile->label);
        bel_str_puts(out, "</dt><dd>");
        bel_report_text(out, tile->value);
        bel_str_puts(out, "</dd></div>\n");
    }
    bel_str_puts(out, "</dl>\n");
}

static void put_charts(bel_str *out, const bel_report *report)
{
    if (report->chart_count == 0) return;
    bel_str_puts(out, "<h2>Curves</h2>\n<div class=\"charts\">\n");
    for (int i = 0; i < report->chart_count; i++)
        bel_report_chart_write(out, &report->charts[i]);
    bel_str_puts(out, "</div>\n");
}

// A part that was measured as negative or not at all has no width.
static double part_ms(const bel_report_part *part)
{
    return isfinite(part->ms_per_step) && part->ms_per_step > 0 ? part->ms_per_step : 0;
}

static void put_part_row(bel_str *out, const char *mark, const char *name, double ms, double total,
                         const char *what)
{
    int decimals = total >= 100 ? 1 : total >= 1 ? 2 : 4; // the same in all rows
    bel_str_printf(out, "<tr><td>%s", mark);
    bel_report_text(out, name);
    bel_str_puts(out, "</td><td class=\"n\">");
    bel_report_fixed(out, ms, decimals);
    bel_str_puts(out, " ms</td><td class=\"n\">");
    bel_report_fixed(out, total > 0 ? 100.0 * ms / total : 0, 1);
    bel_str_puts(out, " %</td><td><small>");
    bel_report_text(out, what);
    bel_str_puts(out, "</small></td></tr>\n");
}

// Draws one bar whose parts share its width by their times, and a table of the same.
static void put_parts(bel_str *out, const bel_report *report)
{
    if (report->part_count == 0) return;
    double total = 0;
    for (int i = 0; i < report->part_count; i++)
        total += part_ms(&report->parts[i]);
    bel_str_puts(out, "<h2>Where the time of a step goes</h2>\n<div class=\"card\">\n"
                      "<div class=\"bar\" aria-hidden=\"true\">");
    for (int i = 0; i < report->part_count; i++) {
        double ms = part_ms(&report->parts[i]);
        if (ms <= 0) continue;
        bel_str_printf(out, "<i class=\"c%d\" style=\"flex:%.5f\" title=\"", i % BEL_REPORT_COLORS,
                       ms / total * 100.0);
        bel_report_text(out, report->parts[i].name);
        bel_str_puts(out, "\"></i>");
    }
    bel_str_puts(out, "</div>\n<table class=\"parts\">\n");
    for (int i = 0; i < report->part_count; i++) {
        const bel_report_part *part = &report->parts[i];
        char mark[32] = "<i class=\"c0\"></i>";
        mark[strlen("<i class=\"c")] = (char)('0' + i % BEL_REPORT_COLORS);
        put_part_row(out, mark, part->name, part_ms(part), total, part->what);
    }
    put_part_row(out, "", "a step", total, total, NULL);
    bel_str_puts(out, "</table>\n</div>\n");
}

static void put_cells(bel_str *out, const char *tag, const char *const *cells, int count)
{
    bel_str_puts(out, "<tr>");
    for (int c = 0; c < count; c++) {
        bel_str_printf(out, c == 0 ? "<%s>" : "<%s class=\"n\">", tag);
        bel_report_text(out, cells[c]);
        bel_str_printf(out, "</%s>", tag);
    }
    bel_str_puts(out, "</tr>\n");
}

static void put_table(bel_str *out, const bel_report_table *table)
{
    if (table->title != NULL) {
        bel_str_puts(out, "<h2>");
        bel_report_text(out, table->title);
        bel_str_puts(out, "</h2>\n");
    }
    bel_str_puts(out, "<div class=\"card\">\n");
    if (table->sentence != NULL) {
        bel_str_puts(out, "<p>");
        bel_report_text(out, table->sentence);
        bel_str_puts(out, "</p>\n");
    }
    if (table->column_count > 0) {
        bel_str_puts(out, "<table class=\"facts\">\n");
        put_cells(out, "th", table->columns, table->column_count);
        for (int r = 0; r < table->row_count; r++)
            put_cells(out, "td", table->cells + r * table->column_count, table->column_count);
        bel_str_puts(out, "</table>\n");
    }
    bel_str_puts(out, "</div>\n");
}

static void put_settings(bel_str *out, const char *title, const bel_report_setting *settings,
                         int count)
{
    if (count == 0) return;
    bel_str_printf(out,
                   "<h2>%s</h2>\n<div class=\"card\">\n<table class=\"settings\">\n"
                   "<tr><th>Name</th><th>Value</th></tr>\n",
                   title);
    for (int i = 0; i < count; i++) {
        const bel_report_setting *setting = &settings[i];
        bel_str_puts(out, "<tr><td>");
        bel_report_text(out, setting->name);
        bel_str_puts(out, "</td><td>");
        bel_report_text(out, setting->value);
        bel_str_puts(out, "</td></tr>\n");
    }
    bel_str_puts(out, "</table>\n</div>\n");
}

static void put_sentence(bel_str *out, const char *text)
{
    if (text == NULL) return;
    bel_str_puts(out, "<p class=\"sub\">");
    bel_report_text(out, text);
    bel_str_puts(out, "</p>\n");
}

static void put_head(bel_str *out, const bel_report *report)
{
    bel_str_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                      "<title>");
    bel_report_text(out, report->title);
    bel_str_puts(out, "</title>\n<style>\n");
    bel_str_puts(out, bel_report_css);
    bel_str_puts(out, bel_report_evaluation_css);
    bel_str_puts(out, "</style>\n</head>\n<body>\n<main>\n<h1>");
    bel_report_text(out, report->title);
    bel_str_puts(out, "</h1>\n");
    put_sentence(out, report->about);
    put_sentence(out, report->subtitle);
}

bel_status *bel_report_write(const bel_report *report, const char *path)
{
    bel_str page = {0};
    put_head(&page, report);
    put_tiles(&page, report);
    put_charts(&page, report);
    bel_report_evaluations_write(&page, report);
    put_parts(&page, report);
    for (int i = 0; i < report->table_count; i++)
        put_table(&page, &report->tables[i]);
    put_settings(&page, "Settings that determine the result", report->settings,
                 report->setting_count);
    put_settings(&page, "Other settings", report->other_settings, report->other_setting_count);
    bel_str_puts(&page,
                 "<footer>Written by Belfry. Where points are denser than pixels, a curve is "
                 "their mean and its shade reaches from the lowest to the highest.</footer>\n"
                 "</main>\n<script>\n");
    bel_str_puts(&page, bel_report_script);
    bel_str_puts(&page, "</script>\n</body>\n</html>\n");
    bel_status *status = bel_file_write_atomic(path, page.text, page.length);
    bel_str_deinit(&page);
    return status;
}
