/* SPDX-License-Identifier: MIT */
/*
 * The programs that run on the GPU. They need no toolkit: tools/cuda-kernels compiles them with clang to PTX
 * and writes that and their source to kernels.h, which is part of the sources, so that building mgpu needs no
 * compiler for GPUs. NVIDIA's driver translates the PTX for the GPU it runs on, HIP the source.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device))
#define TILE   16

#ifdef __HIP__
#define THREAD_X      threadIdx.x
#define THREAD_Y      threadIdx.y
#define BLOCK_X       blockIdx.x
#define BLOCK_Y       blockIdx.y
#define THREADS       blockDim.x
#define BLOCKS        gridDim.x
#define LOWER(at, to) (void)atomicMin(at, to)
#define NS_OF_TICK    10 // ROCm: the clock of all GPUs counts at 100 MHz

DEVICE u64 ticks(void)
{
    return (u64)wall_clock64();
}
#else
#define THREAD_X      (u32) __nvvm_read_ptx_sreg_tid_x()
#define THREAD_Y      (u32) __nvvm_read_ptx_sreg_tid_y()
#define BLOCK_X       (u32) __nvvm_read_ptx_sreg_ctaid_x()
#define BLOCK_Y       (u32) __nvvm_read_ptx_sreg_ctaid_y()
#define THREADS       (u32) __nvvm_read_ptx_sreg_ntid_x()
#define BLOCKS        (u32) __nvvm_read_ptx_sreg_nctaid_x()
#define LOWER(at, to) (void)__nvvm_atom_min_gen_ull(at, to)
#define NS_OF_TICK    1

DEVICE u64 ticks(void)
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
#endif

DEVICE u64 first_item(void)
{
    return (u64)BLOCK_X * THREADS + THREAD_X;
}

DEVICE u64 all_items(void)
{
    return (u64)BLOCKS * THREADS;
}

/* The pattern: differs from word to word, also between words whose addresses differ in one high bit. */
DEVICE u32 word_at(u64 i, u32 seed)
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
            LOWER(&result[1], i);
        }
}

/* product = left * right, all n by n; n is a multiple of TILE, and each thread computes one element. */
KERNEL mgpu_multiply(const float *left, const float *right, float *product, u32 n)
{
    static __attribute__((shared)) float a[TILE][TILE], b[TILE][TILE];
    u32 x = THREAD_X, y = THREAD_Y;
    u32 column = BLOCK_X * TILE + x, row = BLOCK_Y * TILE + y;
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
    u64 begin = ticks();
    while (ticks() - begin < nanoseconds / NS_OF_TICK)
        ;
}
