/* SPDX-License-Identifier: MIT */
/*
 * The programs that run on the GPU. They need no toolkit: tools/cuda-kernels compiles them with clang to PTX
 * and writes kernels.h, which is part of the sources, so that building mgpu needs no compiler for GPUs. The
 * driver translates the PTX for the GPU it runs on.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __attribute__((global)) void
#define TILE   16

static __attribute__((device)) u64 first_item(void)
{
    return (u64)(u32)__nvvm_read_ptx_sreg_ctaid_x() * (u32)__nvvm_read_ptx_sreg_ntid_x() +
           (u32)__nvvm_read_ptx_sreg_tid_x();
}

static __attribute__((device)) u64 all_items(void)
{
    return (u64)(u32)__nvvm_read_ptx_sreg_nctaid_x() * (u32)__nvvm_read_ptx_sreg_ntid_x();
}

/* The pattern: differs from word to word, also between words whose addresses differ in one high bit. */
static __attribute__((device)) u32 word_at(u64 i, u32 seed)
{
    return ((u32)i * 2654435761u + (u32)(i >> 32) * 2246822519u) ^ seed;
}

KERNEL mgpu_fill(u32 *words, u64 count, u32 seed)
{
    for (u64 i = first_item(); i < count; i += all_items())
        words[i] = word_at(i, seed);
}

/* result[0]: words that are not those of the pattern; result[1]: the lowest position of one. */
KERNEL mgpu_check(const u32 *words, u64 count, u32 seed, u64 *result)
{
    for (u64 i = first_item(); i < count; i += all_items())
        if (words[i] != word_at(i, seed)) {
            __atomic_fetch_add(&result[0], 1ull, __ATOMIC_RELAXED);
            __nvvm_atom_min_gen_ull(&result[1], i);
        }
}

/* product = left * right, all n by n; n is a multiple of TILE, and each thread computes one element. */
KERNEL mgpu_multiply(const float *left, const float *right, float *product, u32 n)
{
    static __attribute__((shared)) float a[TILE][TILE], b[TILE][TILE];
    u32 x = (u32)__nvvm_read_ptx_sreg_tid_x(), y = (u32)__nvvm_read_ptx_sreg_tid_y();
    u32 column = (u32)__nvvm_read_ptx_sreg_ctaid_x() * TILE + x;
    u32 row = (u32)__nvvm_read_ptx_sreg_ctaid_y() * TILE + y;
    float sum = 0;
    for (u32 t = 0; t < n; t += TILE) {
        a[y][x] = left[row * n + t + x];
        b[y][x] = right[(t + y) * n + column];
        __syncthreads();
        for (u32 k = 0; k < TILE; k++)
            sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    product[row * n + column] = sum;
}

/* Keeps the GPU busy for that time. */
KERNEL mgpu_spin(u64 nanoseconds)
{
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < nanoseconds);
}
