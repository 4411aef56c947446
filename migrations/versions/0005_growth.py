"""Growth: what keeps tables small and quick however much they have held."""

import sqlalchemy as sa
from alembic import op

revision = "0005_growth"
down_revision = "0004_outbox"
branch_labels = None
depends_on = None

_VACUUM = {
    # By default a table of ten million rows is looked after once two million of them are dead; an effect dies once or
    # twice in its life, and most of that is pruned in its page. So a hundredth is enough to wait for, in small portions
    # that nothing slows down: what is left lying makes every index longer.
    "autovacuum_vacuum_scale_factor": "0.01",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_cost_delay": "0",
    # New rows are frozen and seen by all soon after they came, not in one scan of everything at the end of a week.
    "autovacuum_vacuum_insert_scale_factor": "0.02",
    "autovacuum_vacuum_insert_threshold": "50000",
    "autovacuum_analyze_scale_factor": "0.02",
}
_GROWING = ("effects", "attempts", "runs", "events")


def upgrade() -> None:
    op.add_column("tenants", sa.Column("cache_epoch", sa.Integer(), nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        settings = ", ".join(f"{name} = {value}" for name, value in _VACUUM.items())
        for table in _GROWING:
            op.execute(f"ALTER TABLE {table} SET ({settings})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _GROWING:
            op.execute(f"ALTER TABLE {table} RESET ({', '.join(_VACUUM)})")
    op.drop_column("tenants", "cache_epoch")
