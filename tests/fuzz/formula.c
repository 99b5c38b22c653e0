// Fuzz target for formulas of learning rates (--schedule formula), which a checkpoint's settings
// also have. An accepted formula has a value at every step.
#include "optim/formula.h"
#include "base/alloc.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bel_xstrndup((const char *)data, size);
    if (fuzz_is_good(bel_formula_check(text))) {
        static const int64_t steps[] = {0, 1, 1000000007, INT64_MAX};
        for (int i = 0; i < 4; i++)
            (void)bel_formula_value(text, steps[i]);
    }
    bel_free(text);
    return 0;
}
