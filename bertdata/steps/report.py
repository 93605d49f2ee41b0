"""The step that writes an HTML page about datasets, under the name of its command."""

from bertdata.steps.write_report import write_report

report = write_report
