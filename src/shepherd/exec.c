/* SPDX-License-Identifier: MIT */
#include "shepherd/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/launch.h"
#include "job/spec.h"
#include "shepherd/container.h"

#define SYSTEM_PATH       "/usr/local/bin:/usr/bin:/bin"
#define LINE_MAX_READ     257 // the kernel reads 256 bytes of a script
#define REQUEST_MAGIC     0x6d677865U
#define REQUEST_BYTES_MAX (SPEC_COMMAND_MAX + SPEC_ENV_MAX + 65536U)

/* Head of the memory file. It is followed by the variables and the words, each with its NUL, and then by the
 * image. */
struct exec_request {
    uint32_t magic;
    uint32_t is_reached; // written by exec_main: the setup has ended
    uint32_t step;       // written by exec_main: enum launch_step that failed
    int32_t error;       // and its errno
    uint32_t n_variables, n_words;
    uint32_t length;       // of the text
    uint32_t image_length; // of the struct launch_image behind it; 0: no container
};

/* Executes one file; returns a positive errno. A script without "#!" is given to the shell, as execvp(3)
 * does. */
static int exec_file(char *file, char **argv, char **environment)
{
    static char shell[] = "/bin/sh";
    (void)execve(file, argv, environment);
    int error = errno;
    if (error == ENOENT && access(file, F_OK) == 0)
        return STEP_NO_INTERPRETER;
    if (error != ENOEXEC)
        return error;
    char *first = argv[0];
    argv[-1] = shell;
    argv[0] = file;
    (void)execve(shell, argv - 1, environment);
    argv[0] = first;
    return errno;
}

/* Errors that mean the file is not in this directory, so the next one is tried. */
static bool is_not_here(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ESTALE || error == ENODEV || error == ETIMEDOUT ||
           error == EACCES;
}

typedef int file_fn(char *file, char **argv, char **environment);

static int search(file_fn *try_file, char **argv, char **environment, const char *path)
{
    char file[PATH_MAX];
    char *name = argv[0];
    if (*name == '\0')
        return ENOENT;
    if (strchr(name, '/') != NULL)
        return try_file(name, argv, environment);
    bool is_denied = false;
    for (const char *p = path != NULL ? path : SYSTEM_PATH;; p++) {
        size_t length = strcspn(p, ":");
        /* An empty element is the current directory. */
        int n = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, p, length > 0 ? "/" : "./", name);
        p += length;
        if (n > 0 && n < (int)sizeof(file)) {
            int error = try_file(file, argv, environment);
            if (!is_not_here(error))
                return error;
            /* An unsearchable directory does not show whether the command exists. */
            is_denied = is_denied || (error == EACCES && access(file, F_OK) == 0);
        }
        if (*p == '\0')
            return is_denied ? EACCES : ENOENT;
    }
}

/* Only this process knows its own pid. The variable has room for the number. */
static void set_task_pid(char **environment)
{
    static const char prefix[] = SLURM_TASK_PID "=";
    const size_t length = sizeof(prefix) - 1, room = sizeof(SLURM_TASK_PID_ROOM);
    for (char **entry = environment; *entry != NULL; entry++)
        if (strncmp(*entry, prefix, length) == 0 && strlen(*entry) == length + room - 1)
            (void)snprintf(*entry + length, room, "%d", (int)getpid());
}

int exec_search(char **argv, char **environment, const char *path)
{
    set_task_pid(environment);
    return search(exec_file, argv, environment, path);
}

/* Checks the interpreter named in a script's first line, which execve(2) would start. The file may be
 * executable but not readable. */
static int check_interpreter(const char *file)
{
    char line[LINE_MAX_READ];
    _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? pread(fd, line, sizeof(line) - 1, 0) : -1;
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return 0;
    line[n] = '\0';
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\n")] = '\0';
    if (*name == '\0' || access(name, X_OK) == 0)
        return 0;
    return errno == ENOENT ? STEP_NO_INTERPRETER : errno;
}

/* As exec_file(), but executes nothing. */
static int check_file(char *file, char **argv, char **environment)
{
    struct stat st;
    if (access(file, X_OK) < 0 || stat(file, &st) < 0)
        return errno;
    return S_ISREG(st.st_mode) ? check_interpreter(file) : EACCES;
}

int exec_check(char *name, const char *path)
{
    char *argv[] = { name, NULL };
    return search(check_file, argv, NULL, path);
}

char **exec_argv(const struct strings *command)
{
    char **entries = xcalloc(command->count + 3, sizeof(char *));
    for (size_t i = 0; i < command->count; i++)
        entries[i + 2] = command->items[i];
    return entries + 2;
}

static void append_strings(struct buffer *out, const struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        buffer_append(out, strings->items[i], strlen(strings->items[i]) + 1);
}

int exec_request_make(
    const struct strings *variables, const struct strings *command, const struct record_list *image)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct exec_request head = {
        .magic = REQUEST_MAGIC, .n_variables = (uint32_t)variables->count, .n_words = (uint32_t)command->count
    };
    buffer_append(&bytes, &head, sizeof(head));
    append_strings(&bytes, variables);
    append_strings(&bytes, command);
    head.length = (uint32_t)(bytes.length - sizeof(head));
    if (image->count > 0)
        record_encode(&launch_image_record, image->items, &bytes);
    head.image_length = (uint32_t)(bytes.length - sizeof(head) - head.length);
    memcpy(bytes.bytes, &head, sizeof(head));
    _cleanup_close_ int fd = memfd_create("mgpu-exec", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, bytes.bytes, bytes.length);
    return r < 0 ? r : take_fd(&fd);
}

static bool read_head(int fd, struct exec_request *head)
{
    return pread(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head) && head->magic == REQUEST_MAGIC &&
           head->length <= REQUEST_BYTES_MAX && head->image_length <= REQUEST_BYTES_MAX;
}

bool exec_request_is_reached(int fd, enum launch_step *ret_step, int *ret_error)
{
    struct exec_request head;
    /* The setup ran as the user with this file open, so its contents are untrusted. */
    if (!read_head(fd, &head) || head.is_reached != 1 || head.error < 0 || head.step >= STEPS)
        return false;
    *ret_step = head.step;
    *ret_error = head.error;
    return true;
}

char *exec_setup_script(const char *setup)
{
    _cleanup_strings_ struct strings words = { 0 };
    strings_add(&words, setup);
    _cleanup_free_ char *quoted = text_quote_command(&words);
    return xasprintf("eval %s || exit\nexec /proc/self/fd/%d --exec %d\n", quoted, PROGRAM_FD, EXEC_FD);
}

/* The strings of the request, or false if some are missing. `text` remains owned by the caller. */
static bool split_text(char *text, size_t length, const struct exec_request *head, struct strings *variables,
    struct strings *command)
{
    size_t wanted = (size_t)head->n_variables + head->n_words, seen = 0;
    if (length == 0 || text[length - 1] != '\0')
        return false;
    for (size_t at = 0; at < length; at += strlen(text + at) + 1, seen++)
        strings_add(seen < head->n_variables ? variables : command, text + at);
    return seen == wanted && command->count > 0;
}

static int report(int fd, struct exec_request *head, enum launch_step step, int error)
{
    head->step = step;
    head->error = error;
    (void)!pwrite(fd, head, sizeof(*head), 0);
    return step_exit_code(step, error);
}

/* Replaces the command by that of a container runtime, with the command behind it. */
static enum launch_step enter_image(int fd, const struct exec_request *head, struct strings *command)
{
    struct launch_image image = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *bytes = xcalloc(head->image_length, 1);
    if (pread(fd, bytes, head->image_length, (off_t)(sizeof(*head) + head->length)) !=
            (ssize_t)head->image_length ||
        record_decode(&launch_image_record, bytes, head->image_length, &image, NULL) < 0)
        return STEP_SHELL;
    enum launch_step step = container_words(&image, command, &words);
    record_clear(&launch_image_record, &image);
    if (step == STEP_NONE)
        container_tidy(&words);
    strings_clear(command);
    *command = words;
    words = (struct strings){ 0 };
    return step;
}

int exec_main(int fd)
{
    struct exec_request head;
    (void)close(PROGRAM_FD);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || !read_head(fd, &head)) {
        (void)fprintf(
            stderr, "mgpu: the setup command changed descriptor %d, which contains the job's command\n", fd);
        return step_exit_code(STEP_SHELL, EBADF);
    }
    _cleanup_free_ char *text = xcalloc(head.length + 1, 1);
    _cleanup_strings_ struct strings variables = { 0 };
    _cleanup_strings_ struct strings command = { 0 };
    if (pread(fd, text, head.length, sizeof(head)) != (ssize_t)head.length ||
        !split_text(text, head.length, &head, &variables, &command)) {
        (void)fprintf(
            stderr, "mgpu: the job's command is incomplete: the setup command changed descriptor %d\n", fd);
        return step_exit_code(STEP_SHELL, EBADF);
    }
    for (size_t i = 0; i < variables.count; i++)
        if (putenv(variables.items[i]) != 0)
            return step_exit_code(STEP_SHELL, errno);
    head.is_reached = 1;
    enum launch_step step = head.image_length > 0 ? enter_image(fd, &head, &command) : STEP_NONE;
    if (step != STEP_NONE)
        return report(fd, &head, step, 0);
    (void)!pwrite(fd, &head, sizeof(head), 0);
    char **argv = exec_argv(&command);
    int error = exec_search(argv, environ, getenv("PATH"));
    free(argv - 2);
    return report(fd, &head, STEP_EXEC, error);
}
