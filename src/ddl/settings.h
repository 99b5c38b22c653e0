// Settings of this process: its program's options, overridden by the variable BELFRY_DDL_OPTIONS.
// Format of the variable:
//   mode=s:4x2 order=fast check=1e-5 timeout=60 device=1 pci=false
#ifndef BELFRY_DDL_SETTINGS_H
#define BELFRY_DDL_SETTINGS_H

#include "ddl/mode.h"

typedef struct bel_ddl_settings {
    bel_ddl_options options; // mode is unset
    bel_ddl_mode mode;
} bel_ddl_settings;

// `options` may be NULL. INVALID_ARGUMENT: names the option, or the variable's word.
bel_status *bel_ddl_settings_read(const bel_ddl_options *options,
                                  bel_ddl_settings *out_settings) BEL_MUST_USE;

// Text with the settings that must be equal on all ranks.
enum { BEL_DDL_SETTINGS_TEXT = 128 };
const char *bel_ddl_settings_text(const bel_ddl_settings *settings,
                                  char out[BEL_DDL_SETTINGS_TEXT]);

#endif
