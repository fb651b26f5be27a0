// Counting on a GPU: the same integers as veil.kernels, whatever the order of blocks and threads.
//
// NVRTC compiles this file where a GPU is; tests compile it with g++ and a shim in which a launch is a loop. So it has
// no includes, every kernel works for any number of threads in a block, and all sums are of integers.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef TILE
#define TILE 256  // reports that a block keeps in shared memory; launching.py pads reports to a multiple of it
#endif

// The hash is veil.kernels.hashing.hash32. Its first step, x ^ x >> 16 of x = z_low ^ s0, is linear over xor: it is
// done once per seed and once per candidate, and costs a pair one xor instead of three instructions.
__device__ __forceinline__ u32 folded(u32 x) { return x ^ (x >> 16); }

__device__ __forceinline__ u32 hash32(u32 low, u32 high, u32 s0, u32 s1) {
    u32 h = (low ^ s0) * 0x7FEB352Du;
    h ^= high ^ s1;
    h ^= h >> 15;
    return h * 0x846CA68Bu;
}

// Whether a report (s0 folded, s1, minus the first hash of its bucket, the bucket's width) supports a candidate.
__device__ __forceinline__ bool supports(u32 low, u32 high, uint4 report) {
    return hash32(low, high, report.x, report.y) + report.z < report.w;
}

__device__ __forceinline__ u64 interval_start(u64 bucket, u64 buckets) {
    return ((bucket << 32) + buckets - 1) / buckets;
}

__device__ __forceinline__ u64 splitmix64(u64 value) {
    u64 z = value + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// An unsigned integer of `size` bytes: buckets travel as narrow as they are reported.
__device__ __forceinline__ u64 integer_at(const u8* bytes, u64 place, u32 size) {
    u64 value = 0;
    for (u32 k = 0; k < size; ++k) value |= (u64)bytes[place * size + k] << (8 * k);
    return value;
}

// Reports as pairs are counted from them; those past the n-th have no width, and support nothing.
extern "C" __global__ void ready_reports(
    const u64* seeds, const u8* reported, u32 size, u64 buckets, u32 n, u32 padded, uint4* ready) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= padded) return;
    uint4 report;
    report.x = report.y = report.z = report.w = 0;
    if (i < n) {
        u64 bucket = integer_at(reported, i, size);
        u64 start = interval_start(bucket, buckets);
        report.x = folded((u32)seeds[i]);
        report.y = (u32)(seeds[i] >> 32);
        report.z = 0u - (u32)start;
        report.w = (u32)(interval_start(bucket + 1, buckets) - start);
    }
    ready[i] = report;
}

// What a report adds: 1, in 32 bits that a launch cannot overflow, or its weight modulo 2^64, so that negative weights
// are exact.
struct Plain {
    typedef u32 Sum;
    enum { kept = 1 };
    static __device__ __forceinline__ Sum at(const u64*, u32) { return 1; }
};

struct Weighted {
    typedef u64 Sum;
    enum { kept = TILE };
    static __device__ __forceinline__ Sum at(const u64* weights, u32 i) { return weights[i]; }
};

// A block counts K candidates per thread over one slice of the reports. Thread t of a block has the candidates t,
// t + threads, ...: neighbours read and write neighbouring words.
template <int K, class Added>
__device__ __forceinline__ void count(
    const uint4* reports, const u64* weights, u32 padded, u32 slice, const u64* spread, u32 candidates, u64* counts) {
    __shared__ uint4 tile[TILE];
    __shared__ u64 weight[Added::kept];
    u32 low[K], high[K];
    typename Added::Sum found[K];
    u32 base = blockIdx.x * blockDim.x * K + threadIdx.x;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 j = base + k * blockDim.x;
        u64 z = j < candidates ? spread[j] : 0;
        low[k] = folded((u32)z);
        high[k] = (u32)(z >> 32);
        found[k] = 0;
    }
    u32 first = blockIdx.y * slice, last = first + slice < padded ? first + slice : padded;
    for (u32 at = first; at < last; at += TILE) {
        for (u32 i = threadIdx.x; i < TILE; i += blockDim.x) {
            tile[i] = reports[at + i];
            if (Added::kept > 1) weight[i] = weights[at + i];
        }
        __syncthreads();
#pragma unroll 4
        for (u32 i = 0; i < TILE; ++i) {
            uint4 report = tile[i];
            typename Added::Sum added = Added::at(weight, i);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                if (supports(low[k], high[k], report)) found[k] += added;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 j = base + k * blockDim.x;
        if (j < candidates && found[k]) atomicAdd(counts + j, (u64)found[k]);
    }
}

#define COUNTING(name, K, Added)                                                                                     \
    extern "C" __global__ void name(                                                                                 \
        const uint4* reports, const u64* weights, u32 padded, u32 slice, const u64* spread, u32 candidates,          \
        u64* counts) {                                                                                               \
        count<K, Added>(reports, weights, padded, slice, spread, candidates, counts);                                \
    }

COUNTING(count_16, 16, Plain)
COUNTING(count_8, 8, Plain)
COUNTING(count_4, 4, Plain)
COUNTING(count_1, 1, Plain)
COUNTING(count_weighted_8, 8, Weighted)
COUNTING(count_weighted_4, 4, Weighted)
COUNTING(count_weighted_1, 1, Weighted)

// Which reports support a candidate, 32 to a word: bits[word * candidates + j]. One thread per candidate and tile.
extern "C" __global__ void pack_bits(const uint4* reports, const u64* spread, u32 candidates, u32* bits) {
    __shared__ uint4 tile[TILE];
    for (u32 i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = reports[blockIdx.y * TILE + i];
    __syncthreads();
    u32 j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= candidates) return;
    u32 low = folded((u32)spread[j]), high = (u32)(spread[j] >> 32);
    for (u32 word = 0; word < TILE / 32; ++word) {
        u32 some = 0;
        for (u32 i = 0; i < 32; ++i) some |= (u32)supports(low, high, tile[32 * word + i]) << i;
        bits[(u64)(blockIdx.y * (TILE / 32) + word) * candidates + j] = some;
    }
}

// How many reports support candidate a of one question and b of another: K of the former, one of the latter a thread.
#define PAIRED 8
extern "C" __global__ void count_pairs(
    const u32* first, u32 firsts, const u32* second, u32 seconds, u32 words, u32 slice, u64* counts) {
    u32 b = blockIdx.x * blockDim.x + threadIdx.x, a = blockIdx.y * PAIRED;
    if (b >= seconds) return;
    u32 found[PAIRED] = {0};
    u32 begin = blockIdx.z * slice, end = begin + slice < words ? begin + slice : words;
    for (u32 word = begin; word < end; ++word) {
        u32 own = second[(u64)word * seconds + b];
        const u32* row = first + (u64)word * firsts;
#pragma unroll
        for (int k = 0; k < PAIRED; ++k) found[k] += __popc(own & row[a + k < firsts ? a + k : firsts - 1]);
    }
#pragma unroll
    for (int k = 0; k < PAIRED; ++k) {
        if (a + k < firsts && found[k]) atomicAdd(counts + (u64)(a + k) * seconds + b, (u64)found[k]);
    }
}

// Linear hashing. A report supports the suffix with digits j behind a prefix if <w, j> = c modulo q, where w are the
// digits of its coefficients and c = bucket - h(prefix): of a histogram over (w, c) the support is the sum over w of
// histogram[w, <w, j>]. That is done digit by digit, in integers: nothing is rounded.
extern "C" __global__ void add_linear(
    const u64* seeds, const u8* reported, u32 size, u32 n, u64 cells, u32 q, const u64* prefixes, u32* histogram) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 seed = seeds[i], z = prefixes[blockIdx.y];
    u64 w = splitmix64(seed ^ 0xD1B54A32D192ED03ull) % cells;
    u32 h = hash32(folded((u32)z), (u32)(z >> 32), folded((u32)seed), (u32)(seed >> 32));
    u32 own = (u32)(((u64)h * q) >> 32);
    u32 c = ((u32)integer_at(reported, i, size) + q - own) % q;
    atomicAdd(histogram + ((u64)blockIdx.y * cells + w) * q + c, 1u);
}

// One digit of w, the one worth `power`, becomes one of j: to[.. j .., c] is the sum over w of from[.. w .., c + w j].
extern "C" __global__ void fold_digit(const u32* from, u32* to, u64 total, u64 power, u32 q) {
    u64 place = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= total) return;
    u32 c = (u32)(place % q), j = (u32)(place / q / power % q);
    const u32* row = from + (place - c - (u64)j * power * q);
    u32 sum = 0, turn = c;
    for (u32 w = 0; w < q; ++w) {
        sum += row[(u64)w * power * q + turn];
        turn += j;
        if (turn >= q) turn -= q;
    }
    to[place] = sum;
}

// The supports of the first `kept` suffixes behind each prefix: what stands at c = 0.
extern "C" __global__ void take_linear(const u32* from, u64 cells, u32 q, u64 kept, u64* counts) {
    u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (j < kept) counts[blockIdx.y * kept + j] += from[(blockIdx.y * cells + j) * q];
}
