"""Charts: what is drawn, what a broken bar says, what stands behind them."""

import re
from xml.etree import ElementTree

import pytest

from bertdata.reports.charts.bar_chart import BarChart, name_ranges
from bertdata.reports.charts.drawing import render_inline_svg, write_picture
from bertdata.reports.charts.equal_axes import use_equal_axes
from bertdata.reports.charts.line_chart import Line, LineChart, compute_running_mean
from bertdata.reports.charts.units import choose_unit
from bertdata.reports.charts.values import format_full_value, format_value

HOSTILE = "<script>alert(1)</script> $x^2$ \x1b[31m \u202e \ud800"


def bars(**changed) -> BarChart:
    given = {
        "title": "Lengths",
        "description": "Most are full.",
        "x_label": "length (tokens)",
        "y_label": "examples",
        "names": ("1", "2", "3", "4"),
        "heights": {"examples": (1, 2, 4, 93)},
        "outlier": "93 % full",
        "numeric": True,
    }
    return BarChart(**{**given, **changed})


def line_chart(*lines: Line, **changed) -> LineChart:
    given = {"title": "Loss", "description": "It falls.", "x_label": "update", "y_label": "loss (nats)"}
    return LineChart(**{**given, "lines": lines, **changed})


def svg_of(chart) -> ElementTree.Element:
    return ElementTree.fromstring(render_inline_svg(chart, "name"))


def heights_of(path) -> list[tuple[float, float]]:
    """(what a bar of the picture says it stands for, its height in points)."""
    found = []
    for group in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}g"):
        if match := re.fullmatch(r"bar-\d+-\d+-(.+)", group.get("id", "")):
            drawn = group.find("{http://www.w3.org/2000/svg}path").get("d")
            ys = [float(y) for _, y in re.findall(r"[ML] (\S+) (\S+)", drawn)]
            found.append((float(match[1]), max(ys) - min(ys)))
    return found


def test_one_outlier_is_cut_and_says_its_share(tmp_path):
    write_picture(str(tmp_path / "a.svg"), [bars()])
    text = (tmp_path / "a.svg").read_text()
    assert "93 % full" in text
    assert [value for value, _ in heights_of(tmp_path / "a.svg")] == [1, 2, 4, 93]
    low, _, high, cut = [height for _, height in heights_of(tmp_path / "a.svg")]
    assert high == pytest.approx(4 * low, abs=0.01)
    assert cut == pytest.approx(5 * low, abs=0.01)


def test_bars_that_are_no_outliers_are_drawn_to_scale(tmp_path):
    write_picture(str(tmp_path / "a.svg"), [bars(heights={"examples": (1, 2, 4, 16)})])
    assert " % full" not in (tmp_path / "a.svg").read_text()
    found = heights_of(tmp_path / "a.svg")
    for value, height in found:
        assert height == pytest.approx(found[0][1] * value, abs=0.02)


def test_each_bar_says_its_value_under_the_mouse():
    titles = [one.text for one in svg_of(bars()).iter("title")]
    assert titles == ["1: 1 (examples)", "2: 2 (examples)", "3: 4 (examples)", "4: 93 (examples)"]


def test_a_line_of_one_point_has_a_marker_and_a_long_one_has_none():
    def markers(line: Line) -> int:
        drawing = svg_of(line_chart(line))
        hits = [
            use for group in drawing.iter("g") if group.get("class") == "hit" for use in group.iter("use")
        ]
        plot = next(group for group in drawing.iter("g") if "clip-path" not in group.attrib)
        assert plot is not None
        return len(hits)

    assert markers(Line("one", [5], [1.5])) == 1
    assert markers(Line("many", range(5000), [1.0] * 5000)) == 120
    one = render_inline_svg(line_chart(Line("one", [5], [1.5])), "n")
    assert one.count("var(--series-1)") > render_inline_svg(
        line_chart(Line("many", range(50), [1.0] * 50)), "n"
    ).count("var(--series-1)")


def test_no_peak_is_lost_where_a_line_is_thinned():
    ys = [1.0] * 100_000
    ys[54_321] = 9.0
    drawn = render_inline_svg(line_chart(Line("run", range(100_000), ys)), "n")
    flat = render_inline_svg(line_chart(Line("run", range(100_000), [1.0] * 99_999 + [9.0])), "n")
    assert len(drawn) < 100_000
    assert re.findall(r">(9|8|1)<", drawn) == re.findall(r">(9|8|1)<", flat)


def test_the_table_of_lines_has_a_column_each_and_says_where_rows_are_left_out():
    chart = line_chart(Line("a", [0, 10], [1.0, 2.0]), Line("b", [10, 20], [3.0, 4.0]))
    assert chart.table().columns == ("update", "a: loss (nats)", "b: loss (nats)")
    assert chart.table().rows == ((0, 1.0, None), (10, 2.0, 3.0), (20, None, 4.0))
    long = line_chart(Line("a", range(1000), [0.0] * 1000)).table()
    assert (len(long.rows), long.rows[-1][0], long.note) == (200, 999, "200 of 1,000 rows, evenly chosen")


def test_counts_have_whole_ticks():
    chart = line_chart(Line("a", [1, 2], [1.0, 2.0]), whole_x=True)
    texts = [one.text.strip() for one in svg_of(chart).iter("text")]
    assert texts[: texts.index("update")] == ["1", "2"]


@pytest.mark.parametrize(
    "chart",
    [
        bars(names=(HOSTILE, "b", "c", "d"), title=HOSTILE, numeric=False, outlier=HOSTILE),
        line_chart(Line(HOSTILE, [1, 2], [1.0, 2.0]), Line("漢字", [1], [1.0]), title=HOSTILE),
    ],
)
def test_hostile_names_are_text(chart, tmp_path):
    drawing = svg_of(chart)
    assert [element for element in drawing.iter() if element.tag in ("script", "style", "metadata")] == []
    text = "".join(drawing.itertext())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m" in text
    write_picture(str(tmp_path / "a.svg"), [chart])
    assert "<script" not in (tmp_path / "a.svg").read_text()


def test_colours_are_variables_and_identifiers_the_drawings_own():
    text = render_inline_svg(bars(), "first")
    assert "var(--series-1)" in text
    assert "#2b6199" not in text
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert identifiers
    assert all(one.startswith("first-") for one in identifiers)
    assert set(re.findall(r"#([\w-]+)", text)) - {"000000"} <= set(identifiers)


def test_values_for_readers_and_for_programs():
    assert [format_value(value) for value in (None, 12345, 0.25, 1234.5678, "a")] == [
        "–",
        "12,345",
        "0.25",
        "1,235",
        "a",
    ]
    assert [format_full_value(value) for value in (None, 12345, 1234.5678, "a")] == [
        "",
        "12345",
        "1234.5678",
        "a",
    ]


def test_ranges_name_their_ends():
    assert list(name_ranges(1, 1, 3, 3)) == ["1", "2", "3"]
    assert list(name_ranges(1, 8, 3, 20)) == ["1 to 8", "9 to 16", "17 to 20"]


@pytest.mark.parametrize(
    ("largest", "label", "expected"),
    [
        (9_999, "tokens", (1, "tokens")),
        (192_000, "tokens", (1e3, "tokens (thousands)")),
        (25e6, "examples", (1e6, "examples (millions)")),
        (18_779_416, "bytes", (1e6, "MB")),
        (9e-4, "learning rate", (1e-3, "learning rate (thousandths)")),
        (1e-4, "learning rate", (1e-6, "learning rate (millionths)")),
        (0.002, "learning rate", (1e-3, "learning rate (thousandths)")),
        (0.08, "seconds", (1e-3, "milliseconds")),
        (0.05, "TFLOP/s per device", (1e-3, "GFLOP/s per device")),
        (0, "seconds", (1, "seconds")),
        (0.5, "accuracy", (1, "accuracy")),
    ],
)
def test_an_axis_has_a_unit_that_suits_its_largest_number(largest, label, expected):
    assert choose_unit(largest, label) == expected


def test_an_axis_in_thousands_says_so_and_the_table_keeps_the_numbers():
    chart = bars(heights={"examples": (50_000, 60_000, 70_000, 80_000)})
    texts = [one.text.strip() for one in svg_of(chart).iter("text")]
    assert "examples (thousands)" in texts
    assert "80" in texts
    assert "80,000" not in texts
    assert chart.table().rows[3] == ("4", 80_000)


def test_charts_side_by_side_have_equal_axes(tmp_path):
    small, large = use_equal_axes(
        [bars(heights={"examples": (1, 2, 3, 4)}), bars(names=("1", "2"), heights={"examples": (6, 8)})]
    )
    for name, chart in (("small", small), ("large", large)):
        write_picture(str(tmp_path / f"{name}.svg"), [chart])
    drawn = {name: heights_of(tmp_path / f"{name}.svg") for name in ("small", "large")}
    per_example = drawn["small"][0][1]
    for value, height in (*drawn["small"], *drawn["large"]):
        assert height == pytest.approx(value * per_example, abs=0.02)
    lines = use_equal_axes(
        [line_chart(Line("a", [0, 5], [1, 2])), line_chart(Line("b", [0, 10], [1, 40]))],
    )
    assert {(chart.x_range, chart.y_range) for chart in lines} == {((0, 10), (0, 42))}
    other = [line_chart(Line("a", [1], [2]), y_label="score"), line_chart(Line("a", [1], [2]))]
    assert use_equal_axes(other) == other


def test_a_running_mean_keeps_the_beginning_and_the_level():
    noisy = [10.0, *(1.0 + (-1) ** place for place in range(99))]
    smooth = compute_running_mean(noisy)
    assert smooth[0] == 10.0
    assert smooth[1] == pytest.approx(12 / 3)
    assert all(abs(mean - 1) < 0.2 for mean in smooth[6:])
    assert compute_running_mean([2.0, 2.0, 2.0]) == [2.0, 2.0, 2.0]


def test_noise_near_zero_does_not_fill_the_axis():
    chart = line_chart(Line("a", [1, 2], [0.01, 0.02]), y_range=(0, None), least_top=5)
    texts = [one.text.strip() for one in svg_of(chart).iter("text")]
    assert "5" in texts
