from __future__ import annotations

from pathlib import Path


def test_rules_are_written_and_checked(run, packed: Path, tmp_path: Path) -> None:
    document = run("schema", packed).document
    assert document["format"] == "recordsmith-schema"
    path = tmp_path / "rules.json"
    outcome = run("schema", packed, "-o", path)
    assert (outcome.code, outcome.out) == (0, f"{path}: rules for 7 features\n")
    refused = run("schema", packed, "-o", path)
    assert refused.code == 2
    assert str(path) in refused.err
    assert run("schema", packed, "-o", path, "--overwrite").code == 0
    line = run("verify", packed, "--schema", path).out.rstrip()
    assert line.startswith("good: 9 intact records")
    assert line.endswith(f" the rules of {path}")
    path.write_text(path.read_text().replace('"int64"', '"float"'))
    outcome = run("verify", packed, "--schema", path)
    assert outcome.code == 1
    assert "feature-kind-mismatch" in outcome.out
    assert outcome.out.count("\nfeature-kind-mismatch (") == 1  # the explanation
    path.write_text("{}")
    outcome = run("verify", packed, "--schema", path)
    assert outcome.code == 2
    assert str(path) in outcome.err
