#include "loki/base/parallel.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace loki {
namespace {

TEST(InParallel, EveryItemOnce) {
  for (const std::size_t count : {0U, 1U, 7U, 1000U}) {
    for (const unsigned threads : {1U, 2U, 8U}) {
      std::vector<std::atomic<int>> seen(count);
      in_parallel(count, threads, 16, [&](std::size_t i) { ++seen[i]; });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(InParallel, TheFirstErrorIsThrown) {
  const auto fail = [](std::size_t i) {
    if (i == 500) throw std::runtime_error("item 500");
  };
  EXPECT_THROW(in_parallel(1000, 4, 1, fail), std::runtime_error);
}

}  // namespace
}  // namespace loki
