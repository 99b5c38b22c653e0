// Names shared by graph_write.c and graph_read.c, besides those of operations.
#ifndef BELFRY_ONNX_GRAPH_FORM_H
#define BELFRY_ONNX_GRAPH_FORM_H

enum { BEL_GRAPH_FORM_VERSION = 1 };

#define BEL_GRAPH_FORM_INPUT "Input"       // a model's input: dtype, shape [scale]
#define BEL_GRAPH_FORM_VARIABLE "Variable" // variable (its name), shape, kind
#define BEL_GRAPH_FORM_LOOKUP "Lookup"     // ids; table (its name), width, start, start_value
#define BEL_GRAPH_FORM_RESULT "Result"     // a value under the name of an output

#endif
