"""The kernel of fairseq's masks under the sanitizers of addresses and undefined behaviour."""

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/fairseq_masks.h"

using namespace bertdata;

template <class Stream>
void mask_rows(const FairseqRules& rules, uint32_t longest) {
  FairseqMasker masker(rules);
  for (uint32_t length = 0; length <= longest; length = length * 2 + 1)
    for (const double rate : {1e-9, 0.15, 0.5, 1.0}) {
      std::vector<int32_t> ids(length), positions(rules.most), labels(rules.most);
      for (uint32_t at = 0; at < length; ++at) ids[at] = static_cast<int32_t>(at % 7);
      Stream stream(length);
      uint32_t made = 0;
      try {
        made = masker.mask(ids.data(), length, rate, stream, positions.data(), labels.data());
      } catch (const std::length_error&) {
        continue;
      }
      for (uint32_t mask = 0; mask < made; ++mask)
        if (labels[mask] != positions[mask] % 7) throw std::runtime_error("a wrong label");
    }
}

int main() {
  const std::vector<double> limits{0, 0, 0, 0, 0.25, 0.5, 0.75, 1};
  for (const uint32_t most : {0u, 5u, 70000u})
    for (const uint32_t multiple : {1u, 3u, 65535u})
      for (const bool whole : {false, true}) {
        FairseqRules rules{most, 7, 0.3, 0.3, limits, {}, 8, multiple};
        if (whole) rules.begins_word = {1, 1, 1, 1, 0, 0, 1, 0};
        mask_rows<PcgStream>(rules, 40000);
        mask_rows<FairseqTwister>(rules, 4000);
      }
}
"""


@pytest.mark.thorough
def test_masks_stay_within_their_buffers(tmp_path):
    run_sanitized(PROGRAM, tmp_path)
