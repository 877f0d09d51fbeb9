/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "fixture.h"
#include "shepherd/exec.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

/* Runs exec_search in a child; returns its exit status, which is the errno when nothing was executed. */
static int search(const char *path, const char *name, const char *argument)
{
    _cleanup_strings_ struct strings command = { 0 };
    char *environment[] = { NULL };
    strings_add(&command, name);
    if (argument != NULL)
        strings_add(&command, argument);
    char **argv = exec_argv(&command);
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(exec_search(argv, environment, path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(argv - 2);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void make_file(const struct fixture *f, const char *name, const char *text, mode_t mode)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", f->home, name);
    assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), false), 0);
    assert_int_equal(chmod(path, mode), 0);
}

CASE(the_first_directory_that_has_it_wins, f)
{
    assert_int_equal(search("/nosuchdir:/usr/bin:/bin", "true", NULL), 0);
    assert_int_equal(search(NULL, "true", NULL), 0);
    assert_int_equal(search("/nosuchdir:/etc", "true", NULL), ENOENT);
    assert_int_equal(search("/bin", "", NULL), ENOENT);
}

CASE(a_slash_means_no_search, f)
{
    assert_int_equal(search("/bin", "./true", NULL), ENOENT);
    assert_int_equal(search("/nosuchdir", "/bin/true", NULL), 0);
}

CASE(what_may_not_be_executed_is_passed_over_but_told, f)
{
    char path[200];
    make_file(f, "true", "text", 0644);
    (void)snprintf(path, sizeof(path), "%s:/bin", f->home);
    assert_int_equal(search(path, "true", NULL), 0);
    assert_int_equal(search(f->home, "true", NULL), EACCES);
}

CASE(an_empty_element_is_the_current_directory, f)
{
    make_file(f, "local", "#!/bin/sh\nexit 77\n", 0755);
    assert_int_equal(chdir(f->home), 0);
    assert_int_equal(search("/nosuchdir:", "local", NULL), 77);
    assert_int_equal(search(":/bin", "local", NULL), 77);
    assert_int_equal(chdir("/"), 0);
}

CASE(a_script_without_a_line_goes_to_the_shell, f)
{
    make_file(f, "script", "exit $1\n", 0755);
    assert_int_equal(search(f->home, "script", "78"), 78);
}

static int check(const char *path, const char *name)
{
    char word[64];
    (void)snprintf(word, sizeof(word), "%s", name);
    return exec_check(word, path);
}

CASE(what_would_fail_is_known_before_it_is_executed, f)
{
    make_file(f, "data", "text", 0644);
    make_file(f, "lost", "#! /no/such/interpreter -x\n", 0755);
    make_file(f, "found", "#!/bin/sh\n", 0755);
    make_file(f, "plain", "exit 3\n", 0755);
    assert_int_equal(check("/nosuchdir:/bin", "true"), 0);
    assert_int_equal(check("/nosuchdir", "true"), ENOENT);
    assert_int_equal(check(f->home, "data"), EACCES);
    assert_int_equal(check("/bin", "/"), EACCES);
    assert_int_equal(check(f->home, "lost"), STEP_NO_INTERPRETER);
    assert_int_equal(check(f->home, "found"), 0);
    assert_int_equal(check(f->home, "plain"), 0);
    assert_int_equal(chdir(f->home), 0);
    assert_int_equal(check(NULL, "./found"), 0);
    assert_int_equal(check(NULL, "./gone"), ENOENT);
    assert_int_equal(chdir("/"), 0);
}

CASE(the_setup_script_quotes_its_words, f)
{
    _cleanup_free_ char *script = exec_setup_script("echo it's");
    assert_string_equal(script, "eval 'echo it'\\''s' || exit\nexec /proc/self/fd/101 --exec 100\n");
}

CASE(a_request_says_when_its_turn_came, f)
{
    struct strings variables = { 0 }, command = { 0 };
    enum launch_step step = STEP_NONE;
    int error = 0, status;
    strings_add(&command, "/nosuchcmd");
    strings_add(&variables, "A=b");
    _cleanup_close_ int fd = exec_request_make(&variables, &command, &(struct record_list){ 0 });
    assert_true(fd >= 0);
    assert_false(exec_request_is_reached(fd, &step, &error));
    pid_t pid = fork();
    if (pid == 0)
        _exit(exec_main(fd));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 127);
    assert_true(exec_request_is_reached(fd, &step, &error));
    assert_int_equal(step, STEP_EXEC);
    assert_int_equal(error, ENOENT);
    strings_clear(&variables);
    strings_clear(&command);
}

CASE(a_request_that_was_tampered_with_is_refused, f)
{
    struct strings variables = { 0 }, command = { 0 };
    strings_add(&command, "true");
    for (off_t at = 0; at < 30; at++) {
        int status;
        int fd = exec_request_make(&variables, &command, &(struct record_list){ 0 });
        assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, at), 4);
        pid_t pid = fork();
        if (pid == 0) {
            (void)close(STDERR_FILENO);
            _exit(exec_main(fd));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        (void)close(fd);
    }
    strings_clear(&command);
}
