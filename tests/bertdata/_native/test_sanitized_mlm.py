"""The kernel of masked blocks under the sanitizers of addresses and of undefined behaviour."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/mlm.h"

using namespace bertdata;

// Documents of odd sizes, some of them empty, in every mode, with and without masks.
int main() {
  std::vector<uint16_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i * 7 % 40);
  std::vector<uint8_t> starts(ids.size());
  for (size_t i = 0; i < starts.size(); i += 3) starts[i] = 1;
  uint64_t made = 0;
  for (const uint32_t step : {1u, 3u, 17u, 400u, 3000u})
    for (uint8_t breaks = 0; breaks < 4; ++breaks)
      for (const uint32_t length : {2u, 5u, 16u, 65535u})
        for (const bool masks : {true, false}) {
          std::vector<uint32_t> sentences{0}, documents{0};
          for (uint32_t end = step; end < ids.size(); end += step) sentences.push_back(end);
          sentences.insert(sentences.end(), {3000u, 3000u});
          for (uint32_t end = 2; end < sentences.size(); end += 5) documents.push_back(end);
          documents.insert(documents.end(), 2, static_cast<uint32_t>(sentences.size()));
          MlmRules rules{static_cast<Breaks>(breaks), length, 1, 2, 0.3, masks,
                         {std::min(length, 20u), 3, 1u << 30, 1u << 31, {4, 5, 6}, std::vector<uint8_t>(40),
                          std::vector<uint8_t>(40, 1), breaks % 2 == 0, step == 3}};
          const DocumentView<uint16_t> view{ids.data(), sentences.data(), documents.data(),
                                            static_cast<uint32_t>(documents.size()),
                                            length == 16 ? nullptr : starts.data()};
          const MlmExamples<uint16_t> examples(view, rules, !masks && length != 16, {1, 2, 3}, {5});
          for (size_t start = 0; start < examples.size(); start += 100)
            made += examples.batch(start, start + 100, 1 + start % 3).ids.size();
        }
  const uint32_t none = 0;
  const DocumentView<uint32_t> nothing{nullptr, &none, &none, 1};
  const std::vector<uint8_t> flags(5);
  const MlmRules rules{Breaks::kNone, 8, 1, 2, 0.1, true, {2, 3, 0, 0, {4}, flags, flags, false, false}};
  const MlmExamples<uint32_t> none_made(nothing, rules, false, {1}, {5});
  return made > 0 && none_made.batch(0, 9, 1).ids.size() == 0 ? 0 : 1;
}
"""


@pytest.mark.thorough
def test_blocks_of_odd_documents_touch_no_other_memory(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
