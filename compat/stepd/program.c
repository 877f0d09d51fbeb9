/* SPDX-License-Identifier: MIT */
/* Unlike execvp(3): a plain name that is not in PATH is searched for in the task's directory, the first word
 * becomes the whole path, and a file without "#!" is not given to a shell. */
#include "compat/stepd/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"

#define INTERPRETER_MAX 127 // bytes of the first line that the kernel reads

static bool is_program(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

static char *find(const char *name)
{
    _cleanup_free_ char *here = getcwd(NULL, 0);
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path != NULL ? path : "");
    char *rest = copy;
    if (name[0] == '.' && here != NULL)
        return xasprintf("%s/%s", here, name);
    for (char *folder = NULL; strchr(name, '/') == NULL && (folder = strsep(&rest, ":")) != NULL;) {
        _cleanup_free_ char *found = xasprintf("%s/%s", folder, name);
        if (folder[0] != '\0' && name[0] != '\0' && is_program(found))
            return take_ptr(found);
    }
    return xstrdup(name);
}

/* The file exists, but the interpreter named in its first line does not. */
static bool print_interpreter(const char *path)
{
    char line[INTERPRETER_MAX + 1] = "";
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, line, INTERPRETER_MAX) : -1;
    if (n < 3 || strncmp(line, "#!", 2) != 0)
        return false;
    line[strcspn(line, "\n")] = '\0';
    _cleanup_free_ char *shown = text_escape(line + 2, INTERPRETER_MAX);
    (void)fprintf(stderr, "slurmstepd: error: execve(): bad interpreter(%s): %s\n", shown, strerror(ENOENT));
    return true;
}

int program_execute(char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    _cleanup_free_ char *path = find(words[0]);
    _cleanup_free_ char **all = xcalloc(count + 1, sizeof(*all));
    memcpy(all, words, count * sizeof(*all));
    all[0] = path;
    (void)execv(path, all);
    int why = errno;
    if (why != ENOENT || !print_interpreter(path)) {
        _cleanup_free_ char *shown = text_escape(path, strlen(path));
        (void)fprintf(stderr, "slurmstepd: error: execve(): %s: %s\n", shown, strerror(why));
    }
    return why;
}
