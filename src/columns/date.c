// The text is cut into numbers and words. The counts of digits, a word and the separators decide
// which of them is the year, the month and the day. Days are counted by the civil calendar
// (Hinnant, "chrono-compatible low-level date algorithms"), without the C library, whose answers
// depend on the time zone.
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

// Reads up to four digits; returns their count, 0: none.
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

// Reads exactly `count` digits; anything may follow.
static bool take_digits(scan *s, int count, int *out_value)
{
    *out_value = 0;
    if (s->end - s->at < count) return false;
    for (int i = 0; i < count; i++) {
        char c = *s->at++;
        if (c < '0' || c > '9') return false;
        *out_value = *out_value * 10 + (c - '0');
    }
    return true;
}

// Reads a word, ignoring case.
static bool take_word(scan *s, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || strncasecmp(s->at, word, length) != 0) return false;
    s->at += length;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads the name of a month, complete or its first three letters; -1: none.
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

static int64_t days_before(int64_t year, int month, int day) // month: 1 to 12
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

// Reads Z, UTC, GMT, or the clock's offset from UTC: +01:00, -0530, +01.
static bool take_offset(scan *s, int64_t *out_seconds)
{
    *out_seconds = 0;
    if (s->at == s->end || take_word(s, "UTC") || take_word(s, "GMT")) return true;
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

// Reads AM or PM after the hours of half a day.
static bool take_half(scan *s, int *hour)
{
    const char *before = s->at;
    pass_spaces(s);
    bool morning = take_word(s, "AM") || take_word(s, "a.m.");
    bool evening = !morning && (take_word(s, "PM") || take_word(s, "p.m."));
    if (!morning && !evening) {
        s->at = before;
        return true;
    }
    if (*hour < 1 || *hour > 12) return false;
    *hour = *hour % 12 + (evening ? 12 : 0);
    return true;
}

// Reads "05:25", "05:25:01.5" or "05:25:01,500", or without colons "0525" and "052501".
static bool take_clock(scan *s, int *hour, int *minute, int *second)
{
    const char *begin = s->at;
    *minute = *second = 0;
    if (s->end - begin >= 4 && take_digits(s, 2, hour) && take_digits(s, 2, minute)) {
        bool more = s->at < s->end && *s->at >= '0' && *s->at <= '9';
        return !more || take_digits(s, 2, second);
    }
    s->at = begin;
    int digits = take_number(s, hour);
    if (digits == 0 || digits > 2) return false;
    if (s->at == s->end || *s->at != ':') { // 5 PM
        const char *behind = s->at;
        pass_spaces(s);
        bool half = s->at < s->end && strchr("aApP", *s->at) != NULL;
        s->at = behind;
        return half;
    }
    s->at++;
    if (take_number(s, minute) != 2) return false;
    if (s->at == s->end || *s->at != ':') return true;
    s->at++;
    if (take_number(s, second) != 2) return false;
    if (s->at == s->end || (*s->at != '.' && *s->at != ',')) return true;
    for (s->at++; s->at < s->end && *s->at >= '0' && *s->at <= '9';)
        s->at++;
    return true;
}

// *out_offset: the offset of its clock from UTC.
static bool take_time(scan *s, int64_t *out_seconds, int64_t *out_offset)
{
    int hour, minute, second;
    if (!take_clock(s, &hour, &minute, &second) || !take_half(s, &hour)) return false;
    if (hour > 23 || minute > 59 || second > 60) return false;
    if (second == 60) second = 59; // a leap second stays in its minute
    *out_seconds = ((int64_t)hour * 60 + minute) * 60 + second;
    if (s->end - s->at > 1 && *s->at == ' ') s->at++; // 12:30 +0100
    return take_offset(s, out_offset);
}

// Reads the separator of two parts: one of "-/." or spaces, or a comma and spaces; '\0': none.
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

// Reads year, month and day if the text begins with the name of a month: "Mar 4 2020".
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

// Reads a quarter as its first month: "1990Q2", "1990-Q2", "Q2 1990".
static bool take_quarter(scan *s, int *year, int *month)
{
    int quarter;
    bool first = take_word(s, "Q");
    if (first && (!take_digits(s, 1, &quarter) || take_between(s) == '\0')) return false;
    if (!take_digits(s, 4, year)) return false;
    if (!first) {
        (void)take_between(s);
        if (!take_word(s, "Q") || !take_digits(s, 1, &quarter)) return false;
    }
    *month = 3 * quarter - 2;
    return quarter >= 1 && quarter <= 4 && s->at == s->end;
}

// Reads "1990-02", if the year is hardly a part of a name.
static bool take_year_and_month(scan *s, int *year, int *month)
{
    enum { FIRST = 1800, LAST = 2199 };
    if (!take_digits(s, 4, year) || *year < FIRST || *year > LAST) return false;
    char between = take_between(s);
    if ((between != '-' && between != '/') || !take_digits(s, 2, month)) return false;
    return s->at == s->end;
}

// Reads "20200202" if a time follows: without one it is a number.
static bool take_compact(scan *s, int *year, int *month, int *day)
{
    bool all = take_digits(s, 4, year) && take_digits(s, 2, month) && take_digits(s, 2, day);
    return all && s->at < s->end && (*s->at == 'T' || *s->at == ' ');
}

// Reads a day; each of the short forms starts again from the beginning. *out_digits: digits of the
// year.
static bool take_day(scan *s, bool day_first, int *year, int *month, int *day, int *out_digits)
{
    const char *begin = s->at;
    *out_digits = 4;
    if (take_compact(s, year, month, day)) return true;
    *day = 1;
    s->at = begin;
    if (take_quarter(s, year, month)) return true;
    s->at = begin;
    if (take_year_and_month(s, year, month)) return true;
    s->at = begin;
    return is_letter(*begin) ? take_named(s, year, month, day, out_digits)
                             : take_numbered(s, day_first, year, month, day, out_digits);
}

bool bel_date_parse(const char *text, size_t length, bool day_first, bel_date *out_date)
{
    scan s = {text, text + length};
    int year = 0, month = 0, day = 0, digits = 0;
    int64_t time = 0, offset = 0;
    bool log = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (log) s = (scan){text + 1, text + length - 1}; // a web server's log
    if (s.end - s.at < 6 || length > 40) return false;
    bool dated = take_day(&s, day_first, &year, &month, &day, &digits);
    if (!dated || digits == 3 || digits == 1) return false;
    if (digits == 2) year += year < 70 ? 2000 : 1900;
    if (month < 1 || month > 12 || day < 1 || day > days_of(year, month)) return false;
    bool timed = s.at < s.end;
    if (timed && *s.at != ' ' && *s.at != 'T' && *s.at != ':' && *s.at != ',') return false;
    if (timed) {
        s.at++;
        pass_spaces(&s);
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
