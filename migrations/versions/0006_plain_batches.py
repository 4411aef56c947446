"""Plain batches: begins and commits that ask for nothing besides are written by one statement for all."""

from pathlib import Path

from alembic import op

revision = "0006_plain_batches"
down_revision = "0005_growth"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql(Path(__file__).with_name("apply_plain_v1.sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION apply_plain_v1")
