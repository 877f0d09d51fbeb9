/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/options/ask.h"
#include "cli/options/commands.h"
#include "cli/options/selector.h"
#include "cli/term/when.h"
#include "cli/verbs/topics.h"
#include "sched/why.h"
#include "unit_test.h"

#define FRIDAY_MS INT64_C(1795000000000)

static char *print(const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(topics_find(name));
    topics_print(topics_find(name), out);
    (void)fclose(out);
    return text;
}

TEST(every_moment_and_span_is_understood)
{
    int64_t ms = 0;
    bool is_span = false, is_past = false;
    for (const struct topic_row *row = topics_find("time")->rows; row->word != NULL; row++) {
        if (row->meaning == NULL) {
            is_span = strncmp(row->word, "durations", 9) == 0;
            is_past = strstr(row->word, "in the past") != NULL;
        } else if (is_past)
            assert_int_equal(when_parse_past(row->word, "x", FRIDAY_MS, &when_utc, &ms, NULL), 0);
        else if (is_span)
            assert_int_equal(parse_duration(row->word, "x", &ms, NULL), 0);
        else
            assert_int_equal(when_parse(row->word, "x", FRIDAY_MS, &when_utc, &ms, NULL), 0);
    }
    assert_true(is_span);
}

TEST(every_size_is_understood)
{
    uint64_t bytes = 0;
    for (const struct topic_row *row = topics_find("sizes")->rows; row->word != NULL; row++)
        assert_int_equal(parse_size(row->word, "x", &bytes, NULL), 0);
}

TEST(each_way_to_name_a_job_is_another_kind)
{
    bool seen[SELECT_NAME + 1] = { false };
    for (const struct topic_row *row = topics_find("jobs")->rows; row->word != NULL; row++) {
        struct selector selector = { 0 };
        assert_int_equal(selector_parse(row->word, &selector, NULL), 0);
        seen[selector.kind] = true;
    }
    for (size_t i = 0; i <= SELECT_NAME; i++)
        assert_true(seen[i]);
}

/* "-G 0,2-3": the option, and a value that it takes. */
TEST(every_request_is_understood)
{
    static const struct {
        const char *option, *key;
    } keys[] = { { "-g", "gpus" }, { "-G", "gpu_ids" }, { "--gpu-allow", "gpu_allow" }, { "-m", "gpu_mem" } };
    for (const struct topic_row *row = topics_find("requests")->rows; row->word != NULL; row++) {
        _cleanup_json_ json_t *request = json_object();
        const char *value = strchr(row->word, ' ');
        assert_non_null(value);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (strncmp(row->word, keys[i].option, (size_t)(value - row->word)) == 0)
                assert_int_equal(ask_set(request, NULL, keys[i].key, "x", value + 1, NULL), 0);
        assert_int_equal(json_object_size(request), 1);
    }
}

TEST(every_reason_of_the_scheduler_is_explained)
{
    _cleanup_free_ char *text = print("reasons");
    for (unsigned code = 0; code < WHY_CODES; code++) {
        _cleanup_free_ char *line = xasprintf("\n  %s ", why_code_name((enum why_code)code));
        assert_non_null(strstr(text, line));
    }
}

static bool has_row(const char *topic, const char *word)
{
    for (const struct topic_row *row = topics_find(topic)->rows; row->word != NULL; row++)
        if (strcmp(row->word, word) == 0)
            return true;
    return false;
}

TEST(every_exit_status_is_explained)
{
    static const int codes[] = { EXIT_OK, EXIT_PARTLY, EXIT_USAGE, EXIT_MISSING, EXIT_REFUSED,
        EXIT_UNREACHABLE, EXIT_WRONG_STATE, EXIT_TIMEOUT, EXIT_SELF };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        _cleanup_free_ char *word = xasprintf("%d", codes[i]);
        assert_true(has_row("exit-codes", word));
    }
    for (int error = 1; error < 133; error++) {
        _cleanup_free_ char *word = xasprintf("%d", exit_code_of_error(-error));
        assert_true(has_row("exit-codes", word));
    }
}

TEST(every_list_has_its_columns)
{
    _cleanup_free_ char *text = print("columns");
    static const char *const lines[] = { "\nmgpu ps\n", "\nmgpu gpus\n", "\nmgpu nodes\n", "\nmgpu users\n",
        "\nmgpu reserve list\n", "\nmgpu config list\n", "\n  state " };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_non_null(strstr(text, lines[i]));
}

/* A verb with -o COLUMNS says which columns there are, for this page and for completion. */
static void look_for_list(const struct command *command)
{
    for (size_t i = 0; i < COMMAND_TABLES && command->tables[i] != NULL; i++)
        if (command->tables[i] == call_list_rows)
            assert_non_null(command->list);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        look_for_list(command->actions[i]);
}

TEST(every_verb_with_columns_names_them)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        look_for_list(commands[i]);
}

TEST(every_alias_is_listed)
{
    _cleanup_free_ char *text = print("aliases");
    for (size_t i = 0; commands[i] != NULL; i++)
        for (size_t a = 0; commands[i]->aliases[a] != NULL; a++)
            assert_non_null(strstr(text, commands[i]->aliases[a]));
}

TEST(no_topic_hides_behind_a_command)
{
    for (const struct topic *topic = topics; topic->name != NULL; topic++) {
        assert_null(commands_find(topic->name));
        assert_true(topic->help[strlen(topic->help) - 1] != '.');
    }
    assert_null(topics_find("nosuch"));
}
