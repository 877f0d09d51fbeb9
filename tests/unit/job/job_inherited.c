/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "job/inherited.h"
#include "unit_test.h"

/* A name that the row describes. */
static char *name_of(const struct inherited_variable *row)
{
    size_t length = strlen(row->name);
    bool is_prefix = row->name[length - 1] == '*';
    return is_prefix ? xasprintf("%.*sX", (int)length - 1, row->name) : xstrdup(row->name);
}

TEST(each_variable_of_the_table_is_left_out_in_a_job)
{
    for (const struct inherited_variable *row = inherited_variables; row->name != NULL; row++) {
        _cleanup_strings_ struct strings env = { 0 };
        _cleanup_free_ char *name = name_of(row);
        strings_set_env(&env, "MGPU_JOB_ID", "7");
        strings_set_env(&env, "HOME", "/home/ada");
        if (row->with != NULL)
            strings_set_env(&env, row->with, "1");
        strings_set_env(&env, name, "1");
        inherited_drop(&env);
        if (strings_get_env(&env, name) != NULL || strings_get_env(&env, "MGPU_JOB_ID") != NULL)
            fail_msg("%s stays", name);
        assert_string_equal(strings_get_env(&env, "HOME"), "/home/ada");
    }
}

TEST(outside_a_job_each_variable_stays)
{
    for (const struct inherited_variable *row = inherited_variables; row->name != NULL; row++) {
        _cleanup_strings_ struct strings env = { 0 };
        _cleanup_free_ char *name = name_of(row);
        if (strcmp(name, "MGPU_JOB_ID") == 0)
            continue;
        strings_set_env(&env, name, "1");
        inherited_drop(&env);
        if (strings_get_env(&env, name) == NULL)
            fail_msg("%s is left out", name);
    }
}

TEST(names_that_others_use_stay_without_their_sign)
{
    static const char *const names[] = { "MASTER_ADDR", "RANK", "WORLD_SIZE", "NNODES", "PET_NNODES",
        "ENVIRONMENT", "NCCL_SOCKET_IFNAME", "OMPI_MCA_btl", "MGPU_PAGER", "MGPU_SOCKET" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_strings_ struct strings env = { 0 };
        strings_set_env(&env, "MGPU_JOB_ID", "7");
        strings_set_env(&env, names[i], "mine");
        inherited_drop(&env);
        if (strings_get_env(&env, names[i]) == NULL)
            fail_msg("%s is left out", names[i]);
    }
}

TEST(a_command_of_salloc_is_in_a_job_and_one_of_another_cluster_is_not)
{
    for (int is_ours = 0; is_ours < 2; is_ours++) {
        _cleanup_strings_ struct strings env = { 0 };
        strings_set_env(&env, "SLURM_JOB_ID", "7");
        strings_set_env(&env, "SLURM_CLUSTER_NAME", is_ours ? "mgpu" : "other");
        inherited_drop(&env);
        assert_int_equal(env.count, is_ours ? 0 : 2);
    }
}
