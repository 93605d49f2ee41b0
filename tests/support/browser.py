"""Headless Chromium, for tests of HTML pages, with a log of what a page did."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("selenium", "axe_core_python")


def why_no_browser() -> str:
    """Return why Chromium cannot be started. Empty if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)} here; Debian's packages are chromium and chromium-driver"
    packages = [name for name in PACKAGES if find_spec(name) is None]
    return f"not installed: {', '.join(packages)}" if packages else ""


class Browser:
    """A headless window of Chromium. Each page is loaded afresh, in light or dark colours."""

    def __init__(self) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(120)

    def open(self, page: Path, colours: str = "light") -> None:
        """Load an HTML file, and clear the logs of earlier pages."""
        feature = {"name": "prefers-color-scheme", "value": colours}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.requests()
        self.errors()
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Send key presses, one after another, to the focused element."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(getattr(Keys, key) if key.isupper() and len(key) > 1 else key)
        actions.perform()

    def focus(self, selector: str, most: int = 400) -> Any:
        """Press Tab until an element that matches the selector has the focus, as a keyboard user would."""
        for _ in range(most):
            self.press("TAB")
            focused = self.driver.switch_to.active_element
            if self.run("return arguments[0].matches(arguments[1])", focused, selector):
                return focused
        raise AssertionError(f"{selector} cannot be reached by the keyboard")

    def requests(self) -> list[str]:
        """Return the addresses requested since the last call, except the page itself and ``data:`` URLs."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        asked = [one["request"]["url"] for one in sent if one.get("type") != "Document"]
        return [url for url in asked if not url.startswith("data:")]

    def errors(self) -> list[str]:
        """Return the messages in the browser's console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def serious_findings(self) -> list[str]:
        """Return the axe-core rules that the page violates seriously, each with an offending element."""
        from axe_core_python.selenium import Axe

        found = Axe().run(self.driver, options={"resultTypes": ["violations"]})["violations"]
        return [
            f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def close(self) -> None:
        self.driver.quit()
