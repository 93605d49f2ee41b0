"""The devices of vendors offer what the core asks of every device."""

import json

import pytest

from tests.support.device_protocol import OWN, assert_examined, assert_protocol
from trainer.devices.choice import DEVICES

VENDORS = [name for name in DEVICES if name not in OWN]


def test_the_vendors_devices_are_those_of_the_registry_that_the_core_has_not():
    assert VENDORS == ["hpu", "ipu", "xla"]


@pytest.mark.parametrize("name", VENDORS)
def test_every_device_offers_the_whole_protocol(name):
    assert_protocol(name)


@pytest.mark.parametrize("name", VENDORS)
def test_every_device_can_be_examined(name):
    assert_examined(name)


def test_each_device_that_is_not_there_has_its_remedy_in_json(trainer):
    found = json.loads(trainer("doctor", "--json").out)
    assert [one["name"] for one in found["device"]] == [*DEVICES]
    for one in found["device"]:
        assert set(one) == {"name", "there", "found", "missing", "count"}
        assert one["there"] or one["missing"]
