"""The kernel of masked spans under the sanitizers of addresses and of undefined behaviour."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/span.h"

using namespace bertdata;

// Documents of odd sizes, some of them empty, by both streams, with and without masks.
int main() {
  std::vector<uint16_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i * 7 % 40);
  uint64_t made = 0;
  for (const uint32_t step : {1u, 3u, 17u, 400u, 3000u})
    for (const uint32_t length : {3u, 5u, 16u, 65535u})
      for (const bool as_original : {true, false})
        for (const bool masks : {true, false}) {
          std::vector<uint32_t> sentences{0}, documents{0};
          for (uint32_t end = step; end < ids.size(); end += step) sentences.push_back(end);
          sentences.insert(sentences.end(), {3000u, 3000u});
          for (uint32_t end = 2; end < sentences.size(); end += 5) documents.push_back(end);
          documents.insert(documents.end(), 2, static_cast<uint32_t>(sentences.size()));
          std::vector<uint8_t> starts(ids.size());
          for (size_t i = 0; i < starts.size(); ++i) starts[i] = i % 3 != 1;
          const SpanRules spans{length / 2 + 1, 1, {0.4, 0.8, 1.0}, 0.4, 0.7, step % 2 == 0, step > 10, 3};
          const SpanBlockRules rules{length, 1, 2, 0.9, masks, as_original, step == 3, spans};
          const DocumentView<uint16_t> view{ids.data(), sentences.data(), documents.data(),
                                            static_cast<uint32_t>(documents.size())};
          const SpanExamples<uint16_t> examples(view, std::move(starts), rules, {4, 5, 6}, {1, 2, 3}, {5}, 9);
          for (size_t start = 0; start < examples.size(); start += 100)
            made += examples.batch(start, start + 100, 1 + start % 3).ids.size();
        }
  const uint32_t none = 0;
  const DocumentView<uint32_t> nothing{nullptr, &none, &none, 1};
  const SpanBlockRules rules{8, 1, 2, 0.1, true, true, false, {2, 1, {1.0}, 0.5, 0.5, false, true, 3}};
  return made > 0 && SpanExamples<uint32_t>(nothing, {}, rules, {4}, {1}, {5}, 0).size() == 0 ? 0 : 1;
}
"""


@pytest.mark.thorough
def test_spans_of_odd_documents_touch_no_other_memory(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
