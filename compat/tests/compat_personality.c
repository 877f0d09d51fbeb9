/* SPDX-License-Identifier: MIT */
/* mgpu knows the commands of mgpu-compat by name; both have the same. */

#include "cli/verbs/compat_names.h"
#include "compat/personalities/personality.h"
#include "unit_test.h"

TEST(every_name_is_a_personality)
{
    size_t count = 0;
    for (; compat_names[count].name != NULL; count++)
        assert_non_null(personality_find(compat_names[count].name));
    assert_true(count > 0);
}

TEST(every_personality_has_a_name)
{
    for (size_t i = 0; personalities[i] != NULL; i++) {
        const struct compat_name *row = compat_name_find(compat_names, personalities[i]->name);
        assert_non_null(row);
        assert_string_equal(row->name, personalities[i]->name);
    }
}

TEST(a_name_is_found_in_a_path)
{
    assert_non_null(compat_name_find(compat_names, "/usr/local/bin/tgpu"));
    assert_null(compat_name_find(compat_names, "/usr/local/bin/tgpu2"));
    assert_null(compat_name_find(compat_names, "mgpu"));
}
