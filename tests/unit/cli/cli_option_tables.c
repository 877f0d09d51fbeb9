/* SPDX-License-Identifier: MIT */
/*
 * Walks the option tables of all verbs. Each option with a value is tried with wrong ones, through the verb
 * itself and where no mgpud is: it must be refused before anything is asked, with a sentence that names it.
 * The same rows are held against the pages that man/page.c makes: mgpu(1), and one for each verb.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/options/commands.h"
#include "cli/options/list.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "run_verb.h"
#include "unit_test.h"

#define HELP_MAX 86U // characters of a line of help, so that it fits beside the option
#define PAGE_MAX (1U << 20)

enum wrong { WRONG_EMPTY = 1, WRONG_RUBBISH = 2, WRONG_LARGE = 4, WRONG_UNIT = 8 };
#define WRONG_NOT_EMPTY (WRONG_RUBBISH | WRONG_LARGE | WRONG_UNIT)

static const struct {
    enum wrong kind;
    const char *value;
} wrongs[] = {
    { WRONG_EMPTY, "" },
    { WRONG_RUBBISH, "!rubbish" },
    { WRONG_LARGE, "99999999999999999999" },
    { WRONG_UNIT, "5parsecs" },
};

/* Options whose value is text: only an empty one is wrong. */
static const char *const texts[] = { "socket", "name", "user", "users", "reason", "chdir", "setup",
    "env-setup-cmd", "after", "module", "conda", "venv", "image", "notify", "status", "host", "node",
    "replace", "partition", "nodelist", "exclude", "browser-user", NULL };

/* Files; -o of lists is no such thing. */
static bool is_text(const struct option_row *row)
{
    if (strcmp(row->argument, "FILE") == 0)
        return true;
    if (strcmp(row->argument, "SEQ") == 0)
        return false;
    for (size_t i = 0; texts[i] != NULL; i++)
        if (strcmp(texts[i], row->name) == 0)
            return true;
    return false;
}

typedef void visit_fn(const struct command *command, const struct option_row *row, void *arg);

static void visit_rows(const struct command *command, visit_fn *visit, void *arg)
{
    for (size_t i = 0; i < COMMAND_TABLES && command->tables[i] != NULL; i++)
        for (const struct option_row *row = command->tables[i]; row->name != NULL; row++)
            visit(command, row, arg);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        visit_rows(command->actions[i], visit, arg);
}

static void visit_all(visit_fn *visit, void *arg)
{
    for (const struct option_row *row = call_global_rows; row->name != NULL; row++)
        visit(&command_version, row, arg);
    for (size_t i = 0; commands[i] != NULL; i++)
        visit_rows(commands[i], visit, arg);
}

/* An operand with which the verb would ask mgpud. */
static const char *operand_of(const struct command *command)
{
    return command->takes_nothing ? NULL : "1";
}

static bool is_named_so(const char *text, const struct option_row *row)
{
    char letter[] = { '-', row->letter, '\0' };
    _cleanup_free_ char *full = xasprintf("--%s", row->name);
    const char *at = row->letter == 0 ? NULL : strstr(text, letter);
    return strstr(text, full) != NULL || (at != NULL && !isalnum((unsigned char)at[2]));
}

/* Of a row that is another name for one before it, either name will do. */
static bool is_named(const char *text, const struct command *command, const struct option_row *row)
{
    for (size_t t = 0; row->help == NULL && t < COMMAND_TABLES && command->tables[t] != NULL; t++)
        for (const struct option_row *other = command->tables[t]; other->name != NULL; other++)
            if (options_are_same(other, row) && is_named_so(text, other))
                return true;
    return is_named_so(text, row);
}

static void try_wrong_values(const struct command *command, const struct option_row *row, void *arg)
{
    unsigned *failures = arg;
    for (size_t i = 0; row->argument != NULL && i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        _cleanup_free_ char *option = xasprintf("--%s=%s", row->name, wrongs[i].value);
        _cleanup_free_ char *verb = xstrdup(command->name);
        const char *operand = operand_of(command);
        _cleanup_free_ char *job = xstrdup(operand == NULL ? "" : operand);
        char *argv[] = { verb, option, operand == NULL ? NULL : job, NULL };
        int status = 0;
        if ((wrongs[i].kind & WRONG_NOT_EMPTY) != 0 && is_text(row))
            continue;
        _cleanup_free_ char *said = run_verb(command, operand == NULL ? 2 : 3, argv, &status);
        bool is_refused = status == 2 || (status == 125 && command->is_job_status);
        if (is_refused && is_named(said, command, row) && strstr(said, NOBODY_HERE) == NULL)
            continue;
        (*failures)++;
        print_error("mgpu %s %s: status %d, %s", command->name, option, status, said);
    }
}

TEST(wrong_values_are_refused_by_the_name_of_the_option)
{
    unsigned failures = 0;
    visit_all(try_wrong_values, &failures);
    assert_int_equal(failures, 0);
}

static void check_help(const struct command *command, const struct option_row *row, void *arg)
{
    unsigned *failures = arg;
    if (row->help == NULL)
        return;
    size_t length = strlen(row->help);
    if (length > 0 && length <= HELP_MAX && row->help[length - 1] != '.')
        return;
    (*failures)++;
    print_error("mgpu %s --%s: '%s' has %zu characters\n", command->name, row->name, row->help, length);
}

TEST(help_is_one_line_without_a_period)
{
    unsigned failures = 0;
    visit_all(check_help, &failures);
    for (size_t i = 0; commands[i] != NULL; i++) {
        const char *help = commands[i]->help;
        bool is_good = strlen(help) > 0 && strlen(help) <= HELP_MAX && help[strlen(help) - 1] != '.';
        failures += is_good ? 0 : 1;
        if (!is_good)
            print_error("mgpu %s: '%s'\n", commands[i]->name, help);
    }
    assert_int_equal(failures, 0);
}

TEST(names_and_letters_are_given_once)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        for (size_t k = i + 1; commands[k] != NULL; k++)
            assert_string_not_equal(commands[i]->name, commands[k]->name);
    for (size_t i = 0; commands[i] != NULL; i++) {
        bool seen[128] = { false };
        for (size_t t = 0; t < COMMAND_TABLES && commands[i]->tables[t] != NULL; t++)
            for (const struct option_row *row = commands[i]->tables[t]; row->name != NULL; row++) {
                assert_false(row->letter != 0 && seen[(unsigned char)row->letter]);
                seen[(unsigned char)row->letter] = true;
            }
    }
}

/* --- the man pages --- */

/* "mgpu" or "mgpu-run"; NULL when there is no such page. */
static char *read_page(const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s.1.scd", MAN_PAGES, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    char *text = xcalloc(1, PAGE_MAX);
    assert_true(fread(text, 1, PAGE_MAX - 1, file) > 0);
    (void)fclose(file);
    return text;
}

/* The page of a verb, and of the verb of an action. */
static char *read_page_of(const struct command *command)
{
    _cleanup_free_ char *name = xasprintf("mgpu-%s", command->name);
    name[strcspn(name, " ")] = '\0';
    return read_page(name);
}

/* Does `text` have `word`, with nothing after it that would make it another word? */
static bool has_word(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (const char *p = text; (p = strstr(p, word)) != NULL && p < text + length; p++) {
        bool is_begun = p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '-');
        if (!is_begun && !isalnum((unsigned char)p[size]) && p[size] != '-')
            return true;
    }
    return false;
}

static void look_for_option(const struct command *command, const struct option_row *row, void *arg)
{
    unsigned *failures = arg;
    bool is_global = command == &command_version; // as visit_all has it
    _cleanup_free_ char *page = is_global ? read_page("mgpu") : read_page_of(command);
    _cleanup_free_ char *option = xasprintf("--%s", row->name);
    if (command->is_hidden || strcmp(row->name, "n") == 0 ||
        (page != NULL && has_word(page, strlen(page), option)))
        return;
    (*failures)++;
    print_error("no %s in the man page of %s\n", option, command->name);
}

TEST(the_man_pages_have_every_option_and_verb)
{
    _cleanup_free_ char *overview = read_page("mgpu");
    unsigned failures = 0;
    visit_all(look_for_option, &failures);
    for (size_t i = 0; commands[i] != NULL; i++) {
        _cleanup_free_ char *line = xasprintf("\n*mgpu-%s*(1)\n", commands[i]->name);
        _cleanup_free_ char *page = read_page_of(commands[i]);
        if (commands[i]->is_hidden || (page != NULL && strstr(overview, line) != NULL))
            continue;
        failures++;
        print_error("mgpu %s has no page, or mgpu(1) does not list it\n", commands[i]->name);
    }
    assert_int_equal(failures, 0);
}

struct seeking {
    const char *name;
    bool is_found;
};

static void seek(const struct command *command, const struct option_row *row, void *arg)
{
    struct seeking *seeking = arg;
    seeking->is_found |= strcmp(row->name, seeking->name) == 0;
}

/* Those of mgpud stand behind its name, or here. */
static unsigned count_unknown_options(const char *name, const char *page)
{
    static const char *const others[] = { "foreign", NULL };
    unsigned failures = 0;
    for (const char *p = page; (p = strstr(p, "*--")) != NULL;) {
        p += strlen("*--");
        _cleanup_free_ char *option = xstrndup(p, strspn(p, "abcdefghijklmnopqrstuvwxyz-"));
        struct seeking seeking = { .name = option, .is_found = option[0] == '\0' };
        for (size_t i = 0; others[i] != NULL; i++)
            seeking.is_found |= strcmp(others[i], option) == 0;
        visit_all(seek, &seeking);
        failures += seeking.is_found ? 0 : 1;
        if (!seeking.is_found)
            print_error("man page of %s: there is no option --%s\n", name, option);
    }
    return failures;
}

TEST(the_man_pages_have_no_option_that_does_not_exist)
{
    _cleanup_free_ char *overview = read_page("mgpu");
    unsigned failures = count_unknown_options("mgpu", overview);
    for (size_t i = 0; commands[i] != NULL; i++) {
        _cleanup_free_ char *page = commands[i]->is_hidden ? NULL : read_page_of(commands[i]);
        failures += page == NULL ? 0 : count_unknown_options(commands[i]->name, page);
    }
    assert_int_equal(failures, 0);
}

/* What a verb takes and what it shows stand in its page with the words of the tables. */
TEST(a_page_is_made_of_the_tables_of_its_verb)
{
    _cleanup_free_ char *cancel = read_page("mgpu-cancel"), *nodes = read_page("mgpu-nodes"),
                        *gpu = read_page("mgpu-gpu"), *run = read_page("mgpu-run");
    assert_non_null(strstr(cancel, "\n*mgpu cancel* [_OPTIONS_] _JOB_..."));
    assert_non_null(
        strstr(cancel, "*mgpu kill*, *mgpu rm*, *mgpu scancel* are other names of *mgpu cancel*."));
    for (const struct list_column *column = command_nodes.list->columns; column->name != NULL; column++) {
        _cleanup_free_ char *word = xasprintf("%.4s", column->help);
        assert_non_null(strstr(nodes, word));
    }
    assert_non_null(strstr(gpu, "\n*mgpu gpu resume* _GPU_..."));
    assert_non_null(strstr(gpu, "*mgpu pause* is another name of *mgpu gpu pause*."));
    assert_non_null(strstr(run, "# EXIT STATUS\n\nThat of the job"));
    assert_non_null(strstr(run, ", *mgpu-submit*(1)"));
}

/* The defaults of submit are read for the verbs that have its options, and for no other. */
TEST(who_makes_jobs_has_the_options_of_submit)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        bool has_rows = false;
        for (size_t t = 0; t < COMMAND_TABLES && commands[i]->tables[t] != NULL; t++)
            has_rows |= commands[i]->tables[t] == submit_rows;
        assert_int_equal(commands[i]->makes_jobs, has_rows);
    }
}

int main(void)
{
    (void)setenv("HOME", "/nonexistent", 1);
    return unit_tests_run(NULL, NULL);
}
