"""SQuAD's JSON: what is read, what is left out, what is refused."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from tests.support.squad_kit import parse_case, read_questions
from tests.support.strategies import tries
from trainer.tasks.data_file import DataFile
from trainer.tasks.squad.reading import read_squad, split_context

CONTEXT = "A keeper lit the lamp in\u202f1900."


def question(**changes):
    answers = [{"text": "keeper", "answer_start": 2}]
    return {"id": "q1", "question": "Who?", "answers": answers, **changes}


def document(*questions, context=CONTEXT):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


def read(value, training=True, negatives=False):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_squad(DataFile("q.json", data), training=training, negatives=negatives)


def entry(**changes):
    """A question of the flat form."""
    answers = {"text": ["keeper"], "answer_start": [2]}
    return {"id": "q1", "context": CONTEXT, "question": "Who?", "answers": answers, **changes}


def as_lines(*entries):
    return "\n".join(map(json.dumps, entries)).encode()


def told(found):
    """All that features and metrics are made of, and which questions share a context."""
    contexts = list({id(one.context): one.context for one in found.questions}.values())
    questions = [
        (one.id, one.text, contexts.index(one.context), one.answer, one.is_impossible, one.golds)
        for one in found.questions
    ]
    places = [(one.words, one.starts, len(one.text)) for one in contexts]
    return questions, places, found.skipped, found.contexts


def test_a_question_knows_its_answers_words():
    (found,) = read(document(question(answers=[{"text": "in\u202f1900", "answer_start": 22}]))).questions
    assert found.context.words == ["A", "keeper", "lit", "the", "lamp", "in", "1900."]
    # The answer's own white space is joined by Python's rule, which knows U+202F too.
    assert (found.answer.first_word, found.answer.last_word) == (5, 6)


@tries(3)
@given(st.text(" \t\r\n\u202f\xa0\u2003ab", max_size=12))
def test_the_word_of_each_character_is_counted_one_by_one(text):
    """Character by character: a new word begins after one of five white spaces."""
    words, of_character, after_space = [], [], True
    for character in text:
        if character in " \t\r\n\u202f":
            after_space = True
        elif after_space:
            words.append(character)
            after_space = False
        else:
            words[-1] += character
        of_character.append(len(words) - 1)
    context = split_context(text)
    assert context.words == words
    assert [context.word_at(place) for place in range(len(text))] == of_character


@pytest.mark.parametrize(
    ("text", "start"),
    [("lighthouse", 2), ("keeper", 9), ("keeper", 400), ("keeper", -1), ("", 0), ("A", 1_000_000)],
)
def test_an_answer_that_is_not_where_it_should_be_is_left_out_with_a_warning(text, start):
    bad = question(id="bad", answers=[{"text": text, "answer_start": start}])
    found = read(document(question(), bad))
    assert [one.id for one in found.questions] == ["q1"]
    assert found.skipped == ["bad"]
    (warning,) = found.warnings()
    assert warning == "q.json: question bad: its answer is not in the words of its context; left out"


def test_many_such_answers_are_counted():
    bad = [question(id=f"bad{n}", answers=[{"text": "x", "answer_start": 0}]) for n in range(9)]
    warnings = read(document(question(), *bad)).warnings()
    assert len(warnings) == 4
    assert warnings[-1] == "q.json: 9 questions are left out for that reason"


def test_the_edge_file_leaves_out_the_questions_that_the_original_does(kit):
    found = read_questions(kit, parse_case("edge_train_v1__s96__d32__q24__training", "google"))
    assert found.skipped == ["e0-01", "e0-02", "e0-04"]


def test_impossible_questions_are_read_where_asked_for():
    impossible = question(id="none", is_impossible=True, answers=[])
    found = read(document(impossible), negatives=True).questions[0]
    assert (found.is_impossible, found.answer, found.golds) == (True, None, ())
    predicted = read(document(impossible), training=False, negatives=True).questions[0]
    assert predicted.is_impossible is False
    with pytest.raises(
        InputError, match="q.json: question none: has 0 answers, expected exactly 1 .*version"
    ):
        read(document(impossible))


def test_a_file_to_predict_on_needs_no_answers():
    (found,) = read(document({"id": "a", "question": "b"}), training=False).questions
    assert (found.answer, found.golds) == (None, ())


def test_the_three_forms_hold_the_same():
    asked = [{}, {"id": "q2", "question": "What?", "answers": {"text": ["lamp"], "answer_start": [17]}}]
    lost = {"id": "q3", "answers": {"text": ["lamp"], "answer_start": [2]}}
    flat = [entry(**changes) for changes in (*asked, lost)]
    expected = told(
        read(
            document(
                question(),
                question(id="q2", question="What?", answers=[{"text": "lamp", "answer_start": 17}]),
                question(id="q3", answers=[{"text": "lamp", "answer_start": 2}]),
            )
        )
    )
    assert expected[2:] == (["q3"], 1)
    for value in ({"data": flat}, as_lines(*flat), b"\xef\xbb\xbf\n" + as_lines(*flat) + b"\r\n\n"):
        assert told(read(value)) == expected
    assert told(read(as_lines(flat[0]))) == told(read(document(question()))), "a single line"


@pytest.mark.parametrize("marked", [{}, {"is_impossible": True}])
def test_a_flat_question_without_answers_is_impossible_with_a_mark_or_without(marked):
    impossible = entry(id="none", answers={"text": [], "answer_start": []}, **marked)
    value = {"version": "v2.0", "data": [entry(), impossible]}
    nested = document(question(), question(id="none", is_impossible=True, answers=[]))
    assert told(read(value, negatives=True)) == told(read(nested, negatives=True))
    assert [one.is_impossible for one in read(value, negatives=True).questions] == [False, True]
    message = "q.json: data 1: question none: has 0 answers, expected exactly 1 .*--version-2-with-negative"
    with pytest.raises(InputError, match=message):
        read(value)


def test_a_flat_file_to_predict_on_needs_no_answers():
    one = entry()
    del one["answers"]
    (found,) = read(as_lines(one), training=False).questions
    assert (found.answer, found.golds) == (None, ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (as_lines(entry(), {"id": "b", "question": "c"}), "line 2: question b: lacks 'context', expected a"),
        (as_lines({"context": "a", "question": "b"}, entry()), "line 1: lacks 'id', expected a text"),
        (as_lines({"id": 7, "context": "a", "question": "b"}), "line 1: 'id' is 7, expected a text"),
        (as_lines(entry(), entry()), "line 2: question q1: occurs twice, expected an id of its own"),
        (as_lines(entry(), [1]), "line 2: is no JSON object, expected one with 'id'"),
        (as_lines(entry()) + b"\n\n{", "line 3: is not JSON: .*; expected one question a line"),
        (as_lines(entry(), entry(id="b", question=None)), "line 2: question b: 'question' is None"),
        (as_lines(entry(answers=[])), r"line 1: question q1: 'answers' is \[\], expected a JSON object"),
        (as_lines(entry(answers={"text": []})), "line 1: question q1: answers: lacks 'answer_start'"),
        (
            as_lines(entry(answers={"text": ["A"], "answer_start": []})),
            "line 1: question q1: answers: 'text' has 1 values and 'answer_start' 0, expected equally many",
        ),
        (
            as_lines(entry(answers={"text": ["A"], "answer_start": ["0"]})),
            "line 1: question q1: answers: 'answer_start' is '0', expected an integer",
        ),
        ({"data": [entry(), {"title": "t"}]}, "q.json: data 1: lacks 'id'"),
        ({"data": [entry(answers={"text": [3], "answer_start": [0]})]}, "data 0: question q1: answers: 'te"),
        (json.dumps(document(question())).encode() + b"\n{}", "q.json: is not JSON: Extra data: line 2"),
        (b" \n", "q.json: is not JSON: it is empty; expected SQuAD's form: nested, flat, or one question a"),
        (b"id,context,question,answers\n", "q.json: is not JSON: .*expected SQuAD's form: nested, flat, or"),
    ],
)  # fmt: skip
def test_a_bad_flat_file_is_refused_with_place_and_member(value, message):
    with pytest.raises(InputError, match=message) as refused:
        read(value)
    assert "\n" not in str(refused.value)


TWO = [{"text": "A", "answer_start": 0}] * 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\xff{}", "q.json: line 1: byte 0xff at offset 0 is not UTF-8"),
        (
            gzip.compress(b"{}", mtime=0),
            "q.json: looks like gzip data, expected SQuAD's JSON in UTF-8; unpack it",
        ),
        ("\ufeff{}".encode("utf-16-le"), "q.json: looks like UTF-16, expected SQuAD's JSON in UTF-8"),
        (b"id\ttext\n", "q.json: is not JSON: .*expected SQuAD's form"),
        (b'{"data": "\\ud800"}', "q.json: is not JSON: .*half of a pair"),
        ([1], r"q.json: is no JSON object, expected one with 'data'"),
        ({"version": "1.1"}, "q.json: lacks 'data', expected a list"),
        ({"data": {}}, "q.json: 'data' is {}, expected a list"),
        ({"data": []}, "q.json: holds no questions"),
        ({"data": [{"title": "t"}]}, "q.json: data 0: lacks 'paragraphs'"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "q.json: data 0: paragraph 0: lacks 'context'"),
        (document({"question": "b"}), "q.json: question 0: lacks 'id'"),
        (document(question(question=5)), "q.json: question q1: 'question' is 5, expected a text"),
        (document(question(answers={})), "q.json: question q1: 'answers' is {}, expected a list"),
        (document(question(answers=[{"text": "A"}])), "q.json: question q1: lacks 'answer_start'"),
        (document(question(answers=TWO)), "q.json: question q1: has 2 answers, expected exactly 1"),
        (document(question(is_impossible=1)), "question q1: 'is_impossible' is 1, expected true or false"),
        (document(question(), question()), "q.json: question q1: occurs twice"),
    ],
)
def test_what_is_no_squad_is_refused_in_one_line(value, message):
    with pytest.raises(InputError, match=message) as refused:
        read(value)
    assert "\n" not in str(refused.value)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 40), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value, path=()):
    """The path of every value within a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


FORMS = (
    lambda: document(question(), question(id="q2", is_impossible=False)),
    lambda: {"data": [entry(), entry(id="q2", is_impossible=False)]},
    lambda: [entry(), entry(id="q2")],  # written one a line
)


@tries(9)
@given(st.data(), st.sampled_from(FORMS), st.booleans(), st.booleans())
def test_any_value_anywhere_is_read_or_refused_in_one_line(data, form, training, negatives):
    value = json.loads(json.dumps(form()))
    path = data.draw(st.sampled_from([one for one in places(value) if one]))
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = data.draw(json_values)
    message = ""
    try:
        found = read(as_lines(*value) if isinstance(value, list) else value, training, negatives)
        assert len(found.questions) + len(found.skipped) > 0
    except InputError as error:
        message = str(error)
    assert not message or message.startswith("q.json: ")
    assert "\n" not in message
