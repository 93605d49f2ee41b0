// The budget of one page's work, counted in bytes handled: the same on every machine.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace bertdata::wiki {

constexpr size_t kMaxTextBytes = size_t{256} << 20;

// A page beyond a limit. The text finishes the sentence "page X: ...".
struct LimitReached : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every scan or copy of a text spends its length. Every call spends something too, so that no page
// is endless work on empty texts.
class Work {
 public:
  explicit Work(uint64_t most) : left_(most), most_(most) {}

  void spend(uint64_t bytes) {
    if (bytes > left_) throw LimitReached("took more than " + std::to_string(most_) + " bytes of work");
    left_ -= bytes;
  }

  // Refuses a text that grew too long. A text of that length costs as much to make.
  void grow(size_t bytes) {
    if (bytes > kMaxTextBytes)
      throw LimitReached("grew beyond " + std::to_string(kMaxTextBytes >> 20) + " MiB of text");
  }

  uint64_t spent() const { return most_ - left_; }

 private:
  uint64_t left_, most_;
};

}  // namespace bertdata::wiki
