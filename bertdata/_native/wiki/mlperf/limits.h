// Limits of expansion: the original's, and additional limits for work and memory.
#pragma once

#include <exception>

#include "wiki/work.h"

namespace bertdata::wiki::mlperf {

constexpr int kMaxTemplateDepth = 30;  // at this depth a text expands to nothing
constexpr int kMaxArgumentLevel = 10;  // nesting depth of arguments within arguments
constexpr int kMaxFrames = 977;        // Python's recursion limit of 1000 minus the frames used outside expansion
constexpr int kFunctionFrames = 2;     // frames that the original uses for a parser function

// Costs in bytes of work, in addition to the bytes handled: of a call, of any expansion, of nesting that is too deep,
// of an argument passed to Python, and of each byte of such an argument.
constexpr uint64_t kCallWork = 1024, kStepWork = 64, kTooDeepWork = 4096;
constexpr uint64_t kPythonWork = 1 << 14, kPythonByteWork = 128;

// Nesting exceeds Python's recursion limit. A parser function around it then yields nothing. Without a parser function
// the article is lost.
struct TooDeep : std::exception {
  const char* what() const noexcept override { return "calls are nested too deep"; }
};

// Limits of a page: its work budget, the frames of the original's recursion, and the size of texts that are kept while
// an inner call runs.
class Limits {
 public:
  explicit Limits(Work& budget) : work(budget) {}

  bool has_frames(int frames) const { return frames_ + frames <= kMaxFrames; }

  // Counts frames during its lifetime. Throws TooDeep if they are not available.
  class Nesting {
   public:
    Nesting(Limits& of, int frames) : frames_(of.frames_), before_(of.frames_) {
      if (!of.has_frames(frames)) {
        of.work.spend(kTooDeepWork);
        throw TooDeep();
      }
      frames_ += frames;
    }
    ~Nesting() { frames_ = before_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& frames_;
    int before_;
  };

  // Counts a text that is kept in memory during its lifetime. The limit holds for all such texts of the page together.
  class Waiting {
   public:
    Waiting(Limits& of, size_t bytes) : waiting_(of.waiting_), before_(of.waiting_) {
      of.work.grow(before_ + bytes);
      waiting_ += bytes;
    }
    ~Waiting() { waiting_ = before_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    size_t& waiting_;
    size_t before_;
  };

  Work& work;

 private:
  int frames_ = 0;
  size_t waiting_ = 0;
};

}  // namespace bertdata::wiki::mlperf
