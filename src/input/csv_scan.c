// The choice of the level.
#include "input/csv_scan.h"

#include "base/isa.h"

size_t bel_csv_scan_rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                         int64_t *out_ends)
{
    static const bel_csv_scan_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_csv_scan_kernels)};
    return levels[bel_isa_get()]->rows(scan, row, end, most, out_ends);
}
