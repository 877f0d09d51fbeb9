/* SPDX-License-Identifier: MIT */
/*
 * The kernel does not deliver signals without a handler to the first process of a PID namespace. Therefore
 * the command is the second process, and the first blocks all signals and receives them one by one. On a
 * terminal the command's process group is in the foreground, so keys send signals only to it.
 */
#include "shepherd/first.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "shepherd/exec.h"
#include "shepherd/steps.h"

bool first_is_possible(void)
{
    return getauxval(AT_BASE) == 0; // no dynamic linker
}

static _Noreturn void run(char **argv)
{
    sigset_t none;
    (void)setpgid(0, 0);
    if (isatty(STDIN_FILENO) == 1)
        (void)tcsetpgrp(STDIN_FILENO, getpid()); // SIGTTOU is blocked
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    _cleanup_strings_ struct strings words = { 0 };
    for (; *argv != NULL; argv++)
        strings_add(&words, *argv);
    char **command = exec_argv(&words);
    int error = exec_search(command, environ, getenv("PATH"));
    (void)fprintf(stderr, "mgpu: cannot execute %s in the image: %s\n", command[0],
        error == STEP_NO_INTERPRETER ? "the interpreter named in its first line does not exist"
                                     : strerror(error));
    _exit(step_exit_code(STEP_EXEC, error));
}

/* Reaps ended children. True if the command has ended. */
static bool reap(pid_t leader, int *ret_code)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == leader) {
            *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            return true;
        }
    return false;
}

int first_main(char **argv)
{
    sigset_t all;
    int code = 0;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    pid_t leader = fork();
    if (leader < 0)
        return step_exit_code(STEP_SPAWN, errno);
    if (leader == 0)
        run(argv);
    while (!reap(leader, &code)) {
        int signal_number = sigwaitinfo(&all, NULL);
        if (signal_number > 0 && signal_number != SIGCHLD)
            (void)kill(leader, signal_number);
    }
    return code;
}
