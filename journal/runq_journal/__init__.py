"""The append-only journal: store, hash chain, migrations, views."""
