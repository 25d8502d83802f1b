"""Work without a person beside it: queue, workers, recurring tasks, triage, what people answer."""
