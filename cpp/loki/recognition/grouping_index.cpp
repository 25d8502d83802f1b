#include "loki/recognition/grouping_index.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "loki/base/error.hpp"
#include "loki/base/parallel.hpp"

namespace loki {
namespace {

// Bounds may be a little too wide, never too narrow: what they let through is compared exactly.
constexpr double kRounding = 1e-9;

constexpr std::size_t kFirstRanking = 256;  // groups; chosen, not measured

// std::popcount is a call where the processor may lack the instruction. Source: Warren, "Hacker's
// Delight", 2nd edition, section 5-1.
std::size_t bits_in(std::uint64_t x) {
  x -= (x >> 1U) & 0x5555555555555555ULL;
  x = (x & 0x3333333333333333ULL) + ((x >> 2U) & 0x3333333333333333ULL);
  return (((x + (x >> 4U)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56U;
}

// A bit for each token: sets differ in at least as many tokens as their sketches in bits.
std::uint64_t sketch(const std::vector<std::uint32_t>& tokens) {
  std::uint64_t bits = 0;
  for (const std::uint32_t token : tokens) bits |= 1ULL << ((token * 0x9E3779B97F4A7C15ULL) >> 58U);
  return bits;
}

}  // namespace

FailureIndex::FailureIndex(double threshold) : threshold_(threshold) {
  if (!(threshold >= 0 && threshold <= 1)) {
    throw InvalidArgument("threshold is " + std::to_string(threshold) + ": expected 0 to 1");
  }
}

FailureIndex::Prepared FailureIndex::prepared(const FailureSite& site) {
  return {site_token_hashes(site), site_anchors(site)};
}

std::uint32_t FailureIndex::add(const FailureSite& site, std::string key) {
  const Hash128 fingerprint = site_fingerprint(site);
  const std::lock_guard lock(guard_);
  const auto known = group_of_.find(fingerprint);
  const std::uint32_t group =
      known != group_of_.end() ? known->second : place(fingerprint, prepared(site));
  groups_[group].keys.push_back(std::move(key));
  ++report_.failures;
  return group;
}

std::vector<std::uint32_t> FailureIndex::add(const std::vector<FailureSite>& sites,
                                             std::vector<std::string> keys, unsigned threads) {
  if (keys.size() != sites.size()) {
    throw InvalidArgument("found " + std::to_string(keys.size()) +
                          " keys: expected one for each of " + std::to_string(sites.size()) +
                          " failures");
  }
  std::vector<Hash128> fingerprints(sites.size());
  in_parallel(sites.size(), threads, 64,
              [&](std::size_t i) { fingerprints[i] = site_fingerprint(sites[i]); });
  std::vector<std::uint32_t> order(sites.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto rank_of = [&](std::uint32_t i) {
    return std::tie(fingerprints[i], sites[i].pattern, sites[i].path, keys[i]);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rank_of(a) < rank_of(b); });

  const std::lock_guard lock(guard_);
  std::vector<std::uint32_t> firsts;  // of those with a fingerprint that is not known
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Hash128& fingerprint = fingerprints[order[i]];
    const bool is_first = i == 0 || fingerprint != fingerprints[order[i - 1]];
    if (is_first && !group_of_.contains(fingerprint)) firsts.push_back(order[i]);
  }
  std::vector<Prepared> failures(firsts.size());
  in_parallel(firsts.size(), threads, 64,
              [&](std::size_t i) { failures[i] = prepared(sites[firsts[i]]); });
  if (failures.size() > groups_.size()) rank(failures);
  for (std::size_t i = 0; i < firsts.size(); ++i)
    place(fingerprints[firsts[i]], std::move(failures[i]));

  std::vector<std::uint32_t> result(sites.size());
  for (const std::uint32_t i : order) {
    result[i] = group_of_.at(fingerprints[i]);
    groups_[result[i]].keys.push_back(std::move(keys[i]));
  }
  report_.failures += sites.size();
  return result;
}

// The group of a failure whose fingerprint is not known: the nearest that is the same, or a new
// one.
std::uint32_t FailureIndex::place(const Hash128& fingerprint, Prepared&& failure) {
  const std::vector<Neighbor> near = alike(failure);
  const auto same = std::find_if(near.begin(), near.end(), [](const auto& n) { return n.is_same; });
  auto group = static_cast<std::uint32_t>(groups_.size());
  if (same != near.end()) {
    group = same->group;
  } else {
    Numbers tokens;
    for (const std::uint64_t token : failure.tokens) tokens.push_back(numbers_.add(token));
    found(std::move(tokens), std::move(failure.anchors));
  }
  group_of_.emplace(fingerprint, group);
  return group;
}

// A new group with its first member.
void FailureIndex::found(Numbers tokens, SiteAnchors anchors) {
  const auto group = static_cast<std::uint32_t>(groups_.size());
  tokens.shrink_to_fit();
  if (tokens.empty()) empty_.push_back(group);
  largest_ = std::max(largest_, tokens.size());
  groups_.push_back({std::move(tokens), std::move(anchors), {}});
  if (groups_.size() >= std::max(kFirstRanking, 2 * ranked_at_)) {
    rank({});
  } else {
    post(group);
  }
}

// Puts a group's rarest tokens into the lists that look-ups read.
void FailureIndex::post(std::uint32_t group) {
  Numbers& tokens = groups_[group].tokens;
  std::sort(tokens.begin(), tokens.end(),
            [this](std::uint32_t a, std::uint32_t b) { return is_rarer(a, b); });
  postings_.resize(numbers_.size());
  const auto size = static_cast<std::uint32_t>(tokens.size());
  const std::uint64_t bits = sketch(tokens);
  for (std::size_t i = 0; i < prefix(tokens.size()); ++i) {
    postings_[tokens[i]].push_back({bits, group, static_cast<std::uint32_t>(i), size});
  }
}

// Orders tokens anew by how many groups, and failures about to come, have them. Any order gives the
// same answers; one with rare tokens in front gives them sooner. Done whenever the groups have
// doubled, it costs each group a constant.
void FailureIndex::rank(const std::vector<Prepared>& coming) {
  for (const Prepared& failure : coming) {
    for (const std::uint64_t token : failure.tokens) numbers_.add(token);
  }
  std::vector<std::uint32_t> times(numbers_.size(), 0);
  for (const Group& group : groups_) {
    for (const std::uint32_t token : group.tokens) ++times[token];
  }
  for (const Prepared& failure : coming) {
    for (const std::uint64_t token : failure.tokens) ++times[numbers_.find(token)];
  }
  ranks_ = std::move(times);
  ranked_at_ = groups_.size() + coming.size();
  postings_.assign(numbers_.size(), {});
  for (std::uint32_t i = 0; i < groups_.size(); ++i) post(i);
}

// A total order. What came after the last ranking is rarest; the latest first.
bool FailureIndex::is_rarer(std::uint32_t a, std::uint32_t b) const {
  const std::uint32_t times_a = a < ranks_.size() ? ranks_[a] : 0;
  const std::uint32_t times_b = b < ranks_.size() ? ranks_[b] : 0;
  return times_a != times_b ? times_a < times_b : a > b;
}

// So many of the rarest tokens of a set: another set whose overlap is above the threshold shares
// one of them. Sharing more than t of the union means more than t of this set, at least
// floor(t n) + 1 tokens; all of these cannot be among the rest.
std::size_t FailureIndex::prefix(std::size_t size) const {
  const double most = threshold_ * static_cast<double>(size) - kRounding;
  return most <= 0 ? size : size - static_cast<std::size_t>(most);
}

// Unknown tokens are numbered from the end: all different, and rarer than any that is known.
FailureIndex::Numbers FailureIndex::numbers(const TokenHashes& tokens) const {
  Numbers result;
  std::uint32_t unknown = TokenNumbers::kUnknown;
  for (const std::uint64_t token : tokens) {
    const std::uint32_t number = numbers_.find(token);
    result.push_back(number == TokenNumbers::kUnknown ? unknown-- : number);
  }
  std::sort(result.begin(), result.end(),
            [this](std::uint32_t a, std::uint32_t b) { return is_rarer(a, b); });
  return result;
}

// Groups that may overlap above the threshold, each once. With sizes a and b that takes more than
// t / (1 + t) (a + b) shared tokens: bounds on their number rule groups out.
FailureIndex::Numbers FailureIndex::candidates(const Numbers& tokens) const {
  if (tokens.empty()) return empty_;
  Numbers result;
  const std::size_t size = tokens.size();
  const std::uint64_t bits = sketch(tokens);
  const std::vector<std::size_t> needed = shared_needed(size);  // by size of the other
  for (std::size_t i = 0; i < prefix(size); ++i) {
    if (tokens[i] >= postings_.size()) continue;
    for (const Posting& other : postings_[tokens[i]]) {
      if (other.size >= needed.size()) continue;
      const std::size_t least = needed[other.size];
      const std::size_t before = std::min<std::size_t>(i, other.position);
      const std::size_t after = std::min<std::size_t>(size - i, other.size - other.position);
      if (before + after >= least && bits_in(bits ^ other.sketch) + 2 * least <= size + other.size)
        result.push_back(other.group);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// So many tokens, at least, does a set of this size share with one of another size, counted from 0,
// whose overlap is above the threshold. Larger ones than listed cannot be.
std::vector<std::size_t> FailureIndex::shared_needed(std::size_t size) const {
  const double share = threshold_ / (1 + threshold_);
  const auto of = [&](std::size_t other) {
    const double least = share * static_cast<double>(size + other) - kRounding;
    return static_cast<std::size_t>(std::max(1.0, std::ceil(least)));
  };
  std::vector<std::size_t> needed;
  while (needed.size() <= largest_ && of(needed.size()) <= size)
    needed.push_back(of(needed.size()));
  return needed;
}

std::vector<Neighbor> FailureIndex::alike(const Prepared& failure) const {
  const Numbers tokens = numbers(failure.tokens);
  const Numbers compared = candidates(tokens);
  ++report_.queries;
  report_.candidates += compared.size();
  report_.most = std::max(report_.most, compared.size());
  std::vector<Neighbor> result;
  for (const std::uint32_t group : compared) {
    const Group& other = groups_[group];
    if (contradict(failure.anchors, other.anchors)) continue;
    const double share =
        overlap(shared_by(tokens, other.tokens), tokens.size(), other.tokens.size());
    if (share > threshold_) {
      result.push_back({group, share, same_if_alike(failure.anchors, other.anchors)});
    }
  }
  std::sort(result.begin(), result.end(), [](const Neighbor& a, const Neighbor& b) {
    return a.overlap != b.overlap ? a.overlap > b.overlap : a.group < b.group;
  });
  return result;
}

// Tokens in both; both in the present order.
std::size_t FailureIndex::shared_by(const Numbers& a, const Numbers& b) const {
  std::size_t count = 0;
  for (auto i = a.begin(), k = b.begin(); i != a.end() && k != b.end();) {
    if (*i == *k) {
      ++count, ++i, ++k;
    } else if (is_rarer(*i, *k)) {
      ++i;
    } else {
      ++k;
    }
  }
  return count;
}

std::vector<Neighbor> FailureIndex::nearest(const FailureSite& site, std::size_t most) const {
  const Prepared failure = prepared(site);
  const std::lock_guard lock(guard_);
  std::vector<Neighbor> near = alike(failure);
  if (const auto known = group_of_.find(site_fingerprint(site)); known != group_of_.end()) {
    for (Neighbor& neighbor : near) neighbor.is_same |= neighbor.group == known->second;
  }
  if (near.size() > most) near.resize(most);
  return near;
}

std::vector<std::string> FailureIndex::keys(std::uint32_t group) const {
  const std::lock_guard lock(guard_);
  if (group >= groups_.size()) {
    throw InvalidArgument("no group " + std::to_string(group) + ": expected one of " +
                          std::to_string(groups_.size()) + ", counted from 0");
  }
  return groups_[group].keys;
}

FailureIndex::Report FailureIndex::report() const {
  const std::lock_guard lock(guard_);
  Report report = report_;
  report.groups = groups_.size();
  return report;
}

}  // namespace loki
