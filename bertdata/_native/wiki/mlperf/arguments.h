// Arguments of a call by name. Names keep the order of their first occurrence, as in a Python dict.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wiki/characters.h"

namespace bertdata::wiki::mlperf {

class Arguments {
 public:
  // Adds an argument. The name is the text before the first "=". Without "=" the name is the next number.
  void add(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == npos) {
      set(std::to_string(++unnamed_), strip_value(text));
    } else {
      set(std::string(strip(text.substr(0, equals))), strip_value(text.substr(equals + 1)));
    }
  }

  const std::string* find(std::string_view name) const {
    const size_t at = index(name);
    return at == npos ? nullptr : &items_[at].second;
  }

  // Returns the number of bytes in all names and values.
  size_t bytes() const { return bytes_; }
  const std::vector<std::pair<std::string, std::string>>& items() const { return items_; }

 private:
  static constexpr size_t kFew = 16;  // up to this number of items, a linear search is faster

  // Returns the value stripped of white space, except if it contains the end of a link.
  static std::string_view strip_value(std::string_view value) {
    return value.find("]]") == npos ? strip(value) : value;
  }

  size_t index(std::string_view name) const {
    if (items_.size() > kFew) {
      const auto found = places_.find(std::string(name));
      return found == places_.end() ? npos : found->second;
    }
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].first == name) return i;
    return npos;
  }

  void set(std::string name, std::string_view value) {
    const size_t at = index(name);
    bytes_ += value.size() + (at == npos ? name.size() + sizeof(items_[0]) : 0);
    if (at != npos) {
      bytes_ -= items_[at].second.size();
      items_[at].second = value;
      return;
    }
    items_.emplace_back(std::move(name), value);
    if (items_.size() <= kFew) return;
    if (places_.empty()) {
      for (size_t i = 0; i < items_.size(); ++i) places_[items_[i].first] = i;
    } else {
      places_[items_.back().first] = items_.size() - 1;
    }
  }

  std::vector<std::pair<std::string, std::string>> items_;
  std::unordered_map<std::string, size_t> places_;
  size_t unnamed_ = 0, bytes_ = 0;
};

}  // namespace bertdata::wiki::mlperf
