"""Skills that come as archives, or that are here already: unpacked into a folder of their own, submitted, removed."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from service.batch_settings import refuse_command
from service.batches import BatchDesk
from service.errors import BadInput, NotFound
from service.sandbox.archive import UnpackCaps
from service.sandbox.removal import remove_tree
from service.sandbox.scratch import private_folder
from service.sandbox.unpack import unpack
from service.skills import lay_out, take_snapshot
from service.storage.artifacts import ArtifactStore
from service.storage.reviews import UploadRows
from service.storage.rows import SkillVersionRow
from service.storage.store import Store, database_errors
from service.submitting import Accepted, Preview, Submission, record_skill

SUFFIXES = (".tar.gz", ".tgz", ".zip", ".skill")


@dataclass(frozen=True)
class Parcel:
    """Where a skill comes from: an archive on disk, or the name of a skill that was here before."""

    archive: Path | None = None
    name: str = "skill.zip"  # of the file, as the sender calls it
    skill: str | None = None
    version: str | None = None  # a label or digest; the newest if not said


class Uploads:
    """Takes skills in; nothing of an archive is left on disk but what was kept as artifacts."""

    def __init__(
        self,
        store: Store,
        artifacts: ArtifactStore,
        desk: BatchDesk,
        caps: UnpackCaps = UnpackCaps(),
        commands: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._artifacts = artifacts
        self._desk = desk
        self._rows = UploadRows(store.engine)
        self.caps = caps
        self._commands = commands

    def submit(self, parcel: Parcel, submission: Submission) -> Accepted:
        """Accept a batch for the skill in the parcel."""
        refuse_command(submission.settings, self._commands)
        with self._folder(parcel, submission.team) as folder:
            _require_suite(folder, submission)
            accepted = self._desk.submit(replace(submission, skill=folder, is_unpacked=True))
        if parcel.archive and accepted.is_new:
            batch = self._desk.status(accepted.batch_id, submission.team).batch
            self._remember(parcel, parcel.archive, batch.team_id, batch.skill_version_id)
        return accepted

    def preview(self, parcel: Parcel, submission: Submission) -> Preview:
        """What that would find and take."""
        refuse_command(submission.settings, self._commands)
        with self._folder(parcel, submission.team) as folder:
            _require_suite(folder, submission)
            return self._desk.preview(replace(submission, skill=folder))

    def add_skill(self, parcel: Parcel, team: str) -> SkillVersionRow:
        """Keep the skill of an archive as a version, without a batch; the same skill twice is one version."""
        assert parcel.archive is not None
        with self._folder(parcel, team) as folder, database_errors():
            snapshot = take_snapshot(folder, self._artifacts)
            team_id = self._store.teams.named(team).id
            with self._store.submit(team_id) as submit:
                version = record_skill(submit, snapshot)
        self._remember(parcel, parcel.archive, team_id, version.id)
        return version

    def version(self, team: str, skill: str, version: str | None) -> SkillVersionRow:
        """A version of a skill by label or the beginning of its digest; the newest if none is named."""
        with database_errors():
            known = self._store.teams.skill_versions(self._store.teams.named(team).id, skill)
        if not known:
            raise NotFound(f"there is no skill {skill!r}; upload it first")
        if version is None:
            return known[-1]
        for row in known:
            if version == row.label or (len(version) >= 7 and row.digest.startswith(version)):
                return row
        raise NotFound(f"{skill} has no version {version!r}; known versions: {', '.join(row.label for row in known)}")

    def _remember(self, parcel: Parcel, archive: Path, team_id: str, version_id: str) -> None:
        with database_errors():
            blob = self._artifacts.put(archive.read_bytes())
            self._rows.add(team_id, version_id, blob.sha256, blob.size, parcel.name)

    @contextmanager
    def _folder(self, parcel: Parcel, team: str) -> Iterator[Path]:
        """The skill's folder, for the length of the block."""
        with private_folder() as aside:
            yield self._unpacked(parcel, aside) if parcel.archive else self._known(parcel, team, aside)

    def _unpacked(self, parcel: Parcel, aside: Path) -> Path:
        assert parcel.archive is not None
        root = unpack(parcel.archive, aside / _stem(parcel.name), self.caps).root
        # A repository's own settings may name programs that git would run.
        remove_tree(root / ".git")
        if not (root / "SKILL.md").is_file():
            raise BadInput("the archive has no SKILL.md at its top; pack the folder that holds that file")
        return root

    def _known(self, parcel: Parcel, team: str, aside: Path) -> Path:
        """A skill that was here before: from its archive, which also has its evals/, else from its snapshot."""
        version = self.version(team, parcel.skill or "", parcel.version)
        with database_errors():
            kept = self._rows.newest(version.id)
            if kept is None:
                folder = aside / "skill"
                lay_out(version.files, folder, self._artifacts)
                return folder
            archive = aside / "archive"
            archive.write_bytes(self._artifacts.get(kept[0]))
        return self._unpacked(Parcel(archive, kept[1]), aside)


def _require_suite(folder: Path, submission: Submission) -> None:
    if submission.suite is None and not (folder / "evals" / "evals.json").is_file():
        raise BadInput("there is no suite: the skill has no evals/evals.json; send one with the submit")


def _stem(name: str) -> str:
    """A folder name from a file name: a skill whose SKILL.md does not name it is called by its folder."""
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
            break
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "skill"
