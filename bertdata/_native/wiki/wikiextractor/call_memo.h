// Results that are kept between pages. The calls of navigation boxes and stub notes are the same on many pages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wiki/wikiextractor/argument_nesting.h"

namespace bertdata::wiki::wikiextractor {

// Values by the text of the call. A value must depend on nothing else, neither on the page nor on callers.
class CallMemo {
 public:
  struct Value {
    std::string text;
    // Work spent on the value. Each use spends it again, so that a page's limit does not depend on the memo.
    uint64_t work;
  };

  const Value* find(std::string_view call) const {
    const auto found = values_.find(call);
    return found == values_.end() ? nullptr : &found->second;
  }

  // Keeps a value, unless the call costs little more than looking it up. Forgets everything when full.
  void keep(std::string_view call, std::string_view text, uint64_t work) {
    if (work < 2 * call.size() + kLeastWork) return;
    bytes_ += call.size() + text.size() + sizeof(Value);
    if (bytes_ > kMostBytes) {
      values_.clear();
      bytes_ = call.size() + text.size() + sizeof(Value);
    }
    values_.emplace(call, Value{std::string(text), work});
  }

  ArgumentNesting& nesting() { return nesting_; }

 private:
  static constexpr size_t kMostBytes = size_t{8} << 20;
  static constexpr uint64_t kLeastWork = 6000;

  ArgumentNesting nesting_;
  std::map<std::string, Value, std::less<>> values_;
  size_t bytes_ = 0;
};

// The memos of an extractor. Each thread takes one while it works.
class CallMemos {
 public:
  std::unique_ptr<CallMemo> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<CallMemo>();
    std::unique_ptr<CallMemo> memo = std::move(free_.back());
    free_.pop_back();
    return memo;
  }

  void give(std::unique_ptr<CallMemo> memo) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(memo));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CallMemo>> free_;
};

}  // namespace bertdata::wiki::wikiextractor
