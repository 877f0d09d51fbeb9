/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the part of NVIDIA's libcuda.so.1 that saves and restores the GPU memory of other processes.
 * Its processes are the files named by a pid in the folder `cuda.d` beside the library, with the state as
 * their first byte: 0 runs, 1 locked, 2 saved, 3 failed. Every call is a line of `cuda.d/log`: function, pid,
 * and the microseconds of processor time that the calling process has used so far. The GPUs of the latest
 * restore on others are the lines of `cuda.d/map`: two UUIDs each, without hyphens. As with the
 * driver, a call about a process that is stopped does not return before it is continued. `cuda.d/rules` is
 * read anew at each call:
 *
 *   version N            cuDriverGetVersion tells N (13000)
 *   fail FUNCTION CODE   FUNCTION changes nothing and returns CODE
 *   break FUNCTION CODE  FUNCTION leaves the process failed and returns CODE
 *   lie FUNCTION         FUNCTION changes nothing and returns success
 *   hang FUNCTION        FUNCTION does not return while this line is there
 *   hang_for FUNCTION PID  FUNCTION does not return for that process while this line is there
 *   nonsense state N     the state of each process is N
 *   delay FUNCTION MS    FUNCTION takes MS milliseconds
 *   die FUNCTION         the calling process dies
 *   die_at N             the calling process dies in the Nth call of the log
 *   hold N               the Nth call of the log does not return while this line is there
 *   room N               no more than N processes can be saved: there is no host memory for more
 *
 *   rate FUNCTION MB_PER_S  FUNCTION takes the time that the process's memory needs at that speed
 *
 * With OLD_DRIVER it has only what drivers before 570 had. With IN_CUDA it is a part of the stand-in for CUDA
 * (cuda.c), whose programs are its processes where there is a folder `cuda.d`. They write their files: after
 * the state come `r` once a restore has ended, `m` for memory that the driver cannot save
 * and `s` for a share under MPS that it cannot lock (both CUDA_ERROR_NOT_SUPPORTED), and else `-`.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT        __attribute__((visibility("default")))
#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2
#define ILLEGAL_STATE 401
#define NOT_READY     600
#define NOT_SUPPORTED 801
#define POLL_MS       5

static void wait_ms(unsigned int ms)
{
    (void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static void folder_file(const char *name, char *path, size_t size)
{
    Dl_info self;
    (void)dladdr((void *)folder_file, &self);
    const char *slash = strrchr(self.dli_fname, '/');
    (void)snprintf(path, size, "%.*s/cuda.d/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
}

/* The number of the rule, 0 if it has none; -1 if there is no such rule. */
static int rule(const char *word, const char *function)
{
    char path[4096], line[256], have[32], of[64];
    folder_file("rules", path, sizeof(path));
    FILE *file = fopen(path, "re");
    int found = -1;
    while (file != NULL && found < 0 && fgets(line, sizeof(line), file) != NULL) {
        int number = 0;
        int n = sscanf(line, "%31s %63s %d", have, of, &number);
        if (n >= 2 && strcmp(have, word) == 0 && strcmp(of, function) == 0)
            found = number;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* What the rules make of the call: true if it ends with *ret. */
static bool obey(const char *function, int *ret)
{
    if (rule("die", function) >= 0)
        _exit(9);
    while (rule("hang", function) >= 0)
        wait_ms(POLL_MS);
    int delay = rule("delay", function), code = rule("fail", function);
    if (delay > 0)
        wait_ms((unsigned int)delay);
    if (code >= 0) {
        *ret = code;
        return true;
    }
    *ret = 0;
    return rule("lie", function) >= 0;
}

#ifndef IN_CUDA

EXPORT int cuInit(unsigned int flags);
EXPORT int cuInit(unsigned int flags)
{
    int ret = 0;
    (void)obey("cuInit", &ret);
    return ret;
}

EXPORT int cuDriverGetVersion(int *ret);
EXPORT int cuDriverGetVersion(int *ret)
{
    char path[4096], line[256];
    while (rule("hang", "version") >= 0)
        wait_ms(POLL_MS);
    folder_file("rules", path, sizeof(path));
    FILE *file = fopen(path, "re");
    *ret = 13000;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "version %d", ret);
    if (file != NULL)
        (void)fclose(file);
    return 0;
}

EXPORT int cuGetErrorName(int error, const char **ret);
EXPORT int cuGetErrorName(int error, const char **ret)
{
    *ret = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 801 ? "CUDA_ERROR_NOT_SUPPORTED" : NULL;
    return *ret != NULL ? 0 : INVALID_VALUE;
}

#endif

#ifndef OLD_DRIVER

/* The number after a rule's word, -1 without such a rule. */
static int number_of(const char *word)
{
    char path[4096], line[256], have[32];
    int number = 0, found = -1;
    folder_file("rules", path, sizeof(path));
    FILE *file = fopen(path, "re");
    while (file != NULL && found < 0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "%31s %d", have, &number) == 2 && strcmp(have, word) == 0)
            found = number;
    if (file != NULL)
        (void)fclose(file);
    return found;
}

static int count_calls(void)
{
    char path[4096];
    int lines = 0;
    folder_file("log", path, sizeof(path));
    FILE *file = fopen(path, "re");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        (void)fclose(file);
    return lines;
}

/* The call of that number begins: one helper is at work at a time. */
static void obey_number(int number)
{
    if (number_of("die_at") == number)
        _exit(9);
    while (number_of("hold") == number)
        wait_ms(POLL_MS);
}

static void hang_for(const char *function, int pid)
{
    while (rule("hang_for", function) == pid)
        wait_ms(POLL_MS);
}

static void note(const char *function, int pid)
{
    char path[4096], text[96];
    struct timespec used = { 0 };
    folder_file("log", path, sizeof(path));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    int length = snprintf(text, sizeof(text), "%s %d %lld\n", function, pid,
        (long long)used.tv_sec * 1000000 + used.tv_nsec / 1000);
    if (fd >= 0 && write(fd, text, (size_t)length) < 0)
        abort();
    if (fd >= 0)
        (void)close(fd);
}

static bool is_stopped(int pid)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && (end[2] == 'T' || end[2] == 't');
}

static int open_process(int pid, char *ret_state)
{
    char name[16], path[4096];
    (void)snprintf(name, sizeof(name), "%d", pid);
    folder_file(name, path, sizeof(path));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && pread(fd, ret_state, 1, 0) == 1)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* How many processes are in that state. */
static int count_in(char wanted)
{
    char path[4096], state = '\0';
    int count = 0;
    folder_file("", path, sizeof(path));
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int fd = strspn(entry->d_name, "0123456789") == strlen(entry->d_name)
                     ? openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC)
                     : -1;
        count += fd >= 0 && read(fd, &state, 1) == 1 && state == wanted;
        if (fd >= 0)
            (void)close(fd);
    }
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

/* What the stand-in for CUDA says of the process: the bytes after its state. */
static bool has_mark(int fd, unsigned int at, char mark)
{
    char have = '\0';
    return pread(fd, &have, 1, at) == 1 && have == mark;
}

/* The time that so much memory takes, from cuda.PID: "UUID MIB". */
static void take_time(const char *function, int pid)
{
    char name[32], path[4096];
    unsigned int mib = 0;
    int rate = rule("rate", function);
    (void)snprintf(name, sizeof(name), "../cuda.%d", pid);
    folder_file(name, path, sizeof(path));
    FILE *file = rate > 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    if (fscanf(file, "%*s %u", &mib) == 1)
        wait_ms(mib * 1000 / (unsigned int)rate);
    (void)fclose(file);
}

static int move(const char *function, int pid, char from, char to, unsigned int timeout_ms)
{
    char state = '\0';
    int ret = 0, room = to == '2' ? number_of("room") : -1;
    note(function, pid);
    obey_number(count_calls());
    hang_for(function, pid);
    if (room >= 0 && count_in('2') >= room)
        return OUT_OF_MEMORY;
    if (obey(function, &ret))
        return ret;
    for (unsigned int ms = 0; is_stopped(pid); ms += POLL_MS) {
        if (timeout_ms > 0 && ms >= timeout_ms)
            return NOT_READY;
        wait_ms(POLL_MS);
    }
    int fd = open_process(pid, &state), broken = rule("break", function);
    if (fd < 0)
        return INVALID_VALUE;
    if ((to == '2' && has_mark(fd, 2, 'm')) || (from == '0' && has_mark(fd, 2, 's'))) {
        (void)close(fd);
        return NOT_SUPPORTED;
    }
    take_time(function, pid);
    if (from == '2' && pwrite(fd, "r", 1, 1) != 1)
        abort();
    if (state == from) {
        state = broken >= 0 ? '3' : to;
        ret = pwrite(fd, &state, 1, 0) == 1 ? (broken >= 0 ? broken : 0) : 999;
    } else {
        ret = ILLEGAL_STATE;
    }
    (void)close(fd);
    return ret;
}

struct lock_arguments {
    unsigned int timeout_ms, reserved;
    unsigned long long more[7];
};

EXPORT int cuCheckpointProcessGetState(int pid, int *ret);
EXPORT int cuCheckpointProcessGetState(int pid, int *ret)
{
    char state = '\0';
    int r = 0;
    hang_for("state", pid);
    if (obey("state", &r))
        return r;
    int fd = open_process(pid, &state);
    if (fd < 0)
        return INVALID_VALUE;
    (void)close(fd);
    while (is_stopped(pid))
        wait_ms(POLL_MS);
    int nonsense = rule("nonsense", "state");
    *ret = nonsense >= 0 ? nonsense : state - '0';
    return 0;
}

EXPORT int cuCheckpointProcessLock(int pid, struct lock_arguments *arguments);
EXPORT int cuCheckpointProcessLock(int pid, struct lock_arguments *arguments)
{
    return move("lock", pid, '0', '1', arguments->timeout_ms);
}

EXPORT int cuCheckpointProcessCheckpoint(int pid, void *arguments);
EXPORT int cuCheckpointProcessCheckpoint(int pid, void *arguments)
{
    return move("save", pid, '1', '2', 0);
}

struct restore_arguments {
    const unsigned char (*pairs)[2][16]; // UUIDs: from, to
    unsigned int count;
    char reserved[44];
    unsigned long long more;
};

static void note_uuid(FILE *file, const unsigned char uuid[16], char end)
{
    for (unsigned int i = 0; i < 16; i++)
        (void)fprintf(file, "%02x", uuid[i]);
    (void)fputc(end, file);
}

EXPORT int cuCheckpointProcessRestore(int pid, const struct restore_arguments *arguments);
EXPORT int cuCheckpointProcessRestore(int pid, const struct restore_arguments *arguments)
{
    char path[4096];
    folder_file("map", path, sizeof(path));
    FILE *file = arguments->count > 0 ? fopen(path, "we") : NULL;
    for (unsigned int i = 0; file != NULL && i < arguments->count; i++) {
        note_uuid(file, arguments->pairs[i][0], ' ');
        note_uuid(file, arguments->pairs[i][1], '\n');
    }
    if (file != NULL)
        (void)fclose(file);
    return move("restore", pid, '2', '1', 0);
}

EXPORT int cuCheckpointProcessUnlock(int pid, void *arguments);
EXPORT int cuCheckpointProcessUnlock(int pid, void *arguments)
{
    return move("unlock", pid, '1', '0', 0);
}
#endif
