"""One self-contained page of HTML from records: a title, faults, sections of blocks.

::

    page = ReportPage(
        title="Run one",
        lead=("BERT base, 10,000 updates.",),
        sections=(
            ReportSection("Loss", (ChartBlock(loss_chart), Prose("Nats, smoothed over 100 updates."))),
            ReportSection("Settings", (DataTable("Settings", ("setting", "value"), rows),)),
        ),
    )
    write_page("report.html", page)

Blocks: ``Prose`` (paragraphs), ``DataTable`` (of ``bertdata.report.charts.values``; with page_rows it has a
search and pages), ``ChartBlock`` (any chart of ``bertdata.report.charts``, its table and its buttons behind
it), ``DrawingBlock`` (SVG that another program of ours drew), ``StepsBlock`` (a path of steps),
``PassagesBlock`` (texts of marked words, with a search and pages), ``SideBySide`` (blocks of the same kind
next to each other, each under a heading). A block of your own is a frozen dataclass with the attribute
``template``, a file of ``templates/`` that reads it as ``block``.

Every text is escaped, and what a terminal or a reader could take for a command is shown as an escape
(``bertdata.io.terminal.printable``). The page asks for nothing: its content security policy allows its own
style and script alone. Colours are those of ``bertdata.report.charts.colours``, as CSS variables. The same
records give the same bytes. Jinja2 is imported when a page is made, matplotlib when a chart is.
"""
