"""The kernel of ELECTRA's examples under the sanitizers of addresses and of undefined behaviour."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/electra.h"

using namespace bertdata;

// Documents of odd sizes, some of them empty, by one stream after another.
int main() {
  std::vector<uint16_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i * 7 % 40);
  uint64_t made = 0;
  for (const uint32_t step : {1u, 3u, 17u, 400u, 3000u})
    for (const uint32_t length : {5u, 6u, 16u, 500u, 65535u}) {
      std::vector<uint32_t> sentences{0}, documents{0};
      for (uint32_t end = step; end < ids.size(); end += step) sentences.push_back(end);
      sentences.insert(sentences.end(), {3000u, 3000u});
      for (uint32_t end = 2; end < sentences.size(); end += 5) documents.push_back(end);
      documents.insert(documents.end(), 2, static_cast<uint32_t>(sentences.size()));
      const DocumentView<uint16_t> view{ids.data(), sentences.data(), documents.data(),
                                        static_cast<uint32_t>(documents.size())};
      ElectraStream stream({5, step}, length, 3);
      for (int input = 0; input < 4; ++input) {
        const ElectraExamples<uint16_t> examples(view, 1, 2, stream);
        for (size_t start = 0; start < examples.size(); start += 100)
          made += examples.batch(start, start + 100, 1 + start % 3).ids.size();
      }
    }
  const uint32_t none = 0;
  const DocumentView<uint32_t> nothing{nullptr, &none, &none, 1};
  ElectraStream stream({1}, 8, 1);
  return made > 0 && ElectraExamples<uint32_t>(nothing, 1, 2, stream).size() == 0 ? 0 : 1;
}
"""


@pytest.mark.thorough
def test_segments_of_odd_documents_touch_no_other_memory(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
