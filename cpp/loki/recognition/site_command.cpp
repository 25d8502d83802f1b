// Which tools a command starts.
#include <algorithm>

#include "loki/recognition/site_rules.hpp"
#include "loki/recognition/text.hpp"

namespace loki::site {

std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> words(1);
  for (const char c : utf8_prefix(command, kLineLimit)) {
    if (c == ' ' || c == '\t' || c == '\n') {
      if (!words.back().empty()) words.emplace_back();
    } else if (c != '"' && c != '\'') {
      words.back().push_back(c);
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

void Commands::add(std::uint32_t tool, const std::vector<std::vector<std::string>>& commands) {
  for (const std::vector<std::string>& words : commands) {
    if (words.empty()) continue;
    by_first_[words.front()].push_back({{words.begin() + 1, words.end()}, tool});
  }
}

std::vector<std::uint32_t> Commands::started_by(std::string_view command) const {
  std::vector<std::uint32_t> tools;
  const std::vector<std::string> words = words_of(command);
  for (auto word = words.begin(); word != words.end(); ++word) {
    const auto known = by_first_.find(word->substr(word->rfind('/') + 1));  // npos + 1 is 0
    if (known == by_first_.end()) continue;
    for (const Known& one : known->second) {
      const auto left = static_cast<std::size_t>(words.end() - word) - 1;
      if (one.rest.size() > left) continue;
      if (std::equal(one.rest.begin(), one.rest.end(), word + 1)) tools.push_back(one.tool);
    }
  }
  return tools;
}

}  // namespace loki::site
