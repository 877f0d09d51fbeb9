/* SPDX-License-Identifier: MIT */
/* The option lines of scripts: ours, and those for Slurm. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/submit/sbatch.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "unit_test.h"

struct fixture {
    struct call call;
    struct submit_options options;
};

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    fixture->call =
        (struct call){ .command = &command_submit, .options = &fixture->options, .is_quiet = true };
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    submit_options_clear(&fixture->options);
    strings_clear(&fixture->call.defaults);
    free(fixture);
    return 0;
}

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, set_up, tear_down)

static void reset(struct fixture *fixture)
{
    submit_options_clear(&fixture->options);
    fixture->options = (struct submit_options){ 0 };
}

/* The members of the request that the line makes, as compact JSON without braces. */
static char *asked(struct fixture *fixture, const char *line)
{
    struct error err = { 0 };
    _cleanup_free_ char *script = xasprintf("#!/bin/sh\n#SBATCH %s\ntrue\n", line);
    reset(fixture);
    if (sbatch_apply(&fixture->call, script, "job.sh", &err) < 0)
        fail_msg("%s: %s", line, err.message);
    return fixture->options.ask == NULL ? xstrdup("{}")
                                        : json_dumps(fixture->options.ask, JSON_COMPACT | JSON_SORT_KEYS);
}

CASE(options_of_slurm_become_ours, fixture)
{
    static const struct {
        const char *line, *asked;
    } rows[] = {
        { "--job-name=a", "{\"name\":\"a\"}" },
        { "-J a", "{\"name\":\"a\"}" },
        { "-Ja", "{\"name\":\"a\"}" },
        { "--job-name 'a b' # why", "{\"name\":\"a b\"}" },
        { "--gres=gpu:2", "{\"gpus\":2,\"gpus_per_node\":2}" },
        { "--gres=gpu", "{\"gpus\":1,\"gpus_per_node\":1}" },
        { "--gres=gpu:h200:2", "{\"gpus\":\"2:h200\",\"gpus_per_node\":2}" },
        { "--gres=gpu:h200", "{\"gpus\":\"1:h200\",\"gpus_per_node\":1}" },
        { "--gres=gpu:0", "{\"gpus\":0}" },
        { "--gres=none", "{\"gpus\":0}" },
        { "--gres=gpu:2,craynetwork:0", "{\"gpus\":2,\"gpus_per_node\":2}" },
        { "--gres=lscratch:0", "{\"gpus\":0}" },
        { "--gres=gpu:h200:1,gpu:H200:2", "{\"gpus\":\"3:h200\",\"gpus_per_node\":3}" },
        { "--gres=gpu:nvidia_h200:1", "{\"gpus\":\"1:nvidia_h200\",\"gpus_per_node\":1}" },
        { "-G 3", "{\"gpus\":3}" },
        { "--gpus=a100:3", "{\"gpus\":\"3:a100\"}" },
        { "--gpus-per-node=4 -N 2", "{\"gpus\":8,\"gpus_per_node\":4,\"nodes\":2}" },
        { "-N 2 --gres=gpu:h200:4", "{\"gpus\":\"8:h200\",\"gpus_per_node\":4,\"nodes\":2}" },
        { "-t 30", "{\"time_limit\":1800}" },
        { "-t 30:10", "{\"time_limit\":1810}" },
        { "-t 1:30:10", "{\"time_limit\":5410}" },
        { "-t 1-2", "{\"time_limit\":93600}" },
        { "-t 1-2:30", "{\"time_limit\":95400}" },
        { "-t 1-2:30:10", "{\"time_limit\":95410}" },
        { "--time=UNLIMITED", "{\"no_time_limit\":true}" },
        { "-c 4 --mem=8G", "{\"cpus\":4,\"memory\":8589934592}" },
        { "--mem=100", "{\"memory\":104857600}" },
        { "--mem=0", "{}" },
        { "-a 0-9%2", "{\"array\":\"0-9%2\"}" },
        { "-n 1 --ntasks-per-node=1", "{}" },
        { "-n 4 -c 2 --gpus-per-task=1", "{\"cpus\":8,\"gpus\":4}" },
        { "-c 4 --mem-per-cpu=1G", "{\"cpus\":4,\"memory\":4294967296}" },
        { "-w gpu[1-2]", "{\"nodelist\":\"gpu1,gpu2\",\"nodes\":2}" },
        { "--nice=5 --signal=B:USR1@60", "{\"priority\":-5,\"warn_signal\":\"USR1@60\"}" },
        { "--partition=gpu --exclusive --licenses x:0 -A lab -t 1",
            "{\"exclusive\":true,\"time_limit\":60}" },
        { "--mail-type=ALL", "{\"notify\":[\"mail\"],\"notify_on\":\"start,end,fail,requeue\"}" },
        { "--mail-user=ana@lab --mail-type=end,TIME_LIMIT_80",
            "{\"notify\":[\"mail:ana@lab\"],\"notify_on\":\"end\"}" },
        { "--mail-user=ana@lab", "{}" },
        { "--mail-type=NONE -t 1", "{\"time_limit\":60}" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *found = asked(fixture, rows[i].line);
        if (strcmp(found, rows[i].asked) != 0)
            fail_msg("%s: %s, not %s", rows[i].line, found, rows[i].asked);
    }
}

CASE(what_is_no_member_of_the_request, fixture)
{
    free(asked(fixture, "-o %x-%j_%4a.%N%% -D /tmp -H --export=NONE"));
    assert_string_equal(fixture->options.output, "%n-%j_%4a.%h%%");
    assert_string_equal(fixture->options.directory, "/tmp");
    assert_string_equal(fixture->options.export, "minimal");
    assert_true(fixture->options.is_held);
    free(asked(fixture, "--dependency=afterok:1:2,afterany:3_4,afternotok:5"));
    assert_int_equal(fixture->options.after.count, 1);
    assert_string_equal(fixture->options.after.items[0], "1:ok,2:ok,3.4:any,5:fail");
    free(asked(fixture, "--export=ALL,X"));
    assert_string_equal(fixture->options.export, "all");
    free(asked(fixture, "--dependency=singleton"));
    assert_string_equal(fixture->options.after.items[0], "singleton");
    free(asked(fixture, "--dependency=afterok:1?after:2 --open-mode=truncate"));
    assert_string_equal(fixture->options.after.items[0], "1:ok?2:start");
    assert_true(fixture->options.is_truncated);
    free(asked(fixture, "-t 1\necho\n#SBATCH -H"));
    assert_false(fixture->options.is_held);
}

CASE(what_cannot_be_said_here_is_refused, fixture)
{
    static const char *const lines[] = { "word", "-J", "--gres=fpga:1", "--gres=gpu:2,shard:1",
        "--gres=gpu:a100:1,gpu:v100:1", "--gres=:0", "--gres=lscratch:", "--gpus=x:y", "--time=1:2:3:4",
        "--time=x", "--nodes=4-1", "--dependency=afterok", "--dependency=afterok:x",
        "--dependency=afterok:1?after:2,after:3", "--begin=lunchtime", "--mem=8Q", "--array=x", "-J 'x",
        "--nosuch", "-C a100", "--test-only" };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct error err = { 0 };
        _cleanup_free_ char *script = xasprintf("#SBATCH %s\n", lines[i]);
        reset(fixture);
        int r = sbatch_apply(&fixture->call, script, "job.sh", &err);
        if (r >= 0 || err.message[0] == '\0')
            fail_msg("%s is not refused", lines[i]);
    }
}

CASE(a_begin_is_read_as_slurm_writes_it, fixture)
{
    static const char *const lines[] = { "-b now+60", "-b now+2hours", "-b now+1hour", "-b 16:00",
        "--begin=2030-01-20T12:34:00" };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        _cleanup_free_ char *found = asked(fixture, lines[i]);
        assert_non_null(strstr(found, "begin"));
    }
}

/* Is a file with that text and mode a script? */
static bool is_script(const char *text, size_t length, mode_t mode)
{
    char path[] = "/tmp/mgpu-script-XXXXXX";
    _cleanup_script_ struct script script = { 0 };
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), (ssize_t)length);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
    bool is = script_open(&script, path);
    (void)unlink(path);
    return is;
}

#define IS_SCRIPT(text, mode) is_script(text, sizeof(text) - 1, mode)

TEST(what_is_a_script)
{
    _cleanup_script_ struct script script = { 0 };
    assert_true(IS_SCRIPT("echo\n", 0755));
    assert_true(IS_SCRIPT("#!/bin/sh\n", 0644));
    assert_true(IS_SCRIPT("\n# x\n#MGPU -g 1\necho\n", 0644));
    assert_true(IS_SCRIPT("#SBATCH -t 1\r\n", 0644));
    assert_false(IS_SCRIPT("echo\n", 0644));
    assert_false(IS_SCRIPT("echo\n#MGPU -g 1\n", 0644));
    assert_false(IS_SCRIPT("#MGPUX -g 1\n", 0644));
    assert_false(IS_SCRIPT("\177ELF\0\0", 0755));
    assert_false(script_open(&script, "/tmp"));
    assert_false(script_open(&script, "/nowhere/script"));
}
