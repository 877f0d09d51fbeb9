/* SPDX-License-Identifier: MIT */
#include "compat/slurm/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/slurm/slurm.h"
#include "job/spec.h"

#define PIECE     65536
#define WRAP_NAME "wrap"

/* --- the text --- */

static char *find_in_path(const char *file)
{
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path != NULL ? path : "");
    char *rest = copy;
    if (access(file, F_OK) == 0 || strchr(file, '/') != NULL)
        return xstrdup(file);
    for (char *folder = NULL; (folder = strsep(&rest, ":")) != NULL;) {
        _cleanup_free_ char *found = xasprintf("%s/%s", folder, file);
        if (folder[0] == '/' && access(found, R_OK) == 0)
            return take_ptr(found);
    }
    return xstrdup(file);
}

static int read_all(int fd, struct buffer *text, struct error *err)
{
    _cleanup_free_ char *piece = xcalloc(PIECE, 1);
    ssize_t n;
    while ((n = read(fd, piece, PIECE)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            buffer_append(text, piece, (size_t)n);
        if (text->length > SPEC_SCRIPT_MAX)
            return error_set(err, -EFBIG,
                "Batch job submission failed: the script has more than %u bytes, the most there may be",
                SPEC_SCRIPT_MAX);
    }
    return n < 0 ? (errno == EISDIR ? error_set(err, -EISDIR, "Batch script is empty!")
                                    : error_set_errno(err, -errno, "Unable to read the batch script"))
                 : 0;
}

/* In Slurm's words. */
static int check(const struct buffer *text, const char *words, struct error *err)
{
    if (text->length == 0)
        return error_set(err, -EINVAL, "Batch script is empty!");
    if (text_mark_is_wide(text->bytes, text->length))
        return text_mark_refuse("Batch script", err);
    if (strlen(words) < text->length)
        return error_set(
            err, -EINVAL, "The Slurm controller does not allow scripts that contain a NULL character '\\0'.");
    if (words[strspn(words, " \t\r\n")] == '\0')
        return error_set(err, -EINVAL, "Batch script contains only whitespace!");
    if (strncmp(words, "#!", 2) != 0) {
        (void)error_set(err, -EINVAL,
            "This does not look like a batch script.  The first\nline must start with #! followed by the "
            "path "
            "to an interpreter.");
        (void)error_hint(err, "For instance: #!/bin/sh");
        return error_mark(err, SLURM_BOTH, -EINVAL);
    }
    if (strstr(words, "\r\n") != NULL) {
        (void)error_set(err, -EINVAL, "Batch script contains DOS line breaks (\\r\\n)");
        (void)error_hint(err, "instead of expected UNIX line breaks (\\n).");
        return error_mark(err, SLURM_BOTH, -EINVAL);
    }
    return 0;
}

int slurm_script_read(struct slurm_script *script, const char *file, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    bool is_input = file == NULL || strcmp(file, "-") == 0;
    _cleanup_free_ char *found = is_input ? NULL : find_in_path(file);
    _cleanup_close_ int fd = is_input ? dup(STDIN_FILENO) : open(found, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set(err, -errno, "Unable to open file %.200s", is_input ? "standard input" : file);
    int r = read_all(fd, &text, err);
    size_t mark = text_mark_length(text.bytes, text.length);
    if (mark > 0)
        memmove(text.bytes, text.bytes + mark, text.length -= mark);
    if (r == 0)
        r = check(&text, buffer_text(&text), err);
    if (r < 0)
        return r;
    _cleanup_free_ char *here = getcwd(NULL, 0);
    const char *slash = is_input ? NULL : strrchr(file, '/');
    script->path = is_input ? xasprintf("%s/slurm_script", here != NULL ? here : "") : realpath(found, NULL);
    if (script->path == NULL)
        script->path = xstrdup(found);
    script->name = xstrdup(is_input ? "sbatch" : slash != NULL ? slash + 1 : file);
    script->text = buffer_take(&text);
    return 0;
}

void slurm_script_wrap(struct slurm_script *script, const char *command)
{
    _cleanup_free_ char *here = getcwd(NULL, 0);
    script->path = xasprintf("%s/slurm_script", here != NULL ? here : "");
    script->name = xstrdup(WRAP_NAME);
    script->text = xasprintf("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n", command);
}

int slurm_script_insert(struct slurm_script *script, const char *file, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t line = strcspn(script->text, "\n");
    bool is_whole = script->text[line] == '\n';
    buffer_append(&text, script->text, line);
    buffer_append_text(&text, "\n");
    _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set(err, -EINVAL, "Invalid --bbf specification");
    int r = read_all(fd, &text, err);
    if (r < 0)
        return r;
    if (strlen(buffer_text(&text)) < text.length)
        return error_set(
            err, -EINVAL, "The Slurm controller does not allow scripts that contain a NULL character '\\0'.");
    buffer_append_text(&text, text.bytes[text.length - 1] == '\n' ? "" : "\n");
    buffer_append_text(&text, script->text + line + is_whole);
    free(script->text);
    script->text = buffer_take(&text);
    return 0;
}

void slurm_script_clear(struct slurm_script *script)
{
    free(script->path);
    free(script->text);
    free(script->name);
}
