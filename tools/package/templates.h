// Files of tools/template/, as bytes of this program. tools/CMakeLists.txt makes the table.
#ifndef BELFRY_TOOLS_PACKAGE_TEMPLATES_H
#define BELFRY_TOOLS_PACKAGE_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bel_template {
    const char *name;
    const unsigned char *bytes;
    size_t size;
    bool is_program;
} bel_template;

extern const bel_template bel_templates[];
extern const size_t bel_template_count;

#endif
