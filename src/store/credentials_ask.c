// Parts of the places of credentials: requests to services that issue them, times, files of one
// line.
#include <stdio.h>
#include <string.h>
#include <time.h>

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

bel_status *bel_credentials_ask(const bel_http_request *request, const char *what, int tries,
                                bel_str *out)
{
    bel_backoff backoff = {.least_ns = 200000000, .most_ns = 4000000000};
    int64_t end = bel_clock_ns() + bel_patience_ns();
    double limit = bel_patience_stall_secs();
    bel_http_request bounded = *request;
    if (bounded.connect_secs > limit) bounded.connect_secs = limit;
    if (bounded.stall_secs > limit) bounded.stall_secs = limit;
    for (int i = 1;; i++) {
        bel_http_answer answer;
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
        bool is_last = i >= tries || bel_clock_ns() + pause_ns >= end;
        if (status == NULL || !passing || is_last) return status;
        bel_status_ignore(status); // the next try reports it
        bel_patience_wait(pause_ns);
    }
}

double bel_credentials_time(const char *text)
{
    struct tm utc = {0};
    if (text == NULL || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &utc.tm_year, &utc.tm_mon,
                               &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec) != 6)
        return 0;
    // Days since 1970 by the calendar of Gregory, with years that begin in March.
    int64_t year = utc.tm_mon <= 2 ? utc.tm_year - 1 : utc.tm_year;
    int64_t month = (utc.tm_mon + 9) % 12;
    int64_t days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
                   utc.tm_mday - 1 - 719468;
    return (double)(days * 86400 + utc.tm_hour * 3600 + utc.tm_min * 60 + utc.tm_sec);
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
