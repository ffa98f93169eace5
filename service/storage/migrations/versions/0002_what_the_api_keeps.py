"""Tokens, uploads, reviews and webhooks: what the API keeps."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whom it lets in"),
        sa.Column("name", sa.String(length=200), nullable=False, comment="what people call it"),
        sa.Column("prefix", sa.String(length=20), nullable=False, comment="its first characters, to recognise it"),
        sa.Column("digest", sa.String(length=64), nullable=False, comment="sha256 of the token; the token is not kept"),
        sa.Column("scopes", sa.JSON(), nullable=False, comment="what it may: submit, read, admin"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was made"),
        sa.Column("expires_at", sa.Float(), nullable=True, comment="after this it lets nobody in; null never"),
        sa.Column("revoked_at", sa.Float(), nullable=True, comment="when somebody took it back"),
        sa.Column("last_used_at", sa.Float(), nullable=True, comment="when it was last shown, to the minute"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_tokens_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.create_index("ix_tokens_team", ["team_id", "id"], unique=False)

    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose batches it tells about"),
        sa.Column("url", sa.Text(), nullable=False, comment="where it tells"),
        sa.Column(
            "secret", sa.String(length=100), nullable=False, comment="signs what is sent; needed in clear to do so"
        ),
        sa.Column("created_at", sa.Float(), nullable=False, comment="batches that ended before are not told"),
        sa.Column("deleted_at", sa.Float(), nullable=True, comment="when somebody took it back"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_webhooks_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhooks_team_id"), ["team_id"], unique=False)

    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=26), nullable=False, comment="opaque id that sorts by time"),
        sa.Column("team_id", sa.String(length=26), nullable=False, comment="whose it is"),
        sa.Column("skill_version_id", sa.String(length=26), nullable=False, comment="the version it holds"),
        sa.Column(
            "sha256", sa.String(length=64), nullable=False, comment="the archive, kept as a blob with its evals/"
        ),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes of the archive"),
        sa.Column("name", sa.String(length=200), nullable=False, comment="the name of the file that was sent"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it came"),
        sa.ForeignKeyConstraint(["skill_version_id"], ["skill_versions.id"], name=op.f("fk_uploads_skill_version_id")),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_uploads_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    with op.batch_alter_table("uploads", schema=None) as batch_op:
        batch_op.create_index("ix_uploads_version", ["skill_version_id", "id"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column(
            "id", sa.String(length=26), nullable=False, comment="opaque id; the receiver sees it, to tell a repeat"
        ),
        sa.Column("webhook_id", sa.String(length=26), nullable=False, comment="where it goes"),
        sa.Column("batch_id", sa.String(length=26), nullable=False, comment="the batch that ended"),
        sa.Column("ended_at", sa.Float(), nullable=False, comment="which end: a batch that was retried ends again"),
        sa.Column("state", sa.String(length=12), nullable=False, comment="due, delivered, given_up"),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False, comment="how often it was tried"),
        sa.Column(
            "not_before", sa.Float(), nullable=False, comment="when it is tried next; also the lease of who tries"
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="what the last attempt met"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it became due"),
        sa.Column("delivered_at", sa.Float(), nullable=True, comment="when the receiver took it"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_deliveries_batch_id")),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint(
            "webhook_id", "batch_id", "ended_at", name=op.f("uq_deliveries_webhook_id_batch_id_ended_at")
        ),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index(
            "ix_deliveries_due",
            ["not_before"],
            unique=False,
            sqlite_where=sa.text("state = 'due'"),
            postgresql_where=sa.text("state = 'due'"),
        )

    op.create_table(
        "reviews",
        sa.Column(
            "run_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            comment="the run a person looked at",
        ),
        sa.Column("author", sa.String(length=200), nullable=False, comment="who looked"),
        sa.Column("batch_id", sa.String(length=26), nullable=False, comment="the run's batch"),
        sa.Column("feedback", sa.Text(), nullable=False, comment="what they say; empty is: nothing to complain about"),
        sa.Column("created_at", sa.Float(), nullable=False, comment="when it was first said"),
        sa.Column("updated_at", sa.Float(), nullable=False, comment="when it was last changed"),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_reviews_batch_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_reviews_run_id")),
        sa.PrimaryKeyConstraint("run_id", "author", name=op.f("pk_reviews")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reviews_batch_id"), ["batch_id"], unique=False)


def downgrade() -> None:
    """Going back is restoring a backup: data written in the new form has no old form."""
    raise NotImplementedError("restore a backup instead of going back")
