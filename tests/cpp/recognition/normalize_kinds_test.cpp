// Every kind of placeholder: what becomes one, and what only looks like it.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "loki/recognition/normalize.hpp"

namespace loki {
namespace {

struct Case {
  std::string_view text;
  std::string_view expected;
};

// At both levels: templates replace what volatile text does, and then some.
void expect_each(std::initializer_list<Case> cases) {
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(normalize(text), expected) << text;
    EXPECT_EQ(normalize(expected), expected) << text;
    EXPECT_EQ(normalize(text, Level::kTemplate), normalize(expected, Level::kTemplate)) << text;
  }
}

void expect_whole(std::string_view placeholder, std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    const std::string line = "[x] " + std::string(text) + ", y";
    const std::string expected = "[x] " + std::string(placeholder) + ", y";
    expect_each({{text, placeholder}, {line, expected}});
  }
}

void expect_kept(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) EXPECT_EQ(normalize(text), text);
}

TEST(NormalizeKinds, Dates) {
  expect_whole("<time>", {
                             "2024-01-31",                           // ISO 8601
                             "2024-01-31T10:11:12Z",                 //
                             "2024-01-31T10:11:12.123456789+02:00",  //
                             "2024-01-31T10:11Z",                    //
                             "20240131T101112Z",                     // its basic form
                             "20240131T101112.123+0200",             //
                             "20240131-101112",                      // names of folders
                             "2024-01-31_10-11-12",                  //
                             "2024-01-31T10_11_12_123Z",             // npm's logs
                             "2024-01-31 10:11",                     // SQL
                             "2024-01-31 10:11:12.5 PST",            //
                             "2024-01-31 10:11:12,123",              // Python's and Java's logging
                             "Tue, 02 Jan 2024 10:11:12 +0000",      // RFC 2822
                             "2 Jan 2024 10:11:12 -0700",            //
                             "Wed, 31 Jan 24 10:11 GMT",             // RFC 822
                             "Tuesday, 02-Jan-24 10:11:12 GMT",      // RFC 850
                             "Tue Jan  2 10:11:12 2024",             // ctime
                             "Tue Jan  2 10:11:12 UTC 2024",         // date
                             "Tue Jan 2 10:11:12 2024 +0100",        // git
                             "Tue 02 Jan 2024 10:11:12 AM CET",      // date in another locale
                             "Jan  2 10:11:12",                      // syslog
                             "31/Jan/2024:10:11:12 +0000",           // nginx, Apache
                             "Jan 2, 2024 3:04:05 PM",               // Java
                             "Jan 2, 2024, 3:04 PM",                 // JavaScript
                             "02-Jan-2024 10:11:12.123",             // Tomcat
                             "2024/01/31 10:11:12.123456",           // Go's log
                             "2024-01-31 10:11:12.000000001 -0700 MST",  // Go's time
                             "01/31/2024",                               // US
                             "1/31/2024 3:04:05 PM",                     //
                             "01/31/24 10:11:12",                        // Hadoop
                             "31.01.2024 10:11:12",                      // DIN
                             "Tuesday, January 2, 2024",                 //
                         });
  expect_each({{"1706695872", "<int>"},  // since the epoch: whole, with a fraction, in milliseconds
               {"1706695872.123", "<float>"},
               {"1706695872123", "<int>"},
               {"I0102 10:11:12.123456   123 f.go:12] x", "I<time>   <int> f.go:<pos>] x"},
               {"log-2024-01-31.txt", "log-<time>.txt"},
               {"2024-13-01", "<int>-<int>-<int>"},
               {"1999/99/99", "<int>/<int>/<int>"},
               {"555-12-3456", "<int>-<int>-<int>"},
               {"12/31", "<int>/<int>"},
               {"24/7", "<int>/<int>"},
               {"1.2.2024.5", "<version>"},
               {"in May 2024", "in May <int>"},
               {"Sat 5", "Sat <int>"},
               {"Decade 12", "Decade <int>"}});
  expect_kept({"May I ask", "Marching on", "Mon repos", "log_20240131_101112.txt"});
}

TEST(NormalizeKinds, TimesOfDay) {
  expect_whole("<time>", {"10:11:12", "10:11:12.123456", "10:11:12,123", "10:11:12Z", "0:00:05",
                          "3:04 PM", "3:04PM", "11:59:60 am", "10:11:12 +02:00"});
  expect_each({{"3:1", "<int>:<int>"},
               {"16:9", "<int>:<int>"},
               {"31:21", "<int>:<int>"},
               {"score 10:11", "score <int>:<int>"},
               {"25:61:61", "<int>:<int>:<int>"},
               {"file:12:5", "file:<int>:<int>"},
               {"8080:80", "<int>:<int>"}});
}

TEST(NormalizeKinds, Positions) {
  expect_each({{"a.py:12:5: bad", "a.py:<pos>: bad"},
               {"(Bar.java:12)", "(Bar.java:<pos>)"},
               {"f.test.ts:12:05", "f.test.ts:<pos>"},
               {"a.c:12:5-9", "a.c:<pos>-<int>"},
               {"a.ts(12,5): error TS2322", "a.ts(<int>,<int>): error TS2322"},
               {"Makefile:12: x", "Makefile:<int>: x"},
               {"line 12, column 5", "line <int>, column <int>"},
               {"a.py:1.5", "a.py:<float>"},
               {"a.py::test_x[1-2]", "a.py::test_x[<int>-<int>]"}});
  expect_kept({"a.py::test_x", "a.py:12a"});
}

TEST(NormalizeKinds, Addresses) {
  expect_whole("<ip>",
               {"10.0.0.1", "10.0.0.1:8080", "10.0.0.0/8", "::1", "fe80::1%eth0", "2001:db8::1",
                "2001:db8::ff00:42:8329", "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
                "::ffff:10.0.0.1", "64:ff9b::1.2.3.4"});
  expect_whole("<mac>", {"00:1b:44:11:3a:b7", "00-1B-44-11-3A-B7", "de:ad:be:ef:ca:fe"});
  expect_whole("<url>", {"https://x.org/a?b=1", "http://localhost:8080/x", "git+ssh://git@h/a.git",
                         "file:///tmp/x/y", "https://[2001:db8::1]:8080/x"});
  expect_whole("<email>", {"a.b+c@x.org", "me@host.local"});
  expect_each({{"[::1]:8080", "[<ip>]:<int>"},
               {"256.1.1.1", "<version>"},
               {"1.2.3.4-beta", "<version>"},
               {"v1.2.3.4", "<version>"},
               {"10.0.0.1.", "<ip>."},
               {"localhost:8080", "localhost:<int>"},
               {"listening on :3000", "listening on :<int>"},
               {"fn::1", "fn::<int>"},
               {"12::34", "<int>::<int>"},
               {"00:1b:44:11:3a", "<int>:1b:<int>:<int>:3a"},
               {"10-20-30-40-50-60", "<int>-<int>-<int>-<int>-<int>-<int>"},
               {"see https://x.org/a.", "see <url>."},
               {"<a@b.co>,c@d.org", "<<email>>,<email>"},
               {"pkg@1.2.3", "pkg@<version>"}});
  expect_kept({"Type::method", "std::vector", "a::b::c", "abc::def", "dead::beef", "face::add",
               "::std::string", "std::chrono::seconds", "::", "a1::b2", "ns::f00d::x", "user@host",
               "@decorator", "http://", "www.example.org"});
}

TEST(NormalizeKinds, Hashes) {
  expect_whole("<uuid>",
               {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"});
  expect_whole("<hex>", {"0x7ffd1234abcd", "0X1F",
                         "1a2b3c4d5e6f7890abcdef1234567890abcdef121a2b3c4d5e6f7890abcdef12"});
  expect_whole("<sha>", {"1a2b3c4", "abcdef1", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                         "DA39A3EE5E6B4B0D", "d41d8cd98f00b204e9800998ecf8427e"});
  expect_each({{"<Foo object at 0x7f3a1b2c>", "<Foo object at <hex>>"},
               {"Foo@1a2b3c4d", "Foo@<sha>"},
               {"index 1a2b3c4..5d6e7f8 100644", "index <sha>..<sha> <int>"},
               {"main.1a2b3c4d.js", "main.<sha>.js"},
               {"1234567", "<int>"}});
  expect_kept({"deadbeef", "facade", "added", "decade", "defaced", "effaced", "a1b2c3", "0x", "0xg",
               "E0308", "TS2322", "utf8", "x86_64", "i686", "base64", "#ff00ff", "\\x1f"});
}

TEST(NormalizeKinds, Versions) {
  expect_whole("<version>", {"1.2.3", "v1.2", "V2.0.1", "1.2.3rc1", "1.2.3-rc.1", "1.2.3.dev4",
                             "1.2.3+abc.5", "1.2.3-alpha.1+build.5", "1.2.3-SNAPSHOT",
                             "1.77.0-nightly", "1.8.0_292", "5.3.2.RELEASE", "120.0.6099.109"});
  expect_each({{"python==3.11.4", "python==<version>"},
               {"^1.2.3 || ~4.5.6", "^<version> || ~<version>"},
               {"foo-1.2.3.tar.gz", "foo-<version>.tar.gz"},
               {"libfoo.so.1.2.3", "libfoo.so.<version>"},
               {"v2.5-rc.39a123e24", "<version>.<sha>"},
               {"1.2", "<float>"}});
  expect_kept({"v1", "v", "vector", "version"});
}

TEST(NormalizeKinds, Quantities) {
  expect_whole("<duration>", {"0.05s", "5 s", "12 ms", "100ns", "12 \u00b5s", "1.5 seconds",
                              "2 min", "1h2m3s", "1h 2m 3s", "1m 30.5s", "1d2h", "3 days",
                              "10 months", "PT1H30M", "PT0.5S", "P1DT2H"});
  expect_whole("<size>",
               {"384.0 B", "384 bytes", "5KB", "5 kB", "1.5 MiB", "10G", "2 TB", "1 byte"});
  expect_whole("<percent>", {"100%", "99.5%", "-5%"});
  expect_each({{"5 m", "<int> m"},
               {"1h3h30m0m 1h3h30m0m", "<duration> <duration>"},
               {"10 G", "<int> G"},
               {"5 Bob", "<int> Bob"},
               {"5 seconds ago", "<duration> ago"},
               {"3.2 GB/s", "<size>/s"},
               {"5%x", "<percent>x"}});
  expect_kept({"2d array", "3D", "5sx", "1st", "640x480", "P1D", "%d"});
}

TEST(NormalizeKinds, Numbers) {
  expect_whole("<int>", {"0", "-5", "+5", "123456789012345678901234567890"});
  expect_whole("<float>", {"3.14", "-3.14", "1e-5", "2.5E3", "1.5e+10"});
  expect_each({{"pid 1234", "pid <int>"},
               {"app[312]:", "app[<int>]:"},
               {"port=8080", "port=<int>"},
               {"--seed=42", "--seed=<int>"},
               {"word-908", "word-<int>"},
               {"1-2", "<int>-<int>"},
               {"1,234", "<int>,<int>"},
               {"\u2502 12 \u2502", "\u2502 <int> \u2502"},
               {"5\u202610", "<int>\u2026<int>"},
               {"\u21165", "\u2116<int>"}});
  expect_kept({"gw0", "test_1", "a1b2", "\u00e95", "5\u00e9", "nan", "<int>", "-", "."});
}

TEST(NormalizeKinds, TempFolders) {
  expect_each({{"/tmp/ab1/src/a.py", "<tmp>/src/a.py"},
               {"/tmp/x.py", "<tmp>/x.py"},
               {"/tmp/tmpab12cd34", "<tmp>"},  // Python's tempfile
               {"/tmp/tmp.Xa81bd", "<tmp>"},   // mktemp
               {"/tmp/ccAbCdEf.o: in f", "<tmp>.o: in f"},
               {"/tmp/tmpfiles.txt", "<tmp>/tmpfiles.txt"},
               {"/tmp/pytest-of-me/pytest-3/test_x0/f", "<tmp>/test_x0/f"},
               {"/private/var/folders/ab/xyz123/T/tmpabc/x.py", "<tmp>/x.py"},
               {"/dev/shm/x/y", "<tmp>/y"},
               {"C:\\Users\\RUNNER~1\\AppData\\Local\\Temp\\tmpab1\\a.py", "<tmp>\\a.py"},
               {"C:\\\\Windows\\\\Temp\\\\abc\\\\x", "<tmp>\\\\x"},
               {"C:\\Temp\\abc\\x", "<tmp>\\x"},
               {"--path=/tmp/a1/b", "--path=<tmp>/b"},
               {"\u2018/tmp/a1/x\u2019", "\u2018<tmp>/x\u2019"}});
  expect_kept({"/tmpfs/x", "/tmp-x/y", "src/tmp/y", "./tmp/y/z", "C:\\Windows\\System32\\x"});
}

TEST(NormalizeKinds, HomeFolders) {
  expect_each({{"/home/me/proj/a.py", "<home>/proj/a.py"},
               {"/Users/me/p", "<home>/p"},
               {"/root/x", "<home>/x"},
               {"C:\\Users\\me\\p\\a.py", "<home>\\p\\a.py"},
               {"C:\\Users\\John Doe\\p", "<home>\\p"},
               {"C:/Users/me/p", "<home>/p"},
               {"\\\\?\\C:\\Users\\me\\p", "\\\\?\\<home>\\p"},
               {"/mnt/c/Users/me/x", "<home>/x"},
               {"-I/home/me/include", "-I<home>/include"},
               {"/usr/bin:/home/me/bin", "/usr/bin:<home>/bin"}});
  expect_kept({"/home", "/homes/me", "/rooted/x", "~/x", "/srv/home/me", "\\\\server\\share\\x",
               "D:\\a\\proj\\a.py", "AC:\\Users\\me\\x", "/usr/lib/x.py"});
}

TEST(NormalizeKinds, TemplatesLoseQuotedTextAndGluedNumbers) {
  const Case cases[] = {{"no 'x' in utf8, don't \"y z\"", "no <str> in utf<int>, don't <str>"},
                        {"`a` and `b' and ''", "<str> and <str> and <str>"},
                        {"\u2018a\u2019 or \u201cb c\u201d", "<str> or <str>"},
                        {"f(\"a\", 'b')", "f(<str>, <str>)"},
                        {"gw0 test_1", "gw<int> test_<int>"},
                        {"it's 'open", "it's 'open"},
                        {"it\u2019s \u2018open", "it\u2019s \u2018open"},
                        {"'one\ntwo'", "'one\ntwo'"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(normalize(text, Level::kTemplate), expected);
    EXPECT_EQ(normalize(expected, Level::kTemplate), expected);
  }
}

}  // namespace
}  // namespace loki
