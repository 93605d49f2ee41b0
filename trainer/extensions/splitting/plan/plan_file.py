"""The file of a plan: JSON of the fields in ``schemas/plan.json``."""

from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from bertdata.io import storage
from schemas import load_schema
from trainer.config.model import ModelConfig
from trainer.extensions.splitting.plan.plan import FORMAT, Plan, parse_plan


def read_plan(path: str) -> Plan:
    """The plan of a file. SettingsError names the file and what is wrong with it."""
    values = read_object(path)
    if (found := values.get("format")) != FORMAT:
        named = "there is no format" if found is None else f"its format is {found!r}"
        raise SettingsError(f"{path}: is no plan: {named}, expected {FORMAT!r}")
    check_values({"plan": values}, {"plan": load_schema("plan")}, f"{path}: ")
    ModelConfig.from_dict(values["model"], f"{path}: model")
    return parse_plan(values, path)


def write_plan(path: str, plan: Plan) -> None:
    """Write the plan's file, which appears whole or not at all."""
    with storage.open_output(path) as file:
        file.write(plan.text().encode())
