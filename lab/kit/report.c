/* SPDX-License-Identifier: MIT */
#include "lab/kit/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/utc.h"
#include "base/version.h"
#include "lab/kit/page.h"

#define SHOWN_MAX 400U

struct report {
    char *folder;
    json_t *checks; // an array
    size_t counts[OUTCOMES];
    char began[32];
};

static const char *const words[OUTCOMES] = {
    [OUTCOME_PASSED] = "passed",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_SKIPPED] = "skipped",
};

__attribute__((format(printf, 3, 0))) static void set(
    struct result *result, enum outcome outcome, const char *format, va_list arguments)
{
    result->outcome = outcome;
    (void)vsnprintf(result->text, sizeof(result->text), format, arguments);
}

#define RESULT(name, outcome)                                                                                \
    void name(struct result *result, const char *format, ...)                                                \
    {                                                                                                        \
        va_list arguments;                                                                                   \
        va_start(arguments, format);                                                                         \
        set(result, outcome, format, arguments);                                                             \
        va_end(arguments);                                                                                   \
    }
RESULT(result_pass, OUTCOME_PASSED)
RESULT(result_fail, OUTCOME_FAILED)
RESULT(result_skip, OUTCOME_SKIPPED)

void result_fact(struct result *result, const char *name, json_t *value)
{
    if (result->facts == NULL)
        result->facts = json_object();
    (void)json_object_set_new(result->facts, name, value);
}

struct report *report_new(const char *folder)
{
    struct report *report = xcalloc(1, sizeof(*report));
    report->folder = xstrdup(folder);
    report->checks = json_array();
    utc_format(clock_wall_ms(), report->began, sizeof(report->began));
    return report;
}

void report_free(struct report *report)
{
    if (report == NULL)
        return;
    free(report->folder);
    json_decref(report->checks);
    free(report);
}

void report_add(struct report *report, const struct check *check, struct result *result, int64_t ms)
{
    _cleanup_free_ char *shown = text_escape(result->text, SHOWN_MAX);
    json_t *facts = result->facts != NULL ? result->facts : json_object();
    result->facts = NULL;
    report->counts[result->outcome]++;
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:f, s:o}", "name", check->name, "title", check->title,
        "result", words[result->outcome], "text", shown, "seconds", (double)ms / 1000, "facts", facts);
    _cleanup_free_ char *line = page_line(row);
    (void)fputs(line, stdout);
    (void)fflush(stdout);
    (void)json_array_append_new(report->checks, row);
}

size_t report_count(const struct report *report, enum outcome outcome)
{
    return report->counts[outcome];
}

static int write_file(const struct report *report, const char *name, const char *text, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", report->folder, name);
    int r = file_write(AT_FDCWD, path, text, strlen(text), false);
    return r < 0 ? error_set_errno(err, r, "cannot write %s", path) : 0;
}

int report_write(const struct report *report, struct error *err)
{
    json_t *whole = json_pack("{s:i, s:s, s:s, s:i, s:i, s:i, s:O}", "format", PAGE_FORMAT, "mgpu",
        MGPU_VERSION, "began_at", report->began, "passed", (int)report->counts[OUTCOME_PASSED], "failed",
        (int)report->counts[OUTCOME_FAILED], "skipped", (int)report->counts[OUTCOME_SKIPPED], "checks",
        report->checks);
    _cleanup_free_ char *text = json_dumps(whole, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    _cleanup_free_ char *page = page_of(whole, err);
    json_decref(whole);
    if (text == NULL || page == NULL)
        return -EINVAL;
    int r = write_file(report, "report.json", text, err);
    return r < 0 ? r : write_file(report, "report.txt", page, err);
}
