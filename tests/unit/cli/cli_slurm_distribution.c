/* SPDX-License-Identifier: MIT */
/* --distribution: what it asks for, as it is shown to the job, and the nodes that are listed for tasks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/submit/slurm_distribution.h"
#include "unit_test.h"

TEST(a_value_is_shown_in_full)
{
    static const struct {
        const char *value, *shown;
        enum slurm_layout layout;
    } rows[] = { { "block", "block", SLURM_LAYOUT_BLOCK }, { "*", "block", SLURM_LAYOUT_BLOCK },
        { "*:*", "block:cyclic", SLURM_LAYOUT_BLOCK }, { "*:*:*", "block:cyclic:cyclic", SLURM_LAYOUT_BLOCK },
        { "*:block:*", "block:block:block", SLURM_LAYOUT_BLOCK },
        { "Cyclic:*", "cyclic:cyclic", SLURM_LAYOUT_CYCLIC },
        { "cyclic,Pack", "cyclic,pack", SLURM_LAYOUT_CYCLIC }, { "pack", "pack", SLURM_LAYOUT_BLOCK },
        { "*,nopack", "block,nopack", SLURM_LAYOUT_BLOCK }, { "plane=4", "plane", SLURM_LAYOUT_PLANE },
        { "arbitrary", "arbitrary", SLURM_LAYOUT_ARBITRARY } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *shown = slurm_distribution_text(rows[i].value);
        assert_string_equal(shown, rows[i].shown);
        assert_int_equal(slurm_distribution_layout(rows[i].value), rows[i].layout);
    }
    assert_int_equal(slurm_distribution_layout(NULL), SLURM_LAYOUT_BLOCK);
}

TEST(the_size_of_a_plane_is_its_own_or_that_of_the_variable)
{
    (void)unsetenv("SLURM_DIST_PLANESIZE");
    assert_int_equal(slurm_distribution_plane("plane=4"), 4);
    assert_int_equal(slurm_distribution_plane("plane"), 0);
    (void)setenv("SLURM_DIST_PLANESIZE", "3", 1);
    assert_int_equal(slurm_distribution_plane("plane"), 3);
    assert_int_equal(slurm_distribution_plane("plane=4"), 4);
    (void)unsetenv("SLURM_DIST_PLANESIZE");
}

static int settle(struct slurm_job *job, const char *nodes, int64_t tasks)
{
    (void)unsetenv("SLURM_HOSTFILE");
    (void)unsetenv("SLURM_ARBITRARY_NODELIST");
    slurm_job_init(job);
    job->program = "srun";
    job->distribution = "arbitrary";
    job->nodelist = nodes;
    job->tasks = tasks;
    return slurm_distribution_settle(job, NULL);
}

TEST(a_list_has_a_node_for_each_task)
{
    struct slurm_job job;
    assert_int_equal(settle(&job, "n2,n1,n2", SLURM_UNSET), 0);
    assert_int_equal(job.tasks, 3);
    assert_string_equal(job.nodelist, "n2,n1,n2");
    slurm_job_clear(&job);
    assert_int_equal(settle(&job, "n2,n1,n2", 2), 0);
    assert_int_equal(job.task_nodes.count, 2);
    assert_string_equal(job.nodelist, "n2,n1");
    slurm_job_clear(&job);
    assert_int_equal(settle(&job, "n[1-2]", 3), -EINVAL);
    slurm_job_clear(&job);
    assert_int_equal(settle(&job, NULL, 3), -EINVAL);
    slurm_job_clear(&job);
    assert_int_equal(settle(&job, "/nosuch/file", 3), -ENOENT);
    slurm_job_clear(&job);
}
