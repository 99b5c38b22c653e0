// The fixed parts of report.html: style sheet and read-out script, as C strings.
#ifndef BELFRY_ESTIMATOR_REPORT_STYLE_H
#define BELFRY_ESTIMATOR_REPORT_STYLE_H

extern const char bel_report_css[], bel_report_evaluation_css[];

// Script that shows step and values under the pointer. The page is complete without it.
extern const char bel_report_script[];

#endif
