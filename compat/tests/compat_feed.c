/* SPDX-License-Identifier: MIT */
/* What `scheduler` reads and makes, without a mgpud: lines, models, shell texts, the state file. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/feed_events.h"
#include "cli/term/words.h"
#include "compat/feed/command.h"
#include "compat/feed/jobs_file.h"
#include "compat/feed/llm.h"
#include "compat/feed/state.h"
#include "server.h"
#include "unit_test.h"

TEST(lines_have_five_fields)
{
    static const struct {
        const char *text;
        int64_t priority;
        const char *script, *conda, *arguments, *gpus;
    } rows[] = {
        { "0,a.py", 0, "a.py", NULL, NULL, NULL },
        { " -3 , a.py , env , --x 1 , 0-3,5 \r", -3, "a.py", "env", "--x 1", "0-3,5" },
        { "0,a.py,,,", 0, "a.py", NULL, NULL, NULL },
        { "0,a.py,,,4,5,6,7", 0, "a.py", NULL, NULL, "4,5,6,7" },
        { "0,a.py,,,\"4,5\"", 0, "a.py", NULL, NULL, "4,5" },
        { "0,\"a,b.py\",\"\",\"--x \"\"1, 2\"\"\" ,", 0, "a,b.py", NULL, "--x \"1, 2\"", NULL },
        { "1,/p/train.py,myenv,--epochs 10,0,1", 1, "/p/train.py", "myenv", "--epochs 10", "0,1" },
        { "0,a.py,,--name \"b c\",", 0, "a.py", NULL, "--name \"b c\"", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_feed_line_ struct feed_line line = { 0 };
        struct error err = { 0 };
        if (feed_line_parse(rows[i].text, &line, &err) != 1)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(line.priority, rows[i].priority);
        assert_string_equal(line.script, rows[i].script);
        assert_true(text_equal(line.conda, rows[i].conda));
        assert_true(text_equal(line.arguments, rows[i].arguments));
        assert_true(text_equal(line.gpus, rows[i].gpus));
    }
}

TEST(comments_and_blank_lines_are_no_jobs)
{
    static const char *const texts[] = { "", "  \t\r", "# 0,a.py", "   # 0,a.py" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct feed_line line = { 0 };
        assert_int_equal(feed_line_parse(texts[i], &line, NULL), 0);
    }
}

TEST(wrong_lines_are_refused_with_the_field)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "0", "script_path" },
        { "0,", "script_path" },
        { ",a.py", "priority" },
        { "x,a.py", "priority" },
        { "1.5,a.py", "priority" },
        { "1001,a.py", "priority" },
        { "0,a.py,,,x", "allowed_gpus" },
        { "0,a.py,,,3-1", "allowed_gpus" },
        { "0,a.py,,,1,1", "allowed_gpus" },
        { "0,a.py,,,256", "allowed_gpus" },
        { "0,a.py,,,\"1\",2", "allowed_gpus" },
        { "0,a.py,,\"x", "arguments: the quote is not closed" },
        { "0,a.py,,--x 'y", "arguments: a quote is not closed" },
        { "0,\"a\".py", "script_path: something follows" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct feed_line line = { 0 };
        struct error err = { 0 };
        if (feed_line_parse(rows[i].text, &line, &err) >= 0)
            fail_msg("%s is taken", rows[i].text);
        if (strstr(err.message, rows[i].sentence) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_null(line.script);
    }
}

TEST(what_is_written_is_read_the_same)
{
    static const struct {
        const char *script, *conda, *arguments, *gpus;
    } rows[] = { { "a.py", NULL, NULL, NULL }, { "a, \"b\".py", "x,y", " --a \"1, 2\" # 3", "0-3,5" },
        { "#a.py", "#", "#", NULL } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_feed_line_ struct feed_line line = { .priority = -7,
            .script = xstrdup(rows[i].script),
            .conda = xstrdup(rows[i].conda),
            .arguments = xstrdup(rows[i].arguments),
            .gpus = xstrdup(rows[i].gpus) };
        _cleanup_feed_line_ struct feed_line again = { 0 };
        _cleanup_free_ char *text = NULL;
        struct error err = { 0 };
        char before[FEED_HASH_SIZE], after[FEED_HASH_SIZE];
        if (feed_line_format(&line, &text, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(feed_line_parse(text, &again, &err), 1);
        feed_line_hash(&line, before);
        feed_line_hash(&again, after);
        assert_string_equal(before, after);
        assert_int_equal(again.priority, -7);
        assert_true(text_equal(again.gpus, rows[i].gpus));
    }
    _cleanup_feed_line_ struct feed_line broken = { .script = xstrdup("a\nb") };
    char *text = NULL;
    assert_int_equal(feed_line_format(&broken, &text, NULL), -EINVAL);
    assert_null(text);
}

TEST(hashes_tell_fields_apart)
{
    static const char *const lines[] = { "0,a.py,,b", "0,a.py,b,", "0,a.pyb", "0,a.py" };
    char hashes[4][FEED_HASH_SIZE], same[FEED_HASH_SIZE];
    for (size_t i = 0; i < 4; i++) {
        _cleanup_feed_line_ struct feed_line line = { 0 };
        assert_int_equal(feed_line_parse(lines[i], &line, NULL), 1);
        feed_line_hash(&line, hashes[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(hashes[i], hashes[k]);
    }
    _cleanup_feed_line_ struct feed_line line = { 0 };
    assert_int_equal(feed_line_parse("9,a.py,,b,0-1", &line, NULL), 1);
    feed_line_hash(&line, same);
    assert_string_equal(same, hashes[0]);
}

static void count_report(void *arg, const struct error *err)
{
    assert_true(err->message[0] != '\0');
    ++*(int *)arg;
}

TEST(models_have_requirements)
{
    static const char text[] =
        "{\"default_requirement\": 0.75, \"models\": {\"a\": 0.5, \"b\": 2, \"none\": 0,"
        " \"text\": \"1\", \"huge\": 1e9}, \"comment\": 1}";
    static const struct {
        const char *arguments;
        double needs;
        const char *unknown;
    } rows[] = { { "--llm a", 0.5, NULL }, { "x --llm=b y", 2, NULL }, { "--llm none", 0.75, "none" },
        { "--llm", 0.75, NULL }, { "--llms a", 0.75, NULL }, { "", 0.75, NULL },
        { "--llm b --llm a", 0.5, NULL } };
    struct feed_llm llm = { 0 };
    struct error err = { 0 };
    int reports = 0;
    assert_int_equal(feed_llm_parse(text, strlen(text), "f", count_report, &reports, &llm, &err), 0);
    assert_int_equal(reports, 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings words = { 0 };
        const char *unknown = NULL;
        assert_int_equal(words_split_all(rows[i].arguments, &words, NULL), 0);
        assert_true(feed_llm_requirement(&llm, &words, &unknown) == rows[i].needs);
        assert_true(text_equal(unknown, rows[i].unknown));
    }
    feed_llm_clear(&llm);
    const char *unknown = NULL;
    assert_true(feed_llm_requirement(&llm, &(struct strings){ 0 }, &unknown) == 1.0);
}

TEST(a_broken_configuration_names_file_and_line)
{
    static const char *const texts[] = { "", "{\n\"models\": {\n}", "[]", "{\"models\": []}",
        "{\"a\":1,\"a\":2}" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct feed_llm llm = { 0 };
        struct error err = { 0 };
        int reports = 0;
        assert_int_equal(
            feed_llm_parse(texts[i], strlen(texts[i]), "the.json", count_report, &reports, &llm, &err),
            -EINVAL);
        assert_non_null(strstr(err.message, "the.json:"));
        assert_null(llm.models);
    }
}

/* What a shell makes of the text, with a program in the place of python. */
static char *run(const char *arguments, enum feed_inject inject)
{
    _cleanup_strings_ struct strings words = { 0 };
    char said[512] = "";
    assert_int_equal(words_split_all(arguments, &words, NULL), 0);
    _cleanup_free_ char *text = feed_command_make("printf '<%s>'", "a b.py", &words, inject, NULL);
    FILE *out = popen(text, "r");
    assert_non_null(out);
    size_t n = fread(said, 1, sizeof(said) - 1, out);
    said[n] = '\0';
    assert_int_equal(pclose(out), 0);
    return xstrdup(said);
}

TEST(numbers_of_gpus_take_the_place_of_cuda)
{
    static const struct {
        const char *arguments;
        enum feed_inject inject;
        const char *said;
    } rows[] = {
        { "--cuda 9 x", FEED_INJECT_PHYSICAL, "<-u><a b.py><--cuda><2,5><x>" },
        { "--cuda=9 x", FEED_INJECT_PHYSICAL, "<-u><a b.py><--cuda=2,5><x>" },
        { "--cuda --x", FEED_INJECT_PHYSICAL, "<-u><a b.py><--cuda><2,5><--x>" },
        { "--cuda -1 --x", FEED_INJECT_PHYSICAL, "<-u><a b.py><--cuda><2,5><--x>" },
        { "--cuda", FEED_INJECT_LOCAL, "<-u><a b.py><--cuda><0,1>" },
        { "", FEED_INJECT_LOCAL, "<-u><a b.py><--cuda><0,1>" },
        { "--cudax 1", FEED_INJECT_PHYSICAL, "<-u><a b.py><--cudax><1><--cuda><2,5>" },
        { "--cuda 9 '$HOME' \"it's\" `x` a\\;b '' '*'", FEED_INJECT_NEVER,
            "<-u><a b.py><--cuda><9><$HOME><it's><`x`><a;b><><*>" },
    };
    assert_int_equal(setenv("MGPU_GPUS", "2,5", 1), 0);
    assert_int_equal(setenv("MGPU_NUM_GPUS", "2", 1), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *said = run(rows[i].arguments, rows[i].inject);
        assert_string_equal(said, rows[i].said);
    }
}

TEST(a_mode_is_safe_in_a_name)
{
    static const struct {
        const char *arguments, *mode;
    } rows[] = { { "--mode train", "train" }, { "--mode=a/b", "a-b" }, { "", "run" }, { "--mode ''", "run" },
        { "--mode '$(x) \"'", "--x---" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings words = { 0 };
        assert_int_equal(words_split_all(rows[i].arguments, &words, NULL), 0);
        _cleanup_free_ char *mode = feed_command_mode(&words);
        assert_string_equal(mode, rows[i].mode);
    }
}

TEST(wrong_states_are_refused)
{
    static const char *const texts[] = { "", "[]", "{\n\"jobs\": }", "{\"paused_gpus\": 1}",
        "{\"paused_gpus\": [-1]}", "{\"paused_gpus\": [1.5]}", "{\"jobs\": []}", "{\"jobs\": {\"x\": 1}}",
        "{\"jobs\": {\"x\": {\"id\": 1}}}", "{} {}" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *root = NULL;
        struct error err = { 0 };
        if (feed_state_parse(texts[i], strlen(texts[i]), "the.json", &root, &err) != -EINVAL)
            fail_msg("%s is taken", texts[i]);
        assert_non_null(strstr(err.message, "the.json:"));
        assert_null(root);
    }
}

TEST(a_state_tells_who_else_wrote_it)
{
    char folder[] = "/tmp/mgpu-test-XXXXXX";
    struct feed_state feed = { 0 }, again = { 0 };
    struct error err = { 0 };
    enum feed_state_compare what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    bool is_new = false;
    assert_non_null(mkdtemp(folder));
    _cleanup_free_ char *path = xasprintf("%s/state", folder);
    assert_int_equal(feed_state_open(&feed, path, &is_new, &err), 0);
    assert_true(is_new);
    assert_int_equal(feed_state_compare(&feed, &what, &text, &err), 0);
    assert_int_equal(what, FEED_STATE_MISSING);
    assert_int_equal(feed_state_save(&feed, &err), 0);
    assert_int_equal(feed_state_compare(&feed, &what, &text, &err), 0);
    assert_int_equal(what, FEED_STATE_SAME);
    assert_int_equal(feed_state_open(&again, path, &is_new, &err), 0);
    assert_false(is_new);
    assert_string_equal(field_text(feed.root, "session"), field_text(again.root, "session"));
    (void)json_object_set_new(again.root, "paused_gpus", json_pack("[i]", 1));
    assert_int_equal(feed_state_save(&again, &err), 0);
    assert_int_equal(feed_state_compare(&feed, &what, &text, &err), 0);
    assert_int_equal(what, FEED_STATE_EDITED);
    assert_non_null(text);
    assert_int_equal(feed_state_save(&feed, &err), -ESTALE);
    assert_int_equal(feed_state_compare(&again, &what, &text, &err), 0);
    assert_int_equal(what, FEED_STATE_SAME);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(feed_state_save(&again, &err), -ENOENT);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(feed_state_save(&feed, &err), -ENOENT);
    feed_state_clear(&feed);
    feed_state_clear(&again);
}

TEST(a_mgpud_that_stands_still_is_not_waited_for)
{
    struct error err = { 0 };
    _cleanup_(server_close) struct server server;
    _cleanup_(client_clear) struct client client;
    struct feed_events events = { 0 };
    server_open(&server); // the kernel takes the connection, and nobody reads
    client_init(&client, server.path, NULL);
    client.answer_ms = 10;
    assert_true(client_is_loss(feed_events_open(&events, &client, &err)));
    assert_int_equal(feed_events_fd(&events), -1);
}
