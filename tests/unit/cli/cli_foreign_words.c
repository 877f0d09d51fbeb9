/* SPDX-License-Identifier: MIT */
/* Words of other programs are answered with what does the same here, and the answers name what exists. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/options/call.h"
#include "cli/options/commands.h"
#include "cli/options/foreign_words.h"
#include "unit_test.h"

static const struct option_row *find(const struct command *command, const char *name)
{
    const struct call call = { .command = command };
    return call_find_option(&call, name);
}

/* Each "mgpu WORD" of the text is a command. */
static void check_commands_named(const char *word, const char *text)
{
    static const char program[] = "mgpu ";
    for (const char *at = text; (at = strstr(at, program)) != NULL;) {
        at += strlen(program);
        _cleanup_free_ char *verb = xstrndup(at, strspn(at, "abcdefghijklmnopqrstuvwxyz-"));
        if (verb[0] != '\0' && commands_find(verb) == NULL)
            fail_msg("%s: the answer names 'mgpu %s', which does not exist", word, verb);
    }
}

/* Each "--NAME" of the text is an option of a command that has the one that the row needs. */
static void check_options_named(const struct option_meaning *row)
{
    for (const char *at = row->meaning; (at = strstr(at, "--")) != NULL;) {
        at += 2;
        _cleanup_free_ char *name = xstrndup(at, strspn(at, "abcdefghijklmnopqrstuvwxyz-"));
        bool is_found = name[0] == '\0';
        for (size_t i = 0; commands[i] != NULL && !is_found; i++)
            is_found = find(commands[i], row->needs) != NULL && find(commands[i], name) != NULL;
        if (!is_found)
            fail_msg(
                "--%s: the answer names --%s, which no command with --%s has", row->name, name, row->needs);
    }
}

/* "config set": the verb has actions, and this one is none of them. */
TEST(answers_for_actions_are_read)
{
    size_t found = 0;
    for (const struct foreign_command *row = foreign_commands; row->name != NULL; row++) {
        const char *blank = strchr(row->name, ' ');
        if (blank == NULL)
            continue;
        _cleanup_free_ char *verb = xstrndup(row->name, (size_t)(blank - row->name));
        const struct command *command = commands_find(verb);
        assert_non_null(command);
        assert_non_null(command->actions);
        if (call_find_action(command, blank + 1) != NULL)
            fail_msg("%s is an action of mgpu: its row is never read", row->name);
        found++;
    }
    assert_true(found > 5);
}

TEST(answers_for_commands_name_commands)
{
    for (const struct foreign_command *row = foreign_commands; row->name != NULL; row++) {
        struct error err = { 0 };
        if (commands_find(row->name) != NULL)
            fail_msg("%s is a command of mgpu: its row is never read", row->name);
        check_commands_named(row->name, row->here);
        assert_int_equal(commands_refuse(row->name, &err), -EINVAL);
        if (strstr(err.hint, row->here) == NULL || strstr(err.message, "Did you mean") != NULL)
            fail_msg("%s is answered with '%s' and '%s'", row->name, err.message, err.hint);
    }
}

static bool has_letter(const struct command *command, char letter)
{
    for (size_t t = 0; t < sizeof(command->tables) / sizeof(command->tables[0]); t++)
        for (const struct option_row *row = command->tables[t]; row != NULL && row->name != NULL; row++)
            if (row->letter == letter)
                return true;
    return false;
}

TEST(answers_for_options_name_options)
{
    for (const struct option_meaning *row = foreign_options; row->name != NULL; row++) {
        size_t readers = 0;
        check_commands_named(row->name, row->meaning);
        check_options_named(row);
        for (size_t i = 0; commands[i] != NULL; i++) {
            bool is_own = row->name[1] == '\0' ? has_letter(commands[i], row->name[0])
                                               : find(commands[i], row->name) != NULL;
            readers += find(commands[i], row->needs) != NULL && !is_own;
        }
        if (readers == 0)
            fail_msg(
                "%s: no command with --%s lacks it, so that its row is never read", row->name, row->needs);
    }
}

TEST(an_option_is_answered_where_its_meaning_exists_and_by_letters_elsewhere)
{
    options_know(foreign_options);
    for (const struct option_meaning *row = foreign_options; row->name != NULL; row++) {
        const struct option_row needed[] = { { 0, row->needs, NULL, "" }, { 0 } };
        const struct option_row other[] = { { 0, "zzzzzzzzzz", NULL, "" }, { 0 } };
        _cleanup_free_ char *word = xasprintf("%s%s", row->name[1] == '\0' ? "-" : "--", row->name);
        char *argv[] = { word, word, NULL };
        struct error err = { 0 }, none = { 0 };
        int first = 0;
        const struct option_row *const with[] = { needed, NULL }, *const without[] = { other, NULL };
        assert_int_equal(options_parse(2, argv, with, NULL, false, &first, &err), -EINVAL);
        assert_string_equal(err.hint, row->meaning);
        assert_int_equal(options_parse(2, argv, without, NULL, false, &first, &none), -EINVAL);
        assert_string_equal(none.hint, "");
    }
    options_know(NULL);
}
