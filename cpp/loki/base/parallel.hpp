// The same work on many items, on several threads.
// Covered by tests/cpp/base/parallel_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace loki {

// How many threads are worth starting: what the machine has, if the caller says 0.
inline unsigned useful_threads(unsigned asked) {
  return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

// Calls work(i) once for every i below count, in no order. Items are handed out in blocks, so that
// a few slow ones do not hold up the rest. The first exception ends the work and is thrown here.
template <typename Work>
void in_parallel(std::size_t count, unsigned threads, std::size_t block, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failed;
  std::mutex guard;
  const auto run = [&] {
    try {
      for (std::size_t begin; (begin = next.fetch_add(block)) < count;) {
        for (std::size_t i = begin; i < std::min(count, begin + block); ++i) work(i);
      }
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failed) failed = std::current_exception();
      next = count;
    }
  };
  const std::size_t blocks = (count + block - 1) / block;
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(useful_threads(threads), blocks); ++i) {
    others.emplace_back(run);
  }
  run();
  others.clear();  // joins
  if (failed) std::rethrow_exception(failed);
}

}  // namespace loki
