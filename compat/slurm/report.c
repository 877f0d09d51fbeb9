/* SPDX-License-Identifier: MIT */
#include "compat/slurm/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

#define WIDTH_MAX   4096
#define VALUE_WIDTH 10 // unless the format says otherwise

/* The field with that name, or the first one that begins with it; -1: none. */
static int find(const struct report_field *fields, const char *word)
{
    int found = -1;
    for (int i = 0; fields[i].name != NULL; i++) {
        if (strcasecmp(fields[i].name, word) == 0)
            return i;
        if (found < 0 && strncasecmp(fields[i].name, word, strlen(word)) == 0)
            found = i;
    }
    return found;
}

int report_read(struct report *report, const char *format, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(format);
    char *rest = copy;
    report->count = 0;
    for (char *word = NULL; (word = strsep(&rest, ", ")) != NULL;) {
        char *percent = strchr(word, '%');
        if (percent != NULL)
            *percent++ = '\0';
        if (word[0] == '\0')
            continue;
        int field = find(report->fields, word);
        long width = percent != NULL ? strtol(percent, NULL, 10) : 0;
        if (field < 0)
            return error_set(err, -EINVAL, "Invalid field requested: \"%.60s\"", word);
        if (report->count == REPORT_FIELDS_MAX)
            return error_set(err, -E2BIG, "more than %u fields", REPORT_FIELDS_MAX);
        report->cells[report->count].field = (size_t)field;
        report->cells[report->count++].width = width == 0           ? report->fields[field].width
                                               : width > WIDTH_MAX  ? WIDTH_MAX
                                               : width < -WIDTH_MAX ? -WIDTH_MAX
                                                                    : (int)width;
    }
    return 0;
}

static void print_cell(const struct report *report, size_t i, const char *text)
{
    int width = report->cells[i].width, letters = width < 0 ? -width : width;
    bool is_last = i + 1 == report->count;
    if (report->is_parsable)
        (void)printf("%s%s", text, !is_last || report->has_last_delimiter ? "|" : "");
    else if (strlen(text) > (size_t)letters) // text that does not fit ends with a mark
        (void)printf("%.*s+ ", letters - 1, text);
    else
        (void)printf("%*s ", width, text);
}

void report_print_head(const struct report *report)
{
    if (report->is_headless)
        return;
    for (size_t i = 0; i < report->count; i++) {
        const struct report_field *field = &report->fields[report->cells[i].field];
        const char *header = field->header != NULL ? field->header : field->name;
        int letters = abs(report->cells[i].width);
        _cleanup_free_ char *shown =
            report->is_parsable ? xstrdup(header) : xstrndup(header, (size_t)letters);
        print_cell(report, i, shown);
    }
    (void)putchar('\n');
    for (size_t i = 0; !report->is_parsable && i < report->count; i++) {
        for (int k = abs(report->cells[i].width); k > 0; k--)
            (void)putchar('-');
        (void)fputs(i + 1 < report->count ? " " : " \n", stdout);
    }
}

void report_print_row(const struct report *report, const char *const *texts)
{
    for (size_t i = 0; i < report->count; i++) {
        const char *text = texts[report->cells[i].field];
        print_cell(report, i, text != NULL ? text : "");
    }
    (void)putchar('\n');
}

void report_print_names(const struct report_field *fields)
{
    for (size_t i = 0; fields[i].name != NULL; i++)
        (void)printf("%s%-17s", i == 0 ? "" : i % 4 == 0 ? "\n" : "  ", fields[i].name);
    (void)putchar('\n');
}

static const char *find_value(const struct report_value *values, const char *name)
{
    for (; values->name != NULL; values++)
        if (strcasecmp(values->name, name) == 0)
            return values->text;
    return NULL;
}

void report_print_values(
    const char *format, const struct report_value *values, bool is_parsable, bool has_last_delimiter)
{
    _cleanup_free_ char *copy = xstrdup(format);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        char *percent = strchr(word, '%');
        if (percent != NULL)
            *percent++ = '\0';
        const char *text = values != NULL ? find_value(values, word) : word;
        long width = percent != NULL ? strtol(percent, NULL, 10) : VALUE_WIDTH;
        text = text != NULL ? text : "";
        if (is_parsable)
            (void)printf("%s%s", text, rest != NULL || has_last_delimiter ? "|" : "");
        else
            (void)printf("%*.*s ", (int)width, (int)(width < 0 ? -width : width), text);
    }
    (void)putchar('\n');
}
