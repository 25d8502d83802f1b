// Groups failures as they come: has this one been seen?
//
// Covered by tests/cpp/recognition/grouping_index_test.cpp and, against brute force, by
// tests/py/recognition/test_grouping.py.
//
// Idea: fingerprint first; then the nearest first member of a group, found by prefix filtering:
// Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins" (ICDE 2006); Bayardo,
// Ma and Srikant, "Scaling up all pairs similarity search" (WWW 2007); the filter by position is
// from Xiao et al., "Efficient similarity joins for near duplicate detection" (WWW 2008). Exact:
// docs/design/grouping.md.
//
// Worst case: O(groups) for a failure whose rare tokens are in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loki/recognition/similarity.hpp"
#include "loki/recognition/similarity_sets.hpp"

namespace loki {

struct Neighbor {
  std::uint32_t group;
  double overlap;
  bool is_same;  // by same_failure, not by likeness alone
};

class FailureIndex {
 public:
  struct Report {
    std::size_t failures = 0, groups = 0;
    std::size_t queries = 0;     // look-ups that no fingerprint answered
    std::size_t candidates = 0;  // first members that they were compared with
    std::size_t most = 0;        // in one look-up
  };

  // threshold: 0 to 1; what is alike overlaps more than that. InvalidArgument outside.
  explicit FailureIndex(double threshold);

  // Groups, counted from 0. All are safe from many threads at once.
  std::uint32_t add(const FailureSite& site, std::string key);
  // In the order of fingerprints, so that the order of the batch does not matter.
  std::vector<std::uint32_t> add(const std::vector<FailureSite>& sites,
                                 std::vector<std::string> keys, unsigned threads = 0);
  // Groups whose first member overlaps above the threshold, nearest first, the oldest of equals
  // first; those that the failure contradicts are not among them.
  std::vector<Neighbor> nearest(const FailureSite& site, std::size_t most) const;
  // Keys of a group's members in the order in which they came; InvalidArgument if there is none.
  std::vector<std::string> keys(std::uint32_t group) const;
  Report report() const;
  double threshold() const { return threshold_; }

  // One JSON text a line. load throws InvalidArgument, which says in what line what was expected.
  std::string save() const;
  static std::unique_ptr<FailureIndex> load(std::string_view bytes);

 private:
  using Numbers = std::vector<std::uint32_t>;  // of tokens, rarest first

  // What a failure that has no known fingerprint is compared by.
  struct Prepared {
    TokenHashes tokens;
    SiteAnchors anchors;
  };
  struct FingerprintHash {
    std::size_t operator()(const Hash128& hash) const { return hash.low; }
  };
  struct Group {
    Numbers tokens;
    SiteAnchors anchors;
    std::vector<std::string> keys;
  };
  // A group that has a token among its rarest: where in its order, how many it has, and a bit for
  // each of them. What can be ruled out by that is ruled out without a look at the group.
  struct Posting {
    std::uint64_t sketch;
    std::uint32_t group, position, size;
  };

  static Prepared prepared(const FailureSite& site);
  std::uint32_t place(const Hash128& fingerprint, Prepared&& failure);
  void found(Numbers tokens, SiteAnchors anchors);
  void post(std::uint32_t group);
  void rank(const std::vector<Prepared>& coming);
  bool is_rarer(std::uint32_t a, std::uint32_t b) const;
  std::size_t prefix(std::size_t size) const;
  Numbers numbers(const TokenHashes& tokens) const;
  std::vector<Neighbor> alike(const Prepared& failure) const;
  Numbers candidates(const Numbers& tokens) const;
  std::vector<std::size_t> shared_needed(std::size_t size) const;
  std::size_t shared_by(const Numbers& a, const Numbers& b) const;

  double threshold_;
  mutable std::mutex guard_;
  TokenNumbers numbers_;
  std::vector<std::uint32_t> ranks_;  // by token that was there at the last ranking: common last
  std::size_t ranked_at_ = 0;         // groups at that time
  std::vector<std::vector<Posting>> postings_;  // by token
  std::vector<Group> groups_;
  std::vector<std::uint32_t> empty_;                                      // groups without tokens
  std::size_t largest_ = 0;                                               // tokens of a group
  std::unordered_map<Hash128, std::uint32_t, FingerprintHash> group_of_;  // by fingerprint
  mutable Report report_;
};

}  // namespace loki
