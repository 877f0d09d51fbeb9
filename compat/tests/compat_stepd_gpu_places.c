/* SPDX-License-Identifier: MIT */
#include "compat/stepd/gpu_places.h"

#include "base/memory.h"
#include "unit_test.h"

TEST(the_gpus_of_a_task_are_those_at_its_places)
{
    static const struct {
        const char *list, *places, *chosen;
    } rows[] = { { "0,1,2", "0,2", "0,2" }, { "4,7", "1", "7" }, { "GPU-a,MIG-b", "1,0", "MIG-b,GPU-a" },
        { "0", "1", NULL }, { "0,1", "1,5", "1" }, { "", "0", NULL }, { "0,1", "", NULL },
        { "0,1", "x", NULL }, { "0,1", "-1", NULL }, { "0,1", "99999999999999999999", NULL } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *chosen = stepd_gpus_at(rows[i].list, rows[i].places);
        if (rows[i].chosen == NULL)
            assert_null(chosen);
        else
            assert_string_equal(chosen, rows[i].chosen);
    }
}
