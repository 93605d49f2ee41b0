"""One self-contained HTML page: a title, faults, and sections made of blocks.

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

Blocks are ``Prose`` (paragraphs), ``DataTable`` (from ``bertdata.reports.charts.values``; with page_rows it
has a search field and pages), ``ChartBlock`` (any chart of ``bertdata.reports.charts``, with its numbers as a
table and with buttons), ``DrawingBlock`` (SVG that our own code drew), ``StepsBlock`` (a path of steps),
``PassagesBlock`` (texts with marked words, with a search field and pages), ``FiguresBlock`` (a few numbers in
large letters), ``CommandBlock`` (a command line to copy), ``MatrixBlock`` (a shaded table of counts) and
``SideBySide`` (blocks in columns, each column with a heading). To add a block, write a frozen dataclass with
an attribute ``template``. It names a file in ``templates/`` that reads the object as ``block``.

Every text is escaped, and control characters are shown as escapes
(``bertdata.io.terminal.escape_unprintable``). The page loads nothing: its content security policy allows
only its own style and script. Colours are CSS variables from ``bertdata.reports.charts.colours``. The same
input gives the same bytes. Jinja2 is imported when a page is made, and matplotlib when a chart is drawn.
"""
