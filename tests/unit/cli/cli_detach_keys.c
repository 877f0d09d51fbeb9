/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "cli/term/detach_keys.h"
#include "unit_test.h"

/* Feeds all of `typed`; the keys passed on must be `passed`, and the last key must mean `last`. */
static void check(const char *keys_text, const char *typed, const char *passed, enum key_action last)
{
    struct detach_keys keys;
    struct error err = { 0 };
    uint8_t out[DETACH_KEYS_MAX + 1];
    char all[128] = "";
    size_t used = 0, length = 0;
    enum key_action action = KEY_PASS;
    assert_int_equal(detach_keys_parse(&keys, keys_text, &err), 0);
    for (const char *p = typed; *p != '\0'; p++) {
        action = detach_keys_feed(&keys, (uint8_t)*p, out, &length);
        if (action != KEY_PASS)
            continue;
        memcpy(all + used, out, length);
        used += length;
    }
    assert_string_equal(all, passed);
    assert_int_equal(action, last);
}

TEST(the_prefix_and_a_letter_speak_to_mgpu)
{
    check(NULL, "ab\035d", "ab", KEY_DETACH);
    check(NULL, "\035k", "", KEY_CANCEL);
    check(NULL, "\035l", "", KEY_LOG);
    check(NULL, "\035s", "", KEY_STATUS);
    check(NULL, "\035?", "", KEY_HELP);
    check(NULL, "x\035", "x", KEY_WAIT);
}

TEST(the_prefix_twice_is_the_prefix)
{
    check(NULL, "\035\035d", "\035d", KEY_PASS);
}

TEST(an_unknown_key_passes_with_the_prefix)
{
    check(NULL, "\035xy", "\035xy", KEY_PASS);
}

TEST(a_sequence_of_ones_own_detaches_when_it_is_whole)
{
    check("ctrl-p,ctrl-q", "\020\021", "", KEY_DETACH);
    check("ctrl-p,ctrl-q", "\020x", "\020x", KEY_PASS);
    check("ctrl-p,ctrl-q", "\020\020\021", "\020", KEY_DETACH);
    check("~,.", "a~.", "a", KEY_DETACH);
    check("ctrl-p,ctrl-q", "\035d", "\035d", KEY_PASS);
}

TEST(none_switches_them_off)
{
    check("none", "\035d\020\021", "\035d\020\021", KEY_PASS);
}

TEST(what_waits_too_long_is_for_the_job)
{
    struct detach_keys keys;
    uint8_t out[DETACH_KEYS_MAX + 1];
    size_t length = 0;
    assert_int_equal(detach_keys_parse(&keys, NULL, NULL), 0);
    assert_int_equal(detach_keys_feed(&keys, 0x1d, out, &length), KEY_WAIT);
    assert_true(detach_keys_are_waiting(&keys));
    detach_keys_expire(&keys, out, &length);
    assert_int_equal(length, 1);
    assert_int_equal(out[0], 0x1d);
    assert_false(detach_keys_are_waiting(&keys));
    assert_int_equal(detach_keys_feed(&keys, 'd', out, &length), KEY_PASS);
}

TEST(what_is_no_key_is_refused)
{
    static const char *const texts[] = { "", "ctrl-", "ctrl-1", "ab", "ctrl-p,,x", "ctrl-p,", "\xc3\xa9" };
    struct detach_keys keys;
    struct error err;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        err = (struct error){ 0 };
        assert_int_equal(detach_keys_parse(&keys, texts[i], &err), -EINVAL);
        assert_true(err.hint[0] != '\0');
    }
    assert_int_equal(detach_keys_parse(&keys, "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", &err), -E2BIG);
}
