// Secrets, at every level: keys known by their shape, and values known by the name before them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "loki/recognition/normalize.hpp"

namespace loki {
namespace {

struct Case {
  std::string_view text;
  std::string_view expected;
};

void expect_each_level(std::initializer_list<Case> cases) {
  for (const auto& [text, expected] : cases) {
    for (const Level level : {Level::kVolatile, Level::kTemplate, Level::kSecrets}) {
      EXPECT_EQ(normalize(text, level), expected) << text;
      EXPECT_EQ(normalize(expected, level), expected) << text;
    }
  }
}

void expect_kept(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    EXPECT_EQ(normalize(text, Level::kVolatile), text);
    EXPECT_EQ(normalize(text, Level::kSecrets), text);
  }
}

// Made up here: shapes of keys, and none of them a key.
constexpr std::string_view kRandom = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

TEST(NormalizeSecrets, KeysOfKnownShape) {
  for (const std::string_view prefix :
       {"AKIA",  "ASIA",  "ghp_",  "gho_", "ghs_",      "github_pat_", "glpat-",
        "glrt-", "xoxb-", "xoxp-", "sk-",  "sk_live_",  "npm_",        "pypi-",
        "hf_",   "AIza",  "ya29.", "hvs.", "dckr_pat_", "glsa_"}) {
    const std::string key = std::string(prefix) + std::string(kRandom);
    expect_each_level({{key, "<secret>"}, {"use " + key + ".", "use <secret>."}});
  }
  expect_each_level(
      {{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9", "<secret>"}});
  expect_each_level({{"ghp_abcdefghijklmnop\u00e9t\u00e9", "<secret>\u00e9t\u00e9"},
                     {"ghp_abcdefghijklmnop0x_y", "<secret>_y"}});
  expect_kept({"hf_transformerslibrary_of_x", "sk-learn-is-a-great-library",
               "npm_config_registry_is_a_name", "AKIA", "eyJ", "pypi-some-long-package-name",
               "ghp_short", "skeleton"});
}

TEST(NormalizeSecrets, ValuesBehindTheirNames) {
  expect_each_level({{"password=hunter", "password=<secret>"},
                     {"password: hunter2", "password: <secret>"},
                     {"PGPASSWORD=abcd", "PGPASSWORD=<secret>"},
                     {"DB_PASSWORD='two words'", "DB_PASSWORD=<secret>"},
                     {"accessToken=abcdef", "accessToken=<secret>"},
                     {"--password hunter2", "--password <secret>"},
                     {"X-Api-Key: 0123456789abcdef", "X-Api-Key: <secret>"},
                     {"aws_secret_access_key = wJal/XUtn+FEMI", "aws_secret_access_key = <secret>"},
                     {"SECRET_KEY_BASE=abcdef", "SECRET_KEY_BASE=<secret>"},
                     {"Authorization: Bearer abcdef", "Authorization: Bearer <secret>"},
                     {"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic <secret>"},
                     {"Bearer abc123def456", "Bearer <secret>"},
                     {"Cookie: sid=abc123def456; x", "Cookie: <secret>; x"}});
  expect_kept({"unexpected token: foo", "token=none", "password=null", "password is wrong",
               "Password:", "Bearer of bad news", "bearer token missing", "secret_name = foo",
               "password authentication failed", "key=value", "the token is bad",
               "tokenize=abcdef"});
  for (const Level level : {Level::kVolatile, Level::kSecrets}) {  // templates lose the quotes
    EXPECT_EQ(normalize("{\\\"token\\\": \\\"abc12345\\\"}", level), "{\\\"token\\\": <secret>}");
  }
  expect_each_level({{"x-glpat-A1b2C3d4E5f6G7h8i9-token: abcd1234", "x-<secret>: <secret>"}});
  EXPECT_EQ(normalize("\"password\": \"s3cr3tvalue\"", Level::kSecrets), "\"password\": <secret>");
}

// Each of these was read to its end from every place where a key or an address could begin.
TEST(NormalizeSecrets, LongWordsAreReadOnce) {
  for (const std::string_view piece :
       {"sk-", "xoxb-", "glpat-", "https://a:", "https://a:b@c/", "key: sk-a "}) {
    std::string text;
    while (text.size() < 2'000'000) text += piece;
    normalize(text, Level::kSecrets);
    normalize(text, Level::kVolatile);
  }
  const std::string inside = "sk-words-hf_abcdefghijklmnopqrstuv";
  expect_each_level({{inside, "sk-words-<secret>"}});
  expect_each_level({{"sk-some-words-and-sk-" + std::string(kRandom), "<secret>"}});
}

TEST(NormalizeSecrets, PartsOfUrls) {
  const Case cases[] = {
      {"postgres://me:pa55@db.example.org:5432/x", "postgres://me:<secret>@db.example.org:5432/x"},
      {"https://token=abcd:pa55@h/x", "https://token=<secret>"},
      {"redis://:pass@h:6379", "redis://:<secret>@h:6379"},
      {"https://ghp_a1B2c3D4e5F6g7H8i9J0@github.com/a", "https://<secret>@github.com/a"},
      {"https://x.org/?token=abcd1234&x=1", "https://x.org/?token=<secret>&x=1"},
      {"https://hooks.slack.com/services/T0/B0/x1y2", "https://hooks.slack.com/services/<secret>"},
      {"https://x.org/a:b@c", "https://x.org/a:b@c"},
      {"https://x.org/?token=abcd://discord.com/api/webhooks/1", "https://x.org/?token=<secret>"},
      {"https://x.org:8080/a", "https://x.org:8080/a"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(normalize(text, Level::kSecrets), expected);
    EXPECT_EQ(normalize(text), "<url>");
  }
}

TEST(NormalizeSecrets, PrivateKeys) {
  const std::string line(64, 'A');
  for (const std::string_view kind : {"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "}) {
    const std::string title = std::string(kind) + "PRIVATE KEY-----";
    const std::string begin = "-----BEGIN " + title, end = "-----END " + title;
    expect_each_level({
        {begin + "\nMIIE\nabc=\n" + end + "\nx", "<secret>\nx"},
        {begin + "\\nMIIE\\nabc=\\n" + end, "<secret>"},
        {begin + "\nProc-Type: 4,ENCRYPTED\n\nabc=\n" + end, "<secret>"},
        {begin + "\n" + line + "\n" + line, "<secret>"},  // cut off
        {begin + "\n" + line + "\nand more words\n", "<secret>\nand more words\n"},
    });
  }
  expect_kept(
      {"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "-----BEGIN ", "---"});
}

}  // namespace
}  // namespace loki
