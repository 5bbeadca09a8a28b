#!/usr/bin/env python3
"""Prints runs below a folder as a table in Markdown, and for each that did not pass a text for an issue.

Usage: summary.py ARTIFACTS. On GitHub the table links to the run, whose artifacts hold the reports.
"""

import json
import os
import pathlib
import sys


def runs(folder):
    """The verdicts below `folder`, oldest first, each with its folder."""
    for path in sorted(pathlib.Path(folder).glob("**/verdict.json")):
        if not path.parent.is_symlink():
            yield path.parent, json.loads(path.read_text())


def link():
    """Where the artifacts are, if this runs on GitHub."""
    env = os.environ
    if "GITHUB_RUN_ID" not in env:
        return None
    return f"{env['GITHUB_SERVER_URL']}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}"


def findings(verdict):
    """What is wrong, a line each: checks first, then cells, then the harness itself."""
    for check in verdict.get("checks", []):
        for finding in check.get("findings", []):
            if finding.get("severity") != "note":
                yield f"{finding.get('severity')}: {check.get('name')}: {finding.get('message', '')}"
    for cell in verdict.get("cells", []):
        if cell.get("outcome") not in (None, "passed"):
            yield f"{cell.get('cell')}: {cell.get('outcome')}: {(cell.get('failure') or {}).get('message', '')}"
    for problem in verdict.get("problems", []):
        yield f"problem: {problem.get('message', problem)}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found, where = list(runs(sys.argv[1])), link()
    if not found:
        print("No run left a verdict.")
        return
    print("| run | verdict | cells | |\n|---|---|---|---|")
    for folder, verdict in found:
        cells = verdict.get("cells", [])
        report = f"[artifacts]({where}#artifacts), `{folder.name}/report.html`" if where else f"{folder}/report.html"
        print(f"| {verdict.get('run', folder.name)} | {verdict.get('verdict')} | {len(cells)} | {report} |")
    for folder, verdict in found:
        if verdict.get("verdict") == "pass":
            continue
        print(f"\n<details><summary>Text for an issue: {folder.name}</summary>\n\n```text")
        print(f"{verdict.get('verdict')} in run {verdict.get('run', folder.name)}")
        print("\n".join(findings(verdict)) or "nothing is told")
        print(f"versions: {json.dumps(verdict.get('versions', {}))}")
        print(f"again:    onewriter replay {folder.name}/bundle.tar.gz --run\n```\n\n</details>")


if __name__ == "__main__":
    main()
