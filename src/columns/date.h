// Dates as exports write them.
#ifndef BELFRY_COLUMNS_DATE_H
#define BELFRY_COLUMNS_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bel_date {
    int64_t seconds; // since 1970, in UTC
    // By the clock that it was read from, whatever its offset from UTC:
    int month;     // 0 to 11
    double season; // how much of the year is over, in [0, 1)
    int weekday;   // 0 to 6, from Monday on
    int hour;      // 0 to 23
    bool timed;    // it has a time of day
} bel_date;

// Reads 2020-03-04, 2020/3/4, 3/4/2020, 4.3.2020, 4-Mar-20, 4 March 2020, Mar 4 2020 or March 4,
// 2020; with a time behind it, 12:30, 12:30:59 or 12:30:59.5, after a space or a T, and perhaps
// the offset of its clock from UTC, Z, +01:00, -0530 or +01; without one it is in UTC. With two
// numbers in front of the year the month comes first, or with `day_first` the day; with dots always
// the day. Years of two digits are 1970 to 2069; between dots or dashes alone they have four.
// False: it is none of these, or there is no such day.
bool bel_date_parse(const char *text, size_t length, bool day_first, bel_date *out_date);

#endif
