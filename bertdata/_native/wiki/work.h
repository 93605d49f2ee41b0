// Limits the work for a page, counted in bytes handled. The limit is reached at the same point on every machine.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace bertdata::wiki {

constexpr size_t kMaxTextBytes = size_t{256} << 20;

// A page exceeds a limit. The message completes the sentence "page X: ...".
struct LimitReached : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Work budget of a page. Every scan or copy of a text spends its length. Every call spends something as well, so that
// endless work on empty texts is not possible.
class Work {
 public:
  explicit Work(uint64_t most) : left_(most), most_(most) {}

  void spend(uint64_t bytes) {
    if (bytes > left_) throw LimitReached("took more than " + std::to_string(most_) + " bytes of work");
    left_ -= bytes;
  }

  // Throws LimitReached if a text has become too long. Its length need not be spent, because making it has cost as
  // much.
  void grow(size_t bytes) {
    if (bytes > kMaxTextBytes)
      throw LimitReached("grew beyond " + std::to_string(kMaxTextBytes >> 20) + " MiB of text");
  }

  uint64_t spent() const { return most_ - left_; }

 private:
  uint64_t left_, most_;
};

}  // namespace bertdata::wiki
