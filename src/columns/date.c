// The text is cut into numbers and words; which of them is the year, the month and the day follows
// from how many digits there are, from the word and from what stands between. Days are counted by
// the civil calendar (Hinnant, "chrono-compatible low-level date algorithms"), without the C
// library, whose answers depend on the time zone.
#include "columns/date.h"

#include <string.h>
#include <strings.h>

typedef struct scan {
    const char *at, *end;
} scan;

static void pass_spaces(scan *s)
{
    while (s->at < s->end && *s->at == ' ')
        s->at++;
}

// Up to four digits; their number, 0: there is none.
static int take_number(scan *s, int *out_value)
{
    int digits = 0;
    *out_value = 0;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9' && digits < 5) {
        *out_value = *out_value * 10 + (*s->at++ - '0');
        digits++;
    }
    return digits > 4 ? 0 : digits;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The name of a month, whole or its first three letters; -1: it is none.
static int take_month(scan *s)
{
    static const char *const months[] = {"january",   "february", "march",    "april",
                                         "may",       "june",     "july",     "august",
                                         "september", "october",  "november", "december"};
    const char *from = s->at;
    while (s->at < s->end && is_letter(*s->at))
        s->at++;
    size_t length = (size_t)(s->at - from);
    for (int m = 0; m < 12 && length >= 3; m++) {
        bool whole = length == strlen(months[m]);
        if ((length == 3 || whole) && strncasecmp(from, months[m], length) == 0) return m;
    }
    return -1;
}

static int64_t days_before(int64_t year, int month, int day) // month from 1 on
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

// Z, or how far the clock is in front of UTC: +01:00, -0530, +01.
static bool take_offset(scan *s, int64_t *out_seconds)
{
    *out_seconds = 0;
    if (s->at == s->end) return true;
    char sign = *s->at++;
    if (sign == 'Z') return true;
    if (sign != '+' && sign != '-') return false;
    int hours, minutes = 0, digits = take_number(s, &hours);
    if (digits == 4) {
        minutes = hours % 100;
        hours /= 100;
    } else if (digits != 2) {
        return false;
    } else if (s->at < s->end) {
        if (*s->at++ != ':' || take_number(s, &minutes) != 2) return false;
    }
    if (hours > 15 || minutes > 59) return false;
    int64_t seconds = ((int64_t)hours * 60 + minutes) * 60;
    *out_seconds = sign == '-' ? -seconds : seconds;
    return true;
}

// *out_offset: how far the clock that it was read from is in front of UTC.
static bool take_time(scan *s, int64_t *out_seconds, int64_t *out_offset)
{
    int hour, minute, second = 0;
    if (take_number(s, &hour) == 0 || hour > 23 || s->at == s->end || *s->at++ != ':') return false;
    if (take_number(s, &minute) != 2 || minute > 59) return false;
    if (s->at < s->end && *s->at == ':') {
        s->at++;
        if (take_number(s, &second) != 2 || second > 60) return false;
        if (s->at < s->end && *s->at == '.') {
            s->at++;
            while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
                s->at++;
        }
    }
    if (second == 60) second = 59; // a leap second is in its own minute
    *out_seconds = ((int64_t)hour * 60 + minute) * 60 + second;
    if (s->end - s->at > 1 && *s->at == ' ') s->at++; // 12:30 +0100
    return take_offset(s, out_offset);
}

// What stands between two parts: one of "-/." or spaces, or a comma and spaces; '\0': nothing.
static char take_between(scan *s)
{
    if (s->at == s->end) return '\0';
    char c = *s->at;
    if (c == '-' || c == '/' || c == '.') {
        s->at++;
        return c;
    }
    if (c == ',') s->at++;
    if (c != ',' && c != ' ') return '\0';
    pass_spaces(s);
    return ' ';
}

// Year, month and day of what begins with the name of a month: "Mar 4 2020".
static bool take_named(scan *s, int *year, int *month, int *day, int *year_digits)
{
    *month = take_month(s) + 1;
    if (*month == 0 || take_between(s) == '\0' || take_number(s, day) == 0) return false;
    if (take_between(s) == '\0') return false;
    *year_digits = take_number(s, year);
    return *year_digits != 0;
}

static bool take_numbered(scan *s, bool day_first, int *year, int *month, int *day,
                          int *year_digits)
{
    int first, second, third;
    int digits = take_number(s, &first);
    char between = take_between(s);
    if (digits == 0 || between == '\0' || s->at == s->end) return false;
    if (is_letter(*s->at)) { // 4-Mar-20
        *day = first;
        *month = take_month(s) + 1;
        if (*month == 0 || take_between(s) == '\0') return false;
        *year_digits = take_number(s, year);
        return *year_digits != 0 && digits <= 2;
    }
    if (between == ' ' || take_number(s, &second) == 0 || take_between(s) != between) return false;
    int last_digits = take_number(s, &third);
    if (last_digits == 0) return false;
    if (digits == 4) { // 2020-03-04
        *year = first, *month = second, *day = third;
        *year_digits = digits;
        return last_digits <= 2;
    }
    bool day_leads = day_first || between == '.';
    *month = day_leads ? second : first;
    *day = day_leads ? first : second;
    *year = third;
    *year_digits = last_digits;
    return between == '/' || last_digits == 4; // 10.1.11 may be a version
}

bool bel_date_parse(const char *text, size_t length, bool day_first, bel_date *out_date)
{
    scan s = {text, text + length};
    int year = 0, month = 0, day = 0, digits = 0;
    int64_t time = 0, offset = 0;
    if (length < 6 || length > 40) return false;
    bool dated = is_letter(*text) ? take_named(&s, &year, &month, &day, &digits)
                                  : take_numbered(&s, day_first, &year, &month, &day, &digits);
    if (!dated || digits == 3 || digits == 1) return false;
    if (digits == 2) year += year < 70 ? 2000 : 1900;
    if (month < 1 || month > 12 || day < 1 || day > days_of(year, month)) return false;
    bool timed = s.at < s.end;
    if (timed && *s.at != ' ' && *s.at != 'T') return false;
    if (timed) {
        s.at++;
        if (!take_time(&s, &time, &offset) || s.at != s.end) return false;
    }
    int64_t days = days_before(year, month, day), begin = days_before(year, 1, 1);
    double length_days = (double)(days_before(year + 1, 1, 1) - begin);
    *out_date = (bel_date){.seconds = days * 86400 + time - offset,
                           .month = month - 1,
                           .season = (double)(days - begin) / length_days,
                           .weekday = (int)(((days + 3) % 7 + 7) % 7), // 1970 began on a Thursday
                           .hour = (int)(time / 3600),
                           .timed = timed};
    return true;
}
