/* SPDX-License-Identifier: MIT */
/* Who a signal is for, by what real processes make of it. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "job/state.h"
#include "shepherd/processes/roles.h"
#include "shepherd/processes/roll.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

static void on_signal(int number)
{
}

struct family {
    pid_t wrapper, program, reader, worker;
};

/* The work of the four roles, each in its own process. */
static pid_t spawn(int ready_fd, void (*set_up)(void), int in_fd, int out_fd)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (set_up != NULL)
        set_up();
    if (in_fd >= 0)
        (void)dup2(in_fd, STDIN_FILENO);
    if (out_fd >= 0)
        (void)dup2(out_fd, STDOUT_FILENO);
    pid = getpid();
    (void)!write(ready_fd, &pid, sizeof(pid));
    for (;;)
        (void)pause();
}

static void handle_term(void)
{
    (void)signal(SIGTERM, on_signal);
}

static void block_term(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void ignore_term(void)
{
    (void)signal(SIGTERM, SIG_IGN);
}

/* As a shell with a trap of EXIT. */
static void catch_all(void)
{
    for (int number = 1; number < 32; number++)
        (void)signal(number, on_signal);
}

static void handle_term_alone(void)
{
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_DFL);
    handle_term();
}

static pid_t await(int fd)
{
    pid_t pid = 0;
    assert_int_equal(read(fd, &pid, sizeof(pid)), sizeof(pid));
    return pid;
}

/* wrapper ── program (as `set_up` makes it) | reader, and a worker of the program. */
static void start_family(struct family *family, void (*set_up_wrapper)(void), void (*set_up)(void))
{
    int ready[2], between[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(between), 0);
    family->wrapper = fork();
    if (family->wrapper == 0) {
        if (set_up_wrapper != NULL)
            set_up_wrapper();
        pid_t program = fork();
        if (program == 0) {
            (void)spawn(ready[1], NULL, -1, -1);
            set_up();
            (void)dup2(between[1], STDOUT_FILENO);
            (void)!write(ready[1], &(pid_t){ getpid() }, sizeof(pid_t));
            for (;;)
                (void)pause();
        }
        (void)spawn(ready[1], NULL, between[0], -1);
        for (;;)
            (void)pause();
    }
    pid_t found[3];
    for (int i = 0; i < 3; i++)
        found[i] = await(ready[0]);
    for (int i = 0; i < 4; i++)
        (void)close(i < 2 ? ready[i] : between[i - 2]);
    family->program = family->reader = family->worker = 0;
    for (int i = 0; i < 3; i++) {
        char path[64], text[256];
        pid_t parent = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)found[i]);
        FILE *file = fopen(path, "re");
        assert_non_null(fgets(text, sizeof(text), file));
        (void)fclose(file);
        parent = (pid_t)strtol(strrchr(text, ')') + 4, NULL, 10);
        if (parent != family->wrapper)
            family->worker = found[i], family->program = parent;
    }
    for (int i = 0; i < 3; i++)
        if (found[i] != family->worker && found[i] != family->program)
            family->reader = found[i];
}

static void survey(const struct family *family, int signal)
{
    const pid_t all[] = { family->reader, family->wrapper, family->worker, family->program };
    roles_begin(signal);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        roles_add(all[i]);
    roles_decide();
}

static void end_family(const struct family *family)
{
    const pid_t all[] = { family->wrapper, family->program, family->worker, family->reader };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        (void)kill(all[i], SIGKILL);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        (void)waitpid(-1, NULL, 0); // orphans come to us
}

TEST(a_wrapper_holds_and_a_reader_reads_what_a_handler_writes)
{
    void (*const ways[])(void) = { handle_term, block_term };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct family family;
        start_family(&family, NULL, ways[i]);
        survey(&family, SIGTERM);
        assert_int_equal(roles_of(family.program), ROLE_HANDLER);
        assert_int_equal(roles_of(family.wrapper), ROLE_HOLDER);
        assert_int_equal(roles_of(family.reader), ROLE_READER);
        assert_int_equal(roles_of(family.worker), ROLE_OTHER);
        assert_int_equal(roles_of(1), ROLE_OTHER); // unknown
        assert_int_equal(roles_are_unsettled(), ways[i] == block_term);
        survey(&family, SIGUSR1);
        assert_int_equal(roles_count(ROLE_OTHER), 4);
        end_family(&family);
    }
}

TEST(who_ignores_a_signal_needs_nobody)
{
    struct family family;
    start_family(&family, NULL, ignore_term);
    survey(&family, SIGTERM);
    assert_int_equal(roles_of(family.program), ROLE_DEAF);
    assert_int_equal(roles_of(family.wrapper), ROLE_OTHER);
    assert_int_equal(roles_of(family.reader), ROLE_OTHER);
    end_family(&family);
}

TEST(who_catches_all_signals_counts_only_where_nobody_below_does)
{
    struct family family;
    start_family(&family, catch_all, handle_term_alone);
    survey(&family, SIGTERM);
    assert_int_equal(roles_of(family.program), ROLE_HANDLER);
    assert_int_equal(roles_of(family.wrapper), ROLE_HOLDER);
    end_family(&family);
}

TEST(who_was_held_is_done_when_no_handler_is_left_below)
{
    struct family family;
    int status;
    start_family(&family, NULL, handle_term);
    assert_int_equal(kill(family.wrapper, SIGSTOP), 0);
    assert_int_equal(waitpid(family.wrapper, &status, WUNTRACED), family.wrapper);
    survey(&family, SIGTERM);
    assert_int_equal(roles_of(family.wrapper), ROLE_HOLDER);
    assert_int_equal(roles_count(ROLE_DONE), 0);
    assert_int_equal(kill(family.program, SIGKILL), 0);
    for (int i = 0; roles_count(ROLE_HANDLER) > 0 && i < 1000; i++) {
        (void)poll(NULL, 0, 5);
        survey(&family, SIGTERM);
    }
    assert_int_equal(roles_of(family.wrapper), ROLE_DONE);
    end_family(&family);
}

static const char *name_of_wrapper;

static void handle_term_by_name(void)
{
    (void)prctl(PR_SET_NAME, name_of_wrapper);
    handle_term();
}

/* The program below has a name of its own. */
static void handle_term_as_program(void)
{
    (void)prctl(PR_SET_NAME, "program");
    handle_term();
}

TEST(launchers_that_would_kill_count_as_if_they_did_not_handle_it)
{
    static const struct {
        const char *name;
        enum role role;
    } cases[] = { { "make", ROLE_HOLDER }, { "timeout", ROLE_READER }, { "mpirun", ROLE_READER },
        { "parallel", ROLE_HOLDER }, { "makes", ROLE_HANDLER } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct family family;
        name_of_wrapper = cases[i].name;
        start_family(&family, handle_term_by_name, handle_term_as_program);
        survey(&family, SIGTERM);
        assert_int_equal(roles_of(family.program), ROLE_HANDLER);
        assert_int_equal(roles_of(family.wrapper), cases[i].role);
        end_family(&family);
    }
}

TEST(some_signals_are_for_everybody)
{
    static const int everybodys[] = { SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGWINCH, 0, 34, 64 };
    static const int handlers[] = { SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGALRM, 31 };
    for (size_t i = 0; i < sizeof(everybodys) / sizeof(everybodys[0]); i++)
        assert_false(roles_matter(everybodys[i]));
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
        assert_true(roles_matter(handlers[i]));
}

TEST(a_roll_counts_processes_and_names_each_program_once)
{
    struct roll roll = { 0 };
    char text[ROLL_NAMES_MAX + 32];
    roll_format(&roll, text, sizeof(text));
    assert_string_equal(text, "0 processes");
    (void)prctl(PR_SET_NAME, "a, \x1b[b");
    roll_add(&roll, getpid());
    roll_add(&roll, getpid());
    roll_add(&roll, 0x3fffffff); // nobody
    roll_format(&roll, text, sizeof(text));
    assert_string_equal(text, "2 processes (a???[b)");
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "program-%d", i);
        (void)prctl(PR_SET_NAME, name);
        roll_add(&roll, getpid());
    }
    assert_int_equal(roll.count, 22);
    roll_format(&roll, text, sizeof(text));
    assert_non_null(strstr(text, ", ...)"));
}

/* A step whose shell would go on with its next command if it were only spared. */
CASE(a_held_shell_does_not_go_on, f)
{
    fixture_script(f,
        "(trap 'sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done); "
        "echo went on; exit 9");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 20000);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_int_equal(f->exit.exit_code, 128 + SIGTERM);
    assert_non_null(strstr(f->output, "saved\n"));
    assert_null(strstr(f->output, "went on"));
    assert_null(f->exit.text); // nobody had to be killed
}

/* On a terminal, the death of the leader of the session would hang up the program. */
CASE(the_signal_comes_to_the_shell_last, f)
{
    fixture_script(f, "(trap 'echo first; sleep 0.3; kill -0 $PPID && echo alive; exit 0' TERM; echo ready; "
                      "while :; do sleep 0.05; done); true");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 20000);
    fixture_finish(f);
    assert_non_null(strstr(f->output, "alive\n"));
}

int main(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return unit_tests_run(NULL, NULL);
}
