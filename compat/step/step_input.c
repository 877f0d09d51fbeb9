/* SPDX-License-Identifier: MIT */
#include "compat/step/step_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "compat/step/step_peer.h"

#define READ_SIZE   65536
#define BACKLOG_MAX (1U << 20) // unread bytes of a task above which reading stops

/* "3" is a task; any other text is a file. */
static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* True if reading it returns nothing. */
static bool is_null(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

static bool is_for(const struct step *step, const struct step_task *task)
{
    const char *input = step->job->input;
    if (input == NULL || strcmp(input, "all") == 0 || !is_number(input))
        return true;
    return strtoul(input, NULL, 10) == task->id;
}

enum step_input_kind step_input_kind(const struct step *step, const struct step_task *task)
{
    const char *input = step->job->input;
    bool has_file = input != NULL && strcmp(input, "all") != 0 && !is_number(input);
    if (step->job->is_on_terminal)
        return task->id == 0 ? STEP_INPUT_SAME : STEP_INPUT_NONE;
    if (has_file && strchr(input, '%') != NULL)
        return STEP_INPUT_FILE;
    if (!is_for(step, task) || (has_file && strcmp(input, "none") == 0) || is_null(STDIN_FILENO))
        return STEP_INPUT_NONE;
    bool is_alone = step->count == 1 || (input != NULL && is_number(input));
    return is_alone && isatty(STDIN_FILENO) != 1 ? STEP_INPUT_SAME : STEP_INPUT_PIPE;
}

int step_input_open(struct step_input *input, const struct step *step, struct error *err)
{
    const char *text = step->job->input;
    bool is_word = text == NULL || strcmp(text, "all") == 0 || strcmp(text, "none") == 0 || is_number(text);
    *input = (struct step_input){ .only = FRAME_ALL };
    if (text != NULL && is_number(text)) {
        unsigned long task = strtoul(text, NULL, 10);
        if (task >= step->count)
            return error_set(err, -EINVAL, "--input: the step has no task %.20s", text);
        input->only = (uint32_t)task;
    }
    if (!is_word && strchr(text, '%') == NULL) {
        _cleanup_close_ int fd = open(text, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0) {
            int r = error_set_errno(err, -errno, "Could not open stdin file");
            (void)error_hint(err, "the file is %.200s", text);
            return r;
        }
    }
    for (uint32_t i = 0; i < step->count; i++) {
        const struct step_task *task = &step->tasks[i];
        enum step_input_kind kind = step_input_kind(step, task);
        bool is_peer = step_has_peer(step, task->node);
        input->is_open |= kind == STEP_INPUT_PIPE || (is_peer && kind == STEP_INPUT_SAME);
    }
    input->pending = xcalloc(step->count, sizeof(*input->pending));
    input->given = xcalloc(step->count, sizeof(*input->given));
    return 0;
}

static size_t behind(const struct step_input *input, uint32_t task)
{
    return input->pending[task].length - input->given[task];
}

static bool is_full(const struct step_input *input, const struct step *step)
{
    for (uint32_t i = 0; i < step->count; i++)
        if (behind(input, i) > BACKLOG_MAX)
            return true;
    for (uint32_t i = 0; i < step->nodes.count; i++)
        if (step_peer_is_full(&step->peers[i]))
            return true;
    return false;
}

void step_input_fill(const struct step_input *input, const struct step *step, struct pollfd *sources)
{
    bool is_read = input->is_open && !is_full(input, step);
    sources[0] = (struct pollfd){ .fd = is_read ? STDIN_FILENO : -1, .events = POLLIN };
    for (uint32_t i = 0; i < step->count; i++)
        sources[1 + i] =
            (struct pollfd){ .fd = behind(input, i) > 0 ? step->tasks[i].input_fd : -1, .events = POLLOUT };
}

static void close_task(struct step_input *input, struct step_task *task)
{
    closep(&task->input_fd);
    task->input_fd = -1;
    input->given[task->id] = input->pending[task->id].length = 0;
}

static void give(struct step_input *input, struct step_task *task)
{
    struct buffer *pending = &input->pending[task->id];
    size_t *given = &input->given[task->id];
    while (task->input_fd >= 0 && *given < pending->length) {
        ssize_t n = write(task->input_fd, pending->bytes + *given, pending->length - *given);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            close_task(input, task); // the task has closed its input
            return;
        }
        *given += (size_t)n;
    }
    *given = pending->length = 0;
    if (!input->is_open)
        close_task(input, task);
}

static void pass(struct step_input *input, struct step *step, const uint8_t *bytes, size_t length)
{
    enum frame_type type = length > 0 ? FRAME_INPUT : FRAME_INPUT_END;
    for (uint32_t i = 0; i < step->nodes.count; i++)
        step_peer_put(&step->peers[i], type, input->only, bytes, length);
    for (uint32_t i = 0; i < step->count; i++) {
        if (step->tasks[i].input_fd < 0)
            continue;
        buffer_append(&input->pending[i], bytes, length);
        give(input, &step->tasks[i]);
    }
}

void step_input_serve(struct step_input *input, struct step *step, const struct pollfd *sources)
{
    uint8_t piece[READ_SIZE];
    for (uint32_t i = 0; i < step->count; i++)
        if (sources[1 + i].revents != 0)
            give(input, &step->tasks[i]);
    if (sources[0].revents == 0)
        return;
    ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    input->is_open = n > 0;
    pass(input, step, piece, n > 0 ? (size_t)n : 0);
}

void step_input_clear(struct step_input *input, struct step *step)
{
    for (uint32_t i = 0; input->pending != NULL && i < step->count; i++) {
        closep(&step->tasks[i].input_fd);
        step->tasks[i].input_fd = -1;
        buffer_clear(&input->pending[i]);
    }
    free(input->pending);
    free(input->given);
}
