/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUDA's libcuda.so.1, so that programs that use a GPU run on machines without one. It does
 * what the state file says, which it reads anew at each call that matters: the one named by
 * MGPU_CUDA_STANDIN, else `cuda.state` beside the library. Memory of the GPU is memory of the process, and
 * kernels run when they are launched. Events count the time that work would take on the GPU of the lines, not
 * that of this machine, which does other work too: figures of speed depend on the lines alone. Without a line
 * `gpu` there is no GPU.
 *
 *   gpu BUS MEMORY_MIB UUID16 NAME...   one GPU, in CUDA's order; BUS is hexadecimal, UUID16 32 digits
 *   instance BUS MEMORY_MIB UUID16 NAME...   a MIG instance, likewise; a program sees one of them, and no
 * other GPU version N           of CUDA, such as 13000 (12040 where the line is missing) init CODE cuInit
 * returns CODE init_ms MS          cuInit takes MS hang FUNCTION       that function never returns fail
 * FUNCTION CODE  that function returns CODE corrupt N           word N of each pattern reads back as another
 *   speed MB_PER_S      what copies and kernels move (100000 where the line is missing)
 *   work_ms MS          each copy and kernel really takes at least so long
 *   used I MIB          memory of GPU I that others have
 *   sorted 1            GPUs are in CUDA's order whatever that of CUDA_VISIBLE_DEVICES
 *   peer I J MB_PER_S   GPU I reaches the memory of GPU J directly, as over NVLink; I and J count these lines
 *   rot N               word N of each pattern is another after the program was parked
 *
 * Beside the state file, `cuda.PID` says which GPU the process uses and how much of its memory: "UUID MIB".
 * The stand-in for NVML lists these processes. Where the folder cannot be written, it lists none.
 *
 * With a folder `cuda.d` beside the state file, programs can be parked (cuda_park.c): no call of one that is
 * locked returns before it is unlocked.
 *
 * With CUDA_MPS_PIPE_DIRECTORY it is a client of the stand-in for MPS, which may refuse memory. As with the
 * H200's driver, such a program cannot be locked to be parked.
 *
 * As with the driver, only the GPUs of CUDA_VISIBLE_DEVICES are there, given as numbers or UUIDs; one that is
 * not there ends the list.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GPUS_MAX        16
#define WORDS_MAX       32
#define NO_DEVICE       100
#define INVALID_VALUE   1
#define OUT_OF_MEMORY   2
#define NOT_INITIALIZED 3
#define INVALID_DEVICE  101
#define ILLEGAL_ADDRESS 700
#define NOT_FOUND       500
#define UNKNOWN         999
#define FULL_SPEED      100000            // MB/s
#define LAUNCH_BYTES    ((size_t)1 << 20) // that a kernel counts for
#define LOW_ADDRESS     4096              // below it nothing is mapped
#define PEERS_MAX       64
#define STAGED_SPEED    10000 // MB/s of copies between GPUs that do not reach each other
#define PEER_RANK       1
#define PEER_ATOMICS    3
#define REAL_MAX        ((size_t)1 << 30) // more than this of one allocation is never touched by tests
#define EXPORT          __attribute__((visibility("default")))

struct uuid {
    unsigned char bytes[16];
};

struct gpu {
    unsigned int bus, memory_mib, used_mib, line;
    int is_instance;
    struct uuid uuid;
    char name[64];
};

struct word {
    char function[64];
    int code, is_hanging;
};

struct peer {
    unsigned int from, to, speed;
};

struct machine {
    unsigned int n_peers;
    struct peer peers[PEERS_MAX];
    unsigned int count, n_words, init_ms, speed, work_ms, corrupt, rot;
    int version, init, has_corrupt, has_rot, is_sorted, is_there;
    struct gpu gpus[GPUS_MAX];
    struct word words[WORDS_MAX];
};

struct block {
    struct block *next;
    char *at;
    size_t bytes;
};

static int is_started;
static int sticky; // error of an earlier launch
static struct block *blocks;
static size_t allocated;
static int contexts[GPUS_MAX]; // a context is the address of its device's place
static int current;
static int64_t gpu_clock_ns; // of all work until now

static void read_gpu(struct machine *machine, const char *line)
{
    struct gpu gpu = { 0 };
    char hex[33] = "";
    unsigned int i, mib;
    gpu.is_instance = strncmp(line, "instance ", strlen("instance ")) == 0;
    if (sscanf(line, "%*[a-z] %x %u %32s %63[^\n]", &gpu.bus, &gpu.memory_mib, hex, gpu.name) == 4 &&
        (gpu.is_instance || strncmp(line, "gpu ", strlen("gpu ")) == 0) && machine->count < GPUS_MAX) {
        for (int b = 0; b < 16; b++) {
            unsigned int byte = 0;
            (void)sscanf(&hex[2 * b], "%2x", &byte);
            gpu.uuid.bytes[b] = (unsigned char)byte;
        }
        gpu.line = machine->count;
        machine->gpus[machine->count++] = gpu;
    }
    struct peer peer;
    if (sscanf(line, "peer %u %u %u", &peer.from, &peer.to, &peer.speed) == 3 && machine->n_peers < PEERS_MAX)
        machine->peers[machine->n_peers++] = peer;
    if (sscanf(line, "used %u %u", &i, &mib) == 2 && i < GPUS_MAX)
        machine->gpus[i].used_mib = mib;
}

static void read_line(struct machine *machine, const char *line)
{
    struct word word = { 0 };
    read_gpu(machine, line);
    (void)sscanf(line, "version %d", &machine->version);
    (void)sscanf(line, "init %d", &machine->init);
    (void)sscanf(line, "init_ms %u", &machine->init_ms);
    (void)sscanf(line, "speed %u", &machine->speed);
    (void)sscanf(line, "work_ms %u", &machine->work_ms);
    if (sscanf(line, "corrupt %u", &machine->corrupt) == 1)
        machine->has_corrupt = 1;
    (void)sscanf(line, "sorted %d", &machine->is_sorted);
    if (sscanf(line, "rot %u", &machine->rot) == 1)
        machine->has_rot = 1;
    int is_failing = sscanf(line, "fail %63s %d", word.function, &word.code) == 2;
    word.is_hanging = !is_failing && sscanf(line, "hang %63s", word.function) == 1;
    if ((is_failing || word.is_hanging) && machine->n_words < WORDS_MAX)
        machine->words[machine->n_words++] = word;
}

/* The state file, or one beside it. */
static FILE *open_beside(const char *name, const char *mode)
{
    char path[4096];
    Dl_info self;
    const char *named = getenv("MGPU_CUDA_STANDIN"), *slash = NULL;
    if (named == NULL && dladdr((void *)(size_t)open_beside, &self) != 0)
        named = self.dli_fname;
    slash = named == NULL ? NULL : strrchr(named, '/');
    if (slash == NULL)
        return NULL;
    if (name == NULL && getenv("MGPU_CUDA_STANDIN") != NULL)
        return fopen(named, mode);
    (void)snprintf(
        path, sizeof(path), "%.*s/%s", (int)(slash - named), named, name != NULL ? name : "cuda.state");
    return fopen(path, mode);
}

static FILE *open_state(void)
{
    return open_beside(NULL, "re");
}

static void write_uuid(const struct gpu *gpu, char *text, size_t size)
{
    const struct uuid *uuid = &gpu->uuid;
    (void)snprintf(text, size, gpu->is_instance ? "MIG-" : "GPU-");
    for (size_t b = 0, at = 4; b < 16; b++)
        at += (size_t)snprintf(
            &text[at], size - at, "%s%02x", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "", uuid->bytes[b]);
}

/* The GPU of that word of CUDA_VISIBLE_DEVICES; -1: none. */
static int find_visible(const struct machine *machine, const char *word)
{
    char *end;
    long number = strtol(word, &end, 10);
    if (end != word && *end == '\0')
        return number >= 0 && number < (long)machine->count ? (int)number : -1;
    for (unsigned int i = 0; i < machine->count; i++) {
        char text[64];
        write_uuid(&machine->gpus[i], text, sizeof(text));
        if (strcmp(word, text) == 0)
            return (int)i;
    }
    return -1;
}

static int by_bus(const void *left, const void *right)
{
    const struct gpu *a = left, *b = right;
    return (a->bus > b->bus) - (a->bus < b->bus);
}

/* As with the driver, the first MIG instance is the only GPU of a program, unless a whole one comes first. */
static void keep_instance(struct machine *machine)
{
    unsigned int kept = 0;
    for (unsigned int i = 0; i < machine->count; i++)
        if (i == 0 || (!machine->gpus[0].is_instance && !machine->gpus[i].is_instance))
            machine->gpus[kept++] = machine->gpus[i];
    machine->count = kept;
}

static void hide(struct machine *machine)
{
    struct machine all = *machine;
    char text[1024], *rest = text;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible == NULL)
        return;
    (void)snprintf(text, sizeof(text), "%s", visible);
    machine->count = 0;
    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        int i = find_visible(&all, word);
        if (i < 0 || machine->count == GPUS_MAX)
            return;
        machine->gpus[machine->count++] = all.gpus[i];
    }
}

static struct machine look(void)
{
    struct machine machine = { .version = 12040 };
    char line[256];
    FILE *file = open_state();
    if (file == NULL)
        return machine;
    machine.is_there = 1;
    while (fgets(line, sizeof(line), file) != NULL)
        read_line(&machine, line);
    (void)fclose(file);
    hide(&machine);
    keep_instance(&machine);
    if (machine.is_sorted)
        qsort(machine.gpus, machine.count, sizeof(machine.gpus[0]), by_bus);
    return machine;
}

/* What the state says about that function; -1: nothing. */
static int mood(const struct machine *machine, const char *function)
{
    for (unsigned int i = 0; i < machine->n_words; i++) {
        if (strcmp(machine->words[i].function, function) != 0)
            continue;
        while (machine->words[i].is_hanging)
            (void)pause();
        return machine->words[i].code;
    }
    return -1;
}

/* What cannot fail, and may hang. */
static void pass(const char *function)
{
    const struct machine machine = look();
    (void)mood(&machine, function);
}

/* --- what of this program can be parked --- */

#define PARK_POLL_NS 5000000

static int park_file = -1; // cuda.d/PID, once this program has memory

/* The byte of the file at that place: 0 its state, 1 whether it was restored; '0' without a file. */
static char park_byte(off_t at)
{
    char byte = '0';
    return park_file >= 0 && pread(park_file, &byte, 1, at) == 1 ? byte : '0';
}

static void spend(int64_t ns);

static void await_unlock(void)
{
    while (park_byte(0) != '0')
        spend(PARK_POLL_NS);
}

static int mps = -1; // the connection of a client of MPS

/* The answer of the control daemon is "ok". */
static int ask_mps(const char *line)
{
    char answer[64] = "";
    return write(mps, line, strlen(line)) > 0 && read(mps, answer, sizeof(answer) - 1) > 0 &&
           strncmp(answer, "ok", 2) == 0;
}

/* Whether MPS gives the memory; it does to a program that is no client. */
static int has_share(size_t bytes)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY"),
               *limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char line[128];
    if (mps < 0 && folder != NULL) {
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/control", folder);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        mps = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
        (void)snprintf(line, sizeof(line), "limit %.100s\n", limit != NULL ? limit : "");
        if (mps >= 0 && limit != NULL)
            (void)ask_mps(line);
    }
    (void)snprintf(line, sizeof(line), "alloc %zu\n", bytes >> 20);
    return mps < 0 || ask_mps(line);
}

static void offer_to_park(int is_managed)
{
    char path[4096];
    Dl_info self;
    if (park_file >= 0 || dladdr((void *)(size_t)offer_to_park, &self) == 0)
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    (void)snprintf(path, sizeof(path), "%.*s/cuda.d/%d", slash != NULL ? (int)(slash - self.dli_fname) : 0,
        self.dli_fname, (int)getpid());
    park_file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (park_file >= 0 && (fchmod(park_file, 0666) < 0 || pwrite(park_file,
                                                              is_managed ? "0-m"
                                                              : mps >= 0 ? "0-s"
                                                                         : "0--",
                                                              3, 0) != 3))
        abort();
}

/* The code with which a function begins; 0: it goes on. */
static int enter(const char *function, struct machine *ret)
{
    await_unlock();
    struct machine machine = look();
    int code = mood(&machine, function);
    *ret = machine;
    if (code >= 0)
        return code;
    return !is_started ? NOT_INITIALIZED : sticky;
}
#define ENTER(machine)                                                                                       \
    struct machine machine;                                                                                  \
    {                                                                                                        \
        int enter_code = enter(__func__, &machine);                                                          \
        if (enter_code != 0)                                                                                 \
            return enter_code;                                                                               \
    }

static void spend(int64_t ns)
{
    const struct timespec time = { .tv_sec = ns / 1000000000LL, .tv_nsec = ns % 1000000000LL };
    if (ns > 0)
        (void)nanosleep(&time, NULL);
}

/* Work that moves so many bytes of the GPU's memory. */
static void work(const struct machine *machine, size_t bytes)
{
    gpu_clock_ns += (int64_t)bytes * 1000 / (machine->speed > 0 ? machine->speed : FULL_SPEED);
    spend((int64_t)machine->work_ms * 1000000);
}

/* --- start and description --- */

/* While it starts there is a file cuda.start.PID, for the stand-in for NVML. */
static void tell_start(unsigned int ms)
{
    char name[48], path[4200];
    Dl_info self;
    (void)snprintf(name, sizeof(name), "cuda.start.%d", (int)getpid());
    FILE *file = ms > 0 ? open_beside(name, "we") : NULL;
    spend((int64_t)ms * 1000000);
    if (file == NULL)
        return;
    (void)fclose(file);
    const char *named = getenv("MGPU_CUDA_STANDIN");
    if (named == NULL && dladdr((void *)(size_t)tell_start, &self) != 0)
        named = self.dli_fname;
    (void)snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(named, '/') - named), named, name);
    (void)unlink(path);
}

EXPORT int cuInit(unsigned int flags)
{
    struct machine machine = look();
    int code = mood(&machine, __func__);
    tell_start(machine.init_ms);
    if (code >= 0 || machine.init != 0)
        return code >= 0 ? code : machine.init;
    if (machine.count == 0)
        return NO_DEVICE;
    is_started = 1;
    return 0;
}

EXPORT int cuDriverGetVersion(int *version)
{
    pass(__func__);
    *version = look().version;
    return 0;
}

EXPORT int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = { { 0, "CUDA_SUCCESS" }, { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
        { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" }, { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
        { NO_DEVICE, "CUDA_ERROR_NO_DEVICE" }, { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
        { 218, "CUDA_ERROR_INVALID_PTX" }, { NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
        { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" }, { 801, "CUDA_ERROR_NOT_SUPPORTED" },
        { UNKNOWN, "CUDA_ERROR_UNKNOWN" } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].code == code) {
            *name = names[i].name;
            return 0;
        }
    return INVALID_VALUE;
}

EXPORT int cuDeviceGetCount(int *count)
{
    ENTER(machine);
    *count = (int)machine.count;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int number)
{
    ENTER(machine);
    if (number < 0 || number >= (int)machine.count)
        return INVALID_DEVICE;
    *device = number;
    return 0;
}

EXPORT int cuDeviceGetName(char *text, int size, int device)
{
    ENTER(machine);
    (void)snprintf(text, (size_t)size, "%s", machine.gpus[device].name);
    return 0;
}

EXPORT int cuDeviceGetUuid_v2(struct uuid *uuid, int device)
{
    ENTER(machine);
    *uuid = machine.gpus[device].uuid;
    return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    ENTER(machine);
    (void)snprintf(text, (size_t)size, "0000:%02X:00.0", machine.gpus[device].bus);
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    ENTER(machine);
    *bytes = (size_t)machine.gpus[device].memory_mib << 20;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    ENTER(machine);
    *value = attribute == 75 ? 9 : attribute == 16 ? 2 : 0;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    ENTER(machine);
    current = device;
    *context = &contexts[device];
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    pass(__func__);
    return 0;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    ENTER(machine);
    int *place = context;
    if (place < contexts || place >= contexts + machine.count)
        return INVALID_VALUE;
    current = (int)(place - contexts);
    return 0;
}

EXPORT int cuCtxSynchronize(void)
{
    ENTER(machine);
    return 0;
}

/* --- memory --- */

#define CONTEXT_MIB 16 // what the driver takes for a program that uses a GPU

/* For the stand-in for NVML. */
static void tell_use(const struct machine *machine)
{
    char name[32], uuid[64];
    (void)snprintf(name, sizeof(name), "cuda.%d", (int)getpid());
    FILE *file = open_beside(name, "we");
    if (file == NULL)
        return;
    write_uuid(&machine->gpus[current], uuid, sizeof(uuid));
    (void)fprintf(file, "%s %zu\n", uuid, (allocated >> 20) + CONTEXT_MIB);
    (void)fclose(file);
}

static size_t free_bytes(const struct machine *machine)
{
    const struct gpu *gpu = &machine->gpus[current];
    size_t used = ((size_t)gpu->used_mib << 20) + allocated, total = (size_t)gpu->memory_mib << 20;
    return used < total ? total - used : 0;
}

EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    ENTER(machine);
    *available = free_bytes(&machine);
    *total = (size_t)machine.gpus[current].memory_mib << 20;
    return 0;
}

static int allocate(const struct machine *machine, unsigned long long *pointer, size_t bytes)
{
    if (bytes > free_bytes(machine) || !has_share(bytes))
        return OUT_OF_MEMORY;
    struct block *block = calloc(1, sizeof(*block));
    char *at = calloc(1, bytes < REAL_MAX ? bytes : REAL_MAX);
    if (block == NULL || at == NULL) {
        free(block);
        free(at);
        return OUT_OF_MEMORY;
    }
    *block = (struct block){ blocks, at, bytes };
    blocks = block;
    allocated += bytes;
    tell_use(machine);
    offer_to_park(0);
    *pointer = (unsigned long long)(uintptr_t)at;
    return 0;
}

EXPORT int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes)
{
    ENTER(machine);
    return allocate(&machine, pointer, bytes);
}

EXPORT int cuMemAllocManaged(unsigned long long *pointer, size_t bytes, unsigned int flags)
{
    ENTER(machine);
    offer_to_park(1);
    return flags == 1 ? allocate(&machine, pointer, bytes) : INVALID_VALUE;
}

EXPORT int cuMemFree_v2(unsigned long long pointer)
{
    pass(__func__);
    for (struct block **at = &blocks; *at != NULL; at = &(*at)->next) {
        struct block *block = *at;
        if ((unsigned long long)(uintptr_t)block->at != pointer)
            continue;
        *at = block->next;
        allocated -= block->bytes;
        free(block->at);
        free(block);
        return 0;
    }
    return INVALID_VALUE;
}

EXPORT int cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    ENTER(machine);
    *pointer = calloc(1, bytes);
    return *pointer == NULL ? OUT_OF_MEMORY : 0;
}

EXPORT int cuMemFreeHost(void *pointer)
{
    pass(__func__);
    free(pointer);
    return 0;
}

static int copy(const struct machine *machine, void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    work(machine, bytes);
    return 0;
}

EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
    ENTER(machine);
    return copy(&machine, (void *)(uintptr_t)to, from, bytes);
}

EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes)
{
    ENTER(machine);
    return copy(&machine, to, (const void *)(uintptr_t)from, bytes);
}

EXPORT int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t bytes)
{
    ENTER(machine);
    return copy(&machine, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

/* --- several GPUs --- */

/* The direct way from one to the other; NULL: there is none. */
static const struct peer *find_peer(const struct machine *machine, int from, int to)
{
    for (unsigned int i = 0; i < machine->n_peers; i++)
        if (machine->peers[i].from == machine->gpus[from].line &&
            machine->peers[i].to == machine->gpus[to].line)
            return &machine->peers[i];
    return NULL;
}

EXPORT int cuDeviceCanAccessPeer(int *can, int from, int to)
{
    ENTER(machine);
    *can = find_peer(&machine, from, to) != NULL;
    return 0;
}

EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    ENTER(machine);
    int is_direct = find_peer(&machine, from, to) != NULL;
    *value = attribute == PEER_RANK ? !is_direct : attribute == PEER_ATOMICS ? is_direct : 0;
    return 0;
}

EXPORT int cuCtxEnablePeerAccess(void *context, unsigned int flags)
{
    ENTER(machine);
    return find_peer(&machine, current, (int)((int *)context - contexts)) != NULL ? 0 : 217;
}

EXPORT int cuMemcpyPeerAsync(unsigned long long to, void *to_context, unsigned long long from,
    void *from_context, size_t bytes, void *stream)
{
    ENTER(machine);
    const struct peer *peer =
        find_peer(&machine, (int)((int *)from_context - contexts), (int)((int *)to_context - contexts));
    machine.speed = peer != NULL ? peer->speed : STAGED_SPEED;
    return copy(&machine, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

EXPORT int cuStreamCreate(void **stream, unsigned int flags)
{
    ENTER(machine);
    *stream = &contexts[current];
    return flags <= 1 ? 0 : INVALID_VALUE;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    ENTER(machine);
    return stream == &contexts[current] ? 0 : 400;
}

/* --- kernels --- */

static uint32_t word_at(uint64_t i, uint32_t seed)
{
    return ((uint32_t)i * 2654435761U + (uint32_t)(i >> 32) * 2246822519U) ^ seed;
}

/* A launch of a kernel of lab/cuda/kernels.cu, with its parameters. */
typedef int kernel_fn(const struct machine *machine, const unsigned int grid[2], void **parameters);

static int fill(const struct machine *machine, const unsigned int grid[2], void **parameters)
{
    uint32_t *words = (uint32_t *)(uintptr_t) * (unsigned long long *)parameters[0];
    uint64_t count = *(uint64_t *)parameters[1];
    uint32_t seed = *(uint32_t *)parameters[2];
    if ((uintptr_t)words < LOW_ADDRESS)
        return ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < count; i++)
        words[i] = word_at(i, seed);
    if (machine->has_corrupt && machine->corrupt < count)
        words[machine->corrupt] ^= 4;
    return 0;
}

static int check(const struct machine *machine, const unsigned int grid[2], void **parameters)
{
    uint32_t *words = (uint32_t *)(uintptr_t) * (unsigned long long *)parameters[0];
    uint64_t count = *(uint64_t *)parameters[1];
    uint32_t seed = *(uint32_t *)parameters[2];
    uint64_t *result = (uint64_t *)(uintptr_t) * (unsigned long long *)parameters[3];
    if (machine->has_rot && machine->rot < count && park_byte(1) == 'r')
        words[machine->rot] ^= 4;
    for (uint64_t i = 0; i < count; i++) {
        if (words[i] == word_at(i, seed))
            continue;
        result[0]++;
        result[1] = i < result[1] ? i : result[1];
    }
    return 0;
}

/* Columns repeat with period 7, and rows with period 5, as the test has it; so few are computed. */
static int multiply(const struct machine *machine, const unsigned int grid[2], void **parameters)
{
    const float *left = (float *)(uintptr_t) * (unsigned long long *)parameters[0];
    const float *right = (float *)(uintptr_t) * (unsigned long long *)parameters[1];
    float *product = (float *)(uintptr_t) * (unsigned long long *)parameters[2];
    size_t n = *(uint32_t *)parameters[3];
    if (grid[0] != n / 16 || grid[1] != n / 16)
        return INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
            for (size_t k = 0; i < 5 && j < 7 && k < n; k++)
                sum += left[i * n + k] * right[k * n + j];
            product[i * n + j] = i < 5 && j < 7 ? sum : product[i % 5 * n + j % 7];
        }
    if (machine->has_corrupt)
        product[machine->corrupt % (n * n)] += 1;
    return 0;
}

static int spin(const struct machine *machine, const unsigned int grid[2], void **parameters)
{
    spend(*(int64_t *)parameters[0]);
    return 0;
}

static const struct kernel {
    const char *name;
    kernel_fn *run;
} kernels[] = { { "mgpu_fill", fill }, { "mgpu_check", check }, { "mgpu_multiply", multiply },
    { "mgpu_spin", spin } };

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    ENTER(machine);
    if (strstr(image, ".entry") == NULL || strncmp(image, ".version", strlen(".version")) != 0)
        return 218;
    *module = &contexts[current];
    return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    ENTER(machine);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *function = (void *)(uintptr_t)&kernels[i];
            return 0;
        }
    return NOT_FOUND;
}

EXPORT int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, void *stream,
    void **parameters, void **extra)
{
    ENTER(machine);
    const unsigned int grid[2] = { grid_x, grid_y };
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0)
        return INVALID_VALUE;
    sticky = ((const struct kernel *)function)->run(&machine, grid, parameters);
    work(&machine, LAUNCH_BYTES);
    return 0; // errors of a kernel show in the calls that follow
}

/* --- events --- */

EXPORT int cuEventCreate(void **event, unsigned int flags)
{
    ENTER(machine);
    *event = calloc(1, sizeof(int64_t));
    return *event == NULL ? OUT_OF_MEMORY : 0;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    ENTER(machine);
    *(int64_t *)event = gpu_clock_ns;
    return 0;
}

EXPORT int cuEventSynchronize(void *event)
{
    ENTER(machine);
    return 0;
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    ENTER(machine);
    *milliseconds = (float)(*(int64_t *)to - *(int64_t *)from) / 1e6F;
    return 0;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    pass(__func__);
    free(event);
    return 0;
}
