/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what two tasks of a step say by PMI, cut anywhere, and as the pairs that another node sends.
 * The input is a sequence of steps; the parser alone sees it whole before.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "compat/stepd/mpi.h"
#include "compat/stepd/pmi_store.h"
#include "compat/stepd/pmi_words.h"
#include "fuzz.h"
#include "input.h"

#define STEPS_MAX 200
#define TASKS     2

struct step {
    void *state;
    int fds[TASKS];
    struct input input;
};

static void read_whole(const uint8_t *bytes, size_t length, enum pmi_version version)
{
    struct buffer in = { 0 };
    struct pmi_store store = { 0 };
    buffer_append(&in, bytes, length);
    for (int r = 1; r == 1;) {
        struct strings words = { 0 };
        size_t before = in.length;
        r = pmi_words_take(&in, version, &words);
        if (r == 1 && in.length >= before)
            abort(); // no message is empty
        strings_clear(&words);
    }
    (void)pmi_store_read(&store, (const char *)bytes, length);
    pmi_store_clear(&store);
    buffer_clear(&in);
}

/* The other nodes send the same. */
static void gather(void *arg, const void *key, size_t key_length, const uint32_t *nodes, size_t n_nodes,
    const void *data, size_t length)
{
    struct step *step = arg;
    mpi_pmi2.gathered(step->state, key, key_length, data, length);
}

static void fetch(void *arg, uint32_t task, uint64_t request)
{
}

static void answer(void *arg, uint64_t request, int status, const void *data, size_t length)
{
}

static void abort_step(void *arg, int code, const char *message)
{
}

static void drain(const struct step *step)
{
    char answers[4096];
    for (size_t i = 0; i < TASKS; i++)
        while (step->fds[i] >= 0 && recv(step->fds[i], answers, sizeof(answers), MSG_DONTWAIT) > 0)
            continue;
}

static void take_step(struct step *step)
{
    static const char *const lines[] = {
        "cmd=init pmi_version=2 pmi_subversion=0\n",
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "cmd=barrier_in\n",
        "cmd=put kvsname=job key=a value=b\n",
        "cmd=get kvsname=job key=a\n",
        "cmd=finalize\n",
        "    13cmd=fullinit;",
        "    14cmd=kvs-fence;",
    };
    uint8_t op = input_byte(&step->input);
    uint32_t task = op & 1;
    const void *bytes = lines[op >> 2 & 7];
    size_t length = strlen(bytes);
    if (op & 2)
        bytes = input_run(&step->input, input_byte(&step->input), &length);
    if (step->fds[task] < 0)
        return;
    (void)send(step->fds[task], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (op & 64) {
        (void)close(step->fds[task]);
        step->fds[task] = -1;
    }
    struct pollfd there = { .fd = mpi_pmi2.fd(step->state, task), .events = POLLIN };
    if (there.fd >= 0 && poll(&there, 1, 0) > 0)
        mpi_pmi2.readable(step->state, task);
    drain(step);
}

static void converse(const uint8_t *bytes, size_t length)
{
    char name[] = "1.0", node[] = "box";
    char *nodes[] = { node, NULL };
    uint32_t first[] = { 0, TASKS };
    struct step step = { .fds = { -1, -1 }, .input = { bytes, length, 0 } };
    const struct mpi_setup setup = { .name = name, .nodes = { nodes, 1 }, .first = first };
    const struct mpi_acts acts = {
        .arg = &step, .gather = gather, .fetch = fetch, .answer = answer, .abort = abort_step
    };
    struct error err;
    if (mpi_pmi2.open(&setup, &acts, &step.state, &err) < 0)
        abort();
    for (uint32_t i = 0; i < TASKS; i++) {
        struct strings env = { 0 };
        if (mpi_pmi2.prepare(step.state, i, &env, &step.fds[i], &err) < 0)
            abort();
        strings_clear(&env);
    }
    for (size_t i = 0; i < STEPS_MAX && step.input.at < length; i++)
        take_step(&step);
    mpi_pmi2.close(step.state);
    for (size_t i = 0; i < TASKS; i++)
        if (step.fds[i] >= 0)
            (void)close(step.fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    (void)signal(SIGPIPE, SIG_IGN); // as slurmstepd does
    read_whole(bytes, length, PMI_ONE);
    read_whole(bytes, length, PMI_TWO);
    converse(bytes, length);
    return 0;
}
