/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "unit_test.h"

struct seen {
    char text[128]; // "g=2;q;" in the order of the calls
};

static void note(struct seen *seen, const char *name, const char *value)
{
    size_t used = strlen(seen->text);
    (void)snprintf(seen->text + used, sizeof(seen->text) - used, "%s%s%s;", name, value == NULL ? "" : "=",
        value == NULL ? "" : value);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    note(target, "g", value);
    return strcmp(value, "bad") == 0 ? error_set(err, -ERANGE, "no such number") : 0;
}

static int set_ids(void *target, const char *value, struct error *err)
{
    note(target, "G", value);
    return 0;
}

static int set_quiet(void *target, const char *value, struct error *err)
{
    note(target, "q", value);
    return 0;
}

static int set_watch(void *target, const char *value, struct error *err)
{
    note(target, "w", value);
    return 0;
}

static const struct option_row first[] = {
    { 'g', "gpus", "N", "number of GPUs", set_gpus },
    { 'G', "gpu-ids", "LIST", "these GPUs", set_ids },
    { 0, "ids", "LIST", NULL, set_ids },
    { 0 },
};

static const struct option_row second[] = {
    { 'q', "quiet", NULL, "say less", set_quiet },
    { 'w', "watch", "[SECONDS]", "repeat", set_watch },
    { 0 },
};

static const struct option_row *const tables[] = { first, second, NULL };

#define WORDS_MAX 16

/* Parses `argv`, which ends with NULL, and checks what was set and which operands are left. */
static int parse(const char *const *words, bool stop, char *text, char *operands, struct error *err)
{
    char *argv[WORDS_MAX] = { 0 };
    int argc = 0, rest = 0;
    struct seen seen = { 0 };
    for (; words[argc] != NULL; argc++)
        argv[argc] = xstrdup(words[argc]);
    int r = options_parse(argc, argv, tables, &seen, stop, &rest, err);
    operands[0] = '\0';
    for (int i = rest; r == 0 && i < argc; i++) {
        size_t used = strlen(operands);
        (void)snprintf(operands + used, 128 - used, "%s;", argv[i]);
    }
    (void)snprintf(text, 128, "%s", seen.text);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return r;
}

static void check(const char *const *words, bool stop, const char *text, const char *operands)
{
    char got_text[128], got_operands[128];
    struct error err = { 0 };
    assert_int_equal(parse(words, stop, got_text, got_operands, &err), 0);
    assert_string_equal(got_text, text);
    assert_string_equal(got_operands, operands);
}

static void refused(const char *const *words, int code, const char *part)
{
    char got_text[128], got_operands[128];
    struct error err = { 0 };
    assert_int_equal(parse(words, false, got_text, got_operands, &err), code);
    assert_non_null(strstr(err.message, part));
}

#define WORDS(...) ((const char *const[]){ "prog", __VA_ARGS__, NULL })

TEST(values_may_be_joined_or_apart)
{
    check(WORDS("-g2", "-g", "3", "--gpus=4", "--gpus", "5"), false, "g=2;g=3;g=4;g=5;", "");
}

TEST(flags_may_be_joined)
{
    check(WORDS("-qqg2"), false, "q;q;g=2;", "");
}

TEST(operands_move_to_the_end_in_their_order)
{
    check(WORDS("a", "-q", "b", "-g", "1", "c"), false, "q;g=1;", "a;b;c;");
}

TEST(a_user_command_keeps_its_own_options)
{
    check(WORDS("-g1", "python", "-q", "--gpus"), true, "g=1;", "python;-q;--gpus;");
}

TEST(two_dashes_end_the_options)
{
    check(WORDS("-q", "--", "-g", "x"), false, "q;", "-g;x;");
    check(WORDS("a", "--", "--"), false, "", "a;--;");
}

TEST(one_dash_is_an_operand)
{
    check(WORDS("-", "-q"), false, "q;", "-;");
}

TEST(a_negative_number_can_be_a_value)
{
    check(WORDS("-g", "-5"), false, "g=-5;", "");
}

TEST(an_unambiguous_beginning_is_enough)
{
    check(WORDS("--qui", "--gpu-=1"), false, "q;G=1;", "");
    refused(WORDS("--gpu", "1"), -EINVAL, "--gpus, --gpu-ids");
}

TEST(an_optional_value_is_given_joined_only)
{
    check(WORDS("-w", "5"), false, "w;", "5;");
    check(WORDS("-w5", "--watch=6", "--watch"), false, "w=5;w=6;w;", "");
}

TEST(a_slip_of_the_fingers_gets_a_suggestion)
{
    refused(WORDS("--gpsu=1"), -EINVAL, "Did you mean '--gpus'?");
    refused(WORDS("--zzzzzz"), -EINVAL, "unknown option '--zzzzzz'");
    refused(WORDS("-x"), -EINVAL, "unknown option '-x'");
}

TEST(a_missing_or_needless_value_is_refused)
{
    refused(WORDS("--gpus"), -EINVAL, "'--gpus' needs a value: N");
    refused(WORDS("-g"), -EINVAL, "'-g' needs a value: N");
    refused(WORDS("--quiet=1"), -EINVAL, "takes no value");
}

TEST(the_setter_decides_about_its_value)
{
    refused(WORDS("-g", "bad"), -ERANGE, "no such number");
}

TEST(a_row_is_found_without_complaints)
{
    static const struct option_row *const both[] = { first, second, NULL };
    assert_ptr_equal(options_find(both, "gpu-ids", 7), &first[1]);
    assert_ptr_equal(options_find(both, "gpus=2", 4), &first[0]);
    assert_ptr_equal(options_find(both, "qui", 3), &second[0]);
    assert_null(options_find(both, "gp", 2));
    assert_null(options_find(both, "nosuch", 6));
    assert_null(options_find(both, "", 0));
    assert_ptr_equal(options_find_letter(both, 'q'), &second[0]);
    assert_null(options_find_letter(both, 'x'));
}

TEST(help_lists_rows_but_no_aliases)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options_print(first, out);
    (void)fclose(out);
    assert_string_equal(text, "  -g, --gpus N        number of GPUs\n"
                              "  -G, --gpu-ids LIST  these GPUs\n");
}

TEST(help_of_several_tables_has_one_column)
{
    static const struct option_row wide[] = { { 0, "a-longer-name", "N", "a number" }, { 0 } };
    static const struct option_row *const both[] = { first, wide, NULL };
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options_print_all(both, out);
    (void)fclose(out);
    assert_string_equal(text, "  -g, --gpus N           number of GPUs\n"
                              "  -G, --gpu-ids LIST     these GPUs\n"
                              "      --a-longer-name N  a number\n");
}

static int set_word(void *target, const char *value, struct error *err)
{
    const char **word = target;
    if (strcmp(value, "bad") == 0)
        return error_set(err, -ERANGE, "no such word");
    *word = value;
    return 0;
}

TEST(presets_are_set_by_the_rows_that_show_them)
{
    static const struct option_row good[] = { { 0, "word", "WORD", "a word", set_word, "shown" },
        { 0, "other", "WORD", "without a preset", set_word }, { 0 } };
    static const struct option_row bad[] = { { 0, "word", "WORD", "a word", set_word, "bad" }, { 0 } };
    const struct option_row *const one[] = { good, NULL }, *const both[] = { good, bad, NULL };
    const char *word = NULL;
    struct error err = { 0 };
    assert_int_equal(options_preset(one, &word, &err), 0);
    assert_string_equal(word, "shown");
    assert_int_equal(options_preset(both, &word, &err), -ERANGE);
}
