"""What a move did and what it found different, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ADDED, EQUAL, REPLACED, DIFFERENT, REFUSED, NOTE = "added", "equal", "replaced", "different", "refused", "note"

_WORDS = {
    DIFFERENT: "Different here, left as it is (--update replaces it)",
    REFUSED: "Not moved",
    NOTE: "Notes",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know about one object: `outcome` is different, refused or note."""

    outcome: str
    kind: str
    name: str
    words: str


@dataclass(slots=True)
class Report:
    """Counts by kind and outcome, and findings. With `dry_run` nothing was changed: it says what would be done."""

    source: str
    dry_run: bool = False
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def count(self, kind: str, outcome: str, number: int = 1) -> None:
        """Note that so many objects were added, equal, replaced, different or refused."""
        if number:
            self.counts.setdefault(kind, Counter())[outcome] += number

    def find(self, outcome: str, kind: str, name: str, words: str) -> None:
        """Note one object's difference, refusal or peculiarity; the first two are counted."""
        if outcome != NOTE:
            self.count(kind, outcome)
        self.findings.append(Finding(outcome, kind, name, words))

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is here now as it is at the source."""
        return not any(finding.outcome in (DIFFERENT, REFUSED) for finding in self.findings)

    def text(self) -> str:
        """For people."""
        lines = [f"From {self.source}" + (" (dry run: nothing was changed)" if self.dry_run else "")]
        for kind, outcomes in self.counts.items():
            lines.append(f"  {kind}: " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items()))
        for outcome, heading in _WORDS.items():
            chosen = [finding for finding in self.findings if finding.outcome == outcome]
            if chosen:
                lines.append(f"{heading}:")
                lines += [f"  {finding.kind} {finding.name}: {finding.words}" for finding in chosen]
        return "\n".join(lines)

    def json(self) -> str:
        """For programs: an object with source, dry_run, complete, counts and findings."""
        plain: dict[str, Any] = {
            "source": self.source,
            "dry_run": self.dry_run,
            "complete": self.is_complete,
            "counts": {kind: dict(outcomes) for kind, outcomes in self.counts.items()},
            "findings": [
                {"outcome": one.outcome, "kind": one.kind, "name": one.name, "words": one.words}
                for one in self.findings
            ],
        }
        return json.dumps(plain, indent=2, ensure_ascii=False)
