/* SPDX-License-Identifier: MIT */
/*
 * mgpu-gpu-test: uses a GPU through CUDA's driver API, and says what came of it. `mgpu gpu test` runs it as a
 * job; the kit for new hardware runs all of its verbs. It needs the driver, and no CUDA toolkit.
 */
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
    bool is_plain; // it needs no driver
} verbs[] = {
    { "health", "speeds of copies and products, and a pattern in the memory", probe_health },
    { "scrub", "overwrite all memory that is free, and check that", probe_scrub },
    { "list", "the GPUs as CUDA numbers them", probe_list },
    { "hold", "take memory (256M), keep it for some seconds, and check it", probe_hold },
    { "need", "take memory, or end with CUDA's out of memory", probe_need },
    { "fault", "write to an address that is not mapped: expected to fail", probe_fault },
    { "managed", "memory that GPU and program share", probe_managed },
    { "peers", "each pair of GPUs: access, kind of link, speed of copies", probe_peers },
    { "reduce", "all-reduces of NCCL over all GPUs for some seconds, each compared", probe_reduce },
    { "ram", "take host memory (64M), and touch it", probe_ram, true },
    { "idle", "wait for some seconds without a GPU", probe_idle, true },
    { "limits", "processors, and limits of the control group", probe_limits, true },
    { "nodes", "which device nodes of GPUs can be opened", probe_nodes, true },
    { "nvml", "the GPUs that NVML can open", probe_nvml, true },
    { "open", "whether /dev/nvidiactl can be opened", probe_open, true },
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
    { 'g', "gpu", "N", "CUDA's number of the GPU", OPTION_VALUE(integer, struct command_line, options.gpu),
        OPTION_RANGE(0, 1023), .preset = "0" },
    { 'm', "memory", "SIZE", "how much memory to use", set_memory },
    { 's', "seconds", "N", "how long to hold it", set_seconds, "1" },
    { 'c', "until-continued", NULL, "hold it until the process was stopped and continued, as by parking",
        OPTION_VALUE(flag, struct command_line, options.is_until_continued) },
    { 'p', "processes", "N", "of hold: so many processes, each with that memory",
        OPTION_VALUE(integer, struct command_line, options.processes), OPTION_RANGE(1, 64), .preset = "1" },
    { 0, "nccl-library", "FILE", "of reduce: NCCL",
        OPTION_VALUE(library, struct command_line, options.nccl_library), .preset = "auto" },
    { 0, "nvml-library", "FILE", "of nvml: NVML",
        OPTION_VALUE(library, struct command_line, options.nvml_library), .preset = "auto" },
    { 0, "cuda-library", "FILE", "the driver's library",
        OPTION_VALUE(library, struct command_line, options.library), .preset = "auto" },
    { 'h', "help", NULL, "show this help", OPTION_VALUE(flag, struct command_line, is_help) },
    { 'V', "version", NULL, "show the version", OPTION_VALUE(flag, struct command_line, is_version) },
    { 0 },
};
static const struct option_row *const tables[] = { rows, NULL };

static void print_help(void)
{
    (void)puts("Usage: mgpu-gpu-test [OPTION]... [VERB]\n"
               "Tests a GPU through the NVIDIA driver. Without a verb: health. Verbs:");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        (void)printf("  %-8s %s\n", verbs[i].name, verbs[i].help);
    options_print(rows, stdout);
    (void)puts("Exit status: 0 right, 1 wrong, 2 wrong use, 77 no driver or no GPU.");
}

/* With the driver loaded, in this process. */
static int run_driver(const struct probe_options *options, void *arg)
{
    probe_fn *const *verb = arg;
    struct cuda_api api;
    struct error err = { 0 };
    if (cuda_api_load(options->library, &api, &err) < 0) {
        (void)fprintf(stderr, "mgpu-gpu-test: %s\n", err.message);
        (void)probe_failed(&err); // for programs that read the results
        return PROBE_SKIPPED;
    }
    int status = probe_start(&api);
    if (status == PROBE_OK)
        status = (*verb)(options, &api);
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
    if (verbs[i].is_plain)
        return verbs[i].run(&line->options, NULL);
    probe_fn *wanted = verbs[i].run;
    return wanted == probe_hold && line->options.processes > 1
               ? probe_together(&line->options, run_driver, &wanted)
               : run_driver(&line->options, &wanted);
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
    free(line.options.library);
    free(line.options.nccl_library);
    free(line.options.nvml_library);
    return status;
}
