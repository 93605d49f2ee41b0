"""Words of a text, and the sample of them that a trainer with little room gets."""

from collections import Counter

from bertdata.tokens.training.word_counts import WordCounts, count_words, repeat_words, sample_words


def blanks(text: str) -> list[str]:
    return text.split(" ")


def counts_of(*slices: str) -> WordCounts:
    return count_words(slices, blanks, str.split)


def test_words_are_counted_over_slices_whatever_their_order() -> None:
    text = ("a cat and a dog", "and a mouse", "x" * 70 + " a")
    assert counts_of(*text).counts == Counter(" ".join(text).split())
    assert counts_of(*reversed(text)) == counts_of(*text)


def test_longer_words_than_the_limit_are_counted_apart() -> None:
    found = count_words(["abc abcd abcde", "abcd abcd"], blanks, str.split, limit=3)
    assert (found.counts, found.left_out, found.longest) == ({"abc": 1}, 4, "abcde")


def test_special_tokens_are_counted_where_the_text_holds_them() -> None:
    found = count_words(["a [M][M] b", "x[M]"], blanks, str.split, special=["[M]", "[N]"])
    assert found.special == {"[M]": 3}


def test_a_text_that_fits_is_not_thinned() -> None:
    words = counts_of("a b b")
    assert sample_words(words, 6) is words
    assert sample_words(words, 5).divisor == 2


def test_thinning_keeps_the_share_of_rare_and_of_frequent_words() -> None:
    rare = {f"word{number}": 1 for number in range(20_000)}
    words = WordCounts(counts={**rare, "the": 70_000}, special={})
    characters = sum(times * (len(word) + 1) for word, times in words.counts.items())
    found = sample_words(words, characters // 10 + 1)
    assert found.divisor == 10
    assert found.counts["the"] == 7_000
    assert abs(sum(times for word, times in found.counts.items() if word in rare) - 2_000) < 200


def test_thinning_gives_the_same_for_any_order_and_loses_no_character() -> None:
    words = {f"{chr(0x4E00 + number)}x{number}": 1 for number in range(500)}
    found = sample_words(WordCounts(counts=words, special={}), 200)
    turned = sample_words(WordCounts(counts=dict(reversed(words.items())), special={}), 200)
    assert found.counts == turned.counts
    assert set().union(*found.counts) == set().union(*words)
    assert sum(len(word) > 1 for word in found.counts) < 100


def test_words_are_repeated_as_often_as_they_occur() -> None:
    counts = {"the": 9_000, "a": 1, "w" * 10_000: 3, "cat": 2048}
    found = Counter(word for text in repeat_words(counts) for word in text.split(" "))
    assert found == counts
    assert Counter(word for text in repeat_words({"a": 3}, str.upper) for word in text.split(" ")) == {"A": 3}
