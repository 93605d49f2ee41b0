"""Charts with their numbers, which matplotlib draws as picture files or as SVG inside HTML pages.

A chart is a frozen dataclass that contains its title and its numbers. It can draw itself and return its
numbers as a table::

    chart = LineChart(
        title="Loss",
        x_label="update",
        y_label="loss (nats)",
        lines=(Line("run 1", steps, losses), Line("guess", (steps[0], steps[-1]), (10.3, 10.3), dashed=True)),
        whole_x=True,
    )
    write_picture("loss.svg", [chart])      # or .png
    svg = render_inline_svg(chart, "loss")  # for a page: colours are CSS variables, values are tooltips

matplotlib is imported only when a chart is drawn.
"""
