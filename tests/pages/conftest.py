"""A real headless Chromium for the tests of the page."""

import json
import os
import shutil
from pathlib import Path

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
)


class Browser:
    """A page opened from disk, and what its controls do."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path: Path):
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        self.settle()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Wait until the page has drawn what it was asked to draw."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 30, 0.02).until(
            lambda _: self.run("return document.documentElement.dataset.ready") == "true"
        )

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def choose(self, name, value):
        self.one(f'input[name="{name}"][value="{value}"]').click()
        self.settle()

    def move(self, bins):
        """Put the slider on a number of bins, as a hand would."""
        self.run(
            "const s = document.getElementById('bins'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input', {bubbles: true}));",
            bins,
        )
        self.settle()

    @property
    def error(self) -> float:
        return float(self.one("#error").get_attribute("data-value"))

    def narrow(self, width, height=900):
        """The width of the page itself: a window cannot be made as narrow as a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def complaints(self):
        """Everything the console said."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def crowded(self):
        """Words in charts that are cut off by the edge of their chart, or that lie on top of each other."""
        return self.run(
            """
            const found = [];
            for (const svg of document.querySelectorAll('.chart svg')) {
              const frame = svg.getBoundingClientRect();
              const seen = (t) => t.textContent.trim() && getComputedStyle(t).opacity !== '0';
              const shown = [...svg.querySelectorAll('text')].filter(seen);
              const boxes = shown.map((t) => [t.textContent, t.getBoundingClientRect()]).filter(([, r]) => r.width && r.height);
              for (const [text, r] of boxes) {
                if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
                  found.push(`${text} is cut off`);
              }
              for (let i = 0; i < boxes.length; i++) {
                for (let j = i + 1; j < boxes.length; j++) {
                  const [a, b] = [boxes[i][1], boxes[j][1]];
                  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                  const halo = boxes[i][0] === boxes[j][0] && Math.abs(a.left - b.left) + Math.abs(a.top - b.top) < 6;
                  if (wide > 2 && high > 4 && !halo) found.push(`${boxes[i][0]} meets ${boxes[j][0]}`);
                }
              }
            }
            return found;
            """
        )

    def requests(self):
        """Addresses asked for since the page was opened, other than the page and its own data."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        request = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in request if not url.startswith(("data:", "blob:"))]

    def media(self, **features):
        """Emulate media features such as prefers_color_scheme, or a media type."""
        kind = features.pop("media", "")
        features["prefers_reduced_motion"] = "reduce"  # a page that glides cannot be clicked
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": named})


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    missing = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing.append("selenium")
    if missing:
        words = f"the page is tested in a browser, but there is no {', '.join(missing)}"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    opened = Browser(chromium)
    opened.media()
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.set_window_size(1400, 1000)
    return opened


@pytest.fixture
def all_estimators():
    """Pages with every estimator in their table, as users get them."""


@pytest.fixture(autouse=True)
def few_estimators(request, monkeypatch):
    """Write two estimators beside the rank series where a test does not ask for all: they take most of the time of a page."""
    if "all_estimators" not in request.fixturenames:
        from truecal.pages import model

        chosen = [pair for pair in model._ESTIMATORS if pair[0] in ("Debiased", "Binned (plug-in), equal mass")]
        monkeypatch.setattr(model, "_ESTIMATORS", tuple(chosen))
