/* SPDX-License-Identifier: MIT */
/*
 * Parses the line like the option parser, but without errors: unknown options are skipped. The result is the
 * position of the last word: the value of an option, an option, or an operand of the verb.
 */
#include "cli/complete/complete.h"

#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/commands.h"

#define ABOUT_MAX 80U // bytes of a description
#define SAFE_WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:,=@+%/-"

struct line {
    const struct command *command;
    const struct option_row *tables[COMMAND_TABLES + 2];
    const struct option_row *pending; // the option whose value comes next
    const char *first, *socket;
    size_t operands;
    bool has_verb, is_operand_only;
};

void complete_add(const struct completion *completion, const char *word, const char *about)
{
    if (strncmp(word, completion->part, strlen(completion->part)) != 0 ||
        word[strspn(word, SAFE_WORD)] != '\0')
        return;
    _cleanup_free_ char *shown = about == NULL ? NULL : text_escape(about, ABOUT_MAX);
    (void)fprintf(completion->out, "%s%s%s%s\n", completion->head, word, shown == NULL ? "" : "\t",
        shown == NULL ? "" : shown);
}

void complete_list(const struct completion *completion, complete_fn *complete)
{
    const char *comma = strrchr(completion->part, ',');
    struct completion last = *completion;
    if (comma != NULL)
        last.part = comma + 1;
    _cleanup_free_ char *before = xstrndup(completion->part, (size_t)(last.part - completion->part));
    _cleanup_free_ char *head = xasprintf("%s%s", completion->head, before);
    last.head = head;
    complete(&last);
}

/* The options of a verb, of one of its actions, or of none. */
static void set_tables(struct line *line)
{
    size_t count = 0;
    memset(line->tables, 0, sizeof(line->tables));
    for (size_t i = 0; line->command != NULL && i < COMMAND_TABLES && line->command->tables[i] != NULL; i++)
        line->tables[count++] = line->command->tables[i];
    line->tables[count] = call_global_rows;
}

static bool takes_word(const struct option_row *row)
{
    return row->argument != NULL && row->argument[0] != '[';
}

/* "--name" or "--name=value". */
static void read_long(struct line *line, const char *text)
{
    size_t length = strcspn(text, "=");
    const struct option_row *row = options_find(line->tables, text, length);
    if (row == NULL || !takes_word(row))
        return;
    if (text[length] == '\0')
        line->pending = row;
    else if (strcmp(row->name, "socket") == 0)
        line->socket = text + length + 1;
}

/* "-qg" or "-g2". */
static void read_letters(struct line *line, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const struct option_row *row = options_find_letter(line->tables, *letters);
        if (row == NULL || row->argument == NULL)
            continue;
        if (letters[1] == '\0' && takes_word(row))
            line->pending = row;
        return;
    }
}

static void read_operand(struct line *line, const char *word)
{
    const struct command *action = line->command == NULL ? NULL : call_find_action(line->command, word);
    if (!line->has_verb || action != NULL) {
        line->command = action != NULL ? action : commands_find(word);
        line->has_verb = true;
        set_tables(line);
        return;
    }
    line->first = line->operands++ == 0 ? word : line->first;
    line->is_operand_only |= line->command != NULL && line->command->stops_at_operand;
}

static void read_word(struct line *line, const char *word)
{
    if (line->pending != NULL) {
        if (strcmp(line->pending->name, "socket") == 0)
            line->socket = word;
        line->pending = NULL;
    } else if (line->is_operand_only || word[0] != '-' || word[1] == '\0') {
        read_operand(line, word);
    } else if (strcmp(word, "--") == 0) {
        line->is_operand_only = true;
    } else if (word[1] == '-') {
        read_long(line, word + 2);
    } else {
        read_letters(line, word + 1);
    }
}

static void print_options(const struct line *line, const struct completion *completion)
{
    for (size_t t = 0; line->tables[t] != NULL; t++)
        for (const struct option_row *row = line->tables[t]; row->name != NULL; row++) {
            _cleanup_free_ char *word = xasprintf("--%s", row->name);
            if (row->help != NULL)
                complete_add(completion, word, row->help);
        }
}

static void print_operands(const struct completion *completion)
{
    const struct command *command = completion->command;
    if (command == NULL)
        complete_verbs(completion);
    else if (command->actions != NULL)
        complete_actions(completion);
    else if (command->complete_operand != NULL)
        command->complete_operand(completion);
    else if (command->takes_jobs)
        complete_jobs(completion);
    else if (command->stops_at_operand)
        complete_commands(completion);
}

/* "--name=va" or "-nva": the value begins within the word. */
static bool print_joined(const struct line *line, const struct completion *completion)
{
    const char *word = completion->part, *value = NULL;
    const struct option_row *row = NULL;
    if (word[0] == '-' && word[1] == '-' && strchr(word, '=') != NULL) {
        value = strchr(word, '=') + 1;
        row = options_find(line->tables, word + 2, (size_t)(value - word) - 3);
    } else if (word[0] == '-' && word[1] != '-' && word[1] != '\0') {
        value = word + 2;
        row = options_find_letter(line->tables, word[1]);
    }
    if (row == NULL || row->argument == NULL)
        return false;
    struct completion inside = *completion;
    _cleanup_free_ char *head = xstrndup(word, (size_t)(value - word));
    inside.head = head;
    inside.part = value;
    complete_value(&inside, row);
    return true;
}

void complete_line(struct client *client, int argc, char *const *argv, FILE *out)
{
    struct line line = { 0 };
    set_tables(&line);
    for (int i = 0; i + 1 < argc; i++)
        read_word(&line, argv[i]);
    if (line.socket != NULL) {
        client_clear(client);
        client_init(client, line.socket, NULL);
    }
    client->answer_ms = COMPLETE_ANSWER_MS;
    client_hurry(client);
    const struct completion completion = {
        .client = client,
        .command = line.command,
        .first = line.operands > 0 ? line.first : NULL,
        .operands = line.operands,
        .head = "",
        .part = argc > 0 ? argv[argc - 1] : "",
        .out = out,
    };
    if (line.pending != NULL)
        complete_value(&completion, line.pending);
    else if (line.has_verb && line.command == NULL)
        return; // options of a verb that does not exist
    else if (line.is_operand_only || completion.part[0] != '-')
        print_operands(&completion);
    else if (!print_joined(&line, &completion))
        print_options(&line, &completion);
}
