// The page of the server: models, forms to try them, charts.
#ifndef BELFRY_SERVE_PAGE_H
#define BELFRY_SERVE_PAGE_H

#include "base/str.h"

void bel_page_write(bel_str *out); // HTML

#endif
