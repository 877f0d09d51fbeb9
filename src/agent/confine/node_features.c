/* SPDX-License-Identifier: MIT */
/* One function per feature in a table; each describes the state on this node and, if the feature is off, how
 * to enable it. */
#include "agent/confine/node_features.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/program_check.h"
#include "agent/gpu/access.h"
#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"

static void describe_users(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = facts->is_root;
    feature->text = facts->is_root
                        ? xstrdup("jobs run as the user who submitted them")
                        : xasprintf("only jobs of uid %u, which mgpu runs as, are accepted", geteuid());
    if (!facts->is_root)
        feature->fix = xstrdup("start mgpud as root to run jobs of several users");
}

static void describe_cgroup(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = strcmp(facts->confine, "none") != 0;
    if (feature->is_on) {
        feature->text = xasprintf("all processes of a job end with it (%s)", facts->confine);
        return;
    }
    feature->text = xasprintf("a job's processes are tracked by their parents, not by a cgroup%s%s",
        facts->confine_err->message[0] == '\0' ? "" : ": ", facts->confine_err->message);
    feature->fix =
        xstrdup(facts->confine_err->hint[0] != '\0' ? facts->confine_err->hint
                                                    : "start mgpud as root on a system with cgroup v2");
}

static void describe_gpu(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = facts->gpus->is_on != 0 && facts->gpus->gpus.count > 0;
    feature->text = xstrdup(facts->gpus->text);
    feature->fix = xstrdup(facts->gpus->fix);
}

static const char *devices_fix(const struct feature_facts *facts)
{
    if (!facts->is_root)
        return "start mgpud as root";
    if (strcmp(facts->confine, "none") == 0)
        return "enable cgroups first";
    return "use a kernel with CONFIG_CGROUP_BPF; in a container, give mgpud CAP_SYS_ADMIN and bpf(2)";
}

/* The variable that lists the GPUs of a job on this node. */
static const char *variable_of(const struct feature_facts *facts)
{
    const struct gpu_vendor *vendor = gpu_vendor_by_backend(facts->gpus->backend);
    const char *name = gpu_vendor_seen(vendor != NULL ? vendor->number : 0)->variables[0].name;
    return name != NULL ? name : "variables";
}

static void describe_devices(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = facts->devices_err->code == 0;
    if (feature->is_on) {
        feature->text = xasprintf("a job can only open its own GPUs%s",
            facts->is_root_job_allowed ? " (a job of root could undo that)" : "");
        return;
    }
    feature->text = xasprintf("GPUs are only set in %s, and a job that ignores it can use others: %s",
        variable_of(facts), facts->devices_err->message);
    feature->fix = xstrdup(devices_fix(facts));
}

static void describe_private_tmp(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = facts->private_tmp_err->code == 0;
    if (feature->is_on) {
        feature->text = xstrdup("a job with --private-tmp has a private /tmp, /var/tmp and /dev/shm");
        return;
    }
    feature->text = xasprintf("--private-tmp does not work here: %s", facts->private_tmp_err->message);
    feature->fix = xstrdup(
        facts->is_root ? "give mgpud CAP_SYS_ADMIN, and a / that is a mount point" : "start mgpud as root");
}

static void describe_gpu_lock(const struct feature_facts *facts, struct node_feature *feature)
{
    const char *fix;
    bool is_on;
    feature->text = gpu_access_describe(facts->state_dir, &is_on, &fix);
    feature->is_on = is_on;
    feature->fix = xstrdup(fix);
}

/* For each GPU, it is known only at a start whether the driver reports the values that the watch needs. */
static void describe_share(const struct feature_facts *facts, struct node_feature *feature)
{
    static const char *const effects[SHARE_KINDS] = {
        [SHARE_TIME] = "a job that stays above its share is ended",
        [SHARE_MPS] = "allocations above the share fail",
        [SHARE_DMEM] = "the kernel limits the GPU memory of a job",
    };
    enum share_kind kind = share_ways_strongest(facts->shares);
    _cleanup_free_ char *missing = share_ways_text(facts->shares, kind);
    feature->is_on = kind != SHARE_NONE;
    feature->text = xasprintf("--share auto uses %s%s%s%s%s", share_kind_name(kind),
        kind != SHARE_NONE ? ": " : "", kind != SHARE_NONE ? effects[kind] : "", missing != NULL ? "; " : "",
        missing != NULL ? missing : "");
}

/* Takes ownership of `text`. */
static void describe_limit(const struct feature_facts *facts, enum limit_controller controller, char *text,
    const char *without, struct node_feature *feature)
{
    const struct error *why = limits_why(facts->limits, controller);
    feature->is_on = limits_how(facts->limits, controller) != NULL;
    feature->text = text;
    if (feature->is_on)
        return;
    free(text);
    feature->text = xasprintf("%s: %s", without, why->message);
    feature->fix = why->hint[0] != '\0' ? xstrdup(why->hint) : NULL;
}

static void describe_memory(const struct feature_facts *facts, struct node_feature *feature)
{
    const char *how = limits_how(facts->limits, LIMIT_MEMORY);
    describe_limit(facts, LIMIT_MEMORY,
        xasprintf("a job that exceeds its -M ends as oom (%s)", how != NULL ? how : ""),
        "-M is used for placement but not enforced", feature);
}

static void describe_cpu(const struct feature_facts *facts, struct node_feature *feature)
{
    const char *set = limits_how(facts->limits, LIMIT_CPUSET), *quota = limits_how(facts->limits, LIMIT_CPU);
    if (set != NULL && quota != NULL)
        describe_limit(facts, LIMIT_CPU,
            xasprintf("a job with -c gets exclusive CPUs, or a share of CPU time (%s)", set), "", feature);
    else if (set != NULL)
        describe_limit(facts, LIMIT_CPUSET,
            xasprintf("a job with -c gets exclusive CPUs (%s); fractions of a CPU are not enforced", set), "",
            feature);
    else
        describe_limit(facts, LIMIT_CPU,
            xasprintf("a job with -c gets that much CPU time (%s)", quota != NULL ? quota : ""),
            "-c is used for placement but not enforced", feature);
}

static void describe_pids(const struct feature_facts *facts, struct node_feature *feature)
{
    const char *how = limits_how(facts->limits, LIMIT_PIDS);
    if (facts->pids_max == 0) {
        feature->text = xstrdup("the number of processes is not limited: pids-max is 0");
        feature->fix = xstrdup("remove pids-max from the settings of mgpud");
        return;
    }
    describe_limit(facts, LIMIT_PIDS,
        xasprintf("a job can have %u processes and threads (%s)", facts->pids_max, how != NULL ? how : ""),
        "the number of processes is not limited", feature);
}

static void describe_logs(const struct feature_facts *facts, struct node_feature *feature)
{
    bool is_home = facts->log_dir == NULL ? facts->is_root : strcmp(facts->log_dir, "home") == 0;
    feature->is_on = 1;
    if (is_home)
        feature->text = xstrdup("output goes to ~/.local/state/mgpu/logs of the job's user");
    else if (facts->log_dir == NULL)
        feature->text = xasprintf("output goes to %s/logs", facts->state_dir);
    else
        feature->text = xasprintf("output goes to %s", facts->log_dir);
}

/* The first of the names that exists as a program in the usual directories. */
static const char *find_program(const char *const *names)
{
    static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin" };
    for (; *names != NULL; names++)
        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
            _cleanup_free_ char *path = xasprintf("%s/%s", folders[i], *names);
            if (access(path, X_OK) == 0)
                return *names;
        }
    return NULL;
}

/* Users' own programs, and those provided by a setup, are unknown here. */
static void describe_containers(const struct feature_facts *facts, struct node_feature *feature)
{
    static const char *const runtimes[] = { "podman", "apptainer", "singularity", NULL };
    const char *found = find_program(runtimes);
    bool is_podman = found != NULL && strcmp(found, "podman") == 0;
    bool has_users = access("/etc/subuid", R_OK) == 0;
    feature->is_on = found != NULL;
    if (found == NULL) {
        feature->text = xstrdup("--image needs podman or apptainer, and neither is installed");
        feature->fix = xstrdup("install podman (with crun and uidmap) or apptainer");
        return;
    }
    feature->text = xasprintf("jobs with --image use %s%s", found,
        is_podman && !has_users ? "; without /etc/subuid it may be unable to unpack images" : "");
}

static void describe_mail(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = access(facts->sendmail, X_OK) == 0;
    if (feature->is_on) {
        feature->text = xasprintf("jobs can send mail when they end (%s)", facts->sendmail);
        return;
    }
    feature->text = xasprintf("--notify mail does not work: there is no %s", facts->sendmail);
    feature->fix = xstrdup("install a mail program such as postfix, msmtp-mta or nullmailer");
}

/* The driver is queried only when a job is parked: it may hang, and it is not loaded before that. */
static void describe_park(const struct feature_facts *facts, struct node_feature *feature)
{
    const struct gpu_vendor *vendor = gpu_vendor_by_backend(facts->gpus->backend);
    feature->is_on = facts->cuda_library != NULL || (vendor != NULL && vendor->can_park);
    if (feature->is_on) {
        feature->text = xstrdup("jobs can be parked, if the NVIDIA driver is 580 or newer");
        return;
    }
    feature->text = xstrdup("only the NVIDIA driver can save the memory of a running job");
    feature->fix = xstrdup("mgpu suspend stops a job that keeps its GPUs");
}

static void describe_early(const struct feature_facts *facts, struct node_feature *feature)
{
    feature->is_on = facts->devices_err->code == 0 && facts->early_err->code == 0;
    if (feature->is_on) {
        feature->text = xstrdup("a job can start on the CPU before its GPUs are free");
        return;
    }
    bool is_guarded = facts->devices_err->code == 0;
    _cleanup_free_ char *why = is_guarded ? xstrdup(facts->early_err->message)
                                          : xasprintf("GPUs are only set in %s", variable_of(facts));
    feature->text = xasprintf("every job starts when its GPUs are free: %s", why);
    feature->fix = xstrdup(
        is_guarded ? "use Linux 5.5 or newer, with kernel.yama.ptrace_scope at most 1" : devices_fix(facts));
}

/* After a clone into root's home, for example, users of this machine cannot access the programs. Without its
 * shepherd a node cannot start jobs. */
static void describe_programs(const struct feature_facts *facts, struct node_feature *feature)
{
    _cleanup_free_ char *path = xstrdup(facts->shepherd);
    struct stat status;
    struct error err = { 0 };
    if (program_check(facts->shepherd, &err) < 0) {
        feature->is_on = 0;
        feature->text = xasprintf("no job can start here: %s", err.message);
        feature->fix = xstrdup("install mgpu again, with programs for this machine");
        return;
    }
    feature->is_on = 1;
    while (facts->is_root && feature->is_on && path[0] == '/') {
        *strrchr(path, '/') = '\0';
        feature->is_on = path[0] == '\0' || stat(path, &status) < 0 || (status.st_mode & S_IXOTH) != 0;
    }
    if (feature->is_on) {
        feature->text = xasprintf("beside %s", facts->shepherd);
        return;
    }
    feature->text = xasprintf("other users cannot run mgpu from here: %s is closed to them (mode %04o)", path,
        status.st_mode & 07777);
    feature->fix = xstrdup("make install, or build in a directory that every user can enter");
}

static const struct {
    const char *name;
    void (*describe)(const struct feature_facts *facts, struct node_feature *feature);
    bool is_live; // changes while the agent runs
} rows[] = {
    { "users", describe_users },
    { "programs", describe_programs },
    { "cgroup", describe_cgroup },
    { "gpu", describe_gpu, true },
    { "devices", describe_devices },
    { "private-tmp", describe_private_tmp },
    { "gpu-lock", describe_gpu_lock, true },
    { "share", describe_share },
    { "memory", describe_memory },
    { "cpu", describe_cpu },
    { "pids", describe_pids },
    { "logs", describe_logs },
    { "containers", describe_containers },
    { "mail", describe_mail },
    { "park", describe_park },
    { "early", describe_early },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Shortens the text, which may contain long paths. */
static void fit(char **text)
{
    if (*text == NULL || strlen(*text) <= NODE_FEATURE_TEXT_MAX)
        return;
    char *whole = *text;
    *text = text_escape_fit(whole, NODE_FEATURE_TEXT_MAX);
    free(whole);
}

static void fit_feature(struct node_feature *feature)
{
    fit(&feature->text);
    fit(&feature->fix);
}

void node_features_list(const struct feature_facts *facts, struct record_list *ret)
{
    struct node_feature *features = xcalloc(ROWS, sizeof(*features));
    for (size_t i = 0; i < ROWS; i++) {
        features[i].name = xstrdup(rows[i].name);
        rows[i].describe(facts, &features[i]);
        fit_feature(&features[i]);
    }
    *ret = (struct record_list){ features, ROWS };
}

void node_features_list_live(const struct feature_facts *facts, struct record_list *ret)
{
    struct node_feature *features = xcalloc(ROWS, sizeof(*features));
    size_t count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (!rows[i].is_live)
            continue;
        features[count].name = xstrdup(rows[i].name);
        rows[i].describe(facts, &features[count]);
        fit_feature(&features[count++]);
    }
    *ret = (struct record_list){ features, count };
}

char *node_features_text(const struct record_list *features, const char *driver)
{
    const struct node_feature *items = features->items;
    struct buffer text = { 0 };
    for (size_t i = 0; i < features->count; i++)
        buffer_printf(&text, "%s\n", items[i].text);
    buffer_append_text(&text, driver != NULL ? driver : "");
    return buffer_take(&text);
}

void node_features_log(const char *node, const struct record_list *features)
{
    const struct node_feature *items = features->items;
    for (size_t i = 0; i < features->count; i++)
        if (items[i].is_on == 0)
            log_node(LOG_INFO, node, "%s is off: %s", items[i].name, items[i].text);
}

void node_features_clear(struct record_list *list)
{
    struct node_feature *features = list->items;
    for (size_t i = 0; i < list->count; i++) {
        free(features[i].name);
        free(features[i].text);
        free(features[i].fix);
    }
    free(features);
    *list = (struct record_list){ 0 };
}
