// Arguments of a template call, and the calls around it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wiki/characters.h"

namespace bertdata::wiki::wikiextractor {

class Arguments {
 public:
  // Adds an argument. The name is the text before the first "=". Without "=", or with a quote before it, the name is
  // the next number.
  void add(std::string_view text) {
    const size_t mark = find_name_end(text);
    if (mark == npos)
      set(std::to_string(++unnamed_), value_of(text));
    else
      set(std::string(strip(text.substr(0, mark))), value_of(text.substr(mark + 1)));
  }

  const std::string* find(std::string_view name) const {
    const size_t at = index(name);
    return at == npos ? nullptr : &items_[at].second;
  }

  bool operator==(const Arguments& other) const {
    if (items_.size() != other.items_.size()) return false;
    for (const auto& [name, value] : items_) {
      const std::string* found = other.find(name);
      if (!found || *found != value) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kFew = 32;  // up to this number of items, a linear search is faster

  static size_t find_name_end(std::string_view text) {
    const size_t mark = text.find_first_of("='");
    return mark == npos || text[mark] == '\'' ? npos : mark;
  }

  // Returns the value stripped of white space, except if it contains the end of a link.
  static std::string_view value_of(std::string_view text) { return text.find("]]") == npos ? strip(text) : text; }

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
    if (at != npos) {
      items_[at].second = value;
      return;
    }
    items_.emplace_back(std::move(name), value);
    if (items_.size() <= kFew) return;
    if (places_.empty())
      for (size_t i = 0; i < items_.size(); ++i) places_[items_[i].first] = i;
    else
      places_[items_.back().first] = items_.size() - 1;
  }

  std::vector<std::pair<std::string, std::string>> items_;
  std::unordered_map<std::string, size_t> places_;
  size_t unnamed_ = 0;
};

// A template that is being expanded, and the template that calls it.
struct Frame {
  std::string_view title;
  const Arguments* arguments;
  const Frame* caller;
  size_t depth;

  static size_t depth_of(const Frame* frame) { return frame ? frame->depth : 0; }

  // Returns whether the same template is already being expanded with equal arguments.
  static bool repeats(const Frame* frame, std::string_view title, const Arguments& arguments) {
    for (; frame; frame = frame->caller)
      if (frame->title == title && *frame->arguments == arguments) return true;
    return false;
  }
};

}  // namespace bertdata::wiki::wikiextractor
