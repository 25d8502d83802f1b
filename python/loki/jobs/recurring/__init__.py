"""Tasks that come round again."""
