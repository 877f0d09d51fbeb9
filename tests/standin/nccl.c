/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for NVIDIA's libnccl.so.2 beside that for CUDA (cuda.c), whose GPU memory is memory of the
 * process: the sums are made when a group ends. `nccl.state` beside the library may say
 *
 *   fail FUNCTION CODE  that function returns CODE
 *   wrong N             word N of each sum is another
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT           __attribute__((visibility("default")))
#define MEMBERS_MAX      16
#define INVALID_ARGUMENT 4
#define UINT32           3
#define SUM              0

struct call {
    const uint32_t *from;
    uint32_t *to;
    size_t count;
};

static struct call calls[MEMBERS_MAX];
static size_t n_calls;
static int members[MEMBERS_MAX], n_members;

/* The number after these words, -1: there is no such line. */
static long find(const char *words)
{
    char path[4096], line[256];
    Dl_info self;
    long found = -1;
    (void)dladdr((void *)(size_t)find, &self);
    (void)snprintf(path, sizeof(path), "%.*s/nccl.state",
        (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, words, strlen(words)) == 0 && line[strlen(words)] == ' ')
            found = strtol(line + strlen(words), NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return found;
}

static int mood(const char *function)
{
    char words[96];
    (void)snprintf(words, sizeof(words), "fail %s", function);
    long code = find(words);
    return code > 0 ? (int)code : 0;
}

EXPORT int ncclGetVersion(int *version)
{
    *version = 22703;
    return 0;
}

EXPORT const char *ncclGetErrorString(int code)
{
    return code == 1 ? "unhandled cuda error" : code == 2 ? "unhandled system error" : "invalid argument";
}

EXPORT int ncclCommInitAll(void **comms, int count, const int *devices)
{
    if (mood(__func__) != 0 || count < 1 || count > MEMBERS_MAX)
        return mood(__func__) != 0 ? mood(__func__) : INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        members[i] = devices[i];
        comms[i] = &members[i];
    }
    n_members = count;
    return 0;
}

EXPORT int ncclCommDestroy(void *comm)
{
    return 0;
}

EXPORT int ncclGroupStart(void)
{
    n_calls = 0;
    return mood(__func__);
}

EXPORT int ncclAllReduce(
    const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
    if (mood(__func__) != 0)
        return mood(__func__);
    if (type != UINT32 || operation != SUM || comm != &members[n_calls] || stream == NULL)
        return INVALID_ARGUMENT;
    calls[n_calls++] = (struct call){ from, to, count };
    return 0;
}

EXPORT int ncclGroupEnd(void)
{
    long wrong = find("wrong");
    if (mood(__func__) != 0 || (int)n_calls != n_members)
        return mood(__func__) != 0 ? mood(__func__) : INVALID_ARGUMENT;
    for (size_t k = 0; k < calls[0].count; k++) {
        uint32_t sum = 0;
        for (size_t i = 0; i < n_calls; i++)
            sum += calls[i].from[k];
        for (size_t i = 0; i < n_calls; i++)
            calls[i].to[k] = sum + (wrong == (long)k);
    }
    return 0;
}
