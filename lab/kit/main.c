/* SPDX-License-Identifier: MIT */
/*
 * gpu-kit/run: meets a machine with a GPU that mgpu has not met (docs/hardware.md). The programs that it
 * starts are in the folder bin beside it.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/version.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/locked.h"
#include "lab/kit/page.h"
#include "lab/kit/plan.h"
#include "lab/kit/report.h"

#define SECONDS_DEFAULT "570" // of 10 minutes; the rest is SPARE_MS
#define SPARE_MS        15000 // to stop mgpud
#define STOP_MS         2000
#define OPEN_FOLDERS    16
#define EXIT_WRONG      1
#define EXIT_USAGE      2
#define EXIT_NO_GPU     77
#define MODE_PUBLIC     0755

struct options {
    int64_t ms, start_ms;
    char *output, *programs;
    const char *only;
    char *report; // a file to show
    char *sysfs_root, *rocm_library;
    bool is_help, is_version, is_list;
};

static int set_time(void *target, const char *value, struct error *err)
{
    return parse_duration(value, "--time", &((struct options *)target)->ms, err);
}

static const struct option_row rows[] = {
    { 't', "time", "TIME", "end within this time, in seconds or as 2h", set_time, SECONDS_DEFAULT },
    { 'o', "output", "DIR", "where report.json and report.txt are written",
        OPTION_VALUE(path, struct options, output), .preset = "." },
    { 0, "only", "NAME[,NAME]...", "only these checks, and those required by all others",
        OPTION_VALUE(text, struct options, only) },
    { 0, "start-limit", "TIME", "time limit for a program to start CUDA",
        OPTION_VALUE(duration, struct options, start_ms), .preset = "10s" },
    { 0, "list", NULL, "only list the checks in their order, each with its usual time",
        OPTION_VALUE(flag, struct options, is_list) },
    { 0, "programs", "DIR", "the folder of mgpu's programs (bin beside this program)",
        OPTION_VALUE(path, struct options, programs) },
    { 0, "report", "FILE", "only show that report.json as a page",
        OPTION_VALUE(path, struct options, report) },
    { 0, "sysfs-root", "DIR", "where AMD GPUs are described (/sys)",
        OPTION_VALUE(path, struct options, sysfs_root) },
    { 0, "rocm-library", "FILE", "ROCm's library for AMD GPUs",
        OPTION_VALUE(path, struct options, rocm_library) },
    { 'h', "help", NULL, "show this help", OPTION_VALUE(flag, struct options, is_help) },
    { 'V', "version", NULL, "show the version", OPTION_VALUE(flag, struct options, is_version) },
    { 0 },
};
static const struct option_row *const tables[] = { rows, NULL };

static volatile sig_atomic_t is_stopped;

static void on_signal(int signal)
{
    is_stopped = 1;
}

int64_t kit_left_ms(const struct kit *kit, int64_t most)
{
    int64_t left = is_stopped ? 1 : kit->end_ms - clock_boot_ms();
    return left < 1 ? 1 : left < most ? left : most;
}

/* Why a check cannot be made; false: it can. */
static bool is_skipped(const struct kit *kit, const struct check *check, struct result *result)
{
    if (is_stopped || !plan_has_time(kit, check))
        result_skip(result, is_stopped ? "the kit was interrupted" : "no time is left");
    else if (check->need != NEED_NOTHING && kit->no_gpu != NULL)
        result_skip(result, "%s", kit->no_gpu);
    else if ((check->need == NEED_CUDA || check->need == NEED_JOBS) && kit->no_cuda != NULL)
        result_skip(result, "%s", kit->no_cuda);
    else if ((check->need == NEED_MGPUD || check->need == NEED_JOBS) && kit->instance == NULL)
        result_skip(result, "mgpud does not run here");
    else
        return false;
    return true;
}

/* A check whose waits were cut short by the end of the kit's time says nothing of the machine. */
static void judge_late(const struct kit *kit, struct result *result)
{
    char text[sizeof(result->text)];
    if (result->outcome != OUTCOME_FAILED || kit_left_ms(kit, 2) > 1)
        return;
    memcpy(text, result->text, sizeof(text));
    result_skip(result, "%s before it ended: %.400s",
        is_stopped ? "the kit was interrupted" : "the time was up", text);
}

struct running {
    struct kit *kit;
    struct report *report;
};

static void run_check(const struct check *check, void *arg)
{
    const struct running *running = arg;
    struct kit *kit = running->kit;
    struct result result = { 0 };
    struct error err = { 0 };
    int64_t begin_ms = clock_boot_ms();
    if (!is_skipped(kit, check, &result)) {
        check->run(kit, &result);
        judge_late(kit, &result);
    }
    report_add(running->report, check, &result, clock_boot_ms() - begin_ms);
    if (report_write(running->report, &err) < 0)
        (void)fprintf(stderr, "run: %s\n", err.message);
}

static int find_programs(struct options *options, struct error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (options->programs == NULL) {
        self[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
        options->programs = xasprintf("%s/bin", self);
    }
    _cleanup_free_ char *mgpud = xasprintf("%s/mgpud", options->programs);
    return access(mgpud, X_OK) == 0 ? 0 : error_set_errno(err, -errno, "cannot execute %s", mgpud);
}

/* In a folder for temporary files that every user can enter. */
static int make_work(struct kit *kit, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    kit->work = xasprintf("%s/mgpu-kit-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
    if (mkdtemp(kit->work) == NULL || chmod(kit->work, MODE_PUBLIC) < 0)
        return error_set_errno(err, -errno, "cannot make %s", kit->work);
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)remove(path);
    return 0;
}

/* The checks, in their own process: the driver may hang. Returns the exit status. */
static int run(struct kit *kit, const struct options *options)
{
    struct error err = { 0 };
    struct report *report = report_new(options->output);
    if (report_write(report, &err) < 0) { // rather now than after ten minutes
        (void)fprintf(stderr, "run: %s\n", err.message);
        report_free(report);
        return EXIT_USAGE;
    }
    plan_each(options->only, run_check, &(struct running){ kit, report });
    instance_stop(kit);
    int r = report_write(report, &err);
    (void)printf("\n%zu passed, %zu failed, %zu skipped. Please send %s/report.json (docs/hardware.md).\n",
        report_count(report, OUTCOME_PASSED), report_count(report, OUTCOME_FAILED),
        report_count(report, OUTCOME_SKIPPED), options->output);
    if (r < 0)
        (void)fprintf(stderr, "run: %s\n", err.message);
    int status = r < 0                                                        ? EXIT_USAGE
                 : report_count(report, OUTCOME_FAILED) > 0                   ? EXIT_WRONG
                 : kit->no_gpu != NULL && json_array_size(kit->amd_gpus) == 0 ? EXIT_NO_GPU
                                                                              : EXIT_SUCCESS;
    (void)fflush(stdout);
    report_free(report);
    free(kit->no_gpu);
    free(kit->no_cuda);
    free(kit->no_park);
    free(kit->nvml_library);
    json_decref(kit->nvml_gpus);
    json_decref(kit->amd_gpus);
    return status;
}

/* The report has all checks before the one that hangs. A process that hangs in the driver may not end even by
 * SIGKILL, and is left. */
static int guard(struct options *options, struct error *err)
{
    int64_t ms = options->ms;
    struct kit kit = { .end_ms = clock_boot_ms() + ms,
        .start_ms = options->start_ms,
        .sysfs_root = options->sysfs_root,
        .rocm_library = options->rocm_library };
    int r = find_programs(options, err);
    if (r == 0)
        r = make_work(&kit, err);
    if (r < 0)
        return EXIT_USAGE;
    kit.programs = options->programs;
    (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run(&kit, options));
    int status = pid < 0 ? -1 : child_wait(pid, ms + SPARE_MS);
    if (status < 0) {
        (void)error_set(err, -ETIMEDOUT, "a check did not end: the report has those before it");
        if (pid > 0)
            (void)child_stop(pid, SIGKILL, STOP_MS);
        instance_stop(&kit);
        status = EXIT_WRONG;
    }
    struct error unlocked = { 0 };
    if (locked_end(&kit, &unlocked) < 0)
        (void)fprintf(
            stderr, "run: %s\nhint: mgpu gpu unlock --state-dir %s/state\n", unlocked.message, kit.work);
    else
        (void)nftw(kit.work, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    free(kit.work);
    return status;
}

/* Prints a received report. */
static int show(const char *path, struct error *err)
{
    _cleanup_free_ char *page = page_of_file(path, err);
    if (page == NULL)
        return EXIT_USAGE;
    if (fputs(page, stdout) == EOF || fflush(stdout) == EOF) {
        (void)error_set_errno(err, -errno, "cannot write the page");
        return EXIT_WRONG;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options options = { 0 };
    struct error err = { 0 };
    int first = argc, status = EXIT_SUCCESS;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    int r = options_preset(tables, &options, &err);
    if (r == 0)
        r = options_parse(argc, argv, tables, &options, false, &first, &err);
    if (r == 0 && first < argc)
        r = error_set(&err, -EINVAL, "'%.40s' is not an option", argv[first]);
    if (r == 0)
        r = plan_check_names(options.only, &err);
    if (r < 0) {
        status = EXIT_USAGE;
    } else if (options.is_help) {
        (void)puts("Usage: run [OPTION]...\nChecks mgpu on this machine's GPUs; changes no setting of them.");
        options_print(rows, stdout);
        (void)puts("Exit status: 0 nothing failed, 1 a check failed, 2 wrong use, 77 there is no GPU.");
    } else if (options.is_version) {
        (void)puts("mgpu gpu-kit " MGPU_VERSION);
    } else if (options.is_list) {
        plan_print(options.only, stdout);
    } else if (options.report != NULL) {
        status = show(options.report, &err);
    } else {
        status = guard(&options, &err);
    }
    if (err.message[0] != '\0')
        (void)fprintf(stderr, "run: %s\n", err.message);
    free(options.output);
    free(options.programs);
    free(options.report);
    free(options.sysfs_root);
    free(options.rocm_library);
    return status;
}
