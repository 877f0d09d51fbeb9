/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/api/patience.h"

/* A session that began, and last heard something, so long ago. */
static struct patience since(int64_t begun_ms, int64_t heard_ms, struct patience limits)
{
    limits.begun_ms = clock_boot_ms() - begun_ms;
    limits.heard_ms = clock_boot_ms() - heard_ms;
    return limits;
}

static void assert_exhausted(struct patience patience, const char *words)
{
    struct error err = { 0 };
    assert_int_equal(patience_left_ms(&patience), 0);
    assert_int_equal(patience_check(&patience, &err), -ETIME);
    assert_string_equal(err.message, words);
}

static void no_patience_at_all_is_patience_without_end(void **state)
{
    struct patience none = since(INT32_MAX, INT32_MAX, (struct patience){ 0 });
    assert_int_equal(patience_left_ms(NULL), -1);
    assert_int_equal(patience_check(NULL, NULL), 0);
    patience_hear(NULL);
    patience_begin(NULL);
    assert_int_equal(patience_left_ms(&none), -1);
    assert_int_equal(patience_check(&none, NULL), 0);
}

static void each_limit_ends_it_and_is_named(void **state)
{
    assert_exhausted(since(5000, 0, (struct patience){ .session_ms = 5000 }), "the session has lasted 5 s");
    assert_exhausted(since(9000, 3000, (struct patience){ .silence_ms = 3000 }), "nothing came for 3 s");
    assert_exhausted(since(30000, 20000, (struct patience){ .silent_turns = 2 }),
        "nothing came in 2 waits of 10 s in a row");
}

static void what_is_heard_counts_against_silence_alone(void **state)
{
    struct patience patience =
        since(5000, 5000, (struct patience){ .session_ms = 60000, .silence_ms = 4000, .silent_turns = 1 });
    assert_int_equal(patience_check(&patience, NULL), -ETIME);
    patience_hear(&patience);
    assert_int_equal(patience_check(&patience, NULL), 0);
    assert_true(patience_left_ms(&patience) > 3000 && patience_left_ms(&patience) <= 4000);
    patience.session_ms = 5000;
    assert_int_equal(patience_check(&patience, NULL), -ETIME);
    patience_begin(&patience);
    assert_int_equal(patience_check(&patience, NULL), 0);
}

static void a_very_long_limit_is_waited_for_in_pieces(void **state)
{
    struct patience patience =
        since(0, 0, (struct patience){ .session_ms = INT64_C(366) * 24 * 3600 * 1000 });
    assert_int_equal(patience_left_ms(&patience), INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_patience_at_all_is_patience_without_end),
        cmocka_unit_test(each_limit_ends_it_and_is_named),
        cmocka_unit_test(what_is_heard_counts_against_silence_alone),
        cmocka_unit_test(a_very_long_limit_is_waited_for_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
