"""Teams, skill versions and suites in the database."""

from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from service.storage.clock import Now
from service.storage.rows import SkillVersionRow, TeamRow, new_id
from service.storage.tables import cases, skill_versions, suites, teams


def insert_or_ignore(connection: Connection, table: Any) -> Any:
    """INSERT that does nothing when the row is there already; both databases know it, in their own words."""
    return _insert_or_ignore(connection.dialect.name, table)


@cache
def _insert_or_ignore(dialect: str, table: Any) -> Any:
    dialect_insert = postgresql_insert if dialect == "postgresql" else sqlite_insert
    return dialect_insert(table).on_conflict_do_nothing()


class Teams:
    """The rows of teams and of what belongs to them besides batches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def named(self, name: str) -> TeamRow:
        """The team of that name, made on first use."""
        with self._engine.begin() as connection:
            row = connection.execute(select(teams).where(teams.c.name == name)).one_or_none()
            if row is None:
                new = insert_or_ignore(connection, teams).values(id=new_id(), name=name, created_at=Now())
                connection.execute(new)
                row = connection.execute(select(teams).where(teams.c.name == name)).one()
        return _team(row)

    def set_share(self, team_id: str, weight: float, max_open: int | None) -> None:
        """How much of the window a team gets."""
        with self._engine.begin() as connection:
            connection.execute(update(teams).where(teams.c.id == team_id).values(weight=weight, max_open=max_open))

    def skill_version(self, version_id: str) -> SkillVersionRow | None:
        """A skill version by its id."""
        with self._engine.begin() as connection:
            row = connection.execute(select(skill_versions).where(skill_versions.c.id == version_id)).one_or_none()
        return _version(row) if row else None

    def skill_versions(self, team_id: str, skill: str) -> list[SkillVersionRow]:
        """All versions of a skill, oldest first."""
        with self._engine.begin() as connection:
            return versions_of(connection, team_id, skill)

    def suite(self, suite_id: str) -> dict[str, Any] | None:
        """A suite's row: dialect, digest and canonical body without its cases."""
        with self._engine.begin() as connection:
            row = connection.execute(select(suites).where(suites.c.id == suite_id)).one_or_none()
        return dict(row._mapping) if row else None

    def case(self, suite_id: str, position: int) -> str:
        """The canonical body of one case, as JSON text."""
        query = select(cases.c.body).where(cases.c.suite_id == suite_id, cases.c.position == position)
        with self._engine.begin() as connection:
            return str(connection.execute(query).scalar_one())

    def cases(self, suite_id: str) -> list[str]:
        """The canonical bodies of all cases as JSON texts, in the order of the file."""
        query = select(cases.c.body).where(cases.c.suite_id == suite_id).order_by(cases.c.position)
        with self._engine.begin() as connection:
            return list(connection.execute(query).scalars())


def versions_of(connection: Connection, team_id: str, skill: str) -> list[SkillVersionRow]:
    """All versions of a skill, oldest first; inside the caller's transaction."""
    query = select(skill_versions).where(skill_versions.c.team_id == team_id, skill_versions.c.skill == skill)
    return [_version(row) for row in connection.execute(query.order_by(skill_versions.c.number))]


def record_skill_version(connection: Connection, new: dict[str, Any]) -> SkillVersionRow:
    """The version with this digest; a new one gets the next number and the newest as its parent."""
    same_skill = (skill_versions.c.team_id == new["team_id"], skill_versions.c.skill == new["skill"])
    known = select(skill_versions).where(*same_skill, skill_versions.c.digest == new["digest"])
    row = connection.execute(known).one_or_none()
    if row is None:
        newest = select(skill_versions).where(*same_skill).order_by(skill_versions.c.number.desc()).limit(1)
        parent = connection.execute(newest).one_or_none()
        lineage = {"number": parent.number + 1 if parent else 0, "parent_id": parent.id if parent else None}
        connection.execute(insert(skill_versions).values(id=new_id(), **new, **lineage, created_at=Now()))
        row = connection.execute(known).one()
    return _version(row)


def record_suite(connection: Connection, new: dict[str, Any], bodies: list[tuple[str, str]]) -> str:
    """The id of the suite with this digest; its cases are written once."""
    same = (suites.c.team_id == new["team_id"], suites.c.digest == new["digest"], suites.c.dialect == new["dialect"])
    found: str | None = connection.execute(select(suites.c.id).where(*same)).scalar_one_or_none()
    if found:
        return found
    suite_id = new_id()
    connection.execute(insert(suites).values(id=suite_id, **new, case_count=len(bodies), created_at=Now()))
    rows = [
        {"suite_id": suite_id, "position": position, "label": label[:200], "body": body}
        for position, (label, body) in enumerate(bodies)
    ]
    if rows:
        connection.execute(insert(cases), rows)
    return suite_id


def lock_team(connection: Connection, team_id: str) -> None:
    """One submit of a team at a time, so that version and iteration numbers have no twins."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(team_id))))


def _team(row: Row[Any]) -> TeamRow:
    return TeamRow(row.id, row.name, row.weight, row.max_open)


def _version(row: Row[Any]) -> SkillVersionRow:
    return SkillVersionRow(
        id=row.id,
        team_id=row.team_id,
        skill=row.skill,
        number=row.number,
        digest=row.digest,
        parent_id=row.parent_id,
        git_hash=row.git_hash,
        description=row.description,
        files=row.files,
        created_at=row.created_at,
    )
