"""Batches that regrade another one, and configurations that take no part in a comparison."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    words = "the batch whose artifacts its runs were given; null if there is none"
    op.add_column("batches", sa.Column("regrade_of", sa.String(length=26), nullable=True, comment=words))
    # SQLite keeps no comments.
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("runs", "role", comment="treatment, control, or aside: in no comparison")


def downgrade() -> None:
    """Going back is restoring a backup: data written in the new form has no old form."""
    raise NotImplementedError("restore a backup instead of going back")
