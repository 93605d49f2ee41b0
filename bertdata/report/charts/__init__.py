"""Charts with their numbers: drawn by matplotlib as picture files, and as SVG inside HTML pages.

A chart is a frozen record that knows its title, its numbers as a table, and how to draw itself::

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
