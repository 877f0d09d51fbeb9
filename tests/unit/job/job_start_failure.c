/* SPDX-License-Identifier: MIT */
/* The table of causes of failed starts, and the page about it. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/start_failure.h"
#include "unit_test.h"

TEST(every_cause_has_a_name_of_its_own_and_a_meaning)
{
    for (uint32_t i = 0; i < START_CAUSES; i++) {
        assert_non_null(start_row(i)->name);
        assert_true(strlen(start_row(i)->meaning) > 20);
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(start_row(i)->name, start_row(k)->name);
    }
    assert_ptr_equal(start_row(START_CAUSES), start_row(START_UNNAMED)); // of a newer agent
    assert_ptr_equal(start_row(UINT32_MAX), start_row(START_UNNAMED));
}

/* A node is left alone only for what is not the fault of the job, and what ends a job concerns it alone. */
TEST(only_what_waits_concerns_others)
{
    for (uint32_t i = 0; i < START_CAUSES; i++) {
        const struct start_row *row = start_row(i);
        if (row->class != START_WAITS)
            assert_int_equal(row->scope, START_OF_JOB);
        if (row->is_met_by_all)
            assert_int_not_equal(row->scope, START_OF_JOB);
    }
}

TEST(permissions_and_kinds_of_files_do_not_pass_by_themselves)
{
    static const int lasting[] = { 0, EACCES, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, EEXIST, EINVAL };
    static const int passing[] = { ENOENT, ESTALE, EIO, ETIMEDOUT, EHOSTDOWN, ETXTBSY, EDQUOT };
    for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
        assert_false(start_error_may_pass(lasting[i]));
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        assert_true(start_error_may_pass(passing[i]));
}

TEST(the_page_shows_the_table)
{
    _cleanup_buffer_ struct buffer page = { 0 };
    assert_int_equal(file_read(AT_FDCWD, MANUAL "/start-failures.md", 1U << 20, &page), 0);
    for (uint32_t i = 1; i < START_CAUSES; i++) {
        const struct start_row *row = start_row(i);
        _cleanup_free_ char *line =
            xasprintf("\n| `%s` | %s | %s | %s |\n", row->name, start_class_name(row->class),
                row->class == START_WAITS ? start_scope_name(row->scope) : "", row->meaning);
        if (strstr(buffer_text(&page), line) == NULL)
            fail_msg("docs/start-failures.md does not have this row:%s", line);
    }
}
