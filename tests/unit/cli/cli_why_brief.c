/* SPDX-License-Identifier: MIT */
/* In the column of a narrow terminal, the fact comes first. */

#include <jansson.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/why_brief.h"
#include "unit_test.h"

#define WIDTH 20 // about what an 80-column terminal has for it

static void assert_brief(const char *job, const char *expected)
{
    json_error_t where;
    _cleanup_free_ char *text = xasprintf(
        "[%s, {\"id\": 7, \"gpus\": 8, \"state\": \"queued\"}, {\"id\": 8, \"state\": \"queued\"}]", job);
    _cleanup_json_ json_t *jobs = json_loads(text, 0, &where);
    if (jobs == NULL)
        fail_msg("%s: %s", text, where.text);
    why_brief_add(jobs);
    const char *brief = json_string_value(json_object_get(json_array_get(jobs, 0), "brief"));
    if (expected == NULL ? brief != NULL : brief == NULL || strcmp(brief, expected) != 0)
        fail_msg("%s: '%s' instead of '%s'", job, brief != NULL ? brief : "none",
            expected != NULL ? expected : "none");
    assert_true(expected == NULL || strlen(expected) <= WIDTH);
}

TEST(a_reason_to_wait_begins_with_the_fact)
{
    static const struct {
        const char *sentence, *brief;
    } rows[] = {
        { "requested 8 GPUs; 1 of 8 is free", "1 of 8 is free" },
        { "requested 8 GPUs; 4 of 8 are free; after job 7, which was submitted earlier",
            "behind 7 (8 GPUs)" },
        { "requested 8 GPUs; 4 of 8 are free; after job 8, which was submitted earlier", "behind 8" },
        { "waiting for job 38 (ok)", "after job 38 (ok)" },
        { "waiting for 3 jobs", "after 3 jobs" },
        { "waiting for its begin time", "its begin time" },
        { "its last attempt failed; it will be tried again", "tried again soon" },
        { "limit of its array: 2 elements of this array run (its limit)", "array limit (2)" },
        { "1 element of this array runs (its limit)", "array limit (1)" },
        { "limit of its owner: 4 GPUs", "4 GPUs" },
        { "held by an administrator", "held by an admin" },
        { "held by its owner", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned is_held = 0; is_held < 2; is_held++) {
            _cleanup_free_ char *job = xasprintf("{\"id\": 1, \"state\": \"%s\", \"reason_text\": \"%s\"}",
                is_held ? "held" : "queued", rows[i].sentence);
            assert_brief(job, rows[i].brief);
        }
}

#define ENDED "{\"id\": 1, \"state\": \"failed\", "

TEST(an_end_begins_with_the_fact)
{
    assert_brief(ENDED "\"ended_by\": \"start_failed\", \"exit_code\": 125, "
                       "\"message\": \"cannot enter /data/x: No such file or directory\"}",
        "no /data/x");
    assert_brief(ENDED "\"ended_by\": \"start_failed\", \"exit_code\": 126, "
                       "\"message\": \"cannot execute './x.py': Permission denied\"}",
        "no access to ./x.py");
}

TEST(an_end_without_a_start_begins_with_the_fact)
{
    static const struct {
        const char *members, *brief;
    } rows[] = {
        { "\"ended_by\": \"time_limit\", \"time_limit_s\": 3600", "time limit of 1h00m" },
        { "\"ended_by\": \"time_limit\"", "time limit" },
        { "\"ended_by\": \"signal\", \"signal\": 9", "signal 9 (SIGKILL)" },
        { "\"ended_by\": \"deadline\"", "deadline passed" },
        { "\"ended_by\": \"node_lost\"", "node lost" },
        { "\"ended_by\": \"reboot\"", "node rebooted" },
        { "\"ended_by\": \"idle_timeout\"", "idle" },
        { "\"ended_by\": \"gpu_oom\"", "GPU out of memory" },
        { "\"ended_by\": \"gpu_mem\"", "over its GPU share" },
        { "\"ended_by\": \"budget\"", "token is used up" },
        { "\"ended_by\": \"exit\", \"exit_code\": 3", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *job = xasprintf(ENDED "%s}", rows[i].members);
        assert_brief(job, rows[i].brief);
    }
}

TEST(an_array_says_how_its_elements_ended)
{
    assert_brief(ENDED "\"ended_by\": \"exit\", \"exit_code\": 1, \"array\": \"0-4\", "
                       "\"elements\": {\"done\": 3, \"failed\": 2}}",
        "3 done, 2 failed");
}
