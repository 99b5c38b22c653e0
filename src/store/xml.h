// Reader of the small XML answers of stores. It knows elements, text, the predefined entities and
// numbers of characters, CDATA, comments and processing instructions; a document type, and with it
// any other entity, is an error. Depth and sizes are bounded.
#ifndef BELFRY_STORE_XML_H
#define BELFRY_STORE_XML_H

#include <stddef.h>

#include "belfry/status.h"

enum { BEL_XML_DEPTH = 16, BEL_XML_NAME_BYTES = 64 };

// Called at the end of each element: its path, such as "ListBucketResult/Contents/Key" (names
// without their prefixes), and its text without that of its children.
typedef void bel_xml_visit(void *context, const char *path, const char *text);

// DATA_LOSS with the byte's offset: it is no XML, or beyond the bounds.
bel_status *bel_xml_read(const char *text, size_t size, bel_xml_visit *visit,
                         void *context) BEL_MUST_USE;

#endif
