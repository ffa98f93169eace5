"""Shipments that were taken for ours by their size, and how long calls waited for the limiter."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    words = "1: taken for ours by its size"
    found = sa.Column("is_found", sa.Integer(), nullable=False, server_default="0", comment=words)
    op.add_column("shipments", found)
    words = "of waiting for the limiter in this process, for this model, since its row before"
    waited = sa.Column("waited_seconds", sa.Float(), nullable=False, server_default="0", comment=words)
    op.add_column("model_calls", waited)


def downgrade() -> None:
    """Going back is restoring a backup: data written in the new form has no old form."""
    raise NotImplementedError("restore a backup instead of going back")
