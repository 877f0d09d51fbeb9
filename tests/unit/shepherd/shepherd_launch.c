/* SPDX-License-Identifier: MIT */
/* The environment of a command and its result, through the real program. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/files.h"
#include "base/memory.h"
#include "fixture.h"
#include "job/start_failure.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

CASE(a_command_that_succeeds_ends_with_zero, f)
{
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_int_equal(f->exit.is_executed, 1);
    assert_int_equal(f->exit.token, 99);
    assert_true(f->exit.started_wall_ms > 0 && f->exit.ended_wall_ms >= f->exit.started_wall_ms);
    assert_true(f->exit.ended_boot_ms > 0);
    assert_string_equal(f->exit.log_path, f->log);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
}

CASE(the_exit_code_is_kept, f)
{
    fixture_script(f, "echo out; echo err >&2; exit 42");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 42);
    assert_string_equal(f->output, "out\nerr\n");
    assert_int_equal(f->exit.log_bytes, 8);
    assert_null(f->exit.text);
}

CASE(a_signal_is_told_apart_from_an_exit, f)
{
    fixture_script(f, "kill -SEGV $$");
    fixture_run(f);
    fixture_assert_end(f, END_SIGNAL, 128 + SIGSEGV);
    assert_int_equal(f->exit.signal, SIGSEGV);
}

CASE(a_missing_command_ends_with_127, f)
{
    fixture_command(f, "nosuchcmd", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 127);
    assert_int_equal(f->exit.is_executed, 0);
    assert_string_equal(f->exit.text, "cannot execute nosuchcmd: No such file or directory");
    assert_int_equal(f->exit.started_wall_ms, 0);
}

CASE(a_file_that_is_no_program_ends_with_126, f)
{
    fixture_command(f, "/etc/passwd", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 126);
    assert_string_equal(f->exit.text, "cannot execute /etc/passwd: Permission denied");
}

static void write_program(const struct fixture *f, const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", f->home, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

CASE(a_missing_interpreter_is_reported, f)
{
    write_program(f, "tool", "#!/nosuchpython\n");
    fixture_command(f, "./tool", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 126);
    assert_string_equal(
        f->exit.text, "cannot execute ./tool: the interpreter named in its first line does not exist");
}

CASE(a_script_without_interpreter_is_run_by_the_shell, f)
{
    write_program(f, "plain", "echo \"plain $1\"; exit 3\n");
    strings_set_env(&f->spec.env, "PATH", f->home);
    fixture_command(f, "plain", "words here", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 3);
    assert_string_equal(f->output, "plain words here\n");
}

CASE(the_assignment_is_set_over_the_environment, f)
{
    strings_set_env(&f->spec.env, "CUDA_VISIBLE_DEVICES", "7");
    fixture_script(f, "echo $CUDA_VISIBLE_DEVICES $FLAVOUR; env | wc -l");
    fixture_run(f);
    assert_string_equal(f->output, "2,0 plain\n4\n"); // with PWD, which the shell adds
}

CASE(a_setup_runs_in_the_same_shell_and_cannot_change_the_assignment, f)
{
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup(
        "FLAVOUR='set up'; export FLAVOUR CUDA_VISIBLE_DEVICES=7; set -- a b; echo \"setup $# it's\"");
    fixture_command(
        f, "sh", "-c", "echo \"$FLAVOUR $CUDA_VISIBLE_DEVICES\" \"$@\"; exit 5", "x", "it's", "a b", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 5);
    assert_string_equal(f->output, "setup 2 it's\nset up 2,0 it's a b\n");
}

/* As in a clone below root's home: the user of the job cannot go there. */
CASE(a_setup_needs_no_way_to_this_program, f)
{
    const char *given = getenv("MGPU_SHEPHERD");
    _cleanup_free_ char *usual = xstrdup(given), *folder = xasprintf("%s/closed", f->run_dir);
    _cleanup_free_ char *copy = xasprintf("%s/mgpu-shepherd", folder);
    _cleanup_free_ char *command = xasprintf("mkdir -m 0700 '%s' && cp '%s' '%s'", folder, given, copy);
    if (geteuid() != 0)
        skip(); // all files of the job's user are accessible to him
    assert_int_equal(system(command), 0);
    assert_int_equal(setenv("MGPU_SHEPHERD", copy, 1), 0);
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup("echo set up");
    fixture_command(f, "/bin/sh", "-c", "echo done; ls /proc/self/fd | tr '\\n' ' '", NULL);
    fixture_run(f);
    assert_int_equal(setenv("MGPU_SHEPHERD", usual, 1), 0);
    fixture_assert_end(f, END_EXIT, 0);
    assert_string_equal(f->output, "set up\ndone\n0 1 2 3 "); // 3: the directory that ls reads
}

CASE(a_sourced_setup_sees_no_arguments, f)
{
    write_program(f, "activate",
        "echo \"args $#\"\nexport PATH="
        "$PWD:$PATH\n");
    write_program(f, "tool", "#!/bin/sh\necho found\n");
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup(". ./activate");
    fixture_command(f, "tool", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_string_equal(f->output, "args 0\nfound\n");
}

CASE(a_failing_setup_ends_the_job_with_its_status, f)
{
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup("echo before; (exit 9)");
    fixture_command(f, "echo", "never", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_SETUP_FAILED, 9);
    assert_int_equal(f->exit.is_executed, 0);
    assert_string_equal(f->exit.text, "the setup command failed with status 9");
    assert_string_equal(f->output, "before\nmgpu: setup command failed with status 9\n");
}

CASE(a_setup_that_leaves_the_shell_is_no_success, f)
{
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup("exit 0");
    fixture_run(f);
    fixture_assert_end(f, END_SETUP_FAILED, 125);
}

CASE(a_missing_command_after_a_setup_ends_with_127, f)
{
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup("sleep 30 & :"); // holds all that the shell has open
    fixture_command(f, "nosuchcmd", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 127);
    assert_string_equal(f->exit.text, "cannot execute nosuchcmd: No such file or directory");
}

CASE(a_missing_setup_shell_is_named, f)
{
    f->spec.shell = xstrdup("/bin/nosuchshell");
    f->spec.setup = xstrdup("true");
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 125);
    assert_string_equal(
        f->exit.text, "cannot execute /bin/nosuchshell for the setup command: No such file or directory");
}

CASE(a_missing_directory_fails_the_start, f)
{
    free(f->spec.cwd);
    f->spec.cwd = xstrdup("/nosuchdir");
    free(f->spec.output);
    f->spec.output = xstrdup(f->log);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 125);
    assert_string_equal(f->exit.text, "cannot change to directory /nosuchdir: No such file or directory");
    assert_null(f->exit.log_path);
}

/* Without the group it would run without its limit. */
CASE(a_missing_directory_is_replaced_by_the_one_that_was_chosen, f)
{
    struct launch_started started;
    _cleanup_free_ char *said =
        xasprintf("cannot change to directory /nosuchdir: No such file or directory; running in %s", f->home);
    _cleanup_free_ char *expected = xasprintf("mgpu: %s\n%s %s\n", said, f->home, f->home);
    free(f->spec.cwd);
    f->spec.cwd = xstrdup("/nosuchdir");
    f->spec.cwd_fallback = xstrdup(f->home);
    fixture_script(f, "echo $(pwd) $PWD"); // its log is a name without a directory
    fixture_run(f);
    assert_int_equal(f->exit.exit_code, 0);
    assert_string_equal(f->output, expected);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_read_record(fd, SPOOL_STARTED, &launch_started_record, &started, NULL), 0);
    assert_string_equal(started.text, said);
    record_clear(&launch_started_record, &started);
}

CASE(without_a_place_to_fall_back_to_the_first_one_is_named, f)
{
    free(f->spec.cwd);
    f->spec.cwd = xstrdup("/nosuchdir");
    f->spec.cwd_fallback = xstrdup("/nosuchdir/either");
    fixture_run(f);
    assert_int_equal(f->exit.end, END_START_FAILED);
    assert_string_equal(f->exit.text, "cannot change to directory /nosuchdir: No such file or directory");
}

CASE(a_group_that_cannot_be_entered_gives_the_job_back, f)
{
    strings_add(&f->spec.v1_cgroups, "/nosuchgroup");
    fixture_run(f);
    fixture_assert_end(f, END_UNKNOWN, 125);
    assert_int_equal(f->exit.is_executed, 0);
    assert_int_equal(f->exit.cause, START_CGROUP);
    assert_string_equal(
        f->exit.text, "cannot enter the cgroups that limit the job: No such file or directory");
}

CASE(a_directory_that_only_root_may_enter_fails_the_start, f)
{
    if (!is_root())
        skip();
    free(f->spec.cwd);
    f->spec.cwd = xstrdup(f->dir);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 125);
    assert_non_null(strstr(f->exit.text, "Permission denied"));
}

CASE(a_log_that_is_a_link_is_refused, f)
{
    assert_int_equal(symlink("/tmp/elsewhere", f->log), 0);
    fixture_run(f);
    fixture_assert_end(f, END_START_FAILED, 125);
    assert_non_null(strstr(f->exit.text, "Too many levels of symbolic links"));
}

CASE(a_log_that_is_a_fifo_is_refused_at_once, f)
{
    assert_int_equal(mkfifo(f->log, 0666), 0);
    assert_int_equal(chmod(f->log, 0666), 0);
    int reader = open(f->log, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fixture_start(f);
    fixture_await(f, "exit");
    (void)close(reader);
    (void)unlink(f->log);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
}

CASE(the_job_has_exactly_three_descriptors, f)
{
    fixture_command(f, "ls", "-l", "/proc/self/fd", NULL);
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_non_null(strstr(f->output, "0 -> /dev/null"));
    assert_non_null(strstr(f->output, "1 -> /tmp/mgpu-shepherd."));
    assert_non_null(strstr(f->output, "2 -> /tmp/mgpu-shepherd."));
    assert_non_null(strstr(f->output, "3 -> /proc/")); // the directory that ls reads
    assert_null(strstr(f->output, "4 -> "));
}

CASE(after_a_setup_too, f)
{
    f->spec.shell = xstrdup("/bin/sh");
    f->spec.setup = xstrdup("true");
    fixture_command(f, "ls", "/proc/self/fd", NULL);
    fixture_run(f);
    assert_string_equal(f->output, "0\n1\n2\n3\n");
}

/* Signal 32 is the C library's own; one that was ignored above us must not reach the job all the same. */
static void ignore_signal_32(void)
{
    uint64_t ignore[8] = { (uint64_t)(uintptr_t)SIG_IGN };
    assert_int_equal(syscall(SYS_rt_sigaction, 32, ignore, NULL, (size_t)8), 0);
}

CASE(the_job_is_its_user_with_his_groups_and_umask, f)
{
    if (!is_root())
        skip();
    ignore_signal_32();
    f->spec.umask = 027;
    f->spec.nofile_soft = 77;
    f->spec.nofile_hard = 88;
    fixture_script(f,
        "umask; ulimit -n; ulimit -Hn; grep -E '^(Uid|Gid|Groups|CapEff|SigBlk|SigIgn):' /proc/self/status; "
        "cat /proc/self/oom_score_adj");
    fixture_run(f);
    assert_string_equal(f->output, "0027\n77\n88\n"
                                   "Uid:\t65534\t65534\t65534\t65534\n"
                                   "Gid:\t65534\t65534\t65534\t65534\n"
                                   "Groups:\t4242 65534 \n"
                                   "SigBlk:\t0000000000000000\n"
                                   "SigIgn:\t0000000000000000\n"
                                   "CapEff:\t0000000000000000\n"
                                   "0\n");
}

#define IN_FLIGHT 200 // more than the job's limit

/* The user's own: they are sent, and nobody reads them. */
static pid_t send_unread(uid_t uid)
{
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int pair[2], r = socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
        if (r == 0 && geteuid() == 0)
            r = setresuid(uid, uid, uid);
        for (int i = 0; r == 0 && i < IN_FLIGHT; i++) {
            r = descriptor_send(pair[0], "x", 1, pair[0]);
            if (r == -EAGAIN && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0)
                r = 0;
        }
        (void)!write(ready[1], r == 0 ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    char byte = 0;
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

CASE(descriptors_in_flight_of_the_user_keep_no_job_with_a_low_limit_from_starting, f)
{
    f->spec.nofile_soft = 77;
    f->spec.nofile_hard = 88;
    fixture_script(f, "ulimit -n; ulimit -Hn");
    pid_t sender = send_unread(f->spec.uid);
    fixture_run(f);
    (void)kill(sender, SIGKILL);
    (void)waitpid(sender, NULL, 0);
    fixture_assert_end(f, END_EXIT, 0);
    assert_string_equal(f->output, "77\n88\n");
}

CASE(a_second_shepherd_leaves, f)
{
    fixture_script(f, "echo here; read never <&1; sleep 40");
    fixture_start(f);
    fixture_await_output(f, "here");
    pid_t first = f->shepherd;
    fixture_start(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_BUSY);
    f->shepherd = first;
    fixture_stop(f, SIGTERM, 5000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGTERM);
    assert_string_equal(f->output, "here\n");
}

CASE(nogo_wins_and_nothing_is_executed, f)
{
    int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_decide(fd, VERDICT_NOGO), VERDICT_NOGO);
    fixture_command(f, "touch", "ran", NULL);
    fixture_start(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
    (void)close(fd);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/ran", f->home);
    assert_int_equal(access(path, F_OK), -1);
}

CASE(a_verdict_of_a_dead_shepherd_is_not_used_again, f)
{
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_decide(fd, VERDICT_GO), VERDICT_GO);
    fixture_start(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
}

CASE(an_unwanted_record_is_copied_after_a_second, f)
{
    char path[160];
    f->spec.exit_copy_dir = xstrdup(f->home);
    fixture_run(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_DONE);
    (void)snprintf(path, sizeof(path), "%s/7.1.0.0.exit", f->home);
    assert_int_equal(access(path, F_OK), 0);
}

CASE(the_copy_stays_when_the_spool_entry_was_removed_under_the_job, f)
{
    char path[200], name[SPOOL_NAME_SIZE];
    f->spec.exit_copy_dir = xstrdup(f->home);
    fixture_script(f, "echo ready; while ! test -e gate; do sleep 0.05; done; exit 33");
    fixture_start(f);
    fixture_await_output(f, "ready");
    (void)snprintf(path, sizeof(path), "%s/..", f->dir);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spool_name(&f->id, name);
    assert_int_equal(spool_remove(fd, name), 0);
    (void)close(fd);
    fixture_touch(f, "gate");
    assert_int_equal(fixture_wait(f), SHEPHERD_UNUSABLE);
    (void)snprintf(path, sizeof(path), "%s/%s.exit", f->home, name);
    assert_int_equal(access(path, F_OK), 0);
}

CASE(the_last_lines_of_a_command_that_failed_are_kept, f)
{
    fixture_script(f, "for i in $(seq 1000); do echo line $i; done; echo the reason >&2; exit 3");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 3);
    assert_non_null(f->exit.tail);
    size_t length = strlen(f->exit.tail);
    assert_in_range(length, USAGE_TAIL_MAX - 10, USAGE_TAIL_MAX);
    assert_memory_equal(f->exit.tail, "line ", 5);
    assert_string_equal(f->exit.tail + length - 11, "the reason\n");
}

CASE(a_command_that_succeeds_leaves_no_last_lines, f)
{
    fixture_script(f, "echo all is well");
    fixture_run(f);
    assert_null(f->exit.tail);
}

CASE(what_a_setup_said_before_it_failed_is_kept, f)
{
    fixture_command(f, "true", NULL);
    f->spec.setup = xstrdup("echo no such module; false");
    f->spec.shell = xstrdup("/bin/sh");
    fixture_run(f);
    fixture_assert_end(f, END_SETUP_FAILED, 1);
    assert_string_equal(f->exit.tail, "no such module\nmgpu: setup command failed with status 1\n");
}

CASE(text_of_an_earlier_job_in_the_same_log_is_not_its_last_lines, f)
{
    _cleanup_close_ int fd = open(f->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "of another\n", 11), 11);
    if (is_root())
        assert_int_equal(fchown(fd, FIXTURE_JOB_UID, FIXTURE_JOB_UID), 0);
    f->spec.is_output_default = false;
    fixture_script(f, "echo mine; exit 1");
    fixture_run(f);
    assert_string_equal(f->exit.tail, "mine\n");
}

CASE(the_last_lines_outlive_a_killed_shepherd, f)
{
    fixture_script(f, "echo begun; read word < go; echo over; exit 4");
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/go", f->home);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(chmod(path, 0666), 0);
    fixture_start(f);
    fixture_await(f, "started");
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    int go = open(path, O_WRONLY | O_CLOEXEC); // waits until the job reads
    assert_true(go >= 0);
    assert_int_equal(write(go, "\n", 1), 1);
    (void)close(go);
    fixture_finish(f);
    assert_int_equal(f->exit.exit_code, 4);
    assert_string_equal(f->exit.tail, "begun\nover\n");
}
