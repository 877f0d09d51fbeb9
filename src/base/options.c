/* SPDX-License-Identifier: MIT */
/*
 * Options are rows of tables, so parsing, help and suggestions cannot diverge. Words are sorted into options
 * and operands and written back to argv at the end: options first, operands last, each in the order typed. A
 * value is always the next word, whatever it looks like, so `-p -5` works.
 */
#include "base/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"

#define HELP_COLUMN_MAX 26 // maximum column at which the help text begins

struct parser {
    char **argv;
    int argc, next; // next: the word to look at
    const struct option_row *const *tables;
    void *target;
    option_seen_fn *seen;
    char **options, **operands;
    int n_options, n_operands;
    struct error *err;
};

static bool is_optional(const struct option_row *row)
{
    return row->argument != NULL && row->argument[0] == '[';
}

int options_set(void *target, const struct option_row *row, const char *value, struct error *err)
{
    return row->set_key != NULL ? row->set_key(target, row, value, err) : row->set(target, value, err);
}

bool options_are_same(const struct option_row *a, const struct option_row *b)
{
    return a->set == b->set && a->set_key == b->set_key && text_equal(a->key, b->key) &&
           a->member == b->member;
}

const struct option_row *options_find_letter(const struct option_row *const *tables, char letter)
{
    for (size_t t = 0; tables[t] != NULL; t++)
        for (const struct option_row *row = tables[t]; row->name != NULL; row++)
            if (row->letter == letter)
                return row;
    return NULL;
}

static int refuse_ambiguous(const struct parser *parser, const char *name, size_t length)
{
    _cleanup_buffer_ struct buffer all = { 0 };
    for (size_t t = 0; parser->tables[t] != NULL; t++)
        for (const struct option_row *row = parser->tables[t]; row->name != NULL; row++)
            if (row->help != NULL && strncmp(row->name, name, length) == 0)
                buffer_printf(&all, "%s--%s", all.length > 0 ? ", " : "", row->name);
    return error_set(parser->err, -EINVAL, "option '--%.*s' is ambiguous; it could be %.200s", (int)length,
        name, buffer_text(&all));
}

static const struct option_meaning *known_meanings;

void options_know(const struct option_meaning *meanings)
{
    known_meanings = meanings;
}

static bool has_name(const struct parser *parser, const char *name)
{
    for (size_t t = 0; parser->tables[t] != NULL; t++)
        for (const struct option_row *row = parser->tables[t]; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0)
                return true;
    return false;
}

/* The equivalent of another program's option, or NULL. */
static const char *find_meaning(const struct parser *parser, const char *name, size_t length)
{
    for (const struct option_meaning *row = known_meanings; row != NULL && row->name != NULL; row++)
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0 &&
            has_name(parser, row->needs))
            return row->meaning;
    return NULL;
}

static int refuse_unknown(const struct parser *parser, const char *name, size_t length)
{
    _cleanup_free_ const char **names = xcalloc(1, sizeof(char *));
    size_t count = 0;
    for (size_t t = 0; parser->tables[t] != NULL; t++)
        for (const struct option_row *row = parser->tables[t]; row->name != NULL; row++) {
            names = xreallocarray(names, count + 2, sizeof(char *));
            names[count++] = row->name;
            names[count] = NULL;
        }
    _cleanup_free_ char *word = xstrndup(name, length);
    _cleanup_free_ char *shown = text_escape(word, 60);
    const char *meaning = length > 1 ? find_meaning(parser, name, length) : NULL;
    if (meaning != NULL) {
        (void)error_mark(
            parser->err, OPTIONS_UNKNOWN, error_set(parser->err, -EINVAL, "unknown option '--%s'", shown));
        return error_hint(parser->err, "%s", meaning);
    }
    const char *near = text_nearest(word, names);
    if (near != NULL)
        return error_mark(parser->err, OPTIONS_UNKNOWN,
            error_set(parser->err, -EINVAL, "unknown option '--%s'. Did you mean '--%s'?", shown, near));
    return error_mark(
        parser->err, OPTIONS_UNKNOWN, error_set(parser->err, -EINVAL, "unknown option '--%s'", shown));
}

/* The row called `name`, or the only one with that prefix; aliases of one row count once. */
static int find_name(
    const struct parser *parser, const char *name, size_t length, const struct option_row **ret_row)
{
    const struct option_row *found = NULL;
    bool is_ambiguous = false;
    for (size_t t = 0; parser->tables[t] != NULL; t++)
        for (const struct option_row *row = parser->tables[t]; row->name != NULL; row++) {
            if (strncmp(row->name, name, length) != 0)
                continue;
            if (row->name[length] == '\0') {
                *ret_row = row;
                return 0;
            }
            is_ambiguous |= found != NULL && !options_are_same(found, row);
            found = row;
        }
    bool is_foreign = length > 1 && find_meaning(parser, name, length) != NULL;
    if (found == NULL || length == 0 || is_foreign)
        return refuse_unknown(parser, name, length);
    if (is_ambiguous)
        return refuse_ambiguous(parser, name, length);
    *ret_row = found;
    return 0;
}

const struct option_row *options_find(const struct option_row *const *tables, const char *name, size_t length)
{
    const struct parser parser = { .tables = tables };
    const struct option_row *row = NULL;
    return find_name(&parser, name, length, &row) == 0 ? row : NULL;
}

/* The word after the option, which becomes its value. */
static const char *take_word(struct parser *parser)
{
    if (parser->next >= parser->argc)
        return NULL;
    char *word = parser->argv[parser->next++];
    parser->options[parser->n_options++] = word;
    return word;
}

/* An error about a value begins with the option, spelled as typed. */
static void name_as_typed(const struct option_row *row, bool is_letter, struct error *err)
{
    _cleanup_free_ char *letter = xasprintf("-%c", row->letter), *name = xasprintf("--%s", row->name);
    const char *other = is_letter ? name : letter, *typed = is_letter ? letter : name;
    size_t length = strlen(other);
    if (err == NULL || row->letter == 0 || strncmp(err->message, other, length) != 0 ||
        strncmp(err->message + length, ": ", 2) != 0)
        return;
    const char *rest = err->message + length + 2;
    memmove(err->message, rest, strlen(rest) + 1);
    (void)error_wrap(err, "%s", typed);
}

static int take(const struct parser *parser, const struct option_row *row, bool is_letter, const char *value)
{
    int r = options_set(parser->target, row, value, parser->err);
    if (r < 0)
        name_as_typed(row, is_letter, parser->err);
    if (r == 0 && parser->seen != NULL)
        parser->seen(parser->target, row, value);
    return r;
}

static int read_long(struct parser *parser, const char *text)
{
    const struct option_row *row = NULL;
    size_t length = strcspn(text, "=");
    int r = find_name(parser, text, length, &row);
    if (r < 0)
        return r;
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    if (row->argument == NULL && value != NULL)
        return error_set(parser->err, -EINVAL, "option '--%s' takes no value", row->name);
    if (row->argument != NULL && value == NULL && !is_optional(row))
        value = take_word(parser);
    if (row->argument != NULL && value == NULL && !is_optional(row))
        return error_set(parser->err, -EINVAL, "option '--%s' needs a value: %s", row->name, row->argument);
    return take(parser, row, false, value);
}

static int read_letters(struct parser *parser, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const struct option_row *row = options_find_letter(parser->tables, *letters);
        if (row == NULL) {
            _cleanup_free_ char *shown = text_escape(letters, 1);
            const char *meaning = find_meaning(parser, letters, 1);
            (void)error_mark(
                parser->err, OPTIONS_UNKNOWN, error_set(parser->err, -EINVAL, "unknown option '-%s'", shown));
            return meaning != NULL ? error_hint(parser->err, "%s", meaning) : -EINVAL;
        }
        if (row->argument == NULL) {
            int r = take(parser, row, true, NULL);
            if (r < 0)
                return r;
            continue;
        }
        const char *value = letters[1] != '\0' ? letters + 1 : NULL;
        if (value == NULL && !is_optional(row))
            value = take_word(parser);
        if (value == NULL && !is_optional(row))
            return error_set(
                parser->err, -EINVAL, "option '-%c' needs a value: %s", row->letter, row->argument);
        return take(parser, row, true, value);
    }
    return 0;
}

static int read_words(struct parser *parser, bool stop_at_operand)
{
    bool is_operand_only = false;
    while (parser->next < parser->argc) {
        char *word = parser->argv[parser->next++];
        if (is_operand_only || word[0] != '-' || word[1] == '\0') {
            parser->operands[parser->n_operands++] = word;
            is_operand_only |= stop_at_operand;
            continue;
        }
        parser->options[parser->n_options++] = word;
        if (strcmp(word, "--") == 0) {
            is_operand_only = true;
            continue;
        }
        int r = word[1] == '-' ? read_long(parser, word + 2) : read_letters(parser, word + 1);
        if (r < 0)
            return r;
    }
    return 0;
}

int options_parse_seen(int argc, char **argv, const struct option_row *const *tables, void *target,
    option_seen_fn *seen, bool stop_at_operand, int *ret_operands, struct error *err)
{
    _cleanup_free_ char **options = xcalloc((size_t)argc + 1, sizeof(char *));
    _cleanup_free_ char **operands = xcalloc((size_t)argc + 1, sizeof(char *));
    struct parser parser = { .argv = argv,
        .argc = argc,
        .next = 1,
        .tables = tables,
        .target = target,
        .seen = seen,
        .options = options,
        .operands = operands,
        .err = err };
    int r = read_words(&parser, stop_at_operand);
    if (r < 0)
        return r;
    for (int i = 0; i < parser.n_options; i++)
        argv[1 + i] = options[i];
    for (int i = 0; i < parser.n_operands; i++)
        argv[1 + parser.n_options + i] = operands[i];
    *ret_operands = 1 + parser.n_options;
    return 0;
}

int options_parse(int argc, char **argv, const struct option_row *const *tables, void *target,
    bool stop_at_operand, int *ret_operands, struct error *err)
{
    return options_parse_seen(argc, argv, tables, target, NULL, stop_at_operand, ret_operands, err);
}

int options_preset(const struct option_row *const *tables, void *target, struct error *err)
{
    for (size_t t = 0; tables[t] != NULL; t++)
        for (const struct option_row *row = tables[t]; row->name != NULL; row++) {
            int r = row->preset != NULL ? options_set(target, row, row->preset, err) : 0;
            if (r < 0)
                return r;
        }
    return 0;
}

/* --- help --- */

/* The number of UTF-8 bytes that begin a character. */
static size_t columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* The next word; for a list longer than a line, the part up to a comma. */
static size_t word_length(const char *text, size_t indent)
{
    size_t length = strcspn(text, " \n"), most = HELP_WIDTH - indent;
    if (indent >= HELP_WIDTH || columns(text, length) <= most)
        return length;
    for (size_t i = most; i > 0; i--)
        if (text[i - 1] == ',')
            return i;
    return length;
}

static void print_line(const char *line, size_t length, size_t column, size_t indent, FILE *out)
{
    size_t own = strspn(line, " "), end = own < length ? own : length;
    (void)fprintf(out, "%.*s", (int)end, line);
    column += end;
    for (size_t at = end, used = 0; at < length; used++) {
        size_t word = word_length(line + at, indent + own);
        size_t width = columns(line + at, word);
        if (used > 0 && column + 1 + width > HELP_WIDTH) {
            column = indent + own;
            (void)fprintf(out, "\n%*s", (int)column, "");
        } else if (used > 0 && line[at - 1] == ' ') {
            (void)fputc(' ', out);
            column++;
        }
        (void)fprintf(out, "%.*s", (int)word, line + at);
        column += width;
        at += word;
        at += at < length && line[at] == ' ';
    }
    (void)fputc('\n', out);
}

void help_text_print(const char *text, size_t column, size_t indent, FILE *out)
{
    do {
        size_t length = strcspn(text, "\n");
        print_line(text, length, column, indent, out);
        text += length;
        column = 0;
    } while (*text != '\0' && *++text != '\0');
}

/* "  -g, --gpus N" without the help text. */
static void describe(const struct option_row *row, struct buffer *out)
{
    if (row->letter != 0)
        buffer_printf(out, "  -%c, ", row->letter);
    else
        buffer_append_text(out, "      ");
    buffer_printf(out, "--%s", row->name);
    if (row->argument != NULL)
        buffer_printf(out, "%s%s", is_optional(row) ? "[=" : " ", row->argument + is_optional(row));
}

static void print_row(const struct option_row *row, size_t width, FILE *out)
{
    _cleanup_buffer_ struct buffer left = { 0 };
    describe(row, &left);
    if (left.length > width)
        (void)fprintf(out, "%s\n%*s", buffer_text(&left), (int)width, "");
    else
        (void)fprintf(out, "%-*s", (int)width, buffer_text(&left));
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_append_text(&text, row->help);
    if (row->preset != NULL)
        buffer_printf(&text, " (default %s)", row->preset);
    (void)fputs("  ", out);
    help_text_print(buffer_text(&text), width + 2, width + 2, out);
}

/* Width of the longest description; those wider than HELP_COLUMN_MAX have their own line. */
static size_t measure(const struct option_row *table)
{
    size_t width = 0;
    for (const struct option_row *row = table; row->name != NULL; row++) {
        _cleanup_buffer_ struct buffer left = { 0 };
        describe(row, &left);
        if (row->help != NULL && left.length > width && left.length <= HELP_COLUMN_MAX)
            width = left.length;
    }
    return width;
}

void options_print_all(const struct option_row *const *tables, FILE *out)
{
    size_t width = 0;
    for (size_t i = 0; tables[i] != NULL; i++) {
        size_t here = measure(tables[i]);
        width = here > width ? here : width;
    }
    for (size_t i = 0; tables[i] != NULL; i++)
        for (const struct option_row *row = tables[i]; row->name != NULL; row++)
            if (row->help != NULL)
                print_row(row, width, out);
}

void options_print(const struct option_row *table, FILE *out)
{
    options_print_all((const struct option_row *const[]){ table, NULL }, out);
}
