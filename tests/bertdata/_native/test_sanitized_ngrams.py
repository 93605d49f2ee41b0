"""The kernel of shared n-grams under the sanitizers: texts cut anywhere, a table that grows."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = r"""
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "text/ngram_set.h"

using namespace bertdata;

int main() {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"a", "Bc", " ", "\n", ".", "\xC3\xA9", "\xE4\xB8\xAD", "\xCC\x81",
                                           "\xCE\xA3", "\xF0\x9F\x98\x80", "\xE2\x80\xA8", "\xEA\xB0\x81"};
  WordFolder folder;
  FoldedWords words;
  for (size_t size : {size_t{1}, size_t{2}, size_t{13}}) {
    NgramSet set(size);
    size_t found = 0;
    for (uint32_t text = 0; text < 400; ++text) {
      std::string bytes;
      for (uint32_t n = random() % 60; n; --n) bytes += pieces[random() % pieces.size()];
      const std::vector<uint8_t> exact(bytes.begin(), bytes.end());  // nothing readable behind its end
      folder.fold(exact.data(), exact.size(), words);
      NgramSet::Shared shared;
      if (set.find(words, shared)) found += shared.stop - shared.start;
      set.add(words, text);
      if (words.count() >= size && !set.find(words, shared)) return 1;
      try {
        folder.fold(exact.data(), exact.empty() ? 0 : random() % exact.size(), words);
      } catch (const InvalidUtf8&) {
      }
    }
    if (!found && size < 13) return 2;
  }
  return 0;
}
"""


@pytest.mark.thorough
def test_texts_and_tables_stay_within_their_bounds(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
