/* SPDX-License-Identifier: MIT */
#include "cli/submit/slurm_notes.h"

#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"

#define PREFIX        "SLURM"
#define NAMES_MAX     8U // variables named per note
#define NAME_MAX_SIZE 64U

static const struct {
    const char *name, *ours;
} variables[] = {
    { "SLURM_JOB_ID", "MGPU_JOB_ID" },
    { "SLURM_JOBID", "MGPU_JOB_ID" },
    { "SLURM_JOB_NAME", "MGPU_JOB_NAME" },
    { "SLURM_ARRAY_TASK_ID", "MGPU_ARRAY_INDEX" },
    { "SLURM_ARRAY_JOB_ID", "MGPU_ARRAY_JOB" },
    { "SLURM_PROCID", "MGPU_NODE_RANK" },
    { "SLURM_NODEID", "MGPU_NODE_RANK" },
    { "SLURM_NNODES", "MGPU_NNODES" },
    { "SLURM_JOB_NUM_NODES", "MGPU_NNODES" },
    { "SLURM_NODELIST", "MGPU_NODELIST" },
    { "SLURM_JOB_NODELIST", "MGPU_NODELIST" },
    { "SLURM_GPUS", "MGPU_NUM_GPUS" },
    { "SLURM_GPUS_ON_NODE", "MGPU_NUM_GPUS" },
    { "SLURM_SUBMIT_DIR", "PWD" },
    { "SLURMD_NODENAME", "MGPU_NODE" },
};

static const char *our_name(const char *name)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (strcmp(variables[i].name, name) == 0)
            return variables[i].ours;
    return NULL;
}

static bool is_of_name(char c)
{
    return isupper((unsigned char)c) || isdigit((unsigned char)c) || c == '_';
}

/* The variables that the text reads, in order, each once; those that it sets itself are excluded. */
static void find_variables(const char *text, struct strings *names)
{
    for (const char *p = strstr(text, PREFIX); p != NULL && names->count < NAMES_MAX; p = strstr(p, PREFIX)) {
        size_t length = 0;
        while (is_of_name(p[length]))
            length++;
        bool is_name = (p == text || !is_of_name(p[-1])) && memchr(p, '_', length) != NULL;
        _cleanup_free_ char *name = xstrndup(p, length < NAME_MAX_SIZE ? length : NAME_MAX_SIZE);
        _cleanup_free_ char *assigned = xasprintf("%s=", name);
        bool is_known = strstr(text, assigned) != NULL;
        for (size_t i = 0; i < names->count; i++)
            is_known |= strcmp(names->items[i], name) == 0;
        if (is_name && !is_known)
            strings_add(names, name);
        p += length;
    }
}

static void print_variables(const struct script *script)
{
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_buffer_ struct buffer line = { 0 };
    find_variables(script->text != NULL ? script->text : script->head, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *ours = our_name(names.items[i]);
        buffer_printf(&line, "%s%s%s%s%s", i > 0 ? ", " : "", names.items[i], ours != NULL ? " (use " : "",
            ours != NULL ? ours : "", ours != NULL ? ")" : "");
    }
    if (names.count > 0)
        talk_line("%s uses variables of Slurm, which are not set here: %s", script->path, buffer_text(&line));
}

void slurm_notes_print(const struct script *script, const json_t *ask)
{
    print_variables(script);
    bool asks = json_object_get(ask, "gpus") != NULL || json_object_get(ask, "gpu_ids") != NULL;
    if (script->is_slurm && !asks)
        talk_line(
            "%s requests no GPU and gets one, the default here; #SBATCH --gpus=0 for none", script->path);
}
