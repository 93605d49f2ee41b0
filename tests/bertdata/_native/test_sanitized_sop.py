"""ALBERT's kernel under the sanitizers of addresses and of undefined behaviour."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/dynamic_masking.h"
#include "examples/sop.h"

using namespace bertdata;

// Documents of odd sizes by every rule, with and without masks, then n-grams of them at load.
int main() {
  std::vector<uint16_t> ids(3000);
  std::vector<uint8_t> starts(3000), flags(40);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i * 7 % 40), starts[i] = i % 3 != 1;
  for (size_t i = 0; i < 40; ++i) flags[i] = i % 4 == 3;
  uint64_t made = 0;
  for (const uint32_t step : {1u, 3u, 17u, 400u, 3000u})
    for (const uint32_t length : {5u, 16u, 65535u})
      for (uint8_t rule = 0; rule < 16; ++rule) {
        std::vector<uint32_t> sentences, documents;
        for (uint32_t end = step; end <= ids.size(); end += step) sentences.push_back(end);
        if (sentences.back() != 3000) sentences.push_back(3000);
        for (uint32_t end = 5; end < sentences.size(); end += 5) documents.push_back(end);
        documents.push_back(static_cast<uint32_t>(sentences.size()));
        std::vector<double> limits{1};
        if (rule & 1) limits = {0.5, 0.8, 1};
        const bool whole_words = rule & 2, swaps = rule & 4;
        const uint8_t* words = rule & 8 ? starts.data() : nullptr;
        BertRules rules{length, std::min(length, 20u), 2, 0.3, 0.8, 0.5, 0.1, whole_words, step != 17, false,
                        true, 1, 1, 2, 3, {4, 5, 6}, flags, swaps, NgramRules{limits, 7, step == 3}};
        const DocumentView<uint16_t> view{ids.data(), sentences.data(), documents.data(),
                                          static_cast<uint32_t>(documents.size()), words};
        const SopExamples<uint16_t> examples(view, rules, {5}, false);
        for (size_t start = 0; start < examples.size(); start += 100)
          made += examples.batch(start, start + 100, 1 + start % 3).word_starts.size();
        const MaskingRules at_load{19, 3, 1u << 30, 1u << 31, {4, 5, 6}, std::vector<uint8_t>(40), flags,
                                   whole_words, false, limits};
        DynamicMasker masker(at_load);
        std::vector<int32_t> loaded(ids.begin(), ids.end()), positions(19), labels(19);
        CounterStream stream(step, rule);
        made += masker.mask(loaded.data(), words, std::min(length, 3000u), 0.5, stream, positions.data(),
                            labels.data());
      }
  return made > 0 ? 0 : 1;
}
"""


@pytest.mark.thorough
def test_examples_of_odd_documents_touch_no_other_memory(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
