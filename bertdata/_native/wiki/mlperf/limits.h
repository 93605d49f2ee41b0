// Limits of expansion: the original's, and bounds on work and memory where it has none.
#pragma once

#include <exception>

#include "wiki/work.h"

namespace bertdata::wiki::mlperf {

constexpr int kMaxTemplateDepth = 30;  // at which expansion yields nothing
constexpr int kMaxArgumentLevel = 10;  // of arguments within arguments
constexpr int kMaxFrames = 977;        // what Python's limit of 1000 leaves to expansion
constexpr int kFunctionFrames = 2;     // that the original takes for a parser function

// Bytes of work, beside those handled, of a call, of any expansion, of nesting that goes too deep, and of
// each argument of a function that is left to Python, and each of its bytes.
constexpr uint64_t kCallWork = 1024, kStepWork = 64, kTooDeepWork = 4096;
constexpr uint64_t kPythonWork = 1 << 14, kPythonByteWork = 128;

// Nesting beyond the recursion limit of Python. A parser function around it yields nothing. Without one
// the article is lost.
struct TooDeep : std::exception {
  const char* what() const noexcept override { return "calls are nested too deep"; }
};

// A page's budget of work, frames of the original's recursion, and texts that wait for an inner call.
class Limits {
 public:
  explicit Limits(Work& budget) : work(budget) {}

  bool has_frames(int frames) const { return frames_ + frames <= kMaxFrames; }

  // Counts frames while it lives.
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

  // RAII: adds a pending text's size to the page's limit, which holds for all pending texts together.
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
