"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(length=64), nullable=False, comment="digest of the bytes"),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes"),
        sa.Column("data", sa.LargeBinary(), nullable=False, comment="the bytes"),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blobs")),
    )
    op.create_table(
        "judgements",
        sa.Column(
            "id", sa.String(length=64), nullable=False, comment="digest of material, questions, prompt, model and seat"
        ),
        sa.Column("model", sa.String(length=200), nullable=False, comment="who judged"),
        sa.Column("prompt_version", sa.String(length=200), nullable=False, comment="by which words"),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON: verdict, tokens, cost"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was kept"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgements")),
    )
    op.create_table(
        "lane_requests",
        sa.Column(
            "id", sa.String(length=64), nullable=False, comment="the judgement's id, and the provider's custom_id"
        ),
        sa.Column("run_id", sa.BigInteger(), nullable=False, comment="whose judgement it is"),
        sa.Column("batch_id", sa.String(length=26), nullable=False, comment="to cancel by"),
        sa.Column("team", sa.String(length=200), nullable=False, comment="who pays"),
        sa.Column("model", sa.String(length=200), nullable=False, comment="the judge asked"),
        sa.Column("seat", sa.Integer(), nullable=False, comment="its number in the panel"),
        sa.Column("repeat", sa.Integer(), nullable=False, comment="1 for a judgement made once more"),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes of the body, about"),
        sa.Column(
            "state", sa.String(length=12), nullable=False, comment="waiting, sending, sent, answered, returned, ..."
        ),
        sa.Column("shipment_id", sa.String(length=26), nullable=True, comment="the shipment it is in"),
        sa.Column("offered_at", sa.Float(), nullable=False, comment="when it was put in the lane"),
        sa.Column("answer", sa.Text(), nullable=True, comment="JSON: what came back"),
        sa.Column("error", sa.Text(), nullable=True, comment="why nothing usable came back"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lane_requests")),
    )
    with op.batch_alter_table("lane_requests", schema=None) as batch_op:
        batch_op.create_index("ix_lane_requests_batch", ["batch_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_lane_requests_shipment_id"), ["shipment_id"], unique=False)
        batch_op.create_index(
            "ix_lane_requests_waiting",
            ["offered_at"],
            unique=False,
            sqlite_where=sa.text("state = 'waiting'"),
            postgresql_where=sa.text("state = 'waiting'"),
        )

    op.create_table(
        "model_calls",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, comment="order of writing"
        ),
        sa.Column("team_id", sa.String(length=200), nullable=False, comment="who pays"),
        sa.Column("batch_id", sa.String(length=26), nullable=True, comment="the batch it was for"),
        sa.Column("run_id", sa.BigInteger(), nullable=True, comment="the run it was for"),
        sa.Column("purpose", sa.String(length=20), nullable=False, comment="execute or judge"),
        sa.Column("model", sa.String(length=200), nullable=False, comment="the model asked"),
        sa.Column("answered_by", sa.String(length=200), nullable=True, comment="the model that answered"),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True, comment="as billed"),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True, comment="as billed"),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=True, comment="as billed"),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=True, comment="as billed"),
        sa.Column("cost_usd", sa.Float(), nullable=True, comment="null: the price is not known"),
        sa.Column("seconds", sa.Float(), nullable=False, comment="how long it took"),
        sa.Column("request_id", sa.String(length=200), nullable=True, comment="the provider's name for it"),
        sa.Column("simulated", sa.Integer(), nullable=False, comment="1: a simulator answered"),
        sa.Column("attempts", sa.Integer(), nullable=False, comment="HTTP requests it took"),
        sa.Column("lane", sa.String(length=10), nullable=False, comment="direct, or batch at half the price"),
        sa.Column("error", sa.Text(), nullable=True, comment="short name of what went wrong"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it ended"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_calls")),
    )
    with op.batch_alter_table("model_calls", schema=None) as batch_op:
        batch_op.create_index("ix_model_calls_batch", ["batch_id"], unique=False)
        batch_op.create_index("ix_model_calls_team", ["team_id", "created_at"], unique=False)

    op.create_table(
        "shipments",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("provider_id", sa.String(length=200), nullable=True, comment="the provider's message batch"),
        sa.Column("state", sa.String(length=12), nullable=False, comment="sending, sent, collected, lost"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when its requests were packed"),
        sa.Column("lease_until", sa.Float(), nullable=False, comment="until when somebody works on it"),
        sa.Column("polled_at", sa.Float(), nullable=True, comment="when the provider was asked last"),
        sa.Column(
            "is_cancelled", sa.Integer(), server_default="0", nullable=False, comment="the provider was asked to stop"
        ),
        sa.Column("rejected", sa.JSON(), nullable=False, comment="provider batches that turned out not to be this one"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shipments")),
        sa.UniqueConstraint("provider_id", name=op.f("uq_shipments_provider_id")),
    )
    with op.batch_alter_table("shipments", schema=None) as batch_op:
        batch_op.create_index(
            "ix_shipments_open",
            ["state"],
            unique=False,
            sqlite_where=sa.text("state IN ('sending', 'sent')"),
            postgresql_where=sa.text("state IN ('sending', 'sent')"),
        )

    op.create_table(
        "teams",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id"),
        sa.Column("name", sa.String(length=200), nullable=False, comment="what people call the team"),
        sa.Column(
            "weight", sa.Float(), server_default="1", nullable=False, comment="share of the window beside other teams"
        ),
        sa.Column(
            "max_open", sa.Integer(), nullable=True, comment="most runs of the team open at once; null is no cap"
        ),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was made"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
        sa.UniqueConstraint("name", name=op.f("uq_teams_name")),
    )
    op.create_table(
        "skill_versions",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is"),
        sa.Column("skill", sa.String(length=200), nullable=False, comment="the skill's name, shared by its versions"),
        sa.Column("number", sa.Integer(), nullable=False, comment="0, 1, ...: the label is v<number>"),
        sa.Column("digest", sa.String(length=64), nullable=False, comment="sha256 over the sorted list of its files"),
        sa.Column(
            "parent_id", sa.String(length=26), nullable=True, comment="the version that was newest before this one"
        ),
        sa.Column(
            "git_hash",
            sa.String(length=64),
            nullable=True,
            comment="HEAD of the skill's repository at submit, if it has one",
        ),
        sa.Column(
            "description", sa.Text(), server_default="", nullable=False, comment="from the front matter of SKILL.md"
        ),
        sa.Column("files", sa.JSON(), nullable=False, comment="path -> {sha256, size, executable} of every file"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was first submitted"),
        sa.ForeignKeyConstraint(["parent_id"], ["skill_versions.id"], name=op.f("fk_skill_versions_parent_id")),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_skill_versions_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_skill_versions")),
        sa.UniqueConstraint("team_id", "skill", "digest", name=op.f("uq_skill_versions_team_id_skill_digest")),
        sa.UniqueConstraint("team_id", "skill", "number", name=op.f("uq_skill_versions_team_id_skill_number")),
    )
    op.create_table(
        "suites",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is"),
        sa.Column(
            "digest", sa.String(length=64), nullable=False, comment="sha256 of the raw bytes, which are kept as a blob"
        ),
        sa.Column(
            "dialect",
            sa.String(length=40),
            nullable=False,
            comment="how the file was written; results are written alike",
        ),
        sa.Column("body", sa.Text(), nullable=False, comment="the canonical suite without its cases, as JSON text"),
        sa.Column("case_count", sa.Integer(), nullable=False, comment="how many cases"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was first submitted"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_suites_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suites")),
        sa.UniqueConstraint("team_id", "digest", "dialect", name=op.f("uq_suites_team_id_digest_dialect")),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is"),
        sa.Column("suite_id", sa.String(length=26), nullable=False, comment="what is asked"),
        sa.Column("skill_version_id", sa.String(length=26), nullable=False, comment="the skill under test"),
        sa.Column(
            "control_version_id",
            sa.String(length=26),
            nullable=True,
            comment="the other version of new_skill/old_skill",
        ),
        sa.Column("iteration", sa.Integer(), nullable=False, comment="1, 2, ...: the skill's batches, numbered"),
        sa.Column(
            "state",
            sa.String(length=20),
            nullable=False,
            comment="accepted, running, paused, aggregating, finished, cancelled",
        ),
        sa.Column(
            "settings", sa.JSON(), nullable=False, comment="name -> {value, source}: what is used and who said so"
        ),
        sa.Column(
            "inputs", sa.JSON(), nullable=False, comment="case position -> [{name, sha256, size}]: staged input files"
        ),
        sa.Column(
            "priority", sa.Integer(), server_default="0", nullable=False, comment="higher goes first inside its team"
        ),
        sa.Column(
            "max_open", sa.Integer(), nullable=True, comment="most runs of the batch open at once; null is no cap"
        ),
        sa.Column("cancelled_at", sa.Float(), nullable=True, comment="when somebody cancelled it"),
        sa.Column(
            "fence", sa.Integer(), server_default="0", nullable=False, comment="raised by every claim of the aggregate"
        ),
        sa.Column("lease_until", sa.Float(), nullable=True, comment="until when an aggregator holds it"),
        sa.Column("dispatched_at", sa.Float(), nullable=True, comment="when the aggregate message was sent"),
        sa.Column(
            "not_before", sa.Float(), nullable=True, comment="the aggregate waits until then before it is tried again"
        ),
        sa.Column(
            "attempts", sa.Integer(), server_default="0", nullable=False, comment="claims of the aggregate so far"
        ),
        sa.Column(
            "aggregate", sa.JSON(), nullable=True, comment="name -> {sha256, size}: the files of the finished aggregate"
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="why the aggregate could not be built, if so"),
        sa.Column(
            "idempotency_key", sa.String(length=200), nullable=True, comment="the submitter's own key, once per team"
        ),
        sa.Column(
            "request_digest",
            sa.String(length=64),
            nullable=True,
            comment="sha256 of the submit, to tell a repeat from another one",
        ),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was accepted"),
        sa.Column("started_at", sa.Float(), nullable=True, comment="when its first run was admitted"),
        sa.Column("finished_at", sa.Float(), nullable=True, comment="when it was finished or cancelled"),
        sa.ForeignKeyConstraint(
            ["control_version_id"], ["skill_versions.id"], name=op.f("fk_batches_control_version_id")
        ),
        sa.ForeignKeyConstraint(["skill_version_id"], ["skill_versions.id"], name=op.f("fk_batches_skill_version_id")),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.id"], name=op.f("fk_batches_suite_id")),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_batches_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("team_id", "idempotency_key", name=op.f("uq_batches_team_id_idempotency_key")),
    )
    with op.batch_alter_table("batches", schema=None) as batch_op:
        batch_op.create_index(
            "ix_batches_live",
            ["state"],
            unique=False,
            sqlite_where=sa.text("state IN ('accepted', 'running', 'paused', 'aggregating')"),
            postgresql_where=sa.text("state IN ('accepted', 'running', 'paused', 'aggregating')"),
        )
        batch_op.create_index("ix_batches_skill", ["skill_version_id"], unique=False)
        batch_op.create_index("ix_batches_team", ["team_id", "id"], unique=False)

    op.create_table(
        "cases",
        sa.Column("suite_id", sa.String(length=26), nullable=False, comment="its suite"),
        sa.Column("position", sa.Integer(), nullable=False, comment="0, 1, ... in the order of the file"),
        sa.Column("label", sa.String(length=200), nullable=False, comment="the id as text, for people"),
        sa.Column("body", sa.Text(), nullable=False, comment="the canonical case, as JSON text"),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.id"], name=op.f("fk_cases_suite_id")),
        sa.PrimaryKeyConstraint("suite_id", "position", name=op.f("pk_cases")),
    )
    op.create_table(
        "runs",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, comment="what messages carry"
        ),
        sa.Column("batch_id", sa.String(length=26), nullable=False, comment="its batch"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is, to count without a join"),
        sa.Column("position", sa.Integer(), nullable=False, comment="order of admission inside the batch"),
        sa.Column("case_position", sa.Integer(), nullable=False, comment="which case of the suite"),
        sa.Column("case_label", sa.String(length=200), nullable=False, comment="the case's id as text"),
        sa.Column(
            "configuration", sa.String(length=40), nullable=False, comment="the arm: with_skill, without_skill, ..."
        ),
        sa.Column("role", sa.String(length=10), nullable=False, comment="treatment or control"),
        sa.Column("run_number", sa.Integer(), nullable=False, comment="1, 2, ... within case and configuration"),
        sa.Column(
            "skill_version_id", sa.String(length=26), nullable=True, comment="the skill of its arm; null without one"
        ),
        sa.Column("stage", sa.String(length=10), nullable=False, comment="waiting, execute, check, judge, settled"),
        sa.Column(
            "entry",
            sa.String(length=10),
            server_default="execute",
            nullable=False,
            comment="where admission or retry starts it",
        ),
        sa.Column("outcome", sa.String(length=20), nullable=True, comment="how it ended; null until settled"),
        sa.Column("error", sa.Text(), nullable=True, comment="one sentence for people when it ended without a score"),
        sa.Column(
            "fence", sa.Integer(), server_default="0", nullable=False, comment="raised by every claim; a save names it"
        ),
        sa.Column(
            "attempts", sa.Integer(), server_default="0", nullable=False, comment="claims of the present stage so far"
        ),
        sa.Column(
            "lease_until", sa.Float(), nullable=True, comment="until when a worker holds it; null when nobody does"
        ),
        sa.Column(
            "dispatched_at", sa.Float(), nullable=True, comment="when its message was sent; null when none is under way"
        ),
        sa.Column("not_before", sa.Float(), nullable=True, comment="handed back: not to be sent again before then"),
        sa.Column("worker", sa.String(length=200), nullable=True, comment="who claimed it last"),
        sa.Column(
            "facts", sa.JSON(), nullable=True, comment="small results for lists: pass_rate, gate, tokens, seconds, cost"
        ),
        sa.Column("started_at", sa.Float(), nullable=True, comment="when it was first claimed"),
        sa.Column("settled_at", sa.Float(), nullable=True, comment="when it ended"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_runs_batch_id")),
        sa.ForeignKeyConstraint(["skill_version_id"], ["skill_versions.id"], name=op.f("fk_runs_skill_version_id")),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_runs_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("batch_id", "position", name=op.f("uq_runs_batch_id_position")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index("ix_runs_case", ["batch_id", "case_position"], unique=False)
        batch_op.create_index(
            "ix_runs_open",
            ["stage", "dispatched_at"],
            unique=False,
            sqlite_where=sa.text("stage IN ('execute', 'check', 'judge')"),
            postgresql_where=sa.text("stage IN ('execute', 'check', 'judge')"),
        )
        batch_op.create_index(
            "ix_runs_unsettled",
            ["batch_id"],
            unique=False,
            sqlite_where=sa.text("stage <> 'settled'"),
            postgresql_where=sa.text("stage <> 'settled'"),
        )
        batch_op.create_index(
            "ix_runs_waiting",
            ["batch_id", "position"],
            unique=False,
            sqlite_where=sa.text("stage = 'waiting'"),
            postgresql_where=sa.text("stage = 'waiting'"),
        )

    op.create_table(
        "artifacts",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, comment="its run"),
        sa.Column("name", sa.String(length=1024), nullable=False, comment="transcript.md, outputs/report.md, ..."),
        sa.Column("sha256", sa.String(length=64), nullable=False, comment="what it contains"),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes"),
        sa.Column("stage", sa.String(length=10), nullable=False, comment="the stage that made it"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_artifacts_run_id")),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "attempts",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, comment="order of writing"
        ),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, comment="its run"),
        sa.Column("stage", sa.String(length=10), nullable=False, comment="execute, check or judge"),
        sa.Column("fence", sa.Integer(), nullable=False, comment="the claim it belongs to"),
        sa.Column("worker", sa.String(length=200), nullable=True, comment="who tried"),
        sa.Column("started_at", sa.Float(), nullable=True, comment="when it was claimed"),
        sa.Column("ended_at", sa.Float(), nullable=False, comment="when it was saved, failed or given up"),
        sa.Column(
            "result",
            sa.String(length=20),
            nullable=False,
            comment="done, handed_back, busy, lost, or the outcome it ended in",
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="one sentence, if it failed"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_attempts_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_run_id"), ["run_id"], unique=False)


def downgrade() -> None:
    """Going back is restoring a backup: data written in the new form has no old form."""
    raise NotImplementedError("restore a backup instead of going back")
