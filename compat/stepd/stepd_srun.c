/* SPDX-License-Identifier: MIT */
/* Handles the frames that srun sends to slurmstepd. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "compat/stepd/stepd_private.h"

#define INPUT_FULL (4U << 20)  // unread bytes of a task above which srun is to wait
#define INPUT_MAX  (64U << 20) // this many are an error of srun, which has not waited

void stepd_signal_tasks(const struct stepd *stepd, uint32_t id, int number)
{
    for (uint32_t i = 0; i < stepd->count; i++)
        if (stepd->tasks[i].pid > 0 && (id == FRAME_ALL || id == stepd->tasks[i].id))
            (void)kill(stepd->tasks[i].pid, number);
}

/* The kinds of MPI have a place for each task number of this node, and for no others. */
static bool has_place(const struct stepd *stepd, uint32_t id)
{
    const uint32_t *first = stepd->mpi != NULL ? stepd->setup.first + stepd->setup.here : NULL;
    return first == NULL || (id >= first[0] && id < first[1]);
}

static int add_task(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (stepd->is_started || stepd->count >= STEPD_TASKS_MAX || !frame_words(frame, &words) ||
        words.count < 4)
        return error_set(err, -EBADMSG, "srun's message about a task is malformed");
    if (!has_place(stepd, frame->task))
        return error_set(err, -EBADMSG, "srun has sent task %u, which is not on this node", frame->task);
    size_t n_words = strtoul(words.items[1], NULL, 10);
    if (n_words < 1 || n_words > words.count - 3)
        return error_set(err, -EBADMSG, "srun's message about a task is malformed");
    stepd->tasks = xreallocarray(stepd->tasks, stepd->count + 1, sizeof(*stepd->tasks));
    struct stepd_task *task = &stepd->tasks[stepd->count++];
    *task = (struct stepd_task){ .id = frame->task,
        .local = (uint32_t)strtoul(words.items[0], NULL, 10),
        .input_path = words.items[2][0] != '\0' ? xstrdup(words.items[2]) : NULL,
        .fds = { -1, -1 },
        .input_fd = -1 };
    for (size_t i = 3; i < words.count; i++)
        strings_add(i < 3 + n_words ? &task->command : &task->variables, words.items[i]);
    return 0;
}

size_t stepd_unread(const struct stepd_task *task)
{
    return task->input.length - task->given;
}

void stepd_close_input(struct stepd_task *task)
{
    closep(&task->input_fd);
    task->given = task->input.length = 0;
}

/* A task that has not started gets no input; its input can only end. */
void stepd_give_input(struct stepd_task *task)
{
    if (task->pid == 0)
        return;
    while (task->input_fd >= 0 && stepd_unread(task) > 0) {
        ssize_t n = write(task->input_fd, task->input.bytes + task->given, stepd_unread(task));
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            stepd_close_input(task); // the task has closed its input
            return;
        }
        task->given += (size_t)n;
    }
    task->given = task->input.length = 0;
    if (task->is_input_over)
        stepd_close_input(task);
}

static int add_input(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        if (frame->task != FRAME_ALL && frame->task != task->id)
            continue;
        if (frame->type == FRAME_INPUT_END)
            task->is_input_over = true;
        else if (stepd_unread(task) + frame->length > INPUT_MAX)
            return error_set(err, -ENOBUFS, "task %u has not read %u MiB of its input, and srun sends more",
                task->id, INPUT_MAX >> 20);
        else if (task->input_fd >= 0) {
            if (task->given > stepd_unread(task))
                frame_drop(&task->input, &task->given);
            buffer_append(&task->input, frame->bytes, frame->length);
        }
        stepd_give_input(task);
    }
    return 0;
}

void stepd_report_input(struct stepd *stepd)
{
    size_t most = 0;
    for (uint32_t i = 0; i < stepd->count; i++)
        most = stepd_unread(&stepd->tasks[i]) > most ? stepd_unread(&stepd->tasks[i]) : most;
    bool is_full = most > (stepd->is_input_full ? INPUT_FULL / 2 : INPUT_FULL);
    if (is_full == stepd->is_input_full)
        return;
    stepd->is_input_full = is_full;
    stepd_put(stepd, is_full ? FRAME_INPUT_FULL : FRAME_INPUT_READY, FRAME_ALL, NULL, 0);
}

static void on_gathered(struct stepd *stepd, const struct frame *frame)
{
    size_t position = 0;
    uint64_t length = 0;
    if (stepd->mpi == NULL || !frame_number(frame, &position, 4, &length) ||
        length > frame->length - position)
        return;
    const uint8_t *key = frame->bytes + position, *data = key + length;
    stepd->mpi->gathered(
        stepd->mpi_state, key, (size_t)length, data, frame->length - position - (size_t)length);
}

static void on_modex(struct stepd *stepd, const struct frame *frame)
{
    size_t position = 0;
    uint64_t request = 0, status = 0;
    if (stepd->mpi == NULL || !frame_number(frame, &position, 8, &request))
        return;
    if (frame->type == FRAME_MODEX)
        stepd->mpi->asked(stepd->mpi_state, frame->task, request);
    else if (frame_number(frame, &position, 4, &status))
        stepd->mpi->fetched(stepd->mpi_state, request, (int)(int32_t)(uint32_t)status,
            frame->bytes + position, frame->length - position);
}

static int start_tasks(struct stepd *stepd, struct error *err)
{
    int r = stepd->is_started ? 0 : stepd_start(stepd, err);
    for (uint32_t i = 0; r == 0 && i < stepd->count; i++)
        stepd_give_input(&stepd->tasks[i]);
    return r;
}

int stepd_take(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    size_t position = 0;
    uint64_t number = 0;
    switch (frame->type) {
    case FRAME_ENVIRONMENT: (void)frame_words(frame, &stepd->environment); break;
    case FRAME_DIRECTORY:
        free(stepd->directory);
        stepd->directory = xstrndup((const char *)frame->bytes, frame->length);
        break;
    case FRAME_MPI: return stepd_open_mpi(stepd, frame, err);
    case FRAME_TASK: return add_task(stepd, frame, err);
    case FRAME_GO: return start_tasks(stepd, err);
    case FRAME_INPUT:
    case FRAME_INPUT_END: return add_input(stepd, frame, err);
    case FRAME_SIGNAL:
        if (frame_number(frame, &position, 4, &number))
            stepd_signal_tasks(stepd, frame->task, (int)number);
        break;
    case FRAME_GATHER: on_gathered(stepd, frame); break;
    case FRAME_MODEX:
    case FRAME_MODEX_ANSWER: on_modex(stepd, frame); break;
    default: break; // sent by a newer srun
    }
    return 0;
}

void stepd_clear(struct stepd *stepd)
{
    if (stepd->mpi != NULL)
        stepd->mpi->close(stepd->mpi_state);
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        free(task->input_path);
        strings_clear(&task->command);
        strings_clear(&task->variables);
        buffer_clear(&task->input);
        closep(&task->input_fd);
        closep(&task->fds[STREAM_OUTPUT]);
        closep(&task->fds[STREAM_ERRORS]);
    }
    free(stepd->tasks);
    strings_clear(&stepd->environment);
    strings_clear(&stepd->setup.nodes);
    free((char *)(uintptr_t)stepd->setup.name);
    free(stepd->setup.first);
    free(stepd->directory);
    buffer_clear(&stepd->in);
    buffer_clear(&stepd->out);
    closep(&stepd->wake_fd);
    closep(&stepd->signal_fd);
    (void)pthread_mutex_destroy(&stepd->lock);
}
