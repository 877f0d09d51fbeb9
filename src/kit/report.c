/* SPDX-License-Identifier: MIT */
#include "kit/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/utc.h"
#include "base/version.h"

#define SHOWN_MAX 400U

struct report {
    char *folder;
    json_t *checks;       // an array
    struct buffer page;   // a line for each check
    struct buffer failed; // names of checks, each after a blank
    size_t counts[OUTCOMES];
    char began[32];
};

static const char *const words[OUTCOMES] = {
    [OUTCOME_PASSED] = "passed",
    [OUTCOME_FAILED] = "FAILED",
    [OUTCOME_SKIPPED] = "skipped",
};

static const char explanation[] = "mgpu is a scheduler: it runs the jobs of several users on the GPUs of "
                                  "their machines. This page shows what\n"
                                  "works of it on one machine with its driver. Each line is a check: result, "
                                  "name, duration, subject, and what\n"
                                  "was seen.\n"
                                  "    passed   mgpu, the driver and the machine did what they should\n"
                                  "    FAILED   something else happened; the line says what was seen\n"
                                  "    skipped  it could not be tried here, for the reason in the line\n"
                                  "README.md, which comes with the kit, explains each check. report.json has "
                                  "the same with all figures: please\n"
                                  "send it, also if nothing failed.\n\n";

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
    buffer_clear(&report->page);
    buffer_clear(&report->failed);
    free(report);
}

void report_add(struct report *report, const struct check *check, struct result *result, int64_t ms)
{
    _cleanup_free_ char *shown = text_escape(result->text, SHOWN_MAX);
    _cleanup_free_ char *line = xasprintf("%-7s  %-14s %5.1f s  %s%s%s\n", words[result->outcome],
        check->name, (double)ms / 1000, check->title, shown[0] != '\0' ? ": " : "", shown);
    json_t *facts = result->facts != NULL ? result->facts : json_object();
    result->facts = NULL;
    report->counts[result->outcome]++;
    buffer_append_text(&report->page, line);
    if (result->outcome == OUTCOME_FAILED)
        buffer_printf(&report->failed, " %s", check->name);
    (void)fputs(line, stdout);
    (void)fflush(stdout);
    (void)json_array_append_new(report->checks,
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:o}", "name", check->name, "title", check->title, "result",
            result->outcome == OUTCOME_FAILED ? "failed" : words[result->outcome], "text", shown, "seconds",
            (double)ms / 1000, "facts", facts));
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

/* For readers who know neither mgpu nor the kit. */
static char *make_page(const struct report *report)
{
    struct buffer page = { 0 };
    buffer_printf(&page, "mgpu %s on new hardware, %s: %zu passed, %zu failed, %zu skipped\n\n", MGPU_VERSION,
        report->began, report->counts[OUTCOME_PASSED], report->counts[OUTCOME_FAILED],
        report->counts[OUTCOME_SKIPPED]);
    buffer_append_text(&page, explanation);
    if (report->failed.length > 0)
        buffer_printf(
            &page, "Failed:%.*s\n\n", (int)report->failed.length, (const char *)report->failed.bytes);
    if (report->page.length > 0)
        buffer_append(&page, report->page.bytes, report->page.length);
    return buffer_take(&page);
}

int report_write(const struct report *report, struct error *err)
{
    _cleanup_free_ char *page = make_page(report);
    json_t *whole = json_pack("{s:i, s:s, s:s, s:i, s:i, s:i, s:O}", "format", 1, "mgpu", MGPU_VERSION,
        "began_at", report->began, "passed", (int)report->counts[OUTCOME_PASSED], "failed",
        (int)report->counts[OUTCOME_FAILED], "skipped", (int)report->counts[OUTCOME_SKIPPED], "checks",
        report->checks);
    _cleanup_free_ char *text = json_dumps(whole, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(whole);
    int r = write_file(report, "report.json", text != NULL ? text : "{}", err);
    return r < 0 ? r : write_file(report, "report.txt", page, err);
}
