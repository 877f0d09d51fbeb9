/* SPDX-License-Identifier: MIT */
#include "lab/kit/page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"

#define FILE_MAX   ((size_t)16 << 20)
#define SHOWN_MAX  600U // of a sentence: its escapes are longer than it was
#define WORD_MAX   40U
#define REASON_MAX 100

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
                                  "send it, even if nothing failed.\n\n";

/* Each word of a report, and how the page shows it. */
static const struct {
    const char *result, *shown, *count;
} outcomes[] = { { "passed", "passed", "passed" }, { "failed", "FAILED", "failed" },
    { "skipped", "skipped", "skipped" } };
#define N_OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

static char *word_of(const json_t *object, const char *name, size_t most)
{
    const char *word = json_string_value(json_object_get(object, name));
    return text_escape(word != NULL ? word : "", most);
}

/* The outcome of a check; N_OUTCOMES: it has none that is known. */
static size_t outcome_of(const json_t *check)
{
    const char *result = json_string_value(json_object_get(check, "result"));
    size_t i = 0;
    while (i < N_OUTCOMES && !text_equal(result, outcomes[i].result))
        i++;
    return i;
}

char *page_line(const json_t *check)
{
    _cleanup_free_ char *name = word_of(check, "name", WORD_MAX), *title = word_of(check, "title", SHOWN_MAX),
                        *text = word_of(check, "text", SHOWN_MAX);
    size_t outcome = outcome_of(check);
    return xasprintf("%-7s  %-14s %5.1f s  %s%s%s\n", outcome < N_OUTCOMES ? outcomes[outcome].shown : "?",
        name, json_number_value(json_object_get(check, "seconds")), title, text[0] != '\0' ? ": " : "", text);
}

static int check_report(const json_t *report, struct error *err)
{
    const json_t *checks = json_object_get(report, "checks"), *check;
    json_int_t format = json_integer_value(json_object_get(report, "format"));
    size_t i;
    if (!json_is_array(checks))
        return error_set(err, -EINVAL, "this is not a report of the kit: it has no list of checks");
    if (format != PAGE_FORMAT)
        return error_set(err, -EINVAL, "the report has format %lld, and this kit reads format %d",
            (long long)format, PAGE_FORMAT);
    json_array_foreach(checks, i, check)
    {
        if (json_string_value(json_object_get(check, "name")) == NULL || outcome_of(check) == N_OUTCOMES)
            return error_set(err, -EINVAL,
                "check %zu of the report has no name, or a result other than passed, failed or skipped", i);
    }
    return 0;
}

static void print_head(struct buffer *page, const json_t *report)
{
    _cleanup_free_ char *version = word_of(report, "mgpu", WORD_MAX),
                        *began = word_of(report, "began_at", WORD_MAX);
    size_t counts[N_OUTCOMES + 1] = { 0 }, i;
    const json_t *check;
    json_array_foreach(json_object_get(report, "checks"), i, check) counts[outcome_of(check)]++;
    buffer_printf(page, "mgpu %s on new hardware, %s: ", version, began);
    for (i = 0; i < N_OUTCOMES; i++)
        buffer_printf(page, "%s%zu %s", i > 0 ? ", " : "", counts[i], outcomes[i].count);
    buffer_append_text(page, "\n\n");
}

static void print_failed(struct buffer *page, const json_t *checks)
{
    const json_t *check;
    size_t i, failed = 0;
    json_array_foreach(checks, i, check)
    {
        _cleanup_free_ char *name = word_of(check, "name", WORD_MAX);
        if (text_equal(json_string_value(json_object_get(check, "result")), "failed"))
            buffer_printf(page, "%s %s", failed++ == 0 ? "Failed:" : "", name);
    }
    if (failed > 0)
        buffer_append_text(page, "\n\n");
}

char *page_of(const json_t *report, struct error *err)
{
    struct buffer page = { 0 };
    const json_t *checks = json_object_get(report, "checks"), *check;
    size_t i;
    if (check_report(report, err) < 0)
        return NULL;
    print_head(&page, report);
    buffer_append_text(&page, explanation);
    print_failed(&page, checks);
    json_array_foreach(checks, i, check)
    {
        _cleanup_free_ char *line = page_line(check);
        buffer_append_text(&page, line);
    }
    return buffer_take(&page);
}

char *page_of_file(const char *path, struct error *err)
{
    struct buffer bytes = { 0 };
    json_error_t at;
    int r = file_read(AT_FDCWD, path, FILE_MAX, &bytes);
    if (r < 0) {
        buffer_clear(&bytes);
        (void)error_set_errno(err, r, "cannot read %s", path);
        return NULL;
    }
    json_t *report = json_loadb(buffer_text(&bytes), bytes.length, JSON_REJECT_DUPLICATES, &at);
    buffer_clear(&bytes);
    if (report == NULL) {
        _cleanup_free_ char *why = text_escape(at.text, REASON_MAX);
        (void)error_set(err, -EINVAL, "%s is not JSON: line %d: %s", path, at.line, why);
        return NULL;
    }
    char *page = page_of(report, err);
    json_decref(report);
    return page;
}
