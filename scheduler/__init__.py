"""The package is the scheduler: it watches, queues, schedules pods in order, binds and reports."""
