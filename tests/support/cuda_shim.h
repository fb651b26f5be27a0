// CUDA C++ for g++: a launch is a loop over blocks, and a block's threads are threads of this machine.
#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static

struct uint4 { unsigned x, y, z, w; };
struct Place { unsigned x, y, z; };
static thread_local Place threadIdx, blockIdx, blockDim;
static std::barrier<>* together = nullptr;

static void __syncthreads() { if (together) together->arrive_and_wait(); }
static unsigned __popc(unsigned word) { return __builtin_popcount(word); }
template <class T> T atomicAdd(T* at, T more) { return __atomic_fetch_add(at, more, __ATOMIC_RELAXED); }

template <class... Given, size_t... I>
void run(void (*kernel)(Given...), Place grid, unsigned thread, unsigned threads, void** given, std::index_sequence<I...>) {
    threadIdx = {thread, 0, 0}, blockDim = {threads, 1, 1};
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                kernel(*static_cast<Given*>(given[I])...);
                __syncthreads();  // shared memory belongs to one block at a time
            }
}

template <class... Given>
void launch(void (*kernel)(Given...), Place grid, unsigned threads, void** given) {
    std::index_sequence_for<Given...> places;
    if (threads == 1) return run(kernel, grid, 0, 1, given, places);
    std::barrier<> barrier(threads);
    together = &barrier;
    std::vector<std::thread> block;
    for (unsigned t = 0; t < threads; ++t) block.emplace_back([=] { run(kernel, grid, t, threads, given, places); });
    for (auto& thread : block) thread.join();
    together = nullptr;
}

#define LAUNCHED(name)                                                                                     \
    extern "C" void launch_##name(unsigned x, unsigned y, unsigned z, unsigned threads, void** given) {    \
        launch(name, Place{x, y, z}, threads, given);                                                      \
    }
