/* SPDX-License-Identifier: MIT */
/*
 * Writes the source (scdoc) of a man page from the tables of the verbs and what a person wrote beside them;
 * runs at build time only.
 *
 *   page FOLDER VERB          mgpu-VERB.1, with the text of FOLDER/VERB.scd
 *   page FOLDER --overview F  the file F, with the list of all verbs in the place of its line @COMMANDS@
 *
 * Of FOLDER/VERB.scd the paragraphs go to the description, those that begin with an option to the options,
 * and headings with what is below them behind these. An indented paragraph continues the one before it. An
 * option without a paragraph gets its line of help, so that none can be missing; a paragraph about an option
 * that the verb does not have is an error. What several verbs share is in a file of the shared table.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/leaving.h"
#include "cli/options/commands.h"
#include "cli/options/list.h"
#include "cli/submit/submit.h"

#define TEXT_MAX       (1U << 20)
#define PARAGRAPHS_MAX 200U

static const struct {
    const struct option_row *table;
    const char *name;
} shared_texts[] = {
    { submit_rows, "job-options" },
    { call_list_rows, "list-options" },
};

/* --- what a person wrote --- */

struct prose {
    char *name;
    char *text; // cut into the paragraphs
    char *paragraphs[PARAGRAPHS_MAX];
    bool is_printed[PARAGRAPHS_MAX];
    size_t count;
    char *sections; // from the first heading on, or NULL
};

static bool is_about_options(const char *paragraph)
{
    return strncmp(paragraph, "*-", 2) == 0;
}

/* The blank line that ends a paragraph, or NULL. What is indented behind a blank line continues it. */
static char *end_of_paragraph(char *paragraph)
{
    char *end = strstr(paragraph, "\n\n");
    while (end != NULL && end[2] == '\t')
        end = strstr(end + 2, "\n\n");
    return end;
}

static int prose_read(struct prose *prose, const char *folder, const char *name, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s.scd", folder, name);
    int r = file_read(AT_FDCWD, path, TEXT_MAX, &bytes);
    if (r < 0)
        return error_set(err, r, "%s: %s; each command has its text there", path, strerror(-r));
    prose->name = xstrdup(name);
    prose->text = buffer_take(&bytes);
    char *heading = strstr(prose->text, "\n# ");
    if (heading != NULL) {
        *heading = '\0';
        prose->sections = heading + 1;
    }
    for (char *p = prose->text, *next = NULL; p != NULL && *p != '\0'; p = next) {
        next = end_of_paragraph(p);
        if (next != NULL) {
            *next = '\0';
            next += 2;
        }
        if (prose->count == PARAGRAPHS_MAX)
            return error_set(err, -EFBIG, "%s has more than %u paragraphs", path, PARAGRAPHS_MAX);
        size_t length = strlen(p);
        if (length > 0 && p[length - 1] == '\n')
            p[length - 1] = '\0';
        prose->paragraphs[prose->count++] = p;
    }
    return 0;
}

static void prose_clear(struct prose *prose)
{
    free(prose->name);
    free(prose->text);
}

/* The first paragraph whose first line names the option, or -1. */
static int find_paragraph(const struct prose *prose, const struct option_row *row)
{
    _cleanup_free_ char *name = xasprintf("*--%s*", row->name);
    for (size_t i = 0; i < prose->count; i++) {
        const char *at = is_about_options(prose->paragraphs[i]) ? strstr(prose->paragraphs[i], name) : NULL;
        if (at != NULL && (size_t)(at - prose->paragraphs[i]) < strcspn(prose->paragraphs[i], "\n"))
            return (int)i;
    }
    return -1;
}

static int refuse_unused(const struct prose *prose, struct error *err)
{
    for (size_t i = 0; i < prose->count; i++)
        if (is_about_options(prose->paragraphs[i]) && !prose->is_printed[i])
            return error_set(err, -EINVAL, "%s.scd: no such option: %.*s", prose->name,
                (int)strcspn(prose->paragraphs[i], "\n"), prose->paragraphs[i]);
    return 0;
}

/* --- marks of scdoc --- */

static void put_plain(struct buffer *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        buffer_printf(out, "%s%c", strchr("\\*_~", *p) != NULL ? "\\" : "", *p);
}

static bool is_of_word(const char *p)
{
    return isalnum((unsigned char)*p) || *p == '-' || (*p == '.' && isalnum((unsigned char)p[1]));
}

/* "[OPTIONS] add|rm" becomes "[_OPTIONS_] *add*|*rm*". */
static void put_usage(struct buffer *out, const char *usage)
{
    for (const char *p = usage; *p != '\0';) {
        size_t length = 0;
        while (p[length] != '\0' && is_of_word(p + length))
            length++;
        if (length == 0) {
            buffer_append(out, p++, 1);
            continue;
        }
        char mark = isupper((unsigned char)*p) ? '_' : '*';
        buffer_printf(out, "%c%.*s%c", mark, (int)length, p, mark);
        p += length;
    }
}

/* A row of a table without lines. */
static void put_table_row(struct buffer *out, bool is_first, const char *word, const char *meaning)
{
    buffer_printf(out, is_first ? "|[ %s\n:< " : "|  %s\n:  ", word);
    put_plain(out, meaning);
    buffer_append_text(out, "\n");
}

/* --- the parts of a page --- */

typedef int visit_fn(const struct command *command, void *arg, struct error *err);

static int visit(const struct command *command, visit_fn *each, void *arg, struct error *err)
{
    int r = each(command, arg, err);
    for (size_t i = 0; r == 0 && command->actions != NULL && command->actions[i] != NULL; i++)
        r = each(command->actions[i], arg, err);
    return r;
}

static int put_synopsis(const struct command *command, void *arg, struct error *err)
{
    struct buffer *out = arg;
    (void)err;
    if (command->actions != NULL)
        return 0;
    buffer_printf(out, "%s*mgpu %s* ", out->length > 0 ? "++\n" : "", command->name);
    put_usage(out, command->usage);
    return 0;
}

static int put_aliases(const struct command *command, void *arg, struct error *err)
{
    struct buffer *out = arg;
    (void)err;
    for (size_t i = 0; command->aliases[i] != NULL; i++)
        buffer_printf(out, "%s*mgpu %s*", i > 0 ? ", " : "", command->aliases[i]);
    if (command->aliases[0] != NULL)
        buffer_printf(out, " %s of *mgpu %s*.\n\n",
            command->aliases[1] == NULL ? "is another name" : "are other names", command->name);
    return 0;
}

static int put_columns(const struct command *command, void *arg, struct error *err)
{
    struct buffer *out = arg;
    (void)err;
    if (command->list == NULL)
        return 0;
    buffer_printf(out, "# COLUMNS\n\n*mgpu %s* -o and *--sort* know\n\n", command->name);
    for (const struct list_column *column = command->list->columns; column->name != NULL; column++) {
        _cleanup_buffer_ struct buffer name = { 0 };
        put_plain(&name, column->name);
        put_table_row(out, column == command->list->columns, buffer_text(&name), column->help);
    }
    buffer_append_text(out, "\n");
    return 0;
}

static void put_option(struct buffer *out, const struct option_row *row)
{
    if (row->letter != 0)
        buffer_printf(out, "*-%c*, ", row->letter);
    buffer_printf(out, "*--%s*", row->name);
    if (row->argument != NULL && row->argument[0] == '[') {
        buffer_append_text(out, "[=");
        put_usage(out, row->argument + 1);
    } else if (row->argument != NULL) {
        buffer_append_text(out, " ");
        put_usage(out, row->argument);
    }
    buffer_printf(out, "\n\t%c", toupper((unsigned char)row->help[0]));
    put_plain(out, row->help + 1);
    buffer_append_text(out, ".");
    if (row->preset != NULL) {
        buffer_append_text(out, " Default ");
        put_plain(out, row->preset);
        buffer_append_text(out, ".");
    }
    buffer_append_text(out, "\n\n");
}

struct page {
    const char *folder;
    struct prose own;
    struct buffer options;
};

static void put_paragraph(struct buffer *out, struct prose *prose, size_t i)
{
    if (!prose->is_printed[i])
        buffer_printf(out, "%s\n\n", prose->paragraphs[i]);
    prose->is_printed[i] = true;
}

/* Rows in the order of the table; what was written about one goes before its line of help. */
static void put_rows(
    struct page *page, const struct option_row *table, struct prose *shared, struct buffer *out)
{
    for (const struct option_row *row = table; row->name != NULL; row++) {
        int own = find_paragraph(&page->own, row);
        int common = shared == NULL || own >= 0 ? -1 : find_paragraph(shared, row);
        if (own >= 0)
            put_paragraph(out, &page->own, (size_t)own);
        else if (common >= 0)
            put_paragraph(out, shared, (size_t)common);
        else if (row->help != NULL)
            put_option(out, row);
    }
}

/* A table that two actions of a verb share is told once. */
static int put_tables(const struct command *command, void *arg, struct error *err)
{
    struct page *page = arg;
    for (size_t t = 0; t < COMMAND_TABLES && command->tables[t] != NULL; t++) {
        _cleanup_(prose_clear) struct prose shared = { 0 };
        _cleanup_buffer_ struct buffer rows = { 0 };
        bool is_shared = false;
        for (size_t i = 0; i < sizeof(shared_texts) / sizeof(shared_texts[0]) && !is_shared; i++) {
            is_shared = shared_texts[i].table == command->tables[t];
            int r = is_shared ? prose_read(&shared, page->folder, shared_texts[i].name, err) : 0;
            if (r < 0)
                return r;
        }
        put_rows(page, command->tables[t], is_shared ? &shared : NULL, &rows);
        for (size_t i = 0; i < shared.count; i++)
            if (!is_about_options(shared.paragraphs[i]))
                put_paragraph(&rows, &shared, i);
        int r = refuse_unused(&shared, err);
        if (r < 0)
            return r;
        if (strstr(buffer_text(&page->options), buffer_text(&rows)) == NULL)
            buffer_append_text(&page->options, buffer_text(&rows));
    }
    return 0;
}

/* --- what happens to the job when the command goes away --- */

/* "Ctrl-C: SIGINT; again, SIGTERM: ends". What does nothing is left out. */
static void put_effects(struct buffer *out, const enum leave_effect *effects)
{
    bool is_any = false;
    for (enum leave_effect effect = LEAVE_NOTHING + 1; effect < LEAVE_EFFECTS; effect++) {
        bool is_named = false;
        for (enum leave_way way = 0; way < LEAVE_WAYS; way++) {
            if (effects[way] != effect)
                continue;
            buffer_printf(out, "%s%s", is_named ? ", " : is_any ? "; " : "", leaving_way_word(way));
            is_named = is_any = true;
        }
        if (is_named)
            buffer_printf(out, ": %s", leaving_word(effect));
    }
    buffer_append_text(out, is_any ? "" : "nothing");
}

static void put_leaving_row(
    struct buffer *table, const struct leaving *leaving, const char *state, const enum leave_effect *effects)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *head = xasprintf("%s%sthe job %s", leaving->when != NULL ? leaving->when : "",
        leaving->when != NULL ? "; " : "", state);
    put_effects(&text, effects);
    put_table_row(table, table->length == 0, head, buffer_text(&text));
}

static void put_leaving(struct buffer *out, const struct command *command)
{
    static const enum leave_effect nothing[LEAVE_WAYS] = { 0 };
    _cleanup_free_ char *typed = xasprintf("mgpu %s", command->name);
    _cleanup_buffer_ struct buffer table = { 0 };
    bool is_any = false;
    for (enum leaver leaver = 0; leaver < LEAVERS; leaver++) {
        const struct leaving *leaving = leaving_of(leaver);
        if (leaving->program == NULL || strcmp(leaving->program, typed) != 0)
            continue;
        bool is_same = memcmp(leaving->waiting, leaving->running, sizeof(nothing)) == 0;
        is_any |= memcmp(leaving->running, nothing, sizeof(nothing)) != 0;
        if (!is_same)
            put_leaving_row(&table, leaving, "waits", leaving->waiting);
        put_leaving_row(&table, leaving, is_same ? "waits or runs" : "runs", leaving->running);
    }
    if (table.length == 0)
        return;
    buffer_append_text(out, "# GOING AWAY\n\n");
    if (!is_any)
        buffer_append_text(out,
            "Nothing happens to the job when this command is interrupted, loses its terminal "
            "or its reader, or is killed.\n\n");
    else
        buffer_printf(out,
            "What signals for this command do to the job; all others leave it as it is. A signal that the "
            "command "
            "was started to ignore, as by nohup, does nothing.\n\n%s\ndocs/leaving.md explains the "
            "words.\n\n",
            buffer_text(&table));
}

static void put_see_also(struct buffer *out, const struct command *self)
{
    _cleanup_free_ char *text = xstrdup(buffer_text(out));
    buffer_append_text(out, "# SEE ALSO\n\n*mgpu*(1)");
    for (size_t i = 0; commands[i] != NULL; i++) {
        const char *name = commands[i]->name;
        _cleanup_free_ char *alone = xasprintf("*%s*", name), *typed = xasprintf("*mgpu %s", name),
                            *page = xasprintf("*mgpu-%s*", name);
        bool is_named =
            strstr(text, alone) != NULL || strstr(text, typed) != NULL || strstr(text, page) != NULL;
        if (is_named && commands[i] != self && !commands[i]->is_hidden)
            buffer_printf(out, ", *mgpu-%s*(1)", name);
    }
    buffer_append_text(out, "\n");
}

static int put_page(struct page *page, const struct command *command, struct buffer *out, struct error *err)
{
    _cleanup_buffer_ struct buffer synopsis = { 0 };
    int r = visit(command, put_tables, page, err);
    if (r == 0)
        r = refuse_unused(&page->own, err);
    if (r < 0)
        return r;
    (void)visit(command, put_synopsis, &synopsis, err);
    buffer_printf(out, "mgpu-%s(1)\n\n# NAME\n\nmgpu-%s - %c", command->name, command->name,
        tolower((unsigned char)command->help[0]));
    put_plain(out, command->help + 1);
    buffer_printf(out, "\n\n# SYNOPSIS\n\n%s\n\n# DESCRIPTION\n\n", buffer_text(&synopsis));
    for (size_t i = 0; i < page->own.count; i++)
        put_paragraph(out, &page->own, i);
    (void)visit(command, put_aliases, out, err);
    buffer_printf(out, "# OPTIONS\n\n%sThose of every command, such as *--json*, are in *mgpu*(1).\n\n",
        buffer_text(&page->options));
    if (page->own.sections != NULL)
        buffer_printf(out, "%s\n", page->own.sections);
    put_leaving(out, command);
    (void)visit(command, put_columns, out, err);
    if (page->own.sections == NULL || strstr(page->own.sections, "# EXIT STATUS") == NULL)
        buffer_printf(out, "# EXIT STATUS\n\n%s\n\n",
            command->is_job_status ? "That of the job; *mgpu*(1) has those of mgpu itself."
                                   : "0 when it is done; *mgpu*(1) has the others.");
    put_see_also(out, command);
    return 0;
}

static int make_page(const char *folder, const char *verb, struct buffer *out, struct error *err)
{
    const struct command *command = commands_find(verb);
    struct page page = { .folder = folder };
    if (command == NULL || command->is_hidden || strcmp(command->name, verb) != 0)
        return error_set(err, -EINVAL, "there is no command %s", verb);
    int r = prose_read(&page.own, folder, verb, err);
    if (r == 0)
        r = put_page(&page, command, out, err);
    prose_clear(&page.own);
    buffer_clear(&page.options);
    return r;
}

/* --- the page mgpu(1) --- */

static int make_overview(const char *path, struct buffer *out, struct error *err)
{
    static const char mark[] = "@COMMANDS@\n";
    _cleanup_buffer_ struct buffer bytes = { 0 };
    int r = file_read(AT_FDCWD, path, TEXT_MAX, &bytes);
    if (r < 0)
        return error_set(err, r, "%s: %s", path, strerror(-r));
    const char *text = buffer_text(&bytes), *at = strstr(text, mark);
    if (at == NULL)
        return error_set(err, -EINVAL, "%s has no line @COMMANDS@", path);
    buffer_append(out, text, (size_t)(at - text));
    const struct command_group *group = command_groups;
    for (size_t i = 0; commands[i] != NULL; i++) {
        _cleanup_free_ char *name = xasprintf("*mgpu-%s*(1)", commands[i]->name);
        if (commands[i] == group->first)
            buffer_printf(out, "## %s\n\n", group++->title);
        if (commands[i]->is_hidden)
            continue;
        /* No table: where a page would end, groff leaves a blank row in it. */
        buffer_printf(out, "%s\n\t", name);
        put_plain(out, commands[i]->help);
        buffer_append_text(out, ".\n\n");
    }
    buffer_append_text(out, at + strlen(mark));
    return 0;
}

int main(int argc, char **argv)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    struct error err = { 0 };
    bool is_overview = argc == 4 && strcmp(argv[2], "--overview") == 0;
    if (argc != 3 && !is_overview) {
        (void)fprintf(stderr, "usage: page FOLDER VERB, page FOLDER --overview FILE\n");
        return EXIT_FAILURE;
    }
    int r = is_overview ? make_overview(argv[3], &out, &err) : make_page(argv[1], argv[2], &out, &err);
    if (r < 0) {
        (void)fprintf(stderr, "man page: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return fputs(buffer_text(&out), stdout) >= 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
