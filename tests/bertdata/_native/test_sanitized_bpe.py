"""The kernel of byte-level BPE under the sanitizers of addresses and undefined behaviour, on made texts."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = r"""
#include <cstdlib>
#include "tokens/bpe_tokenizer.h"
using namespace bertdata;

const char* const PARTS[] = {
    "a", "the", " ", "  ", "'s", "'ll", "12345", "\r\n", "\n", "\n\n", ".", "<x>", " <y> ", "e\u0301",
    "\u0323\u0301", "\u1100\u1161\u11a8", "\U0001f600", "\u0e01\u0e49", "\u3000", "abcdefghijklmnopq"};

std::vector<uint8_t> characters() {
  std::vector<uint8_t> bits(0x110000);
  for (uint32_t c = 'a'; c <= 'z'; ++c) bits[c] = kLetterBit | kWordBit;
  for (uint32_t c = '0'; c <= '9'; ++c) bits[c] = kNumberBit | kNumericBit;
  for (uint32_t c : {9u, 10u, 13u, 32u, 0x3000u}) bits[c] = kSpaceBit;
  for (uint32_t c : {0xe9u, 0xac01u, 0xe01u}) bits[c] = kLetterBit;
  return bits;
}

std::string text() {
  std::string made;
  for (int count = std::rand() % 30; count > 0; --count) {
    const char* const part = PARTS[static_cast<size_t>(std::rand()) % (sizeof(PARTS) / sizeof(*PARTS))];
    for (int times = std::rand() % 40 ? 1 : 150; times > 0; --times) made += part;
  }
  return made;
}

int run(ByteBpe& bpe, const std::string& made, const char* between) {
  const std::vector<uint8_t> exact(made.begin(), made.end());  // reading behind it is an error
  BpeDocuments documents, each;
  bpe.tokenize(exact.data(), exact.size(), between, documents);
  Column<uint32_t> id_ends;
  const uint32_t ends[] = {0, static_cast<uint32_t>(exact.size())};
  bpe.tokenize_each(exact.data(), ends, 2, each, id_ends);
  const bool each_has_places = each.starts.size() == each.ids16.size();
  return !each_has_places || documents.word_starts.size() != documents.ids16.size();
}

int main() {
  const std::vector<uint8_t> bits = characters();
  std::vector<uint32_t> units(256), lengths(263, 1);
  const std::vector<uint32_t> joins = {'t', 'h', 256, 256, 'e', 257, ' ', 257, 258,
                                       'a', 'b', 259, 'a', 'a', 260};
  for (uint32_t i = 0; i < 256; ++i) units[i] = i;
  lengths[256] = lengths[259] = lengths[260] = 2, lengths[257] = 3, lengths[258] = 4;
  std::srand(7);
  for (int setting = 0; setting < 36; ++setting) {
    const BpePattern pattern = static_cast<BpePattern>(setting % 3);
    const BpeDigits digits = static_cast<BpeDigits>(setting / 3 % 3);
    std::unique_ptr<Composition> composition;
    if (setting >= 18)
      composition = std::make_unique<Composition>(std::vector<uint32_t>{}, std::vector<uint32_t>{0x958});
    ByteBpe bpe({pattern, digits, setting % 2 == 0, false, lengths},
                CharacterBitsTable(bits.data(), bits.size()),
                Merges(units, joins.data(), joins.size() / 3, {}),
                {{"<x>", 261, true, false, true}},
                {{"<y>", 262, true, true, false}, {"  ", 260, false, false, false}}, std::move(composition));
    for (int round = 0; round < 200; ++round)
      if (run(bpe, text(), round % 2 ? " " : "")) return 1;
  }
  return 0;
}
"""


@pytest.mark.thorough
def test_no_byte_outside_a_text_is_read(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
