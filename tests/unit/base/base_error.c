/* SPDX-License-Identifier: MIT */
/* Errors as sentences: the code is returned, the sentence is limited, and the hint belongs to its sentence.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "unit_test.h"

TEST(setting_an_error_returns_its_code)
{
    struct error err = { 0 };
    assert_int_equal(error_set(&err, -EINVAL, "job asks for %d GPUs", 9), -EINVAL);
    assert_int_equal(err.code, -EINVAL);
    assert_string_equal(err.message, "job asks for 9 GPUs");
}

TEST(a_caller_without_interest_gives_null)
{
    assert_int_equal(error_set(NULL, -EPERM, "no"), -EPERM);
    assert_int_equal(error_set_errno(NULL, -EIO, "no"), -EIO);
    assert_true(error_wrap(NULL, "context") < 0);
    assert_true(error_hint(NULL, "hint") < 0);
}

TEST(an_errno_is_told_in_words)
{
    struct error err = { 0 };
    assert_int_equal(error_set_errno(&err, -ENOENT, "cannot open %s", "/x"), -ENOENT);
    assert_string_equal(err.message, "cannot open /x: No such file or directory");
}

TEST(wrapping_puts_the_context_before_the_sentence)
{
    struct error err = { 0 };
    (void)error_set(&err, -EIO, "disk broke");
    assert_int_equal(error_wrap(&err, "job %d", 7), -EIO);
    assert_string_equal(err.message, "job 7: disk broke");
}

TEST(a_new_sentence_drops_the_old_hint)
{
    struct error err = { 0 };
    (void)error_set(&err, -EINVAL, "first");
    assert_int_equal(error_hint(&err, "try %s", "this"), -EINVAL);
    assert_string_equal(err.hint, "try this");
    (void)error_set(&err, -EIO, "second");
    assert_string_equal(err.hint, "");
}

TEST(a_sentence_that_is_too_long_is_cut)
{
    struct error err = { 0 };
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)error_set_errno(&err, -EIO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    (void)error_wrap(&err, "%s", text);
    (void)error_hint(&err, "%s", text);
    assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
    assert_int_equal(err.code, -EIO);
}
