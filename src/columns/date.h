// Parser for dates as exports write them.
#ifndef BELFRY_COLUMNS_DATE_H
#define BELFRY_COLUMNS_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bel_date {
    int64_t seconds; // since 1970, in UTC
    // In the local time of the text, whatever its offset from UTC:
    int month;     // 0 to 11
    double season; // fraction of the year that has passed, in [0, 1)
    int weekday;   // 0 to 6, 0 is Monday
    int hour;      // 0 to 23
    bool timed;    // it has a time of day
} bel_date;

// Reads 2020-03-04, 2020/3/4, 3/4/2020, 4.3.2020, 4-Mar-20, 4 March 2020, Mar 4 2020 or March 4,
// 2020. A time may follow after a space or a T: 12:30, 12:30:59 or 12:30:59.5. The offset of its
// clock from UTC may follow the time: Z, +01:00, -0530 or +01; without one it is in UTC. If two
// numbers precede the year, the month comes first; with `day_first`, or with dots, the day does. A
// year of two digits is in 1970 to 2069; between only dots or only dashes a year has four digits.
// False: no such date.
bool bel_date_parse(const char *text, size_t length, bool day_first, bel_date *out_date);

#endif
