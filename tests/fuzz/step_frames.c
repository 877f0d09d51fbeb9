/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the frames of a step, cut anywhere: those of two slurmstepd in front of srun, and those of
 * srun in front of slurmstepd. The same bytes have the same effect however they are cut; a node ends and
 * prints only its own tasks, the output of each is what its node has sent, and whatever is sent on is a frame
 * that a node may get.
 *
 * The first byte chooses the side (bit 0), raw bytes or frames made here (bit 1), and the cuts (the rest).
 * Frames are made of type, task, length and payload; behind each byte of a node in front of srun.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "compat/step/labels.h"
#include "compat/step/step_peer.h"
#include "compat/stepd/stepd.h"
#include "compat/stepd/stepd_private.h"
#include "fuzz.h"
#include "input.h"

#define NODES       2U
#define TASKS       3U
#define FIRST_FAKE  (1 << 30) // no process has such a number
#define NODE_SHIFT  48U
#define STREAM_SIZE 60000U // fits in a socket

/* --- frames of the input --- */

/* Types are letters; those that nobody knows are ignored. */
static void make_frame(struct input *input, struct buffer *out)
{
    static const uint32_t tasks[] = { 0, 1, 2, 3, FRAME_ALL };
    uint8_t type = input_byte(input);
    uint32_t task = tasks[input_byte(input) % (sizeof(tasks) / sizeof(tasks[0]))];
    size_t length = input_byte(input);
    const uint8_t *payload = input_run(input, length, &length);
    frame_put(out, (enum frame_type)type, task, payload, length);
}

/* Whatever a program has sent: whole frames. Returns a sum over them. */
static uint32_t sum_frames(const struct buffer *out, void (*check)(const struct frame *frame))
{
    struct frame frame;
    size_t position = 0;
    int r;
    while ((r = frame_take(out, &position, &frame)) > 0)
        check(&frame);
    must_be(r == 0 && position == out->length);
    return crc32c(0, out->bytes, out->length);
}

/* --- srun --- */

static const uint32_t node_of[TASKS] = { 0, 0, 1 };
static uint32_t speaker; // node whose bytes srun reads
static bool is_terminated;
static uint32_t ends;

/* In the place of step_run.c: it would print, and wait for KillWait. */
void step_task_end(struct step *step, struct step_task *task, int status)
{
    must_be(task->is_running && task->node == speaker && task == &step->tasks[task->id]);
    task->is_running = false;
    ends = ends * 31 + task->id + (uint32_t)status;
}

void step_terminate(struct step *step)
{
    is_terminated = true;
}

static void check_for_node(const struct frame *frame)
{
    size_t position = 0;
    uint64_t number = 0;
    if (frame->type == FRAME_GATHER) {
        must_be(frame_number(frame, &position, 4, &number) && number <= frame->length - position);
        return;
    }
    must_be(frame->type == FRAME_MODEX || frame->type == FRAME_MODEX_ANSWER);
    must_be(frame_number(frame, &position, 8, &number));
    must_be(frame->type == FRAME_MODEX ? number >> NODE_SHIFT < NODES : number >> NODE_SHIFT == 0);
}

struct stage {
    struct slurm_job job;
    struct step step;
    struct step_task tasks[TASKS];
    struct step_peer peers[NODES];
    struct labels labels;
    int fds[NODES];
};

static void stage_open(struct stage *stage)
{
    static uint32_t ranks[NODES] = { 0, 1 };
    *stage = (struct stage){ .job = { .is_quiet = true } };
    stage->step = (struct step){
        .job = &stage->job, .ranks = ranks, .tasks = stage->tasks, .count = TASKS, .peers = stage->peers
    };
    strings_add(&stage->step.nodes, "a");
    strings_add(&stage->step.nodes, "b");
    for (uint32_t i = 0; i < TASKS; i++) {
        stage->tasks[i] = (struct step_task){ .id = i, .node = node_of[i], .is_running = true };
        for (size_t k = 0; k < 2; k++)
            must_be((stage->tasks[i].files[k] = memfd_create("output", MFD_CLOEXEC)) >= 0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        int ends_of[2];
        must_be(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_of) == 0);
        stage->peers[i] = (struct step_peer){ .node = i, .fd = ends_of[0] };
        stage->fds[i] = ends_of[1];
    }
    is_terminated = false;
    ends = 1;
}

static uint32_t sum_file(int fd, uint32_t sum)
{
    char piece[4096];
    ssize_t n;
    must_be(lseek(fd, 0, SEEK_SET) == 0);
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        sum = crc32c(sum, piece, (size_t)n);
    return sum;
}

static uint32_t stage_close(struct stage *stage)
{
    uint32_t sum = ends * 2 + is_terminated;
    for (uint32_t i = 0; i < NODES; i++) {
        sum = sum * 31 + sum_frames(&stage->peers[i].out, check_for_node);
        sum = sum * 31 + (stage->peers[i].fd < 0);
        step_peer_clear(&stage->peers[i]);
        (void)close(stage->fds[i]);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        const struct step_task *task = &stage->tasks[i];
        sum = sum * 31 + (uint32_t)task->usage.max_rss + task->is_out_of_memory;
        for (size_t k = 0; k < 2; k++) {
            sum = sum_file(task->files[k], sum);
            (void)close(task->files[k]);
        }
    }
    step_gathers_clear(&stage->step);
    strings_clear(&stage->step.nodes);
    return sum;
}

struct run_of_node {
    uint32_t node;
    struct buffer bytes;
};

/* What the nodes say, in pieces; the order between the nodes stays. */
static uint32_t tell_srun(const struct run_of_node *runs, size_t count, size_t piece)
{
    struct stage stage;
    stage_open(&stage);
    for (size_t i = 0; i < count; i++) {
        struct step_peer *peer = &stage.peers[runs[i].node];
        speaker = runs[i].node;
        for (size_t at = 0; at < runs[i].bytes.length && peer->fd >= 0;) {
            size_t left = runs[i].bytes.length - at, n = left < piece ? left : piece;
            must_be(send(stage.fds[speaker], runs[i].bytes.bytes + at, n, MSG_NOSIGNAL) == (ssize_t)n);
            step_peer_serve(&stage.step, peer, POLLIN, &stage.labels);
            at += n;
        }
    }
    return stage_close(&stage);
}

/* Output of a task that its own node has sent as frames, in this order. */
static void check_outputs(const struct run_of_node *runs, size_t count)
{
    struct stage stage;
    uint32_t wanted[TASKS] = { 0 };
    stage_open(&stage);
    for (size_t i = 0; i < count; i++) {
        struct frame frame;
        size_t position = 0;
        speaker = runs[i].node;
        if (runs[i].bytes.length == 0)
            continue;
        must_be(frame_take(&runs[i].bytes, &position, &frame) == 1);
        if (frame.type == FRAME_OUTPUT && frame.task < TASKS && node_of[frame.task] == speaker)
            wanted[frame.task] = crc32c(wanted[frame.task], frame.bytes, frame.length);
        must_be(send(stage.fds[speaker], runs[i].bytes.bytes, runs[i].bytes.length, MSG_NOSIGNAL) ==
                (ssize_t)runs[i].bytes.length);
        step_peer_serve(&stage.step, &stage.peers[speaker], POLLIN, &stage.labels);
    }
    for (size_t i = 0; i < TASKS; i++)
        must_be(sum_file(stage.tasks[i].files[0], 0) == wanted[i]);
    (void)stage_close(&stage);
}

static void try_srun(struct input *input, bool is_raw, size_t piece)
{
    enum { RUNS_MAX = 64 };
    struct run_of_node runs[RUNS_MAX] = { 0 };
    size_t count = 0;
    while (input->at < input->length && count < RUNS_MAX) {
        struct run_of_node *run = &runs[count++];
        run->node = input_byte(input) % NODES;
        if (is_raw) {
            size_t n = input_byte(input);
            const uint8_t *bytes = input_run(input, n, &n);
            buffer_append(&run->bytes, bytes, n);
        } else {
            make_frame(input, &run->bytes);
        }
    }
    must_be(tell_srun(runs, count, STREAM_SIZE) == tell_srun(runs, count, piece));
    if (!is_raw)
        check_outputs(runs, count);
    for (size_t i = 0; i < count; i++)
        buffer_clear(&runs[i].bytes);
}

/* --- slurmstepd --- */

static int input_ends[STEPD_TASKS_MAX]; // what the tasks read

/* In the place of stepd_start.c: tasks that are none, with a pipe as their input. */
int stepd_start(struct stepd *stepd, struct error *err)
{
    must_be(!stepd->is_started);
    stepd->is_started = true;
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        int fds[2];
        must_be(task->command.count > 0 && task->command.items[task->command.count] == NULL);
        if (stepd->mpi != NULL) {
            struct strings env = { 0 };
            int fd = -1;
            must_be(stepd->mpi->prepare(stepd->mpi_state, task->id, &env, &fd, err) == 0);
            strings_clear(&env);
            (void)close(fd);
        }
        must_be(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        input_ends[i] = fds[0];
        task->input_fd = fds[1];
        task->pid = FIRST_FAKE + (int)i;
    }
    return 0;
}

/* In the place of stepd.c: its loop. */
int stepd_run(int in_fd, int out_fd)
{
    abort(); // no node is started here
}

void stepd_put(struct stepd *stepd, enum frame_type type, uint32_t task, const void *bytes, size_t length)
{
    frame_put(&stepd->out, type, task, bytes, length);
}

static void check_for_srun(const struct frame *frame)
{
    must_be(frame->type == FRAME_GATHER || frame->type == FRAME_MODEX || frame->type == FRAME_MODEX_ANSWER ||
            frame->type == FRAME_ABORT);
}

static uint32_t sum_words(const struct strings *words)
{
    uint32_t sum = (uint32_t)words->count;
    for (size_t i = 0; i < words->count; i++)
        sum = crc32c(sum, words->items[i], strlen(words->items[i]) + 1);
    return sum;
}

static uint32_t read_input(struct stepd_task *task, int fd)
{
    uint8_t piece[4096];
    uint32_t sum = 0;
    ssize_t n;
    do {
        stepd_give_input(task);
        while ((n = read(fd, piece, sizeof(piece))) > 0)
            sum = crc32c(sum, piece, (size_t)n);
    } while (task->input_fd >= 0 && task->given < task->input.length);
    must_be(task->is_input_over == (n == 0)); // it reads the end when srun has sent it, and not before
    (void)close(fd);
    return sum;
}

static uint32_t stepd_sum(struct stepd *stepd)
{
    uint32_t sum = sum_frames(&stepd->out, check_for_srun) + sum_words(&stepd->environment);
    if (stepd->directory != NULL)
        sum = crc32c(sum, stepd->directory, strlen(stepd->directory));
    must_be(stepd->count <= STEPD_TASKS_MAX);
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        sum = sum * 31 + task->id + sum_words(&task->command) + sum_words(&task->variables);
        if (stepd->mpi != NULL)
            (void)stepd->mpi->fd(stepd->mpi_state, task->id); // as its loop does
        if (task->pid != 0)
            sum = sum * 31 + read_input(task, input_ends[i]);
    }
    return sum;
}

static uint32_t tell_stepd(const struct buffer *bytes, size_t piece)
{
    struct stepd stepd = { .in_fd = -1, .out_fd = -1, .wake_fd = -1, .signal_fd = -1 };
    struct frame frame;
    struct error err = { 0 };
    int r = 0;
    for (size_t at = 0; at < bytes->length && r >= 0;) {
        size_t n = bytes->length - at < piece ? bytes->length - at : piece;
        buffer_append(&stepd.in, bytes->bytes + at, n);
        at += n;
        while (r >= 0 && (r = frame_take(&stepd.in, &stepd.taken, &frame)) > 0) {
            r = stepd_take(&stepd, &frame, &err);
            must_be(r >= 0 || err.message[0] != '\0');
        }
        frame_drop(&stepd.in, &stepd.taken);
    }
    uint32_t sum = stepd_sum(&stepd) + (uint32_t)r;
    stepd_clear(&stepd);
    return sum;
}

static void try_stepd(struct input *input, bool is_raw, size_t piece)
{
    struct buffer bytes = { 0 };
    if (is_raw) {
        size_t n = 0;
        const uint8_t *run = input_run(input, STREAM_SIZE, &n);
        buffer_append(&bytes, run, n);
    }
    while (!is_raw && input->at < input->length)
        make_frame(input, &bytes);
    must_be(tell_stepd(&bytes, bytes.length + 1) == tell_stepd(&bytes, piece));
    buffer_clear(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct input input = { bytes, length, 0 };
    uint8_t how = input_byte(&input);
    size_t piece = (size_t)(how >> 2) + 1;
    if (length > STREAM_SIZE / 2)
        return 0;
    if (how & 1)
        try_stepd(&input, how & 2, piece);
    else
        try_srun(&input, how & 2, piece);
    return 0;
}
