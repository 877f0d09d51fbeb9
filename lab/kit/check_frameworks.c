/* SPDX-License-Identifier: MIT */
/*
 * Training programs of frameworks that the machine has, parked in the middle: each prints its loss bit for
 * bit, and must print what the same program prints that is not parked. Without the framework they are
 * skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define IMPORT_MS  60000
#define PROGRAM_MS 90000
#define BEGUN      "step 100 " // it is parked once it has printed that
#define LINE       200U

struct framework {
    const char *name, *file;
    const char *import; // prints its version, and fails where it sees no GPU
    const char *program;
};

/* DataLoader workers, pinned memory, a CUDA graph, and Adam. */
static const struct framework torch = { "PyTorch", "train_torch.py",
    "import torch; print(torch.__version__); assert torch.cuda.is_available()",
    "import os; os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')\n"
    "import time, torch\n"
    "from torch.utils.data import DataLoader, TensorDataset\n"
    "def main():\n"
    "    torch.manual_seed(1); torch.use_deterministic_algorithms(True)\n"
    "    data = TensorDataset(torch.randn(4096, 256), torch.randn(4096, 1)); g = torch.Generator(); "
    "g.manual_seed(3)\n"
    "    loader = DataLoader(data, batch_size=256, shuffle=True, generator=g, num_workers=2, "
    "pin_memory=True,\n"
    "                        persistent_workers=True)\n"
    "    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, "
    "1)).cuda()\n"
    "    adam = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)\n"
    "    x = torch.zeros(256, 256, device='cuda'); y = torch.zeros(256, 1, device='cuda')\n"
    "    def learn():\n"
    "        loss = ((model(x) - y) ** 2).mean(); loss.backward(); adam.step(); return loss\n"
    "    side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())\n"
    "    with torch.cuda.stream(side):\n"
    "        for _ in range(3): adam.zero_grad(set_to_none=True); learn()\n"
    "    torch.cuda.current_stream().wait_stream(side)\n"
    "    graph = torch.cuda.CUDAGraph(); adam.zero_grad(set_to_none=True)\n"
    "    with torch.cuda.graph(graph): loss = learn()\n"
    "    step = 0\n"
    "    while step < 600:\n"
    "        for a, b in loader:\n"
    "            x.copy_(a, non_blocking=True); y.copy_(b, non_blocking=True); graph.replay(); step += 1\n"
    "            if step % 50 == 0: print('step', step, 'loss', loss.item().hex(), flush=True)\n"
    "            time.sleep(0.008)\n"
    "            if step == 600: break\n"
    "if __name__ == '__main__': main()\n" };

static const struct framework jax = { "JAX", "train_jax.py",
    "import jax; print(jax.__version__); assert jax.devices()[0].platform == 'gpu'",
    "import os; os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'\n"
    "import time, jax, jax.numpy as jnp\n"
    "loss = lambda w, x: jnp.mean((jnp.tanh(x @ w) - 0.5) ** 2)\n"
    "learn = jax.jit(lambda w, x: w - 1e-3 * jax.grad(loss)(w, x))\n"
    "w = jax.random.normal(jax.random.PRNGKey(0), (512, 512)); x = jax.random.normal(jax.random.PRNGKey(1), "
    "(256, 512))\n"
    "for step in range(1, 601):\n"
    "    w = learn(w, x)\n"
    "    if step % 50 == 0: print('step', step, 'loss', float(jnp.abs(w).sum()).hex(), flush=True)\n"
    "    time.sleep(0.008)\n" };

/* False after result_skip(). */
static bool has_framework(struct kit *kit, const struct framework *framework, struct result *result)
{
    const char *const import[] = { "python3", "-c", framework->import, NULL };
    _cleanup_output_ struct child_output output = { 0 };
    char line[LINE];
    int r = child_run(import, kit_left_ms(kit, IMPORT_MS), &output);
    text_last_line(output.out, line, sizeof(line));
    if (r == 0 && output.status == 0) {
        result_fact(result, "version", json_string(line));
        return true;
    }
    result_skip(result, "there is no python3 with a %s that sees a GPU", framework->name);
    return false;
}

/* The path of its program in the kit's folder, which the caller frees; NULL after result_fail(). */
static char *write_program(const struct kit *kit, const struct framework *framework, struct result *result)
{
    char *path = xasprintf("%s/%s", kit->work, framework->file);
    FILE *file = fopen(path, "we");
    bool is_written = file != NULL && fputs(framework->program, file) >= 0;
    is_written = file != NULL && fclose(file) == 0 && is_written;
    if (is_written)
        return path;
    result_fail(result, "cannot write %s", path);
    free(path);
    return NULL;
}

/* The lines of a program's output that tell a loss. The caller frees them. */
static char *losses_of(struct kit *kit, int64_t job)
{
    struct buffer losses = { 0 };
    _cleanup_free_ char *output = instance_output(kit, job);
    char *rest = output;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (strncmp(line, "step ", strlen("step ")) == 0)
            buffer_printf(&losses, "%s\n", line);
    return buffer_take(&losses);
}

/* The losses of a run that has ended well, which the caller frees; NULL after result_fail(). */
static char *await_losses(struct kit *kit, int64_t job, struct result *result)
{
    json_t *record = probe_wait(kit, job, PROGRAM_MS, result);
    bool is_done = record != NULL && text_equal(record_word(record, "state"), "done");
    if (record != NULL && !is_done)
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    json_decref(record);
    return is_done ? losses_of(kit, job) : NULL;
}

static int64_t start_program(struct kit *kit, const char *path, struct result *result)
{
    const char *const command[] = { "python3", path, NULL };
    struct error err = { 0 };
    int64_t job = instance_submit(kit, parking_gpu, command, &err);
    if (job < 0)
        result_fail(result, "%s", err.message);
    return job;
}

static void park_program(struct kit *kit, const struct framework *framework, struct result *result)
{
    struct result attempt = { 0 };
    if (kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    if (kit->no_park != NULL || !has_framework(kit, framework, result))
        return;
    _cleanup_free_ char *path = write_program(kit, framework, result);
    int64_t job = path == NULL ? -1 : start_program(kit, path, result);
    _cleanup_free_ char *expected = job < 0 ? NULL : await_losses(kit, job, result);
    job = expected == NULL ? -1 : start_program(kit, path, result);
    if (job < 0)
        return;
    if (instance_await_output(kit, job, BEGUN, 1, PROGRAM_MS) < 0)
        result_fail(&attempt, "the job printed no loss");
    bool is_back = attempt.outcome != OUTCOME_FAILED && parking_cycle(kit, job, PARKING_MS, &attempt);
    result_fact(result, "attempt", attempt.facts != NULL ? attempt.facts : json_null());
    _cleanup_free_ char *losses = await_losses(kit, job, result);
    if (losses == NULL)
        return;
    if (attempt.outcome == OUTCOME_FAILED)
        result_fail(result, "%s", attempt.text);
    else if (expected[0] == '\0' || strcmp(losses, expected) != 0)
        result_fail(result, "its losses are not those of the same program that was not parked");
    else if (is_back)
        result_pass(result, "parked and resumed; its losses are equal bit for bit");
    else
        result_pass(result, "%s; its losses are equal bit for bit", attempt.text);
}

static void check_torch(struct kit *kit, struct result *result)
{
    park_program(kit, &torch, result);
}

static void check_jax(struct kit *kit, struct result *result)
{
    park_program(kit, &jax, result);
}

const struct check kit_framework_checks[] = {
    { "park-torch", "a PyTorch training parked", 45000, NEED_JOBS, check_torch, RANK_MIDDLE },
    { "park-jax", "a JAX training parked", 40000, NEED_JOBS, check_jax, RANK_MIDDLE },
    { 0 },
};
