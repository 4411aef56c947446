"""The API, one file per noun."""
