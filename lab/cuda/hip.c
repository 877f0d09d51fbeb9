/* SPDX-License-Identifier: MIT */
/*
 * AMD GPUs run code of their own kind alone, of which there are dozens. So the source of kernels.cu is in the
 * program, and HIP's translator, a library of ROCm, makes of it what the GPU runs: a second at most.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/cuda/gpu.h"
#include "lab/cuda/kernels.h"

#define LOG_MAX  200U
#define CODE_MAX ((size_t)16 << 20)

/* The first line that the translator says of a program which it does not take. */
static int refused(const struct hip_translator *translator, void *program, int code, struct error *err)
{
    size_t bytes = 0;
    _cleanup_free_ char *log = NULL, *text = NULL;
    if (translator->log_size(program, &bytes) == CUDA_SUCCESS && bytes > 0 && bytes < CODE_MAX) {
        log = xcalloc(bytes + 1, 1);
        (void)translator->log(program, log);
        log[strcspn(log, "\n")] = '\0';
        text = text_escape_fit(log, LOG_MAX);
    }
    return error_set(
        err, -EIO, "hiprtcCompileProgram failed (%d): %s", code, text != NULL ? text : "it says no more");
}

static int fetch(const struct hip_translator *translator, void *program, char **ret_code, size_t *ret_bytes,
    struct error *err)
{
    size_t bytes = 0;
    int code = translator->code_size(program, &bytes);
    if (code != CUDA_SUCCESS || bytes == 0 || bytes > CODE_MAX)
        return error_set(err, -EIO, "hiprtcGetCodeSize failed (%d): %zu bytes", code, bytes);
    _cleanup_free_ char *text = xmalloc(bytes);
    code = translator->code(program, text);
    if (code != CUDA_SUCCESS)
        return error_set(err, -EIO, "hiprtcGetCode failed (%d)", code);
    *ret_code = take_ptr(text);
    *ret_bytes = bytes;
    return 0;
}

int cuda_hip_translate(
    const struct cuda_api *api, const char *arch, char **ret_code, size_t *ret_bytes, struct error *err)
{
    const struct hip_translator *translator = &api->translator;
    _cleanup_free_ char *target = arch != NULL ? xasprintf("--offload-arch=%s", arch) : NULL;
    const char *options[] = { "-O2", target };
    void *program = NULL;
    int code = translator->create(&program, kernels_source, "kernels.cu", 0, NULL, NULL);
    if (code != CUDA_SUCCESS)
        return error_set(err, -EIO, "hiprtcCreateProgram failed (%d)", code);
    code = translator->compile(program, target != NULL ? 2 : 1, options);
    int r = code != CUDA_SUCCESS ? refused(translator, program, code, err)
                                 : fetch(translator, program, ret_code, ret_bytes, err);
    (void)translator->destroy(&program);
    return r;
}
