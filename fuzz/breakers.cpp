// Files of breakers from strangers: either they are read, or one InvalidArgument says why; what is
// read makes sense, and is read back as it was written.
#include "loki/base/error.hpp"
#include "loki/decision/breakers_file.hpp"
#include "promise.hpp"

using namespace loki;
using fuzz::promise;

namespace {

const BreakerMoment kMoment{std::chrono::hours(100), std::chrono::hours(24 * 365 * 56), "boot"};
const BreakerConfig kConfig;

void check(const BreakerState& state) {
  promise(state.generation >= 1, "there is a generation");
  promise(state.failures.size() <= kConfig.threshold, "no more failures than count");
  for (const Nanoseconds at : state.failures) promise(at <= kMoment.now, "failures are past");
  const bool has_end = state.circuit == CircuitState::open && !state.is_isolated;
  promise(state.cooldown_until.has_value() == has_end, "what is open has an end, or is isolated");
  promise(!has_end || (*state.cooldown_until >= kMoment.now &&
                       *state.cooldown_until <= kMoment.now + kConfig.cooldown),
          "no wait is longer than a cooldown");
}

void use(BreakersFile& file, const std::string& name) {
  const BreakerState state = file.state(name, kConfig, kMoment);
  check(state);
  file.put(name, state, kMoment, "fuzz");
  BreakersFile written(file.bytes());
  const BreakerState again = written.state(name, kConfig, kMoment);
  check(again);
  promise(again.circuit == state.circuit && again.generation == state.generation &&
              again.failures.size() == state.failures.size(),
          "what is written is read back");
  promise(!written.put(name, again, kMoment, "fuzz"), "what is written once is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    BreakersFile file(fuzz::bytes(data, size));
    for (const std::string& name : file.names()) {
      try {
        use(file, name);
      } catch (const InvalidArgument& error) {
        promise(*error.what() != '\0', "an error says what is wrong");
      }
    }
  } catch (const InvalidArgument& error) {
    promise(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
