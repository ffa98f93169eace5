"""Comparisons of two sides on the same suite."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_UNENDED = sa.text("state IN ('accepted', 'running')")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "comparisons",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is"),
        sa.Column("suite_id", sa.String(length=26), nullable=False, comment="what both sides were asked"),
        *_side("challenger", "new"),
        *_side("champion", "old"),
        sa.Column("state", sa.String(length=20), nullable=False, comment="accepted, running, finished, failed"),
        sa.Column("settings", sa.JSON(), nullable=False, comment="judge_model, analysis, max_cost_usd, max_tokens"),
        sa.Column("fence", sa.Integer(), server_default="0", nullable=False, comment="raised by every claim"),
        sa.Column("lease_until", sa.Float(), nullable=True, comment="until when a judge holds it"),
        sa.Column(
            "attempts", sa.Integer(), server_default="0", nullable=False, comment="claims so far that brought nothing"
        ),
        sa.Column("dispatched_at", sa.Float(), nullable=True, comment="when its message was sent"),
        sa.Column("not_before", sa.Float(), nullable=True, comment="handed back: not to be sent again before then"),
        sa.Column("worker", sa.String(length=200), nullable=True, comment="who claimed it last"),
        sa.Column("files", sa.JSON(), nullable=True, comment="name -> {sha256, size}: what it came to"),
        sa.Column(
            "assignment",
            sa.JSON(),
            nullable=True,
            comment="file -> {A, B}: who was who; kept apart from the files, which are blind",
        ),
        sa.Column(
            "result", sa.String(length=10), nullable=True, comment="won, lost or tie, from the challenger's side"
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="why it failed, if so"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was accepted"),
        sa.Column("started_at", sa.Float(), nullable=True, comment="when it was first claimed"),
        sa.Column("finished_at", sa.Float(), nullable=True, comment="when it was finished or failed"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_comparisons_team_id")),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.id"], name=op.f("fk_comparisons_suite_id")),
        *_side_keys("challenger"),
        *_side_keys("champion"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comparisons")),
    )
    with op.batch_alter_table("comparisons", schema=None) as batch_op:
        batch_op.create_index("ix_comparisons_team", ["team_id", "id"], unique=False)
        batch_op.create_index("ix_comparisons_challenger", ["challenger_version_id"], unique=False)
        batch_op.create_index("ix_comparisons_champion", ["champion_version_id"], unique=False)
        batch_op.create_index(
            "ix_comparisons_unended", ["state"], unique=False, sqlite_where=_UNENDED, postgresql_where=_UNENDED
        )
    _describe_calls()


def _describe_calls() -> None:
    """SQLite keeps no comments."""
    if op.get_bind().dialect.name == "postgresql":
        words = {
            "batch_id": "the batch it was for, or the comparison",
            "purpose": "execute, judge, compare or analyze",
        }
        for column, comment in words.items():
            op.alter_column("model_calls", column, comment=comment)


def _side(name: str, word: str) -> list[sa.Column[object]]:
    return [
        sa.Column(f"{name}_batch_id", sa.String(length=26), nullable=False, comment=f"the batch of the {word} side"),
        sa.Column(f"{name}_configuration", sa.String(length=40), nullable=False, comment="its arm in that batch"),
        sa.Column(f"{name}_version_id", sa.String(length=26), nullable=True, comment="its skill; null without one"),
        sa.Column(name, sa.String(length=250), nullable=False, comment=f"what people call the {word} side"),
    ]


def _side_keys(name: str) -> list[sa.ForeignKeyConstraint]:
    batch, version = f"{name}_batch_id", f"{name}_version_id"
    return [
        sa.ForeignKeyConstraint([batch], ["batches.id"], name=op.f(f"fk_comparisons_{batch}")),
        sa.ForeignKeyConstraint([version], ["skill_versions.id"], name=op.f(f"fk_comparisons_{version}")),
    ]


def downgrade() -> None:
    """Going back is restoring a backup: data written in the new form has no old form."""
    raise NotImplementedError("restore a backup instead of going back")
