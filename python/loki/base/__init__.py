"""What several wings share: errors, time, files; and nothing else."""
