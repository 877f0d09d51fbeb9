/* SPDX-License-Identifier: MIT */
/*
 * mgpu-gpu-test: uses a GPU through CUDA's driver API, or an AMD GPU through HIP, and says what came of it.
 * `mgpu gpu test` runs it as a job; the kit for new hardware runs all of its verbs. It needs the
 * driver, for AMD GPUs also ROCm's libraries, and no toolkit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/version.h"
#include "lab/cuda/probes.h"
#include "lab/cuda/together.h"

#define SECONDS_MAX 86400.0

static const struct {
    const char *name, *help;
    probe_fn *run;
    enum { OF_A_GPU, OF_NVIDIA, OF_HIP, PLAIN } kind; // plain: it needs no driver
} verbs[] = {
    { "health", "speeds of copies and products, and a pattern in the memory", probe_health },
    { "scrub", "overwrite all free memory, and check it", probe_scrub },
    { "list", "the GPUs as the driver numbers them", probe_list },
    { "hold", "take memory (256M), keep it for some seconds, and check it", probe_hold },
    { "need", "take memory, or end with the driver's out of memory", probe_need },
    { "fault", "write to an address that is not mapped: expected to fail", probe_fault },
    { "managed", "memory that GPU and program share", probe_managed },
    { "peers", "each pair of GPUs: access, kind of link, speed of copies", probe_peers, OF_NVIDIA },
    { "reduce", "all-reduces of NCCL over all GPUs for some seconds, each compared", probe_reduce,
        OF_NVIDIA },
    { "compile", "translate the programs for an AMD GPU, which need not be present", probe_compile, OF_HIP },
    { "ram", "take host memory (64M), and touch it", probe_ram, PLAIN },
    { "idle", "wait for some seconds without a GPU", probe_idle, PLAIN },
    { "limits", "processors, and limits of the control group", probe_limits, PLAIN },
    { "nodes", "which device nodes of GPUs can be opened", probe_nodes, PLAIN },
    { "nvml", "the GPUs that NVML can open", probe_nvml, PLAIN },
    { "open", "whether /dev/nvidiactl can be opened", probe_open, PLAIN },
};

struct command_line {
    struct probe_options options;
    bool is_help, is_version;
};

static int set_memory(void *target, const char *value, struct error *err)
{
    return parse_size(value, "--memory", &((struct command_line *)target)->options.memory_bytes, err);
}

static int set_seconds(void *target, const char *value, struct error *err)
{
    return parse_number(
        value, "--seconds", SECONDS_MAX, &((struct command_line *)target)->options.seconds, err);
}

static const struct option_row rows[] = {
    { 'g', "gpu", "N", "the driver's number of the GPU",
        OPTION_VALUE(integer, struct command_line, options.gpu), OPTION_RANGE(0, 1023), .preset = "0" },
    { 'm', "memory", "SIZE", "how much memory to use", set_memory },
    { 's', "seconds", "N", "how long to hold it", set_seconds, "1" },
    { 'c', "until-continued", NULL, "hold it until the process was stopped and continued, as by parking",
        OPTION_VALUE(flag, struct command_line, options.is_until_continued) },
    { 'p', "processes", "N", "of hold: number of processes, each with that memory",
        OPTION_VALUE(integer, struct command_line, options.processes), OPTION_RANGE(1, 64), .preset = "1" },
    { 0, "nccl-library", "FILE", "of reduce: NCCL",
        OPTION_VALUE(library, struct command_line, options.nccl_library), .preset = "auto" },
    { 0, "nvml-library", "FILE", "of nvml: NVML",
        OPTION_VALUE(library, struct command_line, options.nvml_library), .preset = "auto" },
    { 0, "cuda-library", "FILE", "the NVIDIA driver's library",
        OPTION_VALUE(library, struct command_line, options.cuda_library), .preset = "auto" },
    { 0, "hip-library", "FILE", "HIP, through which AMD GPUs are used; if there is no CUDA",
        OPTION_VALUE(library, struct command_line, options.hip_library), .preset = "auto" },
    { 'a', "arch", "NAME", "of compile: the kind of GPU, such as gfx90a",
        OPTION_VALUE(text, struct command_line, options.arch) },
    { 'h', "help", NULL, "show this help", OPTION_VALUE(flag, struct command_line, is_help) },
    { 'V', "version", NULL, "show the version", OPTION_VALUE(flag, struct command_line, is_version) },
    { 0 },
};
static const struct option_row *const tables[] = { rows, NULL };

static void print_help(void)
{
    (void)puts(
        "Usage: mgpu-gpu-test [OPTION]... [VERB]\n"
        "Tests a GPU through the NVIDIA driver, or an AMD GPU through HIP. Without a verb: health. Verbs:");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        (void)printf("  %-8s %s\n", verbs[i].name, verbs[i].help);
    options_print(rows, stdout);
    (void)puts("Exit status: 0 right, 1 wrong, 2 wrong use, 77 no driver or no GPU.");
}

/* CUDA, or where that is missing HIP. A file that is named decides. */
static int load(const struct probe_options *options, struct cuda_api *api, struct error *err)
{
    if (options->cuda_library != NULL)
        return cuda_api_load(RUNTIME_CUDA, options->cuda_library, api, err);
    if (options->hip_library != NULL)
        return cuda_api_load(RUNTIME_HIP, options->hip_library, api, err);
    struct error of_hip = { 0 };
    if (cuda_api_load(RUNTIME_CUDA, NULL, api, err) == 0 ||
        cuda_api_load(RUNTIME_HIP, NULL, api, &of_hip) == 0)
        return 0;
    return error_set(err, -ENODEV, "%s; %s", err->message, of_hip.message);
}

/* Whether the library has what the verb needs; after a sentence where not. */
static bool is_of(const struct cuda_api *api, size_t verb)
{
    enum gpu_runtime runtime = api->runtime;
    if (verbs[verb].kind == OF_A_GPU || verbs[verb].kind == (runtime == RUNTIME_HIP ? OF_HIP : OF_NVIDIA))
        return true;
    struct error err = { 0 };
    (void)error_set(&err, -ENODEV, "%s is not made with %s", verbs[verb].name, cuda_api_word(api));
    (void)probe_failed(&err);
    return false;
}

/* With the driver loaded, in this process. */
static int run_driver(const struct probe_options *options, void *arg)
{
    const size_t *verb = arg;
    struct cuda_api api;
    struct error err = { 0 };
    if (load(options, &api, &err) < 0) {
        (void)fprintf(stderr, "mgpu-gpu-test: %s\n", err.message);
        (void)probe_failed(&err); // for programs that read the results
        return PROBE_SKIPPED;
    }
    int status = !is_of(&api, *verb)           ? PROBE_SKIPPED
                 : verbs[*verb].kind == OF_HIP ? PROBE_OK // it needs no GPU
                                               : probe_start(&api);
    if (status == PROBE_OK)
        status = verbs[*verb].run(options, &api);
    cuda_api_unload(&api);
    return status;
}

static int run(const struct command_line *line, const char *verb)
{
    size_t i = 0;
    while (i < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == sizeof(verbs) / sizeof(verbs[0])) {
        (void)fprintf(stderr, "mgpu-gpu-test: there is no verb '%.40s'\nhint: mgpu-gpu-test --help\n", verb);
        return PROBE_USAGE;
    }
    if (verbs[i].kind == PLAIN)
        return verbs[i].run(&line->options, NULL);
    return verbs[i].run == probe_hold && line->options.processes > 1
               ? probe_together(&line->options, run_driver, &i)
               : run_driver(&line->options, &i);
}

int main(int argc, char **argv)
{
    struct command_line line = { 0 };
    struct error err = { 0 };
    int first = argc, status = PROBE_OK;
    int r = options_preset(tables, &line, &err);
    if (r == 0)
        r = options_parse(argc, argv, tables, &line, false, &first, &err);
    if (r < 0) {
        (void)fprintf(stderr, "mgpu-gpu-test: %s\n", err.message);
        status = PROBE_USAGE;
    } else if (line.is_help) {
        print_help();
    } else if (line.is_version) {
        (void)puts("mgpu-gpu-test " MGPU_VERSION);
    } else {
        status = run(&line, first < argc ? argv[first] : verbs[0].name);
    }
    free(line.options.cuda_library);
    free(line.options.hip_library);
    free(line.options.nccl_library);
    free(line.options.nvml_library);
    return status;
}
