"""Where memory is kept: plain files, and later databases."""
