/* SPDX-License-Identifier: MIT */
/*
 * Those schedulers are started from their sources: each file below is at the path given in the README, and
 * executes our program in its place, so that standard input, terminal, signals and exit status are the
 * program's own.
 */
#include "cli/verbs/compat_python.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define MADE_BY    "made by `mgpu compat install --python`"
#define FILE_BYTES 65536U // bytes of a file that is examined
#define MODE       0755

/* The paths given in each scheduler's README. */
static const struct {
    const char *path, *name;
} commands[] = {
    { "src/mgpu_scheduler_server.py", "mgpu_scheduler_server" },
    { "mgpu_scheduler_server.py", "mgpu_scheduler_server" },
    { "src/mgpu_srun.py", "mgpu_srun" },
    { "src/mgpu_queue.py", "mgpu_queue" },
    { "src/mgpu_cancel.py", "mgpu_cancel" },
    { "src/mgpu_simple_master.py", "mgpu_simple_master" },
    { "src/mgpu_simple_node.py", "mgpu_simple_node" },
    { "src/mgpu_simple_client.py", "mgpu_simple_client" },
    { "scheduler.py", "scheduler" },
    { "run_server.py", "run_server" },
    { "srun.py", "srun" },
    { "tui.py", "tui" },
    { "tgpu.py", "tgpu" },
};

/* Python ignores two signals, which the program would inherit. */
static char *launcher_text(const char *name, const char *program)
{
    return xasprintf("#!/usr/bin/env python3\n"
                     "# SPDX-License-Identifier: MIT\n"
                     "# %s of mgpu: " MADE_BY ".\n"
                     "import os\n"
                     "import signal\n"
                     "import sys\n"
                     "\n"
                     "PROGRAM = '%s'\n"
                     "\n"
                     "if __name__ == '__main__':\n"
                     "    for number in (signal.SIGPIPE, signal.SIGXFSZ):\n"
                     "        signal.signal(number, signal.SIG_DFL)\n"
                     "    try:\n"
                     "        os.execv(PROGRAM, ['%s', *sys.argv[1:]])\n"
                     "    except OSError as error:\n"
                     "        sys.exit(f'%s: cannot execute {PROGRAM}: {error.strerror}')\n",
        name, program, name, name);
}

/* Returns 0 also if it has these contents already. */
static int write_new(int folder, const char *path, const char *text, bool is_forced, struct error *err)
{
    _cleanup_buffer_ struct buffer before = { 0 };
    bool exists = file_read(folder, path, FILE_BYTES, &before) >= 0;
    if (exists && strcmp(buffer_text(&before), text) == 0)
        return 0;
    bool is_ours = exists && strstr(buffer_text(&before), MADE_BY) != NULL;
    if (exists && !is_ours && !is_forced) {
        (void)error_set(err, -EEXIST, "%s already exists and was not " MADE_BY, path);
        return error_hint(err, "use an empty folder, or --force to replace it");
    }
    _cleanup_close_ int fd =
        openat(folder, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, MODE);
    int r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    return r < 0 ? error_set_errno(err, r, "cannot write %s", path) : 0;
}

static int write_commands(int folder, const char *program, bool is_forced, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        _cleanup_free_ char *text = launcher_text(commands[i].name, program);
        r = write_new(folder, commands[i].path, text, is_forced, err);
    }
    return r;
}

static int make_folders(const char *folder, int *ret_fd, struct error *err)
{
    static const char *const inner[] = { "src", "test" };
    if (mkdir(folder, MODE) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot make the folder %.200s", folder);
    _cleanup_close_ int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open the folder %.200s", folder);
    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
        if (mkdirat(fd, inner[i], MODE) < 0 && errno != EEXIST)
            return error_set_errno(err, -errno, "cannot make the folder %.200s/%s", folder, inner[i]);
    *ret_fd = take_fd(&fd);
    return 0;
}

int compat_python_install(const char *folder, const char *program, bool is_forced, struct error *err)
{
    _cleanup_close_ int fd = -1;
    int made = (int)(sizeof(commands) / sizeof(commands[0]));
    if (strpbrk(program, "'\\\n") != NULL)
        return error_set(err, -EINVAL, "the path of %s cannot be written into a Python file", program);
    int r = make_folders(folder, &fd, err);
    if (r == 0)
        r = write_commands(fd, program, is_forced, err);
    for (const struct python_file *file = python_files; r == 0 && file->name != NULL; file++, made++)
        r = write_new(fd, file->name, file->text, is_forced, err);
    return r < 0 ? r : made;
}
