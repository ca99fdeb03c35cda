"""Make the pictures of docs/results.md: a study of European cities by simulated people.

python scripts/make_result_pictures.py [FOLDER]

Chromium takes the pictures of pages, see CONTRIBUTING.md.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import nearer
from nearer.plotting import save
from nearer.questions import answered, random_questions

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def answer() -> tuple[nearer.Triplets, np.ndarray]:
    """The answers of eight people about cities; one of them always contradicts."""
    cities = nearer.datasets.load_cities()
    europe = [i for i, code in enumerate(cities.continents) if code == "EU"][:45]
    flat = np.stack([cities.longitude, cities.latitude], axis=1)[europe]
    points = (flat - flat.mean(axis=0)) * [np.cos(np.radians(50)), 1] / 8
    names = [cities.names[i] for i in europe]
    rng = np.random.default_rng(0)
    questions = random_questions(len(names), 6000, rng)
    oracle = nearer.asking.PsychometricOracle(points, scale=0.25, random_state=1)
    near = np.asarray(oracle(questions))
    who = rng.integers(8, size=len(questions))
    near[who == 7] ^= True
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cities.csv")
        rows = answered(questions, near)
        lines = ["head,winner,loser,person"]
        lines += [
            ",".join([*(f'"{names[i]}"' for i in row), f"person {w + 1}"])
            for row, w in zip(rows.tolist(), who.tolist(), strict=True)
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
        return nearer.read_triplets(file), points


def photograph(page: Path, picture: Path, width: int, height: int, key: str = "") -> None:
    """A screenshot of a page in a browser."""
    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": width, "height": height})
        shown.goto(page.as_uri())
        if key:
            shown.fill("#find", key)
        shown.wait_for_timeout(500)
        shown.screenshot(path=picture)
        browser.close()


def main(folder: Path) -> None:
    """Fit, draw, photograph."""
    answers, _ = answer()
    embedding = nearer.fit(answers, n_components=2, random_state=0)
    save(embedding.plot(), folder / "results-map.png")
    save(nearer.fit(answers, n_components=3, random_state=0).plot(), folder / "results-grid.png")
    with tempfile.TemporaryDirectory() as pages:
        page = Path(pages, "map.html")
        save(embedding.plot(interactive=True, title="European cities"), page)
        photograph(page, folder / "results-explore.png", 1000, 640, "Vienna")
        report = Path(pages, "report.html")
        nearer.fit(answers, random_state=0).report(report, title="Report on European cities")
        photograph(report, folder / "results-report.png", 900, 1100)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
