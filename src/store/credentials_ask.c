// Parts of the places of credentials: requests to services that issue them, times, files of one
// line.
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/credentials.h"
#include "store/patience.h"
#include "store/xml.h"

enum { REASON_MOST = 300 };

static void visit_reason(void *context, const char *path, const char *text)
{
    bel_str *reason = context;
    const char *name = strrchr(path, '/');
    if (name == NULL || (strcmp(name, "/Code") != 0 && strcmp(name, "/Message") != 0)) return;
    bel_str_printf(reason, ": %.*s", REASON_MOST, text);
}

// Appends the reason that a refusal gives, in XML or JSON; nothing if it gives none.
static void put_reason(const bel_str *answer, bel_str *out)
{
    bel_json *json;
    const char *text;
    if (answer->length == 0) return;
    if (answer->text[0] == '<') {
        bel_status_ignore(bel_xml_read(answer->text, answer->length, visit_reason, out));
        return;
    }
    bel_status *status = bel_json_parse(answer->text, answer->length, "answer", &json);
    if (status == NULL && bel_json_string(bel_json_root(json), "message", &text))
        bel_str_printf(out, ": %.*s", REASON_MOST, text);
    if (status == NULL) bel_json_destroy(json);
    bel_status_ignore(status); // a text without a known form is left out
}

// Lowers the limits of a request to the thread's patience and the time that is left.
static void bound(bel_http_request *request, int64_t left_ns)
{
    static const double least = 0.1; // to libcurl 0 is no limit
    double limit = bel_patience_stall_secs(), left = (double)left_ns * 1e-9;
    if (limit > left) limit = left > least ? left : least;
    if (request->connect_secs > limit) request->connect_secs = limit;
    if (request->stall_secs > limit) request->stall_secs = limit;
}

bel_status *bel_credentials_ask(const bel_http_request *request, const char *what, int tries,
                                int64_t deadline_ns, bel_str *out)
{
    bel_backoff backoff = {.least_ns = 200000000, .most_ns = 4000000000};
    for (int i = 1;; i++) {
        bel_http_answer answer;
        bel_http_request bounded = *request;
        int64_t left_ns = deadline_ns - bel_clock_ns();
        if (left_ns <= 0)
            return BEL_ERR(BEL_UNAVAILABLE, "%s (%s): no time is left to ask it", what,
                           request->url);
        bound(&bounded, left_ns);
        BEL_TRY(bel_http_send(&bounded, &answer));
        bool broken = answer.fault[0] != '\0';
        bool passing =
            (broken && !answer.is_lasting) || answer.status == 429 || answer.status >= 500;
        bel_status *status = NULL;
        bel_str reason = {0};
        if (answer.status / 100 != 2) put_reason(&answer.text, &reason);
        if (broken)
            status = BEL_ERR(tries == 1 ? BEL_NOT_FOUND : BEL_UNAVAILABLE, "%s (%s): %s", what,
                             request->url, answer.fault);
        else if (answer.status / 100 != 2)
            status = BEL_ERR(tries == 1 ? BEL_NOT_FOUND
                             : passing  ? BEL_UNAVAILABLE
                                        : BEL_PERMISSION_DENIED,
                             "%s (%s): HTTP %d%s", what, request->url, answer.status,
                             reason.length > 0 ? reason.text : "");
        else
            bel_str_append(out, answer.text.text, answer.text.length);
        bel_http_answer_deinit(&answer);
        bel_str_deinit(&reason);
        int64_t pause_ns = bel_backoff_next(&backoff);
        bool is_last = i >= tries || bel_clock_ns() + pause_ns >= deadline_ns;
        if (status == NULL || !passing || is_last) return status;
        bel_status_ignore(status); // the next try reports it
        bel_patience_wait(pause_ns);
    }
}

// Reads `count` digits and then `after` ('\0': nothing) at *at. False: there are other characters,
// or the number is not in [least, most].
static bool take_number(const char **at, int count, int least, int most, char after, int *out)
{
    int number = 0;
    for (int i = 0; i < count; i++, ++*at) {
        if (**at < '0' || **at > '9') return false;
        number = number * 10 + (**at - '0');
    }
    if (after != '\0' && *(*at)++ != after) return false;
    *out = number;
    return number >= least && number <= most;
}

// Reads the end of a time: a fraction, then nothing, Z, UTC or an offset.
static bool take_offset(const char *at, int *out_secs)
{
    int hours, minutes;
    *out_secs = 0;
    if (*at == '.') {
        size_t digits = strspn(at + 1, "0123456789");
        if (digits == 0) return false;
        at += 1 + digits;
    }
    if (*at == '\0' || strcmp(at, "Z") == 0 || strcmp(at, "UTC") == 0) return true;
    int sign = *at == '+' ? 1 : *at == '-' ? -1 : 0;
    at++;
    if (sign == 0 || !take_number(&at, 2, 0, 23, ':', &hours) ||
        !take_number(&at, 2, 0, 59, '\0', &minutes) || *at != '\0')
        return false;
    *out_secs = sign * (hours * 3600 + minutes * 60);
    return true;
}

static int days_of(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

double bel_credentials_time(const char *text)
{
    int year, month, day, hour, minute, second, offset_secs;
    bool good = text != NULL && take_number(&text, 4, 1970, 9999, '-', &year) &&
                take_number(&text, 2, 1, 12, '-', &month) &&
                take_number(&text, 2, 1, days_of(year, month), 'T', &day) &&
                take_number(&text, 2, 0, 23, ':', &hour) &&
                take_number(&text, 2, 0, 59, ':', &minute) &&
                take_number(&text, 2, 0, 60, '\0', &second) && take_offset(text, &offset_secs);
    if (!good) return 0;
    // Days since 1970 by the calendar of Gregory, with years that begin in March.
    int64_t y = month <= 2 ? year - 1 : year, m = (month + 9) % 12;
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
    return (double)(days * 86400 + hour * 3600 + minute * 60 + second - offset_secs);
}

bel_status *bel_credentials_read_line(const char *path, const char *what, char **out_text)
{
    char *text;
    size_t size;
    BEL_TRY_CTX(bel_file_read(path, &text, &size), "%s", what);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        text[--size] = '\0';
    *out_text = text;
    return NULL;
}
