/* SPDX-License-Identifier: MIT */
/* Allocation and the cleanup attributes that carry ownership. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit_test.h"

TEST(fresh_memory_is_zero_and_never_null)
{
    _cleanup_free_ unsigned char *bytes = xcalloc(100, 3);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(bytes[i], 0);
    _cleanup_free_ void *nothing = xcalloc(0, 0);
    assert_non_null(nothing);
}

TEST(copies_of_text_are_independent)
{
    char text[] = "original";
    _cleanup_free_ char *copy = xstrdup(text);
    _cleanup_free_ char *start = xstrndup(text, 4);
    text[0] = 'X';
    assert_string_equal(copy, "original");
    assert_string_equal(start, "orig");
    assert_null(xstrdup(NULL));
}

TEST(text_is_formatted_to_its_full_length)
{
    _cleanup_free_ char *text = xasprintf("%01000d", 5);
    assert_int_equal(strlen(text), 1000);
}

TEST(memory_for_libraries_is_never_null)
{
    _cleanup_free_ void *memory = xmalloc(0);
    assert_non_null(memory);
    memory = xrealloc(memory, 0);
    assert_non_null(memory);
}

TEST(an_impossible_size_aborts)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        (void)close(STDERR_FILENO);
        volatile size_t many = SIZE_MAX / 4;
        char *memory = xreallocarray(NULL, many, 8);
        _exit(memory == NULL ? 2 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    /* A sanitizer refuses the size by itself, with an exit status of its own. */
    assert_true(WIFSIGNALED(status) || (WEXITSTATUS(status) != 2 && WEXITSTATUS(status) != 3));
}

TEST(a_descriptor_is_closed_at_the_end_of_its_scope)
{
    int number = -1;
    {
        _cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        number = fd;
        assert_true(fcntl(number, F_GETFD) >= 0);
    }
    assert_int_equal(fcntl(number, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

TEST(a_closed_descriptor_is_not_closed_again)
{
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
    closep(&first);
    assert_int_equal(first, -1);
    int second = open("/dev/null", O_RDONLY | O_CLOEXEC); // has the number of the first
    closep(&first);
    assert_true(fcntl(second, F_GETFD) >= 0);
    closep(&second);
}

TEST(what_was_given_away_is_not_cleaned_up)
{
    int kept = -1;
    char *text = NULL;
    {
        _cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *owned = xstrdup("kept");
        kept = take_fd(&fd);
        text = take_ptr(owned);
        assert_int_equal(fd, -1);
        assert_null(owned);
    }
    assert_true(fcntl(kept, F_GETFD) >= 0);
    assert_string_equal(text, "kept");
    (void)close(kept);
    freep(&text);
}

TEST(cleaning_up_keeps_errno)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *text = xstrdup("x");
    errno = EXDEV;
    closep(&fd);
    freep(&text);
    assert_int_equal(errno, EXDEV);
}
