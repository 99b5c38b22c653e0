// What this process was asked for: its program's options and the variable BELFRY_DDL_OPTIONS, which
// wins. Its words, and how each is written:
//   mode=s:4x2 order=fast check=1e-5 timeout=60 device=1 pci=false
#ifndef BELFRY_DDL_SETTINGS_H
#define BELFRY_DDL_SETTINGS_H

#include "ddl/mode.h"

typedef struct bel_ddl_settings {
    bel_ddl_options options; // mode: not set
    bel_ddl_mode mode;
} bel_ddl_settings;

// `options` may be NULL. INVALID_ARGUMENT: names the option, or the word of the variable.
bel_status *bel_ddl_settings_read(const bel_ddl_options *options,
                                  bel_ddl_settings *out_settings) BEL_MUST_USE;

// Of what all ranks must say alike.
enum { BEL_DDL_SETTINGS_TEXT = 128 };
const char *bel_ddl_settings_text(const bel_ddl_settings *settings,
                                  char out[BEL_DDL_SETTINGS_TEXT]);

#endif
