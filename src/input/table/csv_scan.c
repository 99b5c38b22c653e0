// Dispatch of bel_csv_scan_rows to the level of the processor. A call scans up to a thousand rows,
// so the indirect call costs nothing. All levels must find the same rows: test_csv_index compares
// them.
#include "input/table/csv_scan.h"

#include "base/isa.h"

size_t bel_csv_scan_rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                         bel_csv_scanned *out_rows)
{
    static const bel_csv_scan_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_csv_scan_kernels)};
    return levels[bel_isa_get()]->rows(scan, row, end, most, out_rows);
}
