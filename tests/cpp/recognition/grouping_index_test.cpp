#include "loki/recognition/grouping_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "loki/base/error.hpp"

namespace loki {
namespace {

FailureSite site(std::string message, std::string code = "E1",
                 std::vector<std::string> tests = {}) {
  return {"OddError", std::move(code), std::move(message), "", std::move(tests), {}, ""};
}

// What the index has to answer: every first member is compared.
class Slow {
 public:
  explicit Slow(double threshold) : threshold_(threshold) {}

  std::size_t add(const FailureSite& one) {
    const Hash128 fingerprint = site_fingerprint(one);
    for (const auto& [known, group] : fingerprints_) {
      if (known == fingerprint) return group;
    }
    std::size_t best = firsts_.size();
    double most = threshold_;
    for (std::size_t i = 0; i < firsts_.size(); ++i) {
      const double share = overlap(site_tokens(one), site_tokens(firsts_[i]));
      if (share > most && same_failure(one, firsts_[i], threshold_)) {
        best = i;
        most = share;
      }
    }
    if (best == firsts_.size()) firsts_.push_back(one);
    fingerprints_.emplace_back(fingerprint, best);
    return best;
  }

 private:
  double threshold_;
  std::vector<FailureSite> firsts_;
  std::vector<std::pair<Hash128, std::size_t>> fingerprints_;
};

std::vector<FailureSite> varied(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<FailureSite> sites;
  for (std::size_t i = 0; i < count; ++i) {
    std::string message;
    const std::size_t words = random() % 14;
    for (std::size_t w = 0; w < words; ++w) message += "w" + std::to_string(random() % 17) + ' ';
    const std::string code = random() % 3 == 0 ? "" : "E" + std::to_string(random() % 2);
    FailureSite one = site(message, code);
    if (random() % 4 == 0) one.tests = {"t" + std::to_string(random() % 2)};
    if (random() % 2 == 0) one.pattern = "p";
    sites.push_back(std::move(one));
  }
  return sites;
}

TEST(FailureIndex, EqualsComparingAll) {
  for (const double threshold : {0.0, 0.3, 0.5, 0.8, 0.95, 1.0}) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      FailureIndex index(threshold);
      Slow slow(threshold);
      for (const FailureSite& one : varied(300, seed)) {
        ASSERT_EQ(index.add(one, "k"), slow.add(one)) << one.normalized << " at " << threshold;
      }
    }
  }
}

TEST(FailureIndex, ABatchIsAddedInTheOrderOfFingerprints) {
  const std::vector<FailureSite> sites = varied(300, 7);
  std::vector<std::size_t> order(sites.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(site_fingerprint(sites[a]), sites[a].pattern) <
           std::pair(site_fingerprint(sites[b]), sites[b].pattern);
  });
  Slow slow(0.8);
  std::vector<std::uint32_t> expected(sites.size());
  for (const std::size_t i : order) expected[i] = static_cast<std::uint32_t>(slow.add(sites[i]));
  for (const unsigned threads : {1U, 4U}) {
    FailureIndex index(0.8);
    EXPECT_EQ(index.add(sites, std::vector<std::string>(sites.size(), "k"), threads), expected);
  }
}

TEST(FailureIndex, GoesOnAfterABatchAndAfterLoading) {
  const std::vector<FailureSite> sites = varied(600, 3);
  const std::vector<FailureSite> first(sites.begin(), sites.begin() + 300);
  FailureIndex index(0.8), one_by_one(0.8);
  index.add(first, std::vector<std::string>(300, "k"));
  const auto loaded = FailureIndex::load(index.save());
  EXPECT_EQ(loaded->save(), FailureIndex::load(loaded->save())->save());
  for (std::size_t i = 300; i < sites.size(); ++i) {
    ASSERT_EQ(loaded->add(sites[i], "m"), index.add(sites[i], "m"));
  }
  EXPECT_EQ(loaded->report().failures, 600U);
  EXPECT_EQ(loaded->keys(0), index.keys(0));
}

TEST(FailureIndex, NearestSaysWhatIsTheSame) {
  FailureIndex index(0.5);
  index.add(site("alpha beta gamma delta epsilon zeta"), "a");
  index.add(site("alpha beta gamma delta epsilon eta theta iota", ""), "b");
  index.add(site("alpha beta gamma delta epsilon zeta", "E2"), "c");
  const auto near = index.nearest(site("alpha beta gamma delta epsilon zeta"), 9);
  ASSERT_EQ(near.size(), 2U);  // the other code contradicts
  EXPECT_EQ(near[0].group, 0U);
  EXPECT_EQ(near[0].overlap, 1);
  EXPECT_TRUE(near[0].is_same);
  EXPECT_EQ(near[1].group, 1U);
  EXPECT_FALSE(near[1].is_same);  // one names a code, the other has no pattern
  EXPECT_TRUE(index.nearest(site("one two three four"), 9).empty());
}

TEST(FailureIndex, AlikeIsNotTheSameWithoutAnAnchor) {
  FailureIndex index(0.5);
  index.add(site("alpha beta gamma delta epsilon zeta", ""), "a");
  EXPECT_EQ(index.add(site("alpha beta gamma delta epsilon eta", ""), "b"), 1U);
  EXPECT_FALSE(index.nearest(site("alpha beta gamma delta epsilon theta", ""), 1)[0].is_same);
}

TEST(FailureIndex, Misuse) {
  EXPECT_THROW(FailureIndex(1.5), InvalidArgument);
  EXPECT_THROW(FailureIndex(-0.1), InvalidArgument);
  FailureIndex index(0.8);
  EXPECT_THROW(index.keys(0), InvalidArgument);
  EXPECT_THROW(index.add({site("a")}, std::vector<std::string>{"k", "m"}), InvalidArgument);
}

TEST(FailureIndex, BadBytesAreRefusedWithTheirLine) {
  FailureIndex index(0.8);
  index.add(site("alpha beta gamma delta epsilon zeta"), "a");
  const std::string good = index.save();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(FailureIndex::load(std::string_view(good).substr(0, size)), InvalidArgument);
  }
  const auto message = [](const std::string& bytes) -> std::string {
    try {
      FailureIndex::load(bytes);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(message("{}\n").substr(0, 7), "line 1:");
  EXPECT_EQ(message(good + "more\n"), "line 3: found more text, expected the end");
  std::string changed = good;
  changed.replace(changed.find("\"tokens\":["), 10, "\"tokens\":[99,");
  EXPECT_EQ(message(changed),
            "line 3: found an unknown token, expected a group of a failure index");
}

TEST(FailureIndex, ManyThreadsAtOnce) {
  const std::vector<FailureSite> sites = varied(400, 5);
  FailureIndex index(0.8);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (const FailureSite& one : sites) {
          index.add(one, "k");
          index.nearest(one, 3);
        }
      });
    }
  }
  EXPECT_EQ(index.report().failures, 1600U);
  std::size_t members = 0;
  for (std::uint32_t g = 0; g < index.report().groups; ++g) members += index.keys(g).size();
  EXPECT_EQ(members, 1600U);
}

}  // namespace
}  // namespace loki
