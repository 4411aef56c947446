"""Growth: what keeps tables small and quick however much they have held."""

import sqlalchemy as sa
from alembic import op

revision = "0005_growth"
down_revision = "0004_outbox"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tenants", sa.Column("cache_epoch", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("tenants", "cache_epoch")
