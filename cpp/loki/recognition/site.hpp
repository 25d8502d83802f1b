// Where and what: the failure that an output tells of, found by rules that are data.
//
// Covered by tests/cpp/recognition/site_test.cpp and by every sample of every tool file
// (tests/py/recognition/test_tools.py).
//
// The idea, the schema of the rules and how one failure is chosen among many:
// docs/design/tool-rules.md.
//
// Worst case: linear in the text; each line is read a bounded number of times per tool that has a
// block open there.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loki {

class LinePrefix;

struct Frame {
  std::string path;
  std::size_t line = 0;  // 1-based; 0: not known
  std::string function;
  bool in_project = false;
};

struct Site {
  std::string tool;  // empty: no tool that we know
  std::string kind;  // of failure, as the tool's rules say; empty: they do not
  std::string language;
  std::string error_type;
  std::string error_code;
  std::string message;
  std::string path;                  // relative to the root where it is inside
  std::size_t line = 0, column = 0;  // 1-based; 0: not known
  std::string extension;             // of path, lower case, without the dot
  std::vector<std::string> tests;
  std::vector<Frame> frames;
  std::size_t output_line = 0;                      // 1-based; 0: the text is blank
  std::size_t excerpt_first = 0, excerpt_last = 0;  // lines, 1-based, both included; 0: none
  std::size_t excerpt_begin = 0;                    // byte of the cleaned text
  std::string excerpt;
  // What is said of this failure alone: a part of the excerpt. Lines and bytes as there.
  std::size_t own_first = 0, own_last = 0, own_begin = 0, own_size = 0;
};

// What is known of an output besides itself; all may be empty.
struct SiteContext {
  std::string_view command;   // as typed
  std::string_view root;      // the project's folder
  std::string_view language;  // wins over the tool's
};

class SiteRules {
 public:
  // json: {"tools": [...]}, each as docs/design/tool-rules.md says, lists always as lists. Throws
  // DefinitionError. Regexes are compiled when they are first needed; `check` compiles all.
  explicit SiteRules(std::string_view json);
  ~SiteRules();
  SiteRules(SiteRules&&) noexcept;
  SiteRules& operator=(SiteRules&&) noexcept;

  // Throws DefinitionError for the first regex that RE2 refuses or that names an unknown group.
  void check() const;

  // cleaned: the text of a CleanText. Safe from many threads at once.
  Site find(std::string_view cleaned, const SiteContext& context) const;

  // What CI systems put before lines.
  const LinePrefix& prefix() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loki
