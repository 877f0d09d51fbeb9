/* SPDX-License-Identifier: MIT */
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/filter.h"
#include "unit_test.h"

static json_t *job(void)
{
    json_t *value =
        json_loads("{\"id\": 44, \"array_job\": 42, \"array_index\": 3, \"user\": \"Ana\", \"uid\": 7,"
                   " \"name\": \"train\", \"state\": \"running\", \"command\": \"python x.py\","
                   " \"node\": \"gpu1\", \"granted\": [{\"index\": 4, \"node\": null}]}",
            0, NULL);
    assert_non_null(value);
    return value;
}

static bool matches(const char *text)
{
    _cleanup_json_ json_t *value = job();
    const struct filter filter = { .text = text, .own_uid = 7 };
    return filter_matches(&filter, value);
}

TEST(fields_and_words_find_it)
{
    static const char *const texts[] = { "", "u:ana", "user:an", "u:you", "s:run", "S:RUNNING", "gpu:4",
        "gpu:gpu1:4", "n:rai", "id:44", "id:42.3", "42.3", "train", "PYTHON", "gpu1", "u:ana s:run  train",
        "!u:bo", "u:", "!" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!matches(texts[i]))
            fail_msg("'%s' does not match", texts[i]);
}

TEST(all_words_must_match)
{
    static const char *const texts[] = { "u:bo", "s:queued", "gpu:3", "gpu:gpu2:4", "n:x", "id:4", "zzz",
        "u:ana s:queued", "!u:ana", "!train" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (matches(texts[i]))
            fail_msg("'%s' matches", texts[i]);
}

TEST(held_jobs_are_held_and_not_queued)
{
    _cleanup_json_ json_t *value = job();
    (void)json_object_set_new(value, "state", json_string("queued"));
    (void)json_object_set_new(value, "hold", json_string("user"));
    assert_true(filter_matches(&(struct filter){ .text = "s:held" }, value));
    assert_false(filter_matches(&(struct filter){ .text = "s:queued" }, value));
}

TEST(mine_are_those_of_my_uid)
{
    _cleanup_json_ json_t *value = job();
    assert_true(filter_matches(&(struct filter){ .own_uid = 7, .is_mine = true }, value));
    assert_false(filter_matches(&(struct filter){ .own_uid = 8, .is_mine = true }, value));
}

TEST(trouble_is_what_somebody_should_look_at)
{
    static const char *const texts[] = { "{\"state\": \"failed\"}",
        "{\"state\": \"running\", \"idle\": \"told\"}", "{\"state\": \"queued\", \"reason\": \"never_fits\"}",
        "{\"state\": \"queued\", \"reason\": \"dependency_never\"}",
        "{\"state\": \"done\", \"usage\": {\"fault\": \"Xid 79\"}}",
        "{\"state\": \"running\", \"usage\": {\"stray_gpus\": [0]}}" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        _cleanup_json_ json_t *value = json_loads(texts[i], 0, NULL);
        if (!filter_is_trouble(value))
            fail_msg("%s is no trouble", texts[i]);
    }
    _cleanup_json_ json_t *fine = job(),
                          *waiting = json_loads("{\"state\": \"queued\", \"reason\": \"priority\"}", 0, NULL);
    assert_false(filter_is_trouble(fine));
    assert_false(filter_is_trouble(waiting));
    assert_false(filter_matches(&(struct filter){ .is_trouble = true }, fine));
}
