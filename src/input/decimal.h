// Decimal numbers out of text, exact and fast.
#ifndef BELFRY_INPUT_DECIMAL_H
#define BELFRY_INPUT_DECIMAL_H

// Reads the number that begins at `text`: [+-] digits [. digits] [e [+-] digits], with at least one
// digit before or behind the point. Gives the same bits as strtod. Returns the first byte behind
// the number, or NULL when none begins here or it is too large for a double. "nan", "inf",
// hexadecimal and leading space are no numbers.
const char *bel_decimal_parse(const char *text, const char *end, double *out_value);

#endif
