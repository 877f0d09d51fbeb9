/* SPDX-License-Identifier: MIT */
/* Where in a line the last word stands, without an mgpud. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/complete/complete.h"
#include "unit_test.h"

#define NOBODY_HERE "/nonexistent/mgpud.sock"
#define WORDS_MAX   8U

static char *complete(const char *const *words)
{
    _cleanup_strings_ struct strings line = { 0 };
    _cleanup_(client_clear) struct client client = { 0 };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++)
        strings_add(&line, words[i]);
    client_init(&client, NOBODY_HERE, NULL);
    complete_line(&client, (int)line.count, line.items, out);
    (void)fclose(out);
    return text;
}

TEST(the_place_of_the_word_decides)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *expected;
    } lines[] = {
        { { "ver" }, "version\tShow the versions of this program and of mgpud\n" },
        { { "--utc", "--color", "never", "ver" },
            "version\tShow the versions of this program and of mgpud\n" },
        { { "--color", "ne" }, "never\n" },
        { { "--color=ne" }, "--color=never\n" },
        { { "ps", "-s", "queued,do" }, "queued,done\n" },
        { { "ps", "-Hs", "do" }, "done\n" },
        { { "ps", "-sdo" }, "-sdone\n" },
        { { "ps", "-w", "-s", "do" }, "done\n" }, // the number of -w is joined
        { { "ps", "--stat", "do" }, "done\n" },
        { { "ps", "--no-such", "--state", "do" }, "done\n" },
        { { "gpu", "--utc", "po" },
            "policy\tSet how to treat external processes on these GPUs (operators)\n" },
        { { "pause", "--rea" }, "--reason\treason, shown to waiting users\n" },
        { { "edit", "7", "idle_ok=y" }, "idle_ok=yes\n" },
        { { "submit", "-A", "7:a" }, "7:any\tafter it ends in any way\n" },
        { { "submit", "-A", "7:ok,8:f" }, "7:ok,8:fail\tafter it fails\n" },
        { { "submit", "-g", "2", "" }, ":commands\n" },
        { { "submit", "-g", "2", "--", "--g" }, ":commands\n" },
        { { "submit", "python", "-g" }, ":files\n" },
        { { "submit", "-oout" }, ":files\n" },
        { { "submit", "-g", "" }, "" },
        { { "nosuch", "" }, "" },
        { { "show", "" }, "" },
        { { "version", "x" }, "" },
        { { "show", "-o", "" }, "json\n" },
        { { "help", "gpu", "res" }, "resume\tPut these GPUs back into service (operators)\n" },
        { { "help", "sizes", "" }, "" },
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        _cleanup_free_ char *offered = complete(lines[i].words);
        assert_string_equal(offered, lines[i].expected);
    }
}

TEST(a_line_without_a_word_offers_verbs)
{
    static const char *const none[] = { NULL };
    _cleanup_free_ char *offered = complete(none);
    assert_non_null(strstr(offered, "submit\t"));
    assert_null(strstr(offered, "__complete"));
}

static char *offer(complete_fn *what, const char *part)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const struct completion completion = { .head = "", .part = part, .out = out };
    what(&completion);
    (void)fclose(out);
    return text;
}

TEST(signals_come_by_name)
{
    _cleanup_free_ char *offered = offer(complete_signals, "US");
    assert_string_equal(offered, "USR1\tUser defined signal 1\nUSR2\tUser defined signal 2\n");
}

static void add_odd_words(const struct completion *completion)
{
    complete_add(completion, "a b", NULL);
    complete_add(completion, "$(reboot)", NULL);
    complete_add(completion, "plain", "a\tb\033[2J");
}

TEST(words_that_need_quotes_are_left_out)
{
    _cleanup_free_ char *offered = offer(add_odd_words, "");
    assert_string_equal(offered, "plain\ta\\x09b\\x1b[2J\n");
}
