/* SPDX-License-Identifier: MIT */
/* Targets and events of notifications: valid and invalid ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/notify.h"
#include "unit_test.h"

TEST(a_target_is_known_by_how_it_begins)
{
    static const struct {
        const char *text;
        enum notify_way way;
        const char *to;
    } rows[] = {
        { "mail", NOTIFY_MAIL, NULL },
        { "mail:ana@lab.example", NOTIFY_MAIL, "ana@lab.example" },
        { "mail:ana", NOTIFY_MAIL, "ana" },
        { "mail -s done ana", NOTIFY_COMMAND, "mail -s done ana" },
        { "mailer", NOTIFY_COMMAND, "mailer" },
        { "echo a,b", NOTIFY_COMMAND, "echo a,b" },
        { "curl https://h/x", NOTIFY_COMMAND, "curl https://h/x" },
        { "https://h/x?a=1,2", NOTIFY_URL, "https://h/x?a=1,2" },
        { "HTTP://[::1]:80/", NOTIFY_URL, "HTTP://[::1]:80/" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct notify_target target;
        assert_int_equal(parse_notify(rows[i].text, &target, NULL), 0);
        assert_int_equal(target.way, rows[i].way);
        assert_true(rows[i].to == NULL ? target.to == NULL : strcmp(target.to, rows[i].to) == 0);
    }
}

TEST(a_bad_target_is_refused)
{
    static const char *const wrong[] = { "", " ", "mail:", "mail:@lab", "mail:ana@", "mail:a@b@c", "mail:-f",
        "mail:a b", "mail:a,b", "mail:<a>", "mail:a\nBcc: b", "mail:\xc3\xa9", "mailto:ana", "ftp://h/",
        "file:///etc/passwd", "http://", "https:///x", "https://-x/", "https://h/a b", "https://h/\"",
        "https://h/\\", "echo\na", "\x1b[2J" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error err = { 0 };
        struct notify_target target;
        assert_int_equal(parse_notify(wrong[i], &target, &err), -EINVAL);
        assert_true(err.message[0] != '\0' && strchr(err.message, '\n') == NULL);
    }
}

TEST(too_much_is_refused)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    struct notify_target target;
    char text[NOTIFY_TARGET_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(parse_notify(text, &target, NULL), -E2BIG);
    text[NOTIFY_TARGET_MAX] = '\0';
    assert_int_equal(parse_notify(text, &target, NULL), 0);
    memcpy(text, "mail:", 5);
    assert_int_equal(parse_notify(text, &target, NULL), -E2BIG);
    job_ask_init(&ask);
    for (unsigned i = 0; i < NOTIFY_MAX; i++)
        strings_add(&ask.notify, "mail");
    assert_int_equal(job_ask_validate(&ask, NULL), 0);
    strings_add(&ask.notify, "mail");
    assert_int_equal(job_ask_validate(&ask, NULL), -E2BIG);
}

TEST(events_are_a_list_of_known_words)
{
    uint32_t events = 0;
    assert_int_equal(parse_notify_on("start,end,fail,requeue,preempt,park,unpark", &events, NULL), 0);
    assert_int_equal(events, 127);
    static const char *const wrong[] = { "", "end,", ",end", "END", "ends", "end fail", "en" };
    struct error err = { 0 };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(parse_notify_on(wrong[i], &events, &err), -EINVAL);
    for (size_t i = 0; notify_event_word(i) != NULL; i++)
        assert_string_equal(notify_event_name((enum notify_event)(1U << i)), notify_event_word(i));
}

TEST(a_job_tells_of_its_end_when_it_says_no_more)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    job_ask_init(&ask);
    assert_int_equal(notify_events(&ask), 0);
    ask.notify_on = xstrdup("fail");
    struct error err = { 0 };
    assert_int_equal(job_ask_validate(&ask, &err), -EINVAL);
    assert_non_null(strstr(err.message, "notify_on requires notify"));
    strings_add(&ask.notify, "mail");
    assert_int_equal(job_ask_validate(&ask, NULL), 0);
    assert_int_equal(notify_events(&ask), NOTIFY_FAIL);
    free(take_ptr(ask.notify_on));
    assert_int_equal(notify_events(&ask), NOTIFY_END);
}
