// Verb version. It must work on every processor that can run the program: if kernels cannot run, it
// prints the missing instructions, while verbs that run a model refuse. Besides the version it
// prints the package ABI, which decides whether a package fits, and the selected kernels.
#include "base/isa.h"
#include "base/str.h"
#include "belfry/package.h"
#include "command/results.h"
#include "command/verbs.h"
#include "cuda/cuda.h"

bel_status *bel_verb_version(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    char lacks[BEL_ISA_TEXT];
    bool runs = bel_isa_lacks(BEL_ISA_LEAST, lacks)[0] == '\0';
    const char *isa = runs ? bel_isa_name(bel_isa_get()) : "none";
    bel_str text = {0};
    if (bel_options_bool(options, "json")) {
        bel_str_printf(&text,
                       "{\"version\":\"%s\",\"package_abi\":%d,\"isa\":\"%s\",\"cuda\":%s}\n",
                       bel_version(), BEL_PACKAGE_ABI, isa, bel_cuda_is_built() ? "true" : "false");
    } else {
        bel_str_printf(&text, "belfry %s\npackage ABI %d\nkernels ", bel_version(),
                       BEL_PACKAGE_ABI);
        bel_str_printf(&text, runs ? "%s%s\n" : "for %s; this processor lacks %s\n",
                       bel_isa_title(bel_isa_get()), lacks);
        bel_str_printf(&text, "GPUs %s\n", bel_cuda_is_built() ? "by CUDA" : "none: built without");
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}
