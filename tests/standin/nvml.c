/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for NVIDIA's libnvidia-ml.so.1, so that the real NVML backend runs on machines without a GPU. It
 * does what a state file says, which it reads anew at every call: the one named by MGPU_NVML_STANDIN, else
 * `nvml.state` beside the library itself. GPUs are numbered here as their lines come, from 0, which is NVML's
 * own order without a line `order`:
 *
 *   driver VERSION           of the driver, 580.159.04 where this line is missing
 *   init N                   nvmlInit returns N (9: the driver is not loaded)
 *   gpu DOMAIN BUS MEMORY_MIB USED_MIB UTILIZATION CELSIUS MILLIWATTS UUID NAME...
 *                            one GPU, in NVML's own order; DOMAIN and BUS are hexadecimal
 *   more I MINOR LIMIT_MILLIWATTS MILLIJOULES SM_MHZ MEMORY_MHZ CORRECTED UNCORRECTED
 *                            further values of GPU I; not supported where this line is missing
 *   process I KIND PID MIB   a process on GPU I; KIND is compute, graphics or mps; MIB -1: not available
 *   processes BYTES          elements of the lists of processes have BYTES bytes (see driver 535.54)
 *   xid I NUMBER [GI]        an event of GPU I, or of its GPU instance GI; sets wait for those not seen yet
 *   lost I                   GPU I has fallen off the bus; sets of events with it tell nothing more
 *   code I CODE              each measuring call for GPU I returns CODE, such as 999
 *   handle I CODE            GPU I cannot be opened: its handle is not given out
 *   mig I CURRENT PENDING    MIG mode of GPU I; not supported where this line is missing
 *   instance I GI CI MEMORY_MIB USED_MIB UUID PROFILE
 *                            a MIG instance of GPU I; in lines about processes its number is 100 + its line
 *   mig_count I N            the most instances that GPU I says it can have, 7 where this line is missing
 *   compute I MODE           compute mode of GPU I: 0 default, 2 prohibited, 3 one process
 *   recovery I ACTION        what GPU I needs: 0 nothing, 1 a reset, 2 a reboot, 3 and 4 a drain
 *   numa I NODE              memory of GPU I is a NUMA node of the machine
 *   delay MS                 a measuring call takes MS milliseconds
 *   delay_gpu I MS           one for GPU I takes MS
 *   time FUNCTION US         that function takes US microseconds, nvmlInit_v2 and those for a GPU
 *   starting MS              a measuring call takes MS more while a program that uses CUDA's stand-in starts
 *   open I MS                the first handle of GPU I takes MS in each process
 *   serial 1                 calls that take time wait for each other, in all processes
 *   link I J                 an NVLink from GPU I to GPU J; J may be no GPU: a switch; 99: not known
 *   order I J ...            NVML lists the GPUs in this order, and others not at all; handles stay good
 *   hang 1                   measuring calls never return
 *   hang_gpu I               those for GPU I never return
 *   hang_all I               no call for GPU I returns while this line is there, not even for its handle
 *   hang_init 1              nor does nvmlInit with this one
 *   hang_in FUNCTION I       nor does that function for GPU I, or at all if it is for no GPU
 *   crash_gpu I              measuring GPU I ends the process
 *   fail FUNCTION CODE       that function returns CODE
 *   still 1                  the file is never read again by this process, for benchmarks
 *
 * Programs that use the stand-in for CUDA (tests/standin/cuda.c) leave files cuda.PID beside the library:
 * while such a process exists and is not parked, it is in the list of its GPU, and its memory is used. Of one
 * that has ended and is not reaped the memory is 0 already, as the H200's driver has it. With
 * MGPU_NVML_STANDIN there are none: the state file may be in a folder with thousands of others, which each
 * call would list.
 *
 * A process that uses a GPU has its device node open: the file STATE.gpuI, where STATE is the state file, and
 * STATE.ctl for the driver itself; where there are such files.
 *
 * With OLD_DRIVER it has only the functions that drivers of ten years ago had.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define GPUS_MAX          16
#define INSTANCES_MAX     64
#define INSTANCE_NUMBER   100    // of the first, in lines about processes
#define INSTANCE_HANDLE   0x1000 // handles from here on are of instances: 8 bits GPU, 4 bits each GI and CI
#define LINKS_MAX         64
#define LINK_UNKNOWN      99
#define PROCESSES_MAX     2048
#define EVENTS_MAX        64
#define FAILS_MAX         16
#define TIMES_MAX         32
#define BAD_ARGUMENT      2
#define NOT_SUPPORTED     3
#define NOT_FOUND         6
#define INSUFFICIENT_SIZE 7
#define TIMED_OUT         10
#define LOST              15
#define VERSION_MISMATCH  25
#define UNKNOWN_ERROR     999
#define XID_EVENT         0x8ULL
#define FIELD_RECOVERY    230
#define POLL_NS           5000000L
#define EXPORT            __attribute__((visibility("default")))

struct gpu {
    unsigned int domain, bus, memory_mib, used_mib, utilization, celsius, milliwatts;
    char uuid[64], name[64];
    int is_lost, is_hanging, is_hanging_all, is_crashing, has_more;
    int code, handle_code, has_mig, mig[2], compute, has_recovery, recovery, has_numa, numa;
    int is_instance, has_mig_count;
    unsigned int mig_count;
    unsigned int delay_ms, open_ms;
    unsigned int minor, limit, sm, memory_clock;
    unsigned long long energy, ecc[2];
};

struct instance {
    unsigned int gpu, gi, ci, memory_mib, used_mib;
    char uuid[64], profile[32];
};

struct link {
    unsigned int from, to;
};

struct process {
    unsigned int gpu, pid;
    int mib;
    char kind[16];
};

struct xid {
    unsigned int gpu, number, gi;
};

struct fail {
    char function[64];
    int code;
};

struct duration {
    char function[64];
    unsigned int us;
};

struct hanging {
    char function[64];
    unsigned int gpu;
};

struct machine {
    int init, is_hanging, is_init_hanging, is_still, is_serial;
    unsigned int delay_ms, starting_ms, n_starting, n_times;
    struct duration times[TIMES_MAX];
    unsigned int order[GPUS_MAX], n_listed; // only with a line `order`
    int has_order;
    unsigned int n_links, n_processes, n_xids, n_fails, process_bytes;
    struct link links[LINKS_MAX];
    char driver[64];
    unsigned int n_instances;
    struct instance instances[INSTANCES_MAX];
    struct process processes[PROCESSES_MAX];
    struct xid xids[EVENTS_MAX];
    struct fail fails[FAILS_MAX];
    struct hanging hanging; // one suffices
    unsigned int count;
    struct gpu gpus[GPUS_MAX];
};

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

struct utilization {
    unsigned int gpu, memory;
};

struct event {
    void *device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};

struct attributes {
    unsigned int multiprocessors, engines[5], gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

struct field_value {
    unsigned int id, scope;
    long long timestamp, latency;
    int type, code;
    union {
        double fraction;
        unsigned int number;
    } value;
};

struct event_set {
    unsigned int seen;       // lines `xid` that were told, or were there before
    unsigned int registered; // bit I: GPU I
};

static void read_gpu(struct machine *machine, const char *line)
{
    struct gpu gpu = { 0 };
    unsigned int i;
    if (sscanf(line, "gpu %x %x %u %u %u %u %u %63s %63[^\n]", &gpu.domain, &gpu.bus, &gpu.memory_mib,
            &gpu.used_mib, &gpu.utilization, &gpu.celsius, &gpu.milliwatts, gpu.uuid, gpu.name) == 9 &&
        machine->count < GPUS_MAX)
        machine->gpus[machine->count++] = gpu;
    if (sscanf(line, "more %u %u %u %llu %u %u %llu %llu", &i, &gpu.minor, &gpu.limit, &gpu.energy, &gpu.sm,
            &gpu.memory_clock, &gpu.ecc[0], &gpu.ecc[1]) == 8 &&
        i < machine->count) {
        struct gpu *to = &machine->gpus[i];
        to->has_more = 1;
        to->minor = gpu.minor;
        to->limit = gpu.limit;
        to->energy = gpu.energy;
        to->sm = gpu.sm;
        to->memory_clock = gpu.memory_clock;
        memcpy(to->ecc, gpu.ecc, sizeof(to->ecc));
    }
    if (sscanf(line, "lost %u", &i) == 1 && i < GPUS_MAX)
        machine->gpus[i].is_lost = 1;
    if (sscanf(line, "hang_gpu %u", &i) == 1 && i < GPUS_MAX)
        machine->gpus[i].is_hanging = 1;
    if (sscanf(line, "hang_all %u", &i) == 1 && i < GPUS_MAX)
        machine->gpus[i].is_hanging_all = 1;
    if (sscanf(line, "crash_gpu %u", &i) == 1 && i < GPUS_MAX)
        machine->gpus[i].is_crashing = 1;
}

/* What a line beginning with `word` says of a GPU: up to two numbers; how many there were. */
static int read_mood(
    struct machine *machine, const char *line, const char *word, struct gpu **ret, int numbers[2])
{
    unsigned int i = 0;
    size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || line[length] != ' ')
        return 0;
    int count = sscanf(line + length, "%u %d %d", &i, &numbers[0], &numbers[1]);
    *ret = &machine->gpus[i < GPUS_MAX ? i : 0];
    return i < GPUS_MAX ? count - 1 : 0;
}

static void read_moods(struct machine *machine, const char *line)
{
    struct gpu *gpu;
    int numbers[2] = { 0 };
    if (read_mood(machine, line, "code", &gpu, numbers) > 0)
        gpu->code = numbers[0];
    if (read_mood(machine, line, "handle", &gpu, numbers) > 0)
        gpu->handle_code = numbers[0];
    if (read_mood(machine, line, "compute", &gpu, numbers) > 0)
        gpu->compute = numbers[0];
    if (read_mood(machine, line, "delay_gpu", &gpu, numbers) > 0)
        gpu->delay_ms = (unsigned int)numbers[0];
    if (read_mood(machine, line, "open", &gpu, numbers) > 0)
        gpu->open_ms = (unsigned int)numbers[0];
    if (read_mood(machine, line, "recovery", &gpu, numbers) > 0) {
        gpu->has_recovery = 1;
        gpu->recovery = numbers[0];
    }
    if (read_mood(machine, line, "numa", &gpu, numbers) > 0) {
        gpu->has_numa = 1;
        gpu->numa = numbers[0];
    }
    if (read_mood(machine, line, "mig_count", &gpu, numbers) > 0) {
        gpu->has_mig_count = 1;
        gpu->mig_count = (unsigned int)numbers[0];
    }
    if (read_mood(machine, line, "mig", &gpu, numbers) > 1) {
        gpu->has_mig = 1;
        memcpy(gpu->mig, numbers, sizeof(gpu->mig));
    }
}

static void read_order(struct machine *machine, const char *line)
{
    unsigned int i;
    int length = 0;
    if (strncmp(line, "order", strlen("order")) != 0)
        return;
    machine->has_order = 1;
    for (line += strlen("order"); sscanf(line, " %u%n", &i, &length) == 1; line += length)
        if (i < GPUS_MAX && machine->n_listed < GPUS_MAX)
            machine->order[machine->n_listed++] = i;
}

static void read_line(struct machine *machine, const char *line)
{
    struct link link;
    struct process process;
    struct xid xid = { .gi = ~0U };
    struct instance instance = { 0 };
    struct fail fail;
    /* The only lines of which a test writes thousands. */
    if (strncmp(line, "process ", strlen("process ")) == 0) {
        if (sscanf(line, "process %u %15s %u %d", &process.gpu, process.kind, &process.pid, &process.mib) ==
                4 &&
            machine->n_processes < PROCESSES_MAX)
            machine->processes[machine->n_processes++] = process;
        return;
    }
    read_gpu(machine, line);
    read_moods(machine, line);
    read_order(machine, line);
    if (sscanf(line, "link %u %u", &link.from, &link.to) == 2 && machine->n_links < LINKS_MAX)
        machine->links[machine->n_links++] = link;
    if (sscanf(line, "instance %u %u %u %u %u %63s %31s", &instance.gpu, &instance.gi, &instance.ci,
            &instance.memory_mib, &instance.used_mib, instance.uuid, instance.profile) == 7 &&
        machine->n_instances < INSTANCES_MAX)
        machine->instances[machine->n_instances++] = instance;
    if (sscanf(line, "xid %u %u %u", &xid.gpu, &xid.number, &xid.gi) >= 2 && machine->n_xids < EVENTS_MAX)
        machine->xids[machine->n_xids++] = xid;
    if (sscanf(line, "fail %63s %d", fail.function, &fail.code) == 2 && machine->n_fails < FAILS_MAX)
        machine->fails[machine->n_fails++] = fail;
    struct duration duration = { 0 };
    if (sscanf(line, "time %63s %u", duration.function, &duration.us) == 2 && machine->n_times < TIMES_MAX)
        machine->times[machine->n_times++] = duration;
    (void)sscanf(line, "starting %u", &machine->starting_ms);
    (void)sscanf(line, "hang_in %63s %u", machine->hanging.function, &machine->hanging.gpu);
    (void)sscanf(line, "driver %63s", machine->driver);
    (void)sscanf(line, "init %d", &machine->init);
    (void)sscanf(line, "hang %d", &machine->is_hanging);
    (void)sscanf(line, "still %d", &machine->is_still);
    (void)sscanf(line, "serial %d", &machine->is_serial);
    (void)sscanf(line, "delay %u", &machine->delay_ms);
    (void)sscanf(line, "hang_init %d", &machine->is_init_hanging);
    (void)sscanf(line, "processes %u", &machine->process_bytes);
}

/* The path of the state file with that suffix; 0 on success. */
static int find_file(const char *suffix, char *path, size_t size)
{
    Dl_info self;
    const char *named = getenv("MGPU_NVML_STANDIN");
    const char *slash = NULL;
    if (named == NULL && dladdr((void *)(size_t)find_file, &self) != 0)
        slash = strrchr(self.dli_fname, '/');
    if (named != NULL)
        (void)snprintf(path, size, "%s%s", named, suffix);
    else if (slash != NULL)
        (void)snprintf(
            path, size, "%.*s/nvml.state%s", (int)(slash - self.dli_fname), self.dli_fname, suffix);
    else
        return -1;
    return 0;
}

/* The state file, or one beside it. */
static int open_file(const char *suffix)
{
    char path[4096];
    return find_file(suffix, path, sizeof(path)) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* The driver does not list a program whose memory is saved: cuda.d/PID begins with 2 (cuda_park.c). */
static int is_parked(const char *folder, unsigned int pid)
{
    char path[4400], state = '0';
    (void)snprintf(path, sizeof(path), "%s/cuda.d/%u", folder, pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int is_saved = fd >= 0 && read(fd, &state, 1) == 1 && state == '2';
    if (fd >= 0)
        (void)close(fd);
    return is_saved;
}

/* Such a process is still listed, and its memory is free. */
static int has_ended(unsigned int pid)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

/* cuda.start.PID is there while a program starts. */
static void read_start(struct machine *machine, const char *name)
{
    unsigned int pid = 0;
    if (sscanf(name, "cuda.start.%u", &pid) == 1 && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
        machine->n_starting++;
}

/* A program that uses CUDA's stand-in: "UUID MIB" in cuda.PID. */
static void read_use(struct machine *machine, const char *folder, const char *name)
{
    char path[4400], uuid[64] = "";
    unsigned int pid = 0, mib = 0;
    if (sscanf(name, "cuda.%u", &pid) != 1 || (kill((pid_t)pid, 0) < 0 && errno != EPERM) ||
        is_parked(folder, pid))
        return;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    int n = fscanf(file, "%63s %u", uuid, &mib);
    (void)fclose(file);
    mib = has_ended(pid) ? 0 : mib;
    for (unsigned int i = 0; n == 2 && i < machine->count; i++) {
        if (strcmp(machine->gpus[i].uuid, uuid) != 0 || machine->n_processes == PROCESSES_MAX)
            continue;
        machine->gpus[i].used_mib += mib;
        machine->processes[machine->n_processes++] = (struct process){ i, pid, (int)mib, "compute" };
    }
    for (unsigned int i = 0; n == 2 && i < machine->n_instances; i++) {
        if (strcmp(machine->instances[i].uuid, uuid) != 0 || machine->n_processes == PROCESSES_MAX)
            continue;
        machine->instances[i].used_mib += mib;
        machine->processes[machine->n_processes++] =
            (struct process){ INSTANCE_NUMBER + i, pid, (int)mib, "compute" };
    }
}

static void read_uses(struct machine *machine)
{
    char folder[4096];
    if (getenv("MGPU_NVML_STANDIN") != NULL || find_file("", folder, sizeof(folder)) < 0 ||
        strrchr(folder, '/') == NULL)
        return;
    *strrchr(folder, '/') = '\0';
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, "cuda.", strlen("cuda.")) == 0) {
            read_use(machine, folder, entry->d_name);
            read_start(machine, entry->d_name);
        }
    (void)closedir(dir);
}

static int open_state(void)
{
    return open_file("");
}

static int driver_fd = -1, gpu_fds[GPUS_MAX];
static _Atomic int is_open[GPUS_MAX];

static void close_all(void)
{
    for (unsigned int i = 0; i < GPUS_MAX; i++)
        if (is_open[i] && gpu_fds[i] >= 0)
            (void)close(gpu_fds[i]);
    if (driver_fd >= 0)
        (void)close(driver_fd);
    driver_fd = -1;
}

static struct machine read_machine(void)
{
    struct machine machine = { .process_bytes = 24 };
    char line[256];
    int fd = open_state();
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file == NULL) {
        machine.init = UNKNOWN_ERROR;
        return machine;
    }
    while (fgets(line, sizeof(line), file) != NULL)
        read_line(&machine, line);
    (void)fclose(file);
    read_uses(&machine);
    return machine;
}

static struct machine look(void)
{
    static struct machine still;
    static _Atomic int is_still;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (is_still)
        return still;
    struct machine machine = read_machine();
    (void)pthread_mutex_lock(&lock);
    if (machine.is_still && !is_still) {
        still = machine;
        is_still = 1;
    }
    (void)pthread_mutex_unlock(&lock);
    return machine;
}

static void hang(void)
{
    for (;;)
        (void)pause();
}

/* Until the line is gone, so that the driver recovers under its callers. */
static struct machine hang_at(size_t i)
{
    const struct timespec pause_time = { .tv_nsec = POLL_NS };
    struct machine machine = look();
    for (; i < GPUS_MAX && machine.gpus[i].is_hanging_all; machine = look())
        (void)nanosleep(&pause_time, NULL);
    return machine;
}

static int is_hanging_in(const struct machine *machine, const char *function, size_t i)
{
    return strcmp(machine->hanging.function, function) == 0 && (i >= GPUS_MAX || machine->hanging.gpu == i);
}

/* The same for one function; GPUS_MAX: it is for no GPU. */
static void hang_in(const char *function, size_t i)
{
    const struct timespec pause_time = { .tv_nsec = POLL_NS };
    for (struct machine machine = look(); is_hanging_in(&machine, function, i); machine = look())
        (void)nanosleep(&pause_time, NULL);
}

/* As the driver takes its time: with `serial`, for one caller after the other. */
static void spend(const struct machine *machine, unsigned int ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
    int lock = ms > 0 && machine->is_serial ? open_state() : -1;
    if (lock >= 0)
        (void)flock(lock, LOCK_EX);
    if (ms > 0)
        (void)nanosleep(&time, NULL);
    if (lock >= 0)
        (void)close(lock);
}

/* What the lines `time` say of that function. */
static void spend_in(const struct machine *machine, const char *function)
{
    for (unsigned int i = 0; i < machine->n_times; i++)
        if (strcmp(machine->times[i].function, function) == 0) {
            const struct timespec time = { .tv_sec = machine->times[i].us / 1000000,
                .tv_nsec = machine->times[i].us % 1000000 * 1000L };
            (void)nanosleep(&time, NULL);
        }
}

/* A handle is the number of the GPU's line plus one. Returns NVML's code. */
/* The number of an instance's line; INSTANCES_MAX: the handle is that of a GPU, or of no instance now. */
static unsigned int find_instance(const struct machine *machine, const void *device)
{
    for (unsigned int k = 0; k < machine->n_instances; k++) {
        const struct instance *instance = &machine->instances[k];
        if ((size_t)device ==
            (size_t)(INSTANCE_HANDLE + (instance->gpu << 8) + (instance->gi << 4) + instance->ci))
            return k;
    }
    return INSTANCES_MAX;
}

/* What the driver does not measure for each instance. */
static int is_for_gpus_alone(const char *function)
{
    static const char *const names[] = { "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeMode",
        "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetFieldValues", "nvmlDeviceGetNumaNodeId" };
    for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(function, names[i]) == 0)
            return 1;
    return 0;
}

/* An instance answers as its GPU, with its own name and memory. */
static void turn_into_instance(const struct instance *instance, struct gpu *gpu)
{
    char name[sizeof(gpu->name)];
    (void)snprintf(name, sizeof(name), "%.24s MIG %.31s", gpu->name, instance->profile);
    memcpy(gpu->name, name, sizeof(name));
    memcpy(gpu->uuid, instance->uuid, sizeof(gpu->uuid));
    gpu->memory_mib = instance->memory_mib;
    gpu->used_mib = instance->used_mib;
    gpu->has_more = 0;
    gpu->is_instance = 1;
}

/* What asks a GPU: some calls of those that are made when a GPU is opened fail like others, and do not hang.
 */
enum { OPENING_ANSWERED = 2, MEASURING = 1 };

static int find_in(
    const struct machine *machine, const char *function, void *device, struct gpu *gpu, int is_measuring)
{
    size_t i = (size_t)device - 1;
    unsigned int instance = INSTANCES_MAX;
    if ((size_t)device >= INSTANCE_HANDLE) {
        instance = find_instance(machine, device);
        i = instance < INSTANCES_MAX ? machine->instances[instance].gpu : machine->count;
    }
    if (i >= machine->count)
        return NOT_FOUND;
    if (is_measuring == MEASURING && (machine->is_hanging || machine->gpus[i].is_hanging))
        hang();
    if (machine->gpus[i].is_hanging_all)
        (void)hang_at(i);
    if (is_hanging_in(machine, function, i))
        hang_in(function, i);
    if (is_measuring && machine->gpus[i].is_crashing)
        (void)raise(SIGKILL);
    *gpu = machine->gpus[i];
    if (instance < INSTANCES_MAX)
        turn_into_instance(&machine->instances[instance], gpu);
    if (gpu->is_instance && is_for_gpus_alone(function))
        return NOT_SUPPORTED;
    if (is_measuring)
        spend(machine, gpu->delay_ms > 0 ? gpu->delay_ms : machine->delay_ms);
    if (is_measuring && machine->n_starting > 0)
        spend(machine, machine->starting_ms);
    spend_in(machine, function);
    if (is_measuring && gpu->is_lost)
        return LOST;
    if (is_measuring && gpu->code != 0)
        return gpu->code;
    for (unsigned int k = 0; k < machine->n_fails; k++)
        if (strcmp(machine->fails[k].function, function) == 0)
            return machine->fails[k].code;
    return 0;
}

static int find_gpu(const char *function, void *device, struct gpu *gpu, int is_measuring)
{
    struct machine machine = look();
    return find_in(&machine, function, device, gpu, is_measuring);
}

#define find(device, gpu, is_measuring) find_gpu(__func__, device, gpu, is_measuring)

static int give_text(const char *from, char *to, unsigned int size)
{
    (void)snprintf(to, size, "%s", from);
    return 0;
}

static int count_gpus(unsigned int *count)
{
    struct machine machine = look();
    *count = machine.has_order ? machine.n_listed : machine.count;
    return 0;
}

static int open_gpu(const char *function, unsigned int i, void **device)
{
    char suffix[16];
    struct machine machine = hang_at(i);
    hang_in(function, i);
    if (i >= GPUS_MAX)
        return NOT_FOUND;
    if (machine.gpus[i].handle_code != 0)
        return machine.gpus[i].handle_code;
    if (!is_open[i]) {
        spend(&machine, machine.gpus[i].open_ms);
        spend_in(&machine, function);
        (void)snprintf(suffix, sizeof(suffix), ".gpu%u", i);
        gpu_fds[i] = open_file(suffix);
    }
    is_open[i] = 1;
    *device = (void *)(size_t)(i + 1);
    return 0;
}

static int give_handle(const char *function, unsigned int index, void **device)
{
    struct machine machine = look();
    if (index >= (machine.has_order ? machine.n_listed : machine.count))
        return NOT_FOUND;
    return open_gpu(function, machine.has_order ? machine.order[index] : index, device);
}

/* Of the GPUs that are listed. */
static int give_handle_at(const char *function, const char *address, void **device)
{
    struct machine machine = look();
    unsigned int domain, bus, slot;
    if (sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return BAD_ARGUMENT;
    for (unsigned int k = 0; k < (machine.has_order ? machine.n_listed : machine.count); k++) {
        unsigned int i = machine.has_order ? machine.order[k] : k;
        if (i < machine.count && machine.gpus[i].domain == domain && machine.gpus[i].bus == bus && slot == 0)
            return open_gpu(function, i, device);
    }
    return NOT_FOUND;
}

static int start(void)
{
    struct machine machine = look();
    const struct timespec pause_time = { .tv_nsec = POLL_NS };
    for (; machine.is_init_hanging; machine = look())
        (void)nanosleep(&pause_time, NULL);
    if (driver_fd < 0)
        spend_in(&machine, "nvmlInit_v2");
    if (machine.init == 0 && driver_fd < 0)
        driver_fd = open_file(".ctl");
    return machine.init;
}

int nvmlInit(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount(unsigned int *count);
int nvmlDeviceGetHandleByIndex(unsigned int index, void **device);
int nvmlDeviceGetHandleByPciBusId(const char *address, void **device);
int nvmlDeviceGetUUID(void *device, char *text, unsigned int size);
int nvmlDeviceGetName(void *device, char *text, unsigned int size);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);

EXPORT int nvmlInit(void)
{
    return start();
}

EXPORT int nvmlShutdown(void)
{
    close_all();
    return 0;
}

EXPORT const char *nvmlErrorString(int code)
{
    return code == UNKNOWN_ERROR ? "Unknown Error" : "Some Error";
}

EXPORT int nvmlDeviceGetCount(unsigned int *count)
{
    return count_gpus(count);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned int index, void **device)
{
    return give_handle(__func__, index, device);
}

EXPORT int nvmlDeviceGetHandleByPciBusId(const char *address, void **device)
{
    return give_handle_at(__func__, address, device);
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int size)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    return code != 0 ? code : give_text(gpu.uuid, text, size);
}

EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned int size)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    return code != 0 ? code : give_text(gpu.name, text, size);
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    if (code != 0)
        return code;
    memory->total = (unsigned long long)gpu.memory_mib << 20;
    memory->used = (unsigned long long)(gpu.used_mib + 400) << 20; // with what the driver keeps for itself
    memory->free = memory->total - memory->used;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count, void *infos);

/* Writes the list as the driver would: `bytes` for each, the tail beyond 16 being instance ids. */
static int list_processes(const char *function, const char *kind, void *device, unsigned int *count,
    unsigned char *infos, unsigned int bytes)
{
    struct machine machine = look();
    struct gpu gpu = { 0 };
    unsigned int room = *count;
    int code = find_in(&machine, function, device, &gpu, 1);
    if (code != 0)
        return code;
    unsigned int number = (unsigned int)((size_t)device - 1);
    if (gpu.is_instance)
        number = INSTANCE_NUMBER + find_instance(&machine, device);
    *count = 0;
    for (unsigned int i = 0; i < machine.n_processes; i++) {
        const struct process *process = &machine.processes[i];
        unsigned long long memory = process->mib < 0 ? ~0ULL : (unsigned long long)process->mib << 20;
        if (process->gpu != number || strcmp(process->kind, kind) != 0)
            continue;
        if (*count < room) {
            unsigned char *info = infos + (size_t)*count * bytes;
            memset(info + 16, 0xff, bytes < 24 ? 0 : 8);
            memset(info + 16, 0, bytes > 24 ? bytes - 16 : 0);
            memcpy(info, &process->pid, sizeof(process->pid));
            memcpy(info + 8, &memory, sizeof(memory));
        }
        (*count)++;
    }
    return *count > room ? INSUFFICIENT_SIZE : 0;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count, void *infos)
{
    return list_processes(__func__, "compute", device, count, infos, 16);
}

#ifndef OLD_DRIVER
int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *text, unsigned int size);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci *pci);

/* The `link`th one of this GPU; NULL when it has fewer. */
static const struct link *find_link(const struct machine *machine, const void *device, unsigned int link)
{
    for (unsigned int i = 0; i < machine->n_links; i++)
        if (machine->links[i].from == (unsigned int)((size_t)device - 1) && link-- == 0)
            return &machine->links[i];
    return NULL;
}

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active)
{
    struct machine machine = look();
    hang_in(__func__, (size_t)device - 1);
    *is_active = 1;
    return find_link(&machine, device, link) != NULL ? 0 : BAD_ARGUMENT;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci *pci)
{
    struct machine machine = look();
    hang_in(__func__, (size_t)device - 1);
    const struct link *found = find_link(&machine, device, link);
    if (found == NULL)
        return BAD_ARGUMENT;
    if (found->to == LINK_UNKNOWN)
        return NOT_SUPPORTED;
    memset(pci, 0, sizeof(*pci));
    pci->domain = found->to < machine.count ? machine.gpus[found->to].domain : 0xffff;
    pci->bus = found->to < machine.count ? machine.gpus[found->to].bus : 0xff;
    return 0;
}

EXPORT int nvmlInit_v2(void)
{
    hang_in(__func__, GPUS_MAX);
    return start();
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
    hang_in(__func__, GPUS_MAX);
    const struct machine machine = read_machine();
    for (unsigned int k = 0; k < machine.n_fails; k++)
        if (strcmp(machine.fails[k].function, __func__) == 0)
            return machine.fails[k].code;
    (void)snprintf(text, size, "%s", machine.driver[0] != '\0' ? machine.driver : "580.159.04");
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
    hang_in(__func__, GPUS_MAX);
    return count_gpus(count);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    return give_handle(__func__, index, device);
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    if (code != 0)
        return code;
    memset(pci, 0, sizeof(*pci));
    pci->domain = gpu.domain;
    pci->bus = gpu.bus;
    (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "%08x:%02x:00.0", gpu.domain, gpu.bus & 0xffU);
    return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    if (code != 0)
        return code;
    if (memory->version != (sizeof(*memory) | (2U << 24)))
        return VERSION_MISMATCH;
    memory->total = (unsigned long long)gpu.memory_mib << 20;
    memory->reserved = 400ULL << 20;
    memory->used = (unsigned long long)gpu.used_mib << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return 0;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    utilization->gpu = gpu.utilization;
    utilization->memory = 0;
    return code;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    *celsius = gpu.celsius;
    return code;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    *milliwatts = gpu.milliwatts;
    return code;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned int *megahertz);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count);

/* As find(), but for what only GPUs with a line `more` have. */
static int find_more(const char *function, void *device, struct gpu *gpu, int is_measuring)
{
    int code = find_gpu(function, device, gpu, is_measuring);
    return code == 0 && !gpu->has_more ? NOT_SUPPORTED : code;
}

EXPORT int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 0);
    *minor = gpu.minor;
    return code;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 1);
    *milliwatts = gpu.limit;
    return code;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 1);
    *millijoules = gpu.energy;
    return code;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int kind, unsigned int *megahertz)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 1);
    if (code == 0 && kind != 1 && kind != 2)
        return BAD_ARGUMENT;
    *megahertz = kind == 1 ? gpu.sm : gpu.memory_clock;
    return code;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 1);
    if (code == 0 && (kind < 0 || kind > 1 || counter != 0)) // 0: volatile
        return BAD_ARGUMENT;
    *count = gpu.ecc[kind];
    return code;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending);
int nvmlDeviceGetComputeMode(void *device, unsigned int *mode);
int nvmlDeviceGetNumaNodeId(void *device, unsigned int *node);
int nvmlDeviceGetFieldValues(void *device, int count, struct field_value *values);

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, OPENING_ANSWERED);
    *current = (unsigned int)gpu.mig[0];
    *pending = (unsigned int)gpu.mig[1];
    return code == 0 && !gpu.has_mig ? NOT_SUPPORTED : code;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **instance);
int nvmlDeviceGetGpuInstanceId(void *device, unsigned int *id);
int nvmlDeviceGetComputeInstanceId(void *device, unsigned int *id);
int nvmlDeviceGetAttributes_v2(void *device, struct attributes *attributes);

EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    *count = gpu.has_mig_count ? gpu.mig_count : gpu.mig[0] != 0 ? 7 : 0;
    return code;
}

/* In the order of the lines; the numbers behind the last have none. */
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **instance)
{
    struct machine machine = look();
    struct gpu gpu = { 0 };
    int code = find_in(&machine, __func__, device, &gpu, 0);
    for (unsigned int k = 0; code == 0 && k < machine.n_instances; k++) {
        const struct instance *found = &machine.instances[k];
        if (found->gpu != (unsigned int)((size_t)device - 1) || index-- > 0)
            continue;
        *instance = (void *)(size_t)(INSTANCE_HANDLE + (found->gpu << 8) + (found->gi << 4) + found->ci);
        return 0;
    }
    return code != 0 ? code : NOT_FOUND;
}

EXPORT int nvmlDeviceGetGpuInstanceId(void *device, unsigned int *id)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    *id = (unsigned int)((size_t)device >> 4 & 15);
    return code == 0 && !gpu.is_instance ? BAD_ARGUMENT : code;
}

EXPORT int nvmlDeviceGetComputeInstanceId(void *device, unsigned int *id)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    *id = (unsigned int)((size_t)device & 15);
    return code == 0 && !gpu.is_instance ? BAD_ARGUMENT : code;
}

/* The slices are those that the profile names. */
EXPORT int nvmlDeviceGetAttributes_v2(void *device, struct attributes *attributes)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    if (code != 0 || !gpu.is_instance)
        return code != 0 ? code : BAD_ARGUMENT;
    const char *profile = strstr(gpu.name, " MIG ") + strlen(" MIG ");
    memset(attributes, 0, sizeof(*attributes));
    if (sscanf(profile, "%uc.%ug", &attributes->compute_slices, &attributes->gpu_slices) != 2) {
        (void)sscanf(profile, "%ug", &attributes->gpu_slices);
        attributes->compute_slices = attributes->gpu_slices;
    }
    attributes->memory_mib = gpu.memory_mib;
    return 0;
}

EXPORT int nvmlDeviceGetComputeMode(void *device, unsigned int *mode)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    *mode = (unsigned int)gpu.compute;
    return code;
}

EXPORT int nvmlDeviceGetNumaNodeId(void *device, unsigned int *node)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 0);
    *node = (unsigned int)gpu.numa;
    return code == 0 && !gpu.has_numa ? NOT_SUPPORTED : code;
}

/* The call as a whole succeeds; each value has a code of its own. */
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field_value *values)
{
    struct gpu gpu = { 0 };
    int code = find(device, &gpu, 1);
    for (int i = 0; code == 0 && i < count; i++) {
        values[i].code = values[i].id == FIELD_RECOVERY && gpu.has_recovery ? 0 : NOT_SUPPORTED;
        values[i].type = 1; // unsigned int
        values[i].value.number = (unsigned int)gpu.recovery;
    }
    return code;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned int *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned int *count, void *infos);

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, void *infos)
{
    return list_processes(__func__, "compute", device, count, infos, look().process_bytes);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned int *count, void *infos)
{
    return list_processes(__func__, "graphics", device, count, infos, look().process_bytes);
}

EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned int *count, void *infos)
{
    return list_processes(__func__, "mps", device, count, infos, look().process_bytes);
}

int nvmlEventSetCreate(void **set);
int nvmlEventSetFree(void *set);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned int timeout_ms);

EXPORT int nvmlEventSetCreate(void **set)
{
    hang_in(__func__, GPUS_MAX);
    struct event_set *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return UNKNOWN_ERROR;
    made->seen = look().n_xids;
    *set = made;
    return 0;
}

EXPORT int nvmlEventSetFree(void *set)
{
    free(set);
    return 0;
}

EXPORT int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 0);
    *types = XID_EVENT | 1;
    return code;
}

EXPORT int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    struct gpu gpu = { 0 };
    int code = find_more(__func__, device, &gpu, 0);
    if (code == 0 && types != XID_EVENT)
        return BAD_ARGUMENT;
    if (code == 0)
        ((struct event_set *)set)->registered |= 1U << ((size_t)device - 1);
    return code;
}

EXPORT int nvmlEventSetWait_v2(void *set, struct event *event, unsigned int timeout_ms)
{
    struct event_set *waiting = set;
    const struct timespec pause_time = { .tv_nsec = POLL_NS };
    const struct timespec whole = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };
    hang_in(__func__, GPUS_MAX);
    if (look().is_still) {
        (void)nanosleep(&whole, NULL);
        return TIMED_OUT;
    }
    for (long waited_ns = 0; waited_ns < timeout_ms * 1000000L; waited_ns += POLL_NS) {
        struct machine machine = look();
        while (waiting->seen < machine.n_xids) {
            struct xid xid = machine.xids[waiting->seen++];
            if (xid.gpu >= GPUS_MAX || (waiting->registered & 1U << xid.gpu) == 0)
                continue;
            *event = (struct event){ (void *)(size_t)(xid.gpu + 1), XID_EVENT, xid.number, xid.gi, ~0U };
            return 0;
        }
        for (unsigned int i = 0; i < machine.count; i++)
            if (machine.gpus[i].is_lost && (waiting->registered & 1U << i) != 0)
                return LOST;
        (void)nanosleep(&pause_time, NULL);
    }
    return TIMED_OUT;
}
#endif
