/* SPDX-License-Identifier: MIT */
/* Reading traces, good and broken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/nodes.h"
#include "lab/sim/workload.h"
#include "unit_test.h"

static void write_list(char *path, const char *text)
{
    _cleanup_close_ int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int read_text(struct workload *workload, const char *text, bool skip_bad, struct error *err)
{
    char path[] = "/tmp/mgpu-trace-XXXXXX";
    write_list(path, text);
    struct trace_options options = { .skip_bad = skip_bad };
    *workload = (struct workload){ 0 };
    *err = (struct error){ 0 };
    int result = workload_read(workload, path, &options, err);
    (void)unlink(path);
    return result;
}

TEST(a_csv_is_known_by_its_columns)
{
    _cleanup_(workload_clear) struct workload workload;
    struct error err;
    assert_int_equal(
        read_text(&workload, "vc,gpus,note,submit,user,duration\nv1,2,\"a,b\",30,ada,1.5\nv2,1,,10,bo,7\n",
            false, &err),
        0);
    assert_int_equal(workload.n_jobs, 2);
    assert_int_equal(workload.jobs[0].submit_ms, 0); // the first submission is time 0
    assert_int_equal(workload.jobs[0].duration_ms, 7000);
    assert_int_equal(workload.jobs[1].submit_ms, 20000);
    assert_int_equal(workload.jobs[1].duration_ms, 1500);
    assert_int_equal(workload.jobs[1].gpus, 2);
    assert_string_equal(workload.users.items[workload.jobs[1].user], "ada");
}

TEST(a_broken_line_is_named_and_stops_the_reading)
{
    _cleanup_(workload_clear) struct workload workload;
    struct error err;
    assert_true(read_text(&workload, "submit,gpus,duration\n1,1,5\n2,one,5\n", false, &err) < 0);
    assert_non_null(strstr(err.message, ":3: number of GPUs"));
    assert_non_null(strstr(err.hint, "--skip-bad"));
}

TEST(broken_lines_are_counted_when_they_are_skipped)
{
    _cleanup_(workload_clear) struct workload workload;
    struct error err;
    assert_int_equal(
        read_text(&workload, "submit,gpus,duration\n1,1,5\n2,one,5\n3,1\n4,1,-5\n5,2,5\n", true, &err), 0);
    assert_int_equal(workload.n_jobs, 2);
    assert_int_equal(workload.n_bad, 3);
    assert_non_null(strstr(workload.bad.items[1], ":4: has 2 fields"));
}

TEST(a_missing_column_is_no_line_to_skip)
{
    _cleanup_(workload_clear) struct workload workload;
    struct error err;
    assert_true(read_text(&workload, "submit,gpus\n1,1\n", true, &err) < 0);
    assert_non_null(strstr(err.message, "durations"));
}

TEST(swf_takes_what_is_known)
{
    struct workload workload;
    struct error err;
    assert_int_equal(read_text(&workload,
                         "; MaxProcs: 128\n"
                         "1 5 0 60 -1 -1 -1 4 90 -1 1 7 3 2 1 -1 -1 -1\n"
                         "2 9 0 60 8 -1 -1 8 -1 -1 1 8 3 2 1 -1 -1 -1\n",
                         false, &err),
        0);
    assert_int_equal(workload.n_jobs, 2);
    assert_int_equal(workload.jobs[0].gpus, 4); // asked for, since what it got is not known
    assert_int_equal(workload.jobs[0].wall_ms, 90000);
    assert_int_equal(workload.jobs[1].wall_ms, 0);
    assert_string_equal(workload.users.items[workload.jobs[1].user], "u8");
    workload_clear(&workload);
    assert_true(read_text(&workload, "; c\n1 5 0 -1 4 -1 -1 4 90 -1 1 7 3 2 1 -1 -1 -1\n", false, &err) < 0);
    assert_non_null(strstr(err.message, "run time is unknown"));
    workload_clear(&workload);
}

TEST(clusters_are_read_from_short_texts)
{
    struct sim_nodes nodes = { 0 };
    struct error err;
    assert_int_equal(nodes_read(&nodes, "3x8", &err), 0);
    assert_int_equal(nodes.gpus, 24);
    nodes_clear(&nodes);
    assert_int_equal(nodes_read(&nodes, "pool:128", &err), 0);
    assert_int_equal(nodes.count, 1);
    nodes_clear(&nodes);
    assert_true(nodes_read(&nodes, "3x", &err) < 0);
    assert_true(nodes_read(&nodes, "3x900", &err) < 0);
    nodes_clear(&nodes);
}

TEST(a_list_names_each_node_once)
{
    char path[] = "/tmp/mgpu-nodes-XXXXXX";
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    struct error err;
    write_list(path, "name,gpus\na,4\nb,8\na,4\n");
    assert_true(nodes_read(&nodes, path, &err) < 0);
    assert_non_null(strstr(err.message, ":4: node a is listed twice"));
    (void)unlink(path);
}
