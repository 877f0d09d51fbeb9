/* SPDX-License-Identifier: MIT */
/* A fuzzer without a fuzzer: gives it each file of the folders named, once. Where clang is missing, and in
 * every build with tests, what was found once is tried again. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "fuzz.h"

#define INPUT_MAX (1U << 20)

static unsigned replay(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        exit(EXIT_FAILURE);
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        _cleanup_buffer_ struct buffer bytes = { 0 };
        if (entry->d_name[0] == '.')
            continue;
        if (file_read(dirfd(dir), entry->d_name, INPUT_MAX, &bytes) < 0) {
            (void)fprintf(stderr, "cannot read %s/%s\n", folder, entry->d_name);
            exit(EXIT_FAILURE);
        }
        (void)printf("%s\n", entry->d_name); // the last one is the one that crashes
        (void)fflush(stdout);
        /* A copy of exactly that size, so that the sanitizer sees a read behind it. */
        uint8_t *exact = malloc(bytes.length > 0 ? bytes.length : 1);
        if (bytes.length > 0)
            memcpy(exact, bytes.bytes, bytes.length);
        (void)LLVMFuzzerTestOneInput(exact, bytes.length);
        free(exact);
        count++;
    }
    (void)closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++)
        count += replay(argv[i]);
    (void)printf("%u inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
